package queues_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/test/soak"
)

// TestQueueEvents: everything that metrics count comes out as an event, once.
func TestQueueEvents(t *testing.T) {
	ctx := context.Background()
	c := clock.NewVirtual(shardtest.Start)
	var mu sync.Mutex
	var got []string
	names := map[queues.QueueEventKind]string{
		queues.MessagesSent: "sent", queues.MessagesDeduplicated: "deduplicated", queues.MessagesReceived: "received",
		queues.MessagesDeleted: "deleted", queues.MessagesDeadLettered: "dead-lettered", queues.MessagesExpired: "expired",
		queues.MessagesDeletedAgain: "deleted again", queues.MessagesMovedIn: "moved in", queues.QueueDeleted: "gone",
	}
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: c, Events: func(ev queues.QueueEvent) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, fmt.Sprintf("%v %s %s %d %d", time.Duration(ev.At-shardtest.Start.UnixMilli())*time.Millisecond, ev.Queue.Resource, names[ev.Kind], ev.Messages, ev.Bytes))
	}})
	defer e.Close()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fifo := map[string]string{"FifoQueue": "true", "MessageRetentionPeriod": "60"}
	must(e.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("dead.fifo"), Attributes: fifo}))
	must(e.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("q.fifo"), Attributes: map[string]string{
		"FifoQueue": "true", "RedrivePolicy": `{"deadLetterTargetArn":"` + shardtest.QueueARN("dead.fifo").String() + `","maxReceiveCount":1}`,
	}}))
	q := shardtest.QueueARN("q.fifo")
	for i, id := range []string{"a", "b", "a"} {
		m := shardtest.NewMessage(i, "body")
		m.Group, m.Dedup = id, id
		_, err := e.Send(ctx, q, []queues.SendEntry{{Message: m}})
		must(err)
	}
	r, err := e.Receive(ctx, queues.ReceiveRequest{Queue: q, Max: 10, Visibility: time.Second})
	must(err)
	_, err = e.DeleteMessages(ctx, q, []string{r[0].ReceiptHandle, r[0].ReceiptHandle})
	must(err)
	_, err = c.Advance(ctx, 2*time.Second)
	must(err)
	_, err = e.Receive(ctx, queues.ReceiveRequest{Queue: q, Max: 10})
	must(err)
	e.AwaitIdle()
	_, err = c.Advance(ctx, 2*time.Minute)
	must(err)
	must(e.DeleteQueue(ctx, q))

	mu.Lock()
	defer mu.Unlock()
	if last := len(got) - 1; got[last] != "2m2s q.fifo gone 0 0" {
		t.Errorf("at last %s", got[last])
	}
	got = got[:len(got)-1]
	want := []string{
		"0s q.fifo sent 1 4", "0s q.fifo sent 1 4", "0s q.fifo deduplicated 1 0", "0s q.fifo received 2 0", "0s q.fifo deleted 1 0",
		"0s q.fifo deleted again 1 0",
		"2s q.fifo received 0 0", "2s q.fifo dead-lettered 1 0", "2s dead.fifo moved in 1 0",
	}
	last := len(got) - 1
	slices.Sort(got[6:last]) // the dead letter is carried in the background
	slices.Sort(want[6:])
	if diff := cmp.Diff(want, got[:last]); diff != "" {
		t.Error(diff)
	}
	if want := "dead.fifo expired 1 0"; len(got[last]) < len(want) || got[last][len(got[last])-len(want):] != want {
		t.Errorf("before it %s", got[last])
	}
}

// TestOneEventOfARequest: what a request does to messages of a queue is emitted at
// once, with the queue's slot, which is another one after a purge.
func TestOneEventOfARequest(t *testing.T) {
	ctx := context.Background()
	var got []string
	slots := map[*queues.Slot]int{}
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: clock.NewVirtual(shardtest.Start), Events: func(ev queues.QueueEvent) {
		if slots[ev.Slot] == 0 {
			slots[ev.Slot] = len(slots) + 1
		}
		got = append(got, fmt.Sprint(slots[ev.Slot], ev.Kind, ev.Messages, ev.Bytes, ev.Sizes))
	}})
	defer e.Close()
	q := shardtest.QueueARN("q.fifo")
	if err := e.CreateQueue(ctx, queues.QueueSpec{ARN: q, Attributes: map[string]string{"FifoQueue": "true"}}); err != nil {
		t.Fatal(err)
	}
	send := func(bodies ...string) {
		t.Helper()
		var all []queues.SendEntry
		for i, body := range bodies {
			m := shardtest.NewMessage(i, body)
			m.Group, m.Dedup = "g", body
			all = append(all, queues.SendEntry{Message: m})
		}
		if _, err := e.Send(ctx, q, all); err != nil {
			t.Fatal(err)
		}
	}
	send("a", "bcd", "a", "bcd", "e")
	r, err := e.Receive(ctx, queues.ReceiveRequest{Queue: q, Max: 2, Visibility: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	one, two := r[0].ReceiptHandle, r[1].ReceiptHandle
	if _, err := e.DeleteMessages(ctx, q, []string{one, one, two, one, "none"}); err != nil {
		t.Fatal(err)
	}
	if err := e.PurgeQueue(ctx, q); err != nil {
		t.Fatal(err)
	}
	send("f")
	if _, err := e.Receive(ctx, queues.ReceiveRequest{Queue: q, Max: 2}); err != nil {
		t.Fatal(err)
	}
	want := []string{ // a purge is emitted without a slot, the second
		fmt.Sprint(1, queues.MessagesDeduplicated, 2, 0, []int(nil)), fmt.Sprint(1, queues.MessagesSent, 3, 5, []int{1, 3, 1}), fmt.Sprint(1, queues.MessagesReceived, 2, 0, []int(nil)),
		fmt.Sprint(1, queues.MessagesDeleted, 2, 0, []int(nil)), fmt.Sprint(1, queues.MessagesDeletedAgain, 2, 0, []int(nil)),
		fmt.Sprint(2, queues.MessagesChanged, 0, 0, []int(nil)),
		fmt.Sprint(3, queues.MessagesSent, 1, 1, []int(nil)), fmt.Sprint(3, queues.MessagesReceived, 1, 0, []int(nil)),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestNothingChangesWithoutAnEvent: a queue in which nothing is in flight or delayed
// holds what it held until there is an event of it, whatever is done to it and however
// much time passes. Who measures queues need not look until then.
func TestNothingChangesWithoutAnEvent(t *testing.T) {
	soak.Campaign(t, 3, func(t *testing.T, seed uint64) {
		c := clock.NewVirtual(shardtest.Start)
		var mu sync.Mutex
		told := map[arn.ARN]bool{}
		e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: c, Events: func(ev queues.QueueEvent) {
			mu.Lock()
			defer mu.Unlock()
			told[ev.Queue] = true
		}})
		defer e.Close()
		s := shardtest.NewScript(t, seed, c)
		s.Attach(e)
		s.Setup()
		rested, changed := 0, 0
		before := map[string]queues.QueueGauges{}
		for range 400 {
			mu.Lock()
			clear(told)
			mu.Unlock()
			s.Step()
			mu.Lock()
			for _, name := range s.Queues {
				g, err := e.SampleQueue(shardtest.QueueARN(name))
				b, known := before[name]
				delete(before, name)
				if err != nil { // it was deleted, which is emitted
					continue
				}
				before[name] = g
				if !known || b.InFlight+b.Delayed > 0 {
					continue
				}
				rested++
				if b.Counts == g.Counts {
					continue
				}
				if changed++; !told[shardtest.QueueARN(name)] {
					t.Errorf("seed %d: %s had %+v and has %+v; nothing was told of it:\n%s", seed, name, b.Counts, g.Counts, strings.Join(s.Out[max(len(s.Out)-40, 0):], "\n"))
				}
			}
			mu.Unlock()
			if t.Failed() {
				return
			}
		}
		t.Logf("%d looks at queues that rested, %d of which had changed", rested, changed)
	})
}

// TestOneEventOfABatch: what a publish puts into a queue at once is emitted at
// once, with the size of each message.
func TestOneEventOfABatch(t *testing.T) {
	var mu sync.Mutex
	var got []string
	w := shardtest.NewImmediate(t, shard.Options{Clock: clock.NewVirtual(shardtest.Start), Events: func(ev queues.QueueEvent) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, fmt.Sprint(ev.Queue.Resource, ev.Messages, ev.Bytes, ev.Sizes))
	}})
	defer w.Close()
	publications := make([]shard.Publication, 0, 4)
	for i, body := range []string{"a", "bcd", "bad", "e"} { // the third and what follows go by the backlog
		publications = append(publications, shard.Publication{ID: shardtest.MessageID(i), Body: []byte(body)})
	}
	if _, err := w.Publish(context.Background(), shardtest.TopicARN("direct"), publications...); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []string{fmt.Sprint(w.Queue.Resource, 2, 4, []int{1, 3})}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
