package refusal

import "godwit.dev/godwit/internal/iam"

var iams = sentences{
	iam.ErrQuota:       "Cannot exceed quota for %s: %d",
	iam.ErrVersions:    "A managed policy can have up to %d versions. Before you create a new version, you must delete an existing version.",
	iam.ErrInlineSize:  "Maximum policy size of %d bytes exceeded for %s %s",
	iam.ErrTagTwice:    "Duplicate tag keys found. Please note that Tag keys are case insensitive.",
	iam.ErrSameTag:     "Duplicate tag keys found.",
	iam.ErrTooManyTags: "The number of tags has reached the maximum limit.",

	iam.ErrNoUser:           "The user with name %s cannot be found.",
	iam.ErrNoGroup:          "The group with name %s cannot be found.",
	iam.ErrNoRole:           "The role with name %s cannot be found.",
	iam.ErrNoPolicy:         "Policy %s was not found.",
	iam.ErrNoProvider:       "OpenIDConnect Provider not found for arn %s",
	iam.ErrNoProfile:        "Instance Profile %s cannot be found.",
	iam.ErrNoAlias:          "The Account Alias %s does not exist.",
	iam.ErrNoKey:            "The Access Key with id %s cannot be found.",
	iam.ErrNoInline:         "The %s policy with name %s cannot be found.",
	iam.ErrNoVersion:        "Policy %s version %s does not exist or is not attachable.",
	iam.ErrNoBoundary:       "%s %s does not have a permissions boundary attached.",
	iam.ErrNotAttachable:    "Policy %s does not exist or is not attachable.",
	iam.ErrNoBoundaryPolicy: "Scope ARN: %s does not exist or is not attachable.",
	iam.ErrGoneProvider:     "OpenId connect Provider %s cannot be found.",
	iam.ErrNotInProfile:     "Role %s in Instance Profile %s cannot be found.",

	iam.ErrUserTaken:     "User with name %s already exists.",
	iam.ErrGroupTaken:    "Group with name %s already exists.",
	iam.ErrRoleTaken:     "Role with name %s already exists.",
	iam.ErrPolicyTaken:   "A policy called %s already exists. Duplicate names are not allowed.",
	iam.ErrProviderTaken: "Provider with url https://%s already exists.",
	iam.ErrProfileTaken:  "Instance Profile %s already exists.",
	iam.ErrAliasTaken:    "The account alias %s already exists.",

	iam.ErrHasKeys:        "Cannot delete entity, must delete access keys first.",
	iam.ErrHasProfiles:    "Cannot delete entity, must remove roles from instance profile first.",
	iam.ErrHasAttached:    "Cannot delete entity, must detach all policies first.",
	iam.ErrHasInline:      "Cannot delete entity, must delete policies first.",
	iam.ErrHasMembers:     "Cannot delete entity, must remove users from group first.",
	iam.ErrIsAttached:     "Cannot delete a policy attached to entities.",
	iam.ErrHasVersions:    "This policy has more than one version. Before you delete a policy, you must delete the policy's versions. The default version is deleted with the policy.",
	iam.ErrDefaultVersion: "Cannot delete the default version of a policy.",
	iam.ErrAWSManaged:     "Cannot change a policy that AWS manages.",
	iam.ErrDocument:       "%s",
}
