package deliver

import (
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/topic/filter"
)

// Metric is a datum of an SNS metric, for the topic of its event.
type Metric struct {
	Name  string
	Value float64
}

// Metrics are the metric data of an event. Source: the SNS developer guide, "Available Amazon
// SNS metrics". Confirmations are not notifications. Over HTTP/S each failed attempt counts,
// over other protocols the end of the delivery.
func (e *Event) Metrics() (all []Metric) {
	if e.Kind != message.Notification {
		return nil
	}
	add := func(name string) { all = append(all, Metric{name, 1}) }
	web := e.Protocol == topic.HTTP || e.Protocol == topic.HTTPS
	switch {
	case e.State == shard.DeliveryDelivered:
		add("NumberOfNotificationsDelivered")
	case web && e.Made || !web && e.GaveUp:
		add("NumberOfNotificationsFailed")
	}
	switch {
	case e.State == shard.DeliveryDeadLetter:
		add("NumberOfNotificationsRedrivenToDlq")
	case e.State == shard.DeliveryDropped && e.RedriveFailed:
		add("NumberOfNotificationsFailedToRedriveToDlq")
	}
	return all
}

// refusals are the metrics of filtered-out messages, by the reason.
var refusals = [filter.Verdicts]string{
	filter.AttributesMismatch:  "NumberOfNotificationsFilteredOut-MessageAttributes",
	filter.NoMessageAttributes: "NumberOfNotificationsFilteredOut-NoMessageAttributes",
	filter.InvalidAttributes:   "NumberOfNotificationsFilteredOut-InvalidAttributes",
	filter.BodyMismatch:        "NumberOfNotificationsFilteredOut-MessageBody",
	filter.InvalidMessageBody:  "NumberOfNotificationsFilteredOut-InvalidMessageBody",
}

// AppendPublishMetrics appends the metric data of a publish.
func AppendPublishMetrics(all []Metric, p *shard.Published) []Metric {
	if !p.Later {
		all = append(all, Metric{"NumberOfMessagesPublished", 1}, Metric{"PublishSize", float64(p.Size)})
	}
	if p.Delivered > 0 {
		all = append(all, Metric{"NumberOfNotificationsDelivered", float64(p.Delivered)})
	}
	total := 0
	for _, n := range p.FilteredOut {
		total += n
	}
	if total > 0 {
		all = append(all, Metric{"NumberOfNotificationsFilteredOut", float64(total)})
	}
	for v, n := range p.FilteredOut {
		if n > 0 {
			all = append(all, Metric{refusals[v], float64(n)})
		}
	}
	return all
}
