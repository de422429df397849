package shard_test

import (
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// ledger is what the clients of an engine were told. A message is known by
// where it was first queued and its body, wherever it is moved afterwards.
type ledger struct {
	mu sync.Mutex
	promises
}

type promises struct {
	begun     map[string]struct{}  // sends that were called
	sent      map[string]struct{}  // and answered
	published map[string]bool      // by body: whether it was answered
	ordered   map[string]bool      // the same of the FIFO topic
	deleting  map[string]struct{}  // deletes that were called
	deleted   map[string]time.Time // and when they were answered
	filled    map[string][]string  // by queue: what was sent since it was emptied
	emptied   []emptying           // in the order of the calls
	answers   int
}

// emptying is a purge or deletion of a queue that held some messages.
type emptying struct {
	ids      []string
	answered bool
}

func newLedger() *ledger {
	return &ledger{promises: promises{
		begun: map[string]struct{}{}, sent: map[string]struct{}{}, published: map[string]bool{}, ordered: map[string]bool{},
		deleting: map[string]struct{}{}, deleted: map[string]time.Time{}, filled: map[string][]string{},
	}}
}

// note changes the ledger and returns the number of answers in it.
func (l *ledger) note(f func(p *promises)) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(&l.promises)
	return l.answers
}

// copy is the ledger as it stands.
func (l *ledger) copy() promises {
	l.mu.Lock()
	defer l.mu.Unlock()
	return promises{
		begun: maps.Clone(l.begun), sent: maps.Clone(l.sent), published: maps.Clone(l.published), ordered: maps.Clone(l.ordered),
		deleting: maps.Clone(l.deleting), deleted: maps.Clone(l.deleted),
		emptied: slices.Clone(l.emptied), answers: l.answers,
	}
}

// origin names a message by where it was first queued and its body.
func origin(queueName, body string) string { return queueName + "/" + body }

// lazyBound is how long after its answer a delete may be lost.
const lazyBound = 10 * time.Millisecond

// check holds what a crash left against what was answered before it, and what
// had been called after it. late is by how much the machine was late then.
func (before promises) check(t *testing.T, after promises, crashed time.Time, late time.Duration, found map[string]int) {
	t.Helper()
	for id, n := range found {
		if n > 1 {
			t.Errorf("%s is there %d times", id, n)
		}
		if at, ok := before.deleted[id]; ok && crashed.Sub(at) > lazyBound+late {
			t.Errorf("%s is back, which was deleted %v before the crash", id, crashed.Sub(at))
		}
	}
	emptied := before.checkEmptied(t, after, found)
	for id := range before.sent {
		if _, maybe := after.deleting[id]; !maybe && !emptied[id] && found[id] == 0 {
			t.Errorf("%s was acknowledged and is lost", id)
		}
	}
	known := maps.Clone(after.begun)
	checkFanout(t, before.published, after.published, after.deleting, found, fanQueues, known)
	checkFanout(t, before.ordered, after.ordered, after.deleting, found, orderQueues, known)
	for id := range found {
		if _, ok := known[id]; !ok {
			t.Errorf("%s was never sent", id)
		}
	}
}

// checkEmptied checks that queues are emptied altogether or not at all, and stay so
// once it was answered. It returns the messages that may be gone.
func (before promises) checkEmptied(t *testing.T, after promises, found map[string]int) (emptied map[string]bool) {
	t.Helper()
	emptied = map[string]bool{}
	for i, e := range after.emptied {
		there, gone := remaining(e.ids, found, after.deleting)
		for _, id := range e.ids {
			emptied[id] = true
		}
		if there > 0 && gone > 0 {
			t.Errorf("half of a queue is emptied: %d messages are there and %d not", there, gone)
		}
		if there > 0 && i < len(before.emptied) && before.emptied[i].answered {
			t.Errorf("%d messages are back in a queue that was emptied", there)
		}
	}
	return emptied
}

// remaining counts the messages that are found and those that are gone without a
// delete.
func remaining(ids []string, found map[string]int, deleting map[string]struct{}) (there, gone int) {
	for _, id := range ids {
		_, maybe := deleting[id]
		switch {
		case found[id] > 0:
			there++
		case !maybe:
			gone++
		}
	}
	return there, gone
}

// checkFanout holds what came to the subscribers of a topic against what was
// published, all of which it adds to what is known.
func checkFanout(t *testing.T, before, after map[string]bool, deleting map[string]struct{}, found map[string]int, subscribers []string, known map[string]struct{}) {
	t.Helper()
	for body := range after {
		ids := make([]string, len(subscribers))
		for i, name := range subscribers {
			ids[i] = origin(name, body)
			known[ids[i]] = struct{}{}
		}
		there, gone := remaining(ids, found, deleting)
		if there > 0 && gone > 0 {
			t.Errorf("half a fan-out: %s reached %d subscribers and not %d", body, there, gone)
		}
		if before[body] && gone > 0 {
			t.Errorf("%s was acknowledged and %d subscribers have not got it", body, gone)
		}
	}
}

// lateness measures by how much the machine runs timers late, so that a bound
// in real time can be held on a busy one.
type lateness struct {
	mu    sync.Mutex
	worst []late
	due   time.Time
	timer clock.Timer
	over  bool
}

type late struct {
	at time.Time
	by time.Duration
}

const heartbeat = time.Millisecond

func (l *lateness) beat() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := clock.System.Now()
	if by := now.Sub(l.due); !l.due.IsZero() && by > heartbeat {
		l.worst = append(l.worst, late{at: now, by: by})
	}
	if !l.over {
		l.due = now.Add(heartbeat)
		l.timer = clock.System.AfterFunc(heartbeat, l.beat)
	}
}

func (l *lateness) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.timer.Stop()
}

// before bounds by how much a delete that was answered before t can be late:
// it passes three goroutines, the timer's, the log's and its own.
func (l *lateness) before(t time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var worst time.Duration
	for _, w := range l.worst {
		if w.at.Add(100*time.Millisecond).After(t) && w.at.Add(-w.by).Before(t) {
			worst = max(worst, w.by)
		}
	}
	return 3 * worst
}
