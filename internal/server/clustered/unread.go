package clustered

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// usualPatience is the age up to which a forwarded request is not given up when its client hangs up: that
// may have ended its side of the connection only, and wait for the answer. Long polls are older, as a
// rule, and must not take messages for a client that is gone.
const usualPatience = time.Second

// patiently returns the context of the forwarding of a request, whose own is ctx.
func patiently(ctx context.Context, patience time.Duration) (context.Context, context.CancelFunc) {
	began := clock.System.Now()
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		_ = clock.Wait(out, clock.System, patience-clock.System.Now().Sub(began))
		cancel()
	})
	return out, func() {
		stop()
		cancel()
	}
}

// clientBody is a request's body that notes why it cannot be read.
type clientBody struct {
	io.ReadCloser

	mu     sync.Mutex
	closed bool
	err    error
}

// Read implements io.Reader.
func (b *clientBody) Read(p []byte) (n int, err error) {
	n, err = b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if !b.closed { // else it is cut off by who reads it
			b.err = err
		}
	}
	return n, err
}

// Close implements io.Closer.
func (b *clientBody) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	return b.ReadCloser.Close()
}

func (b *clientBody) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// unreadMethod is the method of a request that is forwarded without its body. No operation has it: an
// owner of a version that does not know unreadHeader carries nothing out.
const unreadMethod = "UNREAD"

// unread is what is known of a request whose body cannot be read.
type (
	unread struct {
		method string
		length int64 // as the client has announced it; -1: it has not
		late   bool  // the rest did not come in time
	}
	unreadKey struct{}
)

// String is the form of unreadHeader.
func (u unread) String() string { return fmt.Sprintf("%s %d %t", u.method, u.length, u.late) }

func parseUnread(text string) (u unread, ok bool) {
	_, err := fmt.Sscan(text, &u.method, &u.length, &u.late)
	return u, err == nil
}

// err is what a read of the body fails with.
func (u unread) err() error {
	if u.late {
		return os.ErrDeadlineExceeded
	}
	return io.ErrUnexpectedEOF
}
