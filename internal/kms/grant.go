package kms

import (
	"maps"
	"slices"
	"strings"
	"time"

	"godwit.dev/godwit/internal/fault"
)

// Alias is an alias of a key.
type Alias struct {
	Account string    `json:"account"`
	Region  string    `json:"region"`
	Name    string    `json:"name"` // with AliasPrefix
	Key     string    `json:"key"`  // its id
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
}

// ARN is the alias's ARN.
func (a *Alias) ARN() string { return AliasARN(a.Region, a.Account, a.Name) }

// AliasARN is the ARN of an alias.
func AliasARN(region, account, name string) string {
	return "arn:aws:kms:" + region + ":" + account + ":" + name
}

// Grant allows a principal some operations with a key.
type Grant struct {
	ID         string    `json:"id"` // 64 hexadecimal digits
	Key        string    `json:"key"`
	Name       string    `json:"name,omitempty"`
	Created    time.Time `json:"created"`
	Grantee    string    `json:"grantee"`            // a unique id, an ARN, or a service's name
	Retiring   string    `json:"retiring,omitempty"` // who may retire it
	Issuer     string    `json:"issuer"`             // the ARN of its creator
	Operations []string  `json:"operations"`
	// Subset and Equals are of the encryption context. An empty Equals, unlike none, allows only an
	// empty context, and is stored as such.
	Subset map[string]string `json:"subset,omitzero"`
	Equals map[string]string `json:"equals,omitzero"`
}

// Errors of aliases and grants.
var (
	ErrNoAlias        = fault.NewRule(fault.KMSNotFound, "kms: no such alias")                         // its ARN
	ErrAliasTaken     = fault.NewRule(fault.ResourceAlreadyExists, "kms: the alias exists already")    // its ARN
	ErrAliasName      = fault.NewRule(fault.InvalidAliasName, "kms: not a name of a customer's alias") // name
	ErrTooManyAliases = fault.NewRule(fault.LimitExceeded, "kms: too many aliases")                    // the key's ARN, most
	ErrAliasKey       = fault.NewRule(fault.KMSInvalidState, "kms: an alias of another kind of key")   // the key's ARN
	ErrTooManyGrants  = fault.NewRule(fault.LimitExceeded, "kms: too many grants")                     // the key's ARN, most
	ErrNoGrant        = fault.NewRule(fault.KMSNotFound, "kms: no such grant")                         // its id
	ErrGrantOperation = fault.NewRule(fault.ValidationFailed, "kms: a grant of what the key cannot")   // operation, spec
	ErrGrantContext   = fault.NewRule(fault.ValidationFailed, "kms: a constraint of what has no context")
)

// CheckAliasName refuses an invalid name of a customer's alias.
func CheckAliasName(name string) error {
	rest, ok := strings.CutPrefix(name, AliasPrefix)
	if !ok || rest == "" || strings.HasPrefix(name, ManagedPrefix) {
		return ErrAliasName.With(name)
	}
	return nil
}

// CanBeAliased refuses a key that cannot have a further alias of a customer.
func (k *Key) CanBeAliased(aliases int) error {
	if err := k.changeable(); err != nil {
		return err
	}
	if aliases >= MaxAliases {
		return ErrTooManyAliases.With(k.ARN().String(), MaxAliases)
	}
	return nil
}

// Replaces refuses to move an alias to a key of another kind.
func (k *Key) Replaces(before *Key) error {
	if before != nil && (before.Usage != k.Usage || before.Symmetric() != k.Symmetric()) {
		return ErrAliasKey.With(k.ARN().String())
	}
	return nil
}

// usages are the key usages that grant operations require; the other operations require none.
var usages = map[string]string{
	"Decrypt": EncryptDecrypt, "Encrypt": EncryptDecrypt, "ReEncryptFrom": EncryptDecrypt, "ReEncryptTo": EncryptDecrypt,
	"GenerateDataKey": SymmetricDefault, "GenerateDataKeyWithoutPlaintext": SymmetricDefault,
	"GenerateDataKeyPair": SymmetricDefault, "GenerateDataKeyPairWithoutPlaintext": SymmetricDefault,
	"Sign": SignVerify, "Verify": SignVerify, "GenerateMac": GenerateVerifyMAC, "VerifyMac": GenerateVerifyMAC,
}

// Accept refuses a grant that is invalid for the key.
func (k *Key) Accept(g *Grant, grants int) error {
	switch k.State {
	case PendingDeletion:
		return ErrPendingDeletion.With(k.ARN().String())
	case Disabled:
		return ErrDisabled.With(k.ARN().String())
	case Enabled:
	}
	for _, o := range g.Operations {
		if need := usages[o]; need == SymmetricDefault && !k.Symmetric() || need != "" && need != SymmetricDefault && need != k.Usage {
			return ErrGrantOperation.With(o, k.Spec)
		}
	}
	if (g.Subset != nil || g.Equals != nil) && !k.Symmetric() {
		return ErrGrantContext
	}
	if grants >= maxGrants {
		return ErrTooManyGrants.With(k.ARN().String(), maxGrants)
	}
	return nil
}

// Same reports whether a request with a grant's name is for the existing grant.
func (g *Grant) Same(o *Grant) bool {
	return g.Name != "" && g.Name == o.Name && g.Grantee == o.Grantee && g.Retiring == o.Retiring &&
		slices.Equal(g.Operations, o.Operations) && maps.Equal(g.Subset, o.Subset) && maps.Equal(g.Equals, o.Equals)
}

// Allows reports whether the grant allows an operation with an encryption context to one of a
// caller's principals.
func (g *Grant) Allows(principals []string, operation string, context map[string]string) bool {
	if !slices.Contains(g.Operations, operation) || !slices.Contains(principals, g.Grantee) {
		return false
	}
	if cryptographic := usages[operation] == SymmetricDefault || usages[operation] == EncryptDecrypt; !cryptographic {
		return true // constraints only apply to operations with an encryption context
	}
	return includes(context, g.Subset) && (g.Equals == nil || matches(g.Equals, context))
}

// Covers reports whether the grantee may pass on another grant: with operations that it has,
// under constraints that are at least as strict.
func (g *Grant) Covers(made *Grant) bool {
	for _, o := range made.Operations {
		if !slices.Contains(g.Operations, o) {
			return false
		}
	}
	if g.Equals != nil && (made.Equals == nil || !matches(g.Equals, made.Equals)) {
		return false
	}
	for key, value := range g.Subset {
		if !has(made.Subset, key, value) && !has(made.Equals, key, value) {
			return false
		}
	}
	return true
}

// matches reports whether two encryption contexts are the same but for the case of keys: a
// constraint's keys are not case-sensitive, unlike the encryption context of a ciphertext.
func matches(a, b map[string]string) bool {
	return len(a) == len(b) && includes(a, b) && includes(b, a)
}

func includes(context, pairs map[string]string) bool {
	for key, value := range pairs {
		if !has(context, key, value) {
			return false
		}
	}
	return true
}

func has(context map[string]string, key, value string) bool {
	for k, v := range context {
		if v == value && strings.EqualFold(k, key) {
			return true
		}
	}
	return false
}
