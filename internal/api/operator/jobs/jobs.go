// Package jobs applies an operator's action to many messages or deliveries: to all that match
// a condition, not only those on a page. Jobs are on disk, and continue after a restart.
package jobs

import (
	"context"
	"slices"
	"strconv"
	"time"

	"godwit.dev/godwit/internal/api/operator/catalog"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/inspect"
	"godwit.dev/godwit/internal/shard/jobs"
)

// Options are the dependencies of Jobs.
type Options struct {
	Module   *jobs.Module
	Engine   *shard.Engine
	Inspect  *inspect.Inspector
	Operator *deliver.Operator
	Clock    clock.Clock
	NewID    func() string
	// May refuses, with a *rest.Refusal, an action of a job's requester without permission;
	// nil: everything is allowed.
	May func(ctx context.Context, by *caller.Caller, action, resource string) error
	// Current is a job's requester as he is now, who may have another name; nil: as he was.
	Current func(*caller.Caller) *caller.Caller
}

// Jobs answers the operations on jobs.
type Jobs struct{ Options }

// New makes Jobs.
func New(o Options) *Jobs { return &Jobs{o} }

// The kinds of jobs: two on deliveries, two on messages.
const (
	retry   = "retry"
	drop    = "drop"
	redrive = "redrive"
	remove  = "delete"
)

// rights are the permissions that a kind of job requires besides that to create it.
var rights = map[string]string{
	retry: "godwit:RetryDelivery", drop: "godwit:DropDelivery", redrive: "godwit:RedriveMessages", remove: "godwit:DeleteMessages",
}

// JobWhere is the condition of a job. Members that are not there match everything.
type JobWhere struct {
	Search string     `json:"search" filled:"true" max:"1024" doc:"Of messages: text in the body, or in an attribute's name or value, whatever its case."`
	Cause  string     `json:"cause" filled:"true" max:"1024" doc:"Of dead letters the cause as it is; of deliveries text in how the last attempt went, whatever its case."`
	From   string     `json:"from" filled:"true" max:"2048" doc:"Of dead letters: the queue or subscription that they come from, by ARN."`
	IDs    []string   `json:"ids" filled:"true" max:"1000" doc:"Positions of messages, or ids of deliveries; then nothing else may be asked for."`
	Since  *time.Time `json:"since" filled:"true" doc:"Sent or published then or later."`
	Until  *time.Time `json:"until" filled:"true" doc:"Sent or published before."`
}

// JobSpec specifies a job.
type JobSpec struct {
	Kind  string   `json:"kind" required:"true" enum:"retry,drop,redrive,delete" doc:"retry and drop are about deliveries that wait, redrive and delete about messages."`
	ARN   string   `json:"arn" required:"true" max:"2048" doc:"The queue's, or the subscription's."`
	To    string   `json:"to" max:"2048" doc:"Of redrive: ARN of a queue. By default each message goes to where it came from."`
	Where JobWhere `json:"where" filled:"true"`
}

// CreateJob asks for a job.
type CreateJob struct {
	JobSpec
	PerSecond int `json:"perSecond" min:"1" max:"10000" doc:"By default as fast as they go."`
}

// About implements rest.About.
func (c *CreateJob) About() string { return c.ARN }

// PreviewJob is the request to count the matches of a job.
type PreviewJob struct {
	JobSpec
	Cursor string `json:"cursor" max:"4096" doc:"next of the answer before."`
}

// About implements rest.About.
func (p *PreviewJob) About() string { return p.ARN }

// Preview counts a part of a job's matches: call it until next is null, and add the counts.
type Preview struct {
	Matches int      `json:"matches"`
	Scanned int      `json:"scanned" doc:"How many were looked at for this answer."`
	Total   int64    `json:"total" doc:"How many messages are in the queue, or deliveries owed."`
	Sample  []string `json:"sample" doc:"Positions or ids of the first, ten at most."`
	Next    *string  `json:"next"`
}

// Job is a job and its progress.
type Job struct {
	ID         string       `json:"id"`
	Kind       string       `json:"kind" enum:"retry,drop,redrive,delete"`
	ARN        string       `json:"arn"`
	To         *string      `json:"to" doc:"Null: each to where it came from."`
	Where      JobCondition `json:"where"`
	PerSecond  *int         `json:"perSecond"`
	State      string       `json:"state" enum:"running,cancelling,cancelled,completed,failed"`
	By         *string      `json:"by" doc:"ARN of who asked for it; null where nobody is asked who he is."`
	CreatedAt  time.Time    `json:"createdAt"`
	FinishedAt *time.Time   `json:"finishedAt"`
	Scanned    int64        `json:"scanned" doc:"How many were looked at."`
	Total      int64        `json:"total" doc:"How many there were when it began."`
	Matched    int64        `json:"matched" doc:"How many of them meet the condition so far."`
	Done       int64        `json:"done"`
	Skipped    int64        `json:"skipped" doc:"To how many it could not be done: they were in flight, gone, or nobody knows where they came from."`
	Error      *string      `json:"error" doc:"Why it failed, or waits, or why the latest was skipped."`
	ETASeconds *float64     `json:"etaSeconds" doc:"How long it takes yet at its pace so far; null: not known."`
}

// JobCondition is the condition of a job.
type JobCondition struct {
	Search string     `json:"search" doc:"**** to whom godwit:PeekMessages is not allowed, as it may repeat a message."`
	Cause  string     `json:"cause"`
	From   string     `json:"from"`
	IDs    int        `json:"ids" doc:"How many were named."`
	Since  *time.Time `json:"since"`
	Until  *time.Time `json:"until"`
}

// ListJobs asks for jobs.
type ListJobs struct {
	State string `query:"state" enum:"running,cancelling,cancelled,completed,failed"`
	ARN   string `query:"arn" max:"2048" doc:"Only of this queue or subscription."`
	Limit int    `query:"limit" min:"1" max:"200" default:"100"`
}

// About implements rest.About.
func (l *ListJobs) About() string { return l.ARN }

// JobList are jobs, latest first. The latest 200 are stored.
type JobList struct {
	Jobs []Job `json:"jobs"`
}

// OneJob names a job.
type OneJob struct {
	ID string `query:"id" required:"true" max:"64"`
}

// CancelJob asks to end a job.
type CancelJob struct {
	ID string `json:"id" required:"true" max:"64"`
}

// spec validates a job's specification.
func (j *Jobs) spec(ctx context.Context, c *rest.Call, in *JobSpec, previewed bool) (s jobs.Spec, err error) {
	s = jobs.Spec{Kind: in.Kind, Resource: in.ARN, To: in.To, By: c.Caller, Where: jobs.Where{
		Search: in.Where.Search, Cause: in.Where.Cause, From: in.Where.From, IDs: in.Where.IDs,
	}}
	if in.Where.Since != nil {
		s.Where.Since = in.Where.Since.UnixMilli()
	}
	if in.Where.Until != nil {
		s.Where.Until = in.Where.Until.UnixMilli()
	}
	w := &in.Where
	if len(w.IDs) > 0 && (w.Search != "" || w.Cause != "" || w.From != "" || w.Since != nil || w.Until != nil) {
		return s, rest.BadRequest("where: ids stand alone")
	}
	if w.IDs != nil && len(w.IDs) == 0 {
		return s, rest.BadRequest("where: ids names nothing")
	}
	if w.Until != nil && s.Where.Until <= 0 {
		return s, rest.BadRequest("where: until is before everything")
	}
	if in.To != "" && in.Kind != redrive {
		return s, rest.BadRequest("to: it goes with redrive only")
	}
	if !previewed && c.May != nil {
		if err := c.May(ctx, rights[in.Kind], in.ARN); err != nil {
			return s, err
		}
		if w.Search != "" { // counts of matches disclose something of the messages
			if err := c.May(ctx, rest.Peeking, in.ARN); err != nil {
				return s, err
			}
		}
	}
	if in.Kind == retry || in.Kind == drop {
		return s, j.deliveries(ctx, in, &s)
	}
	return s, j.messages(ctx, in, &s)
}

func (j *Jobs) deliveries(ctx context.Context, in *JobSpec, s *jobs.Spec) error {
	sub, err := catalog.ParseSubscription(in.ARN)
	if err != nil {
		return err
	}
	if in.Where.Search != "" || in.Where.From != "" {
		return rest.BadRequest("where: search and from are about messages of queues")
	}
	info, err := j.Engine.Backlog(ctx, sub)
	s.Resource, s.Total = sub.String(), info.Due+info.Waiting+info.InFlight
	return err
}

func (j *Jobs) messages(ctx context.Context, in *JobSpec, s *jobs.Spec) error {
	queue, err := catalog.ParseQueue(in.ARN)
	if err != nil {
		return err
	}
	if in.To != "" {
		to, err := catalog.ParseQueue(in.To)
		switch {
		case err != nil:
			return err
		case to == queue:
			return rest.BadRequest("to: it is the queue that they are in")
		case to.FIFO() != queue.FIFO():
			return rest.BadRequest("to: both queues have to be FIFO queues, or none")
		}
		if _, err := j.Engine.QueueInfo(ctx, to); err != nil {
			return err
		}
		s.To = to.String()
	}
	found, err := j.Inspect.Scan(ctx, inspect.Query{Queue: queue, Limit: 1, Match: func(*inspect.Message) bool { return true }})
	if err != nil {
		return err
	}
	s.Resource, s.Total, s.Before, s.Incarnation = queue.String(), found.Total, found.End, uint64(found.Incarnation)
	return nil
}

// Create begins a job.
func (j *Jobs) Create(ctx context.Context, c *rest.Call, in *CreateJob) (*Job, error) {
	spec, err := j.spec(ctx, c, &in.JobSpec, false)
	if err != nil {
		return nil, err
	}
	spec.ID, spec.Rate, spec.Grows = j.NewID(), in.PerSecond, in.Kind == redrive
	made, err := j.Module.Create(spec)
	if err != nil {
		return nil, err
	}
	return j.shown(ctx, c, &made), nil
}

// Preview counts matches of a job. It changes nothing.
func (j *Jobs) Preview(ctx context.Context, c *rest.Call, in *PreviewJob) (*Preview, error) {
	spec, err := j.spec(ctx, c, &in.JobSpec, true)
	if err != nil {
		return nil, err
	}
	from, err := rest.After(in.Cursor)
	if err != nil {
		return nil, err
	}
	out := &Preview{Total: spec.Total, Sample: []string{}}
	step, err := j.scan(ctx, &jobs.Job{Spec: spec, Created: j.Clock.Now().UnixMilli()}, from, 0, func(id string) {
		if out.Matches++; len(out.Sample) < 10 {
			out.Sample = append(out.Sample, id)
		}
	})
	if err != nil {
		return nil, err
	}
	out.Scanned, out.Next = step.Scanned, rest.Next(step.Next, !step.Last)
	return out, nil
}

// List lists jobs.
func (j *Jobs) List(ctx context.Context, c *rest.Call, in *ListJobs) (*JobList, error) {
	out := &JobList{Jobs: []Job{}}
	for _, one := range j.Module.List() {
		if len(out.Jobs) < in.Limit && (in.State == "" || string(one.State) == in.State) && (in.ARN == "" || one.Resource == in.ARN) {
			out.Jobs = append(out.Jobs, *j.shown(ctx, c, &one))
		}
	}
	return out, nil
}

// Get reports a job.
func (j *Jobs) Get(ctx context.Context, c *rest.Call, in *OneJob) (*Job, error) {
	found, err := j.Module.Get(in.ID)
	if err != nil {
		return nil, err
	}
	return j.shown(ctx, c, &found), nil
}

// Cancel ends a job; completed actions are not undone.
func (j *Jobs) Cancel(ctx context.Context, c *rest.Call, in *CancelJob) (*Job, error) {
	left, err := j.Module.Cancel(in.ID)
	if err != nil {
		return nil, err
	}
	return j.shown(ctx, c, &left), nil
}

func at(milliseconds int64) *time.Time {
	if milliseconds == 0 {
		return nil
	}
	return rest.Moment(clock.Time(milliseconds))
}

// hidden replaces values that the caller may not see.
const hidden = "****"

func (j *Jobs) shown(ctx context.Context, c *rest.Call, job *jobs.Job) *Job {
	w := &job.Where
	search := w.Search
	if search != "" && c.May != nil && c.May(ctx, rest.Peeking, job.Resource) != nil {
		search = hidden
	}
	out := &Job{
		ID: job.ID, Kind: job.Kind, ARN: job.Resource, To: rest.Optional(job.To), State: string(job.State),
		Where:     JobCondition{Search: search, Cause: w.Cause, From: w.From, IDs: len(w.IDs), Since: at(w.Since), Until: at(w.Until)},
		CreatedAt: clock.Time(job.Created), FinishedAt: at(job.Finished), Scanned: job.Scanned, Total: job.Total,
		Matched: job.Matched, Done: job.Done, Skipped: job.Skipped, Error: rest.Optional(job.Error),
	}
	if job.Rate > 0 {
		out.PerSecond = &job.Rate
	}
	if by := job.By; by != nil {
		if j.Current != nil {
			by = j.Current(by)
		}
		out.By = rest.Optional(by.ARN)
	}
	total := job.Total
	if n := len(w.IDs); n > 0 {
		total = int64(n)
	}
	if passed := j.Clock.Now().Sub(out.CreatedAt).Seconds(); !job.State.Ended() && job.Scanned > 0 && passed > 0 {
		left := float64(max(total-job.Scanned, 0)) / float64(job.Scanned) * passed
		out.ETASeconds = &left
	}
	return out
}

// ids is the step of a job with explicit ids.
func ids(all []string, from string, limit int) (jobs.Step, error) {
	begin := 0
	if from != "" {
		var err error
		if begin, err = strconv.Atoi(from); err != nil || begin < 0 || begin > len(all) {
			return jobs.Step{}, rest.BadRequest("cursor: it is none of this")
		}
	}
	end := len(all)
	if limit > 0 {
		end = min(end, begin+limit)
	}
	return jobs.Step{IDs: slices.Clone(all[begin:end]), Scanned: end - begin, Next: strconv.Itoa(end), Last: end == len(all)}, nil
}

// resource is the resource of a job.
func resource(job *jobs.Job) arn.ARN {
	a, _ := arn.Parse(job.Resource) // it was validated
	return a
}
