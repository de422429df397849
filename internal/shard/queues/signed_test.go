package queues_test

import (
	"context"
	"sync"
	"testing"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/topic"
)

// TestSignedWhenReceived: a message without its signature comes into a queue, is
// moved and dies as it is, and is signed each time that somebody receives it.
func TestSignedWhenReceived(t *testing.T) {
	ctx := context.Background()
	for _, twoStep := range []bool{false, true} {
		c := clock.NewVirtual(shardtest.Start)
		var ids int
		signing, publishing := 0, true
		var mu sync.Mutex
		o := shard.Options{
			Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: c, TwoStep: twoStep, NewID: func() message.ID { ids++; return shardtest.MessageID(1000 + ids) },
			Sign: func(body []byte, u *message.Unsigned) error {
				mu.Lock()
				defer mu.Unlock()
				if signing++; publishing {
					t.Error("signed on the way of a publish")
				}
				copy(body[u.Offset:], u.Digest)
				return nil
			},
		}
		o.Render = func(n *message.Message) (*message.Message, error) {
			return &message.Message{
				ID: o.NewID(), Body: append([]byte("?? "), n.Body...),
				Unsigned: &message.Unsigned{Key: [16]byte{1}, Version: 2, Digest: []byte("ok")},
			}, nil
		}
		e := shardtest.Open(t, o)
		if err := e.CreateTopic(ctx, topic.CreateTopic{ARN: shardtest.TopicARN("t")}); err != nil {
			t.Fatal(err)
		}
		for _, spec := range []queues.QueueSpec{
			{ARN: shardtest.QueueARN("dead")},
			{ARN: shardtest.QueueARN("q"), Attributes: map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + shardtest.QueueARN("dead").String() + `","maxReceiveCount":2}`}},
		} {
			if err := e.CreateQueue(ctx, spec); err != nil {
				t.Fatal(err)
			}
		}
		p := &shardtest.Pump{Engine: e, NewID: o.NewID}
		e.SetConsumer("sns", p)
		sub := shardtest.Subscribe(t, e, "t", "q", shardtest.SubscriptionID(1))
		for i := range 3 {
			if _, err := e.Publish(ctx, shardtest.TopicARN("t"), shard.Publication{ID: shardtest.MessageID(i), Body: []byte("text")}); err != nil {
				t.Fatal(err)
			}
		}
		if twoStep {
			for _, d := range shardtest.TakeAll(t, e, sub) {
				m, _ := o.Render(d.Message)
				if err := e.Transfer(ctx, d, shardtest.QueueARN("q"), m, backlog.Ending{State: backlog.DeliveryDelivered}); err != nil {
					t.Fatal(err)
				}
			}
		}
		publishing = false
		for round, name := range []string{"q", "q", "q", "dead"} {
			got, err := e.Receive(ctx, queues.ReceiveRequest{Queue: shardtest.QueueARN(name), Max: 10})
			e.AwaitIdle()
			if err != nil {
				t.Fatal(err)
			}
			if round == 2 { // they die
				continue
			}
			if len(got) != 3 {
				t.Fatalf("%d messages came from %s", len(got), name)
			}
			for _, m := range got {
				want := message.Message{Body: []byte("ok text")}
				want.Seal()
				if string(m.Body) != "ok text" || m.BodyMD5 != want.BodyMD5 || m.Unsigned != nil {
					t.Errorf("from %s came %q, digest %x, %v", name, m.Body, m.BodyMD5, m.Unsigned)
				}
			}
		}
		if signing != 9 {
			t.Errorf("signed %d times", signing)
		}
		e.Close()
	}
}
