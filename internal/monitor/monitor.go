// Package monitor watches the service over time: it makes CloudWatch's metrics
// of what happens to queues and topics, and has what is due each minute done.
package monitor

import (
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/shard/kernel"
)

// Part is something that is due each minute, or so, while there is anything to do.
type Part interface {
	// Tick is called at the end of each interval, which at is, of the parts in
	// their order. more asks for another call at the end of the next.
	Tick(at time.Time) (more bool, err error)
}

// Ticker calls its parts at the end of each interval that one of them asked for. It is
// a module of the kernel, whose timer it is: while nobody asks there is none, so that a
// virtual clock passes idle days at once. The parts run beside it, without its lock.
type Ticker struct {
	kernel.NopModule
	every  time.Duration
	kernel *kernel.Kernel
	shard  *kernel.Shard
	fatal  func(error)

	due     atomic.Int64 // the end of the interval that was asked for, epoch milliseconds; 0: none was
	calling sync.Mutex   // held while parts are called
	parts   []Part       // set by Start
	begun   atomic.Bool  // they are
	asked   atomic.Bool  // before that
}

// NewTicker adds a Ticker without parts, whose intervals are of a length, to a kernel.
// An error of a part goes to fatal.
func NewTicker(k *kernel.Kernel, every time.Duration, fatal func(error)) *Ticker {
	t := &Ticker{every: every, kernel: k, shard: k.OwnShard(keyspace.MetricStream), fatal: fatal}
	t.shard.Add(t)
	return t
}

// Start begins with the calls that were asked for.
func (t *Ticker) Start(parts ...Part) {
	t.parts = parts
	t.begun.Store(true)
	if t.asked.Load() {
		t.Wake()
	}
}

// Wake asks for a call at the end of the present interval. It does not block, and
// may be called under any lock.
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

// NextDue implements kernel.Module.
func (t *Ticker) NextDue() int64 { return t.due.Load() }

// Tick implements kernel.Module.
func (t *Ticker) Tick(now int64) {
	due := t.due.Load()
	if due == 0 || now < due {
		return
	}
	t.due.Store(0) // what comes from now on asks again
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
