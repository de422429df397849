package refusal

import (
	"godwit.dev/godwit/internal/kms"
	"godwit.dev/godwit/internal/shard/keys"
)

var ofKMS = sentences{
	kms.ErrNoKey:           "Key '%s' does not exist",
	kms.ErrDisabled:        "%s is disabled.",
	kms.ErrPendingDeletion: "%s is pending deletion.",
	kms.ErrNotPending:      "%s is not pending deletion.",
	kms.ErrUsage:           "%s key usage is %s which is not valid for %s.",
	kms.ErrManaged:         "%s is an AWS managed key, which only its service may change.",
	kms.ErrAsymmetric:      "The operation is supported for symmetric encryption keys only.",
	kms.ErrWindow:          "PendingWindowInDays must be between %d and %d",
	kms.ErrRotationPeriod:  "RotationPeriodInDays must be between %d and %d",
	kms.ErrTooManyRotated:  "%s has been rotated on demand %d times, which is the most.",
	kms.ErrTooManyTags:     "Too many tags",

	kms.ErrSpec:      "1 validation error detected: Value '%s' at 'keySpec' failed to satisfy constraint: Member must satisfy enum value set",
	kms.ErrUnbuilt:   "%s is not built yet.",
	kms.ErrSpecUsage: "KeyUsage %s is not compatible with KeySpec %s",
	kms.ErrNoUsage:   "You must specify a KeyUsage value for all KMS keys except for symmetric encryption keys.",
	kms.ErrAlgorithm: "Algorithm %s is incompatible with key spec %s.",

	kms.ErrNoAlias:        "Alias %s is not found.",
	kms.ErrAliasTaken:     "An alias with the name %s already exists",
	kms.ErrAliasName:      "Alias name %s is reserved: names that begin with alias/aws/ are of AWS managed keys.",
	kms.ErrTooManyAliases: "%s has %d aliases, which is the most.",
	kms.ErrAliasKey:       "The alias is of keys of another kind than %s.",
	kms.ErrTooManyGrants:  "%s has %d grants, which is the most.",
	kms.ErrNoGrant:        "Grant ID %s not found",
	kms.ErrGrantOperation: "Grant operation %s is not supported by keys of the spec %s.",
	keys.ErrGrantToken:    "The grant token is not one of this service's.",
	keys.ErrCiphertext:    "",
	keys.ErrForeign:       "The ciphertext refers to a customer master key that does not exist, does not exist in this region, or you are not allowed to access.",
	keys.ErrDenied:        "User: %s is not authorized to perform: %s on resource: %s because no resource-based policy allows the %s action",
	keys.ErrDigest:        "Digest is invalid length for algorithm %s.",
	keys.ErrTooLong:       "Algorithm %s and key spec %s cannot encrypt data larger than %d bytes.",
	keys.ErrSignature:     "",
	keys.ErrMAC:           "",
	keys.ErrAliasARN:      "Key Aliases are not supported for this operation.",
	keys.ErrKeyARN:        "Invalid arn %s",

	kms.ErrGrantContext: "Grant constraints are supported for symmetric encryption keys only.",
}
