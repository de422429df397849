package admin

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/shard"
)

// Bounds of the number of deliveries in an answer.
const (
	defaultDeliveries = 100
	maxDeliveries     = 1000
)

// DeliveryLister lists deliveries; *shard.Engine implements it.
type DeliveryLister interface {
	Deliveries(ctx context.Context, subscription arn.ARN, limit int) ([]shard.DeliveryInfo, error)
}

// delivery is a delivery in an answer. Unknown times are null.
type delivery struct {
	ID            string     `json:"id,omitempty"` // while it waits or is in flight
	MessageID     string     `json:"messageId"`
	State         string     `json:"state"`
	Attempt       int        `json:"attempt"` // made so far
	NextAttemptAt *time.Time `json:"nextAttemptAt"`
	PublishedAt   *time.Time `json:"publishedAt"`
	FinishedAt    *time.Time `json:"finishedAt"`
	Reason        string     `json:"reason,omitempty"`
	Attempts      []attempt  `json:"attempts"` // the first 20 and the last 80
}

type attempt struct {
	At        time.Time `json:"at"`
	Outcome   string    `json:"outcome"`
	Status    int       `json:"status"` // 0: none
	LatencyMs float64   `json:"latencyMs"`
	Detail    string    `json:"detail,omitempty"`
}

// Deliveries answers GET ?subscription=ARN&limit=N with a subscription's deliveries: first
// those in flight or waiting, ordered by due time, then those that ended within the history's
// retention, latest first. The limit is 1 to 1,000; the default is 100.
func Deliveries(lister DeliveryLister) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		subscription, ok := subscriptionOf(w, query.Get("subscription"))
		if !ok {
			return
		}
		limit := defaultDeliveries
		if text := query.Get("limit"); text != "" {
			var err error
			if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxDeliveries {
				writeError(w, http.StatusBadRequest, "limit: want a number from 1 to 1000")
				return
			}
		}
		infos, err := lister.Deliveries(r.Context(), subscription, limit)
		if err != nil {
			writeFault(w, err)
			return
		}
		answer := struct {
			Deliveries []delivery `json:"deliveries"`
		}{make([]delivery, 0, len(infos))}
		for i := range infos {
			answer.Deliveries = append(answer.Deliveries, shown(&infos[i]))
		}
		writeJSON(w, http.StatusOK, answer)
	})
}

// subscriptionOf parses the ARN of a subscription, or of a platform application, whose
// backlog has the messages published to its endpoints. If it fails it has written the error,
// and ok is false.
func subscriptionOf(w http.ResponseWriter, name string) (subscription arn.ARN, ok bool) {
	subscription, err := arn.Parse(name)
	_, _, ok = subscription.SplitSubscription()
	_, direct := subscription.DirectProtocol()
	_, _, application := subscription.SplitApplication()
	if ok = ok || direct || application; err != nil || !ok {
		writeError(w, http.StatusBadRequest, "subscription: want the ARN of a subscription, or of a platform application")
		return arn.ARN{}, false
	}
	return subscription, true
}

func shown(info *shard.DeliveryInfo) delivery {
	d := delivery{
		ID: info.ID, MessageID: info.MessageID, State: string(info.State), Attempt: info.Attempts, Reason: info.Reason,
		NextAttemptAt: moment(info.NextAttemptAt), PublishedAt: moment(info.PublishedAt), FinishedAt: moment(info.FinishedAt),
		Attempts: make([]attempt, len(info.History)),
	}
	for i, a := range info.History {
		d.Attempts[i] = attempt{
			At: a.At.UTC(), Outcome: a.Outcome, Status: a.Status, Detail: a.Detail,
			LatencyMs: float64(a.Latency.Microseconds()) / 1000,
		}
	}
	return d
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// writeFault writes an error of the state. The cause of an internal error is not disclosed.
func writeFault(w http.ResponseWriter, err error) {
	switch fault.KindOf(err) {
	case fault.NotFound, fault.ResourceNotFound, fault.QueueDoesNotExist:
		writeError(w, http.StatusNotFound, refusal.Text(err))
	case fault.InvalidParameter, fault.InvalidAttributeValue:
		writeError(w, http.StatusBadRequest, refusal.Text(err))
	case fault.Unavailable, fault.Throttled:
		writeError(w, http.StatusServiceUnavailable, refusal.Text(err))
	default:
		writeError(w, http.StatusInternalServerError, "internal error")
	}
}
