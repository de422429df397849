package monitor

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/monitor/metrics"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
)

var start = time.Date(2026, 5, 26, 14, 20, 30, 0, time.UTC)

// newTicker makes a ticker of a kernel of its own.
func newTicker(t *testing.T, c clock.Clock) (m *Ticker, stop func() error) {
	t.Helper()
	j := journal.Open(journal.Options{Store: memory.New()})
	t.Cleanup(j.Close)
	k := kernel.New(kernel.Options{Journal: j, Clock: c, Logger: slog.New(slog.DiscardHandler)})
	m = NewTicker(k, time.Minute, func(err error) { t.Error(err) })
	if err := k.Load(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return m, k.Close
}

// openMetrics opens the metrics of a store in a kernel of their own; save writes what
// memory has of them, and ends them.
func openMetrics(j *journal.Journal, c clock.Clock, wake func()) (points *metrics.Store, save func() error, err error) {
	k := kernel.New(kernel.Options{Journal: j, Clock: c, Logger: slog.New(slog.DiscardHandler)})
	points = metrics.New(k, metrics.Options{Wake: wake, Layouts: Layouts})
	return points, k.Close, k.Load()
}

func points(t *testing.T, c clock.Clock, wake func()) *metrics.Store {
	t.Helper()
	return reopen(t, memory.New(), c, wake)
}

func reopen(t *testing.T, st store.Store, c clock.Clock, wake func()) *metrics.Store {
	t.Helper()
	j := journal.Open(journal.Options{Store: st})
	t.Cleanup(j.Close)
	k, _, err := openMetrics(j, c, wake)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// show lists the metrics of a namespace with their sums.
func show(t *testing.T, k *metrics.Store, c clock.Clock, namespace string) map[string]string {
	t.Helper()
	scope := metrics.Scope{Account: "000000000000", Region: "us-east-1"}
	found := map[string]string{}
	var all []metrics.Metric
	if _, err := k.List(metrics.Filter{Scope: scope, Namespace: namespace}, nil, func(m metrics.Metric) bool { all = append(all, m); return true }); err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		units, err := k.Units(m)
		if err != nil {
			t.Fatal(err)
		}
		for _, unit := range units {
			now := c.Now().Truncate(time.Minute).Unix()
			points, err := k.Read(m, unit, now-600, now+60, 60)
			if err != nil {
				t.Fatal(err)
			}
			var sums []string
			for _, p := range points {
				sums = append(sums, fmt.Sprint(p.Set.Sum))
			}
			name := m.Name
			for _, d := range metrics.SplitDimensions(m.Dimensions) {
				name += " " + d.Value
			}
			found[name] = strings.Join(sums, " ") + " " + unit
		}
	}
	return found
}

// Without anything to do there is no timer; with something there is one a minute,
// at its end, and it calls the parts in their order until none wants more.
func TestMinutes(t *testing.T) {
	c := clock.NewVirtual(start)
	var calls []string
	m, stop := newTicker(t, c)
	m.Wake() // before the start: it is not forgotten
	left := 2
	m.Start(
		TickFunc(func(at time.Time) (bool, error) {
			calls = append(calls, "a "+at.Format("15:04:05"))
			left--
			return left > 0, nil
		}),
		TickFunc(func(at time.Time) (bool, error) { calls = append(calls, "b "+at.Format("15:04:05")); return false, nil }),
	)
	m.Wake()
	result, err := c.Advance(t.Context(), 10*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"a 14:21:00", "b 14:21:00", "a 14:22:00", "b 14:22:00"}, calls); d != "" || result.Ran != 2 {
		t.Errorf("%d timers ran: %s", result.Ran, d)
	}
	m.Wake()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if result, err = c.Advance(t.Context(), time.Hour); err != nil || result.Ran != 0 {
		t.Errorf("after the stop %d timers ran, %v", result.Ran, err)
	}
}

type gauges map[string]shard.QueueGauges

func (g gauges) SampleQueue(queue arn.ARN) (shard.QueueGauges, error) { return g[queue.Resource], nil }

// A queue is active for six hours after it was used or held anything, and no
// timer is left then.
func TestQueuesBecomeIdle(t *testing.T) {
	c := clock.NewVirtual(start)
	m, _ := newTicker(t, c)
	k := points(t, c, m.Wake)
	q := NewQueues(k, nil, m.Wake)
	held := gauges{}
	held["q.fifo"] = shard.QueueGauges{GroupsInFlight: 2}
	m.Start(TickFunc(func(at time.Time) (bool, error) { return q.Tick(held, at) }), TickFunc(func(time.Time) (bool, error) { return k.Flush() }))
	queue := arn.Queue("us-east-1", "000000000000", "q.fifo")
	q.Add(shard.QueueEvent{Queue: queue, Kind: shard.MessagesDeduplicated, At: c.Now().UnixMilli(), Messages: 1})
	if _, err := c.Advance(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"NumberOfMessagesSent q.fifo": "0 Count", "NumberOfMessagesReceived q.fifo": "0 Count", "NumberOfMessagesDeleted q.fifo": "0 Count",
		"NumberOfEmptyReceives q.fifo": "0 Count", "NumberOfDeduplicatedSentMessages q.fifo": "1 Count",
		"ApproximateNumberOfMessagesVisible q.fifo": "0 Count", "ApproximateNumberOfGroupsWithInflightMessages q.fifo": "2 Count",
	}
	if d := cmp.Diff(want, show(t, k, c, "AWS/SQS")); d != "" {
		t.Error(d)
	}
	result, err := c.Advance(t.Context(), 23*24*time.Hour)
	if err != nil || result.Ran < 350 || result.Ran > 380 || !result.Next.IsZero() {
		t.Errorf("%+v, %v", result, err)
	}
}

// Functions have metrics by name, by what they were invoked as, by the version that
// an alias led to, and in all.
func TestFunctions(t *testing.T) {
	c := clock.NewVirtual(start)
	k := points(t, c, nil)
	f := NewFunctions(k, func() {})
	fn := arn.Function("us-east-1", "000000000000", "f")
	f.Record(&Datum{Function: fn, Qualifier: "", Version: "$LATEST", Metric: "Invocations", At: c.Now(), Value: 1})
	f.Record(&Datum{Function: fn, Qualifier: "", Version: "$LATEST", Metric: "Errors", At: c.Now(), Value: 0})
	f.Record(&Datum{Function: fn, Qualifier: "live", Version: "3", Metric: "Duration", At: c.Now(), Value: 12.5})
	f.Record(&Datum{Function: fn, Qualifier: "live", Version: "3", Metric: "Errors", At: c.Now(), Value: 1})
	f.Record(&Datum{Function: fn, Qualifier: "3", Version: "3", Metric: "Throttles", At: c.Now(), Value: 1})
	f.Record(&Datum{Function: fn, Qualifier: "live", Version: "3", Metric: "ConcurrentExecutions", At: c.Now(), Value: 3, PerLevel: true, Account: 4, Resource: 2, Executed: 1})
	want := map[string]string{
		"ConcurrentExecutions": "4 Count", "ConcurrentExecutions f": "3 Count", "ConcurrentExecutions f f:live": "2 Count", "ConcurrentExecutions 3 f f:live": "1 Count",
		"Invocations": "1 Count", "Invocations f": "1 Count", "Invocations f f": "1 Count",
		"Duration": "12.5 Milliseconds", "Duration f": "12.5 Milliseconds", "Duration f f:live": "12.5 Milliseconds", "Duration 3 f f:live": "12.5 Milliseconds",
		"Errors": "1 Count", "Errors f": "1 Count", "Errors f f": "0 Count", "Errors f f:live": "1 Count", "Errors 3 f f:live": "1 Count",
		"Throttles": "1 Count", "Throttles f": "1 Count", "Throttles f f": "0 Count", "Throttles f f:3": "1 Count",
	}
	if d := cmp.Diff(want, show(t, k, c, "AWS/Lambda")); d != "" {
		t.Error(d)
	}
}

// What is sent or deleted at once counts by the message, and a receive once.
func TestAtOnce(t *testing.T) {
	c := clock.NewVirtual(start)
	k := points(t, c, nil)
	q := NewQueues(k, nil, func() {})
	queue := arn.Queue("us-east-1", "000000000000", "q")
	sizes := []int{5, 5, 7}
	q.Add(shard.QueueEvent{Queue: queue, Kind: shard.MessagesSent, At: c.Now().UnixMilli(), Messages: 3, Bytes: 17, Sizes: sizes})
	q.Add(shard.QueueEvent{Queue: queue, Kind: shard.MessagesSent, At: c.Now().UnixMilli(), Messages: 1, Bytes: 4})
	q.Add(shard.QueueEvent{Queue: queue, Kind: shard.MessagesReceived, At: c.Now().UnixMilli(), Messages: 4})
	q.Add(shard.QueueEvent{Queue: queue, Kind: shard.MessagesDeleted, At: c.Now().UnixMilli(), Messages: 3})
	q.Add(shard.QueueEvent{Queue: queue, Kind: shard.MessagesDeletedAgain, At: c.Now().UnixMilli(), Messages: 2})
	q.Add(shard.QueueEvent{Queue: queue, Kind: shard.MessagesDeduplicated, At: c.Now().UnixMilli(), Messages: 2})
	if got := q.Of(queue); got != (Totals{Sent: 4, SentBytes: 21, Received: 4, Deleted: 3, Deduplicated: 2}) {
		t.Errorf("%+v", got)
	}
	from := c.Now().Truncate(time.Minute).Unix()
	for name, want := range map[string][4]float64{
		"NumberOfMessagesSent": {4, 4, 1, 1}, "SentMessageSize": {4, 21, 4, 7}, "NumberOfMessagesReceived": {1, 4, 4, 4},
		"NumberOfMessagesDeleted": {5, 5, 1, 1}, "NumberOfDeduplicatedSentMessages": {2, 2, 1, 1},
	} {
		m := metrics.Metric{
			Scope: metrics.Scope{Account: "000000000000", Region: "us-east-1"}, Namespace: "AWS/SQS", Name: name,
			Dimensions: metrics.Dimensions(metrics.Dimension{Name: "QueueName", Value: "q"}),
		}
		unit := map[bool]string{true: "Bytes", false: "Count"}[name == "SentMessageSize"]
		points, err := k.Read(m, unit, from, from+60, 60)
		if err != nil || len(points) != 1 {
			t.Fatal(name, points, err)
		}
		s := points[0].Set
		if got := [4]float64{s.Count, s.Sum, s.Min, s.Max}; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
