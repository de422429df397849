package limit

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// fakePeer moves rate bytes a second until it is cut off.
type fakePeer struct {
	began   time.Time
	rate    float64
	reading bool // cut while it was read from
	cut     chan struct{}
}

func newPeer(rate float64) *fakePeer {
	return &fakePeer{began: clock.System.Now(), rate: rate, cut: make(chan struct{})}
}

func (p *fakePeer) Moved() int64 { return int64(clock.System.Now().Sub(p.began).Seconds() * p.rate) }
func (p *fakePeer) CutRead()     { p.reading = true; close(p.cut) }
func (p *fakePeer) Cut()         { close(p.cut) }

func (p *fakePeer) wasCut() bool {
	select {
	case <-p.cut:
		return true
	default:
		return false
	}
}

const mb = 1 << 20

func reserve(t *testing.T, b *Budget, n int64) *Reservation {
	t.Helper()
	r := new(Reservation)
	r.Of(b)
	if !r.TryGrow(n) {
		t.Fatalf("no room for %d bytes beside %d", n, b.used.Load())
	}
	return r
}

func wantUsed(t *testing.T, b *Budget, n int64) {
	t.Helper()
	if got := b.Stats().Used; got != n {
		t.Errorf("%d bytes are used, want %d", got, n)
	}
}

func TestLittleIsNotCounted(t *testing.T) {
	b := NewBudget("b", mb, 0)
	r := reserve(t, b, Free)
	wantUsed(t, b, 0)
	if !r.TryGrow(1) {
		t.Fatal("no room")
	}
	wantUsed(t, b, Free+1)
	r.Shrink(1)
	wantUsed(t, b, 0)
	r.Release()
	r.Release()
	wantUsed(t, b, 0)
	var none *Reservation
	if !none.TryGrow(mb) || none.Held() != 0 || none.Resize(t.Context(), mb) != nil {
		t.Error("no reservation bounds something")
	}
	if r := reserve(t, NewBudget("any", 0, 0), 1<<40); r.Held() != 1<<40 {
		t.Error("no limit bounds something")
	}
}

func TestWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget("b", 8*mb, 10*time.Second)
		first := reserve(t, b, 4*mb)
		second := reserve(t, b, 2*mb) // large ones have three quarters
		var order []int
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				r := new(Reservation)
				r.Of(b)
				if err := r.Grow(t.Context(), 3*mb); err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				sleep(time.Second)
				r.Release()
			})
			synctest.Wait()
		}
		little := reserve(t, b, small) // goes past those that wait
		if (&Reservation{budget: b}).TryGrow(small + 1) {
			t.Error("a larger one goes past those that wait")
		}
		first.Release()
		synctest.Wait()
		mu.Lock()
		if len(order) != 1 || order[0] != 0 {
			t.Errorf("%v had their turn", order)
		}
		mu.Unlock()
		second.Release()
		wg.Wait()
		if order[1] != 1 || order[2] != 2 {
			t.Errorf("they had their turn in the order %v", order)
		}
		little.Release()
		wantUsed(t, b, 0)
		if s := b.Stats(); s.Waited != 3 || s.Refused != 0 || s.Cut != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestNoRoomInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget("b", 8*mb, 3*time.Second)
		held := reserve(t, b, 4*mb) // works, and is not cut off
		began := clock.System.Now()
		var r Reservation
		r.Of(b)
		if err := r.Grow(t.Context(), 3*mb); !errors.Is(err, ErrFull) || r.Held() != 0 {
			t.Errorf("%v, %d", err, r.Held())
		}
		if took := clock.System.Now().Sub(began); took < 3*time.Second || took > 4*time.Second {
			t.Errorf("waited %s", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.Grow(ctx, 3*mb); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		held.Release()
		wantUsed(t, b, 0)
		if s := b.Stats(); s.Refused != 2 || s.Waited != 2 {
			t.Errorf("%+v", s)
		}
	})
}

func TestSlowPeersMakeRoom(t *testing.T) {
	for _, reads := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := NewBudget("b", 12*mb, 10*time.Second)
			slow, fast, worker := newPeer(slowRate/2), newPeer(2*slowRate), newPeer(0)
			all := map[*fakePeer]*Reservation{}
			for _, p := range []*fakePeer{slow, fast, worker} {
				r := reserve(t, b, 3*mb)
				if reads {
					r.Reading(p)
				} else {
					r.Writing(p)
				}
				all[p] = r
			}
			all[worker].Working()
			sleep(time.Minute)
			if slow.wasCut() {
				t.Fatal("cut off though nobody waits")
			}
			go func() {
				<-slow.cut
				all[slow].Release()
			}()
			if err := (&Reservation{budget: b}).Grow(t.Context(), 2*mb); err != nil {
				t.Fatal(err)
			}
			if !slow.wasCut() || slow.reading != reads || !all[slow].WasCut() || fast.wasCut() || worker.wasCut() {
				t.Error("another was cut off")
			}
			if s := b.Stats(); s.Cut != 1 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// Requests that hold something and wait for more must not wait for each other.
func TestNewestGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget("b", 8*mb, time.Hour)
		var wg sync.WaitGroup
		results := make([]error, 3)
		for i := range results {
			r := reserve(t, b, 2*mb)
			wg.Go(func() {
				sleep(time.Duration(i) * time.Millisecond)
				results[i] = r.Grow(t.Context(), mb)
				sleep(time.Second)
				r.Release()
			})
		}
		wg.Wait()
		if results[0] != nil || results[1] != nil || !errors.Is(results[2], ErrFull) {
			t.Error(results)
		}
		wantUsed(t, b, 0)
	})
}

func TestResize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget("b", 8*mb, 3*time.Second)
		r := reserve(t, b, 3*mb)
		if err := r.Resize(t.Context(), mb); err != nil || r.Held() != mb {
			t.Error(err, r.Held())
		}
		wantUsed(t, b, mb)
		if err := r.Resize(t.Context(), 2*mb); err != nil || r.Held() != 2*mb {
			t.Error(err, r.Held())
		}
		other := reserve(t, b, 4*mb)
		began := clock.System.Now()
		if err := r.Resize(t.Context(), 4*mb); !errors.Is(err, ErrFull) || clock.System.Now().Sub(began) > 0 {
			t.Errorf("%v after %s: much that is held already waits", err, clock.System.Now().Sub(began))
		}
		go func() {
			sleep(time.Second)
			other.Release()
		}()
		if err := r.Resize(t.Context(), 3*mb-4); err != nil {
			t.Error(err)
		}
		r.Release()
		wantUsed(t, b, 0)
	})
}

// Whatever is done, the budget holds and ends empty.
func TestManyReservations(t *testing.T) {
	b := NewBudget("b", 4*mb, 50*time.Millisecond)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for range 300 {
				var r Reservation
				r.Of(b)
				peer := newPeer(1e9)
				for range random.IntN(4) {
					switch n := random.Int64N(mb); random.IntN(4) {
					case 0:
						r.TryGrow(n)
					case 1:
						_ = r.Grow(t.Context(), n)
						r.Writing(peer)
					case 2:
						_ = r.Resize(t.Context(), n)
					case 3:
						r.Shrink(min(n, r.Held()))
						r.Working()
					}
					if used := b.Stats().Used; used > 5*mb { // what is tried is added, and taken back
						t.Errorf("%d bytes are used", used)
					}
				}
				r.Release()
			}
		})
	}
	wg.Wait()
	wantUsed(t, b, 0)
	if len(b.waiters) > 0 || b.holders != nil || b.waiting.Load() != 0 || b.excess.Load() != 0 {
		t.Error("something is left")
	}
}

func BenchmarkUncounted(b *testing.B) {
	budget := NewBudget("b", mb, 0)
	b.ReportAllocs()
	for b.Loop() {
		var r Reservation
		r.Of(budget)
		r.TryGrow(1000)
		r.Release()
	}
}

// passed is closed in d.
func passed(d time.Duration) <-chan struct{} {
	over, _ := clock.After(clock.System, d)
	return over
}

func sleep(d time.Duration) { <-passed(d) }
