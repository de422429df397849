package pace

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// pass lets a bubble's time go by.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	if err := clock.Wait(t.Context(), clock.System, d); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// TestDelayed: one thing waits at a time; what waits goes at once if it must; nothing begins
// after the end, which waits for what has begun.
func TestDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d Delayed
		began := clock.System.Now()
		var mu sync.Mutex // guards what follows
		var ran []time.Duration
		note := func() {
			mu.Lock()
			defer mu.Unlock()
			ran = append(ran, clock.System.Now().Sub(began))
		}
		d.After(time.Minute, note)
		d.After(time.Second, func() { t.Error("a second one was run, too") })
		pass(t, 2*time.Minute)
		d.After(time.Hour, note)
		d.Now(note)
		synctest.Wait()
		mu.Lock()
		if len(ran) != 2 || ran[0] != time.Minute || ran[1] != 2*time.Minute {
			t.Errorf("run at %v", ran)
		}
		mu.Unlock()
		release, over := make(chan struct{}), atomic.Bool{}
		d.After(0, func() { <-release; over.Store(true) })
		synctest.Wait()
		clock.System.AfterFunc(time.Second, func() { close(release) })
		if d.End(); !over.Load() {
			t.Error("the end did not wait for what had begun")
		}
		d.After(0, func() { t.Error("it began after the end") })
		synctest.Wait()
		d.Renew()
		d.After(time.Hour, func() { t.Error("it began though it was refused") })
		d.Refuse()
		pass(t, 2*time.Hour)
		d.End()
	})
}

// TestSeldom: again and again is reported every ten seconds.
func TestSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s LogLimiter
		told := 0
		for range 301 { // half a minute
			if s.Allow() {
				told++
			}
			pass(t, 100*time.Millisecond)
		}
		if told != 4 {
			t.Errorf("told %d times", told)
		}
	})
}

// TestViews: who passes waits for the views that are open then, and for no later ones.
func TestViews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var v Views
		if err := v.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		a, b := v.Enter(), v.Enter()
		passed := make(chan error, 1)
		go func() { passed <- v.Pass(t.Context()) }()
		synctest.Wait()
		later := v.Enter()
		a.Leave()
		synctest.Wait()
		select {
		case err := <-passed:
			t.Fatalf("it did not wait for the second: %v", err)
		default:
		}
		b.Leave()
		if err := <-passed; err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := v.Pass(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it did not wait for the later one: %v", err)
		}
		later.Leave()
		if err := v.Pass(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
