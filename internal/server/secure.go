package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"godwit.dev/godwit/internal/bootstrap"
	"godwit.dev/godwit/internal/certs/acme"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/wire/http1"
)

// readRootKey reads the root key outside of the data, before anything is written. Without one
// it is a development server: nil.
func (s *Server) readRootKey() (*seal.Root, error) {
	if s.cfg.RootKey == "" {
		return nil, nil
	}
	root, err := bootstrap.ReadRootKey(s.cfg.RootKey)
	if err != nil {
		return nil, fmt.Errorf("the root key cannot be read (--root-key): %w", err)
	}
	return root, nil
}

// watchCertificates renews certificates, once the server serves requests.
func (s *Server) watchCertificates(ctx context.Context) error {
	if s.certificates == nil {
		return nil
	}
	if manager, ok := s.certificates.(*acme.Manager); ok && s.cfg.ACMEHTTP != "" {
		if err := s.serveChallenges(ctx, manager.Handler()); err != nil {
			return err
		}
	}
	stop := s.certificates.Watch()
	s.stack.Push("certificates", func(context.Context) error {
		stop()
		return nil
	})
	return nil
}

// serveChallenges answers a certificate authority's challenges at an address without TLS.
func (s *Server) serveChallenges(ctx context.Context, h http.Handler) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.cfg.ACMEHTTP)
	if err != nil {
		return fmt.Errorf("cannot listen on %s (--acme-http): %w", s.cfg.ACMEHTTP, err)
	}
	srv := httpServer(s.cfg, s.log, s.limits, h)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Serve(http1.Framed(l)); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("serving proofs of names", "error", err)
		}
	}()
	s.stack.Push("proofs of names", func(context.Context) error {
		err := srv.Close()
		<-done
		return err
	})
	return nil
}
