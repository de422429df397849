package kms

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"unicode/utf8"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/kms"
	"godwit.dev/godwit/internal/policy"
	"godwit.dev/godwit/internal/shard/keys"
)

var principal = regexp.MustCompile(`^[\w+=,.@:/-]{1,256}$`)

// createGrant answers CreateGrant.
func (s *Service) createGrant(_ context.Context, call *api.Call, in *CreateGrantInput) (*CreateGrantOutput, error) {
	if !principal.MatchString(in.GranteePrincipal) || in.RetiringPrincipal != nil && !principal.MatchString(*in.RetiringPrincipal) {
		return nil, fault.Newf(fault.InvalidARN, "%s is not a principal", shorten(in.GranteePrincipal))
	}
	if len(in.Operations) == 0 {
		return nil, constraint("operations", "[]", "Member must have length greater than or equal to 1")
	}
	if isAlias(in.KeyId) {
		return nil, fault.Newf(fault.KMSNotFound, "Invalid keyId '%s'", shorten(in.KeyId))
	}
	if err := checkKeyID(call, in.KeyId); err != nil {
		return nil, err
	}
	k, err := s.find(call, in.KeyId, access(call, "CreateGrant"))
	if err != nil {
		return nil, err
	}
	grantee, err := s.bind(in.GranteePrincipal)
	if err != nil {
		return nil, err
	}
	retiring, err := s.bind(api.Deref(in.RetiringPrincipal))
	if err != nil {
		return nil, err
	}
	g := kms.Grant{
		Key: k.ID, Name: api.Deref(in.Name), Grantee: grantee, Retiring: retiring,
		Issuer: who(call).ARN, Operations: in.Operations,
	}
	if in.Constraints != nil {
		if err := in.Constraints.check(); err != nil {
			return nil, err
		}
		g.Subset, g.Equals = in.Constraints.EncryptionContextSubset, in.Constraints.EncryptionContextEquals
	}
	asked := access(call, "CreateGrant", append(ofGrant(&g),
		condition("kms:grantoperations", in.Operations...), condition("kms:granteeprincipal", in.GranteePrincipal),
		condition("kms:retiringprincipal", api.Deref(in.RetiringPrincipal)))...)
	asked.Grant, asked.Context = &g, contextOf(&g)
	if err := s.store.Allow(k, asked); err != nil {
		return nil, err
	}
	if err := dryRun(in.DryRun); err != nil {
		return nil, err
	}
	made, err := s.store.CreateGrant(g)
	if err != nil {
		return nil, err
	}
	return &CreateGrantOutput{keys.GrantToken(made), made.ID}, nil
}

// Bounds of a grant's constraint.
const (
	constraintPairs = 8
	constraintValue = 384 // characters
)

// check refuses constraints beyond AWS's bounds.
func (c *GrantConstraints) check() error {
	for _, pairs := range []map[string]string{c.EncryptionContextSubset, c.EncryptionContextEquals} {
		if len(pairs) > constraintPairs {
			return invalid("A grant constraint can include up to %d encryption context pairs.", constraintPairs)
		}
		for _, value := range pairs {
			if utf8.RuneCountInString(value) > constraintValue {
				return invalid("The encryption context value in a grant constraint cannot exceed %d characters.", constraintValue)
			}
		}
	}
	return nil
}

// notForService is the condition key kms:GrantIsForAWSResource: no service makes grants here.
var notForService = condition("kms:grantisforawsresource", "false")

// ofGrant are the condition keys for creating and retiring a grant; contextOf is the
// encryption context of its constraints.
func ofGrant(g *kms.Grant) []authorize.Key {
	kind := ""
	switch {
	case g.Equals != nil:
		kind = "EncryptionContextEquals"
	case g.Subset != nil:
		kind = "EncryptionContextSubset"
	}
	return []authorize.Key{notForService, condition("kms:grantconstrainttype", kind)}
}

func contextOf(g *kms.Grant) map[string]string {
	all := map[string]string{}
	maps.Copy(all, g.Subset)
	maps.Copy(all, g.Equals)
	return all
}

// bind is the persisted form of a grant's principal; of none that of no name.
func (s *Service) bind(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	bound, known := s.principals.BindPrincipal(name)
	if !known || !policy.IsPrincipal(name) {
		return "", fault.Newf(fault.InvalidARN, "ARN does not refer to a valid principal: %s", name)
	}
	return bound, nil
}

// names reports whether the persisted form of a principal is of a name.
func (s *Service) names(bound, name string) bool {
	return bound == name || bound != "" && s.principals.ShowPrincipal(bound) == name
}

// listGrants answers ListGrants.
func (s *Service) listGrants(_ context.Context, call *api.Call, in *ListGrantsInput) (*ListGrantsOutput, error) {
	k, err := s.key(call, in.KeyId, "ListGrants", nil, notForService)
	if err != nil {
		return nil, err
	}
	return s.grants("grants "+k.ID+" "+api.Deref(in.GrantId)+" "+api.Deref(in.GranteePrincipal), in.Limit, in.Marker, func(of *kms.Key, g *kms.Grant) bool {
		return of.ID == k.ID && (in.GrantId == nil || *in.GrantId == g.ID) && (in.GranteePrincipal == nil || s.names(g.Grantee, *in.GranteePrincipal))
	})
}

// listRetirableGrants answers ListRetirableGrants.
func (s *Service) listRetirableGrants(_ context.Context, call *api.Call, in *ListRetirableGrantsInput) (*ListGrantsOutput, error) {
	return s.grants("retirable "+in.RetiringPrincipal, in.Limit, in.Marker, func(of *kms.Key, g *kms.Grant) bool {
		return of.Region == call.Region && of.Account == call.Account && s.names(g.Retiring, in.RetiringPrincipal)
	})
}

func (s *Service) grants(list string, count *int, marker *string, f func(k *kms.Key, g *kms.Grant) bool) (*ListGrantsOutput, error) {
	most, err := limit(count, listedTags, listed)
	if err != nil {
		return nil, err
	}
	after, err := from(list, marker)
	if err != nil {
		return nil, err
	}
	arns := map[string]string{}
	found, more := s.store.Grants(after, most, func(k *kms.Key, g *kms.Grant) bool {
		if !f(k, g) {
			return false
		}
		arns[k.ID] = k.ARN().String()
		return true
	})
	out := &ListGrantsOutput{Grants: []Grant{}, Truncated: more}
	for _, g := range found {
		one := Grant{
			KeyId: arns[g.Key], GrantId: g.ID, Name: g.Name, CreationDate: api.TimeOf(g.Created), GranteePrincipal: s.principals.ShowPrincipal(g.Grantee),
			RetiringPrincipal: s.principals.ShowPrincipal(g.Retiring), IssuingAccount: g.Issuer, Operations: g.Operations,
		}
		if g.Subset != nil || g.Equals != nil {
			one.Constraints = &GrantConstraints{g.Subset, g.Equals}
		}
		out.Grants = append(out.Grants, one)
		out.NextMarker = next(list, g.Key+"/"+g.ID, more)
	}
	return out, nil
}

// retireGrant answers RetireGrant: it is allowed for the grant's retiring principal, for the
// grantee if the grant has the operation RetireGrant, and for principals of the key's account
// by policies.
func (s *Service) retireGrant(_ context.Context, call *api.Call, in *EndGrantInput) (*Empty, error) {
	key, id := api.Deref(in.KeyId), api.Deref(in.GrantId)
	switch {
	case in.GrantToken != nil && (in.KeyId != nil || in.GrantId != nil):
		return nil, invalid("A grant is named by its token, or by its key and its id.")
	case in.GrantToken != nil:
		var err error
		if key, id, err = keys.ReadGrantToken(*in.GrantToken); err != nil {
			return nil, err
		}
	case in.KeyId == nil || in.GrantId == nil:
		return nil, invalid("A grant is named by its token, or by its key and its id.")
	}
	// The policies of callers of the key's account are evaluated before the grant is locked: they
	// can allow it, and deny it to those whom the grant names.
	me := who(call)
	names := keys.Names(me)
	named := func(g *kms.Grant) bool {
		return slices.Contains(names, g.Retiring) || slices.Contains(names, g.Grantee) && slices.Contains(g.Operations, "RetireGrant")
	}
	allowed, decided := false, false
	if k, err := s.store.Find(call.Account, call.Region, key); err == nil && k.Account == me.Account {
		asked := access(call, "RetireGrant")
		if found, _ := s.store.Grants("", 1, func(of *kms.Key, g *kms.Grant) bool { return of.ID == k.ID && g.ID == id }); len(found) > 0 {
			asked.Keys, asked.Context, asked.Granted = ofGrant(found[0]), contextOf(found[0]), named(found[0])
		}
		allowed, decided = s.store.Allow(k, asked) == nil, true
	}
	return s.endGrant(call, key, id, in.DryRun, func(k *kms.Key, g *kms.Grant) error {
		switch {
		case k.Region != call.Region: // the grant's token does not tell it
			return kms.ErrNoKey.With(kms.KeyARN(call.Region, k.Account, k.ID).String())
		case allowed, !decided && named(g):
			return nil
		}
		return keys.ErrDenied.With(me.ARN, "kms:RetireGrant", k.ARN().String(), "kms:RetireGrant")
	})
}

// revokeGrant answers RevokeGrant.
func (s *Service) revokeGrant(_ context.Context, call *api.Call, in *EndGrantInput) (*Empty, error) {
	k, err := s.key(call, *in.KeyId, "RevokeGrant", nil, notForService)
	if err != nil {
		return nil, err
	}
	return s.endGrant(call, k.ID, *in.GrantId, in.DryRun, func(*kms.Key, *kms.Grant) error { return nil })
}

func (s *Service) endGrant(call *api.Call, key, id string, dry *bool, allowed func(k *kms.Key, g *kms.Grant) error) (*Empty, error) {
	if !keyID.MatchString(key) {
		k, err := s.store.Find(call.Account, call.Region, key)
		if err != nil {
			return nil, err
		}
		key = k.ID
	}
	return nil, s.store.EndGrant(key, id, func(k *kms.Key, g *kms.Grant) error {
		if err := allowed(k, g); err != nil {
			return err
		}
		return dryRun(dry)
	})
}
