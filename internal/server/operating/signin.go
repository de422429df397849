package operating

import (
	"net/http"

	"godwit.dev/godwit/internal/caller"
)

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
	return who, nil
}
