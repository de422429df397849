package queues_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/queue/attribute"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
)

// crowd are queues of one shard, of which most are parked.
type crowd struct {
	*shard.Engine
	names []arn.ARN
}

func newCrowd(t testing.TB, e *shard.Engine, n int, attributes func(i int) map[string]string) *crowd {
	t.Helper()
	w := &crowd{Engine: e}
	for i := 0; len(w.names) < n; i++ {
		if a := shardtest.QueueARN(fmt.Sprint("q", i)); e.Topics.ShardOf(a).ID == 0 {
			w.names = append(w.names, a)
		}
	}
	for i, a := range w.names {
		spec := queues.QueueSpec{ARN: a, Attributes: attributes(i), Tags: map[string]string{"number": fmt.Sprint(i)}}
		if err := e.CreateQueue(context.Background(), spec); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// loaded are the queues that are in memory as such.
func (w *crowd) loaded() (names []arn.ARN) {
	sh := w.Topics.Shards[0]
	sh.View(func() {
		for _, qs := range sh.Loaded() {
			names = append(names, qs.ARN)
		}
	})
	return names
}

// pass has all queues used, so that those not in use meanwhile are parked.
func (w *crowd) pass(t *testing.T, but ...arn.ARN) {
	t.Helper()
	for _, a := range w.names {
		if !slices.Contains(but, a) {
			if _, err := w.QueueTags(context.Background(), a); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestParkedQueues: what was parked is listed, described, changed and deleted like any
// other queue, also behind a restart, and its sequences go on.
func TestParkedQueues(t *testing.T) {
	const n = queues.EmptiedKept * 3
	ctx := context.Background()
	s := shardtest.NewStore(t)
	defer s.Close()
	open := func() *shard.Engine {
		return shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.System})
	}
	dead := shardtest.QueueARN("dead")
	policy := func(i int) string {
		return fmt.Sprintf(`{"Statement":[{"Effect":"Allow","Principal":"*","Action":"sqs:SendMessage","Resource":"*","Sid":"s%d"}]}`, i)
	}
	attributes := func(i int) map[string]string {
		return map[string]string{
			attribute.VisibilityTimeout: fmt.Sprint(100 + i), attribute.Policy: policy(i),
			attribute.RedrivePolicy: fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":3}`, dead),
		}
	}
	e := open()
	defer func() { e.Close() }()
	w := newCrowd(t, e, n, attributes)
	if err := e.CreateQueue(ctx, queues.QueueSpec{ARN: dead}); err != nil {
		t.Fatal(err)
	}
	sequences := map[int]uint64{}
	check := func(names []arn.ARN) {
		t.Helper()
		if loaded := len(w.loaded()); loaded > queues.EmptiedKept+1 { // and the dead-letter queue
			t.Fatalf("%d queues are in memory", loaded)
		}
		listed, _, err := w.ListQueues(ctx, dead.Region, dead.Account, "q", "", 2*n)
		if err != nil || len(listed) != len(names) {
			t.Fatalf("%d queues are listed, %v", len(listed), err)
		}
		sources, _, err := w.DeadLetterSources(ctx, dead, "", 2*n)
		if err != nil || len(sources) != len(names) {
			t.Fatalf("%d sources, %v", len(sources), err)
		}
		for _, a := range names {
			i := slices.Index(w.names, a)
			g, err := w.SampleQueue(a)
			if err != nil || g.Visible+g.InFlight+g.Delayed != 0 || g.Created.IsZero() {
				t.Fatalf("%+v, %v", g, err)
			}
			info, err := w.QueueInfo(ctx, a)
			if err != nil || !maps.Equal(info.Attributes, attributes(i)) || info.Tags["number"] != fmt.Sprint(i) || !info.Created.Equal(g.Created) {
				t.Fatalf("%+v, %v", info, err)
			}
			if p := w.QueuePolicy(ctx, a); p == nil || p.Statements()[0].Sid != fmt.Sprint("s", i) {
				t.Fatalf("the policy of %s is %v", a, p)
			}
			if err := w.CreateQueue(ctx, queues.QueueSpec{ARN: a, Attributes: map[string]string{attribute.VisibilityTimeout: "1"}}); !errors.Is(err, queues.ErrNameTaken) {
				t.Fatal(err)
			}
			sent, err := w.Send(ctx, a, []queues.SendEntry{{Message: shardtest.NewMessage(i, "x")}})
			if sequences[i]++; err != nil || sent[0].Sequence != sequences[i] {
				t.Fatalf("%+v, %v; want sequence %d", sent, err, sequences[i])
			}
			r, err := w.Receive(ctx, queues.ReceiveRequest{Queue: a, Max: 10, Visibility: -1})
			if err != nil || len(r) != 1 {
				t.Fatalf("%+v, %v", r, err)
			}
			if _, err := w.DeleteMessages(ctx, a, []string{r[0].ReceiptHandle}); err != nil {
				t.Fatal(err)
			}
		}
	}
	check(w.names)
	check(w.names)
	for _, a := range w.names[:n/3] {
		if err := w.DeleteQueue(ctx, a); err != nil {
			t.Fatal(err)
		}
		if _, err := w.SampleQueue(a); !errors.Is(err, queues.ErrNoQueue) {
			t.Fatal(err)
		}
	}
	for i, a := range w.names[n/3:] {
		if i%2 == 0 {
			if err := w.PurgeQueue(ctx, a); err != nil {
				t.Fatal(err)
			}
		}
	}
	check(w.names[n/3:])
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open()
	w.Engine = e
	if loaded := w.loaded(); len(loaded) != 0 {
		t.Errorf("%v are in memory after a start", loaded)
	}
	check(w.names[n/3:])
}

// Queues of one name in several regions and accounts are parked as different ones: after a
// start, when all are. There are so many that some share a shard.
func TestParkedNamesakes(t *testing.T) {
	ctx := context.Background()
	s := shardtest.NewStore(t)
	defer s.Close()
	open := func() *shard.Engine {
		return shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.System})
	}
	e := open()
	defer func() { e.Close() }()
	var names []arn.ARN
	for account := range 20 {
		for region := range 20 {
			names = append(names, arn.Queue(fmt.Sprint("region-", region), fmt.Sprintf("%012d", account), "namesake"))
		}
	}
	for i, a := range names {
		if err := e.CreateQueue(ctx, queues.QueueSpec{ARN: a, Tags: map[string]string{"number": fmt.Sprint(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open()
	for i, a := range names {
		if info, err := e.QueueInfo(ctx, a); err != nil || info.Tags["number"] != fmt.Sprint(i) {
			t.Fatalf("%s has the tags %v, %v", a, info.Tags, err)
		}
	}
}

// TestInUseIsNotPutAway: a queue with a message, leased or not, or a receive that waits
// stays, and goes to rest once that is over.
func TestInUseIsNotPutAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		s := shardtest.NewStore(t)
		defer s.Close()
		e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.System})
		defer e.Close()
		w := newCrowd(t, e, queues.EmptiedKept*3, func(int) map[string]string { return nil })
		waits, served, holds, leased := w.names[0], w.names[1], w.names[2], w.names[3]
		used := w.names[:4]
		receive := func(a arn.ARN, wait time.Duration) ([]queues.Received, error) {
			return w.Receive(ctx, queues.ReceiveRequest{Queue: a, Max: 1, Visibility: time.Minute, Wait: wait})
		}
		send := func(a arn.ARN) {
			t.Helper()
			if _, err := w.Send(ctx, a, []queues.SendEntry{{Message: shardtest.NewMessage(1, "x")}}); err != nil {
				t.Fatal(err)
			}
		}
		remove := func(a arn.ARN, r []queues.Received, err error) {
			t.Helper()
			if err != nil || len(r) != 1 {
				t.Fatalf("%d messages of %s, %v", len(r), a, err)
			}
			if _, err := w.DeleteMessages(ctx, a, []string{r[0].ReceiptHandle}); err != nil {
				t.Fatal(err)
			}
		}
		send(holds)
		send(leased)
		inFlight, err := receive(leased, 0)
		if err != nil {
			t.Fatal(err)
		}
		type answer struct {
			r   []queues.Received
			err error
		}
		polls := map[arn.ARN]chan answer{waits: make(chan answer, 1), served: make(chan answer, 1)}
		for a, done := range polls {
			go func() {
				r, err := receive(a, 20*time.Second)
				done <- answer{r, err}
			}()
		}
		synctest.Wait()
		w.pass(t, used...)
		w.pass(t, used...)
		for _, a := range used {
			if !slices.Contains(w.loaded(), a) {
				t.Errorf("%s was parked", a)
			}
		}
		send(served)
		got := <-polls[served]
		remove(served, got.r, got.err)
		if got := <-polls[waits]; got.err != nil || len(got.r) != 0 {
			t.Errorf("%d messages, %v", len(got.r), got.err)
		}
		r, err := receive(holds, 0)
		remove(holds, r, err)
		remove(leased, inFlight, nil)
		w.pass(t, used...)
		w.pass(t, used...)
		for _, a := range used {
			if slices.Contains(w.loaded(), a) {
				t.Errorf("%s was not parked", a)
			}
		}
	})
}

// TestFoundBeforeItWasParked: who found a queue before it was parked finds nothing in it
// to give back, and whose messages they are stays as it is.
func TestFoundBeforeItWasParked(t *testing.T) {
	ctx := context.Background()
	s := shardtest.NewStore(t)
	defer s.Close()
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.System})
	defer e.Close()
	w := newCrowd(t, e, queues.EmptiedKept*3, func(int) map[string]string { return nil })
	sh, a := w.Topics.Shards[0], w.names[0]
	var before *queues.Queue
	sh.View(func() { before, _ = sh.Queue(a) })
	w.pass(t, a)
	w.pass(t, a)
	sh.View(func() {
		if sh.Use(before) {
			t.Error("it was not parked")
		}
		sh.Touch(before) // a late command: writes nothing of it
	})
	if _, err := w.Send(ctx, a, []queues.SendEntry{{Message: shardtest.NewMessage(1, "x")}}); err != nil {
		t.Fatal(err)
	}
	sh.View(func() { sh.Touch(before) })
	if g, err := w.QueueGauges(ctx, a); err != nil || g.Visible != 1 {
		t.Errorf("%+v, %v", g, err)
	}
}

// TestParkedHasNoTimer: a timer that was set for a message that is gone does not keep a parked
// queue in memory.
func TestParkedHasNoTimer(t *testing.T) {
	s := shardtest.NewStore(t)
	defer s.Close()
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.NewVirtual(shardtest.Start)})
	defer e.Close()
	w := newCrowd(t, e, queues.EmptiedKept*3, func(int) map[string]string { return nil })
	a := w.names[0]
	if _, err := w.Send(t.Context(), a, []queues.SendEntry{{Message: shardtest.NewMessage(1, "x")}}); err != nil {
		t.Fatal(err)
	}
	r, err := w.Receive(t.Context(), queues.ReceiveRequest{Queue: a, Max: 1, Visibility: time.Hour})
	if err != nil || len(r) != 1 {
		t.Fatal(r, err)
	}
	if _, err := w.DeleteMessages(t.Context(), a, []string{r[0].ReceiptHandle}); err != nil {
		t.Fatal(err)
	}
	sh := w.Topics.Shards[0]
	timers := func() (n int) {
		sh.View(func() { n = len(sh.Timers) })
		return n
	}
	if n := timers(); n != 1 {
		t.Fatalf("%d queues have timers", n)
	}
	w.pass(t, a)
	w.pass(t, a)
	if slices.Contains(w.loaded(), a) {
		t.Fatal("it was not parked")
	}
	if n := timers(); n != 0 {
		t.Errorf("%d queues have timers once it is parked", n)
	}
}

// BenchmarkLookup asks for the tags of queues in turn: of few that stay in memory, and of
// more than do, each of which is made of its record and another parked.
func BenchmarkLookup(b *testing.B) {
	for name, n := range map[string]int{"loaded": queues.EmptiedKept / 2, "parked": queues.EmptiedKept * 4} {
		b.Run(name, func(b *testing.B) {
			s := shardtest.OpenStore(b, vfs.NewMem())
			defer s.Close()
			e := shardtest.Open(b, shard.Options{Journal: shardtest.JournalOf(b, s, nil), Clock: clock.System})
			defer e.Close()
			w := newCrowd(b, e, n, func(int) map[string]string {
				return map[string]string{attribute.VisibilityTimeout: "3600"}
			})
			i := 0
			for b.Loop() {
				i++
				if _, err := w.QueueTags(b.Context(), w.names[i%n]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
