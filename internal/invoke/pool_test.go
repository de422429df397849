package invoke

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/poison"
)

// lab is a runner whose environments do what the payload says: "sleep", and
// then answer with their number.
type lab struct {
	pool   *Pool
	events []Event
	start  time.Duration         // that an environment takes
	fail   *Failure              // that a start ends with
	broken error                 // that opening ends with
	worn   func(number int) bool // which are not usable; nil: none

	mu     sync.Mutex
	opened int
	open   map[int]bool
}

type fake struct {
	lab    *lab
	number int
	closed context.Context
	close  context.CancelFunc
}

func (l *lab) Open(context.Context, *function.Target, Output) (Environment, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return nil, l.broken
	}
	l.opened++
	f := &fake{lab: l, number: l.opened}
	f.closed, f.close = context.WithCancel(context.Background())
	l.open[f.number] = true
	return f, nil
}

// pass waits in the bubble's time, or for the environment's end.
func (f *fake) pass(d time.Duration) error {
	done, stop := clock.After(clock.System, d)
	defer stop()
	select {
	case <-done:
		return nil
	case <-f.closed.Done():
		return ErrStopping
	}
}

func (f *fake) Start() (*Failure, error) {
	if f.lab.start > 0 {
		if err := f.pass(f.lab.start); err != nil {
			return nil, err
		}
	}
	return f.lab.fail, nil
}

func (f *fake) Run(w *Work) (Result, error) {
	d, _ := time.ParseDuration(string(w.Payload))
	if err := f.pass(d); err != nil {
		return Result{}, err
	}
	return Result{Payload: fmt.Append(nil, f.number), Duration: d}, nil
}

func (f *fake) Usable() bool { return f.lab.worn == nil || !f.lab.worn(f.number) }

func (f *fake) Close() {
	f.close()
	f.lab.mu.Lock()
	defer f.lab.mu.Unlock()
	delete(f.lab.open, f.number)
}

// inBubble runs a test with a pool in fake time.
func inBubble(t *testing.T, o Options, test func(t *testing.T, l *lab)) {
	synctest.Test(t, func(t *testing.T) {
		l := &lab{open: map[int]bool{}}
		o.Process, o.Clock, o.Logger = l, clock.System, slog.New(slog.DiscardHandler)
		o.Events = func(e Event) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.events = append(l.events, e)
		}
		l.pool = New(o)
		test(t, l)
		if err := l.pool.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if len(l.left()) > 0 {
			t.Errorf("left: %v", l.left())
		}
		p := l.pool
		if len(p.groups)+len(p.current)+len(p.slots)+p.idle.Len()+len(p.limits.functions)+len(p.limits.accounts)+len(p.limits.invoked)+p.limits.all > 0 {
			t.Errorf("the pool remembers: %+v", p)
		}
		if _, err := l.pool.Invoke(t.Context(), Invocation{Target: target("f")}); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("a stopped pool: %v", err)
		}
	})
}

func target(name string) function.Target {
	return function.Target{
		Function: arn.Function("us-east-1", "123456789012", name), Name: name, Version: function.Latest, Build: "1", Timeout: time.Minute,
	}
}

// count is how many environments were opened.
func (l *lab) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.opened
}

// left are the environments that are open.
func (l *lab) left() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.open))
}

// call is an invocation under way.
type call struct {
	out Outcome
	err error
}

func (l *lab) begin(t function.Target, payload string) <-chan call {
	done := make(chan call, 1)
	go func() {
		out, err := l.pool.Invoke(context.Background(), Invocation{Target: t, RequestID: "id", Payload: []byte(payload)})
		done <- call{out, err}
	}()
	return done
}

func (l *lab) want(t *testing.T, target function.Target, payload, answer string) {
	t.Helper()
	c := <-l.begin(target, payload)
	if c.err != nil || string(c.out.Payload) != answer {
		t.Errorf("%s: %s %v, want %s", payload, c.out.Payload, c.err, answer)
	}
}

func TestEnvironmentsAreReused(t *testing.T) {
	inBubble(t, Options{Idle: time.Minute}, func(t *testing.T, l *lab) {
		f := target("f")
		first, second := l.begin(f, "1s"), l.begin(f, "2s")
		<-first
		<-second
		// The one that was used last goes first; the other one ends after its time.
		last := string((<-l.begin(f, "30s")).out.Payload)
		l.want(t, f, "25s", last)
		l.want(t, f, "10s", last)
		synctest.Wait()
		if len(l.left()) != 1 {
			t.Errorf("%v are open", l.left())
		}
		_ = (&fake{closed: context.Background()}).pass(61 * time.Second)
		synctest.Wait()
		if len(l.left()) != 0 {
			t.Errorf("%v are open", l.left())
		}
		// Another function, and another revision, have their own.
		l.want(t, f, "0s", "3")
		l.want(t, target("g"), "0s", "4")
		busy := l.begin(f, "10s")
		synctest.Wait()
		f.Build = "2"
		l.want(t, f, "1s", "5")
		<-busy
		synctest.Wait()
		if len(l.left()) != 2 {
			t.Errorf("the environment of an old revision is kept: %v", l.left())
		}
	})
}

// A function or version that is deleted leaves no environment, nor does what it is running.
func TestDeletedFunctionsHaveNoEnvironments(t *testing.T) {
	inBubble(t, Options{Idle: time.Hour}, func(t *testing.T, l *lab) {
		version := target("f")
		version.Version = "1"
		var running sync.WaitGroup
		for _, f := range []function.Target{target("f"), version, target("g")} {
			for range 2 {
				running.Go(func() { _, _ = l.pool.Invoke(t.Context(), Invocation{Target: f, Payload: []byte("1s")}) })
			}
		}
		running.Wait()
		running.Go(func() {
			if out, err := l.pool.Invoke(t.Context(), Invocation{Target: target("f"), Payload: []byte("1s")}); err != nil || out.FunctionError != "" {
				t.Error(out, err)
			}
		})
		synctest.Wait()
		for _, step := range []struct {
			version string
			left    int
		}{{"2", 6}, {"1", 4}, {"", 3}} { // the last runs
			l.pool.Retire(version.Function, step.version)
			synctest.Wait()
			if left := l.left(); len(left) != step.left {
				t.Errorf("after the deletion of %q: %v", step.version, left)
			}
		}
		running.Wait()
		synctest.Wait()
		if left := l.left(); len(left) != 2 {
			t.Errorf("after what ran: %v", left)
		}
	})
}

// Whoever waits for a start takes what becomes free before.
func TestAWaiterTakesWhatIsFree(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, l *lab) {
		f := target("f")
		l.want(t, f, "0s", "1")
		l.start = 10 * time.Second
		busy := l.begin(f, "1s")
		synctest.Wait()
		began := clock.System.Now()
		l.start = 20 * time.Second
		waiting := l.begin(f, "0s")
		<-busy
		// The fake takes its time for starting in Run's check too: that is the
		// warm environment's.
		c := <-waiting
		if took := clock.System.Now().Sub(began); string(c.out.Payload) != "1" || took >= 45*time.Second {
			t.Errorf("%s after %s: %v", c.out.Payload, took, c.err)
		}
	})
}

// An environment whose credentials end is not used again; who waits for one has another
// started.
func TestWornEnvironmentsAreReplaced(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, l *lab) {
		var worn atomic.Int64 // up to this number
		l.worn = func(number int) bool { return int64(number) <= worn.Load() }
		f := target("f")
		l.want(t, f, "0s", "1")
		l.want(t, f, "0s", "1")
		worn.Store(1) // while it is idle
		l.want(t, f, "0s", "2")
		l.start = time.Second
		busy := l.begin(f, "5s")
		synctest.Wait()
		waiting := l.begin(f, "0s")
		_ = (&fake{closed: context.Background()}).pass(500 * time.Millisecond)
		worn.Store(2) // while it runs, and another one is being started
		if c := <-waiting; c.err != nil || string(c.out.Payload) != "3" {
			t.Errorf("%s %v", c.out.Payload, c.err)
		}
		if c := <-busy; c.err != nil || string(c.out.Payload) != "2" {
			t.Errorf("%s %v", c.out.Payload, c.err)
		}
		synctest.Wait()
		if left := l.left(); !slices.Equal(left, []int{3}) {
			t.Errorf("left: %v", left)
		}
	})
}

func TestStartsAreBounded(t *testing.T) {
	inBubble(t, Options{Starts: 2}, func(t *testing.T, l *lab) {
		l.start = time.Second
		var all []<-chan call
		for range 10 {
			all = append(all, l.begin(target("f"), "1h"))
		}
		synctest.Wait()
		if n := l.count(); n != 2 {
			t.Errorf("%d start at once", n)
		}
		for _, c := range all {
			if got := <-c; got.err != nil {
				t.Error(got.err)
			}
		}
		if n := l.count(); n != 10 {
			t.Errorf("%d started", n)
		}
	})
}

func TestEnvironmentsAreBounded(t *testing.T) {
	inBubble(t, Options{Environments: 3}, func(t *testing.T, l *lab) {
		for _, name := range []string{"a", "b", "c", "d"} {
			if c := <-l.begin(target(name), "0s"); c.err != nil {
				t.Error(c.err)
			}
		}
		synctest.Wait()
		if slices.Contains(l.left(), 1) || len(l.left()) != 3 {
			t.Errorf("open: %v; the longest idle should have ended", l.left())
		}
		for _, name := range []string{"a", "b", "c"} {
			l.begin(target(name), "1s")
		}
		synctest.Wait()
		if c := <-l.begin(target("d"), "1s"); !Throttled(c.err) {
			t.Errorf("%v", c.err)
		}
	})
}

func TestThrottles(t *testing.T) {
	reserved := 0
	inBubble(t, Options{Concurrency: 5, Reserved: func(string, string) int { return reserved }}, func(t *testing.T, l *lab) {
		reason := func(c <-chan call) error {
			return (<-c).err
		}
		ofFunction, ofAccount := error(ErrReserved), error(ErrConcurrency)
		own, none := target("own"), target("none")
		two, zero := 2, 0
		own.Reserved, none.Reserved = &two, &zero
		reserved = 2
		if got := reason(l.begin(none, "0s")); !errors.Is(got, ofFunction) {
			t.Errorf("a share of 0: %v", got)
		}
		for range 2 {
			l.begin(own, "1s")
		}
		synctest.Wait()
		if got := reason(l.begin(own, "0s")); !errors.Is(got, ofFunction) {
			t.Errorf("a share that is used: %v", got)
		}
		elsewhere := target("f")
		elsewhere.Function.Account = "210987654321"
		for range 5 {
			l.begin(target("f"), "1s")
		}
		synctest.Wait()
		if got := reason(l.begin(target("g"), "0s")); !errors.Is(got, ofAccount) {
			t.Errorf("the account's rest is used: %v", got)
		}
		if c := <-l.begin(elsewhere, "0s"); c.err != nil {
			t.Errorf("another account: %v", c.err)
		}
		_ = (&fake{closed: context.Background()}).pass(2 * time.Second)
		if c := <-l.begin(target("g"), "0s"); c.err != nil {
			t.Errorf("afterwards: %v", c.err)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		count := map[EventKind]float64{}
		for _, e := range l.events {
			if e.Kind != Duration && e.Kind != ConcurrentExecutions {
				count[e.Kind] += e.Value
			}
		}
		if count[Throttles] != 3 || count[Invocations] != 9 || count[Errors] != 0 {
			t.Errorf("events: %v", count)
		}
	})
}

// Every invocation reports whether it failed.
func TestErrorsAreReportedOfEachInvocation(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, l *lab) {
		<-l.begin(target("f"), "1s")
		l.fail = &Failure{Type: "Runtime.ExitError", Message: "no", Status: StatusError}
		<-l.begin(target("g"), "1s")
		l.fail = nil
		<-l.begin(target("f"), "1s")
		l.mu.Lock()
		defer l.mu.Unlock()
		var got []float64
		for _, e := range l.events {
			if e.Kind == Errors {
				got = append(got, e.Value)
			}
		}
		if d := cmp.Diff([]float64{0, 1, 0}, got); d != "" {
			t.Error(d)
		}
	})
}

// What runs is counted by account, by function, as it was invoked, and by the
// version that an alias led to.
func TestConcurrency(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, l *lab) {
		as := func(name, qualifier, version string) function.Target {
			f := target(name)
			f.Qualifier, f.Version = qualifier, version
			return f
		}
		elsewhere := target("f")
		elsewhere.Function.Account = "210987654321"
		reserved, one := as("g", "", "$LATEST"), 1
		reserved.Reserved = &one
		for _, f := range []function.Target{as("f", "", "$LATEST"), as("f", "$LATEST", "$LATEST"), as("f", "live", "1"), as("f", "live", "2"), as("f", "2", "2"), reserved, elsewhere} {
			l.begin(f, "1s")
			synctest.Wait()
		}
		_ = (&fake{closed: context.Background()}).pass(2 * time.Second)
		<-l.begin(as("f", "live", "2"), "0s")
		var got []Concurrency
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, e := range l.events {
			if e.Kind == ConcurrentExecutions {
				got = append(got, e.Concurrency)
			}
		}
		if d := cmp.Diff([]Concurrency{{1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 1, 1}, {4, 4, 2, 1}, {5, 5, 1, 1}, {6, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}}, got); d != "" {
			t.Error(d)
		}
	})
}

// What is reported of an invocation when it ends carries the time of its beginning.
func TestEventsCarryTheBeginning(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, l *lab) {
		began := clock.System.Now()
		<-l.begin(target("f"), "90s")
		if clock.System.Now().Sub(began) < 90*time.Second {
			t.Fatal("it took no time")
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, e := range l.events {
			if !e.At.Equal(began) {
				t.Errorf("%s is of %v after the beginning", e.Kind, e.At.Sub(began))
			}
		}
	})
}

func TestStartsThatFail(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, l *lab) {
		l.fail = &Failure{Type: "Runtime.ExitError", Message: "no", Status: StatusError}
		c := <-l.begin(target("f"), "0s")
		if c.err != nil || c.out.FunctionError != Unhandled || string(c.out.Payload) != `{"errorType":"Runtime.ExitError","errorMessage":"RequestId: id Error: no"}` {
			t.Errorf("%s %v", c.out.Payload, c.err)
		}
		l.fail = nil
		l.broken = errors.New("no directory")
		if c := <-l.begin(target("f"), "0s"); fault.KindOf(c.err) != fault.Internal || c.err == nil {
			t.Errorf("%v", c.err)
		}
		l.broken = nil
		l.want(t, target("f"), "0s", "2")
	})
}

// The caller's end ends its wait, not its function.
func TestCallersThatLeave(t *testing.T) {
	inBubble(t, Options{Starts: 1}, func(t *testing.T, l *lab) {
		l.start = time.Hour
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := l.pool.Invoke(ctx, Invocation{Target: target("f"), Payload: []byte("0s")})
			done <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		l.pool.mu.Lock()
		defer l.pool.mu.Unlock()
		if l.pool.limits.all != 0 {
			t.Error("it still counts")
		}
	})
}

func TestStopCutsOffWhatIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lab{open: map[int]bool{}}
		l.pool = New(Options{Process: l, Clock: clock.System, Logger: slog.New(slog.DiscardHandler)})
		short, long := l.begin(target("f"), "1s"), l.begin(target("f"), "1h")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := clock.System.Now()
		if err := l.pool.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if took := clock.System.Now().Sub(began); took != 10*time.Second {
			t.Errorf("it took %s", took)
		}
		if c := <-short; c.err != nil {
			t.Errorf("what was soon through: %v", c.err)
		}
		if c := <-long; fault.KindOf(c.err) != fault.Unavailable {
			t.Errorf("what was cut off: %v", c.err)
		}
		if len(l.left()) > 0 {
			t.Errorf("left: %v", l.left())
		}
	})
}

func TestReportLines(t *testing.T) {
	in := &Invocation{Target: target("f"), RequestID: "id"}
	in.Target.MemoryMB = 128
	for want, r := range map[string]Result{
		"REPORT RequestId: id\tDuration: 3.01 ms\tBilled Duration: 114 ms\tMemory Size: 128 MB\tMax Memory Used: 36 MB\tInit Duration: 110.10 ms\t\n": {
			Duration: 3010 * time.Microsecond, Init: 110100 * time.Microsecond, MemoryMB: 36,
		},
		"REPORT RequestId: id\tDuration: 3000.00 ms\tBilled Duration: 3000 ms\tMemory Size: 128 MB\tMax Memory Used: 36 MB\tStatus: timeout\t\n": {
			Duration: 3 * time.Second, MemoryMB: 36, Failure: &Failure{Status: StatusTimeout},
		},
	} {
		if got := string(report(in, &r, billed(&r))); got != want {
			t.Errorf("%q\nwant %q", got, want)
		}
	}
}

func TestTail(t *testing.T) {
	s := newStream(nil, clock.System, new(target("f")))
	in := &Invocation{Target: target("f"), RequestID: "id", Tail: true}
	s.begin(in, true)
	var all []byte
	for i := range 3000 {
		line := fmt.Appendf(nil, "line %d\n", i)
		all = append(all, line...)
		s.Line(slices.Clone(line))
	}
	tail := s.end(in, &Result{}, 0)
	if len(tail) != tailSize || len(s.tail) > 2*tailSize {
		t.Errorf("tail of %d, %d kept", len(tail), len(s.tail))
	}
	before, _, found := bytes.Cut(tail, []byte("END RequestId: id\n"))
	if !found || !bytes.HasSuffix(all, before) {
		t.Errorf("tail %q", tail)
	}
}

// A panic in the midst of an invocation ends the process: it would count for ever, and
// its environment be lost. One before it is nothing to the others.
func TestPanicEndsTheProcess(t *testing.T) {
	var ends []error
	guard := poison.New(nil, func(err error) { ends = append(ends, err) })
	o := Options{Process: broken{}, Clock: clock.System, Logger: slog.New(slog.DiscardHandler), Guard: guard}
	invoke := func(o Options, in Invocation) (cause any) {
		defer func() { cause = recover() }()
		p := New(o)
		if in.Target.Reserved != nil {
			p.limits.functions = nil // which cannot be counted in
		}
		_, err := p.Invoke(t.Context(), in)
		return err
	}
	before := o
	before.Clock = nil
	if cause := invoke(before, Invocation{Target: target("f")}); cause == nil || len(ends) > 0 {
		t.Errorf("%v, the process ends with %v", cause, ends)
	}
	if cause := invoke(o, Invocation{Target: target("f")}); cause != "a mistake" || len(ends) != 1 || !errors.Is(ends[0], poison.ErrPoisoned) {
		t.Errorf("%v, the process ends with %v", cause, ends)
	}
	ends, o.Guard = nil, poison.New(nil, func(err error) { ends = append(ends, err) })
	share := target("f")
	share.Reserved = new(1)
	if cause := invoke(o, Invocation{Target: share}); cause == nil || len(ends) != 1 {
		t.Errorf("%v, the process ends with %v", cause, ends)
	}
}

// broken makes environments in which an invocation panics.
type broken struct{}

func (broken) Open(context.Context, *function.Target, Output) (Environment, error) {
	return broken{}, nil
}
func (broken) Start() (*Failure, error)  { return nil, nil }
func (broken) Run(*Work) (Result, error) { panic("a mistake") }
func (broken) Usable() bool              { return true }
func (broken) Close()                    {}

// slowly is a runner whose environments take long to open.
type slowly struct{ begun chan struct{} }

func (s slowly) Open(ctx context.Context, _ *function.Target, _ Output) (Environment, error) {
	close(s.begun)
	<-ctx.Done()
	return nil, ctx.Err()
}

// A pool that stops does not wait for an environment that is still being opened, and who waits for that
// is told so.
func TestStopEndsOpening(t *testing.T) {
	runner := slowly{make(chan struct{})}
	p := New(Options{Process: runner, Clock: clock.System, Logger: slog.New(slog.DiscardHandler)})
	ended := make(chan error, 1)
	go func() {
		_, err := p.Invoke(t.Context(), Invocation{Target: target("f")})
		ended <- err
	}()
	<-runner.begun
	if err := p.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, ErrStopping) {
		t.Errorf("who waits: %v", err)
	}
}
