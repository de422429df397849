package server

import (
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

// Bounds of the percentage, by which what is alive may grow until the next
// collection.
const (
	leastPercent = 100 // Go's default
	mostPercent  = 800
	percentStep  = 50 // to change it stops the world
)

// pacer sets the collector's percentage after each collection. It is for a
// process that is a server and nothing else.
type pacer struct {
	percent int
	stopped atomic.Bool
	set     func(percent int) int // debug.SetGCPercent
}

// paceCollector holds the heap at its floor until stop is called, unless the
// environment says how to collect.
func paceCollector() (stop func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	p := &pacer{percent: leastPercent, set: debug.SetGCPercent}
	p.pace(liveHeap())
	p.await()
	return func() {
		p.stopped.Store(true)
		debug.SetGCPercent(leastPercent)
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

// pace sets the percentage for what is alive, in bytes.
func (p *pacer) pace(live uint64) {
	percent := mostPercent
	if live > 0 {
		percent = int(min(heapFloor*100/live, leastPercent+mostPercent)) - 100
	}
	percent = min(max((percent+percentStep/2)/percentStep*percentStep, leastPercent), mostPercent)
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
