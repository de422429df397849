package backlog

import (
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/golang-lru/v2/simplelru"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/topic"
)

// Bounds of the finished deliveries that are kept in memory.
const (
	finishedPerSubscription = 100
	finishedSubscriptions   = 1000
	finishedAttempts        = 200_000 // in all, of deliveries with several
)

// Finished is a delivery that has ended. It is small: there may be a hundred thousand.
type Finished struct {
	id            message.ID
	published, at int64 // epoch milliseconds
	total         int
	attempts      []Attempt // nil: there was one, which succeeded at that time
	reason        string
	state         DeliveryState
}

// bulk is how many attempts count against finishedAttempts.
func (f *Finished) bulk() int {
	if len(f.attempts) == 1 {
		return 0
	}
	return len(f.attempts)
}

func (f *Finished) info(sub arn.ARN) DeliveryInfo {
	d := DeliveryInfo{
		MessageID: uuid.UUID(f.id).String(), Subscription: sub, State: f.state, Attempts: f.total,
		PublishedAt: clock.Time(f.published), FinishedAt: clock.Time(f.at),
		History: f.attempts, Reason: f.reason,
	}
	if f.attempts == nil {
		d.History = []Attempt{{At: d.FinishedAt, Outcome: "success"}}
	}
	return d
}

// finishedCache caches the latest finished deliveries of the subscriptions that had one
// recently.
type finishedCache struct {
	ttl time.Duration

	mu       sync.Mutex
	rings    *simplelru.LRU[arn.ARN, *ring]
	attempts int // of deliveries with several
}

// ring has the last finished deliveries of one subscription.
type ring struct {
	entries []Finished // if it is full, the oldest is at next
	next    int
}

// newFinishedCache makes a cache that shows deliveries for ttl after their end.
func newFinishedCache(ttl time.Duration) *finishedCache {
	c := &finishedCache{ttl: ttl}
	rings, err := simplelru.NewLRU(finishedSubscriptions, func(_ arn.ARN, g *ring) {
		for i := range g.entries {
			c.attempts -= g.entries[i].bulk()
		}
	})
	if err != nil {
		panic(err) // it has a size
	}
	c.rings = rings
	return c
}

func (c *finishedCache) Add(sub arn.ARN, f *Finished) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(c.latest(sub), f)
	for c.attempts > finishedAttempts {
		c.rings.RemoveOldest()
	}
}

// Immediate is a delivery that was made in the commit of its publish.
type Immediate struct {
	Subscription *topic.Subscription
	Message      message.ID
	Published    int64 // epoch milliseconds
}

// AddImmediate adds those of n deliveries that d reports as made.
func (c *finishedCache) AddImmediate(n int, d func(i int) (d Immediate, made bool), now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var g *ring
	var of *topic.Subscription
	for i := range n {
		d, made := d(i)
		if !made {
			continue
		}
		if d.Subscription != of {
			of, g = d.Subscription, c.latest(d.Subscription.ARN)
		}
		c.put(g, &Finished{id: d.Message, published: d.Published, at: now, total: 1, state: DeliveryDelivered})
	}
}

func (c *finishedCache) put(g *ring, f *Finished) {
	c.attempts += f.bulk()
	if len(g.entries) < finishedPerSubscription {
		g.entries = append(g.entries, *f)
		return
	}
	c.attempts -= g.entries[g.next].bulk()
	g.entries[g.next] = *f
	g.next = (g.next + 1) % finishedPerSubscription
}

// latest finds or makes the ring of a subscription, which is then the most recently used.
func (c *finishedCache) latest(sub arn.ARN) *ring {
	g, ok := c.rings.Get(sub)
	if !ok {
		g = &ring{}
		c.rings.Add(sub, g)
	}
	return g
}

// Of lists a subscription's finished deliveries, latest first.
func (c *finishedCache) Of(now time.Time, sub arn.ARN, limit int) []DeliveryInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	g, ok := c.rings.Peek(sub)
	if !ok {
		return nil
	}
	var out []DeliveryInfo
	for i := range g.entries {
		f := &g.entries[(g.next-1-i+2*len(g.entries))%len(g.entries)]
		if len(out) == limit || now.UnixMilli()-f.at > c.ttl.Milliseconds() {
			break
		}
		out = append(out, f.info(sub))
	}
	return out
}
