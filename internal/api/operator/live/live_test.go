package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/monitor"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/inspect"
)

var start = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// world is what a Live looks at.
type world struct {
	*Live

	clock  *clock.Virtual
	looks  int
	fails  error
	queues map[arn.ARN]monitor.Totals
}

func open() *world {
	w := &world{clock: clock.NewVirtual(start), queues: map[arn.ARN]monitor.Totals{}}
	w.Live = New(Options{Clock: w.clock, Queues: w, Census: func(_ context.Context, limit int) (*inspect.Census, error) {
		w.looks++
		if limit != MaxHoldings {
			return nil, fmt.Errorf("%d are asked for", limit)
		}
		return &inspect.Census{}, w.fails
	}})
	return w
}

func (w *world) EachActive(_ int, f func(queue arn.ARN, now monitor.Totals)) {
	for name, totals := range w.queues {
		f(name, totals)
	}
}

func (w *world) later(t *testing.T, d time.Duration) *Snapshot {
	t.Helper()
	w.clock.SetAtLeast(w.clock.Now().Add(d))
	s, err := w.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func name(n int) arn.ARN {
	return arn.Queue("us-east-1", "000000000000", fmt.Sprint("q", n))
}

// Rates are over what happened since the oldest snapshot of the last twelve seconds.
func TestRates(t *testing.T) {
	w, queue, topic := open(), name(1), arn.Topic("us-east-1", "000000000000", "t")
	w.queues[queue] = monitor.Totals{Sent: 100, Received: 50}
	first := w.later(t, 0)
	if _, ok := first.Rates(); ok {
		t.Error("rates are known at once")
	}
	if _, ok := first.Queue(queue); ok {
		t.Error("those of a queue are, too")
	}
	w.Published(&shard.Published{Topic: topic, Delivered: 2})
	w.Published(&shard.Published{Topic: topic, Delivered: 3, Later: true}) // the rest of the same
	w.Delivery(&deliver.Event{Subscription: name(2), Made: true, Conclusion: deliver.Conclusion{State: shard.DeliveryDelivered}})
	w.Delivery(&deliver.Event{Subscription: name(2), Made: true})
	w.Delivery(&deliver.Event{Subscription: name(2), Conclusion: deliver.Conclusion{GaveUp: true}}) // as its topic is gone: nothing was tried
	w.queues[queue] = monitor.Totals{Sent: 140, Received: 50, Deleted: 10}
	s := w.later(t, 10*time.Second)
	rates, ok := s.Rates()
	if want := (Rates{Published: 0.1, Sent: 4, Deleted: 1, Attempts: 0.2, Delivered: 0.6, Failed: 0.1}); !ok || rates != want {
		t.Errorf("rates are %+v, want %+v", rates, want)
	}
	if rate, ok := s.Topic(topic); !ok || rate != 0.1 {
		t.Errorf("the topic's are %v, %v", rate, ok)
	}
	w.queues[queue] = monitor.Totals{Sent: 5} // it was created again
	if of, _ := w.later(t, 3*time.Second).Queue(queue); of != (QueueRates{}) {
		t.Errorf("of a queue that was created anew: %+v", of)
	}
	if rates, _ := w.later(t, time.Minute).Rates(); rates != (Rates{}) {
		t.Errorf("after a minute in which nothing happened: %+v", rates)
	}
}

// A snapshot is good for two seconds, and none keeps those before it.
func TestSnapshotsAreShared(t *testing.T) {
	w := open()
	first := w.later(t, 0)
	if again := w.later(t, 1900*time.Millisecond); again != first || w.looks != 1 {
		t.Errorf("%d looks", w.looks)
	}
	for range 100 {
		w.later(t, 2*time.Second)
	}
	if n := len(w.past); n > 8 {
		t.Errorf("%d snapshots are kept", n)
	}
	if last := w.past[len(w.past)-1]; last.before.before != nil || last.before.Census != nil {
		t.Error("a snapshot keeps more than what its rates are over")
	}
	w.fails = errors.New("the disk")
	w.clock.SetAtLeast(w.clock.Now().Add(3 * time.Second))
	if _, err := w.Now(t.Context()); !errors.Is(err, w.fails) {
		t.Errorf("a count that fails: %v", err)
	}
}

// Failing are those whose last attempt failed, the latest first.
func TestFailing(t *testing.T) {
	w := open()
	attempt := func(n int, outcome string) {
		w.Delivery(&deliver.Event{Subscription: name(n), Made: true, Number: n, Attempt: shard.Attempt{Outcome: outcome}})
	}
	for n := range 4 {
		attempt(n, "server-error")
	}
	attempt(2, "success")
	attempt(1, "client-error")
	if got, want := w.Failing(10), []arn.ARN{name(1), name(3), name(0)}; !slices.Equal(got, want) {
		t.Errorf("failing are %v, want %v", got, want)
	}
	if got := w.Failing(1); !slices.Equal(got, []arn.ARN{name(1)}) {
		t.Errorf("of one: %v", got)
	}
	if a, ok := w.Last(name(1)); !ok || a.Outcome != "client-error" || a.Number != 1 {
		t.Errorf("the last one is %+v, %v", a, ok)
	}
	// Attempts are reported as they end: one that began before the last is not it.
	for n, at := range []time.Time{start.Add(time.Second), start} {
		w.Delivery(&deliver.Event{Subscription: name(5), Made: true, Number: n + 1, Attempt: shard.Attempt{At: at, Outcome: "server-error"}})
	}
	if a, _ := w.Last(name(5)); a.Number != 1 {
		t.Errorf("the last one is that which ended last: %+v", a)
	}
	if _, ok := w.Last(name(9)); ok {
		t.Error("one that never was is known")
	}
}
