// Package cloudwatch holds the operations of CloudWatch: metrics and alarms.
package cloudwatch

import (
	"context"

	"godwit.dev/godwit/internal/alarm"
	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/monitor/alarms"
	"godwit.dev/godwit/internal/monitor/metrics"
)

// Metrics stores the metrics; *monitor.Reader implements it.
type Metrics interface {
	Put(data ...metrics.Datapoint) error
	Each(m metrics.Metric, unit string, from, to, period int64, f func(start int64, set *metrics.Set)) error
	Units(m metrics.Metric) ([]string, error)
	List(ctx context.Context, filter metrics.Filter, after []byte, f func(m metrics.Metric) (taken bool)) (next []byte, err error)
}

// Alarms stores the alarms; *alarms.Engine implements it. Its errors are of package fault.
type Alarms interface {
	Put(id alarms.ID, config alarm.Config, tags map[string]string) error
	Delete(ids []alarms.ID) error
	SetState(ctx context.Context, id alarms.ID, s alarm.Status) error
	Enable(ids []alarms.ID, enabled bool) error
	Tag(id alarms.ID, f func(tags map[string]string) error) error
	Get(id alarms.ID) (alarm.Alarm, bool)
	Children(id alarms.ID) []alarm.Alarm
	Parents(id alarms.ID) []alarm.Alarm
	List(scope metrics.Scope, f func(a *alarm.Alarm) bool) []alarm.Alarm
	History(q alarms.HistoryQuery) (items []alarm.Item, next []byte, err error)
}

// Options are the dependencies of a Service. All are required.
type Options struct {
	Metrics Metrics
	Alarms  Alarms
}

// Service answers the operations of CloudWatch.
type Service struct {
	metrics Metrics
	alarms  Alarms
}

// New makes a Service.
func New(o Options) *Service { return &Service{metrics: o.Metrics, alarms: o.Alarms} }

// Operations are the operations that are implemented.
func (s *Service) Operations() []api.Operation {
	return api.Guarded(access, []api.Operation{
		api.Op("PutMetricData", s.putMetricData),
		api.Op("GetMetricData", s.getMetricData).Holding(12 << 20),
		api.Op("GetMetricStatistics", s.getMetricStatistics).Holding(1 << 20),
		api.Op("ListMetrics", s.listMetrics),
		api.Op("PutMetricAlarm", s.putMetricAlarm).Holding(4 << 20), // its expressions are tried
		api.Op("PutCompositeAlarm", s.putCompositeAlarm),
		api.Op("DescribeAlarms", s.describeAlarms),
		api.Op("DescribeAlarmsForMetric", s.describeAlarmsForMetric),
		api.Op("DescribeAlarmHistory", s.describeAlarmHistory),
		api.Op("DeleteAlarms", s.deleteAlarms),
		api.Op("EnableAlarmActions", s.enableAlarmActions),
		api.Op("DisableAlarmActions", s.disableAlarmActions),
		api.Op("SetAlarmState", s.setAlarmState),
		api.Op("TagResource", s.tagResource).WithResult(),
		api.Op("UntagResource", s.untagResource).WithResult(),
		api.Op("PutDashboard", s.putDashboard),
		api.Op("ListDashboards", s.listDashboards),
		api.Op("ListTagsForResource", s.listTagsForResource),
	})
}
