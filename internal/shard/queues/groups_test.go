package queues_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/test/soak"
)

// countingStore counts the entries that walks visit.
type countingStore struct {
	store.Store
	visited atomic.Int64
}

type countingIterator struct {
	store.Iterator
	visited *atomic.Int64
}

func (s *countingStore) Iter(lower, upper []byte) (store.Iterator, error) {
	it, err := s.Store.Iter(lower, upper)
	return countingIterator{it, &s.visited}, err
}

func (it countingIterator) Next() bool {
	it.visited.Add(1)
	return it.Iterator.Next()
}

// TestLockedGroup: behind 216,000 messages of a group with one in flight, a
// thousand other groups are received as if it were not there, also after a
// restart.
func TestLockedGroup(t *testing.T) {
	locked := soak.Size(20_000, 216_000)
	const free, each = 1000, 3
	ctx := context.Background()
	s := &countingStore{Store: memory.New()}
	o := shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.NewVirtual(shardtest.Start)}
	e := shardtest.Open(t, o)
	q := shardtest.QueueARN("q.fifo")
	if err := e.CreateQueue(ctx, queues.QueueSpec{ARN: q, Attributes: map[string]string{"FifoQueue": "true"}}); err != nil {
		t.Fatal(err)
	}
	n := 0
	send := func(group string, count int) {
		t.Helper()
		for count > 0 {
			msgs := make([]queues.SendEntry, min(count, 100))
			for i := range msgs {
				n++
				m := shardtest.NewMessage(n, fmt.Sprint(n))
				m.Group = group
				msgs[i] = queues.SendEntry{Message: m}
			}
			if _, err := e.Send(ctx, q, msgs); err != nil {
				t.Fatal(err)
			}
			count -= len(msgs)
		}
	}
	receive := func(limit int) []queues.Received {
		t.Helper()
		got, err := e.Receive(ctx, queues.ReceiveRequest{Queue: q, Max: limit, Visibility: 12 * time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	send("locked", locked)
	if got := receive(1); len(got) != 1 || string(got[0].Body) != "1" {
		t.Fatalf("received %+v", got)
	}
	for g := range free {
		send(fmt.Sprint("free ", g), each)
	}
	e.Close()
	e = shardtest.Open(t, o)
	defer e.Close()

	s.visited.Store(0)
	received := 0
	for {
		got := receive(10)
		if len(got) == 0 {
			break
		}
		handles := make([]string, len(got))
		for i := range got {
			if got[i].Group == "locked" {
				t.Fatalf("received message %s of the locked group", got[i].Body)
			}
			handles[i] = got[i].ReceiptHandle
		}
		received += len(got)
		errs, err := e.DeleteMessages(ctx, q, handles)
		if err = cmp.Or(append(errs, err)...); err != nil {
			t.Fatal(err)
		}
	}
	if received != free*each {
		t.Errorf("received %d of %d", received, free*each)
	}
	if visited := s.visited.Load(); visited > 4*free*each {
		t.Errorf("%d entries were visited for %d messages", visited, received)
	}
}

// TestBatchOfManyGroups: in a queue of more groups than memory holds, a batch that
// comes back to a group which it began itself adds to that group.
func TestBatchOfManyGroups(t *testing.T) {
	const batches = 2500
	ctx := context.Background()
	c := clock.NewVirtual(shardtest.Start)
	s := memory.New()
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: c})
	defer func() {
		if err := errors.Join(e.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}()
	q := shardtest.QueueARN("q.fifo")
	if err := e.CreateQueue(ctx, queues.QueueSpec{ARN: q, Attributes: map[string]string{"FifoQueue": "true"}}); err != nil {
		t.Fatal(err)
	}
	n := 0
	for i := range batches {
		groups := [...]int{0, 1, 2, 3, 4, 0, 1, 2, 3}
		msgs := make([]queues.SendEntry, len(groups))
		for j, group := range groups {
			n++
			m := shardtest.NewMessage(n, fmt.Sprint(n))
			m.Group, m.Dedup = fmt.Sprintf("%d of %d", group, i), fmt.Sprint(n)
			msgs[j] = queues.SendEntry{Message: m, Delay: -1}
		}
		if _, err := e.Send(ctx, q, msgs); err != nil {
			t.Fatal(err)
		}
	}
	latest, found := map[string]uint64{}, 0
	for {
		got, err := e.Receive(ctx, queues.ReceiveRequest{Queue: q, Max: 10, Visibility: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 {
			break
		}
		handles := make([]string, len(got))
		for i, m := range got {
			if handles[i] = m.ReceiptHandle; m.Sequence <= latest[m.Group] {
				t.Fatalf("%d of group %s comes after %d", m.Sequence, m.Group, latest[m.Group])
			}
			latest[m.Group] = m.Sequence
			found++
		}
		if errs, err := e.DeleteMessages(ctx, q, handles); err != nil || cmp.Or(errs...) != nil {
			t.Fatal(err, errs)
		}
	}
	if found != n {
		t.Errorf("found %d messages of %d", found, n)
	}
	e.Journal.Flush()
	for _, kind := range []byte("mlgrh") {
		if n := shardtest.CountKeys(t, s, 'D', kind); n > 0 {
			t.Errorf("%d records of kind %q are left of nothing", n, kind)
		}
	}
}
