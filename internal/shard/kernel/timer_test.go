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
