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

// Lifetime is how long a message to an HTTP/S endpoint is tried, from its
// publish. Source: message delivery retries in the SNS developer guide.
const Lifetime = time.Hour

// Action is a decision about a delivery.
type Action struct {
	Step   consume.Step // Done, Again or Ended
	Due    time.Time    // of the next attempt, with Again
	Reason string       // with Ended
}

// spread is the jitter of one decision.
type spread struct {
	share float64 // of the delay; 0: none
	r     float64 // random, in [0, 1)
}

// decide is the one place where the outcome of an attempt becomes what follows.
// attempt counts from 1; end is when the attempt ended, from where the delay
// counts. No attempt falls due behind deadline, if that is not zero: a delivery
// whose next attempt would is due right behind the deadline, when it is found
// expired. An endpoint that wants to be left alone for longer than the policy waits is,
// unless that would be behind the deadline: then its wish would cost it the message.
func decide(p retry.Policy, attempt int, out Outcome, end, deadline time.Time, j spread) Action {
	switch out.Class {
	case Success:
		return Action{Step: consume.Done}
	case ClientError:
		return Action{Step: consume.Ended, Reason: "client-side error: " + out.Detail}
	case ServerError:
	}
	delay, ok := p.Delay(attempt - 1)
	if !ok {
		return Action{Step: consume.Ended, Reason: fmt.Sprintf("retry policy exhausted after %d attempts, at last: %s", attempt, out.Detail)}
	}
	delay = retry.Jitter(delay, p.Floor(attempt-1), j.share, j.r)
	// Due times are kept in milliseconds.
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
	return Action{Step: consume.Again, Due: due}
}

// deadlineOf is the last moment at which an attempt at a delivery may begin: zero
// where there is none. A subscription that was paused gives its messages a new
// lifetime when it is resumed: no attempt was possible.
func deadlineOf(d *shard.Delivery) time.Time {
	switch d.Subscription.Protocol {
	case topic.HTTP, topic.HTTPS:
		return clock.Time(max(d.Message.Sent, d.Subscription.ResumedAt)).Add(Lifetime)
	case topic.Application:
		// Of the dwell whole seconds count.
		ttl, _ := PushTTL(d.Message, d.Subscription.BodyName())
		return clock.Time(d.Message.Sent).Add(ttl + time.Second - time.Millisecond)
	default:
		return time.Time{}
	}
}

// expiryOf says why a delivery behind its deadline has failed.
func expiryOf(d *shard.Delivery) string {
	if d.Subscription.Protocol == topic.Application {
		return platform.SaidExpired
	}
	return reasonExpired
}

const reasonExpired = "expired: not delivered within one hour of its publish"
