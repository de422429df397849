// Package live has current operational data: the last attempt of each subscription, the rates
// of sends, publishes and deliveries, and counts of everything. It is in memory, bounded, and
// empty when the process starts.
package live

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/monitor"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/inspect"
)

// Bounds of the data.
const (
	maxSubscriptions = 20_000 // with a known last attempt
	maxTopics        = 20_000 // with counts of publishes
	maxQueues        = 20_000 // with rates
	// MaxHoldings bounds the queues and backlogs in a snapshot; those with most messages are
	// kept.
	MaxHoldings = 20_000
)

// Ages of snapshots: a new one is made if the last is older than fresh; rates are over the
// time since the oldest one not older than window.
const (
	fresh  = 2 * time.Second
	window = 12 * time.Second
)

// Options are the dependencies of a Live.
type Options struct {
	// Census counts everything; (*inspect.Inspector).Census implements it.
	Census func(ctx context.Context, limit int) (*inspect.Census, error)
	// Queues has the counters of queues; *monitor.Queues implements it.
	Queues interface {
		EachActive(limit int, f func(queue arn.ARN, now monitor.Totals))
	}
	// Clock is the machine's clock, also if the server's is virtual: rates are in real time.
	Clock clock.Clock
}

// Live has current operational data. It implements deliver.Events.
type Live struct {
	options Options

	published, attempts, delivered, failed atomic.Int64

	mu       sync.Mutex // no other lock is taken while it is held
	last     *simplelru.LRU[arn.ARN, *attempt]
	ofTopics *simplelru.LRU[arn.ARN, *int64] // publishes

	looking sync.Mutex // held while a snapshot is made
	past    []*Snapshot
}

// LastAttempt is the last known attempt of a subscription.
type LastAttempt struct {
	shard.Attempt

	MessageID string
	Number    int // of the delivery's attempts, from 1
}

// attempt is a LastAttempt in memory; each delivery writes one.
type attempt struct {
	shard.Attempt
	message message.ID
	number  int
}

// New makes an empty Live.
func New(o Options) *Live {
	last, err := simplelru.NewLRU[arn.ARN, *attempt](maxSubscriptions, nil)
	if err != nil {
		panic(err) // the size is positive
	}
	topics, err := simplelru.NewLRU[arn.ARN, *int64](maxTopics, nil)
	if err != nil {
		panic(err)
	}
	return &Live{options: o, last: last, ofTopics: topics}
}

// Delivery implements deliver.Events.
func (l *Live) Delivery(e *deliver.Event) {
	switch e.State {
	case shard.DeliveryDelivered:
		l.delivered.Add(1)
	default:
		if e.GaveUp {
			l.failed.Add(1)
		}
	}
	if !e.Made {
		return
	}
	l.attempts.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	kept, ok := l.last.Peek(e.Subscription)
	switch {
	case !ok:
		kept = &attempt{}
		l.last.Add(e.Subscription, kept)
	case kept.At.After(e.Attempt.At):
		return // attempts may be reported out of order
	default:
		l.last.Get(e.Subscription)
	}
	*kept = attempt{Attempt: e.Attempt, message: e.MessageID, number: e.Number}
}

// Published implements deliver.Events.
func (l *Live) Published(p *shard.Published) {
	l.delivered.Add(int64(p.Delivered))
	if p.Later {
		return
	}
	l.published.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	n, ok := l.ofTopics.Get(p.Topic)
	if !ok {
		n = new(int64)
		l.ofTopics.Add(p.Topic, n)
	}
	*n++
}

// Last is the last attempt of a subscription; ok is false if none is known.
func (l *Live) Last(subscription arn.ARN) (a LastAttempt, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept, ok := l.last.Peek(subscription)
	if !ok {
		return a, false
	}
	return LastAttempt{Attempt: kept.Attempt, MessageID: kept.message.String(), Number: kept.number}, true
}

// Failing are the subscriptions whose last attempt failed, latest attempt first, at most
// limit.
func (l *Live) Failing(limit int) (names []arn.ARN) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.last.Keys()
	for i := len(all) - 1; i >= 0 && len(names) < limit; i-- {
		if a, ok := l.last.Peek(all[i]); ok && a.Outcome != "success" {
			names = append(names, all[i])
		}
	}
	return names
}

// Snapshot is the data of a moment. It is immutable.
type Snapshot struct {
	*inspect.Census

	At time.Time // by the machine's clock

	published, attempts, delivered, failed int64
	queues                                 map[arn.ARN]monitor.Totals
	topics                                 map[arn.ARN]int64
	before                                 *Snapshot // the base of rates; nil: there is none
}

// Now returns a snapshot that is at most two seconds old.
func (l *Live) Now(ctx context.Context) (*Snapshot, error) {
	l.looking.Lock()
	defer l.looking.Unlock()
	now := l.options.Clock.Now()
	if n := len(l.past); n > 0 && now.Sub(l.past[n-1].At) < fresh {
		return l.past[n-1], nil
	}
	census, err := l.options.Census(ctx, MaxHoldings)
	if err != nil {
		return nil, err
	}
	s := &Snapshot{
		Census: census, At: now, queues: map[arn.ARN]monitor.Totals{}, topics: map[arn.ARN]int64{},
		published: l.published.Load(), attempts: l.attempts.Load(), delivered: l.delivered.Load(), failed: l.failed.Load(),
	}
	l.options.Queues.EachActive(maxQueues, func(queue arn.ARN, now monitor.Totals) { s.queues[queue] = now })
	l.mu.Lock()
	for _, t := range l.ofTopics.Keys() {
		if n, ok := l.ofTopics.Peek(t); ok {
			s.topics[t] = *n
		}
	}
	l.mu.Unlock()
	for len(l.past) > 0 && now.Sub(l.past[0].At) > window {
		l.past = l.past[1:]
	}
	if len(l.past) > 0 {
		before := *l.past[0]
		before.before, before.Census = nil, nil // otherwise all earlier snapshots would stay in memory
		s.before = &before
	}
	l.past = append(l.past, s)
	return s, nil
}

// Rates are of the whole server, per second.
type Rates struct {
	Published, Sent, Received, Deleted, Attempts, Delivered, Failed float64
}

// QueueRates are of one queue, per second.
type QueueRates struct{ Sent, Received, Deleted float64 }

// seconds is the duration that rates are over; ok is false without an earlier snapshot.
func (s *Snapshot) seconds() (n float64, ok bool) {
	if s.before == nil {
		return 0, false
	}
	n = s.At.Sub(s.before.At).Seconds()
	return n, n > 0
}

// Rates are the rates of the whole server; ok is false while they are not known.
func (s *Snapshot) Rates() (r Rates, ok bool) {
	n, ok := s.seconds()
	if !ok {
		return r, false
	}
	b := s.before
	r.Published, r.Attempts = float64(s.published-b.published)/n, float64(s.attempts-b.attempts)/n
	r.Delivered, r.Failed = float64(s.delivered-b.delivered)/n, float64(s.failed-b.failed)/n
	for name := range s.queues {
		q, _ := s.Queue(name)
		r.Sent += q.Sent
		r.Received += q.Received
		r.Deleted += q.Deleted
	}
	return r, true
}

// Queue are the rates of a queue; ok is false while they are not known.
func (s *Snapshot) Queue(name arn.ARN) (r QueueRates, ok bool) {
	n, ok := s.seconds()
	if !ok {
		return r, false
	}
	now, was := s.queues[name], s.before.queues[name]
	rate := func(now, was int64) float64 { return float64(max(now-was, 0)) / n } // less: the queue was deleted and created again
	return QueueRates{rate(now.Sent, was.Sent), rate(now.Received, was.Received), rate(now.Deleted, was.Deleted)}, true
}

// Topic is the rate of publishes to a topic per second; ok is false while it is not known.
func (s *Snapshot) Topic(name arn.ARN) (rate float64, ok bool) {
	n, ok := s.seconds()
	if !ok {
		return 0, false
	}
	return float64(max(s.topics[name]-s.before.topics[name], 0)) / n, true
}
