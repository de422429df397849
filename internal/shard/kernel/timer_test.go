package kernel

import (
	"context"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// TestOneTimer: a shard has one timer, also when a command that had the lock while the
// timer fired has set it to an earlier moment.
func TestOneTimer(t *testing.T) {
	c := clock.NewVirtual(time.UnixMilli(0))
	calls := 0
	var shard timer
	shard.call = func() {
		calls++
		if calls == 1 {
			shard.set(c, 999)
		}
		shard.fired()
		shard.set(c, c.Now().UnixMilli()+1000)
	}
	shard.set(c, 1000)
	for range 10 {
		if _, err := c.Advance(context.Background(), time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if calls != 10 {
		t.Errorf("called %d times in 10 s, once a second", calls)
	}
}

// stepping is a clock that is set forward, or whose machine sleeps: its timers do not notice.
type stepping struct {
	*clock.Virtual
	ahead time.Duration
}

func (s *stepping) Now() time.Time { return s.Virtual.Now().Add(s.ahead) }
func (s *stepping) Steps()         {}

// TestClockSteps: after the machine's clock has stepped forward, what is due is found within a
// minute, and so is what is set meanwhile behind a timer that is overdue by then.
func TestClockSteps(t *testing.T) {
	c := &stepping{Virtual: clock.NewVirtual(time.UnixMilli(0))}
	var due, done []int64
	var shard timer
	shard.call = func() {
		shard.fired()
		now := c.Now().UnixMilli()
		for len(due) > 0 && due[0] <= now {
			done, due = append(done, due[0]), due[1:]
		}
		if len(due) > 0 {
			shard.set(c, due[0])
		}
	}
	pass := func(d time.Duration) {
		t.Helper()
		if _, err := c.Advance(context.Background(), d); err != nil {
			t.Fatal(err)
		}
	}
	due = []int64{time.Hour.Milliseconds()}
	shard.set(c, due[0])
	pass(59 * time.Minute)
	if len(done) > 0 {
		t.Errorf("done before it is due: %v", done)
	}
	c.ahead = 10 * time.Hour
	due = append(due, c.Now().Add(20*time.Second).UnixMilli())
	shard.set(c, due[1])
	pass(time.Minute)
	if len(done) != 2 {
		t.Errorf("a minute after the step %d are done", len(done))
	}
	due = []int64{c.Now().Add(96 * time.Hour).UnixMilli()}
	shard.set(c, due[0])
	c.ahead += 100 * time.Hour
	pass(time.Minute)
	if len(done) != 3 {
		t.Errorf("a minute after the second step %d are done", len(done))
	}
}
