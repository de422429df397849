package functions

import (
	"context"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/policy"
	"godwit.dev/godwit/internal/shard/queues/queuepolicy"
)

// A function's policy says which services may invoke it. Each version and alias has its own: a
// qualified invocation needs the permission of the qualifier's policy alone. Without a policy
// no service has permission.

const invokeFunction = "lambda:InvokeFunction"

// PermitFunction adds a statement to a function's policy. Errors: those of
// function.State.Permit, and InvalidParameter for a statement that no policy can have.
func (e *Functions) PermitFunction(ctx context.Context, cmd function.Permit) error {
	doc := `{"Version":"2012-10-17","Statement":[` + cmd.Permission.String() + `]}`
	if _, err := policy.Parse(doc); err != nil {
		return ErrPrincipal
	}
	return e.WithCatalog(ctx, cmd.Function, func(sh *Shard) error {
		delete(sh.functionPolicies, cmd.Function)
		return sh.Functions.Permit(cmd, &sh.Batch)
	})
}

// ForbidFunction removes a statement from a function's policy. Errors: those of
// function.State.Forbid.
func (e *Functions) ForbidFunction(ctx context.Context, cmd function.Forbid) error {
	return e.WithCatalog(ctx, cmd.Function, func(sh *Shard) error {
		delete(sh.functionPolicies, cmd.Function)
		return sh.Functions.Forbid(cmd, &sh.Batch)
	})
}

// FunctionPolicy is the policy of a function, or of its qualifier, with its revision. Errors:
// ResourceNotFound, also if there is no policy.
func (e *Functions) FunctionPolicy(ctx context.Context, fn arn.ARN, qualifier string) (doc, revision string, err error) {
	err = e.ReadCatalog(ctx, fn, func(sh *Shard) (err error) {
		doc, revision, err = sh.Functions.ShowPolicy(fn, qualifier)
		return err
	})
	return doc, revision, err
}

// CompiledFunctionPolicy is the policy of a function, or of the version or alias that fn names;
// nil if that does not exist.
func (e *Functions) CompiledFunctionPolicy(ctx context.Context, fn arn.ARN) (p *policy.Policy) {
	name, qualifier, ok := fn.SplitFunction()
	if !ok {
		return nil
	}
	_ = e.ReadCatalog(ctx, name, func(sh *Shard) error {
		f, _, _, err := sh.Functions.Find(name, qualifier)
		if err == nil {
			p = sh.functionPolicy(f, qualifier)
		}
		return err
	})
	return p
}

// AdmitFunction checks that a service may invoke a function, which may be named with a
// qualifier, for a resource of its own. service is its principal, as "sns.amazonaws.com".
// Errors: ResourceNotFound, AccessDenied.
func (e *Functions) AdmitFunction(ctx context.Context, fn arn.ARN, service, sourceARN, sourceAccount string) error {
	return e.AdmitService(ctx, fn, authorize.ServiceCaller(service), sourceARN, sourceAccount)
}

// AdmitService is AdmitFunction of a service that has several principals.
func (e *Functions) AdmitService(ctx context.Context, fn arn.ARN, who *caller.Caller, sourceARN, sourceAccount string) error {
	name, qualifier, ok := fn.SplitFunction()
	if !ok {
		return function.ErrNotFound.With(fn)
	}
	return e.ReadCatalog(ctx, name, func(sh *Shard) error {
		return sh.admits(who, name, qualifier, sourceARN, sourceAccount, sh.Now())
	})
}

// admits is AdmitFunction under the lock of the function's shard.
func (sh *Shard) admits(who *caller.Caller, fn arn.ARN, qualifier, sourceARN, sourceAccount string, now int64) error {
	f, _, _, err := sh.Functions.Find(fn, qualifier)
	if err != nil {
		return err
	}
	target := fn.Qualify(qualifier)
	result := policy.Decide(&policy.Request{
		Caller: who, Action: invokeFunction, Resource: target.String(), Owner: fn.Account,
		Context: &authorize.Context{Caller: who, Account: fn.Account, Region: fn.Region, Now: now, Source: sourceARN, Owner: sourceAccount},
	}, &policy.Policies{Resource: sh.functionPolicy(f, qualifier)})
	if !result.Allowed() {
		return ErrNotPermitted.With(who.Services[0], invokeFunction, target, invokeFunction)
	}
	return nil
}

// AdmitsCaller reports whether a function's policy, or that of the version or alias that fn
// names, gives another account permission for an action, as "lambda:GetFunction". address is
// the caller's, as host:port. The result is false if there is no such function.
func (e *Functions) AdmitsCaller(ctx context.Context, fn arn.ARN, account, action, address string) bool {
	name, qualifier, ok := fn.SplitFunction()
	if !ok {
		return false
	}
	var result policy.Result
	err := e.ReadCatalog(ctx, name, func(sh *Shard) error {
		f, _, _, err := sh.Functions.Find(name, qualifier)
		if err != nil {
			return err
		}
		who := authorize.RootOf(account)
		result = policy.Decide(&policy.Request{
			Caller: who, Action: action, Resource: fn.String(), Owner: fn.Account,
			Context: &authorize.Context{Caller: who, Account: fn.Account, Region: fn.Region, Now: sh.Now(), Address: address},
		}, &policy.Policies{Resource: sh.functionPolicy(f, qualifier)})
		return nil
	})
	return err == nil && result.Allowed()
}

// functionPolicy is the policy of a qualifier, compiled at its first use.
func (sh *Shard) functionPolicy(f *function.Function, qualifier string) *policy.Policy {
	known := sh.functionPolicies[f.ARN]
	if p, ok := known[qualifier]; ok {
		return p
	}
	p, err := policy.Parse(f.Policy(qualifier))
	if err != nil { // there is none
		p = queuepolicy.DenyAll
	}
	if known == nil {
		if sh.functionPolicies == nil {
			sh.functionPolicies = map[arn.ARN]map[string]*policy.Policy{}
		}
		known = map[string]*policy.Policy{}
		sh.functionPolicies[f.ARN] = known
	}
	known[qualifier] = p
	return p
}
