package queues

import "time"

// waiter is a receive that waits for a message.
type waiter struct {
	queue      *Queue // at which it waits; a purge puts another in its place
	next, prev *waiter
	listed     bool // until it is served or gives up
	max        int
	visibility time.Duration
	attempt    string
	result     chan Found    // capacity 1; takes what it is served with once that is durable
	waiting    func(is bool) // called when it enters and leaves the list; may be nil
}

// waiterList is the queue of receives that wait for messages.
type waiterList struct {
	first, last *waiter
	attempts    map[string]int // how many of them have an attempt's id; nil until one has
}

func (l *waiterList) push(w *waiter) {
	w.listed, w.prev = true, l.last
	if l.last == nil {
		l.first = w
	} else {
		l.last.next = w
	}
	l.last = w
	if w.attempt != "" {
		if l.attempts == nil {
			l.attempts = map[string]int{}
		}
		l.attempts[w.attempt]++
	}
	if w.waiting != nil {
		w.waiting(true)
	}
}

func (l *waiterList) remove(w *waiter) {
	if !w.listed {
		return
	}
	if w.prev == nil {
		l.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.next, w.prev, w.listed = nil, nil, false
	if n := l.attempts[w.attempt]; n > 1 {
		l.attempts[w.attempt] = n - 1
	} else {
		delete(l.attempts, w.attempt)
	}
	if w.waiting != nil {
		w.waiting(false)
	}
}

// next is the first of the receives with an attempt's id, which are tries of one: nil if there is
// none, as for nearly every receive, so that it costs nothing where thousands wait, or the id is empty.
func (l *waiterList) next(attempt string) *waiter {
	if l.attempts[attempt] == 0 {
		return nil
	}
	w := l.first
	for w != nil && w.attempt != attempt {
		w = w.next
	}
	return w
}
