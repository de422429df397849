// Package gateways has stand-ins for the services that push messages go to: Apple's APNs and
// Google's FCM. They judge requests as the services' documentation says, and answer what a
// test asks for. Foreign clients of the services prove them.
package gateways

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// Received is a request that a gateway has judged.
type Received struct {
	Token  string // of the device
	Header http.Header
	Body   []byte
	Status int // that it was answered with
	Proto  string
	Remote string // address of the connection
}

// Answer is what a gateway answers in place of its own judgement.
type Answer struct {
	Status int
	Body   string
	Header map[string]string
	// Hang keeps the request until its sender gives up, and Close closes its connection.
	Hang, Close bool
}

// gateway is what both have.
type gateway struct {
	*httptest.Server
	mu       sync.Mutex
	received []Received
	script   func(n int, token string) *Answer
	count    int
	observe  func(Received)
}

// start serves over TLS and HTTP/2. Certificates of clients are asked for, and not verified.
func (g *gateway) start(t testing.TB, h http.HandlerFunc) {
	g.Server = httptest.NewUnstartedServer(h)
	g.EnableHTTP2 = true
	g.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	g.StartTLS()
	t.Cleanup(g.Close)
}

// CA is the certificate of the gateway, in PEM form.
func (g *gateway) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.Certificate().Raw})
}

// Trust is a configuration that believes the gateway.
func (g *gateway) Trust() *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(g.Certificate())
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

// Script has requests answered by f, which gets how many came before and whom the request is
// for; nil: by the gateway's own judgement.
func (g *gateway) Script(f func(n int, token string) *Answer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.script = f
}

// Received are the requests so far.
func (g *gateway) Received() []Received {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]Received(nil), g.received...)
}

// scripted answers a request by the script; false: there is no answer in it.
func (g *gateway) scripted(w http.ResponseWriter, r *http.Request, got *Received) bool {
	g.mu.Lock()
	n, script := g.count, g.script
	g.count++
	g.mu.Unlock()
	if script == nil {
		return false
	}
	a := script(n, got.Token)
	if a == nil {
		return false
	}
	got.Status = a.Status
	g.note(*got)
	switch {
	case a.Hang:
		<-r.Context().Done()
	case a.Close:
		panic(http.ErrAbortHandler)
	default:
		for name, value := range a.Header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(a.Status)
		_, _ = w.Write([]byte(a.Body))
	}
	return true
}

// Observe calls f for each request that is judged, from now on. It is called concurrently.
func (g *gateway) Observe(f func(Received)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.observe = f
}

func (g *gateway) note(r Received) {
	g.mu.Lock()
	g.received = append(g.received, r)
	observe := g.observe
	g.mu.Unlock()
	if observe != nil {
		observe(r)
	}
}

func jsonOf(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of texts
	}
	return text
}

// NewECKey draws a key, as Apple gives one: in PEM form.
func NewECKey() (*ecdsa.PrivateKey, string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // it has randomness
	}
	return key, inPEM(key)
}

// NewRSAKey draws a key, as Google gives one: in PEM form.
func NewRSAKey() (*rsa.PrivateKey, string) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key, inPEM(key)
}

func inPEM(key any) string {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// NewCertificate makes a certificate of an application and its key, in PEM form.
func NewCertificate(name string) (certificate, key string) {
	signer, text := NewECKey()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Apple Push Services: " + name},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &signer.PublicKey, signer)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), text
}
