package network

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/clock"
)

const (
	// dialTime is the timeout for connecting to a destination.
	dialTime = 30 * time.Second
	// idleTime is the idle timeout of a connection.
	idleTime = 10 * time.Minute
	// bufferSize is the size of a copy buffer, in bytes: the content of a packet.
	bufferSize = 64 << 10
)

// buffers are for copying, and for packets that were read.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// pause waits for d, and fails if ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	return clock.Wait(ctx, clock.System, d)
}

// dial connects to a destination that judge has allowed.
func (a *Attachment) dial(network string, to netip.AddrPort) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTime}
	c, err := d.DialContext(a.ctx, network, to.String())
	if err != nil && a.ctx.Err() == nil {
		a.network.refused[Unreachable].Add(1)
	}
	return c, err
}

// forward relays a connection to a port of the machine's loopback.
func (a *Attachment) forward(c net.Conn, address string, slot *slot) {
	go func() {
		defer slot.release()
		d := net.Dialer{Timeout: dialTime}
		to, err := d.DialContext(a.ctx, "tcp", address)
		if err != nil {
			a.network.refused[Unreachable].Add(1)
			_ = c.Close()
			return
		}
		a.relay(c.(*net.TCPConn), to.(*net.TCPConn))
	}()
}

// relay copies both directions of a connection until both have ended, one has failed, or the
// idle timeout. It closes them.
func (a *Attachment) relay(inside, outside halfConn) {
	defer func() { _, _ = inside.Close(), outside.Close() }()
	if !a.keep(inside) {
		return
	}
	defer a.forget(inside)
	if !a.keep(outside) {
		return
	}
	defer a.forget(outside)
	var moved atomic.Int64
	watch := whileIdle(idleTime, &moved, func() { _, _ = inside.Close(), outside.Close() })
	defer watch.stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		pass(outside, inside, &moved)
	}()
	pass(inside, outside, &moved)
	<-done
}

// pass copies one direction, and its end. If it fails, both are closed.
func pass(to, from halfConn, moved *atomic.Int64) {
	buffer := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buffer)
	for {
		n, err := from.Read(buffer[:])
		if n > 0 {
			moved.Add(int64(n))
			if _, err := to.Write(buffer[:n]); err != nil {
				_, _ = from.Close(), to.Close()
				return
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			_ = to.CloseWrite()
			return
		case err != nil:
			_, _ = from.Close(), to.Close()
			return
		}
	}
}

// idle calls f when nothing was copied for d.
type idle struct {
	d     time.Duration
	moved *atomic.Int64
	f     func()

	mu    sync.Mutex
	last  int64
	timer clock.Timer // nil: stopped
}

func whileIdle(d time.Duration, moved *atomic.Int64, f func()) *idle {
	i := &idle{d: d, moved: moved, f: f, last: moved.Load()}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.timer = clock.System.AfterFunc(d, i.check)
	return i
}

func (i *idle) check() {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.moved.Load()
	switch {
	case i.timer == nil:
	case now == i.last:
		i.timer = nil
		go i.f()
	default:
		i.last = now
		i.timer = clock.System.AfterFunc(i.d, i.check)
	}
}

func (i *idle) stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.timer != nil {
		i.timer.Stop()
		i.timer = nil
	}
}
