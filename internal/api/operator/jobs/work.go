package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"godwit.dev/godwit/internal/api/operator/messages"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/inspect"
	"godwit.dev/godwit/internal/shard/jobs"
)

// maxSkipped bounds the non-matching messages or deliveries in one scan.
const maxSkipped = 10_000

// stillAllowed refuses a job whose requester does not have the permission any more.
func (j *Jobs) stillAllowed(ctx context.Context, job *jobs.Job, action string) error {
	if j.May == nil || job.By == nil {
		return nil
	}
	return j.May(ctx, job.By, action, job.Resource)
}

// Scan implements jobs.Worker.
func (j *Jobs) Scan(ctx context.Context, job *jobs.Job, from string, limit int) (jobs.Step, error) {
	if job.Where.Search != "" {
		if err := j.stillAllowed(ctx, job, rest.Peeking); err != nil {
			return jobs.Step{}, err
		}
	}
	var found []string
	step, err := j.scan(ctx, job, from, limit, func(id string) { found = append(found, id) })
	step.IDs = found
	return step, err
}

// scan calls take with a job's matches, beginning at from: at most limit, or, if that is 0,
// as many as one scan covers.
func (j *Jobs) scan(ctx context.Context, job *jobs.Job, from string, limit int, take func(id string)) (step jobs.Step, err error) {
	switch {
	case len(job.Where.IDs) > 0:
		if step, err = ids(job.Where.IDs, from, limit); err != nil {
			return step, err
		}
		for _, id := range step.IDs {
			take(id)
		}
		return step, nil
	case job.Kind == retry || job.Kind == drop:
		return j.scanDeliveries(ctx, job, from, limit, take)
	default:
		return j.scanMessages(ctx, job, from, limit, take)
	}
}

func within(w *jobs.Where, sent int64) bool {
	return sent >= w.Since && (w.Until == 0 || sent < w.Until)
}

func (j *Jobs) scanMessages(ctx context.Context, job *jobs.Job, from string, limit int, take func(id string)) (step jobs.Step, err error) {
	q := inspect.Query{Queue: resource(job), Limit: 1, Caller: job.By, Incarnation: layout.Incarnation(job.Incarnation)}
	if limit > 0 {
		q.Limit = limit
	}
	if from != "" {
		if err := json.Unmarshal([]byte(from), &q.From); err != nil {
			return step, rest.BadRequest("cursor: it is none of this")
		}
	}
	picked := messages.Picking(job.Where.Search, job.Where.From, job.Where.Cause)
	q.Match = func(m *inspect.Message) bool {
		if m.Sequence >= job.Before || !within(&job.Where, m.Sent) || picked != nil && !picked(m) {
			return false
		}
		take(messages.Position(m))
		return limit > 0
	}
	found, err := j.Inspect.Scan(ctx, q)
	if err != nil {
		return step, err
	}
	step = jobs.Step{Scanned: found.Scanned, Last: found.Next == nil}
	if found.Next != nil {
		next, err := json.Marshal(found.Next)
		if err != nil {
			return step, err
		}
		step.Next = string(next)
	}
	return step, nil
}

func (j *Jobs) scanDeliveries(ctx context.Context, job *jobs.Job, from string, limit int, take func(id string)) (step jobs.Step, err error) {
	sub := resource(job)
	place, until := shard.DeliveryPlace{Stage: shard.StageDue}, shard.StageFresh
	if t, _, ok := sub.SplitSubscription(); job.Kind == retry && ok && !t.FIFO() {
		until = shard.StageDue // deliveries without any attempt have no wait before it
	}
	if from != "" {
		if err := json.Unmarshal([]byte(from), &place); err != nil {
			return step, rest.BadRequest("cursor: it is none of this")
		}
	}
	page := 256
	if limit > 0 {
		page = limit
	}
	for n := 0; step.Scanned < maxSkipped && (limit == 0 || n == 0); {
		infos, more, err := j.Engine.DeliveriesFrom(ctx, sub, place, until, page)
		if err != nil {
			return step, err
		}
		step.Scanned += len(infos)
		for i := range infos {
			if j.wanted(job, &infos[i]) {
				n++
				take(infos[i].ID)
			}
		}
		if more == nil {
			step.Last = true
			return step, nil
		}
		place = *more
	}
	next, err := json.Marshal(place)
	step.Next = string(next)
	return step, err
}

// wanted reports whether a waiting delivery matches a job.
func (j *Jobs) wanted(job *jobs.Job, info *shard.DeliveryInfo) bool {
	published := info.PublishedAt.UnixMilli()
	if published > job.Created || !within(&job.Where, published) || info.State != shard.DeliveryPending {
		return false
	}
	var last shard.Attempt
	if n := len(info.History); n > 0 {
		last = info.History[n-1]
	}
	if job.Kind == retry && (info.Attempts == 0 || last.At.UnixMilli() > job.Created || !info.NextAttemptAt.After(j.Clock.Now())) {
		return false // there was an attempt since, or there is one now
	}
	cause := strings.ToLower(job.Where.Cause)
	return cause == "" || strings.Contains(strings.ToLower(last.Detail+"\n"+last.Outcome+"\n"+info.Reason), cause)
}

// Permanent implements jobs.Worker.
func (j *Jobs) Permanent(err error) bool {
	if _, ok := errors.AsType[*rest.Refusal](err); ok {
		return true
	}
	switch fault.KindOf(err) {
	case fault.QueueDoesNotExist, fault.NotFound, fault.AccessDenied:
		return true
	default:
		return false
	}
}

// Do implements jobs.Worker.
func (j *Jobs) Do(ctx context.Context, job *jobs.Job, id string, _ bool) (o jobs.Outcome, wait func(), err error) {
	wait = func() {}
	if err := j.stillAllowed(ctx, job, rights[job.Kind]); err != nil {
		if j.Permanent(err) {
			return jobs.Never, wait, err
		}
		return jobs.Later, wait, err
	}
	switch job.Kind {
	case retry:
		_, err = j.Engine.RetryNow(ctx, resource(job), id) // if it is already due, that is no failure
	case drop:
		_, wait, err = j.Operator.BeginDrop(ctx, resource(job), id)
	default:
		var picked shard.Picked
		if picked, err = messages.ReadPosition(id); err != nil {
			return jobs.Skipped, wait, err
		}
		if of := layout.Incarnation(job.Incarnation); of != 0 {
			if picked.Incarnation != 0 && picked.Incarnation != of {
				return jobs.Gone, wait, errors.New(rest.Text(shard.ErrQueueMadeAgain))
			}
			picked.Incarnation = of
		}
		if job.Kind == remove {
			wait, err = j.Engine.DeletePicked(ctx, resource(job), picked)
		} else {
			to, _ := arn.Parse(job.To)
			wait, err = j.Engine.MovePicked(ctx, resource(job), to, picked, job.By)
		}
	}
	if err == nil {
		return jobs.DidIt, wait, nil
	}
	return j.became(ctx, job, err), func() {}, errors.New(rest.Text(err))
}

// became is the outcome of an action that returned an error.
func (j *Jobs) became(ctx context.Context, job *jobs.Job, err error) jobs.Outcome {
	switch {
	case errors.Is(err, shard.ErrNoMessage), errors.Is(err, shard.ErrNoDelivery):
		return jobs.Gone
	case errors.Is(err, shard.ErrPicked), errors.Is(err, shard.ErrUnderWay), errors.Is(err, shard.ErrNoOrigin), errors.Is(err, message.ErrCorrupt):
		return jobs.Skipped
	}
	switch fault.KindOf(err) {
	case fault.QueueDoesNotExist, fault.NotFound, fault.AccessDenied, fault.ResourceNotFound:
		if job.Kind != redrive || job.To != "" {
			return jobs.Never
		}
		if _, err := j.Engine.QueueInfo(ctx, resource(job)); fault.KindOf(err) == fault.QueueDoesNotExist {
			return jobs.Never
		}
		return jobs.Skipped // the source queue was deleted, or the requester may not send to it
	case fault.InvalidParameter:
		return jobs.Skipped
	default:
		return jobs.Later
	}
}
