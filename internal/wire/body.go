package wire

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/limit"
)

// defaultMaxBody bounds a request's body, in bytes: a form may take three times what
// it holds, and JSON six times.
const defaultMaxBody = 8 << 20

// Buffers of up to maxPooled bytes are pooled, in two pools: those that count against the
// memory limit, and smaller ones that do not.
const maxPooled = 128 << 10

var (
	buffers      = sync.Pool{New: func() any { return &buffer{b: make([]byte, 0, 4<<10)} }}
	largeBuffers = sync.Pool{New: func() any { return &buffer{b: make([]byte, 0, maxPooled)} }}
)

// buffer is what a request's body is read into, or its answer written.
type buffer struct{ b []byte }

// getBuffer gives an empty buffer for about size bytes; 0: the size is not known.
func getBuffer(size int) *buffer {
	if size <= limit.Free {
		return buffers.Get().(*buffer)
	}
	b := largeBuffers.Get().(*buffer)
	if size > cap(b.b) {
		b.b = make([]byte, 0, size)
	}
	return b
}

// release returns the buffer to its pool; nothing may alias it any more.
func (b *buffer) release() {
	b.b = b.b[:0]
	switch {
	case cap(b.b) <= limit.Free:
		buffers.Put(b)
	case cap(b.b) <= maxPooled:
		largeBuffers.Put(b)
	}
}

// Few operations take a body of more than largeBody bytes. At most maxLarge of them run at once,
// as each holds several times that in memory until it is answered.
const (
	largeBody = 8 << 20
	maxLarge  = 4
)

// decoded is how many bytes of memory a request takes for each byte of its body: the body and
// the decoded input.
const decoded = 2

// DefaultPace is the default of Options.Pace.
var DefaultPace = Pace{Window: 10 * time.Second, Rate: 4 << 10, Whole: time.Minute}

// Pace is the minimum rate at which a body must be sent.
type Pace struct {
	Window time.Duration // in which, on average, must come:
	Rate   int64         // bytes a second
	Whole  time.Duration // for the whole body, from the request's head on
}

// Keeps reports whether so many bytes are enough for a window.
func (p *Pace) Keeps(arrived int64) bool {
	return arrived >= int64(float64(p.Rate)*p.Window.Seconds())
}

// upload is the reading of a body.
type upload struct {
	x       *exchange
	whole   time.Time // when all of it must be there
	window  time.Time // when the window ends
	arrived int64     // in the window
	peer    limit.Peer
}

// begin sets the deadline of the first bytes.
func (u *upload) begin(x *exchange) {
	u.x, u.whole = x, x.started.Add(x.handler.Pace.Whole)
	begun := x.started
	if x.body.Held() > 0 { // there may have been a wait for memory, which is not the client's time
		begun = clock.System.Now()
	}
	u.limit(begun)
	u.reading()
}

// reading notes that the request waits for the client: a slow client is cut off while others
// wait for memory.
func (u *upload) reading() {
	if u.x.body.Held() <= limit.Free {
		return
	}
	if u.peer == nil {
		u.peer = limit.PeerOf(u.x.r.Context())
	}
	if u.peer != nil {
		u.x.body.Reading(u.peer)
	}
}

// limit sets the read deadline to the end of a window from now.
func (u *upload) limit(now time.Time) {
	u.window, u.arrived = now.Add(u.x.handler.Pace.Window), 0
	if u.whole.Before(u.window) {
		u.window = u.whole
	}
	u.x.readUntil(u.window)
}

// came counts n bytes of a body, and reports whether it is still fast enough.
func (u *upload) came(n int) error {
	x := u.x
	u.arrived += int64(n)
	u.reading()
	if x.body.WasCut() {
		return limit.ErrFull
	}
	// The clock is read only once enough for a window has come, which is rare in a fast
	// upload.
	if x.handler.Pace.Keeps(u.arrived) {
		return u.extend()
	}
	return nil
}

// extend begins another window.
func (u *upload) extend() error {
	u.limit(clock.System.Now())
	if u.x.body.WasCut() { // meanwhile: limit has overwritten the deadline that cut it off
		return limit.ErrFull
	}
	return nil
}

// readOnce appends one read to a buffer.
func (u *upload) readOnce(b *buffer) (n int, err error) {
	r := u.x.r
	if len(b.b) == cap(b.b) {
		if err := b.grow(u.x, int(r.ContentLength)); err != nil {
			return 0, err
		}
		if err := u.extend(); err != nil { // there may have been a wait for memory, as in begin
			return 0, err
		}
	}
	return b.readOnce(u.x, r.Body, r.ContentLength)
}

// failed is the refusal of a body that cannot be read. One that came too slowly is worth another try.
func (u *upload) failed(err error) error {
	switch {
	case fault.Is(err):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fault.New(fault.RequestTimeout, "The request body did not arrive in time.")
	}
	return fault.New(fault.MalformedInput, "The request body could not be read.")
}

// end resets the deadline to that of a request without a body.
func (u *upload) end() {
	x := u.x
	x.body.Working()
	x.readUntil(u.whole)
}

// readUntil sets the read deadline of the connection.
func (x *exchange) readUntil(t time.Time) {
	// This is what http.NewResponseController does, without its allocation.
	if w, ok := x.w.(interface{ SetReadDeadline(time.Time) error }); ok {
		_ = w.SetReadDeadline(t)
		return
	}
	if _, wrapped := x.w.(interface{ Unwrap() http.ResponseWriter }); wrapped {
		_ = http.NewResponseController(x.w).SetReadDeadline(t) // fails without a connection, as in tests
	}
}

// reserve reserves n bytes for the body.
func (x *exchange) reserve(n int64) error {
	if x.body == nil && x.handler.Requests != nil {
		x.body = new(limit.Reservation)
		x.body.Of(x.handler.Requests)
	}
	return x.body.Grow(x.r.Context(), n)
}

// readBody fills a buffer with the request's body and refuses one of more than the
// limit as soon as that is known.
func (x *exchange) readBody() (*buffer, error) {
	r, most := x.r, x.bodyLimit()
	if r.Body == nil || r.ContentLength == 0 {
		return getBuffer(0), x.arrived(nil)
	}
	if r.ContentLength > most {
		return nil, x.tooLarge(most)
	}
	// The length is not trusted: memory for more than maxPooled bytes is reserved as they
	// come in.
	size := int(min(r.ContentLength, maxPooled))
	if size > limit.Free {
		if err := x.reserve(decoded * int64(size)); err != nil {
			return nil, err
		}
	}
	b := getBuffer(size)
	var u upload
	u.begin(x)
	for {
		n, err := u.readOnce(b)
		if int64(len(b.b)) > most {
			return b, x.tooLarge(most)
		}
		if errors.Is(err, io.EOF) {
			u.end()
			break
		}
		if err == nil {
			err = u.came(n)
		} else {
			err = u.failed(err)
		}
		if err != nil {
			if x.body.WasCut() {
				err = limit.ErrFull
			}
			return b, err
		}
	}
	if err := x.arrived(b.b); err != nil {
		return b, err
	}
	if err := b.unzip(x); err != nil {
		return b, err
	}
	if len(b.b) > largeBody {
		return b, x.holdLarge()
	}
	return b, nil
}

// readOnce appends one read to the buffer, which it grows if need be. expected is the length
// of the whole body, if that is positive.
func (b *buffer) readOnce(x *exchange, from io.Reader, expected int64) (int, error) {
	if len(b.b) == cap(b.b) {
		if err := b.grow(x, int(expected)); err != nil {
			return 0, err
		}
	}
	n, err := from.Read(b.b[len(b.b):cap(b.b)])
	b.b = b.b[:len(b.b)+n]
	return n, err
}

// grow doubles the buffer, but at most to expected and the one byte that shows the end.
func (b *buffer) grow(x *exchange, expected int) error {
	before := cap(b.b)
	size := max(2*before, 4<<10)
	if expected >= before {
		size = min(size, expected+1)
	}
	if size > limit.Free {
		x.body.Working() // the peer is not slow while we wait for memory
		if err := x.reserve(decoded * int64(size)); err != nil {
			return err
		}
	}
	next := make([]byte, len(b.b), size)
	copy(next, b.b)
	b.b = next
	if before > limit.Free {
		x.body.Shrink(decoded * int64(before))
	}
	return nil
}

// holdLarge waits for one of the maxLarge slots for large bodies.
func (x *exchange) holdLarge() error {
	if x.kept.large {
		return nil
	}
	select {
	case x.handler.large <- struct{}{}:
		x.kept.large = true
		return nil
	case <-x.r.Context().Done():
		return x.r.Context().Err()
	}
}

// unzip decompresses a compressed body, up to the body limit.
func (b *buffer) unzip(x *exchange) error {
	most := x.bodyLimit()
	encodings := x.r.Header["Content-Encoding"]
	if len(encodings) == 0 {
		return nil
	}
	switch encoding := encodings[0]; strings.ToLower(encoding) {
	case "", "identity":
		return nil
	case "gzip":
	default:
		return fault.Newf(fault.MalformedInput, "The content encoding %s is not supported.", printable(encoding))
	}
	if most > largeBody {
		if err := x.holdLarge(); err != nil {
			return err
		}
	}
	packed, err := gzip.NewReader(bytes.NewReader(b.b))
	if err != nil {
		return errUnzip
	}
	var plain buffer
	for from := io.LimitReader(packed, most+1); err == nil; {
		_, err = plain.readOnce(x, from, 0)
	}
	if fault.Is(err) {
		return err
	}
	if int64(len(plain.b)) > most {
		return x.tooLarge(most)
	}
	if !errors.Is(err, io.EOF) {
		return errUnzip
	}
	b.b = plain.b
	return nil
}

var errUnzip = fault.New(fault.MalformedInput, "The request body is not valid gzip.")
