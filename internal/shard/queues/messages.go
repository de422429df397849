package queues

import (
	"context"
	"errors"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/shard/kernel"
)

// Send adds messages to a queue, all of them or none, and returns once they are durable. It
// returns a result for each, also for duplicates, which add nothing. Errors:
// QueueDoesNotExist; InsufficientStorage; Throttled if the account's storage quota is used
// up; those of injected faults; ctx's.
func (q *Queues) Send(ctx context.Context, a arn.ARN, msgs []SendEntry) ([]SendResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if q.Full() {
		return nil, kernel.ErrFull
	}
	size := 0
	for i := range msgs {
		size += msgs[i].Message.Size()
	}
	if err := q.Accounts.CheckStorage(a.Account, size); err != nil {
		return nil, err
	}
	sh := q.ShardOf(a)
	var results []SendResult
	err := sh.RunDurable(func(tx *kernel.Tx) (err error) {
		tx.DependOn(sh.Stream.Last()) // the originals of duplicates must be durable, too
		results, err = sh.send(a, msgs)
		return err
	})
	return results, err
}

func (sh *Shard) send(a arn.ARN, msgs []SendEntry) ([]SendResult, error) {
	qs, err := sh.Lookup(a)
	if err != nil {
		return nil, err
	}
	results := make([]SendResult, len(msgs))
	now := sh.Now()
	arriving := sh.originals(qs, now, msgs, results)
	duplicates := 0
	sh.sizes = sh.sizes[:0]
	for i, entry := range msgs {
		if !results[i].Duplicate {
			results[i] = arriving.earlier(i, results)
		}
		if results[i].Duplicate {
			duplicates++
			continue
		}
		entry.Message.Sent = now
		delay := entry.Delay
		if delay < 0 {
			delay = qs.Machine.Config().Delay
		}
		results[i].ID = entry.Message.ID
		results[i].Sequence = sh.Accept(qs, now, queue.Arrival{
			Message: entry.Message, Sent: now, Due: now + delay.Milliseconds(), Lane: layout.GroupLane(entry.Message.Group),
		})
		arriving.accepted(i, results[i])
		sh.sizes = append(sh.sizes, entry.Message.Size())
	}
	arriving.remember(sh, qs, now)
	for i := range results {
		results[i].Origin = qs.Record.Origin
	}
	sh.EmitMessages(qs, MessagesDeduplicated, now, duplicates)
	sh.EmitSent(qs, now, sh.sizes)
	return results, nil
}

// Found is what a receive has leased.
type Found struct {
	queue   *Queue // of the messages; nil: there are none
	origin  uint64 // of the sequence numbers of a FIFO queue
	Leases  []queue.Lease
	attempt string          // the receive's ReceiveRequestAttemptId
	Commit  *journal.Commit // makes the messages durable; it is awaited
	// leased is the commit of the leases of a standard queue. It is awaited only in a
	// cluster, where another owner without the leases would deliver the messages again.
	leased *journal.Commit
	Err    error
}

// Receive leases messages of a queue. With a wait it is a long poll, and returns as soon as
// there is at least one; if ctx ends first, nothing stays leased. Errors: QueueDoesNotExist;
// OverLimit if the queue has too many messages in flight and the receive does not wait; those
// of injected faults; ctx's.
func (q *Queues) Receive(ctx context.Context, req ReceiveRequest) ([]Received, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var qs *Queue
	var received []Received
	for range receiveRounds {
		var again bool
		var err error
		if qs, received, again, err = q.receiveOnce(ctx, &req); err != nil {
			return nil, err
		}
		if !again {
			break
		}
		req.Wait = 0
	}
	q.EmitNow(QueueEvent{Queue: qs.ARN, Slot: &qs.slot, Kind: MessagesReceived, At: q.Clock.Now().UnixMilli(), Messages: len(received)})
	return received, nil
}

// receiveOnce is one round of Receive. again says that it has found only unreadable messages,
// which are quarantined now, so that another round may find others. qs is the queue.
func (q *Queues) receiveOnce(ctx context.Context, req *ReceiveRequest) (qs *Queue, received []Received, again bool, err error) {
	sh := q.ShardOf(req.Queue)
	var found Found
	var w *waiter
	dependsOn, err := sh.Run(journal.Lazy, func(tx *kernel.Tx) (err error) {
		qs, found, w, err = sh.receiveOrWait(req)
		tx.DependOn(sh.LastCatalogCommit) // an answer without messages still depends on the queue's existence
		return err
	})
	if err != nil {
		if qs == nil {
			dependsOn.Wait()
		}
		return nil, nil, false, err
	}
	if w != nil {
		if found = q.waitFor(ctx, sh, w, req.Wait); len(found.Leases) == 0 {
			sh.AwaitCatalog()
		}
	} else if len(found.Leases) == 0 {
		dependsOn.Wait()
	}
	found.Commit.Wait()
	q.Journal.AwaitReplicated(found.leased)
	if err := ctx.Err(); err != nil {
		sh.requeue(&found, found.Leases)
		return nil, nil, false, err
	}
	if found.Err != nil {
		return nil, nil, false, found.Err
	}
	received, unreadable, err := q.readLeased(ctx, sh, found, req)
	if err != nil {
		return nil, nil, false, err
	}
	if len(unreadable) > 0 {
		sh.quarantine(found.queue, unreadable)
	}
	return qs, received, len(unreadable) > 0 && len(received) == 0, nil
}

// receiveOrWait runs a receive. If that finds nothing and may wait, it enqueues a waiter.
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

// receiveRounds bounds the rounds of a receive that finds only expired messages, dead letters or
// unreadable messages. The others are left to sweeps and later receives.
const receiveRounds = 4

// Receive runs one receive on a queue, under the shard's lock.
func (sh *Shard) Receive(qs *Queue, limit int, visibility time.Duration, attempt string) Found {
	fifo := qs.ARN.FIFO() && !qs.Backlog // then leases must be durable before the answer, as they block groups
	for round := 1; ; round++ {
		now := sh.Now()
		r, err := sh.doUntouched(qs, now, queue.Receive{Max: limit, Visibility: visibility.Milliseconds(), Epoch: sh.Epoch(), Attempt: attempt})
		if sh.Batch.Len() > 0 {
			sh.Touch(qs)
			sh.AppendPartial(journal.EagerIf(fifo))
			sh.ClearDirty()
			sh.rearm(qs, now)
		}
		if len(r.Moves) > 0 {
			sh.module.Hooks.DeadLetters(qs, r.Moves)
		}
		if err != nil {
			return Found{Err: err}
		}
		if len(r.Leases) > 0 {
			if fifo {
				return Found{
					queue: qs, origin: qs.Record.Origin, Leases: r.Leases, attempt: attempt, Commit: sh.Stream.Last(),
				}
			}
			var newest uint64
			for i := range r.Leases {
				newest = max(newest, r.Leases[i].Sequence)
			}
			return Found{queue: qs, Leases: r.Leases, Commit: qs.commitOf(newest), leased: sh.Stream.Last()}
		}
		if !sh.Available(qs, now) {
			return Found{}
		}
		if round == receiveRounds {
			sh.timerBy(qs, now+1) // the next tick serves waiting receives
			sh.Arm()
			return Found{}
		}
	}
}

// rearm sets the queue's timer after a change without AfterCommit.
func (sh *Shard) rearm(qs *Queue, now int64) {
	sh.timerBy(qs, qs.Machine.NextTimer(now))
	sh.Arm()
}

// serve leases messages to the waiting receives of a queue, first come, first served.
func (sh *Shard) serve(qs *Queue, now int64) {
	for qs.waiters.first != nil && sh.Available(qs, now) {
		w := qs.waiters.first
		found := sh.Receive(qs, w.max, w.visibility, w.attempt)
		if found.Err != nil || len(found.Leases) == 0 {
			return
		}
		sh.answer(qs, w, found)
		sh.serveAgain(qs, w.attempt)
	}
}

// serveAgain gives what a waiting receive with an attempt's id has got to those that repeat it. It
// may have lost its client: then they would wait for what is leased to nobody.
func (sh *Shard) serveAgain(qs *Queue, attempt string) {
	for w := qs.waiters.next(attempt); w != nil; w = qs.waiters.next(attempt) {
		found := sh.Receive(qs, w.max, w.visibility, attempt)
		if found.Err != nil || len(found.Leases) == 0 {
			return
		}
		sh.answer(qs, w, found)
	}
}

// answer gives a waiting receive what it has waited for.
func (sh *Shard) answer(qs *Queue, w *waiter, found Found) {
	qs.waiters.remove(w)
	found.Commit.Then(func() { w.result <- found }) // and not now, to wait for the commit
}

// failWaiters fails all waiting receives of a queue.
func (sh *Shard) failWaiters(qs *Queue, err error) {
	for w := qs.waiters.first; w != nil; w = qs.waiters.first {
		qs.waiters.remove(w)
		w.result <- Found{Err: err}
	}
}

// waitFor waits until a waiter is served, or its wait or ctx ends. A long poll waits in real
// time, even with a virtual clock, as the client's SDK does.
func (q *Queues) waitFor(ctx context.Context, sh *Shard, w *waiter, wait time.Duration) Found {
	timeout := make(chan struct{})
	timer := clock.System.AfterFunc(wait, func() { close(timeout) })
	defer timer.Stop()
	select {
	case found := <-w.result:
		return found
	case <-timeout:
	case <-q.Draining:
	case <-ctx.Done():
	}
	served := false
	sh.RunLazy(func() {
		served = !w.listed
		w.queue.waiters.remove(w)
		sh.noteEmpty(w.queue)
	})
	if served {
		return <-w.result
	}
	return Found{Err: ctx.Err()}
}

// DeleteMessages deletes received messages by their receipt handles. It is idempotent. Errors:
// QueueDoesNotExist, ctx's; per handle nil or ReceiptHandleIsInvalid.
func (q *Queues) DeleteMessages(ctx context.Context, a arn.ARN, handles []string) ([]error, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	deleted, again := 0, 0
	return q.byHandle(a, len(handles), func(sh *Shard, qs *Queue, i int) error {
		h, ok := q.handles.Open(handles[i], sh.ID, qs.Incarnation)
		if !ok && sh.purged(qs, handles[i]) {
			again++
			return nil
		}
		if !ok {
			return ErrHandle.With(handles[i])
		}
		_, err := sh.Do(qs, sh.Now(), queue.Delete{Handle: h})
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
		sh.EmitMessages(qs, MessagesDeleted, sh.Now(), deleted)
		sh.EmitMessages(qs, MessagesDeletedAgain, sh.Now(), again)
	})
}

// VisibilityChange sets the visibility timeout of a received message, counted from now; zero
// makes it visible.
type VisibilityChange struct {
	Handle  string
	Timeout time.Duration // 0–12 h
}

// ChangeVisibility sets the visibility timeouts of received messages. Errors:
// QueueDoesNotExist, ctx's; per change nil, ReceiptHandleIsInvalid, MessageNotInflight for a
// message under transfer, OverLimit if too many are in flight, or InvalidParameter for more
// than 12 h in all or a message that was deleted.
func (q *Queues) ChangeVisibility(ctx context.Context, a arn.ARN, changes []VisibilityChange) ([]error, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	changed := 0
	return q.byHandle(a, len(changes), func(sh *Shard, qs *Queue, i int) error {
		c := changes[i]
		h, ok := q.handles.Open(c.Handle, sh.ID, qs.Incarnation)
		if !ok && sh.purged(qs, c.Handle) {
			return ErrMessageGone.With(c.Handle)
		}
		if !ok {
			return ErrHandle.With(c.Handle)
		}
		_, err := sh.Do(qs, sh.Now(), queue.ChangeVisibility{Handle: h, Timeout: c.Timeout.Milliseconds()})
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
		sh.EmitMessages(qs, MessagesChanged, sh.Now(), changed)
	})
}

// ReleaseMessages makes received messages visible at once, and does not count that they were received:
// for a consumer that has not looked at them. A handle whose lease has ended is passed over.
// Errors: QueueDoesNotExist, ctx's.
func (q *Queues) ReleaseMessages(ctx context.Context, a arn.ARN, handles []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := q.byHandle(a, len(handles), func(sh *Shard, qs *Queue, i int) error {
		h, ok := q.handles.Open(handles[i], sh.ID, qs.Incarnation)
		if !ok {
			return nil
		}
		l, leased := qs.Machine.Leased(h.Sequence)
		if !leased || l.Moving || l.Lane != h.Lane || l.Receives != h.Receives || l.Epoch != h.Epoch {
			return nil
		}
		_, err := sh.Do(qs, sh.Now(), queue.Return{Lease: l, Due: sh.Now(), Uncounted: true})
		return err
	}, func(*Shard, *Queue) {})
	return err
}

// byHandle runs f for each of n receipt handles, and then emit, in one command. For a FIFO queue
// it returns once that is durable. For a standard queue that may be up to 10 ms later: if a
// delete or visibility timeout is lost in a crash, the message is only received once more.
func (q *Queues) byHandle(a arn.ARN, n int, f func(sh *Shard, qs *Queue, i int) error, emit func(sh *Shard, qs *Queue)) ([]error, error) {
	sh := q.ShardOf(a)
	var errs []error
	var catalog *journal.Commit
	fifo := a.FIFO()
	dependsOn, err := sh.Run(journal.EagerIf(fifo), func(tx *kernel.Tx) error {
		qs, err := sh.Lookup(a)
		if err != nil {
			return err
		}
		catalog = sh.LastCatalogCommit
		if fifo { // the state that it finds must be durable, too
			tx.DependOn(sh.Stream.Last())
		}
		sh.Now()
		errs = make([]error, n)
		for i := range errs {
			errs[i] = f(sh, qs, i)
		}
		emit(sh, qs)
		return nil
	})
	catalog.Wait()
	if fifo || err != nil {
		dependsOn.Wait()
		return errs, err
	}
	q.Journal.AwaitIfSlow(dependsOn)
	return errs, nil
}
