package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/inspect"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store/memory"
)

// TestMain fails if an engine leaves a goroutine behind when it is closed.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world is an engine with a queue, and who looks at it.
type world struct {
	*testing.T
	*shard.Engine
	looking *inspect.Inspector
	clock   *clock.Virtual
	n       int
}

func open(t *testing.T, attributes map[string]string) *world {
	t.Helper()
	c := clock.NewVirtual(shardtest.Start)
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: c})
	t.Cleanup(func() { _ = e.Close() })
	w := &world{T: t, Engine: e, looking: inspect.New(e.Queues, e.Functions), clock: c}
	name := "q"
	if attributes["FifoQueue"] != "" {
		name = "q.fifo"
	}
	check(t, e.CreateQueue(t.Context(), queues.QueueSpec{ARN: shardtest.QueueARN(name), Attributes: attributes}))
	return w
}

func (w *world) add(queue, group string, delay time.Duration, n int) {
	w.Helper()
	for range n {
		w.n++
		m := shardtest.NewMessage(w.n, fmt.Sprint("body ", w.n))
		m.Group = group
		if group != "" {
			m.Dedup = fmt.Sprint(w.n)
		}
		_, err := w.Send(context.Background(), shardtest.QueueARN(queue), []queues.SendEntry{{Message: m, Delay: delay}})
		check(w.T, err)
	}
}

func (w *world) take(queue string, n int, visibility time.Duration) []queues.Received {
	w.Helper()
	got, err := w.Receive(context.Background(), queues.ReceiveRequest{Queue: shardtest.QueueARN(queue), Max: n, Visibility: visibility})
	check(w.T, err)
	return got
}

// pages looks at all pages of a query and gives a line a message.
func (w *world) pages(q inspect.Query) (lines []string) {
	w.Helper()
	for n := 0; ; n++ {
		found, err := w.looking.Scan(w.Context(), q)
		check(w.T, err)
		if len(found.Messages) > q.Limit || found.Unreadable > 0 || n > 1000 {
			w.Fatalf("page %d has %d messages, %d unreadable ones", n, len(found.Messages), found.Unreadable)
		}
		for _, m := range found.Messages {
			at := ""
			if m.Available > 0 {
				at = fmt.Sprint(" in ", clock.Time(m.Available).Sub(w.clock.Now()))
			}
			lines = append(lines, fmt.Sprintf("%s %s %d%s", strings.TrimPrefix(string(m.Body), "body "), m.State, m.Receives, at))
		}
		if found.Next == nil {
			return lines
		}
		q.From = *found.Next
	}
}

func (w *world) expect(what string, q inspect.Query, want ...string) {
	w.Helper()
	for _, limit := range []int{1, 2, 3, 100} { // the pages' size changes nothing
		q.Limit = limit
		if got := w.pages(q); !slices.Equal(got, want) {
			w.Errorf("%s, by %d:\n%q, want\n%q", what, limit, got, want)
		}
	}
}

// TestStandard: a scan reports how messages stand, in the order in which they were accepted,
// and leaves them as they were.
func TestStandard(t *testing.T) {
	w := open(t, nil)
	q := shardtest.QueueARN("q")
	w.add("q", "", -1, 3)
	w.add("q", "", 30*time.Second, 1)
	w.add("q", "", 10*time.Second, 1)
	w.take("q", 1, 20*time.Second)
	w.take("q", 1, 0) // which is back at once
	all := inspect.Query{Queue: q}
	w.expect("all", all, "1 in-flight 1 in 20s", "2 visible 1", "3 visible 0", "4 delayed 0 in 30s", "5 delayed 0 in 10s")
	w.expect("what is visible", inspect.Query{Queue: q, State: inspect.Visible}, "2 visible 1", "3 visible 0")
	w.expect("what is in flight", inspect.Query{Queue: q, State: inspect.InFlight}, "1 in-flight 1 in 20s")
	w.expect("what is delayed, by its time", inspect.Query{Queue: q, State: inspect.Delayed}, "5 delayed 0 in 10s", "4 delayed 0 in 30s")
	w.expect("what matches", inspect.Query{Queue: q, Match: func(m *inspect.Message) bool { return strings.HasSuffix(string(m.Body), "3") }}, "3 visible 0")
	_, err := w.clock.Advance(t.Context(), 20*time.Second)
	check(t, err)
	w.expect("later", all, "1 visible 1", "2 visible 1", "3 visible 0", "4 delayed 0 in 10s", "5 visible 0")
	found, err := w.looking.Scan(t.Context(), inspect.Query{Queue: q, Limit: 1})
	if err != nil || found.Total != 5 || found.Next == nil {
		t.Errorf("%+v, %v", found, err)
	}
	// A scan counts as no receive.
	if got := w.take("q", 10, time.Minute); len(got) != 4 || slices.ContainsFunc(got, func(m queues.Received) bool { return m.Receives > 2 }) {
		t.Errorf("received %+v", got)
	}
	one := found.Messages[0]
	m, _, err := w.looking.At(t.Context(), q, one.Incarnation, one.Place, nil)
	if err != nil || string(m.Body) != "body 1" || m.State != inspect.InFlight || m.Receives != 2 {
		t.Errorf("%+v, %v", m, err)
	}
	if _, _, err := w.looking.At(t.Context(), q, one.Incarnation+1, one.Place, nil); !errors.Is(err, inspect.ErrNone) {
		t.Errorf("a message of another queue of the name: %v", err)
	}
	one.Sequence += 1000
	if _, _, err := w.looking.At(t.Context(), q, one.Incarnation, one.Place, nil); !errors.Is(err, inspect.ErrNone) {
		t.Errorf("a message that is not there: %v", err)
	}
	if _, err := w.looking.Scan(t.Context(), inspect.Query{Queue: shardtest.QueueARN("none"), Limit: 1}); fault.KindOf(err) != fault.QueueDoesNotExist {
		t.Errorf("a queue that is not there: %v", err)
	}
}

// TestLarge: a scan has no more in memory than it says, and continues with the next page.
func TestLarge(t *testing.T) {
	const size, messages = 1 << 20, 40 // a page of them is more than one scan may read
	w := open(t, map[string]string{"MaximumMessageSize": fmt.Sprint(size)})
	q := inspect.Query{Queue: shardtest.QueueARN("q"), Limit: 100, Match: func(m *inspect.Message) bool { return m.Body[0] == '7' }}
	for i := range messages {
		m := shardtest.NewMessage(i, fmt.Sprint(i)+strings.Repeat(" ", size-2))
		_, err := w.Send(t.Context(), q.Queue, []queues.SendEntry{{Message: m, Delay: -1}})
		check(t, err)
	}
	found, err := w.looking.Scan(t.Context(), q)
	check(t, err)
	if found.Scanned > 33 || found.Next == nil || len(found.Messages) != 1 {
		t.Fatalf("looked at %d messages at once, found %d, next %v", found.Scanned, len(found.Messages), found.Next)
	}
	first := found.Scanned
	q.From = *found.Next
	if found, err = w.looking.Scan(t.Context(), q); err != nil || first+found.Scanned != messages || found.Next != nil {
		t.Errorf("looked at %d and %d messages, %v", first, found.Scanned, err)
	}
}

// TestFIFO: groups come one after another, each in its order, and what is in flight with what
// it holds up.
func TestFIFO(t *testing.T) {
	w := open(t, map[string]string{"FifoQueue": "true"})
	q := shardtest.QueueARN("q.fifo")
	for range 3 {
		w.add("q.fifo", "a", -1, 1)
		w.add("q.fifo", "b", -1, 1)
	}
	if got := w.take("q.fifo", 1, 20*time.Second); len(got) != 1 || got[0].Group != "a" {
		t.Fatalf("%+v", got)
	}
	w.expect("group a", inspect.Query{Queue: q, Group: "a"}, "1 in-flight 1 in 20s", "3 visible 0", "5 visible 0")
	w.expect("group b", inspect.Query{Queue: q, Group: "b"}, "2 visible 0", "4 visible 0", "6 visible 0")
	w.expect("no group", inspect.Query{Queue: q, Group: "c"})
	all := w.pages(inspect.Query{Queue: q, Limit: 4})
	a := []string{"1 in-flight 1 in 20s", "3 visible 0", "5 visible 0"}
	b := []string{"2 visible 0", "4 visible 0", "6 visible 0"}
	if !slices.Equal(all, slices.Concat(a, b)) && !slices.Equal(all, slices.Concat(b, a)) {
		t.Errorf("%q", all)
	}
}

// TestCensus: everything is counted once, and the fullest come first.
func TestCensus(t *testing.T) {
	w := open(t, nil)
	dead := shardtest.QueueARN("dead")
	check(t, w.CreateQueue(t.Context(), queues.QueueSpec{ARN: dead}))
	check(t, w.CreateQueue(t.Context(), queues.QueueSpec{ARN: shardtest.QueueARN("source"), Attributes: map[string]string{
		"RedrivePolicy": `{"deadLetterTargetArn":"` + dead.String() + `","maxReceiveCount":3}`,
	}}))
	w.add("q", "", -1, 3)
	w.add("dead", "", -1, 4)
	w.add("source", "", time.Minute, 1)
	w.take("q", 1, time.Minute)
	c, err := w.looking.Census(t.Context(), 2)
	check(t, err)
	if want := (queue.Counts{Visible: 6, InFlight: 1, Delayed: 1}); c.Queues != 3 || c.InQueues != want || !c.DeadLetterQueues[dead] || len(c.DeadLetterQueues) != 1 {
		t.Errorf("%+v", c)
	}
	if len(c.Holdings) != 2 || c.Holdings[0].Name != dead || c.Holdings[1].Name != shardtest.QueueARN("q") || c.Holdings[1].Counts != (queue.Counts{Visible: 2, InFlight: 1}) {
		t.Errorf("the fullest are %+v", c.Holdings)
	}
	if c, err := w.looking.Census(t.Context(), 0); err != nil || len(c.Holdings) > 0 {
		t.Errorf("none were asked for: %+v, %v", c, err)
	}
}

// TestCensusOfFunctions: the queues to which the failed events of functions go take dead letters,
// and those of their successes do not.
func TestCensusOfFunctions(t *testing.T) {
	w := open(t, nil)
	f := shardtest.CreateFunction("f", nil)
	f.Config.DeadLetter = shardtest.QueueARN("dead")
	_, err := w.CreateFunction(t.Context(), f, nil)
	check(t, err)
	failures, successes := shardtest.QueueARN("failures").String(), shardtest.QueueARN("successes").String()
	_, err = w.SetEventInvoke(t.Context(), function.SetEventInvoke{
		Function: f.ARN, Change: function.EventInvokeChange{OnFailure: &failures, OnSuccess: &successes, Destinations: true},
	})
	check(t, err)
	c, err := w.looking.Census(t.Context(), 2)
	check(t, err)
	if got := c.DeadLetterQueues; len(got) != 2 || !got[f.Config.DeadLetter] || !got[shardtest.QueueARN("failures")] {
		t.Errorf("dead-letter queues are %v", got)
	}
}

// However many scan, only some read at a time; who waits and goes away is not kept.
func TestLooksAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, nil)
		w.add("q", "", 0, 1)
		reading, leave := 0, make(chan struct{})
		var mu sync.Mutex
		q := inspect.Query{Queue: shardtest.QueueARN("q"), Limit: 1, Match: func(*inspect.Message) bool {
			mu.Lock()
			reading++
			mu.Unlock()
			<-leave
			return true
		}}
		var scans sync.WaitGroup
		for range 3 * inspect.MaxScans {
			scans.Go(func() {
				if _, err := w.looking.Scan(context.Background(), q); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		gone, cancel := context.WithCancel(t.Context())
		scans.Go(func() {
			if _, err := w.looking.Scan(gone, q); !errors.Is(err, context.Canceled) {
				t.Errorf("who has gone away is told %v", err)
			}
		})
		synctest.Wait()
		if reading != inspect.MaxScans {
			t.Errorf("%d read at a time", reading)
		}
		cancel()
		synctest.Wait()
		close(leave)
		scans.Wait()
		if reading != 3*inspect.MaxScans {
			t.Errorf("%d have read", reading)
		}
	})
}

// A scan does not hold what it has passed: of large messages a few at a time.
func TestLooksHoldLittle(t *testing.T) {
	const n, size = 40, 1 << 20
	w := open(t, map[string]string{"MaximumMessageSize": fmt.Sprint(size)})
	for i := range n {
		_, err := w.Send(t.Context(), shardtest.QueueARN("q"), []queues.SendEntry{{Message: shardtest.NewMessage(i, strings.Repeat("x", size))}})
		check(t, err)
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	began, most, seen := heap(), uint64(0), 0
	_, err := w.looking.Scan(t.Context(), inspect.Query{Queue: shardtest.QueueARN("q"), Limit: 1, Match: func(*inspect.Message) bool {
		seen++
		most = max(most, heap())
		return false
	}})
	check(t, err)
	if most > began+8*size || seen < 20 {
		t.Errorf("%d bytes more are held by a scan that has passed %d messages", most-began, seen)
	}
}
