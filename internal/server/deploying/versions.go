package deploying

import (
	"context"
	"strings"
	"time"

	"godwit.dev/godwit/internal/api/lambda"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/shard/stacks"
)

// lambdaTime is how functions tell when they were changed.
const lambdaTime = "2006-01-02T15:04:05.000-0700"

func createVersion(ctx context.Context, w *work) (made, error) {
	in := &lambda.PublishVersionInput{}
	if err := fill(w.Target.Properties, in); err != nil {
		return made{}, err
	}
	out, err := create[lambda.FunctionConfiguration](ctx, w, "lambda", "PublishVersion", in)
	if fault.KindOf(err) == fault.ResourceConflict { // it is being made or changed
		err = errBusy
	}
	if err != nil {
		return made{}, err
	}
	if lambda.TokenOf(out) != w.Token && !w.publishedEarlier(out) { // nothing has changed since another one was published
		return made{}, &handlerError{"A version for this Lambda function exists ( " + out.Version + " ). Modify the function to create a new version.", "AlreadyExists"}
	}
	return made{out.FunctionArn, map[string]any{"Version": out.Version, "FunctionArn": out.FunctionArn}}, nil
}

// publishedEarlier reports that the process before has published a version in this step, of a
// version of Godwit that kept no tokens, and perhaps gave it the step's as its revision.
func (w *work) publishedEarlier(v *lambda.FunctionConfiguration) bool {
	at, err := time.Parse(lambdaTime, v.LastModified)
	return err == nil && lambda.TokenOf(v) == "" && w.Again && w.Try == 0 && at.UnixMilli() >= w.Began && !w.worker.Creates(w.Task, v.RevisionId)
}

// updateVersion refuses another description or code, as AWS does: a version does not change. A
// rollback of that finds it as it was.
func updateVersion(ctx context.Context, w *work) (made, error) {
	is, now := made{w.Target.Physical, w.Target.Attributes}, w.Target.Properties
	found, err := w.functionNow(ctx, w.Target.Physical)
	if err != nil {
		return is, err
	}
	description := ""
	if found.Description != nil {
		description = *found.Description
	}
	if d := now["Description"]; d != nil && text(d) != description {
		return is, notUpdatable("Description")
	}
	if code := now["CodeSha256"]; code != nil && text(code) != found.CodeSha256 {
		return is, notUpdatable("CodeSha256")
	}
	return is, nil
}

func notUpdatable(property string) error {
	return &handlerError{"The property " + property + " does not support updates.", "NotUpdatable"}
}

func deleteVersion(ctx context.Context, w *work) error {
	function, version := w.Target.Physical, text(w.Target.Attributes["Version"])
	function = strings.TrimSuffix(function, ":"+version)
	_, err := ask[lambda.DeleteFunctionOutput](ctx, w, "lambda", "DeleteFunction", w.Region, &lambda.FunctionInput{FunctionName: function, Qualifier: &version})
	return unlessGone(err)
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
	if err := fill(config, &given); err != nil {
		return nil, err
	}
	for _, one := range given.AdditionalVersionWeights {
		to.AdditionalVersionWeights[one.FunctionVersion] = one.FunctionWeight
	}
	return to, nil
}

func createAlias(ctx context.Context, w *work) (made, error) {
	properties := w.Target.Properties
	to, err := routed(properties)
	if err != nil {
		return made{}, err
	}
	named := &lambda.AliasInput{FunctionName: text(properties["FunctionName"]), Name: text(properties["Name"])}
	if !w.Again {
		found, err := ask[lambda.AliasConfiguration](ctx, w, "lambda", "GetAlias", w.Region, named)
		if err == nil {
			return made{}, w.taken(found.AliasArn)
		}
		if !stacks.IsGone(err) {
			return made{}, err
		}
	}
	out, err := ask[lambda.AliasConfiguration](ctx, w, "lambda", "CreateAlias", w.Region, &lambda.CreateAliasInput{
		FunctionName: named.FunctionName, Name: named.Name, FunctionVersion: text(properties["FunctionVersion"]),
		Description: optional(properties["Description"]), RoutingConfig: to,
	})
	if w.Again && exists(err) {
		return putAlias(ctx, w, to)
	}
	if err != nil {
		return made{}, err
	}
	return aliased(out), nil
}

func aliased(out *lambda.AliasConfiguration) made {
	return made{out.AliasArn, map[string]any{"AliasArn": out.AliasArn}}
}

// putAlias has an alias as properties say.
func putAlias(ctx context.Context, w *work, to *lambda.AliasRoutingConfiguration) (made, error) {
	properties := w.Target.Properties
	version, description := text(properties["FunctionVersion"]), text(properties["Description"])
	out, err := ask[lambda.AliasConfiguration](ctx, w, "lambda", "UpdateAlias", w.Region, &lambda.UpdateAliasInput{
		FunctionName: text(properties["FunctionName"]), Name: text(properties["Name"]), FunctionVersion: &version, Description: &description, RoutingConfig: to,
	})
	if err != nil {
		return made{w.Target.Physical, w.Target.Attributes}, err
	}
	return aliased(out), nil
}

func updateAlias(ctx context.Context, w *work) (made, error) {
	to, err := routed(w.Target.Properties)
	if err != nil {
		return made{w.Target.Physical, w.Target.Attributes}, err
	}
	return putAlias(ctx, w, to)
}

func deleteAlias(ctx context.Context, w *work) error {
	properties := w.Target.Properties
	_, err := ask[lambda.Empty](ctx, w, "lambda", "DeleteAlias", w.Region, &lambda.AliasInput{FunctionName: text(properties["FunctionName"]), Name: text(properties["Name"])})
	return unlessGone(err)
}
