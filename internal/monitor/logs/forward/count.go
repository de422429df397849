package forward

import (
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/monitor/logs"
	"godwit.dev/godwit/internal/monitor/metrics"
)

// outcome is what came of events.
type outcome int

const (
	forwarded outcome = iota
	refused
	throttled
)

// names are those of the metrics of events.
var names = [...]string{forwarded: "ForwardedLogEvents", refused: "DeliveryErrors", throttled: "DeliveryThrottling"}

// count makes metrics of what came of events, of so many compressed bytes.
func (f *Forwarder) count(one *filter, p *logs.Pending, o outcome, events, size int) {
	if f.Record == nil {
		return
	}
	name, _ := one.ARN.LogGroupName()
	kind := "Lambda"
	if to, _ := arn.Parse(p.Filter.Destination); to.Service == "firehose" {
		kind = "Firehose"
	}
	now := f.Clock.Now().Unix()
	point := func(metric, unit string, value int) metrics.Datapoint {
		return metrics.Datapoint{
			Metric: metrics.Metric{
				Scope: metrics.Scope{Account: one.ARN.Account, Region: one.ARN.Region}, Namespace: "AWS/Logs", Name: metric,
				Dimensions: metrics.Dimensions(metrics.Dimension{Name: "LogGroupName", Value: name}, metrics.Dimension{Name: "DestinationType", Value: kind}, metrics.Dimension{Name: "FilterName", Value: p.Filter.Name}),
			},
			Unit: unit, Second: now - now%60, Add: func(s *metrics.Set) { s.Add(float64(value), 1) },
		}
	}
	data := []metrics.Datapoint{point(names[o], "Count", events)}
	if o == forwarded {
		data = append(data, point("ForwardedBytes", "Bytes", size))
	}
	if err := f.Record(data...); err != nil {
		f.Logger.Error("metrics of a subscription filter are lost", "group", one.ARN.String(), "error", err)
	}
}
