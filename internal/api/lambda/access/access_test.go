package access_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/lambda"
	"godwit.dev/godwit/internal/api/lambda/access"
	"godwit.dev/godwit/internal/api/lambda/layers"
	"godwit.dev/godwit/internal/api/lambda/mappings"
	"godwit.dev/godwit/internal/fault"
)

const account = "111122223333"

func ignore[In any](context.Context, *api.Call, *In) (*struct{}, error) { return nil, nil }

// operations are all of Lambda's, without their handlers.
func operations() []api.Operation {
	type name = lambda.NameInput
	type function = lambda.FunctionInput
	return access.Guarded([]api.Operation{
		api.Op("CreateFunction", ignore[lambda.CreateFunctionInput]), api.Op("GetFunction", ignore[function]),
		api.Op("GetFunctionConfiguration", ignore[function]), api.Op("ListFunctions", ignore[name]),
		api.Op("UpdateFunctionCode", ignore[lambda.UpdateFunctionCodeInput]),
		api.Op("UpdateFunctionConfiguration", ignore[lambda.UpdateFunctionConfigurationInput]),
		api.Op("DeleteFunction", ignore[function]), api.Op("Invoke", ignore[lambda.InvokeInput]),
		api.Op("PublishVersion", ignore[lambda.PublishVersionInput]), api.Op("ListVersionsByFunction", ignore[lambda.ListVersionsByFunctionInput]),
		api.Op("CreateAlias", ignore[lambda.CreateAliasInput]), api.Op("GetAlias", ignore[lambda.AliasInput]),
		api.Op("ListAliases", ignore[lambda.ListAliasesInput]), api.Op("UpdateAlias", ignore[lambda.UpdateAliasInput]),
		api.Op("DeleteAlias", ignore[lambda.AliasInput]), api.Op("AddPermission", ignore[lambda.AddPermissionInput]),
		api.Op("RemovePermission", ignore[lambda.RemovePermissionInput]), api.Op("GetPolicy", ignore[function]),
		api.Op("PutFunctionConcurrency", ignore[lambda.PutFunctionConcurrencyInput]), api.Op("GetFunctionConcurrency", ignore[name]),
		api.Op("DeleteFunctionConcurrency", ignore[name]), api.Op("GetFunctionCodeSigningConfig", ignore[name]),
		api.Op("GetAccountSettings", ignore[name]),
		api.Op("PutFunctionEventInvokeConfig", ignore[lambda.EventInvokeConfigInput]),
		api.Op("UpdateFunctionEventInvokeConfig", ignore[lambda.EventInvokeConfigInput]),
		api.Op("GetFunctionEventInvokeConfig", ignore[function]), api.Op("DeleteFunctionEventInvokeConfig", ignore[function]),
		api.Op("ListFunctionEventInvokeConfigs", ignore[lambda.ListFunctionEventInvokeConfigsInput]),
		api.Op("CreateFunctionUrlConfig", ignore[lambda.CreateFunctionUrlConfigInput]), api.Op("UpdateFunctionUrlConfig", ignore[lambda.UpdateFunctionUrlConfigInput]),
		api.Op("GetFunctionUrlConfig", ignore[function]), api.Op("DeleteFunctionUrlConfig", ignore[function]),
		api.Op("ListFunctionUrlConfigs", ignore[lambda.ListFunctionUrlConfigsInput]),
		api.Op("CreateEventSourceMapping", ignore[mappings.CreateEventSourceMappingInput]),
		api.Op("GetEventSourceMapping", ignore[mappings.MappingInput]),
		api.Op("ListEventSourceMappings", ignore[mappings.ListEventSourceMappingsInput]),
		api.Op("UpdateEventSourceMapping", ignore[mappings.UpdateEventSourceMappingInput]),
		api.Op("DeleteEventSourceMapping", ignore[mappings.MappingInput]),
		api.Op("PublishLayerVersion", ignore[layers.PublishLayerVersionInput]), api.Op("GetLayerVersion", ignore[layers.LayerVersionInput]),
		api.Op("GetLayerVersionByArn", ignore[layers.GetLayerVersionByArnInput]), api.Op("ListLayers", ignore[layers.ListLayersInput]),
		api.Op("ListLayerVersions", ignore[layers.ListLayerVersionsInput]), api.Op("DeleteLayerVersion", ignore[layers.LayerVersionInput]),
		api.Op("AddLayerVersionPermission", ignore[layers.AddLayerVersionPermissionInput]),
		api.Op("RemoveLayerVersionPermission", ignore[layers.RemoveLayerVersionPermissionInput]), api.Op("GetLayerVersionPolicy", ignore[layers.LayerVersionInput]),
		api.Op("TagResource", ignore[lambda.TagResourceInput]), api.Op("UntagResource", ignore[lambda.UntagResourceInput]),
		api.Op("ListTags", ignore[lambda.ListTagsInput]),
	})
}

// needed writes what an operation needs, each as "action on resource", with the condition
// keys and tags behind it.
func needed(t *testing.T, operation string, in any) (string, error) {
	t.Helper()
	for _, op := range operations() {
		if op.Name != operation {
			continue
		}
		needs, err := op.Access(t.Context(), &api.Call{Region: "us-east-1", Account: account, Operation: operation}, in)
		var all []string
		for _, n := range needs {
			text := n.Action + " on " + strings.TrimPrefix(n.Resource, "arn:aws:lambda:us-east-1:"+account+":")
			for _, k := range n.Keys {
				text += fmt.Sprint(" ", k.Name, "=", strings.Join(k.Values, ","))
			}
			if len(n.TagKeys) > 0 {
				text += fmt.Sprint(" tags ", n.TagKeys)
			}
			all = append(all, text)
		}
		return strings.Join(all, "; "), err
	}
	t.Fatalf("there is no %s", operation)
	return "", nil
}

// TestNeeds: the action that policies know an operation by, on the function, version or
// alias that it names, with the keys that conditions ask for.
func TestNeeds(t *testing.T) {
	role := "arn:aws:iam::444455556666:role/r"
	for _, c := range []struct {
		operation string
		in        any
		want      string
	}{
		{"Invoke", &lambda.InvokeInput{FunctionName: "f"}, "lambda:InvokeFunction on function:f"},
		{"Invoke", &lambda.InvokeInput{FunctionName: "f", Qualifier: new("live")}, "lambda:InvokeFunction on function:f:live"},
		{"Invoke", &lambda.InvokeInput{FunctionName: "arn:aws:lambda:us-east-1:999999999999:function:f:2"}, "lambda:InvokeFunction on arn:aws:lambda:us-east-1:999999999999:function:f:2"},
		{"GetFunction", &lambda.FunctionInput{FunctionName: "f:2"}, "lambda:GetFunction on function:f:2"},
		{"ListFunctions", &lambda.NameInput{}, "lambda:ListFunctions on *"},
		{"CreateFunction", &lambda.CreateFunctionInput{FunctionName: "f", Role: role}, "lambda:CreateFunction on function:f; iam:PassRole on " + role + " iam:passedtoservice=lambda.amazonaws.com"},
		{
			"CreateFunction", &lambda.CreateFunctionInput{FunctionName: "f", Role: role, Tags: map[string]string{"b": "1", "a": "2"}},
			"lambda:CreateFunction on function:f tags [a b]; lambda:TagResource on function:f tags [a b]; iam:PassRole on " + role + " iam:passedtoservice=lambda.amazonaws.com",
		},
		{"UpdateFunctionConfiguration", &lambda.UpdateFunctionConfigurationInput{FunctionName: "f"}, "lambda:UpdateFunctionConfiguration on function:f"},
		{"UpdateFunctionConfiguration", &lambda.UpdateFunctionConfigurationInput{FunctionName: "f", Role: &role}, "lambda:UpdateFunctionConfiguration on function:f; iam:PassRole on " + role + " iam:passedtoservice=lambda.amazonaws.com"},
		{"AddPermission", &lambda.AddPermissionInput{FunctionName: "f", Principal: "sns.amazonaws.com"}, "lambda:AddPermission on function:f lambda:principal=sns.amazonaws.com"},
		{
			"CreateFunctionUrlConfig", &lambda.CreateFunctionUrlConfigInput{FunctionName: "f", Qualifier: new("live"), AuthType: "NONE"},
			"lambda:CreateFunctionUrlConfig on function:f:live lambda:functionurlauthtype=NONE",
		},
		{"UpdateFunctionUrlConfig", &lambda.UpdateFunctionUrlConfigInput{FunctionName: "f"}, "lambda:UpdateFunctionUrlConfig on function:f"},
		{"DeleteFunctionUrlConfig", &lambda.FunctionInput{FunctionName: "f"}, "lambda:DeleteFunctionUrlConfig on function:f"},
		{
			"CreateFunction", &lambda.CreateFunctionInput{FunctionName: "f", Role: role, Layers: []string{"arn:aws:lambda:us-east-1:" + account + ":layer:a:1", "arn:aws:lambda:us-east-1:999999999999:layer:b:2"}},
			"lambda:CreateFunction on function:f lambda:layer=arn:aws:lambda:us-east-1:" + account + ":layer:a:1,arn:aws:lambda:us-east-1:999999999999:layer:b:2; iam:PassRole on " + role +
				" iam:passedtoservice=lambda.amazonaws.com; lambda:GetLayerVersion on layer:a:1; lambda:GetLayerVersion on arn:aws:lambda:us-east-1:999999999999:layer:b:2",
		},
		{
			"UpdateFunctionConfiguration", &lambda.UpdateFunctionConfigurationInput{FunctionName: "f", Layers: []string{"arn:aws:lambda:us-east-1:" + account + ":layer:a:1"}},
			"lambda:UpdateFunctionConfiguration on function:f lambda:layer=arn:aws:lambda:us-east-1:" + account + ":layer:a:1; lambda:GetLayerVersion on layer:a:1",
		},
		{"PublishLayerVersion", &layers.PublishLayerVersionInput{LayerName: "l"}, "lambda:PublishLayerVersion on layer:l"},
		{"GetLayerVersion", &layers.LayerVersionInput{LayerName: "l", VersionNumber: 3}, "lambda:GetLayerVersion on layer:l:3"},
		{"GetLayerVersionByArn", &layers.GetLayerVersionByArnInput{Arn: "arn:aws:lambda:us-east-1:" + account + ":layer:a:1"}, "lambda:GetLayerVersion on layer:a:1"},
		{"ListLayerVersions", &layers.ListLayerVersionsInput{LayerName: "l"}, "lambda:ListLayerVersions on *"},
		{"AddLayerVersionPermission", &layers.AddLayerVersionPermissionInput{LayerName: "l", VersionNumber: 1}, "lambda:AddLayerVersionPermission on layer:l:1"},
		{"CreateEventSourceMapping", &mappings.CreateEventSourceMappingInput{FunctionName: "f"}, "lambda:CreateEventSourceMapping on * lambda:functionarn=arn:aws:lambda:us-east-1:" + account + ":function:f"},
		{"DeleteEventSourceMapping", &mappings.MappingInput{UUID: "u"}, "lambda:DeleteEventSourceMapping on event-source-mapping:u"},
		{"UpdateEventSourceMapping", &mappings.UpdateEventSourceMappingInput{UUID: "u"}, "lambda:UpdateEventSourceMapping on event-source-mapping:u"},
		{"UpdateEventSourceMapping", &mappings.UpdateEventSourceMappingInput{UUID: "u", FunctionName: new("g")}, "lambda:UpdateEventSourceMapping on event-source-mapping:u lambda:functionarn=arn:aws:lambda:us-east-1:" + account + ":function:g"},
		{"TagResource", &lambda.TagResourceInput{Resource: "arn:aws:lambda:us-east-1:" + account + ":function:f", Tags: map[string]string{"a": ""}}, "lambda:TagResource on function:f tags [a]"},
		{"UntagResource", &lambda.UntagResourceInput{Resource: "arn:aws:lambda:us-east-1:" + account + ":function:f", TagKeys: []string{"a"}}, "lambda:UntagResource on function:f tags [a]"},
	} {
		if got, err := needed(t, c.operation, c.in); err != nil || got != c.want {
			t.Errorf("%s %+v needs\n%s, %v, want\n%s", c.operation, c.in, got, err, c.want)
		}
	}
}

// TestUnnamed: what is no function's name is refused before anybody is asked for rights.
func TestUnnamed(t *testing.T) {
	for _, op := range operations() {
		in := reflect.New(op.Input).Interface()
		name := reflect.ValueOf(in).Elem().FieldByName("FunctionName")
		if op.Name == "ListFunctions" || op.Name == "GetAccountSettings" || !name.IsValid() || name.Kind() != reflect.String {
			continue
		}
		name.SetString("no such: name")
		if _, err := op.Access(t.Context(), &api.Call{Region: "us-east-1", Account: account}, in); !fault.Is(err) {
			t.Errorf("%s: %v", op.Name, err)
		}
	}
}
