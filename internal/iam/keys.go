package iam

import "time"

// MaxKeys bounds the access keys of a user.
const MaxKeys = 2

// AccessKey is a long-term access key of a user. It is immutable once an account has it.
type AccessKey struct {
	ID      string    `json:"-"`
	User    string    `json:"user"` // the user's unique id
	Active  bool      `json:"active"`
	Created time.Time `json:"created"`
	// Secret is the encrypted secret.
	Secret []byte `json:"secret"`
}

// CreateKey adds an access key of a user, and sets its User.
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

// Key is the access key with an id; nil: there is none.
func (a *Account) Key(id string) *AccessKey { return a.keys[id] }

// Keys are the access keys of a user, ordered by creation.
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

// Renew replaces the secret of a user's access key. ok is false if there is no such key.
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

// Reseal replaces an access key's secret by the same secret, encrypted with another key.
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
