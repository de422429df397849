package wire

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"sync"

	"godwit.dev/godwit/internal/fault"
)

// DefaultMaxBody bounds a request's body, in bytes.
const DefaultMaxBody = 2 << 20

// maxPooled bounds the buffers that are kept for later requests, in bytes.
const maxPooled = 128 << 10

var buffers = sync.Pool{New: func() any { return &buffer{make([]byte, 0, 4<<10)} }}

type buffer struct{ b []byte }

func getBuffer() *buffer { return buffers.Get().(*buffer) }

// release gives the buffer back; nothing may alias it any more.
func (b *buffer) release() {
	if cap(b.b) <= maxPooled {
		b.b = b.b[:0]
		buffers.Put(b)
	}
}

// Few operations take a body of more than largeBody bytes, and maxLarge of these
// at once: what they hold in memory until they are answered is several times that.
const (
	largeBody = 8 << 20
	maxLarge  = 4
)

// read fills the buffer with the request's body and refuses one of more than the
// limit as soon as that is known.
func (b *buffer) read(x *exchange) error {
	r, limit := x.r, x.bodyLimit()
	b.b = b.b[:0]
	if r.Body == nil || r.ContentLength == 0 {
		return nil
	}
	if r.ContentLength > limit {
		return x.tooLarge(limit)
	}
	// The length is the client's word: memory for more than a little of it is
	// taken only as the bytes come in.
	if n := int(min(r.ContentLength, maxPooled)); n > cap(b.b) {
		b.b = make([]byte, 0, n)
	}
	for {
		if len(b.b) == cap(b.b) {
			b.b = append(b.b, 0)[:len(b.b)]
		}
		n, err := r.Body.Read(b.b[len(b.b):cap(b.b)])
		b.b = b.b[:len(b.b)+n]
		if int64(len(b.b)) > limit {
			return x.tooLarge(limit)
		}
		if len(b.b) > largeBody && !x.large {
			if err := x.holdLarge(); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fault.New(fault.MalformedInput, "The request body could not be read.")
		}
	}
}

// holdLarge waits until the request may have a large body.
func (x *exchange) holdLarge() error {
	select {
	case x.handler.large <- struct{}{}:
		x.large = true
		return nil
	case <-x.r.Context().Done():
		return x.r.Context().Err()
	}
}

// unzip replaces a body that was sent compressed with what it holds, of at most
// limit bytes.
func (b *buffer) unzip(x *exchange) error {
	limit := x.bodyLimit()
	switch encoding := x.r.Header.Get("Content-Encoding"); strings.ToLower(encoding) {
	case "", "identity":
		return nil
	case "gzip":
	default:
		return fault.Newf(fault.MalformedInput, "The content encoding %s is not supported.", printable(encoding))
	}
	if limit > largeBody && !x.large {
		if err := x.holdLarge(); err != nil {
			return err
		}
	}
	packed, err := gzip.NewReader(bytes.NewReader(bytes.Clone(b.b)))
	if err != nil {
		return errUnzip
	}
	plain := bytes.NewBuffer(b.b[:0])
	n, err := io.Copy(plain, io.LimitReader(packed, limit+1))
	b.b = plain.Bytes()
	if n > limit {
		return x.tooLarge(limit)
	}
	if err != nil {
		return errUnzip
	}
	return nil
}

var errUnzip = fault.New(fault.MalformedInput, "The request body is not valid gzip.")
