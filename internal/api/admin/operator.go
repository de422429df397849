package admin

import (
	"context"
	"errors"
	"net/http"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/shard"
)

// Backlogs reports the backlogs of subscriptions; *shard.Engine implements it.
type Backlogs interface {
	Backlog(ctx context.Context, subscription arn.ARN) (shard.BacklogInfo, error)
}

// backlog is a subscription's backlog in an answer.
type backlog struct {
	Subscription      string     `json:"subscription"`
	Protocol          string     `json:"protocol"`
	Endpoint          string     `json:"endpoint"` // without credentials
	State             string     `json:"state"`    // active, paused or pending-confirmation
	PausedAt          *time.Time `json:"pausedAt"`
	Messages          int64      `json:"messages"` // the sum of the three that follow
	Due               int64      `json:"due"`
	Waiting           int64      `json:"waiting"`
	InFlight          int64      `json:"inFlight"`
	OldestPublishedAt *time.Time `json:"oldestPublishedAt"`
	OldestAgeSeconds  *float64   `json:"oldestAgeSeconds"`
}

// Backlog answers GET ?subscription=ARN with the subscription's backlog.
func Backlog(b Backlogs) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subscription, ok := subscriptionOf(w, r.URL.Query().Get("subscription")); ok {
			writeBacklog(w, r, b, subscription)
		}
	})
}

func writeBacklog(w http.ResponseWriter, r *http.Request, b Backlogs, subscription arn.ARN) {
	info, err := b.Backlog(r.Context(), subscription)
	if err != nil {
		writeFault(w, err)
		return
	}
	sub := &info.Subscription
	out := backlog{
		Subscription: sub.ARN.String(), Protocol: sub.Protocol.String(), Endpoint: sub.ShownEndpoint(), State: "active",
		Due: info.Due, Waiting: info.Waiting, InFlight: info.InFlight, Messages: info.Due + info.Waiting + info.InFlight,
		OldestPublishedAt: moment(info.Oldest),
	}
	if !info.Oldest.IsZero() {
		age := max(info.Now.Sub(info.Oldest).Seconds(), 0)
		out.OldestAgeSeconds = &age
	}
	switch {
	case sub.PausedAt != 0:
		out.State, out.PausedAt = "paused", moment(time.UnixMilli(sub.PausedAt))
	case sub.Pending:
		out.State = "pending-confirmation"
	}
	writeJSON(w, http.StatusOK, out)
}

// Pauser pauses and resumes deliveries; *deliver.Operator implements it.
type Pauser interface {
	Pause(ctx context.Context, subscription arn.ARN) error
	Resume(ctx context.Context, subscription arn.ARN) error
}

// Pause answers POST {"subscription"}: no attempt begins until Resume, also after a restart.
// The answer is the backlog.
func Pause(p Pauser, b Backlogs) http.Handler { return onSubscription(p.Pause, b) }

// Resume answers POST {"subscription"}: it ends a Pause. The answer is the backlog.
func Resume(p Pauser, b Backlogs) http.Handler { return onSubscription(p.Resume, b) }

func onSubscription(f func(context.Context, arn.ARN) error, b Backlogs) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Subscription string `json:"subscription"`
		}
		if !readJSON(w, r, &request) {
			return
		}
		subscription, ok := subscriptionOf(w, request.Subscription)
		if !ok {
			return
		}
		if err := f(r.Context(), subscription); err != nil {
			writeFault(w, err)
			return
		}
		writeBacklog(w, r, b, subscription)
	})
}

// chosen reads {"subscription", "id"}, or {"subscription", "all": true}, where id is empty.
// If it fails it has written the error, and ok is false. With all it removes the deadlines.
func chosen(w http.ResponseWriter, r *http.Request) (subscription arn.ARN, id string, ok bool) {
	var request struct {
		Subscription string `json:"subscription"`
		ID           string `json:"id"`
		All          bool   `json:"all"`
	}
	if !readJSON(w, r, &request) {
		return subscription, "", false
	}
	if subscription, ok = subscriptionOf(w, request.Subscription); !ok {
		return subscription, "", false
	}
	if (request.ID == "") != request.All {
		writeError(w, http.StatusBadRequest, `want either "id", of one delivery, or "all": true`)
		return subscription, "", false
	}
	if request.All {
		removeDeadlines(w)
	}
	return subscription, request.ID, true
}

// Retrier makes deliveries due; *shard.Engine implements it.
type Retrier interface {
	RetryNow(ctx context.Context, subscription arn.ARN, id string) (changed bool, err error)
	RetryAllNow(ctx context.Context, subscription arn.ARN) (n int, err error)
}

// Retry answers POST {"subscription", "id"} or {"subscription", "all": true}: it makes the
// next attempt of one delivery, or of all waiting ones, due now. The answer is {"retried"}:
// how many were not due before.
func Retry(engine Retrier) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		subscription, id, ok := chosen(w, r)
		if !ok {
			return
		}
		var answer struct {
			Retried int `json:"retried"`
		}
		var err error
		if id == "" {
			answer.Retried, err = engine.RetryAllNow(r.Context(), subscription)
		} else {
			var changed bool
			if changed, err = engine.RetryNow(r.Context(), subscription, id); changed {
				answer.Retried = 1
			}
		}
		if err != nil {
			writeFault(w, err)
			return
		}
		writeJSON(w, http.StatusOK, answer)
	})
}

// Dropper drops deliveries; *deliver.Operator implements it.
type Dropper interface {
	Drop(ctx context.Context, subscription arn.ARN, id string) (deliver.Dropped, error)
	DropAll(ctx context.Context, subscription arn.ARN) (deliver.Dropped, error)
}

// Drop answers POST {"subscription", "id"} or {"subscription", "all": true}: it ends one
// delivery, or all waiting ones, as if their retries were exhausted. The answer is
// {"deadLettered", "dropped", "inFlight"}.
func Drop(d Dropper) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		subscription, id, ok := chosen(w, r)
		if !ok {
			return
		}
		drop := func() (deliver.Dropped, error) { return d.Drop(r.Context(), subscription, id) }
		if id == "" {
			drop = func() (deliver.Dropped, error) { return d.DropAll(r.Context(), subscription) }
		}
		done, err := drop()
		switch {
		case errors.Is(err, shard.ErrUnderWay):
			writeError(w, http.StatusConflict, "an attempt at the delivery is under way; pause the subscription, and try again")
		case err != nil:
			writeFault(w, err)
		default:
			writeJSON(w, http.StatusOK, struct {
				DeadLettered int `json:"deadLettered"`
				Dropped      int `json:"dropped"`
				InFlight     int `json:"inFlight"`
			}{done.DeadLettered, done.Dropped, done.InFlight})
		}
	})
}
