package cloudformation

import (
	"context"
	"errors"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/stack"
	"godwit.dev/godwit/internal/stack/document"
	"godwit.dev/godwit/internal/stack/resource"
	"godwit.dev/godwit/internal/stack/template"
)

func invalid(format string, args ...any) error {
	return fault.Newf(fault.ValidationFailed, format, args...)
}

// refused gives an error of a template the service's form.
func refused(err error) error {
	if r, ok := errors.AsType[*template.Refusal](err); ok {
		return fault.New(fault.ValidationFailed, refusal.Located(r))
	}
	return err
}

// concealing masks, in an error, the hidden values that a stack has had so far: whoever changes it need
// not know them.
func concealing(previous *stack.Input, err error) error {
	if previous == nil {
		return err
	}
	text, _ := stack.Masked(&stack.Stack{Input: *previous}, err.Error()).(string)
	if text == err.Error() {
		return err
	}
	return fault.New(fault.ValidationFailed, text)
}

// text is the template of a request; nil: there is none.
func (s *Service) text(ctx context.Context, body, url *string) ([]byte, error) {
	switch {
	case body != nil && url != nil:
		return nil, invalid("You must specify either Template URL or Template Body, but not both.")
	case url != nil:
		return s.fetch(ctx, *url, "TemplateURL", document.MaxBytes)
	case body == nil:
		return nil, nil
	case len(*body) > document.MaxInline:
		return nil, invalid("1 validation error detected: Value at 'templateBody' failed to satisfy constraint: Member must have length less than or equal to %d", document.MaxInline)
	}
	return []byte(*body), nil
}

// parse parses a template.
func parse(body []byte) (*template.Template, error) {
	t, err := template.Parse(body)
	if err != nil {
		return nil, refused(err)
	}
	if len(t.Transforms) > 0 {
		return t, nil // resource types are checked after transforms
	}
	return t, known(t)
}

// known refuses a template with unknown resource types or attributes, or with unsupported
// settings of these.
func known(t *template.Template) error {
	if err := t.Check(resource.Catalogue{}); err != nil {
		return refused(err)
	}
	for _, r := range t.Resources {
		if r.DeletionPolicy == "Snapshot" || r.UpdateReplacePolicy == "Snapshot" {
			return refused(r.Refuse(invalid("Template error: resource type %s does not support deletion policy Snapshot", r.Type)))
		}
	}
	return nil
}

// design binds a template to the request's parameters and returns the design of the stack. It
// sets the values of the parameters in input.
func design(t *template.Template, s *stack.Stack, input, previous *stack.Input, kept []string) (*stack.Design, error) {
	bound, err := stack.Bind(t, s, input, previous, kept)
	input.Store = nil
	if err != nil {
		return nil, concealing(previous, refused(err))
	}
	if err := known(bound.Template); err != nil {
		return nil, err
	}
	// Transforms may have computed resource types: their capabilities can only be checked
	// now.
	if err := acknowledged(bound.Template, input.Capabilities, false); err != nil {
		return nil, err
	}
	// A value that was given as hidden stays hidden until there is another one.
	stays := func(name string) bool {
		return slices.Contains(kept, name) && slices.ContainsFunc(previous.Parameters, func(p stack.Parameter) bool { return p.Key == name && p.NoEcho })
	}
	input.Parameters = input.Parameters[:0]
	for _, p := range bound.Template.ParameterList() {
		v := bound.Parameters[p.Name]
		input.Parameters = append(input.Parameters, stack.Parameter{Key: p.Name, Value: v.Text, Resolved: v.Resolved, NoEcho: v.NoEcho || stays(p.Name)})
	}
	input.Description = bound.Template.Description
	return input.Of(bound), nil
}

// acknowledged refuses a template whose required capabilities the request does not have. Only
// direct changes, without a change set, require the one for transforms.
func acknowledged(t *template.Template, given []string, direct bool) error {
	missing := t.Summary(resource.Catalogue{}).Missing(given)
	if !direct {
		missing = slices.DeleteFunc(missing, func(c string) bool { return c == template.CapabilityAutoExpand })
	}
	if len(missing) > 0 {
		return fault.Newf(fault.InsufficientCapabilities, "Requires capabilities : [%s]", strings.Join(missing, ", "))
	}
	return nil
}

func (s *Service) validateTemplate(ctx context.Context, _ *api.Call, in *ValidateTemplateInput) (*ValidateTemplateOutput, error) {
	t, err := s.required(ctx, in.TemplateBody, in.TemplateURL)
	if err != nil {
		return nil, err
	}
	out := &ValidateTemplateOutput{Parameters: []TemplateParameter{}, Description: t.Description, DeclaredTransforms: t.Transforms}
	summary := t.Summary(resource.Catalogue{})
	out.Capabilities, out.CapabilitiesReason = summary.Capabilities, capabilitiesReason(&summary)
	for _, p := range t.ParameterList() {
		out.Parameters = append(out.Parameters, TemplateParameter{ParameterKey: p.Name, DefaultValue: p.Default, NoEcho: p.NoEcho, Description: p.Description})
	}
	return out, nil
}

// capabilitiesReason is empty for a template that needs no capabilities.
func capabilitiesReason(s *template.Summary) string {
	if s.CapabilitiesReason == nil {
		return ""
	}
	return refusal.Text(s.CapabilitiesReason)
}

// required reads the template of a request that must have one.
func (s *Service) required(ctx context.Context, body, url *string) (*template.Template, error) {
	read, err := s.text(ctx, body, url)
	if err != nil {
		return nil, err
	}
	if read == nil {
		return nil, invalid("Either Template URL or Template Body must be specified.")
	}
	return parse(read)
}

func (s *Service) getTemplateSummary(ctx context.Context, call *api.Call, in *GetTemplateSummaryInput) (*GetTemplateSummaryOutput, error) {
	var t *template.Template
	if name := api.Deref(in.StackName); name != "" && in.TemplateBody == nil && in.TemplateURL == nil {
		body, err := s.Engine.Template(call.Account, call.Region, name)
		if err != nil {
			return nil, err
		}
		if len(body) == 0 {
			return nil, invalid("GetTemplateSummary cannot be called on REVIEW_IN_PROGRESS stacks.")
		}
		if t, err = parse(body); err != nil {
			return nil, err
		}
	} else {
		var err error
		if t, err = s.required(ctx, in.TemplateBody, in.TemplateURL); err != nil {
			return nil, err
		}
	}
	out := &GetTemplateSummaryOutput{Parameters: []ParameterDeclaration{}, Description: t.Description, Version: t.Version, DeclaredTransforms: t.Transforms}
	summary := t.Summary(resource.Catalogue{})
	out.Capabilities, out.CapabilitiesReason, out.ResourceTypes = summary.Capabilities, capabilitiesReason(&summary), summary.ResourceTypes
	for _, p := range t.ParameterList() {
		out.Parameters = append(out.Parameters, ParameterDeclaration{
			ParameterKey: p.Name, DefaultValue: p.Default, ParameterType: p.Type, NoEcho: p.NoEcho, Description: p.Description,
			ParameterConstraints: ParameterConstraints{AllowedValues: p.AllowedValues},
		})
	}
	return out, nil
}

func (s *Service) getTemplate(_ context.Context, call *api.Call, in *GetTemplateInput) (*GetTemplateOutput, error) {
	if set := api.Deref(in.ChangeSetName); set != "" {
		if err := checkSet(set, in.StackName); err != nil {
			return nil, err
		}
		body, err := s.Engine.TemplateOf(call.Account, call.Region, api.Deref(in.StackName), set)
		return &GetTemplateOutput{TemplateBody: string(body), StagesAvailable: []string{"Original"}}, err
	}
	if api.Deref(in.StackName) == "" {
		return nil, invalid("Must specify either StackName or ChangeSetName")
	}
	body, err := s.Engine.Template(call.Account, call.Region, *in.StackName)
	if err != nil {
		return nil, err
	}
	return &GetTemplateOutput{TemplateBody: string(body), StagesAvailable: []string{"Original", "Processed"}}, nil
}
