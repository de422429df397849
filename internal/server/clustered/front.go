package clustered

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/node"
	"godwit.dev/godwit/internal/cluster/snapshot"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server/clustered/answer"
	"godwit.dev/godwit/internal/server/clustered/status"
)

// Times and sizes of the front.
const (
	ownerTime  = 15 * time.Second // how long a request waits for somebody who owns the state
	replayable = 2 << 20          // bytes of a body that is kept, to be sent to another owner
)

// What a peer says of a request that it hands on: by which node, for which client's
// address, and whether that came by TLS. They count only where peers alone can ask.
const (
	forwardedHeader = "X-Godwit-Forwarded"
	sourceHeader    = "X-Godwit-Source"
	secureHeader    = "X-Godwit-Secure"
)

// ofPeers are these headers.
var ofPeers = []string{forwardedHeader, sourceHeader, secureHeader}

// ofProxies are headers that say that a request has come through a proxy, which the guard
// looks at, and which httputil.ReverseProxy drops.
var ofProxies = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

// nearby reports that a request comes from the machine itself, and through no proxy that
// says so.
func nearby(r *http.Request) bool {
	for _, name := range append([]string{"Via", "X-Real-Ip"}, ofProxies...) {
		if _, ok := r.Header[name]; ok {
			return false
		}
	}
	return config.IsLocal(r.RemoteAddr)
}

// paths of what every node answers by itself.
const (
	clusterPath = "/_godwit/v1/cluster"
	// metricsPath is where a node tells Prometheus how it stands, and how its peers do.
	metricsPath = clusterPath + "/metrics"
	healthPath  = "/_godwit/health"
	readyPath   = "/_godwit/ready"
)

// front answers whoever asks this node.
type front struct {
	part    *part
	proxies atomic.Pointer[map[string]*httputil.ReverseProxy] // by the name of the peer
	closing atomic.Bool
	metrics http.Handler
	busy    atomic.Int64 // requests under way that this process answers

	answered, forwarded atomic.Uint64 // requests since the start: by this process, by the owner for it
}

func newFront(p *part) *front {
	f := &front{part: p}
	f.metrics = status.Metrics(func(ctx context.Context) status.Cluster { return f.status(ctx, true) })
	f.handOnTo(p.peers())
	return f
}

// handOnTo replaces the nodes that requests are handed on to.
func (f *front) handOnTo(peers []Peer) {
	p := f.part
	proxies := map[string]*httputil.ReverseProxy{}
	for _, peer := range peers {
		if peer.Name == p.node.Name {
			continue
		}
		target, err := url.Parse(p.net.URL(peer.Address))
		if err != nil {
			continue // it is never found to be there
		}
		proxies[peer.Name] = &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(target)
				r.Out.Host = r.In.Host // as the caller has signed it
				for _, name := range ofProxies {
					if values, ok := r.In.Header[name]; ok {
						r.Out.Header[name] = values
					}
				}
				r.Out.Header.Set(forwardedHeader, p.node.Name)
				r.Out.Header.Set(sourceHeader, r.In.RemoteAddr)
				if r.In.TLS != nil {
					r.Out.Header.Set(secureHeader, "yes")
				}
			},
			Transport: p.net, BufferPool: answer.Buffers{}, // what has no length is flushed as it comes
			ModifyResponse: func(r *http.Response) error {
				if r.StatusCode == http.StatusMisdirectedRequest {
					return errNotOwner
				}
				return nil
			},
			ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) {
				if a, ok := r.Context().Value(attemptKey{}).(*attempt); ok {
					a.err = err
				}
			},
			ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelDebug),
		}
	}
	f.proxies.Store(&proxies)
}

// attempt is what became of handing a request on.
type (
	attempt    struct{ err error }
	attemptKey struct{}
)

var errNotOwner = errors.New("the peer does not own the state")

// ServeHTTP implements http.Handler, for clients.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for _, name := range ofPeers {
		r.Header.Del(name)
	}
	switch r.URL.Path {
	case clusterPath, metricsPath:
		if f.part.cfg.Production && !nearby(r) {
			http.Error(w, "on the machine itself, or by godwit cluster status --dir", http.StatusForbidden)
			return
		}
		if r.URL.Path == metricsPath {
			f.metrics.ServeHTTP(w, r)
			return
		}
		f.cluster(w, r)
	case stepDownPath:
		if f.part.cfg.Production || r.Header.Get(operatorHeader) == "" {
			http.Error(w, "by godwit cluster step-down", http.StatusForbidden)
			return
		}
		f.stepDown(w, r)
	case healthPath:
		_, _ = io.WriteString(w, "{\"status\":\"ok\"}\n")
	case readyPath:
		f.ready(w)
	default:
		f.serve(w, r, false)
	}
}

// ofPeer answers peers: requests that they hand on, and what they ask themselves.
func (f *front) ofPeer(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(forwardedHeader) == "" {
		f.asked(w, r)
		return
	}
	r.RemoteAddr = r.Header.Get(sourceHeader)
	r.TLS = nil
	if r.Header.Get(secureHeader) != "" {
		r.TLS = &tls.ConnectionState{HandshakeComplete: true}
	}
	for _, name := range ofPeers {
		r.Header.Del(name)
	}
	f.serve(w, r, true)
}

// asked answers what peers ask themselves.
func (f *front) asked(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == clusterPath:
		f.cluster(w, r)
	case r.URL.Path == metricsPath:
		f.metrics.ServeHTTP(w, r)
	case r.URL.Path == stepDownPath:
		f.stepDown(w, r)
	case r.URL.Path == nodesPath:
		f.nodes(w, r)
	case r.URL.Path == restartPath:
		f.part.restart(w, r)
	case r.URL.Path == endPath:
		f.part.handleRemoval(w, r)
	case within(r.URL.Path, snapshot.Path):
		source := f.part.source.Load()
		if source == nil {
			http.Error(w, "this node has no store to copy", http.StatusServiceUnavailable)
			return
		}
		source.ServeHTTP(w, r)
	default:
		http.NotFound(w, r)
	}
}

// within reports that a path is dir or below it.
func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

func (f *front) ready(w http.ResponseWriter) {
	if cells := f.part.cells.Load(); cells != nil && !f.closing.Load() {
		if s, _ := cells.State(); s.Owner != "" && (!s.Own || s.Serving) && !s.Behind && !f.part.logStopped.Load() {
			_, _ = io.WriteString(w, "{\"status\":\"ready\"}\n")
			return
		}
	}
	http.Error(w, `{"status":"not ready"}`, http.StatusServiceUnavailable)
}

// serve has the owner of the state answer, this process or a peer. A request that has
// surely not been carried out waits for whoever is the owner next. One that a peer has
// handed on is not handed on again.
func (f *front) serve(w http.ResponseWriter, r *http.Request, forwarded bool) {
	if cells, in := f.part.cells.Load(), f.part.inner.Load(); cells != nil && in != nil && cells.Serves() && !f.closing.Load() {
		f.local(w, r, in) // nobody else is to have its body
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), ownerTime)
	defer cancel()
	body, whole := keep(r)
	for {
		cells := f.part.cells.Load()
		if cells == nil {
			if !pause(ctx, 50*time.Millisecond) {
				answer.Unavailable(w, r, "This node has not joined its cluster yet.")
				return
			}
			continue
		}
		state, changed := cells.State()
		if whole { // a peer may have read it, and not answered
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		switch {
		case state.Own && state.Serving && !f.closing.Load():
			if in := f.part.inner.Load(); in != nil {
				f.local(w, r, in)
				return
			}
		case forwarded && !state.Own:
			w.WriteHeader(http.StatusMisdirectedRequest)
			return
		case !state.Own && state.Owner != "":
			done, sure := f.forward(w, r, state.Owner)
			if done {
				return
			}
			if !sure || !whole {
				answer.Unavailable(w, r, "The node that owns the state did not answer; it may have carried out the request.")
				return
			}
		}
		if !f.wait(ctx, changed) {
			answer.Unavailable(w, r, "No node owns the state now: there is no majority of nodes, or they are choosing.")
			return
		}
	}
}

// wait waits for another owner, for a moment.
func (f *front) wait(ctx context.Context, changed <-chan struct{}) bool {
	over, stop := clock.After(clock.System, 100*time.Millisecond)
	defer stop()
	select {
	case <-changed:
	case <-over:
	case <-ctx.Done():
		return false
	}
	return ctx.Err() == nil
}

func pause(ctx context.Context, d time.Duration) bool {
	return clock.Wait(ctx, clock.System, d) == nil
}

// keep reads a body that is small enough to be sent twice.
func keep(r *http.Request) (body []byte, whole bool) {
	switch {
	case r.ContentLength == 0:
		return nil, true
	case r.ContentLength < 0 || r.ContentLength > replayable:
		return nil, false
	}
	body = make([]byte, r.ContentLength)
	n, err := io.ReadFull(r.Body, body)
	if err != nil { // the handler is to find that out as well
		r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body[:n]), broken{err}))
		return nil, false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, true
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// forward hands a request on. done: it is answered; sure: it was surely not carried out.
func (f *front) forward(w http.ResponseWriter, r *http.Request, owner string) (done, sure bool) {
	proxy := (*f.proxies.Load())[owner]
	if proxy == nil {
		return false, true
	}
	var a attempt
	proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), attemptKey{}, &a)))
	if a.err == nil {
		f.forwarded.Add(1)
		return true, false
	}
	var dial *net.OpError
	return false, errors.Is(a.err, errNotOwner) || errors.As(a.err, &dial) && dial.Op == "dial"
}

// local answers from this process.
func (f *front) local(w http.ResponseWriter, r *http.Request, in *inner) {
	f.busy.Add(1)
	defer f.busy.Add(-1)
	f.answered.Add(1)
	in.handler.ServeHTTP(w, r)
}

// stateOf is a node's own view.
func (f *front) stateOf() (node.State, bool) {
	cells := f.part.cells.Load()
	if cells == nil {
		return node.State{}, false
	}
	s, _ := cells.State()
	return s, true
}
