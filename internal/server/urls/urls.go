// Package urls makes what serves function URLs.
package urls

import (
	"context"
	"log/slog"
	"net/http"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/limit"
	"godwit.dev/godwit/internal/server/ids"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/sigv4"
	"godwit.dev/godwit/internal/wire"
	"godwit.dev/godwit/internal/wire/functionurl"
)

// Options are what Open needs. Authentic, Known, Audit, Requests and Pace are those of functionurl.Options.
type Options struct {
	Engine    *shard.Engine
	Pool      invoke.Invoker
	Authentic *sigv4.Verifier
	Known     func(accessKey, token string) *caller.Caller
	// Authorizer decides who may invoke what; nil: everybody may.
	Authorizer *authorize.Authorizer
	// Request counts a request of an account, or refuses it.
	Request func(account string) error
	// NoteUse notes that an access key was used.
	NoteUse  func(accessKey, service, region string)
	Audit    func(call *api.Call, in any, outcome wire.Outcome)
	Requests *limit.Budget
	Pace     wire.Pace
	Clock    clock.Clock
	Logger   *slog.Logger
}

// Open makes the handler of function URLs.
func Open(o Options) *functionurl.Handler {
	h := functionurl.Options{
		Find: o.Engine.FindFunctionURL, Target: o.Engine.Function, Pool: o.Pool, Authentic: o.Authentic, Known: o.Known,
		Admit: func(u *function.QualifiedURL, who *caller.Caller) error {
			if err := o.Request(u.Function.Account); err != nil {
				return err
			}
			if who != nil {
				o.NoteUse(who.AccessKey, "lambda", u.Function.Region)
			}
			return o.Engine.ServiceFault("lambda", u.Function.Region, u.Function.Account)
		},
		Audit:    o.Audit,
		Requests: o.Requests, Pace: o.Pace, NewRequestID: ids.Text, Clock: o.Clock, Logger: o.Logger,
	}
	if o.Authorizer != nil {
		h.Authorize = o.mayInvoke
	}
	return functionurl.New(h)
}

// mayInvoke refuses who has no permission to invoke a function by its URL. Anybody may be admitted to
// one with the AuthType NONE, but by the function's policy alone.
func (o *Options) mayInvoke(ctx context.Context, r *http.Request, u *function.QualifiedURL, who *caller.Caller) error {
	if who == nil {
		who = &caller.Caller{}
	}
	known := authorize.Context{
		Caller: who, Region: u.Function.Region, Now: o.Clock.Now().UnixMilli(), Address: r.RemoteAddr, Transport: authorize.Plain,
	}
	if r.TLS != nil {
		known.Transport = authorize.TLS
	}
	need := authorize.Need{
		Action: "lambda:" + functionurl.Operation, Resource: u.Target().String(), Account: u.Function.Account, Shared: true, Must: u.Auth == function.AuthNone,
		Keys: []authorize.Key{{Name: "lambda:functionurlauthtype", Values: []string{u.Auth}}},
	}
	result, err := o.Authorizer.Decide(ctx, &need, &known)
	if err != nil || result.Allowed() {
		return err
	}
	return api.Denied(known.Caller, &need, &result)
}
