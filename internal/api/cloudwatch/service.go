// Package cloudwatch holds the operations of CloudWatch: metrics and alarms.
package cloudwatch

import (
	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/monitor/metrics"
)

// Metrics is what the handlers need of the keeper of metrics, which is
// *metrics.Store.
type Metrics interface {
	Put(m metrics.Metric, unit string, minute int64, f func(*metrics.Set)) error
	Read(m metrics.Metric, unit string, from, to, period int64) ([]metrics.Point, error)
	Units(m metrics.Metric) ([]string, error)
	List(filter metrics.Filter, after []byte, f func(m metrics.Metric) (taken bool)) (next []byte, err error)
}

// Options are what a Service is made of. Every field is needed.
type Options struct {
	Metrics Metrics
	Clock   clock.Clock
}

// Service answers the operations of CloudWatch.
type Service struct {
	metrics Metrics
	clock   clock.Clock
}

// New makes a Service.
func New(o Options) *Service { return &Service{metrics: o.Metrics, clock: o.Clock} }

// Operations declares the operations that are built.
func (s *Service) Operations() []api.Operation {
	return []api.Operation{
		api.Op("PutMetricData", s.putMetricData),
		api.Op("GetMetricData", s.getMetricData),
		api.Op("GetMetricStatistics", s.getMetricStatistics),
		api.Op("ListMetrics", s.listMetrics),
	}
}
