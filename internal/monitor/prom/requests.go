package prom

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Requests counts the requests of an operation.
type Requests struct {
	succeeded histogram

	mu     sync.RWMutex
	failed map[string]*histogram // by the error's code
}

// operation identifies an operation of a service.
type operation struct{ service, name string }

// Requests are the counts of an operation; both names are of fixed sets.
func (m *Metrics) Requests(service, name string) *Requests {
	m.mu.Lock()
	defer m.mu.Unlock()
	op := operation{service, name}
	if m.requests[op] == nil {
		m.requests[op] = &Requests{}
	}
	return m.requests[op]
}

// Add counts a request; code is empty if it succeeded, and of a fixed set.
func (r *Requests) Add(code string, took time.Duration) {
	if code == "" {
		r.succeeded.observe(requestBuckets, took)
		return
	}
	r.mu.RLock()
	h := r.failed[code]
	r.mu.RUnlock()
	if h == nil {
		h = r.fail(code)
	}
	h.observe(requestBuckets, took)
}

func (r *Requests) fail(code string) *histogram {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = map[string]*histogram{}
	}
	if r.failed[code] == nil {
		r.failed[code] = &histogram{}
	}
	return r.failed[code]
}

func (m *Metrics) collectRequests(out chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for op, r := range m.requests {
		r.collect(op, out)
	}
}

func (r *Requests) collect(op operation, out chan<- prometheus.Metric) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	all := make([]*histogram, 1, 1+len(r.failed))
	all[0] = &r.succeeded
	add := func(h *histogram, code string) {
		if n := h.total(); n > 0 {
			out <- prometheus.MustNewConstMetric(requestCount, prometheus.CounterValue, float64(n), op.service, op.name, code)
		}
	}
	add(&r.succeeded, "")
	for code, h := range r.failed {
		add(h, code)
		all = append(all, h)
	}
	if took, n := requestBuckets.collect(requestDuration, []string{op.service, op.name}, all...); n > 0 {
		out <- took
	}
}
