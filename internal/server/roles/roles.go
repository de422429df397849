// Package roles asks policies what Lambda may do for a function: it acts in a session of
// the function's role, be it that nobody calls the function.
package roles

import (
	"context"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/shard/identity"
)

// Polled are what a role needs to have its function get a queue's messages. Source: the
// Lambda developer guide, on execution role permissions for SQS.
var Polled = []string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}

// handed is what a role needs to have what came of its function's events handed over, by
// the service that takes it. Source: the Lambda developer guide, on destinations and
// dead-letter queues.
var handed = map[string]string{"sqs": "sqs:SendMessage", "sns": "sns:Publish", "lambda": "lambda:InvokeFunction"}

// Roles asks what roles may. The zero value asks nobody.
type Roles struct {
	Authorizer *authorize.Authorizer // nil: nobody asks
	Identities *identity.Module
	Clock      clock.Clock
}

// Allowed refuses what a function's role may not do with a resource.
type Allowed = func(ctx context.Context, target *function.Target, resource arn.ARN) error

// Polling refuses to take messages out of a queue; nil where nobody asks.
func (r Roles) Polling() Allowed {
	return r.asking(func(arn.ARN) []string { return Polled })
}

// Handing refuses to hand over what came of an event; nil where nobody asks.
func (r Roles) Handing() Allowed {
	return r.asking(func(to arn.ARN) []string { return []string{handed[to.Service]} })
}

func (r Roles) asking(actions func(resource arn.ARN) []string) Allowed {
	if r.Authorizer == nil {
		return nil
	}
	return func(ctx context.Context, target *function.Target, resource arn.ARN) error {
		role := r.Identities.RoleOf(target.Role)
		if role == nil { // or not any more: nothing says what it may
			return fault.Newf(fault.AccessDenied, "There is no role %s.", target.Role)
		}
		session := caller.Caller{
			Kind: caller.Session, Account: role.Account, ARN: identity.RoleSessionARN(role.Account, role.Name, target.Name),
			ID: role.ID + ":" + target.Name, Name: target.Name, Role: role.ARN(), RoleID: role.ID,
		}
		return May(ctx, r.Authorizer, &session, resource, r.Clock.Now().UnixMilli(), actions(resource)...)
	}
}

// May refuses actions on a resource that a session is not allowed, with AccessDenied. now
// is in epoch milliseconds.
func May(ctx context.Context, a *authorize.Authorizer, session *caller.Caller, resource arn.ARN, now int64, actions ...string) error {
	for _, action := range actions {
		need := authorize.Need{Action: action, Resource: resource.String(), Account: resource.Account, Shared: true}
		result, err := a.Decide(ctx, &need, &authorize.Context{Caller: session, Region: resource.Region, Now: now})
		if err != nil {
			return err
		}
		if !result.Allowed() {
			return api.Denied(session, &need, &result)
		}
	}
	return nil
}
