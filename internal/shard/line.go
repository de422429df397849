package shard

import (
	"runtime"
	"sync"

	"godwit.dev/godwit/internal/arn"
)

// publisher is a call of Publish.
type publisher struct {
	topic        arn.ARN
	publications []Publication

	results []SendResult
	told    []*Published // events, to be told once the group is durable
	durable *group
	err     error

	turn chan []*publisher // see line
}

// line is where the publishers of a shard's topics wait for each other. Who has
// the turn publishes for those of the same topic that wait behind it, in one
// command, so that a busy topic locks its queues' shards, looks for its
// subscriptions and writes its queues' counters once for many messages, which
// then stand side by side. Who comes alone waits for nobody.
type line struct {
	shard *shard

	mu      sync.Mutex // guards what follows
	busy    bool       // somebody has the turn
	waiting []*publisher
}

// companyMost bounds how many publish in one turn, so that nobody waits for more
// than a few commits.
const companyMost = 64

// run publishes for p, and perhaps for others, or has another do it.
func (l *line) run(p *publisher) {
	all := l.join(p)
	if all == nil {
		return
	}
	l.shard.publish(all)
	for _, q := range all[1:] {
		q.turn <- nil
	}
	l.leave()
}

// join waits for p's turn and returns all whom it is to publish for, p first;
// nil if another has published for p.
func (l *line) join(p *publisher) []*publisher {
	l.mu.Lock()
	if l.busy {
		p.turn = make(chan []*publisher, 1)
		l.waiting = append(l.waiting, p)
		l.mu.Unlock()
		return <-p.turn
	}
	l.busy = true
	l.mu.Unlock()
	// Whose request has arrived already may come along.
	runtime.Gosched()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.company(p)
}

// leave gives the turn to whoever has waited longest.
func (l *line) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.busy = false
		return
	}
	next := l.waiting[0]
	l.waiting = l.waiting[1:]
	next.turn <- l.company(next)
}

// company takes those from the line who can come along with p, in their order.
func (l *line) company(p *publisher) []*publisher {
	all := []*publisher{p}
	if p.topic.FIFO() {
		return all
	}
	others := l.waiting[:0]
	for _, q := range l.waiting {
		if q.topic == p.topic && len(all) < companyMost {
			all = append(all, q)
		} else {
			others = append(others, q)
		}
	}
	clear(l.waiting[len(others):])
	l.waiting = others
	return all
}
