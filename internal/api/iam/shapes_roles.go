package iam

import "godwit.dev/godwit/internal/api"

// RoleInput names a role.
type RoleInput struct {
	RoleName *string `wire:"required"`
}

// RoleListInput is the request of a list of a role's resources.
type RoleListInput struct {
	RoleName *string `wire:"required"`
	Marker   *string
	MaxItems *int
}

// CreateRoleInput is the request of CreateRole.
type CreateRoleInput struct {
	Path                     *string
	RoleName                 *string `wire:"required"`
	AssumeRolePolicyDocument *string `wire:"required"`
	Description              *string
	MaxSessionDuration       *int
	PermissionsBoundary      *string
	Tags                     []Tag
}

// UpdateRoleInput is the request of UpdateRole.
type UpdateRoleInput struct {
	RoleName           *string `wire:"required"`
	Description        *string
	MaxSessionDuration *int
}

// UpdateRoleDescriptionInput is the request of UpdateRoleDescription.
type UpdateRoleDescriptionInput struct {
	RoleName    *string `wire:"required"`
	Description *string `wire:"required"`
}

// UpdateAssumeRolePolicyInput is the request of UpdateAssumeRolePolicy.
type UpdateAssumeRolePolicyInput struct {
	RoleName       *string `wire:"required"`
	PolicyDocument *string `wire:"required"`
}

// TagRoleInput is the request of TagRole.
type TagRoleInput struct {
	RoleName *string `wire:"required"`
	Tags     []Tag   `wire:"required"`
}

// UntagRoleInput is the request of UntagRole.
type UntagRoleInput struct {
	RoleName *string  `wire:"required"`
	TagKeys  []string `wire:"required"`
}

// Role is a role.
type Role struct {
	Path, RoleName, RoleId, Arn string
	CreateDate                  api.Time
	AssumeRolePolicyDocument    string // URL-encoded
	Description                 string
	MaxSessionDuration          *int
	PermissionsBoundary         *AttachedBoundary
	Tags                        []Tag
	RoleLastUsed                *RoleLastUsed
}

// RoleLastUsed is the latest use of a role.
type RoleLastUsed struct {
	LastUsedDate *api.Time
	Region       string
}

// RoleOutput is an answer with a role.
type RoleOutput struct{ Role *Role }

// ListRolesOutput is the answer of ListRoles.
type ListRolesOutput struct {
	Roles       []Role
	IsTruncated bool
	Marker      string
}

// PutUserPolicyInput is the request of PutUserPolicy.
type PutUserPolicyInput struct {
	UserName       *string `wire:"required"`
	PolicyName     *string `wire:"required"`
	PolicyDocument *string `wire:"required"`
}

// PutGroupPolicyInput is the request of PutGroupPolicy.
type PutGroupPolicyInput struct {
	GroupName      *string `wire:"required"`
	PolicyName     *string `wire:"required"`
	PolicyDocument *string `wire:"required"`
}

// PutRolePolicyInput is the request of PutRolePolicy.
type PutRolePolicyInput struct {
	RoleName       *string `wire:"required"`
	PolicyName     *string `wire:"required"`
	PolicyDocument *string `wire:"required"`
}

// UserPolicyInput names an inline policy of a user.
type UserPolicyInput struct {
	UserName   *string `wire:"required"`
	PolicyName *string `wire:"required"`
}

// GroupPolicyInput names an inline policy of a group.
type GroupPolicyInput struct {
	GroupName  *string `wire:"required"`
	PolicyName *string `wire:"required"`
}

// RolePolicyInput names an inline policy of a role.
type RolePolicyInput struct {
	RoleName   *string `wire:"required"`
	PolicyName *string `wire:"required"`
}

// GetUserPolicyOutput is the answer of GetUserPolicy.
type GetUserPolicyOutput struct{ UserName, PolicyName, PolicyDocument string }

// GetGroupPolicyOutput is the answer of GetGroupPolicy.
type GetGroupPolicyOutput struct{ GroupName, PolicyName, PolicyDocument string }

// GetRolePolicyOutput is the answer of GetRolePolicy.
type GetRolePolicyOutput struct{ RoleName, PolicyName, PolicyDocument string }

// PolicyNamesOutput is a list of inline policies.
type PolicyNamesOutput struct {
	PolicyNames []string
	IsTruncated bool
	Marker      string
}

// UserPolicyARNInput names a user and a managed policy.
type UserPolicyARNInput struct {
	UserName  *string `wire:"required"`
	PolicyArn *string `wire:"required"`
}

// GroupPolicyARNInput names a group and a managed policy.
type GroupPolicyARNInput struct {
	GroupName *string `wire:"required"`
	PolicyArn *string `wire:"required"`
}

// RolePolicyARNInput names a role and a managed policy.
type RolePolicyARNInput struct {
	RoleName  *string `wire:"required"`
	PolicyArn *string `wire:"required"`
}

// ListAttachedUserPoliciesInput is the request of ListAttachedUserPolicies.
type ListAttachedUserPoliciesInput struct {
	UserName   *string `wire:"required"`
	PathPrefix *string
	Marker     *string
	MaxItems   *int
}

// ListAttachedGroupPoliciesInput is the request of ListAttachedGroupPolicies.
type ListAttachedGroupPoliciesInput struct {
	GroupName  *string `wire:"required"`
	PathPrefix *string
	Marker     *string
	MaxItems   *int
}

// ListAttachedRolePoliciesInput is the request of ListAttachedRolePolicies.
type ListAttachedRolePoliciesInput struct {
	RoleName   *string `wire:"required"`
	PathPrefix *string
	Marker     *string
	MaxItems   *int
}

// AttachedPolicy is a managed policy of a list.
type AttachedPolicy struct{ PolicyName, PolicyArn string }

// AttachedPoliciesOutput is a list of managed policies.
type AttachedPoliciesOutput struct {
	AttachedPolicies []AttachedPolicy
	IsTruncated      bool
	Marker           string
}

// UserBoundaryInput is the request of PutUserPermissionsBoundary.
type UserBoundaryInput struct {
	UserName            *string `wire:"required"`
	PermissionsBoundary *string `wire:"required"`
}

// RoleBoundaryInput is the request of PutRolePermissionsBoundary.
type RoleBoundaryInput struct {
	RoleName            *string `wire:"required"`
	PermissionsBoundary *string `wire:"required"`
}
