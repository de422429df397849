package deliver

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/topic/retry"
	"godwit.dev/godwit/test/soak"
)

// documentedSample is the policy of the developer guide: 1 s to 60 s, 50
// retries: 3 immediate, 2 pre-backoff, 10 exponential, 35 post-backoff.
var documentedSample = retry.Policy{
	NumRetries: 50, NumNoDelayRetries: 3, NumMinDelayRetries: 2, NumMaxDelayRetries: 35,
	MinDelayTarget: time.Second, MaxDelayTarget: 60 * time.Second, Backoff: retry.Exponential,
}

func TestDocumentedSampleTakes2229Seconds(t *testing.T) {
	if got := documentedSample.Total().Round(time.Second); got != 2229*time.Second {
		t.Errorf("the documented sample takes %s", got)
	}
}

// TestSchedules runs whole policies to their dead letters: each attempt at its
// second, none left out, none too many.
func TestSchedules(t *testing.T) {
	for _, tt := range []struct {
		name     string
		protocol topic.Protocol
		policy   retry.Policy
		attempts int
		total    time.Duration
	}{
		{"documented sample", topic.HTTP, documentedSample, 51, documentedSample.Total()},
		{"HTTP by default", topic.HTTPS, retry.DefaultHTTP, 4, 60 * time.Second},
		{"no retries", topic.HTTP, retry.Policy{MinDelayTarget: time.Second, MaxDelayTarget: time.Second}, 1, 0},
		{"as long as a policy may be", topic.HTTP, retry.Policy{NumRetries: 100, MinDelayTarget: 36 * time.Second, MaxDelayTarget: 36 * time.Second}, 101, time.Hour},
		// Not HTTP: these have no deadline.
		{"customer managed", topic.SQS, retry.CustomerManaged, 51, retry.CustomerManaged.Total()},
		{"AWS managed", topic.SQS, retry.AWSManaged, 100_016, retry.AWSManaged.Total()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.attempts > soak.Size(1000, 200_000) {
				t.Skip("too many under the race detector: make full")
			}
			v := clock.NewVirtual(start)
			r := newRig(t, v, refuse, func(o *Options) {
				o.Senders[topic.SQS] = o.Senders[topic.HTTP]
			})
			sub := testSub("a", "host", tt.protocol, testDLQ)
			r.add(sub, tt.policy, 0)
			r.publish(sub.ARN, 1)
			advance(t, v, tt.total+time.Hour)

			got := r.sender.attempts()
			if len(got) != tt.attempts {
				t.Fatalf("%d attempts, want %d", len(got), tt.attempts)
			}
			due := start
			for i, a := range got {
				if i > 0 {
					delay, _ := tt.policy.Delay(i - 1)
					due = due.Add(delay)
				}
				if !a.at.Equal(due) || a.attempt != i+1 {
					t.Fatalf("attempt %d (number %d) at %s, want %s", i+1, a.attempt, a.at.Sub(start), due.Sub(start))
				}
			}
			if d := due.Sub(start); d != tt.total {
				t.Errorf("the last attempt was made after %s, want %s", d, tt.total)
			}
			ends := r.results()
			if len(ends) != 1 || ends[0].state != shard.DeliveryDeadLetter || ends[0].dest != testDLQ ||
				!ends[0].at.Equal(due) || !strings.Contains(ends[0].reason, "exhausted") || len(ends[0].attempts) != tt.attempts {
				t.Errorf("ended as %d: %+v", len(ends), ends[0])
			}
		})
	}
}

func TestRetryCountsFromTheAttemptsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, clock.System, hang, nil)
		sub := testSub("a", "host", topic.HTTP, testDLQ)
		r.add(sub, retry.DefaultHTTP, 0)
		began := clock.System.Now()
		r.publish(sub.ARN, 1)
		wait(t, 10*time.Minute)
		var at []time.Duration
		for _, a := range r.sender.attempts() {
			at = append(at, a.at.Sub(began))
		}
		want := []time.Duration{0, 35 * time.Second, 70 * time.Second, 105 * time.Second}
		if d := cmp.Diff(want, at); d != "" {
			t.Errorf("requests that time out after 15 s, interval 20 s (-want +got):\n%s", d)
		}
	})
}

// wait lets d pass in a synctest bubble.
func wait(t *testing.T, d time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	<-ctx.Done()
	synctest.Wait()
}

func TestJitterSpreadsRetries(t *testing.T) {
	v := clock.NewVirtual(start)
	r := newRig(t, v, refuse, func(o *Options) { o.Jitter, o.JitterShare = clock.NewJitter(1), 0.5 })
	sub := testSub("a", "host", topic.HTTP, testDLQ)
	r.add(sub, retry.DefaultHTTP, 0)
	r.publish(sub.ARN, 20)
	advance(t, v, time.Hour)
	seen := map[time.Time]bool{}
	for _, a := range r.sender.attempts() {
		if a.attempt != 2 {
			continue
		}
		seen[a.at] = true
		if d := a.at.Sub(start); d < 20*time.Second || d > 30*time.Second {
			t.Errorf("first retry after %s", d)
		}
	}
	if len(seen) < 15 {
		t.Errorf("20 messages were retried at only %d moments", len(seen))
	}
}

func TestSuccessEndsADelivery(t *testing.T) {
	v := clock.NewVirtual(start)
	r := newRig(t, v, func(_ context.Context, r *Request) Outcome {
		if r.Attempt < 3 {
			return Outcome{Class: ServerError, Status: 503}
		}
		return Outcome{Class: Success, Status: 204, Latency: 7 * time.Millisecond}
	}, nil)
	sub := testSub("a", "host", topic.HTTP, testDLQ)
	r.add(sub, retry.DefaultHTTP, 0)
	r.publish(sub.ARN, 1)
	advance(t, v, time.Hour)
	want := []shard.Attempt{
		{At: start, Outcome: "server-error", Status: 503},
		{At: start.Add(20 * time.Second), Outcome: "server-error", Status: 503},
		{At: start.Add(40 * time.Second), Outcome: "success", Status: 204, Latency: 7 * time.Millisecond},
	}
	ends := r.results()
	if len(ends) != 1 || ends[0].state != shard.DeliveryDelivered || !cmp.Equal(want, ends[0].attempts) {
		t.Errorf("got %+v", ends)
	}
}

// TestDeadLetters covers what becomes of a delivery that has failed for good.
func TestDeadLetters(t *testing.T) {
	for _, tt := range []struct {
		name   string
		kind   message.NoticeKind
		dlq    arn.ARN
		refuse error
		state  shard.DeliveryState
		reason string
	}{
		{"moved", message.Notification, testDLQ, nil, shard.DeliveryDeadLetter, "client-side error: HTTP 410"},
		{"no queue", message.Notification, arn.ARN{}, nil, shard.DeliveryDropped, "client-side error: HTTP 410"},
		{"queue gone", message.Notification, testDLQ, fault.New(fault.QueueDoesNotExist, ""), shard.DeliveryDropped, "the queue does not exist"},
		{"queue forbids", message.Notification, testDLQ, fault.New(fault.AccessDenied, ""), shard.DeliveryDropped, "forbids"},
		{"confirmation", message.SubscriptionConfirmation, testDLQ, nil, shard.DeliveryDropped, "client-side error: HTTP 410"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := clock.NewVirtual(start)
			var log bytes.Buffer
			events := &recorder{}
			r := newRig(t, v, func(context.Context, *Request) Outcome {
				return Outcome{Class: ClientError, Status: 410, Detail: "HTTP 410"}
			}, func(o *Options) {
				o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
				o.Events = events
			})
			if tt.refuse != nil {
				r.set(func(arn.ARN) error { return tt.refuse })
			}
			sub := testSub("a", "https://user:secret-pass@host/secret-path?secret-query=1#secret-fragment", topic.HTTPS, tt.dlq)
			r.add(sub, retry.DefaultHTTP, 0)
			r.publishKind(sub.ARN, 1, tt.kind)
			advance(t, v, time.Hour)

			ends := r.results()
			if len(ends) != 1 || ends[0].state != tt.state || !strings.Contains(ends[0].reason, tt.reason) || len(ends[0].attempts) != 1 {
				t.Fatalf("got %+v", ends)
			}
			if tt.state == shard.DeliveryDeadLetter && !strings.Contains(string(ends[0].m.Body), `"Message" : "secret-body"`) {
				t.Errorf("dead letter %q", ends[0].m.Body)
			}
			if s := log.String(); strings.Contains(s, "secret") || !strings.Contains(s, "endpoint=https://host ") || strings.Count(s, "delivery attempt") != 1 {
				t.Errorf("log:\n%s", s)
			}
			if len(events.all) != 1 {
				t.Fatalf("events %+v", events.all)
			}
			e := events.all[0]
			if e.State != tt.state || !e.Made || e.Attempt.Status != 410 || e.Number != 1 || e.RedriveFailed != (tt.refuse != nil) || e.Kind != tt.kind {
				t.Errorf("event %+v", e)
			}
		})
	}
}

// TestDeadLetterOfRawText: what SQS does not take raw comes in an envelope, signed as any other.
func TestDeadLetterOfRawText(t *testing.T) {
	v := clock.NewVirtual(start)
	r := newRig(t, v, nil, func(o *Options) { o.Signer, o.NewID = &signer{}, func() message.ID { return message.ID{1} } })
	sub := testSub("a", "https://host/", topic.HTTPS, testDLQ)
	m := &message.Message{Body: []byte("\x01"), Notice: &message.Notice{Kind: message.Notification, Raw: true, SignatureVersion: 1}}
	got, _ := r.dispatcher.deadLetter(&shard.Delivery{Subscription: sub, Message: m})
	if !got.Sendable() || got.Unsigned == nil {
		t.Errorf("%q, %+v", got.Body, got.Unsigned)
	}
}

// TestLongDeadLetterOfRawText: to a queue that the envelope is too long for it comes raw, and is not lost.
func TestLongDeadLetterOfRawText(t *testing.T) {
	r := newRig(t, clock.NewVirtual(start), nil, nil)
	d := &shard.Delivery{
		Subscription: testSub("a", "https://host/", topic.HTTPS, testDLQ),
		Message:      &message.Message{Body: []byte("\x01"), Notice: &message.Notice{Kind: message.Notification, Raw: true}},
	}
	var sizes []int
	got, dest, err := r.dispatcher.toDeadLetters(d, func(m *message.Message, _ arn.ARN) error {
		if sizes = append(sizes, m.Size()); m.Size() > 1 {
			return shard.ErrTooLong.With(1)
		}
		return nil
	})
	if err != nil || dest != testDLQ || string(got.Body) != "\x01" || len(sizes) != 2 {
		t.Errorf("%q to %v with %v, of the sizes %v", got.Body, dest, err, sizes)
	}
}

type recorder struct{ all []Event }

func (r *recorder) Delivery(e *Event) { r.all = append(r.all, *e) } // one delivery, one after the other

func (r *recorder) Published(*shard.Published) {}

// TestDeadLetterWaitsForItsQueue: a queue that is out of reach loses nothing,
// and the endpoint gets no further request.
func TestDeadLetterWaitsForItsQueue(t *testing.T) {
	v := clock.NewVirtual(start)
	events := &recorder{}
	r := newRig(t, v, func(context.Context, *Request) Outcome {
		return Outcome{Class: ClientError, Status: 404, Detail: "HTTP 404"}
	},
		func(o *Options) { o.Events = events; o.HostLimit = 1 })
	r.set(unavailable)
	sub := testSub("a", "host", topic.HTTP, testDLQ)
	r.add(sub, retry.DefaultHTTP, 0)
	r.publish(sub.ARN, 1)
	advance(t, v, 3*24*time.Hour)
	if got := r.results(); len(got) != 0 {
		t.Fatalf("ended: %+v", got)
	}
	if last := events.all[len(events.all)-1]; !last.RedriveFailed || last.State != shard.DeliveryPending || last.Made {
		t.Errorf("event %+v", last)
	}
	r.set(nil)
	advance(t, v, 19*time.Second)
	if got := r.results(); len(got) != 0 {
		t.Fatalf("ended before the next try: %+v", got)
	}
	advance(t, v, time.Second)
	got := r.results()
	if len(got) != 1 || got[0].state != shard.DeliveryDeadLetter || len(got[0].attempts) != 1 {
		t.Fatalf("got %+v", got)
	}
	if n := len(r.sender.attempts()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// TestDeadLettersWaitInTheBacklog: with its queue out of reach no dead letter is in
// memory, each endpoint has had one request, and all arrive afterwards, with the
// cause and the number of attempts of when they failed.
func TestDeadLettersWaitInTheBacklog(t *testing.T) {
	v := clock.NewVirtual(start)
	r := newRig(t, v, func(context.Context, *Request) Outcome { return Outcome{Class: ClientError, Detail: "HTTP 410"} }, nil)
	r.set(unavailable)
	sub := testSub("a", "host", topic.HTTP, testDLQ)
	r.add(sub, retry.DefaultHTTP, 0)
	r.publish(sub.ARN, 100)
	advance(t, v, 61*time.Minute) // beyond the deadline
	if n := r.leased(); n != 0 || !r.dispatcher.Idle() {
		t.Errorf("%d of 100 are leased while they wait", n)
	}
	r.set(nil)
	advance(t, v, 20*time.Second)
	for _, f := range r.results() {
		if f.state != shard.DeliveryDeadLetter || f.reason != "client-side error: HTTP 410" || len(f.attempts) != 1 {
			t.Fatalf("ended as %+v", f)
		}
	}
	if n := len(r.results()); n != 100 || len(r.sender.attempts()) != 100 {
		t.Errorf("%d of 100 became dead letters, %d attempts were made", n, len(r.sender.attempts()))
	}
	if !r.dispatcher.Idle() {
		t.Error("backlogs are remembered")
	}
}

// TestCutOffKeepsTheCause: a Stop that cuts the hand-over off keeps why it was to be,
// for the next process.
func TestCutOffKeepsTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, clock.System, func(context.Context, *Request) Outcome { return Outcome{Class: ClientError, Detail: "HTTP 410"} }, nil)
		r.set(func(arn.ARN) error { // the queue answers after a second
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			<-ctx.Done()
			return fault.New(fault.Unavailable, "")
		})
		sub := testSub("a", "host", topic.HTTP, testDLQ)
		r.add(sub, retry.DefaultHTTP, 0)
		r.publish(sub.ARN, 1)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := r.dispatcher.Stop(ctx); err == nil {
			t.Error("nothing was cut off")
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		en := r.subs[sub.ARN].entries[0]
		if want := (shard.Cause{Reason: "client-side error: HTTP 410", Attempt: 1}); en.cause != want || en.leased || len(en.history) != 1 {
			t.Errorf("kept %+v", en)
		}
	})
}

func TestDeadlineOfARetry(t *testing.T) {
	v := clock.NewVirtual(start)
	r := newRig(t, v, refuse, nil)
	sub := testSub("a", "host", topic.HTTP, testDLQ)
	r.add(sub, retry.Policy{NumRetries: 3, MinDelayTarget: 1500 * time.Second, MaxDelayTarget: 1500 * time.Second}, 0)
	r.publish(sub.ARN, 1)
	advance(t, v, 24*time.Hour)
	if n := len(r.sender.attempts()); n != 3 { // at 0, 1,500 and 3,000 s
		t.Errorf("%d attempts", n)
	}
	got := r.results()
	if len(got) != 1 || got[0].reason != reasonExpired || !got[0].at.Equal(start.Add(time.Hour+time.Millisecond)) || len(got[0].attempts) != 3 {
		t.Errorf("got %+v", got)
	}
}

func TestThrottle(t *testing.T) {
	v := clock.NewVirtual(start)
	r := newRig(t, v, func(_ context.Context, r *Request) Outcome {
		if idOf(r.Message)%10 == 0 && r.Attempt == 1 { // some need a retry
			return Outcome{Class: ServerError}
		}
		return Outcome{Class: Success}
	}, nil)
	sub := testSub("a", "host", topic.HTTP, testDLQ)
	other := testSub("b", "host", topic.HTTP, testDLQ)
	r.add(sub, retry.DefaultHTTP, 3)
	r.add(other, retry.DefaultHTTP, 0)
	r.publish(sub.ARN, 400)
	r.publish(other.ARN, 9)
	advance(t, v, time.Minute-time.Millisecond)

	var of []made
	for _, a := range r.sender.attempts() {
		if a.sub == sub.ARN {
			of = append(of, a)
		} else if !a.at.Equal(start) {
			t.Errorf("another subscription of the host waited until %s", a.at.Sub(start))
		}
	}
	if len(of) != 180 {
		t.Errorf("%d attempts in a minute at 3 a second", len(of))
	}
	next := uint64(1)
	for i, a := range of {
		if i >= 3 && a.at.Sub(of[i-3].at) < time.Second {
			t.Errorf("4 attempts within %s", a.at.Sub(of[i-3].at))
		}
		if a.attempt == 1 {
			if a.id != next {
				t.Fatalf("message %d came when %d was next", a.id, next)
			}
			next++
		}
	}
	advance(t, v, 10*time.Minute)
	for _, f := range r.results() {
		want := 1
		if f.sub == sub.ARN && f.id%10 == 0 {
			want = 2
		}
		if f.state != shard.DeliveryDelivered || len(f.attempts) != want {
			t.Fatalf("message %d: %s after %d attempts", f.id, f.state, len(f.attempts))
		}
	}
	if n := len(r.results()); n != 409 {
		t.Errorf("%d deliveries ended", n)
	}
	if !r.dispatcher.Idle() {
		t.Error("backlogs are remembered")
	}
}

// TestThrottleHoldsOverAMinute: attempts come within 5 % of the rate, in order,
// from a backlog that is longer than the minute, at an endpoint that takes its
// time and at one that does not; and each message has its first attempt only.
func TestThrottleHoldsOverAMinute(t *testing.T) {
	for _, rate := range []int{1, 7, 30} {
		for _, slow := range []time.Duration{0, 300 * time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, clock.System, func(ctx context.Context, r *Request) Outcome {
					if slow > 0 {
						done, cancel := context.WithTimeout(ctx, slow)
						defer cancel()
						<-done.Done()
					}
					return Outcome{Class: Success}
				}, nil)
				sub := testSub("a", "host", topic.HTTP, testDLQ)
				r.add(sub, retry.DefaultHTTP, rate)
				r.publish(sub.ARN, 61*rate)
				wait(t, time.Minute-time.Millisecond)
				made := r.sender.attempts()
				if n := len(made); float64(n) < 0.95*60*float64(rate) || float64(n) > 1.05*60*float64(rate) {
					t.Errorf("%d attempts in a minute at %d a second, slow %s", n, rate, slow)
				}
				for i, a := range made {
					if a.id != uint64(i+1) || a.attempt != 1 {
						t.Fatalf("attempt %d of message %d where message %d was next", a.attempt, a.id, i+1)
					}
				}
			})
		}
	}
}

// TestThrottleLetsMessagesExpire: what waits for the throttle expires on time.
func TestThrottleLetsMessagesExpire(t *testing.T) {
	v := clock.NewVirtual(start)
	r := newRig(t, v, succeed, nil)
	sub := testSub("a", "host", topic.HTTP, testDLQ)
	r.add(sub, retry.DefaultHTTP, 1)
	r.publish(sub.ARN, 3700)
	advance(t, v, time.Hour)
	if n := len(r.sender.attempts()); n != 3601 { // at 0 s, …, 3,600 s
		t.Errorf("%d attempts in an hour at 1 a second", n)
	}
	advance(t, v, time.Second)
	dead := 0
	for _, f := range r.results() {
		if f.state == shard.DeliveryDeadLetter {
			dead++
			if !f.at.Equal(start.Add(time.Hour + time.Millisecond)) {
				t.Fatalf("message %d expired after %s", f.id, f.at.Sub(start))
			}
		}
	}
	if dead != 99 || len(r.results()) != 3700 || len(r.sender.attempts()) != 3601 {
		t.Errorf("%d expired, %d ended, %d attempts", dead, len(r.results()), len(r.sender.attempts()))
	}
}

// TestHostLimitLetsMessagesExpire: so does what waits for its host.
func TestHostLimitLetsMessagesExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, clock.System, hang, func(o *Options) { o.HostLimit = 1 })
		sub := testSub("a", "host", topic.HTTP, testDLQ)
		r.add(sub, retry.Policy{MinDelayTarget: time.Second, MaxDelayTarget: time.Second}, 0)
		began := clock.System.Now()
		r.publish(sub.ARN, 300)
		wait(t, 2*time.Hour)
		attempts, expired := 0, 0
		for _, f := range r.results() {
			if len(f.attempts) > 0 {
				attempts++
				continue
			}
			expired++
			if d := f.at.Sub(began); d < time.Hour || d > time.Hour+2*time.Millisecond {
				t.Fatalf("expired after %s", d)
			}
		}
		// One each 15 s; the one that begins at the deadline itself may.
		if attempts < 240 || attempts > 241 || attempts+expired != 300 {
			t.Errorf("%d attempted, %d expired", attempts, expired)
		}
	})
}

func TestPolicyChangeTakesEffectForTheNextAttempt(t *testing.T) {
	v := clock.NewVirtual(start)
	r := newRig(t, v, refuse, nil)
	sub := testSub("a", "host", topic.HTTP, testDLQ)
	r.add(sub, retry.DefaultHTTP, 0)
	r.publish(sub.ARN, 1)
	advance(t, v, 10*time.Second)
	r.add2(sub.ARN, retry.Policy{NumRetries: 2, MinDelayTarget: 5 * time.Second, MaxDelayTarget: 5 * time.Second})
	advance(t, v, time.Hour)
	var at []time.Duration
	for _, a := range r.sender.attempts() {
		at = append(at, a.at.Sub(start))
	}
	if d := cmp.Diff([]time.Duration{0, 20 * time.Second, 25 * time.Second}, at); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func (e *engine) add2(sub arn.ARN, p retry.Policy) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.subs[sub].policy = p
}
