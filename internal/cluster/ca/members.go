package ca

import (
	"crypto/tls"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// accepted are the incoming connections of other nodes' logs, each with a function that verifies
// its node again.
type accepted struct {
	mu  sync.Mutex
	all map[net.Conn]func() error
}

// SetMembers replaces the names of the cluster's nodes. Incoming log connections of removed
// nodes are closed. On other connections, Peer refuses each of their requests.
func (i *Identity) SetMembers(names []string) {
	names = slices.Clone(names)
	i.members.Store(&names)
	i.CloseUntrusted()
}

// CloseUntrusted closes the incoming log connections of nodes that are not trusted any more, as
// their certificate has expired, its authority was replaced, or the node was removed.
func (i *Identity) CloseUntrusted() {
	i.open.mu.Lock()
	defer i.open.mu.Unlock()
	for c, verify := range i.open.all {
		if verify() != nil {
			_ = c.Close()
			delete(i.open.all, c)
		}
	}
}

// accept has a configuration verify each incoming connection by the roots of its time. follow:
// the connection is noted, for CloseUntrusted.
func (i *Identity) accept(config *tls.Config, follow bool) {
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		own := config.Clone()
		own.GetConfigForClient = nil
		own.ClientCAs = i.trusts.Load().pool
		if follow {
			own.VerifyConnection = func(c tls.ConnectionState) error {
				return i.open.add(hello.Conn, func() error {
					_, err := i.Peer(&c)
					return err
				})
			}
		}
		return own, nil
	}
}

// add verifies and notes a connection. It forgets those that were closed.
func (a *accepted) add(c net.Conn, verify func() error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := verify(); err != nil {
		return err
	}
	for other := range a.all {
		if ended(other) {
			delete(a.all, other)
		}
	}
	if a.all == nil {
		a.all = map[net.Conn]func() error{}
	}
	a.all[c] = verify
	return nil
}

// met is the earliest expiry of the certificates of the nodes that this one has connected to.
type met struct {
	mu    sync.Mutex
	until time.Time // zero: there are none
}

func (m *met) add(until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.until.IsZero() || until.Before(m.until) {
		m.until = until
	}
}

// Stale reports, once, that the certificate of a node that this one has connected to has
// expired: outgoing connections have to be made again.
func (i *Identity) Stale() bool {
	i.met.mu.Lock()
	defer i.met.mu.Unlock()
	if i.met.until.IsZero() || i.now().Before(i.met.until) {
		return false
	}
	i.met.until = time.Time{}
	i.version.Add(1)
	return true
}

// ended reports that a connection was closed at this end.
func ended(c net.Conn) bool {
	s, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	return err != nil || raw.Control(func(uintptr) {}) != nil
}
