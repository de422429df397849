package prom

import "github.com/prometheus/client_golang/prometheus"

// FunctionNetwork has the numbers of functions' connections.
type FunctionNetwork struct {
	Connections, Limit int
	Refused            map[string]int64 // by reason, since the start
}

var (
	functionConnections = describe("function_connections", "Connections of functions.")
	functionLimit       = describe("function_connections_limit", "Connections that functions may have.")
	functionRefused     = describe("function_connections_refused_total", "Connections of functions that were refused.", "reason")
)

func (n FunctionNetwork) collect(out chan<- prometheus.Metric) {
	out <- prometheus.MustNewConstMetric(functionConnections, prometheus.GaugeValue, float64(n.Connections))
	out <- prometheus.MustNewConstMetric(functionLimit, prometheus.GaugeValue, float64(n.Limit))
	for reason, count := range n.Refused {
		out <- prometheus.MustNewConstMetric(functionRefused, prometheus.CounterValue, float64(count), reason)
	}
}
