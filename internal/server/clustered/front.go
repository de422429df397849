package clustered

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/node"
	"godwit.dev/godwit/internal/cluster/peer"
	"godwit.dev/godwit/internal/cluster/snapshot"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server"
	"godwit.dev/godwit/internal/server/clustered/answer"
	"godwit.dev/godwit/internal/server/clustered/nodeapi"
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/status"
	"godwit.dev/godwit/internal/wire/functionurl"
)

// Times and sizes of the front.
const (
	ownerTime  = 15 * time.Second // how long a request waits for an owner of the state
	replayable = 2 << 20          // bytes of a body that is kept for another owner
	keptShare  = 4                // part of the memory for requests and answers that such bodies may take
)

// Headers of a forwarded request: the forwarding node, the client's address, whether it used TLS,
// whether it named no host, as HTTP/1.0 allows, its Connection header, where its body could not be
// read, what of it is known, and the listener that it came to, if that is not the clients'. They are
// only valid where only peers can connect.
const (
	forwardedHeader  = peer.ForwardedHeader
	sourceHeader     = "X-Godwit-Source"
	secureHeader     = "X-Godwit-Secure"
	hostlessHeader   = "X-Godwit-Hostless"
	connectionHeader = "X-Godwit-Connection"
	unreadHeader     = "X-Godwit-Unread"
	listenerHeader   = "X-Godwit-Listener"
)

// answeredHeader is set in what an owner answers for a peer: without it, a function's own answer with
// the status of a request that was not carried out would be taken for one.
const answeredHeader = "X-Godwit-Answered"

// ofPeers are these headers.
var ofPeers = []string{forwardedHeader, sourceHeader, secureHeader, hostlessHeader, connectionHeader, unreadHeader, listenerHeader}

// ofFraming are headers that say how a request is written on its connection.
var ofFraming = map[string]bool{"Connection": true, "Transfer-Encoding": true, "Trailer": true, "Upgrade": true}

// replayed are headers for which http.Transport repeats a request without a body when a connection
// breaks, if they are written like that.
var replayed = []string{"Idempotency-Key", "X-Idempotency-Key"}

// ofProxies are headers of requests that came through a proxy.
var ofProxies = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

// nearby reports that a request comes from this machine, and not through a proxy that says so.
func nearby(r *http.Request) bool {
	for _, name := range append([]string{"Via", "X-Real-Ip"}, ofProxies...) {
		if _, ok := r.Header[name]; ok {
			return false
		}
	}
	return config.IsLocal(r.RemoteAddr)
}

// paths that every node answers by itself.
const (
	healthPath = "/_godwit/health"
	readyPath  = "/_godwit/ready"
)

// metricsPath has the owner's metrics, and at the operators' listener of another node those of that one.
const metricsPath = "/metrics"

// front serves all requests to this node.
type front struct {
	part    *part
	proxies atomic.Pointer[map[string]*httputil.ReverseProxy] // by the name of the peer
	closing atomic.Bool
	metrics http.Handler
	guarded http.Handler   // what any node tells of the cluster, but not to web pages
	limits  *server.Limits // of this process, whichever node owns the state
	busy    atomic.Int64   // requests in progress in this process
	kept    atomic.Int64   // bytes of bodies that are kept for another owner
	mayKeep int64
	ahead   atomic.Pointer[status.Cell] // who owns the state, as a node says that is ahead of this one; nil: none was

	patience time.Duration // with clients that have hung up
	quiet    time.Duration // for requests in progress before a handover

	answered, forwarded atomic.Uint64 // requests since the start: answered by this process, and forwarded to the owner
}

func newFront(p *part) *front {
	f := &front{part: p, patience: usualPatience, quiet: quietTime, limits: server.NewLimitsOfNode(p.cfg, p.log, len(p.peers()))}
	f.mayKeep = f.limits.Bytes() / keptShare
	f.metrics = status.Metrics(func(ctx context.Context) status.Cluster { return f.status(ctx) })
	f.guarded = server.Guarded(p.cfg, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == nodeapi.MetricsPath {
			f.metrics.ServeHTTP(w, r)
			return
		}
		f.cluster(w, r)
	}))
	f.handOnTo(p.peers())
	return f
}

// handOnTo replaces the nodes that requests are forwarded to.
func (f *front) handOnTo(peers []roster.Peer) {
	p := f.part
	proxies := map[string]*httputil.ReverseProxy{}
	for _, peer := range peers {
		if peer.Name == p.node.Name {
			continue
		}
		target, err := url.Parse(p.net.URL(peer.Address))
		if err != nil {
			continue // it never seems to be up
		}
		proxies[peer.Name] = &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(target)
				r.Out.Host, r.Out.URL.RawQuery = r.In.Host, r.In.URL.RawQuery // the caller has signed them, and the path
				if path, _, _ := strings.Cut(r.In.RequestURI, "?"); strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "//") && !strings.Contains(path, " ") {
					r.Out.URL.Opaque = path // Path would be encoded anew; HTTP/2 may have a space, which HTTP/1.1 cannot
				}
				if r.In.Host == "" {
					r.Out.Header.Set(hostlessHeader, "yes")
				}
				// httputil.ReverseProxy drops what is for one hop, such as what Connection names, and what
				// proxies tell. The nodes are one server to the client, which may have signed all of it, and
				// the owner's guard checks the latter.
				for name, values := range r.In.Header {
					if !ofFraming[name] {
						r.Out.Header[name] = values
					}
				}
				for _, name := range replayed {
					if values, ok := r.Out.Header[name]; ok {
						delete(r.Out.Header, name)
						r.Out.Header[strings.ToLower(name)] = values
					}
				}
				if values, ok := r.In.Header["Connection"]; ok {
					r.Out.Header[connectionHeader] = values
				}
				if r.Out.Body == nil && (r.In.Method == http.MethodGet || r.In.Method == http.MethodHead || r.In.Method == http.MethodOptions) {
					r.Out.Body = io.NopCloser(broken{io.EOF}) // without one http.Transport repeats them; a GET may send a message
				}
				r.Out.Header.Set(forwardedHeader, p.node.Name)
				r.Out.Header.Set(sourceHeader, r.In.RemoteAddr)
				if r.In.TLS != nil {
					r.Out.Header.Set(secureHeader, "yes")
				}
				if u, ok := r.In.Context().Value(unreadKey{}).(unread); ok {
					r.Out.Header.Set(unreadHeader, u.String())
				}
				if a, ok := r.In.Context().Value(attemptKey{}).(*attempt); ok && a.at != forClients {
					r.Out.Header.Set(listenerHeader, string(a.at))
				}
			},
			Transport: p.net, BufferPool: answer.Buffers{}, // a body without a length is flushed at once
			ModifyResponse: func(r *http.Response) error {
				// It counts that the header is there: a function may return it, too, and without a value.
				if _, answered := r.Header[answeredHeader]; r.StatusCode == http.StatusMisdirectedRequest && !answered {
					return errNotOwner
				}
				r.Header.Del(answeredHeader)
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

// attempt is the forwarding of a request to one peer.
type (
	attempt struct {
		at  listener // that the request came to
		err error    // why there is no answer
	}
	attemptKey struct{}
)

var errNotOwner = errors.New("the peer does not own the state")

// ServeHTTP implements http.Handler, for clients.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	forget(r)
	if functionurl.Is(r) { // to one all paths are the function's
		f.serve(w, r, forClients, false)
		return
	}
	switch r.URL.Path {
	case nodeapi.StatusPath, nodeapi.MetricsPath:
		if f.part.cfg.Production && !nearby(r) {
			http.Error(w, "on the machine itself, or by godwit cluster status --dir", http.StatusForbidden)
			return
		}
		f.guarded.ServeHTTP(w, r)
	case nodeapi.StepDownPath:
		if f.part.cfg.Production {
			r.Header.Del(nodeapi.OperatorHeader) // by the node's certificate only, or at --admin-listen
		}
		f.stepDownByOperator(w, r)
	case healthPath:
		f.healthy(w, r)
	case readyPath:
		f.ready(w, r)
	default:
		f.serve(w, r, forClients, false)
	}
}

// ofPeer serves peers: forwarded requests, and their own.
func (f *front) ofPeer(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(forwardedHeader) == "" {
		f.asked(w, r)
		return
	}
	at := listener(r.Header.Get(listenerHeader))
	received(r)
	f.serve(w, r, at, true)
}

// received makes a forwarded request what it was to the node that forwards it.
func received(r *http.Request) {
	r.RemoteAddr = r.Header.Get(sourceHeader)
	r.TLS = nil
	if r.Header.Get(secureHeader) != "" {
		r.TLS = &tls.ConnectionState{HandshakeComplete: true}
	}
	if r.Header.Get(hostlessHeader) != "" {
		r.Host = ""
	}
	if values, ok := r.Header[connectionHeader]; ok {
		r.Header["Connection"] = values
	}
	if u, ok := parseUnread(r.Header.Get(unreadHeader)); ok {
		r.Method, r.Body, r.ContentLength = u.method, io.NopCloser(broken{u.err()}), u.length
	}
	forget(r)
}

// asked serves the requests of peers themselves.
func (f *front) asked(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == nodeapi.StatusPath:
		f.cluster(w, r)
	case r.URL.Path == nodeapi.MetricsPath:
		f.metrics.ServeHTTP(w, r)
	case r.URL.Path == nodeapi.StepDownPath:
		f.stepDown(w, r)
	case r.URL.Path == nodeapi.NodesPath:
		f.nodes(w, r)
	case r.URL.Path == nodeapi.RestartPath:
		f.part.restart(w, r)
	case r.URL.Path == nodeapi.EndPath:
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

// ready answers as a server without nodes does.
func (f *front) ready(w http.ResponseWriter, _ *http.Request) {
	is := f.isReady()
	w.Header().Set("Content-Type", "application/json")
	if !is {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = fmt.Fprintf(w, "{\"ready\":%t}\n", is)
}

// isReady reports whether requests to this node are answered, by it or by the owner that it knows.
func (f *front) isReady() bool {
	s, ok := f.stateOf()
	if !ok || f.closing.Load() || s.Behind || f.silent(s) || f.part.logStopped.Load() {
		return false
	}
	owner := f.whose(s)
	return owner != "" && (owner != f.part.node.Name || s.Serving)
}

// silent reports that nothing was heard of the owner for as long as requests wait for one: they are
// refused, and other nodes may serve.
func (f *front) silent(s node.State) bool {
	ahead := f.ahead.Load()
	return clock.System.Now().Sub(s.Heard) > ownerTime && (ahead == nil || ahead.Epoch <= s.Epoch)
}

// serve has the owner of the state answer, this process or a peer. A request that was certainly
// not executed waits for the next owner. A request forwarded by a peer, where it came to the listener
// at, is not forwarded again.
func (f *front) serve(w http.ResponseWriter, r *http.Request, at listener, forwarded bool) {
	if replica, in := f.part.replica.Load(), f.part.inner.Load(); replica != nil && in != nil && replica.Serves() && !f.closing.Load() {
		f.local(w, r, at, in, forwarded) // no other node needs its body
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), ownerTime)
	defer cancel()
	if !forwarded {
		paced(w, r, f.limits.Pace())
	}
	body, whole := f.keep(r)
	defer f.kept.Add(-int64(len(body)))
	for {
		replica := f.part.replica.Load()
		if replica == nil {
			if !pause(ctx, 50*time.Millisecond) {
				answer.Unavailable(w, r, "This node has not joined its cluster yet.")
				return
			}
			continue
		}
		state, changed := replica.State()
		if whole { // a peer may have read it without an answer
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		owner := f.whose(state)
		switch {
		case state.Own && state.Serving && !f.closing.Load():
			if in := f.part.inner.Load(); in != nil {
				unpaced(r) // the handler keeps the pace itself
				f.local(w, r, at, in, forwarded)
				return
			}
		case forwarded && (!state.Own || owner != f.part.node.Name):
			w.WriteHeader(http.StatusMisdirectedRequest)
			return
		case owner != "" && owner != f.part.node.Name:
			done, sure := f.forward(w, r, at, owner)
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

// keep reads a body that is small enough to be sent twice, if there is memory for it.
func (f *front) keep(r *http.Request) (body []byte, whole bool) {
	switch n := r.ContentLength; {
	case n == 0:
		return nil, true
	case n < 0 || n > replayable:
		return nil, false
	case f.kept.Add(n) > f.mayKeep:
		f.kept.Add(-n)
		return nil, false
	}
	body = make([]byte, r.ContentLength)
	n, err := io.ReadFull(r.Body, body)
	if err != nil { // the handler will get the same error
		r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body[:n]), broken{err}))
		return body, false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, true
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// forward forwards a request. done: it is answered; sure: it was certainly not executed.
func (f *front) forward(w http.ResponseWriter, r *http.Request, at listener, owner string) (done, sure bool) {
	proxy := (*f.proxies.Load())[owner]
	if proxy == nil {
		return false, true
	}
	a := attempt{at: at}
	// The owner bounds how long an answer takes, and the listener how slowly a client reads it.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // an error means that there is none
	ctx, cancel := patiently(context.WithValue(r.Context(), attemptKey{}, &a), f.patience)
	defer cancel()
	out, body := r.WithContext(ctx), &clientBody{ReadCloser: r.Body}
	out.Body = body
	r.Header.Del("Upgrade") // to which no owner listens
	proxy.ServeHTTP(w, out)
	if err := body.failure(); a.err != nil && err != nil { // the owner has not all of it, and its answer is for the client
		a.err = nil
		out = r.WithContext(context.WithValue(ctx, unreadKey{}, unread{r.Method, r.ContentLength, errors.Is(err, os.ErrDeadlineExceeded)}))
		out.Method, out.Body, out.ContentLength, out.TransferEncoding = unreadMethod, http.NoBody, 0, nil
		proxy.ServeHTTP(w, out)
	}
	if a.err == nil {
		f.forwarded.Add(1)
		return true, false
	}
	var dial *net.OpError
	return false, errors.Is(a.err, errNotOwner) || errors.As(a.err, &dial) && dial.Op == "dial"
}

// local answers from this process.
func (f *front) local(w http.ResponseWriter, r *http.Request, at listener, in *inner, forwarded bool) {
	if forwarded {
		w.Header().Set(answeredHeader, "yes")
	}
	f.busy.Add(1)
	defer f.busy.Add(-1)
	f.answered.Add(1)
	h := at.handler(&in.handlers)
	if h == nil {
		answer.Unavailable(w, r, "The node that owns the state has no such listener: start all nodes with the same flags.")
		return
	}
	h.ServeHTTP(w, r)
}

// stateOf is a node's own view.
func (f *front) stateOf() (node.State, bool) {
	replica := f.part.replica.Load()
	if replica == nil {
		return node.State{}, false
	}
	s, _ := replica.State()
	return s, true
}
