package functions

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"strconv"
	"strings"
	"time"

	"godwit.dev/godwit/internal/api/lambda"
	"godwit.dev/godwit/internal/api/lambda/mappings"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/server/deploying/step"
	"godwit.dev/godwit/internal/stack/resource"
)

// functionDefaults is what a function's settings are when a template says nothing of them any more.
var functionDefaults = map[string]any{
	"DeadLetterConfig": map[string]any{"TargetArn": ""}, "Description": "", "Environment": map[string]any{"Variables": map[string]any{}},
	"EphemeralStorage": map[string]any{"Size": 512}, "KmsKeyArn": "", "Layers": []any{}, "MemorySize": 128, "SnapStart": map[string]any{"ApplyOn": "None"},
	"Timeout": 3, "TracingConfig": map[string]any{"Mode": "PassThrough"}, "LoggingConfig": map[string]any{"LogFormat": "Text"},
}

// settingsOf are a function's properties as its operations take them: but for its name, code,
// tags and concurrency.
func settingsOf(properties map[string]any) map[string]any {
	settings := maps.Clone(properties)
	for _, other := range []string{"FunctionName", "Code", "Tags", "ReservedConcurrentExecutions"} {
		delete(settings, other)
	}
	return settings
}

// codeOf is the code that properties have. The text of a program is packed as the module
// index, always into the same bytes.
func codeOf(properties map[string]any) (lambda.FunctionCode, error) {
	code, _ := properties["Code"].(map[string]any)
	in := lambda.FunctionCode{
		S3Bucket: step.Optional(code["S3Bucket"]), S3Key: step.Optional(code["S3Key"]), S3ObjectVersion: step.Optional(code["S3ObjectVersion"]),
		ImageUri: step.Optional(code["ImageUri"]), SourceKMSKeyArn: step.Optional(code["SourceKMSKeyArn"]),
	}
	program, ok := code["ZipFile"]
	if !ok {
		return in, nil
	}
	var name string
	switch runtime := step.Text(properties["Runtime"]); {
	case strings.HasPrefix(runtime, "nodejs"):
		name = "index.js"
	case strings.HasPrefix(runtime, "python"):
		name = "index.py"
	default:
		return in, &step.Error{Text: "ZipFile can only be used when Runtime is set to either of nodejs or python.", Code: "InvalidRequest"}
	}
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	header := &zip.FileHeader{Name: name, Method: zip.Deflate}
	header.SetMode(0o644)
	file, err := w.CreateHeader(header)
	if err == nil {
		_, err = file.Write([]byte(step.Text(program)))
	}
	if err == nil {
		err = w.Close()
	}
	in.ZipFile = packed.Bytes()
	return in, err
}

// hash is that of packed code, as functions show it.
func hash(code *lambda.FunctionCode) string {
	sum := sha256.Sum256(code.ZipFile)
	return base64.StdEncoding.EncodeToString(sum[:])
}

func functionNow(ctx context.Context, w *step.Work, name string) (*lambda.FunctionConfiguration, error) {
	return step.Ask[lambda.FunctionConfiguration](ctx, w, "lambda", "GetFunctionConfiguration", w.Region, &lambda.FunctionInput{FunctionName: name})
}

// errBusy puts a step off until a function is ready.
var errBusy = fault.New(fault.Unavailable, "The function is not ready yet.")

func createFunction(ctx context.Context, w *step.Work) (step.Made, error) {
	name, properties := w.Target.Physical, w.Target.Properties
	code, err := codeOf(properties)
	if err != nil {
		return step.Made{}, err
	}
	in := &lambda.CreateFunctionInput{}
	if err := step.Fill(settingsOf(properties), in); err != nil {
		return step.Made{}, err
	}
	in.FunctionName, in.Code, in.Tags = name, &code, step.Tags(properties["Tags"])
	out, err := step.Ask[lambda.FunctionConfiguration](ctx, w, "lambda", "CreateFunction", w.Region, in)
	if step.Exists(err) {
		found, other := functionNow(ctx, w, name)
		if other != nil {
			return step.Made{}, other
		}
		at, _ := time.Parse(lambdaTime, found.LastModified)
		if !w.Again || at.UnixMilli() < w.Began || code.ZipFile != nil && found.CodeSha256 != hash(&code) || found.Role != in.Role {
			return step.Made{}, w.Taken(name)
		}
		out, err = found, nil
	}
	if err != nil {
		return step.Made{}, err
	}
	is := step.Made{Physical: name, Attributes: map[string]any{"Arn": out.FunctionArn}}
	if out.State == "Pending" {
		return is, errBusy
	}
	return is, reserve(ctx, w, nil, properties["ReservedConcurrentExecutions"])
}

// reserve changes how many executions are kept for a function.
func reserve(ctx context.Context, w *step.Work, was, now any) error {
	name := w.Target.Physical
	if resource.Same(was, now) {
		return nil
	}
	if now == nil {
		_, err := step.Ask[lambda.Empty](ctx, w, "lambda", "DeleteFunctionConcurrency", w.Region, &lambda.NameInput{FunctionName: name})
		return err
	}
	n, err := strconv.Atoi(step.Text(now))
	if err != nil {
		return &step.Error{Text: "ReservedConcurrentExecutions is no number", Code: "InvalidRequest"}
	}
	_, err = step.Ask[lambda.Concurrency](ctx, w, "lambda", "PutFunctionConcurrency", w.Region, &lambda.PutFunctionConcurrencyInput{FunctionName: name, ReservedConcurrentExecutions: &n})
	return err
}

func updateFunction(ctx context.Context, w *step.Work) (step.Made, error) {
	name, was, now := w.Target.Physical, w.Now, w.Target.Properties
	is := step.Made{Physical: name, Attributes: w.Target.Attributes}
	at, err := functionNow(ctx, w, name)
	if err != nil {
		return is, err
	}
	if at.LastUpdateStatus == "InProgress" {
		return is, errBusy
	}
	code, err := codeOf(now)
	if err != nil {
		return is, err
	}
	moved := !resource.Same(was["Code"], now["Code"]) || !resource.Same(was["Architectures"], now["Architectures"])
	if moved && w.Part == 0 && (code.ZipFile == nil || hash(&code) != at.CodeSha256) {
		in := &lambda.UpdateFunctionCodeInput{
			FunctionName: name, ZipFile: code.ZipFile, S3Bucket: code.S3Bucket, S3Key: code.S3Key, S3ObjectVersion: code.S3ObjectVersion,
			ImageUri: code.ImageUri, SourceKMSKeyArn: code.SourceKMSKeyArn, Architectures: step.List(now["Architectures"]),
		}
		out, err := step.Ask[lambda.FunctionConfiguration](ctx, w, "lambda", "UpdateFunctionCode", w.Region, in)
		if err != nil {
			return is, err
		}
		w.Part = 1 // a place in S3, or a URL, does not say which code is there now
		if out.LastUpdateStatus == "InProgress" {
			return is, errBusy
		}
	}
	before, after := settingsOf(was), settingsOf(now)
	change := map[string]any{}
	for property := range before {
		if otherwise, ok := functionDefaults[property]; ok && after[property] == nil {
			change[property] = otherwise
		}
	}
	for property, value := range after {
		if !resource.Same(before[property], value) && property != "Architectures" {
			change[property] = value
		}
	}
	if len(change) > 0 {
		in := &lambda.UpdateFunctionConfigurationInput{}
		if err := step.Fill(change, in); err != nil {
			return is, err
		}
		in.FunctionName = name
		if _, err := step.Ask[lambda.FunctionConfiguration](ctx, w, "lambda", "UpdateFunctionConfiguration", w.Region, in); err != nil {
			return is, err
		}
	}
	if err := retag(ctx, w, at.FunctionArn, was["Tags"], now["Tags"]); err != nil {
		return is, err
	}
	return is, reserve(ctx, w, was["ReservedConcurrentExecutions"], now["ReservedConcurrentExecutions"])
}

// retag changes the tags of a function or mapping.
func retag(ctx context.Context, w *step.Work, resource string, was, now any) error {
	set, gone := step.Retagged(was, now)
	if len(gone) > 0 {
		if _, err := step.Ask[lambda.Empty](ctx, w, "lambda", "UntagResource", w.Region, &lambda.UntagResourceInput{Resource: resource, TagKeys: gone}); err != nil {
			return err
		}
	}
	if len(set) == 0 {
		return nil
	}
	_, err := step.Ask[lambda.Empty](ctx, w, "lambda", "TagResource", w.Region, &lambda.TagResourceInput{Resource: resource, Tags: set})
	return err
}

func deleteFunction(ctx context.Context, w *step.Work) error {
	_, err := step.Ask[lambda.DeleteFunctionOutput](ctx, w, "lambda", "DeleteFunction", w.Region, &lambda.FunctionInput{FunctionName: w.Target.Physical})
	return step.UnlessGone(err)
}

func createPermission(ctx context.Context, w *step.Work) (step.Made, error) {
	id := w.Target.Physical
	in := &lambda.AddPermissionInput{}
	if err := step.Fill(w.Target.Properties, in); err != nil {
		return step.Made{}, err
	}
	in.StatementId = id
	_, err := step.Ask[lambda.AddPermissionOutput](ctx, w, "lambda", "AddPermission", w.Region, in)
	if err != nil && (!w.Again || !step.Exists(err)) { // nobody else has that name
		return step.Made{}, err
	}
	return step.Made{Physical: id, Attributes: map[string]any{"Id": id}}, nil
}

func deletePermission(ctx context.Context, w *step.Work) error {
	_, err := step.Ask[lambda.Empty](ctx, w, "lambda", "RemovePermission", w.Region, &lambda.RemovePermissionInput{
		FunctionName: step.Text(w.Target.Properties["FunctionName"]), StatementId: w.Target.Physical,
	})
	return step.UnlessGone(err)
}

func createMapping(ctx context.Context, w *step.Work) (step.Made, error) {
	in, settings := &mappings.CreateEventSourceMappingInput{}, maps.Clone(w.Target.Properties)
	delete(settings, "Tags") // which are a map in the operation
	if err := step.Fill(settings, in); err != nil {
		return step.Made{}, err
	}
	if tags := step.Tags(w.Target.Properties["Tags"]); len(tags) > 0 {
		in.Tags = tags
	}
	out, err := step.Ask[mappings.EventSourceMappingConfiguration](ctx, w, "lambda", "CreateEventSourceMapping", w.Region, in)
	if w.Again && step.Exists(err) { // a queue and a function have one mapping at most
		found, other := step.Ask[mappings.ListEventSourceMappingsOutput](ctx, w, "lambda", "ListEventSourceMappings", w.Region, &mappings.ListEventSourceMappingsInput{
			EventSourceArn: in.EventSourceArn, FunctionName: &in.FunctionName,
		})
		if other != nil {
			return step.Made{}, other
		}
		if len(found.EventSourceMappings) == 1 && w.OwnSince(found.EventSourceMappings[0].LastModified) {
			out, err = &found.EventSourceMappings[0], nil
		}
	}
	if err != nil {
		return step.Made{}, err
	}
	return step.Made{Physical: out.UUID, Attributes: map[string]any{"Id": out.UUID, "EventSourceMappingArn": out.EventSourceMappingArn}}, nil
}

// mappingDefaults is what a mapping's settings are when a template says nothing of them any more.
var mappingDefaults = map[string]any{
	"BatchSize": 10, "Enabled": true, "FilterCriteria": map[string]any{}, "FunctionResponseTypes": []any{}, "MaximumBatchingWindowInSeconds": 0,
	"ScalingConfig": map[string]any{},
}

func updateMapping(ctx context.Context, w *step.Work) (step.Made, error) {
	is := step.Made{Physical: w.Target.Physical, Attributes: w.Target.Attributes}
	now := maps.Clone(w.Target.Properties)
	for property, otherwise := range mappingDefaults {
		if _, ok := w.Now[property]; ok && now[property] == nil {
			now[property] = otherwise
		}
	}
	delete(now, "Tags")
	in := &mappings.UpdateEventSourceMappingInput{}
	if err := step.Fill(now, in); err != nil {
		return is, err
	}
	in.UUID = w.Target.Physical
	out, err := step.Ask[mappings.EventSourceMappingConfiguration](ctx, w, "lambda", "UpdateEventSourceMapping", w.Region, in)
	if err != nil {
		return is, err
	}
	return is, retag(ctx, w, out.EventSourceMappingArn, w.Now["Tags"], w.Target.Properties["Tags"])
}

func deleteMapping(ctx context.Context, w *step.Work) error {
	_, err := step.Ask[mappings.EventSourceMappingConfiguration](ctx, w, "lambda", "DeleteEventSourceMapping", w.Region, &mappings.MappingInput{UUID: w.Target.Physical})
	return step.UnlessGone(err)
}
