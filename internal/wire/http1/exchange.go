package http1

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// exchange is one request and its answer: the request's context and body, and
// with the methods of response what the handler writes to.
type exchange struct {
	conn    *conn
	left    int64 // of the body, in bytes; for whoever reads it
	failed  bool  // the body could not be read
	aborted bool  // the handler gave up
	status  int   // 0 until it is known
	out     *[]byte
	sent    bool                       // the answer is written, but for:
	due     int                        // bytes of it that its handler has not written yet
	last    bool                       // no other request may follow
	fixed   struct{ read, write bool } // the deadline is set, and is not extended

	reading sync.Mutex  // held while the body is read
	closed  atomic.Bool // by Close

	mu      sync.Mutex
	read    bool // the whole body
	ended   bool
	ctx     context.Context // made when somebody asks for Done
	cancel  context.CancelFunc
	watched chan struct{} // closed when the watch for a hang-up ends; nil before it begins
	peeked  int           // bytes that the watch read
	peek    [1]byte
}

// Read reads the body.
func (x *exchange) Read(p []byte) (n int, err error) {
	x.reading.Lock()
	defer x.reading.Unlock()
	x.limitBody()
	if x.closed.Load() { // maybe meanwhile, and limitBody has overwritten its deadline
		return 0, http.ErrBodyReadAfterClose
	}
	return x.readBody(p)
}

// limitBody bounds the time for what has not come of the body: once, so that a client that sends a byte
// at a time does not extend it.
func (x *exchange) limitBody() {
	if c := x.conn; !x.fixed.read && x.left > 0 && c.from == c.to {
		x.fixed.read = true
		c.limitRead(c.server.other.ReadTimeout)
	}
}

func (x *exchange) readBody(p []byte) (n int, err error) {
	if x.left == 0 {
		return 0, io.EOF
	}
	if x.failed {
		return 0, io.ErrUnexpectedEOF
	}
	p = p[:min(int64(len(p)), x.left)]
	c := x.conn
	if c.from < c.to {
		n = copy(p, c.buf[c.from:c.to])
		c.from += n
	} else {
		x.limitBody()
		if n, err = c.tcp.Read(p); n == 0 && err != nil {
			x.failed = true
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return 0, err
			}
			return 0, io.ErrUnexpectedEOF
		}
	}
	if x.left -= int64(n); x.left > 0 {
		return n, nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.read = true
	if x.ctx != nil && !x.ended {
		x.watch()
	}
	return n, io.EOF
}

// Close ends the reading of the body, also by another goroutine that reads it now, such as that of
// an http.Transport. What is left of it is discarded after the handler.
func (x *exchange) Close() error {
	x.closed.Store(true)
	if !x.reading.TryLock() {
		_ = x.conn.tcp.SetReadDeadline(time.Unix(1, 0)) // long ago
		x.reading.Lock()
		x.failed = true // no other request may follow: the deadline is not as conn knows it
	}
	x.reading.Unlock()
	return nil
}

// Deadline says that the request has none.
func (x *exchange) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done is closed when the caller hangs up or the handler has returned. The
// first call begins to watch the connection, as soon as the body is read.
func (x *exchange) Done() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ctx == nil {
		x.ctx, x.cancel = context.WithCancel(x.conn.context)
		if x.ended {
			x.cancel()
		} else if x.read {
			x.watch()
		}
	}
	return x.ctx.Done()
}

// Err is context.Canceled once Done is closed.
func (x *exchange) Err() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.ctx != nil:
		return x.ctx.Err()
	case x.ended:
		return context.Canceled
	default:
		return nil
	}
}

// Value lets package context find the context that is cancelled, so that
// deriving one from the request's starts no goroutine.
func (x *exchange) Value(key any) any {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ctx == nil {
		return x.conn.context.Value(key)
	}
	return x.ctx.Value(key)
}

// watch begins to detect that the caller hangs up, by a read. At most one byte of a pipelined
// request is read by that.
func (x *exchange) watch() {
	if x.watched != nil {
		return
	}
	x.watched = make(chan struct{})
	if x.conn.from == x.conn.to {
		x.conn.releaseBuffer()
	}
	x.conn.setReadDeadline(time.Time{})
	go func() {
		defer close(x.watched)
		n, err := x.conn.tcp.Read(x.peek[:])
		if x.peeked = n; n == 0 && err != nil {
			x.cancel()
		}
	}()
}

// end cancels the request's context and takes the connection back from the
// watch.
func (x *exchange) end() {
	x.mu.Lock()
	x.ended = true
	cancel, watched := x.cancel, x.watched
	x.mu.Unlock()
	if cancel == nil {
		return
	}
	if watched != nil {
		c := x.conn
		c.setReadDeadline(time.Unix(1, 0)) // long ago
		<-watched
		c.setReadDeadline(time.Time{})
		if x.peeked > 0 {
			if c.to == len(c.buf) {
				c.makeRoom(1)
			}
			c.buf[c.to] = x.peek[0]
			c.to++
		}
	}
	cancel()
}
