// Package kms holds the operations of KMS.
package kms

import (
	"context"
	"slices"
	"strings"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/constraints"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/kms"
	"godwit.dev/godwit/internal/shard/keys"
)

// Store has the keys; *keys.Module implements it. Its errors are of package fault.
type Store interface {
	Create(n kms.New) (*kms.Key, error)
	Find(account, region, name string) (*kms.Key, error)
	Change(id string, command func(k *kms.Key, now time.Time) error) (*kms.Key, error)
	RotateOnDemand(k *kms.Key) (*kms.Key, error)
	List(account, region, after string, limit int) ([]*kms.Key, bool)
	Allow(k *kms.Key, a *keys.Access) error

	CreateAlias(account, region, name, key string) error
	UpdateAlias(account, region, name, key string) error
	DeleteAlias(account, region, name string) error
	Alias(account, region, name string) *kms.Alias
	Aliases(account, region, key, after string, limit int) ([]*kms.Alias, bool)

	CreateGrant(g kms.Grant) (*kms.Grant, error)
	EndGrant(key, id string, allowed func(k *kms.Key, g *kms.Grant) error) error
	Grants(after string, limit int, f func(k *kms.Key, g *kms.Grant) bool) ([]*kms.Grant, bool)

	Encrypt(k *kms.Key, plaintext []byte, context map[string]string) ([]byte, error)
	KeyOf(region string, blob []byte) (*kms.Key, error)
	Decrypt(k *kms.Key, blob []byte, context map[string]string) (plaintext []byte, material string, err error)
	EncryptRSA(k *kms.Key, algorithm string, plaintext []byte) ([]byte, error)
	DecryptRSA(k *kms.Key, algorithm string, ciphertext []byte) ([]byte, error)
	PublicKey(k *kms.Key) ([]byte, error)
	Sign(k *kms.Key, algorithm string, message []byte, digested bool) ([]byte, error)
	Verify(k *kms.Key, algorithm string, message []byte, digested bool, signature []byte) error
	MAC(k *kms.Key, algorithm string, message []byte) ([]byte, error)
	VerifyMAC(k *kms.Key, algorithm string, message, code []byte) error
}

// Service answers the operations of KMS.
type Service struct {
	store      Store
	principals api.Principals
}

// New makes a Service. principals resolves the principals in keys' policies and grants.
func New(store Store, principals api.Principals) *Service { return &Service{store, principals} }

// Operations are the operations that are implemented, and those that are refused by name.
func (s *Service) Operations() []api.Operation {
	return api.Guarded(needs, constraints.Guard("kms", append(unbuilt(),
		api.Op("CreateKey", s.createKey),
		api.Op("DescribeKey", s.describeKey),
		api.Op("ListKeys", s.listKeys),
		api.Op("EnableKey", s.enableKey),
		api.Op("DisableKey", s.disableKey),
		api.Op("ScheduleKeyDeletion", s.scheduleKeyDeletion),
		api.Op("CancelKeyDeletion", s.cancelKeyDeletion),
		api.Op("UpdateKeyDescription", s.updateKeyDescription),
		api.Op("GetKeyPolicy", s.getKeyPolicy),
		api.Op("PutKeyPolicy", s.putKeyPolicy),
		api.Op("ListKeyPolicies", s.listKeyPolicies),
		api.Op("TagResource", s.tagResource),
		api.Op("UntagResource", s.untagResource),
		api.Op("ListResourceTags", s.listResourceTags),
		api.Op("EnableKeyRotation", s.enableKeyRotation),
		api.Op("DisableKeyRotation", s.disableKeyRotation),
		api.Op("GetKeyRotationStatus", s.getKeyRotationStatus),
		api.Op("RotateKeyOnDemand", s.rotateKeyOnDemand),
		api.Op("ListKeyRotations", s.listKeyRotations),
		api.Op("CreateAlias", s.createAlias),
		api.Op("UpdateAlias", s.updateAlias),
		api.Op("DeleteAlias", s.deleteAlias),
		api.Op("ListAliases", s.listAliases),
		api.Op("CreateGrant", s.createGrant),
		api.Op("ListGrants", s.listGrants),
		api.Op("ListRetirableGrants", s.listRetirableGrants),
		api.Op("RetireGrant", s.retireGrant),
		api.Op("RevokeGrant", s.revokeGrant),
		api.Op("Encrypt", s.encrypt),
		api.Op("Decrypt", s.decrypt),
		api.Op("ReEncrypt", s.reEncrypt),
		api.Op("GenerateDataKey", s.generateDataKey),
		api.Op("GenerateDataKeyWithoutPlaintext", s.generateDataKeyWithoutPlaintext),
		api.Op("GenerateDataKeyPair", s.generateDataKeyPair),
		api.Op("GenerateDataKeyPairWithoutPlaintext", s.generateDataKeyPairWithoutPlaintext),
		api.Op("GenerateRandom", s.generateRandom),
		api.Op("GetPublicKey", s.getPublicKey),
		api.Op("Sign", s.sign),
		api.Op("Verify", s.verify),
		api.Op("GenerateMac", s.generateMac),
		api.Op("VerifyMac", s.verifyMac),
	)))
}

// unbuilt are the operations of features that are not implemented: imported material,
// multi-Region keys, custom key stores, key agreement.
func unbuilt() []api.Operation {
	all := make([]api.Operation, 0, 14)
	for _, name := range []string{
		"GetParametersForImport", "ImportKeyMaterial", "DeleteImportedKeyMaterial", "ReplicateKey", "UpdatePrimaryRegion",
		"CreateCustomKeyStore", "UpdateCustomKeyStore", "DeleteCustomKeyStore", "DescribeCustomKeyStores", "ConnectCustomKeyStore",
		"DisconnectCustomKeyStore", "DeriveSharedSecret", "GetKeyLastUsage",
	} {
		all = append(all, api.Op(name, func(_ context.Context, call *api.Call, _ *Empty) (*Empty, error) {
			return nil, fault.Newf(fault.UnsupportedOperation, "%s is not built yet.", call.Operation)
		}))
	}
	return all
}

// who is the caller.
func who(call *api.Call) *caller.Caller {
	if call.Caller != nil {
		return call.Caller
	}
	return api.Unverified(call.Account, call.AccessKey)
}

// key finds the key of a request, and checks the caller's permission for the operation.
func (s *Service) key(call *api.Call, name, operation string, context map[string]string, conditions ...authorize.Key) (*kms.Key, error) {
	access := access(call, operation, conditions...)
	access.Context = context
	return s.allowed(call, name, access)
}

// access is the caller's use of a key in an operation, with its condition keys.
func access(call *api.Call, operation string, conditions ...authorize.Key) *keys.Access {
	return &keys.Access{Operation: operation, Caller: who(call), Address: call.RemoteAddr, Transport: call.Transport(), Called: call.Via, Keys: conditions}
}

// allowed finds the key of a request, and checks the access.
func (s *Service) allowed(call *api.Call, name string, access *keys.Access) (*kms.Key, error) {
	if err := checkKeyID(call, name); err != nil {
		return nil, err
	}
	k, err := s.find(call, name, access)
	if err != nil {
		return nil, err
	}
	if isAlias(name) {
		access.Alias = name[strings.Index(name, kms.AliasPrefix):]
	}
	return k, s.store.Allow(k, access)
}

// find finds the key of a request. If it does not exist and policies are evaluated, the error
// says so only to callers of its account that have the permission: others must not find out
// which keys exist.
func (s *Service) find(call *api.Call, name string, access *keys.Access) (*kms.Key, error) {
	k, err := s.store.Find(call.Account, call.Region, name)
	if err == nil || !call.Authorized || fault.KindOf(err) != fault.KMSNotFound {
		return k, err
	}
	a, other := arn.Parse(name)
	if other == nil && a.Account != call.Account {
		return nil, fault.New(fault.KMSAccessDenied, api.DenialAbroad(access.Caller, "kms:"+access.Operation))
	}
	if isAlias(name) {
		return nil, err // there is no key whose policy could be evaluated
	}
	id := strings.TrimPrefix(a.Resource, "key/")
	if other != nil {
		id = name
	}
	if denied := s.store.Allow(&kms.Key{ID: id, Account: call.Account, Region: call.Region, Policy: kms.DefaultPolicy(call.Account)}, access); denied != nil {
		return nil, denied
	}
	return nil, err
}

// condition is a condition key; without a value, the request does not have it.
func condition(name string, values ...string) authorize.Key {
	return authorize.Key{Name: name, Values: slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" })}
}

// own is key for operations that accept only keys of the caller's account, and no aliases.
func (s *Service) own(call *api.Call, name, operation string, conditions ...authorize.Key) (*kms.Key, error) {
	return s.owned(call, name, access(call, operation, conditions...))
}

func (s *Service) owned(call *api.Call, name string, access *keys.Access) (*kms.Key, error) {
	if isAlias(name) {
		return nil, fault.Newf(fault.KMSNotFound, "Invalid keyId '%s'", shorten(name))
	}
	k, err := s.allowed(call, name, access)
	if err == nil && k.Account != call.Account {
		return nil, fault.New(fault.KMSAccessDenied, "The request is not allowed for keys of another account.")
	}
	return k, err
}

// change runs a command on a key of the caller's account.
func (s *Service) change(call *api.Call, name string, command func(k *kms.Key, now time.Time) error, conditions ...authorize.Key) (*kms.Key, error) {
	k, err := s.own(call, name, call.Operation, conditions...)
	if err != nil {
		return nil, err
	}
	return s.store.Change(k.ID, command)
}
