// Package acmetest runs Let's Encrypt's test server in the process of a test.
package acmetest

import (
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"github.com/miekg/dns"
)

// names serves DNS with this machine's address for every name, and returns its own address.
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

// settings disables the server's delays and random refusals. They are of the whole process,
// so that tests may use several servers.
var settings = sync.OnceFunc(func() {
	for name, value := range map[string]string{"PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "0"} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
})

// Ports are the ports of challenges: TLS in place of 443, HTTP in place of 80. 0 disables
// one.
type Ports struct{ TLS, HTTP int }

// Authority runs Let's Encrypt's test server, whose certificates are valid for seconds. It
// returns its directory's URL, a file with the authority of its own certificate, and the
// roots of the certificates that it issues.
func Authority(t *testing.T, ports Ports, seconds int) (directory, trust string, roots *x509.CertPool) {
	t.Helper()
	settings()
	quiet := slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	store := db.NewMemoryStore()
	issuer := ca.New(quiet, store, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": {Description: "short", ValidityPeriod: uint64(seconds)}})
	front := wfe.New(quiet, store, va.New(quiet, ports.HTTP, ports.TLS, false, names(t), store), issuer, []string{"test.example"}, false, false, 1, 1)
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
