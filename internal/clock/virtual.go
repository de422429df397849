package clock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"godwit.dev/godwit/internal/sorted"
)

// ErrBackwards is the error of an Advance by a negative duration.
var ErrBackwards = errors.New("clock: time does not go backwards")

// HeldError is the error of an Advance whose context ended, mostly while it waited for holds.
type HeldError struct {
	Holds int   // outstanding holds
	Cause error // the cause of the context's end
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("clock: stopped with %d holds outstanding: %v", e.Holds, e.Cause)
}

// Unwrap returns the cause.
func (e *HeldError) Unwrap() error { return e.Cause }

// Result is the result of an Advance.
type Result struct {
	Now  time.Time // the new time
	Ran  int       // timers that were run
	Next time.Time // when the next timer is due; zero: none is pending
}

// Virtual is a clock that only Advance moves.
//
// Invariants: time never goes back. During an Advance, timers run sequentially in the order
// of (due time, creation), each when no Hold is outstanding, with Now at its due time.
// Otherwise no pending timer is due.
//
// A holder of the clock must not wait for a timer, nor for an Advance: both wait for the
// hold. A timer's function must not call Advance.
type Virtual struct {
	sem chan struct{} // a semaphore of one Advance

	mu        sync.Mutex
	now       time.Time
	created   uint64 // timers created so far
	pending   sorted.Heap[*virtualTimer]
	holds     int
	idle      chan struct{} // closed when holds falls to 0; nil: nobody waits
	advancing bool
}

var _ Clock = (*Virtual)(nil)

// NewVirtual makes a clock with the time start.
func NewVirtual(start time.Time) *Virtual {
	v := &Virtual{sem: make(chan struct{}, 1), now: wall(start)}
	v.sem <- struct{}{}
	return v
}

// wall drops the monotonic clock reading, which is meaningless here.
func wall(t time.Time) time.Time { return t.UTC().Round(0) }

// Now is the clock's time.
func (v *Virtual) Now() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now
}

// Reading is the clock's time, and when the next timer is due; next is zero if none is
// pending.
func (v *Virtual) Reading() (now, next time.Time) {
	r := v.result(0)
	return r.Now, r.Next
}

// AfterFunc calls f once the clock has advanced by d, in that Advance. With d of zero or
// less, f is called in the current Advance, after what is already due, or else at once in a
// goroutine of its own.
func (v *Virtual) AfterFunc(d time.Duration, f func()) Timer {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.created++
	t := &virtualTimer{clock: v, due: v.now.Add(max(d, 0)), order: v.created, f: f, place: sorted.Outside}
	if d <= 0 && !v.advancing {
		v.launch(t)
	} else {
		v.pending.Push(t)
	}
	return t
}

// Hold keeps the clock from advancing until release is called. A second call of the same
// release panics.
func (v *Virtual) Hold() (release func()) {
	v.mu.Lock()
	v.holds++
	v.mu.Unlock()
	released := false
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if released {
			panic("clock: a hold was released twice")
		}
		released = true
		v.unhold()
	}
}

func (v *Virtual) unhold() {
	v.holds--
	if v.holds == 0 && v.idle != nil {
		close(v.idle)
		v.idle = nil
	}
}

// SetAtLeast moves the clock to t if it is earlier: after a restart, time continues no
// earlier than the state. It does not wait for holds. Timers that become due run at once,
// each in a goroutine of its own.
func (v *Virtual) SetAtLeast(t time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if t = wall(t); t.After(v.now) {
		v.now = t
	}
	if !v.advancing {
		v.launchDue()
	}
}

// Advance moves the clock by d, from timer to timer, and returns when all due timers have run
// and no hold is outstanding. It does not move while a hold is outstanding. Concurrent calls
// are sequential, each with its full d.
//
// The error is ErrBackwards for a negative d, and a HeldError if ctx ended; then the result
// has the time that the clock has reached.
func (v *Virtual) Advance(ctx context.Context, d time.Duration) (Result, error) {
	if d < 0 {
		return v.result(0), ErrBackwards
	}
	select {
	case <-v.sem:
	case <-ctx.Done():
		return v.result(0), v.held(ctx)
	}
	defer func() { v.sem <- struct{}{} }()

	target := v.begin(d)
	defer v.end()
	for ran := 0; ; ran++ {
		t, err := v.next(ctx, target)
		if t == nil {
			return v.result(ran), err
		}
		t.f()
	}
}

func (v *Virtual) begin(d time.Duration) (target time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.advancing = true
	return v.now.Add(d)
}

// end also runs the timers that a cancelled Advance left due: no other call will.
func (v *Virtual) end() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.advancing = false
	v.launchDue()
}

// next waits until no hold is outstanding, then moves to the first timer that is due by
// target and removes it, or moves to target and returns nil.
func (v *Virtual) next(ctx context.Context, target time.Time) (*virtualTimer, error) {
	for ctx.Err() == nil {
		t, idle := v.step(target)
		if idle == nil {
			return t, nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
		}
	}
	return nil, v.held(ctx)
}

// step is next without the wait: while a hold is outstanding it does nothing, and returns a
// channel that is closed when none is.
func (v *Virtual) step(target time.Time) (t *virtualTimer, idle <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.holds > 0 {
		if v.idle == nil {
			v.idle = make(chan struct{})
		}
		return nil, v.idle
	}
	at := target
	if len(v.pending) > 0 && !v.pending[0].due.After(target) {
		t = v.pending[0]
		v.pending.Remove(t)
		at = t.due
	}
	if at.After(v.now) {
		v.now = at
	}
	return t, nil
}

// launchDue runs due timers outside of an Advance. The caller has the lock.
func (v *Virtual) launchDue() {
	for len(v.pending) > 0 && !v.pending[0].due.After(v.now) {
		t := v.pending[0]
		v.pending.Remove(t)
		v.launch(t)
	}
}

// launch runs t at once, and holds the clock until it returns. The caller has the lock.
func (v *Virtual) launch(t *virtualTimer) {
	v.holds++
	go func() {
		defer func() {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.unhold()
		}()
		t.f()
	}()
}

func (v *Virtual) result(ran int) Result {
	v.mu.Lock()
	defer v.mu.Unlock()
	r := Result{Now: v.now, Ran: ran}
	if len(v.pending) > 0 {
		r.Next = v.pending[0].due
	}
	return r
}

func (v *Virtual) held(ctx context.Context) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return &HeldError{Holds: v.holds, Cause: context.Cause(ctx)}
}

type virtualTimer struct {
	clock *Virtual
	due   time.Time
	order uint64
	f     func()
	place int32 // in clock.pending
}

func (t *virtualTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	if t.place == sorted.Outside {
		return false
	}
	t.clock.pending.Remove(t)
	return true
}

// Before orders timers by (due, order).
func (t *virtualTimer) Before(o *virtualTimer) bool {
	if c := t.due.Compare(o.due); c != 0 {
		return c < 0
	}
	return t.order < o.order
}

// Place is the index of the timer in the heap, so that Stop need not search.
func (t *virtualTimer) Place() *int32 { return &t.place }
