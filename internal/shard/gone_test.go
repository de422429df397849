package shard_test

import (
	"context"
	"errors"
	"testing"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/topic"
)

// TestCallerGone: what a caller who has gone asks for is not begun.
func TestCallerGone(t *testing.T) {
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: clock.System})
	q, to := shardtest.QueueARN("q"), shardtest.TopicARN("t")
	if err := e.CreateQueue(t.Context(), shard.QueueSpec{ARN: q}); err != nil {
		t.Fatal(err)
	}
	if err := e.CreateTopic(t.Context(), topic.CreateTopic{ARN: to}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Send(t.Context(), q, []shard.SendEntry{{Message: shardtest.NewMessage(0, "waits")}}); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	commits := e.Journal.Commits()
	for name, command := range map[string]func() error{
		"Send": func() error {
			_, err := e.Send(ctx, q, []shard.SendEntry{{Message: shardtest.NewMessage(1, "x")}})
			return err
		},
		"Receive": func() error {
			_, err := e.Receive(ctx, shard.ReceiveRequest{Queue: q, Max: 1})
			return err
		},
		"DeleteMessages":   func() error { _, err := e.DeleteMessages(ctx, q, []string{"h"}); return err },
		"ChangeVisibility": func() error { _, err := e.ChangeVisibility(ctx, q, []shard.VisibilityChange{{}}); return err },
		"DeleteQueue":      func() error { return e.DeleteQueue(ctx, q) },
		"QueueConfig":      func() error { _, err := e.QueueConfig(ctx, q); return err },
		"QueueGauges":      func() error { _, err := e.QueueGauges(ctx, q); return err },
		"ListQueues":       func() error { _, _, err := e.ListQueues(ctx, q.Region, q.Account, "", "", 1); return err },
		"ListTopics":       func() error { _, _, err := e.ListTopics(ctx, q.Region, q.Account, "", 1); return err },
		"Publish":          func() error { _, err := e.Publish(ctx, to, shard.Publication{}); return err },
		"InvokeAsync":      func() error { return e.InvokeAsync(ctx, q, function.Event{}) },
		"Deliveries":       func() error { _, err := e.Deliveries(ctx, q, 1); return err },
		"RetryNow":         func() error { _, err := e.RetryNow(ctx, q, ""); return err },
		"RetryAllNow":      func() error { _, err := e.RetryAllNow(ctx, q); return err },
		"Peek":             func() error { _, err := e.Peek(ctx, q, ""); return err },
	} {
		if err := command(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	e.Journal.Flush()
	if n := e.Journal.Commits() - commits; n != 0 {
		t.Errorf("they made %d commits", n)
	}
	if g, err := e.QueueGauges(t.Context(), q); err != nil || g.Visible != 1 {
		t.Errorf("%+v, %v", g, err)
	}
}
