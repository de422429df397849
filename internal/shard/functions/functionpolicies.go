package functions

import (
	"context"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/policy"
	"godwit.dev/godwit/internal/shard/queues/queuepolicy"
)

// A function's policy says which services may invoke it, and there is one for
// each version and alias. What a qualifier names is invoked by that one's policy
// alone; without a policy no service is let in.

const invokeFunction = "lambda:InvokeFunction"

// PermitFunction adds a statement to a function's policy. Errors: those of
// function.State.Permit, and InvalidParameter for what no policy can hold.
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

// FunctionPolicy is the policy of a function, or of what the qualifier names, with
// its revision. Errors: ResourceNotFound, also for no policy.
func (e *Functions) FunctionPolicy(ctx context.Context, fn arn.ARN, qualifier string) (doc, revision string, err error) {
	err = e.WithCatalog(ctx, fn, func(sh *Shard) (err error) {
		doc, revision, err = sh.Functions.ShowPolicy(fn, qualifier)
		return err
	})
	return doc, revision, err
}

// CompiledFunctionPolicy is the policy of a function, or of the version or alias that fn
// names; nil if there is no such thing.
func (e *Functions) CompiledFunctionPolicy(ctx context.Context, fn arn.ARN) (p *policy.Policy) {
	name, qualifier, ok := fn.SplitFunction()
	if !ok {
		return nil
	}
	_ = e.WithCatalog(ctx, name, func(sh *Shard) error {
		f, _, _, err := sh.Functions.Find(name, qualifier)
		if err == nil {
			p = sh.functionPolicy(f, qualifier)
		}
		return err
	})
	return p
}

// AdmitFunction says whether a service may invoke a function, which may be named
// with a qualifier, for a resource of its own. service is its principal, as
// "sns.amazonaws.com". Errors: ResourceNotFound, AccessDenied.
func (e *Functions) AdmitFunction(ctx context.Context, fn arn.ARN, service, sourceARN, sourceAccount string) error {
	name, qualifier, ok := fn.SplitFunction()
	if !ok {
		return function.ErrNotFound.With(fn)
	}
	return e.WithCatalog(ctx, name, func(sh *Shard) error {
		return sh.admitsService(name, qualifier, service, sourceARN, sourceAccount, sh.Now())
	})
}

// admitsService is AdmitFunction under the lock of the function's shard.
func (sh *Shard) admitsService(fn arn.ARN, qualifier, service, sourceARN, sourceAccount string, now int64) error {
	f, _, _, err := sh.Functions.Find(fn, qualifier)
	if err != nil {
		return err
	}
	target := fn.Qualify(qualifier)
	who := authorize.ServiceCaller(service)
	result := policy.Decide(&policy.Request{
		Caller: who, Action: invokeFunction, Resource: target.String(), Owner: fn.Account,
		Context: &authorize.Context{Caller: who, Account: fn.Account, Region: fn.Region, Now: now, Source: sourceARN, Owner: sourceAccount},
	}, &policy.Policies{Resource: sh.functionPolicy(f, qualifier)})
	if !result.Allowed() {
		return ErrNotPermitted.With(service, invokeFunction, target, invokeFunction)
	}
	return nil
}

// AdmitsCaller reports whether a function's policy, or that of the version or alias
// that fn names, lets another account do something: action, as "lambda:GetFunction".
// address is where the caller is, as host:port. A function that is not there lets
// nobody.
func (e *Functions) AdmitsCaller(ctx context.Context, fn arn.ARN, account, action, address string) bool {
	name, qualifier, ok := fn.SplitFunction()
	if !ok {
		return false
	}
	var result policy.Result
	err := e.WithCatalog(ctx, name, func(sh *Shard) error {
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

// functionPolicy is the policy of what a qualifier names, compiled when it is
// first asked for.
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
