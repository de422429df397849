package admin

import (
	"context"
	"net/http"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/shard"
)

// EventCounter counts the asynchronous invocations of functions; *shard.Engine implements it.
type EventCounter interface {
	Events(ctx context.Context, function arn.ARN) (shard.EventsInfo, error)
}

// events are the counts of a function's asynchronous invocations.
type events struct {
	Function         string     `json:"function"`
	Events           int64      `json:"events"` // the sum of the three that follow
	Due              int64      `json:"due"`
	Waiting          int64      `json:"waiting"`
	InFlight         int64      `json:"inFlight"`
	OldestAcceptedAt *time.Time `json:"oldestAcceptedAt"`
	OldestAgeSeconds *float64   `json:"oldestAgeSeconds"`
}

// Events answers GET ?function=ARN with the counts of a function's asynchronous invocations
// that wait or are in flight.
func Events(c EventCounter) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, err := arn.Parse(r.URL.Query().Get("function"))
		function, qualifier, ok := name.SplitFunction()
		if err != nil || !ok || qualifier != "" {
			writeError(w, http.StatusBadRequest, "function: want the ARN of a function, without a qualifier")
			return
		}
		info, err := c.Events(r.Context(), function)
		if err != nil {
			writeFault(w, err)
			return
		}
		out := events{
			Function: function.String(), Due: info.Due, Waiting: info.Waiting, InFlight: info.InFlight,
			Events: info.Due + info.Waiting + info.InFlight, OldestAcceptedAt: moment(info.Oldest),
		}
		if !info.Oldest.IsZero() {
			age := max(info.Now.Sub(info.Oldest).Seconds(), 0)
			out.OldestAgeSeconds = &age
		}
		writeJSON(w, http.StatusOK, out)
	})
}
