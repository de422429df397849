package queues_test

import (
	"fmt"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store"
)

// ages drives an engine whose queues' ages are asked for.
type ages struct {
	*testing.T
	clock  *clock.Virtual
	store  store.Store
	engine *shard.Engine
	ids    int
}

func newAges(t *testing.T) *ages {
	a := &ages{T: t, clock: clock.NewVirtual(shardtest.Start), store: shardtest.NewStore(t)}
	a.open()
	t.Cleanup(func() { a.engine.Close(); a.store.Close() })
	return a
}

func (a *ages) open() {
	a.engine = shardtest.Open(a.T, shard.Options{Journal: shardtest.JournalOf(a.T, a.store, nil), Clock: a.clock})
}

func (a *ages) must(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

func (a *ages) create(name string, attributes map[string]string) {
	a.Helper()
	a.must(a.engine.CreateQueue(a.Context(), queues.QueueSpec{ARN: shardtest.QueueARN(name), Attributes: attributes}))
}

func (a *ages) send(name, group string, n int) {
	a.Helper()
	for range n {
		a.ids++
		m := shardtest.NewMessage(a.ids, fmt.Sprint(a.ids))
		if m.Group = group; shardtest.QueueARN(name).FIFO() {
			m.Dedup = fmt.Sprint(a.ids)
		}
		_, err := a.engine.Send(a.Context(), shardtest.QueueARN(name), []queues.SendEntry{{Message: m}})
		a.must(err)
	}
}

func (a *ages) receive(name string, limit int, visibility time.Duration) []queues.Received {
	a.Helper()
	got, err := a.engine.Receive(a.Context(), queues.ReceiveRequest{Queue: shardtest.QueueARN(name), Max: limit, Visibility: visibility})
	a.must(err)
	a.engine.AwaitIdle()
	return got
}

func (a *ages) pass(d time.Duration) {
	a.Helper()
	_, err := a.clock.Advance(a.Context(), d)
	a.must(err)
}

// expect compares the age of the oldest message, and of the oldest quiet one.
func (a *ages) expect(name string, age, quiet time.Duration) {
	a.Helper()
	g, err := a.engine.SampleQueue(shardtest.QueueARN(name))
	a.must(err)
	if g.OldestAge.Truncate(time.Second) != age || g.QuietOldestAge.Truncate(time.Second) != quiet {
		a.Errorf("the oldest message of %s is %v old, of the quiet ones %v, want %v and %v", name, g.OldestAge, g.QuietOldestAge, age, quiet)
	}
}

func redrive(to arn.ARN, after int) map[string]string {
	return map[string]string{"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":"%s","maxReceiveCount":%d}`, to, after)}
}

// A message that was received three times, in hand or not, makes its queue no older.
func TestAgeWithoutPoison(t *testing.T) {
	a := newAges(t)
	a.create("q", nil)
	a.expect("q", 0, 0)
	const many = 300 // more than one reading looks at
	a.send("q", "", many)
	a.pass(time.Minute)
	a.send("q", "", 1)
	a.pass(time.Minute)
	everything := func(times int) {
		for range times {
			for range many/10 + 1 {
				a.receive("q", 10, time.Millisecond) // or the same ones came again
			}
			a.pass(time.Millisecond)
		}
	}
	everything(2)
	a.expect("q", 2*time.Minute, 2*time.Minute)
	everything(1)
	a.pass(time.Minute)
	a.send("q", "", 1)
	a.pass(time.Second)
	for range 5 { // each reading passes some of them
		a.expect("q", time.Second, time.Second)
	}
	a.engine.Close()
	a.open()
	for range 5 {
		a.expect("q", time.Second, time.Second)
	}
}

// The age of a queue to which nothing happened is known without a read of the store.
func TestAgeOfQuietQueuesReadsNothing(t *testing.T) {
	for _, name := range []string{"q", "q.fifo"} {
		counting := &countingStore{Store: shardtest.NewStore(t)}
		a := &ages{T: t, clock: clock.NewVirtual(shardtest.Start), store: counting}
		a.open()
		var attributes map[string]string
		group := ""
		if shardtest.QueueARN(name).FIFO() {
			attributes, group = map[string]string{"FifoQueue": "true"}, "g"
		}
		a.create(name, attributes)
		a.send(name, group, 1)
		a.pass(time.Minute)
		a.send(name, group, 2)
		quiet := func(age time.Duration) {
			t.Helper()
			a.expect(name, age, age)
			for range 10 {
				a.pass(time.Minute)
				age += time.Minute
				counting.visited.Store(0)
				a.expect(name, age, age)
				if n := counting.visited.Load(); n > 0 {
					t.Errorf("%s: %d reads", name, n)
				}
			}
		}
		quiet(time.Minute)
		got := a.receive(name, 1, time.Hour)
		a.expect(name, 11*time.Minute, 11*time.Minute) // in hand
		errs, err := a.engine.DeleteMessages(a.Context(), shardtest.QueueARN(name), []string{got[0].ReceiptHandle})
		a.must(errs[0])
		a.must(err)
		quiet(10 * time.Minute)
		a.send(name, group, 1)
		quiet(20 * time.Minute)
		a.engine.Close()
		a.open()
		quiet(30 * time.Minute)
		a.engine.Close()
		counting.Close()
	}
}

// In hand the third time, and back, it does not count either; the last of the queue
// leaves it without an age.
func TestAgeOfTheLastMessage(t *testing.T) {
	a := newAges(t)
	a.create("q", nil)
	a.send("q", "", 1)
	a.pass(time.Minute)
	for range 2 {
		a.receive("q", 1, 0)
	}
	a.expect("q", time.Minute, time.Minute)
	a.receive("q", 1, time.Hour)
	a.expect("q", 0, 0)
	a.send("q", "", 1)
	a.pass(time.Second)
	a.expect("q", time.Second, time.Second)
	a.create("q.fifo", map[string]string{"FifoQueue": "true"})
	a.send("q.fifo", "g", 1)
	a.pass(time.Minute)
	for range 5 {
		a.receive("q.fifo", 1, 0)
	}
	a.expect("q.fifo", time.Minute, time.Minute) // a FIFO queue does not pass it
}

// The age of a dead letter runs from its move, and its retention from its send.
func TestAgeOfDeadLetters(t *testing.T) {
	a := newAges(t)
	a.create("dlq", map[string]string{"MessageRetentionPeriod": "600"})
	a.create("q", redrive(shardtest.QueueARN("dlq"), 1))
	a.send("q", "", 1)
	a.pass(5 * time.Minute)
	a.receive("q", 1, 0)
	a.receive("q", 1, 0)
	a.expect("q", 0, 0)
	a.pass(time.Minute)
	a.expect("dlq", time.Minute, time.Minute)
	a.engine.Close()
	a.open()
	a.receive("dlq", 1, 0) // its own receives and returns do not change that
	a.expect("dlq", time.Minute, time.Minute)
	a.pass(3*time.Minute + 59*time.Second)
	a.expect("dlq", 5*time.Minute-time.Second, 5*time.Minute-time.Second)
	a.pass(2 * time.Second)
	a.expect("dlq", 0, 0)
}

// The age of quiet groups' messages leaves out those of noisy ones, however many
// these are.
func TestAgeOfQuietGroups(t *testing.T) {
	a := newAges(t)
	a.create("q", nil)
	a.send("q", "loud", 400)
	for range 4 {
		a.receive("q", 10, time.Hour)
	}
	a.pass(time.Minute)
	a.expect("q", time.Minute, 0)
	a.send("q", "quiet", 1)
	a.pass(time.Minute)
	a.expect("q", 2*time.Minute, time.Minute)
	if got := a.receive("q", 1, 0); len(got) != 1 {
		t.Fatal("nothing received")
	}
	a.expect("q", 2*time.Minute, time.Minute)
	a.pass(time.Minute)
	a.send("q", "", 1)
	a.pass(time.Minute)
	a.expect("q", 4*time.Minute, 3*time.Minute)
}
