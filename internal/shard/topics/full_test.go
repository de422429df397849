package topics_test

import (
	"context"
	"errors"
	"testing"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/topic"
)

// TestFullDisk: what is there can be created and subscribed again while the disk is short of space, as
// applications do when they start; nothing new can.
func TestFullDisk(t *testing.T) {
	ctx := context.Background()
	full := false
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: clock.NewVirtual(shardtest.Start), Full: func() bool { return full }})
	defer e.Close()
	create := func(name string) error {
		return e.CreateTopic(ctx, topic.CreateTopic{ARN: shardtest.TopicARN(name)})
	}
	subscribe := func(queue string) error {
		_, err := e.Subscribe(ctx, topic.Subscribe{Topic: shardtest.TopicARN("t"), ID: queue, Owner: shardtest.Account, Protocol: "sqs", Endpoint: shardtest.QueueARN(queue).String()})
		return err
	}
	if err := errors.Join(create("t"), subscribe("q")); err != nil {
		t.Fatal(err)
	}
	full = true
	if err := errors.Join(create("t"), subscribe("q")); err != nil {
		t.Errorf("again: %v", err)
	}
	if err := create("u"); !errors.Is(err, kernel.ErrFull) {
		t.Errorf("a new topic: %v", err)
	}
	if err := subscribe("r"); !errors.Is(err, kernel.ErrFull) {
		t.Errorf("a new subscription: %v", err)
	}
}
