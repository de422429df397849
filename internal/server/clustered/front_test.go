package clustered

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/cluster/peer"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server"
	"godwit.dev/godwit/internal/server/clustered/answer"
	"godwit.dev/godwit/internal/server/clustered/nodeapi"
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/test/output"
)

func fronted(t *testing.T, production bool) *front {
	t.Helper()
	p := &part{
		cfg: config.Config{Production: production}, node: Node{Name: "a", Peers: []roster.Peer{{Name: "a"}}}, net: peer.Loopback("secret"),
		log: slog.New(slog.DiscardHandler), left: make(chan struct{}, 1),
	}
	p.front = newFront(p)
	return p.front
}

// What tells of the cluster, or moves it, is for the machine itself or for development.
func TestOwnPaths(t *testing.T) {
	const here, elsewhere = "127.0.0.1:1234", "192.0.2.1:1234"
	for _, c := range []struct {
		name         string
		production   bool
		method, path string
		from         string
		header       string
		want         int
	}{
		{"development", false, "GET", nodeapi.StatusPath, elsewhere, "", 200},
		{"on the machine", true, "GET", nodeapi.StatusPath, here, "", 200},
		{"from elsewhere", true, "GET", nodeapi.StatusPath, elsewhere, "", 403},
		{"through a proxy", true, "GET", nodeapi.StatusPath, here, "X-Forwarded-For", 403},
		{"metrics from elsewhere", true, "GET", nodeapi.MetricsPath, elsewhere, "", 403},
		{"metrics on the machine", true, "GET", nodeapi.MetricsPath, here, "", 200},
		{"a step-down in production", true, "POST", nodeapi.StepDownPath, here, nodeapi.OperatorHeader, 403},
		{"one by a web page", false, "POST", nodeapi.StepDownPath, here, "", 403},
		{"one where nobody serves", false, "POST", nodeapi.StepDownPath, here, nodeapi.OperatorHeader, 503},
		{"what only peers ask", false, "POST", "/snapshot", here, "", 503}, // it waits for an owner like all else
		{"by a web page", false, "GET", nodeapi.StatusPath, here, "Origin", 403},
		{"metrics by a web page", false, "GET", nodeapi.MetricsPath, here, "Origin", 403},
		{"the probe", true, "GET", healthPath, elsewhere, "", 200},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // nobody is waited for
		r := httptest.NewRequestWithContext(ctx, c.method, c.path, nil)
		r.Host, r.RemoteAddr = "127.0.0.1:4566", c.from
		if c.header != "" {
			r.Header.Set(c.header, "x")
		}
		out := httptest.NewRecorder()
		fronted(t, c.production).ServeHTTP(out, r)
		if out.Code != c.want {
			t.Errorf("%s: status %d, want %d: %s", c.name, out.Code, c.want, out.Body)
		}
	}
}

// To the name of a function URL every path is the function's: what a node answers by itself is not there.
func TestPathsOfFunctionURL(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nobody is waited for
	for _, path := range []string{healthPath, readyPath, nodeapi.StatusPath, nodeapi.MetricsPath, nodeapi.StepDownPath} {
		for host, want := range map[string]int{"127.0.0.1:4566": 0, strings.Repeat("0", 32) + ".lambda-url.us-east-1.example:4566": http.StatusServiceUnavailable} {
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
			r.Host, r.RemoteAddr = host, "192.0.2.1:1234"
			out := httptest.NewRecorder()
			fronted(t, false).ServeHTTP(out, r)
			if waits := strings.Contains(out.Body.String(), "has not joined its cluster"); waits != (want != 0) {
				t.Errorf("%s at %s: status %d: %s", path, host, out.Code, out.Body)
			}
		}
	}
}

// For which client a request comes is believed from peers, and from nobody else.
func TestForwardedIdentity(t *testing.T) {
	ask := func(by func(f *front) http.HandlerFunc, secure string) *http.Request {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", nil)
		r.RemoteAddr = "192.0.2.1:1234"
		for name, value := range map[string]string{forwardedHeader: "b", sourceHeader: "127.0.0.1:5", secureHeader: secure} {
			r.Header.Set(name, value)
		}
		r.TLS = &tls.ConnectionState{ServerName: "between nodes"}
		by(fronted(t, true))(httptest.NewRecorder(), r)
		for _, name := range ofPeers {
			if r.Header.Get(name) != "" {
				t.Errorf("%s is left", name)
			}
		}
		return r
	}
	if r := ask(func(f *front) http.HandlerFunc { return f.ServeHTTP }, "yes"); r.RemoteAddr != "192.0.2.1:1234" || r.TLS == nil {
		t.Errorf("a client is believed to come from %s, TLS %v", r.RemoteAddr, r.TLS)
	}
	if r := ask(func(f *front) http.HandlerFunc { return f.ofPeer }, ""); r.TLS != nil {
		t.Error("a client without TLS has that of the nodes")
	}
	if r := ask(func(f *front) http.HandlerFunc { return f.ofPeer }, "yes"); r.RemoteAddr != "127.0.0.1:5" || r.TLS == nil {
		t.Errorf("a peer is not believed: %s, TLS %v", r.RemoteAddr, r.TLS)
	}
}

// A body that is small is there for another try; one that cannot be read, or is large, is
// the handler's to read.
func TestKeep(t *testing.T) {
	request := func(body io.Reader, length int64) *http.Request {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", body)
		r.ContentLength = length
		return r
	}
	r := request(strings.NewReader("body"), 4)
	if body, whole := fronted(t, false).keep(r); string(body) != "body" || !whole {
		t.Errorf("kept %q, %v", body, whole)
	}
	if text, err := io.ReadAll(r.Body); string(text) != "body" || err != nil {
		t.Errorf("the handler reads %q, %v", text, err)
	}
	r = request(strings.NewReader("cut"), 10)
	if _, whole := fronted(t, false).keep(r); whole {
		t.Error("half a body is kept")
	}
	if text, err := io.ReadAll(r.Body); string(text) != "cut" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the handler reads %q, %v", text, err)
	}
	for _, length := range []int64{-1, replayable + 1} {
		if _, whole := fronted(t, false).keep(request(strings.NewReader(strings.Repeat("x", replayable+1)), length)); whole {
			t.Errorf("a body of length %d is kept", length)
		}
	}
}

// TestKeepBounded: what is kept of bodies is bounded in all, and what is not kept is read by the
// handler.
func TestKeepBounded(t *testing.T) {
	f := fronted(t, false)
	f.mayKeep = 10
	f.kept.Store(7)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader("body"))
	if _, whole := f.keep(r); whole || f.kept.Load() != 7 {
		t.Errorf("more is kept than there is memory for: %d bytes", f.kept.Load())
	}
	if text, err := io.ReadAll(r.Body); string(text) != "body" || err != nil {
		t.Errorf("the handler reads %q, %v", text, err)
	}
	f.kept.Store(6)
	ended, cancel := context.WithCancel(t.Context())
	cancel() // nobody is waited for
	f.serve(httptest.NewRecorder(), httptest.NewRequestWithContext(ended, http.MethodPost, "/", strings.NewReader("body")), forClients, false)
	if f.kept.Load() != 6 {
		t.Errorf("after a request %d bytes are kept, and 6 were before", f.kept.Load())
	}
}

// TestFrontBounds: a node takes as many connections as its settings allow, whoever owns the state.
func TestFrontBounds(t *testing.T) {
	f := fronted(t, false)
	cfg := config.Config{MaxConnections: 2}
	l, err := server.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.limits = server.NewLimits(cfg, f.part.log)
	begun, end := make(chan struct{}), make(chan struct{})
	stop := serve(server.ForClients(cfg, f.part.log, f.limits, l, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		<-end
		f.ServeHTTP(w, r)
	})))
	defer stop()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func() error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String()+healthPath, nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(r)
		if err != nil {
			return err
		}
		if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusOK {
			return errors.Join(err, errors.New(answer.Status))
		}
		return nil
	}
	answered := make(chan error, 2)
	for range 2 {
		go func() { answered <- get() }()
		<-begun
	}
	if err := get(); err == nil {
		t.Error("a third connection is answered")
	}
	close(end)
	for range 2 {
		if err := <-answered; err != nil {
			t.Errorf("one that may be: %v", err)
		}
	}
}

// The connections of clients are divided among the nodes that there are.
func TestConnectionsFollowNodes(t *testing.T) {
	f := fronted(t, false)
	f.part.cfg.Data, f.part.cfg.MaxConnections = t.TempDir(), 1<<30 // as many as there are descriptors for
	f = newFront(f.part)
	f.part.front = f
	alone, m := f.limits.Connections(), &roster.List{}
	f.part.members.known.Store(m)
	for n, name := range []string{"a", "b", "c", "d"} {
		nodes := append(slices.Clone(m.Nodes), roster.Member{Name: name, Route: fmt.Sprintf("127.0.0.1:%d", 7000+n)})
		m = &roster.List{Version: uint64(n + 1), Nodes: nodes}
		if err := f.part.adopt(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		if got := f.limits.Connections(); got > alone/(n+1) || got < alone/(n+1)-1 {
			t.Errorf("%d nodes: %d connections, one has %d", n+1, got, alone)
		}
	}
}

// A node divides the machine's resources once, for what it forwards and for what it serves.
func TestLimitsAreMadeOnce(t *testing.T) {
	o := startOwning(t)
	var log output.Buffer
	o.part.log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	o.part.cfg.MaxConnections = 1 << 30 // of which there is a warning
	o.part.front.limits = server.NewLimits(o.part.cfg, o.part.log)
	o.take()
	if n := strings.Count(log.String(), "few file descriptors"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, log.String())
	}
	o.leave()
}

// A client that has ended its side of the connection, by which the request's context ends, gets what the
// owner answers.
func TestHalfClosed(t *testing.T) {
	o := startOwning(t)
	o.take()
	ctx, cancel := context.WithCancel(t.Context())
	out := httptest.NewRecorder()
	answer.Confirmed(o.part.inner.Load().owner.Owner, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		w.WriteHeader(http.StatusNoContent)
	})).ServeHTTP(out, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
	if out.Code != http.StatusNoContent {
		t.Errorf("status %d: %s", out.Code, out.Body)
	}
	o.leave()
}
