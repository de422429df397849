package topics_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/shard/topics"
	"godwit.dev/godwit/internal/shard/topics/coalesce"
	"godwit.dev/godwit/internal/shard/topics/publication"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/topic"
)

// hold occupies a coalescer, so that publishers gather, until it is released.
func hold[T any](l *coalesce.Coalescer[T], t arn.ARN) (release func(reach int)) {
	publish, held, reach := l.Publish, make(chan struct{}), make(chan int)
	l.Publish = func([]*coalesce.Call[T]) int {
		l.Publish = publish
		close(held)
		return <-reach
	}
	go l.Run(&coalesce.Call[T]{Topic: t})
	<-held
	return func(n int) { reach <- n }
}

// coalescing is a shardtest.Immediate whose publishers are held up until leave, so that they gather.
type coalescing struct {
	*shardtest.Immediate
	leave func(reach int)
	all   sync.WaitGroup
}

func newCoalescing(t *testing.T, o shard.Options) *coalescing {
	w := &coalescing{Immediate: shardtest.NewImmediate(t, o)}
	w.hold(shardtest.TopicARN("direct"))
	return w
}

func (w *coalescing) hold(t arn.ARN) {
	w.leave = hold(w.Topics.ShardOf(shardtest.TopicARN("direct")).Publishers(), t)
}

// publishLater has a publisher wait and calls done with its answer.
func (w *coalescing) publishLater(t arn.ARN, done func([]queues.SendResult, error), ps ...shard.Publication) {
	publishers := w.Topics.ShardOf(t).Publishers()
	before := publishers.Waiting()
	w.all.Go(func() { done(w.Publish(context.Background(), t, ps...)) })
	for publishers.Waiting() == before {
		runtime.Gosched()
	}
}

// neighbour is a topic in the shard of the topic "direct".
func (w *coalescing) neighbour(format string) arn.ARN {
	for i := 0; ; i++ {
		if a := shardtest.TopicARN(fmt.Sprintf(format, i)); w.Topics.ShardOf(a) == w.Topics.ShardOf(shardtest.TopicARN("direct")) {
			return a
		}
	}
}

// TestPublishesAreCoalesced: those who wait with messages for one topic share a
// commit, in the order in which they came, and each gets its own answer.
func TestPublishesAreCoalesced(t *testing.T) {
	ctx := context.Background()
	var commits atomic.Int64
	w := newCoalescing(t, shard.Options{Clock: clock.NewVirtual(shardtest.Start), Journal: shardtest.JournalOf(t, memory.New(), func([]byte) { commits.Add(1) })})
	defer w.Close()
	gone := w.neighbour("gone-%d")
	w.Journal.Flush()
	before := commits.Load()
	accepted := func(id int) func([]queues.SendResult, error) {
		return func(got []queues.SendResult, err error) {
			if err != nil || len(got) == 0 || got[0].ID != shardtest.MessageID(id) {
				t.Errorf("publisher %d got %v, %v", id, got, err)
			}
		}
	}
	publication := func(id int) shard.Publication {
		return shard.Publication{ID: shardtest.MessageID(id), Body: []byte{byte('a' + id)}}
	}
	w.publishLater(shardtest.TopicARN("direct"), accepted(0), publication(0))
	w.publishLater(gone, func(_ []queues.SendResult, err error) {
		if !errors.Is(err, topic.ErrNoTopic) {
			t.Error("publish to no topic:", err)
		}
	}, publication(9))
	w.publishLater(shardtest.TopicARN("direct"), accepted(1), publication(1), publication(2))
	w.publishLater(shardtest.TopicARN("direct"), func(got []queues.SendResult, err error) {
		if err != nil || len(got) != 0 {
			t.Errorf("publisher of nothing got %v, %v", got, err)
		}
	})
	w.publishLater(shardtest.TopicARN("direct"), accepted(3), publication(3))
	w.leave(1)
	w.all.Wait()
	if n := commits.Load() - before; n != 1 {
		t.Errorf("%d commits", n)
	}
	got, err := w.Receive(ctx, queues.ReceiveRequest{Queue: w.Queue, Max: 10})
	if err != nil {
		t.Fatal(err)
	}
	order := ""
	for _, m := range got {
		order += string(m.Body)
	}
	if order != "abcd" {
		t.Errorf("received %q", order)
	}
	if n := w.Topics.ShardOf(gone).Publishers().Waiting(); n != 0 {
		t.Errorf("%d still wait", n)
	}
}

// TestCutPlan: what a plan has no room for is left out as a whole, and the rest is
// in the order of locking, without which two topics with queues in each other's
// shards would wait for each other for ever.
func TestCutPlan(t *testing.T) {
	ctx := context.Background()
	w := shardtest.NewImmediate(t, shard.Options{Clock: clock.System})
	defer w.Close()
	const queueCount = 40
	for i := range queueCount {
		q := shardtest.QueueARN(fmt.Sprint("many-", i))
		if err := w.CreateQueue(ctx, queues.QueueSpec{ARN: q}); err != nil {
			t.Fatal(err)
		}
		shardtest.Subscribe(t, w.Engine, "direct", q.Resource, shardtest.SubscriptionID(10+i))
	}
	sh := w.Topics.ShardOf(shardtest.TopicARN("direct"))
	fs := make([]topics.Fanout, 20)
	for i := range fs {
		fs[i] = topics.Fanout{Record: publication.Record{
			Topic: shardtest.TopicARN("direct"), P: shard.Publication{ID: shardtest.MessageID(i), Body: []byte("a")},
		}}
	}
	sh.View(func() {
		publications, shards, deliveries := sh.Plan(fs)
		if want := topics.FanoutStep / (queueCount + 1); publications != want || len(deliveries) != want*(queueCount+1) {
			t.Errorf("%d publications with %d deliveries", publications, len(deliveries))
		}
		if !slices.IsSorted(shards) {
			t.Error("the shards are not in the order of locking")
		}
		if n := len(shards); n != len(slices.Compact(slices.Clone(shards))) {
			t.Errorf("a shard would be locked twice: %d", shards)
		}
		changes := 0
		for i := range deliveries[1:] {
			a, b := deliveries[i], deliveries[i+1]
			if a.To != b.To {
				changes++
			} else if a.Publication >= b.Publication {
				t.Fatalf("publication %d comes before %d", a.Publication, b.Publication)
			}
		}
		if changes != queueCount {
			t.Errorf("from queue to queue %d times", changes)
		}
	})
}

// TestFIFOPublishesAreNotCoalesced: what one of them is refused is not refused to others.
func TestFIFOPublishesAreNotCoalesced(t *testing.T) {
	w := newCoalescing(t, shard.Options{Clock: clock.NewVirtual(shardtest.Start)})
	defer w.Close()
	fifo := w.neighbour("ordered-%d.fifo")
	if err := w.CreateTopic(context.Background(), topic.CreateTopic{ARN: fifo, Attributes: map[string]string{"FifoTopic": "true"}}); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	answers := make([]string, 3)
	for i, dedup := range []string{"x", "", "x"} {
		w.publishLater(fifo, func(got []queues.SendResult, err error) {
			mu.Lock()
			defer mu.Unlock()
			answers[i] = fmt.Sprint(err != nil, len(got) > 0 && got[0].ID == shardtest.MessageID(1))
		}, shard.Publication{ID: shardtest.MessageID(i + 1), Group: "g", Dedup: dedup, Body: []byte("a")})
	}
	w.leave(1)
	w.all.Wait()
	// The third is a duplicate of the first, and gets its answer.
	if got := strings.Join(answers, ", "); got != "false true, true false, false true" {
		t.Error(got)
	}
}

// TestPublishersTogetherLoseNothing: whatever changes meanwhile, each message
// arrives once in each queue that was subscribed all the time.
func TestPublishersTogetherLoseNothing(t *testing.T) {
	const publishers, each, queueCount, batch = 12, 120, 10, 60
	ctx := context.Background()
	w := shardtest.NewImmediate(t, shard.Options{Clock: clock.System})
	defer w.Close()
	pump := &shardtest.Pump{Engine: w.Engine, NewID: w.NewID}
	w.SetConsumer("sns", pump)
	var all []arn.ARN
	for i := range queueCount {
		q := shardtest.QueueARN(fmt.Sprint("all-", i))
		if err := w.CreateQueue(ctx, queues.QueueSpec{ARN: q}); err != nil {
			t.Fatal(err)
		}
		all = append(all, q)
		shardtest.Subscribe(t, w.Engine, "direct", q.Resource, shardtest.SubscriptionID(10+i))
	}
	stop := make(chan struct{})
	var changing, publishing sync.WaitGroup
	changing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			value := fmt.Sprint(i%2 == 0)
			if err := w.SetSubscriptionAttribute(ctx, w.Sub, "RawMessageDelivery", value); err != nil {
				t.Error(err)
				return
			}
			runtime.Gosched()
		}
	})
	for p := range publishers {
		publishing.Go(func() {
			size := 1
			if p%3 == 0 { // more than one commit takes
				size = batch
			}
			for i := 0; i < each; i += size {
				ms := make([]shard.Publication, size)
				for n := range ms {
					ms[n] = shard.Publication{ID: message.ID{1, byte(p), byte(i + n)}, Body: fmt.Appendf(nil, "%d-%d", p, i+n)}
				}
				got, err := w.Publish(ctx, shardtest.TopicARN("direct"), ms...)
				if err != nil || len(got) != size || got[0].ID != ms[0].ID || got[size-1].ID != ms[size-1].ID {
					t.Error(got, err)
				}
			}
		})
	}
	publishing.Wait()
	close(stop)
	changing.Wait()
	pump.Run(t)
	for _, q := range all {
		seen := map[string]int{}
		for m := range shardtest.ReceiveAll(t, w.Engine, q, time.Hour) {
			seen[string(m.Body)]++
		}
		once := 0
		for _, n := range seen {
			if n == 1 {
				once++
			}
		}
		if once != publishers*each || len(seen) != once {
			t.Errorf("%s: %d of %d messages once, %d in all", q.Resource, once, publishers*each, len(seen))
		}
	}
}
