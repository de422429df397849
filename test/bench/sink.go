package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// sink is an HTTP server that endpoints of subscriptions stand on: it confirms
// what subscribes it, counts what is delivered, and lets it wait if told so.
type sink struct {
	server *http.Server
	host   string
	epoch  time.Time // the stamps of messages count from it

	mu   sync.Mutex
	runs map[string]*sinkRun // by the first element of the path
}

// sinkRun is what the sink keeps of the deliveries under one path.
type sinkRun struct {
	epoch  time.Time
	prefix string // of its URLs
	tokens chan token
	hang   chan struct{} // not nil: deliveries wait until it is closed

	stamped   bool // only what begins with a stamp counts
	delivered atomic.Int64
	unsigned  atomic.Int64  // envelopes without a signature, of those delivered
	want      atomic.Int64  // 0: not known yet
	complete  chan struct{} // closed when want have been delivered
	once      sync.Once

	mu        sync.Mutex
	latencies histogram // from the stamp to the delivery
}

// token confirms a subscription.
type token struct{ topic, token string }

const (
	maxDelivery  = 1 << 20
	tokensAtMost = 100_000
)

func newSink() (*sink, error) {
	s := &sink{epoch: time.Now(), runs: map[string]*sinkRun{}}
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: requestTimeout}
	var err error
	s.host, err = s.listen()
	return s, err
}

// listen lets the sink be reached at one more port.
func (s *sink) listen() (host string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() { _ = s.server.Serve(l) }()
	return l.Addr().String(), nil
}

func (s *sink) close() { _ = s.server.Close() }

// begin makes a run.
func (s *sink) begin() *sinkRun {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &sinkRun{
		epoch: s.epoch, prefix: fmt.Sprintf("/%d", len(s.runs)+1),
		tokens: make(chan token, tokensAtMost), complete: make(chan struct{}),
	}
	s.runs[r.prefix] = r
	return r
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	prefix := r.URL.Path
	for i := 1; i < len(prefix); i++ {
		if prefix[i] == '/' {
			prefix = prefix[:i]
			break
		}
	}
	s.mu.Lock()
	run := s.runs[prefix]
	s.mu.Unlock()
	if run == nil {
		http.NotFound(w, r)
		return
	}
	run.take(w, r)
}

func (r *sinkRun) take(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, maxDelivery))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if request.Header.Get("X-Amz-Sns-Message-Type") == "SubscriptionConfirmation" {
		var in struct{ TopicArn, Token string }
		if err := json.Unmarshal(body, &in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.tokens <- token{in.TopicArn, in.Token}
		return
	}
	if r.hang != nil {
		select {
		case <-r.hang:
		case <-request.Context().Done():
			return
		}
	}
	if r.stamped {
		at, err := strconv.ParseInt(string(body[:min(stampSize, len(body))]), 16, 64)
		if err != nil {
			return // of no interest here
		}
		took := time.Since(r.epoch) - time.Duration(at)
		r.mu.Lock()
		r.latencies.add(took)
		r.mu.Unlock()
	}
	if bytes.HasPrefix(body, []byte("{")) {
		var envelope struct{ Signature string }
		if json.Unmarshal(body, &envelope) != nil || envelope.Signature == "" {
			r.unsigned.Add(1)
		}
	}
	r.count()
}

func (r *sinkRun) count() {
	if n := r.delivered.Add(1); n == r.want.Load() {
		r.once.Do(func() { close(r.complete) })
	}
}

// expect says how many deliveries complete the run.
func (r *sinkRun) expect(n int64) {
	r.want.Store(n)
	if r.delivered.Load() >= n {
		r.once.Do(func() { close(r.complete) })
	}
}

// await waits until all that is expected has been delivered, once.
func (r *sinkRun) await(ctx context.Context) error {
	timeout := time.NewTimer(settledWithin)
	defer timeout.Stop()
	select {
	case <-r.complete:
	case <-timeout.C:
		return fmt.Errorf("%d of %d messages delivered after %s", r.delivered.Load(), r.want.Load(), settledWithin)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if have, want := r.delivered.Load(), r.want.Load(); have != want {
		return fmt.Errorf("%d messages delivered, %d were published", have, want)
	}
	return nil
}

// stampSize is the length of the time that a stamped body begins with, in
// nanoseconds since the sink's epoch, in hexadecimal digits.
const stampSize = 16

var errNoToken = errors.New("no confirmation of a subscription came")

const tokenWithin = 20 * time.Second

// confirm confirms n subscriptions.
func (r *sinkRun) confirm(ctx context.Context, c *conn, n int) error {
	timeout := time.NewTimer(tokenWithin)
	defer timeout.Stop()
	for range n {
		select {
		case t := <-r.tokens:
			if err := confirmSubscription(c, t); err != nil {
				return err
			}
		case <-timeout.C:
			return errNoToken
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
