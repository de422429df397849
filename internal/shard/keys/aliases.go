package keys

import (
	"cmp"
	"slices"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/kms"
)

// CreateAlias gives a key an alias. Errors: kms.ErrAliasTaken, kms.ErrTooManyAliases, and
// those of the key's state.
func (m *Module) CreateAlias(account, region, name, key string) error {
	return m.run(func() error {
		id := aliasID{account, region, name}
		if m.aliases[id] != nil {
			return kms.ErrAliasTaken.With(kms.AliasARN(region, account, name))
		}
		k, err := m.find(account, region, key)
		if err != nil {
			return err
		}
		if err := k.CanBeAliased(m.countAliases(k)); err != nil {
			return err
		}
		now := clock.Time(m.shard.Now())
		m.putAlias(&kms.Alias{Account: account, Region: region, Name: name, Key: k.ID, Created: now, Updated: now})
		return nil
	})
}

func (m *Module) countAliases(k *kms.Key) (n int) {
	for _, a := range m.aliases {
		if a.Key == k.ID {
			n++
		}
	}
	return n
}

// UpdateAlias points an alias to another key.
func (m *Module) UpdateAlias(account, region, name, key string) error {
	return m.run(func() error {
		a := m.aliases[aliasID{account, region, name}]
		if a == nil {
			return kms.ErrNoAlias.With(kms.AliasARN(region, account, name))
		}
		k, err := m.find(account, region, key)
		if err != nil {
			return err
		}
		if k.ID == a.Key {
			return nil
		}
		if err := k.CanBeAliased(m.countAliases(k)); err != nil {
			return err
		}
		if err := k.Replaces(m.keys[a.Key]); err != nil {
			return err
		}
		changed := *a
		changed.Key, changed.Updated = k.ID, clock.Time(m.shard.Now())
		m.putAlias(&changed)
		return nil
	})
}

// DeleteAlias removes an alias.
func (m *Module) DeleteAlias(account, region, name string) error {
	return m.run(func() error {
		id := aliasID{account, region, name}
		if m.aliases[id] == nil {
			return kms.ErrNoAlias.With(kms.AliasARN(region, account, name))
		}
		m.dropAlias(id)
		return nil
	})
}

// Alias is an alias of an account in a region; nil: there is none.
func (m *Module) Alias(account, region, name string) (a *kms.Alias) {
	_ = m.run(func() error {
		a = m.aliases[aliasID{account, region, name}]
		return nil
	})
	return a
}

// Aliases lists the aliases of an account in a region, of one key unless key is empty, by name,
// after the name after. Predefined ones have no key and no times until their first use.
func (m *Module) Aliases(account, region, key, after string, limit int) (all []*kms.Alias, more bool) {
	_ = m.run(func() error {
		for id, a := range m.aliases {
			if id.account == account && id.region == region && (key == "" || a.Key == key) && id.name > after {
				all = append(all, a)
			}
		}
		for _, name := range kms.PredefinedAliases() {
			if key == "" && name > after && m.aliases[aliasID{account, region, name}] == nil {
				all = append(all, &kms.Alias{Account: account, Region: region, Name: name})
			}
		}
		return nil
	})
	slices.SortFunc(all, func(a, b *kms.Alias) int { return cmp.Compare(a.Name, b.Name) })
	return page(all, limit)
}
