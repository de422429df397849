package deliver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/consume"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/topic/retry"
)

func TestDecide(t *testing.T) {
	const s = time.Second
	// 1 immediate, 1 pre-backoff at 10 s, 2 backoff 10 s to 30 s, 1 post-backoff at 30 s.
	p := retry.Policy{
		NumRetries: 5, NumNoDelayRetries: 1, NumMinDelayRetries: 1, NumMaxDelayRetries: 1,
		MinDelayTarget: 10 * s, MaxDelayTarget: 30 * s, Backoff: retry.Linear,
	}
	end := start.Add(30 * s)
	busy := Outcome{Class: ServerError, Status: 503, Detail: "HTTP 503"}
	asks := func(after time.Duration) Outcome {
		return Outcome{Class: ServerError, Status: 503, Detail: "HTTP 503", RetryAfter: after}
	}
	for _, tt := range []struct {
		name     string
		attempt  int
		out      Outcome
		deadline time.Duration // from end; 0: none
		j        jitter
		step     consume.Disposition
		wait     time.Duration // from end
		reason   string
	}{
		{name: "success", attempt: 1, out: Outcome{Class: Success}, step: consume.Done},
		{name: "success of the last attempt", attempt: 6, out: Outcome{Class: Success}, step: consume.Done},
		{name: "success behind the deadline", attempt: 2, out: Outcome{Class: Success}, deadline: -s, step: consume.Done},
		{name: "client error", attempt: 1, out: Outcome{Class: ClientError, Detail: "HTTP 404"}, step: consume.Ended, reason: "client-side error: HTTP 404"},
		{name: "client error of a retry", attempt: 3, out: Outcome{Class: ClientError}, step: consume.Ended, reason: "client-side"},
		{name: "unclassified", attempt: 1, out: Outcome{}, step: consume.Retry},
		{name: "immediate", attempt: 1, out: busy, step: consume.Retry},
		{name: "immediate, jitter", attempt: 1, out: busy, j: jitter{1, 0.9}, step: consume.Retry},
		{name: "pre-backoff", attempt: 2, out: busy, step: consume.Retry, wait: 10 * s},
		{name: "pre-backoff, least jitter", attempt: 2, out: busy, j: jitter{0.5, 0}, step: consume.Retry, wait: 10 * s},
		{name: "pre-backoff, half the jitter", attempt: 2, out: busy, j: jitter{0.5, 0.5}, step: consume.Retry, wait: 12500 * time.Millisecond},
		{name: "backoff begins", attempt: 3, out: busy, step: consume.Retry, wait: 10 * s},
		{name: "backoff ends", attempt: 4, out: busy, step: consume.Retry, wait: 30 * s},
		{name: "backoff ends, least jitter", attempt: 4, out: busy, j: jitter{0.5, 0}, step: consume.Retry, wait: 15 * s},
		{name: "backoff ends, jitter stops at the floor", attempt: 4, out: busy, j: jitter{1, 0}, step: consume.Retry, wait: 10 * s},
		{name: "post-backoff", attempt: 5, out: busy, step: consume.Retry, wait: 30 * s},
		{name: "post-backoff, least jitter", attempt: 5, out: busy, j: jitter{0.5, 0}, step: consume.Retry, wait: 30 * s},
		{name: "Retry-After, later", attempt: 2, out: asks(25 * s), step: consume.Retry, wait: 25 * s},
		{name: "Retry-After, sooner", attempt: 2, out: asks(5 * s), step: consume.Retry, wait: 10 * s},
		{name: "Retry-After of an immediate retry", attempt: 1, out: asks(5 * s), step: consume.Retry, wait: 5 * s},
		{name: "Retry-After, spread upwards only", attempt: 2, out: asks(20 * s), j: jitter{0.5, 0}, step: consume.Retry, wait: 20 * s},
		{name: "Retry-After, half the jitter", attempt: 2, out: asks(20 * s), j: jitter{0.5, 0.5}, step: consume.Retry, wait: 25 * s},
		{name: "Retry-After at the deadline", attempt: 2, out: asks(60 * s), deadline: 60 * s, step: consume.Retry, wait: 60 * s},
		{name: "Retry-After at the deadline, jitter", attempt: 2, out: asks(59 * s), deadline: 60 * s, j: jitter{0.5, 0.9}, step: consume.Retry, wait: 60 * s},
		{name: "Retry-After behind the deadline", attempt: 2, out: asks(61 * s), deadline: 60 * s, step: consume.Retry, wait: 10 * s},
		{name: "Retry-After without retries", attempt: 6, out: asks(s), step: consume.Ended, reason: "exhausted"},
		{name: "Retry-After of a client error", attempt: 1, out: Outcome{Class: ClientError, RetryAfter: s}, step: consume.Ended, reason: "client-side"},
		{name: "exhausted", attempt: 6, out: busy, step: consume.Ended, reason: "exhausted after 6 attempts, at last: HTTP 503"},
		{name: "beyond a policy that was shortened", attempt: 40, out: busy, step: consume.Ended, reason: "exhausted after 40"},
		{name: "due at the deadline", attempt: 2, out: busy, deadline: 10 * s, step: consume.Retry, wait: 10 * s},
		{
			name: "due behind the deadline", attempt: 2, out: busy, deadline: 10*s - time.Millisecond, step: consume.Retry,
			wait: 10 * s, // one millisecond behind the deadline
		},
		{name: "due far behind the deadline", attempt: 5, out: busy, deadline: s, step: consume.Retry, wait: s + time.Millisecond},
		{name: "exhausted before the deadline", attempt: 6, out: busy, deadline: 10 * s, step: consume.Ended, reason: "exhausted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var deadline time.Time
			if tt.deadline != 0 {
				deadline = end.Add(tt.deadline)
			}
			got := decide(p, tt.attempt, tt.out, end, deadline, tt.j)
			if got.Disposition != tt.step || !strings.Contains(got.Reason, tt.reason) || (got.Reason == "") != (tt.step != consume.Ended) {
				t.Errorf("got %+v, want step %d, reason %q", got, tt.step, tt.reason)
			}
			if tt.step == consume.Retry && !got.Due.Equal(end.Add(tt.wait)) {
				t.Errorf("due %s behind the attempt, want %s", got.Due.Sub(end), tt.wait)
			}
			if tt.step != consume.Retry && !got.Due.IsZero() {
				t.Errorf("due %s", got.Due)
			}
		})
	}
}

func TestDeadline(t *testing.T) {
	sent := start.UnixMilli()
	for p, want := range map[topic.Protocol]time.Time{
		topic.HTTP: start.Add(time.Hour), topic.HTTPS: start.Add(time.Hour), topic.SQS: {},
	} {
		d := &shard.Delivery{Subscription: topic.Subscription{Protocol: p}, Message: &message.Message{Sent: sent}}
		if got := deadlineOf(d); !got.Equal(want) {
			t.Errorf("%s: %s, want %s", p, got, want)
		}
		d.Subscription.ResumedAt = sent - 1
		if got := deadlineOf(d); !got.Equal(want) {
			t.Errorf("%s, published after a pause: %s, want %s", p, got, want)
		}
		if !want.IsZero() {
			want = want.Add(time.Minute)
		}
		d.Subscription.ResumedAt = sent + time.Minute.Milliseconds()
		if got := deadlineOf(d); !got.Equal(want) {
			t.Errorf("%s, a pause that ended a minute after the publish: %s, want %s", p, got, want)
		}
	}
}

func TestTransferOutcome(t *testing.T) {
	for _, k := range fault.Kinds() {
		want := ServerError
		switch k {
		case fault.QueueDoesNotExist, fault.NotFound, fault.ResourceNotFound, fault.AccessDenied, fault.KMSNotFound,
			fault.KMSAccessDenied, fault.KMSDisabled, fault.KMSInvalidState, fault.KMSInvalidKeyUsage,
			fault.InvalidMessageContents, fault.InvalidParameter, fault.RequestTooLarge, fault.UnsupportedOperation:
			want = ClientError
		}
		got := TransferOutcome(fmt.Errorf("secret: %w", fault.New(k, "secret")))
		if got.Class != want || got.Concluded || got.Detail == "" || strings.Contains(got.Detail, "secret") {
			t.Errorf("kind %d: %+v, want class %s", k, got, want)
		}
	}
	if got := TransferOutcome(nil); got.Class != Success || !got.Concluded {
		t.Errorf("no error: %+v", got)
	}
}
