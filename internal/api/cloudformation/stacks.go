package cloudformation

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"strings"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
)

const (
	namePattern = `[a-zA-Z][-a-zA-Z0-9]*`
	maxName     = 128
	maxTopics   = 5
)

var stackName = regexp.MustCompile(`^` + namePattern + `$`)

// checkName refuses an invalid stack name.
func checkName(name string) error {
	if !stackName.MatchString(name) {
		return invalid("1 validation error detected: Value '%s' at 'stackName' failed to satisfy constraint: Member must satisfy regular expression pattern: %s",
			fault.Excerpt(name, maxName, "…"), namePattern)
	}
	if len(name) > maxName {
		return invalid("1 validation error detected: Value '%s' at 'stackName' failed to satisfy constraint: Member must have length less than or equal to %d", name, maxName)
	}
	return nil
}

// ownPrefix begins the keys of tags that AWS alone sets.
const ownPrefix = "aws:"

// inputOf is what a request says that a stack is to be made of.
func inputOf(tags []Tag, capabilities, notifications []string, role *string) (*stack.Input, error) {
	s := &stack.Input{Capabilities: capabilities, Notifications: notifications, Role: api.Deref(role)}
	seen := map[string]bool{}
	for _, t := range tags {
		if seen[t.Key] {
			return nil, invalid("Tags cannot have duplicate keys")
		}
		seen[t.Key] = true
		if len(t.Key) >= len(ownPrefix) && strings.EqualFold(t.Key[:len(ownPrefix)], ownPrefix) {
			return nil, invalid("aws: prefixed tag key names are not allowed for external use.")
		}
		s.Tags = append(s.Tags, stack.Tag{Key: t.Key, Value: t.Value})
	}
	if len(notifications) > 0 {
		return nil, invalid("NotificationARNs are not served: events are listed by DescribeStackEvents alone.")
	}
	return s, nil
}

// assumable refuses a role in which CloudFormation cannot act for a stack; empty: there is none. What
// is a step of a parent stack acts in that one's role.
func (s *Service) assumable(ctx context.Context, id, role string) error {
	if nested := ctx.Value(nesting{}) != nil; role == "" || nested {
		return nil
	}
	refused := invalid("Role %s is invalid or cannot be assumed", role)
	if a, err := arn.Parse(role); err != nil || !a.IsRole() {
		return refused
	}
	if s.Acting == nil {
		return nil
	}
	of, err := arn.Parse(id)
	if err == nil {
		_, err = s.Acting(of, role)
	}
	if err != nil {
		return refused
	}
	return nil
}

// assumableOf is assumable for the role of a request, or else that of the stack, if it exists.
func (s *Service) assumableOf(ctx context.Context, call *api.Call, name string, role *string) error {
	v, err := s.Engine.Get(call.Account, call.Region, name)
	if err != nil || v.Status == stack.DeleteComplete {
		return nil //nolint:nilerr // the operation itself says what that means
	}
	return s.assumable(ctx, v.ID, cmp.Or(api.Deref(role), v.Input.Role))
}

// unserved refuses parameters that this server does not support.
func unserved(watched *RollbackConfiguration, types []string) error {
	switch {
	case watched != nil && len(watched.RollbackTriggers) > 0:
		return invalid("RollbackTriggers are not served.")
	case len(types) > 0:
		return invalid("ResourceTypes is not served.")
	}
	return nil
}

// parameters adds the values of a request to an input, and returns the parameters with
// UsePreviousValue.
func parameters(s *stack.Input, given []Parameter) (kept []string, err error) {
	seen := map[string]bool{}
	for _, p := range given {
		key := api.Deref(p.ParameterKey)
		if seen[key] {
			return nil, invalid("Parameters: [%s] are duplicated", key)
		}
		seen[key] = true
		if api.Deref(p.UsePreviousValue) {
			if p.ParameterValue != nil {
				return nil, invalid("Invalid input for parameter key %s. Cannot specify usePreviousValue as true and a value", key)
			}
			kept = append(kept, key)
			continue
		}
		if p.ParameterValue == nil {
			return nil, invalid("Parameters: [%s] must have values", key)
		}
		s.Parameters = append(s.Parameters, stack.Parameter{Key: key, Value: *p.ParameterValue})
	}
	return kept, nil
}

func (s *Service) newARN(call *api.Call, kind, name string) string {
	return arn.ARN{Service: "cloudformation", Region: call.Region, Account: call.Account, Resource: kind + "/" + name + "/" + s.NewID()}.String()
}

func (s *Service) createStack(ctx context.Context, call *api.Call, in *CreateStackInput) (*CreateStackOutput, error) {
	if err := checkName(in.StackName); err != nil {
		return nil, err
	}
	if in.OnFailure != nil && in.DisableRollback != nil {
		return nil, invalid("You must specify either OnFailure or DisableRollback, but not both.")
	}
	onFailure := stack.OnFailureRollback
	if in.OnFailure != nil {
		onFailure = *in.OnFailure
	} else if api.Deref(in.DisableRollback) {
		onFailure = stack.OnFailureNothing
	}
	if err := unserved(in.RollbackConfiguration, in.ResourceTypes); err != nil {
		return nil, err
	}
	body, err := s.text(ctx, in.TemplateBody, in.TemplateURL)
	if err != nil {
		return nil, err
	}
	if body == nil {
		return nil, invalid("Either Template URL or Template Body must be specified.")
	}
	t, err := parse(body)
	if err != nil {
		return nil, err
	}
	if err := acknowledged(t, in.Capabilities, true); err != nil {
		return nil, err
	}
	input, err := inputOf(in.Tags, in.Capabilities, in.NotificationARNs, in.RoleARN)
	if err != nil {
		return nil, err
	}
	id := s.newARN(call, "stack", in.StackName)
	if err := s.assumable(ctx, id, input.Role); err != nil {
		return nil, err
	}
	input.RetainExceptOnCreate = api.Deref(in.RetainExceptOnCreate)
	kept, err := parameters(input, in.Parameters)
	if err != nil {
		return nil, err
	}
	if len(kept) > 0 {
		return nil, invalid("Invalid input for parameter key %s. Cannot specify usePreviousValue as true for a parameter key not in the previous template", kept[0])
	}
	c := &stacks.Creation{
		ID: id, Name: in.StackName, Account: call.Account, Region: call.Region, Body: body,
		Timeout: int64(api.Deref(in.TimeoutInMinutes)) * time.Minute.Milliseconds(), Protected: api.Deref(in.EnableTerminationProtection),
	}
	input.Store = s.store(ctx, call)
	to, err := design(t, &stack.Stack{ID: c.ID, Name: c.Name, Account: c.Account, Region: c.Region}, input, nil, nil)
	if err != nil {
		return nil, err
	}
	c.Request = stack.Request{By: call.Caller.WithoutKey(), Token: api.Deref(in.ClientRequestToken), Input: *input, Design: to, OnFailure: onFailure}
	if c.Request.Policy, err = s.policy(ctx, in.StackPolicyBody, in.StackPolicyURL); err != nil {
		return nil, err
	}
	if err := nest(ctx, &c.Request, c); err != nil {
		return nil, err
	}
	id, err = s.Engine.Create(ctx, c)
	return &CreateStackOutput{id}, err
}

// bracketed replaces the error of an unknown stack by the form of some operations.
func bracketed(err error, name string) error {
	if errors.Is(err, stacks.ErrNone) {
		return invalid("Stack [%s] does not exist", name)
	}
	return err
}

// mostAgain is how often an operation is prepared again for a stack that another one changes meanwhile.
const mostAgain = 8

// current has an operation be prepared anew as long as the stack that it was prepared for, with the
// template and values that it keeps, is not the stack any more.
func current[Out any](ask func() (*Out, error)) (out *Out, err error) {
	for range mostAgain {
		if out, err = ask(); !errors.Is(err, stacks.ErrChanged) {
			break
		}
	}
	return out, err
}

func (s *Service) updateStack(ctx context.Context, call *api.Call, in *UpdateStackInput) (*UpdateStackOutput, error) {
	return current(func() (*UpdateStackOutput, error) { return s.update(ctx, call, in) })
}

func (s *Service) update(ctx context.Context, call *api.Call, in *UpdateStackInput) (*UpdateStackOutput, error) {
	if err := unserved(in.RollbackConfiguration, in.ResourceTypes); err != nil {
		return nil, err
	}
	was, err := s.Engine.Get(call.Account, call.Region, in.StackName)
	if err != nil {
		return nil, bracketed(err, in.StackName)
	}
	p, err := s.prepare(ctx, call, &was, &revision{
		body: in.TemplateBody, url: in.TemplateURL, previous: api.Deref(in.UsePreviousTemplate), parameters: in.Parameters,
		tags: in.Tags, capabilities: in.Capabilities, notifications: in.NotificationARNs, role: in.RoleARN, direct: true,
		retainExceptOnCreate: api.Deref(in.RetainExceptOnCreate),
	})
	if err != nil {
		return nil, err
	}
	onFailure := stack.OnFailureRollback
	if api.Deref(in.DisableRollback) {
		onFailure = stack.OnFailureNothing
	}
	req := &stack.Request{
		By: call.Caller.WithoutKey(), Token: api.Deref(in.ClientRequestToken), Input: *p.input, Design: p.design, Seen: was.Phase, OnFailure: onFailure,
	}
	if req.Policy, err = s.policy(ctx, in.StackPolicyBody, in.StackPolicyURL); err != nil {
		return nil, err
	}
	if req.Meanwhile, err = s.policy(ctx, in.StackPolicyDuringUpdateBody, in.StackPolicyDuringUpdateURL); err != nil {
		return nil, err
	}
	if err := nest(ctx, req, nil); err != nil {
		return nil, err
	}
	id, err := s.Engine.Update(ctx, call.Account, call.Region, was.ID, p.body, req)
	return &UpdateStackOutput{id}, bracketed(err, in.StackName)
}

func (s *Service) deleteStack(ctx context.Context, call *api.Call, in *DeleteStackInput) (*DeleteStackOutput, error) {
	if in.DeletionMode != nil && *in.DeletionMode != "STANDARD" {
		return nil, invalid("The deletion mode %s is not served.", *in.DeletionMode)
	}
	req := &stack.Request{
		By: call.Caller.WithoutKey(), Token: api.Deref(in.ClientRequestToken), Keep: in.RetainResources, Input: stack.Input{Role: api.Deref(in.RoleARN)},
	}
	if err := nest(ctx, req, nil); err != nil {
		return nil, err
	}
	if err := s.assumableOf(ctx, call, in.StackName, in.RoleARN); err != nil {
		return nil, err
	}
	return nil, s.Engine.Delete(ctx, call.Account, call.Region, in.StackName, req)
}

func (s *Service) cancelUpdateStack(ctx context.Context, call *api.Call, in *CancelUpdateStackInput) (*CancelUpdateStackOutput, error) {
	return nil, bracketed(s.Engine.Cancel(ctx, call.Account, call.Region, in.StackName, api.Deref(in.ClientRequestToken)), in.StackName)
}

func (s *Service) rollbackStack(ctx context.Context, call *api.Call, in *RollbackStackInput) (*RollbackStackOutput, error) {
	if err := s.assumableOf(ctx, call, in.StackName, in.RoleARN); err != nil {
		return nil, err
	}
	id, err := s.Engine.Rollback(ctx, call.Account, call.Region, in.StackName, &stack.Request{
		By: call.Caller.WithoutKey(), Token: api.Deref(in.ClientRequestToken),
		Input: stack.Input{Role: api.Deref(in.RoleARN), RetainExceptOnCreate: api.Deref(in.RetainExceptOnCreate)},
	})
	return &RollbackStackOutput{id}, bracketed(err, in.StackName)
}

func (s *Service) continueUpdateRollback(ctx context.Context, call *api.Call, in *ContinueUpdateRollbackInput) (*ContinueUpdateRollbackOutput, error) {
	if err := s.assumableOf(ctx, call, in.StackName, in.RoleARN); err != nil {
		return nil, err
	}
	return nil, bracketed(s.Engine.ContinueRollback(ctx, call.Account, call.Region, in.StackName, &stack.Request{
		By: call.Caller.WithoutKey(), Token: api.Deref(in.ClientRequestToken), Keep: in.ResourcesToSkip, Input: stack.Input{Role: api.Deref(in.RoleARN)},
	}), in.StackName)
}

func (s *Service) updateTerminationProtection(ctx context.Context, call *api.Call, in *UpdateTerminationProtectionInput) (*UpdateTerminationProtectionOutput, error) {
	id, err := s.Engine.Protect(ctx, call.Account, call.Region, in.StackName, api.Deref(in.EnableTerminationProtection))
	return &UpdateTerminationProtectionOutput{id}, bracketed(err, in.StackName)
}
