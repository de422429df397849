// Package acmetest runs Let's Encrypt's test server in a test's process.
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

// settings has the server neither wait before it looks nor refuse good requests now and then.
// They are of the whole process, so that tests may have authorities side by side.
var settings = sync.OnceFunc(func() {
	for name, value := range map[string]string{"PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "0"} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
})

// Ports are where it is looked whether a name leads to whoever asks for a certificate: TLS
// stands for port 443, HTTP for port 80. Nothing is proven at one that is 0.
type Ports struct{ TLS, HTTP int }

// Authority is Let's Encrypt's test server, whose certificates live for seconds. It
// returns where it is, a file of what is to be trusted there, and what is to be trusted of
// its certificates.
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
