package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/pprof"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/wire/http1"
)

// serveProfiles serves profiles at their own address, if one is set, until the server stops.
func (s *Server) serveProfiles(ctx context.Context) error {
	stop, err := ServeProfiles(ctx, s.cfg, s.log, s.limits)
	if err != nil {
		return err
	}
	s.stack.Push("profiles", func(context.Context) error { return stop() })
	return nil
}

// ServeProfiles serves profiles of the process at the address of --pprof, if one is set, until it is
// stopped, which cuts off those that are being taken.
func ServeProfiles(ctx context.Context, cfg config.Config, log *slog.Logger, limits *Limits) (stop func() error, err error) {
	if cfg.Pprof == "" {
		return func() error { return nil }, nil
	}
	l, err := ListenFor(ctx, "pprof", cfg.Pprof)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	srv := httpServer(cfg, log, limits, guardedProfiles(cfg, mux))
	srv.WriteTimeout = 0 // the caller sets the duration of a profile
	srv.ReadTimeout = 0
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Serve(http1.Framed(l)); !errors.Is(err, http.ErrServerClosed) {
			log.Error("serving profiles", "error", err)
		}
	}()
	log.Info("profiles", "listen", l.Addr().String())
	return func() error {
		err := srv.Close() // profiles need no grace period
		<-done
		return err
	}, nil
}
