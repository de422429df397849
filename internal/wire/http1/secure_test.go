package http1

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// keyPair is a certificate and who believes it.
type keyPair struct {
	certificate tls.Certificate
	roots       *x509.CertPool
}

var pair = func() (p keyPair) {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	p.certificate = s.TLS.Certificates[0]
	p.roots = x509.NewCertPool()
	p.roots.AddCert(s.Certificate())
	return p
}()

// startTLS is start over TLS, which asks clients for a certificate.
func startTLS(t testing.TB, h http.Handler, set func(*http.Server)) (*Server, string) {
	t.Helper()
	other := &http.Server{Handler: h, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), ReadHeaderTimeout: time.Minute}
	if set != nil {
		set(other)
	}
	s := New(other.Handler, other)
	return s, serve(t, s, func(l net.Listener) net.Listener {
		return tls.NewListener(l, &tls.Config{
			Certificates: []tls.Certificate{pair.certificate}, NextProtos: []string{"h2", "http/1.1", "other"},
			ClientAuth: tls.RequestClientCert,
		})
	})
}

func clientConfig(protocols ...string) *tls.Config {
	return &tls.Config{
		RootCAs: pair.roots, ServerName: "example.com", NextProtos: protocols, Certificates: []tls.Certificate{pair.certificate},
	}
}

func dialTLS(t *testing.T, addr string, protocols ...string) client {
	t.Helper()
	c, err := tls.Dial("tcp", addr, clientConfig(protocols...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return client{t, c, bufio.NewReader(c)}
}

// What a handler knows of TLS is the same by HTTP/1.1 and HTTP/2.
func TestTLSIsLeftToNetHTTP(t *testing.T) {
	type told struct {
		plain bool
		proto string
		tls   *tls.ConnectionState
		value any
	}
	seen := make(chan told, 1)
	type key struct{}
	_, addr := startTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, plain := w.(*response)
		seen <- told{plain, r.Proto, r.TLS, r.Context().Value(key{})}
	}), func(s *http.Server) {
		s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
			for {
				below, ok := c.(interface{ NetConn() net.Conn })
				if !ok {
					return context.WithValue(ctx, key{}, c)
				}
				c = below.NetConn()
			}
		}
	})
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		transport := &http.Transport{TLSClientConfig: clientConfig(), ForceAttemptHTTP2: proto == "HTTP/2.0"}
		r, err := (&http.Client{Transport: transport}).Post("https://"+addr, "text/plain", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		got := <-seen
		if got.plain || got.proto != proto || got.tls == nil || len(got.tls.PeerCertificates) != 1 {
			t.Errorf("%s: told %+v", proto, got)
		}
		if _, ok := got.value.(*net.TCPConn); !ok {
			t.Errorf("%s: the connection below is a %T", proto, got.value)
		}
		transport.CloseIdleConnections()
	}
}

func TestProtocolsThatNobodySpeaks(t *testing.T) {
	_, addr := startTLS(t, echo, nil)
	c := dialTLS(t, addr, "other")
	c.send(request("x"))
	c.ended()
}

func TestPlainRequestsWhereTLSIsSpoken(t *testing.T) {
	_, addr := startTLS(t, echo, nil)
	c := dial(t, addr)
	c.send(request("x"))
	c.answer(400, "Client sent an HTTP request to an HTTPS server.\n")
	c.ended()
}

func TestHandshakesThatDoNotEnd(t *testing.T) {
	_, addr := startTLS(t, echo, func(s *http.Server) { s.WriteTimeout = 30 * time.Millisecond })
	c := dial(t, addr)
	c.send("\x16\x03\x01") // of a record of TLS
	c.ended()
}

func TestShutdownDuringHandshakes(t *testing.T) {
	s, addr := startTLS(t, echo, nil)
	asked := dialTLS(t, addr)
	asked.send(request("x"))
	asked.answer(200, "POST /q localhost x")
	c := dial(t, addr)
	c.send("\x16\x03\x01")
	for s.known() == 0 { // until it is accepted
		<-after(time.Millisecond)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	c.ended()
	asked.ended()
}

func TestCloseDuringHandshakes(t *testing.T) {
	s, addr := startTLS(t, echo, nil)
	c := dial(t, addr)
	c.send("\x16\x03\x01")
	for s.known() == 0 {
		<-after(time.Millisecond)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	c.ended()
}

func (s *Server) known() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

func TestFramedListeners(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	other := &http.Server{Handler: echo, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- other.Serve(Framed(l)) }()
	c := dial(t, l.Addr().String())
	c.send(request("x"))
	c.answer(200, "POST /q localhost x")
	c.send("POST /q HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
	c.answer(400, "400 Bad Request")
	if b, err := io.ReadAll(c.Reader); len(b) > 0 {
		t.Errorf("%q, %v", b, err)
	}
	other.Close()
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}
