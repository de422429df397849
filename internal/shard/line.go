package shard

import (
	"runtime"
	"sync"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/journal"
)

// publisher is a call of Publish.
type publisher struct {
	topic        arn.ARN
	publications []Publication

	results []SendResult
	events  []*Published // to be told of once the commit is durable
	durable *journal.Commit
	err     error

	turn chan []*publisher // see line
}

// line is where the publishers of a shard's topics wait for each other. Who has
// the turn publishes for those of the same topic that wait behind it, in one
// command, so that a busy topic locks its queues' shards, looks for its
// subscriptions and writes its queues' counters once for many messages, which
// then stand side by side. Who comes alone waits for nobody, and nobody for more
// than fits into about one commit.
type line struct {
	shard *topicShard

	mu      sync.Mutex // guards what follows
	busy    bool       // somebody has the turn
	waiting []*publisher
	reach   map[arn.ARN]*int // the deliveries of a publication of late, by topic
}

// Bounds of a turn for several: publications, and topics whose reach is known.
const (
	companyMost = 64
	reachMost   = 64
)

// run publishes for p, and perhaps for others, or has another do it.
func (l *line) run(p *publisher) {
	all := l.join(p)
	if all == nil {
		return
	}
	reach := l.shard.publish(all)
	for _, q := range all[1:] {
		q.turn <- nil
	}
	l.leave(p.topic, reach)
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

// leave notes the reach of a topic and gives the turn to whoever has waited longest.
func (l *line) leave(topic arn.ARN, reach int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.reach[topic]; known != nil {
		*known = reach // an assignment to the map would keep this request's name
	} else {
		if l.reach == nil || len(l.reach) == reachMost {
			l.reach = map[arn.ARN]*int{}
		}
		first := reach // so that only this is on the heap
		l.reach[topic.Own()] = &first
	}
	if len(l.waiting) == 0 {
		l.busy, l.waiting = false, nil
		return
	}
	next := l.waiting[0]
	l.waiting[0] = nil
	l.waiting = l.waiting[1:]
	next.turn <- l.company(next)
}

// company takes those from the line who can come along with p, in their order.
func (l *line) company(p *publisher) []*publisher {
	all := []*publisher{p}
	reach := l.reach[p.topic]
	if reach == nil || p.topic.FIFO() {
		return all
	}
	room := turn{publications: companyMost, deliveries: fanoutStep, bytes: fanoutBytes}
	room.take(p, *reach)
	others := l.waiting[:0]
	for _, q := range l.waiting {
		if q.topic == p.topic && room.take(q, *reach) {
			all = append(all, q)
		} else {
			others = append(others, q)
		}
	}
	clear(l.waiting[len(others):])
	l.waiting = others
	return all
}

// turn is what may still come along.
type turn struct{ publications, deliveries, bytes int }

// take makes a publisher come along. Once one could not, no other can.
func (t *turn) take(p *publisher, reach int) bool {
	t.publications -= len(p.publications)
	t.deliveries -= len(p.publications) * reach
	for i := range p.publications {
		t.bytes -= p.publications[i].size() * reach
	}
	if t.publications >= 0 && t.deliveries >= 0 && t.bytes >= 0 {
		return true
	}
	*t = turn{publications: -1}
	return false
}
