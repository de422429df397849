package e2e_test

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// ledger is what the clients of a server that is killed know: what they were
// promised, what they saw, and what they took away. It finds contradictions.
//
// A round is the life of one process. All calls of a round have returned
// before the next begins.
type ledger struct {
	mu      sync.Mutex
	round   int
	durable []time.Time                  // by round: what was acknowledged before then cannot be undone by the kill
	entries map[string]map[string]*entry // by queue and body
	wrong   []string
	more    int // of wrong, beyond those kept
	total   tally
}

// tally counts what a run did, so that a run that did nothing is seen.
type tally struct{ owed, unsure, received, deleted, undone, moved int }

// entry is one message body in one queue; bodies are unique. A dead letter
// stays an entry of the queue that it comes from.
type entry struct {
	name  string // of queue and body, for people
	owed  bool   // an acknowledged send or publish promises it
	never bool   // a filter keeps it out
	id    string // the SQS message id, once known

	sent time.Time // when the send or publish began
	dead time.Time // when it was seen in the dead-letter queue; zero: not yet

	// The last attempt to delete it. A later round that sees the message again
	// forgets it: that attempt cannot succeed any more.
	tried      bool
	triedRound int
	acked      time.Time // zero: no answer came
}

func newLedger() *ledger {
	return &ledger{entries: map[string]map[string]*entry{}, durable: make([]time.Time, 1)}
}

// mostWrong bounds the contradictions that are kept word by word.
const mostWrong = 20

func (l *ledger) complain(format string, args ...any) {
	if len(l.wrong) == mostWrong {
		l.more++
		return
	}
	l.wrong = append(l.wrong, fmt.Sprintf("round %d: ", l.round)+fmt.Sprintf(format, args...))
}

// note is complain for those who do not hold the lock.
func (l *ledger) note(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.complain(format, args...)
}

func (l *ledger) entry(queue, body string) *entry {
	of := l.entries[queue]
	if of == nil {
		of = map[string]*entry{}
		l.entries[queue] = of
	}
	e := of[body]
	if e == nil {
		e = &entry{name: queue + " " + shorten(body)}
		of[body] = e
	}
	return e
}

// shorten leaves of a body what makes it unique.
func shorten(body string) string { return body[:min(len(body), 24)] }

// sending notes that a queue may get a body from now on; never, that it must not.
func (l *ledger) sending(queue, body string, never bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entry(queue, body)
	e.never, e.sent = never, time.Now()
}

// promised notes that a send or publish was acknowledged, which makes durable all
// that was acknowledged before it began. id is the SQS message id, or empty if the
// answer does not tell it.
func (l *ledger) promised(queue, body, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entry(queue, body)
	e.owed = true
	if until := &l.durable[l.round]; e.sent.After(*until) {
		*until = e.sent
	}
	l.total.owed++
	l.identify(e, id)
}

// identify notes the message id that a body has in its queue: it has but one.
func (l *ledger) identify(e *entry, id string) {
	switch {
	case id == "" || e.id == id:
	case e.id == "":
		e.id = id
	default:
		l.complain("%s is there twice: as %s and as %s", e.name, e.id, id)
	}
}

// received notes a message out of a receive that began at some time. dead says
// that it came out of the queue's dead-letter queue.
func (l *ledger) received(queue string, dead bool, body, id string, began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total.received++
	e := l.entries[queue][body]
	if e == nil {
		l.complain("%s: received what nobody sent: %q (%s)", queue, shorten(body), id)
		return
	}
	if e.never {
		l.complain("%s came through the filter", e.name)
	}
	l.identify(e, id)
	switch {
	case dead && e.dead.IsZero():
		e.dead = time.Now()
		l.total.moved++
	case !dead && !e.dead.IsZero() && began.After(e.dead):
		l.complain("%s (%s) is back after it was in the dead-letter queue", e.name, id)
	}
	l.checkDeleted(e, began)
}

// checkDeleted sees whether a message that was received had been deleted.
func (l *ledger) checkDeleted(e *entry, began time.Time) {
	if !e.tried {
		return
	}
	if e.triedRound == l.round {
		if !e.acked.IsZero() && began.After(e.acked) {
			l.complain("%s (%s) was received %s after its delete was acknowledged", e.name, e.id, began.Sub(e.acked))
		}
		return
	}
	if before := l.durable[e.triedRound].Sub(e.acked); !e.acked.IsZero() && before > 0 {
		l.complain("%s (%s) is back: its delete was acknowledged %s before the last send of round %d that was", e.name, e.id, before, e.triedRound)
	}
	l.total.undone++
	e.tried, e.acked = false, time.Time{}
}

// deleting notes that a delete is about to be asked for.
func (l *ledger) deleting(queue, body string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries[queue][body]; e != nil { // else it was complained about
		e.tried, e.triedRound = true, l.round
	}
}

// deletionTried reports that a delete was asked for in this round.
func (l *ledger) deletionTried(queue, body string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[queue][body]
	return e != nil && e.tried && e.triedRound == l.round
}

// deletingAll is deleting for all that a queue may still hold.
func (l *ledger) deletingAll(queue string) (bodies []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for body, e := range l.entries[queue] {
		if e.acked.IsZero() {
			e.tried, e.triedRound = true, l.round
			bodies = append(bodies, body)
		}
	}
	return bodies
}

// deleted notes that the delete was acknowledged.
func (l *ledger) deleted(queue, body string) {
	at := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries[queue][body]; e != nil {
		e.acked = at
		l.total.deleted++
	}
}

// killed ends a round: the process was killed.
func (l *ledger) killed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.durable = append(l.durable, time.Time{})
	l.round++
}

// close checks what is left when all queues have been emptied: whatever was
// promised has been seen, and deleted by us.
func (l *ledger) close(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, of := range l.entries {
		for _, e := range of {
			switch {
			case e.owed && !e.tried && e.id == "":
				l.complain("%s is lost: acknowledged and never seen", e.name)
			case e.owed && !e.tried:
				l.complain("%s (%s) is lost: it was there, and nobody deleted it since", e.name, e.id)
			case !e.owed && !e.never:
				l.total.unsure++
			}
		}
	}
	for _, text := range l.wrong {
		t.Error(text)
	}
	if l.more > 0 {
		t.Errorf("and %d more", l.more)
	}
	t.Logf("%d kills; %d promised, %d without an answer, %d receives, %d deletes of which %d were undone by a kill in time, %d dead letters",
		l.round, l.total.owed, l.total.unsure, l.total.received, l.total.deleted, l.total.undone, l.total.moved)
}
