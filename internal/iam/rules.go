package iam

import "godwit.dev/godwit/internal/fault"

// The errors of commands. The fields are in the order of the message.
var (
	ErrQuota      = fault.NewRule(fault.LimitExceeded, "iam: as many as there may be") // the quota's name, the quota
	ErrVersions   = fault.NewRule(fault.LimitExceeded, "iam: as many versions as there may be")
	ErrInlineSize = fault.NewRule(fault.LimitExceeded, "iam: inline policies are too long") // most, what, its name

	ErrTagTwice    = fault.NewRule(fault.InvalidInput, "iam: a tag is given twice")
	ErrSameTag     = fault.NewRule(fault.InvalidInput, "iam: a tag is given twice, of what tells cases apart")
	ErrTooManyTags = fault.NewRule(fault.LimitExceeded, "iam: as many tags as there may be")

	ErrNoUser     = fault.NewRule(fault.NoSuchEntity, "iam: no such user")
	ErrNoGroup    = fault.NewRule(fault.NoSuchEntity, "iam: no such group")
	ErrNoRole     = fault.NewRule(fault.NoSuchEntity, "iam: no such role")
	ErrNoPolicy   = fault.NewRule(fault.NoSuchEntity, "iam: no such policy")
	ErrNoProvider = fault.NewRule(fault.NoSuchEntity, "iam: no such OpenID Connect provider")
	ErrNoProfile  = fault.NewRule(fault.NoSuchEntity, "iam: no such instance profile")
	ErrNoAlias    = fault.NewRule(fault.NoSuchEntity, "iam: no such account alias")
	ErrNoKey      = fault.NewRule(fault.NoSuchEntity, "iam: no such access key")
	ErrNoInline   = fault.NewRule(fault.NoSuchEntity, "iam: no such inline policy") // of what, its name
	ErrNoVersion  = fault.NewRule(fault.NoSuchEntity, "iam: no such version")       // the policy's ARN, the version
	ErrNoBoundary = fault.NewRule(fault.NoSuchEntity, "iam: no permissions boundary")
	// ErrNotAttachable is for attaching an unknown policy, ErrNoBoundaryPolicy for using it
	// as a boundary.
	ErrNotAttachable    = fault.NewRule(fault.NoSuchEntity, "iam: no such policy to attach")
	ErrNoBoundaryPolicy = fault.NewRule(fault.NoSuchEntity, "iam: no such policy to be a boundary")
	// ErrGoneProvider is for deleting an unknown provider.
	ErrGoneProvider = fault.NewRule(fault.NoSuchEntity, "iam: no OpenID Connect provider to delete")
	ErrNotInProfile = fault.NewRule(fault.NoSuchEntity, "iam: the role is not in the instance profile") // the role, the profile

	ErrUserTaken     = fault.NewRule(fault.EntityAlreadyExists, "iam: the user exists")
	ErrGroupTaken    = fault.NewRule(fault.EntityAlreadyExists, "iam: the group exists")
	ErrRoleTaken     = fault.NewRule(fault.EntityAlreadyExists, "iam: the role exists")
	ErrPolicyTaken   = fault.NewRule(fault.EntityAlreadyExists, "iam: the policy exists")
	ErrProviderTaken = fault.NewRule(fault.EntityAlreadyExists, "iam: the OpenID Connect provider exists")
	ErrProfileTaken  = fault.NewRule(fault.EntityAlreadyExists, "iam: the instance profile exists")
	ErrAliasTaken    = fault.NewRule(fault.EntityAlreadyExists, "iam: the account alias exists")

	ErrHasKeys        = fault.NewRule(fault.DeleteConflict, "iam: the user has access keys")
	ErrHasProfiles    = fault.NewRule(fault.DeleteConflict, "iam: the role is in an instance profile")
	ErrHasAttached    = fault.NewRule(fault.DeleteConflict, "iam: policies are attached")
	ErrHasInline      = fault.NewRule(fault.DeleteConflict, "iam: there are inline policies")
	ErrHasMembers     = fault.NewRule(fault.DeleteConflict, "iam: the group has members, or the user groups")
	ErrIsAttached     = fault.NewRule(fault.DeleteConflict, "iam: the policy is attached")
	ErrHasVersions    = fault.NewRule(fault.DeleteConflict, "iam: the policy has further versions")
	ErrDefaultVersion = fault.NewRule(fault.DeleteConflict, "iam: it is the default version")

	// ErrAWSManaged is for changing a policy that is not the account's.
	ErrAWSManaged = fault.NewRule(fault.AccessDenied, "iam: the policy is AWS's")

	// Errors of policy documents.
	ErrSyntax          = fault.NewRule(fault.MalformedPolicyDocument, "iam: document: not in the grammar")
	ErrNoJSON          = fault.NewRule(fault.MalformedPolicyDocument, "iam: document: no JSON")
	ErrDocumentVersion = fault.NewRule(fault.MalformedPolicyDocument, "iam: document: too old a version of the language")
	ErrLegacy          = fault.NewRule(fault.MalformedPolicyDocument, "iam: document: not for the older parser")
	ErrPrincipalGiven  = fault.NewRule(fault.MalformedPolicyDocument, "iam: document: a principal that is the identity itself")
	ErrNoPrincipal     = fault.NewRule(fault.MalformedPolicyDocument, "iam: document: no principal")
	ErrNoActions       = fault.NewRule(fault.MalformedPolicyDocument, "iam: document: no actions")
	ErrNoVendor        = fault.NewRule(fault.MalformedPolicyDocument, "iam: document: an action of no service")
	ErrColons          = fault.NewRule(fault.MalformedPolicyDocument, "iam: document: an action with two colons")
	ErrVendor          = fault.NewRule(fault.MalformedPolicyDocument, "iam: document: no service is called so") // the service
	ErrTrustActions    = fault.NewRule(fault.MalformedPolicyDocument, "iam: document: an action that a trust policy cannot have")
	ErrNoResources     = fault.NewRule(fault.MalformedPolicyDocument, "iam: document: no resources")
	ErrResourceGiven   = fault.NewRule(fault.MalformedPolicyDocument, "iam: document: a resource that is the role itself")
	ErrNoARN           = fault.NewRule(fault.MalformedPolicyDocument, "iam: document: a resource that is no ARN")  // the resource
	ErrPartition       = fault.NewRule(fault.MalformedPolicyDocument, "iam: document: there is no such partition") // the partition, the resource
	ErrResourceVendor  = fault.NewRule(fault.MalformedPolicyDocument, "iam: document: a resource of several services")
	ErrIAMRegion       = fault.NewRule(fault.MalformedPolicyDocument, "iam: document: a resource of IAM in a region") // the resource
	ErrS3Region        = fault.NewRule(fault.MalformedPolicyDocument, "iam: document: a bucket in a region")          // the resource
	ErrIAMPath         = fault.NewRule(fault.MalformedPolicyDocument, "iam: document: no resource of IAM")            // the allowed prefixes
	ErrSidTwice        = fault.NewRule(fault.MalformedPolicyDocument, "iam: document: two statements with one id")
	ErrSid             = fault.NewRule(fault.MalformedPolicyDocument, "iam: document: the id of a statement")
)

// missing and taken are the errors by kind.
var (
	missing = map[Kind]*fault.Rule{
		User: ErrNoUser, Group: ErrNoGroup, Role: ErrNoRole, Policy: ErrNoPolicy, Provider: ErrNoProvider, Profile: ErrNoProfile, Alias: ErrNoAlias,
	}
	taken = map[Kind]*fault.Rule{
		User: ErrUserTaken, Group: ErrGroupTaken, Role: ErrRoleTaken, Policy: ErrPolicyTaken, Provider: ErrProviderTaken, Profile: ErrProfileTaken, Alias: ErrAliasTaken,
	}
)
