package backlog

import (
	"fmt"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/topic"
)

// TestFinishedLatestFirst: what is kept is the latest, latest first, however many there were; what
// is too old is not shown, nor more than is asked for.
func TestFinishedLatestFirst(t *testing.T) {
	sub := arn.Topic("us-east-1", "000000000000", "t").Subscription("s")
	for _, all := range []int{0, 1, finishedPerSubscription - 1, finishedPerSubscription, finishedPerSubscription + 1, 3*finishedPerSubscription + 7} {
		c := newFinishedCache(time.Hour)
		for i := range all {
			f := &Finished{at: int64(i), total: i, attempts: make([]Attempt, 2)}
			if i%3 == 0 {
				c.AddImmediate(1, func(int) (Immediate, bool) { return Immediate{Subscription: &topic.Subscription{ARN: sub}}, true }, int64(i))
			} else {
				c.Add(sub, f)
			}
		}
		kept := min(all, finishedPerSubscription)
		for _, limit := range []int{1, 10, all} {
			got := c.Of(time.UnixMilli(int64(all)), sub, limit)
			if len(got) != min(kept, limit) {
				t.Errorf("of %d, %d are shown, at most %d", all, len(got), limit)
			}
			for i, d := range got {
				if at := d.FinishedAt.UnixMilli(); at != int64(all-1-i) {
					t.Fatalf("of %d, number %d is that of %d", all, i, at)
				}
			}
		}
		if got := c.Of(time.UnixMilli(int64(all-3)+c.ttl.Milliseconds()), sub, all); len(got) != min(kept, 3) {
			t.Errorf("of %d, %d are not too old", all, len(got))
		}
		bulk := 0
		for i := all - kept; i < all; i++ {
			if i%3 != 0 {
				bulk += 2
			}
		}
		if c.attempts != bulk {
			t.Errorf("of %d, %d attempts are counted, not %d", all, c.attempts, bulk)
		}
	}
}

// BenchmarkFinished notes deliveries to a hundred subscriptions in turn, each of which has had as
// many as are kept.
func BenchmarkFinished(b *testing.B) {
	const subscriptions = 100
	subs := make([]*topic.Subscription, subscriptions)
	for i := range subs {
		subs[i] = &topic.Subscription{ARN: arn.Topic("us-east-1", "000000000000", "t").Subscription(fmt.Sprint(i))}
	}
	full := func() *finishedCache {
		c := newFinishedCache(time.Hour)
		for _, s := range subs {
			for range finishedPerSubscription {
				c.Add(s.ARN, &Finished{total: 1, state: DeliveryDelivered})
			}
		}
		return c
	}
	b.Run("Add", func(b *testing.B) {
		c := full()
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			c.Add(subs[i%subscriptions].ARN, &Finished{total: 1, state: DeliveryDelivered})
		}
	})
	b.Run("AddImmediate", func(b *testing.B) { // a publish to all of them
		c := full()
		b.ReportAllocs()
		for b.Loop() {
			c.AddImmediate(subscriptions, func(i int) (Immediate, bool) { return Immediate{Subscription: subs[i]}, true }, 1)
		}
	})
}
