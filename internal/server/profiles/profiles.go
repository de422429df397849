// Package profiles serves profiles of the running process.
package profiles

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"

	"godwit.dev/godwit/internal/api/admin"
	"godwit.dev/godwit/internal/wire/guard"
	"godwit.dev/godwit/internal/wire/http1"
)

// Handler answers requests for profiles. No web page may make them.
func Handler(rules *guard.Rules) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return guard.Handler(guard.Options{
		Rules: rules, Next: mux, Surface: func(string) guard.Surface { return guard.Profiles },
		Refuse: func(w http.ResponseWriter, _ *http.Request, refusal guard.Refusal) { admin.Forbid(w, refusal.Text) },
	})
}

// Serve has srv, whose handler is of Handler, serve l until it is stopped, which cuts off profiles that
// are being taken.
func Serve(srv *http.Server, l net.Listener, log *slog.Logger) (stop func() error) {
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
	}
}
