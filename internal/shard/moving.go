package shard

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
)

// moveStep bounds the messages that a task carries at once. While they are on
// their way they count in the source and cannot be received.
const moveStep = 32

// workOn has a task carried on in the background, once.
func (sh *transferShard) workOn(t *moveTask) {
	if t.working {
		return
	}
	t.stop()
	t.working = true
	sh.engine.goBackground(func() { sh.engine.carry(sh, t) })
}

// workAt has a task carried on at a moment.
func (sh *transferShard) workAt(t *moveTask, at int64) {
	t.stop()
	wait := max(time.UnixMilli(at).Sub(sh.engine.clock.Now()), 0)
	var timer clock.Timer
	timer = sh.engine.clock.AfterFunc(wait, func() {
		sh.view(func() {
			if t.timer == timer {
				t.timer = nil
			}
			if !sh.closed && sh.activeMove(t.source) == t {
				sh.workOn(t)
			}
		})
	})
	t.timer = timer
}

// carry moves what a task may move now, step by step. Between two steps
// cancellations, deletions and the end of the process are heeded.
func (e *transferEngine) carry(sh *transferShard, t *moveTask) {
	for {
		qs, leases := sh.nextStep(t)
		if len(leases) == 0 {
			return
		}
		var last *journal.Commit
		for i, l := range leases {
			g, err := e.moveOne(sh, t, qs, l)
			if err == nil {
				last = g
				continue
			}
			if !errors.Is(err, errNotLeased) {
				g.Wait() // the refusal may rest on it
				sh.refused(t, qs, leases[i:], err)
				break
			}
		}
		last.Wait()
	}
}

// nextStep takes the messages of a task's next step out of what can be
// received. Without any, the task is over or waits for a moment.
func (sh *transferShard) nextStep(t *moveTask) (qs *queueState, leases []queue.Lease) {
	sh.view(func() {
		qs, leases = sh.leaseStep(t)
		t.working = len(leases) > 0
	})
	return qs, leases
}

func (sh *transferShard) leaseStep(t *moveTask) (qs *queueState, leases []queue.Lease) {
	select {
	case <-sh.engine.stopping:
		return nil, nil
	default:
	}
	qs, ok := sh.queues[t.source]
	if !ok || sh.activeMove(t.source) != t {
		return nil, nil
	}
	now := sh.now()
	if t.Status == MoveCancelling {
		sh.finishMove(t, MoveCancelled, "")
		return nil, nil
	}
	if sh.engine.injected(t.source) != nil {
		sh.retryMove(t, now)
		return nil, nil
	}
	if t.tries > 0 && t.timer != nil {
		return nil, nil // it waits for better times
	}
	left := int(min(t.ToMove-t.Moved, moveStep))
	if left <= 0 {
		sh.finishMove(t, MoveCompleted, "")
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
		sh.retryMove(t, now)
	case len(leases) == 0:
		sh.finishMove(t, MoveCompleted, "")
	}
	return qs, leases
}

// leaseForMove takes up to n messages for a task.
func (sh *transferShard) leaseForMove(qs *queueState, now int64, n int) ([]queue.Lease, error) {
	for {
		r, err := sh.do(qs, now, queue.Receive{Max: n, Epoch: sh.meta.Epoch, Task: true})
		sh.commit(false)
		if err != nil || len(r.Leases) > 0 || !sh.available(qs, now) {
			return r.Leases, err
		}
	}
}

// moveOne carries one message to its destination, where it is a new message:
// with an id and a time of its own and without a history.
func (e *transferEngine) moveOne(sh *transferShard, t *moveTask, qs *queueState, l queue.Lease) (*journal.Commit, error) {
	keys := layout.NewKeys(sh.id, qs.incarnation)
	record, ok, err := e.readRecord(keys.Record(l.Lane, l.Sequence))
	if err != nil {
		e.fatal(err)
		return nil, err
	}
	if !ok {
		return nil, errNotLeased
	}
	m, err := message.DecodeRecord(record)
	if err != nil {
		return nil, err
	}
	dest := t.destination
	switch {
	case !dest.IsZero():
	case m.Source == "" && len(m.Origin) > 0:
		return e.deliverAnew(sh, t, qs, l, m.Origin)
	default:
		if dest, err = arn.Parse(m.Source); err != nil {
			return nil, errNoMoveSource
		}
	}
	// Drawn from what is moved, so that the same move gives the same id however
	// often it is begun.
	name := fmt.Appendf(nil, "%s %d %d %x", t.source, qs.incarnation, l.Sequence, m.ID)
	m.ID = message.ID(uuid.NewSHA1(uuid.NameSpaceOID, name))
	m.Source, m.Receives, m.FirstReceived, m.Moved, m.Origin = "", 0, 0, 0, nil
	g, err := e.transfer(sh, qs, l, dest, nil, func(now int64, cfg queue.Config) (queue.Arrival, error) {
		m.Sent = now
		return arrivalOf(m, now, cfg), nil
	})
	sh.moved(t, err)
	if err == nil {
		e.tell(QueueEvent{Queue: dest, Kind: MessagesMovedIn, At: m.Sent, Messages: 1})
	}
	return g, err
}

// moved ends the waiting of a task whose message has arrived.
func (sh *transferShard) moved(t *moveTask, err error) {
	if err == nil {
		sh.view(func() { t.tries = 0 })
	}
}

// deliverAnew carries a dead letter of a subscription back into its backlog, to
// be sent to the endpoint as if it had just been published: its lifetime and its
// retries begin anew. AWS's move tasks cannot do this.
func (e *transferEngine) deliverAnew(sh *transferShard, t *moveTask, qs *queueState, l queue.Lease, origin []byte) (*journal.Commit, error) {
	m, err := message.DecodeRecord(origin)
	if err != nil {
		return nil, err
	}
	if m.Notice == nil {
		return nil, message.ErrCorrupt
	}
	sub, err := arn.Parse(m.Notice.Subscription)
	if err != nil {
		return nil, errNoMoveSource
	}
	g, err := e.transfer(sh, qs, l, sub, nil, func(now int64, cfg queue.Config) (queue.Arrival, error) {
		m.Sent = now
		return arrivalOf(m, now, cfg), nil
	})
	sh.moved(t, err)
	return g, err
}

// refused gives back the messages of a step that the destination did not take,
// and lets the task fail or try again later.
func (sh *transferShard) refused(t *moveTask, qs *queueState, leases []queue.Lease, refusal error) {
	_, _ = sh.run(true, func(*Tx) error {
		sh.stepRefused(t, qs, leases, refusal)
		return nil
	})
}

func (sh *transferShard) stepRefused(t *moveTask, qs *queueState, leases []queue.Lease, refusal error) {
	now := sh.now()
	if !qs.gone {
		for _, l := range leases {
			// One that is gone needs no return.
			_, _ = sh.do(qs, now, queue.Return{Lease: l, Due: now})
		}
		sh.touch(qs)
	}
	if sh.activeMove(t.source) == t {
		if reason := moveRefused(refusal); reason != "" {
			sh.finishMove(t, MoveFailed, reason)
		} else if t.Status == MoveRunning {
			sh.retryMove(t, now)
		}
		sh.engine.logger.Warn("a move task is held up or has failed",
			"queue", t.source.String(), "status", string(t.Status), "reason", refusal.Error())
	}
}

// retryMove has a task tried again after a while.
func (sh *transferShard) retryMove(t *moveTask, now int64) {
	at := now + t.retryIn()
	t.tries++
	sh.workAt(t, at)
}

func (sh *transferShard) finishMove(t *moveTask, status MoveStatus, reason string) {
	t.stop()
	t.Status, t.Reason = status, reason
	sh.writeMove(t)
	sh.commit(true)
}

// resumeMoves goes on with the tasks that were running when the process before
// ended. What was on its way and has not arrived is in the source again.
func (sh *transferShard) resumeMoves() {
	for _, qs := range sh.queues {
		if qs.machine.Moving() == 0 {
			continue
		}
		now := sh.now()
		for _, l := range qs.machine.Leases() {
			if l.Task {
				_, _ = sh.do(qs, now, queue.Return{Lease: l, Due: now})
				sh.touch(qs)
			}
		}
		sh.commitMuch()
	}
	sh.commit(false)
	for a := range sh.moves {
		if t := sh.activeMove(a); t != nil {
			sh.workOn(t)
		}
	}
}
