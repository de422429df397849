package alarms

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"godwit.dev/godwit/internal/alarm"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/monitor/metrics"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
)

var (
	start = time.Date(2026, 5, 26, 14, 20, 0, 0, time.UTC)
	scope = metrics.Scope{Account: "000000000000", Region: "us-east-1"}
)

func id(name string) ID { return ID{scope.Account, scope.Region, name} }

// executed notes actions, and fails as the test says.
type executed struct {
	actions []string
	fail    error
	failing map[string]error // by action
}

func (x *executed) Execute(_ context.Context, a Action, end *kernel.Joined) error {
	subject := a.Subject
	if isFunction(a.ARN) {
		var event struct {
			Data struct{ State struct{ Value string } } `json:"alarmData"`
		}
		if err := json.Unmarshal([]byte(a.Message), &event); err != nil {
			return err
		}
		subject = event.Data.State.Value + ":"
	}
	x.actions = append(x.actions, a.ARN+" "+subject)
	if err := cmp.Or(x.failing[a.ARN], x.fail); err != nil {
		return err
	}
	end.Shard.View(end.Run)
	return nil
}

// told are the states that it was tried to tell somebody of, in order.
func (x *executed) told(arn string) string {
	var states []string
	for _, action := range x.actions {
		if subject, ok := strings.CutPrefix(action, arn+" "); ok {
			state, _, _ := strings.Cut(subject, ":")
			states = append(states, state)
		}
	}
	return strings.Join(states, " ")
}

var errKilled = errors.New("killed")

// stopping is a store that fails from some write on, as a process that is killed.
type stopping struct {
	store.Store
	left int
}

func (s *stopping) Apply(sync store.SyncMode, batches ...*mutation.Batch) error {
	if s.left--; s.left < 0 {
		return errKilled
	}
	return s.Store.Apply(sync, batches...)
}

type world struct {
	*testing.T
	store      store.Store
	clock      *clock.Virtual
	points     *metrics.Store
	executor   *executed
	wokenShort int
	woken      int
	waiting    int // Options.MaxWaiting
	most       int // Options.MaxAlarms; 0: 3
	killed     chan struct{}
	engine     *Engine // the latest
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, store: memory.New(), clock: clock.NewVirtual(start), executor: &executed{}, killed: make(chan struct{})}
	k := kernel.New(kernel.Options{Journal: w.journal(w.store), Clock: w.clock, Logger: slog.New(slog.DiscardHandler)})
	w.points = metrics.New(k, metrics.Options{})
	if err := k.Load(); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) journal(st store.Store) *journal.Journal {
	killed := w.killed
	kill := sync.OnceFunc(func() { close(killed) }) // the store fails for everyone who writes
	j := journal.Open(journal.Options{Store: st, Fatal: func(err error) {
		if !errors.Is(err, errKilled) {
			w.Error(err)
		}
		kill()
		runtime.Goexit() // nobody is answered any more
	}})
	w.Cleanup(j.Close)
	return j
}

func (w *world) open(st store.Store) *Engine {
	w.Helper()
	if w.engine != nil { // what it has done is seen by the next one
		w.engine.shard.Stream.Sync()
	}
	k := kernel.New(kernel.Options{Journal: w.journal(st), Clock: w.clock, Logger: slog.New(slog.DiscardHandler)})
	e := New(k, Options{
		Metrics: w.points, Executor: w.executor,
		MaxAlarms: cmp.Or(w.most, 3), MaxWaiting: w.waiting, Wake: func() { w.woken++ }, WakeShort: func() { w.wokenShort++ },
	})
	if err := k.Load(); err != nil {
		w.Fatal(err)
	}
	w.engine = e
	return e
}

func (w *world) pass(e *Engine, values ...float64) error {
	w.Helper()
	for _, value := range values {
		err := w.points.Put(metrics.Datapoint{Metric: metrics.Metric{Scope: scope, Namespace: "n", Name: "m"}, Unit: "Count", Second: w.clock.Now().Unix(), Add: func(s *metrics.Set) { s.Add(value, 1) }})
		if err != nil {
			w.Fatal(err)
		}
	}
	if _, err := w.clock.Advance(w.Context(), time.Minute); err != nil {
		w.Fatal(err)
	}
	_, err := e.EvaluateMinutes(w.clock.Now())
	return err
}

const topic = "arn:aws:sns:us-east-1:000000000000:ops"

func config() alarm.Config {
	return alarm.Config{
		Namespace: "n", MetricName: "m", Statistic: "Maximum", Period: 60, EvaluationPeriods: 1, Threshold: 10, Comparison: alarm.Greater,
		AlarmActions: []string{topic},
	}
}

// However far the process comes before it is killed, the action of a new state is
// executed, and a state that was reported is kept.
func TestActionsSurviveCrashes(t *testing.T) {
	for left := range 4 {
		w := newWorld(t)
		if err := w.open(w.store).Put(id("a"), config(), nil); err != nil {
			t.Fatal(err)
		}
		disk := &stopping{w.store, math.MaxInt} // a start may write its epochs at once, or one by one
		victim := w.open(disk)
		victim.shard.Stream.Sync()
		disk.left = left
		over := make(chan error, 1)
		go func() { over <- w.pass(victim, 20) }()
		select {
		case <-w.killed:
		case err := <-over:
			if err != nil {
				t.Fatalf("killed at write %d: %v", left, err)
			}
			written := make(chan struct{})
			go func() {
				victim.shard.Stream.Sync() // that the action is done is written after it
				close(written)
			}()
			select {
			case <-w.killed:
			case <-written:
				if left == 0 {
					t.Fatal("a pass needed no write")
				}
			}
		}
		w.engine = nil
		if told := len(w.executor.actions) > 0; told != (left > 0) {
			t.Fatalf("killed at write %d: %v", left, w.executor.actions)
		}
		w.killed = make(chan struct{})
		e := w.open(w.store)
		if err := e.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := e.EvaluateMinutes(w.clock.Now()); err != nil {
			t.Fatal(err)
		}
		if n := len(w.executor.actions); n < 1 || n > 2 || w.executor.actions[0] != topic+` ALARM: "a" in US East (N. Virginia)` {
			t.Errorf("killed at write %d: %q", left, w.executor.actions)
		}
		if a, ok := e.Get(id("a")); !ok || a.State != alarm.Alarming {
			t.Errorf("killed at write %d: %+v", left, a)
		}
		if w.woken == 0 {
			t.Error("nobody asked for the next minute")
		}
	}
}

// An action that cannot be executed now is tried again; one that never can is not.
func TestFailingActions(t *testing.T) {
	w := newWorld(t)
	e := w.open(w.store)
	if err := e.Put(id("a"), config(), nil); err != nil {
		t.Fatal(err)
	}
	w.executor.fail = fault.New(fault.InsufficientStorage, "full")
	for range 3 {
		if err := w.pass(e, 20); err != nil {
			t.Fatal(err)
		}
	}
	w.executor.fail = fault.New(fault.NotFound, "gone")
	for range 3 {
		if err := w.pass(e, 20); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(w.executor.actions); n != 4 {
		t.Errorf("%d attempts", n)
	}
	items, _, err := e.History(HistoryQuery{Scope: scope, Descending: true, Limit: 1})
	if err != nil || items[0].Summary != "Failed to execute action "+topic+`. Received error: "gone"` || !strings.Contains(items[0].Data, "gone") {
		t.Errorf("%+v, %v", items, err)
	}
}

// Of a metric in several units an alarm without one looks at the first that has data.
func TestUnits(t *testing.T) {
	for unit, want := range map[string]alarm.State{"": alarm.Alarming, "Count": alarm.OK, "Bytes": alarm.Alarming, "Seconds": alarm.InsufficientData} {
		w := newWorld(t)
		e := w.open(w.store)
		c := config()
		c.Unit = unit
		if err := e.Put(id("a"), c, nil); err != nil {
			t.Fatal(err)
		}
		err := w.points.Put(metrics.Datapoint{Metric: metrics.Metric{Scope: scope, Namespace: "n", Name: "m"}, Unit: "Bytes", Second: w.clock.Now().Unix(), Add: func(s *metrics.Set) { s.Add(20, 1) }})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.pass(e, 5); err != nil { // in Count
			t.Fatal(err)
		}
		if a, _ := e.Get(id("a")); a.State != want {
			t.Errorf("in %q: %s", unit, a.State)
		}
	}
}

// What is put is there after a restart; deletions take all or none.
func TestAlarmsAreKept(t *testing.T) {
	w := newWorld(t)
	e := w.open(w.store)
	for _, name := range []string{"c", "a", "b"} {
		if err := e.Put(id(name), config(), map[string]string{"k": name}); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Put(id("d"), config(), nil); fault.KindOf(err) != fault.LimitExceeded {
		t.Error(err)
	}
	if err := e.Put(ID{"111111111111", "us-east-1", "d"}, config(), nil); err != nil {
		t.Error(err)
	}
	if err := e.Delete([]ID{id("none"), id("neither")}); fault.KindOf(err) != fault.NotFound {
		t.Error(err)
	}
	if err := e.Delete([]ID{id("none"), id("a"), id("a")}); err != nil {
		t.Error(err)
	}
	if err := e.SetState(t.Context(), id("b"), alarm.Status{State: alarm.OK, Reason: "r"}); err != nil {
		t.Error(err)
	}
	show := func(e *Engine) (all []string) {
		for _, a := range e.List(scope, func(*alarm.Alarm) bool { return true }) {
			all = append(all, fmt.Sprint(a.Name, a.State, a.Reason, a.Tags, a.Configured, a.Threshold))
		}
		return all
	}
	want := show(e)
	if got := show(w.open(w.store)); len(got) != 2 || strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%v became %v", want, got)
	}
	if err := w.open(w.store).Put(id("d"), config(), nil); err != nil {
		t.Errorf("a place that was given back is not free: %v", err)
	}
}

// The history goes in both directions, by pages, and ends after thirty days.
func TestHistoryPages(t *testing.T) {
	w := newWorld(t)
	e := w.open(w.store)
	for n := range 10 {
		name := fmt.Sprint("a", n%2)
		var err error
		if n < 2 {
			err = e.Put(id(name), config(), nil)
		} else {
			err = e.SetState(t.Context(), id(name), alarm.Status{State: alarm.States[n/2%2], Reason: "r"})
		}
		if err != nil {
			t.Fatal(err)
		}
		e = w.open(w.store) // what happens in the same millisecond stays apart
	}
	read := func(q HistoryQuery) string {
		q.Scope = scope
		var all []string
		for {
			items, next, err := e.History(q)
			if err != nil {
				t.Fatal(err)
			}
			for _, item := range items {
				all = append(all, strings.Fields(item.Name + " " + item.Summary)[0]+string(item.Type[0]))
			}
			if next == nil {
				return strings.Join(all, " ")
			}
			q.After = next
		}
	}
	for _, limit := range []int{1, 3, 100} {
		whole := read(HistoryQuery{Limit: limit})
		if n := strings.Count(whole, "S"); n != 8 || !strings.HasPrefix(whole, "a0C a1C ") {
			t.Errorf("by %d: %s", limit, whole)
		}
		if got := read(HistoryQuery{Limit: limit, Name: "a1", Type: alarm.StateUpdate}); got != "a1S a1S a1S a1S" {
			t.Errorf("of one by %d: %s", limit, got)
		}
		if got := read(HistoryQuery{Limit: limit, Name: "a1", Type: alarm.ConfigurationUpdate, Descending: true}); got != "a1C" {
			t.Errorf("the newest first by %d: %s", limit, got)
		}
		if got := read(HistoryQuery{Limit: limit, To: start.Add(-time.Second)}); got != "" {
			t.Errorf("before: %s", got)
		}
	}
	if _, err := w.clock.Advance(t.Context(), 31*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	if got := read(HistoryQuery{Limit: 100}); got != "" {
		t.Errorf("after a month: %s", got)
	}
	if err := e.SetState(t.Context(), id("a0"), alarm.Status{State: alarm.InsufficientData, Reason: "r"}); err != nil {
		t.Fatal(err)
	}
	left := 0
	for _, tag := range []byte{tagHistory, tagIndex} {
		err := store.Each(w.store, keyspace.Prefix([]byte{prefix, tag}), func([]byte, []byte) error { left++; return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	if left != 2 {
		t.Errorf("%d keys are left", left)
	}
}

// A page of the history costs what it returns, wherever in the history it begins.
func TestHistoryIsReadByThePage(t *testing.T) {
	w := newWorld(t)
	st := &storetest.Counting{Store: w.store}
	e := w.open(st)
	if err := e.Put(id("a"), config(), nil); err != nil {
		t.Fatal(err)
	}
	const changes = maxLooked + 100
	for n := range changes {
		if _, err := w.clock.Advance(t.Context(), time.Second); err != nil {
			t.Fatal(err)
		}
		if err := e.SetState(t.Context(), id("a"), alarm.Status{State: alarm.States[n%2], Reason: "r"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, q := range []HistoryQuery{{}, {Name: "a"}, {Descending: true}, {Name: "a", Descending: true}} {
		q.Scope, q.Limit, q.Type = scope, 10, alarm.StateUpdate
		var last time.Time
		for page := range 5 {
			st.Looks.Store(0)
			items, next, err := e.History(q)
			if err != nil || len(items) != 10 || next == nil {
				t.Fatal(len(items), next, err)
			}
			if n := st.Looks.Load(); n > 4*int64(q.Limit) {
				t.Errorf("page %d of %+v looks at %d keys", page, q, n)
			}
			for _, item := range items {
				if !last.IsZero() && (item.At.Equal(last) || item.At.Before(last) != q.Descending) {
					t.Errorf("page %d of %+v: %v follows %v", page, q, item.At, last)
				}
				last = item.At
			}
			q.After = next
		}
		q.After, q.Type = nil, "none"
		st.Looks.Store(0)
		items, next, err := e.History(q)
		if n := st.Looks.Load(); err != nil || len(items) != 0 || next == nil || n > 2*maxLooked+1 {
			t.Errorf("a search for nothing: %d items, next %v, %v, %d keys", len(items), next, err, n)
		}
	}
}

// While the disk is short of space no alarm is made; those that there are can be changed.
func TestFullDisk(t *testing.T) {
	w := newWorld(t)
	e := w.open(w.store)
	if err := e.Put(id("a"), config(), nil); err != nil {
		t.Fatal(err)
	}
	e.kernel.Options.Full = func() bool { return true }
	if err := e.Put(id("b"), config(), nil); !errors.Is(err, kernel.ErrFull) {
		t.Errorf("a new alarm on a full disk: %v", err)
	}
	if err := e.Put(id("a"), config(), nil); err != nil {
		t.Errorf("a change on a full disk: %v", err)
	}
}

// Of several that delete the same alarms at once each deletes what is left: none fails for an alarm
// that another one was quicker with, and leaves the rest.
func TestDeletedAtOnce(t *testing.T) {
	w := newWorld(t)
	e := w.open(w.store)
	for range 50 {
		for _, name := range []string{"a", "b", "c"} {
			if err := e.Put(id(name), config(), nil); err != nil {
				t.Fatal(err)
			}
		}
		var all sync.WaitGroup
		for _, other := range []string{"b", "c"} {
			all.Go(func() {
				if err := e.Delete([]ID{id("a"), id(other)}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for _, name := range []string{"a", "b", "c"} {
			if _, there := e.Get(id(name)); there {
				t.Errorf("%s is left", name)
			}
		}
	}
	if err := e.Delete([]ID{id("a")}); !errors.Is(err, ErrNotFound) {
		t.Errorf("of none: %v", err)
	}
}
