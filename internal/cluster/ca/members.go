package ca

import (
	"crypto/tls"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// accepted are the connections that nodes have made, with what verifies who made them: they
// are ended with the membership of that node, or with its certificate.
type accepted struct {
	mu  sync.Mutex
	all map[net.Conn]func() error
}

// SetMembers replaces the names of the cluster's nodes. Connections between logs that others
// have made to this node are ended; what they send over other connections is refused one
// request at a time.
func (i *Identity) SetMembers(names []string) {
	names = slices.Clone(names)
	i.members.Store(&names)
	i.EndStrangers()
}

// EndStrangers ends the connections between logs that others have made to this node and could
// not make any more, because their certificate has expired, or its authority was replaced, or
// their node was removed.
func (i *Identity) EndStrangers() {
	i.open.mu.Lock()
	defer i.open.mu.Unlock()
	for c, verify := range i.open.all {
		if verify() != nil {
			_ = c.Close()
			delete(i.open.all, c)
		}
	}
}

// accept has a configuration verify those who connect by what the node trusts then. follow:
// their connections are noted.
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

// add notes a connection, unless who makes it cannot. Those that have ended are forgotten.
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

// met is until when all certificates are good that nodes have shown that this one has
// connected to.
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

// Stale reports, once, that a node that this one has connected to has shown a certificate that
// has expired since: connections have to be made anew.
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
