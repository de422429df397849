package operating

import (
	"errors"
	"net/http"

	"godwit.dev/godwit/internal/caller"
)

// errTemporary refuses a sign-in with credentials that STS has made.
var errTemporary = errors.New("sign in with an access key of the user: temporary credentials open no session of the console")

// SignIn gives who has signed the request that opens a session of the console: the root user
// of the server's own account, or a user of it. What they may see there is decided with each
// request of the session.
func (g *Gate) SignIn(w http.ResponseWriter, r *http.Request) (who *caller.Caller, err error) {
	defer func() { g.Trail.Operator(r, who, g.Clock.Now(), g.Config.Region, err) }()
	if who, err = g.signer(w, r); err != nil {
		return nil, err
	}
	if who.Account != g.Config.Account || who.Kind != caller.Root && who.Kind != caller.User {
		return nil, errNotOperator
	}
	if !who.Issued.IsZero() { // a session of the console knows no session token, and would be over at once
		return nil, errTemporary
	}
	return who, nil
}

// Note records who has signed in to the console at an identity provider, or why nobody has.
func (g *Gate) Note(r *http.Request, who *caller.Caller, refusal error) {
	g.Trail.Operator(r, who, g.Clock.Now(), g.Config.Region, refusal)
}

// isOperator reports whether a caller can be an operator at all: a user, or a role's session that
// signed in to the console and so has no credentials. A function, with its role's rights, is none.
func isOperator(who *caller.Caller) bool {
	return who.Kind == caller.User || who.Kind == caller.Session && who.AccessKey == ""
}
