package jobs_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"godwit.dev/godwit/internal/api/operator/messages"
	"godwit.dev/godwit/internal/shard/inspect"
	kept "godwit.dev/godwit/internal/shard/jobs"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store/memory"
)

// TestQueueMadeAgain: a job leaves alone what is in a queue that was deleted and made again under
// the name of its own, whose messages are in the same places.
func TestQueueMadeAgain(t *testing.T) {
	ctx := context.Background()
	n := open(t, memory.New(), nil)
	defer n.Close()
	work, other := shardtest.QueueARN("work"), shardtest.QueueARN("other")
	fill := func() (places, named []string, found *inspect.Found) {
		t.Helper()
		if err := n.CreateQueue(ctx, queues.QueueSpec{ARN: work}); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if _, err := n.Send(ctx, work, []queues.SendEntry{{Message: shardtest.NewMessage(i, "order")}}); err != nil {
				t.Fatal(err)
			}
		}
		found, err := inspect.New(n.Queues, n.Functions).Scan(ctx, inspect.Query{Queue: work, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range found.Messages {
			places = append(places, fmt.Sprintf("%d-%d", m.Lane, m.Sequence)) // as versions before named them
			named = append(named, messages.Position(&m))
		}
		return places, named, found
	}
	if err := n.CreateQueue(ctx, queues.QueueSpec{ARN: other}); err != nil {
		t.Fatal(err)
	}
	before, named, found := fill()
	if err := n.DeleteQueue(ctx, work); err != nil {
		t.Fatal(err)
	}
	after, _, again := fill()
	if !slices.Equal(before, after) {
		t.Fatalf("the messages are at %v, and were at %v", after, before)
	}
	for id, spec := range map[string]kept.Spec{
		"a": {Kind: "delete"}, "b": {Kind: "redrive", To: other.String()}, "c": {Kind: "delete", Where: kept.Where{IDs: before}},
		"d": {Kind: "redrive", To: other.String(), Where: kept.Where{IDs: before}},
	} {
		spec.ID, spec.Resource, spec.Before, spec.Total, spec.Incarnation = id, work.String(), found.End, found.Total, uint64(found.Incarnation)
		if _, err := n.jobs.Create(spec); err != nil {
			t.Fatal(err)
		}
		n.AwaitIdle()
		if job, err := n.jobs.Get(id); err != nil || job.State != kept.Failed || job.Done > 0 || n.held(t, "work") != 3 {
			t.Errorf("%+v of another queue: %+v, %v; %d messages are left", spec, job, err, n.held(t, "work"))
		}
	}
	// What was named in the queue before is gone, also for a job on the queue of now.
	for id, spec := range map[string]kept.Spec{"e": {Kind: "delete"}, "f": {Kind: "redrive", To: other.String()}} {
		spec.ID, spec.Resource, spec.Where.IDs, spec.Before, spec.Incarnation = id, work.String(), named, again.End, uint64(again.Incarnation)
		if _, err := n.jobs.Create(spec); err != nil {
			t.Fatal(err)
		}
		n.AwaitIdle()
		if job, err := n.jobs.Get(id); err != nil || job.State != kept.Completed || job.Done > 0 || job.Skipped != 3 || n.held(t, "work") != 3 {
			t.Errorf("%+v of what was named before: %+v, %v; %d messages are left", spec, job, err, n.held(t, "work"))
		}
	}
}
