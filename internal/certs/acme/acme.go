// Package acme obtains certificates by ACME, for example from Let's Encrypt, and renews them.
// Only this package uses the library.
package acme

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"godwit.dev/godwit/internal/certs"
	"godwit.dev/godwit/internal/clock"
)

// Sealer encrypts the cache. Its error says that a value was encrypted with another key.
type Sealer interface {
	Seal(plaintext, context []byte) ([]byte, error)
	Open(sealed, context []byte) ([]byte, error)
}

// Options are the settings of a Manager. Email, CA and ClientCA may be empty.
type Options struct {
	Domains   []string // of the certificates
	Directory string   // URL of the ACME directory
	Email     string
	CA        string // file in PEM form: the authorities of Directory's certificate, in place of the system's
	ClientCA  string // file in PEM form: the authorities of client certificates
	Cache     string // directory
	Sealer    Sealer
	Logger    *slog.Logger
}

// Manager has the certificates. It obtains one when it is first needed, and renews it when a
// third of its lifetime, or a month, is left.
type Manager struct {
	options Options
	manager *autocert.Manager
	plain   *tls.Config // for clients
	proof   *tls.Config // for challenges of the ACME server

	mu      sync.Mutex
	failing map[string]error // by domain: why there is no certificate
}

// Open makes a manager, without any request.
func Open(o Options) (*Manager, error) {
	client := &acme.Client{DirectoryURL: o.Directory, UserAgent: "godwit"}
	if o.CA != "" {
		pem, err := os.ReadFile(o.CA)
		if err != nil {
			return nil, fmt.Errorf("--acme-ca: %w", err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--acme-ca: %s has no certificate in PEM form", o.CA)
		}
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
		client.HTTPClient = &http.Client{Transport: transport}
	}
	m := &Manager{options: o, failing: map[string]error{}}
	m.manager = &autocert.Manager{
		Prompt: autocert.AcceptTOS, HostPolicy: autocert.HostWhitelist(o.Domains...), Email: o.Email, Client: client,
		Cache: &cache{dir: autocert.DirCache(o.Cache), sealer: o.Sealer, log: o.Logger},
	}
	m.plain = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: certs.Protocols, GetCertificate: m.certificate}
	m.proof = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{acme.ALPNProto}, GetCertificate: m.manager.GetCertificate}
	return m, certs.RequireClients(m.plain, o.ClientCA)
}

// Config is the configuration of a listener.
func (m *Manager) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: append(slices.Clone(certs.Protocols), acme.ALPNProto),
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			if slices.Equal(hello.SupportedProtos, []string{acme.ALPNProto}) {
				return m.proof, nil
			}
			return m.plain, nil
		},
	}
}

// Handler answers HTTP challenges, and redirects all else to https. It must be called before
// the first certificate is requested.
func (m *Manager) Handler() http.Handler {
	proofs := m.manager.HTTPHandler(nil)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The library compares Host with the names, without regard to a port.
		if name, _, err := net.SplitHostPort(r.Host); err == nil {
			bare := *r
			bare.Host = name
			r = &bare
		}
		proofs.ServeHTTP(w, r)
	})
}

// certificate is the certificate for a client; without a server name, as with an address,
// that of the first domain.
func (m *Manager) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name := hello.ServerName
	if name == "" {
		name = m.options.Domains[0]
		named := *hello
		named.ServerName = name
		hello = &named
	}
	found, err := m.manager.GetCertificate(hello)
	if slices.Contains(m.options.Domains, name) {
		m.note(name, err)
	}
	return found, err
}

func (m *Manager) note(domain string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.failing[domain]
	if err == nil {
		delete(m.failing, domain)
		return
	}
	m.failing[domain] = err
	if before == nil || before.Error() != err.Error() {
		m.options.Logger.Error("there is no certificate", "domain", domain, "error", err)
	}
}

// Failing lists the domains without a certificate; nil: there are none.
func (m *Manager) Failing() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var problems []error
	for _, domain := range m.options.Domains {
		if err := m.failing[domain]; err != nil {
			problems = append(problems, fmt.Errorf("no certificate for %s: %w", domain, err))
		}
	}
	return errors.Join(problems...)
}

// Watch obtains the certificates of all domains before the first client needs them, in the
// background: challenges require a running server.
func (m *Manager) Watch() (stop func()) {
	stopped := make(chan struct{})
	go func() {
		for _, domain := range m.options.Domains {
			select {
			case <-stopped:
				return
			default:
			}
			began := clock.System.Now()
			// The client's algorithms determine the kind of key.
			_, err := m.certificate(&tls.ClientHelloInfo{
				ServerName: domain, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
				SignatureSchemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256}, SupportedCurves: []tls.CurveID{tls.CurveP256},
			})
			if err == nil {
				m.options.Logger.Info("there is a certificate", "domain", domain, "took", clock.System.Now().Sub(began))
			}
		}
	}()
	return sync.OnceFunc(func() { close(stopped) }) // the library cannot be stopped
}

// cache is a directory of encrypted values: the keys of certificates, and that of the
// account.
type cache struct {
	dir    autocert.DirCache
	sealer Sealer
	log    *slog.Logger
}

func (c *cache) Get(ctx context.Context, name string) ([]byte, error) {
	sealed, err := c.dir.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	data, err := c.sealer.Open(sealed, []byte(name))
	if err != nil {
		c.log.Warn("what is cached of certificates is sealed with another key; it is asked for anew", "name", name)
		return nil, autocert.ErrCacheMiss
	}
	return data, nil
}

func (c *cache) Put(ctx context.Context, name string, data []byte) error {
	sealed, err := c.sealer.Seal(data, []byte(name))
	if err != nil {
		return err
	}
	return c.dir.Put(ctx, name, sealed)
}

func (c *cache) Delete(ctx context.Context, name string) error { return c.dir.Delete(ctx, name) }
