package functionurl

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/limit"
)

const (
	maxBody = 6 << 20  // bytes, as of an invocation
	held    = 3        // bytes of memory for each byte of a body: it, and the event
	first   = 64 << 10 // bytes of a body for which memory is reserved before they come
)

// upload is the reading of a body. Its length is not trusted: memory is reserved as it comes, so that
// a client holds none by announcing a body that it does not send.
type upload struct {
	h      *Handler
	memory *limit.Reservation
	peer   limit.Peer
	until  func(time.Time) error // sets the deadline of reads; it fails without a connection, as in tests

	body    []byte
	whole   time.Time // when all of it must be there
	arrived int64     // since the deadline was last set
}

// receive reads the body. It returns why that cannot be had; nil: it can.
func (h *Handler) receive(w http.ResponseWriter, r *http.Request, a *asked, memory *limit.Reservation) *answer {
	if r.ContentLength > maxBody {
		return instead(http.StatusRequestEntityTooLarge, message(tooLarge))
	}
	if r.Body == nil || r.ContentLength == 0 {
		return nil
	}
	if h.Requests != nil {
		memory.Of(h.Requests)
	}
	u := upload{h: h, memory: memory, peer: limit.PeerOf(r.Context()), until: http.NewResponseController(w).SetReadDeadline}
	u.whole = clock.System.Now().Add(h.Pace.Whole)
	err := u.read(r.Context(), http.MaxBytesReader(w, r.Body, maxBody), r.ContentLength)
	if err == nil {
		a.body = u.body
		err = u.reserve(r.Context(), 2*int64(escapes(a.body))) // in the buffer that the event is written to, which grows
	}
	var large *http.MaxBytesError
	switch {
	case err == nil:
		return nil
	case memory.WasCut(), errors.Is(err, limit.ErrFull), r.Context().Err() != nil:
		return instead(http.StatusServiceUnavailable, message(unavailable))
	case errors.As(err, &large):
		return instead(http.StatusRequestEntityTooLarge, message(tooLarge))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return instead(http.StatusRequestTimeout, message("The request body did not arrive in time."))
	}
	return instead(http.StatusBadRequest, message("The request body could not be read."))
}

// read reads a body of a length; negative: it is not known.
func (u *upload) read(ctx context.Context, from io.Reader, length int64) error {
	if length < 0 {
		length = maxBody
	}
	for {
		if len(u.body) == cap(u.body) {
			if err := u.grow(ctx, length); err != nil {
				return err
			}
			if err := u.extend(); err != nil { // there may have been a wait for memory, which is not the client's time
				return err
			}
		}
		if u.peer != nil {
			u.memory.Reading(u.peer)
		}
		n, err := from.Read(u.body[len(u.body):cap(u.body)])
		u.body, u.arrived = u.body[:len(u.body)+n], u.arrived+int64(n)
		switch {
		case errors.Is(err, io.EOF):
			u.memory.Working()
			return nil
		case err != nil:
			return err
		case u.memory.WasCut():
			return limit.ErrFull
		case u.h.Pace.Keeps(u.arrived):
			if err := u.extend(); err != nil {
				return err
			}
		}
	}
}

// grow makes room for more of a body of up to length bytes.
func (u *upload) grow(ctx context.Context, length int64) error {
	size := min(max(2*int64(cap(u.body)), first), length+1) // one more, so that the end is read without growing
	if err := u.reserve(ctx, held*(size-int64(cap(u.body)))); err != nil {
		return err
	}
	larger := make([]byte, len(u.body), size)
	copy(larger, u.body)
	u.body = larger
	return nil
}

func (u *upload) reserve(ctx context.Context, n int64) error {
	if u.h.Requests == nil || n == 0 {
		return nil
	}
	return u.memory.Grow(ctx, n)
}

// extend gives the client time for as much as must come in a window.
func (u *upload) extend() error {
	u.arrived = 0
	until := clock.System.Now().Add(u.h.Pace.Window)
	if until.After(u.whole) {
		until = u.whole
	}
	_ = u.until(until)
	if u.memory.WasCut() { // meanwhile: the deadline that cut it off is overwritten
		return limit.ErrFull
	}
	return nil
}

// escapes is how many bytes more a body may have as a text in JSON.
func escapes(body []byte) (n int) {
	for _, c := range body {
		switch {
		case c < ' ':
			n += len(`u0000`)
		case c == '"', c == '\\':
			n++
		}
	}
	return n
}
