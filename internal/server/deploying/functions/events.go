package functions

import (
	"context"

	"godwit.dev/godwit/internal/api/lambda"
	"godwit.dev/godwit/internal/server/deploying/step"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
)

// asynchronous is the function that a configuration of its events is for, with its qualifier.
func asynchronous(w *step.Work) *lambda.FunctionInput {
	return &lambda.FunctionInput{FunctionName: step.Text(w.Target.Properties["FunctionName"]), Qualifier: step.Optional(w.Target.Properties["Qualifier"])}
}

func createEventInvoke(ctx context.Context, w *step.Work) (step.Made, error) {
	of := asynchronous(w)
	found, err := step.Ask[lambda.FunctionEventInvokeConfig](ctx, w, "lambda", "GetFunctionEventInvokeConfig", w.Region, of)
	switch {
	case stacks.IsGone(err):
	case err != nil:
		return step.Made{}, err
	case found.LastModified == nil || !w.OwnSince(*found.LastModified):
		return step.Made{}, w.Taken(of.FunctionName + "|" + step.Text(w.Target.Properties["Qualifier"]))
	}
	return putEventInvoke(ctx, w)
}

// putEventInvoke says how a function's events are tried: what properties leave out is as it
// is of functions without a configuration.
func putEventInvoke(ctx context.Context, w *step.Work) (step.Made, error) {
	in := &lambda.EventInvokeConfigInput{}
	if err := step.Fill(w.Target.Properties, in); err != nil {
		return step.Made{}, err
	}
	if _, err := step.Ask[lambda.FunctionEventInvokeConfig](ctx, w, "lambda", "PutFunctionEventInvokeConfig", w.Region, in); err != nil {
		if w.Action == stack.Create {
			return step.Made{}, err
		}
		return step.Made{Physical: w.Target.Physical}, err
	}
	return step.Made{Physical: w.Target.Physical, Attributes: nil}, nil
}

func deleteEventInvoke(ctx context.Context, w *step.Work) error {
	_, err := step.Ask[lambda.Empty](ctx, w, "lambda", "DeleteFunctionEventInvokeConfig", w.Region, asynchronous(w))
	return step.UnlessGone(err)
}
