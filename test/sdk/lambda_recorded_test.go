package sdk_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// lambdaJSON sends a request to Lambda and reads the answer as it is on the wire.
func lambdaJSON(t *testing.T, endpoint, method, path, body string) (status int, answer map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, endpoint+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r := do(t, req)
	if err := json.Unmarshal([]byte(r.Body), &answer); err != nil && r.Body != "" {
		t.Fatalf("%s %s: %s: %v", method, path, r.Body, err)
	}
	return r.Status, answer
}

const functionsPath = "/2015-03-31/functions"

// The version of the runtime is shown for one function, and not in lists.
func TestRuntimeVersion(t *testing.T) {
	endpoint := startSlow(t)
	c := functionsClient(endpoint)
	ctx, name := t.Context(), aws.String("f")
	in := functionInput(t, "f")
	var seen []*types.RuntimeVersionConfig
	created := must(c.CreateFunction(ctx, in))(t)
	completeFunctions(t, endpoint)
	updated := must(c.UpdateFunctionCode(ctx, &lambda.UpdateFunctionCodeInput{FunctionName: name, ZipFile: in.Code.ZipFile}))(t)
	completeFunctions(t, endpoint)
	configured := must(c.UpdateFunctionConfiguration(ctx, &lambda.UpdateFunctionConfigurationInput{FunctionName: name, Timeout: aws.Int32(9)}))(t)
	completeFunctions(t, endpoint)
	published := must(c.PublishVersion(ctx, &lambda.PublishVersionInput{FunctionName: name}))(t)
	got := must(c.GetFunction(ctx, &lambda.GetFunctionInput{FunctionName: name}))(t)
	seen = append(seen, created.RuntimeVersionConfig, updated.RuntimeVersionConfig, configured.RuntimeVersionConfig, published.RuntimeVersionConfig,
		got.Configuration.RuntimeVersionConfig, configuration(t, c, "f").RuntimeVersionConfig)
	form := regexp.MustCompile(`^arn:aws:lambda:us-east-1::runtime:[0-9a-f]{64}$`)
	for i, v := range seen {
		if v == nil || !form.MatchString(aws.ToString(v.RuntimeVersionArn)) || *v.RuntimeVersionArn != *seen[0].RuntimeVersionArn {
			t.Errorf("answer %d has %+v", i, v)
		}
	}
	other := functionInput(t, "g")
	other.Runtime = types.RuntimeProvidedal2
	if v := must(c.CreateFunction(ctx, other))(t).RuntimeVersionConfig; *v.RuntimeVersionArn == *seen[0].RuntimeVersionArn {
		t.Error("another runtime has the same version")
	}
	far := functionsClientOf(endpoint, "eu-west-1", "test")
	if v := must(far.CreateFunction(ctx, in))(t).RuntimeVersionConfig; !strings.HasPrefix(*v.RuntimeVersionArn, "arn:aws:lambda:eu-west-1::runtime:") {
		t.Errorf("in another region it is %s", *v.RuntimeVersionArn)
	}
	remote := functionInput(t, "r")
	remote.PackageType, remote.Runtime, remote.Handler = types.PackageTypeImage, "", nil
	remote.Code = &types.FunctionCode{ImageUri: aws.String("http://127.0.0.1:9000/")}
	if v := must(c.CreateFunction(ctx, remote))(t).RuntimeVersionConfig; v != nil {
		t.Errorf("a remote function has %s", *v.RuntimeVersionArn)
	}
	for _, path := range []string{functionsPath + "/", functionsPath + "/f/versions"} {
		_, list := lambdaJSON(t, endpoint, http.MethodGet, path, "")
		for _, entries := range list {
			for _, entry := range entries.([]any) {
				for _, member := range []string{"RuntimeVersionConfig", "State", "StateReason", "StateReasonCode", "LastUpdateStatus"} {
					if v, ok := entry.(map[string]any)[member]; ok {
						t.Errorf("%s has %s: %v", path, member, v)
					}
				}
			}
		}
	}
}

// An environment without variables is one, also after a restart; none is none.
func TestEmptyEnvironment(t *testing.T) {
	endpoint := start(t)
	c := functionsClient(endpoint)
	in := functionInput(t, "none")
	must(c.CreateFunction(t.Context(), in))(t)
	in = functionInput(t, "empty")
	in.Environment = &types.Environment{Variables: map[string]string{}}
	created := must(c.CreateFunction(t.Context(), in))(t)
	if created.Environment == nil || created.Environment.Variables == nil {
		t.Errorf("created with %+v", created.Environment)
	}
	wire := func(path string) any {
		t.Helper()
		_, got := lambdaJSON(t, endpoint, http.MethodGet, functionsPath+path, "")
		return got["Environment"]
	}
	empty := map[string]any{"Variables": map[string]any{}}
	equal(t, "without", nil, wire("/none/configuration"))
	equal(t, "with none in it", any(empty), wire("/empty/configuration"))
	_, list := lambdaJSON(t, endpoint, http.MethodGet, functionsPath+"/", "")
	equal(t, "in the list", any(empty), list["Functions"].([]any)[0].(map[string]any)["Environment"])
	must(c.UpdateFunctionConfiguration(t.Context(), &lambda.UpdateFunctionConfigurationInput{FunctionName: aws.String("empty"), Timeout: aws.Int32(9)}))(t)
	must(c.UpdateFunctionConfiguration(t.Context(), &lambda.UpdateFunctionConfigurationInput{
		FunctionName: aws.String("none"), Environment: &types.Environment{Variables: map[string]string{}},
	}))(t)
	equal(t, "after an update of other things", any(empty), wire("/empty/configuration"))
	equal(t, "after an update to none", any(empty), wire("/none/configuration"))
}

// GetFunction has no tags where there are none, nor any more.
func TestGetFunctionWithoutTags(t *testing.T) {
	endpoint := start(t)
	c := functionsClient(endpoint)
	must(c.CreateFunction(t.Context(), functionInput(t, "f")))(t)
	arn := aws.String(functionARN("f"))
	without := func(what string) {
		t.Helper()
		_, got := lambdaJSON(t, endpoint, http.MethodGet, functionsPath+"/f", "")
		if tags, ok := got["Tags"]; ok {
			t.Errorf("%s: %v", what, tags)
		}
	}
	without("a new function")
	must(c.TagResource(t.Context(), &lambda.TagResourceInput{Resource: arn, Tags: map[string]string{"k": "v"}}))(t)
	must(c.UntagResource(t.Context(), &lambda.UntagResourceInput{Resource: arn, TagKeys: []string{"k"}}))(t)
	without("without its last tag")
	_, tags := lambdaJSON(t, endpoint, http.MethodGet, "/2017-03-31/tags/"+strings.ReplaceAll(*arn, ":", "%3A"), "")
	equal(t, "ListTags", map[string]any{"Tags": map[string]any{}}, tags)
}

// A version's revision is for good. Those of the latest one follow what is done with
// it, publishing included, but not aliases.
func TestRevisions(t *testing.T) {
	endpoint := startSlow(t)
	c := functionsClient(endpoint)
	in := functionInput(t, "f")
	in.Publish = true
	ctx, name := t.Context(), in.FunctionName
	created := must(c.CreateFunction(ctx, in))(t)
	equal(t, "what creation published", functionARN("f")+" 1 Pending", fmt.Sprint(*created.FunctionArn, " ", *created.Version, " ", created.State))
	equal(t, "version 1 when it is pending", *created.RevisionId, *configuration(t, c, "f:1").RevisionId)
	seen := map[string]string{}
	fresh := func(what string) {
		t.Helper()
		id := *configuration(t, c, "f").RevisionId
		if before, ok := seen[id]; ok {
			t.Errorf("the revision %s is that %s", what, before)
		}
		seen[id] = what
	}
	fresh("at its creation")
	completeFunctions(t, endpoint)
	fresh("once it is active")
	equal(t, "version 1 when it is active", *created.RevisionId, *configuration(t, c, "f:1").RevisionId)
	must(c.UpdateFunctionConfiguration(ctx, &lambda.UpdateFunctionConfigurationInput{FunctionName: name, Description: aws.String("x")}))(t)
	fresh("in an update")
	completeFunctions(t, endpoint)
	fresh("after an update")
	second := must(c.PublishVersion(ctx, &lambda.PublishVersionInput{FunctionName: name}))(t)
	equal(t, "what is published of an active function", functionARN("f")+":2 Active Successful", fmt.Sprint(*second.FunctionArn, " ", second.State, " ",
		second.LastUpdateStatus))
	if second.StateReason != nil {
		t.Errorf("it is active because %s", *second.StateReason)
	}
	fresh("after publishing")
	before := *configuration(t, c, "f").RevisionId
	must(c.CreateAlias(ctx, &lambda.CreateAliasInput{FunctionName: name, Name: aws.String("live"), FunctionVersion: aws.String("2")}))(t)
	must(c.PublishVersion(ctx, &lambda.PublishVersionInput{FunctionName: name}))(t) // the same again
	equal(t, "after an alias", before, *configuration(t, c, "f").RevisionId)
	third := must(c.UpdateFunctionCode(ctx, &lambda.UpdateFunctionCodeInput{FunctionName: name, ZipFile: in.Code.ZipFile, Publish: true}))(t)
	equal(t, "what an update published", functionARN("f")+":3 Pending Creating ", fmt.Sprint(*third.FunctionArn, " ", third.State, " ",
		third.StateReasonCode, " ", third.LastUpdateStatus))
	completeFunctions(t, endpoint)
	fresh("after an update that published")
	must(c.TagResource(ctx, &lambda.TagResourceInput{Resource: created.FunctionArn, Tags: map[string]string{"k": "v"}}))(t)
	fresh("with a tag")
	must(c.UntagResource(ctx, &lambda.UntagResourceInput{Resource: created.FunctionArn, TagKeys: []string{"k"}}))(t)
	fresh("without the tag")
	equal(t, "version 2", *second.RevisionId, *configuration(t, c, "f:2").RevisionId)
	equal(t, "version 3", *third.RevisionId, *configuration(t, c, "f:3").RevisionId)
}

// Every update makes the latest version one that can be published, whatever it was.
func TestPublishAfterAnyUpdate(t *testing.T) {
	endpoint := start(t)
	c := functionsClient(endpoint)
	ctx, name := t.Context(), aws.String("f")
	in := functionInput(t, "f")
	in.Publish = true
	must(c.CreateFunction(ctx, in))(t)
	publish := func(description string) string {
		t.Helper()
		in := &lambda.PublishVersionInput{FunctionName: name}
		if description != "" {
			in.Description = &description
		}
		out := must(c.PublishVersion(ctx, in))(t)
		return *out.Version + " " + *out.Description
	}
	update := func(zip []byte, publish bool) string {
		t.Helper()
		return *must(c.UpdateFunctionCode(ctx, &lambda.UpdateFunctionCodeInput{FunctionName: name, ZipFile: zip, Publish: publish}))(t).FunctionArn
	}
	equal(t, "unchanged since its creation", "1 ", publish("other"))
	other := zipOf(t, "bootstrap", "second")
	equal(t, "new code, published", functionARN("f")+":2", update(other, true))
	update(other, false)
	equal(t, "the same code", "3 ", publish(""))
	equal(t, "unchanged", "3 ", publish("other"))
	equal(t, "the same code, published", functionARN("f")+":4", update(other, true))
	equal(t, "unchanged", "4 ", publish(""))
	must(c.UpdateFunctionConfiguration(ctx, &lambda.UpdateFunctionConfigurationInput{FunctionName: name, Description: aws.String("x")}))(t)
	equal(t, "another description", "5 x", publish(""))
	equal(t, "unchanged, whatever its description", "5 x", publish("y"))
}

// The update of a function that is being updated is refused, and it says so until it
// is over.
func TestUpdateInProgress(t *testing.T) {
	endpoint := startSlow(t)
	c := functionsClient(endpoint)
	createFunction(t, endpoint, c, "f")
	code := &lambda.UpdateFunctionCodeInput{FunctionName: aws.String("f"), ZipFile: zipOf(t, "bootstrap", "second")}
	updated := must(c.UpdateFunctionCode(t.Context(), code))(t)
	for what, got := range map[string][]any{
		"the answer": {updated.LastUpdateStatus, *updated.LastUpdateStatusReason, updated.LastUpdateStatusReasonCode},
		"the next": func() []any {
			got := must(c.GetFunction(t.Context(), &lambda.GetFunctionInput{FunctionName: aws.String("f")}))(t).Configuration
			return []any{got.LastUpdateStatus, *got.LastUpdateStatusReason, got.LastUpdateStatusReasonCode}
		}(),
	} {
		equal(t, what, fmt.Sprint("InProgress ", creating, " Creating"), strings.Trim(fmt.Sprint(got), "[]"))
	}
	_, err := c.UpdateFunctionCode(t.Context(), code)
	refused(t, err, "ResourceConflictException", 409,
		"The operation cannot be performed at this time. An update is in progress for resource: "+functionARN("f"))
}

// The patterns that a refusal names, and what they let through.
func TestNamePatterns(t *testing.T) {
	endpoint := start(t)
	c := functionsClient(endpoint)
	must(c.CreateFunction(t.Context(), functionInput(t, "f")))(t)
	const start = `1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: Member must satisfy regular expression pattern: %s`
	const before = `(arn:(aws[a-zA-Z-]*)?:lambda:)?((eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\d{1}:)?(\d{12}:)?(function:)?`
	in := functionInput(t, "no name")
	_, err := c.CreateFunction(t.Context(), in)
	refused(t, err, "ValidationException", 400, fmt.Sprintf(start, "no name", "functionName", before+`([a-zA-Z0-9-_]+)(:(\$LATEST|[a-zA-Z0-9-_]+))?`))
	in.FunctionName = aws.String("a.b")
	_, err = c.CreateFunction(t.Context(), in)
	refused(t, err, "ValidationException", 400, fmt.Sprintf(start, "a.b", "functionName", before+`([a-zA-Z0-9-_]+)(:(\$LATEST|[a-zA-Z0-9-_]+))?`))
	get := func(name, qualifier string) error {
		in := &lambda.GetFunctionInput{FunctionName: &name}
		if qualifier != "" {
			in.Qualifier = &qualifier
		}
		_, err := c.GetFunction(t.Context(), in)
		return err
	}
	refused(t, get("no name", ""), "ValidationException", 400,
		fmt.Sprintf(start, "no name", "functionName", before+`([a-zA-Z0-9-_\.]+)(:(\$LATEST(\.PUBLISHED)?|[a-zA-Z0-9-_]+))?`))
	refused(t, get("f", "?"), "ValidationException", 400, fmt.Sprintf(start, "?", "qualifier", `\$(LATEST(\.PUBLISHED)?)|[a-zA-Z0-9-_$]+`))
	refused(t, get("a.b", ""), notFound, 404, "Function not found: "+functionARN("a.b"))
	refused(t, get("f:$LATEST.PUBLISHED", ""), notFound, 404, "Function not found: "+functionARN("f")+":$LATEST.PUBLISHED")
	europe := "arn:aws:lambda:eusc-de-east-1:" + account + ":function:f"
	refused(t, get(europe, ""), notFound, 404, "Functions from 'eusc-de-east-1' are not reachable in this region ('us-east-1')")
	const taggable = `arn:(aws[a-zA-Z-]*):lambda:(eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\d{1}:\d{12}:(function:[a-zA-Z0-9-_]+(:(\$LATEST|[a-zA-Z0-9-_]+))?|` +
		`layer:([a-zA-Z0-9-_]+)|code-signing-config:csc-[a-z0-9]{17}|event-source-mapping:[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|` +
		`capacity-provider:[a-zA-Z0-9-_]+)`
	for _, arn := range []string{"f", mappingPrefix + "0b5f3dd5-6ae8-4bc7-8fe6-3e1f1a1c7b9e:live", "arn:aws:lambda:us-east-1:" + account + ":capacity-provider:p:live"} {
		_, err = c.ListTags(t.Context(), &lambda.ListTagsInput{Resource: &arn})
		refused(t, err, "ValidationException", 400, fmt.Sprintf(start, arn, "resource", taggable))
	}
	bad := permission("f", "a b", "sns.amazonaws.com")
	_, err = c.AddPermission(t.Context(), bad)
	refused(t, err, "ValidationException", 400, fmt.Sprintf(start, "a b", "statementId", `([a-zA-Z0-9-_]+)`))
	_, err = c.PutFunctionEventInvokeConfig(t.Context(), &lambda.PutFunctionEventInvokeConfigInput{
		FunctionName: aws.String("f"), DestinationConfig: &types.DestinationConfig{OnSuccess: &types.OnSuccess{Destination: aws.String("x")}},
	})
	refused(t, err, "ValidationException", 400, fmt.Sprintf(start, "x", "destinationConfig.onSuccess.destination",
		`$|kafka://([^.]([a-zA-Z0-9\-_.]{0,248}))|arn:(aws[a-zA-Z0-9-]*):([a-zA-Z0-9\-])+:((eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\d{1})?:(\d{12})?:(.*)`))
}

// A name that is too long is one of no function, except where one is to be made.
func TestLongNames(t *testing.T) {
	endpoint := start(t)
	c := functionsClient(endpoint)
	long := strings.Repeat("f", 65)
	in := functionInput(t, long)
	_, err := c.CreateFunction(t.Context(), in)
	refused(t, err, invalidValue, 400, "1 validation error detected: Value '"+long+"' at 'functionName' failed to satisfy constraint: "+
		"Member must have length less than or equal to 64")
	status, wire := lambdaJSON(t, endpoint, http.MethodPost, functionsPath, `{"FunctionName":"`+long+`","Role":"`+roleARN+`","Code":{}}`)
	equal(t, "on the wire", "400 User", fmt.Sprint(status, " ", wire["Type"]))
	_, err = c.DeleteFunction(t.Context(), &lambda.DeleteFunctionInput{FunctionName: &long})
	refused(t, err, notFound, 404, "Function not found: "+functionARN(long))
	_, err = c.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: &long})
	refused(t, err, notFound, 404, "Function not found: "+functionARN(long)+":$LATEST")
	// The latest version cannot be deleted, be there one or not.
	for _, in := range []*lambda.DeleteFunctionInput{
		{FunctionName: aws.String("none"), Qualifier: aws.String("$LATEST")}, {FunctionName: aws.String(functionARN("none") + ":$LATEST")},
	} {
		_, err = c.DeleteFunction(t.Context(), in)
		refused(t, err, invalidValue, 400, "$LATEST version cannot be deleted without deleting the function.")
	}
}

// A refusal may lack the type, as AWS's do here and there.
func TestRefusalsWithoutType(t *testing.T) {
	endpoint := start(t)
	c := functionsClient(endpoint)
	in := functionInput(t, "f")
	in.Publish = true
	must(c.CreateFunction(t.Context(), in))(t)
	status, wire := lambdaJSON(t, endpoint, http.MethodPost, functionsPath+"/f/aliases",
		`{"Name":"a","FunctionVersion":"$LATEST","RoutingConfig":{"AdditionalVersionWeights":{"1":0.5}}}`)
	equal(t, "an alias of the latest version", "400 map[message:$LATEST is not supported for an alias pointing to more than 1 version]", fmt.Sprint(status, " ", wire))
	status, wire = lambdaJSON(t, endpoint, http.MethodPut, "/2017-10-31/functions/f/concurrency", `{"ReservedConcurrentExecutions":901}`)
	equal(t, "too much is reserved", "400 map[message:Specified ReservedConcurrentExecutions for function decreases account's "+
		"UnreservedConcurrentExecution below its minimum value of [100].]", fmt.Sprint(status, " ", wire))
	status, wire = lambdaJSON(t, endpoint, http.MethodPut, "/2017-10-31/functions/f:1/concurrency", `{"ReservedConcurrentExecutions":1}`)
	equal(t, "for a version", "400 map[Type:User message:This operation is permitted on Lambda functions only. Aliases and versions do not support "+
		"this operation. Please specify either a function name or an unqualified function ARN.]", fmt.Sprint(status, " ", wire))
	status, wire = lambdaJSON(t, endpoint, http.MethodPut, "/2017-10-31/functions/none/concurrency", `{"ReservedConcurrentExecutions":1}`)
	equal(t, "for none", "404 map[Message:Function not found: "+functionARN("none")+":$LATEST Type:User]", fmt.Sprint(status, " ", wire))
}

// Who may be given a permission, and to what.
func TestPermissionsRefuse(t *testing.T) {
	endpoint := start(t)
	c := functionsClient(endpoint)
	must(c.CreateFunction(t.Context(), functionInput(t, "f")))(t)
	add := func(name, qualifier, principal string) error {
		in := permission(name, "s"+strings.NewReplacer(".", "", "*", "all", ":", "", "/", "").Replace(principal), principal)
		if qualifier != "" {
			in.Qualifier = &qualifier
		}
		_, err := c.AddPermission(t.Context(), in)
		return err
	}
	const noPrincipal = "The provided principal was invalid. Please check the principal and try again."
	for _, principal := range []string{"invalid.nonaws.com", "sns", "amazonaws.com.example", "1234"} {
		refused(t, add("f", "", principal), invalidValue, 400, noPrincipal)
	}
	for _, principal := range []string{"s3.amazonaws.com", "alexa-appkit.amazon.com", "lambda.alarms.cloudwatch.amazonaws.com", "*", "111122223333"} {
		if err := add("f", "", principal); err != nil {
			t.Errorf("%s: %v", principal, err)
		}
	}
	const latest = "We currently do not support adding policies for $LATEST."
	refused(t, add("f:$LATEST", "", "sns.amazonaws.com"), invalidValue, 400, latest)
	refused(t, add("f", "$LATEST", "sns.amazonaws.com"), invalidValue, 400, latest)
	refused(t, add("f:1", "2", "sns.amazonaws.com"), invalidValue, 400, "The derived qualifier from the function name does not match the specified qualifier.")
	refused(t, add("f", "live", "sns.amazonaws.com"), notFound, 404, "Cannot find alias arn: "+functionARN("f")+":live")
	refused(t, add("f", "7", "sns.amazonaws.com"), notFound, 404, "Function not found: "+functionARN("f")+":7")
	_, err := c.RemovePermission(t.Context(), &lambda.RemovePermissionInput{FunctionName: aws.String("f:live"), StatementId: aws.String("s")})
	refused(t, err, notFound, 404, "Cannot find alias arn: "+functionARN("f")+":live")
}

// What a function's policy lets another account do, by the function's ARN.
func TestOtherAccountsByPolicy(t *testing.T) {
	endpoint := start(t)
	c := functionsClient(endpoint)
	in := functionInput(t, "f")
	in.Publish = true
	must(c.CreateFunction(t.Context(), in))(t)
	const friend = "111122223333"
	far := functionsClientOf(endpoint, region, friend)
	arn := functionARN("f")
	calls := functionCalls(t.Context(), far, arn, in.Code.ZipFile)
	calls["Invoke"] = func() error {
		_, err := far.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: &arn, InvocationType: types.InvocationTypeDryRun})
		return err
	}
	denied := func(action string) {
		t.Helper()
		name := "lambda:" + strings.Replace(action, "Invoke", "InvokeFunction", 1)
		refused(t, calls[action](), "AccessDeniedException", 403, "User: arn:aws:iam::"+friend+":root is not authorized to perform: "+name+
			" on resource: "+arn+" because no resource-based policy allows the "+name+" action")
	}
	order := []string{
		"Invoke", "GetFunction", "GetFunctionConfiguration", "UpdateFunctionCode", "PublishVersion", "ListVersionsByFunction", "CreateAlias", "GetAlias",
		"ListAliases", "UpdateAlias", "DeleteAlias", "GetPolicy", "PutFunctionConcurrency", "DeleteFunctionConcurrency", "TagResource", "ListTags",
		"UntagResource", "DeleteFunction",
	}
	for _, action := range order {
		denied(action)
	}
	only := permission("f", "get", friend)
	only.Action = aws.String("lambda:GetFunction")
	must(c.AddPermission(t.Context(), only))(t)
	if err := calls["GetFunction"](); err != nil {
		t.Error(err)
	}
	denied("GetFunctionConfiguration")
	all := permission("f", "all", friend)
	all.Action = aws.String("lambda:*")
	must(c.AddPermission(t.Context(), all))(t)
	denied("AddPermission") // no policy gives it
	denied("UpdateFunctionConfiguration")
	if _, err := functionsClientOf(endpoint, region, "444455556666").GetFunction(t.Context(), &lambda.GetFunctionInput{FunctionName: &arn}); err == nil {
		t.Error("a third account may as well")
	}
	version := arn + ":1" // has a policy of its own, which is none
	_, err := far.GetFunction(t.Context(), &lambda.GetFunctionInput{FunctionName: &version})
	if err == nil {
		t.Error("the function's policy holds for its version")
	}
	for _, action := range order {
		if err := calls[action](); err != nil {
			t.Errorf("%s: %v", action, err)
		}
	}
	_, err = c.GetFunction(t.Context(), &lambda.GetFunctionInput{FunctionName: aws.String("f")})
	refused(t, err, notFound, 404, "Function not found: "+arn)
}

const mappingPrefix = "arn:aws:lambda:us-east-1:" + account + ":event-source-mapping:"

// Too many tags, none, and those of what is not there.
func TestTagsRefuse(t *testing.T) {
	endpoint := start(t)
	c := functionsClient(endpoint)
	must(c.CreateFunction(t.Context(), functionInput(t, "f")))(t)
	many := map[string]string{}
	for i := range 51 {
		many[fmt.Sprint("k", i)] = ""
	}
	for arn, text := range map[string]string{
		mappingPrefix + "0b5f3dd5-6ae8-4bc7-8fe6-3e1f1a1c7b9e":                      "Event source mapping not found: ",
		"arn:aws:lambda:us-east-1:" + account + ":capacity-provider:none":           "Capacity provider not found: ",
		"arn:aws:lambda:us-east-1:" + account + ":capacity-provider:some-other_one": "Capacity provider not found: ",
	} {
		_, err := c.ListTags(t.Context(), &lambda.ListTagsInput{Resource: &arn})
		refused(t, err, notFound, 404, text+arn)
		_, err = c.TagResource(t.Context(), &lambda.TagResourceInput{Resource: &arn, Tags: map[string]string{"k": "v"}})
		refused(t, err, notFound, 404, text+arn)
		_, err = c.UntagResource(t.Context(), &lambda.UntagResourceInput{Resource: &arn, TagKeys: []string{"k"}})
		refused(t, err, notFound, 404, text+arn)
	}
	arn := aws.String(functionARN("f"))
	_, err := c.TagResource(t.Context(), &lambda.TagResourceInput{Resource: arn, Tags: many})
	refused(t, err, invalidValue, 400, "Number of tags exceeds resource tag limit.")
	delete(many, "k50")
	must(c.TagResource(t.Context(), &lambda.TagResourceInput{Resource: arn, Tags: many}))(t)
	_, err = c.TagResource(t.Context(), &lambda.TagResourceInput{Resource: arn, Tags: map[string]string{"one": "more"}})
	refused(t, err, invalidValue, 400, "Number of tags exceeds resource tag limit.")
}

// A refusal measures the variables in the order in which they came.
func TestLargeEnvironmentInOrder(t *testing.T) {
	endpoint := start(t)
	large := `{"SMALL_VAR":"<ok>","LARGE_VAR":"` + strings.Repeat("x", 4096) + `"}`
	status, wire := lambdaJSON(t, endpoint, http.MethodPost, functionsPath,
		`{"FunctionName":"f","Role":"`+roleARN+`","Runtime":"provided.al2023","Handler":"h","Code":{},"Environment":{"Variables":`+large+`}}`)
	equal(t, "the refusal", "400 Lambda was unable to configure your environment variables because the environment variables you have provided "+
		"exceeded the 4KB limit. String measured: "+large, fmt.Sprint(status, " ", wire["message"]))
}

// What is wrong with where events go, in its order.
func TestDestinationsRefuse(t *testing.T) {
	endpoint := start(t)
	c := functionsClient(endpoint)
	must(c.CreateFunction(t.Context(), functionInput(t, "f")))(t)
	must(c.CreateFunction(t.Context(), functionInput(t, "g")))(t)
	put := func(name string, success *types.OnSuccess) error {
		in := &lambda.PutFunctionEventInvokeConfigInput{FunctionName: &name}
		if success != nil {
			in.DestinationConfig = &types.DestinationConfig{OnSuccess: success}
		}
		_, err := c.PutFunctionEventInvokeConfig(t.Context(), in)
		return err
	}
	to := func(arn string) *types.OnSuccess { return &types.OnSuccess{Destination: &arn} }
	refused(t, put("none", nil), invalidValue, 400, "You must specify at least one of error handling or destination setting.")
	refused(t, put("none", to(functionARN("none"))), notFound, 404, "The function doesn't exist.")
	refused(t, put("f", to(functionARN("none"))), invalidValue, 400, "The destination ARN "+functionARN("none")+" is invalid.")
	refused(t, put("f", to(functionARN("g")+":7")), invalidValue, 400, "The destination ARN "+functionARN("g")+":7 is invalid.")
	refused(t, put("f", to(functionARN("f"))), invalidValue, 400, "You can't specify the function as a destination for itself.")
	bucket := "arn:aws:iam::" + account + ":role/x"
	refused(t, put("f", to(bucket)), invalidValue, 400,
		"The provided destination config DestinationConfig(onSuccess=OnSuccess(destination="+bucket+"), onFailure=null) is invalid.")
	if err := put("f", to(functionARN("g"))); err != nil {
		t.Error(err)
	}
	if err := put("f", &types.OnSuccess{}); err != nil {
		t.Error(err)
	}
	_, got := lambdaJSON(t, endpoint, http.MethodGet, "/2019-09-25/functions/f/event-invoke-config", "")
	equal(t, "no destinations", any(map[string]any{"OnSuccess": map[string]any{}, "OnFailure": map[string]any{}}), got["DestinationConfig"])
}

// A list of mappings asks nobody for leave, and a mapping takes any name of a function.
func TestMappingNames(t *testing.T) {
	endpoint := start(t)
	c, q := functionsClient(endpoint), client(endpoint)
	in := functionInput(t, "f")
	in.Publish = true
	must(c.CreateFunction(t.Context(), in))(t)
	must(c.CreateAlias(t.Context(), &lambda.CreateAliasInput{FunctionName: in.FunctionName, Name: aws.String("live"), FunctionVersion: aws.String("1")}))(t)
	for i, name := range []string{
		"f", functionARN("f"), account + ":function:f", account + ":f", "function:f", "f:1", functionARN("f") + ":live", account + ":function:f:$LATEST",
	} {
		queue := fmt.Sprint("q", i)
		createQueue(t, q, queue)
		uuid := mapped(t, c, queue, name, func(in *lambda.CreateEventSourceMappingInput) { in.Enabled = aws.Bool(false) })
		_, qualifier, _ := strings.Cut(strings.TrimPrefix(name[strings.LastIndex(name, "f"):], "f"), ":")
		if strings.HasSuffix(name, ":live") {
			qualifier = "live"
		}
		want := functionARN("f")
		if qualifier != "" {
			want += ":" + qualifier
		}
		equal(t, name, want, *mappingOf(t, c, uuid).FunctionArn)
	}
	for what, in := range map[string]*lambda.ListEventSourceMappingsInput{
		"another account's queue":    {EventSourceArn: aws.String("arn:aws:sqs:" + region + ":111122223333:work")},
		"another account's function": {FunctionName: aws.String("arn:aws:lambda:" + region + ":111122223333:function:f")},
		"no function":                {FunctionName: aws.String("none")},
	} {
		equal(t, what, 0, len(must(c.ListEventSourceMappings(t.Context(), in))(t).EventSourceMappings))
	}
}

// The members of a mapping that are always there.
func TestMappingMembers(t *testing.T) {
	endpoint := start(t)
	c, q := functionsClient(endpoint), client(endpoint)
	must(c.CreateFunction(t.Context(), functionInput(t, "f")))(t)
	createQueue(t, q, "work")
	createQueue(t, q, "work.fifo", "FifoQueue", "true")
	const mappings = "/2015-03-31/event-source-mappings"
	has := func(what string, m map[string]any) {
		t.Helper()
		equal(t, what, "[] 0", fmt.Sprint(m["FunctionResponseTypes"], " ", m["MaximumBatchingWindowInSeconds"]))
		if _, ok := m["FunctionResponseTypes"].([]any); !ok {
			t.Errorf("%s: FunctionResponseTypes is %v", what, m["FunctionResponseTypes"])
		}
	}
	for _, body := range []string{
		`{"EventSourceArn":"` + queueARN("work") + `","FunctionName":"f"}`,
		`{"EventSourceArn":"` + queueARN("work.fifo") + `","FunctionName":"f","MaximumBatchingWindowInSeconds":0,"FunctionResponseTypes":[]}`,
	} {
		_, made := lambdaJSON(t, endpoint, http.MethodPost, mappings+"/", body)
		has("made", made)
		one := mappings + "/" + made["UUID"].(string)
		_, got := lambdaJSON(t, endpoint, http.MethodGet, one, "")
		has("shown", got)
		_, got = lambdaJSON(t, endpoint, http.MethodPut, one, `{"Enabled":false}`)
		has("updated", got)
		_, list := lambdaJSON(t, endpoint, http.MethodGet, mappings, "")
		has("listed", list["EventSourceMappings"].([]any)[0].(map[string]any))
		_, got = lambdaJSON(t, endpoint, http.MethodDelete, one, "")
		has("deleted", got)
	}
}

// No function has a code signing configuration, as Terraform asks of each.
func TestCodeSigning(t *testing.T) {
	endpoint := start(t)
	c := functionsClient(endpoint)
	must(c.CreateFunction(t.Context(), functionInput(t, "f")))(t)
	got := must(c.GetFunctionCodeSigningConfig(t.Context(), &lambda.GetFunctionCodeSigningConfigInput{FunctionName: aws.String("f")}))(t)
	if got.CodeSigningConfigArn != nil {
		t.Errorf("it has %s", *got.CodeSigningConfigArn)
	}
	_, err := c.GetFunctionCodeSigningConfig(t.Context(), &lambda.GetFunctionCodeSigningConfigInput{FunctionName: aws.String("none")})
	refused(t, err, notFound, 404, "Function not found: "+functionARN("none"))
}

// runtimeOf is the version of a runtime as functions show it.
func runtimeOf(runtime types.Runtime) *types.RuntimeVersionConfig {
	sum := sha256.Sum256([]byte(runtime))
	return &types.RuntimeVersionConfig{RuntimeVersionArn: aws.String("arn:aws:lambda:" + region + "::runtime:" + hex.EncodeToString(sum[:]))}
}
