// Package network is the network of functions. Each sandbox has a namespace (package netns),
// in which the Runtime API and AWS's API are on loopback, by sockets of the kernel. All other
// packets arrive in a TCP/IP stack (gVisor's), one for each namespace, created with the first
// packet. It terminates each connection and opens another one from this process, if the
// policy allows it (policy.go).
//
// The policy checks the address that is connected to: names were resolved before, by queries
// to the resolver (dns.go), whose answers decide nothing.
package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/invoke/process/netns"
	"godwit.dev/godwit/internal/limit/conns"
	"godwit.dev/godwit/internal/publicnet"
)

// Mode says what functions can reach besides AWS's API.
type Mode string

// The modes. None allows link-local addresses, those of metadata services, or this machine's
// own.
const (
	None    Mode = "none"    // only Options.Allow
	Public  Mode = "public"  // also public addresses
	Private Mode = "private" // also private addresses
)

const (
	// runtimePort is where the Runtime API is, unless it is needed otherwise.
	runtimePort = 9001
	// defaultConnections is how many connections all functions may have at once.
	defaultConnections = 4096
	// share is the part of them that one environment may have.
	share = 8
)

// Options are what a Network is made of.
type Options struct {
	Mode Mode
	// Allow are HOST:PORT that functions can reach in all modes, also on this machine. Ports
	// of loopback have the same port on the function's loopback.
	Allow []string
	// Port is that of AWS's API on this machine.
	Port uint16
	// Closed are ports at which each node of a cluster trusts who connects. No function reaches them at
	// an address that is not public, whatever is allowed.
	Closed []uint16
	// PublicURL is another name of the server; may be empty.
	PublicURL string
	// Connections bounds the concurrent connections of all functions; 0: defaultConnections.
	// An environment may have an eighth of them.
	Connections int
	// Bytes bounds the memory of all connections through tunnels in this process; one
	// environment may use an eighth; 0: no bound.
	Bytes  int64
	Logger *slog.Logger
}

// Network serves the namespaces of functions. Use New.
type Network struct {
	Options
	runtime uint16
	allow   []allowed
	forward map[uint16]string // ports of the machine's loopback, and their addresses
	names   []string          // of this server
	ports   []uint16          // at which AWS's API is
	api     *conns.Handover

	resolver *net.Resolver
	classOf  func(netip.Addr) publicnet.Class
	isOwn    func(netip.Addr) bool

	used    atomic.Int64
	held    atomic.Int64 // bytes of Options.Bytes
	refused [reasons]atomic.Int64
}

// allowed is an entry of Options.Allow that is not a port of loopback.
type allowed struct {
	host string
	port uint16
}

// Reason is why a connection was refused.
type Reason uint8

// The reasons.
const (
	Forbidden   Reason = iota // by the policy
	Exhausted                 // too many connections
	Unreachable               // nobody answers there
	reasons
)

func (r Reason) String() string {
	return [...]string{"policy", "limit", "unreachable"}[r]
}

// New makes a network. Errors: an entry of Allow or the URL cannot be read.
func New(o Options) (*Network, error) {
	o.Mode, o.Connections = cmp.Or(o.Mode, None), cmp.Or(o.Connections, defaultConnections)
	n := &Network{
		Options: o, runtime: runtimePort, forward: map[uint16]string{}, ports: []uint16{o.Port}, api: newListener(),
		resolver: &net.Resolver{}, classOf: publicnet.Of, isOwn: publicnet.Local,
	}
	if name, err := os.Hostname(); err == nil && name != "" {
		n.names = append(n.names, name)
	}
	if err := n.addPublicURL(); err != nil {
		return nil, err
	}
	for _, entry := range o.Allow {
		host, port, err := config.ParseAllow(entry)
		if err != nil {
			return nil, err
		}
		switch {
		case !isLoopback(host):
			n.allow = append(n.allow, allowed{host, port})
		case !slices.Contains(n.ports, port):
			n.forward[port] = net.JoinHostPort(host, strconv.Itoa(int(port)))
		}
	}
	for n.forward[n.runtime] != "" || slices.Contains(n.ports, n.runtime) {
		n.runtime++
	}
	return n, nil
}

// addPublicURL makes the server's own name lead to AWS's API, if that is served there without
// TLS. Behind a TLS proxy it is a public service like any other.
func (n *Network) addPublicURL() error {
	if n.PublicURL == "" {
		return nil
	}
	u, err := url.Parse(n.PublicURL)
	if err != nil {
		return err
	}
	if u.Scheme != "http" {
		return nil
	}
	if _, err := netip.ParseAddr(u.Hostname()); err != nil {
		n.names = append(n.names, u.Hostname())
	}
	port := uint16(80)
	if u.Port() != "" {
		number, err := strconv.ParseUint(u.Port(), 10, 16)
		if err != nil {
			return err
		}
		port = uint16(number)
	}
	if !slices.Contains(n.ports, port) {
		n.ports = append(n.ports, port)
	}
	return nil
}

func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}

// WithoutTunnel limits functions to AWS's API and the allowed ports of loopback, as if the
// kernel has no tunnels. It must be called before Plan.
func (n *Network) WithoutTunnel() { n.Mode, n.allow = None, nil }

// Plan is what a namespace is to have.
func (n *Network) Plan() netns.Plan {
	p := netns.Plan{
		Listen: []netns.Port{{Number: n.runtime, Loopback: true}},
		Tunnel: n.Mode != None || len(n.allow) > 0,
	}
	for _, port := range n.ports {
		p.Listen = append(p.Listen, netns.Port{Number: port})
	}
	for _, port := range n.forwarded() {
		p.Listen = append(p.Listen, netns.Port{Number: port})
	}
	return p
}

// forwarded are the ports of the machine's loopback, in the order of the plan.
func (n *Network) forwarded() []uint16 {
	var ports []uint16
	for port := range n.forward {
		ports = append(ports, port)
	}
	slices.Sort(ports)
	return ports
}

// RuntimeAPI is the address of the Runtime API in a namespace.
func (n *Network) RuntimeAPI() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(n.runtime)))
}

// Endpoint is the URL of AWS's API in a namespace.
func (n *Network) Endpoint() string {
	return "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(int(n.Port)))
}

// API accepts the functions' connections to AWS's API. Its server must refuse what functions
// may not do.
func (n *Network) API() net.Listener { return n.api }

// Hosts is the content of a sandbox's /etc/hosts.
func (n *Network) Hosts() string {
	names := strings.Join(append([]string{"localhost"}, n.names...), " ")
	return "127.0.0.1 " + names + "\n::1 " + names + "\n"
}

// ResolvConf is the content of a sandbox's /etc/resolv.conf, which searches where
// that of the machine does.
func (n *Network) ResolvConf(machine string) string {
	var b strings.Builder
	if n.Plan().Tunnel {
		fmt.Fprintf(&b, "nameserver %s\n", netns.Resolver)
	}
	for line := range strings.Lines(machine) {
		fields := strings.Fields(line)
		if len(fields) > 1 && (fields[0] == "search" || fields[0] == "domain") {
			fmt.Fprintln(&b, strings.Join(fields, " "))
		}
		if len(fields) > 1 && fields[0] == "options" {
			for _, option := range fields[1:] {
				if strings.HasPrefix(option, "ndots:") {
					fmt.Fprintln(&b, "options "+option)
				}
			}
		}
	}
	return b.String()
}

// Usage is how the connections of functions are.
type Usage struct {
	Connections, Limit int              // at the moment, and at most
	Refused            map[string]int64 // by the reason's name, since the start
}

// Usage reports the connections of all functions.
func (n *Network) Usage() Usage {
	u := Usage{Connections: int(n.used.Load()), Limit: n.Connections, Refused: map[string]int64{}}
	for r := range reasons {
		u.Refused[r.String()] = n.refused[r].Load()
	}
	return u
}

// Close ends API's listener. No namespace may be attached any more.
func (n *Network) Close() error { return n.api.Close() }

// Attachment is a namespace that is served.
type Attachment struct {
	network *Network
	sockets *netns.Sockets
	ctx     context.Context // done with the namespace
	cancel  context.CancelFunc
	used    atomic.Int64
	held    atomic.Int64

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	tun   *tunnel // nil: there is none
}

// Attach serves a namespace with the plan's sockets until Close. The caller serves the
// Runtime API's listener.
func (n *Network) Attach(s *netns.Sockets) (a *Attachment, runtime net.Listener) {
	a = &Attachment{network: n, sockets: s, conns: map[net.Conn]struct{}{}}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	rest := s.Listeners[1:]
	for _, l := range rest[:len(n.ports)] {
		go a.accept(l, a.serveAPI)
	}
	for i, port := range n.forwarded() {
		address := n.forward[port]
		go a.accept(rest[len(n.ports)+i], func(c net.Conn, slot *slot) { a.forward(c, address, slot) })
	}
	if s.Tunnel != nil {
		a.tun = newTunnel(a, s.Tunnel)
		go a.tun.read()
	}
	return a, s.Listeners[0]
}

// Close ends all connections of the namespace.
func (a *Attachment) Close() {
	a.cancel()
	a.sockets.Close()
	a.mu.Lock()
	conns := a.conns
	a.conns = nil
	a.mu.Unlock()
	for c := range conns {
		_ = c.Close()
	}
	if a.tun != nil {
		a.tun.close()
	}
}

// accept serves a listener of the namespace until it is closed.
func (a *Attachment) accept(l net.Listener, serve func(net.Conn, *slot)) {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no file descriptors, or the connection was closed
			if pause(a.ctx, acceptPause) != nil {
				return
			}
			continue
		}
		slot := a.reserve()
		if slot == nil {
			_ = c.Close()
			continue
		}
		serve(c, slot)
	}
}

// acceptPause is the delay before accepting continues after an error.
const acceptPause = 50 * time.Millisecond

// serveAPI passes a connection to API's listener.
func (a *Attachment) serveAPI(c net.Conn, slot *slot) {
	half, ok := c.(halfConn)
	if !ok {
		slot.release()
		_ = c.Close()
		return
	}
	api := &apiConn{halfConn: half, attachment: a, slot: slot}
	if !a.keep(api) {
		slot.release()
		_ = c.Close()
		return
	}
	a.network.api.Give(api)
}

// keep registers a connection to be closed by Close; false: Close was called.
func (a *Attachment) keep(c net.Conn) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.conns == nil {
		return false
	}
	a.conns[c] = struct{}{}
	return true
}

func (a *Attachment) forget(c net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.conns, c)
}

// slot is a connection's share of the limits.
type slot struct {
	attachment *Attachment
	held       int64
	once       sync.Once
}

// reserve takes a slot; nil: there is none left.
func (a *Attachment) reserve() *slot {
	n := a.network
	if a.used.Add(1) > int64(max(1, n.Connections/share)) {
		a.used.Add(-1)
		n.refused[Exhausted].Add(1)
		return nil
	}
	if n.used.Add(1) > int64(n.Connections) {
		n.used.Add(-1)
		a.used.Add(-1)
		n.refused[Exhausted].Add(1)
		return nil
	}
	return &slot{attachment: a}
}

// hold reserves n bytes of the memory of all connections; false: not enough are left.
func (s *slot) hold(n int64) bool {
	a, network := s.attachment, s.attachment.network
	if network.Bytes <= 0 {
		return true
	}
	s.held = n // release returns it in any case
	own, all := a.held.Add(n), network.held.Add(n)
	if own <= max(n, network.Bytes/share) && all <= max(n, network.Bytes) {
		return true
	}
	network.refused[Exhausted].Add(1)
	return false
}

func (s *slot) release() {
	s.once.Do(func() {
		s.attachment.held.Add(-s.held)
		s.attachment.network.held.Add(-s.held)
		s.attachment.used.Add(-1)
		s.attachment.network.used.Add(-1)
	})
}
