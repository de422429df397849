package iam

import "godwit.dev/godwit/internal/api"

// NoInput is a request without members.
type NoInput struct{}

// CreateInstanceProfileInput is the request of CreateInstanceProfile.
type CreateInstanceProfileInput struct {
	InstanceProfileName *string `wire:"required"`
	Path                *string
	Tags                []Tag
}

// ProfileInput names an instance profile.
type ProfileInput struct {
	InstanceProfileName *string `wire:"required"`
}

// ProfileListInput is the request of ListInstanceProfileTags.
type ProfileListInput struct {
	InstanceProfileName *string `wire:"required"`
	Marker              *string
	MaxItems            *int
}

// ProfileRoleInput names an instance profile and a role.
type ProfileRoleInput struct {
	InstanceProfileName *string `wire:"required"`
	RoleName            *string `wire:"required"`
}

// TagProfileInput is the request of TagInstanceProfile.
type TagProfileInput struct {
	InstanceProfileName *string `wire:"required"`
	Tags                []Tag   `wire:"required"`
}

// UntagProfileInput is the request of UntagInstanceProfile.
type UntagProfileInput struct {
	InstanceProfileName *string  `wire:"required"`
	TagKeys             []string `wire:"required"`
}

// InstanceProfile is an instance profile.
type InstanceProfile struct {
	Path, InstanceProfileName, InstanceProfileId, Arn string
	CreateDate                                        api.Time
	Roles                                             []Role
	Tags                                              []Tag
}

// ProfileOutput is an answer with an instance profile.
type ProfileOutput struct{ InstanceProfile *InstanceProfile }

// ProfilesOutput is a list of instance profiles.
type ProfilesOutput struct {
	InstanceProfiles []InstanceProfile
	IsTruncated      bool
	Marker           string
}

// AliasInput names an alias of the account.
type AliasInput struct {
	AccountAlias *string `wire:"required"`
}

// ListAccountAliasesOutput is the answer of ListAccountAliases.
type ListAccountAliasesOutput struct {
	AccountAliases []string
	IsTruncated    bool
}

// GetAccountSummaryOutput is the answer of GetAccountSummary.
type GetAccountSummaryOutput struct{ SummaryMap map[string]int }

// AuthorizationDetailsInput is the request of GetAccountAuthorizationDetails.
type AuthorizationDetailsInput struct {
	Filter   []string
	Marker   *string
	MaxItems *int
}

// AuthorizationDetailsOutput is the answer of GetAccountAuthorizationDetails.
type AuthorizationDetailsOutput struct {
	UserDetailList  []UserDetail
	GroupDetailList []GroupDetail
	RoleDetailList  []RoleDetail
	Policies        []PolicyDetails
	IsTruncated     bool
	Marker          string
}

// InlinePolicy is an inline policy with its document.
type InlinePolicy struct{ PolicyName, PolicyDocument string }

// UserDetail is a user with its policies.
type UserDetail struct {
	Path, UserName, UserId, Arn string
	CreateDate                  api.Time
	UserPolicyList              []InlinePolicy
	GroupList                   []string
	AttachedManagedPolicies     []AttachedPolicy
	PermissionsBoundary         *AttachedBoundary
	Tags                        []Tag
}

// GroupDetail is a group with its policies.
type GroupDetail struct {
	Path, GroupName, GroupId, Arn string
	CreateDate                    api.Time
	GroupPolicyList               []InlinePolicy
	AttachedManagedPolicies       []AttachedPolicy
}

// RoleDetail is a role with its policies.
type RoleDetail struct {
	Path, RoleName, RoleId, Arn string
	CreateDate                  api.Time
	AssumeRolePolicyDocument    string
	InstanceProfileList         []InstanceProfile
	RolePolicyList              []InlinePolicy
	AttachedManagedPolicies     []AttachedPolicy
	PermissionsBoundary         *AttachedBoundary
	Tags                        []Tag
	RoleLastUsed                *RoleLastUsed
}

// PolicyDetails is a managed policy with its versions.
type PolicyDetails struct {
	PolicyName, PolicyId, Arn, Path, DefaultVersionId string
	AttachmentCount, PermissionsBoundaryUsageCount    int
	IsAttachable                                      bool
	Description                                       string
	CreateDate, UpdateDate                            api.Time
	PolicyVersionList                                 []PolicyVersion
}

// The lists that are always empty: devices, keys and certificates are not implemented.
type (
	// MFADevicesOutput is the answer of ListMFADevices.
	MFADevicesOutput struct {
		MFADevices  []Empty
		IsTruncated bool
	}
	// VirtualMFADevicesOutput is the answer of ListVirtualMFADevices.
	VirtualMFADevicesOutput struct {
		VirtualMFADevices []Empty
		IsTruncated       bool
	}
	// SSHPublicKeysOutput is the answer of ListSSHPublicKeys.
	SSHPublicKeysOutput struct {
		SSHPublicKeys []Empty
		IsTruncated   bool
	}
	// CertificatesOutput is the answer of ListSigningCertificates.
	CertificatesOutput struct {
		Certificates []Empty
		IsTruncated  bool
	}
	// ServiceCredentialsOutput is the answer of ListServiceSpecificCredentials.
	ServiceCredentialsOutput struct {
		ServiceSpecificCredentials []Empty
		IsTruncated                bool
	}
	// ServerCertificatesOutput is the answer of ListServerCertificates.
	ServerCertificatesOutput struct {
		ServerCertificateMetadataList []Empty
		IsTruncated                   bool
	}
	// SAMLProvidersOutput is the answer of ListSAMLProviders.
	SAMLProvidersOutput struct{ SAMLProviderList []Empty }
)
