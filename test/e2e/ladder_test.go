package e2e_test

import (
	"fmt"
	"math"
	"net/http"
	"path/filepath"
	"testing"
	"time"
)

// The ladder of deliveries to queues: 3 immediate retries, 2 one second apart,
// 10 exponential ones from 1 s to 20 s, 100,000 that are 20 s apart.
const (
	ladderRetries  = 100_015
	ladderAttempts = 1 + ladderRetries

	// Of the attempts of one delivery, so many are shown.
	firstShown, lastShown = 20, 80
)

// exponential is the delay of retry i of n whose increments double.
func exponential(low, high float64, i, n int) time.Duration {
	s := low + (high-low)*(math.Exp2(float64(i))-1)/(math.Exp2(float64(n-1))-1)
	return time.Duration(s * float64(time.Second))
}

// ladderDelay is the delay before a retry, counted from 1.
func ladderDelay(retry int) time.Duration {
	switch {
	case retry <= 3:
		return 0
	case retry <= 5:
		return time.Second
	case retry <= 15:
		return exponential(1, 20, retry-6, 10)
	default:
		return 20 * time.Second
	}
}

// virtual are the flags of a server whose schedule is exact.
var virtual = []string{"--clock", "virtual", "--jitter", "0"}

// ladder is a topic with one subscription, whose queue is unavailable.
type ladder struct {
	*process
	topic, queue, subscription string
	dead                       string // URL of the dead-letter queue
}

func newLadder(t *testing.T, p *process) *ladder {
	t.Helper()
	l := &ladder{process: p, queue: queueARN("rungs")}
	p.createQueue(t, "rungs")
	l.dead = p.createQueue(t, "fallen")
	l.topic = p.createTopic(t, "ladder")
	l.subscription = p.subscribe(t, l.topic, "sqs", l.queue, "RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("fallen")+`"}`)
	p.fault(t, l.queue, "unavailable")
	return l
}

// sync returns once all that has happened is durable: a send makes it so.
func (l *ladder) sync(t *testing.T) {
	t.Helper()
	l.mustSQS(t, "SendMessage", object{"QueueUrl": l.createQueue(t, "sync"), "MessageBody": "x"}, nil)
}

// only is the one delivery of the subscription.
func (l *ladder) only(t *testing.T) delivery {
	t.Helper()
	return only(t, l.deliveries(t, l.subscription))
}

func only(t *testing.T, all []delivery) delivery {
	t.Helper()
	if len(all) != 1 {
		t.Fatalf("%d deliveries are shown, want 1", len(all))
	}
	return all[0]
}

// awaitAttempts waits until n attempts have been made and none is under way: the
// clock stands still, and what is due now is done on real time.
func (l *ladder) awaitAttempts(t *testing.T, n int) (d delivery) {
	t.Helper()
	eventually(t, fmt.Sprint(n, " attempts are made"), func() (bool, error) {
		d = l.only(t)
		return d.State == "pending" && d.Attempt == n, fmt.Errorf("state %s, attempt %d", d.State, d.Attempt)
	})
	return d
}

// TestLadder runs the whole ladder, 23 days of it.
func TestLadder(t *testing.T) {
	t.Parallel()
	// The last rung is hours before the end of the 24 days.
	l := newLadder(t, start(t, append(virtual, "--delivery-history", "48h")...))
	id, err := l.publish(t.Context(), l.topic, "climb", "")
	if err != nil {
		t.Fatal(err)
	}
	l.awaitAttempts(t, 4)

	began := time.Now()
	result := l.advance(t, "24d")
	t.Logf("24 days, %d timers: %s", result.Ran, time.Since(began).Round(time.Millisecond))

	d := l.only(t)
	if d.MessageID != id || d.State != "dead-letter" || d.Attempt != ladderAttempts || d.NextAttemptAt != nil {
		t.Errorf("message %s, state %s, attempt %d, next at %v; want %s, dead-letter, %d, none",
			d.MessageID, d.State, d.Attempt, d.NextAttemptAt, id, ladderAttempts)
	}
	checkLadder(t, d)
	checkDeadLetter(t, l.client, l.dead, id, "climb")
	l.fault(t, l.queue, "none")
	if got := l.counts(t, l.queueURL("rungs")); got != [3]int{} {
		t.Errorf("the queue that was unavailable has %v messages", got)
	}
}

// checkLadder compares the times of the attempts that are shown with the schedule.
func checkLadder(t *testing.T, d delivery) {
	t.Helper()
	if len(d.Attempts) != firstShown+lastShown {
		t.Fatalf("%d attempts are shown, want %d", len(d.Attempts), firstShown+lastShown)
	}
	for i, a := range d.Attempts {
		if a.Outcome != "server-error" {
			t.Errorf("attempt %d of those shown: outcome %q", i+1, a.Outcome)
		}
		if i == 0 || i == firstShown {
			continue
		}
		want := 20 * time.Second
		if i < firstShown {
			want = ladderDelay(i)
		}
		checkDelay(t, i, a.At.Sub(d.Attempts[i-1].At), want)
	}
	// Between the two ends of the history lie the attempts that are not shown.
	hidden := time.Duration(ladderAttempts-firstShown-lastShown+1) * 20 * time.Second
	checkDelay(t, firstShown, d.Attempts[firstShown].At.Sub(d.Attempts[firstShown-1].At), hidden)
}

// checkDelay allows for times that are kept in milliseconds.
func checkDelay(t *testing.T, retry int, got, want time.Duration) {
	t.Helper()
	if (got - want).Abs() > time.Millisecond {
		t.Errorf("retry %d came after %s, want %s", retry, got, want)
	}
}

// checkDeadLetter takes the one message out of a dead-letter queue.
func checkDeadLetter(t *testing.T, c client, queue, id, body string) {
	t.Helper()
	got, err := c.receive(t.Context(), queue, 5)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 {
		t.Fatalf("%d dead letters, want 1", len(got))
	}
	if n, err := openEnvelope(got[0].Body); err != nil || n.MessageId != id || n.Message != body {
		t.Errorf("dead letter %q, want the envelope of %s, %q", got[0].Body, id, body)
	}
}

// TestLadderGoesOn kills the server in the middle of a schedule, which continues
// at the same attempt and time, and in the end reaches the queue.
func TestLadderGoesOn(t *testing.T) {
	t.Parallel()
	addr, data := freeAddress(t), filepath.Join(t.TempDir(), "data")
	l := newLadder(t, startAt(t, addr, data, virtual...))
	id, err := l.publish(t.Context(), l.topic, "climb", "")
	if err != nil {
		t.Fatal(err)
	}
	l.awaitAttempts(t, 4)
	l.advance(t, "1h30s")
	before := l.only(t)
	if before.State != "pending" || before.Attempt < 100 || before.NextAttemptAt == nil {
		t.Fatalf("in the middle: state %s, attempt %d, next at %v", before.State, before.Attempt, before.NextAttemptAt)
	}
	l.sync(t)

	for range 2 {
		l.kill()
		l.process = startAt(t, addr, data, virtual...)
		after := l.only(t)
		if after.MessageID != id || after.State != "pending" || after.Attempt != before.Attempt ||
			after.NextAttemptAt == nil || !after.NextAttemptAt.Equal(*before.NextAttemptAt) {
			t.Fatalf("after a kill: message %s, state %s, attempt %d, next at %v; before: %s, %s, %d, %s", after.MessageID,
				after.State, after.Attempt, after.NextAttemptAt, before.MessageID, before.State, before.Attempt, before.NextAttemptAt)
		}
	}

	// A fault is forgotten by a restart; the attempts' history is not.
	l.fault(t, l.queue, "throttled")
	l.advance(t, "20s")
	next := l.only(t)
	if last := next.Attempts[len(next.Attempts)-1]; next.Attempt != before.Attempt+1 || !last.At.Equal(*before.NextAttemptAt) {
		t.Errorf("the next attempt was number %d at %s, want %d at %s", next.Attempt, last.At, before.Attempt+1, before.NextAttemptAt)
	}
	if !next.Attempts[0].At.Equal(before.Attempts[0].At) {
		t.Errorf("the first attempt was at %s before, and is now said to be at %s", before.Attempts[0].At, next.Attempts[0].At)
	}
	l.fault(t, l.queue, "none")
	l.advance(t, "20s")
	if d := l.only(t); d.State != "delivered" || d.Attempt != before.Attempt+2 {
		t.Errorf("once the queue is back: state %s, attempt %d; want delivered, %d", d.State, d.Attempt, before.Attempt+2)
	}
	checkDeadLetter(t, l.client, l.queueURL("rungs"), id, "climb") // a message like that, in the queue itself
}

// TestHTTPSchedule runs the sample of AWS's documentation against an endpoint
// that is down: 3 immediate retries, 2 one second apart, 10 exponential ones
// from 1 s to 60 s, 35 that are 60 s apart; 2,229 s in all.
func TestHTTPSchedule(t *testing.T) {
	t.Parallel()
	down := newSink(t, func(string) int { return http.StatusServiceUnavailable })
	l := &ladder{process: start(t, virtual...)}
	l.dead = l.createQueue(t, "fallen")
	l.topic = l.createTopic(t, "ladder")
	l.subscription = l.subscribeSink(t, l.topic, down,
		"RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("fallen")+`"}`,
		"DeliveryPolicy", samplePolicy)
	id, err := l.publish(t.Context(), l.topic, "sample", "")
	if err != nil {
		t.Fatal(err)
	}
	find := func() (d delivery) { // the confirmation was a delivery, too
		for _, d = range l.deliveries(t, l.subscription) {
			if d.MessageID == id {
				return d
			}
		}
		t.Fatalf("the delivery of %s is not shown", id)
		return d
	}
	eventually(t, "4 attempts are made", func() (bool, error) {
		d := find()
		return d.Attempt == 4 && d.State == "pending", fmt.Errorf("state %s, attempt %d", d.State, d.Attempt)
	})

	const attempts = sampleAttempts
	if early := l.advance(t, "2228s"); early.Next == nil || find().Attempt != attempts-1 {
		t.Errorf("2,228 s later: attempt %d, next timer at %v", find().Attempt, early.Next)
	}
	l.advance(t, "2s")
	d := find()
	seen, _ := down.count("sample")
	if seen != attempts || d.Attempt != attempts || d.State != "dead-letter" {
		t.Errorf("%d requests, attempt %d, state %s; want %d, dead-letter", seen, d.Attempt, d.State, attempts)
	}
	if len(d.Attempts) != attempts {
		t.Fatalf("%d attempts are shown", len(d.Attempts))
	}
	for i := 1; i < attempts; i++ {
		checkDelay(t, i, d.Attempts[i].At.Sub(d.Attempts[i-1].At), sampleDelay(i))
		if d.Attempts[i].Status != http.StatusServiceUnavailable {
			t.Errorf("attempt %d: status %d", i+1, d.Attempts[i].Status)
		}
	}
	if took := d.Attempts[attempts-1].At.Sub(d.Attempts[0].At).Round(time.Second); took != 2229*time.Second {
		t.Errorf("the schedule took %s, want 2,229 s", took)
	}
	checkDeadLetter(t, l.client, l.dead, id, "sample")
}
