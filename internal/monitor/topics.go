package monitor

import (
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/monitor/metrics"
)

// Topics makes metrics of what happens to topics. A topic that nothing happened
// to costs nothing.
type Topics struct {
	keeper *metrics.Store
	wake   func()
	active sync.Map // arn.ARN → *topicSeries
}

type topicSeries struct {
	resource atomic.Pointer[metrics.Resource]
	used     atomic.Int64 // the last minute in which anything was done
}

// NewTopics makes a Topics whose metrics go to keeper; wake asks for a call of
// Tick after the present minute.
func NewTopics(keeper *metrics.Store, wake func()) *Topics {
	return &Topics{keeper: keeper, wake: wake}
}

// Record adds values to metrics of a topic. It does not block.
func (t *Topics) Record(topic arn.ARN, at time.Time, data ...metrics.Datum) {
	found, ok := t.active.Load(topic)
	if !ok {
		found, _ = t.active.LoadOrStore(topic, &topicSeries{})
		t.wake()
	}
	s, minute := found.(*topicSeries), metrics.Minute(at)
	s.used.Store(minute)
	for {
		if r := s.resource.Load(); r != nil && r.Record(minute, data...) {
			return
		}
		s.resource.Store(t.resource(topic))
	}
}

func (t *Topics) resource(topic arn.ARN) *metrics.Resource {
	return t.keeper.Resource(metrics.Owner{Account: topic.Account, Region: topic.Region}, "AWS/SNS",
		metrics.Dimensions(metrics.Dimension{Name: "TopicName", Value: topic.Resource}))
}

// idle is what an active topic tells of a minute in which nothing happened.
var idle = []metrics.Datum{
	{Name: "NumberOfMessagesPublished", Unit: count},
	{Name: "NumberOfNotificationsDelivered", Unit: count},
	{Name: "NumberOfNotificationsFailed", Unit: count},
}

// Tick tells of the active topics to which nothing happened in the minute that is
// over.
func (t *Topics) Tick(at time.Time) (more bool, err error) {
	minute := metrics.Minute(at) - 1
	t.active.Range(func(key, value any) bool {
		topic, s := key.(arn.ARN), value.(*topicSeries)
		if minute-s.used.Load() >= ActiveMinutes {
			t.active.Delete(topic)
			return true
		}
		more = true
		for {
			if r := s.resource.Load(); r != nil && r.Fill(minute, idle...) {
				return true
			}
			s.resource.Store(t.resource(topic))
		}
	})
	return more, nil
}
