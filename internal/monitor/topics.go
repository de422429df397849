package monitor

import (
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/monitor/metrics"
)

// Topics makes metrics of the events of topics. An unused topic costs nothing.
type Topics struct {
	points *metrics.Store
	wake   func()
	active sync.Map // arn.ARN → *topicSeries
}

type topicSeries struct {
	activity

	name     arn.ARN
	resource atomic.Pointer[metrics.Resource]
}

// NewTopics makes a Topics whose metrics go to points; wake requests a call of Tick after the
// current minute.
func NewTopics(points *metrics.Store, wake func()) *Topics {
	return &Topics{points: points, wake: wake}
}

// Record adds values to metrics of a topic. It does not block.
func (t *Topics) Record(topic arn.ARN, at time.Time, data ...metrics.Datum) {
	s, minute := t.of(topic), metrics.Minute(at)
	if s.touch(minute) {
		t.activate(s)
	}
	for {
		if r := s.resource.Load(); r != nil && r.Record(minute, data...) {
			return
		}
		s.resource.Store(t.resource(s.name))
	}
}

// of finds or makes the series of a topic.
func (t *Topics) of(topic arn.ARN) *topicSeries {
	found, ok := t.active.Load(topic)
	if ok {
		return found.(*topicSeries)
	}
	s := &topicSeries{name: topic.Own()}
	t.activate(s)
	return s
}

func (t *Topics) activate(s *topicSeries) {
	s.active.Store(true)
	t.active.Store(s.name, s)
	t.wake()
}

func (t *Topics) resource(topic arn.ARN) *metrics.Resource {
	dimensions := metrics.Dimensions(metrics.Dimension{Name: "TopicName", Value: topic.Resource})
	if platform, name, ok := topic.SplitApplication(); ok { // of messages to its endpoints
		dimensions = metrics.Dimensions(metrics.Dimension{Name: "Application", Value: name}, metrics.Dimension{Name: "Platform", Value: platform})
	}
	return t.points.Resource(metrics.Scope{Account: topic.Account, Region: topic.Region}, "AWS/SNS", dimensions)
}

// idle is the report of an active topic for a minute without events.
var idle = []metrics.Datum{
	{Name: "NumberOfMessagesPublished", Unit: count},
	{Name: "NumberOfNotificationsDelivered", Unit: count},
	{Name: "NumberOfNotificationsFailed", Unit: count},
}

// TopicFinder finds what notifications are published to: *shard.Engine.
type TopicFinder interface {
	HasTopicOrApplication(a arn.ARN) bool
}

// Tick reports the active topics without events in the completed minute. It deactivates topics
// that are deleted, or have been idle for activeMinutes.
func (t *Topics) Tick(finder TopicFinder, at time.Time) (more bool) {
	minute := metrics.Minute(at) - 1
	t.active.Range(func(_, value any) bool {
		s := value.(*topicSeries)
		s.beginCheck()
		if s.idle(minute) || !finder.HasTopicOrApplication(s.name) {
			if s.deactivate(func() { t.active.Delete(s.name) }) {
				t.activate(s)
			}
			return true
		}
		more = true
		for {
			if r := s.resource.Load(); r != nil && r.Fill(minute, idle...) {
				return true
			}
			s.resource.Store(t.resource(s.name))
		}
	})
	return more
}
