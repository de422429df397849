// Package heap decides how large the heap may grow before it is collected, and when what was
// freed goes back to the machine. It is for a process that is a server and nothing else.
package heap

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// heapFloor is how large the heap may grow before it is collected, in bytes. Go
// collects when as much was allocated as is alive, and that is little here: a
// busy server would be collected ten times a second, for a tenth of its CPU.
const heapFloor = 48 << 20

// DefaultGrowth is Go's own: by how much the heap may grow beyond what is alive until the next
// collection, in percent.
const DefaultGrowth = 100

// Bounds of this percentage beside the least, which is Pace's.
const (
	maxPercent  = 800
	percentStep = 50 // to change it stops the world
)

// minLimit is where the runtime collects whatever the percentage, in bytes; it is
// doubled until it is at least four times what is alive. The percentage follows what is
// alive only after a collection, and on a busy machine a while after: one for a small
// heap would let one that has just grown large grow to nine times that, and all that is
// made during a collection counts as alive in it.
const minLimit = 512 << 20

// pacer sets the collector's percentage after each collection. It is for a
// process that is a server and nothing else.
type pacer struct {
	least    int // of percent
	percent  int
	limit    int64 // bytes
	stopped  atomic.Bool
	set      func(percent int) int       // debug.SetGCPercent
	setLimit func(bytes int64) (_ int64) // debug.SetMemoryLimit
}

// Pace holds the heap at its floor until stop is called, unless the environment says how to
// collect. Above the floor it may grow by growth percent of what is alive, a multiple of 50.
func Pace(growth int) (stop func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	p := &pacer{least: growth, percent: DefaultGrowth, set: debug.SetGCPercent, setLimit: debug.SetMemoryLimit}
	p.pace(liveHeap())
	p.await()
	return func() {
		p.stopped.Store(true)
		debug.SetGCPercent(DefaultGrowth)
		debug.SetMemoryLimit(math.MaxInt64)
	}
}

// await has the next collection call it again: the garbage that it makes is
// found then.
func (p *pacer) await() {
	runtime.AddCleanup(new([16]byte), func(p *pacer) {
		if !p.stopped.Load() {
			p.pace(liveHeap())
			p.await()
		}
	}, p)
}

// pace sets the percentage and the limit for what is alive, in bytes.
func (p *pacer) pace(live uint64) {
	limit := int64(minLimit)
	for limit < math.MaxInt64/2 && uint64(limit) < 4*live {
		limit *= 2
	}
	if limit != p.limit {
		p.limit = limit
		p.setLimit(limit)
	}
	percent := maxPercent
	if live > 0 {
		percent = int(min(heapFloor*100/live, 100+maxPercent)) - 100
	}
	percent = min(max((percent+percentStep/2)/percentStep*percentStep, p.least), maxPercent)
	if percent != p.percent {
		p.percent = percent
		p.set(percent)
	}
}

// liveHeap is what the last collection found alive, in bytes.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
