package clustered

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"

	"godwit.dev/godwit/internal/server"
	"godwit.dev/godwit/internal/server/clustered/nodeapi"
)

// listener is what a request came to, at the node that it came to. The owner of the state answers by it.
type listener string

const (
	forClients   listener = ""
	forOperators listener = "operators" // --admin-listen
	forPosts     listener = "posts"     // --ingest-listen
)

// handler answers the requests that came to the listener; nil: the owner has no such one.
func (l listener) handler(of *server.Handlers) http.Handler {
	switch l {
	case forClients:
		return of.Clients
	case forOperators:
		return of.Operators
	case forPosts:
		return of.Posts
	}
	return nil
}

// answerOthers serves operators, posts and profiles at the addresses that are set, until it is
// stopped. secure is nil without TLS.
func (p *part) answerOthers(ctx context.Context, secure *tls.Config) (stop func(), err error) {
	var stops []func()
	all := func() {
		for _, stop := range stops {
			stop()
		}
	}
	defer func() {
		if err != nil {
			all()
		}
	}()
	if p.cfg.AdminListen != "" {
		l, err := server.ListenFor(ctx, "admin-listen", p.cfg.AdminListen)
		if err != nil {
			return nil, err
		}
		stops = append(stops, serve(server.ForOperators(p.cfg, p.log, p.front.limits, l, p.front.operators())))
		p.log.Info("operators", "listen", l.Addr().String())
	}
	if p.cfg.IngestListen != "" {
		l, err := server.ListenFor(ctx, "ingest-listen", p.cfg.IngestListen)
		if err != nil {
			return nil, err
		}
		stops = append(stops, serve(server.ForPosts(p.cfg, p.log, p.front.limits, l, secure, p.front.posts())))
		p.log.Info("posts to sources", "listen", l.Addr().String())
	}
	profiles, err := server.ServeProfiles(ctx, p.cfg, p.log, p.front.limits)
	if err != nil {
		return nil, err
	}
	stops = append(stops, func() { _ = profiles() })
	return all, nil
}

// operators serves operators, who need no signature there. What is the node's own is answered by it.
func (f *front) operators() http.Handler {
	own := map[string]http.HandlerFunc{
		nodeapi.StatusPath: f.guarded.ServeHTTP, nodeapi.MetricsPath: f.guarded.ServeHTTP, nodeapi.StepDownPath: f.stepDownByOperator,
		healthPath: f.healthy, readyPath: f.ready,
	}
	if process := server.ProcessMetrics(f.part.cfg, f.limits); process != nil {
		own[metricsPath] = func(w http.ResponseWriter, r *http.Request) {
			if f.part.owns() {
				f.serve(w, r, forOperators, false)
				return
			}
			process.ServeHTTP(w, r) // who asks all nodes would count those of the owner several times
		}
	}
	guarded := server.Guarded(f.part.cfg, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { own[r.URL.Path](w, r) }))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		forget(r)
		if own[r.URL.Path] != nil {
			guarded.ServeHTTP(w, r)
			return
		}
		f.serve(w, r, forOperators, false)
	})
}

// stepDownByOperator makes the owner step down for a program, which a web page cannot be.
func (f *front) stepDownByOperator(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(nodeapi.OperatorHeader) == "" {
		http.Error(w, "by godwit cluster step-down", http.StatusForbidden)
		return
	}
	f.stepDown(w, r)
}

// posts serves posts to sources.
func (f *front) posts() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		forget(r)
		f.serve(w, r, forPosts, false)
	})
}

// forget removes what only peers may say of a request.
func forget(r *http.Request) {
	for _, name := range ofPeers {
		r.Header.Del(name)
	}
}

// healthy answers that the process runs.
func (f *front) healthy(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, "{\"status\":\"ok\"}\n")
}
