package forwarding

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/monitor/logs"
	"godwit.dev/godwit/internal/monitor/logs/forward"
	"godwit.dev/godwit/internal/monitor/logs/subscription"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/storetest"
	"godwit.dev/godwit/test/soak"
)

// world is a server's log groups, the functions that they are handed to, and what hands over.
type world struct {
	*shard.Engine
	logs        *logs.Logs
	forwarder   *forward.Forwarder
	clock, rest *clock.Virtual
	refuses     error              // of all destinations
	down        bool               // functions are unavailable
	tried       []int              // sizes of what was sent to them meanwhile
	asked       func(group string) // called before each message with the group's ARN; nil: nothing is
}

// AdmitService implements Functions: a function's policy is for other tests.
func (w *world) AdmitService(_ context.Context, _ arn.ARN, _ *caller.Caller, group, _ string) error {
	if w.asked != nil {
		w.asked(group)
	}
	return w.refuses
}

// InvokeJoined implements Functions.
func (w *world) InvokeJoined(ctx context.Context, fn arn.ARN, ev function.Event, joined *kernel.Joined) error {
	if w.down {
		w.tried = append(w.tried, len(ev.Payload))
		return fault.New(fault.Unavailable, "not now")
	}
	return w.Engine.InvokeJoined(ctx, fn, ev, joined)
}

func open(t *testing.T, j *journal.Journal, twoStep bool) *world {
	t.Helper()
	var ids atomic.Int64
	newID := func() message.ID { return shardtest.MessageID(int(ids.Add(1))) }
	w := &world{clock: clock.NewVirtual(shardtest.Start), rest: clock.NewVirtual(shardtest.Start)}
	logger := slog.New(slog.DiscardHandler)
	k := kernel.New(kernel.Options{Journal: j, Clock: w.clock, Logger: logger})
	w.logs = logs.New(k, logs.Options{})
	w.forwarder = forward.New(forward.Options{Logs: w.logs, Kernel: k, Clock: w.clock, Logger: logger, Rest: w.rest})
	w.Engine = shardtest.Open(t, shard.Options{Kernel: k, Clock: w.clock, NewID: newID, TwoStep: twoStep})
	w.forwarder.Start(&Destinations{Functions: w, Clock: w.clock, NewID: newID})
	w.settle()
	return w
}

// settle returns once all is handed over that may be now.
func (w *world) settle() {
	w.AwaitIdle()
	_, _ = w.rest.Advance(context.Background(), time.Second) // nothing holds it
	w.AwaitIdle()
}

var app, fn = arn.LogGroup(shardtest.Region, shardtest.Account, "/app"), shardtest.FunctionARN("f")

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pass has time pass, and what is due then be done.
func (w *world) pass(t *testing.T, d time.Duration) {
	t.Helper()
	_, err := w.clock.Advance(t.Context(), d)
	check(t, err)
}

// records is how many records of log groups have a tag.
func (w *world) records(t *testing.T, tag byte) (n int) {
	t.Helper()
	for key := range storetest.Dump(t, w.Store) {
		if key[0] == keyspace.LogSpace && key[1] == tag {
			n++
		}
	}
	return n
}

// makeGroup makes a group, and a function that gets what is put into it.
func (w *world) makeGroup(t *testing.T, filters ...string) {
	t.Helper()
	_, err := w.CreateFunction(t.Context(), shardtest.CreateFunction("f", nil), nil)
	check(t, err)
	check(t, w.logs.CreateGroup(logs.NewGroup{ARN: app}))
	for _, s := range []string{"s", "t"} {
		check(t, w.logs.CreateStream(app, s))
	}
	for _, name := range filters {
		w.filter(t, name, "")
	}
}

func (w *world) filter(t *testing.T, name, pattern string) {
	t.Helper()
	check(t, w.logs.PutSubscription(app, subscription.Filter{Name: name, Pattern: pattern, Destination: fn.String()}))
}

func (w *world) put(t *testing.T, stream string, messages ...string) {
	t.Helper()
	var events []logs.Event
	for i, m := range messages {
		events = append(events, logs.Event{Time: w.clock.Now().UnixMilli() + int64(i), Message: m})
	}
	_, err := w.logs.Put(app, stream, events)
	check(t, err)
}

// handed is how many events wait for the function.
func (w *world) handed(t *testing.T) int64 {
	t.Helper()
	info, err := w.Events(t.Context(), fn)
	if fault.KindOf(err) == fault.ResourceNotFound {
		return -1
	}
	check(t, err)
	return info.Due + info.Waiting + info.InFlight
}

// What was acknowledged is handed over, and once if it is of one stream, wherever the process ends between the
// commit of a put and the next: the invocation and the end of the hand-over are one commit.
func TestCrash(t *testing.T) {
	for name, twoStep := range map[string]bool{"one commit": false, "two steps": true} {
		t.Run(name, func(t *testing.T) {
			state := func(w *world) string {
				w.settle()
				filters, _ := w.logs.Subscriptions(app)
				found, _, _ := w.logs.Filter(logs.FilterQuery{Group: app, Limit: 100})
				text, err := json.Marshal([]any{filters, len(found), w.handed(t), w.records(t, keyspace.LogPuts)})
				check(t, err)
				return string(text)
			}
			step := func(f func(w *world)) func(w *world) {
				return func(w *world) {
					f(w)
					w.settle()
				}
			}
			shardtest.CrashInSteps(t, soak.Seeds(t, 1)[0], soak.Size(1, 3), func(j *journal.Journal) *world { return open(t, j, twoStep) }, state,
				func(w *world) {
					_, err := w.CreateFunction(t.Context(), shardtest.CreateFunction("f", nil), nil)
					check(t, err)
				},
				func(w *world) { check(t, w.logs.CreateGroup(logs.NewGroup{ARN: app})) },
				func(w *world) { check(t, w.logs.CreateStream(app, "s")) },
				func(w *world) { w.filter(t, "a", "") },
				step(func(w *world) { w.put(t, "s", "1", "2") }),
				step(func(w *world) { w.put(t, "s", "3") }),
				func(w *world) { w.filter(t, "a", "x") },
				step(func(w *world) { w.put(t, "s", "4", "5 x") }),
				step(func(w *world) { w.put(t, "s", "6") }), // nothing matches
				func(w *world) { check(t, w.logs.DeleteSubscription(app, "a")) },
				func(w *world) { w.put(t, "s", "7 x") },
			)
		})
	}
}

// What a destination does not take now is tried again, with what came meanwhile, for 24 hours; and what it
// refuses for good is not.
func TestRetries(t *testing.T) {
	w := open(t, shardtest.JournalOf(t, shardtest.NewStore(t), nil), false)
	w.makeGroup(t, "a")
	w.refuses = fault.New(fault.Unavailable, "not now")
	w.put(t, "s", "1")
	w.settle()
	w.put(t, "t", "2")
	w.pass(t, 23*time.Hour)
	w.settle()
	if n := w.handed(t); n != 0 {
		t.Fatalf("%d are handed over", n)
	}
	w.put(t, "s", "3")
	w.pass(t, 2*time.Hour) // the first two are given up
	w.settle()
	w.refuses = nil
	w.pass(t, time.Minute)
	w.settle()
	if n := w.handed(t); n != 1 {
		t.Errorf("%d are handed over after 25 hours", n)
	}
	w.refuses = fault.New(fault.AccessDenied, "never")
	w.put(t, "s", "4")
	w.settle()
	w.refuses = nil
	w.put(t, "s", "5")
	w.settle()
	if n := w.handed(t); n != 2 {
		t.Errorf("%d are handed over after a refusal", n)
	}
	if n := w.records(t, keyspace.LogPuts); n != 0 {
		t.Errorf("%d puts are left", n)
	}
}

// What comes while a filter rests goes together, a message a stream: a function whose own lines are handed to
// it is not invoked for each.
func TestRest(t *testing.T) {
	w := open(t, shardtest.JournalOf(t, shardtest.NewStore(t), nil), false)
	w.makeGroup(t, "a", "b")
	w.put(t, "s", "first")
	w.AwaitIdle()
	for range 20 {
		w.put(t, "s", "x")
		w.put(t, "t", "x")
	}
	w.AwaitIdle()
	if n := w.handed(t); n != 2 {
		t.Fatalf("%d are handed over at once, by two filters", n)
	}
	w.settle()
	if n := w.handed(t); n != 2+2*2 {
		t.Errorf("%d are handed over, of two streams by two filters", n)
	}
	check(t, w.logs.DeleteGroup(app))
	if n := w.records(t, keyspace.LogCursors); n != 0 {
		t.Errorf("%d cursors are left", n)
	}
}

// What is left of a filter whose group was written by a version without such filters goes, and what other filters
// are yet to hand over stays.
func TestForgotten(t *testing.T) {
	st := shardtest.NewStore(t)
	w := open(t, shardtest.JournalOf(t, st, nil), false)
	w.makeGroup(t, "a")
	w.refuses = fault.New(fault.Unavailable, "not now")
	w.put(t, "s", "1")
	w.settle()
	for key, value := range storetest.Dump(t, w.Store) { // a record without filters is written over the group's
		if key[0] == keyspace.LogSpace && key[1] == keyspace.LogGroups && strings.HasSuffix(string(key), "/app") {
			var b mutation.Batch
			b.Set(key, append(value[:16:16], "{}"...))
			check(t, st.Apply(store.Sync, &b))
		}
	}
	w.pass(t, time.Minute)
	w.settle()
	w.Journal.Sync()
	if puts, cursors := w.records(t, keyspace.LogPuts), w.records(t, keyspace.LogCursors); puts != 0 || cursors != 0 {
		t.Errorf("%d puts and %d cursors are left", puts, cursors)
	}
	w.put(t, "s", "2")
	if n := w.records(t, keyspace.LogPuts); n != 0 {
		t.Errorf("%d puts are noted for nobody", n)
	}
}

// Filters whose events come as fast as they are handed over, as many as may hand over at once, do not keep
// another one waiting.
func TestTurns(t *testing.T) {
	const busy, pages = 4, 8
	w := open(t, shardtest.JournalOf(t, shardtest.NewStore(t), nil), false)
	_, err := w.CreateFunction(t.Context(), shardtest.CreateFunction("f", nil), nil)
	check(t, err)
	groups := make([]arn.ARN, busy+1)
	for i := range groups {
		groups[i] = arn.LogGroup(shardtest.Region, shardtest.Account, fmt.Sprint("/", i))
		check(t, w.logs.CreateGroup(logs.NewGroup{ARN: groups[i]}))
		check(t, w.logs.CreateStream(groups[i], "s"))
		check(t, w.logs.PutSubscription(groups[i], subscription.Filter{Name: "f", Destination: fn.String()}))
	}
	page := strings.Repeat("x", 4<<20)
	add := func(group arn.ARN, message string) {
		_, err := w.logs.Put(group, "s", []logs.Event{{Time: w.clock.Now().UnixMilli(), Message: message}})
		if err != nil {
			t.Error(err)
		}
	}
	for i := range 3 { // after the first they rest, with two pages, so that there is always another one
		for _, group := range groups[:busy] {
			add(group, page)
		}
		if i == 0 {
			w.AwaitIdle()
		}
	}
	var mu sync.Mutex
	var order []string
	begun := map[string]int{}
	full := make(chan struct{}) // closed once all slots are taken, and the other one waits
	w.asked = func(group string) {
		mu.Lock()
		order = append(order, group)
		begun[group]++
		n, all := begun[group], len(begun)
		mu.Unlock()
		if group == groups[busy].String()+":*" {
			return
		}
		if n == 1 && all == busy {
			add(groups[busy], "x")
			close(full)
		}
		<-full
		if n < pages {
			i := slices.IndexFunc(groups, func(a arn.ARN) bool { return a.String()+":*" == group })
			add(groups[i], page)
		}
	}
	w.settle()
	at := slices.Index(order, groups[busy].String()+":*")
	if at < 0 || at > 3*busy || len(order) < busy*pages {
		t.Errorf("the other one has its turn as number %d of %d", at, len(order))
	}
}

// What a retry costs does not grow with what waits: one put is tried until a message gets through. What did
// before is not sent again then.
func TestRetriesAreSmall(t *testing.T) {
	w := open(t, shardtest.JournalOf(t, shardtest.NewStore(t), nil), false)
	w.makeGroup(t, "a")
	w.down = true
	w.put(t, "s", "1")
	w.settle()
	for i := range 200 {
		w.put(t, "s", fmt.Sprint(i))
	}
	w.pass(t, 10*time.Minute)
	w.settle()
	if len(w.tried) < 10 || slices.Max(w.tried) > w.tried[0] {
		t.Errorf("it is tried with %d bytes", w.tried)
	}
	w.down = false
	w.pass(t, time.Minute)
	w.settle()
	if n := w.handed(t); n != 2 {
		t.Errorf("%d messages are handed over", n)
	}
	w.put(t, "s", "first")
	w.AwaitIdle() // it rests
	w.put(t, "s", "1")
	w.put(t, "t", "2")
	w.put(t, "s", "3")
	sent := 0
	w.asked = func(string) {
		sent++
		w.refuses = nil
		if sent == 2 {
			w.refuses = fault.New(fault.Unavailable, "not now")
		}
	}
	w.settle()
	if n := w.handed(t); n != 2+2 {
		t.Fatalf("%d messages are handed over, one of them of two events of a stream", n)
	}
	w.pass(t, time.Minute)
	w.settle()
	if n := w.handed(t); n != 2+3 {
		t.Errorf("%d messages are handed over in the end", n)
	}
	if n := w.records(t, keyspace.LogPuts); n != 0 {
		t.Errorf("%d puts are left", n)
	}
}

// What is too old to be tried again goes at once, however much it is, so that what waits for a destination that is
// down does not grow beyond a day of it.
func TestGivenUpAtOnce(t *testing.T) {
	w := open(t, shardtest.JournalOf(t, shardtest.NewStore(t), nil), false)
	w.makeGroup(t, "a")
	w.down = true
	w.put(t, "s", "first")
	for range 5 {
		w.put(t, "s", slices.Repeat([]string{"x"}, subscription.PageEvents)...)
	}
	w.pass(t, 23*time.Hour)
	w.settle()
	w.put(t, "t", "last")
	if n := w.records(t, keyspace.LogPuts); n != 7 {
		t.Fatalf("%d of 7 puts wait after 23 hours", n)
	}
	w.pass(t, time.Hour+time.Minute)
	w.settle()
	if n := w.records(t, keyspace.LogPuts); n != 1 {
		t.Errorf("%d puts wait after a day, want the last", n)
	}
	w.down = false
	w.pass(t, time.Minute)
	w.settle()
	if n := w.handed(t); n != 1 {
		t.Errorf("%d messages are handed over, want the last", n)
	}
}

// A start begins with the filters that have something to hand over, however many others there are.
func TestStartBegins(t *testing.T) {
	w := open(t, shardtest.JournalOf(t, shardtest.NewStore(t), nil), false)
	w.makeGroup(t, "a", "b")
	begins := func(want int) {
		t.Helper()
		all, err := w.logs.Subscribers()
		check(t, err)
		if len(all) != want {
			t.Errorf("it begins with %v, want %d", all, want)
		}
	}
	begins(0)
	w.refuses = fault.New(fault.Unavailable, "not now")
	w.put(t, "s", "1")
	w.settle()
	w.Journal.Sync()
	begins(2)
	w.refuses = nil
	w.pass(t, time.Minute)
	w.settle()
	w.Journal.Sync()
	begins(0)
}
