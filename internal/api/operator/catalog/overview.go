package catalog

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"godwit.dev/godwit/internal/api/operator/live"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/queue"
)

// Overview is the server at a glance.
type Overview struct {
	Server    Server        `json:"server"`
	Counts    Counts        `json:"counts"`
	Messages  MessageCounts `json:"messages" doc:"In all queues."`
	Owed      OwedCounts    `json:"owed" doc:"In the backlogs of all subscriptions."`
	Events    OwedCounts    `json:"events" doc:"Asynchronous invocations of all functions."`
	Rates     *ServerRates  `json:"rates" doc:"Null until they are known, some seconds after the first call."`
	Worst     []Backlogged  `json:"worst" doc:"The ten queues and subscriptions with most messages."`
	Attention []Attention   `json:"attention" doc:"What needs a person, the worst first: 50 at most."`
	AsOf      time.Time     `json:"asOf"`
}

// Counts are of all accounts and regions, except functions, which are of the server's own
// account and region.
type Counts struct {
	Queues        int `json:"queues"`
	Topics        int `json:"topics"`
	Subscriptions int `json:"subscriptions"`
	Functions     int `json:"functions"`
}

// MessageCounts are counts of queues' messages.
type MessageCounts struct {
	Visible  int64 `json:"visible"`
	InFlight int64 `json:"inFlight"`
	Delayed  int64 `json:"delayed"`
}

// OwedCounts are counts of backlogs' messages.
type OwedCounts struct {
	Due      int64 `json:"due"`
	Waiting  int64 `json:"waiting"`
	InFlight int64 `json:"inFlight"`
}

// ServerRates are per second.
type ServerRates struct {
	Published float64 `json:"published" doc:"To topics."`
	Sent      float64 `json:"sent" doc:"Into queues."`
	Received  float64 `json:"received"`
	Deleted   float64 `json:"deleted"`
	Attempts  float64 `json:"attempts" doc:"At deliveries."`
	Delivered float64 `json:"delivered"`
	Failed    float64 `json:"failed" doc:"Deliveries that failed for good."`
}

// Backlogged is a queue or a subscription that has messages.
type Backlogged struct {
	ARN              string   `json:"arn"`
	Kind             string   `json:"kind" enum:"queue,subscription,function"`
	Name             string   `json:"name"`
	Messages         int64    `json:"messages"`
	OldestAgeSeconds *float64 `json:"oldestAgeSeconds"`
}

// Attention is a condition that needs a person.
type Attention struct {
	Kind     string     `json:"kind" enum:"health,failing-endpoint,dead-letters,alarm,paused,old-backlog,pending-confirmation,source"`
	Severity string     `json:"severity" enum:"critical,warning,info"`
	ARN      string     `json:"arn" doc:"Of the resource; empty: it is about no single one."`
	Text     string     `json:"text"`
	Since    *time.Time `json:"since"`
}

// Nothing is the input of an operation without parameters.
type Nothing struct{}

// Bounds of what the overview shows and examines.
const (
	maxWorst     = 10
	maxAttention = 50
	oldBacklog   = time.Hour
)

// GetOverview summarizes the server. It is computed once for each snapshot, whatever the
// number of clients.
func (c *Catalog) GetOverview(ctx context.Context, _ *rest.Call, _ *Nothing) (*Overview, error) {
	now, err := c.Live.Now(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of != now {
		made := c.makeOverview(ctx, now)
		if err := ctx.Err(); err != nil {
			return nil, err // an incomplete overview would be cached for others
		}
		c.overview, c.of = made, now
	}
	out := *c.overview
	out.Server.Now = c.Server().Now
	return &out, nil
}

func (c *Catalog) makeOverview(ctx context.Context, now *live.Snapshot) (out *Overview) {
	server := c.Server()
	functions := c.Engine.FunctionUsage(server.Account, server.Region).Functions
	out = &Overview{
		Server: server, Counts: Counts{now.Queues, now.Topics, now.Subscriptions, functions},
		Messages: MessageCounts{now.InQueues.Visible, now.InQueues.InFlight, now.InQueues.Delayed},
		Owed:     owedOf(now.InBacklogs), Events: owedOf(now.InEvents), Worst: []Backlogged{}, AsOf: now.At.UTC(),
	}
	if r, ok := now.Rates(); ok {
		out.Rates = &ServerRates{round(r.Published), round(r.Sent), round(r.Received), round(r.Deleted), round(r.Attempts), round(r.Delivered), round(r.Failed)}
	}
	for _, h := range now.Holdings[:min(maxWorst, len(now.Holdings))] {
		b := Backlogged{ARN: h.Name.String(), Name: h.Name.Resource, Messages: h.Counts.Visible + h.Counts.InFlight + h.Counts.Delayed}
		b.Kind, b.OldestAgeSeconds = c.age(ctx, h.Name)
		out.Worst = append(out.Worst, b)
	}
	out.Attention = c.attention(ctx, now, out.Worst)
	return out
}

func owedOf(c queue.Counts) OwedCounts { return OwedCounts{c.Visible, c.Delayed, c.InFlight} }

// age is the kind of a holding, and the age of its oldest message.
func (c *Catalog) age(ctx context.Context, a arn.ARN) (kind string, age *float64) {
	switch a.Service {
	case "sqs":
		if g, err := c.Engine.SampleQueue(a); err == nil {
			age = seconds(g.OldestAge)
		}
		return "queue", age
	case "lambda":
		if events, err := c.Engine.Events(ctx, a); err == nil && !events.Oldest.IsZero() {
			age = seconds(events.Now.Sub(events.Oldest))
		}
		return "function", age
	}
	if info, err := c.Engine.Backlog(ctx, a); err == nil && !info.Oldest.IsZero() {
		age = seconds(info.Now.Sub(info.Oldest))
	}
	return "subscription", age
}

// attention finds conditions that need a person.
func (c *Catalog) attention(ctx context.Context, now *live.Snapshot, worst []Backlogged) []Attention {
	all := []Attention{}
	problems := c.Problems()
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		all = append(all, Attention{Kind: "health", Severity: "critical", Text: name + ": " + problems[name]})
	}
	for _, name := range c.Live.Failing(maxAttention) {
		s, _, err := c.Subscription(ctx, name)
		if err != nil {
			continue // it was deleted in the meantime
		}
		last := s.LastAttempt
		if last == nil {
			continue
		}
		severity := "warning"
		if s.Owed.Owed > 0 {
			severity = "critical"
		}
		all = append(all, Attention{
			Kind: "failing-endpoint", Severity: severity, ARN: s.ARN, Since: s.OldestPublishedAt,
			Text: fmt.Sprintf("%s: the last attempt failed (%s); %d owed", s.Endpoint, cmp.Or(last.Detail, last.Outcome), s.Owed.Owed),
		})
	}
	for _, h := range now.Holdings {
		if len(all) >= 2*maxAttention {
			break
		}
		n := h.Counts.Visible + h.Counts.InFlight + h.Counts.Delayed
		switch {
		case h.Paused:
			all = append(all, Attention{Kind: "paused", Severity: "warning", ARN: h.Name.String(), Text: fmt.Sprintf("deliveries are paused; %d owed", n)})
		case now.DeadLetterQueues[h.Name]:
			all = append(all, Attention{Kind: "dead-letters", Severity: "warning", ARN: h.Name.String(), Text: fmt.Sprintf("%d dead letters in %s", n, h.Name.Resource)})
		}
	}
	for _, b := range worst {
		if b.OldestAgeSeconds != nil && *b.OldestAgeSeconds > oldBacklog.Seconds() && b.Kind == "queue" {
			all = append(all, Attention{
				Kind: "old-backlog", Severity: "info", ARN: b.ARN,
				Text: fmt.Sprintf("%d messages, the oldest is %s old", b.Messages, (time.Duration(*b.OldestAgeSeconds) * time.Second).String()),
			})
		}
	}
	if c.Alarms != nil {
		for _, a := range c.Alarms(maxAttention) {
			all = append(all, Attention{Kind: "alarm", Severity: "warning", ARN: a.ARN, Text: a.Name + ": " + a.Reason, Since: rest.Moment(a.Since)})
		}
	}
	if c.Closed != nil {
		for _, s := range c.Closed(maxAttention) {
			a := Attention{Kind: "source", Severity: "critical", Text: s.Name + ": " + s.Problem}
			if s.Problem == "" {
				a.Severity, a.Text = "warning", s.Name+": it is paused, and takes no posts"
			}
			all = append(all, a)
		}
	}
	if now.Pending > 0 {
		all = append(all, Attention{Kind: "pending-confirmation", Severity: "info", Text: fmt.Sprintf("%d subscriptions wait for their confirmation", now.Pending)})
	}
	rank := map[string]int{"critical": 0, "warning": 1, "info": 2}
	slices.SortStableFunc(all, func(a, b Attention) int { return cmp.Compare(rank[a.Severity], rank[b.Severity]) })
	return all[:min(len(all), maxAttention)]
}
