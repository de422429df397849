package prom

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"godwit.dev/godwit/internal/limit"
)

// newRegistry makes a registry of what is known of any process.
func newRegistry(version string) *prometheus.Registry {
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "godwit_build_info", Help: "1, with the version as label.", ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	r := prometheus.NewRegistry()
	r.MustRegister(build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// Process serves Prometheus the metrics of a process that has no state: a node of a cluster that
// forwards requests. They are those that Metrics has of it, too.
func Process(version string, limits func() []limit.Stats) http.Handler {
	r := newRegistry(version)
	r.MustRegister(limited(limits))
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// limited reports the use of limits.
type limited func() []limit.Stats

// Describe implements prometheus.Collector.
func (f limited) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{limitUsed, limitMost, limitRefused, limitWaited, limitCut} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (f limited) Collect(out chan<- prometheus.Metric) {
	for _, l := range f() {
		for d, n := range map[*prometheus.Desc]int64{limitUsed: l.Used, limitMost: l.Limit} {
			out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), l.Name)
		}
		for d, n := range map[*prometheus.Desc]int64{limitRefused: l.Refused, limitWaited: l.Waited, limitCut: l.Cut} {
			out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), l.Name)
		}
	}
}
