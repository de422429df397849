package clustered

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"godwit.dev/godwit/internal/cluster/node"
	"godwit.dev/godwit/internal/server/clustered/roster"
)

// A request is sent to the owner once more only if it was certainly not carried out: the peer says that
// it does not own the state, and the body is there still.
func TestForwardedOnce(t *testing.T) {
	o := startOwning(t) // another node owns the state
	o.until(o.mine(), "it follows", func(s node.State) bool { return s.Owner == "b" })
	var asked atomic.Int32
	var first http.HandlerFunc // answers the first request
	peer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if r.URL.Path == "/before" {
			return
		}
		for _, name := range replayed {
			if r.Header.Get(name) != "a key" {
				t.Errorf("%s is forwarded as %q", name, r.Header.Get(name))
			}
		}
		if asked.Add(1) == 1 {
			first(w, r)
		}
		if err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, "answered "+string(text))
	}))
	defer peer.Close()
	f := o.part.front
	f.handOnTo([]roster.Peer{{Name: "b", Address: peer.Listener.Addr().String()}})
	misdirected := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMisdirectedRequest) }
	own := func(w http.ResponseWriter, _ *http.Request) { // as a function may answer
		w.Header().Set(answeredHeader, "yes")
		w.WriteHeader(http.StatusMisdirectedRequest)
	}
	emptied := func(w http.ResponseWriter, _ *http.Request) { // as a function may that returns the header, too
		w.Header().Set(answeredHeader, "")
		w.WriteHeader(http.StatusMisdirectedRequest)
	}
	ended := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for _, c := range []struct {
		name, method, body string
		first              http.HandlerFunc
		unkept             bool // the body is not kept
		status             int
		asked              int32
	}{
		{"an owner that ends", http.MethodPost, "body", ended, false, http.StatusServiceUnavailable, 1},
		{"an owner that ends, without a body", http.MethodPost, "", ended, false, http.StatusServiceUnavailable, 1},
		{"an owner that ends, by GET", http.MethodGet, "", ended, false, http.StatusServiceUnavailable, 1},
		{"no owner any more", http.MethodPost, "body", misdirected, false, http.StatusOK, 2},
		{"no owner any more, by GET", http.MethodGet, "", misdirected, false, http.StatusOK, 2},
		{"no owner any more, with a body that is not kept", http.MethodPost, "body", misdirected, true, http.StatusServiceUnavailable, 1},
		{"an owner whose own answer looks like that", http.MethodPost, "body", own, false, http.StatusMisdirectedRequest, 1},
		{"an owner whose own answer looks like that, with a body that is not kept", http.MethodPost, "body", own, true, http.StatusMisdirectedRequest, 1},
		{"an owner whose own answer empties what peers say", http.MethodPost, "body", emptied, false, http.StatusMisdirectedRequest, 1},
		{"an owner that fails", http.MethodPost, "body", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, false, http.StatusInternalServerError, 1},
	} {
		// The connection is one that was used before.
		f.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/before", nil))
		asked.Store(0)
		first = c.first
		r := httptest.NewRequestWithContext(t.Context(), c.method, "/?Action=Publish", strings.NewReader(c.body))
		if c.unkept {
			r.ContentLength = -1
		}
		for _, name := range replayed {
			r.Header.Set(name, "a key")
		}
		out := httptest.NewRecorder()
		f.ServeHTTP(out, r)
		if out.Code != c.status || asked.Load() != c.asked || out.Code == http.StatusOK && out.Body.String() != "answered "+c.body {
			t.Errorf("%s: asked %d times, status %d: %s", c.name, asked.Load(), out.Code, out.Body)
		}
		if len(out.Header().Values(answeredHeader)) > 0 {
			t.Errorf("%s: the client gets what only peers say", c.name)
		}
	}
}

// An owner says of all that it answers for a peer that it has answered: a function may answer any status.
func TestAnsweredForPeer(t *testing.T) {
	o := startOwning(t)
	o.take()
	for _, forwarded := range []bool{true, false} {
		r, out := newRequest(t.Context(), "AmazonSQS.ListQueues", strings.NewReader("{}")), httptest.NewRecorder()
		serve := o.part.front.ServeHTTP
		if forwarded {
			r.Header.Set(forwardedHeader, "c")
			r.Header.Set(sourceHeader, r.RemoteAddr)
			serve = o.part.front.ofPeer
		}
		if serve(out, r); out.Code != http.StatusOK || (out.Header().Get(answeredHeader) != "") != forwarded {
			t.Errorf("forwarded %t: status %d: %v", forwarded, out.Code, out.Header())
		}
	}
}

// Which failures of a request to the owner say that it was not carried out.
func TestForwardSure(t *testing.T) {
	o := startOwning(t)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	ends := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer ends.Close()
	f := o.part.front
	f.handOnTo([]roster.Peer{{Name: "gone", Address: gone.Listener.Addr().String()}, {Name: "ends", Address: ends.Listener.Addr().String()}})
	for owner, want := range map[string]bool{"gone": true, "ends": false, "unknown": true} {
		r := httptest.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPost, "/", strings.NewReader("body"))
		if done, sure := f.forward(httptest.NewRecorder(), r, forClients, owner); done || sure != want {
			t.Errorf("%s: done %t, sure %t", owner, done, sure)
		}
	}
}
