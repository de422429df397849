package topics_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/topic"
)

func createFIFOTopic(t *testing.T, e *shard.Engine, name string, attributes map[string]string) {
	t.Helper()
	all := map[string]string{"FifoTopic": "true"}
	maps.Copy(all, attributes)
	if err := e.CreateTopic(context.Background(), topic.CreateTopic{ARN: shardtest.TopicARN(name), Attributes: all}); err != nil {
		t.Fatal(err)
	}
}

// TestFIFOTopicOrderBehindFanouts: messages that fit into one commit wait for
// those before them that are spread in steps.
func TestFIFOTopicOrderBehindFanouts(t *testing.T) {
	ctx := context.Background()
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: clock.NewVirtual(shardtest.Start)})
	defer e.Close()
	createFIFOTopic(t, e, "wide.fifo", nil)
	const subscribers = 30
	for i := range subscribers {
		shardtest.Subscribe(t, e, "wide.fifo", fmt.Sprintf("q%d.fifo", i), shardtest.SubscriptionID(i))
	}
	var first uint64
	for i, size := range []int{200_000, 10, 200_000, 10, 10} {
		p := shard.Publication{ID: shardtest.MessageID(i), Body: []byte(strings.Repeat("x", size)), Group: "g", Dedup: fmt.Sprint(i)}
		r, err := e.Publish(ctx, shardtest.TopicARN("wide.fifo"), p)
		if err == nil && i == 0 {
			first = r[0].Sequence
		}
		if err != nil || r[0].Sequence != first+uint64(i) {
			t.Fatal(r, err)
		}
	}
	e.AwaitIdle()
	sh := e.Topics.ShardOf(shardtest.TopicARN("wide.fifo"))
	if len(sh.FanningOut()) != 0 || sh.Fanouts() != 0 {
		t.Errorf("still spreading %v, %v", sh.FanningOut(), sh.Fanouts())
	}
	for i := range subscribers {
		for want := first; want < first+5; want++ {
			ds, _, err := e.Take(shardtest.TopicARN("wide.fifo").Subscription(shardtest.SubscriptionID(i)), 10)
			if err != nil || len(ds) != 1 || ds[0].Message.Notice.Sequence != want {
				t.Fatalf("subscriber %d: not message %d alone: %d, %v", i, want, len(ds), err)
			}
			e.Delivered(ds[0], backlog.Attempt{Outcome: "success"})
		}
	}
}

// TestImmediateGroups: a FIFO queue gets the group and the deduplication id of a FIFO topic's message in
// the commit of the publish, and a standard queue neither.
func TestImmediateGroups(t *testing.T) {
	ctx := context.Background()
	ids := 0
	newID := func() message.ID { ids++; return shardtest.MessageID(1000 + ids) }
	render := func(n *message.Message) (*message.Message, error) {
		m := &message.Message{ID: newID(), Sender: n.Sender, Body: n.Body, Group: n.Group, Dedup: n.Dedup}
		m.Seal()
		return m, nil
	}
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: clock.NewVirtual(shardtest.Start), NewID: newID, Render: render})
	defer e.Close()
	createFIFOTopic(t, e, "both.fifo", nil)
	for i, c := range []struct {
		name, group, dedup string
		attributes         map[string]string
	}{
		{"q.fifo", "g", "d", map[string]string{"FifoQueue": "true"}},
		{"q", "", "", nil},
	} {
		if err := e.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN(c.name), Attributes: c.attributes}); err != nil {
			t.Fatal(err)
		}
		sub := shardtest.Subscribe(t, e, "both.fifo", c.name, shardtest.SubscriptionID(i))
		if err := e.SetSubscriptionAttribute(ctx, sub, "RawMessageDelivery", "true"); err != nil {
			t.Fatal(err)
		}
		p := shard.Publication{ID: shardtest.MessageID(i), Body: []byte("x"), Group: "g", Dedup: "d" + strings.Repeat("+", i)}
		if _, err := e.Publish(ctx, shardtest.TopicARN("both.fifo"), p); err != nil {
			t.Fatal(err)
		}
		got, err := e.Receive(ctx, queues.ReceiveRequest{Queue: shardtest.QueueARN(c.name), Max: 1})
		if err != nil || len(got) != 1 || got[0].Group != c.group || got[0].Dedup != c.dedup {
			t.Errorf("%s got %+v, %v", c.name, got, err)
		}
	}
}

// TestNoArchiveWithoutPolicy: what a topic without an archive policy accepts is not stored in one.
func TestNoArchiveWithoutPolicy(t *testing.T) {
	s := memory.New()
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.NewVirtual(shardtest.Start)})
	createFIFOTopic(t, e, "plain.fifo", nil)
	if _, err := e.Publish(t.Context(), shardtest.TopicARN("plain.fifo"), shard.Publication{ID: shardtest.MessageID(1), Body: []byte("x"), Group: "g", Dedup: "1"}); err != nil {
		t.Fatal(err)
	}
	e.Journal.Flush()
	if n := shardtest.CountKeys(t, s, 'A', 0); n != 0 {
		t.Errorf("%d are kept", n)
	}
}

// TestArchiveIsShortened: what is too old leaves the store, and the rest stays.
func TestArchiveIsShortened(t *testing.T) {
	ctx := context.Background()
	c, s := clock.NewVirtual(shardtest.Start), memory.New()
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: c})
	createFIFOTopic(t, e, "old.fifo", map[string]string{"ArchivePolicy": `{"MessageRetentionPeriod":"1"}`})
	kept := func() int {
		t.Helper()
		e.Journal.Flush()
		return shardtest.CountKeys(t, s, 'A', 0)
	}
	for i := range 10 {
		p := shard.Publication{ID: shardtest.MessageID(i), Body: []byte("x"), Group: "g", Dedup: fmt.Sprint(i)}
		if _, err := e.Publish(ctx, shardtest.TopicARN("old.fifo"), p); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Advance(ctx, 2*time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if n := kept(); n != 10 {
		t.Errorf("after 20 hours %d of 10 are kept", n)
	}
	if _, err := c.Advance(ctx, 10*time.Hour); err != nil { // 30 hours: the first four are too old
		t.Fatal(err)
	}
	if n := kept(); n < 6 || n > 7 {
		t.Errorf("after 30 hours %d are kept, want 6, or one more for an hour", n)
	}
	e.Close()
	e = shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: c})
	defer e.Close()
	if _, err := c.Advance(ctx, 48*time.Hour); err != nil {
		t.Fatal(err)
	}
	if n := kept(); n != 0 {
		t.Errorf("after a restart and two days %d are kept", n)
	}
}
