// Package live knows what happens now: how the last attempt at each subscription went, how
// much is sent, published and delivered in a second, and how much there is of everything.
// It is in memory, bounded, and starts empty with the process.
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

// Bounds of what is kept.
const (
	maxSubscriptions = 20_000 // of which the last attempt is known
	maxTopics        = 20_000 // of which publishes are counted
	maxQueues        = 20_000 // of which rates are known
	// MaxHoldings is how many queues and backlogs, those with most messages, a snapshot has.
	MaxHoldings = 20_000
)

// Age of snapshots: a new one is made when the last is older than fresh, and rates are over
// the time since the oldest that is not older than window.
const (
	fresh  = 2 * time.Second
	window = 12 * time.Second
)

// Options are what a Live looks at.
type Options struct {
	// Census counts everything: (*inspect.Inspector).Census.
	Census func(ctx context.Context, most int) (*inspect.Census, error)
	// Queues knows what happened to queues: *monitor.Queues.
	Queues interface {
		EachActive(most int, f func(queue arn.ARN, now monitor.Totals))
	}
	// Clock is the machine's, also where the server's is virtual: rates are for people.
	Clock clock.Clock
}

// Live knows what happens now. It implements deliver.Events.
type Live struct {
	options Options

	published, attempts, delivered, failed atomic.Int64

	mu       sync.Mutex // a leaf
	last     *simplelru.LRU[arn.ARN, *attempt]
	ofTopics *simplelru.LRU[arn.ARN, *int64] // publishes

	looking sync.Mutex // held while a snapshot is made
	past    []*Snapshot
}

// LastAttempt is the last attempt at a subscription of which somebody knows.
type LastAttempt struct {
	shard.Attempt

	MessageID string
	Number    int // of the delivery's attempts, from 1
}

// attempt is a LastAttempt as it is kept: each delivery writes one.
type attempt struct {
	shard.Attempt
	message message.ID
	number  int
}

// New makes a Live that has seen nothing.
func New(o Options) *Live {
	last, err := simplelru.NewLRU[arn.ARN, *attempt](maxSubscriptions, nil)
	if err != nil {
		panic(err) // it has a size
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
		return // attempts are reported as they end, not in their order
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

// Last is the last attempt at a subscription; ok is false if none is known.
func (l *Live) Last(subscription arn.ARN) (a LastAttempt, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept, ok := l.last.Peek(subscription)
	if !ok {
		return a, false
	}
	return LastAttempt{Attempt: kept.Attempt, MessageID: kept.message.String(), Number: kept.number}, true
}

// Failing are the subscriptions whose last attempt failed, those that were attempted last
// first, up to most.
func (l *Live) Failing(most int) (names []arn.ARN) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.last.Keys()
	for i := len(all) - 1; i >= 0 && len(names) < most; i-- {
		if a, ok := l.last.Peek(all[i]); ok && a.Outcome != "success" {
			names = append(names, all[i])
		}
	}
	return names
}

// Snapshot is how everything stands at a moment. It does not change.
type Snapshot struct {
	*inspect.Census

	At time.Time // by the machine's clock

	published, attempts, delivered, failed int64
	queues                                 map[arn.ARN]monitor.Totals
	topics                                 map[arn.ARN]int64
	before                                 *Snapshot // that rates are since; nil: there is none
}

// Now gives a snapshot that is at most two seconds old.
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
		before.before, before.Census = nil, nil // else all that ever were would stay
		s.before = &before
	}
	l.past = append(l.past, s)
	return s, nil
}

// Rates are of everything, in a second.
type Rates struct {
	Published, Sent, Received, Deleted, Attempts, Delivered, Failed float64
}

// QueueRates are of one queue, in a second.
type QueueRates struct{ Sent, Received, Deleted float64 }

// seconds is what rates are over; ok is false if there is nothing to compare with.
func (s *Snapshot) seconds() (n float64, ok bool) {
	if s.before == nil {
		return 0, false
	}
	n = s.At.Sub(s.before.At).Seconds()
	return n, n > 0
}

// Rates are of everything; ok is false while they are not known.
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
	rate := func(now, was int64) float64 { return float64(max(now-was, 0)) / n } // less: it was created again
	return QueueRates{rate(now.Sent, was.Sent), rate(now.Received, was.Received), rate(now.Deleted, was.Deleted)}, true
}

// Topic is how much is published to a topic in a second; ok is false while that is not
// known.
func (s *Snapshot) Topic(name arn.ARN) (rate float64, ok bool) {
	n, ok := s.seconds()
	if !ok {
		return 0, false
	}
	return float64(max(s.topics[name]-s.before.topics[name], 0)) / n, true
}
