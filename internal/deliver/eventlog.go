package deliver

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/shard"
)

// StatusLog stores the entries of delivery status logs, as JSON. It does not block.
type StatusLog interface {
	LogJSON(group arn.ARN, stream string, at time.Time, value any, as authorize.LogRights)
}

// LogRights evaluates what SNS may do with the role of a topic's delivery status log. Nil:
// everything.
type LogRights func(topic arn.ARN, role string, group arn.ARN, stream string) authorize.LogRights

// EventLog writes delivery status logs, which a topic's owner has configured, to their log
// groups. At the level debug it also writes them, and metrics, to the server's log.
type EventLog struct {
	logger *slog.Logger
	jitter *clock.Jitter
	groups StatusLog
	rights LogRights
}

var _ Events = (*EventLog)(nil)

// NewEventLog makes an EventLog. jitter samples the successes; rights is called for each
// entry of a log group.
func NewEventLog(logger *slog.Logger, jitter *clock.Jitter, groups StatusLog, rights LogRights) *EventLog {
	if rights == nil {
		rights = func(arn.ARN, string, arn.ARN, string) authorize.LogRights { return authorize.AllLogRights }
	}
	return &EventLog{logger, jitter, groups, rights}
}

// Delivery implements Events.
func (l *EventLog) Delivery(e *Event) {
	if l.on(slog.LevelDebug) {
		l.metrics(ownerOf(e.Subscription), append(e.Metrics(), e.TextMetrics()...))
	}
	l.status(e.Status(l.jitter.Float64))
}

// Published implements Events.
func (l *EventLog) Published(p *shard.Published) {
	if l.on(slog.LevelDebug) {
		l.metrics(p.Topic, AppendPublishMetrics(nil, p))
	}
	if len(p.Immediate) > 0 {
		l.status(immediateStatus(p, l.jitter.Float64))
	}
}

// auditEntry is an entry of a data protection policy's audit. Source: the SNS developer
// guide, "Data protection policy operations".
type auditEntry struct {
	MessageID   string            `json:"messageId"`
	At          string            `json:"auditTimestamp"`
	Principal   string            `json:"callerPrincipal"`
	Topic       string            `json:"resourceArn"`
	Identifiers []auditIdentifier `json:"dataIdentifiers"`
}

type auditIdentifier struct {
	Name       string           `json:"name"`
	Count      int              `json:"count"`
	Detections []auditDetection `json:"detections"`
}

// auditDetection is a range in a message, in bytes.
type auditDetection struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// maxDetections bounds the ranges in an event: a message may have one at every byte, and the
// size of events is limited. The counts include all.
const maxDetections = 1000

// Audited writes the findings of a data protection policy to its log group.
func (l *EventLog) Audited(a *shard.Audited) {
	e := &auditEntry{
		MessageID: uuid.UUID(a.ID).String(), At: a.At.UTC().Format(clock.ISO8601),
		Principal: a.Principal, Topic: a.Topic.String(), Identifiers: []auditIdentifier{},
	}
	left := maxDetections
	for _, f := range a.Findings {
		id := auditIdentifier{Name: f.Identifier, Count: len(f.Spans), Detections: []auditDetection{}}
		for _, span := range f.Spans[:min(len(f.Spans), left)] {
			id.Detections = append(id.Detections, auditDetection(span))
		}
		left -= len(id.Detections)
		e.Identifiers = append(e.Identifiers, id)
	}
	l.groups.LogJSON(arn.LogGroup(a.Topic.Region, a.Topic.Account, a.LogGroup), streamOf(a.Topic), a.At, e, authorize.AllLogRights) // the permissions were checked when the policy was set
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
		e := &all[i]
		group, stream := arn.LogGroup(e.topic.Region, e.topic.Account, e.Group()), e.stream()
		as := l.rights(e.topic, e.role, group, stream)
		if !as.Put {
			l.logger.Debug("a delivery's status is not logged: the role may not", "role", e.role, "group", group.String())
			continue
		}
		l.groups.LogJSON(group, stream, e.at, e, as)
		if !l.on(slog.LevelDebug) {
			continue
		}
		shown := *e // the log group's copy must not change
		shown.Delivery.Destination = loggedEndpoint(e.Delivery.Destination)
		text, err := json.Marshal(&shown)
		if err != nil {
			continue // strings and numbers can always be marshalled
		}
		l.logger.LogAttrs(context.Background(), slog.LevelDebug, "delivery status",
			slog.String("group", e.Group()), slog.String("entry", string(text)))
	}
}
