// Package jetstream implements replog.Log with NATS JetStream, which is embedded in the process.
// No other package depends on NATS.
//
// Every record is on the disks of a majority before it counts: its store syncs each write.
// There is no port that a NATS client could connect to: the process itself does so in
// memory, and the servers of a cluster speak to each other over routes, which ask for
// certificates, or are on loopback and ask for the cluster's secret.
package jetstream

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/record"
	"godwit.dev/godwit/internal/cluster/replog"
)

// maxPayload is more than the largest record with its headers, in bytes.
const maxPayload = record.MaxSize + 4096

// startTime bounds how long the server takes until it can be connected to, and then until it has
// greeted who connects: on a busy machine either takes seconds.
const startTime = 20 * time.Second

// routeUser is who routes are for; the secret tells them from others.
const routeUser = "godwit"

// Options are what a Server is made of.
type Options struct {
	Cluster string   // its name
	Node    string   // the name of this node, which it keeps
	Dir     string   // of its store
	Listen  string   // address of its route
	Routes  []string // those of all nodes of the cluster; one of a single node is empty
	// TLS is for routes; nil: they are on loopback, and ask for the secret. It has to ask
	// both ends for certificates.
	TLS    *tls.Config
	Secret string
	Logger *slog.Logger
}

// ErrUnusable reports that the engine gives up what is in its directory, such as damaged files.
var ErrUnusable = errors.New("the replicated log cannot be started")

// Server is a node of JetStream.
type Server struct {
	server *server.Server
	conn   *nats.Conn
	js     jetstream.JetStream
	nodes  int
	secret string        // of the process's own connections
	user   *url.Userinfo // of its connections to others; nil: they go by certificates

	mu      sync.Mutex
	options *server.Options
	routes  []string
}

// Start starts a node. It may have no majority yet. Errors: ErrUnusable; of its options and
// its port; the context's.
func Start(ctx context.Context, o Options) (*Server, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	options := &server.Options{
		ServerName: o.Node, DontListen: true, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: o.Dir, SyncAlways: true, MaxPayload: maxPayload,
		DisableJetStreamBanner: true, AuthTimeout: startTime.Seconds(),
	}
	if len(o.Routes) > 0 {
		if err := o.route(options); err != nil {
			return nil, err
		}
		if err := canListen(ctx, options.Cluster.Host, options.Cluster.Port); err != nil {
			return nil, err
		}
	}
	secret := users(options)
	kept := options.Clone() // the server changes what it is given
	ns, err := server.NewServer(options)
	if err != nil {
		return nil, fmt.Errorf("the replicated log cannot be started: %w", err)
	}
	lines := &logger{log: o.Logger}
	ns.SetLoggerV2(lines, false, false, false)
	ns.Start()
	if why := lines.fatal.Load(); why != nil { // it has given up, and would never be ready
		ns.Shutdown()
		return nil, fmt.Errorf("%w: %s", ErrUnusable, *why)
	}
	if len(o.Routes) > 0 {
		// The server itself opens its routes only once its clients' port is open, and here it
		// has none: it waits for that for good, and this call does its work in its place.
		open := make(chan struct{})
		close(open)
		go ns.StartRouting(open)
	}
	s := &Server{server: ns, nodes: min(max(len(o.Routes), 1), MaxNodes), secret: secret, options: kept, routes: slices.Clone(o.Routes)}
	if len(kept.Routes) > 0 {
		s.user = kept.Routes[0].User
	}
	if err := s.connect(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// canListen listens where routes are to come in, and stops again: the engine only logs that it
// cannot, and is then never ready. Others that connect meanwhile try again.
func canListen(ctx context.Context, host string, port int) error {
	var lc net.ListenConfig
	at := net.JoinHostPort(host, strconv.Itoa(port))
	l, err := lc.Listen(ctx, "tcp", at)
	if err != nil {
		return fmt.Errorf("cannot listen for the replicated logs of other nodes on %s: %w", at, err)
	}
	return l.Close()
}

// tlsTime bounds the handshake of a route, in seconds.
const tlsTime = 5

// route has the server speak to the others.
func (o *Options) route(options *server.Options) error {
	host, port, err := o.address(o.Listen)
	if err != nil {
		return err
	}
	options.Cluster = server.ClusterOpts{Name: o.Cluster, Host: host, Port: port, NoAdvertise: true}
	user := (*url.Userinfo)(nil)
	if o.TLS != nil {
		options.Cluster.TLSConfig, options.Cluster.TLSTimeout = o.TLS, tlsTime
	} else {
		options.Cluster.Username, options.Cluster.Password = routeUser, o.Secret
		user = url.UserPassword(routeUser, o.Secret)
	}
	for _, address := range o.Routes {
		if _, _, err := o.address(address); err != nil {
			return err
		}
	}
	options.Routes = routeURLs(o.Routes, user)
	return nil
}

// routeURLs are the routes to these addresses, in the order of their text. A reload of the
// engine's settings sorts those in force where they are, while its connections read them:
// what is sorted already is not written.
func routeURLs(addresses []string, user *url.Userinfo) []*url.URL {
	urls := make([]*url.URL, 0, len(addresses))
	for _, address := range addresses {
		urls = append(urls, &url.URL{Scheme: "nats", Host: address, User: user})
	}
	slices.SortFunc(urls, func(a, b *url.URL) int { return cmp.Compare(a.String(), b.String()) })
	return urls
}

// address takes one apart that others than this machine must not reach without TLS.
func (o *Options) address(text string) (host string, port int, err error) {
	host, digits, err := net.SplitHostPort(text)
	if err != nil {
		return "", 0, fmt.Errorf("the address of a route: %w", err)
	}
	if host == "" {
		host = "0.0.0.0"
	}
	if ip := net.ParseIP(host); o.TLS == nil && (ip == nil || !ip.IsLoopback()) {
		return "", 0, fmt.Errorf("the address of a route has to be on loopback where there are no certificates: %s", text)
	}
	if port, err = strconv.Atoi(digits); err != nil {
		return "", 0, fmt.Errorf("the port of a route: %w", err)
	}
	return host, port, nil
}

func (s *Server) connect(ctx context.Context) error {
	ready := make(chan bool, 1)
	go func() { ready <- s.server.ReadyForConnections(startTime) }()
	select {
	case ok := <-ready:
		if !ok {
			return errors.New("the replicated log did not start in time")
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var err error
	if s.conn, err = dial(s.server, s.secret); err != nil {
		return fmt.Errorf("the replicated log cannot be reached: %w", err)
	}
	s.js, err = jetstream.New(s.conn)
	return err
}

// dial connects to a server of this process.
func dial(to nats.InProcessConnProvider, secret string) (*nats.Conn, error) {
	return nats.Connect("", nats.InProcessServer(to), nats.UserInfo(logUser, secret), nats.Timeout(startTime),
		nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond), nats.NoEcho())
}

// Stopped reports that JetStream is disabled on this node, as it is after a failed write to the
// disk, until the routes are reconfigured or the process restarts. The logs are still available
// through the other nodes.
func (s *Server) Stopped() bool { return s.server.Running() && !s.server.JetStreamEnabled() }

// Close stops the node. The others go on if they are a majority.
func (s *Server) Close() {
	if s.conn != nil {
		s.conn.Close()
	}
	s.server.Shutdown()
	s.server.WaitForShutdown()
}

// retryTime is the delay before a retry while there is no majority.
const retryTime = 100 * time.Millisecond

// Log opens the log of a cell, which is made if it is not there. It waits until a majority
// of the nodes has it. Errors: the context's, and what can't be mended by waiting.
func (s *Server) Log(ctx context.Context, cell uint16) (*Log, error) {
	config := jetstream.StreamConfig{
		Name: fmt.Sprintf("CELL_%d", cell), Subjects: []string{fmt.Sprintf("cell.%d", cell)},
		Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage,
		MaxMsgs: -1, MaxBytes: -1, MaxMsgSize: maxPayload, Replicas: s.nodes,
		DenyDelete: true, Duplicates: time.Second,
	}
	for {
		asking, cancel := context.WithTimeout(ctx, 5*time.Second)
		stream, err := s.js.CreateStream(asking, config)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			stream, err = s.js.Stream(asking, config.Name)
		}
		cancel()
		if err == nil {
			return newLog(s.conn, s.js, s.server.Name(), stream, config.Subjects[0])
		}
		if err := pause(ctx, retryTime); err != nil {
			return nil, fmt.Errorf("%w: %w", replog.ErrUnavailable, err)
		}
	}
}

// pause waits for a while, or for the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	return clock.Wait(ctx, clock.System, d)
}

// logger passes the server's log lines on, as they are.
type logger struct {
	log   *slog.Logger
	fatal atomic.Pointer[string] // the latest line at which the server expects the process to end
}

func (l *logger) Noticef(format string, v ...any) { l.tell(slog.LevelDebug, format, v) }
func (l *logger) Debugf(string, ...any)           {}
func (l *logger) Tracef(string, ...any)           {}
func (l *logger) Warnf(format string, v ...any)   { l.tell(slog.LevelInfo, format, v) }
func (l *logger) Errorf(format string, v ...any)  { l.tell(slog.LevelWarn, format, v) }
func (l *logger) Fatalf(format string, v ...any) {
	why := strings.TrimSpace(fmt.Sprintf(format, v...))
	l.fatal.Store(&why)
	l.tell(slog.LevelError, format, v)
}

func (l *logger) tell(level slog.Level, format string, v []any) {
	if l.log.Enabled(context.Background(), level) {
		l.log.Log(context.Background(), level, "the replicated log's engine", "says", strings.TrimSpace(fmt.Sprintf(format, v...)))
	}
}
