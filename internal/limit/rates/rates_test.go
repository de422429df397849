package rates

import (
	"strconv"
	"testing"
	"time"
)

// Each has its own rate, and gets it back as time passes, up to a second's.
func TestRates(t *testing.T) {
	now := time.Unix(1e9, 0)
	rate := 10
	r := New(func() int { return rate }, func() time.Time { return now })
	take := func(who string) (n int) {
		for range 100 {
			if r.Take(who) {
				n++
			}
		}
		return n
	}
	for _, step := range []struct {
		passes time.Duration
		who    string
		want   int
	}{
		{0, "a", 10},
		{0, "a", 0},
		{0, "b", 10},
		{500 * time.Millisecond, "a", 5},
		{50 * time.Millisecond, "a", 0},
		{50 * time.Millisecond, "a", 1},
		{time.Hour, "a", 10},
		{-time.Hour, "a", 0},
		{time.Second, "a", 10},
	} {
		now = now.Add(step.passes)
		if got := take(step.who); got != step.want {
			t.Errorf("after %s %s may %d times, want %d", step.passes, step.who, got, step.want)
		}
	}
	rate = 3 // from now on
	if got := take("a"); got != 0 {
		t.Errorf("another rate gives %d at once", got)
	}
	now = now.Add(time.Second)
	if got := take("a"); got != 3 {
		t.Errorf("at another rate it may %d times", got)
	}
	rate = 0
	if got := take("a"); got != 100 {
		t.Errorf("without a rate it may %d times of 100", got)
	}
}

// What is more than a second's worth is done at once, and paid for by waiting.
func TestTakeAll(t *testing.T) {
	now := time.Unix(1e9, 0)
	r := New(func() int { return 100 }, func() time.Time { return now })
	for i, step := range []struct {
		passes time.Duration
		n      int64
		want   bool
	}{
		{0, 60, true},
		{0, 60, false},
		{0, 40, true},
		{time.Second, 350, true}, // a bucket that is full
		{2 * time.Second, 1, false},
		{time.Second, 51, false},
		{0, 50, true},
		{0, 0, true},
		{500 * time.Millisecond, 101, false}, // it is not full
		{500 * time.Millisecond, 101, true},
	} {
		now = now.Add(step.passes)
		if got := r.TakeAll("a", step.n); got != step.want {
			t.Errorf("step %d: %d may be taken: %t", i, step.n, got)
		}
	}
}

// Who has done nothing for a second is forgotten, so that many do not take much memory.
func TestForgets(t *testing.T) {
	now := time.Unix(1e9, 0)
	r := New(func() int { return 1 }, func() time.Time { return now })
	for i := range 5 * maxIdle {
		if i%maxIdle == 0 {
			now = now.Add(time.Second)
		}
		r.Take(strconv.Itoa(i))
	}
	if n := len(r.buckets); n > maxIdle {
		t.Errorf("%d are remembered", n)
	}
	if r.Take(strconv.Itoa(5*maxIdle - 1)) {
		t.Error("who has just done something may do it again")
	}
}
