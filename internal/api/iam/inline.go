package iam

import (
	"context"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/check"
	"godwit.dev/godwit/internal/iam"
)

func (s *Service) inlines() []api.Operation {
	return []api.Operation{
		api.Op("PutUserPolicy", func(_ context.Context, call *api.Call, in *PutUserPolicyInput) (*Empty, error) {
			return s.putInline(call, iam.User, *in.UserName, *in.PolicyName, *in.PolicyDocument)
		}),
		api.Op("PutGroupPolicy", func(_ context.Context, call *api.Call, in *PutGroupPolicyInput) (*Empty, error) {
			return s.putInline(call, iam.Group, *in.GroupName, *in.PolicyName, *in.PolicyDocument)
		}),
		api.Op("PutRolePolicy", func(_ context.Context, call *api.Call, in *PutRolePolicyInput) (*Empty, error) {
			return s.putInline(call, iam.Role, *in.RoleName, *in.PolicyName, *in.PolicyDocument)
		}),
		api.Op("GetUserPolicy", func(_ context.Context, call *api.Call, in *UserPolicyInput) (*GetUserPolicyOutput, error) {
			name, document, err := s.getInline(call, iam.User, *in.UserName, *in.PolicyName)
			return &GetUserPolicyOutput{name, *in.PolicyName, document}, err
		}),
		api.Op("GetGroupPolicy", func(_ context.Context, call *api.Call, in *GroupPolicyInput) (*GetGroupPolicyOutput, error) {
			name, document, err := s.getInline(call, iam.Group, *in.GroupName, *in.PolicyName)
			return &GetGroupPolicyOutput{name, *in.PolicyName, document}, err
		}),
		api.Op("GetRolePolicy", func(_ context.Context, call *api.Call, in *RolePolicyInput) (*GetRolePolicyOutput, error) {
			name, document, err := s.getInline(call, iam.Role, *in.RoleName, *in.PolicyName)
			return &GetRolePolicyOutput{name, *in.PolicyName, document}, err
		}),
		api.Op("DeleteUserPolicy", func(_ context.Context, call *api.Call, in *UserPolicyInput) (*Empty, error) {
			return s.deleteInline(call, iam.User, *in.UserName, *in.PolicyName)
		}),
		api.Op("DeleteGroupPolicy", func(_ context.Context, call *api.Call, in *GroupPolicyInput) (*Empty, error) {
			return s.deleteInline(call, iam.Group, *in.GroupName, *in.PolicyName)
		}),
		api.Op("DeleteRolePolicy", func(_ context.Context, call *api.Call, in *RolePolicyInput) (*Empty, error) {
			return s.deleteInline(call, iam.Role, *in.RoleName, *in.PolicyName)
		}),
		api.Op("ListUserPolicies", func(_ context.Context, call *api.Call, in *UserListInput) (*PolicyNamesOutput, error) {
			return s.listInline(call, iam.User, *in.UserName, in.Marker, in.MaxItems)
		}),
		api.Op("ListGroupPolicies", func(_ context.Context, call *api.Call, in *GroupListInput) (*PolicyNamesOutput, error) {
			return s.listInline(call, iam.Group, *in.GroupName, in.Marker, in.MaxItems)
		}),
		api.Op("ListRolePolicies", func(_ context.Context, call *api.Call, in *RoleListInput) (*PolicyNamesOutput, error) {
			return s.listInline(call, iam.Role, *in.RoleName, in.Marker, in.MaxItems)
		}),
	}
}

func (s *Service) putInline(call *api.Call, kind iam.Kind, name, policy, document string) (*Empty, error) {
	if err := checkDocument(iam.Identity, document); err != nil {
		return nil, err
	}
	return s.entities.Change(call.Account, func(a *iam.Account, _ time.Time) error { return a.PutInline(kind, name, policy, document) })
}

func (s *Service) getInline(call *api.Call, kind iam.Kind, name, policy string) (holder, document string, err error) {
	e, err := s.entities.Find(call.Account, kind, name)
	if err != nil {
		return "", "", err
	}
	document, err = e.FindInline(policy)
	return e.Name, encoded(document), err
}

func (s *Service) deleteInline(call *api.Call, kind iam.Kind, name, policy string) (*Empty, error) {
	return s.entities.Change(call.Account, func(a *iam.Account, _ time.Time) error { return a.DeleteInline(kind, name, policy) })
}

func (s *Service) listInline(call *api.Call, kind iam.Kind, name string, marker *string, limit *int) (*PolicyNamesOutput, error) {
	e, err := s.entities.Find(call.Account, kind, name)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(e.Inline))
	for _, p := range e.Inline {
		names = append(names, p.Name)
	}
	cut, truncated, next, err := check.Page("policies", names, func(name *string) string { return *name }, marker, limit)
	if err != nil {
		return nil, err
	}
	return &PolicyNamesOutput{cut, truncated, next}, nil
}
