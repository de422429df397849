package clustered

import (
	"io"
	"net/http"
	"sync"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/wire"
)

// pacedBody is a client's body that has to come as fast as the owner of the state demands: a
// client that stalls waits no longer for its answer than at the owner.
type pacedBody struct {
	io.ReadCloser
	pace    wire.Pace
	whole   time.Time // when all of it must be there; zero: nothing was read yet
	until   func(time.Time) error
	left    int64 // bytes that have not come; negative: not known
	arrived int64 // in this window

	mu     sync.Mutex
	closed bool // the connection may have another request by now
}

// paced bounds the time for a request's body.
func paced(w http.ResponseWriter, r *http.Request, pace wire.Pace) {
	if r.ContentLength == 0 {
		return
	}
	r.Body = &pacedBody{
		ReadCloser: r.Body, pace: pace, left: r.ContentLength,
		until: http.NewResponseController(w).SetReadDeadline,
	}
}

// begin begins another window.
func (b *pacedBody) begin() {
	now := clock.System.Now()
	if b.whole.IsZero() { // there may have been a wait for an owner, which is not the client's time
		b.whole = now.Add(b.pace.Whole)
	}
	b.arrived = 0
	end := now.Add(b.pace.Window)
	if b.whole.Before(end) {
		end = b.whole
	}
	b.limit(end)
}

// limit sets the deadline of reads; zero: none.
func (b *pacedBody) limit(until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		_ = b.until(until) // an error means that there is no connection, as in tests
	}
}

// Read implements io.Reader.
func (b *pacedBody) Read(p []byte) (n int, err error) {
	if b.whole.IsZero() {
		b.begin()
	}
	n, err = b.ReadCloser.Read(p)
	b.arrived += int64(n)
	b.left -= int64(n)
	switch {
	case b.left == 0 || err == io.EOF:
		b.limit(time.Time{}) // the answer may take long, and meanwhile a client that hangs up is noticed by a read
	case err == nil && b.arrived >= int64(float64(b.pace.Rate)*b.pace.Window.Seconds()):
		b.begin()
	}
	return n, err
}

// Close implements io.Closer.
func (b *pacedBody) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	return b.ReadCloser.Close()
}
