// Package step is what the handlers of all types of resources share: a step of a stack that is in
// progress, the operations that it calls as whoever deploys, and what it says of their refusals.
package step

import (
	"context"
	"strings"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/api/operator/sources"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
)

// Options are what steps need of the server.
type Options struct {
	// Within carries out an operation as package wire does.
	Within func(ctx context.Context, call *api.Call, in any) (any, error)
	// Acting is who CloudFormation is in a role, for a stack; nil: the account's root.
	Acting func(stack arn.ARN, role string) (*caller.Caller, error)
	// URL is what queues' URLs begin with.
	URL string
	// Sources makes sources of posts.
	Sources *sources.Sources
	// Operating lets who acts have an operation of the operator API carried out, on a resource.
	Operating func(ctx context.Context, who *caller.Caller, op *rest.Operation, resource string) (*rest.Call, error)
	// Holds reports that another resource has the name of the parameter that a step is to make.
	Holds func(t *stacks.Task) bool
	// Giving and Taking are the claims of other resources on an inline policy that a step gives or takes
	// away.
	Giving, Taking func(t *stacks.Task, p stacks.Inline) stacks.Claims
	// TopicCreated is when a topic was created.
	TopicCreated func(ctx context.Context, topic arn.ARN) (time.Time, error)
	// Beside are the properties of the other resources of some types that a step's stack has and keeps.
	Beside func(t *stacks.Task, types ...string) []map[string]any
	// Creates reports that a token is of another resource's creation in a step's stack.
	Creates func(t *stacks.Task, token string) bool
	// May refuses what who acts may not do where there is no operation; nil: everybody may.
	May func(ctx context.Context, who *caller.Caller, via, region string, need *authorize.Need) error
	// Stacks has the stacks that are nested in others.
	Stacks Stacks
}

// Stacks is how steps look at the stacks that are nested in theirs.
type Stacks interface {
	Get(account, region, name string) (stacks.View, error)
	BeginCleanup(ctx context.Context, account, region, name string) error
	Revert(ctx context.Context, account, region, name string, req *stack.Request) error
	ContinueRollback(ctx context.Context, account, region, name string, req *stack.Request) error
}

// Made is what there is of a resource.
type Made struct {
	Physical   string
	Attributes map[string]any
}

// Handler takes the steps of a type of resources. Create gives what there is even if it
// fails, unless that is nothing.
type Handler struct {
	Create func(ctx context.Context, w *Work) (Made, error)
	Update func(ctx context.Context, w *Work) (Made, error)
	Delete func(ctx context.Context, w *Work) error
}

// Work is a step in progress.
type Work struct {
	*stacks.Task

	Options *Options
	Actor   *caller.Caller // who acts: the deployer, the stack's role, or the account's root

	failed *api.Call // of the operation that was refused last
}

// Begin finds out who acts.
func Begin(o *Options, t *stacks.Task) (*Work, error) {
	w := &Work{Task: t, Options: o, Actor: t.By}
	if w.Role != "" && o.Acting != nil {
		source, err := arn.Parse(w.Stack)
		if err != nil {
			return w, err
		}
		if w.Actor, err = o.Acting(source, w.Role); err != nil {
			return w, fault.New(fault.AccessDenied, "Role "+w.Role+" is invalid or cannot be assumed")
		}
	}
	if w.Actor == nil {
		w.Actor = authorize.RootOf(w.Account)
	}
	return w, nil
}

// Ask calls an operation, whose answer is an *Out.
func Ask[Out any](ctx context.Context, w *Work, service, operation, region string, in any) (*Out, error) {
	return carry[Out](ctx, w, &api.Call{Service: service, Operation: operation, Region: region}, in)
}

// AskOnce calls an operation that makes something without a name of its own: the same one
// whenever the step is taken again.
func AskOnce[Out any](ctx context.Context, w *Work, service, operation string, in any) (*Out, error) {
	return carry[Out](ctx, w, &api.Call{Service: service, Operation: operation, Region: w.Region, Within: api.Within{Once: w.Token}}, in)
}

func carry[Out any](ctx context.Context, w *Work, call *api.Call, in any) (*Out, error) {
	call.Protocol, call.Account, call.Caller = "query", w.Account, w.Actor
	call.RemoteAddr, call.Host, call.Via = authorize.CloudFormation, Secure(w.Options.URL), w.Via()
	out, err := w.Options.Within(ctx, call, in)
	if err != nil {
		w.failed = call
		return nil, err
	}
	return out.(*Out), nil
}

// Via is the service that asks for who acts. In a role it asks for itself.
func (w *Work) Via() string {
	if w.Role != "" {
		return ""
	}
	return authorize.CloudFormation
}

// Secure is an address with TLS: what stays within the process is as safe as that.
func Secure(url string) string {
	if host, ok := strings.CutPrefix(url, "http://"); ok {
		return "https://" + host
	}
	return url
}

// OwnSince reports that something which was made at a time, known to the second, may be what
// this very step made before it was interrupted.
func (w *Work) OwnSince(at api.Time) bool {
	second := time.Second.Milliseconds()
	return w.Again && int64(at)/second >= w.Began/second
}

// Earlier are the properties that an update changes, or that a deletion takes away beside those of its
// target: all of those that the resource may have in part.
func (w *Work) Earlier() (all []map[string]any) {
	if w.Action == stack.Create {
		return nil
	}
	all = append(all, w.Now) // which may be nil: there were no properties
	for _, properties := range []map[string]any{w.Failed, w.Former} {
		if properties != nil {
			all = append(all, properties)
		}
	}
	return all
}

// Keep leaves a resource as it is: nothing of it can change, or there is nothing of it but
// its place in the template.
func Keep(_ context.Context, w *Work) (Made, error) {
	return Made{w.Target.Physical, w.Target.Attributes}, nil
}
