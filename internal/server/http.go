package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"godwit.dev/godwit/internal/api/developer"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server/profiles"
	"godwit.dev/godwit/internal/wire/functionurl"
	"godwit.dev/godwit/internal/wire/http1"
)

// Times and sizes of the HTTP server. A long poll lasts up to 20 s. The read timeout bounds the
// duration of a body, from the request's first byte where net/http serves it.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 60 * time.Second
	writeTimeout      = 90 * time.Second
	idleTimeout       = 120 * time.Second
	maxHeaderBytes    = 64 << 10
)

// Defaults of an HTTP/2 connection: concurrent requests, and bytes of their unread bodies,
// which no budget counts.
const (
	defaultStreams     = 100
	defaultUnreadBytes = 128 << 10
)

const (
	adminPrefix = "/_godwit/"
	healthPath  = adminPrefix + "health"
	readyPath   = adminPrefix + "ready"
	consolePath = adminPrefix + "ui/"
	metricsPath = "/metrics"
)

// listen opens the port, without serving requests yet.
func (s *Server) listen(ctx context.Context) error {
	address := s.cfg.Listen
	if s.limitsShared { // that is the address of its process, which passes requests on
		address = "127.0.0.1:0"
	}
	l, err := Listen(ctx, address)
	if err != nil {
		return err
	}
	s.listener = l
	s.stack.Push("listener", func(context.Context) error { return closeListener(l) })
	return nil
}

// ListenFor listens at the address that a flag sets, which an error names.
func ListenFor(ctx context.Context, flag, address string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s (--%s): %w", address, flag, err)
	}
	return l, nil
}

// Listen listens for clients. Its errors say what to do.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, explainListen(address, err)
	}
	return l, nil
}

// explainListen explains why an address cannot be used.
func explainListen(address string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s is in use, perhaps by another Godwit or another local AWS: "+
			"stop that, or choose another port, such as --listen 127.0.0.1:4567", address)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s may not be used by this user: choose a port above 1023, such as --listen 127.0.0.1:4566", address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%s is no address of this machine: choose one, such as --listen 127.0.0.1:4566", address)
	default:
		return fmt.Errorf("cannot listen on %s (--listen): %w", address, err)
	}
}

// closeListener closes l, which a server that shut down has closed already.
func closeListener(l net.Listener) error {
	if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// serve begins to serve requests. It is the last part to start, and so the first to stop: the
// parts that a request uses outlive it.
func (s *Server) serve(parts Parts) {
	s.handlers.Clients = s.handler(parts)
	var secure *tls.Config
	if s.certificates != nil {
		secure = s.certificates.Config()
	}
	bounded := s.limits.listen
	if s.limitsShared {
		bounded = s.limits.others // the process has another listener for clients
	}
	srv, clients := forClients(s.cfg, s.log, s.limits, bounded(s.listener), secure, s.handlers.Clients)
	s.serveUntilStopped("HTTP", "HTTP server", srv, func() error { return srv.Serve(clients) })
}

// ForClients makes the HTTP server of h, with the times that requests and answers may take, and
// the listener that it is to serve: l, which accepts TCP connections, with the bounds of limits
// and, if secure is not nil, TLS. limits has one such listener.
func ForClients(cfg config.Config, log *slog.Logger, limits *Limits, l net.Listener, secure *tls.Config, h http.Handler) (*http1.Server, net.Listener) {
	return forClients(cfg, log, limits, limits.listen(l), secure, h)
}

func forClients(cfg config.Config, log *slog.Logger, limits *Limits, clients net.Listener, secure *tls.Config, h http.Handler) (*http1.Server, net.Listener) {
	other := httpServer(cfg, log, limits, h)
	limits.watch(other)
	if secure != nil {
		clients = tls.NewListener(clients, secure)
	}
	return http1.New(h, other), clients
}

// drainable is an *http.Server or an *http1.Server.
type drainable interface {
	Shutdown(ctx context.Context) error
	Close() error
}

// serveUntilStopped runs serve until the server stops, which drains srv, and then cuts off what
// is left. An earlier end is a failure of what.
func (s *Server) serveUntilStopped(what, name string, srv drainable, serve func() error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := serve(); !errors.Is(err, http.ErrServerClosed) {
			s.fail(fmt.Errorf("serving %s: %w", what, err))
		}
	}()
	s.stack.Push(name, func(ctx context.Context) error {
		err := srv.Shutdown(ctx)
		if err != nil {
			err = errors.Join(err, srv.Close())
		}
		<-done
		return err
	})
}

// serveFunctions serves the requests of functions, with a server of its own, without
// authentication.
func (s *Server) serveFunctions(parts Parts) {
	if parts.Functions == nil {
		return
	}
	s.serveAt("functions", s.limits.others(parts.Functions), functionurl.First(parts.URLs, s.guarded(parts, ofFunctions(cmp.Or(parts.OfFunctions, parts.Wire)))))
}

// serveAt serves requests at another listener than the clients'. Its name is that of its
// clients.
func (s *Server) serveAt(who string, l net.Listener, h http.Handler) {
	other := httpServer(s.cfg, s.log, s.limits, h)
	s.limits.watch(other)
	srv := http1.New(h, other)
	s.serveUntilStopped(who, who+"' HTTP server", srv, func() error {
		err := srv.Serve(l)
		if errors.Is(err, net.ErrClosed) { // by the listener's owner
			return http.ErrServerClosed
		}
		return err
	})
}

// ofFunctions refuses functions' requests outside of AWS's APIs.
func ofFunctions(aws http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, strings.TrimSuffix(adminPrefix, "/")) || r.URL.Path == metricsPath {
			http.Error(w, "functions reach the AWS API only", http.StatusForbidden)
			return
		}
		aws.ServeHTTP(w, r)
	})
}

// portOf is the port of a listening address; 0 where there are no ports.
func portOf(a net.Addr) uint16 {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return uint16(tcp.Port)
	}
	return 0
}

func httpServer(cfg config.Config, log *slog.Logger, limits *Limits, h http.Handler) *http.Server {
	unread := int(min(cmp.Or(cfg.MaxUnreadBytes, defaultUnreadBytes), math.MaxInt32)) // as much as a window can be
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: readHeaderTimeout,
		// Else OPTIONS * would be answered before the guard checks it.
		DisableGeneralOptionsHandler: true,
		ReadTimeout:                  limits.Times.Read,
		WriteTimeout:                 limits.Times.Write,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               maxHeaderBytes,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          cmp.Or(cfg.MaxStreams, defaultStreams),
			MaxReceiveBufferPerConnection: unread, MaxReceiveBufferPerStream: unread,
		},
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// handler serves the requests of the main port: function URLs, and a router behind the guard.
func (s *Server) handler(parts Parts) http.Handler {
	r := &router{Parts: parts, own: s.operators(parts), console: s.cfg.AdminListen == ""}
	if r.AWS == nil {
		r.AWS = r.Wire
	}
	return functionurl.First(parts.URLs, s.guarded(parts, r))
}

// router passes a request to the part that its path belongs to. It is no http.ServeMux, which
// would redirect paths that are not clean.
type router struct {
	Parts
	own     http.Handler // /_godwit/ and metrics
	console bool         // it is served at this port
}

// ServeHTTP implements http.Handler.
func (p *router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	switch {
	case p.console && visits(r):
		http.Redirect(w, r, consolePath, http.StatusSeeOther)
	case path == "/":
		p.AWS.ServeHTTP(w, r)
	case strings.HasPrefix(path+"/", adminPrefix) || path == metricsPath && p.Metrics != nil:
		p.own.ServeHTTP(w, r)
	case p.Developer != nil && slices.ContainsFunc(developer.Prefixes, func(prefix string) bool { return strings.HasPrefix(path, prefix) }):
		p.Developer.ServeHTTP(w, r)
	default:
		p.Wire.ServeHTTP(w, r)
	}
}

// visits reports whether a request is a browser's visit of the server's address.
func visits(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Path == "/" && r.URL.RawQuery == "" &&
		r.Header.Get("Authorization") == "" && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// serveProfiles serves profiles at their own address, if one is set, until the server stops.
func (s *Server) serveProfiles(ctx context.Context) error {
	stop, err := ServeProfiles(ctx, s.cfg, s.log, s.limits)
	if err != nil {
		return err
	}
	s.stack.Push("profiles", func(context.Context) error { return stop() })
	return nil
}

// ServeProfiles serves profiles of the process at the address of --pprof, if one is set, until it is stopped.
func ServeProfiles(ctx context.Context, cfg config.Config, log *slog.Logger, limits *Limits) (stop func() error, err error) {
	if cfg.Pprof == "" {
		return func() error { return nil }, nil
	}
	l, err := ListenFor(ctx, "pprof", cfg.Pprof)
	if err != nil {
		return nil, err
	}
	return profiles.Serve(httpServer(cfg, log, limits, profiles.Handler(rules(cfg))), l, log), nil
}
