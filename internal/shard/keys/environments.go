package keys

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/kms"
)

// Environments encrypts the environment variables of functions under customers' keys, and lets
// the functions' roles decrypt them by grants. Errors are KMS's: KMSNotFound, KMSAccessDenied,
// KMSDisabled, KMSInvalidState, KMSInvalidKeyUsage, and InvalidARN for a name that is no key's.
type Environments struct {
	keys *Module
	bind func(role string) (id string, known bool)
}

// NewEnvironments makes it; bind finds the unique id of a role.
func NewEnvironments(keys *Module, bind func(role string) (id string, known bool)) *Environments {
	return &Environments{keys, bind}
}

// The errors of a function's key.
var (
	ErrAliasARN = fault.NewRule(fault.InvalidARN, "keys: an alias in the place of a key's ARN")
	ErrKeyARN   = fault.NewRule(fault.InvalidARN, "keys: not the ARN of a key") // what it is
)

// errVariables reports damaged variables.
var errVariables = errors.New("keys: the encrypted variables of a function cannot be read")

// grantedOnFunction are the operations of a grant for a function's role.
var grantedOnFunction = []string{"Decrypt", "RetireGrant"}

// access is a use of a key for a function. as is the requester.
func (e *Environments) access(as Access, fn arn.ARN, operation string) *Access {
	as.Operation, as.Via, as.Context = operation, "lambda."+fn.Region+".amazonaws.com", (&use{of: fn}).context()
	return &as
}

func (e *Environments) find(fn arn.ARN, key string) (*kms.Key, error) {
	a, err := arn.Parse(key)
	switch {
	case err != nil || a.Service != "kms":
		return nil, ErrKeyARN.With(key)
	case strings.HasPrefix(a.Resource, kms.AliasPrefix):
		return nil, ErrAliasARN
	}
	return e.keys.Find(fn.Account, fn.Region, key)
}

// Seal encrypts the variables of a function under the key of an ARN, for a caller that needs
// permission to encrypt with it.
func (e *Environments) Seal(as Access, fn arn.ARN, key string, variables map[string]string) ([]byte, error) {
	k, err := e.find(fn, key)
	if err != nil {
		return nil, err
	}
	asked := e.access(as, fn, "Encrypt")
	if err := e.keys.Allow(k, asked); err != nil {
		return nil, err
	}
	if err := usable(k, "Encrypt"); err != nil {
		return nil, err
	}
	text, err := json.Marshal(variables)
	if err != nil {
		return nil, err
	}
	return e.keys.Encrypt(k, text, asked.Context)
}

// Open decrypts the variables of a function, for a caller that needs permission to decrypt.
func (e *Environments) Open(as Access, fn arn.ARN, sealed []byte) (variables map[string]string, err error) {
	k, err := e.keys.KeyOf(fn.Region, sealed)
	if err != nil {
		return nil, err
	}
	asked := e.access(as, fn, "Decrypt")
	if err := e.keys.Allow(k, asked); err != nil {
		return nil, err
	}
	if err := usable(k, "Decrypt"); err != nil {
		return nil, err
	}
	text, _, err := e.keys.Decrypt(k, sealed, asked.Context)
	if err == nil {
		err = json.Unmarshal(text, &variables)
	}
	if err != nil {
		return nil, errVariables
	}
	return variables, nil
}

// Admit grants a function's role the decryption of its variables, for a caller that needs
// permission to make grants. undo removes the grant if it is new. A role that does not exist
// gets none.
func (e *Environments) Admit(as Access, fn arn.ARN, key, role string) (undo func(), err error) {
	k, err := e.find(fn, key)
	if err != nil {
		return nil, err
	}
	id, known := e.bind(role)
	if !known {
		return func() {}, nil
	}
	g := kms.Grant{
		Key: k.ID, Name: grantName(fn), Grantee: id, Issuer: as.Caller.ARN, Operations: grantedOnFunction, Equals: (&use{of: fn}).context(),
	}
	asked := e.access(as, fn, "CreateGrant")
	asked.Grant = &g
	asked.Keys = []authorize.Key{
		{Name: "kms:grantisforawsresource", Values: []string{"true"}},
		{Name: "kms:grantconstrainttype", Values: []string{"EncryptionContextEquals"}},
		{Name: "kms:grantoperations", Values: slices.Clone(grantedOnFunction)},
		{Name: "kms:granteeprincipal", Values: []string{role}},
	}
	if err := e.keys.Allow(k, asked); err != nil {
		return nil, err
	}
	before, _ := e.keys.Grants("", 1, func(of *kms.Key, there *kms.Grant) bool { return of.ID == k.ID && g.Same(there) })
	made, err := e.keys.CreateGrant(g)
	if err != nil {
		return nil, err
	}
	return func() {
		if len(before) == 0 {
			_ = e.keys.EndGrant(made.Key, made.ID, func(*kms.Key, *kms.Grant) error { return nil }) // it may not exist any more
		}
	}, nil
}

// Use is a key that a version of a function has, and the version's role.
type Use struct{ Key, Role string } // ARNs

// grantName is the name of the grants for a function.
func grantName(fn arn.ARN) string { return "function " + fn.String() }

// Release ends the grants that Admit has made for a function, but for those of uses.
func (e *Environments) Release(fn arn.ARN, uses []Use) {
	name, context := grantName(fn), (&use{of: fn}).context()
	all, _ := e.keys.Grants("", math.MaxInt, func(_ *kms.Key, g *kms.Grant) bool {
		return g.Name == name && slices.Equal(g.Operations, grantedOnFunction) && maps.Equal(g.Equals, context)
	})
	if len(all) == 0 {
		return
	}
	used := map[Use]bool{} // by the ids of key and role
	for _, u := range uses {
		if k, err := e.find(fn, u.Key); err == nil {
			id, _ := e.bind(u.Role)
			used[Use{k.ID, id}] = true
		}
	}
	for _, g := range all {
		if !used[Use{g.Key, g.Grantee}] {
			_ = e.keys.EndGrant(g.Key, g.ID, func(*kms.Key, *kms.Grant) error { return nil }) // it may not exist any more
		}
	}
}
