package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/smithy-go"

	"godwit.dev/godwit/internal/config"
)

// functionCalls are a request of each action about the function of a name, with
// all that it must have.
func functionCalls(ctx context.Context, c *lambda.Client, name string, zip []byte) map[string]func() error {
	f, one, alias, sid := &name, aws.String("1"), aws.String("live"), aws.String("s")
	tagged := aws.String(name)
	if !strings.HasPrefix(name, "arn:") {
		tagged = aws.String(functionARN(name))
	}
	role, handler := roleARN, "bootstrap"
	return map[string]func() error{
		"AddPermission": func() error {
			in := permission(name, "s", "sns.amazonaws.com")
			_, err := c.AddPermission(ctx, in)
			return err
		},
		"CreateAlias": func() error {
			_, err := c.CreateAlias(ctx, &lambda.CreateAliasInput{FunctionName: f, Name: alias, FunctionVersion: one})
			return err
		},
		"CreateFunction": func() error {
			_, err := c.CreateFunction(ctx, &lambda.CreateFunctionInput{
				FunctionName: f, Role: &role, Handler: &handler, Runtime: types.RuntimeProvidedal2023, Code: &types.FunctionCode{ZipFile: zip},
			})
			return err
		},
		"DeleteAlias": func() error {
			_, err := c.DeleteAlias(ctx, &lambda.DeleteAliasInput{FunctionName: f, Name: alias})
			return err
		},
		"DeleteFunction": func() error {
			_, err := c.DeleteFunction(ctx, &lambda.DeleteFunctionInput{FunctionName: f})
			return err
		},
		"DeleteFunctionConcurrency": func() error {
			_, err := c.DeleteFunctionConcurrency(ctx, &lambda.DeleteFunctionConcurrencyInput{FunctionName: f})
			return err
		},
		"CreateFunctionUrlConfig": func() error {
			_, err := c.CreateFunctionUrlConfig(ctx, &lambda.CreateFunctionUrlConfigInput{FunctionName: f, AuthType: types.FunctionUrlAuthTypeNone})
			return err
		},
		"DeleteFunctionUrlConfig": func() error {
			_, err := c.DeleteFunctionUrlConfig(ctx, &lambda.DeleteFunctionUrlConfigInput{FunctionName: f})
			return err
		},
		"GetFunctionUrlConfig": func() error {
			_, err := c.GetFunctionUrlConfig(ctx, &lambda.GetFunctionUrlConfigInput{FunctionName: f})
			return err
		},
		"ListFunctionUrlConfigs": func() error {
			_, err := c.ListFunctionUrlConfigs(ctx, &lambda.ListFunctionUrlConfigsInput{FunctionName: f})
			return err
		},
		"UpdateFunctionUrlConfig": func() error {
			_, err := c.UpdateFunctionUrlConfig(ctx, &lambda.UpdateFunctionUrlConfigInput{FunctionName: f})
			return err
		},
		"GetAccountSettings": func() error {
			_, err := c.GetAccountSettings(ctx, &lambda.GetAccountSettingsInput{})
			return err
		},
		"GetAlias": func() error {
			_, err := c.GetAlias(ctx, &lambda.GetAliasInput{FunctionName: f, Name: alias})
			return err
		},
		"GetFunction": func() error {
			_, err := c.GetFunction(ctx, &lambda.GetFunctionInput{FunctionName: f})
			return err
		},
		"GetFunctionCodeSigningConfig": func() error {
			_, err := c.GetFunctionCodeSigningConfig(ctx, &lambda.GetFunctionCodeSigningConfigInput{FunctionName: f})
			return err
		},
		"GetFunctionConcurrency": func() error {
			_, err := c.GetFunctionConcurrency(ctx, &lambda.GetFunctionConcurrencyInput{FunctionName: f})
			return err
		},
		"GetFunctionConfiguration": func() error {
			_, err := c.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: f})
			return err
		},
		"GetPolicy": func() error {
			_, err := c.GetPolicy(ctx, &lambda.GetPolicyInput{FunctionName: f})
			return err
		},
		"ListAliases": func() error {
			_, err := c.ListAliases(ctx, &lambda.ListAliasesInput{FunctionName: f})
			return err
		},
		"ListFunctions": func() error {
			_, err := c.ListFunctions(ctx, &lambda.ListFunctionsInput{})
			return err
		},
		"ListTags": func() error {
			_, err := c.ListTags(ctx, &lambda.ListTagsInput{Resource: tagged})
			return err
		},
		"ListVersionsByFunction": func() error {
			_, err := c.ListVersionsByFunction(ctx, &lambda.ListVersionsByFunctionInput{FunctionName: f})
			return err
		},
		"PublishVersion": func() error {
			_, err := c.PublishVersion(ctx, &lambda.PublishVersionInput{FunctionName: f})
			return err
		},
		"PutFunctionConcurrency": func() error {
			_, err := c.PutFunctionConcurrency(ctx, &lambda.PutFunctionConcurrencyInput{FunctionName: f, ReservedConcurrentExecutions: aws.Int32(1)})
			return err
		},
		"RemovePermission": func() error {
			_, err := c.RemovePermission(ctx, &lambda.RemovePermissionInput{FunctionName: f, StatementId: sid})
			return err
		},
		"TagResource": func() error {
			_, err := c.TagResource(ctx, &lambda.TagResourceInput{Resource: tagged, Tags: map[string]string{"k": "v"}})
			return err
		},
		"UntagResource": func() error {
			_, err := c.UntagResource(ctx, &lambda.UntagResourceInput{Resource: tagged, TagKeys: []string{"k"}})
			return err
		},
		"UpdateAlias": func() error {
			_, err := c.UpdateAlias(ctx, &lambda.UpdateAliasInput{FunctionName: f, Name: alias})
			return err
		},
		"UpdateFunctionCode": func() error {
			_, err := c.UpdateFunctionCode(ctx, &lambda.UpdateFunctionCodeInput{FunctionName: f, ZipFile: zip})
			return err
		},
		"UpdateFunctionConfiguration": func() error {
			_, err := c.UpdateFunctionConfiguration(ctx, &lambda.UpdateFunctionConfigurationInput{FunctionName: f})
			return err
		},
	}
}

// Every action that is built is tried, but for those of invocation.
func TestFunctionCallsAreAll(t *testing.T) {
	calls := functionCalls(t.Context(), nil, "f", nil)
	maps.Copy(calls, layerCalls(t.Context(), nil, "l", 1, nil))
	for _, action := range builtActions(t, "lambda") {
		if _, ok := calls[action]; !ok && !strings.Contains(action, "Invoke") && !strings.Contains(action, "EventSourceMapping") {
			t.Errorf("no request of %s to try", action)
		}
	}
}

// What can befall any call, and changes nothing then.
func TestEveryFunctionActionCanFail(t *testing.T) {
	endpoint := startSlow(t)
	c := functionsClient(endpoint)
	createFunction(t, endpoint, c, "f")
	before := configuration(t, c, "f")
	fault := func(name string) {
		t.Helper()
		if r := post(t, endpoint+"/_godwit/faults", `{"arn":"arn:aws:lambda:`+region+":"+account+`:*","fault":"`+name+`"}`); r.Status != 200 {
			t.Fatalf("fault %s: %d %s", name, r.Status, r.Body)
		}
	}
	calls := functionCalls(t.Context(), c, "f", zipOf(t, "bootstrap", ""))
	maps.Copy(calls, layerCalls(t.Context(), c, "l", 1, zipOf(t, "a", "")))
	for action, call := range calls {
		t.Run(action, func(t *testing.T) {
			fault("internal")
			refused(t, call(), "ServiceException", 500, "We encountered an internal error. Please try again.")
			fault("throttled")
			refused(t, call(), "TooManyRequestsException", 429, "Rate exceeded.")
			fault("unavailable")
			refused(t, call(), "ServiceUnavailableException", 503, "The service is unavailable.")
			fault("denied")
			refused(t, call(), "AccessDeniedException", 403,
				"The caller is not authorized to perform this action, because no identity-based policy allows it.")
			fault("none")
		})
	}
	after := configuration(t, c, "f")
	before.ResultMetadata = after.ResultMetadata
	equal(t, "the function afterwards", before, after)
}

// aboutNoURL is what actions on URLs say of a function that is not there.
func aboutNoURL(action string) string {
	switch action {
	case "CreateFunctionUrlConfig", "ListFunctionUrlConfigs":
		return "Function does not exist"
	}
	return "The resource you requested does not exist."
}

// What is not there, is another's, or has a name that does not fit, action by
// action.
func TestFunctionActionsRefuse(t *testing.T) {
	endpoint := startSlow(t)
	c := functionsClient(endpoint)
	createFunction(t, endpoint, c, "f")
	before := configuration(t, c, "f")
	zip := zipOf(t, "bootstrap", "x")
	named := func(name string) map[string]func() error {
		calls := functionCalls(t.Context(), c, name, zip)
		delete(calls, "GetAccountSettings")
		delete(calls, "ListFunctions")
		return calls
	}
	tags := func(action string) bool { return strings.Contains(action, "Tag") }
	for action, call := range named("none") {
		if action == "CreateFunction" {
			continue
		}
		if strings.Contains(action, "FunctionUrl") {
			refused(t, call(), notFound, 404, aboutNoURL(action))
			continue
		}
		qualifier := map[string]string{"CreateAlias": ":1", "PutFunctionConcurrency": ":$LATEST"}[action]
		refused(t, call(), notFound, 404, "Function not found: "+functionARN("none")+qualifier)
	}
	elsewhere := "arn:aws:lambda:eu-west-1:" + account + ":function:f"
	for _, call := range named(elsewhere) {
		refused(t, call(), notFound, 404, "Functions from 'eu-west-1' are not reachable in this region ('us-east-1')")
	}
	other := "arn:aws:lambda:" + region + ":111122223333:function:f"
	for action, call := range named(other) {
		refused(t, call(), "AccessDeniedException", 403, "User: arn:aws:iam::"+account+":root is not authorized to perform: lambda:"+action+
			" on resource: "+other+" because no resource-based policy allows the lambda:"+action+" action")
	}
	for action, call := range named("no name") {
		err := call()
		refusal, ok := errors.AsType[smithy.APIError](err)
		if !ok || refusal.ErrorCode() != "ValidationException" || !strings.Contains(refusal.ErrorMessage(), "failed to satisfy constraint: Member must satisfy regular expression pattern: ") {
			t.Errorf("%s of no name: %v", action, err)
		}
	}
	for action, call := range named(strings.Repeat("f", 65)) {
		if tags(action) {
			continue
		}
		refusal := call()
		if strings.Contains(action, "FunctionUrl") {
			refused(t, refusal, notFound, 404, aboutNoURL(action))
			continue
		}
		switch long := strings.Repeat("f", 65); action {
		case "CreateFunction":
			refused(t, refusal, invalidValue, 400, "1 validation error detected: Value '"+long+
				"' at 'functionName' failed to satisfy constraint: Member must have length less than or equal to 64")
		case "CreateAlias":
			refused(t, refusal, notFound, 404, "Function not found: "+functionARN(long)+":1")
		case "PutFunctionConcurrency":
			refused(t, refusal, notFound, 404, "Function not found: "+functionARN(long)+":$LATEST")
		default:
			refused(t, refusal, notFound, 404, "Function not found: "+functionARN(long))
		}
	}
	// Some are about a function as a whole; others refuse two qualifiers.
	whole := 0
	for action, call := range named("f:1") {
		err := call()
		switch action {
		case "CreateAlias", "CreateFunction", "DeleteAlias", "DeleteFunctionConcurrency", "GetAlias", "GetFunctionCodeSigningConfig",
			"GetFunctionConcurrency", "ListAliases", "PublishVersion", "ListFunctionUrlConfigs", "UpdateAlias", "UpdateFunctionCode", "UpdateFunctionConfiguration":
			whole++
			refused(t, err, invalidValue, 400, "This operation does not support versioned or aliased function names: f:1")
		}
	}
	equal(t, "actions on functions as a whole", 13, whole)
	const twice = "The derived qualifier from the function name does not match the specified qualifier."
	name, q := aws.String("f:1"), aws.String("2")
	_, err := c.GetFunction(t.Context(), &lambda.GetFunctionInput{FunctionName: name, Qualifier: q})
	refused(t, err, invalidValue, 400, twice)
	_, err = c.GetFunctionConfiguration(t.Context(), &lambda.GetFunctionConfigurationInput{FunctionName: name, Qualifier: q})
	refused(t, err, invalidValue, 400, twice)
	_, err = c.GetPolicy(t.Context(), &lambda.GetPolicyInput{FunctionName: name, Qualifier: q})
	refused(t, err, invalidValue, 400, twice)
	for _, form := range []string{"f", functionARN("f"), account + ":f", account + ":function:f", "function:f", "f:$LATEST"} {
		if _, err := c.GetFunction(t.Context(), &lambda.GetFunctionInput{FunctionName: &form}); err != nil {
			t.Errorf("%s: %v", form, err)
		}
	}
	after := configuration(t, c, "f")
	before.ResultMetadata = after.ResultMetadata
	equal(t, "the function afterwards", before, after)
}

// What a function cannot be.
func TestCreateFunctionRefuses(t *testing.T) {
	endpoint := startSlow(t)
	c := functionsClient(endpoint)
	const validation = "ValidationException"
	one := func(value, member, constraint string) string {
		return "1 validation error detected: Value '" + value + "' at '" + member + "' failed to satisfy constraint: " + constraint
	}
	many := map[string]string{}
	for i := range 51 {
		many[fmt.Sprint("k", i)] = ""
	}
	const environment = "Lambda was unable to configure your environment variables because the environment variables you have provided "
	for _, tc := range []struct {
		name, code, text string
		change           func(in *lambda.CreateFunctionInput)
	}{
		{
			"role", validation, one("r1", "role", `Member must satisfy regular expression pattern: arn:(aws[a-zA-Z-]*)?:iam::\d{12}:role/?[a-zA-Z_0-9+=,.@\-_/]+`),
			func(in *lambda.CreateFunctionInput) { in.Role = aws.String("r1") },
		},
		{
			"two at once", validation, "2 validation errors detected: Value '0' at 'timeout' failed to satisfy constraint: Member must have value " +
				"greater than or equal to 1; Value '127' at 'memorySize' failed to satisfy constraint: Member must have value greater than or equal to 128",
			func(in *lambda.CreateFunctionInput) { in.Timeout, in.MemorySize = aws.Int32(0), aws.Int32(127) },
		},
		{
			"timeout", validation, one("901", "timeout", "Member must have value less than or equal to 900"),
			func(in *lambda.CreateFunctionInput) { in.Timeout = aws.Int32(901) },
		},
		{
			"memory", invalidValue, "'MemorySize' value failed to satisfy constraint: Member must have value less than or equal to 10240",
			func(in *lambda.CreateFunctionInput) { in.MemorySize = aws.Int32(10241) },
		},
		{
			"storage", validation, one("511", "ephemeralStorage.size", "Member must have value greater than or equal to 512"),
			func(in *lambda.CreateFunctionInput) {
				in.EphemeralStorage = &types.EphemeralStorage{Size: aws.Int32(511)}
			},
		},
		{
			"description", validation, one(strings.Repeat("ü", 257)[:512]+"...", "description", "Member must have length less than or equal to 256"),
			func(in *lambda.CreateFunctionInput) { in.Description = aws.String(strings.Repeat("ü", 257)) },
		},
		{
			"handler", validation, one("a b", "handler", `Member must satisfy regular expression pattern: [^\s]+`),
			func(in *lambda.CreateFunctionInput) { in.Handler = aws.String("a b") },
		},
		{
			"package", validation, one("Tar", "packageType", "Member must satisfy enum value set: [Image, Zip]"),
			func(in *lambda.CreateFunctionInput) { in.PackageType = "Tar" },
		},
		{
			"architecture", validation, one("[s390]", "architectures", "Member must satisfy constraint: [Member must satisfy enum value set: [x86_64, arm64]]"),
			func(in *lambda.CreateFunctionInput) { in.Architectures = []types.Architecture{"s390"} },
		},
		{
			"architectures", validation, one("[x86_64, arm64]", "architectures", "Member must have length less than or equal to 1"),
			func(in *lambda.CreateFunctionInput) { in.Architectures = []types.Architecture{"x86_64", "arm64"} },
		},
		{
			"tracing", validation, one("Some", "tracingConfig.mode", "Member must satisfy enum value set: [Active, PassThrough]"),
			func(in *lambda.CreateFunctionInput) { in.TracingConfig = &types.TracingConfig{Mode: "Some"} },
		},
		{
			"log format", validation, one("XML", "loggingConfig.logFormat", "Member must satisfy enum value set: [JSON, Text]"),
			func(in *lambda.CreateFunctionInput) { in.LoggingConfig = &types.LoggingConfig{LogFormat: "XML"} },
		},
		{
			"log level", invalidValue, "To use ApplicationLogLevel or SystemLogLevel, you must set LogFormat to JSON.",
			func(in *lambda.CreateFunctionInput) { in.LoggingConfig = &types.LoggingConfig{SystemLogLevel: "WARN"} },
		},
		{
			"variable", validation, one("{1A=...}", "environment.variables", "Map keys must satisfy constraint: "+
				"[Member must satisfy regular expression pattern: [a-zA-Z]([a-zA-Z0-9_])+]"),
			func(in *lambda.CreateFunctionInput) {
				in.Environment = &types.Environment{Variables: map[string]string{"1A": "secret"}}
			},
		},
		{
			"reserved variables", invalidValue, environment + "contains reserved keys that are currently not supported for modification. " +
				"Reserved keys used in this request: AWS_REGION, LAMBDA_TASK_ROOT",
			func(in *lambda.CreateFunctionInput) {
				in.Environment = &types.Environment{Variables: map[string]string{"LAMBDA_TASK_ROOT": "", "AWS_REGION": "x"}}
			},
		},
		{
			"large variables", invalidValue, environment + `exceeded the 4KB limit. String measured: {"AA":"` + strings.Repeat("x", 4096) + `"}`,
			func(in *lambda.CreateFunctionInput) {
				in.Environment = &types.Environment{Variables: map[string]string{"AA": strings.Repeat("x", 4096)}}
			},
		},
		{
			"dead letters", invalidValue, "The dead-letter target " + functionARN("g") + " is neither a standard SQS queue nor a standard SNS topic.",
			func(in *lambda.CreateFunctionInput) {
				in.DeadLetterConfig = &types.DeadLetterConfig{TargetArn: aws.String(functionARN("g"))}
			},
		},
		{
			"no runtime", invalidValue, "Runtime and Handler are mandatory parameters for functions created with deployment packages.",
			func(in *lambda.CreateFunctionInput) { in.Runtime = "" },
		},
		{
			"no handler", invalidValue, "Runtime and Handler are mandatory parameters for functions created with deployment packages.",
			func(in *lambda.CreateFunctionInput) { in.Handler = nil },
		},
		{
			"unknown runtime", invalidValue, "Value cobol at 'runtime' failed to satisfy constraint: Member must satisfy enum value set: " +
				"[nodejs20.x, nodejs22.x, nodejs24.x, provided.al2, provided.al2023, python3.10, python3.11, python3.12, python3.13, python3.14, java8.al2, " +
				"java11, java17, java21, java25, dotnet8, dotnet10, ruby3.2, ruby3.3, ruby3.4, ruby4.0] or be a valid ARN",
			func(in *lambda.CreateFunctionInput) { in.Runtime = "cobol" },
		},
		{
			"withdrawn runtime", invalidValue, "The runtime parameter of nodejs12.x is no longer supported for creating or updating AWS Lambda " +
				"functions. We recommend you use a supported runtime while creating or updating functions.",
			func(in *lambda.CreateFunctionInput) { in.Runtime = types.RuntimeNodejs12x },
		},
		{
			"runtime of others", invalidValue, "The runtime java21 is not supported by this version, which runs provided.al2, provided.al2023, and " +
				"those of Node.js and Python.",
			func(in *lambda.CreateFunctionInput) { in.Runtime = types.RuntimeJava21 },
		},
		{
			"no zip", invalidValue, "Could not unzip uploaded file. Please check your file, then try to upload again.",
			func(in *lambda.CreateFunctionInput) { in.Code.ZipFile = []byte("PK") },
		},
		{
			"empty zip", invalidValue, "Uploaded file must be a non-empty zip",
			func(in *lambda.CreateFunctionInput) {
				in.Code.ZipFile = append([]byte("PK\x05\x06"), make([]byte, 18)...)
			},
		},
		{
			"climbing zip", invalidValue, "Could not unzip uploaded file. Please check your file, then try to upload again.",
			func(in *lambda.CreateFunctionInput) { in.Code.ZipFile = zipOf(t, "../bootstrap", "x") },
		},
		{
			"bomb", invalidValue, "Unzipped size must be smaller than 262144000 bytes",
			func(in *lambda.CreateFunctionInput) {
				in.Code.ZipFile = zipOf(t, "bootstrap", string(make([]byte, 262144001)))
			},
		},
		{
			"no code", invalidValue, "Please provide a source for function code.",
			func(in *lambda.CreateFunctionInput) { in.Code = &types.FunctionCode{} },
		},
		{
			"S3", invalidValue, "Code in S3 is not supported by this server, which is started without --artifacts-s3-endpoint. Send it in ZipFile.",
			func(in *lambda.CreateFunctionInput) {
				in.Code = &types.FunctionCode{S3Bucket: aws.String("bucket"), S3Key: aws.String("key")}
			},
		},
		{
			"an image", invalidValue, "This version does not run container images. An ImageUri of up to 2048 bytes that begins with http:// or " +
				"https:// names a function that runs elsewhere.",
			func(in *lambda.CreateFunctionInput) {
				in.PackageType, in.Runtime, in.Handler = types.PackageTypeImage, "", nil
				in.Code = &types.FunctionCode{ImageUri: aws.String("000000000000.dkr.ecr.us-east-1.amazonaws.com/f:latest")}
			},
		},
		{
			"tags", invalidValue, "Number of tags exceeds resource tag limit.",
			func(in *lambda.CreateFunctionInput) { in.Tags = many },
		},
		{
			"features", invalidValue, "Not supported by this version: FileSystemConfigs, ImageConfig, VpcConfig.",
			func(in *lambda.CreateFunctionInput) {
				in.FileSystemConfigs = []types.FileSystemConfig{{Arn: aws.String("a"), LocalMountPath: aws.String("/mnt/a")}}
				in.VpcConfig, in.ImageConfig = &types.VpcConfig{SubnetIds: []string{"s"}}, &types.ImageConfig{Command: []string{"c"}}
			},
		},
		{
			"snapshots", invalidValue, "Not supported by this version: SnapStart.",
			func(in *lambda.CreateFunctionInput) {
				in.SnapStart = &types.SnapStart{ApplyOn: types.SnapStartApplyOnPublishedVersions}
			},
		},
	} {
		in := functionInput(t, "f")
		tc.change(in)
		_, err := c.CreateFunction(t.Context(), in)
		t.Run(tc.name, func(t *testing.T) { refused(t, err, tc.code, 400, tc.text) })
	}
	in := functionInput(t, "f")
	in.CodeSigningConfigArn = aws.String("arn:aws:lambda:us-east-1:" + account + ":code-signing-config:csc-0123456789abcdef0")
	_, err := c.CreateFunction(t.Context(), in)
	refused(t, err, "CodeSigningConfigNotFoundException", 404,
		"The code signing configuration cannot be found. Check that the provided configuration is not deleted: "+*in.CodeSigningConfigArn)
	list := must(c.ListFunctions(t.Context(), &lambda.ListFunctionsInput{}))(t)
	equal(t, "functions", 0, len(list.Functions))
	settings := must(c.GetAccountSettings(t.Context(), &lambda.GetAccountSettingsInput{}))(t)
	equal(t, "usage", &types.AccountUsage{}, settings.AccountUsage)

	createFunction(t, endpoint, c, "f")
	_, err = c.UpdateFunctionConfiguration(t.Context(), &lambda.UpdateFunctionConfigurationInput{FunctionName: aws.String("f"), MemorySize: aws.Int32(10241)})
	refused(t, err, invalidValue, 400, "'MemorySize' value failed to satisfy constraint: Member must have value less than or equal to 10240")
	_, err = c.UpdateFunctionCode(t.Context(), &lambda.UpdateFunctionCodeInput{FunctionName: aws.String("f"), ImageUri: aws.String("http://x/")})
	refused(t, err, invalidValue, 400, "Please don't provide ImageUri when updating a function with packageType Zip.")
}

// An account's code has a limit, which versions count towards.
func TestCodeStorage(t *testing.T) {
	zip := zipOf(t, "bootstrap", noise(1000))
	endpoint := startWith(t, func(c *config.Config) {
		c.LambdaUpdateTime, c.LambdaCodeStorage = 1e9, int64(2*len(zip)+len(zip)/2)
	})
	c := functionsClient(endpoint)
	in := functionInput(t, "f")
	in.Code.ZipFile = zip
	must(c.CreateFunction(t.Context(), in))(t)
	completeFunctions(t, endpoint)
	must(c.PublishVersion(t.Context(), &lambda.PublishVersionInput{FunctionName: in.FunctionName}))(t)
	completeFunctions(t, endpoint)
	const text = "Code storage limit exceeded."
	full := functionInput(t, "g")
	full.Code.ZipFile = zip
	_, err := c.CreateFunction(t.Context(), full)
	refused(t, err, "CodeStorageExceededException", 400, text)
	_, err = c.UpdateFunctionCode(t.Context(), &lambda.UpdateFunctionCodeInput{FunctionName: in.FunctionName, ZipFile: zip})
	refused(t, err, "CodeStorageExceededException", 400, text)
	must(c.UpdateFunctionConfiguration(t.Context(), &lambda.UpdateFunctionConfigurationInput{FunctionName: in.FunctionName, Timeout: aws.Int32(9)}))(t)
	completeFunctions(t, endpoint)
	_, err = c.PublishVersion(t.Context(), &lambda.PublishVersionInput{FunctionName: in.FunctionName})
	refused(t, err, "CodeStorageExceededException", 400, text)
	must(c.DeleteFunction(t.Context(), &lambda.DeleteFunctionInput{FunctionName: in.FunctionName, Qualifier: aws.String("1")}))(t)
	must(c.CreateFunction(t.Context(), full))(t)
	settings := must(c.GetAccountSettings(t.Context(), &lambda.GetAccountSettingsInput{}))(t)
	equal(t, "usage", &types.AccountUsage{FunctionCount: 2, TotalCodeSize: int64(2 * len(zip))}, settings.AccountUsage)
}

// Errors on the wire, and what no SDK would send.
func TestFunctionsOnTheWire(t *testing.T) {
	endpoint := startSlow(t)
	createFunction(t, endpoint, functionsClient(endpoint), "f")
	call := func(method, path, body string) response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, endpoint+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r := do(t, req)
		if r.Header.Get("X-Amzn-Requestid") == "" {
			t.Errorf("%s %s: no request id", method, path)
		}
		return r
	}
	const functions = "/2015-03-31/functions"
	for _, tc := range []struct {
		method, path, body string
		status             int
		kind, answer       string
	}{
		{
			"GET", functions + "/none", "", 404, "ResourceNotFoundException",
			`{"Type":"User","Message":"Function not found: ` + functionARN("none") + `"}`,
		},
		{
			"POST", functions, "{}", 400, "ValidationException",
			`{"message":"3 validation errors detected: Value null at 'functionName' failed to satisfy constraint: Member must not be null; ` +
				`Value null at 'role' failed to satisfy constraint: Member must not be null; Value null at 'code' failed to satisfy constraint: Member must not be null"}`,
		},
		{
			"GET", functions + "?MaxItems=0", "", 400, "ValidationException",
			`{"message":"1 validation error detected: Value '0' at 'maxItems' failed to satisfy constraint: Member must have value greater than or equal to 1"}`,
		},
		{"POST", functions, "{", 400, "SerializationException", `{"Type":"User","message":"The request body is not valid JSON."}`},
		{
			"POST", functions, `{"FunctionName":1}`, 400, "SerializationException",
			`{"Type":"User","message":"NUMBER_VALUE can not be converted to a String"}`,
		},
		{
			"POST", functions, `{"FunctionName":"f","Role":"r","Code":{"ZipFile":"?"}}`, 400, "SerializationException",
			`{"Type":"User","message":"A blob is not valid base64."}`,
		},
		{
			"GET", functions + "?MaxItems=many", "", 400, "SerializationException",
			`{"Type":"User","message":"STRING_VALUE can not be converted to an Integer"}`,
		},
		{
			"GET", "/2024-08-31/functions/f/recursion-config", "", 404, "UnknownOperationException",
			`{"Type":"User","message":"Godwit has no operation of Lambda at GET /2024-08-31/functions/f/recursion-config."}`,
		},
		{
			"PATCH", functions + "/f", "", 404, "UnknownOperationException",
			`{"Type":"User","message":"Godwit has no operation of Lambda at PATCH /2015-03-31/functions/f."}`,
		},
	} {
		r := call(tc.method, tc.path, tc.body)
		if r.Status != tc.status || r.Header.Get("X-Amzn-Errortype") != tc.kind || r.Body != tc.answer || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %d %v\n%s\nwant\n%s", tc.method, tc.path, r.Status, r.Header, r.Body, tc.answer)
		}
	}
	// A slash at the end, and an ARN in the path, as older clients write them.
	equal(t, "a slash at the end", 200, call("GET", functions+"/", "").Status)
	equal(t, "an ARN", 200, call("GET", functions+"/"+strings.ReplaceAll(functionARN("f"), ":", "%3A"), "").Status)
	// What stands in the path does not come from the body.
	r := call("PUT", functions+"/f/configuration", `{"FunctionName":"g","Timeout":9}`)
	if r.Status != 200 || !strings.Contains(r.Body, `"FunctionName":"f"`) {
		t.Errorf("%d %s", r.Status, r.Body)
	}
	completeFunctions(t, endpoint)
	deleted := call("DELETE", functions+"/f", "")
	equal(t, "the answer to a deletion", "204 ", fmt.Sprint(deleted.Status, " ", deleted.Body))
}
