package kms

import (
	"cmp"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/kms"
)

// onKeys are the operations on keys. The operation itself finds the key, from an alias or a
// ciphertext, and checks the permission for each use of a key.
var onKeys = []string{
	"DescribeKey", "EnableKey", "DisableKey", "ScheduleKeyDeletion", "CancelKeyDeletion", "UpdateKeyDescription", "GetKeyPolicy", "PutKeyPolicy",
	"ListKeyPolicies", "TagResource", "UntagResource", "ListResourceTags", "EnableKeyRotation", "DisableKeyRotation", "GetKeyRotationStatus",
	"RotateKeyOnDemand", "ListKeyRotations", "CreateGrant", "ListGrants", "RetireGrant", "RevokeGrant", "Encrypt", "Decrypt", "ReEncrypt",
	"GenerateDataKey", "GenerateDataKeyWithoutPlaintext", "GenerateDataKeyPair", "GenerateDataKeyPairWithoutPlaintext", "GetPublicKey",
	"Sign", "Verify", "GenerateMac", "VerifyMac",
}

// ofAccount are the operations on no existing key.
var ofAccount = []string{
	"ListKeys", "ListAliases", "ListRetirableGrants", "GenerateRandom",
	"GetParametersForImport", "ImportKeyMaterial", "DeleteImportedKeyMaterial", "ReplicateKey", "UpdatePrimaryRegion",
	"CreateCustomKeyStore", "UpdateCustomKeyStore", "DeleteCustomKeyStore", "DescribeCustomKeyStores", "ConnectCustomKeyStore",
	"DisconnectCustomKeyStore", "DeriveSharedSecret", "GetKeyLastUsage",
}

// needs has the permissions that each operation requires. Source: actions, resources and
// condition keys for KMS, in the service authorization reference.
var needs = func() map[string]api.Access {
	all := map[string]api.Access{
		"CreateKey":   api.Needs(creating),
		"CreateAlias": onAlias("CreateAlias", func(in *AliasInput) string { return in.AliasName }),
		"UpdateAlias": onAlias("UpdateAlias", func(in *AliasInput) string { return in.AliasName }),
		"DeleteAlias": onAlias("DeleteAlias", func(in *DeleteAliasInput) string { return in.AliasName }),
	}
	for _, name := range onKeys {
		all[name] = api.Inside("kms:" + name)
	}
	all["ReEncrypt"] = api.Inside("kms:ReEncryptFrom", "kms:ReEncryptTo")
	for _, name := range ofAccount {
		all[name] = api.Anywhere("kms:" + name)
	}
	return all
}()

// onAlias requires an action on an alias; the operation itself checks it on the key.
func onAlias[In any](action string, name func(*In) string) api.Access {
	return api.Needs(func(call *api.Call, in *In) ([]authorize.Need, error) {
		alias := strings.TrimPrefix(name(in), "alias/")
		needs := api.One("kms:"+action, arn.ARN{Service: "kms", Region: call.Region, Account: call.Account, Resource: "alias/" + alias})
		return append(needs, authorize.Need{Action: "kms:" + action, Inside: true}), nil
	})
}

func creating(call *api.Call, in *CreateKeyInput) ([]authorize.Need, error) {
	needs := api.Any("kms:CreateKey")
	// The key spec of the new key, from either member, or the default.
	name := cmp.Or(api.Deref(in.KeySpec), api.Deref(in.CustomerMasterKeySpec), kms.SymmetricDefault)
	usage := api.Deref(in.KeyUsage)
	if spec, err := kms.SpecOf(name); err == nil {
		if known, err := spec.Usage(usage); err == nil {
			usage = known
		}
	}
	needs[0].Keys = []authorize.Key{{Name: "kms:keyspec", Values: []string{name}}, {Name: "kms:keyorigin", Values: []string{cmp.Or(api.Deref(in.Origin), "AWS_KMS")}}}
	needs[0].Keys = append(needs[0].Keys,
		condition("kms:customermasterkeyspec", name), condition("kms:customermasterkeyusage", usage), condition("kms:multiregion", strconv.FormatBool(is(in.MultiRegion))),
		condition("kms:bypasspolicylockoutsafetycheck", strconv.FormatBool(is(in.BypassPolicyLockoutSafetyCheck))), condition("kms:calleraccount", call.Account))
	if usage != "" {
		needs[0].Keys = append(needs[0].Keys, authorize.Key{Name: "kms:keyusage", Values: []string{usage}})
	}
	if len(in.Tags) == 0 {
		return needs, nil
	}
	needs[0].Tags = map[string]string{}
	for _, t := range in.Tags {
		needs[0].TagKeys = append(needs[0].TagKeys, api.Deref(t.TagKey))
		needs[0].Tags[api.Deref(t.TagKey)] = api.Deref(t.TagValue)
	}
	tag := needs[0]
	tag.Action = "kms:TagResource"
	return append(needs, tag), nil
}
