package drifting

import (
	"context"
	"encoding/json"
	"strconv"

	"godwit.dev/godwit/internal/api/lambda"
	"godwit.dev/godwit/internal/api/lambda/mappings"
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
	var policy struct{ Statement []struct{ Sid string } }
	if err := json.Unmarshal([]byte(out.Policy), &policy); err != nil {
		return err
	}
	for _, s := range policy.Statement {
		if s.Sid == r.Physical { // which nobody can change
			return nil
		}
	}
	return errGone
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
