package shardtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/topic"
)

// Immediate is an engine that delivers publishes at once, with a topic whose
// subscriber is a queue in a shard before the topic's.
type Immediate struct {
	*shard.Engine
	T     *testing.T
	Queue arn.ARN
	NewID func() message.ID
	Sub   arn.ARN
}

// NewImmediate makes it. It gives ids and renders by itself; what begins with "bad" cannot be
// rendered.
func NewImmediate(t *testing.T, o shard.Options) *Immediate {
	ctx := context.Background()
	var mu sync.Mutex
	ids := 0
	if o.Journal == nil {
		o.Journal = JournalOf(t, memory.New(), nil)
	}
	o.NewID = func() message.ID {
		mu.Lock()
		defer mu.Unlock()
		ids++
		return MessageID(1000 + ids)
	}
	o.Render = func(n *message.Message) (*message.Message, error) {
		if strings.HasPrefix(string(n.Body), "bad") {
			return nil, errors.New("it cannot be rendered")
		}
		m := &message.Message{ID: o.NewID(), Sender: n.Sender, Body: n.Body}
		m.Seal()
		return m, nil
	}
	w := &Immediate{T: t, NewID: o.NewID, Engine: Open(t, o)}
	if err := w.CreateTopic(ctx, topic.CreateTopic{ARN: TopicARN("direct")}); err != nil {
		t.Fatal(err)
	}
	for i := 0; w.Queue.IsZero(); i++ {
		if q := QueueARN(fmt.Sprintf("q%d", i)); w.Topics.ShardOf(q).ID < w.Topics.ShardOf(TopicARN("direct")).ID {
			w.Queue = q
		}
	}
	w.MakeQueue()
	w.Sub = Subscribe(t, w.Engine, "direct", w.Queue.Resource, SubscriptionID(1))
	return w
}

// MakeQueue makes the queue, which takes up to 1,024 bytes.
func (w *Immediate) MakeQueue() {
	w.T.Helper()
	err := w.CreateQueue(context.Background(), queues.QueueSpec{ARN: w.Queue, Attributes: map[string]string{"MaximumMessageSize": "1024"}})
	if err != nil {
		w.T.Fatal(err)
	}
}

// Say publishes a message.
func (w *Immediate) Say(body string) {
	w.T.Helper()
	if _, err := w.Publish(context.Background(), TopicARN("direct"), shard.Publication{ID: MessageID(1), Body: []byte(body)}); err != nil {
		w.T.Fatal(err)
	}
}

// Where reports how many messages are in the queue and how many wait in the
// backlog of its subscription.
func (w *Immediate) Where() string {
	w.T.Helper()
	info, err := w.QueueInfo(context.Background(), w.Queue)
	if err != nil {
		info.Counts.Visible = -1
	}
	sh := w.Topics.ShardOf(TopicARN("direct"))
	waiting := int64(0)
	sh.View(func() {
		if s, ok := sh.Topics.Subscription(w.Sub); ok {
			if qs := sh.BacklogOf(s); qs != nil {
				c := qs.Machine.Counts(sh.Now())
				waiting = c.Visible + c.InFlight + c.Delayed
			}
		}
	})
	return fmt.Sprintf("%d in the queue, %d waiting", info.Counts.Visible+info.Counts.Delayed, waiting)
}
