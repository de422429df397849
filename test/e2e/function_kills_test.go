package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
)

// worker is a function that runs elsewhere, and knows what it was run with.
type worker struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (w *worker) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var event struct {
		ID      string
		Records []struct{ Body string }
	}
	if err != nil || json.Unmarshal(body, &event) != nil {
		rw.WriteHeader(http.StatusBadRequest)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if event.ID != "" {
		w.seen[event.ID] = true
	}
	for _, record := range event.Records {
		w.seen[record.Body] = true
	}
	io.WriteString(rw, "null")
}

// missing is one of the names that the function was not run with, and how many.
func (w *worker) missing(names map[string]bool) (one string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name := range names {
		if !w.seen[name] {
			one, n = name, n+1
		}
	}
	return one, n
}

// functionSiege is the load of a function on a server that is killed again and again:
// events, and a queue that feeds it. It gets each event that was accepted and each
// message that was sent, and the queue is empty in the end.
type functionSiege struct {
	*server
	worker  *worker
	far     *httptest.Server
	queue   string
	numbers atomic.Int64

	mu               sync.Mutex
	events, messages map[string]bool // that were accepted
	faults           []string
}

func newFunctionSiege(t *testing.T, on *server) *functionSiege {
	s := &functionSiege{server: on, worker: &worker{seen: map[string]bool{}}, events: map[string]bool{}, messages: map[string]bool{}}
	s.far = httptest.NewServer(s.worker)
	t.Cleanup(s.far.Close)
	return s
}

func (s *functionSiege) prepare(t *testing.T) {
	s.p.lambda(t, http.MethodPost, "/2015-03-31/functions", object{
		"FunctionName": "f", "PackageType": "Image", "Role": "arn:aws:iam::" + account + ":role/r", "Timeout": 1, "Code": object{"ImageUri": s.far.URL},
	})
	s.queue = s.p.createQueue(t, "events", "VisibilityTimeout", "2")
	s.p.lambda(t, http.MethodPost, "/2015-03-31/event-source-mappings", object{"FunctionName": "f", "EventSourceArn": queueARN("events")})
}

func (s *functionSiege) attack(ctx context.Context, clients *sync.WaitGroup) {
	clients.Go(func() { s.load(ctx, "event", s.events, s.invoke) })
	clients.Go(func() { s.load(ctx, "message", s.messages, s.send) })
}

func (s *functionSiege) load(ctx context.Context, kind string, accepted map[string]bool, accept func(ctx context.Context, name string) error) {
	for ctx.Err() == nil {
		name := fmt.Sprint(kind, s.numbers.Add(1))
		if accept(ctx, name) != nil {
			return // killed; whether this one was accepted nobody knows
		}
		s.mu.Lock()
		accepted[name] = true
		s.mu.Unlock()
	}
}

func (s *functionSiege) invoke(ctx context.Context, name string) error {
	a, err := s.p.call(ctx, http.MethodPost, "/2015-03-31/functions/f/invocations",
		map[string]string{"Authorization": signed("lambda"), "X-Amz-Invocation-Type": "Event"}, fmt.Appendf(nil, `{"ID":%q}`, name))
	if err == nil && a.status != http.StatusAccepted {
		err = fmt.Errorf("an event: %d %s", a.status, a.body)
		s.mu.Lock()
		s.faults = append(s.faults, err.Error())
		s.mu.Unlock()
	}
	return err
}

func (s *functionSiege) send(ctx context.Context, name string) error {
	return s.p.sqs(ctx, "SendMessage", object{"QueueUrl": s.queue, "MessageBody": name}, nil)
}

func (s *functionSiege) worked(lives int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.events) < lives || len(s.messages) < lives {
		return fmt.Errorf("%d events and %d messages, in %d lives", len(s.events), len(s.messages), lives)
	}
	return nil
}

func (s *functionSiege) check(t *testing.T) {
	for _, f := range s.faults {
		t.Error(f)
	}
	eventually(t, "the function has got all", func() (bool, error) {
		event, n := s.worker.missing(s.events)
		message, m := s.worker.missing(s.messages)
		return n+m == 0, fmt.Errorf("%d events (%s) and %d messages (%s) are missing", n, event, m, message)
	})
	eventually(t, "the function's queue is empty", func() (bool, error) {
		counts := s.p.counts(t, s.queue)
		return counts == [3]int{}, fmt.Errorf("it holds %v", counts)
	})
	t.Logf("%d events and %d messages", len(s.events), len(s.messages))
}
