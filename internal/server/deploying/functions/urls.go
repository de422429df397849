package functions

import (
	"context"
	"strings"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/lambda"
	"godwit.dev/godwit/internal/server/deploying/step"
	"godwit.dev/godwit/internal/shard/stacks"
)

// reached is the function or alias that a URL is of.
func reached(w *step.Work) *lambda.FunctionInput {
	properties := w.Target.Properties
	return &lambda.FunctionInput{FunctionName: step.Text(properties["TargetFunctionArn"]), Qualifier: step.Optional(properties["Qualifier"])}
}

// settled are the properties of a URL that are members of its operations.
func settled(w *step.Work) map[string]any {
	settings := map[string]any{}
	for _, name := range []string{"AuthType", "Cors", "InvokeMode", "Qualifier"} {
		if value, ok := w.Target.Properties[name]; ok {
			settings[name] = value
		}
	}
	settings["FunctionName"] = w.Target.Properties["TargetFunctionArn"]
	return settings
}

func createURL(ctx context.Context, w *step.Work) (step.Made, error) {
	in := &lambda.CreateFunctionUrlConfigInput{}
	if err := step.Fill(settled(w), in); err != nil {
		return step.Made{}, err
	}
	out, err := step.Ask[lambda.CreateFunctionUrlConfigOutput](ctx, w, "lambda", "CreateFunctionUrlConfig", w.Region, in)
	if step.Exists(err) {
		found, other := step.Ask[lambda.FunctionUrlConfig](ctx, w, "lambda", "GetFunctionUrlConfig", w.Region, reached(w))
		switch {
		case other != nil && !stacks.IsGone(other):
			return step.Made{}, other
		case other == nil && w.OwnSince(made(found)): // this step has made it
			return addressed(w, found.FunctionArn, found.FunctionUrl), nil
		case other == nil:
			return step.Made{}, w.Taken(found.FunctionArn)
		}
	}
	if err != nil {
		return step.Made{}, err
	}
	return addressed(w, out.FunctionArn, out.FunctionUrl), nil
}

// made is when a URL was made.
func made(u *lambda.FunctionUrlConfig) api.Time {
	at, _ := time.Parse(time.RFC3339Nano, u.CreationTime) // the operation writes it so
	return api.TimeOf(at)
}

// addressed is what a template sees of a URL, whose scheme is the server's: steps are taken as with TLS.
func addressed(w *step.Work, arn, url string) step.Made {
	if strings.HasPrefix(w.Options.URL, "http://") {
		url = "http://" + strings.TrimPrefix(url, "https://")
	}
	return step.Made{Physical: arn, Attributes: map[string]any{"FunctionArn": arn, "FunctionUrl": url}}
}

// updateURL changes a URL: a Cors that the template has no more is removed.
func updateURL(ctx context.Context, w *step.Work) (step.Made, error) {
	is := step.Made{Physical: w.Target.Physical, Attributes: w.Target.Attributes}
	in := &lambda.UpdateFunctionUrlConfigInput{}
	if err := step.Fill(settled(w), in); err != nil {
		return is, err
	}
	if in.Cors == nil {
		in.Cors = &lambda.Cors{}
	}
	out, err := step.Ask[lambda.FunctionUrlConfig](ctx, w, "lambda", "UpdateFunctionUrlConfig", w.Region, in)
	if err != nil {
		return is, err
	}
	return addressed(w, out.FunctionArn, out.FunctionUrl), nil
}

func deleteURL(ctx context.Context, w *step.Work) error {
	_, err := step.Ask[lambda.Empty](ctx, w, "lambda", "DeleteFunctionUrlConfig", w.Region, reached(w))
	return step.UnlessGone(err)
}
