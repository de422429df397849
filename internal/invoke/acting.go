package invoke

import (
	"context"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/function"
)

// Acting checks that a function's role allows Lambda an action on a resource. It returns the
// caller for the action: a session of the role, or nil for the root of the function's
// account, which may do everything. It fails with AccessDenied.
type Acting func(ctx context.Context, t *function.Target, resource arn.ARN, action string) (*caller.Caller, error)

// May checks several actions; a may be nil: all are allowed. denied is the action that the
// role does not allow; empty where ctx has ended, and nothing was decided.
func (a Acting) May(ctx context.Context, t *function.Target, resource arn.ARN, actions ...string) (who *caller.Caller, denied string, err error) {
	if a == nil {
		return nil, "", nil
	}
	for _, action := range actions {
		if who, err = a(ctx, t, resource, action); err != nil {
			if ctx.Err() == nil {
				denied = action
			}
			return nil, denied, err
		}
	}
	return who, "", nil
}
