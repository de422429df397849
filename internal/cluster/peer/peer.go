// Package peer is HTTP between the nodes of a cluster, beside their logs, with mutual TLS by
// certificates of the cluster's own authority. Nodes that share a machine may use loopback and a
// shared secret instead. Requests of others than peers are refused.
package peer

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"godwit.dev/godwit/internal/cluster/ca"
)

// secretHeader has the secret of a cluster on one machine.
const secretHeader = "X-Godwit-Cluster-Secret"

// ForwardedHeader is set on the requests of clients that a peer forwards, to its name. They are not
// the peer's own, whatever their path.
const ForwardedHeader = "X-Godwit-Forwarded"

// Bounds of connections to a peer.
const (
	dialTime      = time.Second
	handshakeTime = 5 * time.Second
	idleConns     = 1024
	idleTime      = time.Minute
)

// Network is the connections of a node to its peers. It is safe for concurrent use.
type Network struct {
	secret   string
	identity *ca.Identity // nil: the secret is used

	mu        sync.Mutex
	transport *http.Transport
	version   uint64 // of the identity, that transport goes by
}

// Loopback is a network of nodes on one machine that share a secret.
func Loopback(secret string) *Network { return &Network{secret: secret, transport: transport(nil)} }

// Secured is a network of nodes that authenticate each other by certificates.
func Secured(id *ca.Identity) *Network {
	version := id.Version()
	return &Network{identity: id, transport: transport(id.Config(false)), version: version}
}

// connections is the transport to peers. It is replaced when the node's certificate or roots have
// changed, since existing connections are authenticated by the old ones.
func (n *Network) connections() *http.Transport {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.identity == nil {
		return n.transport
	}
	if version := n.identity.Version(); version != n.version {
		n.transport.CloseIdleConnections()
		n.transport, n.version = transport(n.identity.Config(false)), version
	}
	return n.transport
}

func transport(secure *tls.Config) *http.Transport {
	dialer := &net.Dialer{Timeout: dialTime}
	return &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: secure, TLSHandshakeTimeout: handshakeTime,
		MaxIdleConnsPerHost: idleConns, IdleConnTimeout: idleTime, DisableCompression: true,
	}
}

// URL is the base URL of requests to a peer at an address.
func (n *Network) URL(address string) string {
	if n.identity != nil {
		return "https://" + address
	}
	return "http://" + address
}

// Routes is the TLS configuration of the connections between the nodes' logs; nil: they use the
// secret.
func (n *Network) Routes() *tls.Config {
	if n.identity == nil {
		return nil
	}
	return n.identity.Config(false)
}

// SetMembers replaces the names of the nodes that are peers. Without certificates, every node
// with the secret is a peer.
func (n *Network) SetMembers(names []string) {
	if n.identity != nil {
		n.identity.SetMembers(names)
	}
}

// Identity authenticates the node to its peers, and them; nil: the secret does.
func (n *Network) Identity() *ca.Identity { return n.identity }

// Secured reports that peers authenticate each other by certificates.
func (n *Network) Secured() bool { return n.identity != nil }

// RoundTrip implements http.RoundTripper, for requests to peers.
func (n *Network) RoundTrip(r *http.Request) (*http.Response, error) {
	if n.identity != nil {
		return n.connections().RoundTrip(r)
	}
	r = r.Clone(r.Context())
	r.Header.Set(secretHeader, n.secret)
	return n.connections().RoundTrip(r)
}

// Client makes requests to peers.
func (n *Network) Client() *http.Client {
	return &http.Client{Transport: n, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Close closes connections to peers that nobody uses.
func (n *Network) Close() { n.connections().CloseIdleConnections() }

// Listen listens for peers. Without certificates it fails for an address that machines
// other than this one reach. bound bounds the connections, below TLS.
func (n *Network) Listen(ctx context.Context, address string, bound func(net.Listener) net.Listener) (net.Listener, error) {
	if n.identity == nil {
		if err := checkLoopback(address); err != nil {
			return nil, err
		}
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if l = bound(l); n.identity != nil {
		l = tls.NewListener(l, n.identity.Config(true))
	}
	return l, nil
}

// Only passes the requests of peers to next, and refuses all others but requests to join. What a peer
// forwards gets no certificate: its client may be anybody.
func (n *Network) Only(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		signs := n.identity != nil && r.Header.Get(ForwardedHeader) == ""
		if signs && r.URL.Path == joinPath {
			n.join(w, r)
			return
		}
		name, ok := n.peer(r)
		if !ok {
			http.Error(w, "peers only", http.StatusForbidden)
			return
		}
		r.Header.Del(secretHeader)
		if signs && r.URL.Path == renewPath {
			n.renew(w, r, name)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// peer is the name of the peer that has sent a request; ok is false for others. With a shared
// secret the name is empty.
func (n *Network) peer(r *http.Request) (name string, ok bool) {
	if n.identity != nil {
		name, err := n.identity.Peer(r.TLS)
		return name, err == nil
	}
	shown := r.Header.Get(secretHeader)
	return "", n.secret != "" && subtle.ConstantTimeCompare([]byte(shown), []byte(n.secret)) == 1
}

// checkLoopback refuses an address that is not on loopback.
func checkLoopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("the address of a node: %w", err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("nodes without certificates speak to each other on loopback only, and not at %s", address)
	}
	return nil
}
