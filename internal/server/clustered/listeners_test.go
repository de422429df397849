package clustered

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/cluster/node"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server"
	"godwit.dev/godwit/internal/server/clustered/nodeapi"
	"godwit.dev/godwit/internal/server/clustered/roster"
)

// asked is what a handler answers to a request without a body, with headers in pairs.
func asked(ctx context.Context, h http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, method, path, nil)
	r.Host, r.RemoteAddr = "127.0.0.1:4567", "127.0.0.1:1234"
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	out := httptest.NewRecorder()
	h.ServeHTTP(out, r)
	return out
}

// TestListeners: the owner of the state answers by the listener that a request came to, also where that is
// another node's, which only peers can tell.
func TestListeners(t *testing.T) {
	o := startOwning(t) // another node owns the state
	o.part.cfg.AdminListen, o.part.cfg.IngestListen, o.part.cfg.Prometheus = "127.0.0.1:0", "127.0.0.1:0", true
	o.part.cfg.Listen = "192.0.2.1:4566" // the owner's server listens for itself, elsewhere
	f := o.part.front
	o.until(o.mine(), "it follows", func(s node.State) bool { return s.Owner == "b" })
	peer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Listener", r.Header.Get(listenerHeader))
	}))
	defer peer.Close()
	f.handOnTo([]roster.Peer{{Name: "b", Address: peer.Listener.Addr().String()}})
	for name, c := range map[string]struct {
		h    http.Handler
		want string
	}{"clients": {f, ""}, "operators": {f.operators(), "operators"}, "posts": {f.posts(), "posts"}} {
		out := asked(t.Context(), c.h, http.MethodGet, "/_godwit/", listenerHeader, "operators")
		if got := out.Header().Get("Listener"); out.Code != http.StatusOK || got != c.want {
			t.Errorf("what came for %s is forwarded as for %q, status %d: %s", name, got, out.Code, out.Body)
		}
	}
	const ofProcess, ofState = "godwit_limit_max", "godwit_disk_low"
	if out := asked(t.Context(), f.operators(), http.MethodGet, metricsPath); !strings.Contains(out.Body.String(), ofProcess) || strings.Contains(out.Body.String(), ofState) {
		t.Errorf("metrics of a node that follows: status %d: %.300s", out.Code, out.Body)
	}

	o.take()
	for name, c := range map[string]struct {
		h       http.Handler
		method  string
		path    string
		headers []string
		status  int
		text    string
	}{
		"an operator":                          {f.operators(), "GET", "/_godwit/", nil, 200, `"paths"`},
		"a client":                             {f, "GET", "/_godwit/", nil, 403, "--admin-listen"},
		"a client who says he is an operator":  {f, "GET", "/_godwit/", []string{listenerHeader, "operators"}, 403, "--admin-listen"},
		"who posts, at an operator's path":     {f.posts(), "GET", "/_godwit/", []string{listenerHeader, "operators"}, 404, ""},
		"a post to no source":                  {f.posts(), "POST", "/in/none", nil, 401, "no such source"},
		"a post that comes to operators":       {f.operators(), "POST", "/in/none", nil, 404, ""},
		"AWS's API at the operators' address":  {f.operators(), "POST", "/", []string{"X-Amz-Target", "AmazonSQS.ListQueues"}, 404, ""},
		"an operator of another node":          {http.HandlerFunc(f.ofPeer), "GET", "/_godwit/", []string{forwardedHeader, "b", sourceHeader, "192.0.2.1:1", listenerHeader, "operators"}, 200, `"paths"`},
		"a client of another node":             {http.HandlerFunc(f.ofPeer), "GET", "/_godwit/", []string{forwardedHeader, "b", sourceHeader, "192.0.2.1:1"}, 403, "--admin-listen"},
		"a listener that is not known":         {http.HandlerFunc(f.ofPeer), "GET", "/_godwit/", []string{forwardedHeader, "b", sourceHeader, "192.0.2.1:1", listenerHeader, "x"}, 503, "no such listener"},
		"an operator from elsewhere":           {f.operators(), "GET", nodeapi.StatusPath, []string{"X-Forwarded-For", "192.0.2.1"}, 200, `"name":"a"`},
		"metrics of nodes":                     {f.operators(), "GET", nodeapi.MetricsPath, nil, 200, "godwit_cluster"},
		"a web page that reads the status":     {f.operators(), "GET", nodeapi.StatusPath, []string{"Origin", "http://example.test"}, 403, "example.test"},
		"a web page that has a node step down": {f.operators(), "POST", nodeapi.StepDownPath, nil, 403, "step-down"},
		"metrics of the process":               {f.operators(), "GET", metricsPath, nil, 200, ofProcess},
		"metrics of the state":                 {f.operators(), "GET", metricsPath, nil, 200, ofState},
		"the address for clients":              {f.operators(), "GET", "/_godwit/v1/settings", nil, 200, `{"name":"listen","value":"192.0.2.1:4566"`},
		"metrics, for clients":                 {f, "GET", metricsPath, nil, 403, "--admin-listen"},
		"the probe":                            {f.operators(), "GET", healthPath, nil, 200, "ok"},
		"readiness":                            {f.operators(), "GET", readyPath, nil, 200, "true"},
	} {
		if out := asked(t.Context(), c.h, c.method, c.path, c.headers...); out.Code != c.status || !strings.Contains(out.Body.String(), c.text) {
			t.Errorf("%s: status %d: %.300s", name, out.Code, out.Body)
		}
	}
}

// TestStepDownByOperator: where operators are asked for no signature, one may have the owner step down, in
// production, too, where clients may not.
func TestStepDownByOperator(t *testing.T) {
	f := fronted(t, true)
	for name, c := range map[string]struct {
		h    http.Handler
		want int
	}{"operators": {f.operators(), http.StatusServiceUnavailable}, "clients": {f, http.StatusForbidden}} { // nobody serves
		if out := asked(t.Context(), c.h, http.MethodPost, nodeapi.StepDownPath, nodeapi.OperatorHeader, "yes"); out.Code != c.want {
			t.Errorf("%s: status %d: %s", name, out.Code, out.Body)
		}
	}
}

// TestListenersInUse: where an address is taken a node says so, and leaves the ones that it has.
func TestListenersInUse(t *testing.T) {
	taken, err := server.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for flag, change := range map[string]func(c *config.Config){
		"admin-listen":  func(c *config.Config) { c.AdminListen = taken.Addr().String() },
		"ingest-listen": func(c *config.Config) { c.AdminListen, c.IngestListen = "127.0.0.1:0", taken.Addr().String() },
		"pprof":         func(c *config.Config) { c.IngestListen, c.Pprof = "127.0.0.1:0", taken.Addr().String() },
	} {
		f := fronted(t, false)
		change(&f.part.cfg)
		if _, err := f.part.answerOthers(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "--"+flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}
