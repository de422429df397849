package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"

	"godwit.dev/godwit/internal/bootstrap"
	"godwit.dev/godwit/internal/certs"
	"godwit.dev/godwit/internal/certs/acme"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/wire/http1"
)

// certificates are the certificates for TLS.
type certificates interface {
	Config() *tls.Config
	// Failing reports their problem; nil if there is none.
	Failing() error
	// Watch keeps them up to date until it is stopped.
	Watch() (stop func())
}

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

// openCertificates reads the server's certificates, or prepares to request them; secure stays
// nil without TLS.
func (s *Server) openCertificates(root *seal.Root) error {
	c := &s.cfg
	switch {
	case c.TLSCert != "":
		files, err := certs.Open(certs.Options{Cert: c.TLSCert, Key: c.TLSKey, ClientCA: c.TLSClientCA, Logger: s.log})
		if err != nil {
			return err
		}
		s.certificates = files
		c.Live.OnReload(files.Reload)
	case len(c.ACMEDomains) > 0:
		cache := c.ACMECache
		if cache == "" {
			cache = filepath.Join(c.Data, "acme")
		}
		if root == nil {
			return errors.New("--acme-domains: certificates are kept sealed with the root key, which there is none of here")
		}
		manager, err := acme.Open(acme.Options{
			Domains: c.ACMEDomains, Directory: c.ACMEDirectory, Email: c.ACMEEmail, CA: c.ACMECA, ClientCA: c.TLSClientCA,
			Cache: cache, Sealer: root.Sealer("certificates"), Logger: s.log,
		})
		if err != nil {
			return err
		}
		s.certificates = manager
	}
	return nil
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
