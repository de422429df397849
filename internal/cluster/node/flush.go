package node

import (
	"context"
	"time"

	"godwit.dev/godwit/internal/clock"
)

const (
	// flushLook is the time between two looks at what the local store has on disk.
	flushLook = 5 * time.Second

	// flushWait is the time from a flush to another look: most flushes end within it.
	flushWait = 500 * time.Millisecond

	// The store is flushed once flushBytes of records are not on disk, or a commit is not after
	// flushTime: a node that was killed reads that much of the log again, and the log is kept for
	// it. Where the log is to be small, flushShare of its limit may be missing. A table for each
	// look would be written for the heartbeats of an idle owner alone. Under load the store has
	// flushed itself before, as its write buffers are full.
	flushBytes = 16 << 20
	flushShare = 8
	flushTime  = 5 * time.Minute
)

// flushing is what of a replica is on disk, and what is not.
type flushing struct {
	durable   uint64    // position up to which everything is, as of the latest look
	committed uint64    // position of the latest commit that was applied
	bytes     uint64    // of records, since the durable position moved
	since     time.Time // when a look found that there are commits beyond that; zero: there are none
	asked     uint64    // committed, as of the latest flush
	askedAt   time.Time // when that was
}

// looked notes how far the disk has come, and says whether a flush is worth its table.
func (f *flushing) looked(durable, limit uint64, now time.Time) bool {
	moved := durable > f.durable
	f.durable = durable
	if moved {
		f.bytes = 0
		f.asked = 0 // a flush has ended: on a full disk one that was there before, and that asked for has not begun
	}
	switch {
	case f.committed <= durable:
		f.since = time.Time{}
	case moved || f.since.IsZero():
		f.since = now
	}
	worth := f.bytes > min(flushBytes, limit/flushShare) || !f.since.IsZero() && now.Sub(f.since) >= flushTime
	if !worth || f.asked > durable && now.Sub(f.askedAt) < flushTime {
		return false // the disk is slow: another flush would only wait for the one that is under way
	}
	f.asked, f.askedAt = f.committed, now
	return true
}

// noteApplied notes a record that the replica has taken.
func (n *Node) noteApplied(position uint64, size int, accepted, commit bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.catchUp(position)
	n.flushing.bytes += uint64(size)
	if commit {
		n.flushing.committed = position
	}
	if accepted {
		n.accepted = clock.System.Now()
		n.ownerHeard = n.accepted
	}
}

// flush looks at what the local store has on disk, and has it flushed if that is worth it, which a
// second look finds done, or else the next one.
func (n *Node) flush(ctx context.Context) {
	worth, err := n.look()
	if err == nil && worth {
		if err = n.replica.Flush(); err == nil && n.pause(ctx, flushWait) {
			_, err = n.look()
		}
	}
	if err != nil {
		n.failed(err)
		return
	}
	n.measure(ctx)
}

// look notes what the local store has on disk, and says whether a flush is worth its table.
func (n *Node) look() (worth bool, err error) {
	if err := n.replica.Damage(); err != nil {
		return false, err
	}
	durable, err := n.replica.Durable()
	if err != nil {
		return false, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.flushing.looked(durable, n.options.LogLimit, clock.System.Now()), nil
}
