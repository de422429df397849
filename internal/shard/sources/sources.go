// Package sources has the sources: endpoints for clients that do not speak AWS's APIs. It is
// the module over the pure rules of package ingest, with its own lock and stream of the
// journal.
package sources

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/ingest"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store"
)

// Purpose is the purpose that the secrets of sources are sealed for.
const Purpose = "secrets of sources"

// maxSources bounds the number of sources.
const maxSources = 1000

// Errors of commands.
var (
	ErrNone    = fault.NewRule(fault.NotFound, "sources: there is no such source")
	ErrTooMany = fault.NewRule(fault.LimitExceeded, "sources: there are as many as may be")
)

// ErrChanged says that a source has changed since the caller read it.
var ErrChanged = errors.New("sources: it was changed meanwhile")

// record is the persisted form of a source.
type record struct {
	ingest.Source

	Sealed []byte `json:"sealed,omitempty"` // the secrets
}

// kept is a source in memory. It is immutable.
type kept struct {
	*ingest.Compiled

	secrets []string
	broken  error // its secrets cannot be opened: no request can be verified
}

// Module has the sources. It is a module of the kernel, with its own shard.
type Module struct {
	kernel.NopLifecycle
	kernel *kernel.Kernel
	shard  *kernel.Shard // its lock guards all changes
	sealer *seal.Sealer
	all    atomic.Pointer[map[string]*kept] // the map is immutable
}

// New adds the module to a kernel. The sealer is for Purpose.
func New(k *kernel.Kernel, sealer *seal.Sealer) *Module {
	m := &Module{kernel: k, shard: k.OwnShard(keyspace.SourceStream), sealer: sealer}
	m.all.Store(&map[string]*kept{})
	m.shard.Add(m)
	return m
}

const version = 1

var errSealed = errors.New("sources: the secrets cannot be opened")

func decode(value []byte) (r record, err error) {
	return r, keyspace.DecodeJSON(version, value, &r)
}

// CheckRecord reports whether the value of a record can be read.
func CheckRecord(value []byte) error {
	_, err := decode(value)
	return err
}

func key(name string) []byte {
	return append([]byte{keyspace.SourceSpace, keyspace.SourceRecords}, name...)
}

// Load implements kernel.Lifecycle.
func (m *Module) Load() error {
	all := map[string]*kept{}
	err := store.EachOf(m.shard.Stream.Reader(), keyspace.KindSource, keyspace.Prefix([]byte{keyspace.SourceSpace}), func(k *keyspace.Key, value []byte) error {
		r, err := decode(value)
		if err != nil {
			return err
		}
		all[r.Name] = m.open(k.Encoded(), &r)
		return nil
	})
	m.all.Store(&all)
	return err
}

// open prepares a source for use. One whose secrets cannot be opened is kept, but accepts
// nothing.
func (m *Module) open(k []byte, r *record) *kept {
	var secrets []string
	if len(r.Sealed) > 0 {
		text, err := m.sealer.Open(r.Sealed, k)
		if err == nil {
			err = json.Unmarshal(text, &secrets)
		}
		if err != nil {
			return &kept{Compiled: &ingest.Compiled{Source: r.Source}, broken: errSealed}
		}
	}
	c, err := ingest.Compile(r.Source, secrets)
	if err != nil { // an earlier version accepted it
		return &kept{Compiled: &ingest.Compiled{Source: r.Source}, secrets: secrets, broken: err}
	}
	return &kept{Compiled: c, secrets: secrets}
}

// Find is the source of a name, for posts to it; nil if there is none, or it cannot verify
// posts.
func (m *Module) Find(name string) *ingest.Compiled {
	if k := (*m.all.Load())[name]; k != nil && k.broken == nil {
		return k.Compiled
	}
	return nil
}

// Exists reports whether there is a source of a name.
func (m *Module) Exists(name string) bool { return (*m.all.Load())[name] != nil }

// Info describes a source, without its secrets.
type Info struct {
	ingest.Source

	Secrets int   // how many it has
	Broken  error // why it accepts nothing; nil: it does
}

func (k *kept) info() Info { return Info{k.Source, len(k.secrets), k.broken} }

// List lists the sources after a name, by name. What it reports is durable.
func (m *Module) List(after string, limit int) (page []Info, more bool) {
	all := *m.all.Load()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name <= after {
			continue
		}
		if len(page) == limit {
			more = true
			break
		}
		page = append(page, all[name].info())
	}
	m.shard.AwaitReads()
	return page, more
}

// Get is one source. Errors: ErrNone.
func (m *Module) Get(name string) (Info, error) {
	k := (*m.all.Load())[name]
	m.shard.AwaitReads()
	if k == nil {
		return Info{}, ErrNone
	}
	return k.info(), nil
}

// change runs a command on a source, nil if there is none, and replaces the source by the
// result; nil deletes it. It returns once all that it read and changed is durable.
func (m *Module) change(ctx context.Context, name string, grows bool, command func(was *kept, now int64) (*record, []string, error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if grows && m.kernel.Full() {
		return kernel.ErrFull
	}
	name = strings.Clone(name)
	return m.shard.RunDurableReads(func(*kernel.Tx) error {
		all := maps.Clone(*m.all.Load())
		r, secrets, err := command(all[name], m.shard.Now())
		if err != nil {
			return err
		}
		k := key(name)
		if r == nil {
			m.shard.Batch.Delete(k)
			delete(all, name)
			m.all.Store(&all)
			return nil
		}
		c, err := ingest.Compile(r.Source, secrets)
		if err != nil {
			return err
		}
		if len(secrets) > 0 {
			text, err := json.Marshal(secrets)
			if err != nil {
				return err
			}
			if r.Sealed, err = m.sealer.Seal(text, k); err != nil {
				return err
			}
		}
		m.shard.Batch.Set(k, keyspace.EncodeJSON(version, r))
		all[name] = &kept{Compiled: c, secrets: secrets}
		m.all.Store(&all)
		return nil
	})
}

// Put makes a source, or replaces the one of its name, keeping its creation time. If secrets is
// nil, the existing ones stay. target is the target of the source to be replaced, as the caller
// knows it; empty: there is none. Errors: ingest.ErrInvalid, ErrTooMany; ErrChanged: the source
// has another target.
func (m *Module) Put(ctx context.Context, s ingest.Source, secrets []string, target string) (made bool, err error) {
	err = m.change(ctx, s.Name, true, func(was *kept, now int64) (*record, []string, error) {
		if made = was == nil; made && target != "" || !made && target != was.Target {
			return nil, nil, ErrChanged
		}
		if err := s.CheckExposure(); err != nil {
			return nil, nil, err
		}
		if made && len(*m.all.Load()) >= maxSources {
			return nil, nil, ErrTooMany.With(maxSources)
		}
		s.Created, s.Changed = now, now
		if was != nil {
			s.Created = was.Created
			if secrets == nil {
				if errors.Is(was.broken, errSealed) {
					return nil, nil, ingest.ErrInvalid.With("secrets", was.broken.Error())
				}
				secrets = was.secrets
			}
		}
		return &record{Source: s}, secrets, nil
	})
	return made, err
}

// SetPaused pauses or resumes a source. Errors: ErrNone.
func (m *Module) SetPaused(ctx context.Context, name string, paused bool) error {
	return m.change(ctx, name, false, func(was *kept, now int64) (*record, []string, error) {
		if was == nil {
			return nil, nil, ErrNone
		}
		if was.broken != nil {
			return nil, nil, ingest.ErrInvalid.With("secrets", was.broken.Error())
		}
		r := &record{Source: was.Source}
		r.Paused, r.Changed = paused, now
		return r, was.secrets, nil
	})
}

// Delete deletes a source. Errors: ErrNone.
func (m *Module) Delete(ctx context.Context, name string) error {
	return m.change(ctx, name, false, func(was *kept, _ int64) (*record, []string, error) {
		if was == nil {
			return nil, nil, ErrNone
		}
		return nil, nil, nil
	})
}
