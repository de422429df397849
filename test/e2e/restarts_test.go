package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// sampleDelay is the delay before a retry, counted from 1, of the sample of AWS's
// documentation.
func sampleDelay(retry int) time.Duration {
	switch {
	case retry <= 3:
		return 0
	case retry <= 5:
		return time.Second
	case retry <= 15:
		return exponential(1, 60, retry-6, 10)
	default:
		return 60 * time.Second
	}
}

const (
	samplePolicy = `{"healthyRetryPolicy":{"minDelayTarget":1,"maxDelayTarget":60,"numRetries":50,
		"numNoDelayRetries":3,"numMinDelayRetries":2,"numMaxDelayRetries":35,"backoffFunction":"exponential"}}`
	sampleAttempts = 51
)

// find shows one delivery; ok is false when the server is gone.
func (l *ladder) find(t *testing.T, id string) (d delivery, ok bool) {
	t.Helper()
	var out struct{ Deliveries []delivery }
	if l.try(t.Context(), http.MethodGet, "deliveries?subscription="+l.subscription, nil, &out) != nil {
		return d, false
	}
	for _, d = range out.Deliveries {
		if d.MessageID == id {
			return d, true
		}
	}
	t.Fatalf("the delivery of %s is not shown", id)
	return d, false
}

// TestKilledAtEveryAttempt runs the documented sample against an endpoint that
// kills the server with every first request of an attempt, and answers the
// second, after the restart, with 503. An attempt whose outcome nobody knows is
// made again, and no attempt is left out, counted twice, or made at another time.
func TestKilledAtEveryAttempt(t *testing.T) {
	t.Parallel()
	var server atomic.Pointer[process]
	var armed atomic.Bool
	published := make(chan struct{})
	requests := 0
	killing := newSink(t, func(string) int {
		if !armed.Load() {
			return http.StatusOK
		}
		<-published // the publisher has its answer
		if requests++; requests%2 == 1 {
			_ = server.Load().cmd.Process.Signal(os.Kill)
		}
		return http.StatusServiceUnavailable
	})
	addr, data := freeAddress(t), filepath.Join(t.TempDir(), "data")
	l := &ladder{process: startAt(t, addr, data, virtual...)}
	server.Store(l.process)
	l.dead = l.createQueue(t, "fallen")
	l.topic = l.createTopic(t, "ladder")
	l.subscription = l.subscribeSink(t, l.topic, killing,
		"RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("fallen")+`"}`, "DeliveryPolicy", samplePolicy)
	l.advance(t, "1h") // a restarted clock does not stand before the machine's
	armed.Store(true)
	id, err := l.publish(t.Context(), l.topic, "sample", "")
	close(published)
	if err != nil {
		t.Fatal(err)
	}

	starts := 0
	for range 3 * sampleAttempts {
		l.exit(t) // killed by the request of an attempt
		starts++
		l.process = launch(t, addr, exec.Command(binary, arguments(addr, data, virtual...)...))
		server.Store(l.process)
		if l.climb(t, id) {
			break
		}
	}
	d, _ := l.find(t, id)
	if starts != sampleAttempts || requests != 2*sampleAttempts || d.Attempt != sampleAttempts || d.State != "dead-letter" {
		t.Errorf("%d restarts, %d requests, attempt %d, state %s; want %d, twice that, and a dead letter", starts, requests, d.Attempt, d.State, sampleAttempts)
	}
	if len(d.Attempts) != sampleAttempts {
		t.Fatalf("%d attempts are shown", len(d.Attempts))
	}
	for i := 1; i < sampleAttempts; i++ {
		checkDelay(t, i, d.Attempts[i].At.Sub(d.Attempts[i-1].At), sampleDelay(i))
	}
	checkDeadLetter(t, l.client, l.dead, id, "sample")
}

// climb moves the clock of a server that has just been started until an attempt
// ends it, or, as over tells, until the delivery has ended.
func (l *ladder) climb(t *testing.T, id string) (over bool) {
	t.Helper()
	eventually(t, "an attempt is made", func() (bool, error) {
		select {
		case <-l.ended:
			return true, nil
		default:
		}
		var at advanced
		if err := l.try(t.Context(), http.MethodPost, "clock", object{"advance": "0s"}, &at); err != nil {
			return false, err
		}
		d, ok := l.find(t, id)
		if ok && d.NextAttemptAt != nil {
			_ = l.try(t.Context(), http.MethodPost, "clock", object{"advance": max(0, d.NextAttemptAt.Sub(at.Now)).String()}, nil)
		}
		over = ok && d.State == "dead-letter"
		return over, fmt.Errorf("state %s, attempt %d", d.State, d.Attempt)
	})
	return over
}

// TestRestartAtEveryRung kills the server between the attempts of the first
// phases of the ladder: it continues with the next at its time.
func TestRestartAtEveryRung(t *testing.T) {
	t.Parallel()
	addr, data := freeAddress(t), filepath.Join(t.TempDir(), "data")
	l := newLadder(t, startAt(t, addr, data, virtual...))
	l.advance(t, "1h") // a restarted clock does not stand before the machine's
	if _, err := l.publish(t.Context(), l.topic, "climb", ""); err != nil {
		t.Fatal(err)
	}
	d := l.awaitAttempts(t, 4)
	const rungs = 19
	for made := 4; made < rungs; made++ {
		l.sync(t)
		l.kill()
		l.process = startAt(t, addr, data, virtual...)
		l.fault(t, l.queue, "unavailable") // a restart forgets it
		after := l.only(t)
		if after.State != "pending" || after.Attempt != made || after.NextAttemptAt == nil || !after.NextAttemptAt.Equal(*d.NextAttemptAt) {
			t.Fatalf("after a kill: state %s, attempt %d, next at %v; before: %d, %s", after.State, after.Attempt, after.NextAttemptAt, made, d.NextAttemptAt)
		}
		l.advance(t, d.NextAttemptAt.Sub(l.advance(t, "0s").Now).String())
		d = l.awaitAttempts(t, made+1)
	}
	for i := 1; i < rungs; i++ {
		checkDelay(t, i, d.Attempts[i].At.Sub(d.Attempts[i-1].At), ladderDelay(i))
	}
	l.fault(t, l.queue, "none")
	l.advance(t, "20s")
	if d := l.only(t); d.State != "delivered" || d.Attempt != rungs+1 {
		t.Errorf("once the queue is back: state %s, attempt %d", d.State, d.Attempt)
	}
}
