package server

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"

	"godwit.dev/godwit/internal/certs"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/wire/http1"
)

// serveIngest serves posts at a separate address, if one is set.
func (s *Server) serveIngest(ctx context.Context, parts Parts) error {
	if s.cfg.IngestListen == "" || parts.Ingest == nil {
		return nil
	}
	s.handlers.Posts = parts.Ingest
	if s.limitsShared {
		return nil
	}
	l, err := ListenFor(ctx, "ingest-listen", s.cfg.IngestListen)
	if err != nil {
		return err
	}
	s.ingest = l.Addr()
	var secure *tls.Config
	if s.certificates != nil {
		secure = s.certificates.Config()
	}
	srv, posts := ForPosts(s.cfg, s.log, s.limits, l, secure, s.handlers.Posts)
	s.serveUntilStopped("posts", "posts' HTTP server", srv, func() error { return srv.Serve(posts) })
	s.log.Info("posts to sources", "listen", s.ingest.String())
	return nil
}

// ForPosts makes the HTTP server of h for posts to sources, and the listener that it is to serve: l,
// which accepts TCP connections, with the bounds of limits and, if secure is not nil, TLS. limits has
// one such listener.
func ForPosts(cfg config.Config, log *slog.Logger, limits *Limits, l net.Listener, secure *tls.Config, h http.Handler) (*http1.Server, net.Listener) {
	l = limits.ofPosts(l)
	if secure != nil {
		// Who posts is known by what verifies the post, and has no certificate of --tls-client-ca.
		l = tls.NewListener(l, certs.ForAnyClient(secure))
	}
	srv := httpServer(cfg, log, limits, h)
	limits.watch(srv)
	return http1.New(h, srv), l
}

// IngestAddr is the address at which a started server accepts posts; nil: none, or its process listens.
func (s *Server) IngestAddr() net.Addr {
	<-s.lifecycle
	defer func() { s.lifecycle <- struct{}{} }()
	return s.ingest
}
