package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/smithy-go"

	"godwit.dev/godwit/internal/config"
)

func layerARN(name string) string { return "arn:aws:lambda:us-east-1:000000000000:layer:" + name }

// publishLayer makes a version of a layer of files: pairs of name and content.
func publishLayer(t *testing.T, c *lambda.Client, name string, files ...string) *lambda.PublishLayerVersionOutput {
	t.Helper()
	return must(c.PublishLayerVersion(t.Context(), &lambda.PublishLayerVersionInput{
		LayerName: &name, Content: &types.LayerVersionContentInput{ZipFile: zipOf(t, files...)},
	}))(t)
}

// shell answers with what a function's shell prints for a command.
func shell(t *testing.T, c *lambda.Client, name, command string) string {
	t.Helper()
	out := invoke(t, c, name, string(must(json.Marshal(map[string]string{"run": command}))(t)))
	var text string
	if err := json.Unmarshal(out.Payload, &text); err != nil {
		t.Fatalf("%s: %v", out.Payload, err)
	}
	return text
}

// withLayers makes a function that runs test/handler with layers.
func withLayers(t *testing.T, c *lambda.Client, name string, layers ...string) *lambda.CreateFunctionOutput {
	t.Helper()
	in := functionInput(t, name)
	in.Code.ZipFile, in.Timeout, in.Layers = must(goProgram())(t), aws.Int32(runTime), layers
	return must(c.CreateFunction(t.Context(), in))(t)
}

// A function finds its layers in /opt, a file of a later one in place of an earlier one's, and keeps them when
// their versions are deleted.
func TestLayersOfFunction(t *testing.T) {
	endpoint := start(t)
	c := functionsClient(endpoint)
	first := publishLayer(t, c, "tools", "bin/say", "#!/bin/sh\necho first", "etc/only", "a", "both", "a", "kind", "a file")
	second := publishLayer(t, c, "more", "etc/more", "b", "both", "b", "kind/in", "c")
	equal(t, "the first version", layerARN("tools")+":1", *first.LayerVersionArn)
	made := withLayers(t, c, "f", *first.LayerVersionArn, *second.LayerVersionArn)
	want := []types.Layer{
		{Arn: first.LayerVersionArn, CodeSize: first.Content.CodeSize}, {Arn: second.LayerVersionArn, CodeSize: second.Content.CodeSize},
	}
	equal(t, "the function's layers", want, made.Layers)
	equal(t, "its layers later", want, configuration(t, c, "f").Layers)
	const look = `say; cd "$GODWIT_LAYERS"; cat etc/only etc/more both kind/in`
	equal(t, "what it sees", "first\nabbc", shell(t, c, "f", look))

	published := must(c.PublishVersion(t.Context(), &lambda.PublishVersionInput{FunctionName: aws.String("f")}))(t)
	equal(t, "the version's layers", want, published.Layers)
	for _, name := range []string{"tools", "more"} {
		must(c.DeleteLayerVersion(t.Context(), &lambda.DeleteLayerVersionInput{LayerName: &name, VersionNumber: aws.Int64(1)}))(t)
	}
	in := &lambda.UpdateFunctionConfigurationInput{FunctionName: aws.String("f"), Layers: []string{*second.LayerVersionArn}}
	_, err := c.UpdateFunctionConfiguration(t.Context(), in)
	refused(t, err, invalidValue, 400, "Layer version "+layerARN("more")+":1 does not exist.")
	other := must(c.UpdateFunctionConfiguration(t.Context(), &lambda.UpdateFunctionConfigurationInput{FunctionName: aws.String("f"), Timeout: aws.Int32(runTime - 1)}))(t)
	equal(t, "the layers after another change", want, other.Layers)
	equal(t, "what it sees later", "first\nabbc", shell(t, c, "f", look))
	in.Layers = []string{}
	equal(t, "no layers", 0, len(must(c.UpdateFunctionConfiguration(t.Context(), in))(t).Layers))
	equal(t, "what it sees then", "none", shell(t, c, "f", `test -z "$GODWIT_LAYERS" && ! test -e /opt/etc/only && printf none`))
	equal(t, "what the version sees", "first\nabbc", shell(t, c, "f:1", look))
	all := must(c.ListFunctions(t.Context(), &lambda.ListFunctionsInput{FunctionVersion: types.FunctionVersionAll}))(t).Functions
	equal(t, "the layers of all versions", [][]types.Layer{nil, want}, [][]types.Layer{all[0].Layers, all[1].Layers})
}

// A function without a bootstrap of its own starts that of a layer.
func TestRuntimeInLayer(t *testing.T) {
	c := functionsClient(start(t))
	v := must(c.PublishLayerVersion(t.Context(), &lambda.PublishLayerVersionInput{
		LayerName: aws.String("runtime"), Content: &types.LayerVersionContentInput{ZipFile: must(goProgram())(t)},
	}))(t)
	in := functionInput(t, "f")
	in.Code.ZipFile, in.Timeout, in.Layers = zipOf(t, "nothing", "x"), aws.Int32(runTime), []string{*v.LayerVersionArn}
	must(c.CreateFunction(t.Context(), in))(t)
	equal(t, "an answer", `{"a":1}`, string(invoke(t, c, "f", `{"a":1}`).Payload))
}

// Versions count up, and no number is given twice.
func TestLayerVersions(t *testing.T) {
	endpoint := start(t)
	c := functionsClient(endpoint)
	zip := zipOf(t, "a", "x")
	publish := func(name string, runtimes []types.Runtime, architectures ...types.Architecture) *lambda.PublishLayerVersionOutput {
		t.Helper()
		return must(c.PublishLayerVersion(t.Context(), &lambda.PublishLayerVersionInput{
			LayerName: &name, Content: &types.LayerVersionContentInput{ZipFile: zip}, Description: aws.String("what it is"), LicenseInfo: aws.String("MIT"),
			CompatibleRuntimes: runtimes, CompatibleArchitectures: architectures,
		}))(t)
	}
	first := publish("l", []types.Runtime{types.RuntimeNodejs22x}, types.ArchitectureX8664)
	equal(t, "the layer", layerARN("l"), *first.LayerArn)
	equal(t, "its content", *digest(zip), *first.Content.CodeSha256)
	equal(t, "its size", int64(len(zip)), first.Content.CodeSize)
	equal(t, "its link", string(zip), fetch(t, *first.Content.Location).Body)
	publish(layerARN("l"), []types.Runtime{types.RuntimePython312, types.RuntimeNodejs22x}, types.ArchitectureArm64)
	publish("l", nil)
	publish("k", []types.Runtime{types.RuntimePython312})

	get := must(c.GetLayerVersion(t.Context(), &lambda.GetLayerVersionInput{LayerName: aws.String("l"), VersionNumber: aws.Int64(2)}))(t)
	byARN := must(c.GetLayerVersionByArn(t.Context(), &lambda.GetLayerVersionByArnInput{Arn: aws.String(layerARN("l") + ":2")}))(t)
	equal(t, "a version", "2 what it is MIT [python3.12 nodejs22.x] [arm64]", fmt.Sprint(get.Version, " ", *get.Description, " ", *get.LicenseInfo, " ", get.CompatibleRuntimes, " ", get.CompatibleArchitectures))
	equal(t, "the same by its ARN", fmt.Sprint(*get.LayerVersionArn, *get.CreatedDate, *get.Content.CodeSha256), fmt.Sprint(*byARN.LayerVersionArn, *byARN.CreatedDate, *byARN.Content.CodeSha256))

	versions := func(in *lambda.ListLayerVersionsInput) (numbers []int64) {
		t.Helper()
		in.LayerName = aws.String("l")
		for pages := lambda.NewListLayerVersionsPaginator(c, in); pages.HasMorePages(); {
			for _, v := range must(pages.NextPage(t.Context()))(t).LayerVersions {
				numbers = append(numbers, v.Version)
			}
		}
		return numbers
	}
	equal(t, "all versions", []int64{3, 2, 1}, versions(&lambda.ListLayerVersionsInput{MaxItems: aws.Int32(1)}))
	equal(t, "those for a runtime", []int64{2, 1}, versions(&lambda.ListLayerVersionsInput{CompatibleRuntime: types.RuntimeNodejs22x}))
	equal(t, "those for an architecture", []int64{1}, versions(&lambda.ListLayerVersionsInput{CompatibleArchitecture: types.ArchitectureX8664}))
	layers := func(in *lambda.ListLayersInput) (all []string) {
		t.Helper()
		for pages := lambda.NewListLayersPaginator(c, in); pages.HasMorePages(); {
			for _, l := range must(pages.NextPage(t.Context()))(t).Layers {
				all = append(all, fmt.Sprint(*l.LayerName, " ", l.LatestMatchingVersion.Version))
			}
		}
		return all
	}
	equal(t, "all layers", []string{"k 1", "l 3"}, layers(&lambda.ListLayersInput{MaxItems: aws.Int32(1)}))
	equal(t, "layers for a runtime", []string{"k 1", "l 2"}, layers(&lambda.ListLayersInput{CompatibleRuntime: types.RuntimePython312}))
	equal(t, "layers for an architecture", []string{"l 1"}, layers(&lambda.ListLayersInput{CompatibleArchitecture: types.ArchitectureX8664}))

	usage := must(c.GetAccountSettings(t.Context(), &lambda.GetAccountSettingsInput{}))(t).AccountUsage.TotalCodeSize
	equal(t, "the account's code", int64(4*len(zip)), usage)
	for range 2 { // the second time, it is not there
		for n := range int64(3) {
			must(c.DeleteLayerVersion(t.Context(), &lambda.DeleteLayerVersionInput{LayerName: aws.String("l"), VersionNumber: aws.Int64(n + 1)}))(t)
		}
	}
	equal(t, "the layers that are left", []string{"k 1"}, layers(&lambda.ListLayersInput{}))
	equal(t, "the versions that are left", 0, len(versions(&lambda.ListLayerVersionsInput{})))
	equal(t, "the account's code that is left", int64(len(zip)), must(c.GetAccountSettings(t.Context(), &lambda.GetAccountSettingsInput{}))(t).AccountUsage.TotalCodeSize)
	equal(t, "the link to a version that was deleted", 404, fetch(t, *first.Content.Location).Status)
	equal(t, "the next version", int64(4), publish("l", nil).Version)
	post(t, endpoint+"/_godwit/v1/reset", `{"account":"`+account+`"}`)
	equal(t, "the layers after a reset", 0, len(layers(&lambda.ListLayersInput{})))
	equal(t, "the first version after a reset", int64(1), publish("l", nil).Version)
}

// A layer's policy, with its revisions, and what it allows another account.
func TestLayerPolicy(t *testing.T) {
	endpoint := start(t)
	c, other := functionsClient(endpoint), functionsClientOf(endpoint, region, "111122223333")
	v := publishLayer(t, c, "l", "a", "x")
	l, one := aws.String("l"), aws.Int64(1)
	_, err := c.GetLayerVersionPolicy(t.Context(), &lambda.GetLayerVersionPolicyInput{LayerName: l, VersionNumber: one})
	refused(t, err, notFound, 404, "No policy is associated with the given resource.")
	use := func(name string) error {
		in := functionInput(t, name)
		in.Role, in.Layers = aws.String("arn:aws:iam::111122223333:role/function"), []string{*v.LayerVersionArn}
		_, err := other.CreateFunction(t.Context(), in)
		return err
	}
	read := func() error {
		_, err := other.GetLayerVersionByArn(t.Context(), &lambda.GetLayerVersionByArnInput{Arn: v.LayerVersionArn})
		return err
	}
	denied := func() {
		t.Helper()
		for _, err := range []error{use("f"), read()} {
			refused(t, err, "AccessDeniedException", 403, "User: arn:aws:iam::111122223333:root is not authorized to perform: lambda:GetLayerVersion on resource: "+
				layerARN("l")+":1 because no resource-based policy allows the lambda:GetLayerVersion action")
		}
	}
	denied()
	add := func(sid, principal string, organization, revision *string) (*lambda.AddLayerVersionPermissionOutput, error) {
		return c.AddLayerVersionPermission(t.Context(), &lambda.AddLayerVersionPermissionInput{
			LayerName: l, VersionNumber: one, StatementId: &sid, Action: aws.String("lambda:GetLayerVersion"), Principal: &principal,
			OrganizationId: organization, RevisionId: revision,
		})
	}
	// Nobody is known to be of an organization.
	must(add("org", "*", aws.String("o-abcdefghij"), nil))(t)
	denied()
	first := must(add("them", "111122223333", nil, nil))(t)
	equal(t, "the statement", `{"Sid":"them","Effect":"Allow","Principal":{"AWS":"arn:aws:iam::111122223333:root"},"Action":"lambda:GetLayerVersion","Resource":"`+layerARN("l")+`:1"}`, *first.Statement)
	if err := errors.Join(use("f"), read()); err != nil {
		t.Errorf("what the policy allows: %v", err)
	}
	_, err = add("them", "*", nil, nil)
	refused(t, err, "ResourceConflictException", 409, "The statement id (them) provided already exists. Please provide a new statement id, or remove the existing statement.")
	_, err = add("all", "*", nil, aws.String("other"))
	refused(t, err, "PreconditionFailedException", 412, "The Revision Id provided does not match the latest Revision Id. Call the GetLayerPolicy API to retrieve the latest Revision Id")
	second := must(add("all", "*", nil, first.RevisionId))(t)
	shown := must(c.GetLayerVersionPolicy(t.Context(), &lambda.GetLayerVersionPolicyInput{LayerName: aws.String(layerARN("l")), VersionNumber: one}))(t)
	equal(t, "the revision", *second.RevisionId, *shown.RevisionId)
	equal(t, "the policy", `{"Version":"2012-10-17","Id":"default","Statement":[{"Sid":"org","Effect":"Allow","Principal":"*","Action":"lambda:GetLayerVersion","Resource":"`+layerARN("l")+
		`:1","Condition":{"StringEquals":{"aws:PrincipalOrgID":"o-abcdefghij"}}},`+*first.Statement+`,{"Sid":"all","Effect":"Allow","Principal":"*","Action":"lambda:GetLayerVersion","Resource":"`+layerARN("l")+`:1"}]}`, *shown.Policy)
	remove := func(sid string, revision *string) error {
		_, err := c.RemoveLayerVersionPermission(t.Context(), &lambda.RemoveLayerVersionPermissionInput{LayerName: l, VersionNumber: one, StatementId: &sid, RevisionId: revision})
		return err
	}
	refused(t, remove("none", nil), notFound, 404, "Statement none is not found in resource policy.")
	refused(t, remove("all", first.RevisionId), "PreconditionFailedException", 412, "The Revision Id provided does not match the latest Revision Id. Call the GetLayerPolicy API to retrieve the latest Revision Id")
	if err := errors.Join(remove("all", second.RevisionId), remove("them", nil)); err != nil {
		t.Fatal(err)
	}
	denied()
	if err := remove("org", nil); err != nil {
		t.Fatal(err)
	}
	refused(t, remove("org", nil), notFound, 404, "No policy is associated with the given resource.")
}

// layerCalls are the actions on layers, with all that they must have.
func layerCalls(ctx context.Context, c *lambda.Client, name string, number int64, zip []byte) map[string]func() error {
	return map[string]func() error{
		"GetLayerVersionByArn": func() error {
			_, err := c.GetLayerVersionByArn(ctx, &lambda.GetLayerVersionByArnInput{Arn: aws.String(fmt.Sprintf("%s:%d", layerARN(name), number))})
			return err
		},
		"ListLayers": func() error {
			_, err := c.ListLayers(ctx, &lambda.ListLayersInput{})
			return err
		},
		"GetLayerVersion": func() error {
			_, err := c.GetLayerVersion(ctx, &lambda.GetLayerVersionInput{LayerName: &name, VersionNumber: &number})
			return err
		},
		"DeleteLayerVersion": func() error {
			_, err := c.DeleteLayerVersion(ctx, &lambda.DeleteLayerVersionInput{LayerName: &name, VersionNumber: &number})
			return err
		},
		"AddLayerVersionPermission": func() error {
			_, err := c.AddLayerVersionPermission(ctx, &lambda.AddLayerVersionPermissionInput{
				LayerName: &name, VersionNumber: &number, StatementId: aws.String("s"), Action: aws.String("lambda:GetLayerVersion"), Principal: aws.String("*"),
			})
			return err
		},
		"RemoveLayerVersionPermission": func() error {
			_, err := c.RemoveLayerVersionPermission(ctx, &lambda.RemoveLayerVersionPermissionInput{LayerName: &name, VersionNumber: &number, StatementId: aws.String("s")})
			return err
		},
		"GetLayerVersionPolicy": func() error {
			_, err := c.GetLayerVersionPolicy(ctx, &lambda.GetLayerVersionPolicyInput{LayerName: &name, VersionNumber: &number})
			return err
		},
		"ListLayerVersions": func() error {
			_, err := c.ListLayerVersions(ctx, &lambda.ListLayerVersionsInput{LayerName: &name})
			return err
		},
		"PublishLayerVersion": func() error {
			_, err := c.PublishLayerVersion(ctx, &lambda.PublishLayerVersionInput{LayerName: &name, Content: &types.LayerVersionContentInput{ZipFile: zip}})
			return err
		},
	}
}

// What layers cannot be, and what is not there, is another's, or has a name that does not fit.
func TestLayersRefuse(t *testing.T) {
	endpoint := start(t)
	c := functionsClient(endpoint)
	calls := func(name string, number int64, run func(action string, err error)) {
		all := layerCalls(t.Context(), c, name, number, []byte("x"))
		delete(all, "GetLayerVersionByArn")
		delete(all, "ListLayers")
		for action, call := range all {
			run(action, call())
		}
	}
	calls("none", 1, func(action string, err error) {
		switch action {
		case "PublishLayerVersion":
			refused(t, err, invalidValue, 400, "Could not unzip uploaded file. Please check your file, then try to upload again.")
		case "GetLayerVersion":
			refused(t, err, notFound, 404, "The resource you requested does not exist.")
		case "DeleteLayerVersion", "ListLayerVersions":
			equal(t, action, nil, err)
		default:
			refused(t, err, notFound, 404, "Layer version "+layerARN("none")+":1 does not exist.")
		}
	})
	calls("none", 0, func(action string, err error) {
		if action != "PublishLayerVersion" && action != "ListLayerVersions" {
			refused(t, err, invalidValue, 400, "Layer Version Cannot be less than 1")
		}
	})
	calls("no name", 1, func(action string, err error) {
		refusal, ok := errors.AsType[smithy.APIError](err)
		if !ok || refusal.ErrorCode() != "ValidationException" || !strings.Contains(refusal.ErrorMessage(), "at 'layerName' failed to satisfy constraint: Member must satisfy regular expression pattern: ") {
			t.Errorf("%s of no name: %v", action, err)
		}
	})
	calls("arn:aws:lambda:eu-west-1:"+account+":layer:l", 1, func(_ string, err error) {
		refused(t, err, notFound, 404, "The resource you requested does not exist.")
	})
	const others = "arn:aws:lambda:" + region + ":111122223333:layer:l"
	calls(others, 1, func(action string, err error) {
		on := others + ":1"
		if action == "PublishLayerVersion" || action == "ListLayerVersions" {
			on = others
		}
		refused(t, err, "AccessDeniedException", 403, "User: arn:aws:iam::"+account+":root is not authorized to perform: lambda:"+action+
			" on resource: "+on+" because no resource-based policy allows the lambda:"+action+" action")
	})
	_, err := c.GetLayerVersionByArn(t.Context(), &lambda.GetLayerVersionByArnInput{Arn: aws.String(layerARN("none") + ":1")})
	refused(t, err, notFound, 404, "The resource you requested does not exist.")
	_, err = c.GetLayerVersionByArn(t.Context(), &lambda.GetLayerVersionByArnInput{Arn: aws.String(layerARN("none") + ":0")})
	refused(t, err, invalidValue, 400, "Layer Version Cannot be less than 1")
	_, err = c.GetLayerVersionByArn(t.Context(), &lambda.GetLayerVersionByArnInput{Arn: aws.String(layerARN("none"))})
	refused(t, err, "ValidationException", 400, "1 validation error detected: Value '"+layerARN("none")+"' at 'arn' failed to satisfy constraint: "+
		`Member must satisfy regular expression pattern: arn:[a-zA-Z0-9-]+:lambda:[a-zA-Z0-9-]+:\d{12}:layer:[a-zA-Z0-9-_]+:[0-9]+`)
	for _, tc := range []struct {
		name, code, text string
		change           func(in *lambda.PublishLayerVersionInput)
	}{
		{"no content", invalidValue, "Please provide a source for function code.", func(in *lambda.PublishLayerVersionInput) { in.Content = &types.LayerVersionContentInput{} }},
		{
			"S3", invalidValue, "Code in S3 is not supported by this server, which is started without --artifacts-s3-endpoint. Send it in ZipFile.",
			func(in *lambda.PublishLayerVersionInput) {
				in.Content = &types.LayerVersionContentInput{S3Bucket: aws.String("bucket"), S3Key: aws.String("key")}
			},
		},
		{
			"too long", "ValidationException", "2 validation errors detected: Value '" + strings.Repeat("d", 257) + "' at 'description' failed to satisfy constraint: Member must have length less than or equal to 256; " +
				"Value '[x86]' at 'compatibleArchitectures' failed to satisfy constraint: Member must satisfy constraint: [Member must satisfy enum value set: [x86_64, arm64]]",
			func(in *lambda.PublishLayerVersionInput) {
				in.Description, in.CompatibleArchitectures = aws.String(strings.Repeat("d", 257)), []types.Architecture{"x86"}
			},
		},
	} {
		in := &lambda.PublishLayerVersionInput{LayerName: aws.String("l"), Content: &types.LayerVersionContentInput{ZipFile: zipOf(t, "a", "x")}}
		tc.change(in)
		_, err := c.PublishLayerVersion(t.Context(), in)
		t.Run(tc.name, func(t *testing.T) { refused(t, err, tc.code, 400, tc.text) })
	}
	_, err = c.ListLayers(t.Context(), &lambda.ListLayersInput{Marker: aws.String("x")})
	refused(t, err, invalidValue, 400, "The Marker is not valid.")
	_, err = c.ListLayerVersions(t.Context(), &lambda.ListLayerVersionsInput{LayerName: aws.String("l"), Marker: aws.String("x")})
	refused(t, err, invalidValue, 400, "The Marker is not valid.")
	equal(t, "layers", 0, len(must(c.ListLayers(t.Context(), &lambda.ListLayersInput{}))(t).Layers))

	// Layers of functions.
	large := make([]string, 0, 6)
	for i := range 6 {
		large = append(large, *publishLayer(t, c, fmt.Sprint("large", i), "a", strings.Repeat("\x00", 60<<20)).LayerVersionArn)
	}
	again := *publishLayer(t, c, "large0", "a", "x").LayerVersionArn
	for _, tc := range []struct {
		name, code, text string
		layers           []string
	}{
		{"six", invalidValue, "Cannot reference more than 5 layers.", large},
		{
			"two versions", invalidValue, "Two different versions of the same layer are not allowed to be referenced in the same function. " +
				large[0] + " and " + again + " are versions of the same layer.", []string{large[0], again},
		},
		{"none", invalidValue, "Layer version " + layerARN("large0") + ":9 does not exist.", []string{layerARN("large0") + ":9"}},
		{"another region", invalidValue, "Layers are not in the same region as the function. Layers are expected to be in region us-east-1.", []string{"arn:aws:lambda:eu-west-1:" + account + ":layer:l:1"}},
		{"too large", invalidValue, "Layers consume more than the available size of 262144000 bytes", large[:5]},
	} {
		in := functionInput(t, "f")
		in.Layers = tc.layers
		_, err := c.CreateFunction(t.Context(), in)
		t.Run(tc.name, func(t *testing.T) { refused(t, err, tc.code, 400, tc.text) })
	}
	in := functionInput(t, "f")
	in.Layers = large[:4]
	in.Code.ZipFile = zipOf(t, "bootstrap", "x", "a", strings.Repeat("\x00", 11<<20))
	_, err = c.CreateFunction(t.Context(), in)
	refused(t, err, invalidValue, 400, fmt.Sprintf("Function code combined with layers exceeds the maximum allowed size of 262144000 bytes. The actual size is %d bytes.", 251<<20+1))
	small := functionInput(t, "f")
	small.Layers = large[:4]
	must(c.CreateFunction(t.Context(), small))(t)
	for _, dry := range []bool{true, false} {
		_, err = c.UpdateFunctionCode(t.Context(), &lambda.UpdateFunctionCodeInput{FunctionName: aws.String("f"), ZipFile: in.Code.ZipFile, DryRun: dry})
		refused(t, err, invalidValue, 400, fmt.Sprintf("Function code combined with layers exceeds the maximum allowed size of 262144000 bytes. The actual size is %d bytes.", 251<<20+1))
	}
	_, err = c.UpdateFunctionConfiguration(t.Context(), &lambda.UpdateFunctionConfigurationInput{FunctionName: aws.String("f"), Layers: large[:5]})
	refused(t, err, invalidValue, 400, "Layers consume more than the available size of 262144000 bytes")
	image := functionInput(t, "g")
	image.PackageType, image.Runtime, image.Handler, image.Layers = types.PackageTypeImage, "", nil, large[:1]
	image.Code = &types.FunctionCode{ImageUri: aws.String("https://functions.example/f")}
	_, err = c.CreateFunction(t.Context(), image)
	refused(t, err, invalidValue, 400, "Please don't provide handler or runtime or layer when the package type is Image.")
}

// What an account's layers are bounded by, and a policy.
func TestLayerBounds(t *testing.T) {
	c := functionsClient(startWith(t, func(c *config.Config) { c.LambdaCodeStorage = 1000 }))
	zip := zipOf(t, "a", strings.Repeat("\x00", 1<<18))
	publish := func() error {
		_, err := c.PublishLayerVersion(t.Context(), &lambda.PublishLayerVersionInput{LayerName: aws.String("l"), Content: &types.LayerVersionContentInput{ZipFile: zip}})
		return err
	}
	if err := publish(); err != nil {
		t.Fatal(err)
	}
	for range 1000/len(zip) + 1 {
		if err := publish(); err != nil {
			refused(t, err, "CodeStorageExceededException", 400, "Code storage limit exceeded.")
			break
		}
	}
	var err error
	for i := 0; err == nil && i < 200; i++ {
		_, err = c.AddLayerVersionPermission(t.Context(), &lambda.AddLayerVersionPermissionInput{
			LayerName: aws.String("l"), VersionNumber: aws.Int64(1), StatementId: aws.String(fmt.Sprint(strings.Repeat("s", 90), i)), Action: aws.String("lambda:GetLayerVersion"), Principal: aws.String("*"),
		})
	}
	refusal, ok := errors.AsType[smithy.APIError](err)
	if !ok || refusal.ErrorCode() != "PolicyLengthExceededException" || !strings.HasPrefix(refusal.ErrorMessage(), "The final policy size (20") {
		t.Error(err)
	}
}
