package queues_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store/memory"
)

// TestRepeatedReceiveFails: where two receives have the same ReceiveRequestAttemptId and one of
// them fails, the other keeps its messages; where both fail, nobody has them.
func TestRepeatedReceiveFails(t *testing.T) {
	ctx := context.Background()
	q := shardtest.QueueARN("q.fifo")
	busy := errors.New("busy")
	engine := func(t *testing.T) (e *shard.Engine, receive func(admit func() error) (string, error)) {
		e = shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: clock.System})
		t.Cleanup(func() { _ = e.Close() })
		if err := e.CreateQueue(ctx, queues.QueueSpec{ARN: q, Attributes: map[string]string{"FifoQueue": "true"}}); err != nil {
			t.Fatal(err)
		}
		m := shardtest.NewMessage(1, "x")
		m.Group, m.Dedup = "g", "d"
		if _, err := e.Send(ctx, q, []queues.SendEntry{{Message: m}}); err != nil {
			t.Fatal(err)
		}
		return e, func(admit func() error) (string, error) {
			got, err := e.Receive(ctx, queues.ReceiveRequest{Queue: q, Max: 1, Visibility: time.Hour, Attempt: "again", Admit: admit})
			if err != nil || len(got) == 0 {
				return "", err
			}
			return got[0].ReceiptHandle, nil
		}
	}
	deleted := func(t *testing.T, e *shard.Engine, handle string) {
		t.Helper()
		errs, err := e.DeleteMessages(ctx, q, []string{handle})
		if err != nil || errs[0] != nil {
			t.Errorf("the message is not its receiver's any more: %v %v", errs, err)
		}
	}
	counts := func(t *testing.T, e *shard.Engine, want queue.Counts) {
		t.Helper()
		info, err := e.QueueInfo(ctx, q)
		if err != nil || info.Counts != want {
			t.Errorf("%+v %v", info.Counts, err)
		}
	}
	t.Run("the repeat", func(t *testing.T) {
		e, receive := engine(t)
		handle, err := receive(nil)
		if handle == "" || err != nil {
			t.Fatal(handle, err)
		}
		if _, err := receive(func() error { return busy }); !errors.Is(err, busy) {
			t.Fatal(err)
		}
		counts(t, e, queue.Counts{InFlight: 1})
		deleted(t, e, handle)
	})
	t.Run("the first", func(t *testing.T) {
		e, receive := engine(t)
		var handle string
		_, err := receive(func() (err error) { // its client has gone, and asks again meanwhile
			handle, err = receive(nil)
			return errors.Join(busy, err)
		})
		if handle == "" || !errors.Is(err, busy) {
			t.Fatal(handle, err)
		}
		counts(t, e, queue.Counts{InFlight: 1})
		deleted(t, e, handle)
	})
	t.Run("both at once", func(t *testing.T) {
		e, receive := engine(t)
		_, err := receive(func() error {
			_, err := receive(func() error { return busy })
			return err
		})
		if !errors.Is(err, busy) {
			t.Fatal(err)
		}
		counts(t, e, queue.Counts{Visible: 1})
	})
	t.Run("both", func(t *testing.T) {
		e, receive := engine(t)
		for range 2 {
			if _, err := receive(func() error { return busy }); !errors.Is(err, busy) {
				t.Fatal(err)
			}
			counts(t, e, queue.Counts{Visible: 1})
		}
	})
}

// TestRepeatedReceiveWaits: where several receives with one ReceiveRequestAttemptId wait, as the client of
// the first has lost its connection, a message that comes is for all of them, and for no other.
func TestRepeatedReceiveWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		q := shardtest.QueueARN("q.fifo")
		e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: clock.System})
		defer e.Close()
		if err := e.CreateQueue(ctx, queues.QueueSpec{ARN: q, Attributes: map[string]string{"FifoQueue": "true"}}); err != nil {
			t.Fatal(err)
		}
		handles := make([]string, 4)
		var receives sync.WaitGroup
		for i, attempt := range []string{"again", "other", "again", "again"} {
			receives.Go(func() {
				got, err := e.Receive(ctx, queues.ReceiveRequest{Queue: q, Max: 1, Visibility: time.Hour, Wait: 20 * time.Second, Attempt: attempt})
				if err != nil {
					t.Error(err)
				}
				for _, m := range got {
					handles[i] += m.ReceiptHandle
				}
			})
			synctest.Wait()
		}
		m := shardtest.NewMessage(1, "x")
		m.Group, m.Dedup = "g", "d"
		if _, err := e.Send(ctx, q, []queues.SendEntry{{Message: m}}); err != nil {
			t.Fatal(err)
		}
		receives.Wait()
		if first := handles[0]; first == "" || handles[1] != "" || handles[2] != first || handles[3] != first {
			t.Errorf("handles %q", handles)
		}
	})
}
