package backlog_test

import (
	"sync/atomic"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store/memory"
)

// settable is a clock that goes back, too.
type settable struct {
	clock.Clock
	now atomic.Pointer[time.Time]
}

func (c *settable) Now() time.Time { return *c.now.Load() }

// TestRetryAfterTheClockIsSetBack: a retry keeps its delay, also where the time of the shard is
// ahead of the clock. If it came at once, a policy would be used up in a moment.
func TestRetryAfterTheClockIsSetBack(t *testing.T) {
	c := &settable{Clock: clock.System}
	set := func(d time.Duration) { c.now.Store(new(shardtest.Start.Add(d))) }
	set(time.Hour)
	e, cmd := shardtest.WebHook(t, shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: c})
	defer e.Close()
	d := shardtest.TakeAll(t, e, cmd.Subscription)[0]
	set(0)
	e.Retry(d, backlog.Attempt{At: c.Now(), Outcome: "server-error", Status: 503}, c.Now().Add(20*time.Second))
	for after, want := range []int{0, 0, 1} {
		set([]time.Duration{0, time.Hour + 19*time.Second, time.Hour + 20*time.Second}[after])
		if due := shardtest.TakeAll(t, e, cmd.Subscription); len(due) != want {
			t.Errorf("at %v %d are due, want %d", c.Now().Sub(shardtest.Start), len(due), want)
		}
	}
}
