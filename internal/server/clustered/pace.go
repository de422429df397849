package clustered

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/wire"
)

// pacedBody is a client's body that has to come as fast as the owner of the state demands: a
// client that stalls waits no longer for its answer than at the owner. Time counts while the body is
// read: where an owner is waited for, or waits for memory itself, that is not the client's time.
type pacedBody struct {
	io.ReadCloser
	pace    wire.Pace
	until   func(time.Time) error
	whole   time.Duration // left for the whole body
	window  time.Duration // left of this window
	arrived int64         // in this window

	mu     sync.Mutex
	left   int64 // bytes that have not come; negative: not known
	closed bool  // the connection may have another request by now
}

// paced bounds the time for a request's body.
func paced(w http.ResponseWriter, r *http.Request, pace wire.Pace) {
	if r.ContentLength == 0 {
		return
	}
	r.Body = &pacedBody{
		ReadCloser: r.Body, pace: pace, whole: pace.Whole, window: pace.Window, left: r.ContentLength,
		until: http.NewResponseController(w).SetReadDeadline,
	}
}

// unpaced takes the bound away again: two that set the deadline of a connection would undo each
// other's.
func unpaced(r *http.Request) {
	if b, ok := r.Body.(*pacedBody); ok {
		r.Body = b.ReadCloser
	}
}

// limit sets the deadline of reads; zero: none. The caller has mu.
func (b *pacedBody) limit(until time.Time) {
	if !b.closed {
		_ = b.until(until) // an error means that there is no connection, as in tests
	}
}

// Read implements io.Reader.
func (b *pacedBody) Read(p []byte) (n int, err error) {
	begun := clock.System.Now()
	b.mu.Lock()
	b.limit(begun.Add(min(b.whole, b.window)))
	b.mu.Unlock()
	n, err = b.ReadCloser.Read(p)
	took := clock.System.Now().Sub(begun)
	b.whole, b.window = b.whole-took, b.window-took
	if b.arrived += int64(n); b.pace.Keeps(b.arrived) {
		b.arrived, b.window = 0, b.pace.Window
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left -= int64(n)
	switch {
	case errors.Is(err, io.EOF):
		b.left = 0
	case err != nil:
		return n, err
	}
	// The next read may be much later, and so may the answer: meanwhile a client that hangs up is
	// noticed by a read.
	b.limit(time.Time{})
	return n, err
}

// Close implements io.Closer. The server reads some of what is left, for which there has to be a deadline.
func (b *pacedBody) Close() error {
	b.mu.Lock()
	if b.left != 0 {
		b.limit(clock.System.Now().Add(b.pace.Window))
	}
	b.closed = true
	b.mu.Unlock()
	return b.ReadCloser.Close()
}
