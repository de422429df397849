package kernel

import (
	"errors"
	"fmt"

	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/store"
)

// Load reads the state: the catalog, counters and leases, but no messages. Then, at a start as
// after a takeover in a cluster, each shard begins a new epoch, transfers that a crash interrupted
// are reconciled, and deliveries that were in flight are due again.
func (k *Kernel) Load() error {
	for _, sh := range k.allShards() {
		if err := sh.load(); err != nil {
			if s, ok := k.Store.(store.Damaged); ok {
				err = errors.Join(err, s.DamageIn(nil, nil))
			}
			return fmt.Errorf("shard %d: %w", sh.ID, err)
		}
	}
	if err := k.loadedWhole(); err != nil {
		return err
	}
	for _, sh := range k.allShards() {
		sh.RunLazy(func() {
			sh.state.Epoch++
			sh.Now()
		})
	}
	k.beginEpoch().Wait()
	for _, sh := range k.allShards() {
		for _, l := range sh.lifecycles {
			if err := l.Recover(); err != nil {
				return err
			}
		}
	}
	for _, sh := range k.allShards() {
		for _, l := range sh.lifecycles {
			sh.RunLazy(l.Resume)
		}
		sh.RunLazy(sh.Arm) // also for shards whose parts resumed nothing
	}
	return nil
}

func (sh *Shard) load() (err error) {
	if sh.Stream, sh.state, err = sh.kernel.Journal.Stream(sh.ID, sh.finish); err != nil {
		return err
	}
	for _, l := range sh.lifecycles {
		if err := l.Load(); err != nil {
			return err
		}
	}
	return nil
}

// loadedWhole fails if damage in the store hides records that must be loaded completely.
// Without them queues, or policies that deny something, would be taken for deleted, and numbers
// would be assigned twice.
func (k *Kernel) loadedWhole() error {
	s, ok := k.Store.(store.Damaged)
	if !ok {
		return nil
	}
	for _, span := range keyspace.Required() {
		if err := s.DamageIn(span.Lower, span.Upper); err != nil {
			return fmt.Errorf("records that say what there is, and who may do what, cannot be read: %w", err)
		}
	}
	return nil
}

// beginEpoch makes the shards' new epochs durable before anything is answered.
func (k *Kernel) beginEpoch() *journal.Commit {
	var c *journal.Commit
	all := k.allShards()
	for i, sh := range all {
		sh.RunLazy(func() {
			c = k.Journal.Append(journal.EagerIf(i == len(all)-1), sh.pending())
			sh.appended(c)
		})
	}
	return c
}
