package server

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/audit"
	"godwit.dev/godwit/internal/authorize"
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
	return sigv4.New(sigv4.Options{Keys: inTurn(rootKey(deps.Config), deps.Keys), System: clock.System.Now, Now: deps.Clock.Now})
}

// credentials gives the credential of an access key; see sigv4.Options.Keys.
type credentials = func(accessKey, sessionToken string) (sigv4.Credential, error)

// inTurn asks second for the keys that first does not know; second may be nil.
func inTurn(first, second credentials) credentials {
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

// operatorService is what a request of an operator is signed for.
const operatorService = "godwit"

// maxOperatorBody bounds the body of an operator's request, in bytes.
const maxOperatorBody = 64 << 10

// errNotOperator refuses who is known and no operator.
var errNotOperator = errors.New("only the root user of this server's own account may ask for this, and users of it who are allowed godwit:Read or godwit:Operate")

// asOperator refuses who may not use what is Godwit's own; nil where everybody may.
func asOperator(verifier *sigv4.Verifier, deps Deps, policies *authorize.Authorizer, trail *audit.Trail) func(w http.ResponseWriter, r *http.Request) error {
	if verifier == nil {
		return nil
	}
	return func(w http.ResponseWriter, r *http.Request) (err error) {
		var who *caller.Caller
		defer func() { trail.Operator(r, who, deps.Clock.Now(), deps.Config.Region, err) }()
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxOperatorBody))
		if err != nil {
			return fmt.Errorf("the body cannot be read: %w", err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		request := sigv4.Of(r)
		request.Payload, request.Exact, request.Service = sha256.Sum256(body), true, operatorService
		who, err = verifier.Verify(&request)
		switch {
		case err != nil:
			return fmt.Errorf("%w (sign as the root user, for the service %s; or ask at --admin-listen)", err, operatorService)
		case who.Account != deps.Config.Account:
			return errNotOperator
		case who.Kind == caller.Root:
			return nil
		}
		return operates(r, who, deps, policies)
	}
}

// operates refuses a user whom no policy makes an operator. Roles are none: a function
// has the rights of its role.
func operates(r *http.Request, who *caller.Caller, deps Deps, policies *authorize.Authorizer) error {
	if who.Kind != caller.User {
		return errNotOperator
	}
	action := "godwit:Operate"
	if r.Method == http.MethodGet {
		action = "godwit:Read"
	}
	need := authorize.Need{
		Action: action, Account: deps.Config.Account,
		Resource: "arn:" + arn.Partition + ":godwit:" + deps.Config.Region + ":" + deps.Config.Account + ":" + strings.TrimPrefix(r.URL.Path, "/"),
	}
	known := authorize.Context{Caller: who, Region: deps.Config.Region, Now: deps.Clock.Now().UnixMilli(), Address: r.RemoteAddr, Transport: authorize.Plain}
	if r.TLS != nil {
		known.Transport = authorize.TLS
	}
	result, err := policies.Decide(r.Context(), &need, &known)
	if err != nil || !result.Allowed() {
		return errors.Join(errNotOperator, err)
	}
	return nil
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
