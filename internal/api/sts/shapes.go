// Package sts answers the API of AWS Security Token Service.
package sts

import "godwit.dev/godwit/internal/api"

// The shapes of the operations, as in package iam.

// Tag is a tag of a session.
type Tag struct {
	Key   *string `wire:"required"`
	Value *string `wire:"required"`
}

// PolicyARN names a managed policy.
type PolicyARN struct {
	ARN *string `wire:"name=arn"`
}

// Credentials are the credentials of a session.
type Credentials struct {
	AccessKeyId, SecretAccessKey, SessionToken string
	Expiration                                 api.Time
}

// AssumedRole identifies a role's session.
type AssumedRole struct{ AssumedRoleId, Arn string }

// AssumeRoleInput is the request of AssumeRole.
type AssumeRoleInput struct {
	RoleArn           *string `wire:"required"`
	RoleSessionName   *string `wire:"required"`
	PolicyArns        []PolicyARN
	Policy            *string
	DurationSeconds   *int
	Tags              []Tag
	TransitiveTagKeys []string
	ExternalId        *string
	SerialNumber      *string
	TokenCode         *string
	SourceIdentity    *string
}

// AssumeRoleOutput is the answer of AssumeRole.
type AssumeRoleOutput struct {
	Credentials      *Credentials
	AssumedRoleUser  *AssumedRole
	PackedPolicySize *int
	SourceIdentity   string
}

// AssumeRoleWithWebIdentityInput is the request of AssumeRoleWithWebIdentity.
type AssumeRoleWithWebIdentityInput struct {
	RoleArn          *string `wire:"required"`
	RoleSessionName  *string `wire:"required"`
	WebIdentityToken *string `wire:"required"`
	ProviderId       *string
	PolicyArns       []PolicyARN
	Policy           *string
	DurationSeconds  *int
}

// AssumeRoleWithWebIdentityOutput is the answer of AssumeRoleWithWebIdentity.
type AssumeRoleWithWebIdentityOutput struct {
	Credentials                 *Credentials
	SubjectFromWebIdentityToken string
	AssumedRoleUser             *AssumedRole
	PackedPolicySize            *int
	Provider, Audience          string
}

// GetSessionTokenInput is the request of GetSessionToken.
type GetSessionTokenInput struct {
	DurationSeconds         *int
	SerialNumber, TokenCode *string
}

// GetSessionTokenOutput is the answer of GetSessionToken.
type GetSessionTokenOutput struct{ Credentials *Credentials }

// GetFederationTokenInput is the request of GetFederationToken.
type GetFederationTokenInput struct {
	Name            *string `wire:"required"`
	Policy          *string
	PolicyArns      []PolicyARN
	DurationSeconds *int
	Tags            []Tag
}

// FederatedUser identifies a federated user's session.
type FederatedUser struct{ FederatedUserId, Arn string }

// GetFederationTokenOutput is the answer of GetFederationToken.
type GetFederationTokenOutput struct {
	Credentials      *Credentials
	FederatedUser    *FederatedUser
	PackedPolicySize *int
}

// GetCallerIdentityInput is the empty request of GetCallerIdentity.
type GetCallerIdentityInput struct{}

// GetCallerIdentityOutput is the answer of GetCallerIdentity.
type GetCallerIdentityOutput struct{ UserId, Account, Arn string }

// GetAccessKeyInfoInput is the request of GetAccessKeyInfo.
type GetAccessKeyInfoInput struct {
	AccessKeyId *string `wire:"required"`
}

// GetAccessKeyInfoOutput is the answer of GetAccessKeyInfo.
type GetAccessKeyInfoOutput struct{ Account string }
