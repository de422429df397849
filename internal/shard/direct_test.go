package shard_test

import (
	"context"
	"errors"
	"fmt"
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
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/shard/topics"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/topic"
)

// directWorld is an engine that delivers publishes at once, with a topic whose
// subscriber is a queue in a shard before the topic's.
type directWorld struct {
	*shard.Engine
	t     *testing.T
	queue arn.ARN
	sub   arn.ARN
}

func newDirectWorld(t *testing.T, o shard.Options) *directWorld {
	ctx := context.Background()
	var mu sync.Mutex
	ids := 0
	if o.Journal == nil {
		o.Journal = shardtest.JournalOf(t, memory.New(), nil)
	}
	o.NewID = func() message.ID {
		mu.Lock()
		defer mu.Unlock()
		ids++
		return shardtest.MessageID(1000 + ids)
	}
	o.Render = func(n *message.Message) (*message.Message, error) {
		if strings.HasPrefix(string(n.Body), "bad") {
			return nil, errors.New("it cannot be rendered")
		}
		m := &message.Message{ID: o.NewID(), Sender: n.Sender, Body: n.Body}
		m.Seal()
		return m, nil
	}
	w := &directWorld{t: t, Engine: shardtest.Open(t, o)}
	if err := w.CreateTopic(ctx, topic.CreateTopic{ARN: shardtest.TopicARN("direct")}); err != nil {
		t.Fatal(err)
	}
	for i := 0; w.queue.IsZero(); i++ {
		if q := shardtest.QueueARN(fmt.Sprintf("q%d", i)); w.Topics.ShardOf(q).ID < w.Topics.ShardOf(shardtest.TopicARN("direct")).ID {
			w.queue = q
		}
	}
	w.createQueue()
	w.sub = shardtest.Subscribe(t, w.Engine, "direct", w.queue.Resource, shardtest.SubscriptionID(1))
	return w
}

func (w *directWorld) createQueue() {
	w.t.Helper()
	err := w.CreateQueue(context.Background(), queues.QueueSpec{ARN: w.queue, Attributes: map[string]string{"MaximumMessageSize": "1024"}})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *directWorld) publish(body string) {
	w.t.Helper()
	if _, err := w.Publish(context.Background(), shardtest.TopicARN("direct"), shard.Publication{ID: shardtest.MessageID(1), Body: []byte(body)}); err != nil {
		w.t.Fatal(err)
	}
}

// where tells how many messages are in the queue and how many wait in the
// backlog of its subscription.
func (w *directWorld) where() string {
	w.t.Helper()
	info, err := w.QueueInfo(context.Background(), w.queue)
	if err != nil {
		info.Counts.Visible = -1
	}
	sh := w.Topics.ShardOf(shardtest.TopicARN("direct"))
	sh.Mu.Lock()
	defer sh.Mu.Unlock()
	waiting := int64(0)
	if s, ok := sh.Topics.Subscription(w.sub); ok {
		if qs := sh.BacklogOf(s); qs != nil {
			c := qs.Machine.Counts(sh.Now())
			waiting = c.Visible + c.InFlight + c.Delayed
		}
	}
	return fmt.Sprintf("%d in the queue, %d waiting", info.Counts.Visible+info.Counts.Delayed, waiting)
}

// TestDirectPublish: a publish goes to the queue in its own commit where the
// long way would have succeeded at once, and into the backlog where not.
func TestDirectPublish(t *testing.T) {
	cases := []struct {
		name string
		do   func(w *directWorld)
		want string
	}{
		{"plain", func(w *directWorld) { w.publish("a") }, "1 in the queue, 0 waiting"},
		{"too long for the queue", func(w *directWorld) { w.publish(strings.Repeat("x", 1025)) }, "0 in the queue, 1 waiting"},
		{"as long as the queue takes", func(w *directWorld) { w.publish(strings.Repeat("x", 1024)) }, "1 in the queue, 0 waiting"},
		{"not to be rendered", func(w *directWorld) { w.publish("bad") }, "0 in the queue, 1 waiting"},
		{"queue at fault", func(w *directWorld) {
			if err := w.SetFault(w.queue, "throttled"); err != nil {
				w.t.Fatal(err)
			}
			w.publish("a")
			if err := w.SetFault(w.queue, "none"); err != nil {
				w.t.Fatal(err)
			}
		}, "0 in the queue, 1 waiting"},
		{"behind one that waits", func(w *directWorld) { w.publish("bad"); w.publish("b") }, "0 in the queue, 2 waiting"},
		{"queue gone", func(w *directWorld) {
			if err := w.DeleteQueue(context.Background(), w.queue); err != nil {
				w.t.Fatal(err)
			}
			w.publish("a")
			w.createQueue()
		}, "0 in the queue, 1 waiting"},
		{"forbidden by the queue's policy", func(w *directWorld) {
			setPolicy(w.t, w.Engine, w.queue, admitting(w.queue, shardtest.TopicARN("another")))
			w.publish("a")
		}, "0 in the queue, 1 waiting"},
		{"allowed by the queue's policy", func(w *directWorld) {
			setPolicy(w.t, w.Engine, w.queue, admitting(w.queue, shardtest.TopicARN("direct")))
			w.publish("a")
		}, "1 in the queue, 0 waiting"},
		{"delayed by the queue", func(w *directWorld) {
			if err := w.SetQueueAttributes(context.Background(), w.queue, map[string]string{"DelaySeconds": "900"}); err != nil {
				w.t.Fatal(err)
			}
			w.publish("a")
			if got, err := w.Receive(context.Background(), queues.ReceiveRequest{Queue: w.queue, Max: 1}); err != nil || len(got) != 0 {
				w.t.Errorf("received %v, %v", got, err)
			}
		}, "1 in the queue, 0 waiting"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newDirectWorld(t, shard.Options{Clock: clock.System})
			defer w.Close()
			c.do(w)
			if got := w.where(); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestDirectPublishIsSeen: what was delivered at once is among the finished deliveries.
func TestDirectPublishIsSeen(t *testing.T) {
	w := newDirectWorld(t, shard.Options{Clock: clock.NewVirtual(shardtest.Start)})
	defer w.Close()
	w.publish("a")
	ds, err := w.Deliveries(context.Background(), w.sub, 10)
	if err != nil || len(ds) != 1 {
		t.Fatal(ds, err)
	}
	if d := ds[0]; d.State != backlog.DeliveryDelivered || d.Attempts != 1 || len(d.History) != 1 || !d.FinishedAt.Equal(shardtest.Start) {
		t.Errorf("%+v", d)
	}
}

// signallingClock tells when somebody asks for the time.
type signallingClock struct {
	clock.Clock
	mu    sync.Mutex
	asked func()
}

func (c *signallingClock) Now() time.Time {
	c.mu.Lock()
	asked := c.asked
	c.asked = nil
	c.mu.Unlock()
	if asked != nil {
		asked()
	}
	return c.Clock.Now()
}

// TestDirectPublishSeesChanges: what changes while a publish waits for the
// shards of its queues is heeded.
func TestDirectPublishSeesChanges(t *testing.T) {
	ctx := context.Background()
	unsubscribe := func(w *directWorld) error {
		return w.Unsubscribe(ctx, topic.Unsubscribe{Subscription: w.sub, Authenticated: true})
	}
	deleteTopic := func(w *directWorld) error { return w.DeleteTopic(ctx, shardtest.TopicARN("direct")) }
	raw := func(w *directWorld) error {
		return w.SetSubscriptionAttribute(ctx, w.sub, "RawMessageDelivery", "true")
	}
	cases := []struct {
		name   string
		batch  int // messages
		change func(w *directWorld) error
		want   error
		where  string
	}{
		{"unsubscribed", 1, unsubscribe, nil, "0 in the queue, 0 waiting"},
		{"topic deleted", 1, deleteTopic, topic.ErrNoTopic, "0 in the queue, 0 waiting"},
		{"raw", 1, raw, nil, "1 in the queue, 0 waiting"},
		{"unsubscribed, a batch", 2, unsubscribe, nil, "0 in the queue, 0 waiting"},
		{"topic deleted, a batch", 2, deleteTopic, topic.ErrNoTopic, "0 in the queue, 0 waiting"},
		{"raw, a batch", 2, raw, nil, "2 in the queue, 0 waiting"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			now := &signallingClock{Clock: clock.System}
			w := newDirectWorld(t, shard.Options{Clock: now})
			defer w.Close()
			began := make(chan struct{})
			done := make(chan error)
			to := w.Topics.ShardOf(w.queue)
			to.Mu.Lock() // the publish waits here, and has released its topic
			now.mu.Lock()
			now.asked = func() { close(began) }
			now.mu.Unlock()
			go func() {
				_, err := w.Publish(ctx, shardtest.TopicARN("direct"), slices.Repeat([]shard.Publication{{ID: shardtest.MessageID(1), Body: []byte("a")}}, c.batch)...)
				done <- err
			}()
			<-began
			err := c.change(w)
			to.Mu.Unlock()
			if err != nil {
				t.Fatal(err)
			}
			if err := <-done; !errors.Is(err, c.want) {
				t.Errorf("publish: %v, want %v", err, c.want)
			}
			if got := w.where(); got != c.where {
				t.Errorf("%s, want %s", got, c.where)
			}
		})
	}
}

// TestBatchIsOneCommit: a batch costs a commit of the shards that it changes,
// whatever the number of its messages and of its subscribers, and keeps their
// order; what does not fit into one goes in several.
func TestBatchIsOneCommit(t *testing.T) {
	ctx := context.Background()
	var commits atomic.Int64
	w := newDirectWorld(t, shard.Options{Clock: clock.NewVirtual(shardtest.Start), Journal: shardtest.JournalOf(t, memory.New(), func([]byte) { commits.Add(1) })})
	defer w.Close()
	publishing := func(bodies ...string) int64 {
		t.Helper()
		ps := make([]shard.Publication, len(bodies))
		for i, body := range bodies {
			ps[i] = shard.Publication{ID: shardtest.MessageID(i + 1), Body: []byte(body)}
		}
		w.Journal.Flush() // what others left
		before := commits.Load()
		if _, err := w.Publish(ctx, shardtest.TopicARN("direct"), ps...); err != nil {
			t.Fatal(err)
		}
		return commits.Load() - before
	}
	if n := publishing("a", "b", "c", "d", "e", "f", "g", "h", "i", "j"); n != 1 {
		t.Errorf("ten messages to a queue in %d commits", n)
	}
	if got := w.where(); got != "10 in the queue, 0 waiting" {
		t.Error(got)
	}
	got, err := w.Receive(ctx, queues.ReceiveRequest{Queue: w.queue, Max: 10, Visibility: time.Hour}) // leases that end write, too
	if err != nil {
		t.Fatal(err)
	}
	order := ""
	for _, m := range got {
		order += string(m.Body)
	}
	if order != "abcdefghij" {
		t.Errorf("received in the order %s", order)
	}
	// One that cannot go at once holds up those behind it, of its batch too:
	// the topic's shard has its backlog.
	if n := publishing("k", "bad", "l"); n != 2 {
		t.Errorf("messages to a queue and a backlog in %d commits", n)
	}
	if got := w.where(); got != "1 in the queue, 2 waiting" {
		t.Error(got)
	}
	if n := publishing(); n != 0 {
		t.Errorf("no message in %d commits", n)
	}
	if _, err := w.Publish(ctx, shardtest.TopicARN("none")); !errors.Is(err, topic.ErrNoTopic) {
		t.Errorf("no message to no topic: %v", err)
	}
}

// TestBatchTooLargeForOneCommit: the messages go one by one, each to all.
func TestBatchTooLargeForOneCommit(t *testing.T) {
	ctx := context.Background()
	for _, subscribers := range []int{topics.FanoutStep/2 + 1, topics.FanoutStep + 1} {
		e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: clock.NewVirtual(shardtest.Start)})
		defer e.Close()
		if err := e.CreateTopic(ctx, topic.CreateTopic{ARN: shardtest.TopicARN("wide")}); err != nil {
			t.Fatal(err)
		}
		for i := range subscribers {
			shardtest.Subscribe(t, e, "wide", fmt.Sprintf("q%d", i), shardtest.SubscriptionID(i))
		}
		_, err := e.Publish(ctx, shardtest.TopicARN("wide"), shard.Publication{ID: shardtest.MessageID(1), Body: []byte("a")}, shard.Publication{ID: shardtest.MessageID(2), Body: []byte("b")})
		if err != nil {
			t.Fatal(err)
		}
		e.Background.Wait()
		for i := range subscribers {
			ds, _, err := e.Take(shardtest.TopicARN("wide").Subscription(shardtest.SubscriptionID(i)), 10)
			if err != nil || len(ds) != 2 {
				t.Fatalf("%d subscribers: number %d got %d messages, %v", subscribers, i, len(ds), err)
			}
		}
	}
}
