package topics_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/shard/topics"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/topic/filter"
)

// witness keeps what publishes were told.
type witness struct {
	mu  sync.Mutex
	all []topics.Published
}

func (w *witness) see(p *topics.Published) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, *p)
}

func (w *witness) take() []topics.Published {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.all
	w.all = nil
	return all
}

// TestPublishedImmediately: the event of a publish that its own commit delivers.
func TestPublishedImmediately(t *testing.T) {
	ctx := context.Background()
	seen := &witness{}
	w := shardtest.NewImmediate(t, shard.Options{Clock: clock.NewVirtual(shardtest.Start), Published: seen.see})
	defer w.Close()
	if err := w.SetSubscriptionAttribute(ctx, w.Sub, "RawMessageDelivery", "true"); err != nil {
		t.Fatal(err)
	}
	other := shardtest.Subscribe(t, w.Engine, "direct", "elsewhere", shardtest.SubscriptionID(2)) // no such queue
	if err := w.SetSubscriptionAttribute(ctx, other, "FilterPolicy", `{"a":["x"]}`); err != nil {
		t.Fatal(err)
	}
	w.Say("hello")
	got := seen.take()
	var none [filter.Verdicts]int
	none[filter.NoMessageAttributes] = 1
	if len(got) != 1 || got[0].Delivered != 1 || got[0].FilteredOut != none || got[0].Size != 5 || got[0].ID != shardtest.MessageID(1) ||
		got[0].Topic != shardtest.TopicARN("direct") || !got[0].At.Equal(shardtest.Start) || got[0].Immediate != nil || got[0].Later {
		t.Errorf("events %+v", got)
	}
	for name, value := range map[string]string{"SQSSuccessFeedbackRoleArn": "arn:aws:iam::000000000000:role/r", "SQSSuccessFeedbackSampleRate": "7"} {
		if err := w.SetTopicAttribute(ctx, shardtest.TopicARN("direct"), name, value); err != nil {
			t.Fatal(err)
		}
	}
	_, err := w.Publish(ctx, shardtest.TopicARN("direct"), shard.Publication{ID: shardtest.MessageID(2), Body: []byte("a")}, shard.Publication{
		ID: shardtest.MessageID(3), Body: []byte("b"), Attributes: []message.Attribute{{Name: "a", Type: "String", Value: []byte("x")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	got = seen.take()
	if len(got) != 2 || got[0].FilteredOut != none || got[1].FilteredOut != [filter.Verdicts]int{} || got[1].Size != 1+1+6+1 {
		t.Fatalf("events %+v", got)
	}
	for i, p := range got {
		if p.Delivered != 1 || len(p.Immediate) != 1 || p.Immediate[0].Subscription.ARN != w.Sub || p.Feedback.Rate != 7 || !p.Feedback.Success ||
			string(p.Immediate[0].Body) != string("ab"[i]) {
			t.Errorf("event %+v", p)
		}
	}
	received, err := w.Receive(ctx, queues.ReceiveRequest{Queue: w.Queue, Max: 10, Visibility: -1})
	if err != nil || len(received) != 3 {
		t.Fatalf("received %v, %v", received, err)
	}
	for i, p := range got {
		if m := received[i+1]; p.Immediate[0].MessageID != m.ID {
			t.Errorf("the event names message %s, the queue has %s", p.Immediate[0].MessageID, m.ID)
		}
	}
	if _, err := w.Publish(ctx, shardtest.TopicARN("gone"), shard.Publication{ID: shardtest.MessageID(4), Body: []byte("a")}); err == nil || len(seen.take()) != 0 {
		t.Errorf("a publish to no topic: %v", err)
	}
}

// TestPublishedInSteps: what goes to more subscriptions than fit into one commit
// is called for once when it is accepted, and once when all have been looked at.
func TestPublishedInSteps(t *testing.T) {
	ctx := context.Background()
	s := shardtest.NewStore(t)
	defer s.Close()
	seen := &witness{}
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.NewVirtual(shardtest.Start), Published: seen.see})
	defer e.Close()
	if err := e.CreateTopic(ctx, topic.CreateTopic{ARN: shardtest.TopicARN("wide")}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 * topics.FanoutStep {
		sub := shardtest.Subscribe(t, e, "wide", fmt.Sprintf("q%d", i), shardtest.SubscriptionID(i))
		policy := map[int]string{0: `{"a":["x"]}`, 1: `{"a":["y"]}`, 2: ""}[i%3]
		if err := e.SetSubscriptionAttribute(ctx, sub, "FilterPolicy", policy); err != nil {
			t.Fatal(err)
		}
	}
	_, err := e.Publish(ctx, shardtest.TopicARN("wide"), shard.Publication{
		ID: shardtest.MessageID(1), Body: []byte("to many"), Attributes: []message.Attribute{{Name: "a", Type: "String", Value: []byte("x")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	e.AwaitIdle()
	var want [filter.Verdicts]int
	want[filter.AttributesMismatch] = topics.FanoutStep
	got := seen.take()
	if len(got) != 2 {
		t.Fatalf("events %+v", got)
	}
	if got[0].Later { // the steps in the background may be quicker
		got[0], got[1] = got[1], got[0]
	}
	if got[0].Later || got[0].Size != 7+1+6+1 || got[0].FilteredOut != [filter.Verdicts]int{} {
		t.Errorf("first %+v", got[0])
	}
	if !got[1].Later || got[1].FilteredOut != want {
		t.Errorf("then %+v, want %v filtered out", got[1], want)
	}
}
