package deliver

import (
	"fmt"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/consume"
	"godwit.dev/godwit/internal/platform"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/topic/retry"
)

// Lifetime is how long the delivery of a message to an HTTP/S endpoint is attempted, from its
// publish. Source: message delivery retries in the SNS developer guide.
const Lifetime = time.Hour

// decision is what follows an attempt at a delivery.
type decision struct {
	Disposition consume.Disposition // Done, Retry or Ended
	Due         time.Time           // of the next attempt, with Retry
	Reason      string              // why the delivery failed, with Ended
}

// jitter is by how much a decision may delay a retry.
type jitter struct {
	share float64 // of the delay, as a fraction; 0: no jitter
	r     float64 // random, in [0, 1)
}

// decide turns the outcome of an attempt into a disposition; nothing else does. attempt
// counts from 1. The delay of a retry counts from end, the end of the attempt. A retry after
// deadline (zero: none) is made due right after it, when the delivery will expire. A
// Retry-After longer than the policy's delay is honoured, unless it is beyond the deadline,
// which would lose the message.
func decide(p retry.Policy, attempt int, out Outcome, end, deadline time.Time, j jitter) decision {
	switch out.Class {
	case Success:
		return decision{Disposition: consume.Done}
	case ClientError:
		return decision{Disposition: consume.Ended, Reason: "client-side error: " + out.Detail}
	case ServerError:
	}
	delay, ok := p.Delay(attempt - 1)
	if !ok {
		return decision{Disposition: consume.Ended, Reason: fmt.Sprintf("retry policy exhausted after %d attempts, at last: %s", attempt, out.Detail)}
	}
	delay = retry.Jitter(delay, p.Floor(attempt-1), j.share, j.r)
	// Due times are stored in milliseconds.
	end = end.Truncate(time.Millisecond)
	due := end.Add(delay)
	if after := out.RetryAfter; after > delay && (deadline.IsZero() || !end.Add(after).After(deadline)) {
		due = end.Add(retry.Jitter(after, after, j.share, j.r))
		if !deadline.IsZero() && due.After(deadline) {
			due = deadline
		}
	}
	if !deadline.IsZero() && due.After(deadline) {
		due = deadline.Add(time.Millisecond)
	}
	return decision{Disposition: consume.Retry, Due: due}
}

// deadlineOf is the last time at which an attempt at a delivery may begin; zero: there is
// none. When a paused subscription is resumed, its messages get a new lifetime, because no
// attempt was possible.
func deadlineOf(d *shard.Delivery) time.Time {
	switch d.Subscription.Protocol {
	case topic.HTTP, topic.HTTPS:
		return clock.Time(max(d.Message.Sent, d.Subscription.ResumedAt)).Add(Lifetime)
	case topic.Application:
		// The time to live counts in whole seconds.
		ttl, _ := PushTTL(d.Message, d.Subscription.BodyName())
		return clock.Time(d.Message.Sent).Add(ttl + time.Second - time.Millisecond)
	default:
		return time.Time{}
	}
}

// expiryOf is the cause of failure of a delivery past its deadline.
func expiryOf(d *shard.Delivery) string {
	if d.Subscription.Protocol == topic.Application {
		return platform.SaidExpired
	}
	return reasonExpired
}

const reasonExpired = "expired: not delivered within one hour of its publish"
