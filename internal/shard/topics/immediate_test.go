package topics_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

// TestImmediatePublish: a publish goes to the queue in its own commit where the
// long way would have succeeded at once, and into the backlog where not.
func TestImmediatePublish(t *testing.T) {
	cases := []struct {
		name string
		do   func(w *shardtest.Immediate)
		want string
	}{
		{"plain", func(w *shardtest.Immediate) { w.Say("a") }, "1 in the queue, 0 waiting"},
		{"too long for the queue", func(w *shardtest.Immediate) { w.Say(strings.Repeat("x", 1025)) }, "0 in the queue, 1 waiting"},
		{"as long as the queue takes", func(w *shardtest.Immediate) { w.Say(strings.Repeat("x", 1024)) }, "1 in the queue, 0 waiting"},
		{"not to be rendered", func(w *shardtest.Immediate) { w.Say("bad") }, "0 in the queue, 1 waiting"},
		{"queue at fault", func(w *shardtest.Immediate) {
			if err := w.SetFault(w.Queue, "throttled"); err != nil {
				w.T.Fatal(err)
			}
			w.Say("a")
			if err := w.SetFault(w.Queue, "none"); err != nil {
				w.T.Fatal(err)
			}
		}, "0 in the queue, 1 waiting"},
		{"behind one that waits", func(w *shardtest.Immediate) { w.Say("bad"); w.Say("b") }, "0 in the queue, 2 waiting"},
		{"queue gone", func(w *shardtest.Immediate) {
			if err := w.DeleteQueue(context.Background(), w.Queue); err != nil {
				w.T.Fatal(err)
			}
			w.Say("a")
			w.MakeQueue()
		}, "0 in the queue, 1 waiting"},
		{"forbidden by the queue's policy", func(w *shardtest.Immediate) {
			shardtest.SetPolicy(w.T, w.Engine, w.Queue, shardtest.Admitting(w.Queue, shardtest.TopicARN("another")))
			w.Say("a")
		}, "0 in the queue, 1 waiting"},
		{"allowed by the queue's policy", func(w *shardtest.Immediate) {
			shardtest.SetPolicy(w.T, w.Engine, w.Queue, shardtest.Admitting(w.Queue, shardtest.TopicARN("direct")))
			w.Say("a")
		}, "1 in the queue, 0 waiting"},
		{"delayed by the queue", func(w *shardtest.Immediate) {
			if err := w.SetQueueAttributes(context.Background(), w.Queue, map[string]string{"DelaySeconds": "900"}); err != nil {
				w.T.Fatal(err)
			}
			w.Say("a")
			if got, err := w.Receive(context.Background(), queues.ReceiveRequest{Queue: w.Queue, Max: 1}); err != nil || len(got) != 0 {
				w.T.Errorf("received %v, %v", got, err)
			}
		}, "1 in the queue, 0 waiting"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := shardtest.NewImmediate(t, shard.Options{Clock: clock.System})
			defer w.Close()
			c.do(w)
			if got := w.Where(); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestImmediatePublishIsSeen: what was delivered at once is among the finished deliveries.
func TestImmediatePublishIsSeen(t *testing.T) {
	w := shardtest.NewImmediate(t, shard.Options{Clock: clock.NewVirtual(shardtest.Start)})
	defer w.Close()
	w.Say("a")
	ds, err := w.Deliveries(context.Background(), w.Sub, 10)
	if err != nil || len(ds) != 1 {
		t.Fatal(ds, err)
	}
	if d := ds[0]; d.State != backlog.DeliveryDelivered || d.Attempts != 1 || len(d.History) != 1 || !d.FinishedAt.Equal(shardtest.Start) {
		t.Errorf("%+v", d)
	}
}

// signallingClock reports when somebody asks for the time.
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

// TestImmediatePublishSeesChanges: what changes while a publish waits for the
// shards of its queues is heeded.
func TestImmediatePublishSeesChanges(t *testing.T) {
	ctx := context.Background()
	unsubscribe := func(w *shardtest.Immediate) error {
		return w.Unsubscribe(ctx, topic.Unsubscribe{Subscription: w.Sub, Authenticated: true})
	}
	deleteTopic := func(w *shardtest.Immediate) error { return w.DeleteTopic(ctx, shardtest.TopicARN("direct")) }
	raw := func(w *shardtest.Immediate) error {
		return w.SetSubscriptionAttribute(ctx, w.Sub, "RawMessageDelivery", "true")
	}
	cases := []struct {
		name   string
		batch  int // messages
		change func(w *shardtest.Immediate) error
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
			w := shardtest.NewImmediate(t, shard.Options{Clock: now})
			defer w.Close()
			began := make(chan struct{})
			done := make(chan error)
			to := w.Topics.ShardOf(w.Queue)
			var err error
			to.View(func() { // the publish waits for it, and has released its topic
				now.mu.Lock()
				now.asked = func() { close(began) }
				now.mu.Unlock()
				go func() {
					_, err := w.Publish(ctx, shardtest.TopicARN("direct"), slices.Repeat([]shard.Publication{{ID: shardtest.MessageID(1), Body: []byte("a")}}, c.batch)...)
					done <- err
				}()
				<-began
				err = c.change(w)
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := <-done; !errors.Is(err, c.want) {
				t.Errorf("publish: %v, want %v", err, c.want)
			}
			if got := w.Where(); got != c.where {
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
	w := shardtest.NewImmediate(t, shard.Options{Clock: clock.NewVirtual(shardtest.Start), Journal: shardtest.JournalOf(t, memory.New(), func([]byte) { commits.Add(1) })})
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
	if got := w.Where(); got != "10 in the queue, 0 waiting" {
		t.Error(got)
	}
	got, err := w.Receive(ctx, queues.ReceiveRequest{Queue: w.Queue, Max: 10, Visibility: time.Hour}) // leases that end write, too
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
	if got := w.Where(); got != "1 in the queue, 2 waiting" {
		t.Error(got)
	}
	if n := publishing(); n != 0 {
		t.Errorf("no message in %d commits", n)
	}
	if _, err := w.Publish(ctx, shardtest.TopicARN("none")); !errors.Is(err, topic.ErrNoTopic) {
		t.Errorf("no message to no topic: %v", err)
	}
}

// TestBatchIsDigestedTogether: of what is published together the digests are there when it is
// rendered for queues that get it raw, and for no other.
func TestBatchIsDigestedTogether(t *testing.T) {
	ctx := context.Background()
	var ids atomic.Int64
	newID := func() message.ID { return shardtest.MessageID(int(ids.Add(1))) }
	known, unknown := 0, 0
	e := shardtest.Open(t, shard.Options{
		Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: clock.NewVirtual(shardtest.Start), NewID: newID,
		Render: func(n *message.Message) (*message.Message, error) {
			m := &message.Message{ID: newID(), Sender: n.Sender, Body: n.Body}
			m.Seal()
			switch n.BodyMD5 {
			case m.BodyMD5:
				known++
			case [md5.Size]byte{}:
				unknown++
			default:
				t.Errorf("%q has the digest %x", n.Body, n.BodyMD5)
			}
			if n.BodyMD5 == m.BodyMD5 && (!n.Notice.Raw || n.Notice.Own) {
				t.Errorf("%q is not what others get, and has a digest", n.Body)
			}
			return m, nil
		},
	})
	defer e.Close()
	if err := e.CreateTopic(ctx, topic.CreateTopic{ARN: shardtest.TopicARN("t")}); err != nil {
		t.Fatal(err)
	}
	const queueCount = 10
	for i := range queueCount {
		q := shardtest.QueueARN(fmt.Sprint("q", i))
		if err := e.CreateQueue(ctx, queues.QueueSpec{ARN: q}); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Subscribe(ctx, topic.Subscribe{
			Topic: shardtest.TopicARN("t"), Owner: shardtest.Account, Protocol: "sqs", Endpoint: q.String(), ID: shardtest.SubscriptionID(i + 1),
			Attributes: map[string]string{"RawMessageDelivery": fmt.Sprint(i%2 == 0)},
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ shared, own, known int }{{1, 0, 0}, {1, 1, 1}, {2, 0, 2}, {16, 3, 16}, {17, 0, 17}, {40, 1, 40}} {
		ps := make([]shard.Publication, c.shared+c.own)
		for i := range ps {
			ps[i] = shard.Publication{ID: newID(), Body: bytes.Repeat([]byte{'a' + byte(i)}, 50*i+1)}
			if i >= c.shared {
				ps[i].Bodies = map[string]string{"sqs": "for queues"}
			}
		}
		known, unknown = 0, 0
		if _, err := e.Publish(ctx, shardtest.TopicARN("t"), ps...); err != nil {
			t.Fatal(err)
		}
		rendered := c.shared*(queueCount/2+1) + c.own*queueCount // raw once for all
		if known != c.known || known+unknown != rendered {
			t.Errorf("%d with a body for all and %d without: %d digests were known, %d not", c.shared, c.own, known, unknown)
		}
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
		e.AwaitIdle()
		for i := range subscribers {
			ds, _, err := e.Take(shardtest.TopicARN("wide").Subscription(shardtest.SubscriptionID(i)), 10)
			if err != nil || len(ds) != 2 {
				t.Fatalf("%d subscribers: number %d got %d messages, %v", subscribers, i, len(ds), err)
			}
		}
	}
}
