package shard_test

import (
	"cmp"
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
	"unsafe"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/shard/topics"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/topic"
)

// lineWorld is a directWorld whose line is held up, so that publishers gather.
type lineWorld struct {
	*directWorld
	line *topics.PublishCoalescer
	all  sync.WaitGroup
}

func newLineWorld(t *testing.T, o shard.Options) *lineWorld {
	w := &lineWorld{directWorld: newDirectWorld(t, o)}
	w.line = &w.Topics.ShardOf(shardtest.TopicARN("direct")).Publishers
	w.line.Busy = true
	return w
}

// publishLater puts a publisher into the line and calls done with its answer.
func (w *lineWorld) publishLater(t arn.ARN, done func([]queues.SendResult, error), ps ...topics.Publication) {
	w.line.Mu.Lock()
	n := len(w.line.Waiting)
	w.line.Mu.Unlock()
	w.all.Go(func() { done(w.Publish(context.Background(), t, ps...)) })
	for waiting := n; waiting == n; runtime.Gosched() {
		w.line.Mu.Lock()
		waiting = len(w.line.Waiting)
		w.line.Mu.Unlock()
	}
}

// neighbour is a topic in the shard of the topic "direct".
func (w *lineWorld) neighbour(format string) arn.ARN {
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
	w := newLineWorld(t, shard.Options{Clock: clock.NewVirtual(shardtest.Start), Journal: shardtest.JournalOf(t, memory.New(), func([]byte) { commits.Add(1) })})
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
	publication := func(id int) topics.Publication {
		return topics.Publication{ID: shardtest.MessageID(id), Body: []byte{byte('a' + id)}}
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
	w.line.Leave(shardtest.TopicARN("direct"), 1)
	w.all.Wait()
	if n := commits.Load() - before; n != 1 {
		t.Errorf("%d commits", n)
	}
	got, err := w.Receive(ctx, queues.ReceiveRequest{Queue: w.queue, Max: 10})
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
	if w.line.Busy || len(w.line.Waiting) != 0 {
		t.Error("somebody still has the turn")
	}
}

// TestCoalescedPublishesAreBounded: no turn is for more than fits into about one commit, and
// one for a topic of which nothing is known is for one publisher.
func TestCoalescedPublishesAreBounded(t *testing.T) {
	cases := []struct {
		name  string
		reach int
		size  int // of a body
		want  int
	}{
		{"publications", 1, 10, topics.MaxCoalesced},
		{"deliveries", topics.FanoutStep / 5, 10, 5},
		{"bytes", 1, topics.FanoutBytes / 4, 3}, // with what surrounds them
		{"reach unknown", -1, 10, 1},
		{"too many subscriptions", topics.FanoutStep, 10, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := &topics.PublishCoalescer{Busy: true}
			for range topics.MaxCoalesced + 1 {
				l.Waiting = append(l.Waiting, &topics.Publisher{
					Topic: shardtest.TopicARN("t"), Turn: make(chan []*topics.Publisher, 1), Publications: []topics.Publication{{Body: make([]byte, c.size)}},
				})
			}
			next, waiting := l.Waiting[0], l.Waiting
			if c.reach < 0 {
				l.Leave(shardtest.TopicARN("other"), 1)
			} else {
				l.Leave(shardtest.TopicARN("t"), c.reach)
			}
			if n := len(<-next.Turn); n != c.want || len(l.Waiting) != topics.MaxCoalesced+1-n {
				t.Errorf("%d in the turn, %d left", n, len(l.Waiting))
			}
			if waiting[0] != nil || waiting[len(waiting)-1] != nil && c.want > 1 {
				t.Error("the line keeps who has left it")
			}
		})
	}
}

// TestFewTopicsAreKnown: the reach of topics takes bounded memory.
func TestFewTopicsAreKnown(t *testing.T) {
	l := &topics.PublishCoalescer{}
	for i := range 3 * topics.MaxReachKnown {
		l.Leave(shardtest.TopicARN(fmt.Sprint(i)), i)
		if got := l.Reach[shardtest.TopicARN(fmt.Sprint(i))]; got == nil || *got != i {
			t.Fatalf("the reach of topic %d is %v", i, got)
		}
	}
	if len(l.Reach) > topics.MaxReachKnown {
		t.Errorf("%d topics are known", len(l.Reach))
	}
}

// TestCoalescerKeepsNoRequest: a topic's name is a piece of a request, all of which the
// line would keep in memory.
func TestCoalescerKeepsNoRequest(t *testing.T) {
	l := &topics.PublishCoalescer{}
	for i := range 3 {
		request := strings.Repeat("a", 10) + fmt.Sprint(i)
		l.Leave(shardtest.TopicARN(request[:10]), i)
		for name, reach := range l.Reach {
			if unsafe.StringData(name.Resource) == unsafe.StringData(request) {
				t.Errorf("the line keeps request %d", i)
			}
			if *reach != i {
				t.Errorf("the reach is %d, want %d", *reach, i)
			}
		}
	}
}

// TestCutPlan: what a plan has no room for is left out as a whole, and the rest is
// in the order of locking, without which two topics with queues in each other's
// shards would wait for each other for ever.
func TestCutPlan(t *testing.T) {
	ctx := context.Background()
	w := newDirectWorld(t, shard.Options{Clock: clock.System})
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
		fs[i] = topics.Fanout{Topic: shardtest.TopicARN("direct"), P: topics.Publication{ID: shardtest.MessageID(i), Body: []byte("a")}}
	}
	sh.Mu.Lock()
	defer sh.Mu.Unlock()
	p := sh.Plan(fs)
	if want := topics.FanoutStep / (queueCount + 1); p.Publications != want || len(p.Deliveries) != want*(queueCount+1) {
		t.Errorf("%d publications with %d deliveries", p.Publications, len(p.Deliveries))
	}
	if !slices.IsSortedFunc(p.Shards, func(a, b *kernel.Shard) int { return cmp.Compare(a.ID, b.ID) }) {
		t.Error("the shards are not in the order of locking")
	}
	changes := 0
	for i := range p.Deliveries[1:] {
		a, b := p.Deliveries[i], p.Deliveries[i+1]
		if a.Sub != b.Sub {
			changes++
		} else if a.N >= b.N {
			t.Fatalf("publication %d comes before %d", a.N, b.N)
		}
	}
	if changes != queueCount {
		t.Errorf("from queue to queue %d times", changes)
	}
}

// TestFIFOPublishesAreNotCoalesced: what one of them is refused is not refused to others.
func TestFIFOPublishesAreNotCoalesced(t *testing.T) {
	w := newLineWorld(t, shard.Options{Clock: clock.NewVirtual(shardtest.Start)})
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
		}, topics.Publication{ID: shardtest.MessageID(i + 1), Group: "g", Dedup: dedup, Body: []byte("a")})
	}
	w.line.Leave(fifo, 1)
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
	w := newDirectWorld(t, shard.Options{Clock: clock.System})
	defer w.Close()
	pump := &pump{engine: w.Engine, newID: w.Options.NewID}
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
			if err := w.SetSubscriptionAttribute(ctx, w.sub, "RawMessageDelivery", value); err != nil {
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
				ms := make([]topics.Publication, size)
				for n := range ms {
					ms[n] = topics.Publication{ID: message.ID{1, byte(p), byte(i + n)}, Body: fmt.Appendf(nil, "%d-%d", p, i+n)}
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
	pump.run(t)
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
