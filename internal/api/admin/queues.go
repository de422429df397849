package admin

import (
	"context"
	"net/http"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/monitor"
	"godwit.dev/godwit/internal/shard"
)

// QueueGauger returns the gauges of a queue; *shard.Engine implements it.
type QueueGauger interface {
	QueueGauges(ctx context.Context, queue arn.ARN) (shard.QueueGauges, error)
}

// QueueTotaler returns the counters of a queue; *monitor.Queues implements it.
type QueueTotaler interface {
	Of(queue arn.ARN) monitor.Totals
}

// Queue answers GET ?queue=ARN with the gauges of a queue, and its counters since the process
// started.
func Queue(gauger QueueGauger, totaler QueueTotaler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		queue, err := arn.Parse(r.URL.Query().Get("queue"))
		if err != nil || queue.Service != "sqs" {
			writeError(w, http.StatusBadRequest, "queue: want the ARN of a queue")
			return
		}
		g, err := gauger.QueueGauges(r.Context(), queue)
		if err != nil {
			writeFault(w, err)
			return
		}
		t := totaler.Of(queue)
		writeJSON(w, http.StatusOK, map[string]any{
			"now": map[string]any{
				"visible": g.Visible, "inFlight": g.InFlight, "delayed": g.Delayed,
				"oldestSeconds": g.OldestAge.Truncate(time.Second).Seconds(), "groupsInFlight": g.GroupsInFlight, "noisyGroups": g.NoisyGroups,
			},
			"total": map[string]any{
				"sent": t.Sent, "sentBytes": t.SentBytes, "deduplicated": t.Deduplicated,
				"received": t.Received, "emptyReceives": t.EmptyReceives,
				"deleted": t.Deleted, "deadLettered": t.DeadLettered, "expired": t.Expired,
			},
		})
	})
}
