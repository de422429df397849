package server

import (
	"crypto/subtle"
	"errors"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/sigv4"
)

// authentic verifies requests; nil where everybody is believed.
func authentic(deps Deps) *sigv4.Verifier {
	if !deps.Config.Enforce {
		return nil
	}
	root := rootKey(deps.Config)
	keys := root
	if others := deps.Keys; others != nil {
		keys = func(accessKey, sessionToken string) (sigv4.Credential, error) {
			credential, err := root(accessKey, sessionToken)
			if errors.Is(err, sigv4.ErrUnknownKey) {
				return others(accessKey, sessionToken)
			}
			return credential, err
		}
	}
	return sigv4.New(sigv4.Options{Keys: keys, System: clock.System.Now, Now: deps.Clock.Now})
}

// rootKey knows the access key of the account's root, if there is one.
func rootKey(cfg config.Config) func(accessKey, sessionToken string) (sigv4.Credential, error) {
	credential := sigv4.Credential{
		Secret: cfg.Root.Secret,
		Caller: &caller.Caller{
			Kind: caller.Root, Account: cfg.Account, ARN: "arn:" + arn.Partition + ":iam::" + cfg.Account + ":root",
			ID: cfg.Account, AccessKey: cfg.Root.AccessKeyID,
		},
	}
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
