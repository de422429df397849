package consume

import (
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/sorted"
)

// moments are when backlogs must be updated even if nothing happens until then. One timer serves all: with
// one each, those of many rate-limited backlogs that are due together would each begin a goroutine, of which
// all but one wait for the lock.
type moments struct {
	heap  sorted.Heap[*backlogState]
	timer clock.Timer // of the first one; nil: there is none
	at    time.Time   // when it is due
	set   int         // counts the timers: one that has fired and waits for the lock may be void
	busy  bool        // those that are due are being updated
}

// momentsAtOnce bounds the backlogs that are updated before others get the lock.
const momentsAtOnce = 256

// Before orders backlogs by their moments.
func (b *backlogState) Before(o *backlogState) bool { return b.moment.Before(o.moment) }

// Place is the position of a backlog in the moments.
func (b *backlogState) Place() *int32 { return &b.place }

// setMoment has b updated at a time, in place of any other; zero: at none.
func (c *Consumer) setMoment(b *backlogState, at time.Time) {
	m := &c.moments
	if b.moment.Equal(at) {
		return
	}
	if !b.moment.IsZero() {
		m.heap.Remove(b)
	}
	if b.moment = at; !at.IsZero() {
		m.heap.Push(b)
	}
	c.setTimer()
}

// setTimer sets the timer to the first moment.
func (c *Consumer) setTimer() {
	m := &c.moments
	if m.busy {
		return
	}
	var at time.Time
	if len(m.heap) > 0 {
		at = m.heap[0].moment
	}
	if m.timer != nil {
		if m.at.Equal(at) {
			return
		}
		m.timer.Stop()
		m.timer = nil
	}
	m.set++
	if m.at = at; at.IsZero() {
		return
	}
	set := m.set
	m.timer = c.clock.AfterFunc(clock.Until(c.clock, at), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if m.set == set {
			m.timer = nil
			c.updateDue()
		}
	})
}

// updateDue updates backlogs whose moments have come.
func (c *Consumer) updateDue() {
	m := &c.moments
	now := c.clock.Now()
	m.busy = true
	for range momentsAtOnce {
		if len(m.heap) == 0 || m.heap[0].moment.After(now) {
			break
		}
		b := m.heap[0]
		m.heap.Remove(b)
		b.moment = time.Time{}
		c.update(b)
	}
	m.busy = false
	c.setTimer()
}
