package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
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

// TestFunctionsKill9 kills the server three times while events are accepted and a
// queue feeds a function: the function gets each event that was accepted and each
// message that was sent, and the queue is empty in the end.
func TestFunctionsKill9(t *testing.T) {
	t.Parallel()
	w := &worker{seen: map[string]bool{}}
	far := httptest.NewServer(w)
	defer far.Close()
	addr, data := freeAddress(t), filepath.Join(t.TempDir(), "data")
	p := startAt(t, addr, data)
	p.lambda(t, http.MethodPost, "/2015-03-31/functions", object{
		"FunctionName": "f", "PackageType": "Image", "Role": "arn:aws:iam::" + account + ":role/r", "Timeout": 1, "Code": object{"ImageUri": far.URL},
	})
	queue := p.createQueue(t, "work", "VisibilityTimeout", "2")
	p.lambda(t, http.MethodPost, "/2015-03-31/event-source-mappings", object{"FunctionName": "f", "EventSourceArn": queueARN("work")})

	var mu sync.Mutex
	events, messages := map[string]bool{}, map[string]bool{}
	var numbers atomic.Int64
	load := func(ctx context.Context, kind string, accepted map[string]bool, accept func(ctx context.Context, name string) error) {
		for ctx.Err() == nil {
			name := fmt.Sprint(kind, numbers.Add(1))
			if accept(ctx, name) != nil {
				return // killed; whether this one was accepted nobody knows
			}
			mu.Lock()
			accepted[name] = true
			mu.Unlock()
		}
	}
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		var clients sync.WaitGroup
		for range 2 {
			clients.Go(func() {
				load(ctx, "event", events, func(ctx context.Context, name string) error {
					a, err := p.call(ctx, http.MethodPost, "/2015-03-31/functions/f/invocations",
						map[string]string{"Authorization": signed("lambda"), "X-Amz-Invocation-Type": "Event"}, fmt.Appendf(nil, `{"ID":%q}`, name))
					if err == nil && a.status != http.StatusAccepted {
						t.Errorf("an event: %d %s", a.status, a.body)
						return fmt.Errorf("%d", a.status)
					}
					return err
				})
			})
			clients.Go(func() {
				load(ctx, "message", messages, func(ctx context.Context, name string) error {
					return p.sqs(ctx, "SendMessage", object{"QueueUrl": queue, "MessageBody": name}, nil)
				})
			})
		}
		pass(ctx, time.Second)
		p.kill()
		cancel()
		clients.Wait()
		p = startAt(t, addr, data)
	}
	if len(events) < 20 || len(messages) < 20 {
		t.Errorf("%d events and %d messages: that proves nothing", len(events), len(messages))
	}
	eventually(t, "the function has got all", func() (bool, error) {
		event, n := w.missing(events)
		message, m := w.missing(messages)
		return n+m == 0, fmt.Errorf("%d events (%s) and %d messages (%s) are missing", n, event, m, message)
	})
	eventually(t, "the queue is empty", func() (bool, error) {
		counts := p.counts(t, queue)
		return counts == [3]int{}, fmt.Errorf("it holds %v", counts)
	})
	t.Logf("%d events and %d messages", len(events), len(messages))
}
