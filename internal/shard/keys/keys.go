package keys

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/kms"
	"godwit.dev/godwit/internal/policy"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store"
)

// Module has the KMS keys. It is a module of the kernel, with its own shard. The values that it
// returns are immutable: a command replaces them.
type Module struct {
	kernel.NopLifecycle
	kernel   *kernel.Kernel
	shard    *kernel.Shard // whose lock guards what follows
	sealing  *seal.Keys
	sealer   *seal.Sealer                       // of key material
	decides  Decider                            // nil: IAM is not enforced
	policies *lru.Cache[string, *policy.Policy] // compiled, by document

	keys    map[string]*kms.Key // by id; ids are globally unique
	aliases map[aliasID]*kms.Alias
	grants  map[string]map[string]*kms.Grant // by key id and grant id
	due     int64                            // when the next key is to be rotated or deleted, in epoch milliseconds; 0: never

	opening sync.Mutex     // guards secrets
	secrets map[string]any // opened material, by its id: results of secret
}

// maxPolicies bounds the cache of compiled policies.
const maxPolicies = 4096

type aliasID struct{ account, region, name string }

// New adds the module to a kernel.
func New(k *kernel.Kernel, sealing *seal.Keys) *Module {
	policies, _ := lru.New[string, *policy.Policy](maxPolicies) // it fails for no other size than 0
	m := &Module{
		policies: policies, kernel: k,
		shard: k.OwnShard(keyspace.KMSStream), sealing: sealing, sealer: sealing.Sealer("kms"),
		keys: map[string]*kms.Key{}, aliases: map[aliasID]*kms.Alias{}, grants: map[string]map[string]*kms.Grant{}, secrets: map[string]any{},
	}
	m.shard.Add(m)
	return m
}

// Load implements kernel.Lifecycle. An unreadable record is an error: without it data sealed with
// its key could be deleted, or be configured to have no key.
func (m *Module) Load() error {
	r := m.shard.Stream.Reader()
	err := store.EachParsed(r, keyspace.Prefix([]byte{keyspace.KMSSpace}), m.load)
	m.reckon()
	return err
}

func (m *Module) load(key *keyspace.Key, value []byte) error {
	switch key.ID {
	case keyspace.KindKey:
		k, err := decode[kms.Key](value)
		if err != nil {
			return err
		}
		m.keys[k.ID] = k
	case keyspace.KindKeyAlias:
		a, err := decode[kms.Alias](value)
		if err != nil {
			return err
		}
		m.aliases[aliasID{a.Account, a.Region, a.Name}] = a
	case keyspace.KindKeyGrant:
		g, err := decode[kms.Grant](value)
		if err != nil {
			return err
		}
		m.addGrant(g)
	default: // what the store is sealed with; see OpenSealing
	}
	return nil
}

func (m *Module) addGrant(g *kms.Grant) {
	if m.grants[g.Key] == nil {
		m.grants[g.Key] = map[string]*kms.Grant{}
	}
	m.grants[g.Key][g.ID] = g
}

// NextDue implements kernel.Lifecycle.
func (m *Module) NextDue() int64 { return m.due }

// reckon sets due.
func (m *Module) reckon() {
	m.due = 0
	for _, k := range m.keys {
		if at := k.NextDue(); !at.IsZero() && (m.due == 0 || at.UnixMilli() < m.due) {
			m.due = at.UnixMilli()
		}
	}
}

// Tick implements kernel.Lifecycle: it rotates keys, and deletes those whose waiting period is
// over, with their aliases and grants.
func (m *Module) Tick(now int64) {
	if m.due == 0 || now < m.due {
		return
	}
	at := clock.Time(now)
	for _, id := range sortedIDs(m.keys) {
		k := m.keys[id]
		switch {
		case k.DueDeletion(at):
			m.remove(k)
		case k.DueRotation(at):
			material, err := m.draw(k.Account, k.Region, k.ID, k.Spec, at)
			if err != nil {
				panic(err) // making a symmetric key fails only without randomness
			}
			rotated := k.Clone()
			rotated.Rotate(material, at)
			m.put(rotated)
		}
	}
	m.reckon()
}

func sortedIDs[T any](of map[string]T) []string {
	ids := make([]string, 0, len(of))
	for id := range of {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func scopeKey(tag byte, account, region string) []byte {
	key := append([]byte{keyspace.KMSSpace, tag}, account...)
	key = append(append(append(key, 0), region...), 0)
	return key
}

func keyKey(k *kms.Key) []byte {
	return append(scopeKey(keyspace.KeyRecords, k.Account, k.Region), k.ID...)
}

func aliasKey(a aliasID) []byte {
	return append(scopeKey(keyspace.KeyAliases, a.account, a.region), a.name...)
}

func grantKey(k *kms.Key, id string) []byte {
	key := append(scopeKey(keyspace.KeyGrants, k.Account, k.Region), k.ID...)
	return append(append(key, 0), id...)
}

// put writes a key, in a transaction.
func (m *Module) put(k *kms.Key) {
	m.shard.Batch.Set(keyKey(k), encode(k))
	m.keys[k.ID] = k
}

func (m *Module) putAlias(a *kms.Alias) {
	id := aliasID{a.Account, a.Region, a.Name}
	m.shard.Batch.Set(aliasKey(id), encode(a))
	m.aliases[id] = a
}

func (m *Module) dropAlias(id aliasID) {
	m.shard.Batch.Delete(aliasKey(id))
	delete(m.aliases, id)
}

func (m *Module) remove(k *kms.Key) {
	for id, a := range m.aliases {
		if a.Key == k.ID {
			m.dropAlias(id)
		}
	}
	for id := range m.grants[k.ID] {
		m.shard.Batch.Delete(grantKey(k, id))
	}
	delete(m.grants, k.ID)
	m.shard.Batch.Delete(keyKey(k))
	delete(m.keys, k.ID)
	m.forget(k)
}

// run runs a command, and returns once all that it read and changed is durable.
func (m *Module) run(command func() error) error {
	return m.shard.RunDurableReads(func(*kernel.Tx) error { return command() })
}

// draw makes new key material; the secret in it is sealed.
func (m *Module) draw(account, region, id, spec string, now time.Time) (kms.Material, error) {
	secret, err := newSecret(spec)
	if err != nil {
		return kms.Material{}, err
	}
	var number [32]byte
	if _, err := rand.Read(number[:]); err != nil {
		return kms.Material{}, err
	}
	material := kms.Material{ID: hex.EncodeToString(number[:]), Created: now}
	material.Sealed, err = m.sealer.Seal(secret, materialContext(account, region, id, material.ID))
	return material, err
}

func materialContext(account, region, id, material string) []byte {
	return seal.Context("kms key's material", account, region, id, material)
}

// Create makes a customer's key with the given account, region, description, spec, usage,
// policy and tags. With an ID it is idempotent: it returns the existing key of that ID. Errors:
// kernel.ErrFull.
func (m *Module) Create(n kms.New) (*kms.Key, error) {
	if m.kernel.Full() {
		return nil, kernel.ErrFull
	}
	once := n.ID != ""
	if !once {
		n.ID = uuid.NewString()
	}
	material, err := m.draw(n.Account, n.Region, n.ID, n.Spec, time.Time{}) // an RSA key takes time: without the lock
	if err != nil {
		return nil, err
	}
	var k *kms.Key
	err = m.run(func() error {
		if k = m.keys[n.ID]; once && k != nil {
			return nil
		}
		n.Now = clock.Time(m.shard.Now())
		n.Material = material
		n.Material.Created = n.Now
		if k, err = kms.NewKey(n); err != nil {
			return err
		}
		m.put(k)
		return nil
	})
	return k, err
}

// Find finds the key that a request in an account and a region names: by its id, its ARN, an
// alias or an alias's ARN. A service's AWS managed key is made at its first use by its own
// account. Errors: kms.ErrNoKey, kms.ErrNoAlias.
func (m *Module) Find(account, region, name string) (k *kms.Key, err error) {
	caller := account
	if full, ok := strings.CutPrefix(name, "arn:"); ok {
		a, err := arn.Parse("arn:" + full)
		if err != nil || a.Service != "kms" || a.Region != region {
			return nil, kms.ErrNoKey.With(name)
		}
		account = a.Account
		if id, isKey := strings.CutPrefix(a.Resource, "key/"); isKey {
			name = id
		} else {
			name = a.Resource
		}
	}
	service, managed := kms.ManagedService(name)
	err = m.run(func() (err error) {
		k, err = m.find(account, region, name)
		return err
	})
	if err == nil || !managed || account != caller { // naming another account's managed key does not make it
		return k, err
	}
	return m.manage(account, region, service)
}

func (m *Module) find(account, region, name string) (*kms.Key, error) {
	if strings.HasPrefix(name, kms.AliasPrefix) {
		a := m.aliases[aliasID{account, region, name}]
		if a == nil {
			return nil, kms.ErrNoAlias.With(kms.AliasARN(region, account, name))
		}
		name = a.Key
	}
	k := m.keys[name]
	if k == nil || k.Account != account || k.Region != region {
		return nil, kms.ErrNoKey.With(kms.KeyARN(region, account, name).String())
	}
	return k, nil
}

// manage makes the AWS managed key of a service.
func (m *Module) manage(account, region, service string) (k *kms.Key, err error) {
	id := uuid.NewString()
	material, err := m.draw(account, region, id, kms.SymmetricDefault, time.Time{})
	if err != nil {
		return nil, err
	}
	name := kms.ManagedPrefix + service
	err = m.run(func() error {
		if k, err = m.find(account, region, name); err == nil { // another caller was first
			return nil
		}
		now := clock.Time(m.shard.Now())
		material.Created = now
		k = kms.NewManaged(kms.New{Account: account, Region: region, ID: id, Material: material, Now: now}, service)
		m.put(k)
		m.putAlias(&kms.Alias{Account: account, Region: region, Name: name, Key: id, Created: now, Updated: now})
		m.reckon()
		return nil
	})
	return k, err
}

// Change runs a command on a key, such as a method of kms.Key. Errors: kms.ErrNoKey, and the
// command's.
func (m *Module) Change(id string, command func(k *kms.Key, now time.Time) error) (changed *kms.Key, err error) {
	err = m.run(func() error {
		k := m.keys[id]
		if k == nil {
			return kms.ErrNoKey.With(id)
		}
		changed = k.Clone()
		if err := command(changed, clock.Time(m.shard.Now())); err != nil {
			return err
		}
		m.put(changed)
		m.reckon()
		return nil
	})
	return changed, err
}

// RotateOnDemand gives a key new material now.
func (m *Module) RotateOnDemand(k *kms.Key) (*kms.Key, error) {
	var material kms.Material
	var err error
	if k.Symmetric() {
		if material, err = m.draw(k.Account, k.Region, k.ID, k.Spec, time.Time{}); err != nil {
			return nil, err
		}
	}
	return m.Change(k.ID, func(k *kms.Key, now time.Time) error {
		material.Created = now
		return k.RotateOnDemand(material)
	})
}

// List lists the keys of an account in a region by id, after the id after: at most limit, and
// whether there are others.
func (m *Module) List(account, region, after string, limit int) (all []*kms.Key, more bool) {
	_ = m.run(func() error {
		for _, k := range m.keys {
			if k.Account == account && k.Region == region && k.ID > after {
				all = append(all, k)
			}
		}
		return nil
	})
	slices.SortFunc(all, func(a, b *kms.Key) int { return cmp.Compare(a.ID, b.ID) })
	return page(all, limit)
}

func page[T any](all []T, limit int) ([]T, bool) {
	if len(all) > limit {
		return all[:limit], true
	}
	return all, false
}

// Rewrap wraps the keys of the store with another root key, and replaces the existing wraps. It
// is durable on return.
func (m *Module) Rewrap(root *seal.Root) error {
	text, err := m.sealing.Rewrap(root)
	if err != nil {
		return err
	}
	return m.run(func() error {
		m.shard.Batch.Set(bytes.Clone(sealingKey), text)
		return nil
	})
}

// String hides the content of the module.
func (m *Module) String() string { return fmt.Sprintf("%d KMS keys", len(m.keys)) }
