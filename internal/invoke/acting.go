package invoke

import (
	"context"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/function"
)

// Acting lets Lambda do something with a resource for a function: it reports who does it, a
// session of the function's role, and refuses an action that the role may not with
// AccessDenied. Nil stands for the root of the function's account, who may everything.
type Acting func(ctx context.Context, t *function.Target, resource arn.ARN, action string) (*caller.Caller, error)

// May asks for several actions; a is nil where nobody asks. denied is the one that the role
// may not.
func (a Acting) May(ctx context.Context, t *function.Target, resource arn.ARN, actions ...string) (who *caller.Caller, denied string, err error) {
	if a == nil {
		return nil, "", nil
	}
	for _, action := range actions {
		if who, err = a(ctx, t, resource, action); err != nil {
			return nil, action, err
		}
	}
	return who, "", nil
}
