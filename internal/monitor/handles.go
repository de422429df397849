package monitor

import (
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/monitor/metrics"
)

// handles are the resources that values were recorded for in the last minutes, by what they are
// about. An unused one costs nothing.
type handles[K comparable] struct {
	wake     func()                    // requests a call of Tick after the current minute
	own      func(K) K                 // the key with memory of its own
	resource func(K) *metrics.Resource // of the metrics
	all      sync.Map                  // K → *atomic.Pointer[metrics.Resource]
}

// record adds values to a resource's metrics. It does not block.
func (h *handles[K]) record(of K, at time.Time, data ...metrics.Datum) {
	found, ok := h.all.Load(of)
	if !ok {
		of = h.own(of)
		found, _ = h.all.LoadOrStore(of, &atomic.Pointer[metrics.Resource]{})
		h.wake()
	}
	handle, minute := found.(*atomic.Pointer[metrics.Resource]), metrics.Minute(at)
	for {
		if r := handle.Load(); r != nil && r.Record(minute, data...) {
			return
		}
		handle.Store(h.resource(of))
	}
}

// Tick releases the resources that the metrics have forgotten, after some minutes without values.
func (h *handles[K]) Tick(time.Time) (more bool, err error) {
	h.all.Range(func(key, value any) bool {
		if r := value.(*atomic.Pointer[metrics.Resource]).Load(); r != nil && r.Forgotten() {
			h.all.Delete(key)
		} else {
			more = true
		}
		return true
	})
	return more, nil
}
