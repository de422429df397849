package server

import (
	"context"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"

	"godwit.dev/godwit/internal/api/admin"
	"godwit.dev/godwit/internal/api/lambda"
	"godwit.dev/godwit/internal/api/operator/development"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/console"
	"godwit.dev/godwit/internal/server/operating"
	"godwit.dev/godwit/internal/wire/http1"
)

// everything is the mux of all of Godwit's own paths.
func (s *Server) everything(parts Parts) *http.ServeMux {
	all := s.probes(parts)
	maps.Copy(all, parts.Admin)
	if parts.Metrics != nil {
		all["GET "+metricsPath] = parts.Metrics
	}
	mux := muxOf(all)
	listed := append(slices.Collect(maps.Keys(all)), "GET "+adminPrefix)
	if parts.Console != nil {
		listed = append(listed, "GET "+console.Path)
	}
	handleAll(mux, parts.Console)
	mux.Handle("GET "+adminPrefix+"{$}", admin.Index(config.Version, listed))
	mux.Handle(adminPrefix, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if parts.Missed != nil {
			parts.Missed(r)
		}
		admin.NotFound().ServeHTTP(w, r)
	}))
	return mux
}

func muxOf(all map[string]http.Handler) *http.ServeMux {
	mux := http.NewServeMux()
	handleAll(mux, all)
	return mux
}

func handleAll(mux *http.ServeMux, all map[string]http.Handler) {
	for pattern, h := range all {
		mux.Handle(pattern, h)
	}
}

// faults injects faults into resources, except in production.
func faults(c config.Config, setter admin.FaultSetter, of *development.Development) http.Handler {
	if c.Production {
		setter = nil
	}
	return admin.Faults(setter, development.ParseFault, of.FaultNote)
}

// probes are the paths without authentication.
func (s *Server) probes(parts Parts) map[string]http.Handler {
	checks := parts.Checks
	if s.certificates != nil {
		checks = append(slices.Clip(checks), admin.Check{Name: "certificate", Failing: s.certificates.Failing})
	}
	return map[string]http.Handler{
		"GET " + healthPath: admin.Health(config.Version, checks...),
		"GET " + readyPath:  admin.Ready(s.draining.Done()),
	}
}

// operators serves Godwit's own paths at the main port: all of them, if authentication is off;
// else those without authentication, links that carry a token, and the rest to operators,
// unless these have their own listener.
func (s *Server) operators(parts Parts) http.Handler {
	if !s.cfg.Enforce && s.cfg.AdminListen == "" {
		return s.everything(parts)
	}
	mux := muxOf(s.probes(parts))
	if download := "GET " + lambda.DownloadPath; parts.Admin[download] != nil {
		mux.Handle(download, parts.Admin[download])
	}
	switch {
	case s.cfg.AdminListen != "":
		mux.Handle("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			operating.Forbid(w, r, "This is answered at the address of --admin-listen only.")
		}))
	case parts.Operator == nil:
		mux.Handle("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			operating.Forbid(w, r, "This is for operators: start the server with --admin-listen, and ask there.")
		}))
	default:
		handleAll(mux, parts.Console)
		all := s.everything(parts)
		mux.Handle("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := parts.Operator(w, r); err != nil {
				operating.Refuse(w, r, err)
				return
			}
			all.ServeHTTP(w, r)
		}))
	}
	return mux
}

// serveOperators serves operators at a separate address, if one is set.
func (s *Server) serveOperators(ctx context.Context, parts Parts) error {
	if s.cfg.AdminListen == "" {
		return nil
	}
	mux := s.everything(parts)
	mux.Handle("/", admin.NotFound())
	s.handlers.Operators = s.guarded(parts, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if parts.Operated != nil {
			parts.Operated(r)
		}
		mux.ServeHTTP(w, r)
	}))
	if s.limitsShared {
		return nil
	}
	l, err := ListenFor(ctx, "admin-listen", s.cfg.AdminListen)
	if err != nil {
		return err
	}
	srv, operators := ForOperators(s.cfg, s.log, s.limits, l, s.handlers.Operators)
	s.serveUntilStopped("operators", "operators' HTTP server", srv, func() error { return srv.Serve(operators) })
	s.log.Info("operators", "listen", l.Addr().String())
	return nil
}

// ForOperators makes the HTTP server of h for operators, and the listener that it is to serve: l, which
// accepts TCP connections, with the bounds of limits but for their number.
func ForOperators(cfg config.Config, log *slog.Logger, limits *Limits, l net.Listener, h http.Handler) (*http.Server, net.Listener) {
	srv := httpServer(cfg, log, limits, h)
	limits.watch(srv)
	return srv, http1.Framed(limits.others(l))
}
