package cloudformation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/stack"
	"godwit.dev/godwit/internal/stack/resource"
	"godwit.dev/godwit/internal/stack/template"
)

// maxTemplate is how long a template may be that a request has, in bytes.
const maxTemplate = 51_200

func invalid(format string, args ...any) error {
	return fault.Newf(fault.ValidationFailed, format, args...)
}

// refused puts what is wrong with a template in the words of the service.
func refused(err error) error {
	if r, ok := errors.AsType[*template.Refusal](err); ok {
		return fault.New(fault.ValidationFailed, r.Text)
	}
	return err
}

// text is the text of a template that a request has; nil: it has none.
func text(body, url *string) ([]byte, error) {
	switch {
	case body != nil && url != nil:
		return nil, invalid("You must specify either Template URL or Template Body, but not both.")
	case url != nil:
		return nil, invalid("TemplateURL must be a supported URL. This server has no store of objects: give the template as TemplateBody.")
	case body == nil:
		return nil, nil
	case len(*body) == 0:
		return nil, invalid("1 validation error detected: Value '' at 'templateBody' failed to satisfy constraint: Member must have length greater than or equal to 1")
	case len(*body) > maxTemplate:
		return nil, invalid("1 validation error detected: Value at 'templateBody' failed to satisfy constraint: Member must have length less than or equal to %d", maxTemplate)
	}
	return []byte(*body), nil
}

// parse reads a template, whose types are all known.
func parse(body []byte) (*template.Template, error) {
	t, err := template.Parse(body)
	if err != nil {
		return nil, refused(err)
	}
	if len(t.Transforms) > 0 {
		return t, nil // its resources are known once it is expanded
	}
	return t, known(t)
}

// known refuses a template with types of resources that there are not, or with what these cannot.
func known(t *template.Template) error {
	var unknown []string
	for _, r := range t.Resources {
		of, ok := resource.Find(r.Type)
		switch {
		case !ok && !slices.Contains(unknown, r.Type):
			unknown = append(unknown, r.Type)
		case ok && (r.DeletionPolicy == "Snapshot" || r.UpdateReplacePolicy == "Snapshot"):
			return invalid("Template error: resource type %s does not support deletion policy Snapshot", of.Name)
		}
	}
	if unknown != nil {
		slices.Sort(unknown)
		return invalid("Template format error: Unrecognized resource types: [%s]", strings.Join(unknown, ", "))
	}
	return nil
}

// attributes refuses references to attributes that a type does not have. What else is wrong
// with a template is found by who resolves it.
type attributes struct {
	types map[string]*resource.Type
	err   error
}

// Ref implements stack.Late.
func (a *attributes) Ref(id string) (any, error) { return id, nil }

// GetAtt implements stack.Late.
func (a *attributes) GetAtt(id, attribute string) (any, error) {
	if t := a.types[id]; t != nil && !t.Has(attribute) && a.err == nil {
		a.err = invalid("Template error: resource %s does not support attribute type %s in Fn::GetAtt", id, attribute)
	}
	return attribute, nil
}

// Import implements stack.Late.
func (a *attributes) Import(name string) (any, error) { return name, nil }

// design binds a template and gives what a stack is to be of it, with the values that its
// parameters have.
func design(t *template.Template, s *stack.Stack, source, previous *stack.Source, kept []string) (*stack.Design, error) {
	bound, err := stack.Bind(t, s, source, previous, kept)
	source.Store = nil
	if err != nil {
		return nil, refused(err)
	}
	if err := known(bound.Template); err != nil {
		return nil, err
	}
	d, err := stack.Designed(bound)
	if err != nil {
		return nil, refused(err)
	}
	look := &attributes{types: map[string]*resource.Type{}}
	for id, part := range d.Parts {
		look.types[id], _ = resource.Find(part.Type)
	}
	for _, id := range d.Order {
		_, _ = d.Properties(id, look)
	}
	_, _ = d.Outputs(look)
	if look.err != nil {
		return nil, look.err
	}
	source.Parameters = source.Parameters[:0]
	for _, p := range bound.Template.ParameterList() {
		v := bound.Parameters[p.Name]
		source.Parameters = append(source.Parameters, stack.Parameter{Key: p.Name, Value: v.Text, Resolved: v.Resolved, NoEcho: v.NoEcho})
	}
	source.Description = bound.Template.Description
	return d, nil
}

// capabilities are those that a template's resources need, and why.
func capabilities(t *template.Template) (needs []string, reason string) {
	var types []string
	named := false
	for _, r := range t.Resources {
		of, ok := resource.Find(r.Type)
		if !ok || !of.IAM {
			continue
		}
		if !slices.Contains(types, r.Type) {
			types = append(types, r.Type)
		}
		if of.NameProperty != "" && r.Properties != nil && r.Properties.Get(of.NameProperty) != nil {
			named = true
		}
	}
	switch {
	case named:
		needs = append(needs, "CAPABILITY_NAMED_IAM")
	case types != nil:
		needs = append(needs, "CAPABILITY_IAM")
	}
	if types != nil {
		slices.Sort(types)
		reason = fmt.Sprintf("The following resource(s) require capabilities: [%s]", strings.Join(types, ", "))
	}
	return needs, reason
}

// acknowledged refuses a template that needs capabilities which a request does not have.
func acknowledged(t *template.Template, given []string, direct bool) error {
	needs, _ := capabilities(t)
	if direct && len(t.Transforms) > 0 {
		needs = append(needs, "CAPABILITY_AUTO_EXPAND")
	}
	missing := slices.DeleteFunc(needs, func(c string) bool {
		return slices.Contains(given, c) || c == "CAPABILITY_IAM" && slices.Contains(given, "CAPABILITY_NAMED_IAM")
	})
	if len(missing) > 0 {
		return fault.Newf(fault.InsufficientCapabilities, "Requires capabilities : [%s]", strings.Join(missing, ", "))
	}
	return nil
}

func (s *Service) validateTemplate(_ context.Context, _ *api.Call, in *ValidateTemplateInput) (*ValidateTemplateOutput, error) {
	t, err := required(in.TemplateBody, in.TemplateURL)
	if err != nil {
		return nil, err
	}
	out := &ValidateTemplateOutput{Parameters: []TemplateParameter{}, Description: t.Description, DeclaredTransforms: t.Transforms}
	out.Capabilities, out.CapabilitiesReason = capabilities(t)
	for _, p := range t.ParameterList() {
		out.Parameters = append(out.Parameters, TemplateParameter{ParameterKey: p.Name, DefaultValue: p.Default, NoEcho: p.NoEcho, Description: p.Description})
	}
	return out, nil
}

// required reads the template that a request has to have.
func required(body, url *string) (*template.Template, error) {
	read, err := text(body, url)
	if err != nil {
		return nil, err
	}
	if read == nil {
		return nil, invalid("Either Template URL or Template Body must be specified.")
	}
	return parse(read)
}

func (s *Service) getTemplateSummary(_ context.Context, call *api.Call, in *GetTemplateSummaryInput) (*GetTemplateSummaryOutput, error) {
	var t *template.Template
	if name := api.Deref(in.StackName); name != "" && in.TemplateBody == nil && in.TemplateURL == nil {
		body, err := s.Engine.Template(call.Account, call.Region, name)
		if err != nil {
			return nil, err
		}
		if t, err = parse(body); err != nil {
			return nil, err
		}
	} else {
		var err error
		if t, err = required(in.TemplateBody, in.TemplateURL); err != nil {
			return nil, err
		}
	}
	out := &GetTemplateSummaryOutput{Parameters: []ParameterDeclaration{}, Description: t.Description, Version: t.Version, DeclaredTransforms: t.Transforms}
	out.Capabilities, out.CapabilitiesReason = capabilities(t)
	types := map[string]bool{}
	for _, r := range t.Resources {
		types[r.Type] = true
	}
	out.ResourceTypes = slices.Sorted(maps.Keys(types))
	for _, p := range t.ParameterList() {
		out.Parameters = append(out.Parameters, ParameterDeclaration{
			ParameterKey: p.Name, DefaultValue: p.Default, ParameterType: p.Type, NoEcho: p.NoEcho, Description: p.Description,
			ParameterConstraints: ParameterConstraints{AllowedValues: p.AllowedValues},
		})
	}
	return out, nil
}

func (s *Service) getTemplate(_ context.Context, call *api.Call, in *GetTemplateInput) (*GetTemplateOutput, error) {
	if in.ChangeSetName != nil {
		return nil, invalid("The template of a change set cannot be had.")
	}
	body, err := s.Engine.Template(call.Account, call.Region, api.Deref(in.StackName))
	if err != nil {
		return nil, err
	}
	return &GetTemplateOutput{TemplateBody: string(body), StagesAvailable: []string{"Original", "Processed"}}, nil
}
