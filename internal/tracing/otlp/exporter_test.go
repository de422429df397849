package otlp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/tracing"
)

// collector answers in memory.
type collector struct {
	mu      sync.Mutex
	answer  func(n int) (status int, header http.Header, body string, err error) // nil: 200
	at      []time.Duration                                                      // of requests, since began
	began   time.Time
	spans   []int // of requests
	header  http.Header
	blocked chan struct{} // nil: requests are answered at once
}

func (c *collector) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var got request
	if err := json.Unmarshal(body, &got); err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.at, c.header = append(c.at, clock.System.Now().Sub(c.began)), r.Header
	c.spans = append(c.spans, len(got.ResourceSpans[0].ScopeSpans[0].Spans))
	n, answer, blocked := len(c.at), c.answer, c.blocked
	c.mu.Unlock()
	if blocked != nil {
		select {
		case <-blocked:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	out := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}
	if answer != nil {
		var text string
		if out.StatusCode, out.Header, text, err = answer(n); err != nil {
			return nil, err
		}
		out.Body = io.NopCloser(strings.NewReader(text))
	}
	return out, nil
}

// world is an exporter of a tracer.
func world(t *testing.T, c *collector) (e *Exporter, spans func(n int), log *bytes.Buffer) {
	log = &bytes.Buffer{}
	c.began = clock.System.Now()
	e = New(Options{
		URL: "http://collector:4318/v1/traces", Header: http.Header{"Authorization": {"Bearer hunter2"}}, Transport: c,
		Logger: slog.New(slog.NewTextHandler(log, nil)), Jitter: clock.NewJitter(1),
	})
	tracer := tracing.New(tracing.Options{Clock: clock.System, Ratio: 1, Processor: e, Version: "1"})
	return e, func(n int) {
		for range n {
			tracer.Begin(tracing.Server, "a", tracing.Context{}).End()
		}
	}, log
}

func (c *collector) check(t *testing.T, e *Exporter, exported, dropped, failed int64, batches ...int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if a, b, d := e.Counts(); a != exported || b != dropped || d != failed {
		t.Errorf("%d exported, %d dropped, %d failed; want %d, %d, %d", a, b, d, exported, dropped, failed)
	}
	if len(c.spans) != len(batches) {
		t.Fatalf("batches of %v, want %v", c.spans, batches)
	}
	for i := range batches {
		if c.spans[i] != batches[i] {
			t.Fatalf("batches of %v, want %v", c.spans, batches)
		}
	}
}

func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{}
		e, spans, log := world(t, c)
		spans(3)
		clock.Wait(t.Context(), clock.System, batchWait-time.Millisecond)
		synctest.Wait()
		c.check(t, e, 0, 0, 0)
		clock.Wait(t.Context(), clock.System, time.Millisecond)
		synctest.Wait()
		c.check(t, e, 3, 0, 0, 3)
		spans(batchLength)
		synctest.Wait()
		c.check(t, e, 3+batchLength, 0, 0, 3, batchLength)
		spans(2)
		if err := e.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		c.check(t, e, 5+batchLength, 0, 0, 3, batchLength, 2)
		if c.header.Get("Authorization") != "Bearer hunter2" || c.header.Get("Content-Type") != "application/json" || log.Len() != 0 {
			t.Errorf("headers %v, log %s", c.header, log)
		}
		if err := e.Shutdown(t.Context()); err != nil { // again
			t.Error(err)
		}
	})
}

func TestRetries(t *testing.T) {
	unavailable := func(int) (int, http.Header, string, error) { return 503, nil, "", nil }
	for name, tt := range map[string]struct {
		answer   func(n int) (int, http.Header, string, error)
		requests int
		failed   int64
		after    time.Duration // of the second request, at least
	}{
		"what may be asked again is":       {unavailable, tries, 3, firstPause},
		"a refusal for good is not":        {func(int) (int, http.Header, string, error) { return 400, nil, "", nil }, 1, 3, 0},
		"nor is a redirect followed":       {func(int) (int, http.Header, string, error) { return 307, http.Header{"Location": {"/"}}, "", nil }, 1, 3, 0},
		"an error of the network is tried": {func(int) (int, http.Header, string, error) { return 0, nil, "", errors.New("no route") }, tries, 3, firstPause},
		"the collector says when": {func(n int) (int, http.Header, string, error) {
			return []int{429, 200}[n-1], http.Header{"Retry-After": {"30"}}, "", nil
		}, 2, 0, 30 * time.Second},
		"but not for long": {func(int) (int, http.Header, string, error) { return 503, http.Header{"Retry-After": {"3600"}}, "", nil }, 1, 3, 0},
		"part of a batch is rejected": {func(int) (int, http.Header, string, error) {
			return 200, nil, `{"partialSuccess":{"rejectedSpans":"2","errorMessage":"x"}}`, nil
		}, 1, 2, 0},
		"a number will do": {func(int) (int, http.Header, string, error) {
			return 200, nil, `{"partialSuccess":{"rejectedSpans":1}}`, nil
		}, 1, 1, 0},
		"more than there are are all": {func(int) (int, http.Header, string, error) {
			return 200, nil, `{"partialSuccess":{"rejectedSpans":99}}`, nil
		}, 1, 3, 0},
		"an empty partial success is success":  {func(int) (int, http.Header, string, error) { return 200, nil, `{"partialSuccess":{}}`, nil }, 1, 0, 0},
		"an answer that is no JSON is success": {func(int) (int, http.Header, string, error) { return 200, nil, `thanks`, nil }, 1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &collector{answer: tt.answer}
				e, spans, log := world(t, c)
				spans(3)
				clock.Wait(t.Context(), clock.System, 10*time.Minute)
				synctest.Wait()
				c.check(t, e, 3-tt.failed, 0, tt.failed, make3(tt.requests)...)
				if tt.after > 0 && c.at[1]-c.at[0] < tt.after {
					t.Errorf("it is asked again after %s, want %s or more", c.at[1]-c.at[0], tt.after)
				}
				if (tt.failed > 0) != strings.Contains(log.String(), "does not take spans") || strings.Contains(log.String(), "hunter2") {
					t.Errorf("the log says %s", log)
				}
				c.mu.Lock()
				c.answer = nil
				c.mu.Unlock()
				spans(1)
				if err := e.Shutdown(t.Context()); err != nil {
					t.Error(err)
				}
				if (tt.failed > 0) != strings.Contains(log.String(), "takes spans again") {
					t.Errorf("then the log says %s", log)
				}
			})
		})
	}
}

func make3(n int) (all []int) {
	for range n {
		all = append(all, 3)
	}
	return all
}

// TestFullQueue: nobody waits for a collector that hangs, and what it costs is bounded.
func TestFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{blocked: make(chan struct{})}
		e, spans, _ := world(t, c)
		spans(batchLength)
		synctest.Wait() // the first batch is on its way
		spans(queueLength + 7)
		c.check(t, e, 0, 7, 0, batchLength)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := e.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a shutdown that is cut off gives %v", err)
		}
		if _, dropped, failed := e.Counts(); dropped != 7 || failed != batchLength+queueLength {
			t.Errorf("%d dropped, %d failed", dropped, failed)
		}
	})
}

// TestShutdownTriesOnce: a server that ends does not wait for a collector that fails.
func TestShutdownTriesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{answer: func(int) (int, http.Header, string, error) { return 503, nil, "", nil }}
		e, spans, _ := world(t, c)
		spans(3)
		clock.Wait(t.Context(), clock.System, batchWait+firstPause/2)
		if err := e.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		c.check(t, e, 0, 0, 3, 3, 3)
	})
}
