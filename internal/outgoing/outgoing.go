// Package outgoing makes the HTTP transports of requests to servers that others choose or run,
// which end whatever such a server does.
package outgoing

import (
	"net"
	"net/http"
	"syscall"
	"time"
)

// The bounds of a connection's beginning. net/http connects under a context that does not end
// with the request's, so that an attempt's deadline bounds neither.
const (
	ConnectTime   = 15 * time.Second
	HandshakeTime = 15 * time.Second
)

// Dialer makes a dialer of requests. They have deadlines, and need no probes of idle connections.
func Dialer(control func(network, address string, c syscall.RawConn) error) *net.Dialer {
	return &net.Dialer{Timeout: ConnectTime, KeepAlive: -1, Control: control}
}

// Transport is a transport whose requests end with their contexts, and its connections, too.
type Transport struct{ *http.Transport }

// New bounds what a transport does not yet: it is used by nobody else.
func New(t *http.Transport) *Transport {
	if t.TLSHandshakeTimeout == 0 {
		t.TLSHandshakeTimeout = HandshakeTime
	}
	return &Transport{t}
}

// RoundTrip implements http.RoundTripper. No request asks for another protocol: an answer that
// begins one has no body, as net/http would make the bare connection of it, whose reads no
// context ends.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.Transport.RoundTrip(r)
	if err == nil && answer.StatusCode == http.StatusSwitchingProtocols {
		_ = answer.Body.Close() // closes the connection
		answer.Body = http.NoBody
	}
	return answer, err
}
