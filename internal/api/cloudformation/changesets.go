package cloudformation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/check"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
	"godwit.dev/godwit/internal/stack/template"
)

// revision is what a request changes of a stack.
type revision struct {
	body, url                   *string
	previous                    bool // use the stack's template
	parameters                  []Parameter
	tags                        []Tag
	capabilities, notifications []string
	role                        *string
	direct                      bool // without a change set for review
	retainExceptOnCreate        bool
}

// prepared is the result of prepare.
type prepared struct {
	body   []byte // nil: the stack's template
	input  *stack.Input
	design *stack.Design
}

// prepare binds the template of a revision for a stack. Absent settings stay unchanged.
func (s *Service) prepare(ctx context.Context, call *api.Call, was *stacks.View, r *revision) (*prepared, error) {
	body, err := s.text(ctx, r.body, r.url)
	if err != nil {
		return nil, err
	}
	if r.previous && body != nil {
		return nil, invalid("You cannot specify both usePreviousTemplate and Template Body.")
	}
	var t *template.Template
	switch {
	case body != nil:
		t, err = parse(body)
	case r.previous && was.Input.Template > 0:
		var old []byte
		if old, err = s.Engine.Template(call.Account, call.Region, was.ID); err == nil {
			t, err = parse(old)
		}
	default:
		return nil, invalid("Either Template URL or Template Body must be specified.")
	}
	if err != nil {
		return nil, err
	}
	if err := acknowledged(t, r.capabilities, r.direct); err != nil {
		return nil, err
	}
	input, err := inputOf(r.tags, r.capabilities, r.notifications, r.role)
	if err != nil {
		return nil, err
	}
	if r.tags == nil {
		input.Tags = was.Input.Tags
	}
	if r.role == nil {
		input.Role = was.Input.Role
	}
	if err := s.assumable(ctx, was.ID, input.Role); err != nil {
		return nil, err
	}
	input.RetainExceptOnCreate = r.retainExceptOnCreate
	kept, err := parameters(input, r.parameters)
	if err != nil {
		return nil, err
	}
	input.Store = s.store(ctx, call)
	d, err := design(t, &was.Stack, input, &was.Input, kept)
	return &prepared{body, input, d}, err
}

// CreateChangeSetInput is the request of CreateChangeSet.
type CreateChangeSetInput struct {
	StackName                   string `wire:"required"`
	TemplateBody, TemplateURL   *string
	UsePreviousTemplate         *bool
	Parameters                  []Parameter
	Capabilities, ResourceTypes []string
	RoleARN                     *string
	RollbackConfiguration       *RollbackConfiguration
	NotificationARNs            []string
	Tags                        []Tag
	ChangeSetName               string `wire:"required"`
	ClientToken, Description    *string
	ChangeSetType               *string
	IncludeNestedStacks         *bool
	OnStackFailure              *string
	ImportExistingResources     *bool
}

// CreateChangeSetOutput is the answer of CreateChangeSet.
type CreateChangeSetOutput struct{ Id, StackId string }

// DescribeChangeSetInput is the request of DescribeChangeSet.
type DescribeChangeSetInput struct {
	ChangeSetName        string `wire:"required"`
	StackName, NextToken *string
}

// DescribeChangeSetOutput is the answer of DescribeChangeSet.
type DescribeChangeSetOutput struct {
	ChangeSetName, ChangeSetId, StackId, StackName string
	Description                                    string
	Parameters                                     []Parameter
	CreationTime                                   api.Time
	ExecutionStatus, Status, StatusReason          string
	NotificationARNs                               []string
	RollbackConfiguration                          RollbackConfiguration
	Capabilities                                   []string
	Tags                                           []Tag
	Changes                                        []Change
	NextToken                                      string
	IncludeNestedStacks                            bool
	OnStackFailure                                 string
}

// Change is a change of a change set.
type Change struct {
	Type           string
	ResourceChange ResourceChange
}

// ResourceChange is a resource that would change.
type ResourceChange struct {
	Action, LogicalResourceId, PhysicalResourceId, ResourceType, Replacement string

	Scope   []string
	Details []ResourceChangeDetail
}

// ResourceChangeDetail is a cause of the change of a resource.
type ResourceChangeDetail struct {
	Target                                  ResourceTargetDefinition
	Evaluation, ChangeSource, CausingEntity string
}

// ResourceTargetDefinition is the part of a resource that would change.
type ResourceTargetDefinition struct{ Attribute, Name, RequiresRecreation string }

// ExecuteChangeSetInput is the request of ExecuteChangeSet.
type ExecuteChangeSetInput struct {
	ChangeSetName                 string `wire:"required"`
	StackName, ClientRequestToken *string
	DisableRollback               *bool
	RetainExceptOnCreate          *bool
}

// ExecuteChangeSetOutput is the empty answer of ExecuteChangeSet.
type ExecuteChangeSetOutput struct{}

// ListChangeSetsInput is the request of ListChangeSets.
type ListChangeSetsInput struct {
	StackName string `wire:"required"`
	NextToken *string
}

// ListChangeSetsOutput is the answer of ListChangeSets.
type ListChangeSetsOutput struct {
	Summaries []ChangeSetSummary
	NextToken string
}

// ChangeSetSummary is a change set of a list.
type ChangeSetSummary struct {
	StackId, StackName, ChangeSetId, ChangeSetName string
	ExecutionStatus, Status, StatusReason          string
	CreationTime                                   api.Time
	Description                                    string
	IncludeNestedStacks                            bool
}

// DeleteChangeSetInput is the request of DeleteChangeSet.
type DeleteChangeSetInput struct {
	ChangeSetName string `wire:"required"`
	StackName     *string
}

// DeleteChangeSetOutput is the empty answer of DeleteChangeSet.
type DeleteChangeSetOutput struct{}

func (s *Service) createChangeSet(ctx context.Context, call *api.Call, in *CreateChangeSetInput) (*CreateChangeSetOutput, error) {
	return current(func() (*CreateChangeSetOutput, error) { return s.plan(ctx, call, in) })
}

func (s *Service) plan(ctx context.Context, call *api.Call, in *CreateChangeSetInput) (*CreateChangeSetOutput, error) {
	kind := "UPDATE"
	if in.ChangeSetType != nil {
		kind = *in.ChangeSetType
	}
	if kinds := []string{"CREATE", "UPDATE"}; !slices.Contains(kinds, kind) {
		return nil, invalid("1 validation error detected: Value '%s' at 'changeSetType' failed to satisfy constraint: %s", kind, check.Enum(kinds...))
	}
	if err := unserved(in.RollbackConfiguration, in.ResourceTypes); err != nil {
		return nil, err
	}
	if api.Deref(in.ImportExistingResources) {
		return nil, invalid("ImportExistingResources is not served.")
	}
	onFailure := api.Deref(in.OnStackFailure)
	was, err := s.Engine.Get(call.Account, call.Region, in.StackName)
	if err == nil && was.Status == stack.DeleteComplete {
		err = stacks.ErrNone
	}
	if err != nil {
		if kind == "UPDATE" {
			return nil, bracketed(err, in.StackName)
		}
		if err := checkName(in.StackName); err != nil {
			return nil, err
		}
		was = stacks.View{Stack: stack.Stack{ID: s.newARN(call, "stack", in.StackName), Name: in.StackName, Account: call.Account, Region: call.Region}}
	}
	p, err := s.prepare(ctx, call, &was, &revision{
		body: in.TemplateBody, url: in.TemplateURL, previous: api.Deref(in.UsePreviousTemplate), parameters: in.Parameters,
		tags: in.Tags, capabilities: in.Capabilities, notifications: in.NotificationARNs, role: in.RoleARN,
	})
	if err != nil {
		return nil, err
	}
	set := &stacks.ChangeSet{
		ID: s.newARN(call, "changeSet", in.ChangeSetName), Name: in.ChangeSetName, Description: api.Deref(in.Description),
		Token: api.Deref(in.ClientToken), Input: *p.input, Design: p.design, Seen: was.Phase, Make: kind == "CREATE", OnFailure: onFailure,
	}
	id, err := s.Engine.PutChangeSet(ctx, &stacks.Creation{ID: was.ID, Name: was.Name, Account: call.Account, Region: call.Region, Body: p.body}, set)
	return &CreateChangeSetOutput{Id: set.ID, StackId: id}, bracketed(err, in.StackName)
}

func statusOf(set *stacks.ChangeSet) (status, execution, reason string) {
	switch {
	case set.Failure != "":
		return "FAILED", "UNAVAILABLE", set.Failure
	case set.Executed:
		return "CREATE_COMPLETE", "EXECUTE_COMPLETE", ""
	case set.Obsolete:
		return "CREATE_COMPLETE", "OBSOLETE", ""
	default:
		return "CREATE_COMPLETE", "AVAILABLE", ""
	}
}

// checkSet refuses the name of a change set without that of its stack.
func checkSet(name string, of *string) error {
	if api.Deref(of) != "" {
		return nil
	}
	if a, err := arn.Parse(name); err == nil && a.Service == "cloudformation" {
		return nil
	}
	return invalid("StackName must be specified if ChangeSetName is not specified as an ARN.")
}

func (s *Service) describeChangeSet(_ context.Context, call *api.Call, in *DescribeChangeSetInput) (*DescribeChangeSetOutput, error) {
	if err := checkSet(in.ChangeSetName, in.StackName); err != nil {
		return nil, err
	}
	set, err := s.Engine.ChangeSet(call.Account, call.Region, api.Deref(in.StackName), in.ChangeSetName)
	if err != nil {
		return nil, err
	}
	cut, next, err := page("DescribeChangeSet", set.Changes, func(i int) string { return fmt.Sprintf("%06d", i) }, in.NextToken)
	if err != nil {
		return nil, err
	}
	out := &DescribeChangeSetOutput{
		ChangeSetName: set.Name, ChangeSetId: set.ID, StackId: set.Stack, StackName: set.StackName, Description: set.Description,
		Parameters: shownParameters(set.Input.Parameters), CreationTime: api.Time(set.Created), NotificationARNs: append([]string{}, set.Input.Notifications...),
		Capabilities: set.Input.Capabilities, Tags: shownTags(set.Input.Tags), Changes: []Change{}, NextToken: next, OnStackFailure: set.OnFailure,
	}
	out.Status, out.ExecutionStatus, out.StatusReason = statusOf(&set)
	for _, c := range cut {
		shown := ResourceChange{
			Action: c.Action, LogicalResourceId: c.Logical, PhysicalResourceId: c.Physical, ResourceType: c.Type, Replacement: c.Replacement,
			Scope: append([]string{}, c.Scope...), Details: []ResourceChangeDetail{},
		}
		for _, d := range c.Details {
			shown.Details = append(shown.Details, ResourceChangeDetail{
				Target:     ResourceTargetDefinition{d.Attribute, d.Name, d.Recreation},
				Evaluation: d.Evaluation, ChangeSource: d.Source, CausingEntity: d.Causing,
			})
		}
		out.Changes = append(out.Changes, Change{"Resource", shown})
	}
	return out, nil
}

func (s *Service) executeChangeSet(ctx context.Context, call *api.Call, in *ExecuteChangeSetInput) (*ExecuteChangeSetOutput, error) {
	if err := checkSet(in.ChangeSetName, in.StackName); err != nil {
		return nil, err
	}
	onFailure := stack.OnFailureRollback
	if api.Deref(in.DisableRollback) {
		onFailure = stack.OnFailureNothing
	}
	set, gone := s.Engine.ChangeSet(call.Account, call.Region, api.Deref(in.StackName), in.ChangeSetName)
	if gone == nil && set.Failure == "" && !set.Executed {
		if err := s.assumable(ctx, set.Stack, set.Input.Role); err != nil {
			return nil, err
		}
	}
	err := s.Engine.Execute(ctx, call.Account, call.Region, api.Deref(in.StackName), in.ChangeSetName, &stack.Request{
		By: call.Caller.WithoutKey(), Token: api.Deref(in.ClientRequestToken), OnFailure: onFailure, Store: s.store(ctx, call),
		Input: stack.Input{RetainExceptOnCreate: api.Deref(in.RetainExceptOnCreate)},
	})
	if _, ok := errors.AsType[*template.Refusal](err); !ok {
		return nil, err
	}
	// Its parameters were good when it was made: the parameter store has changed.
	if gone != nil {
		return nil, gone
	}
	return nil, concealing(&set.Input, refused(err))
}

func (s *Service) listChangeSets(_ context.Context, call *api.Call, in *ListChangeSetsInput) (*ListChangeSetsOutput, error) {
	all, err := s.Engine.ChangeSets(call.Account, call.Region, in.StackName)
	if err != nil {
		return nil, bracketed(err, in.StackName)
	}
	cut, next, err := page("ListChangeSets", all, func(i int) string { return fmt.Sprintf("%016x %s", all[i].Created, all[i].Name) }, in.NextToken)
	if err != nil {
		return nil, err
	}
	out := &ListChangeSetsOutput{Summaries: []ChangeSetSummary{}, NextToken: next}
	for i := range cut {
		set := &cut[i]
		one := ChangeSetSummary{
			StackId: set.Stack, StackName: set.StackName, ChangeSetId: set.ID, ChangeSetName: set.Name, CreationTime: api.Time(set.Created), Description: set.Description,
		}
		one.Status, one.ExecutionStatus, one.StatusReason = statusOf(set)
		out.Summaries = append(out.Summaries, one)
	}
	return out, nil
}

func (s *Service) deleteChangeSet(ctx context.Context, call *api.Call, in *DeleteChangeSetInput) (*DeleteChangeSetOutput, error) {
	if err := checkSet(in.ChangeSetName, in.StackName); err != nil {
		return nil, err
	}
	return nil, s.Engine.DeleteChangeSet(ctx, call.Account, call.Region, api.Deref(in.StackName), in.ChangeSetName)
}
