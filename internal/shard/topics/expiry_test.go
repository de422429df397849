package topics_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/shard/topics"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/topic"
)

// TestExpiryAfterRestart: unconfirmed subscriptions expire at their time,
// with their backlogs, though the process that took them is gone; more of them
// than one command removes go all the same, and no confirmed one does.
func TestExpiryAfterRestart(t *testing.T) {
	ctx := context.Background()
	now := clock.NewVirtual(shardtest.Start)
	fs := vfs.NewMem()
	s := shardtest.OpenStore(t, fs)
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: now})
	name := shardtest.TopicARN("orders")
	if err := e.CreateTopic(ctx, topic.CreateTopic{ARN: name}); err != nil {
		t.Fatal(err)
	}
	pending := func(e *shard.Engine, n int) {
		t.Helper()
		_, err := e.Subscribe(ctx, topic.Subscribe{
			Topic: name, Owner: name.Account, Protocol: "https", Endpoint: fmt.Sprintf("https://host%d/", n),
			ID: shardtest.SubscriptionID(n), Token: fmt.Sprint("token", n),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	const waiting = topics.ExpiryStep + 10
	for n := range waiting {
		pending(e, n)
	}
	// The endpoints got their confirmations, so that no backlog sets a timer.
	for n := range waiting {
		ds, _, err := e.Take(name.Subscription(shardtest.SubscriptionID(n)), 1)
		if err != nil || len(ds) != 1 {
			t.Fatal(ds, err)
		}
		e.Delivered(ds[0], backlog.Attempt{At: shardtest.Start, Outcome: "success"})
	}
	kept := shardtest.Subscribe(t, e, "orders", "q", shardtest.SubscriptionID(waiting))
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = shardtest.OpenStore(t, fs)
	defer s.Close()
	e = shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: now})
	defer e.Close()
	there := func() int {
		t.Helper()
		subs, _, err := e.ListSubscriptionsByTopic(ctx, name, "", 10*waiting)
		if err != nil {
			t.Fatal(err)
		}
		return len(subs)
	}
	if _, err := now.Advance(ctx, topic.PendingLife-time.Second); err != nil {
		t.Fatal(err)
	}
	if n := there(); n != waiting+1 {
		t.Errorf("%d subscriptions before the time, want %d", n, waiting+1)
	}
	if _, err := now.Advance(ctx, time.Second); err != nil {
		t.Fatal(err)
	}
	if n := there(); n != 1 {
		t.Errorf("%d subscriptions after the time, want the confirmed one", n)
	}
	if _, err := e.SubscriptionAttributes(ctx, kept); err != nil {
		t.Error(err)
	}
	if _, err := e.SubscriptionAttributes(ctx, name.Subscription(shardtest.SubscriptionID(0))); err == nil {
		t.Error("a subscription that was not confirmed is there")
	}
	sh := e.Topics.ShardOf(name)
	var backlogs int
	sh.View(func() { backlogs = len(sh.Backlogs) })
	if backlogs != 0 {
		t.Errorf("%d backlogs are left", backlogs)
	}
}

// TestConfirmUnderAnotherTopic: the token alone says which subscription it confirms, whichever shard
// has the topic that a request names; of that only the region counts.
func TestConfirmUnderAnotherTopic(t *testing.T) {
	ctx := context.Background()
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: clock.NewVirtual(shardtest.Start)})
	defer e.Close()
	name := shardtest.TopicARN("orders")
	if err := e.CreateTopic(ctx, topic.CreateTopic{ARN: name}); err != nil {
		t.Fatal(err)
	}
	sub, err := e.Subscribe(ctx, topic.Subscribe{
		Topic: name, Owner: shardtest.Account, Protocol: "https", Endpoint: "https://host/", ID: shardtest.SubscriptionID(1), Token: strings.Repeat("a", 288),
	})
	if err != nil {
		t.Fatal(err)
	}
	ds, _, err := e.Take(sub.ARN, 1)
	if err != nil || len(ds) != 1 {
		t.Fatal(ds, err)
	}
	token := ds[0].Message.Notice.Token
	e.Release(ds[0])
	other := name
	for i := 0; e.Topics.ShardOf(other).ID == e.Topics.ShardOf(name).ID; i++ {
		other = shardtest.TopicARN(fmt.Sprint("other", i))
	}
	abroad := arn.Topic("eu-west-1", shardtest.Account, "orders")
	if got, err := e.ConfirmSubscription(ctx, topic.Confirm{Topic: abroad, Token: token}); !errors.Is(err, topic.ErrTopicOfToken) {
		t.Errorf("in another region: %v, %v", got, err)
	}
	if got, err := e.ConfirmSubscription(ctx, topic.Confirm{Topic: other, Token: token}); err != nil || got != sub.ARN {
		t.Errorf("confirmed %v, %v", got, err)
	}
}

// TestExpiryIsBounded: a topic's record, which counts what was removed, may be as
// large as its policy; unconfirmed subscriptions are removed in steps, of which two may
// share a commit, and a commit has at most 4 MiB.
func TestExpiryIsBounded(t *testing.T) {
	ctx := context.Background()
	var largest int
	now := clock.NewVirtual(shardtest.Start)
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, memory.New(), shardtest.Decodable(t, &largest)), Clock: now})
	defer e.Close()
	name := shardtest.TopicARN("t")
	doc := fmt.Sprintf(`{"Version":"2012-10-17","Id":"%s","Statement":[{"Effect":"Allow","Principal":"*","Action":"SNS:Publish","Resource":"%s"}]}`,
		strings.Repeat("x", 29<<10), name)
	if err := e.CreateTopic(ctx, topic.CreateTopic{ARN: name, Attributes: map[string]string{"Policy": doc}}); err != nil {
		t.Fatal(err)
	}
	for i := range topics.ExpiryStep {
		if _, err := e.Subscribe(ctx, topic.Subscribe{
			Topic: name, Owner: shardtest.Account, Protocol: "http", Endpoint: fmt.Sprintf("http://127.0.0.1:1/%d", i), ID: shardtest.SubscriptionID(i), Token: fmt.Sprint(i),
		}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := now.Advance(ctx, topic.PendingLife); err != nil {
		t.Fatal(err)
	}
	if a, err := e.TopicAttributes(ctx, name); err != nil || a["SubscriptionsDeleted"] != fmt.Sprint(topics.ExpiryStep) || largest > mutation.MaxFramedBatch {
		t.Errorf("%s of %d subscriptions are deleted, the largest commit has %d bytes: %v", a["SubscriptionsDeleted"], topics.ExpiryStep, largest, err)
	}
}
