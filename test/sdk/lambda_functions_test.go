package sdk_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

func digest(zip []byte) *string {
	sum := sha256.Sum256(zip)
	return aws.String(base64.StdEncoding.EncodeToString(sum[:]))
}

// unnoted takes out of a configuration what differs from run to run, after a look
// at its form.
func unnoted(t *testing.T, revision, modified **string) {
	t.Helper()
	if !regexp.MustCompile(`^[0-9a-f-]{36}$`).MatchString(aws.ToString(*revision)) {
		t.Errorf("the revision is %q", aws.ToString(*revision))
	}
	if !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+0000$`).MatchString(aws.ToString(*modified)) {
		t.Errorf("the time of modification is %q", aws.ToString(*modified))
	}
	*revision, *modified = nil, nil
}

const creating = "The function is being created."

// A function goes from Pending to Active, and what is shown of it has all that its
// creator said, and the defaults of the rest.
func TestCreateFunction(t *testing.T) {
	endpoint := startSlow(t)
	c := functionsClient(endpoint)
	in := functionInput(t, "f")
	created := must(c.CreateFunction(t.Context(), in))(t)
	revision := *created.RevisionId
	want := lambda.CreateFunctionOutput{
		FunctionName: aws.String("f"), FunctionArn: aws.String(functionARN("f")), Runtime: types.RuntimeProvidedal2023,
		Role: aws.String(roleARN), Handler: aws.String("bootstrap"), CodeSize: int64(len(in.Code.ZipFile)), CodeSha256: digest(in.Code.ZipFile),
		Description: aws.String(""), Timeout: aws.Int32(3), MemorySize: aws.Int32(128), Version: aws.String("$LATEST"),
		PackageType: types.PackageTypeZip, Architectures: []types.Architecture{types.ArchitectureX8664},
		TracingConfig: &types.TracingConfigResponse{Mode: types.TracingModePassThrough}, EphemeralStorage: &types.EphemeralStorage{Size: aws.Int32(512)},
		SnapStart:     &types.SnapStartResponse{ApplyOn: types.SnapStartApplyOnNone, OptimizationStatus: types.SnapStartOptimizationStatusOff},
		LoggingConfig: &types.LoggingConfig{LogFormat: types.LogFormatText, LogGroup: aws.String("/aws/lambda/f")},
		State:         types.StatePending, StateReason: aws.String(creating), StateReasonCode: types.StateReasonCodeCreating,
		RuntimeVersionConfig: runtimeOf(types.RuntimeProvidedal2023),
	}
	unnoted(t, &created.RevisionId, &created.LastModified)
	equal(t, "the new function", &want, created)
	completeFunctions(t, endpoint)
	shown := configuration(t, c, "f")
	if *shown.RevisionId == revision {
		t.Error("the revision is the same once the function is active")
	}
	unnoted(t, &shown.RevisionId, &shown.LastModified)
	want.State, want.StateReason, want.StateReasonCode = types.StateActive, nil, ""
	want.LastUpdateStatus = types.LastUpdateStatusSuccessful
	shown.ResultMetadata = created.ResultMetadata
	asShown := lambda.GetFunctionConfigurationOutput(want)
	asShown.ResultMetadata = created.ResultMetadata
	equal(t, "the active function", &asShown, shown)
}

func TestCreateFunctionWithEverything(t *testing.T) {
	endpoint := startSlow(t)
	c := functionsClient(endpoint)
	in := functionInput(t, "f")
	in.Description, in.Timeout, in.MemorySize = aws.String("what it does"), aws.Int32(900), aws.Int32(10240)
	in.Environment = &types.Environment{Variables: map[string]string{"A1": "1", "Bee": `"two"`}}
	in.DeadLetterConfig = &types.DeadLetterConfig{TargetArn: aws.String(queueARN("dead"))}
	in.TracingConfig = &types.TracingConfig{Mode: types.TracingModeActive}
	in.Tags = map[string]string{"team": "birds"}
	in.Architectures = []types.Architecture{types.ArchitectureArm64}
	in.EphemeralStorage = &types.EphemeralStorage{Size: aws.Int32(10240)}
	in.LoggingConfig = &types.LoggingConfig{
		LogFormat: types.LogFormatJson, LogGroup: aws.String("/birds"), ApplicationLogLevel: types.ApplicationLogLevelWarn,
	}
	in.VpcConfig, in.Layers, in.KMSKeyArn = &types.VpcConfig{}, []string{}, aws.String("") // as if they were not there
	in.SnapStart = &types.SnapStart{ApplyOn: types.SnapStartApplyOnNone}
	in.Publish = true
	created := must(c.CreateFunction(t.Context(), in))(t)
	equal(t, "the published version", functionARN("f")+" 1 Pending", fmt.Sprint(*created.FunctionArn, " ", *created.Version, " ", created.State))
	completeFunctions(t, endpoint)
	for _, version := range []string{"$LATEST", "1"} {
		got := must(c.GetFunction(t.Context(), &lambda.GetFunctionInput{FunctionName: in.FunctionName, Qualifier: &version}))(t)
		unnoted(t, &got.Configuration.RevisionId, &got.Configuration.LastModified)
		equal(t, "version "+version, &types.FunctionConfiguration{
			FunctionName: aws.String("f"), FunctionArn: aws.String(functionARN("f") + ":" + version), Runtime: types.RuntimeProvidedal2023,
			Role: aws.String(roleARN), Handler: aws.String("bootstrap"), CodeSize: int64(len(in.Code.ZipFile)), CodeSha256: digest(in.Code.ZipFile),
			Description: in.Description, Timeout: in.Timeout, MemorySize: in.MemorySize, Version: &version, PackageType: types.PackageTypeZip,
			Architectures: in.Architectures, TracingConfig: &types.TracingConfigResponse{Mode: types.TracingModeActive},
			EphemeralStorage: in.EphemeralStorage, DeadLetterConfig: in.DeadLetterConfig,
			Environment: &types.EnvironmentResponse{Variables: in.Environment.Variables},
			SnapStart:   &types.SnapStartResponse{ApplyOn: types.SnapStartApplyOnNone, OptimizationStatus: types.SnapStartOptimizationStatusOff},
			LoggingConfig: &types.LoggingConfig{
				LogFormat: types.LogFormatJson, LogGroup: aws.String("/birds"),
				ApplicationLogLevel: types.ApplicationLogLevelWarn, SystemLogLevel: types.SystemLogLevelInfo,
			},
			State: types.StateActive, LastUpdateStatus: types.LastUpdateStatusSuccessful,
			RuntimeVersionConfig: runtimeOf(types.RuntimeProvidedal2023),
		}, got.Configuration)
		equal(t, "tags", in.Tags, got.Tags)
	}
}

// GetFunction reports where the code is, and it can be had there for ten minutes
// without credentials.
func TestCodeCanBeDownloaded(t *testing.T) {
	endpoint := startSlow(t)
	c := functionsClient(endpoint)
	in := functionInput(t, "f")
	in.Code.ZipFile = zipOf(t, "bootstrap", strings.Repeat("#", 3<<20), "noise", noise(3<<20))
	must(c.CreateFunction(t.Context(), in))(t)
	completeFunctions(t, endpoint)
	got := must(c.GetFunction(t.Context(), &lambda.GetFunctionInput{FunctionName: in.FunctionName}))(t)
	equal(t, "the kind of place", "S3", *got.Code.RepositoryType)
	location := *got.Code.Location
	if r := fetch(t, location); r.Status != 200 || !bytes.Equal([]byte(r.Body), in.Code.ZipFile) || r.Header.Get("Content-Type") != "application/zip" {
		t.Errorf("%s: %d, %d bytes, %v", location, r.Status, len(r.Body), r.Header)
	}
	link := must(url.Parse(location))(t)
	token := link.Query().Get("token")
	for name, changed := range map[string]string{"none": "", "cut": token[:len(token)-4], "other": strings.ToLower(token), "no token": "a b"} {
		if r := fetch(t, endpoint+link.Path+"?token="+url.QueryEscape(changed)); r.Status != 403 {
			t.Errorf("%s: %d %s", name, r.Status, r.Body)
		}
	}
	advance(t, endpoint, "9m59s")
	equal(t, "before it expires", 200, fetch(t, location).Status)
	advance(t, endpoint, "1s")
	equal(t, "when it has expired", 403, fetch(t, location).Status)
	location = *must(c.GetFunction(t.Context(), &lambda.GetFunctionInput{FunctionName: in.FunctionName}))(t).Code.Location
	must(c.DeleteFunction(t.Context(), &lambda.DeleteFunctionInput{FunctionName: in.FunctionName}))(t)
	equal(t, "of a deleted function", 404, fetch(t, location).Status)
}

// noise is text that hardly gets smaller.
func noise(n int) string {
	var out strings.Builder
	for i := 0; out.Len() < n; i++ {
		sum := sha256.Sum256(fmt.Append(nil, i))
		out.Write(sum[:])
	}
	return out.String()[:n]
}

// The largest zip is taken, and a larger one or a larger request is not.
func TestLargestCode(t *testing.T) {
	const most = 50 << 20
	c := functionsClient(start(t))
	in := functionInput(t, "f")
	zip := zipOf(t, "bootstrap", "x")
	// Zips may have anything in front: what counts is at their end.
	in.Code.ZipFile = append(bytes.Repeat([]byte{7}, most-len(zip)), zip...)
	created := must(c.CreateFunction(t.Context(), in))(t)
	equal(t, "the size", int64(most), created.CodeSize)
	in = functionInput(t, "g")
	in.Code.ZipFile = append(bytes.Repeat([]byte{7}, most-len(zip)+1), zip...)
	_, err := c.CreateFunction(t.Context(), in)
	refused(t, err, "RequestEntityTooLargeException", 413, "Zipped size must be smaller than 52428800 bytes")
	in.Code.ZipFile = bytes.Repeat([]byte{7}, most*21/20)
	_, err = c.CreateFunction(t.Context(), in)
	refused(t, err, "RequestEntityTooLargeException", 413, "Request must be smaller than 70167211 bytes for the CreateFunction operation")
}

// A function that runs elsewhere has a URL instead of code.
func TestRemoteFunction(t *testing.T) {
	endpoint := startSlow(t)
	c := functionsClient(endpoint)
	in := functionInput(t, "f")
	in.PackageType, in.Runtime, in.Handler = types.PackageTypeImage, "", nil
	in.Code = &types.FunctionCode{ImageUri: aws.String("http://127.0.0.1:9000/")}
	created := must(c.CreateFunction(t.Context(), in))(t)
	equal(t, "kind, size and digest", "Image 0 ", fmt.Sprint(created.PackageType, " ", created.CodeSize, " ", aws.ToString(created.CodeSha256)))
	completeFunctions(t, endpoint)
	got := must(c.GetFunction(t.Context(), &lambda.GetFunctionInput{FunctionName: in.FunctionName}))(t)
	equal(t, "where it is", &types.FunctionCodeLocation{
		RepositoryType: aws.String("ECR"), ImageUri: in.Code.ImageUri, ResolvedImageUri: in.Code.ImageUri,
	}, got.Code)
	must(c.UpdateFunctionCode(t.Context(), &lambda.UpdateFunctionCodeInput{FunctionName: in.FunctionName, ImageUri: aws.String("https://functions.example/f")}))(t)
	_, err := c.UpdateFunctionCode(t.Context(), &lambda.UpdateFunctionCodeInput{FunctionName: in.FunctionName, ZipFile: zipOf(t, "bootstrap", "#!/bin/sh")})
	refused(t, err, invalidValue, 400, "Please provide ImageUri when updating a function with packageType Image.")
	completeFunctions(t, endpoint)
	_, err = c.UpdateFunctionConfiguration(t.Context(), &lambda.UpdateFunctionConfigurationInput{FunctionName: in.FunctionName, Handler: aws.String("h")})
	refused(t, err, invalidValue, 400, "Please don't provide handler or runtime or layer when the package type is Image.")
}

// An update answers what it leads to, shows that until it is over, and then has a
// new revision.
func TestUpdateFunction(t *testing.T) {
	endpoint := startSlow(t)
	c := functionsClient(endpoint)
	createFunction(t, endpoint, c, "f")
	before := configuration(t, c, "f")
	second := zipOf(t, "bootstrap", "second")
	updated := must(c.UpdateFunctionCode(t.Context(), &lambda.UpdateFunctionCodeInput{
		FunctionName: aws.String("f"), ZipFile: second, RevisionId: before.RevisionId, Architectures: []types.Architecture{types.ArchitectureArm64},
	}))(t)
	equal(t, "the state", "Active InProgress "+creating+" Creating", fmt.Sprint(updated.State, " ", updated.LastUpdateStatus, " ",
		*updated.LastUpdateStatusReason, " ", updated.LastUpdateStatusReasonCode))
	equal(t, "the digest", digest(second), updated.CodeSha256)
	completeFunctions(t, endpoint)
	after := configuration(t, c, "f")
	equal(t, "the state afterwards", "Active Successful arm64", fmt.Sprint(after.State, " ", after.LastUpdateStatus, " ", after.Architectures[0]))
	if *after.RevisionId == *updated.RevisionId || *updated.RevisionId == *before.RevisionId {
		t.Error("a revision stayed the same")
	}

	updatedConfiguration := must(c.UpdateFunctionConfiguration(t.Context(), &lambda.UpdateFunctionConfigurationInput{
		FunctionName: aws.String(functionARN("f")), RevisionId: after.RevisionId, Description: aws.String("d"), Timeout: aws.Int32(5),
		MemorySize: aws.Int32(256), Handler: aws.String("other"), Runtime: types.RuntimeProvidedal2, Role: aws.String(roleARN + "2"),
		Environment:      &types.Environment{Variables: map[string]string{"A1": "1"}},
		DeadLetterConfig: &types.DeadLetterConfig{TargetArn: aws.String(topicARN("dead"))},
		LoggingConfig:    &types.LoggingConfig{LogGroup: aws.String("g")},
	}))(t)
	equal(t, "the state", types.LastUpdateStatusInProgress, updatedConfiguration.LastUpdateStatus)
	completeFunctions(t, endpoint)
	got := configuration(t, c, "f")
	equal(t, "what is changed", "d 5 256 other provided.al2 "+roleARN+"2 map[A1:1] "+topicARN("dead")+" g arm64",
		fmt.Sprint(*got.Description, " ", *got.Timeout, " ", *got.MemorySize, " ", *got.Handler, " ", got.Runtime, " ", *got.Role, " ",
			got.Environment.Variables, " ", *got.DeadLetterConfig.TargetArn, " ", *got.LoggingConfig.LogGroup, " ", got.Architectures[0]))
	must(c.UpdateFunctionConfiguration(t.Context(), &lambda.UpdateFunctionConfigurationInput{
		FunctionName: aws.String("f"), Environment: &types.Environment{Variables: map[string]string{}},
		DeadLetterConfig: &types.DeadLetterConfig{TargetArn: aws.String("")},
	}))(t)
	completeFunctions(t, endpoint)
	if got := configuration(t, c, "f"); got.Environment == nil || len(got.Environment.Variables) != 0 || got.DeadLetterConfig != nil || *got.Timeout != 5 {
		t.Errorf("after clearing: %+v, %+v, timeout %d", got.Environment, got.DeadLetterConfig, *got.Timeout)
	}
	// A dry run says what would be, and changes nothing.
	third := zipOf(t, "bootstrap", "third")
	dry := must(c.UpdateFunctionCode(t.Context(), &lambda.UpdateFunctionCodeInput{FunctionName: aws.String("f"), ZipFile: third, DryRun: true}))(t)
	equal(t, "the digest of a dry run", digest(third), dry.CodeSha256)
	equal(t, "the digest after it", digest(second), configuration(t, c, "f").CodeSha256)
}

// While a function is being created or updated, nothing else changes it.
func TestOneUpdateAtATime(t *testing.T) {
	endpoint := startSlow(t)
	c := functionsClient(endpoint)
	must(c.CreateFunction(t.Context(), functionInput(t, "f")))(t)
	name := aws.String("f")
	updates := func(text string) {
		t.Helper()
		_, err := c.UpdateFunctionCode(t.Context(), &lambda.UpdateFunctionCodeInput{FunctionName: name, ZipFile: zipOf(t, "bootstrap", "#!/bin/sh")})
		refused(t, err, "ResourceConflictException", 409, text)
		_, err = c.UpdateFunctionConfiguration(t.Context(), &lambda.UpdateFunctionConfigurationInput{FunctionName: name, Timeout: aws.Int32(9)})
		refused(t, err, "ResourceConflictException", 409, text)
		_, err = c.PublishVersion(t.Context(), &lambda.PublishVersionInput{FunctionName: name})
		refused(t, err, "ResourceConflictException", 409, text)
	}
	updates("The operation cannot be performed at this time. The function is currently in the following state: Pending")
	completeFunctions(t, endpoint)
	must(c.UpdateFunctionConfiguration(t.Context(), &lambda.UpdateFunctionConfigurationInput{FunctionName: name, Timeout: aws.Int32(4)}))(t)
	updates("The operation cannot be performed at this time. An update is in progress for resource: " + functionARN("f"))
	completeFunctions(t, endpoint)
	equal(t, "the timeout", int32(4), *configuration(t, c, "f").Timeout)
	_, err := c.CreateFunction(t.Context(), functionInput(t, "f"))
	refused(t, err, "ResourceConflictException", 409, "Function already exist: f")
}

func TestListFunctions(t *testing.T) {
	endpoint := startSlow(t)
	c := functionsClient(endpoint)
	var want []string
	for i := range 53 {
		in := functionInput(t, fmt.Sprintf("f%02d", i))
		in.Publish = i == 7
		must(c.CreateFunction(t.Context(), in))(t)
		want = append(want, *in.FunctionName)
	}
	must(functionsClientOf(endpoint, "eu-west-1", "test").CreateFunction(t.Context(), functionInput(t, "f00")))(t)
	others := functionInput(t, "f00")
	others.Role = aws.String(strings.Replace(*others.Role, account, "111122223333", 1)) // nobody may pass another account's
	must(functionsClientOf(endpoint, region, "111122223333").CreateFunction(t.Context(), others))(t)
	list := func(in lambda.ListFunctionsInput) (pages []int, names []string) {
		t.Helper()
		for {
			out := must(c.ListFunctions(t.Context(), &in))(t)
			pages = append(pages, len(out.Functions))
			for _, f := range out.Functions {
				if f.State != "" || f.LastUpdateStatus != "" {
					t.Errorf("the list shows the state of %s", *f.FunctionArn)
				}
				names = append(names, strings.TrimPrefix(*f.FunctionArn, functionARN("")))
			}
			if in.Marker = out.NextMarker; in.Marker == nil {
				return pages, names
			}
		}
	}
	pages, names := list(lambda.ListFunctionsInput{})
	equal(t, "the pages", []int{50, 3}, pages)
	equal(t, "the functions", want, names)
	pages, names = list(lambda.ListFunctionsInput{MaxItems: aws.Int32(10000), MasterRegion: aws.String("ALL")})
	equal(t, "the pages of many", []int{50, 3}, pages)
	equal(t, "the functions", want, names)
	pages, names = list(lambda.ListFunctionsInput{MaxItems: aws.Int32(20), FunctionVersion: types.FunctionVersionAll})
	equal(t, "the pages of versions", []int{20, 20, 14}, pages)
	var versions []string
	for _, name := range want {
		versions = append(versions, name+":$LATEST")
		if name == "f07" {
			versions = append(versions, name+":1")
		}
	}
	equal(t, "the versions", versions, names)
	_, err := c.ListFunctions(t.Context(), &lambda.ListFunctionsInput{Marker: aws.String("x")})
	refused(t, err, invalidValue, 400, "The Marker is not valid.")
	_, err = c.ListFunctions(t.Context(), &lambda.ListFunctionsInput{MaxItems: aws.Int32(0)})
	refused(t, err, "ValidationException", 400,
		"1 validation error detected: Value '0' at 'maxItems' failed to satisfy constraint: Member must have value greater than or equal to 1")
}

func TestDeleteFunction(t *testing.T) {
	endpoint := startSlow(t)
	c := functionsClient(endpoint)
	in := functionInput(t, "f")
	in.Publish = true
	must(c.CreateFunction(t.Context(), in))(t)
	completeFunctions(t, endpoint)
	must(c.CreateAlias(t.Context(), &lambda.CreateAliasInput{FunctionName: in.FunctionName, Name: aws.String("live"), FunctionVersion: aws.String("1")}))(t)
	remove := func(qualifier string) error {
		_, err := c.DeleteFunction(t.Context(), &lambda.DeleteFunctionInput{FunctionName: in.FunctionName, Qualifier: &qualifier})
		return err
	}
	refused(t, remove("1"), "ResourceConflictException", 409, "Unable to delete version because the following aliases reference it: [live]")
	must(c.CreateAlias(t.Context(), &lambda.CreateAliasInput{FunctionName: in.FunctionName, Name: aws.String("beta"), FunctionVersion: aws.String("1")}))(t)
	refused(t, remove("1"), "ResourceConflictException", 409, "Unable to delete version because the following aliases reference it: [beta, live]")
	must(c.DeleteAlias(t.Context(), &lambda.DeleteAliasInput{FunctionName: in.FunctionName, Name: aws.String("beta")}))(t)
	refused(t, remove("$LATEST"), invalidValue, 400, "$LATEST version cannot be deleted without deleting the function.")
	refused(t, remove("live"), invalidValue, 400, "Deletion of aliases is not currently supported.")
	must(c.DeleteAlias(t.Context(), &lambda.DeleteAliasInput{FunctionName: in.FunctionName, Name: aws.String("live")}))(t)
	if err := remove("1"); err != nil {
		t.Error(err)
	}
	if err := remove("1"); err != nil { // that is not there is as good
		t.Error(err)
	}
	_, err := c.GetFunction(t.Context(), &lambda.GetFunctionInput{FunctionName: in.FunctionName, Qualifier: aws.String("1")})
	refused(t, err, notFound, 404, "Function not found: "+functionARN("f")+":1")
	out := must(c.DeleteFunction(t.Context(), &lambda.DeleteFunctionInput{FunctionName: in.FunctionName}))(t)
	equal(t, "the status", int32(204), out.StatusCode)
	_, err = c.GetFunctionConfiguration(t.Context(), &lambda.GetFunctionConfigurationInput{FunctionName: in.FunctionName})
	refused(t, err, notFound, 404, "Function not found: "+functionARN("f"))
	// A new one of the name has nothing of the old one's, and numbers that it did not have.
	createFunction(t, endpoint, c, "f")
	published := must(c.PublishVersion(t.Context(), &lambda.PublishVersionInput{FunctionName: in.FunctionName}))(t)
	equal(t, "the next version", "2", *published.Version)
}

const (
	invalidValue = "InvalidParameterValueException"
	notFound     = "ResourceNotFoundException"
)
