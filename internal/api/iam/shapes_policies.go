package iam

import "godwit.dev/godwit/internal/api"

// CreatePolicyInput is the request of CreatePolicy.
type CreatePolicyInput struct {
	PolicyName     *string `wire:"required"`
	Path           *string
	PolicyDocument *string `wire:"required"`
	Description    *string
	Tags           []Tag
}

// PolicyInput names a managed policy.
type PolicyInput struct {
	PolicyArn *string `wire:"required"`
}

// PolicyListInput is the request of a list of a managed policy's resources.
type PolicyListInput struct {
	PolicyArn *string `wire:"required"`
	Marker    *string
	MaxItems  *int
}

// Policy is a managed policy.
type Policy struct {
	PolicyName, PolicyId, Arn, Path, DefaultVersionId string
	AttachmentCount, PermissionsBoundaryUsageCount    int
	IsAttachable                                      bool
	Description                                       string
	CreateDate, UpdateDate                            api.Time
	Tags                                              []Tag
}

// PolicyOutput is an answer with a managed policy.
type PolicyOutput struct{ Policy *Policy }

// ListPoliciesInput is the request of ListPolicies.
type ListPoliciesInput struct {
	Scope             *string
	OnlyAttached      *bool
	PathPrefix        *string
	PolicyUsageFilter *string
	Marker            *string
	MaxItems          *int
}

// ListPoliciesOutput is the answer of ListPolicies.
type ListPoliciesOutput struct {
	Policies    []Policy
	IsTruncated bool
	Marker      string
}

// CreatePolicyVersionInput is the request of CreatePolicyVersion.
type CreatePolicyVersionInput struct {
	PolicyArn      *string `wire:"required"`
	PolicyDocument *string `wire:"required"`
	SetAsDefault   *bool
}

// PolicyVersionInput names a version of a managed policy.
type PolicyVersionInput struct {
	PolicyArn *string `wire:"required"`
	VersionId *string `wire:"required"`
}

// PolicyVersion is a version of a managed policy.
type PolicyVersion struct {
	Document         string // URL-encoded
	VersionId        string
	IsDefaultVersion bool
	CreateDate       api.Time
}

// PolicyVersionOutput is an answer with a version.
type PolicyVersionOutput struct{ PolicyVersion *PolicyVersion }

// ListPolicyVersionsOutput is the answer of ListPolicyVersions.
type ListPolicyVersionsOutput struct {
	Versions    []PolicyVersion
	IsTruncated bool
	Marker      string
}

// TagPolicyInput is the request of TagPolicy.
type TagPolicyInput struct {
	PolicyArn *string `wire:"required"`
	Tags      []Tag   `wire:"required"`
}

// UntagPolicyInput is the request of UntagPolicy.
type UntagPolicyInput struct {
	PolicyArn *string  `wire:"required"`
	TagKeys   []string `wire:"required"`
}

// ListEntitiesForPolicyInput is the request of ListEntitiesForPolicy.
type ListEntitiesForPolicyInput struct {
	PolicyArn         *string `wire:"required"`
	EntityFilter      *string
	PathPrefix        *string
	PolicyUsageFilter *string
	Marker            *string
	MaxItems          *int
}

// ListEntitiesForPolicyOutput is the answer of ListEntitiesForPolicy.
type ListEntitiesForPolicyOutput struct {
	PolicyGroups []PolicyGroup
	PolicyUsers  []PolicyUser
	PolicyRoles  []PolicyRole
	IsTruncated  bool
	Marker       string
}

// PolicyGroup is a group that a policy is attached to.
type PolicyGroup struct{ GroupName, GroupId string }

// PolicyUser is a user that a policy is attached to.
type PolicyUser struct{ UserName, UserId string }

// PolicyRole is a role that a policy is attached to.
type PolicyRole struct{ RoleName, RoleId string }
