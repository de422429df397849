package monitor

import (
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/deliverystream"
	"godwit.dev/godwit/internal/monitor/metrics"
)

// Streams makes metrics of the events of delivery streams.
type Streams struct{ handles[arn.ARN] }

// NewStreams makes a Streams whose metrics go to points; wake requests a call of Tick after the
// current minute.
func NewStreams(points *metrics.Store, wake func()) *Streams {
	return &Streams{handles[arn.ARN]{wake: wake, own: arn.ARN.Own, resource: func(of arn.ARN) *metrics.Resource {
		name, _ := deliverystream.NameOf(of)
		return points.Resource(metrics.Scope{Account: of.Account, Region: of.Region}, "AWS/Firehose",
			metrics.Dimensions(metrics.Dimension{Name: "DeliveryStreamName", Value: name}))
	}}}
}

// Record adds values to metrics of a stream. It does not block.
func (s *Streams) Record(of arn.ARN, at time.Time, data ...metrics.Datum) { s.record(of, at, data...) }
