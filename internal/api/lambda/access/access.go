// Package access has the permissions that Lambda's operations require.
package access

import (
	"maps"
	"slices"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/lambda"
	"godwit.dev/godwit/internal/api/lambda/layers"
	"godwit.dev/godwit/internal/api/lambda/mappings"
	"godwit.dev/godwit/internal/api/lambda/request"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/function/mapping"
)

// Guarded adds to Lambda's operations the permissions that they require.
func Guarded(operations []api.Operation) []api.Operation { return api.Guarded(access, operations) }

// access has the permissions that each operation requires. Source: actions, resources and
// condition keys for Lambda, in the service authorization reference.
var access = map[string]api.Access{
	"CreateFunction":           api.Needs(creating),
	"GetFunction":              onQualified("GetFunction", func(in *lambda.FunctionInput) (string, *string) { return in.FunctionName, in.Qualifier }),
	"GetFunctionConfiguration": onQualified("GetFunctionConfiguration", func(in *lambda.FunctionInput) (string, *string) { return in.FunctionName, in.Qualifier }),
	"ListFunctions":            api.Anywhere("lambda:ListFunctions"),
	"UpdateFunctionCode": api.Needs(func(call *api.Call, in *lambda.UpdateFunctionCodeInput) ([]authorize.Need, error) {
		needs, err := onNamed(call, "UpdateFunctionCode", in.FunctionName, nil)
		return readsCode(call, needs, in.S3Bucket, in.S3Key), err
	}),
	"UpdateFunctionConfiguration":  api.Needs(reconfiguring),
	"DeleteFunction":               onQualified("DeleteFunction", func(in *lambda.FunctionInput) (string, *string) { return in.FunctionName, in.Qualifier }),
	"Invoke":                       onQualified("Invoke", func(in *lambda.InvokeInput) (string, *string) { return in.FunctionName, in.Qualifier }),
	"PublishVersion":               onFunction("PublishVersion", func(in *lambda.PublishVersionInput) string { return in.FunctionName }),
	"ListVersionsByFunction":       onFunction("ListVersionsByFunction", func(in *lambda.ListVersionsByFunctionInput) string { return in.FunctionName }),
	"CreateAlias":                  onFunction("CreateAlias", func(in *lambda.CreateAliasInput) string { return in.FunctionName }),
	"GetAlias":                     onFunction("GetAlias", func(in *lambda.AliasInput) string { return in.FunctionName }),
	"ListAliases":                  onFunction("ListAliases", func(in *lambda.ListAliasesInput) string { return in.FunctionName }),
	"UpdateAlias":                  onFunction("UpdateAlias", func(in *lambda.UpdateAliasInput) string { return in.FunctionName }),
	"DeleteAlias":                  onFunction("DeleteAlias", func(in *lambda.AliasInput) string { return in.FunctionName }),
	"AddPermission":                api.Needs(permitting),
	"RemovePermission":             onQualified("RemovePermission", func(in *lambda.RemovePermissionInput) (string, *string) { return in.FunctionName, in.Qualifier }),
	"GetPolicy":                    onQualified("GetPolicy", func(in *lambda.FunctionInput) (string, *string) { return in.FunctionName, in.Qualifier }),
	"PutFunctionConcurrency":       onFunction("PutFunctionConcurrency", func(in *lambda.PutFunctionConcurrencyInput) string { return in.FunctionName }),
	"GetFunctionConcurrency":       onFunction("GetFunctionConcurrency", func(in *lambda.NameInput) string { return in.FunctionName }),
	"DeleteFunctionConcurrency":    onFunction("DeleteFunctionConcurrency", func(in *lambda.NameInput) string { return in.FunctionName }),
	"GetFunctionCodeSigningConfig": onFunction("GetFunctionCodeSigningConfig", func(in *lambda.NameInput) string { return in.FunctionName }),
	"GetAccountSettings":           api.Anywhere("lambda:GetAccountSettings"),

	"PutFunctionEventInvokeConfig":    onQualified("PutFunctionEventInvokeConfig", eventInvoke),
	"UpdateFunctionEventInvokeConfig": onQualified("UpdateFunctionEventInvokeConfig", eventInvoke),
	"GetFunctionEventInvokeConfig":    onQualified("GetFunctionEventInvokeConfig", func(in *lambda.FunctionInput) (string, *string) { return in.FunctionName, in.Qualifier }),
	"DeleteFunctionEventInvokeConfig": onQualified("DeleteFunctionEventInvokeConfig", func(in *lambda.FunctionInput) (string, *string) { return in.FunctionName, in.Qualifier }),
	"ListFunctionEventInvokeConfigs":  onFunction("ListFunctionEventInvokeConfigs", func(in *lambda.ListFunctionEventInvokeConfigsInput) string { return in.FunctionName }),

	"CreateFunctionUrlConfig": api.Needs(func(call *api.Call, in *lambda.CreateFunctionUrlConfigInput) ([]authorize.Need, error) {
		return onURL(call, "CreateFunctionUrlConfig", in.FunctionName, in.Qualifier, &in.AuthType)
	}),
	"UpdateFunctionUrlConfig": api.Needs(func(call *api.Call, in *lambda.UpdateFunctionUrlConfigInput) ([]authorize.Need, error) {
		return onURL(call, "UpdateFunctionUrlConfig", in.FunctionName, in.Qualifier, in.AuthType)
	}),
	"GetFunctionUrlConfig":    onQualified("GetFunctionUrlConfig", func(in *lambda.FunctionInput) (string, *string) { return in.FunctionName, in.Qualifier }),
	"DeleteFunctionUrlConfig": onQualified("DeleteFunctionUrlConfig", func(in *lambda.FunctionInput) (string, *string) { return in.FunctionName, in.Qualifier }),
	"ListFunctionUrlConfigs":  onFunction("ListFunctionUrlConfigs", func(in *lambda.ListFunctionUrlConfigsInput) string { return in.FunctionName }),

	"PublishLayerVersion": api.Needs(func(call *api.Call, in *layers.PublishLayerVersionInput) ([]authorize.Need, error) {
		name, err := request.Layer(call, in.LayerName)
		needs := api.One("lambda:PublishLayerVersion", name)
		if in.Content != nil {
			needs = readsCode(call, needs, in.Content.S3Bucket, in.Content.S3Key)
		}
		return needs, err
	}),
	"GetLayerVersion": onLayer("GetLayerVersion", func(in *layers.LayerVersionInput) (string, int) { return in.LayerName, in.VersionNumber }),
	"GetLayerVersionByArn": api.Needs(func(call *api.Call, in *layers.GetLayerVersionByArnInput) ([]authorize.Need, error) {
		version, err := request.LayerVersionARN(call, in.Arn)
		return readsLayers(nil, version), err
	}),
	"ListLayers": api.Anywhere("lambda:ListLayers"),
	"ListLayerVersions": api.Needs(func(call *api.Call, in *layers.ListLayerVersionsInput) ([]authorize.Need, error) {
		name, err := request.Layer(call, in.LayerName)
		if err == nil && name.Account != call.Account { // which no policy can allow
			return api.One("lambda:ListLayerVersions", name), nil
		}
		return api.Any("lambda:ListLayerVersions"), err
	}),
	"DeleteLayerVersion": onLayer("DeleteLayerVersion", func(in *layers.LayerVersionInput) (string, int) { return in.LayerName, in.VersionNumber }),
	"AddLayerVersionPermission": onLayer("AddLayerVersionPermission", func(in *layers.AddLayerVersionPermissionInput) (string, int) {
		return in.LayerName, in.VersionNumber
	}),
	"RemoveLayerVersionPermission": onLayer("RemoveLayerVersionPermission", func(in *layers.RemoveLayerVersionPermissionInput) (string, int) {
		return in.LayerName, in.VersionNumber
	}),
	"GetLayerVersionPolicy": onLayer("GetLayerVersionPolicy", func(in *layers.LayerVersionInput) (string, int) { return in.LayerName, in.VersionNumber }),

	"CreateEventSourceMapping": api.Needs(mappingTo),
	"GetEventSourceMapping":    onMapping("GetEventSourceMapping", func(in *mappings.MappingInput) string { return in.UUID }),
	"ListEventSourceMappings":  api.Anywhere("lambda:ListEventSourceMappings"),
	"UpdateEventSourceMapping": api.Needs(remapping),
	"DeleteEventSourceMapping": onMapping("DeleteEventSourceMapping", func(in *mappings.MappingInput) string { return in.UUID }),

	"TagResource":   api.Needs(tagging),
	"UntagResource": api.Needs(untagging),
	"ListTags": api.Needs(func(_ *api.Call, in *lambda.ListTagsInput) ([]authorize.Need, error) {
		return onTagged("ListTags", in.Resource), nil
	}),
}

// onFunction requires an action on a function.
func onFunction[In any](operation string, name func(*In) string) api.Access {
	return onQualified(operation, func(in *In) (string, *string) { return name(in), nil })
}

// onQualified requires an action on a function, a version or an alias.
func onQualified[In any](operation string, name func(*In) (string, *string)) api.Access {
	return api.Needs(func(call *api.Call, in *In) ([]authorize.Need, error) {
		text, qualifier := name(in)
		return onNamed(call, operation, text, qualifier)
	})
}

func onNamed(call *api.Call, operation, text string, qualifier *string) ([]authorize.Need, error) {
	fn, err := request.Resource(call, text, qualifier)
	if err != nil {
		return nil, err
	}
	needs := api.One(request.ActionOf(operation), fn)
	needs[0].Shared = request.Shared(operation)
	return needs, nil
}

// onLayer requires an action on a version of a layer.
func onLayer[In any](operation string, name func(*In) (string, int)) api.Access {
	return api.Needs(func(call *api.Call, in *In) ([]authorize.Need, error) {
		text, number := name(in)
		version, err := request.LayerVersion(call, text, number)
		needs := api.One(request.ActionOf(operation), version)
		needs[0].Shared = needs[0].Action == request.GetLayerVersion
		return needs, err
	})
}

// readsLayers requires that versions of layers may be read, which their policies can allow.
func readsLayers(needs []authorize.Need, versions ...arn.ARN) []authorize.Need {
	for _, version := range versions {
		need := api.One(request.GetLayerVersion, version)[0]
		need.Shared = true
		needs = append(needs, need)
	}
	return needs
}

// withLayers requires what a function's layers require: the first need is that of the operation, whose
// policies can ask for them.
func withLayers(call *api.Call, needs []authorize.Need, names []string) ([]authorize.Need, error) {
	if len(names) == 0 {
		return needs, nil
	}
	var c request.Constraints
	if request.CheckLayers(&c, names); c.Err() != nil {
		return nil, c.Err()
	}
	versions, err := request.Layers(call, names)
	if err != nil {
		return nil, err
	}
	key := authorize.Key{Name: "lambda:layer"}
	for _, version := range versions {
		key.Values = append(key.Values, version.String())
	}
	needs[0].Keys = append(needs[0].Keys, key)
	return readsLayers(needs, versions...), nil
}

// onURL requires an action on a function whose URL gets an AuthType; nil: it keeps its own.
func onURL(call *api.Call, operation, text string, qualifier, auth *string) ([]authorize.Need, error) {
	needs, err := onNamed(call, operation, text, qualifier)
	if err == nil && auth != nil {
		needs[0].Keys = []authorize.Key{{Name: "lambda:functionurlauthtype", Values: []string{*auth}}}
	}
	return needs, err
}

// passing requires iam:PassRole for a role.
func passing(role string) authorize.Need {
	return api.Passing(role, "lambda.amazonaws.com")
}

func creating(call *api.Call, in *lambda.CreateFunctionInput) ([]authorize.Need, error) {
	fn, err := request.NewResource(call, in.FunctionName)
	if err != nil {
		return nil, err
	}
	needs := api.One(request.ActionOf("CreateFunction"), fn)
	needs[0].Shared = request.Shared("CreateFunction")
	needs[0].Tags, needs[0].TagKeys = in.Tags, slices.Sorted(maps.Keys(in.Tags))
	if len(in.Tags) > 0 {
		tag := needs[0]
		tag.Action = "lambda:TagResource"
		needs = append(needs, tag)
	}
	needs = append(needs, passing(in.Role))
	if in.Code != nil {
		needs = readsCode(call, needs, in.Code.S3Bucket, in.Code.S3Key)
	}
	return withLayers(call, needs, in.Layers)
}

// readsCode requires s3:GetObject for the caller: the server reads the code with its own key.
func readsCode(call *api.Call, needs []authorize.Need, bucket, key *string) []authorize.Need {
	if bucket == nil || key == nil {
		return needs
	}
	return append(needs, api.ReadsObject(call, *bucket, *key))
}

func reconfiguring(call *api.Call, in *lambda.UpdateFunctionConfigurationInput) ([]authorize.Need, error) {
	needs, err := onNamed(call, "UpdateFunctionConfiguration", in.FunctionName, nil)
	if err == nil && in.Role != nil {
		needs = append(needs, passing(*in.Role))
	}
	if err != nil {
		return nil, err
	}
	return withLayers(call, needs, in.Layers)
}

func permitting(call *api.Call, in *lambda.AddPermissionInput) ([]authorize.Need, error) {
	needs, err := onNamed(call, "AddPermission", in.FunctionName, in.Qualifier)
	if err == nil {
		needs[0].Keys = []authorize.Key{{Name: "lambda:principal", Values: []string{in.Principal}}}
	}
	return needs, err
}

func eventInvoke(in *lambda.EventInvokeConfigInput) (string, *string) {
	return in.FunctionName, in.Qualifier
}

// onMapping requires an action on an event-source mapping.
func onMapping[In any](action string, id func(*In) string) api.Access {
	return api.Needs(func(call *api.Call, in *In) ([]authorize.Need, error) {
		return api.One("lambda:"+action, mapping.ARN(call.Region, call.Account, id(in))), nil
	})
}

func mappingTo(call *api.Call, in *mappings.CreateEventSourceMappingInput) ([]authorize.Need, error) {
	needs := api.Any("lambda:CreateEventSourceMapping")
	key, err := functionKey(call, in.FunctionName)
	if err != nil {
		return nil, err
	}
	needs[0].Keys, needs[0].Tags, needs[0].TagKeys = key, in.Tags, slices.Sorted(maps.Keys(in.Tags))
	return needs, nil
}

func remapping(call *api.Call, in *mappings.UpdateEventSourceMappingInput) ([]authorize.Need, error) {
	needs := api.One("lambda:UpdateEventSourceMapping", mapping.ARN(call.Region, call.Account, in.UUID))
	if in.FunctionName == nil {
		return needs, nil
	}
	key, err := functionKey(call, *in.FunctionName)
	needs[0].Keys = key
	return needs, err
}

// functionKey is the condition key with the function of a mapping.
func functionKey(call *api.Call, text string) ([]authorize.Key, error) {
	fn, err := request.Resource(call, text, nil)
	if err != nil {
		return nil, err
	}
	return []authorize.Key{{Name: "lambda:functionarn", Values: []string{fn.String()}}}, nil
}

// onTagged requires an action on a tagged resource. The operation itself refuses an invalid
// ARN.
func onTagged(operation, resource string) []authorize.Need {
	a, _ := arn.Parse(resource)
	return []authorize.Need{{Action: "lambda:" + operation, Resource: resource, Account: a.Account, Shared: !mapping.Is(a) && request.Shared(operation)}}
}

func tagging(_ *api.Call, in *lambda.TagResourceInput) ([]authorize.Need, error) {
	needs := onTagged("TagResource", in.Resource)
	needs[0].Tags, needs[0].TagKeys = in.Tags, slices.Sorted(maps.Keys(in.Tags))
	return needs, nil
}

func untagging(_ *api.Call, in *lambda.UntagResourceInput) ([]authorize.Need, error) {
	needs := onTagged("UntagResource", in.Resource)
	needs[0].TagKeys = in.TagKeys
	return needs, nil
}
