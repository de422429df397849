package server

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"godwit.dev/godwit/internal/wire/guard"
	"godwit.dev/godwit/test/rawhttp"
)

// The guard stands before everything, whichever of the two servers of HTTP answers.
func TestGuardIsBeforeEverything(t *testing.T) {
	var served atomic.Int64
	j := &diary{wire: func(http.ResponseWriter, *http.Request) { served.Add(1) }}
	s := newTestServer(j.build)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Stop(context.Background())
	const evil = "Origin: http://evil.example\r\n"
	for _, path := range []string{"/", "/000000000000/q", "/2015-03-31/functions", "/_godwit/clock", "/metrics", "/_godwit/ready", "//_godwit/clock", "/_godwit/../"} {
		for _, request := range []string{
			"POST " + path + " HTTP/1.1\r\nHost: localhost\r\n" + evil + "Content-Length: 2\r\n\r\n{}",                            // by http1
			"POST " + path + " HTTP/1.1\r\nHost: localhost\r\n" + evil + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", // by net/http
			"POST " + path + " HTTP/1.1\r\nHost: localhost\r\n" + evil + "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n",
			"POST " + path + " HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 2\r\n\r\n{}",
			"POST " + path + " HTTP/1.0\r\n\r\n",
			"PUT " + path + " HTTP/1.1\r\nHost: localhost\r\n" + evil + "\r\n",
			"GET " + path + "?Action=DeleteQueue HTTP/1.1\r\nHost: localhost\r\nReferer: http://evil.example\r\n\r\n",
			"GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + evil + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
			"GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + evil + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
			"OPTIONS " + path + " HTTP/1.1\r\nHost: localhost\r\n" + evil + "Access-Control-Request-Method: POST\r\n\r\n",
			"GET " + path + " HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n\r\n",
		} {
			if strings.HasPrefix(request, "POST /_godwit/ready HTTP/1.0") { // a probe needs no Host
				continue
			}
			if status, body := rawhttp.Exchange(t, s.Addr().String(), request); status != http.StatusForbidden || !strings.HasPrefix(body, `{"error":"`) {
				t.Errorf("%q: %d %s", request, status, body)
			}
		}
	}
	if status, _ := rawhttp.Exchange(t, s.Addr().String(), "OPTIONS * HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"); status != http.StatusForbidden {
		t.Errorf("OPTIONS * of a foreign name: %d", status)
	}
	if n := served.Load(); n != 0 {
		t.Errorf("%d requests were served", n)
	}
	if status, body := rawhttp.Exchange(t, s.Addr().String(), "GET /_godwit/ready HTTP/1.0\r\n\r\n"); status != http.StatusOK {
		t.Errorf("a probe without a Host: %d %s", status, body)
	}
}

// No page uses profiles, not even by a link.
func TestProfilesAreGuarded(t *testing.T) {
	cfg := testConfig()
	cfg.Pprof = "127.0.0.1:0"
	cfg.CORSOrigins = []string{"http://localhost:3000"}
	var logged bytes.Buffer
	s := New(cfg, slog.New(slog.NewJSONHandler(&logged, nil)), (&diary{}).build)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Stop(context.Background())
	var line struct{ Listen string }
	if err := json.Unmarshal(logged.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		header string
		want   int
	}{
		{"Host: localhost\r\n", 200},
		{"Host: localhost\r\nSec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\n", 200},
		{"Host: evil.example\r\n", 403},
		{"Host: localhost\r\nOrigin: http://evil.example\r\n", 403},
		{"Host: localhost\r\nOrigin: http://localhost:3000\r\n", 403},
		{"Host: localhost\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: image\r\n", 403},
		{"Host: localhost\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n", 403},
		{"Host: localhost\r\nSec-Fetch-Site: same-site\r\n", 403},
	} {
		for _, path := range []string{"cmdline", "cmdline?Action=ConfirmSubscription&Token=x"} {
			if path != "cmdline" && tt.want == 200 {
				continue
			}
			if status, body := rawhttp.Exchange(t, line.Listen, "GET /debug/pprof/"+path+" HTTP/1.1\r\n"+tt.header+"\r\n"); status != tt.want {
				t.Errorf("%s %q: %d %s, want %d", path, tt.header, status, body, tt.want)
			}
		}
	}
}

// Each refusal is counted, by its reason.
func TestRefusalsAreReported(t *testing.T) {
	var mu sync.Mutex
	var reasons, forbidden []string
	note := func(to *[]string, s string) {
		mu.Lock()
		defer mu.Unlock()
		*to = append(*to, s)
	}
	s := newTestServer(func(ctx context.Context, deps Deps) (Parts, error) {
		parts, err := (&diary{}).build(ctx, deps)
		parts.Refused = func(reason string) { note(&reasons, reason) }
		parts.Forbid = func(w http.ResponseWriter, r *http.Request, text string) {
			note(&forbidden, r.URL.Path+" "+text)
			w.WriteHeader(http.StatusForbidden)
		}
		return parts, err
	})
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Stop(context.Background())
	address := s.Addr().String()
	for _, header := range []string{
		"Host: evil.example\r\n", "Host: localhost\r\nOrigin: null\r\n", "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n",
		"Host: localhost\r\nReferer: http://evil.example/\r\n", "Host: godwit\r\n",
	} {
		rawhttp.Exchange(t, address, "GET /?Action=ListQueues HTTP/1.1\r\nConnection: close\r\n"+header+"\r\n")
		rawhttp.Exchange(t, address, "GET /_godwit/ready?Action=x HTTP/1.1\r\nConnection: close\r\n"+header+"\r\n")
	}
	mu.Lock()
	defer mu.Unlock()
	want := []string{"host", "host", "origin", "origin", "site", "site", "referer", "referer", "unsigned", "unsigned"}
	if !slices.Equal(reasons, want) {
		t.Errorf("told %v, want %v", reasons, want)
	}
	if slices.ContainsFunc(reasons, func(r string) bool { return !slices.Contains(guard.Reasons, guard.Reason(r)) }) {
		t.Errorf("metrics know the reasons %v only", guard.Reasons)
	}
	if len(forbidden) != 5 || slices.ContainsFunc(forbidden, func(s string) bool { return !strings.HasPrefix(s, "/ The ") && !strings.HasPrefix(s, "/ A GET ") }) {
		t.Errorf("in the form of the protocol: %q", forbidden)
	}
}
