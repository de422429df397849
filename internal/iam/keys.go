package iam

import "time"

// MaxKeys is how many access keys a user may have.
const MaxKeys = 2

// AccessKey is a long-term access key of a user. It does not change once an account has
// it.
type AccessKey struct {
	ID      string    `json:"-"`
	User    string    `json:"user"` // the user's unique id
	Active  bool      `json:"active"`
	Created time.Time `json:"created"`
	// Secret is the secret, as its keeper has sealed it.
	Secret []byte `json:"secret"`
}

// CreateKey gives a user an access key; its User is set by it.
func (a *Account) CreateKey(user string, k *AccessKey) error {
	u, err := a.Find(User, user)
	if err != nil {
		return err
	}
	if len(a.ofUser[u.ID]) >= MaxKeys {
		return ErrQuota.With("AccessKeysPerUser", MaxKeys)
	}
	made := *k
	made.User = u.ID
	a.putKey(nil, &made)
	return nil
}

// Key is an access key; nil if there is none of the id.
func (a *Account) Key(id string) *AccessKey { return a.keys[id] }

// Keys are the access keys of a user, in the order of their creation.
func (a *Account) Keys(u *Entity) []*AccessKey {
	all := make([]*AccessKey, 0, len(a.ofUser[u.ID]))
	for _, id := range a.ofUser[u.ID] {
		all = append(all, a.keys[id])
	}
	return all
}

func (a *Account) keyOf(user, id string) (*AccessKey, error) {
	u, err := a.Find(User, user)
	if err != nil {
		return nil, err
	}
	if k := a.keys[id]; k != nil && k.User == u.ID {
		return k, nil
	}
	return nil, ErrNoKey.With(id)
}

// SetKey activates or deactivates an access key of a user.
func (a *Account) SetKey(user, id string, active bool) error {
	k, err := a.keyOf(user, id)
	if err != nil {
		return err
	}
	changed := *k
	changed.Active = active
	a.putKey(k, &changed)
	return nil
}

// Renew gives an access key of a user another secret. ok is false if there is no such key.
func (a *Account) Renew(user, id string, secret []byte) (k *AccessKey, ok bool) {
	k, err := a.keyOf(user, id)
	if err != nil {
		return nil, false
	}
	changed := *k
	changed.Secret = secret
	a.putKey(k, &changed)
	return &changed, true
}

// Reseal gives an access key the same secret, sealed otherwise.
func (a *Account) Reseal(id string, secret []byte) {
	if k := a.keys[id]; k != nil {
		changed := *k
		changed.Secret = secret
		a.putKey(k, &changed)
	}
}

// DeleteKey removes an access key of a user.
func (a *Account) DeleteKey(user, id string) error {
	k, err := a.keyOf(user, id)
	if err != nil {
		return err
	}
	a.putKey(k, nil)
	return nil
}

// EachKey calls f with every access key, in no order.
func (a *Account) EachKey(f func(k *AccessKey)) {
	for _, k := range a.keys {
		f(k)
	}
}
