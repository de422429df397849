package journal

import (
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
)

// Change is what one command changes in one stream.
type Change struct {
	Stream *Stream
	Batch  *mutation.Batch
	State  State // of the stream, after the command
	// FinishBytes bounds what the stream's finish adds for this change, in bytes.
	FinishBytes int
}

// Durability says when a commit becomes durable.
type Durability uint8

// Durabilities; later ones are stricter.
const (
	Lazy    Durability = iota // within 10 ms
	Awaited                   // when the caller calls Wait, which it does next, or StartSync
	Eager                     // now, whether anybody waits or not
)

// EagerIf is Eager or Lazy.
func EagerIf(sync bool) Durability {
	if sync {
		return Eager
	}
	return Lazy
}

// Commit is a group commit: the changes, of all streams, that were appended while the previous
// commit was being made durable. They become durable with one sync, all or none.
type Commit struct {
	journal *Journal
	number  uint64
	shares  []share
	index   [keyspace.Streams]uint8 // 1 + the index in shares of a stream's; 0: none
	sync    Durability              // the strictest of its changes
	awaited bool                    // a caller waits for it though it is lazy
	due     time.Time               // the deadline of the sync; zero: no change of it is lazy
	applied atomic.Bool             // visible to readers of the store
	durable atomic.Bool             // on disk
	done    chan struct{}           // closed once durable
	unled   atomic.Bool             // its first caller in Wait syncs it
	then    []func()                // called once durable; guarded by the journal's mu

	waiting atomic.Int32  // callers in Wait
	want    atomic.Int32  // how many waiters awaitMore waits for
	enough  chan struct{} // capacity 1; signalled when waiting reaches want, or the commit is flushed
}

// share is what a commit has of one stream: the batches of its changes, as one.
type share struct {
	stream *Stream
	batch  *mutation.Batch
	state  State
}

// frame appends the stream's state to its batch, and passes the framed batch to observe. The
// caller holds the journal's applying.
func (s *share) frame(observe func(framed []byte)) {
	s.stream.sequence++
	s.state.Put(s.batch, s.stream.id, s.stream.sequence)
	if observe != nil {
		c := mutation.FramedBatch{Stream: s.stream.id, Epoch: s.state.Epoch, Sequence: s.stream.sequence, Batch: *s.batch}
		observe(c.AppendTo(nil))
	}
}

func (j *Journal) newCommit(number uint64) *Commit {
	return &Commit{journal: j, number: number, done: make(chan struct{}), enough: make(chan struct{}, 1)}
}

// dropped is a commit that nothing waits for: of an abandoned state.
func (j *Journal) dropped() *Commit {
	c := j.newCommit(0)
	c.applied.Store(true)
	c.durable.Store(true)
	close(c.done)
	return c
}

// Durable reports whether the commit is durable. A nil commit is.
func (c *Commit) Durable() bool { return c == nil || c.durable.Load() }

// Applied reports whether the commit is visible to readers of the store. A nil commit is.
func (c *Commit) Applied() bool { return c == nil || c.applied.Load() }

// Wait returns when the commit is durable. A nil commit is. The first caller may be the one
// that syncs it. Unlike Journal.Await it does not hasten the sync of a Lazy commit.
func (c *Commit) Wait() {
	if c.Durable() {
		return
	}
	c.count()
	if c.unled.CompareAndSwap(true, false) {
		c.journal.lead()
	}
	<-c.done
}

// StartSync has an Awaited commit synced now, for a caller that does not wait for it after all.
func (c *Commit) StartSync() {
	if c != nil && c.unled.CompareAndSwap(true, false) {
		c.journal.signal()
	}
}

// count counts a caller who waits.
func (c *Commit) count() {
	if c.waiting.Add(1) == c.want.Load() {
		c.stopWaiting()
	}
}

// stopWaiting ends a delay of the commit.
func (c *Commit) stopWaiting() {
	select {
	case c.enough <- struct{}{}:
	default:
	}
}

// Then calls f once the commit is durable: at once if it is, else in the goroutine that syncs
// it. f must not block. A nil commit is durable.
func (c *Commit) Then(f func()) {
	if c.Durable() {
		f()
		return
	}
	c.count()
	c.journal.mu.Lock()
	durable := c.Durable() // by now
	if !durable {
		c.then = append(c.then, f)
	}
	c.journal.mu.Unlock()
	if durable {
		f()
	}
}
