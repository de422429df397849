// Package replica keeps a node's copy of a cell: it applies those records of the log that the
// fence accepts to the local store. On the node that owns the cell, an Owner writes the records,
// and acknowledges them once they have come back from the log.
package replica

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"godwit.dev/godwit/internal/cluster/record"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
)

// ErrReplaced reports that another node, or another process of this one, owns the cell.
var ErrReplaced = errors.New("another process has taken the cell over")

// ErrIncomplete reports that the replica began with less than others, and with what the log
// has no more, or never had: it needs a copy of another's store.
var ErrIncomplete = errors.New("the replica lacks what others began with")

// Replica is a node's copy of one cell. Apply is called by one goroutine; the other
// methods may be called at once from several.
type Replica struct {
	cell  uint16
	store store.Store // nobody else writes to it

	mu     sync.Mutex
	fence  record.Fence
	read   uint64            // position of the latest record that Apply took, accepted or not
	marked bool              // the store says that it is a replica's
	parts  []*mutation.Batch // of a commit of which the last part has not come
	owner  *Owner            // of this process; nil: there was none

	latest atomic.Pointer[record.Fence] // fence, as of the latest record that is through
}

// Open makes a replica of what st has. Errors: those of st, record.ErrCorrupt.
func Open(cell uint16, st store.Store) (*Replica, error) {
	r := &Replica{cell: cell, store: st}
	var err error
	if r.fence, r.marked, err = r.fenceIn(st.Get); err != nil {
		return nil, err
	}
	r.read = r.fence.Position
	r.publish()
	return r, nil
}

// Fence is how far the replica has come.
func (r *Replica) Fence() record.Fence {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fence
}

// Latest is Fence as of the latest record that is through: it does not wait for one that is
// being applied.
func (r *Replica) Latest() record.Fence { return *r.latest.Load() }

// publish has Latest tell of the fence; mu is held.
func (r *Replica) publish() {
	f := r.fence
	r.latest.Store(&f)
}

// Position is that of the latest record that was applied or skipped.
func (r *Replica) Position() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.read
}

// Durable is the position up to which this machine's disk has everything: what a replica needs no
// log for any more. A store that is no store.Flusher is synced for it.
func (r *Replica) Durable() (position uint64, err error) {
	if f, ok := r.store.(store.Flusher); ok {
		fence, _, err := r.fenceIn(f.GetDurable)
		return fence.Position, err
	}
	fence, _, err := r.fenceIn(r.store.Get)
	if err != nil {
		return 0, err
	}
	return fence.Position, r.store.Sync()
}

// fenceIn is the fence that get reads; ok is false if there is none. It was written with all that it
// counts, and nothing of a commit is there before its last part.
func (r *Replica) fenceIn(get func(dst, key []byte) (value []byte, ok bool, err error)) (f record.Fence, ok bool, err error) {
	value, ok, err := get(nil, record.Key(r.cell))
	if err == nil && ok {
		f, err = record.DecodeFence(value)
	}
	if err != nil {
		return record.Fence{}, false, fmt.Errorf("cell %d: %w", r.cell, err)
	}
	return f, ok, nil
}

// Flush begins to make durable what was applied; Durable tells once it is.
func (r *Replica) Flush() error {
	if f, ok := r.store.(store.Flusher); ok {
		return f.Flush()
	}
	return nil
}

// Checkpoint writes a copy of the store into a directory, which must not exist yet.
// position is that of the log up to which it has all, at least.
func (r *Replica) Checkpoint(dir string) (position uint64, err error) {
	if err := r.Damage(); err != nil {
		return 0, err
	}
	// Parts of a commit are in the fence of the replica before they are in the store.
	fence, _, err := r.fenceIn(r.store.Get)
	if err != nil {
		return 0, err
	}
	if err := r.store.Checkpoint(dir); err != nil {
		return 0, err
	}
	return fence.Position, r.Damage()
}

// Damage says, as store.ErrDamaged, that something of the store was found to be
// unreadable: such a replica is not like the others any more, and is of no use.
func (r *Replica) Damage() error {
	if d, ok := r.store.(store.Damaged); ok {
		if err := d.DamageIn(nil, nil); err != nil {
			return fmt.Errorf("cell %d: %w", r.cell, err)
		}
	}
	return nil
}

// Apply takes the next record of the log: accepted says whether it counts. Errors:
// record.ErrCorrupt, and those of the store. After one the replica is of no use.
func (r *Replica) Apply(position uint64, data []byte) (rec record.Record, accepted bool, err error) {
	if rec, err = record.Decode(data); err != nil {
		return rec, false, fmt.Errorf("cell %d, position %d: %w", r.cell, position, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read = position
	owner := r.owner
	if r.fence.Lacks(r.cell, &rec) {
		return rec, false, fmt.Errorf("%w: it has come to record %d, and %s had %d", ErrIncomplete, r.fence.Number, rec.Owner, rec.Number)
	}
	own := owner != nil && rec.Cell == r.cell && rec.Epoch == owner.epoch && rec.Kind != record.Takeover
	if !r.fence.Accept(r.cell, position, &rec) {
		if own && rec.Number > r.fence.Number {
			owner.fail(fmt.Errorf("record %d of epoch %d came before one that is ahead of it: %w", rec.Number, rec.Epoch, errGap))
		}
		return rec, false, nil
	}
	switch rec.Kind {
	case record.Takeover:
		r.parts = nil // the rest of them will never count
		err = r.commit(nil)
		if owner != nil && rec.Epoch > owner.epoch {
			owner.fail(fmt.Errorf("%w: %s, epoch %d", ErrReplaced, rec.Owner, rec.Epoch))
		}
	case record.Part:
		r.parts = append(r.parts, rec.Batch)
		if own {
			owner.accept(rec.Number)
		}
	case record.Confirm:
		if len(r.parts) == 0 {
			err = r.commit(nil)
		}
		if own && err == nil {
			owner.accept(rec.Number)
		}
	case record.Commit:
		commit := func() error { return r.commit(rec.Batch) }
		if own {
			err = owner.Flush(rec.Number, commit)
		} else {
			err = commit()
		}
		if own && err == nil {
			owner.accept(rec.Number)
		}
	}
	r.publish()
	return rec, true, err
}

// commit applies what has come of a commit, with the fence; r.mu is held.
func (r *Replica) commit(last *mutation.Batch) error {
	var fence mutation.Batch
	r.fence.Put(&fence, r.cell)
	batches := r.parts
	if last != nil && last.Len() > 0 {
		batches = append(batches, last)
	}
	if err := r.Damage(); err != nil {
		return err
	}
	sync := store.NoSync
	if !r.marked { // the first fence is durable at once: no single server may take the store for its own
		sync = store.Sync
	}
	if err := r.store.Apply(sync, append(batches, &fence)...); err != nil {
		return fmt.Errorf("cell %d: %w", r.cell, err)
	}
	r.marked = true
	r.parts = nil
	return nil
}
