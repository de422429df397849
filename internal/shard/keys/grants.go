package keys

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/kms"
	"godwit.dev/godwit/internal/shard/kernel"
)

// ErrGrantToken refuses a string that is not a grant's token.
var ErrGrantToken = fault.NewRule(fault.InvalidGrantToken, "keys: not a token of a grant")

// CreateGrant adds a grant to a key, and assigns its id. It is idempotent for requests with the
// same name. Errors: kernel.ErrFull, and those of the key's state.
func (m *Module) CreateGrant(g kms.Grant) (made *kms.Grant, err error) {
	if m.kernel.Full() {
		return nil, kernel.ErrFull
	}
	var number [32]byte
	if _, err := rand.Read(number[:]); err != nil {
		return nil, err
	}
	err = m.run(func() error {
		k := m.keys[g.Key]
		if k == nil {
			return kms.ErrNoKey.With(g.Key)
		}
		for _, id := range sortedIDs(m.grants[k.ID]) {
			if there := m.grants[k.ID][id]; g.Same(there) {
				made = there
				return nil
			}
		}
		if err := k.Accept(&g, len(m.grants[k.ID])); err != nil {
			return err
		}
		g.ID, g.Created = hex.EncodeToString(number[:]), clock.Time(m.shard.Now())
		made = &g
		m.shard.Batch.Set(grantKey(k, g.ID), encode(made))
		m.addGrant(made)
		return nil
	})
	return made, err
}

// EndGrant removes a grant of a key, unless allowed refuses that.
func (m *Module) EndGrant(key, id string, allowed func(k *kms.Key, g *kms.Grant) error) error {
	return m.run(func() error {
		k, g := m.keys[key], m.grants[key][id]
		if k == nil {
			return kms.ErrNoKey.With(key)
		}
		if g == nil {
			return kms.ErrNoGrant.With(id)
		}
		if err := allowed(k, g); err != nil {
			return err
		}
		m.shard.Batch.Delete(grantKey(k, id))
		delete(m.grants[key], id)
		return nil
	})
}

// Grants lists the grants that f accepts, in the order of their keys and ids, after the
// position after: a key's id, a slash and a grant's id.
func (m *Module) Grants(after string, limit int, f func(k *kms.Key, g *kms.Grant) bool) (all []*kms.Grant, more bool) {
	_ = m.run(func() error {
		for key, grants := range m.grants {
			for _, g := range grants {
				if place(g) > after && f(m.keys[key], g) {
					all = append(all, g)
				}
			}
		}
		return nil
	})
	slices.SortFunc(all, func(a, b *kms.Grant) int { return cmp.Compare(place(a), place(b)) })
	return page(all, limit)
}

func place(g *kms.Grant) string { return g.Key + "/" + g.ID }

// GrantToken is a grant's token, and ReadGrantToken returns the key and the grant of one.
// Grants are effective at once, so that the token adds nothing to the grant.
func GrantToken(g *kms.Grant) string {
	return base64.StdEncoding.EncodeToString([]byte("grant/" + place(g)))
}

// ReadGrantToken reads a token. It fails with ErrGrantToken.
func ReadGrantToken(token string) (key, id string, err error) {
	plain, err := base64.StdEncoding.DecodeString(token)
	rest, ok := strings.CutPrefix(string(plain), "grant/")
	if err != nil || !ok {
		return "", "", ErrGrantToken
	}
	if key, id, ok = strings.Cut(rest, "/"); !ok {
		return "", "", ErrGrantToken
	}
	return key, id, nil
}
