package iam

import (
	"context"
	"slices"
	"strings"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/check"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/iam"
)

func (s *Service) attachments() []api.Operation {
	return []api.Operation{
		api.Op("AttachUserPolicy", func(_ context.Context, call *api.Call, in *UserPolicyARNInput) (*Empty, error) {
			return s.attach(call, iam.User, *in.UserName, *in.PolicyArn)
		}),
		api.Op("AttachGroupPolicy", func(_ context.Context, call *api.Call, in *GroupPolicyARNInput) (*Empty, error) {
			return s.attach(call, iam.Group, *in.GroupName, *in.PolicyArn)
		}),
		api.Op("AttachRolePolicy", func(_ context.Context, call *api.Call, in *RolePolicyARNInput) (*Empty, error) {
			return s.attach(call, iam.Role, *in.RoleName, *in.PolicyArn)
		}),
		api.Op("DetachUserPolicy", func(_ context.Context, call *api.Call, in *UserPolicyARNInput) (*Empty, error) {
			return s.detach(call, iam.User, *in.UserName, *in.PolicyArn)
		}),
		api.Op("DetachGroupPolicy", func(_ context.Context, call *api.Call, in *GroupPolicyARNInput) (*Empty, error) {
			return s.detach(call, iam.Group, *in.GroupName, *in.PolicyArn)
		}),
		api.Op("DetachRolePolicy", func(_ context.Context, call *api.Call, in *RolePolicyARNInput) (*Empty, error) {
			return s.detach(call, iam.Role, *in.RoleName, *in.PolicyArn)
		}),
		api.Op("ListAttachedUserPolicies", func(_ context.Context, call *api.Call, in *ListAttachedUserPoliciesInput) (*AttachedPoliciesOutput, error) {
			return s.listAttached(call, iam.User, *in.UserName, ListInput{in.PathPrefix, in.Marker, in.MaxItems})
		}),
		api.Op("ListAttachedGroupPolicies", func(_ context.Context, call *api.Call, in *ListAttachedGroupPoliciesInput) (*AttachedPoliciesOutput, error) {
			return s.listAttached(call, iam.Group, *in.GroupName, ListInput{in.PathPrefix, in.Marker, in.MaxItems})
		}),
		api.Op("ListAttachedRolePolicies", func(_ context.Context, call *api.Call, in *ListAttachedRolePoliciesInput) (*AttachedPoliciesOutput, error) {
			return s.listAttached(call, iam.Role, *in.RoleName, ListInput{in.PathPrefix, in.Marker, in.MaxItems})
		}),
		api.Op("PutUserPermissionsBoundary", func(_ context.Context, call *api.Call, in *UserBoundaryInput) (*Empty, error) {
			return s.putBoundary(call, iam.User, *in.UserName, *in.PermissionsBoundary)
		}),
		api.Op("PutRolePermissionsBoundary", func(_ context.Context, call *api.Call, in *RoleBoundaryInput) (*Empty, error) {
			return s.putBoundary(call, iam.Role, *in.RoleName, *in.PermissionsBoundary)
		}),
		api.Op("DeleteUserPermissionsBoundary", func(_ context.Context, call *api.Call, in *UserInput) (*Empty, error) {
			return s.deleteBoundary(call, iam.User, *in.UserName)
		}),
		api.Op("DeleteRolePermissionsBoundary", func(_ context.Context, call *api.Call, in *RoleInput) (*Empty, error) {
			return s.deleteBoundary(call, iam.Role, *in.RoleName)
		}),
	}
}

// checkPolicyARN validates the form of a managed policy's ARN.
func checkPolicyARN(arn string) error {
	if _, kind, _, ok := iam.ParseARN(arn); !ok || kind != iam.Policy {
		return fault.Newf(fault.InvalidInput, "ARN %s is not valid.", arn)
	}
	return nil
}

// checkBoundary is checkPolicyARN for the optional boundary of a user or role.
func checkBoundary(arn *string) error {
	if arn == nil {
		return nil
	}
	return checkPolicyARN(*arn)
}

func (s *Service) attach(call *api.Call, kind iam.Kind, name, arn string) (*Empty, error) {
	if err := checkPolicyARN(arn); err != nil {
		return nil, err
	}
	return s.entities.Change(call.Account, func(a *iam.Account, _ time.Time) error { return a.Attach(kind, name, arn) })
}

func (s *Service) detach(call *api.Call, kind iam.Kind, name, arn string) (*Empty, error) {
	if err := checkPolicyARN(arn); err != nil {
		return nil, err
	}
	return s.entities.Change(call.Account, func(a *iam.Account, _ time.Time) error { return a.Detach(kind, name, arn) })
}

func (s *Service) putBoundary(call *api.Call, kind iam.Kind, name, arn string) (*Empty, error) {
	if err := checkPolicyARN(arn); err != nil {
		return nil, err
	}
	return s.entities.Change(call.Account, func(a *iam.Account, _ time.Time) error { return a.SetBoundary(kind, name, arn) })
}

func (s *Service) deleteBoundary(call *api.Call, kind iam.Kind, name string) (*Empty, error) {
	return s.entities.Change(call.Account, func(a *iam.Account, _ time.Time) error { return a.DeleteBoundary(kind, name) })
}

// attachedTo are the managed policies of an entity below a path, ordered by name.
func attachedTo(a *iam.Account, e *iam.Entity, prefix string) []AttachedPolicy {
	all := []AttachedPolicy{}
	for _, arn := range e.Attached {
		if p, err := a.Managed(arn); err == nil && strings.HasPrefix(p.Path, prefix) {
			all = append(all, AttachedPolicy{p.Name, arn})
		}
	}
	slices.SortFunc(all, func(x, y AttachedPolicy) int { return strings.Compare(x.PolicyArn, y.PolicyArn) })
	return all
}

func (s *Service) listAttached(call *api.Call, kind iam.Kind, name string, in ListInput) (*AttachedPoliciesOutput, error) {
	var all []AttachedPolicy
	err := s.engine.Read(call.Account, func(a *iam.Account) error {
		e, err := a.Find(kind, name)
		if err == nil {
			all = attachedTo(a, e, api.Deref(in.PathPrefix))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	cut, truncated, next, err := check.Page("attached", all, func(p *AttachedPolicy) string { return p.PolicyArn }, in.Marker, in.MaxItems)
	if err != nil {
		return nil, err
	}
	return &AttachedPoliciesOutput{cut, truncated, next}, nil
}
