// Package monitor makes CloudWatch's metrics of the events of queues, topics and others, and
// calls the parts of the server that have work each minute.
package monitor

import (
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/shard/kernel"
)

// Part has work at the end of intervals of a minute, or so, while there is any.
type Part interface {
	// Tick is called at the end of each interval, at. Parts are called in order. more requests
	// another call at the end of the next interval.
	Tick(at time.Time) (more bool, err error)
}

// Ticker calls its parts at the end of each interval for which one of them has requested it. It
// is a module of the kernel and uses its timer: without a request there is no timer, so that a
// virtual clock skips idle days at once. The parts run without the module's lock.
type Ticker struct {
	kernel.NopLifecycle
	every  time.Duration
	kernel *kernel.Kernel
	shard  *kernel.Shard
	fatal  func(error)

	due     atomic.Int64 // end of the requested interval in epoch milliseconds; 0: none
	calling sync.Mutex   // held while parts are called
	parts   []Part       // set by Start
	begun   atomic.Bool  // Start was called
	asked   atomic.Bool  // a call was requested before that
}

// NewTicker adds a Ticker without parts, with intervals of length every, to a kernel. An error
// of a part goes to fatal.
func NewTicker(k *kernel.Kernel, every time.Duration, fatal func(error)) *Ticker {
	t := &Ticker{every: every, kernel: k, shard: k.OwnShard(keyspace.MetricStream), fatal: fatal}
	t.shard.Add(t)
	return t
}

// Start sets the parts, and begins with the requested calls.
func (t *Ticker) Start(parts ...Part) {
	t.parts = parts
	t.begun.Store(true)
	if t.asked.Load() {
		t.Wake()
	}
}

// Wake requests a call at the end of the current interval. It does not block, and may be called
// under any lock.
func (t *Ticker) Wake() {
	if t.due.Load() != 0 {
		return
	}
	if !t.begun.Load() {
		if t.asked.Store(true); !t.begun.Load() {
			return
		}
	}
	end := t.kernel.Clock.Now().Truncate(t.every).Add(t.every)
	if t.due.CompareAndSwap(0, end.UnixMilli()) {
		t.shard.TickBy(end.UnixMilli())
	}
}

// NextDue implements kernel.Lifecycle.
func (t *Ticker) NextDue() int64 { return t.due.Load() }

// Tick implements kernel.Lifecycle.
func (t *Ticker) Tick(now int64) {
	due := t.due.Load()
	if due == 0 || now < due {
		return
	}
	t.due.Store(0) // later events request another call
	t.kernel.GoBackground(func() { t.run(t.kernel.Clock.Now().Truncate(t.every)) })
}

func (t *Ticker) run(at time.Time) {
	t.calling.Lock()
	defer t.calling.Unlock()
	again := false
	for _, part := range t.parts {
		more, err := part.Tick(at)
		if err != nil {
			t.fatal(err)
			return
		}
		again = again || more
	}
	if again {
		t.Wake()
	}
}

// TickFunc makes a Part of a function.
type TickFunc func(at time.Time) (more bool, err error)

// Tick calls f.
func (f TickFunc) Tick(at time.Time) (more bool, err error) { return f(at) }
