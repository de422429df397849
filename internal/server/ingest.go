package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"

	"godwit.dev/godwit/internal/certs"
)

// serveIngest serves posts at a separate address, if one is set.
func (s *Server) serveIngest(ctx context.Context, parts Parts) error {
	if s.cfg.IngestListen == "" || parts.Ingest == nil {
		return nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.cfg.IngestListen)
	if err != nil {
		return fmt.Errorf("cannot listen on %s (--ingest-listen): %w", s.cfg.IngestListen, err)
	}
	s.ingest = l.Addr()
	l = s.limits.ofPosts(l)
	if s.certificates != nil {
		// Who posts is known by what verifies the post, and has no certificate of --tls-client-ca.
		l = tls.NewListener(l, certs.ForAnyClient(s.certificates.Config()))
	}
	s.serveAt("posts", l, parts.Ingest)
	s.log.Info("posts to sources", "listen", s.ingest.String())
	return nil
}

// IngestAddr is the address at which a started server accepts posts; nil: none.
func (s *Server) IngestAddr() net.Addr {
	<-s.lifecycle
	defer func() { s.lifecycle <- struct{}{} }()
	return s.ingest
}
