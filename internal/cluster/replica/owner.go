package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/overlay"
	"godwit.dev/godwit/internal/cluster/record"
	"godwit.dev/godwit/internal/cluster/replog"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
)

// Reasons why an owner steps down, beside ErrReplaced and those of the log.
var (
	errGap       = errors.New("the log has another order than its owner wrote")
	errRoundTrip = errors.New("a record did not come back from the log in time")
)

// Bounds of an owner, where its options say nothing else.
const (
	defaultWindow    = 8
	defaultRoundTrip = 10 * time.Second
	retryRefused     = 50 * time.Millisecond
)

// OwnerOptions are what an Owner is made of.
type OwnerOptions struct {
	Log   replog.Log
	Clock clock.Clock // nil: the machine's
	// Window is how many records are on their way at once; 0: 8.
	Window int
	// RoundTrip bounds how long a record may be on its way before the owner steps down; 0:
	// 10 s.
	RoundTrip time.Duration
	// RecordSize is where a commit goes on in another record, in bytes; 0:
	// record.SoftSize.
	RecordSize int
	// Failed is called once, in a goroutine of its own, with why the owner has stepped down;
	// may be nil.
	Failed func(error)
	// Detach has an owner that has stepped down continue as a store of its own, which other
	// owners' records do not reach, instead of failing: it takes writes, and drops them when
	// it is closed. So what runs on it can be stopped in an orderly way. A Sync that returns
	// nil then means nothing: whoever answers by it must ask Failed or Confirm first.
	Detach bool
}

// Owner is the store of the node that owns a cell: a leader that acknowledges a write once it is
// replicated. What is written is visible immediately, is durable once it has come back from the
// log and this replica has accepted it, and only then reaches the committed store. An Owner that
// has stepped down fails every write and Sync, unless OwnerOptions.Detach is set.
type Owner struct {
	*overlay.Store // what is seen: the committed store, and what is under way over it

	options OwnerOptions
	replica *Replica
	cell    uint16
	epoch   uint64

	mu       sync.Mutex            // taken behind the replica's
	number   uint64                // of the latest record that was written
	accepted uint64                // of the latest that has come back
	queue    []sending             // in flight: written and not come back, in order
	sent     int                   // how many of queue were appended to the log
	busy     bool                  // a goroutine is appending queue to the log
	watching bool                  // the timer for the oldest of queue is set
	failed   atomic.Pointer[error] // why it has stepped down; set under mu
	closed   bool
	waiters  map[chan struct{}]uint64 // closed once a number is accepted
	confirm  *round                   // that callers may join; nil: none
	asking   bool                     // a round is under way
}

// sending is a record on its way.
type sending struct {
	number uint64
	data   []byte
	since  time.Time // when it was first given to the log; zero: it was not yet
}

var _ store.Store = (*Owner)(nil)

// Own makes the process the owner of the cell, of an epoch whose takeover was its own and
// is the latest record that was accepted. Errors: ErrReplaced.
func (r *Replica) Own(epoch uint64, o OwnerOptions) (*Owner, error) {
	if o.Clock == nil {
		o.Clock = clock.System
	}
	if o.Window == 0 {
		o.Window = defaultWindow
	}
	if o.RecordSize == 0 {
		o.RecordSize = record.SoftSize
	}
	if o.RoundTrip == 0 {
		o.RoundTrip = defaultRoundTrip
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fence.Epoch != epoch || r.owner != nil && r.owner.epoch >= epoch {
		return nil, fmt.Errorf("%w: epoch %d", ErrReplaced, r.fence.Epoch)
	}
	r.owner = &Owner{
		Store: overlay.New(r.store), options: o, replica: r, cell: r.cell, epoch: epoch,
		number: r.fence.Number, accepted: r.fence.Number, waiters: map[chan struct{}]uint64{},
	}
	return r.owner, nil
}

// Epoch is the epoch that the owner writes in.
func (o *Owner) Epoch() uint64 { return o.epoch }

// Failed is why the owner has stepped down; nil: it has not. It waits for nobody who writes: that may
// take as long as the disk is full.
func (o *Owner) Failed() error {
	if failed := o.failed.Load(); failed != nil {
		return *failed
	}
	return nil
}

// Apply implements store.Store.
func (o *Owner) Apply(sync store.SyncMode, batches ...*mutation.Batch) error {
	n := 0
	for _, b := range batches {
		n += b.Len()
	}
	if n > 0 {
		if err := o.write(batches); err != nil {
			return err
		}
	}
	if sync == store.Sync {
		return o.Sync()
	}
	return nil
}

func (o *Owner) write(batches []*mutation.Batch) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.Failed() != nil {
		return o.forget(batches)
	}
	// What was read to decide on this may have been read past damage.
	if err := o.replica.Damage(); err != nil {
		o.failLocked(err)
		return o.forget(batches)
	}
	records, err := record.Split(o.options.RecordSize, o.cell, o.epoch, o.number+1, batches...)
	if err != nil {
		return err
	}
	kept := make([]*mutation.Batch, len(records)) // as batches are not: they are the caller's
	for i, encoded := range records {
		if kept[i], err = record.Writes(encoded); err != nil {
			return err
		}
	}
	// The overlay is written before the log: what comes back is there to be flushed.
	if err := o.Keep(o.number+uint64(len(records)), kept...); err != nil {
		return err
	}
	o.enqueue(records...)
	return nil
}

// forget is write for a detached owner; o.mu is held.
func (o *Owner) forget(batches []*mutation.Batch) error {
	if o.options.Detach {
		return o.Write(o.number, batches...)
	}
	return o.Failed()
}

// enqueue gives records to the log, in order; o.mu is held, and is open in between.
func (o *Owner) enqueue(records ...[]byte) {
	for _, data := range records {
		o.number++
		o.queue = append(o.queue, sending{number: o.number, data: data})
	}
	o.watch() // first: giving a record to the log may take long itself
	o.send()
}

// send gives the log what it may have on its way; o.mu is held, and is open in between.
func (o *Owner) send() {
	if o.busy {
		return // who is at it goes on
	}
	o.busy = true
	for o.Failed() == nil && o.sent < len(o.queue) && o.sent < o.options.Window {
		s := &o.queue[o.sent]
		if s.since.IsZero() { // else it was refused before
			s.since = o.options.Clock.Now()
		}
		number, data := s.number, s.data
		o.sent++
		o.mu.Unlock()
		o.options.Log.Append(data, func(_ uint64, err error) { o.answered(number, err) })
		o.mu.Lock()
	}
	o.busy = false
}

// answered handles the log's answer to an append. A success counts only once the record comes
// back. A record whose outcome is unknown is waited for, and never appended again.
func (o *Owner) answered(number uint64, err error) {
	if !errors.Is(err, replog.ErrRefused) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	last := o.sent - 1
	if o.Failed() != nil || last < 0 || last >= len(o.queue) || number < o.queue[0].number {
		return
	}
	if o.queue[last].number != number {
		// Those behind it may be in the log, where they count for nothing.
		o.failLocked(fmt.Errorf("record %d: %w", number, err))
		return
	}
	// It is certainly not in the log, and none behind it is.
	o.sent = last
	o.options.Clock.AfterFunc(retryRefused, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.send()
	})
}

// watch sets the timer after which the owner steps down if the oldest record in flight has not
// come back; o.mu is held.
func (o *Owner) watch() {
	if o.watching || o.Failed() != nil || len(o.queue) == 0 {
		return
	}
	o.watching = true
	left := o.options.RoundTrip
	if since := o.queue[0].since; !since.IsZero() {
		left -= o.options.Clock.Now().Sub(since)
	}
	o.options.Clock.AfterFunc(max(left, 0), func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.watching = false
		if o.Failed() != nil || len(o.queue) == 0 {
			return
		}
		if since := o.queue[0].since; !since.IsZero() && o.options.Clock.Now().Sub(since) >= o.options.RoundTrip {
			o.failLocked(fmt.Errorf("record %d: %w", o.queue[0].number, errRoundTrip))
			return
		}
		o.watch()
	})
}

// accept notes that a record has come back and counts. Its caller is the replica.
func (o *Owner) accept(number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.accepted = number
	gone := 0
	for gone < len(o.queue) && o.queue[gone].number <= number {
		gone++
	}
	clear(o.queue[:gone])
	o.queue = o.queue[gone:]
	o.sent = max(o.sent-gone, 0)
	for done, n := range o.waiters {
		if n <= number {
			close(done)
			delete(o.waiters, done)
		}
	}
	if !o.busy && o.sent < len(o.queue) {
		o.send()
	}
}

// fail has the owner step down: waiters for records that are not accepted yet get err.
func (o *Owner) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failLocked(err)
}

func (o *Owner) failLocked(err error) {
	if o.Failed() != nil {
		return
	}
	failed := fmt.Errorf("cell %d, epoch %d: %w", o.cell, o.epoch, err)
	o.failed.Store(&failed)
	if o.options.Detach {
		o.Freeze()
	}
	for done := range o.waiters {
		close(done)
	}
	clear(o.waiters)
	if o.options.Failed != nil {
		go o.options.Failed(failed)
	}
}

// StepDown ends the ownership, as far as this process is concerned.
func (o *Owner) StepDown(why error) { o.fail(why) }

// Sync implements store.Store: it returns once everything that was written is in the log
// and accepted.
func (o *Owner) Sync() error {
	o.mu.Lock()
	number, closed := o.number, o.closed
	o.mu.Unlock()
	if closed {
		return store.ErrClosed
	}
	err := o.await(context.Background(), number)
	if err != nil && o.options.Detach {
		return nil
	}
	return err
}

// await returns once a record is accepted.
func (o *Owner) await(ctx context.Context, number uint64) error {
	o.mu.Lock()
	if o.Failed() != nil || o.accepted >= number {
		defer o.mu.Unlock()
		return o.outcome(number)
	}
	done := make(chan struct{})
	o.waiters[done] = number
	o.mu.Unlock()
	select {
	case <-done:
	case <-ctx.Done():
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.waiters, done)
		return context.Cause(ctx)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.outcome(number)
}

// outcome is nil for what was accepted; o.mu is held.
func (o *Owner) outcome(number uint64) error {
	if o.accepted >= number {
		return nil
	}
	return o.Failed()
}

// round is one confirmation record, which several callers of Confirm share, as with the
// ReadIndex of Raft.
type round struct {
	done chan struct{} // closed once err is set
	err  error
}

// Confirm makes reads linearizable: it returns nil if the process was still the owner at some
// time after the call, so that what was read before the call was not stale. Many callers share
// a record. Errors: why the owner has stepped down; the context's.
func (o *Owner) Confirm(ctx context.Context) error {
	o.mu.Lock()
	if o.Failed() != nil {
		defer o.mu.Unlock()
		return o.Failed()
	}
	r := o.confirm
	if r == nil {
		r = &round{done: make(chan struct{})}
		o.confirm = r
		if !o.asking {
			o.asking = true
			go o.ask()
		}
	}
	o.mu.Unlock()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ask writes one confirmation after the other, for as long as somebody waits for one.
func (o *Owner) ask() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.confirm != nil {
		r := o.confirm
		o.confirm = nil
		if err := o.replica.Damage(); err != nil {
			o.failLocked(err) // as is what was read to be answered
		}
		if o.Failed() == nil {
			rec := record.Record{Kind: record.Confirm, Cell: o.cell, Epoch: o.epoch, Number: o.number + 1}
			number := rec.Number
			o.enqueue(rec.AppendTo(nil))
			o.mu.Unlock()
			err := o.await(context.Background(), number)
			o.mu.Lock()
			r.err = err
		} else {
			r.err = o.Failed()
		}
		close(r.done)
	}
	o.asking = false
}

// Checkpoint implements store.Store: a copy of what is accepted, once all is. Unlike a Sync it
// fails where the owner was replaced, detached or not: the copy would lack what was acknowledged
// since.
func (o *Owner) Checkpoint(dir string) error {
	if err := o.Sync(); err != nil {
		return err
	}
	if err := o.Confirm(context.Background()); err != nil {
		return err
	}
	return o.replica.store.Checkpoint(dir)
}

// Close implements store.Store. The committed store stays open, for the replica. It fails
// if what was written was not all accepted.
func (o *Owner) Close() error {
	err := o.Sync()
	o.mu.Lock()
	again := o.closed
	o.closed = true
	o.mu.Unlock()
	o.Store.Close()
	if again {
		return nil
	}
	return err
}
