package shard_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/test/soak"
)

// TestCommitsAreBounded: many large sends that wait for the disk together are
// split into commits of at most 4 MiB, and none is lost.
func TestCommitsAreBounded(t *testing.T) {
	const senders, batch, size = 24, 10, 100 << 10
	ctx := context.Background()
	var largest int
	s := newGatedStore()
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, shardtest.Decodable(t, &largest)), Clock: clock.System})
	defer e.Close()
	if err := e.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("q")}); err != nil {
		t.Fatal(err)
	}
	s.Shut()
	var sending sync.WaitGroup
	for i := range senders {
		sending.Go(func() {
			msgs := make([]queues.SendEntry, batch)
			for j := range msgs {
				msgs[j] = queues.SendEntry{Message: shardtest.NewMessage(i*batch+j, string(bytes.Repeat([]byte("x"), size)))}
			}
			if _, err := e.Send(ctx, shardtest.QueueARN("q"), msgs); err != nil {
				t.Error(err)
			}
		})
	}
	// All are appended before the first is durable.
	sh := e.Topics.ShardOf(shardtest.QueueARN("q"))
	for appended := int64(0); appended < senders*batch; runtime.Gosched() {
		sh.View(func() {
			appended = shardtest.QueueIn(sh, shardtest.QueueARN("q")).Machine.Counts(sh.Now()).Visible
		})
	}
	s.Open()
	sending.Wait()
	if largest < 2<<20 {
		t.Errorf("the largest commit has %d bytes: commands do not share one", largest)
	}
	if info, err := e.QueueInfo(ctx, shardtest.QueueARN("q")); err != nil || info.Counts.Visible != senders*batch {
		t.Errorf("%+v, %v", info.Counts, err)
	}
}

// TestFanOutsAreBounded: a large message to many subscriptions is split into
// commits of at most 4 MiB, whatever part of it is large and whichever way it
// goes, and each gets it once.
func TestFanOutsAreBounded(t *testing.T) {
	large := bytes.Repeat([]byte{'\x01'}, 256<<10) // of which JSON makes six times as much
	publications := map[string]shard.Publication{
		"body":      {Body: large},
		"attribute": {Body: []byte("x"), Attributes: []message.Attribute{{Name: "a", Type: "Binary", Value: large}}},
		"bodies":    {Body: []byte("x"), Bodies: map[string]string{"sqs": string(large)}},
	}
	render := func(n *message.Message) (*message.Message, error) {
		body := bytes.Repeat(n.Body, 6)
		if n.Notice.Raw {
			body = n.Body
		}
		m := &message.Message{Sender: n.Sender, Body: body, Attributes: n.Attributes}
		m.Seal()
		return m, nil
	}
	publications["escaped"] = shard.Publication{Body: large[:160<<10]}
	for name, p := range publications {
		subscriptions := 40
		if name == "escaped" {
			subscriptions = 6 // few enough for one commit, before it is rendered
		}
		for _, immediate := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/immediate=%v", name, immediate), func(t *testing.T) {
				ctx := context.Background()
				var largest int
				o := shard.Options{Journal: shardtest.JournalOf(t, memory.New(), shardtest.Decodable(t, &largest)), Clock: clock.System}
				if immediate {
					o.Render, o.NewID = render, func() message.ID { return message.ID{} }
				}
				e := shardtest.Open(t, o)
				defer e.Close()
				if err := e.CreateTopic(ctx, topic.CreateTopic{ARN: shardtest.TopicARN("wide")}); err != nil {
					t.Fatal(err)
				}
				// All of one shard, so that the parts of the commit are few and large.
				names := sameShard(e, shardtest.TopicARN("wide"), subscriptions)
				for i, name := range names {
					if err := e.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN(name), Attributes: map[string]string{"MaximumMessageSize": "1048576"}}); err != nil {
						t.Fatal(err)
					}
					shardtest.Subscribe(t, e, "wide", name, shardtest.SubscriptionID(i))
				}
				if _, err := e.Publish(ctx, shardtest.TopicARN("wide"), p); err != nil {
					t.Fatal(err)
				}
				e.AwaitIdle()
				for i, name := range names {
					ds, _, err := e.Take(shardtest.TopicARN("wide").Subscription(shardtest.SubscriptionID(i)), 10)
					if err != nil {
						t.Fatal(err)
					}
					info, err := e.QueueInfo(ctx, shardtest.QueueARN(name))
					if err != nil {
						t.Fatal(err)
					}
					if n := len(ds) + int(info.Counts.Visible); n != 1 {
						t.Fatalf("%s has got %d messages", name, n)
					}
				}
			})
		}
	}
}

// TestStartsAreBounded: a start releases what very many subscriptions were being
// delivered in commits of at most 4 MiB, however many of them wait for the disk together.
func TestStartsAreBounded(t *testing.T) {
	if soak.Size(0, 1) == 0 {
		t.Skip("fewer subscriptions fit into one commit: at full size only")
	}
	const subscriptions = 27_000
	ctx := context.Background()
	var largest int
	o := shard.Options{Journal: shardtest.JournalOf(t, memory.New(), shardtest.Decodable(t, &largest)), Clock: clock.System}
	e := shardtest.Open(t, o)
	if err := e.CreateTopic(ctx, topic.CreateTopic{ARN: shardtest.TopicARN("wide")}); err != nil {
		t.Fatal(err)
	}
	for i := range subscriptions {
		shardtest.Subscribe(t, e, "wide", fmt.Sprint("q", i), shardtest.SubscriptionID(i))
	}
	if _, err := e.Publish(ctx, shardtest.TopicARN("wide"), shard.Publication{ID: shardtest.MessageID(1), Body: []byte("to all")}); err != nil {
		t.Fatal(err)
	}
	e.AwaitIdle()
	for round := range 2 { // with and without a lease each
		for i := range subscriptions {
			if ds := shardtest.TakeAll(t, e, shardtest.TopicARN("wide").Subscription(shardtest.SubscriptionID(i))); len(ds) != 1 {
				t.Fatalf("round %d: subscription %d has %d messages", round, i, len(ds))
			} else if round == 1 {
				e.Release(ds[0])
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		largest = 0
		e = shardtest.Open(t, o)
		e.Journal.Flush()
		if largest > mutation.MaxFramedBatch {
			t.Errorf("the largest commit of a start has %d bytes, round %d", largest, round)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// sameShard names queues that belong to the shard of a.
func sameShard(e *shard.Engine, a arn.ARN, n int) (names []string) {
	for i := 0; len(names) < n; i++ {
		if name := fmt.Sprintf("q%d", i); e.Topics.ShardOf(shardtest.QueueARN(name)) == e.Topics.ShardOf(a) {
			names = append(names, name)
		}
	}
	return names
}

// TestIdleQueuesCostLittle: a queue that nobody uses takes less than a kilobyte.
func TestIdleQueuesCostLittle(t *testing.T) {
	const queueCount = 5000
	ctx := context.Background()
	s := memory.New()
	func() {
		e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.System})
		defer e.Close()
		for i := range queueCount {
			name := fmt.Sprintf("an-idle-queue-with-a-name-of-usual-length-%d", i)
			if err := e.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN(name)}); err != nil {
				t.Fatal(err)
			}
		}
	}()
	before := shardtest.HeapInUse()
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.System})
	each := (shardtest.HeapInUse() - before) / queueCount
	t.Logf("%d bytes each", each)
	if each > 1024 || each < 100 {
		t.Errorf("an idle queue takes %d bytes", each)
	}
	e.Close()
}

// settableClock is a system clock that somebody sets.
type settableClock struct {
	clock.Clock
	mu  sync.Mutex
	now time.Time
}

func (c *settableClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *settableClock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

// TestTimeDoesNotGoBack: when the machine's clock is set back, a shard's stands
// still until that has caught up, also across a restart.
func TestTimeDoesNotGoBack(t *testing.T) {
	ctx := context.Background()
	c := &settableClock{Clock: clock.System, now: shardtest.Start}
	o := shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: c}
	e := shardtest.Open(t, o)
	if err := e.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("q")}); err != nil {
		t.Fatal(err)
	}
	sent := func() time.Duration {
		t.Helper()
		if _, err := e.Send(ctx, shardtest.QueueARN("q"), []queues.SendEntry{{Message: shardtest.NewMessage(1, "x")}}); err != nil {
			t.Fatal(err)
		}
		got, err := e.Receive(ctx, queues.ReceiveRequest{Queue: shardtest.QueueARN("q"), Max: 10, Visibility: 12 * time.Hour})
		if err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
		if got[0].FirstReceived != got[0].Sent {
			t.Errorf("sent at %d and received at %d", got[0].Sent, got[0].FirstReceived)
		}
		return time.UnixMilli(got[0].Sent).Sub(shardtest.Start)
	}
	expect := func(what string, want time.Duration) {
		t.Helper()
		if got := sent(); got != want {
			t.Errorf("%s: sent at %v, want %v", what, got, want)
		}
	}
	c.set(shardtest.Start.Add(time.Hour))
	expect("an hour later", time.Hour)
	c.set(shardtest.Start)
	expect("set back", time.Hour)
	e.Close()
	e = shardtest.Open(t, o)
	defer e.Close()
	expect("after a restart", time.Hour)
	if latest := e.Latest().Sub(shardtest.Start); latest != time.Hour {
		t.Errorf("the latest time is %v", latest)
	}
	c.set(shardtest.Start.Add(time.Hour + time.Second))
	expect("when the clock has caught up", time.Hour+time.Second)
}

// TestShardsKeepLittleRoom: what commands that change much leave behind in memory
// does not add up over the shards.
func TestShardsKeepLittleRoom(t *testing.T) {
	ctx := context.Background()
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: clock.System})
	defer e.Close()
	body := strings.Repeat("x", 2*journal.RetainedBatchBytes)
	for i := range 2 * kernel.Shards {
		q := shardtest.QueueARN(fmt.Sprint("q", i))
		if err := e.CreateQueue(ctx, queues.QueueSpec{ARN: q}); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Send(ctx, q, []queues.SendEntry{{Message: shardtest.NewMessage(i, body)}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, sh := range e.Topics.Shards {
		sh.View(func() {
			if capacity := sh.Batch.Available(); capacity > journal.RetainedBatchBytes {
				t.Errorf("shard %d keeps capacity for %d bytes", sh.ID, capacity)
			}
		})
	}
}
