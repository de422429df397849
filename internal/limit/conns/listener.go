// Package conns bounds the connections of clients: their number, in total and per address, the
// memory for the heads of their requests, and how slowly they may read. It wraps a listener for
// any server.
//
// At the bound, in total or of an address, an idle one of these connections is closed for the
// new one; if none is idle, the new one is refused.
package conns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/limit"
)

// Options bound connections. 0 means no bound.
type Options struct {
	Max        int // in all
	PerAddress int // of one address, or of one /64 network in IPv6
	// Trusted are the networks of proxies, whose connections belong to many clients: they only
	// count for the total, like those from this machine.
	Trusted []netip.Prefix
	// HeadBytes bounds the memory for the heads of requests, beyond 4 KiB each.
	HeadBytes int64
	// Window is how long a write may make no progress; Rate is its minimum, in bytes a second.
	// Of a write of more than 256 KiB that much must be sent in each window.
	Window time.Duration
	Rate   int64
}

const (
	defaultWindow = 10 * time.Second
	defaultHeads  = 32 << 20
	// choice is how many idle connections are compared to find the one that has been idle
	// longest.
	choice = 64
	// pause is how long no idle connection is searched for after none was found.
	pause = 10 * time.Millisecond
)

// Listener bounds the connections that it accepts, and the requests counted by Streams.
type Listener struct {
	net.Listener
	options Options // without Max and PerAddress, which may change

	max, perAddress atomic.Int64

	taken        atomic.Int64 // connections, since the start
	heads        atomic.Int64
	refusedHeads atomic.Int64

	refusedStreams atomic.Int64

	mu        sync.Mutex
	all       set
	addresses map[netip.Addr]*set // of those with counted connections

	refused, refusedAddress, closedIdle, closedIdleAddress atomic.Int64
}

// Listen bounds the connections of inner, which must have a CloseWrite, like TCP connections.
func Listen(inner net.Listener, o Options) *Listener {
	if o.Window == 0 {
		o.Window = defaultWindow
	}
	if o.HeadBytes == 0 {
		o.HeadBytes = defaultHeads
	}
	l := &Listener{Listener: inner, options: o, all: set{in: inAll}, addresses: map[netip.Addr]*set{}}
	l.SetBounds(o.Max, o.PerAddress)
	return l
}

// SetBounds changes how many connections there may be, in all and of one address, as Options have
// it. Of those beyond a lower bound, idle ones are closed now, and busy ones once they are idle.
func (l *Listener) SetBounds(most, perAddress int) {
	l.max.Store(int64(most))
	l.perAddress.Store(int64(perAddress))
	for _, c := range l.takeExcess() {
		_ = c.tcp.Close()
	}
}

// takeExcess takes the idle connections beyond the bounds, which are to be closed.
func (l *Listener) takeExcess() (old []*Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	take := func(from *set, most int64, closed *atomic.Int64) {
		for from.allBusy = (time.Time{}); from.crowded(most); {
			o := from.takeIdle()
			if o == nil {
				return
			}
			closed.Add(1)
			l.remove(o)
			old = append(old, o)
		}
	}
	for _, of := range l.addresses {
		take(of, l.perAddress.Load(), &l.closedIdleAddress)
	}
	take(&l.all, l.max.Load(), &l.closedIdle)
	return old
}

// isExcess reports whether a connection is one of more than there may be, as a bound was lowered.
func (l *Listener) isExcess(c *Conn) bool {
	return l.all.crowded(l.max.Load()) || c.of != nil && c.of.crowded(l.perAddress.Load())
}

// closeExcess closes a connection that has become idle, if there are more than there may be.
func (l *Listener) closeExcess(c *Conn) {
	l.mu.Lock()
	excess := l.isExcess(c) && c.state.CompareAndSwap(idle, closed)
	if excess {
		if l.all.crowded(l.max.Load()) {
			l.closedIdle.Add(1)
		} else {
			l.closedIdleAddress.Add(1)
		}
		l.remove(c)
	}
	l.mu.Unlock()
	if excess {
		_ = c.tcp.Close()
	}
}

// Stats reports the number of connections, and the memory of their requests' heads.
func (l *Listener) Stats() []limit.Stats {
	l.mu.Lock()
	open := len(l.all.conns)
	l.mu.Unlock()
	return []limit.Stats{
		{Name: "connections", Used: int64(open), Limit: l.max.Load(), Refused: l.refused.Load(), Cut: l.closedIdle.Load()},
		{Name: "connections_of_address", Limit: l.perAddress.Load(), Refused: l.refusedAddress.Load(), Cut: l.closedIdleAddress.Load()},
		{Name: "http2_requests", Used: l.all.streams.Load(), Limit: l.max.Load(), Refused: l.refusedStreams.Load()},
		{Name: "header_bytes", Used: l.heads.Load(), Limit: l.options.HeadBytes, Refused: l.refusedHeads.Load()},
	}
}

// minPerWindow is the minimum to be sent in a window, in bytes.
func (l *Listener) minPerWindow() int64 {
	return max(int64(float64(l.options.Rate)*l.options.Window.Seconds()), 1)
}

// Accept waits for a connection within the limits.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		tcp, ok := accepted.(socket)
		if !ok {
			return nil, errors.Join(errors.New("conns: a connection without halves"), accepted.Close())
		}
		l.taken.Add(1)
		c := &Conn{tcp: tcp, listener: l, address: l.counted(tcp.RemoteAddr())}
		c.since.Store(l.taken.Load())
		old, full := l.admit(c)
		for _, o := range old {
			_ = o.tcp.Close()
		}
		if full == "" {
			return c, nil
		}
		refuse(tcp, full)
	}
}

// counted is the address that a connection counts for; invalid if there is none.
func (l *Listener) counted(from net.Addr) netip.Addr {
	tcp, ok := from.(*net.TCPAddr)
	if !ok || l.perAddress.Load() <= 0 {
		return netip.Addr{}
	}
	a := tcp.AddrPort().Addr().Unmap().WithZone("")
	if a.IsLoopback() {
		return netip.Addr{}
	}
	for _, p := range l.options.Trusted {
		if p.Contains(a) {
			return netip.Addr{}
		}
	}
	if a.Is6() {
		network, _ := a.Prefix(64) // an IPv6 address has enough bits
		a = network.Addr()
	}
	return a
}

// admit accepts c, if necessary instead of idle ones, which are to be closed; or reports which
// bound is reached.
func (l *Listener) admit(c *Conn) (old []*Conn, full refusal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// More than one has to go where the bound has been lowered.
	take := func(from *set, closed *atomic.Int64) bool {
		o := from.takeIdle()
		if o != nil {
			closed.Add(1)
			l.remove(o)
			old = append(old, o)
		}
		return o != nil
	}
	of := l.addresses[c.address] // nil if addresses are not counted
	for most := int(l.perAddress.Load()); of != nil && most > 0 && len(of.conns) >= most; {
		if !take(of, &l.closedIdleAddress) {
			l.refusedAddress.Add(1)
			return old, fullOfAddress
		}
	}
	for most := int(l.max.Load()); most > 0 && len(l.all.conns) >= most; {
		if !take(&l.all, &l.closedIdle) {
			l.refused.Add(1)
			return old, fullInAll
		}
	}
	l.all.add(c)
	if c.address.IsValid() {
		if of = l.addresses[c.address]; of == nil {
			of = &set{in: inAddress}
			l.addresses[c.address] = of
		}
		of.add(c)
		c.of = of
	}
	return old, ""
}

func (l *Listener) forget(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(c)
}

func (l *Listener) remove(c *Conn) {
	l.all.remove(c)
	if of := l.addresses[c.address]; of != nil {
		if of.remove(c); len(of.conns) == 0 {
			delete(l.addresses, c.address)
		}
	}
	c.forgetHead()
}

// refusal is the answer to a connection beyond the bounds; empty: it is within them.
type refusal string

const (
	fullInAll     refusal = "The server has as many connections as it may (--max-connections). Try later.\n"
	fullOfAddress refusal = "Your address has as many connections as it may (--max-connections-per-address, " +
		"--trusted-proxies). Use fewer, or try later.\n"
)

// refuse closes a connection, with the reason if that does not block.
func refuse(tcp socket, why refusal) {
	_ = tcp.SetWriteDeadline(clock.System.Now().Add(time.Second))
	_, _ = fmt.Fprintf(tcp, "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n"+
		"Content-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n\r\n%s", len(why), why) // it fits into the send buffer of a new connection
	_ = tcp.CloseWrite()
	_ = tcp.Close()
}
