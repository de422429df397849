package deliver

import (
	"context"
	"encoding/json"
	"log/slog"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/shard"
)

// EventLog writes what events say to a log: metrics at the level debug, entries
// of delivery status logs, which a topic's owner has asked for, at info.
type EventLog struct {
	logger *slog.Logger
	jitter *clock.Jitter
}

var _ Events = (*EventLog)(nil)

// NewEventLog makes a subscriber of events. jitter draws the successes that are
// logged.
func NewEventLog(logger *slog.Logger, jitter *clock.Jitter) *EventLog {
	return &EventLog{logger, jitter}
}

// Delivery is told of a step of a delivery.
func (l *EventLog) Delivery(e *Event) {
	if l.on(slog.LevelDebug) {
		name, _, _ := e.Subscription.SplitSubscription()
		l.metrics(name, e.Metrics())
	}
	if l.on(slog.LevelInfo) {
		l.status(e.Status(l.jitter.Float64))
	}
}

// Published is told of a publish.
func (l *EventLog) Published(p *shard.Published) {
	if l.on(slog.LevelDebug) {
		l.metrics(p.Topic, PublishMetrics(p))
	}
	if len(p.Direct) > 0 && l.on(slog.LevelInfo) {
		l.status(DirectStatus(p, l.jitter.Float64))
	}
}

func (l *EventLog) on(level slog.Level) bool { return l.logger.Enabled(context.Background(), level) }

func (l *EventLog) metrics(name arn.ARN, all []Metric) {
	if len(all) == 0 {
		return
	}
	attrs := []slog.Attr{slog.String("topic", name.String())}
	for _, m := range all {
		attrs = append(attrs, slog.Float64(m.Name, m.Value))
	}
	l.logger.LogAttrs(context.Background(), slog.LevelDebug, "SNS metrics", attrs...)
}

func (l *EventLog) status(all []StatusEntry) {
	for i := range all {
		text, err := json.Marshal(&all[i])
		if err != nil {
			continue // strings and numbers always marshal
		}
		l.logger.LogAttrs(context.Background(), slog.LevelInfo, "delivery status",
			slog.String("group", all[i].Group()), slog.String("entry", string(text)))
	}
}
