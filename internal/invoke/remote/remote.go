// Package remote runs functions whose code is a URL: a server such as a container with
// Lambda's invocation API, as AWS's runtime interface emulator has it.
package remote

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/limit"
	"godwit.dev/godwit/internal/outgoing"
	"godwit.dev/godwit/internal/publicnet"
	"godwit.dev/godwit/internal/tracing"
)

const (
	// maxResponse is the largest answer of a function, in bytes.
	maxResponse = 6_291_556
	// maxHead bounds the head of an answer, in bytes: it holds a log's tail.
	maxHead = 64 << 10
	// connectTime is how long it may take to reach the server.
	connectTime = 5 * time.Second
	// invokePath is where the emulator answers.
	invokePath = "/2015-03-31/functions/function/invocations"
)

// Options are the dependencies and settings of a Runner.
type Options struct {
	// AllowPrivate allows loopback and private addresses.
	AllowPrivate bool
	// Own are the ports of this server, which are refused on its machine.
	Own publicnet.Ports
	// Connections bounds the open connections; nil: no bound.
	Connections *limit.Slots
	// Dial makes the connections; nil: over the network, to allowed addresses.
	Dial limit.Dial
}

// Runner sends invocations to other servers.
type Runner struct{ client *http.Client }

var _ invoke.Runner = (*Runner)(nil)

// New makes a runner.
func New(o Options) *Runner {
	dialer := &net.Dialer{Timeout: connectTime}
	dialer.Control = publicnet.Guard{AllowPrivate: o.AllowPrivate, Own: o.Own}.Control
	dial := dialer.DialContext
	if o.Dial != nil {
		dial = o.Dial
	}
	return &Runner{client: &http.Client{
		Transport: outgoing.New(&http.Transport{
			DialContext: o.Connections.Dial(dial), TLSHandshakeTimeout: connectTime, MaxResponseHeaderBytes: maxHead,
			MaxIdleConnsPerHost: 64, MaxIdleConns: (o.Connections.Len() + 3) / 4, IdleConnTimeout: time.Minute, DisableCompression: true,
		}),
		// A redirect is not a function's answer.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close ends the connections that are idle.
func (r *Runner) Close() { r.client.CloseIdleConnections() }

// Open makes an environment, which only counts.
func (r *Runner) Open(_ context.Context, t *function.Target, _ invoke.Output) (invoke.Environment, error) {
	u, err := url.Parse(t.Code.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, ErrURL
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = invokePath
	}
	e := &environment{runner: r, target: t, url: u.String()}
	e.open, e.close = context.WithCancel(context.Background())
	return e, nil
}

type environment struct {
	runner *Runner
	target *function.Target
	url    string
	open   context.Context // until Close
	close  context.CancelFunc
}

// Start does nothing: the operator starts the server.
func (e *environment) Start() (*invoke.Failure, error) { return nil, nil }

// Usable implements invoke.Environment: the operator gives the server its credentials.
func (e *environment) Usable() bool { return true }

// Close ends a running invocation.
func (e *environment) Close() { e.close() }

// Run sends an invocation.
func (e *environment) Run(w *invoke.Work) (invoke.Result, error) {
	began := clock.System.Now()
	deadline := began.Add(e.target.Timeout)
	ctx, cancel := context.WithDeadline(e.open, deadline)
	defer cancel()
	result, err := e.post(ctx, w, deadline)
	result.Duration = clock.System.Now().Sub(began)
	switch {
	case err == nil:
		return result, nil
	case e.open.Err() != nil:
		return invoke.Result{}, ErrClosed
	case ctx.Err() != nil:
		return invoke.Result{Duration: e.target.Timeout, Failure: &invoke.Failure{
			Type: invoke.TypeTimedOut, Status: invoke.StatusTimeout,
			Message: fmt.Sprintf("Task timed out after %.2f seconds", e.target.Timeout.Seconds()),
		}}, nil
	}
	return invoke.Result{}, err
}

// post sends an invocation and reads the answer. Errors of package fault can be shown to the
// caller.
func (e *environment) post(ctx context.Context, w *invoke.Work, deadline time.Time) (invoke.Result, error) {
	payload := w.Payload
	if len(payload) == 0 {
		payload = []byte("{}")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(payload))
	if err != nil {
		return invoke.Result{}, err
	}
	h := req.Header
	h.Set("Content-Type", "application/json")
	h.Set("X-Amz-Invocation-Type", "RequestResponse")
	h.Set("X-Amz-Log-Type", "Tail")
	h.Set("X-Amzn-RequestId", w.RequestID)
	h.Set("Lambda-Runtime-Invoked-Function-Arn", w.FunctionARN)
	h.Set("Lambda-Runtime-Deadline-Ms", fmt.Sprint(deadline.UnixMilli()))
	if w.Trace != "" {
		h.Set("X-Amzn-Trace-Id", w.Trace)
		if parent := tracing.FromXRay(w.Trace).Traceparent(); parent != "" {
			h.Set("Traceparent", parent)
		}
	}
	if len(w.ClientContext) > 0 {
		h.Set("X-Amz-Client-Context", base64.StdEncoding.EncodeToString(w.ClientContext))
	}
	resp, err := e.runner.client.Do(req)
	if err != nil {
		if errors.Is(err, publicnet.ErrOwn) {
			return invoke.Result{}, ErrOwnAddress
		}
		if errors.Is(err, publicnet.ErrForbidden) {
			return invoke.Result{}, ErrNotPublic
		}
		return invoke.Result{}, notReady(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	if err != nil {
		return invoke.Result{}, notReady(err)
	}
	return e.read(resp, body)
}

// notReady is the error for an unreachable server. The cause is not shown, as it would
// disclose the network.
func notReady(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return ErrNoAnswer
	}
	return ErrUnreachable
}

// read decodes an answer.
func (e *environment) read(resp *http.Response, body []byte) (invoke.Result, error) {
	tail, _ := base64.StdEncoding.DecodeString(resp.Header.Get("X-Amz-Log-Result"))
	r := invoke.Result{LogTail: tail}
	switch {
	case resp.StatusCode == http.StatusTooManyRequests:
		return r, ErrThrottled
	case resp.StatusCode != http.StatusOK:
		return r, ErrStatus.With(resp.StatusCode)
	case len(body) > maxResponse:
		r.Failure = &invoke.Failure{
			Type:    invoke.TypeResponseTooLarge,
			Message: fmt.Sprintf("Response payload size exceeded maximum allowed payload size (%d bytes).", maxResponse),
		}
	case resp.Header.Get("X-Amz-Function-Error") != "":
		r.Failure = &invoke.Failure{Body: body, Type: "Unhandled", Message: "the function failed"}
	default:
		r.Payload = body
	}
	return r, nil
}
