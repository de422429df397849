package queues_test

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/limit"
	"godwit.dev/godwit/internal/shard"
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
	if _, err := e.Send(t.Context(), q, []queues.Outgoing{{Message: m}}); err != nil {
		t.Fatal(err)
	}
}
