package drifting

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/api/lambda"
	"godwit.dev/godwit/internal/api/lambda/layers"
	"godwit.dev/godwit/internal/api/lambda/mappings"
	"godwit.dev/godwit/internal/arn"
)

func function(ctx context.Context, r *reading) error {
	out, err := ask[lambda.FunctionConfiguration](ctx, r, "lambda", "GetFunctionConfiguration", r.Region, &lambda.FunctionInput{FunctionName: r.Physical})
	if err != nil {
		return err
	}
	r.members(out,
		"Architectures", "DeadLetterConfig", "Description", "Environment", "EphemeralStorage", "Handler", "LoggingConfig", "MemorySize", "PackageType",
		"Role", "Runtime", "Timeout", "TracingConfig")
	r.put("KmsKeyArn", out.KMSKeyArn)
	if r.Properties["Layers"] != nil {
		versions := []any{}
		for _, l := range out.Layers {
			versions = append(versions, l.Arn)
		}
		r.actual["Layers"] = versions
	}
	if want, ok := r.Properties["LoggingConfig"].(map[string]any); ok { // what the template leaves open has defaults
		has, _ := r.actual["LoggingConfig"].(map[string]any)
		for name := range has {
			if _, ok := want[name]; !ok {
				delete(has, name)
			}
		}
	}
	if r.Properties["ReservedConcurrentExecutions"] != nil {
		kept, err := ask[lambda.Concurrency](ctx, r, "lambda", "GetFunctionConcurrency", r.Region, &lambda.NameInput{FunctionName: r.Physical})
		if err != nil {
			return err
		}
		delete(r.actual, "ReservedConcurrentExecutions")
		if kept.ReservedConcurrentExecutions != nil {
			r.actual["ReservedConcurrentExecutions"] = json.Number(strconv.Itoa(*kept.ReservedConcurrentExecutions))
		}
	}
	return r.functionTags(ctx, out.FunctionArn)
}

// functionTags reads the tags of a function or mapping, if the template has any.
func (r *reading) functionTags(ctx context.Context, resource string) error {
	if r.Properties["Tags"] == nil {
		return nil
	}
	tags, err := ask[lambda.ListTagsOutput](ctx, r, "lambda", "ListTags", r.Region, &lambda.ListTagsInput{Resource: resource})
	if err == nil {
		r.tagged(tags.Tags)
	}
	return err
}

func permission(ctx context.Context, r *reading) error {
	out, err := ask[lambda.GetPolicyOutput](ctx, r, "lambda", "GetPolicy", r.Region, &lambda.FunctionInput{FunctionName: r.text("FunctionName")})
	if err != nil {
		return err
	}
	return stated(out.Policy, r.Physical)
}

func mapping(ctx context.Context, r *reading) error {
	out, err := ask[mappings.EventSourceMappingConfiguration](ctx, r, "lambda", "GetEventSourceMapping", r.Region, &mappings.MappingInput{UUID: r.Physical})
	if err != nil {
		return err
	}
	if out.State == "Deleting" {
		return errGone
	}
	r.members(out, "BatchSize", "FilterCriteria", "FunctionResponseTypes", "MaximumBatchingWindowInSeconds", "ScalingConfig")
	if r.Properties["Enabled"] != nil {
		r.actual["Enabled"] = out.State == "Enabled" || out.State == "Enabling" || out.State == "Creating"
	}
	return r.functionTags(ctx, out.EventSourceMappingArn)
}

func eventInvoke(ctx context.Context, r *reading) error {
	in := &lambda.FunctionInput{FunctionName: r.text("FunctionName")}
	if qualifier := r.text("Qualifier"); qualifier != "" {
		in.Qualifier = &qualifier
	}
	out, err := ask[lambda.FunctionEventInvokeConfig](ctx, r, "lambda", "GetFunctionEventInvokeConfig", r.Region, in)
	if err != nil {
		return err
	}
	r.members(out, "DestinationConfig", "MaximumEventAgeInSeconds", "MaximumRetryAttempts")
	return nil
}

func functionURL(ctx context.Context, r *reading) error {
	in := &lambda.FunctionInput{FunctionName: r.text("TargetFunctionArn")}
	if qualifier := r.text("Qualifier"); qualifier != "" {
		in.Qualifier = &qualifier
	}
	out, err := ask[lambda.FunctionUrlConfig](ctx, r, "lambda", "GetFunctionUrlConfig", r.Region, in)
	if err != nil {
		return err
	}
	r.members(out, "AuthType", "Cors")
	if r.Properties["InvokeMode"] != nil {
		r.members(out, "InvokeMode")
	}
	return nil
}

func layer(ctx context.Context, r *reading) error {
	in, err := r.layerVersion(r.Physical)
	if err != nil {
		return err
	}
	out, err := ask[layers.LayerVersion](ctx, r, "lambda", "GetLayerVersion", r.Region, in)
	if err != nil {
		return err
	}
	r.members(out, "CompatibleArchitectures", "CompatibleRuntimes", "Description", "LicenseInfo")
	return nil
}

func layerPermission(ctx context.Context, r *reading) error {
	version, sid, _ := strings.Cut(r.Physical, "#")
	in, err := r.layerVersion(version)
	if err != nil {
		return err
	}
	out, err := ask[layers.GetLayerVersionPolicyOutput](ctx, r, "lambda", "GetLayerVersionPolicy", r.Region, in)
	if err != nil {
		return err
	}
	return stated(out.Policy, sid)
}

// layerVersion asks for the version of a layer that an ARN names: by the layer's name alone where it is of the
// stack's own account, as the operations do not take the ARN of a long one.
func (r *reading) layerVersion(version string) (*layers.LayerVersionInput, error) {
	a, err := arn.Parse(version)
	if err != nil {
		return nil, err
	}
	name, number, _ := a.SplitLayer()
	in := &layers.LayerVersionInput{LayerName: name.String(), VersionNumber: int(number)} //nolint:gosec // it counts up from 1
	if name.Account == r.Account && name.Region == r.Region {
		in.LayerName = name.LayerName()
	}
	return in, nil
}

// stated reports errGone unless a policy has a statement, which nobody can change.
func stated(document, sid string) error {
	var policy struct{ Statement []struct{ Sid string } }
	if err := json.Unmarshal([]byte(document), &policy); err != nil {
		return err
	}
	for _, s := range policy.Statement {
		if s.Sid == sid {
			return nil
		}
	}
	return errGone
}
