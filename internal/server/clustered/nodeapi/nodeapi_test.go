package nodeapi

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/cluster/ca"
	"godwit.dev/godwit/internal/cluster/peer"
)

// network is that of node a of a new cluster, at a time.
func network(t *testing.T, now time.Time) *peer.Network {
	t.Helper()
	dir := t.TempDir()
	if err := ca.Init(dir, "a", now); err != nil {
		t.Fatal(err)
	}
	id, err := ca.Load(dir, "a", []string{"a"}, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	return peer.Secured(id)
}

func unbounded(l net.Listener) net.Listener { return l }

// TestRefused: which failures asking again does not change.
func TestRefused(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	own, other := network(t, now), network(t, now)
	listen := func(n *peer.Network, h http.Handler) string {
		l, err := n.Listen(t.Context(), "127.0.0.1:0", unbounded)
		if err != nil {
			t.Fatal(err)
		}
		s := &http.Server{Handler: n.Only(h), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
		go s.Serve(l)
		t.Cleanup(func() { s.Close() })
		return n.URL(l.Addr().String())
	}
	answers := func(f http.HandlerFunc) Node { return Node{own.Client(), listen(own, f)} }
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	// Where the client trusts everybody, it is the node that refuses the connection.
	certificate := filepath.Join(other.Identity().Dir(), "node.pem")
	foreign, err := tls.LoadX509KeyPair(certificate, certificate)
	if err != nil {
		t.Fatal(err)
	}
	blind := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{foreign}, InsecureSkipVerify: true}}}
	for name, c := range map[string]struct {
		node             Node
		refused, notSent bool
	}{
		"a path that it has not":         {answers(http.NotFound), true, false},
		"not in this state":              {answers(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusConflict) }), true, false},
		"busy":                           {answers(func(w http.ResponseWriter, _ *http.Request) { RefuseBusy(w, "no") }), false, false},
		"it does not own the state":      {answers(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusServiceUnavailable) }), false, false},
		"the connection is cut off":      {answers(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), false, false},
		"nobody listens":                 {Node{http.DefaultClient, gone.URL}, false, true},
		"a node of another cluster":      {Node{own.Client(), listen(other, http.NotFoundHandler())}, true, false},
		"as a node of another cluster":   {Node{blind, listen(own, http.NotFoundHandler())}, true, false},
		"the time of the question is up": {Node{own.Client(), listen(own, http.NotFoundHandler())}, false, false},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		if name == "the time of the question is up" {
			cancel()
		}
		err := c.node.Restart(ctx)
		cancel()
		if err == nil || Refused(err) != c.refused || NotSent(err) != c.notSent {
			t.Errorf("%s: refused %t, not sent %t: %v", name, Refused(err), NotSent(err), err)
		}
	}
}

// TestProgress: the progress of a change is passed on a line each, and its end is told from the loss
// of its node.
func TestProgress(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		err    string
		lost   bool
	}{
		"done": {func(w http.ResponseWriter, _ *http.Request) { Tell(w, "one\nline"); TellEnd(w, nil) }, "", false},
		"failed": {func(w http.ResponseWriter, _ *http.Request) {
			Tell(w, "one\nline")
			TellEnd(w, errors.New("it fails\nso"))
		}, "it fails; so", false},
		"ended":      {func(w http.ResponseWriter, _ *http.Request) { Tell(w, "one\nline") }, "", true},
		"cut off":    {func(w http.ResponseWriter, _ *http.Request) { Tell(w, "one\nline"); panic(http.ErrAbortHandler) }, "", true},
		"unanswered": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "", true},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if got, ok := ReadChange(w, r); !ok || got.String() != "node d is being added" {
				t.Errorf("%s: it is asked for %v", name, got)
			}
			c.answer(w, r)
		}))
		var told []string
		err := Node{http.DefaultClient, s.URL}.Change(t.Context(), Change{Add: "d=d:4570"}, func(line string) { told = append(told, line) })
		if errors.Is(err, ErrLost) != c.lost || !c.lost && (err == nil) != (c.err == "") || c.err != "" && err.Error() != c.err {
			t.Errorf("%s: %v", name, err)
		}
		if name != "unanswered" && (len(told) != 1 || told[0] != "one; line") {
			t.Errorf("%s: it tells %q", name, told)
		}
		s.Close()
	}
}

// TestNotBegun: a change that is refused or reaches no node has not begun, and is not taken for lost.
func TestNotBegun(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { RefuseBusy(w, "another change") }))
	defer s.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	change := func(url string) error {
		return Node{http.DefaultClient, url}.Change(t.Context(), Change{Remove: "d"}, func(line string) { t.Errorf("it tells %q", line) })
	}
	err := change(s.URL)
	if r, ok := errors.AsType[*Refusal](err); !ok || !r.Busy() || r.Reason != "another change" || errors.Is(err, ErrLost) {
		t.Errorf("a refusal: %v", err)
	}
	if (&Refusal{Code: http.StatusServiceUnavailable, Later: true}).Busy() {
		t.Error("a node that does not own the state is taken for one with another change")
	}
	if err := change(gone.URL); !NotSent(err) || errors.Is(err, ErrLost) {
		t.Errorf("nobody listens: %v", err)
	}
}

// TestReadChange: a change is one, and comes by POST.
func TestReadChange(t *testing.T) {
	for body, want := range map[string]bool{
		`{"add":"d=d:1"}`:              true,
		`{"remove":"d"}`:               true,
		`{"roots":"r","vouchers":"v"}`: true,
		`{"vouchers":"v"}`:             false,
		`{"add":"d=d:1","remove":"d"}`: false,
		`{"remove":"d","roots":"r"}`:   false,
		`{"remove":"d","add":1}`:       false,
		``:                             false,
	} {
		for _, method := range []string{http.MethodPost, http.MethodGet} {
			r := httptest.NewRequestWithContext(t.Context(), method, NodesPath, strings.NewReader(body))
			if _, ok := ReadChange(httptest.NewRecorder(), r); ok != (want && method == http.MethodPost) {
				t.Errorf("%s %s: %t", method, body, ok)
			}
		}
	}
}
