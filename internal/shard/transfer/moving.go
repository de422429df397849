package transfer

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues"
)

// moveStep bounds the messages that a task moves in one step. Until they are moved, they are
// in flight in the source.
const moveStep = 32

// workOn continues a task in the background, in one goroutine.
func (sh *Shard) workOn(t *runningTask) {
	if t.Working || t.held && t.Status == MoveRunning {
		return
	}
	t.stop()
	t.Working = true
	sh.module.GoBackground(func() { sh.module.carry(sh, t) })
}

// workAt continues a task at a time.
func (sh *Shard) workAt(t *runningTask, at int64) {
	t.stop()
	wait := max(time.UnixMilli(at).Sub(sh.module.Clock.Now()), 0)
	var timer clock.Timer
	timer = sh.module.Clock.AfterFunc(wait, func() {
		sh.RunLazy(func() {
			if t.timer == timer {
				t.timer = nil
			}
			if !sh.Closed && sh.activeTask(t.From) == t {
				sh.workOn(t)
			}
		})
	})
	t.timer = timer
}

// carry moves the messages that a task may move now, step by step. A cancellation, a deletion
// or the end of the process takes effect between two steps.
func (e *Transfers) carry(sh *Shard, t *runningTask) {
	for {
		qs, leases := sh.nextStep(t)
		if len(leases) == 0 {
			return
		}
		var last *journal.Commit
		for i, l := range leases {
			c, err := e.moveOne(sh, t, qs, l)
			if err == nil {
				last = c
				continue
			}
			if !errors.Is(err, ErrNotLeased) {
				c.Wait() // the refusal may depend on it
				sh.refused(t, qs, leases[i:], err)
				break
			}
		}
		last.Wait()
	}
}

// nextStep leases the messages of a task's next step. If there are none, the task has ended or
// waits for its timer.
func (sh *Shard) nextStep(t *runningTask) (qs *queues.Queue, leases []queue.Lease) {
	sh.RunLazy(func() {
		qs, leases = sh.leaseStep(t)
		t.Working = len(leases) > 0
	})
	return qs, leases
}

func (sh *Shard) leaseStep(t *runningTask) (qs *queues.Queue, leases []queue.Lease) {
	select {
	case <-sh.module.Stopping:
		return nil, nil
	default:
	}
	qs, ok := sh.Queue(t.From)
	if !ok || sh.activeTask(t.From) != t {
		return nil, nil
	}
	now := sh.Now()
	if t.Status == MoveCancelling {
		sh.finishTask(t, MoveCancelled, "")
		return nil, nil
	}
	if sh.module.Injected(t.From) != nil {
		sh.retryTask(t, now)
		return nil, nil
	}
	if t.Tries > 0 && t.timer != nil {
		return nil, nil // it waits for its next try
	}
	left := int(min(t.ToMove-t.Moved, moveStep))
	if left <= 0 {
		sh.finishTask(t, MoveCompleted, "")
		return nil, nil
	}
	n, next := t.due(now, left)
	if n <= 0 {
		sh.workAt(t, next)
		return nil, nil
	}
	leases, err := sh.leaseForMove(qs, now, n)
	switch {
	case err != nil: // too many are in flight
		sh.retryTask(t, now)
	case len(leases) == 0:
		sh.finishTask(t, MoveCompleted, "")
	}
	return qs, leases
}

// leaseForMove leases up to n messages for a task.
func (sh *Shard) leaseForMove(qs *queues.Queue, now int64, n int) ([]queue.Lease, error) {
	for {
		r, err := sh.Do(qs, now, queue.Receive{Max: n, Epoch: sh.Epoch(), Task: true})
		sh.Append(journal.Lazy)
		if err != nil || len(r.Leases) > 0 || !sh.Available(qs, now) {
			return r.Leases, err
		}
	}
}

// moveOne moves one message to its destination, where it is a new message: with a new ID and
// send time, and without a receive count. ErrNotLeased says that there is nothing to move: the
// message was deleted, or is unreadable and stays leased to the task.
func (e *Transfers) moveOne(sh *Shard, t *runningTask, qs *queues.Queue, l queue.Lease) (*journal.Commit, error) {
	keys := layout.NewKeys(sh.ID, qs.Incarnation)
	key := keys.Record(l.Lane, l.Sequence)
	record, ok, err := e.ReadRecord(key)
	if err != nil {
		e.Fatal(err)
		return nil, err
	}
	var m *message.Message
	switch err = e.Lost(key); {
	case ok:
		m, err = message.DecodeRecord(record)
	case err == nil:
		return nil, ErrNotLeased
	}
	if err != nil {
		if t.Picks {
			return nil, err
		}
		// It stays leased: returned, it would be the first of every further step.
		e.Logger.Error("a message cannot be read, and is quarantined until the next start",
			"queue", t.From.String(), "sequence", l.Sequence, "error", err)
		return nil, ErrNotLeased
	}
	dest := t.To
	switch {
	case !dest.IsZero():
	case m.Source == "" && len(m.Origin) > 0:
		return e.redeliver(sh, t, qs, l, m.Origin)
	default:
		if dest, err = arn.Parse(m.Source); err != nil {
			return nil, errNoMoveSource
		}
	}
	if err := e.mayMove(t, dest); err != nil {
		return nil, err
	}
	m.ID = idOfMove(t, qs, l, m)
	m.Source, m.Receives, m.FirstReceived, m.Moved, m.Origin = "", 0, 0, 0, nil
	c, err := e.Move(sh.outgoing(t, qs, l), Incoming{To: dest, Enter: func(now int64, cfg queue.Config) (queue.Arrival, error) {
		m.Sent = now
		return ArrivalOf(m, now, cfg), nil
	}})
	sh.moved(t, err)
	if err == nil {
		e.EmitNow(queues.QueueEvent{Queue: dest, Kind: queues.MessagesMovedIn, At: m.Sent, Messages: 1})
	}
	return c, err
}

// idOfMove is an ID that is derived from a message, so that a repeated move gives the same one.
func idOfMove(t *runningTask, qs *queues.Queue, l queue.Lease, m *message.Message) message.ID {
	name := fmt.Appendf(nil, "%s %d %d %x", t.From, qs.Incarnation, l.Sequence, m.ID)
	return message.ID(uuid.NewSHA1(uuid.NameSpaceOID, name))
}

// mayMove refuses a step that the requester of the task may not take.
func (e *Transfers) mayMove(t *runningTask, to arn.ARN) error {
	if e.MayMove == nil || t.By == nil {
		return nil
	}
	return e.MayMove(t.By, t.From, to)
}

// moved resets the backoff of a task after a message was moved.
func (sh *Shard) moved(t *runningTask, err error) {
	if err == nil {
		sh.RunLazy(func() {
			t.Tries = 0
			sh.EmitEvent(queues.QueueEvent{Queue: t.From, Kind: queues.MessagesChanged, At: sh.Now(), Messages: 1})
		})
	}
}

// redeliver moves a dead letter of a subscription back into its backlog, to be delivered as if
// it had just been published: its retention and its retries start over. AWS's move tasks cannot
// do this.
func (e *Transfers) redeliver(sh *Shard, t *runningTask, qs *queues.Queue, l queue.Lease, origin []byte) (*journal.Commit, error) {
	m, err := message.DecodeRecord(origin)
	if err != nil || m.Notice == nil {
		return nil, errNoMoveSource
	}
	m.Source, m.Receives, m.FirstReceived = "", 0, 0 // these say why and when its delivery failed
	if m.Dedup != "" {
		// Dead letters of different times, which are redriven at once, may have had the same.
		m.Dedup = uuid.UUID(idOfMove(t, qs, l, m)).String()
	}
	sub, err := arn.Parse(m.Notice.Subscription)
	if err != nil {
		return nil, errNoMoveSource
	}
	if err := e.mayMove(t, sub); err != nil {
		return nil, err
	}
	c, err := e.Move(sh.outgoing(t, qs, l), Incoming{To: sub, Enter: func(now int64, cfg queue.Config) (queue.Arrival, error) {
		m.Sent = now
		return ArrivalOf(m, now, cfg), nil
	}})
	sh.moved(t, err)
	return c, err
}

// refused returns the messages of a step that the destination did not accept, and lets the task
// fail or try again later.
func (sh *Shard) refused(t *runningTask, qs *queues.Queue, leases []queue.Lease, refusal error) {
	_, _ = sh.Run(journal.Eager, func(*kernel.Tx) error {
		sh.stepRefused(t, qs, leases, refusal)
		return nil
	})
}

func (sh *Shard) stepRefused(t *runningTask, qs *queues.Queue, leases []queue.Lease, refusal error) {
	now := sh.Now()
	if !qs.Gone {
		for _, l := range leases {
			// Fails if the message was deleted.
			_, _ = sh.Do(qs, now, queue.Return{Lease: l, Due: now})
		}
		sh.Touch(qs)
	}
	if sh.activeTask(t.From) == t {
		if reason := moveRefused(refusal); reason != "" {
			sh.finishTask(t, MoveFailed, reason)
		} else if t.Status == MoveRunning {
			sh.retryTask(t, now)
		}
		sh.Logger.Warn("a move task is held up or has failed",
			"queue", t.From.String(), "status", string(t.Status), "reason", refusal.Error())
	}
}

// retryTask continues a task after its backoff.
func (sh *Shard) retryTask(t *runningTask, now int64) {
	at := now + t.retryIn()
	t.Tries++
	sh.workAt(t, at)
}

func (sh *Shard) finishTask(t *runningTask, status MoveStatus, reason string) {
	t.stop()
	t.Status, t.Reason = status, reason
	sh.writeTask(t)
	sh.Append(journal.Eager)
}

// resumeTasks continues the tasks that were running when the last process ended. It returns
// the messages that were in flight to their source.
func (sh *Shard) resumeTasks() {
	for _, qs := range sh.Loaded() {
		if qs.Machine.Moving() == 0 {
			continue
		}
		now := sh.Now()
		for _, l := range qs.Machine.Leases() {
			if l.Task {
				_, _ = sh.Do(qs, now, queue.Return{Lease: l, Due: now})
				sh.Touch(qs)
			}
		}
		sh.AppendIfLarge()
	}
	sh.Append(journal.Lazy)
	var earlier []*runningTask
	for a := range sh.tasks {
		if t := sh.activeTask(a); t != nil {
			t.held = sh.module.Begin != nil
			earlier = append(earlier, t)
			sh.workOn(t)
		}
	}
	if sh.module.Begin == nil || len(earlier) == 0 {
		return
	}
	goOn := func() {
		sh.RunLazy(func() {
			for _, t := range earlier {
				t.held = false
				if !sh.Closed && sh.activeTask(t.From) == t {
					sh.workOn(t)
				}
			}
		})
	}
	sh.module.Begin(func() { sh.module.GoBackground(goOn) }) // which may be at once, under the lock of the shard
}
