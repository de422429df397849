// Package coalesce combines the publishes to a topic that wait for its shard into one command.
package coalesce

import (
	"runtime"
	"sync"

	"godwit.dev/godwit/internal/arn"
)

// Call is a publish that may be coalesced with others. T is the input of its command, and its
// result.
type Call[T any] struct {
	Topic        arn.ARN
	Publications int
	Bytes        int // of the records of all its publications, for one subscription
	Of           T

	lead chan []*Call[T] // gets the calls to publish, this one first; nil: another caller has published it
}

// Coalescer queues the publishers of a shard's topics (flat combining): the publisher at the
// head also publishes the calls to the same topic that wait behind it. So one command locks the
// shards of a busy topic's queues, finds its subscriptions and writes the queues' counters once
// for many messages. A single publisher does not wait, and a command takes no more than fits
// into about one commit.
type Coalescer[T any] struct {
	// Bounds of one command.
	Bounds Bounds
	// Publish runs calls to one topic as one command, and returns the topic's reach: how many
	// subscriptions a publication goes to.
	Publish func(all []*Call[T]) (reach int)

	mu      sync.Mutex // guards what follows
	busy    bool       // a publisher runs a command
	waiting []*Call[T]
	reach   map[arn.ARN]*int // how many deliveries the latest publication of a topic had
}

// Bounds limit one command: publications, deliveries to subscriptions, and bytes of records in
// all deliveries together.
type Bounds struct{ Publications, Deliveries, Bytes int }

// maxReachKnown bounds the topics whose reach is cached.
const maxReachKnown = 64

// Run publishes c, and possibly waiting calls with it, or waits until another caller has
// published it.
func (l *Coalescer[T]) Run(c *Call[T]) {
	all := l.join(c)
	if all == nil {
		return
	}
	reach := l.Publish(all)
	for _, q := range all[1:] {
		q.lead <- nil
	}
	l.leave(c.Topic, reach)
}

// join waits until c is at the head, and returns the calls to publish, c first; nil if another
// caller has published c.
func (l *Coalescer[T]) join(c *Call[T]) []*Call[T] {
	l.mu.Lock()
	if l.busy {
		c.lead = make(chan []*Call[T], 1)
		l.waiting = append(l.waiting, c)
		l.mu.Unlock()
		return <-c.lead
	}
	l.busy = true
	l.mu.Unlock()
	// Requests that have arrived already are coalesced, too.
	runtime.Gosched()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.coalesce(c)
}

// leave notes the reach of a topic and wakes the publisher that has waited longest.
func (l *Coalescer[T]) leave(topic arn.ARN, reach int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.reach[topic]; known != nil {
		*known = reach // assigning to the map would retain this request's name
	} else {
		if l.reach == nil || len(l.reach) == maxReachKnown {
			l.reach = map[arn.ARN]*int{}
		}
		first := reach // so that only this one escapes to the heap
		l.reach[topic.Own()] = &first
	}
	if len(l.waiting) == 0 {
		l.busy, l.waiting = false, nil
		return
	}
	next := l.waiting[0]
	l.waiting[0] = nil
	l.waiting = l.waiting[1:]
	next.lead <- l.coalesce(next)
}

// Waiting is how many calls wait.
func (l *Coalescer[T]) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// coalesce dequeues the calls whose publications fit into c's command, in their order.
func (l *Coalescer[T]) coalesce(c *Call[T]) []*Call[T] {
	all := []*Call[T]{c}
	reach := l.reach[c.Topic]
	if reach == nil || c.Topic.FIFO() {
		return all
	}
	left := l.Bounds
	left.take(c.Publications, c.Bytes, *reach)
	others := l.waiting[:0]
	for _, q := range l.waiting {
		if q.Topic == c.Topic && left.take(q.Publications, q.Bytes, *reach) {
			all = append(all, q)
		} else {
			others = append(others, q)
		}
	}
	clear(l.waiting[len(others):])
	l.waiting = others
	return all
}

// take subtracts a call from the bounds, and reports whether it fits. After the first that does
// not fit, none does.
func (b *Bounds) take(publications, bytes, reach int) bool {
	b.Publications -= publications
	b.Deliveries -= publications * reach
	b.Bytes -= bytes * reach
	if b.Publications >= 0 && b.Deliveries >= 0 && b.Bytes >= 0 {
		return true
	}
	*b = Bounds{Publications: -1}
	return false
}
