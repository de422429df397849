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
	"godwit.dev/godwit/internal/monitor/metrics"
	"godwit.dev/godwit/internal/shard/kernel"
)

// Executor executes an action.
type Executor interface {
	// Execute does what an action says, durably. The errors Unavailable, Throttled
	// and InsufficientStorage say that it may be done later, others that it never
	// will.
	Execute(ctx context.Context, a Action) error
}

// Action is an action that is due.
type Action struct {
	ARN     string // of what is notified: a topic or a function
	Source  string // the ARN of the alarm
	Account string // whose alarm it is
	Subject string // of a notification
	Message string // a notification's, or an event
}

// pending is an action that is due, as the store has it.
type pending struct {
	ID    ID
	Since time.Time // of the state
	Action
}

// queueID names a queue.
type queueID struct {
	ID            // of the alarm
	target string // what it notifies
}

func (p *pending) actionQueue() queueID { return queueID{p.ID, p.ARN} }

// actionQueue holds the actions by which an alarm notifies one target, of which the later ones
// wait for the first. Lines do not wait for each other.
type actionQueue struct {
	queueID
	keys [][]byte // in the store, of the actions, the oldest first
}

// actionQueues are those with actions, each of them in ready or in later. Of an action
// that waits memory keeps the key.
type actionQueues struct {
	all   map[queueID]*actionQueue
	sizes map[metrics.Owner]int // actions
	ready []*actionQueue        // to be executed, the first one now
	later []*actionQueue        // to be tried again from the next minute on
}

func newActionQueues() actionQueues {
	return actionQueues{all: map[queueID]*actionQueue{}, sizes: map[metrics.Owner]int{}}
}

func (ls *actionQueues) add(id queueID, key []byte) {
	l := ls.all[id]
	if l == nil {
		l = &actionQueue{queueID: id}
		ls.all[id] = l
		ls.ready = append(ls.ready, l)
	}
	l.keys = append(l.keys, key)
	ls.sizes[id.owner()]++
}

// retry makes the queues ready that were put off.
func (ls *actionQueues) retry() { ls.ready, ls.later = append(ls.ready, ls.later...), nil }

// shorten takes the oldest action off a queue.
func (ls *actionQueues) shorten(l *actionQueue) {
	l.keys = l.keys[1:]
	o := l.owner()
	if ls.sizes[o]--; ls.sizes[o] == 0 {
		delete(ls.sizes, o)
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

// longest is the queue of an owner with the most actions; of several, that with the
// oldest one. There is one.
func (ls *actionQueues) longest(o metrics.Owner) (longest *actionQueue) {
	for _, l := range ls.all {
		if l.owner() != o {
			continue
		}
		if longest == nil || cmp.Or(cmp.Compare(len(longest.keys), len(l.keys)), bytes.Compare(l.keys[0], longest.keys[0])) < 0 {
			longest = l
		}
	}
	return longest
}

// Execute executes the actions that are due. A queue whose oldest cannot be executed
// now waits for the next Tick.
func (e *Engine) Execute(ctx context.Context) error {
	e.executing.Lock()
	defer e.executing.Unlock()
	for {
		l, key := e.first()
		if l == nil {
			return e.giveUp()
		}
		p, err := e.pending(key)
		if errors.Is(err, errUnreadable) { // it must hold up no other
			e.kernel.Logger.Error("an alarm's action is left out", "alarm", l.Name, "reason", err.Error())
			e.end(l, nil, "")
			continue
		}
		if err != nil {
			return err
		}
		e.shard.Log.Sync() // what was reported is not taken back
		failure := ""
		if err := e.options.Executor.Execute(ctx, p.Action); err != nil {
			if ctx.Err() != nil {
				return nil // it is due still
			}
			switch fault.KindOf(err) {
			case fault.Unavailable, fault.Throttled, fault.InsufficientStorage:
				e.putOff(l)
				continue
			default:
			}
			failure = err.Error()
			e.kernel.Logger.Warn("an alarm's action failed", "alarm", p.ID.Name, "action", p.ARN, "reason", failure)
		}
		e.end(l, &p, failure)
	}
}

// first is the first queue that is ready, and the key of its oldest action; nil:
// there is none.
func (e *Engine) first() (l *actionQueue, key []byte) {
	e.shard.View(func() {
		if len(e.actionQueues.ready) > 0 {
			l = e.actionQueues.ready[0]
			key = l.keys[0]
		}
	})
	return l, key
}

// pending reads an action. It fails with errUnreadable if that will not change.
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

// putOff has the first queue that is ready wait.
func (e *Engine) putOff(l *actionQueue) {
	e.shard.View(func() {
		e.actionQueues.ready = e.actionQueues.ready[1:]
		e.actionQueues.later = append(e.actionQueues.later, l)
	})
}

// end takes the oldest action of a queue off the store and notes it in the history,
// but for nil, one that cannot be read.
func (e *Engine) end(l *actionQueue, p *pending, failure string) {
	_, _ = e.shard.Run(true, func(*kernel.Tx) error {
		c := e.begin()
		c.batch.Delete(l.keys[0])
		if p != nil {
			a := alarm.Alarm{Account: p.ID.Account, Region: p.ID.Region, Name: p.ID.Name}
			c.note(p.ID, a.Acted(p.ARN, failure, p.Message, p.Since, c.now))
		}
		c.apply()
		e.actionQueues.shorten(l)
		return nil
	})
}

// giveUp ends actions that wait where an owner has more than may.
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

// excess is the longest queue of an owner that has too many actions, and the key of
// its oldest; nil: no owner has.
func (e *Engine) excess() (l *actionQueue, key []byte) {
	e.shard.View(func() {
		for o, n := range e.actionQueues.sizes {
			if n > e.options.MaxWaiting {
				l = e.actionQueues.longest(o)
				key = l.keys[0]
				return
			}
		}
	})
	return l, key
}
