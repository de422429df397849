package acme_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"godwit.dev/godwit/internal/certs/acme"
	"godwit.dev/godwit/internal/certs/acme/acmetest"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/seal"
)

const domain = "godwit.example.com"

// testTimeout bounds every wait.
const testTimeout = time.Minute

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
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		t.Logf("no connection yet: %v", err)
		return nil
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
}

func listen(t *testing.T) (l net.Listener, port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l, l.Addr().(*net.TCPAddr).Port
}

// The certificate is had by a proof that the name is ours, renewed before it expires, and
// kept so that who has the disk cannot read its key.
func TestCertificatesAreHadAndRenewed(t *testing.T) {
	t.Parallel() // it waits until its certificate is old, as the next one does
	l, port := listen(t)
	testCertificates(t, l, acmetest.Ports{TLS: port}, nil)
}

// The same where only port 80 of the name leads here.
func TestCertificatesByHTTP(t *testing.T) {
	t.Parallel()
	l, _ := listen(t)
	plain, port := listen(t)
	var proven atomic.Int64
	testCertificates(t, l, acmetest.Ports{HTTP: port}, func(proof http.Handler) {
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/.well-known/acme-challenge/") {
				proven.Add(1)
			}
			proof.ServeHTTP(w, r)
		})}
		go func() { _ = server.Serve(plain) }()
		t.Cleanup(func() { _ = server.Close() })

		// What is no proof is sent to https.
		client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		r, err := client.Get("http://" + plain.Addr().String() + "/x")
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != http.StatusFound || r.Header.Get("Location") != "https://127.0.0.1/x" {
			t.Errorf("%s to %q", r.Status, r.Header.Get("Location"))
		}
	})
	if proven.Load() < 2 {
		t.Errorf("%d proofs by HTTP", proven.Load())
	}
}

// testCertificates has a certificate and its renewal for a server at l; web, which may be
// nil, serves the proof by HTTP.
func testCertificates(t *testing.T, l net.Listener, ports acmetest.Ports, web func(proof http.Handler)) {
	t.Helper()
	address := l.Addr().String()
	directory, trust, roots := acmetest.Authority(t, ports, 30) // renewed in its last third: a busy machine takes seconds
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
	if web != nil {
		web(m.Handler())
	}
	defer m.Watch()()

	first := served(t, address, roots)
	if first == nil {
		t.Fatalf("no certificate: %v", m.Failing())
	}
	if err := m.Failing(); err != nil {
		t.Error(err)
	}
	began := clock.System.Now()
	for renewed := false; !renewed; {
		if clock.System.Now().Sub(began) > testTimeout {
			t.Fatal("the certificate was not renewed")
		}
		looked, _ := clock.After(clock.System, 200*time.Millisecond)
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
	if err := m.Failing(); err == nil {
		t.Error("nothing is told")
	}
}
