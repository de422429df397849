package monitor

import (
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/deliverystream"
	"godwit.dev/godwit/internal/monitor/metrics"
)

// Streams makes metrics of the events of delivery streams. An unused one costs nothing.
type Streams struct {
	points  *metrics.Store
	wake    func()
	handles sync.Map // arn.ARN → *atomic.Pointer[metrics.Resource]
}

// NewStreams makes a Streams whose metrics go to points; wake requests a call of Tick after the
// current minute.
func NewStreams(points *metrics.Store, wake func()) *Streams {
	return &Streams{points: points, wake: wake}
}

// Record adds values to metrics of a stream. It does not block.
func (s *Streams) Record(of arn.ARN, at time.Time, data ...metrics.Datum) {
	found, ok := s.handles.Load(of)
	if !ok {
		of = of.Own()
		found, _ = s.handles.LoadOrStore(of, &atomic.Pointer[metrics.Resource]{})
		s.wake()
	}
	handle, minute := found.(*atomic.Pointer[metrics.Resource]), metrics.Minute(at)
	for {
		if r := handle.Load(); r != nil && r.Record(minute, data...) {
			return
		}
		name, _ := deliverystream.NameOf(of)
		handle.Store(s.points.Resource(metrics.Scope{Account: of.Account, Region: of.Region}, "AWS/Firehose",
			metrics.Dimensions(metrics.Dimension{Name: "DeliveryStreamName", Value: name})))
	}
}

// Tick releases the resources that points has forgotten, after some minutes without values.
func (s *Streams) Tick(time.Time) (more bool, err error) {
	s.handles.Range(func(key, value any) bool {
		if r := value.(*atomic.Pointer[metrics.Resource]).Load(); r != nil && r.Forgotten() {
			s.handles.Delete(key)
		} else {
			more = true
		}
		return true
	})
	return more, nil
}
