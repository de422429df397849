package prom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	clockAhead   = describe("clock_ahead_seconds", "How far the data is ahead of the machine's clock, which was set back: its time stands still for as long.")
	checkFailing = describe("check_failing", "1 while a check of /_godwit/health fails.", "check")
)

// Health is the state of the health checks.
type Health struct {
	Ahead   time.Duration
	Failing map[string]bool // by the name of the check
}

func (h *Health) collect(out chan<- prometheus.Metric) {
	out <- prometheus.MustNewConstMetric(clockAhead, prometheus.GaugeValue, h.Ahead.Seconds())
	for name, fails := range h.Failing {
		failing := 0.0
		if fails {
			failing = 1
		}
		out <- prometheus.MustNewConstMetric(checkFailing, prometheus.GaugeValue, failing, name)
	}
}
