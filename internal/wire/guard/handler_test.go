package guard_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/wire/guard"
	"godwit.dev/godwit/test/rawhttp"
)

// newServer serves paths behind a guard. Under /own/ is what is not AWS's.
func newServer(t *testing.T, settings guard.Settings, verified func(*http.Request) bool) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(guard.Handler(guard.Options{
		Rules: guard.NewRules(settings), Verified: verified,
		Surface: func(path string) guard.Surface {
			if strings.HasPrefix(path, "/own/") {
				return guard.Own
			}
			return guard.AWS
		},
		Refuse: func(w http.ResponseWriter, _ *http.Request, refusal guard.Refusal) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, "%s: %s", refusal.Reason, refusal.Text)
		},
		Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "served "+r.Proto) }),
	}))
	s.EnableHTTP2 = true
	t.Cleanup(s.Close)
	return s
}

// What HTTP leaves open about Host: it is the host of an absolute target, and there
// is one.
func TestHostsOfRequests(t *testing.T) {
	s := newServer(t, guard.Settings{}, nil)
	s.Start()
	for request, want := range map[string]int{
		"POST / HTTP/1.1\r\nHost: localhost\r\n":                                      200,
		"POST / HTTP/1.1\r\nHost: evil.example\r\n":                                   403,
		"POST / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n":                400,
		"POST / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n":                   400,
		"POST / HTTP/1.1\r\nHost: localhost, evil.example\r\n":                        400,
		"POST / HTTP/1.1\r\nHost:\r\n":                                                403,
		"POST / HTTP/1.1\r\n":                                                         400,
		"POST / HTTP/1.0\r\n":                                                         403,
		"POST / HTTP/1.0\r\nHost: localhost\r\n":                                      200,
		"POST http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n":                   403,
		"POST http://localhost/ HTTP/1.1\r\nHost: evil.example\r\n":                   200,
		"POST http://localhost/ HTTP/1.1\r\nHost: x\r\nOrigin: http://x\r\n":          403,
		"POST / HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-Host: evil.example\r\n":    200,
		"POST / HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: localhost\r\n":    403,
		"POST / HTTP/1.1\r\nHost: localhost\r\nORIGIN: http://evil.example\r\n":       403,
		"POST / HTTP/1.1\r\nHost: localhost\r\nsec-fetch-site:  cross-site\t\r\n":     403,
		"POST //evil.example/ HTTP/1.1\r\nHost: localhost\r\n":                        200,
		"CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n":                    403,
		"GET /?Action=A HTTP/1.1\r\nHost: localhost\r\nReferer: http://evil.x/\r\n":   403,
		"GET /?Action=A HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-site\r\n": 403,
		"PRI * HTTP/2.0\r\n": 505, // HTTP/2 without TLS is not spoken
	} {
		if got, body := rawhttp.Exchange(t, s.Listener.Addr().String(), request+"Connection: close\r\n\r\n"); got != want && (want != 505 || got < 400) {
			t.Errorf("%q: %d %s, want %d", request, got, body, want)
		}
	}
}

// In HTTP/2 the name stands in :authority.
func TestHTTP2(t *testing.T) {
	s := newServer(t, guard.Settings{}, nil)
	s.StartTLS()
	c := s.Client()
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}}
	c.Transport.(*http.Transport).DialTLSContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, s.Listener.Addr().String())
	}
	for _, tt := range []struct {
		host, origin string
		want         int
	}{
		{"localhost", "", 200},
		{"localhost", "https://localhost", 200},
		{"localhost", "http://localhost", 403},
		{"localhost", "https://evil.example", 403},
		{"evil.example", "https://evil.example", 403},
		{"evil.example", "", 403},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+tt.host+"/", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if tt.origin != "" {
			req.Header.Set("Origin", tt.origin)
		}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != tt.want || resp.ProtoMajor != 2 {
			t.Errorf("%+v: %s %d %s", tt, resp.Proto, resp.StatusCode, body)
		}
	}
}

// A signature is asked for where it decides, and only there.
func TestSignatures(t *testing.T) {
	asked, valid := 0, false
	s := newServer(t, guard.Settings{}, func(*http.Request) bool { asked++; return valid })
	s.Start()
	for _, tt := range []struct {
		valid   bool
		request string
		want    int
		asks    bool
	}{
		{true, "POST / HTTP/1.1\r\nHost: localhost\r\n", 200, false},
		{true, "POST / HTTP/1.1\r\nHost: any.example\r\n", 200, true},
		{false, "POST / HTTP/1.1\r\nHost: any.example\r\n", 403, true},
		{true, "POST /own/ HTTP/1.1\r\nHost: any.example\r\n", 403, false},
		{true, "POST / HTTP/1.1\r\nHost: any.example\r\nOrigin: http://evil.example\r\n", 403, false},
		{true, "GET /?Action=A HTTP/1.1\r\nHost: godwit\r\n", 200, true},
		{false, "GET /?Action=A HTTP/1.1\r\nHost: godwit\r\n", 403, true},
	} {
		asked, valid = 0, tt.valid
		if got, body := rawhttp.Exchange(t, s.Listener.Addr().String(), tt.request+"Connection: close\r\n\r\n"); got != tt.want || (asked > 0) != tt.asks {
			t.Errorf("%q: %d %s, asked %d times; %+v", tt.request, got, body, asked, tt)
		}
	}
}

// A refusal names the flag, and repeats what a stranger sent only in a form that
// does no harm.
func TestTexts(t *testing.T) {
	s := newServer(t, guard.Settings{}, nil)
	s.Start()
	for request, want := range map[string]string{
		"POST / HTTP/1.1\r\nHost: evil.example:4566\r\n": "host: The host evil.example:4566 is not known to be this server's. If it is, allow it with --allowed-hosts.",
		"POST / HTTP/1.1\r\nHost:\r\n":                   "host: The request has no Host.",
		"POST / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://\xe9\t" + strings.Repeat("x", 200) + "\r\n": "origin: The request comes from a web page of another origin, http://??" + strings.Repeat("x", 119) + "....",
		"POST / HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\n":                                          "origin: The request comes from a web page that does not tell its origin (Origin: null), as any page can. Serve the page from an address, and allow that with --cors-origins.",
		"POST / HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n":                            "site: The request comes from a web page of another origin (Sec-Fetch-Site: cross-site). If you trust all pages of that origin, allow it with --cors-origins",
		"POST / HTTP/1.1\r\nHost: localhost\r\nReferer: http://evil.example/secret\r\n":                   "referer: The request comes from a web page of another origin (Referer). If you trust all pages of that origin, allow it with --cors-origins",
		"GET /?Action=A HTTP/1.1\r\nHost: godwit\r\n":                                                     "unsigned: A GET with an Action is taken from this machine only, at a loopback address or localhost, since a web page may be behind it. Use POST, or allow it with --allow-unsigned-get.",
	} {
		if status, body := rawhttp.Exchange(t, s.Listener.Addr().String(), request+"Connection: close\r\n\r\n"); status != 403 || !strings.HasPrefix(body, want) {
			t.Errorf("%q: %d\ngot  %s\nwant %s", request, status, body, want)
		}
	}
}

// discard is an answer that nobody reads.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

func TestHandlerTakesNoMemory(t *testing.T) {
	for _, origins := range [][]string{nil, {"http://localhost:3000"}} {
		h := guard.Handler(guard.Options{
			Rules: guard.NewRules(guard.Settings{CORSOrigins: origins}), Surface: func(string) guard.Surface { return guard.AWS },
			Next: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
		})
		r, w := httptest.NewRequest(http.MethodPost, "http://localhost:4566/", nil), discard{http.Header{}}
		r.Header.Set("X-Amz-Target", "AmazonSQS.SendMessage")
		if n := testing.AllocsPerRun(100, func() { h.ServeHTTP(w, r) }); n != 0 {
			t.Errorf("with origins %v: %v allocations", origins, n)
		}
		if vary := w.header.Get("Vary"); (vary == "Origin") != (origins != nil) {
			t.Errorf("with origins %v: Vary is %q", origins, vary)
		}
	}
}

func BenchmarkHandler(b *testing.B) {
	h := guard.Handler(guard.Options{
		Rules: guard.NewRules(guard.Settings{}), Surface: func(string) guard.Surface { return guard.AWS },
		Next: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
	})
	r, w := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:4566/", nil), discard{http.Header{}}
	r.Header.Set("X-Amz-Target", "AmazonSQS.SendMessage")
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, r)
	}
}
