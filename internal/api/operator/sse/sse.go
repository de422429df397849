// Package sse reports changes as server-sent events, so that screens need not poll.
package sse

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"godwit.dev/godwit/internal/api/operator/catalog"
	"godwit.dev/godwit/internal/api/operator/jobs"
	"godwit.dev/godwit/internal/api/operator/messages"
	"godwit.dev/godwit/internal/api/operator/monitors"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
)

// every is the interval between polls, which is the lifetime of a snapshot.
const every = 2 * time.Second

// maxQuiet is the number of polls without an event after which the stream sends a comment. It
// keeps the connection open through proxies, and detects clients that are gone.
const maxQuiet = 10

// maxPolls is the number of polls after which a stream ends: five minutes. Browsers reconnect
// by themselves, which is refused after a sign-out.
const maxPolls = 150

// watchedJobs bounds the reported jobs; the latest are reported.
const watchedJobs = 100

// Options are the dependencies of Events.
type Options struct {
	Catalog  *catalog.Catalog
	Jobs     *jobs.Jobs
	Messages *messages.Messages
	Monitors *monitors.Monitors
	// Commits counts all changes of the state.
	Commits func() int64
	// Now is the server's time, which may be virtual.
	Now func() time.Time
	// Draining is closed when the server begins to stop.
	Draining <-chan struct{}
	// Clock is the machine's clock.
	Clock clock.Clock
}

// Events answers GET events and GET tail, each by a stream of events.
type Events struct{ Options }

// New makes Events.
func New(o Options) *Events { return &Events{o} }

// Watch asks for events.
type Watch struct {
	ARN  string `query:"arn" max:"2048" doc:"A queue or a subscription, whose details are sent, too, to who may see it."`
	Jobs bool   `query:"jobs" doc:"Jobs with their progress are sent, too, to who may list them."`
	// Commits is for screens of data without an event of its own.
	Commits bool `query:"commits" doc:"That something was changed, of whatever, is sent, too: who shows a list asks for it again then."`
}

// About implements rest.About.
func (w *Watch) About() string { return w.ARN }

// Event is the data of an event. The member of the event's name is set: overview, queue,
// subscription, jobs or commits; of a tail messages, publishes or lines.
type Event struct {
	Overview     *catalog.Overview           `json:"overview,omitempty"`
	Queue        *catalog.QueueDetail        `json:"queue,omitempty"`
	Subscription *catalog.SubscriptionDetail `json:"subscription,omitempty"`
	Jobs         *jobs.JobList               `json:"jobs,omitempty"`
	Commits      *int64                      `json:"commits,omitempty" doc:"How many changes of the state the server has written since it began, in groups."`
	Messages     []messages.Message          `json:"messages,omitempty" doc:"What is new in a queue, the earliest first."`
	Publishes    []messages.Publish          `json:"publishes,omitempty" doc:"What is new, the earliest first."`
	Lines        []monitors.LogEvent         `json:"lines,omitempty" doc:"What is new, the earliest first."`
}

// poll polls one resource, and reports its changes.
type poll struct {
	name   string
	action string // checked with each poll; empty: no permission required
	about  string // the resource of the action; empty: all
	ask    func(ctx context.Context) (*Event, error)
	last   []byte
	// place is how far ask has come, for a client that asks again; nil: each stream begins anew.
	place func() string
	told  string // the place that the client has
}

// id is the line of an event with the place, if that is another one than the client has.
func (l *poll) id() string {
	if l.place == nil {
		return ""
	}
	at := l.place()
	if at == l.told {
		return ""
	}
	l.told = at
	return "id: " + at + "\n"
}

// refused is why the caller may not see it, or nil.
func (l *poll) refused(ctx context.Context, call *rest.Call) error {
	if l.action == "" || call.May == nil {
		return nil
	}
	return call.May(ctx, l.action, l.about)
}

// Watch reports changes until the client disconnects. Events are overview, queue or
// subscription, each with all its data, at first and after each change, at most every two
// seconds. To watch a resource requires the permission to read it; the overview requires
// another one.
func (e *Events) Watch(ctx context.Context, call *rest.Call, in *Watch) (*Event, error) {
	overview := &poll{name: "overview", action: "godwit:GetOverview", ask: func(ctx context.Context) (*Event, error) {
		o, err := e.Catalog.GetOverview(ctx, call, nil)
		return &Event{Overview: o}, err
	}}
	detail := &poll{name: "subscription", action: "godwit:GetSubscription", about: in.ARN, ask: func(ctx context.Context) (*Event, error) {
		d, err := e.Catalog.GetSubscription(ctx, call, &catalog.OneSubscription{ARN: in.ARN})
		return &Event{Subscription: d}, err
	}}
	if a, err := arn.Parse(in.ARN); err == nil && a.Service == "sqs" {
		detail = &poll{name: "queue", action: "godwit:GetQueue", about: in.ARN, ask: func(ctx context.Context) (*Event, error) {
			q, err := e.Catalog.GetQueue(ctx, call, &catalog.OneQueue{ARN: in.ARN})
			return &Event{Queue: q}, err
		}}
	}
	polls := []*poll{overview}
	if in.ARN != "" {
		polls = append(polls, detail)
	}
	if in.Jobs {
		polls = append(polls, e.jobs(ctx, call, in.ARN))
	}
	if in.Commits {
		polls = append(polls, &poll{name: "commits", ask: func(context.Context) (*Event, error) {
			n := e.Commits()
			return &Event{Commits: &n}, nil
		}})
	}
	if len(polls) > 1 && overview.refused(ctx, call) != nil {
		polls = polls[1:]
	}
	return e.follow(ctx, call, polls)
}

// jobs polls all jobs or, if the caller may only see those of the watched resource, these.
func (e *Events) jobs(ctx context.Context, call *rest.Call, resource string) *poll {
	in := &jobs.ListJobs{Limit: watchedJobs}
	l := &poll{name: "jobs", action: "godwit:ListJobs", ask: func(ctx context.Context) (*Event, error) {
		all, err := e.Jobs.List(ctx, call, in)
		return &Event{Jobs: all}, err
	}}
	if resource != "" && l.refused(ctx, call) != nil {
		in.ARN, l.about = resource, resource
	}
	return l
}

// follow reports polls until the stream ends.
func (e *Events) follow(ctx context.Context, call *rest.Call, polls []*poll) (*Event, error) {
	var first bytes.Buffer
	for _, l := range polls { // before the first byte is sent, a refusal has the normal form
		if err := l.report(ctx, call, &first); err != nil {
			return nil, err
		}
	}
	w, flush := call.Writer, http.NewResponseController(call.Writer)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	quiet := 0
	if first.Len() == 0 { // sends the headers
		first.WriteString(": it begins\n" + polls[0].id() + "\n")
	}
	out := first.Bytes()
	for range maxPolls {
		if len(out) > 0 {
			if _, err := w.Write(out); err != nil {
				return nil, nil //nolint:nilnil,nilerr // the caller has gone
			}
			if err := flush.Flush(); err != nil {
				return nil, nil //nolint:nilnil,nilerr // likewise
			}
			quiet = 0
		}
		if !e.rest(ctx) {
			return nil, nil //nolint:nilnil // it has been answered
		}
		var b bytes.Buffer
		for _, l := range polls {
			err := still(ctx, call)
			if err == nil {
				err = l.report(ctx, call, &b)
			}
			if err != nil {
				fmt.Fprintf(&b, "event: gone\ndata: %q\n\n", l.name)
				_, _ = w.Write(b.Bytes())
				_ = flush.Flush()
				return nil, nil //nolint:nilnil,nilerr // it has been reported
			}
		}
		if quiet++; b.Len() == 0 && quiet >= maxQuiet {
			b.WriteString(": still there\n" + polls[0].id() + "\n")
		}
		out = b.Bytes()
	}
	return nil, nil //nolint:nilnil // it has been answered
}

// still refuses a caller without the permission to continue.
func still(ctx context.Context, call *rest.Call) error {
	if call.Still == nil {
		return nil
	}
	return call.Still(ctx)
}

// rest waits for the next poll; false: the stream has ended.
func (e *Events) rest(ctx context.Context) bool {
	again, stop := clock.After(e.Clock, every)
	defer stop()
	select {
	case <-again:
		return true
	case <-ctx.Done():
	case <-e.Draining:
	}
	return false
}

// report writes an event if the data has changed.
func (l *poll) report(ctx context.Context, call *rest.Call, b *bytes.Buffer) error {
	if err := l.refused(ctx, call); err != nil {
		return err
	}
	value, err := l.ask(ctx)
	if err != nil || value == nil {
		return err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	known := text
	if o := value.Overview; o != nil { // the time alone is no change
		same := *o
		same.AsOf, same.Server.Now = time.Time{}, time.Time{}
		if known, err = json.Marshal(same); err != nil {
			return err
		}
	}
	if news := len(value.Messages)+len(value.Publishes)+len(value.Lines) > 0; !news && bytes.Equal(known, l.last) {
		return nil
	}
	l.last = known
	fmt.Fprintf(b, "event: %s\n%sdata: %s\n\n", l.name, l.id(), text)
	return nil
}
