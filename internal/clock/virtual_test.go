package clock_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"godwit.dev/godwit/internal/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2024, 2, 28, 23, 0, 0, 0, time.UTC)

// advance moves v by d and fails the test if that fails.
func advance(t testing.TB, v *clock.Virtual, d time.Duration) clock.Result {
	t.Helper()
	r, err := v.Advance(context.Background(), d)
	if err != nil {
		t.Errorf("Advance(%s): %v", d, err)
	}
	return r
}

// pass lets d of a synctest bubble's time go by.
func pass(d time.Duration) {
	passed, _ := clock.After(clock.System, d)
	<-passed
}

func TestVirtualRunsTimersInOrderAtTheirTime(t *testing.T) {
	v := clock.NewVirtual(start)
	type firing struct {
		Name string
		At   time.Duration
	}
	var fired []firing
	note := func(name string) func() {
		return func() { fired = append(fired, firing{name, v.Now().Sub(start)}) }
	}
	v.AfterFunc(3*time.Second, note("late"))
	v.AfterFunc(time.Second, func() {
		note("early")()
		v.AfterFunc(0, note("at once, after what was due"))
		v.AfterFunc(time.Second, note("nested, created last"))
	})
	v.AfterFunc(time.Second, note("same moment"))
	v.AfterFunc(2*time.Second, note("middle"))
	v.AfterFunc(time.Hour, note("beyond"))
	stopped := v.AfterFunc(time.Second, note("stopped"))
	if !stopped.Stop() {
		t.Error("the first Stop of a pending timer said false")
	}
	if stopped.Stop() {
		t.Error("the second Stop said true")
	}

	r := advance(t, v, 3*time.Second)

	want := []firing{
		{"early", time.Second},
		{"same moment", time.Second},
		{"at once, after what was due", time.Second},
		{"middle", 2 * time.Second},
		{"nested, created last", 2 * time.Second},
		{"late", 3 * time.Second},
	}
	if d := cmp.Diff(want, fired); d != "" {
		t.Errorf("timers (-want +got):\n%s", d)
	}
	wantResult := clock.Result{Now: start.Add(3 * time.Second), Ran: 6, Next: start.Add(time.Hour)}
	if r != wantResult {
		t.Errorf("result %+v, want %+v", r, wantResult)
	}
}

func TestVirtualStandsStillBetweenAdvances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := clock.NewVirtual(start)
		v.AfterFunc(time.Nanosecond, func() { t.Error("a timer ran without an Advance") })
		pass(1000 * time.Hour)
		synctest.Wait()
		if now := v.Now(); !now.Equal(start) {
			t.Errorf("the clock moved to %s", now)
		}
	})
}

func TestVirtualDueAtCreationRunsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, d := range []time.Duration{0, -time.Hour} {
			v := clock.NewVirtual(start)
			var ran atomic.Bool
			timer := v.AfterFunc(d, func() { ran.Store(true) })
			synctest.Wait()
			if !ran.Load() {
				t.Errorf("AfterFunc(%s) did not run without an Advance", d)
			}
			if timer.Stop() {
				t.Errorf("Stop of AfterFunc(%s) said true", d)
			}
			if now := v.Now(); !now.Equal(start) {
				t.Errorf("AfterFunc(%s) moved the clock to %s", d, now)
			}
		}
	})
}

func TestVirtualAdvanceWaitsForWhatRunsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := clock.NewVirtual(start)
		proceed := make(chan struct{})
		v.AfterFunc(0, func() {
			<-proceed
			if now := v.Now(); !now.Equal(start) {
				t.Errorf("the clock moved to %s under a running timer", now)
			}
		})
		var done atomic.Bool
		go func() {
			advance(t, v, time.Hour)
			done.Store(true)
		}()
		synctest.Wait()
		if done.Load() {
			t.Error("Advance did not wait for a timer that ran at once")
		}
		close(proceed)
		synctest.Wait()
		if !done.Load() {
			t.Error("Advance did not go on")
		}
	})
}

func TestVirtualHoldStopsTheNextJump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := clock.NewVirtual(start)
		var first, second func()
		ran := 0
		v.AfterFunc(time.Second, func() { first, second = v.Hold(), v.Hold() })
		v.AfterFunc(2*time.Second, func() { ran++ })
		var result clock.Result
		go func() { result = advance(t, v, time.Minute) }()

		for _, release := range []func(){func() { first() }, func() { second() }} {
			synctest.Wait()
			if now := v.Now(); !now.Equal(start.Add(time.Second)) || ran != 0 {
				t.Fatalf("with a hold outstanding: at %s, %d timers ran", now.Sub(start), ran)
			}
			release()
		}
		synctest.Wait()
		if want := (clock.Result{Now: start.Add(time.Minute), Ran: 2}); result != want {
			t.Errorf("result %+v, want %+v", result, want)
		}
	})
}

// A timer that work under way creates for this very moment still belongs to
// the moment: the clock may not move on before it has run.
func TestVirtualRunsWhatHeldWorkCreates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := clock.NewVirtual(start)
		var at []time.Duration
		v.AfterFunc(time.Second, func() {
			release := v.Hold()
			go func() {
				pass(time.Minute)
				v.AfterFunc(0, func() { at = append(at, v.Now().Sub(start)) })
				v.AfterFunc(time.Second, func() { at = append(at, v.Now().Sub(start)) })
				release()
			}()
		})
		advance(t, v, 10*time.Second)
		if d := cmp.Diff([]time.Duration{time.Second, 2 * time.Second}, at); d != "" {
			t.Errorf("timers ran at (-want +got):\n%s", d)
		}
	})
}

func TestVirtualDoubleReleasePanics(t *testing.T) {
	v := clock.NewVirtual(start)
	release := v.Hold()
	release()
	defer func() {
		if recover() == nil {
			t.Error("the second release did not panic")
		}
	}()
	release()
}

func TestVirtualAdvanceEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := clock.NewVirtual(start)
		var releases []func()
		v.AfterFunc(time.Second, func() { releases = append(releases, v.Hold(), v.Hold()) })
		v.AfterFunc(time.Minute, func() { t.Error("a timer ran over a hold") })
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()

		r, err := v.Advance(ctx, time.Hour)

		held, ok := errors.AsType[*clock.HeldError](err)
		if !ok || held.Holds != 2 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want 2 holds and the context's end", err)
		}
		if want := (clock.Result{Now: start.Add(time.Second), Ran: 1, Next: start.Add(time.Minute)}); r != want {
			t.Errorf("result %+v, want %+v", r, want)
		}

		// What the broken-off Advance left due must not wait for the next.
		for _, release := range releases {
			release()
		}
		var ran atomic.Bool
		v.AfterFunc(0, func() { ran.Store(true) })
		synctest.Wait()
		if !ran.Load() {
			t.Error("after a cancelled Advance, a timer that is due does not run")
		}
	})
}

func TestVirtualCancelledAdvanceLaunchesWhatItLeftDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := clock.NewVirtual(start)
		var ran atomic.Bool
		v.AfterFunc(time.Second, func() {
			v.Hold() // never released
			v.AfterFunc(0, func() { ran.Store(true) })
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := v.Advance(ctx, time.Minute); err == nil {
			t.Error("Advance ended without an error over a hold")
		}
		synctest.Wait()
		if !ran.Load() {
			t.Error("the timer that was due when Advance was cancelled never ran")
		}
	})
}

func TestVirtualConcurrentAdvancesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := clock.NewVirtual(start)
		var inside, ran int // unguarded on purpose: the race detector sees two at once
		for i := range 100 {
			v.AfterFunc(time.Duration(i)*time.Second+time.Nanosecond, func() {
				inside++
				if inside != 1 {
					t.Error("two timers ran at once")
				}
				inside--
				ran++
			})
		}
		for range 10 {
			go advance(t, v, 10*time.Second)
		}
		synctest.Wait()
		if now := v.Now().Sub(start); now != 100*time.Second || ran != 100 {
			t.Errorf("ten times 10 s: clock at %s, %d timers ran", now, ran)
		}
	})
}

func TestVirtualWaitingForATurnEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := clock.NewVirtual(start)
		release := v.Hold()
		go advance(t, v, time.Second)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := v.Advance(ctx, time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("second Advance: %v", err)
		}
		release()
		synctest.Wait()
		if now := v.Now().Sub(start); now != time.Second {
			t.Errorf("clock at %s, want only the first Advance's second", now)
		}
	})
}

func TestVirtualRefusesToGoBack(t *testing.T) {
	v := clock.NewVirtual(start)
	if _, err := v.Advance(t.Context(), -1); !errors.Is(err, clock.ErrBackwards) {
		t.Errorf("Advance(-1): %v", err)
	}
	v.SetAtLeast(start.Add(-time.Hour))
	if now := v.Now(); !now.Equal(start) {
		t.Errorf("SetAtLeast moved the clock back to %s", now)
	}
}

func TestVirtualSetAtLeast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := clock.NewVirtual(start)
		var due, later atomic.Bool
		v.AfterFunc(time.Minute, func() { due.Store(true) })
		v.AfterFunc(2*time.Hour, func() { later.Store(true) })
		v.SetAtLeast(start.Add(time.Hour))
		synctest.Wait()
		if now := v.Now().Sub(start); now != time.Hour {
			t.Errorf("clock at %s, want 1h", now)
		}
		if !due.Load() || later.Load() {
			t.Errorf("ran what is due: %v; what is not: %v", due.Load(), later.Load())
		}
	})
}

func TestVirtualSetAtLeastWithinAnAdvance(t *testing.T) {
	v := clock.NewVirtual(start)
	var at []time.Duration
	v.AfterFunc(time.Second, func() { v.SetAtLeast(start.Add(time.Hour)) })
	v.AfterFunc(2*time.Second, func() { at = append(at, v.Now().Sub(start)) })
	r := advance(t, v, 10*time.Second)
	if d := cmp.Diff([]time.Duration{time.Hour}, at); d != "" || !r.Now.Equal(start.Add(time.Hour)) {
		t.Errorf("clock went back to %s; timers ran at (-want +got):\n%s", r.Now, d)
	}
}

// The order of firing is by (due time, creation), whatever is created,
// stopped and nested, and however the way is cut into Advances.
func TestVirtualOrderProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type key struct {
			due   time.Duration
			order int
		}
		byTime := func(a, b key) int {
			if a.due != b.due {
				return int(a.due - b.due)
			}
			return a.order - b.order
		}
		v := clock.NewVirtual(start)
		timers := map[key]clock.Timer{}
		live := map[key]bool{}
		var fired []key
		created := 0
		var create func(d time.Duration, nested []time.Duration)
		create = func(d time.Duration, nested []time.Duration) {
			k := key{due: v.Now().Sub(start) + d, order: created}
			created++
			live[k] = true
			timers[k] = v.AfterFunc(d, func() {
				if at := v.Now().Sub(start); at != k.due {
					t.Fatalf("timer due at %s ran at %s", k.due, at)
				}
				if !live[k] {
					t.Fatalf("timer %v ran twice or after its Stop", k)
				}
				delete(live, k)
				fired = append(fired, k)
				for _, d := range nested {
					create(d, nil)
				}
			})
		}
		nested := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.IntRange(0, 20).Draw(t, "nested"))
		}), 0, 3)
		total := 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				all := slices.SortedFunc(maps.Keys(timers), byTime)
				if len(all) == 0 {
					continue
				}
				k := rapid.SampledFrom(all).Draw(t, "stop")
				if stopped := timers[k].Stop(); stopped != live[k] {
					t.Fatalf("Stop of %v said %v, pending: %v", k, stopped, live[k])
				}
				delete(live, k)
			case 1, 2:
				d := time.Duration(rapid.IntRange(0, 30).Draw(t, "advance"))
				before := len(fired)
				r, err := v.Advance(context.Background(), d)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.IsSortedFunc(fired[before:], byTime) {
					t.Fatalf("out of order: %v", fired[before:])
				}
				total += r.Ran
				next := time.Time{}
				if len(live) > 0 {
					next = start.Add(slices.MinFunc(slices.Collect(maps.Keys(live)), byTime).due)
				}
				if !r.Next.Equal(next) || (len(live) > 0 && !r.Next.After(r.Now)) {
					t.Fatalf("at %s next is %s, want %s", r.Now, r.Next, next)
				}
			default:
				d := rapid.IntRange(1, 50).Draw(t, "after")
				create(time.Duration(d), nested.Draw(t, "nested"))
			}
		}
		if total != len(fired) {
			t.Fatalf("%d timers ran, results say %d", len(fired), total)
		}
	})
}

// The retry ladder of a 23-day outage is one timer after another, beside
// many that are pending; its length is AWS's (3 + 2 + 10 + 100,000).
func BenchmarkVirtualLadder(b *testing.B) {
	const retries = 100_015
	for b.Loop() {
		v := clock.NewVirtual(start)
		for range 1000 {
			v.AfterFunc(1000*24*time.Hour, func() {})
		}
		left := retries
		var retry func()
		retry = func() {
			release := v.Hold()
			if left--; left > 0 {
				v.AfterFunc(20*time.Second, retry)
			}
			go release()
		}
		v.AfterFunc(20*time.Second, retry)
		if r := advance(b, v, 24*24*time.Hour); r.Ran != retries {
			b.Fatalf("%d timers ran, want %d", r.Ran, retries)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/retries, "ns/timer")
}

func TestVirtualStopIsCheapAmongMany(t *testing.T) {
	v := clock.NewVirtual(start)
	const n = 100_015
	timers := make([]clock.Timer, 0, n)
	for i := range n {
		timers = append(timers, v.AfterFunc(time.Duration(i+1), func() { t.Error("a stopped timer ran") }))
	}
	for _, timer := range timers {
		if !timer.Stop() {
			t.Fatal("a pending timer could not be stopped")
		}
	}
	if r := advance(t, v, time.Hour); r.Ran != 0 || !r.Next.IsZero() {
		t.Errorf("after all were stopped: %+v", r)
	}
}
