package messages

import (
	"cmp"
	"context"
	"slices"
	"time"

	"godwit.dev/godwit/internal/api/operator/catalog"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/inspect"
)

// ListDeadLetters is the request to group the dead letters of a queue by cause.
type ListDeadLetters struct {
	ARN    string `query:"arn" required:"true" max:"2048" doc:"The queue's."`
	Cursor string `query:"cursor" max:"4096" doc:"next of the page before."`
}

// About implements rest.About.
func (l *ListDeadLetters) About() string { return l.ARN }

// DeadLetters are groups of dead letters. Groups of several pages with the same from, kind
// and cause have to be added up.
type DeadLetters struct {
	Groups  []DeadLetterGroup `json:"groups" doc:"Most messages first."`
	Scanned int               `json:"scanned"`
	Total   int64             `json:"total" doc:"How many are in the queue."`
	Next    *string           `json:"next"`
}

// DeadLetterGroup are dead letters with one cause.
type DeadLetterGroup struct {
	From     string     `json:"from"`
	Kind     string     `json:"kind" enum:"queue,subscription,function,unknown"`
	Cause    string     `json:"cause"`
	Count    int        `json:"count"`
	OldestAt *time.Time `json:"oldestAt" doc:"By when they were sent."`
	NewestAt *time.Time `json:"newestAt"`
	Position string     `json:"position" doc:"Of one of them."`
}

// maxGrouped bounds the messages that one call groups.
const maxGrouped = 10_000

// DeadLetters groups the dead letters of a queue by cause.
func (m *Messages) DeadLetters(ctx context.Context, c *rest.Call, in *ListDeadLetters) (*DeadLetters, error) {
	queue, err := catalog.ParseQueue(in.ARN)
	if err != nil {
		return nil, err
	}
	q := inspect.Query{Queue: queue, Limit: maxGrouped, Caller: c.Caller}
	if q.From, err = readCursor(in.Cursor); err != nil {
		return nil, err
	}
	out := &DeadLetters{Groups: []DeadLetterGroup{}}
	groups := map[DeadLetterGroup]*DeadLetterGroup{}
	q.Match = func(m *inspect.Message) bool {
		key := DeadLetterGroup{Kind: "unknown"}
		if d := deathOf(m); d != nil {
			key = DeadLetterGroup{From: d.From, Kind: d.Kind, Cause: d.Cause}
		}
		g := groups[key]
		if g == nil {
			g = &DeadLetterGroup{From: key.From, Kind: key.Kind, Cause: key.Cause, Position: Position(m)}
			groups[key] = g
		}
		g.Count++
		if at := moment(m.Sent); g.OldestAt == nil || at.Before(*g.OldestAt) {
			g.OldestAt = at
		}
		if at := moment(m.Sent); g.NewestAt == nil || at.After(*g.NewestAt) {
			g.NewestAt = at
		}
		return false // the messages themselves are not needed
	}
	found, err := m.Inspect.Scan(ctx, q)
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		out.Groups = append(out.Groups, *g)
	}
	slices.SortFunc(out.Groups, func(a, b DeadLetterGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.From, b.From), cmp.Compare(a.Cause, b.Cause))
	})
	out.Scanned, out.Total, out.Next = found.Scanned, found.Total, writeCursor(found.Next)
	return out, nil
}

// RedriveMessages is the request to move the given messages.
type RedriveMessages struct {
	ARN       string   `json:"arn" required:"true" max:"2048" doc:"The queue's."`
	Positions []string `json:"positions" required:"true" max:"100"`
	To        string   `json:"to" max:"2048" doc:"ARN of a queue. By default each goes to where it came from: the queue, or the subscription, whose endpoint is then tried anew."`
}

// About implements rest.About.
func (r *RedriveMessages) About() string { return r.ARN }

// DeleteMessages is the request to delete the given messages.
type DeleteMessages struct {
	ARN       string   `json:"arn" required:"true" max:"2048" doc:"The queue's."`
	Positions []string `json:"positions" required:"true" max:"100"`
}

// About implements rest.About.
func (d *DeleteMessages) About() string { return d.ARN }

// Handled has the result of each message.
type Handled struct {
	Done    int         `json:"done"`
	Results []OneResult `json:"results" doc:"In the order of the positions."`
}

// OneResult is the result of one message.
type OneResult struct {
	Position string  `json:"position"`
	Done     bool    `json:"done"`
	Error    *string `json:"error"`
}

// Redrive moves the given messages, each in a commit of its own. A reported success is
// durable.
func (m *Messages) Redrive(ctx context.Context, c *rest.Call, in *RedriveMessages) (*Handled, error) {
	from, err := catalog.ParseQueue(in.ARN)
	if err != nil {
		return nil, err
	}
	var to arn.ARN
	if in.To != "" {
		if to, err = catalog.ParseQueue(in.To); err != nil {
			return nil, err
		}
		switch {
		case to == from:
			return nil, rest.BadRequest("to: it is the queue that they are in")
		case to.FIFO() != from.FIFO():
			return nil, rest.BadRequest("to: both queues have to be FIFO queues, or none")
		}
	}
	return m.each(ctx, from, in.Positions, func(p shard.Picked) (func(), error) {
		return m.Engine.MovePicked(ctx, from, to, p, c.Caller)
	})
}

// Delete deletes the given messages.
func (m *Messages) Delete(ctx context.Context, _ *rest.Call, in *DeleteMessages) (*Handled, error) {
	from, err := catalog.ParseQueue(in.ARN)
	if err != nil {
		return nil, err
	}
	return m.each(ctx, from, in.Positions, func(p shard.Picked) (func(), error) {
		return m.Engine.DeletePicked(ctx, from, p)
	})
}

// each applies an action to messages, and then waits until all are durable.
func (m *Messages) each(ctx context.Context, queue arn.ARN, positions []string, do func(shard.Picked) (wait func(), err error)) (*Handled, error) {
	places := make([]shard.Picked, len(positions))
	for i, at := range positions {
		var err error
		if places[i], err = ReadPosition(at); err != nil {
			return nil, err
		}
	}
	if _, err := m.Engine.QueueInfo(ctx, queue); err != nil {
		return nil, err
	}
	out := &Handled{Results: make([]OneResult, len(positions))}
	wait := func() {}
	for i, p := range places {
		out.Results[i].Position = positions[i]
		done, err := do(p)
		if err != nil {
			if fault.KindOf(err) == fault.Internal {
				wait()
				return nil, err
			}
			out.Results[i].Error = rest.Optional(rest.Text(err))
			continue
		}
		wait = done
		out.Done++
		out.Results[i].Done = true
	}
	wait()
	return out, nil
}

// StartRedrive asks to move all messages of a dead-letter queue.
type StartRedrive struct {
	ARN       string `json:"arn" required:"true" max:"2048" doc:"The queue's."`
	To        string `json:"to" max:"2048" doc:"ARN of a queue. By default each message goes to where it came from."`
	PerSecond int    `json:"perSecond" min:"1" max:"500" doc:"By default as fast as they go."`
}

// About implements rest.About.
func (s *StartRedrive) About() string { return s.ARN }

// ListRedrives asks for the redrives of a queue.
type ListRedrives struct {
	ARN string `query:"arn" required:"true" max:"2048" doc:"The queue's."`
}

// About implements rest.About.
func (l *ListRedrives) About() string { return l.ARN }

// CancelRedrive asks to end a redrive.
type CancelRedrive struct {
	ARN string `json:"arn" required:"true" max:"2048" doc:"The queue's."`
	ID  string `json:"id" required:"true" max:"64"`
}

// About implements rest.About.
func (c *CancelRedrive) About() string { return c.ARN }

// Redrives are the redrives of a queue, latest first, at most ten.
type Redrives struct {
	Redrives []Redrive `json:"redrives"`
}

// Redrive is a redrive of a whole queue: an SQS message move task. It is on disk, and
// continues after a restart.
type Redrive struct {
	ID        string    `json:"id"`
	Queue     string    `json:"queue"`
	To        *string   `json:"to" doc:"Null: each to where it came from."`
	PerSecond *int      `json:"perSecond"`
	State     string    `json:"state" enum:"running,cancelling,cancelled,completed,failed"`
	Done      int64     `json:"done"`
	Total     int64     `json:"total" doc:"Messages that could be received when it began."`
	StartedAt time.Time `json:"startedAt"`
	Error     *string   `json:"error" doc:"Why it failed."`
}

var moveStates = map[shard.MoveStatus]string{
	shard.MoveRunning: "running", shard.MoveCancelling: "cancelling", shard.MoveCancelled: "cancelled", shard.MoveCompleted: "completed", shard.MoveFailed: "failed",
}

// StartRedrive begins to move all messages of a queue.
func (m *Messages) StartRedrive(ctx context.Context, c *rest.Call, in *StartRedrive) (*Redrive, error) {
	from, err := catalog.ParseQueue(in.ARN)
	if err != nil {
		return nil, err
	}
	spec := shard.MoveTaskSpec{ID: m.NewID(), Source: from, Rate: in.PerSecond, By: c.Caller}
	if in.To != "" {
		if spec.Destination, err = catalog.ParseQueue(in.To); err != nil {
			return nil, err
		}
	}
	if err := m.Engine.StartMoveTask(ctx, spec); err != nil {
		return nil, err
	}
	return m.redrive(ctx, from, spec.ID)
}

// redrive finds a redrive.
func (m *Messages) redrive(ctx context.Context, from arn.ARN, id string) (*Redrive, error) {
	all, err := m.Engine.MoveTasks(ctx, from, shard.MoveTasksKept)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].ID == id {
			r := redriveOf(&all[i])
			return &r, nil
		}
	}
	return nil, rest.NotFound("there is no such redrive any more")
}

func redriveOf(t *shard.MoveTask) Redrive {
	r := Redrive{
		ID: t.ID, Queue: t.Source.String(), To: rest.Optional(t.Destination.String()), State: moveStates[t.Status], Done: t.Moved, Total: t.ToMove,
		StartedAt: t.Started, Error: rest.Optional(t.Reason),
	}
	if t.Rate > 0 {
		r.PerSecond = &t.Rate
	}
	return r
}

// ListRedrives lists the redrives of a queue.
func (m *Messages) ListRedrives(ctx context.Context, _ *rest.Call, in *ListRedrives) (*Redrives, error) {
	from, err := catalog.ParseQueue(in.ARN)
	if err != nil {
		return nil, err
	}
	all, err := m.Engine.MoveTasks(ctx, from, shard.MoveTasksKept)
	if err != nil {
		return nil, err
	}
	out := &Redrives{Redrives: make([]Redrive, len(all))}
	for i := range all {
		out.Redrives[i] = redriveOf(&all[i])
	}
	return out, nil
}

// CancelRedrive ends a redrive; moved messages are not moved back.
func (m *Messages) CancelRedrive(ctx context.Context, _ *rest.Call, in *CancelRedrive) (*Redrive, error) {
	from, err := catalog.ParseQueue(in.ARN)
	if err != nil {
		return nil, err
	}
	if _, err := m.Engine.CancelMoveTask(ctx, from, in.ID); err != nil {
		return nil, err
	}
	return m.redrive(ctx, from, in.ID)
}
