package queues

import (
	"context"
	"errors"
	"slices"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/shard/kernel"
)

// Send adds messages to a queue, all of them or none, and returns once they are
// durable. Errors: QueueDoesNotExist, InsufficientStorage, Throttled where the queue's account
// holds as much as it may.
func (e *Queues) Send(ctx context.Context, a arn.ARN, msgs []Outgoing) ([]SendResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if e.Full() {
		return nil, kernel.ErrFull
	}
	size := 0
	for i := range msgs {
		size += msgs[i].Message.Size()
	}
	if err := e.Accounts.Room(a.Account, size); err != nil {
		return nil, err
	}
	sh := e.ShardOf(a)
	var results []SendResult
	err := sh.RunDurable(func(tx *kernel.Tx) (err error) {
		tx.DependOn(sh.Log.Last()) // if all are duplicates the answer depends on their originals
		results, err = sh.send(a, msgs)
		return err
	})
	return results, err
}

func (sh *Shard) send(a arn.ARN, msgs []Outgoing) ([]SendResult, error) {
	qs, err := sh.Lookup(a)
	if err != nil {
		return nil, err
	}
	results := make([]SendResult, len(msgs))
	now := sh.Now()
	arriving := sh.originals(qs, now, msgs, results)
	duplicates := 0
	sh.sizes = sh.sizes[:0]
	for i, out := range msgs {
		if !results[i].Duplicate {
			results[i] = arriving.earlier(i, results)
		}
		if results[i].Duplicate {
			duplicates++
			continue
		}
		out.Message.Sent = now
		delay := out.Delay
		if delay < 0 {
			delay = qs.Machine.Config().Delay
		}
		results[i].ID = out.Message.ID
		results[i].Sequence = sh.Accept(qs, now, queue.Arrival{
			Message: out.Message, Sent: now, Due: now + delay.Milliseconds(), Lane: layout.GroupLane(out.Message.Group),
		})
		arriving.remember(sh, qs, now, i, results[i])
		sh.sizes = append(sh.sizes, out.Message.Size())
	}
	for i := range results {
		results[i].Origin = qs.Record.Origin
	}
	sh.EmitMessages(qs, MessagesDeduplicated, now, duplicates)
	sh.EmitSent(qs, now, sh.sizes)
	return results, nil
}

// noteCommit remembers that the messages up to a sequence are durable with a commit.
func (qs *Queue) noteCommit(sequence uint64, c *journal.Commit) {
	qs.forgetDurable()
	if n := len(qs.unsynced.pending); n > 0 && qs.unsynced.pending[n-1].commit == c {
		qs.unsynced.pending[n-1].sequence = sequence
		return
	}
	qs.unsynced.pending = append(qs.unsynced.pending, pendingAppend{sequence: sequence, commit: c})
}

// forgetDurable forgets the commits that are durable.
func (qs *Queue) forgetDurable() {
	i := 0
	for i < len(qs.unsynced.pending) && qs.unsynced.pending[i].commit.Durable() {
		qs.unsynced.durable = qs.unsynced.pending[i].sequence
		i++
	}
	if qs.unsynced.pending = slices.Delete(qs.unsynced.pending, 0, i); len(qs.unsynced.pending) == 0 && !qs.Emptied {
		qs.unsynced.pending = nil
	}
}

// awaited is the commit that a message becomes durable with; nil if it is.
func (qs *Queue) awaited(sequence uint64) *journal.Commit {
	if sequence <= qs.unsynced.durable { // though what was added behind it may not be
		return nil
	}
	for i := range qs.unsynced.pending {
		if p := &qs.unsynced.pending[i]; p.sequence >= sequence {
			if p.commit.Durable() {
				return nil
			}
			return p.commit
		}
	}
	return nil
}

// Found is what a receive found.
type Found struct {
	queue  *Queue // that they are of; nil without any
	origin uint64 // of its sequence numbers, if it is a FIFO queue
	Leases []queue.Lease
	Commit *journal.Commit // with which the messages become durable
	// leased is the commit of the leases of a standard queue. Only another owner of the state
	// could do without them, and would hand the messages out at once.
	leased *journal.Commit
	Err    error
}

// Receive leases messages of a queue. With a wait it returns as soon as there
// is at least one; when ctx ends first, nothing stays leased. Errors:
// QueueDoesNotExist, OverLimit when the queue has too many messages in flight
// and the receive does not wait.
func (e *Queues) Receive(ctx context.Context, req ReceiveRequest) ([]Received, error) {
	var qs *Queue
	var received []Received
	for range receiveRounds {
		var again bool
		var err error
		if qs, received, again, err = e.receiveOnce(ctx, &req); err != nil {
			return nil, err
		}
		if !again {
			break
		}
		req.Wait = 0
	}
	e.EmitNow(QueueEvent{Queue: qs.ARN, Slot: &qs.slot, Kind: MessagesReceived, At: e.Clock.Now().UnixMilli(), Messages: len(received)})
	return received, nil
}

// receiveOnce is Receive, unless there was nothing but what cannot be read: then
// again says that what comes behind that need not wait for the next receive. qs is
// the queue as it was found.
func (e *Queues) receiveOnce(ctx context.Context, req *ReceiveRequest) (qs *Queue, received []Received, again bool, err error) {
	sh := e.ShardOf(req.Queue)
	var found Found
	var w *waiter
	dependsOn, err := sh.Run(false, func(tx *kernel.Tx) (err error) {
		qs, found, w, err = sh.receiveOrWait(req)
		tx.DependOn(sh.LastCatalogCommit) // if it finds nothing: on the queue's being there, or not
		return err
	})
	if err != nil {
		if qs == nil {
			dependsOn.Wait()
		}
		return nil, nil, false, err
	}
	if w != nil {
		if found = e.waitFor(ctx, sh, w, req.Wait); len(found.Leases) == 0 {
			sh.AwaitCatalog()
		}
	} else if len(found.Leases) == 0 {
		dependsOn.Wait()
	}
	found.Commit.Wait()
	e.Journal.AwaitReplicated(found.leased)
	if err := ctx.Err(); err != nil {
		sh.requeue(found.queue, found.Leases)
		return nil, nil, false, err
	}
	if found.Err != nil {
		return nil, nil, false, found.Err
	}
	received, unreadable, err := e.deliverable(ctx, sh, found, req)
	if err != nil {
		return nil, nil, false, err
	}
	if len(unreadable) > 0 {
		sh.quarantine(found.queue, unreadable)
	}
	return qs, received, len(unreadable) > 0 && len(received) == 0, nil
}

// receiveOrWait runs a receive, and lines it up to wait if it finds nothing and may.
func (sh *Shard) receiveOrWait(req *ReceiveRequest) (qs *Queue, found Found, w *waiter, err error) {
	if qs, err = sh.Lookup(req.Queue); err != nil {
		return nil, found, nil, err
	}
	cfg := qs.Machine.Config()
	if req.Visibility < 0 {
		req.Visibility = cfg.Visibility
	}
	if req.Wait < 0 {
		req.Wait = cfg.Wait
	}
	found = sh.Receive(qs, req.Max, req.Visibility, req.Attempt)
	if errors.Is(found.Err, queue.ErrInFlight) && (req.Wait > 0 || req.Queue.FIFO()) {
		found.Err = nil
	}
	if found.Err != nil {
		return qs, found, nil, ErrInFlight
	}
	if len(found.Leases) == 0 && req.Wait > 0 {
		w = &waiter{queue: qs, max: req.Max, visibility: req.Visibility, attempt: req.Attempt, result: make(chan Found, 1), waiting: req.Waiting}
		qs.waiters.push(w)
	}
	return qs, found, w, nil
}

// receiveRounds bounds how long one receive goes on past expired messages, dead
// letters and what cannot be read. What it leaves is swept, or found by the next.
const receiveRounds = 4

// Receive runs one receive on a queue, under the shard's lock.
func (sh *Shard) Receive(qs *Queue, most int, visibility time.Duration, attempt string) Found {
	fifo := qs.ARN.FIFO() && !qs.Backlog // what it tells of is durable first
	for round := 1; ; round++ {
		now := sh.Now()
		r, err := sh.ask(qs, now, queue.Receive{Max: most, Visibility: visibility.Milliseconds(), Epoch: sh.Meta.Epoch, Attempt: attempt})
		if sh.Batch.Len() > 0 {
			sh.Touch(qs)
			sh.CommitPart(fifo)
			sh.Untouch()
			sh.rearm(qs, now)
		}
		if len(r.Moves) > 0 {
			sh.engine.Hooks.DeadLetters(qs, r.Moves)
		}
		if err != nil {
			return Found{Err: err}
		}
		if len(r.Leases) > 0 {
			if fifo {
				return Found{queue: qs, origin: qs.Record.Origin, Leases: r.Leases, Commit: sh.Log.Last()}
			}
			var newest uint64
			for i := range r.Leases {
				newest = max(newest, r.Leases[i].Sequence)
			}
			return Found{queue: qs, Leases: r.Leases, Commit: qs.awaited(newest), leased: sh.Log.Last()}
		}
		if !sh.Available(qs, now) {
			return Found{}
		}
		if round == receiveRounds {
			sh.timerBy(qs, now+1) // waiting receives are served by the next tick
			sh.Arm()
			return Found{}
		}
	}
}

// rearm makes sure that the queue's next moment is not missed.
func (sh *Shard) rearm(qs *Queue, now int64) {
	sh.timerBy(qs, qs.Machine.NextTimer(now))
	sh.Arm()
}

// serve gives messages to the receives that wait at a queue, in their order.
func (sh *Shard) serve(qs *Queue, now int64) {
	for qs.waiters.first != nil && sh.Available(qs, now) {
		w := qs.waiters.first
		found := sh.Receive(qs, w.max, w.visibility, w.attempt)
		if found.Err != nil || len(found.Leases) == 0 {
			return
		}
		qs.waiters.remove(w)
		w.result <- found
	}
}

// refuse answers every receive that waits at a queue with an error.
func (sh *Shard) refuse(qs *Queue, err error) {
	for w := qs.waiters.first; w != nil; w = qs.waiters.first {
		qs.waiters.remove(w)
		w.result <- Found{Err: err}
	}
}

// waitFor waits for a waiter to be served. A long poll waits in real time.
func (e *Queues) waitFor(ctx context.Context, sh *Shard, w *waiter, wait time.Duration) Found {
	timeout := make(chan struct{})
	timer := clock.System.AfterFunc(wait, func() { close(timeout) })
	defer timer.Stop()
	select {
	case found := <-w.result:
		return found
	case <-timeout:
	case <-e.Draining:
	case <-ctx.Done():
	}
	sh.View(func() {
		w.queue.waiters.remove(w)
		sh.noteEmpty(w.queue)
	})
	select {
	case found := <-w.result:
		return found
	default:
		return Found{Err: ctx.Err()}
	}
}

// unreadable is a leased message whose record cannot be read, and why.
type unreadable struct {
	lease queue.Lease
	err   error
}

// quarantine keeps messages that cannot be read or signed leased until the next start,
// so that they do not block others.
func (sh *Shard) quarantine(qs *Queue, all []unreadable) {
	gone := false
	sh.View(func() {
		if gone = qs.Gone; gone {
			return
		}
		for _, u := range all {
			_, _ = sh.Do(qs, sh.Now(), queue.Quarantine{Lease: u.lease}) // the lease may be over
		}
		sh.Touch(qs)
	})
	for _, u := range all {
		if !gone {
			sh.engine.Logger.Error("a message cannot be read, and is quarantined until the next start",
				"queue", qs.ARN.String(), "sequence", u.lease.Sequence, "error", u.err)
		}
	}
}

// DeleteMessages deletes received messages by their handles. Deleting what is
// deleted succeeds. Per handle: nil or ReceiptHandleIsInvalid.
func (e *Queues) DeleteMessages(ctx context.Context, a arn.ARN, handles []string) ([]error, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	deleted, again := 0, 0
	return e.byHandle(a, len(handles), func(sh *Shard, qs *Queue, i int) error {
		h, ok := e.handles.Open(handles[i], sh.ID, qs.Incarnation)
		if !ok && sh.purged(qs, handles[i]) {
			again++
			return nil
		}
		if !ok {
			return ErrHandle.With(handles[i])
		}
		_, err := sh.Do(qs, sh.Meta.Now, queue.Delete{Handle: h})
		if errors.Is(err, queue.ErrExpired) {
			return ErrHandleExpired.With(handles[i])
		}
		if errors.Is(err, queue.ErrGone) {
			again++
			return nil
		}
		if err == nil {
			deleted++
		}
		return err
	}, func(sh *Shard, qs *Queue) {
		sh.EmitMessages(qs, MessagesDeleted, sh.Meta.Now, deleted)
		sh.EmitMessages(qs, MessagesDeletedAgain, sh.Meta.Now, again)
	})
}

// VisibilityChange hides a received message for a time from now; zero returns it.
type VisibilityChange struct {
	Handle  string
	Timeout time.Duration // 0–12 h
}

// ChangeVisibility changes when received messages can be received again. Per
// change: nil, ReceiptHandleIsInvalid, MessageNotInflight for a message on its
// way to another queue, OverLimit, or InvalidParameter with SQS's text.
func (e *Queues) ChangeVisibility(ctx context.Context, a arn.ARN, changes []VisibilityChange) ([]error, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	changed := 0
	return e.byHandle(a, len(changes), func(sh *Shard, qs *Queue, i int) error {
		c := changes[i]
		h, ok := e.handles.Open(c.Handle, sh.ID, qs.Incarnation)
		if !ok && sh.purged(qs, c.Handle) {
			return ErrMessageGone.With(c.Handle)
		}
		if !ok {
			return ErrHandle.With(c.Handle)
		}
		_, err := sh.Do(qs, sh.Meta.Now, queue.ChangeVisibility{Handle: h, Timeout: c.Timeout.Milliseconds()})
		switch {
		case errors.Is(err, queue.ErrGone):
			return ErrMessageGone.With(c.Handle)
		case errors.Is(err, queue.ErrExpired):
			return ErrHandleExpired.With(c.Handle)
		case errors.Is(err, queue.ErrNotLeased):
			return ErrNotInFlight
		case errors.Is(err, queue.ErrVisibility):
			return ErrVisibility.With(int64(c.Timeout / time.Second))
		case errors.Is(err, queue.ErrInFlight):
			return ErrInFlightAgain
		case err == nil:
			changed++
		}
		return err
	}, func(sh *Shard, qs *Queue) {
		sh.EmitMessages(qs, MessagesChanged, sh.Meta.Now, changed)
	})
}

// byHandle runs a command for each of n receipt handles, and then tell, under the shard's
// lock. Of a standard queue they may become durable up to 10 ms later.
func (e *Queues) byHandle(a arn.ARN, n int, f func(sh *Shard, qs *Queue, i int) error, tell func(sh *Shard, qs *Queue)) ([]error, error) {
	sh := e.ShardOf(a)
	var errs []error
	var catalog *journal.Commit
	fifo := a.FIFO()
	lazy, err := sh.Run(fifo, func(tx *kernel.Tx) error {
		qs, err := sh.Lookup(a)
		if err != nil {
			return err
		}
		catalog = sh.LastCatalogCommit
		if fifo { // that nothing changes may depend on another command
			tx.DependOn(sh.Log.Last())
		}
		sh.Now()
		errs = make([]error, n)
		for i := range errs {
			errs[i] = f(sh, qs, i)
		}
		tell(sh, qs)
		return nil
	})
	catalog.Wait()
	if fifo || err != nil {
		lazy.Wait()
		return errs, err
	}
	e.Journal.AwaitUnlessQuick(lazy)
	return errs, nil
}
