package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/console"
	"godwit.dev/godwit/internal/console/session"
	"godwit.dev/godwit/internal/console/signon"
	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/server/operating"
	"godwit.dev/godwit/internal/server/secret"
	"godwit.dev/godwit/internal/shard/identity"
)

// newSessions makes the console's sessions; nil if no sign-in is needed.
func newSessions(deps Deps, others credentials) *session.Sessions {
	if !deps.Config.Enforce || deps.Config.AdminListen != "" {
		return nil
	}
	keys := chain(rootKey(deps.Config), others)
	return session.New(session.Options{
		Clock: clock.System, Secure: strings.HasPrefix(deps.Config.PublicURL, "https://"),
		Key: func(accessKey string) (*caller.Caller, error) {
			credential, err := keys(accessKey, "")
			return credential.Caller, err
		},
	})
}

// signedIn is operating.Options.Sessions: signed requests need no session.
type signedIn struct{ *session.Sessions }

// ofSessions adapts the sessions for the gate.
func ofSessions(sessions *session.Sessions) operating.Sessions {
	if sessions == nil {
		return nil
	}
	return signedIn{sessions}
}

// Of is also nil without sessions.
func (s signedIn) Of(r *http.Request) (*caller.Caller, error) {
	if r.Header.Get("Authorization") != "" {
		return nil, nil
	}
	who, err := s.Sessions.Of(r)
	if errors.Is(err, session.ErrNone) {
		return nil, nil
	}
	return who, err
}

// consolePages are the unauthenticated parts of the console: its page, and its sign-in if there
// is one.
func consolePages(deps Deps, sessions *session.Sessions, gate *operating.Gate, identities *identity.Module, trust *tls.Config) (map[string]http.Handler, error) {
	handlers, err := console.Handlers()
	if err != nil {
		return nil, err
	}
	if sessions == nil {
		maps.Copy(handlers, session.Unneeded())
		return handlers, nil
	}
	signIn := session.SignIn{Region: deps.Config.Region, Signed: gate.SignIn}
	if deps.Config.OIDC.Issuer != "" {
		single, err := signOn(deps, sessions, gate, identities, trust)
		if err != nil {
			return nil, err
		}
		signIn.Provider, signIn.ProviderPath = single.Name(), signon.Path
		maps.Copy(handlers, single.Handlers())
	}
	maps.Copy(handlers, sessions.Handlers(signIn))
	return handlers, nil
}

// signOn makes the sign-in at the identity provider of the settings.
func signOn(deps Deps, sessions *session.Sessions, gate *operating.Gate, identities *identity.Module, trust *tls.Config) (*signon.SignOn, error) {
	o := signon.Options{
		Settings: deps.Config.OIDC, URL: deps.Config.PublicURL, Secure: strings.HasPrefix(deps.Config.PublicURL, "https://"),
		Clock: clock.System, Web: identityWeb(deps, trust, true), Open: sessions.OpenAs, Note: gate.Note, Logger: deps.Log,
		Role: func(role, name string) (who *caller.Caller) {
			_ = identities.Read(deps.Config.Account, func(a *iam.Account) error { // an account without any has no roles
				if e, err := a.Find(iam.Role, role); err == nil {
					who = identity.RoleCaller(e, name)
				}
				return nil
			})
			return who
		},
	}
	for _, text := range o.Settings.Roles {
		rule, err := config.ParseOIDCRole(text)
		if err != nil {
			return nil, err
		}
		o.Roles = append(o.Roles, rule)
	}
	if o.Settings.SecretFile != "" {
		text, err := secret.Read(deps.Config, o.Settings.SecretFile)
		if err != nil {
			return nil, fmt.Errorf("--console-oidc-secret-file: %w", err)
		}
		o.Secret = strings.TrimSpace(string(text))
	}
	return signon.New(o), nil
}
