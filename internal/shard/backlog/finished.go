package backlog

import (
	"slices"
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
	finishedSpare           = 50 // places of older ones of a subscription
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

func (f *Finished) info() DeliveryInfo {
	d := DeliveryInfo{
		MessageID: uuid.UUID(f.id).String(), State: f.state, Attempts: f.total,
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
	latest   *simplelru.LRU[arn.ARN, *[]Finished] // of each the last ones, in their order
	attempts int                                  // of deliveries with several
}

// newFinishedCache makes a cache that shows deliveries for ttl after their end.
func newFinishedCache(ttl time.Duration) *finishedCache {
	c := &finishedCache{ttl: ttl}
	latest, err := simplelru.NewLRU(finishedSubscriptions, func(_ arn.ARN, of *[]Finished) {
		for i := range *of {
			c.attempts -= (*of)[i].bulk()
		}
	})
	if err != nil {
		panic(err) // it has a size
	}
	c.latest = latest
	return c
}

func (c *finishedCache) Add(sub arn.ARN, f *Finished) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(c.use(sub), f)
	for c.attempts > finishedAttempts {
		c.latest.RemoveOldest()
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
	var sub *topic.Subscription
	var of *[]Finished
	for i := range n {
		d, made := d(i)
		if !made {
			continue
		}
		if d.Subscription != sub {
			sub, of = d.Subscription, c.use(d.Subscription.ARN)
		}
		c.put(of, &Finished{id: d.Message, published: d.Published, at: now, total: 1, state: DeliveryDelivered})
	}
}

// put adds a delivery to those of a subscription, and empties the one that is too many. Their
// places go together once there are finishedSpare, so that the others seldom move.
func (c *finishedCache) put(of *[]Finished, f *Finished) {
	if len(*of) == finishedPerSubscription+finishedSpare {
		*of = slices.Delete(*of, 0, finishedSpare)
	}
	*of = append(*of, *f)
	c.attempts += f.bulk()
	if n := len(*of) - finishedPerSubscription; n > 0 {
		oldest := &(*of)[n-1]
		c.attempts -= oldest.bulk()
		*oldest = Finished{}
	}
}

// use finds or makes the deliveries of a subscription, which is then the most recently used.
func (c *finishedCache) use(sub arn.ARN) *[]Finished {
	of, ok := c.latest.Get(sub)
	if !ok {
		of = new([]Finished)
		c.latest.Add(sub, of)
	}
	return of
}

// Of lists a subscription's finished deliveries, latest first.
func (c *finishedCache) Of(now time.Time, sub arn.ARN, limit int) []DeliveryInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	of, ok := c.latest.Peek(sub)
	if !ok {
		return nil
	}
	var out []DeliveryInfo
	for i := range slices.Backward(*of) {
		f := &(*of)[i]
		if len(out) == min(limit, finishedPerSubscription) || now.UnixMilli()-f.at > c.ttl.Milliseconds() {
			break
		}
		out = append(out, f.info())
	}
	return out
}
