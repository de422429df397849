package heap

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// What was allocated in a busy time stays resident until the collector needs it
// again: up to as much as lives. A server that has come to rest gives it back: three minutes
// after 150,000 sends it has 91 MiB resident, and without this 127, in the median of five.
// docs/performance.md has how far they differ.
const (
	idleLook  = 2 * time.Second // real time
	idleBytes = 1 << 20         // allocated between two looks at most: it is idle
	idleWorth = 16 << 20        // that can be given back at least
	// idleShare is the part of what lives that can be given back at least: to find out
	// what lives costs CPU for each byte of that.
	idleShare = 4
)

// usage is how the heap is, in bytes.
type usage struct {
	allocated uint64 // ever
	spare     uint64 // resident, and not alive
	live      uint64
}

// idle checks whether the server is idle.
type idle struct {
	last  usage
	given bool // since it was last busy
}

// look reports that memory is to be given back now: once after each busy time.
func (i *idle) look(now usage) bool {
	busy := now.allocated-i.last.allocated > idleBytes
	i.last = now
	if busy {
		i.given = false
	}
	if busy || i.given || now.spare < max(idleWorth, now.live/idleShare) {
		return false
	}
	i.given = true
	return true
}

// readUsage asks the runtime, which costs some microseconds.
func readUsage() usage {
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	objects, live := samples[1].Value.Uint64(), samples[2].Value.Uint64()
	return usage{samples[0].Value.Uint64(), objects - min(objects, live) + samples[3].Value.Uint64(), live}
}

// Release gives memory back whenever the server has come to rest, until stop.
func Release() (stop func(context.Context) error) {
	var mu sync.Mutex
	var timer clock.Timer
	var state idle
	over := false
	var look func()
	look = func() {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		if state.look(readUsage()) {
			debug.FreeOSMemory()
			state.last = readUsage()
		}
		timer = clock.System.AfterFunc(idleLook, look)
	}
	mu.Lock()
	timer = clock.System.AfterFunc(idleLook, look)
	mu.Unlock()
	return func(context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		over = true
		timer.Stop()
		return nil
	}
}
