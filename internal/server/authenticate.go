package server

import (
	"crypto/subtle"
	"errors"

	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/sigv4"
)

// authentic verifies requests by the root's key and others; nil if authentication is off.
func authentic(deps Deps, others credentials) *sigv4.Verifier {
	if !deps.Config.Enforce {
		return nil
	}
	return sigv4.New(sigv4.Options{Keys: chain(rootKey(deps.Config), others), System: clock.System.Now, Now: deps.Clock.Now})
}

// credentials finds the credential of an access key; see sigv4.Options.Keys.
type credentials = func(accessKey, sessionToken string) (sigv4.Credential, error)

// chain looks a key up in first, then in second; second may be nil.
func chain(first, second credentials) credentials {
	if second == nil {
		return first
	}
	return func(accessKey, sessionToken string) (sigv4.Credential, error) {
		credential, err := first(accessKey, sessionToken)
		if errors.Is(err, sigv4.ErrUnknownKey) {
			return second(accessKey, sessionToken)
		}
		return credential, err
	}
}

// rootKey has the access key of the account's root, if there is one.
func rootKey(cfg config.Config) func(accessKey, sessionToken string) (sigv4.Credential, error) {
	who := authorize.RootOf(cfg.Account)
	who.AccessKey = cfg.Root.AccessKeyID
	credential := sigv4.Credential{Secret: cfg.Root.Secret, Caller: who}
	return func(accessKey, sessionToken string) (sigv4.Credential, error) {
		switch {
		case cfg.Root.Secret == "" || subtle.ConstantTimeCompare([]byte(accessKey), []byte(cfg.Root.AccessKeyID)) == 0:
			return sigv4.Credential{}, sigv4.ErrUnknownKey
		case sessionToken != "":
			return credential, sigv4.ErrToken
		}
		return credential, nil
	}
}
