package queues_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/queues/queuepolicy"
	"godwit.dev/godwit/internal/shard/shardtest"
)

// admitted reports whether a queue takes a topic's deliveries.
func admitted(t testing.TB, e *shard.Engine, q, from arn.ARN) bool {
	t.Helper()
	sh := e.Topics.ShardOf(q)
	var err error
	sh.View(func() { err = shardtest.QueueIn(sh, q).Admits(from, sh.Now()) })
	if err != nil && fault.KindOf(err) != fault.AccessDenied {
		t.Errorf("refused with %v", err)
	}
	return err == nil
}

// A policy holds wherever its queue comes from: set with the queue, set later,
// edited, left alone by other changes, purged, loaded.
func TestPolicyIsKept(t *testing.T) {
	ctx := context.Background()
	s := shardtest.NewStore(t)
	defer s.Close()
	o := shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.NewVirtual(shardtest.Start)}
	e := shardtest.Open(t, o)
	q, one, other := shardtest.QueueARN("q"), shardtest.TopicARN("one"), shardtest.TopicARN("other")
	foreign := arn.Topic(shardtest.Region, "111122223333", "one")
	check := func(what, want string) {
		t.Helper()
		var in []string
		for _, from := range []arn.ARN{one, other, foreign} {
			if admitted(t, e, q, from) {
				in = append(in, from.Account[:1]+from.Resource)
			}
		}
		if got := strings.Join(in, " "); got != want {
			t.Errorf("%s: %q may send, want %q", what, got, want)
		}
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(e.CreateQueue(ctx, queues.QueueSpec{ARN: q, Attributes: map[string]string{"Policy": shardtest.Admitting(q, one)}}))
	check("created with it", "0one")
	do(e.SetQueueAttributes(ctx, q, map[string]string{"DelaySeconds": "1"}))
	check("another attribute changed", "0one")
	do(e.PurgeQueue(ctx, q))
	check("purged", "0one")
	do(e.Close())
	e = shardtest.Open(t, o)
	check("loaded", "0one")
	do(e.AddPermission(ctx, q, shard.Permission{Label: "l", Accounts: []string{foreign.Account}, Actions: []string{"*"}}))
	check("a permission added", "0one")
	shardtest.SetPolicy(t, e, q, shardtest.Admitting(q, foreign))
	check("changed", "1one")
	do(e.RemovePermission(ctx, q, "own"))
	check("its last statement removed", "0one 0other")
	do(e.AddPermission(ctx, q, shard.Permission{Label: "l", Accounts: []string{foreign.Account}, Actions: []string{"*"}}))
	check("nothing but a permission", "")
	shardtest.SetPolicy(t, e, q, "")
	check("removed", "0one 0other")
	do(e.Close())
	e = shardtest.Open(t, o)
	check("loaded without", "0one 0other")
	do(e.Close())
}

// A stored policy that cannot be read lets nobody in, and does not keep the
// server from starting.
func TestUnreadablePolicyDenies(t *testing.T) {
	s := shardtest.NewStore(t)
	defer s.Close()
	var logged bytes.Buffer
	o := shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.NewVirtual(shardtest.Start), Logger: slog.New(slog.NewTextHandler(&logged, nil))}
	e := shardtest.Open(t, o)
	q := shardtest.QueueARN("q")
	if err := e.CreateQueue(context.Background(), queues.QueueSpec{ARN: q}); err != nil {
		t.Fatal(err)
	}
	sh := e.Topics.ShardOf(q)
	err := sh.RunDurable(func(*kernel.Tx) error {
		shardtest.QueueIn(sh, q).Record.Attributes = map[string]string{"Policy": `{"Statement":"an older version took it"}`}
		sh.WriteQueue(shardtest.QueueIn(sh, q))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = shardtest.Open(t, o)
	defer e.Close()
	if admitted(t, e, q, shardtest.TopicARN("t")) || !strings.Contains(logged.String(), "level=WARN") {
		t.Errorf("admitted; logged: %s", logged.String())
	}
	shardtest.SetPolicy(t, e, q, "")
	if !admitted(t, e, q, shardtest.TopicARN("t")) {
		t.Error("a new policy does not hold")
	}
}

// A transfer that the policy forbids leaves the delivery as it was, both ways.
func TestForbiddenTransfer(t *testing.T) {
	for _, twoStep := range []bool{false, true} {
		w := shardtest.NewImmediate(t, shard.Options{Clock: clock.NewVirtual(shardtest.Start), TwoStep: twoStep})
		shardtest.SetPolicy(t, w.Engine, w.Queue, shardtest.Admitting(w.Queue, shardtest.TopicARN("another")))
		w.Say("a")
		ctx := context.Background()
		ds, _, err := w.Take(w.Sub, 1)
		if err != nil || len(ds) != 1 {
			t.Fatal(ds, err)
		}
		transfer := func() error {
			m := &message.Message{ID: shardtest.MessageID(7), Body: []byte("a")}
			m.Seal()
			return w.Transfer(ctx, ds[0], w.Queue, m, backlog.Ending{Attempt: backlog.Attempt{Outcome: "success"}, State: backlog.DeliveryDelivered})
		}
		if err := transfer(); fault.KindOf(err) != fault.AccessDenied {
			t.Errorf("two steps %t: %v", twoStep, err)
		}
		if got := w.Where(); got != "0 in the queue, 1 waiting" {
			t.Errorf("two steps %t: %s", twoStep, got)
		}
		shardtest.SetPolicy(t, w.Engine, w.Queue, "")
		if err := transfer(); err != nil {
			t.Error(err)
		}
		if got := w.Where(); got != "1 in the queue, 0 waiting" {
			t.Errorf("two steps %t: %s", twoStep, got)
		}
		w.Close()
	}
}

// A queue without a policy costs a delivery nothing.
func TestNoPolicyCostsNothing(t *testing.T) {
	qs := &queues.Queue{ARN: shardtest.QueueARN("q"), Record: &queues.QueueRecord{}}
	from := shardtest.TopicARN("t")
	if n := testing.AllocsPerRun(100, func() { _ = qs.Admits(from, 1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAdmits(b *testing.B) {
	q, from := shardtest.QueueARN("q"), shardtest.TopicARN("t")
	p, err := queuepolicy.Parse(shardtest.Admitting(q, from))
	if err != nil {
		b.Fatal(err)
	}
	for name, qs := range map[string]*queues.Queue{
		"none": {ARN: q, Record: &queues.QueueRecord{}}, "one topic": {ARN: q, Record: &queues.QueueRecord{}, Policy: p},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if qs.Admits(from, 1) != nil {
					b.Fatal("refused")
				}
			}
		})
	}
}

// Where policies are enforced, a queue that has none lets no topic in.
func TestStrictQueueWithoutAPolicy(t *testing.T) {
	ctx := context.Background()
	s := shardtest.NewStore(t)
	defer s.Close()
	o := shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.NewVirtual(shardtest.Start), Strict: true}
	e := shardtest.Open(t, o)
	defer e.Close()
	q, one := shardtest.QueueARN("q"), shardtest.TopicARN("one")
	if err := e.CreateQueue(ctx, shard.QueueSpec{ARN: q}); err != nil {
		t.Fatal(err)
	}
	if admitted(t, e, q, one) {
		t.Error("a topic is let in by no policy")
	}
	shardtest.SetPolicy(t, e, q, shardtest.Admitting(q, one))
	if !admitted(t, e, q, one) {
		t.Error("a topic is not let in by the policy")
	}
}
