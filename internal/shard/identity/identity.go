// Package identity has the identities of accounts: it is the module over the pure rules of
// package iam. All entities share one lock and one stream of the journal; the changes of a
// command are one commit. It also finds the credentials of requests (long-term keys and the
// tokens of sessions) and the policies of the callers. These lookups are on the hot path, and
// use only memory.
package identity

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store"
)

// Sealer seals secrets: a sealed secret can only be opened in the same context.
type Sealer interface {
	Seal(plaintext, context []byte) ([]byte, error)
	Open(sealed, context []byte) ([]byte, error)
}

// Options configure a Module.
type Options struct {
	// Sealer seals the secrets in the store. Nil: they are in clear.
	Sealer Sealer
	// Clock gives the times of latest use. Nil: clock.System.
	Clock clock.Clock
	// Orphaned is called for an account when a change has removed its last administrator
	// besides the root, once the change is durable. Nil: this is not checked.
	Orphaned func(account string)
}

// Module has the identities. It is a module of the kernel, with its own shard.
type Module struct {
	kernel.NopLifecycle
	kernel *kernel.Kernel
	shard  *kernel.Shard
	sealer Sealer
	clock  clock.Clock

	mu       sync.RWMutex // written with the shard's lock held
	accounts map[string]*iam.Account
	owners   map[string]string // accounts by access key
	used     map[string]Use    // by access key, and by unique id of roles
	revision atomic.Uint64     // counts changes of identities
	unsealed []string          // access keys whose secrets are in clear in the store

	tokens   *tokenKey // nil until it is loaded or made
	sessions *lru.Cache[string, *session]

	credentials sync.Map     // sigv4.Credential by access key, of the current revision
	kept        atomic.Int64 // approximate size of credentials
	policies    policyCache

	orphaned       func(account string)
	administrators map[string]string // unique id of one administrator, by account, as far as known
}

// Use is the latest use of an access key or a role.
type Use struct {
	At              time.Time
	Service, Region string
}

// New adds the module to a kernel.
func New(k *kernel.Kernel, o Options) *Module {
	if o.Clock == nil {
		o.Clock = clock.System
	}
	sessions, _ := lru.New[string, *session](maxSessions) // it fails for no other size than 0
	m := &Module{
		kernel: k, shard: k.OwnShard(keyspace.IdentityStream), sealer: o.Sealer, clock: o.Clock,
		accounts: map[string]*iam.Account{}, owners: map[string]string{}, used: map[string]Use{}, sessions: sessions, policies: newPolicyCache(),
		orphaned: o.Orphaned, administrators: map[string]string{},
	}
	m.shard.Add(m)
	return m
}

// key is the key of a record.
func key(tag byte, parts ...string) []byte {
	return append([]byte{keyspace.IdentitySpace, tag}, strings.Join(parts, "\x00")...)
}

func entityKey(e *iam.Entity) []byte {
	return key(keyspace.IdentityEntities, e.Account, string(rune(e.Kind))+strings.ToLower(e.Name))
}

func accessKey(account, id string) []byte { return key(keyspace.IdentityKeys, account, id) }

// version begins the values of entities and access keys.
const version = 1

func encode(v any) []byte { return keyspace.EncodeJSON(version, v) }

func decode(value []byte, v any) error { return keyspace.DecodeJSON(version, value, v) }

var errRecord = errors.New("identity: a record cannot be read")

// Load implements kernel.Lifecycle. An unreadable record is an error: without it an identity, and
// the permissions it is denied, would be taken for deleted.
func (m *Module) Load() error {
	if err := store.EachParsed(m.shard.Stream.Reader(), keyspace.Prefix([]byte{keyspace.IdentitySpace}), m.load); err != nil {
		return fmt.Errorf("identities cannot be read: %w", err)
	}
	return nil
}

func (m *Module) load(k *keyspace.Key, value []byte) (err error) {
	account, _, name := k.Named()
	switch k.ID {
	case keyspace.KindIdentity:
		e := &iam.Entity{}
		if err := decode(value, e); err != nil || name == "" {
			return errRecord
		}
		kind, _ := k.Number(keyspace.PartKind)
		e.Kind = iam.Kind(kind)
		m.account(account).Load(e)
	case keyspace.KindAccessKey:
		a := &iam.AccessKey{}
		if err := decode(value, a); err != nil {
			return err
		}
		a.ID = name
		m.account(account).LoadKey(a)
		m.owners[a.ID] = account
		if m.sealer != nil && isClear(a.Secret) {
			m.unsealed = append(m.unsealed, a.ID)
		}
	case keyspace.KindIdentityUse:
		var u Use
		if err := decode(value, &u); err != nil {
			return err
		}
		m.used[name] = u
	case keyspace.KindTokenKey:
		if m.tokens, err = m.openTokenKey(value); err != nil {
			return err
		}
	default:
	}
	return nil
}

// Resume implements kernel.Lifecycle: the first start makes the key of tokens; the first start
// with a sealer seals the secrets that are in clear.
func (m *Module) Resume() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tokens == nil {
		m.tokens = newTokenKey()
		m.writeTokenKey()
	} else if m.sealer != nil && m.tokens.clear {
		m.writeTokenKey()
	}
	for _, id := range m.unsealed {
		account := m.accounts[m.owners[id]]
		secret, err := m.open(id, account.Key(id).Secret)
		if err == nil {
			var sealed []byte
			if sealed, err = m.seal(id, secret); err == nil {
				account.Reseal(id, sealed)
			}
		}
		if err != nil {
			m.shard.Logger.Error("the secret of an access key cannot be sealed", "accessKey", id, "error", err)
		}
		m.write(account)
	}
	m.unsealed = nil
}

// account finds or makes the identities of an account.
func (m *Module) account(id string) *iam.Account {
	a := m.accounts[id]
	if a == nil {
		a = iam.NewAccount(id)
		m.accounts[id] = a
	}
	return a
}

// write adds the changes of commands to the transaction.
func (m *Module) write(a *iam.Account) {
	changes := a.Changes()
	for _, c := range changes {
		if c.Before != nil {
			m.shard.Batch.Delete(entityKey(c.Before))
			if c.After == nil && c.Before.ID != "" {
				m.forget(c.Before.ID)
			}
		}
		if c.After != nil {
			m.shard.Batch.Set(entityKey(c.After), encode(c.After))
		}
		if c.BeforeKey != nil && c.AfterKey == nil {
			m.shard.Batch.Delete(accessKey(a.ID, c.BeforeKey.ID))
			delete(m.owners, c.BeforeKey.ID)
			m.forget(c.BeforeKey.ID)
		}
		if c.AfterKey != nil {
			m.shard.Batch.Set(accessKey(a.ID, c.AfterKey.ID), encode(c.AfterKey))
			m.owners[c.AfterKey.ID] = a.ID
		}
	}
	if len(changes) > 0 {
		m.revision.Add(1)
		m.forgetCredentials()
	}
}

// forget removes the latest use of an access key or a role.
func (m *Module) forget(id string) {
	if _, ok := m.used[id]; ok {
		delete(m.used, id)
		m.shard.Batch.Delete(key(keyspace.IdentityUses, id))
	}
}

// errFull refuses commands that create something while the disk is short of space.
var errFull = kernel.ErrFull

// Run runs a command on an account's identities, and returns once all that it read and changed
// is durable. A command that fails has changed nothing. now is the account's time.
func (m *Module) Run(account string, command func(a *iam.Account, now time.Time) error) error {
	lost := false
	err := m.shard.RunDurableReads(func(*kernel.Tx) (err error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		a := m.account(account)
		lost, err = m.lostAdministrator(a, func() error { return command(a, clock.Time(m.shard.Now())) })
		if err != nil {
			a.Revert()
			return err
		}
		if m.kernel.Full() && a.Grows() {
			a.Revert()
			return errFull
		}
		m.write(a)
		return nil
	})
	if err == nil && lost {
		m.orphaned(account)
	}
	return err
}

// Read calls look with an account's identities. What look reads is durable when Read returns.
func (m *Module) Read(account string, look func(a *iam.Account) error) error {
	m.mu.RLock()
	a := m.accounts[account]
	if a == nil {
		a = iam.NewAccount(account)
	}
	err := look(a)
	m.mu.RUnlock()
	m.shard.AwaitReads()
	return err
}

// peek is Read for results that are not shown to anybody: it does not wait for the disk.
func (m *Module) peek(account string, look func(a *iam.Account)) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if a := m.accounts[account]; a != nil {
		look(a)
	}
}

// AccountOfKey is the account of a long-term access key.
func (m *Module) AccountOfKey(id string) (account string, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	account, ok = m.owners[id]
	return account, ok
}

// useEvery is the precision of the latest use of an access key or role.
const useEvery = 15 * time.Minute

// Used notes the use of an access key, or of a role by its unique id.
func (m *Module) Used(id, service, region string) {
	now := m.clock.Now().UTC().Truncate(time.Second)
	m.mu.RLock()
	before := m.used[id]
	m.mu.RUnlock()
	if now.Sub(before.At) < useEvery {
		return
	}
	u := Use{At: now, Service: strings.Clone(service), Region: strings.Clone(region)}
	m.mu.Lock()
	m.used[id] = u
	m.mu.Unlock()
	m.kernel.GoBackground(func() {
		m.shard.RunLazy(func() {
			m.mu.RLock()
			defer m.mu.RUnlock()
			if _, ok := m.used[id]; ok && !m.shard.Closed {
				m.shard.Batch.Set(key(keyspace.IdentityUses, id), encode(u))
			}
		})
	})
}

// NoteUse is Used for a request with an access key, which may be any text.
func (m *Module) NoteUse(accessKey, service, region string) {
	if !strings.HasPrefix(accessKey, iam.PrefixKey) {
		return
	}
	if _, ok := m.AccountOfKey(accessKey); ok {
		m.Used(strings.Clone(accessKey), service, region)
	}
}

// LastUse is the latest use of an access key or role; ok is false if none is known.
func (m *Module) LastUse(id string) (u Use, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	u, ok = m.used[id]
	return u, ok
}

// CheckRecord reports whether the value of one of this package's records can be read.
func CheckRecord(id keyspace.ID, value []byte) error {
	switch id {
	case keyspace.KindIdentity:
		return decode(value, &iam.Entity{})
	case keyspace.KindAccessKey:
		return decode(value, &iam.AccessKey{})
	case keyspace.KindIdentityUse:
		return decode(value, &Use{})
	case keyspace.KindTokenKey:
		if len(value) == 0 {
			return errRecord
		}
	default:
	}
	return nil
}
