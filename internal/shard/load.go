package shard

import (
	"cmp"
	"errors"
	"fmt"

	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/store"
)

// load reads the state: what exists, counters and leases, but no messages. It
// then takes over: each shard gets a new epoch, transfers that a crash
// interrupted are settled, and deliveries that were under way are due again.
func (e *core) load() error {
	for _, sh := range e.all {
		if err := sh.load(); err != nil {
			if s, ok := e.store.(store.Damaged); ok {
				err = errors.Join(err, s.DamageIn(nil, nil))
			}
			return fmt.Errorf("shard %d: %w", sh.id, err)
		}
	}
	if err := e.loadedWhole(); err != nil {
		return err
	}
	for _, sh := range e.all {
		sh.view(func() {
			sh.meta.Epoch++
			sh.now()
		})
	}
	e.beginEpoch().Wait()
	for _, sh := range e.all {
		for _, m := range sh.modules {
			if err := m.recover(); err != nil {
				return err
			}
		}
	}
	for _, sh := range e.all {
		for _, m := range sh.modules {
			sh.view(m.resume)
		}
		sh.view(sh.arm) // also for what nothing was resumed of
	}
	return nil
}

func (sh *coreShard) load() (err error) {
	if sh.log, sh.meta, err = sh.engine.journal.Stream(sh.id, sh.finish); err != nil {
		return err
	}
	for _, m := range sh.modules {
		if err := m.load(); err != nil {
			return err
		}
	}
	return nil
}

// loadedWhole fails if damage in the store hides some of what was loaded, but for
// what belongs to single queues: to go on would be to take queues, topics and
// functions for deleted, and to give numbers twice.
func (e *core) loadedWhole() error {
	s, ok := e.store.(store.Damaged)
	if !ok {
		return nil
	}
	for _, sh := range e.all {
		data := keyspace.Prefix(keyspace.Shard(sh.id, keyspace.Data))
		all := keyspace.Prefix([]byte{byte(sh.id >> 8), byte(sh.id)})
		if err := cmp.Or(s.DamageIn(all.Lower, data.Lower), s.DamageIn(data.Upper, all.Upper)); err != nil {
			return fmt.Errorf("records that tell which queues, topics and functions there are cannot be read: %w", err)
		}
	}
	return nil
}

// beginEpoch makes the shards' new epochs durable before anything is answered.
func (e *core) beginEpoch() *journal.Commit {
	var g *journal.Commit
	for _, sh := range e.all {
		_, _ = sh.run(false, func(*Tx) error {
			g = e.journal.Append(sh.id == Shards-1, sh.seal())
			sh.appended(g)
			return nil
		})
	}
	return g
}
