package admin

import (
	"context"
	"net/http"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/shard"
)

// EventCounter counts what waits for functions: *shard.Engine.
type EventCounter interface {
	Events(ctx context.Context, function arn.ARN) (shard.EventsInfo, error)
}

// events is what waits for a function as it is shown.
type events struct {
	Function         string     `json:"function"`
	Events           int64      `json:"events"` // the sum of the three that follow
	Due              int64      `json:"due"`
	Waiting          int64      `json:"waiting"`
	InFlight         int64      `json:"inFlight"`
	OldestAcceptedAt *time.Time `json:"oldestAcceptedAt"`
	OldestAgeSeconds *float64   `json:"oldestAgeSeconds"`
}

// Events answers GET ?function=ARN with the asynchronous invocations that wait for
// a function or are under way.
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
