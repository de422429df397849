package shardtest

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/topic"
)

// QueueIn is a queue that a shard has, whose lock is held.
func QueueIn(sh interface{ OfQueues() *queues.Shard }, a arn.ARN) *queues.Queue {
	qs, _ := sh.OfQueues().Queue(a)
	return qs
}

// Admitting is a queue's policy that lets one topic in.
func Admitting(q, t arn.ARN) string {
	return `{"Version":"2012-10-17","Statement":[{"Sid":"own","Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},"Action":"sqs:SendMessage",` +
		`"Resource":"` + q.String() + `","Condition":{"ArnEquals":{"aws:SourceArn":"` + t.String() + `"}}}]}`
}

// SetPolicy changes the policy of a queue.
func SetPolicy(t testing.TB, e *shard.Engine, q arn.ARN, doc string) {
	t.Helper()
	if err := e.SetQueueAttributes(context.Background(), q, map[string]string{"Policy": doc}); err != nil {
		t.Fatal(err)
	}
}

// WebHook is an engine with a confirmed web hook that has a message waiting, and the
// command that removes it.
func WebHook(t *testing.T, o shard.Options) (*shard.Engine, topic.Unsubscribe) {
	t.Helper()
	ctx := context.Background()
	e := Open(t, o)
	if err := e.CreateTopic(ctx, topic.CreateTopic{ARN: TopicARN("t")}); err != nil {
		t.Fatal(err)
	}
	sub, err := e.Subscribe(ctx, topic.Subscribe{
		Topic: TopicARN("t"), Owner: Account, Protocol: "http", Endpoint: "http://hook/", ID: SubscriptionID(1), Token: "first",
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.ConfirmSubscription(ctx, topic.Confirm{Topic: TopicARN("t"), Token: "first"}); err != nil {
		t.Fatal(err)
	}
	ds, _, err := e.Take(sub.ARN, 1)
	if err != nil || len(ds) != 1 {
		t.Fatalf("took %d confirmations: %v", len(ds), err)
	}
	e.Delivered(ds[0], backlog.Attempt{})
	if _, err := e.Publish(ctx, TopicARN("t"), shard.Publication{ID: MessageID(1), Body: []byte("waits")}); err != nil {
		t.Fatal(err)
	}
	return e, topic.Unsubscribe{Subscription: sub.ARN, Token: "regret"}
}

// HeapInUse is how much memory is in use, in bytes.
func HeapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what a pool held goes with the second
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TakeAll takes what is due of a backlog, which is ten deliveries at most.
func TakeAll(t testing.TB, e *shard.Engine, sub arn.ARN) []*backlog.Delivery {
	t.Helper()
	ds, more, err := e.Take(sub, 10)
	if err != nil || more {
		t.Fatalf("take: %v, %v", more, err)
	}
	return ds
}

// Arrival is a message as it enters a queue.
func Arrival(body string, now int64) queue.Arrival {
	m := NewMessage(1, body)
	m.Sent = now
	return queue.Arrival{Record: m.AppendRecord(nil), Sent: now, Due: now}
}

// Said is a short form of an error.
func Said(err error) string {
	if err == nil {
		return "ok"
	}
	return fmt.Sprint("fault ", fault.KindOf(err) == fault.QueueDoesNotExist || fault.KindOf(err) == fault.NotFound)
}

// Decodable fails the test on a commit that no standby would take, and keeps
// the size of the largest.
func Decodable(t *testing.T, largest *int) func([]byte) {
	return func(sealed []byte) {
		*largest = max(*largest, len(sealed))
		if _, err := mutation.DecodeFramedBatch(sealed); err != nil {
			t.Errorf("a commit of %d bytes: %v", len(sealed), err)
		}
	}
}

// After is a channel that is closed once d has passed.
func After(d time.Duration) <-chan struct{} {
	over, _ := clock.After(clock.System, d)
	return over
}
