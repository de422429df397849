package server

import (
	"errors"
	"maps"
	"net/http"
	"strings"

	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/console"
	"godwit.dev/godwit/internal/console/session"
	"godwit.dev/godwit/internal/server/operating"
)

// newSessions keeps who is signed in to the console; nil where nobody has to.
func newSessions(deps Deps) *session.Sessions {
	if !deps.Config.Enforce || deps.Config.AdminListen != "" {
		return nil
	}
	keys := inTurn(rootKey(deps.Config), deps.Keys)
	return session.New(session.Options{
		Clock: clock.System, Secure: strings.HasPrefix(deps.Config.PublicURL, "https://"),
		Key: func(accessKey string) (*caller.Caller, error) {
			credential, err := keys(accessKey, "")
			return credential.Caller, err
		},
	})
}

// sessionOf is operating.Options.Session: whoever signs a request is not asked for a session.
func sessionOf(sessions *session.Sessions) func(r *http.Request) (*caller.Caller, error) {
	if sessions == nil {
		return nil
	}
	return func(r *http.Request) (*caller.Caller, error) {
		if r.Header.Get("Authorization") != "" {
			return nil, nil
		}
		who, err := sessions.Of(r)
		if errors.Is(err, session.ErrNone) {
			return nil, nil
		}
		return who, err
	}
}

// consolePages are the parts of the console that anybody may ask for: its page, and its
// sign-in where there is one.
func consolePages(deps Deps, sessions *session.Sessions, gate *operating.Gate) (map[string]http.Handler, error) {
	handlers, err := console.Handlers()
	if err != nil {
		return nil, err
	}
	if sessions == nil {
		maps.Copy(handlers, session.Unneeded())
	} else {
		maps.Copy(handlers, sessions.Handlers(deps.Config.Region, gate.SignIn))
	}
	return handlers, nil
}
