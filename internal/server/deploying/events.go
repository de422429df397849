package deploying

import (
	"context"

	"godwit.dev/godwit/internal/api/lambda"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
)

// asynchronous is the function that a configuration of its events is for, with its qualifier.
func asynchronous(w *work) *lambda.FunctionInput {
	return &lambda.FunctionInput{FunctionName: text(w.Target.Properties["FunctionName"]), Qualifier: optional(w.Target.Properties["Qualifier"])}
}

func createEventInvoke(ctx context.Context, w *work) (made, error) {
	of := asynchronous(w)
	found, err := ask[lambda.FunctionEventInvokeConfig](ctx, w, "lambda", "GetFunctionEventInvokeConfig", w.Region, of)
	switch {
	case stacks.IsGone(err):
	case err != nil:
		return made{}, err
	case found.LastModified == nil || !w.ownSince(*found.LastModified):
		return made{}, w.taken(of.FunctionName + "|" + text(w.Target.Properties["Qualifier"]))
	}
	return putEventInvoke(ctx, w)
}

// putEventInvoke says how a function's events are tried: what properties leave out is as it
// is of functions without a configuration.
func putEventInvoke(ctx context.Context, w *work) (made, error) {
	in := &lambda.EventInvokeConfigInput{}
	if err := fill(w.Target.Properties, in); err != nil {
		return made{}, err
	}
	if _, err := ask[lambda.FunctionEventInvokeConfig](ctx, w, "lambda", "PutFunctionEventInvokeConfig", w.Region, in); err != nil {
		if w.Action == stack.Create {
			return made{}, err
		}
		return made{physical: w.Target.Physical}, err
	}
	return made{w.Target.Physical, nil}, nil
}

func deleteEventInvoke(ctx context.Context, w *work) error {
	_, err := ask[lambda.Empty](ctx, w, "lambda", "DeleteFunctionEventInvokeConfig", w.Region, asynchronous(w))
	return unlessGone(err)
}
