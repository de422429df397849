package queues_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/limit"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store/memory"
)

// A receive for which there is no room takes what fits, in order; the rest was never
// received. If nothing fits it waits, and then leaves everything as it was.
func TestReceiveWithLittleMemory(t *testing.T) {
	for _, name := range []string{"q", "q.fifo"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const size = 100_000
				e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: clock.System})
				defer e.Close()
				q := shardtest.QueueARN(name)
				spec := queues.QueueSpec{ARN: q}
				if q.FIFO() {
					spec.Attributes = map[string]string{"FifoQueue": "true"}
				}
				if err := e.CreateQueue(t.Context(), spec); err != nil {
					t.Fatal(err)
				}
				for i := range 10 {
					sendBody(t, e, q, i, bytes.Repeat([]byte{byte('a' + i)}, size))
				}
				budget := limit.NewBudget("b", 2<<20, 2*time.Second)
				receive := func(r *limit.Reservation) ([]queues.Received, error) {
					r.Of(budget)
					return e.Receive(t.Context(), queues.ReceiveRequest{Queue: q, Max: 10, Visibility: time.Hour, Memory: r})
				}
				var first, second, third limit.Reservation
				got, err := receive(&first)
				if err != nil || len(got) == 0 || len(got) > (2<<20)/(queues.RecordWeight*size) {
					t.Fatalf("%d messages, %v", len(got), err)
				}
				if used := budget.Stats().Used; used < int64(len(got)*queues.RecordWeight*size) {
					t.Errorf("%d messages, but %d bytes are reserved", len(got), used)
				}
				next := byte('a')
				check := func(got []queues.Received) {
					t.Helper()
					for _, m := range got {
						if m.Body[0] != next || m.Receives != 1 {
							t.Errorf("%c, received %d times, want %c for the first time", m.Body[0], m.Receives, next)
						}
						next++
						if _, err := e.DeleteMessages(t.Context(), q, []string{m.ReceiptHandle}); err != nil {
							t.Error(err)
						}
					}
				}
				check(got)
				var other limit.Reservation
				other.Of(budget)
				other.TryGrow((2<<20)*3/4 - budget.Stats().Used)
				if got, err := receive(&second); !errors.Is(err, limit.ErrFull) || len(got) > 0 {
					t.Fatalf("%d messages, %v", len(got), err)
				}
				var late sync.WaitGroup
				late.Add(1)
				clock.System.AfterFunc(time.Second, func() {
					first.Release()
					late.Done()
				})
				got, err = receive(&third) // waits
				late.Wait()
				if err != nil || len(got) == 0 {
					t.Fatalf("%d messages, %v", len(got), err)
				}
				check(got)
				third.Release()
				other.Release()
				for next < 'a'+10 {
					var r limit.Reservation
					got, err := receive(&r)
					if err != nil || len(got) == 0 {
						t.Fatalf("behind %c: %d messages, %v", next, len(got), err)
					}
					check(got)
					r.Release()
				}
				if used := budget.Stats().Used; used != 0 {
					t.Errorf("%d bytes are still reserved", used)
				}
			})
		})
	}
}

func sendBody(t *testing.T, e *shard.Engine, q arn.ARN, id int, body []byte) {
	t.Helper()
	m := shardtest.NewMessage(id, string(body))
	if q.FIFO() {
		m.Group, m.Dedup = "g", string(body[:1])
	}
	if _, err := e.Send(t.Context(), q, []queues.SendEntry{{Message: m}}); err != nil {
		t.Fatal(err)
	}
}

// How a queue behaves is remembered, and yet always as it is: after a change of it or of a
// queue beside it, while its service is out of order, once it is deleted and made again.
func TestQueueConfig(t *testing.T) {
	ctx := t.Context()
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: clock.System})
	defer e.Close()
	q, other := shardtest.QueueARN("q"), shardtest.QueueARN("q0")
	for i := 0; kernel.ShardNumber(other) != kernel.ShardNumber(q); i++ {
		other = shardtest.QueueARN(fmt.Sprint("q", i))
	}
	check := func(what string, a arn.ARN, delay time.Duration, want error) {
		t.Helper()
		for range 2 { // the second is of what is remembered
			if cfg, err := e.QueueConfig(ctx, a); !errors.Is(err, want) || err == nil && cfg.Delay != delay {
				t.Errorf("%s: a delay of %s, %v; want %s, %v", what, cfg.Delay, err, delay, want)
			}
		}
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check("before it is made", q, 0, queues.ErrNoQueue)
	do(e.CreateQueue(ctx, queues.QueueSpec{ARN: q, Attributes: map[string]string{"DelaySeconds": "1"}}))
	check("as it was made", q, time.Second, nil)
	do(e.SetQueueAttributes(ctx, q, map[string]string{"DelaySeconds": "2"}))
	check("changed", q, 2*time.Second, nil)
	do(e.CreateQueue(ctx, queues.QueueSpec{ARN: other, Attributes: map[string]string{"DelaySeconds": "3"}}))
	check("another", other, 3*time.Second, nil)
	check("beside another", q, 2*time.Second, nil)
	do(e.SetFault(q, "throttled"))
	if _, err := e.QueueConfig(ctx, q); fault.KindOf(err) != fault.Throttled {
		t.Errorf("at fault: %v", err)
	}
	check("beside one at fault", other, 3*time.Second, nil)
	do(e.SetFault(q, "none"))
	check("at fault no more", q, 2*time.Second, nil)
	do(e.DeleteQueue(ctx, q))
	check("deleted", q, 0, queues.ErrNoQueue)
	do(e.CreateQueue(ctx, queues.QueueSpec{ARN: q}))
	check("made again", q, 0, nil)
}
