package functions

import (
	"context"
	"maps"
	"strings"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/lambda"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/server/deploying/step"
	"godwit.dev/godwit/internal/shard/stacks"
)

// lambdaTime is how functions tell when they were changed.
const lambdaTime = "2006-01-02T15:04:05.000-0700"

func createVersion(ctx context.Context, w *step.Work) (step.Made, error) {
	in := &lambda.PublishVersionInput{}
	if err := step.Fill(w.Target.Properties, in); err != nil {
		return step.Made{}, err
	}
	out, err := step.AskOnce[lambda.FunctionConfiguration](ctx, w, "lambda", "PublishVersion", in)
	if fault.KindOf(err) == fault.ResourceConflict { // it is being made or changed
		err = errBusy
	}
	if err != nil {
		return step.Made{}, err
	}
	if lambda.TokenOf(out) != w.Token && !publishedEarlier(w, out) { // nothing has changed since another one was published
		return step.Made{}, &step.Error{Text: "A version for this Lambda function exists ( " + out.Version + " ). Modify the function to create a new version.", Code: "AlreadyExists"}
	}
	return step.Made{Physical: out.FunctionArn, Attributes: map[string]any{"Version": out.Version, "FunctionArn": out.FunctionArn}}, nil
}

// publishedEarlier reports that the process before has published a version in this step, of a
// version of Godwit that kept no tokens, and perhaps gave it the step's as its revision.
func publishedEarlier(w *step.Work, v *lambda.FunctionConfiguration) bool {
	at, err := time.Parse(lambdaTime, v.LastModified)
	return err == nil && lambda.TokenOf(v) == "" && w.Again && w.Try == 0 && at.UnixMilli() >= w.Began && !w.Options.Creates(w.Task, v.RevisionId)
}

// updateVersion refuses another description or code, as AWS does: a version does not change. A
// rollback of that finds it as it was.
func updateVersion(ctx context.Context, w *step.Work) (step.Made, error) {
	is, now := step.Made{Physical: w.Target.Physical, Attributes: w.Target.Attributes}, w.Target.Properties
	found, err := functionNow(ctx, w, w.Target.Physical)
	if err != nil {
		return is, err
	}
	description := ""
	if found.Description != nil {
		description = *found.Description
	}
	if d := now["Description"]; d != nil && step.Text(d) != description {
		return is, step.NotUpdatable("Description")
	}
	if code := now["CodeSha256"]; code != nil && step.Text(code) != found.CodeSha256 {
		return is, step.NotUpdatable("CodeSha256")
	}
	return is, nil
}

func deleteVersion(ctx context.Context, w *step.Work) error {
	function, version := w.Target.Physical, step.Text(w.Target.Attributes["Version"])
	function = strings.TrimSuffix(function, ":"+version)
	_, err := step.Ask[lambda.DeleteFunctionOutput](ctx, w, "lambda", "DeleteFunction", w.Region, &lambda.FunctionInput{FunctionName: function, Qualifier: &version})
	return step.UnlessGone(err)
}

// routed is the second version of an alias, which templates have as a list.
func routed(properties map[string]any) (*lambda.AliasRoutingConfiguration, error) {
	to := &lambda.AliasRoutingConfiguration{AdditionalVersionWeights: map[string]float64{}}
	config, _ := properties["RoutingConfig"].(map[string]any)
	var given struct {
		AdditionalVersionWeights []struct {
			FunctionVersion string
			FunctionWeight  float64
		}
	}
	if err := step.Fill(config, &given); err != nil {
		return nil, err
	}
	for _, one := range given.AdditionalVersionWeights {
		to.AdditionalVersionWeights[one.FunctionVersion] = one.FunctionWeight
	}
	return to, nil
}

func createAlias(ctx context.Context, w *step.Work) (step.Made, error) {
	properties := w.Target.Properties
	to, err := routed(properties)
	if err != nil {
		return step.Made{}, err
	}
	named := &lambda.AliasInput{FunctionName: step.Text(properties["FunctionName"]), Name: step.Text(properties["Name"])}
	if !w.Again {
		found, err := step.Ask[lambda.AliasConfiguration](ctx, w, "lambda", "GetAlias", w.Region, named)
		if err == nil {
			return step.Made{}, w.Taken(found.AliasArn)
		}
		if !stacks.IsGone(err) {
			return step.Made{}, err
		}
	}
	out, err := step.Ask[lambda.AliasConfiguration](ctx, w, "lambda", "CreateAlias", w.Region, &lambda.CreateAliasInput{
		FunctionName: named.FunctionName, Name: named.Name, FunctionVersion: step.Text(properties["FunctionVersion"]),
		Description: step.Optional(properties["Description"]), RoutingConfig: to,
	})
	if w.Again && step.Exists(err) { // it is this step's own if it is as this step makes it
		found, other := step.Ask[lambda.AliasConfiguration](ctx, w, "lambda", "GetAlias", w.Region, named)
		if other != nil {
			return step.Made{}, other
		}
		if found.FunctionVersion != step.Text(properties["FunctionVersion"]) || api.Deref(found.Description) != step.Text(properties["Description"]) || !sameRoutes(found.RoutingConfig, to) {
			return step.Made{}, w.Taken(found.AliasArn)
		}
		out, err = found, nil
	}
	if err != nil {
		return step.Made{}, err
	}
	return aliased(out), nil
}

func sameRoutes(a, b *lambda.AliasRoutingConfiguration) bool {
	weights := func(of *lambda.AliasRoutingConfiguration) map[string]float64 {
		if of == nil {
			return nil
		}
		return of.AdditionalVersionWeights
	}
	return maps.Equal(weights(a), weights(b))
}

func aliased(out *lambda.AliasConfiguration) step.Made {
	return step.Made{Physical: out.AliasArn, Attributes: map[string]any{"AliasArn": out.AliasArn}}
}

// putAlias has an alias as properties say.
func putAlias(ctx context.Context, w *step.Work, to *lambda.AliasRoutingConfiguration) (step.Made, error) {
	properties := w.Target.Properties
	version, description := step.Text(properties["FunctionVersion"]), step.Text(properties["Description"])
	out, err := step.Ask[lambda.AliasConfiguration](ctx, w, "lambda", "UpdateAlias", w.Region, &lambda.UpdateAliasInput{
		FunctionName: step.Text(properties["FunctionName"]), Name: step.Text(properties["Name"]), FunctionVersion: &version, Description: &description, RoutingConfig: to,
	})
	if err != nil {
		return step.Made{Physical: w.Target.Physical, Attributes: w.Target.Attributes}, err
	}
	return aliased(out), nil
}

func updateAlias(ctx context.Context, w *step.Work) (step.Made, error) {
	to, err := routed(w.Target.Properties)
	if err != nil {
		return step.Made{Physical: w.Target.Physical, Attributes: w.Target.Attributes}, err
	}
	return putAlias(ctx, w, to)
}

func deleteAlias(ctx context.Context, w *step.Work) error {
	properties := w.Target.Properties
	_, err := step.Ask[lambda.Empty](ctx, w, "lambda", "DeleteAlias", w.Region, &lambda.AliasInput{FunctionName: step.Text(properties["FunctionName"]), Name: step.Text(properties["Name"])})
	return step.UnlessGone(err)
}
