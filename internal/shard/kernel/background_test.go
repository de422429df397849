package kernel_test

import (
	"sync"
	"testing"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store/memory"
)

// TestAwaitIdle: goroutines may begin while others wait until none runs.
func TestAwaitIdle(t *testing.T) {
	j := journal.Open(journal.Options{Store: memory.New()})
	defer j.Close()
	k := kernel.New(kernel.Options{Journal: j, Clock: clock.System})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20_000 {
				k.GoBackground(func() {})
				k.AwaitIdle()
			}
		})
	}
	wg.Wait()

	ended := false
	k.GoBackground(func() { ended = true })
	if k.AwaitIdle(); !ended {
		t.Error("a goroutine was still running")
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	k.GoBackground(func() { t.Error("a goroutine began after Close") })
	k.AwaitIdle()
}
