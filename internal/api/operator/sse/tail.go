package sse

import (
	"context"
	"maps"
	"slices"
	"time"

	"godwit.dev/godwit/internal/api/operator/catalog"
	"godwit.dev/godwit/internal/api/operator/messages"
	"godwit.dev/godwit/internal/api/operator/monitors"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/arn"
)

// Tail is the request of new messages of a queue, publishes of a topic, or events of a log
// group.
type Tail struct {
	ARN     string `query:"arn" required:"true" max:"2048" doc:"A queue's, a topic's, or a log group's."`
	Search  string `query:"search" max:"1024" doc:"Of a queue or a topic: text in the subject, the body, or an attribute's name or value, whatever its case."`
	Pattern string `query:"pattern" max:"1024" doc:"Of a log group: a filter pattern of CloudWatch Logs."`
}

// About implements rest.About.
func (t *Tail) About() string { return t.ARN }

// Bounds of what a poll reports.
const (
	mostPublishes = 100
	mostLines     = 1000
)

// Tail reports new messages of a queue, publishes of a topic, or events of a log group.
func (e *Events) Tail(ctx context.Context, call *rest.Call, in *Tail) (*Event, error) {
	a, err := arn.Parse(in.ARN)
	_, group := a.LogGroupName()
	switch {
	case err == nil && group && in.Search == "":
		from := &lines{events: e, call: call, ask: monitors.ListLogEvents{ARN: in.ARN, Pattern: in.Pattern, Limit: mostLines, From: written(e.Now())}}
		from.resume(call.Last)
		return e.follow(ctx, call, []*poll{{name: "lines", ask: from.news, place: from.place}})
	case err == nil && a.Service == "sqs" && in.Pattern == "":
		from, err := e.Messages.Arrive(ctx, call, in.ARN, in.Search, call.Last)
		if err != nil {
			return nil, err
		}
		return e.follow(ctx, call, []*poll{{name: "messages", ask: func(ctx context.Context) (*Event, error) {
			news, err := from.News(ctx)
			if err != nil || len(news) == 0 {
				return nil, err
			}
			return &Event{Messages: news}, nil
		}, place: from.Place}})
	case err == nil && a.Service == "sns" && in.Pattern == "":
		from := &published{events: e, call: call, ask: messages.ListPublishes{ARN: in.ARN, Search: in.Search, Limit: mostPublishes, BodyBytes: 4096}}
		if !catalog.ReadPlace(call.Last, &from.told) {
			if _, err := from.news(ctx); err != nil { // existing ones are not reported
				return nil, err
			}
		}
		return e.follow(ctx, call, []*poll{{name: "publishes", ask: from.news, place: func() string { return catalog.WritePlace(&from.told) }}})
	}
	return nil, rest.BadRequest("arn: want that of a queue or a topic, which goes with search, or of a log group, which goes with pattern")
}

// published polls for new publishes of a topic.
type published struct {
	events *Events
	call   *rest.Call
	ask    messages.ListPublishes
	known  map[string]bool // the ids of the last poll; nil: there was none
	told   latest
}

// latest are the latest events that were reported: their time, and their ids, which others of that
// time do not have.
type latest struct {
	At  time.Time `json:"at"`
	IDs []string  `json:"ids"`
}

// mostIDs bounds the ids of a place; of more events at once some may be reported twice.
const mostIDs = 50

func (l *latest) add(at time.Time, id string) {
	if at.After(l.At) {
		l.At, l.IDs = at, nil
	}
	if at.Equal(l.At) && !slices.Contains(l.IDs, id) {
		l.IDs = append(l.IDs[max(0, len(l.IDs)+1-mostIDs):], id)
	}
}

// has reports whether an event was reported before the poll that comes first.
func (l *latest) has(at time.Time, id string) bool {
	return at.Before(l.At) || at.Equal(l.At) && slices.Contains(l.IDs, id)
}

func (p *published) news(ctx context.Context) (*Event, error) {
	found, err := p.events.Messages.ListPublishes(ctx, p.call, &p.ask)
	if err != nil {
		return nil, err
	}
	known, out := map[string]bool{}, &Event{}
	for i := range found.Publishes {
		one := &found.Publishes[i]
		known[one.MessageID] = true
		if p.known != nil && !p.known[one.MessageID] || p.known == nil && !p.told.has(one.PublishedAt, one.MessageID) {
			out.Publishes = append(out.Publishes, *one)
		}
	}
	for i := range found.Publishes {
		p.told.add(found.Publishes[i].PublishedAt, found.Publishes[i].MessageID)
	}
	if p.known = known; len(out.Publishes) == 0 {
		return nil, nil //nolint:nilnil // nothing is new
	}
	slices.Reverse(out.Publishes) // oldest first
	return out, nil
}

// lines polls for new events of a log group.
type lines struct {
	events *Events
	call   *rest.Call
	ask    monitors.ListLogEvents
	at     time.Time       // the time of the latest reported event
	known  map[string]bool // the ids of the reported events of that time
}

func (l *lines) news(ctx context.Context) (*Event, error) {
	found, err := l.events.Monitors.ListLogEvents(ctx, l.call, &l.ask)
	if err != nil {
		return nil, err
	}
	out := &Event{}
	for i := range found.Events {
		e := &found.Events[i]
		if e.At.Equal(l.at) && l.known[e.ID] {
			continue
		}
		if !e.At.Equal(l.at) {
			l.at, l.known = e.At, map[string]bool{}
		}
		l.known[e.ID] = true
		out.Lines = append(out.Lines, *e)
	}
	l.ask.Cursor = ""
	switch {
	case found.Next != nil: // the next poll continues there
		l.ask.Cursor = *found.Next
	case !l.at.IsZero():
		l.ask.From = written(l.at)
	}
	if len(out.Lines) == 0 {
		return nil, nil //nolint:nilnil // nothing is new
	}
	return out, nil
}

// ofLines is the place of lines.
type ofLines struct {
	From   string `json:"from"`
	Cursor string `json:"cursor"`
	Told   latest `json:"told"`
}

func (l *lines) place() string {
	at := ofLines{From: l.ask.From, Cursor: l.ask.Cursor, Told: latest{At: l.at}}
	for _, id := range slices.Sorted(maps.Keys(l.known)) {
		at.Told.add(l.at, id)
	}
	return catalog.WritePlace(&at)
}

// resume goes on at a place, if there is one.
func (l *lines) resume(place string) {
	var at ofLines
	if !catalog.ReadPlace(place, &at) {
		return
	}
	l.ask.From, l.ask.Cursor, l.at, l.known = at.From, at.Cursor, at.Told.At, map[string]bool{}
	for _, id := range at.Told.IDs {
		l.known[id] = true
	}
}

// written is a time as a parameter.
func written(t time.Time) string { return t.UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano) }
