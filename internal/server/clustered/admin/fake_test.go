package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"godwit.dev/godwit/internal/server/clustered/nodeapi"
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/status"
)

// nodes are those of a cluster, by their addresses for peers. They are reached without sockets, so
// that waits take the time of the test's bubble.
type nodes struct {
	mu  sync.Mutex
	all map[string]http.Handler
}

// errRefused is what the dial of an address fails with where nobody listens.
var errRefused = &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}

func (n *nodes) Client() *http.Client      { return &http.Client{Transport: n} }
func (n *nodes) URL(address string) string { return "http://" + address }
func (n *nodes) Close()                    {}

// set has a handler answer at an address; nil: nobody does.
func (n *nodes) set(address string, h http.Handler) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all[address] = h
}

// RoundTrip implements http.RoundTripper. A handler that panics with http.ErrAbortHandler cuts the
// connection off.
func (n *nodes) RoundTrip(r *http.Request) (*http.Response, error) {
	n.mu.Lock()
	h := n.all[r.URL.Host]
	n.mu.Unlock()
	if h == nil {
		return nil, errRefused
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if f, ok := h.(*fake); ok && f.fails != nil && r.Method == http.MethodPost {
		return nil, f.fails
	}
	body, end := io.Pipe()
	a := &answer{header: http.Header{}, body: end, begun: make(chan struct{})}
	stop := context.AfterFunc(r.Context(), func() { body.CloseWithError(r.Context().Err()) })
	go func() {
		defer stop()
		defer func() {
			if cut := recover(); cut != nil {
				a.err = io.ErrUnexpectedEOF
			}
			end.CloseWithError(a.err)
			a.begin(http.StatusOK)
		}()
		h.ServeHTTP(a, r)
	}()
	select {
	case <-a.begun:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	if a.code == 0 {
		return nil, a.err
	}
	return &http.Response{StatusCode: a.code, Header: a.header, Body: body, Request: r}, nil
}

// answer is a response that a handler writes.
type answer struct {
	header http.Header
	body   *io.PipeWriter
	begun  chan struct{}
	once   sync.Once
	code   int // 0: the connection was cut off before
	err    error
}

func (a *answer) Header() http.Header { return a.header }
func (a *answer) Flush()              {}
func (a *answer) WriteHeader(code int) {
	a.begin(code)
}

func (a *answer) begin(code int) {
	a.once.Do(func() {
		if a.err == nil {
			a.code = code
		}
		close(a.begun)
	})
}

func (a *answer) Write(b []byte) (int, error) {
	a.begin(http.StatusOK)
	return a.body.Write(b)
}

// fake is a node that answers what it is told to, and keeps what it is asked to change.
type fake struct {
	name  string
	list  func() roster.List
	stand func() status.Cluster
	// change answers the nth request for a change, from 0; nil: it is done.
	change func(n int, c nodeapi.Change, w http.ResponseWriter, r *http.Request)
	// post answers the other requests to do something, of which fails is how none is answered.
	post  http.HandlerFunc
	fails error

	mu    sync.Mutex
	asked []nodeapi.Change
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodPost && r.URL.Path == nodeapi.NodesPath:
		c, ok := nodeapi.ReadChange(w, r)
		if !ok {
			http.Error(w, "no change", http.StatusBadRequest)
			return
		}
		f.mu.Lock()
		n := len(f.asked)
		f.asked = append(f.asked, c)
		f.mu.Unlock()
		if f.change == nil {
			nodeapi.TellEnd(w, nil)
			return
		}
		f.change(n, c, w, r)
	case r.Method == http.MethodPost && f.post != nil:
		f.post(w, r)
	case r.URL.Path == nodeapi.NodesPath:
		_ = json.NewEncoder(w).Encode(f.list())
	case r.URL.Path == nodeapi.StatusPath:
		_ = json.NewEncoder(w).Encode(f.stand())
	default:
		http.NotFound(w, r)
	}
}

// did are the changes that the node was asked for, one word each.
func (f *fake) did() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for _, c := range f.asked {
		switch {
		case c.Add != "":
			all = append(all, "add")
		case c.Remove != "":
			all = append(all, "remove")
		default:
			all = append(all, "trust")
		}
	}
	return strings.Join(all, " ")
}

// bed is a cluster of nodes a, b and c, of which a is asked first.
type bed struct {
	*nodes
	client *Client
	told   []string

	mu    sync.Mutex
	list  roster.List
	owner string
	state map[string]string // of nodes that do not follow
	began map[string]int    // how often nodes were started again
}

func address(name string) string { return "host-" + name + ":4571" }

// within runs a test in a bubble of its own, in which nodes answer.
func within(t *testing.T, f func(t *testing.T, b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bed{nodes: &nodes{all: map[string]http.Handler{}}, owner: "a", state: map[string]string{}, began: map[string]int{}}
		for _, name := range []string{"a", "b", "c"} {
			b.list.Nodes = append(b.list.Nodes, roster.Member{Name: name, Route: "host-" + name + ":4570"})
		}
		peers, err := b.list.Peers()
		if err != nil {
			t.Fatal(err)
		}
		b.client = &Client{node: "a", peers: peers[:1], connect: func([]roster.Peer) (network, error) { return b.nodes, nil }}
		f(t, b)
	})
}

// add has a node answer.
func (b *bed) add(name string) *fake {
	f := &fake{name: name, list: func() roster.List {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.list
	}, stand: b.stands}
	b.set(address(name), f)
	return f
}

func (b *bed) stands() (s status.Cluster) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range b.list.Nodes {
		stands := status.Node{Name: n.Name, State: status.Following, Process: fmt.Sprint(n.Name, "/", b.began[n.Name])}
		if n.Name == b.owner {
			stands.State = status.Serving
		}
		if state := b.state[n.Name]; state != "" {
			stands.State = state
		}
		s.Nodes = append(s.Nodes, stands)
	}
	s.Cells = []status.Cell{{Owner: b.owner}}
	return s
}

// owns has another node own the state.
func (b *bed) owns(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.owner = name
}

// is sets the state of a node; empty: it follows, or serves.
func (b *bed) is(name, state string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state[name] = state
}

// begins has a node be another process.
func (b *bed) begins(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.began[name]++
}

// changes replaces the list of nodes.
func (b *bed) changes(f func(*roster.List)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := b.list.Next()
	f(next)
	b.list = *next
}

func (b *bed) line(text string) { b.told = append(b.told, text) }

// wants fails the test unless err has all of some texts; none: unless there is no error.
func wants(t *testing.T, err error, texts ...string) {
	t.Helper()
	if len(texts) == 0 && err != nil {
		t.Error(err)
	}
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("want an error that has %q, and not: %v", text, err)
		}
	}
}
