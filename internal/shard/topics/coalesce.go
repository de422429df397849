package topics

import (
	"runtime"
	"sync"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/shard/queues"
)

// Publisher is a call of Publish.
type Publisher struct {
	Topic        arn.ARN
	Publications []Publication

	results []queues.SendResult
	events  []*Published // to be told of once the commit is durable
	durable *journal.Commit
	err     error

	Turn chan []*Publisher // see PublishCoalescer
}

// PublishCoalescer is where the publishers of a shard's topics wait for each other. Who has
// the turn publishes for those of the same topic that wait behind it, in one
// command, so that a busy topic locks its queues' shards, looks for its
// subscriptions and writes its queues' counters once for many messages, which
// then stand side by side. A single publisher does not wait, and none waits for more
// than fits into about one commit.
type PublishCoalescer struct {
	shard *Shard

	Mu      sync.Mutex // guards what follows
	Busy    bool       // a publisher makes a command
	Waiting []*Publisher
	Reach   map[arn.ARN]*int // the deliveries of a publication of late, by topic
}

// Bounds of a turn for several: publications, and topics whose reach is known.
const (
	MaxCoalesced  = 64
	MaxReachKnown = 64
)

// run publishes for p, and perhaps for others, or has another do it.
func (l *PublishCoalescer) run(p *Publisher) {
	all := l.join(p)
	if all == nil {
		return
	}
	reach := l.shard.publish(all)
	for _, q := range all[1:] {
		q.Turn <- nil
	}
	l.Leave(p.Topic, reach)
}

// join waits for p's turn and returns all whom it is to publish for, p first;
// nil if another has published for p.
func (l *PublishCoalescer) join(p *Publisher) []*Publisher {
	l.Mu.Lock()
	if l.Busy {
		p.Turn = make(chan []*Publisher, 1)
		l.Waiting = append(l.Waiting, p)
		l.Mu.Unlock()
		return <-p.Turn
	}
	l.Busy = true
	l.Mu.Unlock()
	// Whose request has arrived already may come along.
	runtime.Gosched()
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.coalesce(p)
}

// Leave notes the reach of a topic and hands over to the publisher that has waited longest.
func (l *PublishCoalescer) Leave(topic arn.ARN, reach int) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if known := l.Reach[topic]; known != nil {
		*known = reach // an assignment to the map would keep this request's name
	} else {
		if l.Reach == nil || len(l.Reach) == MaxReachKnown {
			l.Reach = map[arn.ARN]*int{}
		}
		first := reach // so that only this is on the heap
		l.Reach[topic.Own()] = &first
	}
	if len(l.Waiting) == 0 {
		l.Busy, l.Waiting = false, nil
		return
	}
	next := l.Waiting[0]
	l.Waiting[0] = nil
	l.Waiting = l.Waiting[1:]
	next.Turn <- l.coalesce(next)
}

// coalesce dequeues those whose publications fit into p's command, in their order.
func (l *PublishCoalescer) coalesce(p *Publisher) []*Publisher {
	all := []*Publisher{p}
	reach := l.Reach[p.Topic]
	if reach == nil || p.Topic.FIFO() {
		return all
	}
	room := budget{publications: MaxCoalesced, deliveries: FanoutStep, bytes: FanoutBytes}
	room.take(p, *reach)
	others := l.Waiting[:0]
	for _, q := range l.Waiting {
		if q.Topic == p.Topic && room.take(q, *reach) {
			all = append(all, q)
		} else {
			others = append(others, q)
		}
	}
	clear(l.Waiting[len(others):])
	l.Waiting = others
	return all
}

// budget is what may still come along.
type budget struct{ publications, deliveries, bytes int }

// take makes a publisher come along. Once one could not, no other can.
func (t *budget) take(p *Publisher, reach int) bool {
	t.publications -= len(p.Publications)
	t.deliveries -= len(p.Publications) * reach
	for i := range p.Publications {
		t.bytes -= p.Publications[i].size() * reach
	}
	if t.publications >= 0 && t.deliveries >= 0 && t.bytes >= 0 {
		return true
	}
	*t = budget{publications: -1}
	return false
}
