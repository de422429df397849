package topics_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/test/soak"
)

// listener is a subscription in a random history: the bodies that it is owed, and
// those that it has got.
type listener struct {
	arn   arn.ARN
	queue arn.ARN // zero: it is no queue
	owed  []string
	got   []string
}

// TestPostponedOnce: in a random history of publishes, subscriptions that come, go,
// stand still and fall behind, and crashes, with steps in the background that come
// at any moment, every subscription gets once what was published while it was there.
func TestPostponedOnce(t *testing.T) {
	for _, seed := range soak.Seeds(t, soak.Rounds(t, soak.Size(1, 6), 50)) {
		testPostponedOnce(t, seed)
	}
}

func testPostponedOnce(t *testing.T, seed uint64) {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(seed, 7))
	fs := vfs.NewCrashableMem()
	wide := shardtest.TopicARN("wide")
	ids := 0
	p := &shardtest.Pump{NewID: func() message.ID { ids++; return shardtest.MessageID(100_000 + ids) }}
	open := func() (e *shard.Engine, s interface{ Close() error }) {
		st := shardtest.OpenStore(t, fs)
		e = shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, st, nil), Clock: clock.NewVirtual(shardtest.Start), Render: p.Render, NewID: p.NewID})
		p.Engine = e
		return e, st
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	e, s := open()
	must(e.CreateTopic(ctx, topic.CreateTopic{ARN: wide}))
	for i := range 3 {
		must(e.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN(fmt.Sprint("q", i))}))
	}
	var all []*listener
	subscriptions, published := 0, 0
	queueCount := map[arn.ARN]*listener{}
	join := func() {
		subscriptions++
		id := shardtest.SubscriptionID(r.IntN(1e6)*1000 + subscriptions%1000) // anywhere in the order
		l := &listener{arn: wide.Subscription(id)}
		if q := shardtest.QueueARN(fmt.Sprint("q", r.IntN(3))); r.IntN(40) == 0 && queueCount[q] == nil {
			l.queue, queueCount[q] = q, l
			shardtest.Subscribe(t, e, "wide", q.Resource, id)
		} else {
			listen(t, e, wide, id)
		}
		all = append(all, l)
	}
	take := func(l *listener, limit int) {
		if !l.queue.IsZero() {
			return
		}
		ds, _, err := e.Take(l.arn, limit)
		must(err)
		for _, d := range ds {
			l.got = append(l.got, string(d.Message.Body))
			e.Delivered(d, backlog.Attempt{Outcome: "success"})
		}
	}
	hold := func(is bool) {
		sh := e.Topics.ShardOf(wide)
		sh.View(func() {
			if is && *sh.Fanning() { // at work
				return
			}
			if *sh.Fanning() = is; !is {
				sh.StartFanouts()
			}
		})
	}
	held := false
	for range 90 {
		join()
	}
	for range soak.Size(40, 150) {
		switch n := r.IntN(20); {
		case n < 8:
			var ps []shard.Publication
			for range 1 + r.IntN(3) {
				published++
				ps = append(ps, shard.Publication{ID: shardtest.MessageID(published), Body: []byte(fmt.Sprint(published))})
			}
			_, err := e.Publish(ctx, wide, ps...)
			must(err)
			for _, l := range all {
				for _, p := range ps {
					l.owed = append(l.owed, string(p.Body))
				}
			}
		case n < 11:
			for _, l := range all {
				if r.IntN(3) == 0 {
					take(l, 10)
				}
			}
		case n < 13:
			for range r.IntN(20) {
				join()
			}
		case n < 15:
			for range r.IntN(5) {
				i := r.IntN(len(all))
				must(e.Unsubscribe(ctx, topic.Unsubscribe{Subscription: all[i].arn, Authenticated: true}))
				if q := all[i].queue; !q.IsZero() {
					for got := []queues.Received{{}}; len(got) > 0; {
						var err error
						got, err = e.Receive(ctx, queues.ReceiveRequest{Queue: q, Max: 10, Visibility: time.Hour})
						must(err)
					}
					delete(queueCount, q)
				}
				all = slices.Delete(all, i, i+1)
			}
		case n < 17:
			l := all[r.IntN(len(all))]
			must(e.Pause(ctx, l.arn))
			if r.IntN(2) == 0 {
				must(e.Resume(ctx, l.arn))
			}
		case n < 18:
			if !held {
				e.AwaitIdle()
			}
			held = !held
			hold(held)
		case n < 19:
			must(e.SetTopicAttribute(ctx, wide, "DisplayName", fmt.Sprint(r.IntN(1e9)))) // what came before is durable
			if r.IntN(2) == 0 {
				must(e.Close())
				must(s.Close())
			} else {
				clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: rand.New(rand.NewPCG(r.Uint64(), 1))})
				hold(false)
				must(e.Close())
				must(s.Close())
				fs = clone
			}
			e, s = open()
			held = false
		default:
			if !held {
				e.AwaitIdle()
			}
		}
	}
	hold(false)
	e.AwaitIdle()
	e.SetConsumer("sns", p)
	p.Decide = func(d *backlog.Delivery) { e.Release(d) }
	for _, l := range all {
		must(e.Resume(ctx, l.arn))
	}
	p.Keep(func(a arn.ARN) bool {
		return slices.ContainsFunc(all, func(l *listener) bool { return l.arn == a && !l.queue.IsZero() })
	})
	p.Run(t)
	wrong := 0
	for _, l := range all {
		if l.queue.IsZero() {
			for before := -1; len(l.got) > before; {
				before = len(l.got)
				take(l, 1000)
			}
		} else {
			for got := []queues.Received{{}}; len(got) > 0; {
				var err error
				got, err = e.Receive(ctx, queues.ReceiveRequest{Queue: l.queue, Max: 10, Visibility: time.Hour})
				must(err)
				for _, m := range got {
					l.got = append(l.got, string(m.Body))
				}
			}
		}
		slices.Sort(l.got)
		slices.Sort(l.owed)
		if !slices.Equal(l.got, l.owed) {
			if wrong++; wrong < 4 {
				t.Errorf("seed %d: %s (queue %s) has got %v, was owed %v", seed, l.arn.Resource, l.queue.Resource, l.got, l.owed)
			}
		}
	}
	if wrong > 0 {
		t.Errorf("seed %d: %d of %d", seed, wrong, len(all))
	}
	must(e.Close())
	must(s.Close())
}
