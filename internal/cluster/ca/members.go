package ca

import (
	"crypto/tls"
	"net"
	"slices"
	"sync"
	"syscall"
)

// accepted are the connections that nodes have made, which are ended with their membership.
type accepted struct {
	mu  sync.Mutex
	all map[net.Conn]string // by whom
}

// SetMembers replaces the names of the cluster's nodes. Connections between logs that others
// have made to this node are ended; what they send over other connections is refused one
// request at a time.
func (i *Identity) SetMembers(names []string) {
	names = slices.Clone(names)
	i.members.Store(&names)
	i.open.mu.Lock()
	defer i.open.mu.Unlock()
	for c, name := range i.open.all {
		if !slices.Contains(names, name) {
			_ = c.Close()
			delete(i.open.all, c)
		}
	}
}

// follow has a configuration note whose the connections are that it accepts.
func (i *Identity) follow(config *tls.Config) {
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		own := config.Clone()
		own.GetConfigForClient = nil
		own.VerifyConnection = func(c tls.ConnectionState) error {
			name, err := i.Peer(&c)
			if err != nil {
				return err
			}
			return i.open.add(hello.Conn, name, func() error {
				_, err := i.Peer(&c)
				return err
			})
		}
		return own, nil
	}
}

// add notes a connection, unless its node has been removed meanwhile. Those that have ended
// are forgotten.
func (a *accepted) add(c net.Conn, name string, still func() error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := still(); err != nil {
		return err
	}
	for other := range a.all {
		if ended(other) {
			delete(a.all, other)
		}
	}
	if a.all == nil {
		a.all = map[net.Conn]string{}
	}
	a.all[c] = name
	return nil
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
