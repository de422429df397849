package alarms

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"godwit.dev/godwit/internal/alarm"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/monitor/metrics"
	"godwit.dev/godwit/internal/shard/kernel"
)

// Executor executes an action.
type Executor interface {
	// Execute executes an action, and runs end in the commit with which that is durable: a crash
	// repeats nothing. With an error it has done neither. The errors Unavailable, Throttled and
	// InsufficientStorage are temporary, others are permanent.
	Execute(ctx context.Context, a Action, end *kernel.Joined) error
}

// Action is an action that is due.
type Action struct {
	ARN     string // of the target: a topic or a function
	Source  string // the ARN of the alarm
	Account string // the alarm's
	Subject string // of a notification
	Message string // a notification, or an event
}

// pending is the persisted form of a due action.
type pending struct {
	ID    ID
	Since time.Time  // when the state was entered
	Of    alarm.Kind `json:",omitempty"` // the alarm's; empty: alarm.Metric
	Action
}

// queueID identifies a queue of actions.
type queueID struct {
	ID            // of the alarm
	target string // the ARN of the target
}

func (p *pending) actionQueue() queueID { return queueID{p.ID, p.ARN} }

// actionQueue has the due actions of an alarm for one target, of which the later ones wait for
// the first. Queues do not wait for each other.
type actionQueue struct {
	queueID
	keys [][]byte // keys of the actions in the store, the oldest first
}

// actionQueues are the queues with actions, each either in ready or in later. Memory has only
// the keys of actions.
type actionQueues struct {
	all   map[queueID]*actionQueue
	sizes map[metrics.Scope]int // number of actions
	ready []*actionQueue        // to be executed, the first one now
	later []*actionQueue        // to be retried from the next minute on
}

func newActionQueues() actionQueues {
	return actionQueues{all: map[queueID]*actionQueue{}, sizes: map[metrics.Scope]int{}}
}

func (ls *actionQueues) add(id queueID, key []byte) {
	l := ls.all[id]
	if l == nil {
		l = &actionQueue{queueID: id}
		ls.all[id] = l
		ls.ready = append(ls.ready, l)
	}
	l.keys = append(l.keys, key)
	ls.sizes[id.scope()]++
}

// retry makes the postponed queues ready.
func (ls *actionQueues) retry() { ls.ready, ls.later = append(ls.ready, ls.later...), nil }

// shorten removes the oldest action from a queue.
func (ls *actionQueues) shorten(l *actionQueue) {
	l.keys = l.keys[1:]
	scope := l.scope()
	if ls.sizes[scope]--; ls.sizes[scope] == 0 {
		delete(ls.sizes, scope)
	}
	if len(l.keys) > 0 {
		if len(ls.ready) > 0 && ls.ready[0] == l {
			ls.ready = append(ls.ready[1:], l) // round robin
		}
		return
	}
	delete(ls.all, l.queueID)
	for _, list := range []*[]*actionQueue{&ls.ready, &ls.later} {
		if i := slices.Index(*list, l); i >= 0 {
			*list = slices.Delete(*list, i, i+1)
		}
	}
}

// longest is the queue of a scope with the most actions; of several, the one with the oldest
// action. There must be one.
func (ls *actionQueues) longest(scope metrics.Scope) (longest *actionQueue) {
	for _, l := range ls.all {
		if l.scope() != scope {
			continue
		}
		if longest == nil || cmp.Or(cmp.Compare(len(longest.keys), len(l.keys)), bytes.Compare(l.keys[0], longest.keys[0])) < 0 {
			longest = l
		}
	}
	return longest
}

// Execute executes the due actions. A queue whose oldest action cannot be executed now waits
// for the next Tick.
func (e *Engine) Execute(ctx context.Context) error {
	e.executing.Lock()
	defer e.executing.Unlock()
	for {
		l, key := e.first()
		if l == nil {
			return e.giveUp()
		}
		p, err := e.pending(key)
		if errors.Is(err, errUnreadable) { // it must not block others
			e.kernel.Logger.Error("an alarm's action is left out", "alarm", l.Name, "reason", err.Error())
			e.end(l, nil, "")
			continue
		}
		if err != nil {
			return err
		}
		e.shard.AwaitReads() // the reported state must not be lost
		done := &kernel.Joined{Shard: e.shard, Run: func() { e.finish(l, &p, "") }}
		if err := e.options.Executor.Execute(ctx, p.Action, done); err != nil {
			if ctx.Err() != nil {
				return nil // it is still due
			}
			switch fault.KindOf(err) {
			case fault.Unavailable, fault.Throttled, fault.InsufficientStorage:
				e.putOff(l)
				continue
			default:
			}
			e.kernel.Logger.Warn("an alarm's action failed", "alarm", p.ID.Name, "action", p.ARN, "reason", err.Error())
			e.end(l, &p, err.Error())
		}
	}
}

// first is the first ready queue, and the key of its oldest action; nil: there is none.
func (e *Engine) first() (l *actionQueue, key []byte) {
	e.shard.View(func() {
		if len(e.actionQueues.ready) > 0 {
			l = e.actionQueues.ready[0]
			key = l.keys[0]
		}
	})
	return l, key
}

// pending reads an action. It fails with errUnreadable if that is permanent.
func (e *Engine) pending(key []byte) (p pending, err error) {
	value, ok, err := e.reader.Get(nil, key)
	if err != nil {
		return p, fmt.Errorf("reading an alarm's action: %w", err)
	}
	if !ok {
		return p, errUnreadable
	}
	if err := decode(value, &p); err != nil {
		return p, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	return p, nil
}

var errUnreadable = errors.New("it cannot be read")

// putOff postpones the first ready queue.
func (e *Engine) putOff(l *actionQueue) {
	e.shard.RunLazy(func() {
		e.actionQueues.ready = e.actionQueues.ready[1:]
		e.actionQueues.later = append(e.actionQueues.later, l)
	})
}

// end removes the oldest action of a queue, which was not executed.
func (e *Engine) end(l *actionQueue, p *pending, failure string) {
	_, _ = e.shard.Run(journal.Eager, func(*kernel.Tx) error {
		e.finish(l, p, failure)
		return nil
	})
}

// finish removes the oldest action of a queue from the store, and notes it in the history unless
// it is nil, which means unreadable. The caller has the shard's lock.
func (e *Engine) finish(l *actionQueue, p *pending, failure string) {
	c := e.begin()
	c.batch.Delete(l.keys[0])
	if p != nil {
		a := alarm.Alarm{Account: p.ID.Account, Region: p.ID.Region, Name: p.ID.Name}
		item := a.Acted(p.ARN, failure, p.Message, p.Since, c.now)
		item.Of = p.Of
		c.note(p.ID, item)
	}
	c.apply()
	e.actionQueues.shorten(l)
}

// giveUp drops waiting actions of scopes that have more than MaxWaiting.
func (e *Engine) giveUp() error {
	for {
		l, key := e.excess()
		if l == nil {
			return nil
		}
		p, err := e.pending(key)
		known := &p
		if errors.Is(err, errUnreadable) {
			known, err = nil, nil
		}
		if err != nil {
			return err
		}
		e.kernel.Logger.Warn("an alarm's action is given up: too many wait", "alarm", l.Name, "action", l.target)
		e.end(l, known, "It could not be executed, and too many actions wait.")
	}
}

// excess is the longest queue of a scope with too many actions, and the key of its oldest one;
// nil: there is none.
func (e *Engine) excess() (l *actionQueue, key []byte) {
	e.shard.View(func() {
		for scope, n := range e.actionQueues.sizes {
			if n > e.options.MaxWaiting {
				l = e.actionQueues.longest(scope)
				key = l.keys[0]
				return
			}
		}
	})
	return l, key
}
