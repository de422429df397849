package http1

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// readSize is how much of a request is read at once, in bytes.
const readSize = 4 << 10

// What is left of a body that its handler did not want is read on, up to
// maxDiscard bytes, to keep the connection. A connection that ends is read on while
// its caller sends lingerStep in lingerTime, so that the answer arrives: up to maxLinger bytes,
// which is more than ten of the largest messages, and for longestLinger at most.
const (
	maxDiscard    = 256 << 10
	maxLinger     = 32 << 20
	lingerStep    = 16 << 10
	lingerTime    = 500 * time.Millisecond
	longestLinger = 5 * time.Second
)

// slack is by which fraction of its timeout a deadline may be too early: setting one is
// expensive, so it is not set for each request.
const slack = 4

// halfCloser is a connection whose writing side can be closed by itself.
type halfCloser interface {
	net.Conn
	CloseWrite() error
}

// conn is a connection that has had plain requests only.
type conn struct {
	server *Server
	tcp    halfCloser
	remote string
	idle   atomic.Bool // waits for a request; whoever makes it false decides what follows

	context context.Context // what its requests' begin with

	buf      []byte // buf[from:to] was read and is not used yet; nil while a request only waits
	from, to int
	head     head
	answer   http.Header
	answered bool // a request, all of which are POSTs

	// The deadlines that are set; zero means none.
	readUntil, writeUntil time.Time
	sentAt                time.Time // when the latest answer was sent, if that took no time; zero: not known
}

var (
	errNotPlain = errors.New("http1: not a plain request")
	errStopping = errors.New("http1: the server stops")
)

// serve answers request after request.
func (c *conn) serve() {
	mine := true
	defer func() { // also where a handler ends its goroutine
		if mine {
			_ = c.tcp.Close()
		}
		c.server.forget(c)
	}()
	for again := true; again; {
		c.setState(http.StateIdle)
		size, err := c.readHead()
		if err == nil && !c.head.parse(c.buf[c.from:c.from+size]) {
			err = errNotPlain
		}
		if errors.Is(err, errNotPlain) {
			mine = false
			if c.answered { // by a POST, behind which net/http overlooks what some clients add
				c.skipLineEnds()
			}
			c.handOver()
			return
		}
		if err != nil {
			return
		}
		c.from += size
		c.setState(http.StateActive)
		c.answered = true
		x := c.newExchange()
		x.serve()
		again = !x.aborted && x.finish()
	}
}

// setState reports to the server's ConnState whether a request is being served.
func (c *conn) setState(state http.ConnState) {
	if report := c.server.other.ConnState; report != nil {
		report(c.tcp, state)
	}
}

// skipLineEnds drops up to two line ends (CRLF) from the buffer, as net/http does before the
// request that follows a POST: some clients send one after the body.
func (c *conn) skipLineEnds() {
	for range 4 {
		if c.from < c.to && (c.buf[c.from] == '\r' || c.buf[c.from] == '\n') {
			c.from++
		}
	}
}

// readHead reads until the buffer begins with a whole head, and returns its
// size with the blank line. It does not wait for the rest of one that cannot be
// plain.
func (c *conn) readHead() (size int, err error) {
	if c.from == c.to {
		if err := c.await(); err != nil {
			return 0, err
		}
	}
	for seen := 0; ; {
		held, from := c.buf[c.from:c.to], max(seen-len(endOfHead), 0)
		if i := bytes.Index(held[from:], endOfHead); i >= 0 {
			return from + i + len(endOfHead), nil
		}
		if len(held) >= c.server.maxHeader() || !beginsPlain(held, seen) {
			return 0, errNotPlain
		}
		if seen == 0 {
			c.limitRead(c.server.headTimeout())
		}
		seen = len(held)
		if err := c.readMore(); err != nil {
			return 0, err
		}
	}
}

// await waits for a request's first bytes.
func (c *conn) await() error {
	c.from, c.to = 0, 0
	if len(c.buf) != readSize {
		c.buf = readBuffers.Get().(*[readSize]byte)[:]
	}
	now := c.sentAt
	if now.IsZero() {
		now = clock.System.Now()
	}
	if t := c.server.idleTimeout(); t <= 0 || late(c.readUntil, now, t) {
		c.limitRead(t)
	}
	c.idle.Store(true)
	if c.server.stopping.Load() && c.idle.CompareAndSwap(true, false) {
		return errStopping
	}
	err := c.readMore()
	if !c.idle.CompareAndSwap(true, false) {
		return errStopping // closed by Shutdown
	}
	return err
}

// late reports that a deadline must be set again, which should be timeout after
// now.
func late(deadline, now time.Time, timeout time.Duration) bool {
	ahead := deadline.Sub(now)
	return deadline.IsZero() || ahead < timeout-timeout/slack || ahead > timeout
}

// readMore reads once, behind what is in the buffer.
func (c *conn) readMore() error {
	if c.to == len(c.buf) {
		c.makeRoom(readSize)
	}
	n, err := c.tcp.Read(c.buf[c.to:])
	c.to += n
	if n > 0 {
		return nil
	}
	return err
}

// readBuffers are what connections read into. A request that waits has none: a server may have
// thousands of long polls.
var readBuffers = sync.Pool{New: func() any { return new([readSize]byte) }}

// releaseBuffer gives the buffer away, which holds nothing.
func (c *conn) releaseBuffer() {
	if len(c.buf) == readSize {
		readBuffers.Put((*[readSize]byte)(c.buf))
	}
	c.buf, c.from, c.to = nil, 0, 0
}

// makeRoom moves what is in the buffer to a larger one.
func (c *conn) makeRoom(n int) {
	held := c.buf[c.from:c.to]
	c.buf = make([]byte, max(2*len(held), len(held)+n))
	c.from, c.to = 0, copy(c.buf, held)
}

// limitRead sets the read deadline to timeout from now; none if that is not positive.
func (c *conn) limitRead(timeout time.Duration) {
	if timeout > 0 {
		c.setReadDeadline(clock.System.Now().Add(timeout))
	} else if !c.readUntil.IsZero() {
		c.setReadDeadline(time.Time{})
	}
}

func (c *conn) setReadDeadline(t time.Time) {
	c.readUntil = t
	_ = c.tcp.SetReadDeadline(t) // a closed connection says so when it is read
}

// handOver gives the connection to net/http, with what was read of it.
func (c *conn) handOver() {
	_ = c.tcp.SetDeadline(time.Time{})
	c.server.handover.Give(&replayed{halfCloser: c.tcp, held: c.buf[c.from:c.to]})
}

// replayed is a connection that is handed over to net/http: it first returns what was read
// before. It scans what net/http reads for requests with both Content-Length and
// Transfer-Encoding, which net/http would not refuse; see framing.
type replayed struct {
	halfCloser
	held   []byte
	frames framing
	within atomic.Bool // a request's body, as far as it was read, and not ended
	reads  atomic.Bool
	closed atomic.Bool // by Close, though it may read on
}

func (r *replayed) Read(p []byte) (n int, err error) {
	r.reads.Store(true)
	defer r.reads.Store(false)
	switch {
	case r.closed.Load():
		return 0, net.ErrClosed
	case r.frames.lost():
		return 0, io.EOF
	case len(r.held) > 0 && len(p) > 0:
		n = copy(p, r.held)
		if r.held = r.held[n:]; len(r.held) == 0 {
			r.held = nil
		}
	default:
		n, err = r.halfCloser.Read(p)
	}
	r.frames.follow(p[:n])
	r.within.Store(r.frames.withinBody())
	return n, err
}

// Close closes the connection. Where a body is not read to its end, as net/http leaves it to a client that
// asked for the connection to be closed, it reads on before, by itself. A body that is being read is cut
// off: the server's Close has called.
func (r *replayed) Close() error {
	r.closed.Store(true)
	if r.reads.Load() || !r.within.Swap(false) || r.halfCloser.CloseWrite() != nil {
		return r.halfCloser.Close()
	}
	go func() {
		readOn(r.halfCloser)
		_ = r.halfCloser.Close()
	}()
	return nil
}

// CloseWrite ends the answers, and then reads on: net/http closes the connection 500 ms later
// whether the caller is still sending or not.
func (r *replayed) CloseWrite() error {
	r.within.Store(false)
	err := r.halfCloser.CloseWrite()
	if err == nil {
		readOn(r.halfCloser)
	}
	return err
}

// NetConn is the connection below.
func (r *replayed) NetConn() net.Conn { return r.halfCloser }

// newExchange returns the exchange of the request whose head was read.
func (c *conn) newExchange() *exchange {
	if c.answer == nil {
		c.answer = make(http.Header, 8)
	}
	clear(c.answer)
	return &exchange{conn: c, left: c.head.length, read: c.head.length == 0}
}

// serve runs the handler.
func (x *exchange) serve() {
	defer func() {
		x.end()
		cause := recover()
		if cause == nil {
			return
		}
		x.aborted = true
		if cause != http.ErrAbortHandler { //nolint:errorlint // the very value that net/http asks for
			x.conn.server.logf("http: panic serving %v: %v\n%s", x.conn.remote, cause, debug.Stack())
		}
	}()
	c := x.conn
	r := (&http.Request{
		Method:        http.MethodPost,
		URL:           &c.head.url,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        c.head.header,
		Body:          x,
		ContentLength: c.head.length,
		Host:          c.head.host,
		RemoteAddr:    c.remote,
		RequestURI:    c.head.target,
	}).WithContext(x)
	c.server.handler.ServeHTTP((*response)(x), r)
}

// readerFunc is an io.Reader.
type readerFunc func(p []byte) (int, error)

// Read implements io.Reader.
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// discard reads what is left of the body, if that is little, and reports
// whether nothing is left.
func (x *exchange) discard() bool {
	if !x.reading.TryLock() { // another goroutine reads it, until it is closed
		return false
	}
	defer x.reading.Unlock()
	if x.left > maxDiscard || x.failed {
		return false
	}
	if x.left > 0 {
		_, _ = io.Copy(io.Discard, readerFunc(x.readBody))
	}
	return x.left == 0
}
