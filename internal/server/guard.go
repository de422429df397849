package server

import (
	"net/http"
	"strings"

	"godwit.dev/godwit/internal/api/admin"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/wire/guard"
)

// rules say which requests may come from web pages.
func rules(cfg config.Config) *guard.Rules {
	return guard.NewRules(guard.Settings{
		AllowedHosts: cfg.AllowedHosts, Domains: []string{cfg.QueueURLHost}, PublicURL: cfg.PublicURL,
		CORSOrigins: cfg.CORSOrigins, AllowUnsignedGet: cfg.AllowUnsignedGet,
	})
}

// guarded puts the guard in front of all handlers of the main port.
func (s *Server) guarded(parts Parts, next http.Handler) http.Handler {
	return guard.Handler(guard.Options{
		Rules: rules(s.cfg), Next: next, Surface: surface, Verified: parts.Vouched,
		Refuse: func(w http.ResponseWriter, r *http.Request, refusal guard.Refusal) {
			if parts.Refused != nil {
				parts.Refused(string(refusal.Reason))
			}
			if refusal.Surface == guard.AWS && parts.Forbid != nil {
				parts.Forbid(w, r, refusal.Text)
				return
			}
			admin.Forbid(w, refusal.Text)
		},
	})
}

// Guarded puts the guard in front of what a node of a cluster tells operators of itself.
func Guarded(cfg config.Config, next http.Handler) http.Handler {
	return guard.Handler(guard.Options{
		Rules: rules(cfg), Next: next, Surface: surface,
		Refuse: func(w http.ResponseWriter, _ *http.Request, refusal guard.Refusal) { admin.Forbid(w, refusal.Text) },
	})
}

// surface is the part of the server that a path of the main port belongs to.
func surface(path string) guard.Surface {
	switch {
	case path == healthPath || path == readyPath:
		return guard.Probe
	case path == metricsPath || strings.HasPrefix(path, adminPrefix):
		return guard.Own
	default:
		return guard.AWS
	}
}
