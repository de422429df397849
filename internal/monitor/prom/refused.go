package prom

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

var refused = describe("requests_refused_total", "Requests refused before anything looked at what they ask for.", "reason")

// refusals counts by reason. All possible reasons exist from the beginning, since a rate does
// not see the first value of a new counter.
type refusals map[string]*atomic.Int64

func newRefusals(reasons []string) refusals {
	r := make(refusals, len(reasons))
	for _, reason := range reasons {
		r[reason] = new(atomic.Int64)
	}
	return r
}

// Refused counts a refused request; reason is one of Options.Refusals.
func (m *Metrics) Refused(reason string) { m.refusals[reason].Add(1) }

func (r refusals) collect(out chan<- prometheus.Metric) {
	for reason, n := range r {
		out <- prometheus.MustNewConstMetric(refused, prometheus.CounterValue, float64(n.Load()), reason)
	}
}
