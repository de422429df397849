package process

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/limit"
)

const (
	// maxResponse is the largest answer of a function, in bytes.
	maxResponse = 6_291_556
	// maxHead bounds the head of a request, in bytes.
	maxHead = 64 << 10
	// maxDrained is how much of an oversized answer is read, so that the process receives the
	// error.
	maxDrained = 256 << 20
)

// job is an invocation that a process runs.
type job struct {
	work     *invoke.Work
	deadline time.Time
	done     chan *answer // takes one
	taken    bool         // guarded by the api
	answered bool         // likewise
	answers  bool         // likewise: its answer is being read
}

// answer is a process's answer to a job.
type answer struct {
	body    []byte
	failure *invoke.Failure
}

func newJob(w *invoke.Work, deadline time.Time) *job {
	return &job{work: w, deadline: deadline, done: make(chan *answer, 1)}
}

// api serves the Runtime API to one process.
type api struct {
	admit     func(net.Conn) bool // nil: all connections are accepted
	ready     chan struct{}       // closed when the process first asks for work
	failed    chan []byte         // has the process's report of a failed start
	extension atomic.Bool         // the process wants SIGTERM before it is killed
	answers   *limit.Budget       // bounds the memory of all answers being read; nil: no bound

	mu       sync.Mutex
	listener net.Listener // nil: not served yet
	conns    map[*apiConn]struct{}
	parked   *apiConn // waits for work; nil: no connection does
	job      *job     // the latest; nil: none
	starting bool     // the report of a failed start is being read
	asked    bool     // for work, at least once
	closed   bool
}

func newAPI(answers *limit.Budget) *api {
	return &api{answers: answers, ready: make(chan struct{}), failed: make(chan []byte, 1), conns: map[*apiConn]struct{}{}}
}

// serve serves connections of l until the api is closed.
func (a *api) serve(l net.Listener) {
	a.mu.Lock()
	a.listener = l
	if a.closed {
		_ = l.Close()
	}
	a.mu.Unlock()
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		if a.admit != nil && !a.admit(c) {
			_ = c.Close()
			continue
		}
		conn := &apiConn{api: a, Conn: c}
		a.mu.Lock()
		if a.closed || len(a.conns) >= maxConns {
			a.mu.Unlock()
			_ = c.Close()
			continue
		}
		a.conns[conn] = struct{}{}
		a.mu.Unlock()
		go conn.serve()
	}
}

// maxConns bounds the connections of a process.
const maxConns = 64

// close ends all connections.
func (a *api) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	if a.listener != nil {
		_ = a.listener.Close()
	}
	for c := range a.conns {
		_ = c.Close()
	}
}

// hand gives the process its next job, as soon as it asks for one.
func (a *api) hand(j *job) {
	a.mu.Lock()
	a.job = j
	c := a.parked
	a.parked = nil
	j.taken = c != nil
	a.mu.Unlock()
	if c != nil {
		c.sendJob(j)
	}
}

// taken reports whether the process has fetched a job.
func (a *api) taken(j *job) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return j.taken
}

// apiConn is a connection of the process.
type apiConn struct {
	net.Conn
	api   *api
	left  int64 // bytes that may still be read of this request
	moved atomic.Int64
	usual int // length of the last body without Content-Length
	out   []byte
}

// Read reads within the bounds of a request.
func (c *apiConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := c.Conn.Read(p)
	c.left -= int64(n)
	c.moved.Add(int64(n))
	return n, err
}

var _ limit.Peer = (*apiConn)(nil)

// Moved is how many bytes the process has sent.
func (c *apiConn) Moved() int64 { return c.moved.Load() }

// CutRead closes the connection of a process that delays the answers of others.
func (c *apiConn) CutRead() { _ = c.Close() }

// Cut is CutRead.
func (c *apiConn) Cut() { c.CutRead() }

func (c *apiConn) serve() {
	defer c.end()
	in := bufio.NewReader(c)
	for {
		c.left = maxHead
		r, err := readRequest(in)
		if err != nil {
			return
		}
		c.left = maxDrained
		if !c.answer(r) || r.close {
			return
		}
		if _, err := io.Copy(io.Discard, r.body); err != nil {
			return
		}
	}
}

func (c *apiConn) end() {
	_ = c.Close()
	a := c.api
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.conns, c)
	if a.parked == c {
		a.parked = nil
	}
}

const (
	runtimePath   = "/2018-06-01/runtime/"
	extensionPath = "/2020-01-01/extension/"
)

// answer answers a request; false ends the connection.
func (c *apiConn) answer(r *request) bool {
	path := r.path
	if rest, ok := strings.CutPrefix(path, runtimePath+"invocation/"); ok {
		if r.method == http.MethodGet && rest == "next" {
			return c.next()
		}
		id, what, _ := strings.Cut(rest, "/")
		if r.method == http.MethodPost && (what == "response" || what == "error") {
			return c.done(r, id, what == "error")
		}
	}
	switch {
	case path == runtimePath+"init/error" && r.method == http.MethodPost:
		return c.initError(r)
	case path == extensionPath+"register" && r.method == http.MethodPost:
		c.api.extension.Store(true)
		return c.reply(http.StatusOK, "Lambda-Extension-Identifier: "+newTraceID()+"\r\n", []byte(`{}`))
	case path == extensionPath+"event/next" && r.method == http.MethodGet:
		return true // no answer: the end comes as a signal
	}
	return c.refuse(http.StatusNotFound, "NotFound", "no such path")
}

// next fetches a waiting job, or parks the connection until there is one. The connection
// keeps reading, to detect that it is closed.
func (c *apiConn) next() bool {
	a := c.api
	a.mu.Lock()
	j := a.job
	if j != nil && j.taken && !j.answered {
		a.mu.Unlock()
		return c.refuse(http.StatusForbidden, "InvalidStateTransition", "the invocation under way has no answer yet")
	}
	if !a.asked {
		a.asked = true
		close(a.ready)
	}
	if j == nil || j.answered {
		a.parked = c
		j = nil
	} else {
		j.taken = true
	}
	a.mu.Unlock()
	return j == nil || c.sendJob(j)
}

// sendJob writes a job. Only one goroutine writes to a connection at a time: the process
// waits for the job before its next request.
func (c *apiConn) sendJob(j *job) bool {
	w := j.work
	trace := w.Trace
	if trace == "" {
		trace = newTrace()
	}
	payload := w.Payload
	if len(payload) == 0 {
		payload = []byte("{}")
	}
	b := append(c.out[:0], "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nLambda-Runtime-Aws-Request-Id: "...)
	b = append(b, w.RequestID...)
	b = append(b, "\r\nLambda-Runtime-Deadline-Ms: "...)
	b = strconv.AppendInt(b, j.deadline.UnixMilli(), 10)
	b = append(append(b, "\r\nLambda-Runtime-Invoked-Function-Arn: "...), w.FunctionARN...)
	b = append(append(b, "\r\nLambda-Runtime-Trace-Id: "...), oneLine(trace)...)
	if len(w.ClientContext) > 0 {
		b = append(append(b, "\r\nLambda-Runtime-Client-Context: "...), oneLine(string(w.ClientContext))...)
	}
	b = append(b, "\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(len(payload)), 10)
	b = append(b, "\r\n\r\n"...)
	if len(payload) <= maxCopied {
		c.out = append(b, payload...)
		return c.write(c.out)
	}
	c.out = b
	// A process that does not read must not delay its own end.
	_ = c.SetWriteDeadline(j.deadline)
	defer func() { _ = c.SetWriteDeadline(time.Time{}) }()
	_, err := (&net.Buffers{b, payload}).WriteTo(c.Conn) // in one write, so that the process wakes up once
	return err == nil
}

// maxCopied is the size up to which a body is copied behind its head.
const maxCopied = 16 << 10

// oneLine makes a text valid in a header.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, s)
}

func (c *apiConn) write(b []byte) bool {
	_, err := c.Write(b)
	return err == nil
}

// done receives the answer to the current job. It is admitted before it is read, so that the
// server holds only one answer of a process in memory.
func (c *apiConn) done(r *request, id string, failed bool) bool {
	a := c.api
	a.mu.Lock()
	j := a.job
	switch {
	case j == nil || !j.taken || j.work.RequestID != id:
		a.mu.Unlock()
		r.unasked()
		return c.refuse(http.StatusBadRequest, "InvalidRequestID", "Invalid request ID")
	case j.answered || j.answers:
		a.mu.Unlock()
		r.unasked()
		return c.refuse(http.StatusForbidden, "InvalidStateTransition", "the invocation has an answer")
	}
	j.answers = true
	a.mu.Unlock()
	var held limit.Reservation
	held.Of(a.answers)
	defer held.Release()
	body, whole, err := c.readBody(r, &held)
	a.mu.Lock()
	j.answers, j.answered = false, err == nil
	a.mu.Unlock()
	if err != nil {
		return c.unread(err)
	}
	switch {
	case !whole && !failed:
		j.done <- &answer{failure: &invoke.Failure{
			Type:    invoke.TypeResponseTooLarge,
			Message: fmt.Sprintf("Response payload size exceeded maximum allowed payload size (%d bytes).", maxResponse),
		}}
		return c.refuse(http.StatusRequestEntityTooLarge, "RequestEntityTooLarge",
			fmt.Sprintf("Exceeded maximum allowed payload size (%d bytes).", maxResponse))
	case failed:
		kind := r.kind
		if !whole {
			body = nil
		}
		if kind == "" {
			kind = "Runtime.Unknown"
		}
		j.done <- &answer{failure: &invoke.Failure{Body: body, Type: kind, Message: "the function failed"}}
	default:
		j.done <- &answer{body: body}
	}
	return c.accept()
}

// initError receives the report of a failed start.
func (c *apiConn) initError(r *request) bool {
	a := c.api
	a.mu.Lock()
	late := a.asked || a.starting
	a.starting = true
	a.mu.Unlock()
	if late {
		r.unasked()
		return c.refuse(http.StatusForbidden, "InvalidStateTransition", "the function is initialized")
	}
	var held limit.Reservation
	held.Of(a.answers)
	defer held.Release()
	body, whole, err := c.readBody(r, &held)
	if err != nil {
		a.mu.Lock()
		a.starting = false
		a.mu.Unlock()
		return c.unread(err)
	}
	if !whole {
		body = nil
	}
	ok := c.accept() // first, because the report makes the process end
	select {
	case c.api.failed <- body:
	default: // there was a report before
	}
	return ok
}

// unread answers a request whose body could not be read; false ends the connection.
func (c *apiConn) unread(err error) bool {
	if errors.Is(err, limit.ErrFull) {
		return c.refuse(http.StatusServiceUnavailable, "ServiceUnavailable", "too many answers of functions are under way")
	}
	return false
}

// readBody reads a body into memory of the reservation; whole is false if it exceeds the
// limit of answers.
func (c *apiConn) readBody(r *request, held *limit.Reservation) (body []byte, whole bool, err error) {
	size := c.usual + bytes.MinRead // without Content-Length it is usually as long as the last one
	if r.length >= 0 {
		size = int(min(r.length, maxResponse+1))
	}
	for {
		if err := held.Grow(context.Background(), int64(size-cap(body))); err != nil {
			return nil, false, err
		}
		held.Reading(c)
		if r.expect && !c.write([]byte("HTTP/1.1 100 Continue\r\n\r\n")) {
			return nil, false, net.ErrClosed
		}
		r.expect = false // 100 Continue was sent
		grown := make([]byte, len(body), size)
		copy(grown, body)
		body = grown
		for len(body) < cap(body) && err == nil {
			var n int
			n, err = r.body.Read(body[len(body):cap(body)])
			body = body[:len(body)+n]
		}
		switch {
		case int64(len(body)) == r.length:
			return body, true, nil
		case len(body) > maxResponse:
			_, err = io.Copy(io.Discard, r.body)
			return nil, false, err
		case errors.Is(err, io.EOF) && r.length < 0:
			c.usual = min(len(body), maxCopied)
			return body, true, nil
		case errors.Is(err, io.EOF):
			return nil, false, io.ErrUnexpectedEOF
		case err != nil:
			return nil, false, err
		}
		size = min(2*cap(body), maxResponse+1)
	}
}

var accepted = []byte("HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\nContent-Length: 16\r\n\r\n{\"status\":\"OK\"}\n")

func (c *apiConn) accept() bool { return c.write(accepted) }

func (c *apiConn) refuse(status int, kind, text string) bool {
	body, _ := json.Marshal(struct {
		Message string `json:"errorMessage"`
		Type    string `json:"errorType"`
	}{text, kind})
	return c.reply(status, "", body)
}

func (c *apiConn) reply(status int, headers string, body []byte) bool {
	b := append(c.out[:0], "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(append(append(b, ' '), http.StatusText(status)...), "\r\nContent-Type: application/json\r\n"...)
	b = append(append(b, headers...), "Content-Length: "...)
	b = strconv.AppendInt(b, int64(len(body)), 10)
	c.out = append(append(b, "\r\n\r\n"...), body...)
	return c.write(c.out)
}

// newTrace makes an X-Ray trace header of a trace that is not recorded.
func newTrace() string {
	id := newTraceID()
	return fmt.Sprintf("Root=1-%08x-%s;Parent=%s;Sampled=0", clock.System.Now().Unix(), id[:24], id[16:])
}

func newTraceID() string {
	var id [16]byte
	rand.Read(id[:])
	return hex.EncodeToString(id[:])
}
