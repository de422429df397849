package acme_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"github.com/miekg/dns"

	"godwit.dev/godwit/internal/certs/acme"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/seal"
)

const domain = "godwit.example.com"

// patience bounds every wait.
const patience = time.Minute

// names answers that every name is this machine's, and returns where it is asked.
func names(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &dns.Server{Listener: l, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		answer := new(dns.Msg).SetReply(q)
		for _, question := range q.Question {
			if question.Qtype == dns.TypeA {
				answer.Answer = append(answer.Answer, &dns.A{
					Hdr: dns.RR_Header{Name: question.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1}, A: net.IPv4(127, 0, 0, 1),
				})
			}
		}
		_ = w.WriteMsg(answer)
	})}
	go func() { _ = server.ActivateAndServe() }()
	t.Cleanup(func() { _ = server.Shutdown() })
	return l.Addr().String()
}

// authority is Let's Encrypt's test server, whose certificates live for seconds. It
// proves names at the port of a TLS server. It returns where it is, a file of what is to
// be trusted there, and what is to be trusted of its certificates.
func authority(t *testing.T, port, seconds int) (directory, trust string, roots *x509.CertPool) {
	t.Helper()
	t.Setenv("PEBBLE_VA_NOSLEEP", "1")
	t.Setenv("PEBBLE_WFE_NONCEREJECT", "0")
	quiet := slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	store := db.NewMemoryStore()
	issuer := ca.New(quiet, store, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": {Description: "short", ValidityPeriod: uint64(seconds)}})
	front := wfe.New(quiet, store, va.New(quiet, 0, port, false, names(t), store), issuer, []string{"test.example"}, false, false, 1, 1)
	server := httptest.NewTLSServer(front.Handler())
	t.Cleanup(server.Close)
	trust = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(trust, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AddCert(issuer.GetRootCert(0).Cert)
	return server.URL + wfe.DirectoryPath, trust, roots
}

// serve accepts connections of TLS until the test ends.
func serve(t *testing.T, l net.Listener, c *tls.Config) {
	t.Helper()
	server := &http.Server{Handler: http.NotFoundHandler(), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)}
	go func() { _ = server.Serve(tls.NewListener(l, c)) }()
	t.Cleanup(func() { _ = server.Close() })
}

// served is the certificate that a client is shown, nil while there is none.
func served(t *testing.T, address string, roots *x509.CertPool) *x509.Certificate {
	t.Helper()
	dialer := tls.Dialer{Config: &tls.Config{ServerName: domain, RootCAs: roots}}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		t.Logf("no connection yet: %v", err)
		return nil
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
}

// The certificate is had by a proof that the name is ours, renewed before it expires, and
// kept so that who has the disk cannot read its key.
func TestCertificatesAreHadAndRenewed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	directory, trust, roots := authority(t, l.Addr().(*net.TCPAddr).Port, 12)
	root := seal.NewRoot()
	options := acme.Options{
		Domains: []string{domain}, Directory: directory, Email: "ops@example.com", CA: trust,
		Cache: t.TempDir(), Sealer: root.Sealer("certificates"), Logger: slog.New(slog.DiscardHandler),
	}
	m, err := acme.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, l, m.Config())
	defer m.Watch()()

	first := served(t, address, roots)
	if first == nil {
		t.Fatal("no certificate")
	}
	if err := m.Failing(t.Context()); err != nil {
		t.Error(err)
	}
	began := clock.System.Now()
	for renewed := false; !renewed; {
		if clock.System.Now().Sub(began) > patience {
			t.Fatal("the certificate was not renewed")
		}
		looked := make(chan struct{})
		clock.System.AfterFunc(200*time.Millisecond, func() { close(looked) })
		<-looked
		now := served(t, address, roots)
		renewed = now != nil && now.SerialNumber.Cmp(first.SerialNumber) != 0
		if renewed && now.NotBefore.After(first.NotAfter) {
			t.Error("it came after the first had expired")
		}
	}

	kept := 0
	err = filepath.WalkDir(options.Cache, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		kept++
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte("PRIVATE KEY")) {
			t.Errorf("%s has a key in clear", path)
		}
		if info, err := d.Info(); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
		return err
	})
	if err != nil || kept < 2 {
		t.Fatalf("%d files, %v", kept, err)
	}

	// A name that is not ours has none.
	conn, err := tls.Dial("tcp", address, &tls.Config{ServerName: "other.example.com", RootCAs: roots})
	if err == nil {
		conn.Close()
		t.Error("there is a certificate for any name")
	}
}

func TestFailureIsTold(t *testing.T) {
	gone := httptest.NewTLSServer(http.NotFoundHandler())
	gone.Close()
	m, err := acme.Open(acme.Options{
		Domains: []string{domain}, Directory: gone.URL, Cache: t.TempDir(), Sealer: seal.NewRoot().Sealer("certificates"),
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serve(t, l, m.Config())
	if served(t, l.Addr().String(), nil) != nil {
		t.Fatal("there is a certificate")
	}
	if err := m.Failing(t.Context()); err == nil {
		t.Error("nothing is told")
	}
}
