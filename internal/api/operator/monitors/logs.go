package monitors

import (
	"context"
	"time"

	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/monitor/logs"
	"godwit.dev/godwit/internal/monitor/logs/pattern"
)

// LogGroup is a log group.
type LogGroup struct {
	ARN           string            `json:"arn"`
	Name          string            `json:"name"`
	CreatedAt     time.Time         `json:"createdAt"`
	StoredBytes   int64             `json:"storedBytes"`
	RetentionDays *int              `json:"retentionDays" doc:"Null: for ever."`
	Tags          map[string]string `json:"tags"`
}

// ListLogGroups asks for log groups.
type ListLogGroups struct {
	Search  string `query:"search" max:"512" doc:"Part of the name, whatever its case."`
	Region  string `query:"region" max:"64" doc:"By default the server's."`
	Account string `query:"account" min:"12" max:"12" doc:"By default the server's."`
	Limit   int    `query:"limit" min:"1" max:"1000" default:"100"`
	Cursor  string `query:"cursor" max:"4096" doc:"next of the page before."`
}

// LogGroups is a page of log groups, by name.
type LogGroups struct {
	Groups []LogGroup `json:"groups"`
	Next   *string    `json:"next"`
}

// ListLogGroups lists log groups.
func (m *Monitors) ListLogGroups(_ context.Context, _ *rest.Call, in *ListLogGroups) (*LogGroups, error) {
	from, err := rest.After(in.Cursor)
	if err != nil {
		return nil, err
	}
	scope := m.scope(in.Region, in.Account)
	found, more, err := m.Logs.Groups(logs.GroupFilter{
		Region: scope.Region, Account: scope.Account, Name: func(name string) bool { return rest.Matches(name, in.Search) },
	}, logs.Page{After: from, Limit: in.Limit})
	if err != nil {
		return nil, err
	}
	out := &LogGroups{Groups: make([]LogGroup, len(found)), Next: rest.Next(more, more != "")}
	for i := range found {
		g := &found[i]
		name, _ := g.ARN.LogGroupName()
		out.Groups[i] = LogGroup{
			ARN: g.ARN.String(), Name: name, CreatedAt: clock.Time(g.Created), StoredBytes: g.StoredBytes, Tags: g.Tags,
		}
		if g.Tags == nil {
			out.Groups[i].Tags = map[string]string{}
		}
		if g.Retention > 0 {
			out.Groups[i].RetentionDays = &g.Retention
		}
	}
	return out, nil
}

func parseGroup(text string) (arn.ARN, error) {
	a, err := arn.Parse(text)
	name, ok := a.LogGroupName()
	if err != nil || !ok {
		return arn.ARN{}, rest.BadRequest("arn: want the ARN of a log group")
	}
	return arn.LogGroup(a.Region, a.Account, name), nil
}

// LogStream is a log stream.
type LogStream struct {
	Name         string     `json:"name"`
	CreatedAt    time.Time  `json:"createdAt"`
	FirstEventAt *time.Time `json:"firstEventAt"`
	LastEventAt  *time.Time `json:"lastEventAt"`
}

// ListLogStreams asks for the streams of a log group.
type ListLogStreams struct {
	ARN    string `query:"arn" required:"true" max:"2048" doc:"The group's."`
	Prefix string `query:"prefix" max:"512" doc:"What the name begins with. The streams are in the order of their names then, and else in that of their last events, the latest first."`
	Limit  int    `query:"limit" min:"1" max:"1000" default:"100"`
	Cursor string `query:"cursor" max:"4096" doc:"next of the page before."`
}

// About implements rest.About.
func (l *ListLogStreams) About() string { return l.ARN }

// LogStreams is a page of log streams.
type LogStreams struct {
	Streams []LogStream `json:"streams"`
	Next    *string     `json:"next"`
}

// ListLogStreams lists the streams of a log group.
func (m *Monitors) ListLogStreams(_ context.Context, _ *rest.Call, in *ListLogStreams) (*LogStreams, error) {
	group, err := parseGroup(in.ARN)
	if err != nil {
		return nil, err
	}
	from, err := rest.After(in.Cursor)
	if err != nil {
		return nil, err
	}
	order := logs.StreamOrder{Prefix: in.Prefix, ByLast: in.Prefix == "", Descending: in.Prefix == ""}
	found, more, err := m.Logs.Streams(group, order, logs.Page{After: from, Limit: in.Limit})
	if err != nil {
		return nil, err
	}
	out := &LogStreams{Streams: make([]LogStream, len(found)), Next: rest.Next(more, more != "")}
	for i := range found {
		s := &found[i]
		out.Streams[i] = LogStream{Name: s.Name, CreatedAt: clock.Time(s.Created), FirstEventAt: moment(s.First), LastEventAt: moment(s.Last)}
	}
	return out, nil
}

// ListLogEvents asks for the events of a log group.
type ListLogEvents struct {
	ARN     string `query:"arn" required:"true" max:"2048" doc:"The group's."`
	Stream  string `query:"stream" max:"512" doc:"Only of this stream."`
	Pattern string `query:"pattern" max:"1024" doc:"A filter pattern of CloudWatch Logs; a word, or \"several of them\", as they are written, looks for text."`
	From    string `query:"from" max:"40" doc:"The earliest, a time."`
	To      string `query:"to" max:"40" doc:"The latest, a time."`
	Limit   int    `query:"limit" min:"1" max:"1000" default:"100"`
	Cursor  string `query:"cursor" max:"4096" doc:"next of the page before."`
}

// About implements rest.About.
func (l *ListLogEvents) About() string { return l.ARN }

// LogEvents is a page of events, ordered by time.
type LogEvents struct {
	Events []LogEvent `json:"events"`
	Next   *string    `json:"next" doc:"A page may be empty and have one: a call looks at a bounded part."`
}

// LogEvent is a line of a log.
type LogEvent struct {
	ID      string    `json:"id"`
	At      time.Time `json:"at"`
	Stream  string    `json:"stream"`
	Message string    `json:"message"`
}

// ListLogEvents searches the events of a log group.
func (m *Monitors) ListLogEvents(_ context.Context, _ *rest.Call, in *ListLogEvents) (*LogEvents, error) {
	group, err := parseGroup(in.ARN)
	if err != nil {
		return nil, err
	}
	q := logs.FilterQuery{Group: group, Limit: in.Limit}
	if in.Stream != "" {
		q.Streams = []string{in.Stream}
	}
	if q.From, err = milliseconds("from", in.From); err != nil {
		return nil, err
	}
	if q.To, err = milliseconds("to", in.To); err != nil {
		return nil, err
	}
	if q.Pattern, err = pattern.Parse(in.Pattern); err != nil {
		return nil, rest.BadRequest("pattern: " + err.Error())
	}
	if q.Token, err = rest.After(in.Cursor); err != nil {
		return nil, err
	}
	found, more, err := m.Logs.Filter(q)
	if err != nil {
		return nil, err
	}
	out := &LogEvents{Events: make([]LogEvent, len(found)), Next: rest.Next(more, more != "")}
	for i := range found {
		e := &found[i]
		out.Events[i] = LogEvent{ID: e.ID, At: clock.Time(e.Time), Stream: e.Stream, Message: e.Message}
	}
	return out, nil
}
