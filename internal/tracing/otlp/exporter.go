// Package otlp exports spans to a collector by OTLP: JSON over HTTP.
//
// The server never waits for it. Spans that have ended wait in a bounded queue; when it is
// full, they are dropped and counted. One goroutine takes them out in batches and sends these
// one after the other, with retries as the collector requests, within a bound. Source: the
// OpenTelemetry Protocol specification, 1.9, "OTLP/HTTP".
package otlp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"godwit.dev/godwit/internal/clock"
)

// The default bounds of OpenTelemetry's SDKs.
const (
	queueLength = 2048            // waiting spans
	batchLength = 512             // spans in a request
	batchWait   = 5 * time.Second // for more spans for a request
	requestTime = 10 * time.Second
)

// Retries of a request after a temporary failure.
const (
	firstPause  = time.Second // doubling, with up to as much jitter
	longPause   = 10 * time.Second
	tries       = 6
	longestWait = time.Minute // that a collector may request
)

// maxAnswer bounds the bytes read of an answer.
const maxAnswer = 64 << 10

// Options configure an Exporter. URL, Transport, Logger and Jitter are required.
type Options struct {
	URL       string      // of the collector's traces: http://HOST:4318/v1/traces
	Header    http.Header // that it requires, such as Authorization; may be nil
	Transport http.RoundTripper
	Logger    *slog.Logger
	Jitter    *clock.Jitter
}

// Exporter exports spans that have ended, until Shutdown.
type Exporter struct {
	options Options
	queue   chan sdk.ReadOnlySpan
	// ending is closed when no more spans come, cutOff is done when waiting spans are not sent
	// any more, and ended is closed at the end of the goroutine.
	ending, ended chan struct{}
	end           sync.Once
	cutOff        context.Context
	cut           context.CancelFunc
	host          string // of the collector
	failing       bool   // the latest batch was not accepted

	exported, dropped, failed atomic.Int64
}

var _ sdk.SpanProcessor = (*Exporter)(nil)

// New begins to export.
func New(o Options) *Exporter {
	e := &Exporter{options: o, queue: make(chan sdk.ReadOnlySpan, queueLength), ending: make(chan struct{}), ended: make(chan struct{})}
	if u, err := url.Parse(o.URL); err == nil {
		e.host = u.Host
	}
	e.cutOff, e.cut = context.WithCancel(context.Background())
	go e.run()
	return e
}

// Counts reports how many spans a collector has accepted; how many were dropped, as the queue
// was full; and how many could not be sent.
func (e *Exporter) Counts() (exported, dropped, failed int64) {
	return e.exported.Load(), e.dropped.Load(), e.failed.Load()
}

// OnStart implements sdk.SpanProcessor.
func (e *Exporter) OnStart(context.Context, sdk.ReadWriteSpan) {}

// OnEnd implements sdk.SpanProcessor. It does not block.
func (e *Exporter) OnEnd(s sdk.ReadOnlySpan) {
	select {
	case e.queue <- s:
	default:
		e.dropped.Add(1)
	}
}

// ForceFlush implements sdk.SpanProcessor. Nobody calls it: Shutdown sends waiting spans.
func (e *Exporter) ForceFlush(context.Context) error { return nil }

// Shutdown sends waiting spans, once each, until ctx ends. Spans that end later are dropped.
func (e *Exporter) Shutdown(ctx context.Context) error {
	e.end.Do(func() { close(e.ending) })
	defer e.cut()
	select {
	case <-e.ended:
		return nil
	case <-ctx.Done():
		e.cut()
		<-e.ended
		return context.Cause(ctx)
	}
}

// run sends batches until there are no more.
func (e *Exporter) run() {
	defer close(e.ended)
	for {
		batch, last := e.collect()
		if len(batch) > 0 {
			e.send(batch)
		}
		if last && len(e.queue) == 0 {
			return
		}
	}
}

// collect waits for a batch; last says that no more spans will come.
func (e *Exporter) collect() (batch []sdk.ReadOnlySpan, last bool) {
	var over <-chan struct{}
	stop := func() bool { return false }
	defer func() { stop() }()
	for len(batch) < batchLength {
		select {
		case s := <-e.queue:
			batch = append(batch, s)
			continue
		default:
		}
		if len(batch) > 0 && over == nil {
			over, stop = clock.After(clock.System, batchWait)
		}
		select {
		case s := <-e.queue:
			batch = append(batch, s)
		case <-over:
			return batch, false
		case <-e.ending:
			return batch, true
		}
	}
	return batch, false
}

// refused is an unsuccessful answer of the collector.
type refused struct {
	status int
	wait   time.Duration // that it requests; 0: none
}

func (r *refused) Error() string { return "HTTP " + strconv.Itoa(r.status) }

// again reports that the request may be retried. Source: OTLP/HTTP, "Retryable Response Codes".
func (r *refused) again() bool {
	switch r.status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// send delivers a batch, or drops it.
func (e *Exporter) send(batch []sdk.ReadOnlySpan) {
	rejected := int64(0)
	body, err := encode(batch)
	if err == nil {
		rejected, err = e.deliver(body)
	}
	if err != nil {
		rejected = int64(len(batch))
	}
	rejected = min(max(rejected, 0), int64(len(batch)))
	e.failed.Add(rejected)
	e.exported.Add(int64(len(batch)) - rejected)
	if failing := rejected > 0; failing != e.failing {
		e.failing = failing
		if failing {
			e.options.Logger.Warn("the collector of traces does not take spans; they are lost until it does", "collector", e.host, "spans", rejected, "error", err)
		} else {
			e.options.Logger.Info("the collector of traces takes spans again", "collector", e.host)
		}
	}
}

// deliver posts a batch, with retries, within bounds.
func (e *Exporter) deliver(body []byte) (rejected int64, err error) {
	pause := firstPause
	for try := 1; ; try++ {
		if rejected, err = e.post(body); err == nil || try == tries || e.stopping() {
			return rejected, err
		}
		wait := pause + time.Duration(float64(pause)*e.options.Jitter.Float64())
		if r, ok := errors.AsType[*refused](err); ok {
			if !r.again() || r.wait > longestWait {
				return 0, err
			}
			wait = cmp.Or(r.wait, wait)
		}
		pause = min(2*pause, longPause)
		over, stop := clock.After(clock.System, wait)
		select {
		case <-over:
		case <-e.ending: // one last attempt, at once
			stop()
		}
	}
}

func (e *Exporter) stopping() bool {
	select {
	case <-e.ending:
		return true
	default:
		return false
	}
}

// post makes one request. Redirects are not followed: the headers may be secret.
func (e *Exporter) post(body []byte) (rejected int64, err error) {
	ctx, cancel := context.WithTimeout(e.cutOff, requestTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.options.URL, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	maps.Copy(r.Header, e.options.Header)
	r.Header.Set("Content-Type", "application/json")
	answer, err := e.options.Transport.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return 0, &refused{answer.StatusCode, clock.RetryAfter(answer.Header, clock.System.Now())}
	}
	if err != nil || len(said) == 0 {
		return 0, nil // it was accepted
	}
	var partial struct {
		PartialSuccess struct {
			RejectedSpans json.RawMessage `json:"rejectedSpans"` // a number, or one as a string
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(said, &partial) != nil {
		return 0, nil // of a collector with another form of answers
	}
	_, _ = fmt.Sscanf(string(bytes.Trim(partial.PartialSuccess.RejectedSpans, `"`)), "%d", &rejected) // else none
	return rejected, nil
}
