package sdk_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// pricing is a function that takes the messages of a queue, and that a topic may invoke.
const pricing = `
Parameters: {Rate: {Type: String, Default: "3"}, Seconds: {Type: Number, Default: 10}, Batch: {Type: Number, Default: 5}}
Resources:
  May:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument: {Version: 2012-10-17, Statement: [{Effect: Allow, Principal: {Service: lambda.amazonaws.com}, Action: "sts:AssumeRole"}]}
      Policies: [{PolicyName: all, PolicyDocument: {Version: 2012-10-17, Statement: [{Effect: Allow, Action: "sqs:*", Resource: "*"}]}}]
  Quotes: {Type: AWS::SQS::Queue}
  Price:
    Type: AWS::Lambda::Function
    Properties:
      Role: !GetAtt May.Arn
      Runtime: python3.13
      Handler: index.handler
      Timeout: !Ref Seconds
      Environment: {Variables: {RATE: !Ref Rate, MOST: 7}}
      EphemeralStorage: {Size: "1024"}
      Code: {ZipFile: "def handler(event, context):\n    return 1\n"}
      Tags: [{Key: team, Value: rentals}]
  Feed:
    Type: AWS::Lambda::EventSourceMapping
    Properties:
      {EventSourceArn: !GetAtt Quotes.Arn, FunctionName: !Ref Price, BatchSize: !Ref Batch, ScalingConfig: {MaximumConcurrency: "2"},
       Tags: [{Key: feed, Value: !Ref Rate}]}
  Retry:
    Type: AWS::Lambda::EventInvokeConfig
    Properties: {FunctionName: !Ref Price, Qualifier: $LATEST, MaximumRetryAttempts: 1, DestinationConfig: {OnFailure: {Destination: !GetAtt Quotes.Arn}}}
  MayInvoke:
    Type: AWS::Lambda::Permission
    Properties: {FunctionName: !Ref Price, Action: "lambda:InvokeFunction", Principal: sns.amazonaws.com, SourceAccount: !Ref AWS::AccountId}
  Site:
    Type: AWS::Lambda::Url
    Properties: {TargetFunctionArn: !GetAtt Price.Arn, AuthType: NONE, InvokeMode: BUFFERED, Cors: {AllowOrigins: ["https://a.example"], AllowMethods: [GET], MaxAge: !Ref Seconds}}
  MayVisit:
    Type: AWS::Lambda::Permission
    Properties: {FunctionName: !Ref Site, Action: "lambda:InvokeFunctionUrl", Principal: "*", FunctionUrlAuthType: NONE}
Outputs: {Url: {Value: !GetAtt Site.FunctionUrl}, Site: {Value: !Ref Site}, Name: {Value: !Ref Price}, Arn: {Value: !GetAtt Price.Arn}, Mapping: {Value: !Ref Feed}, Permission: {Value: !Ref MayInvoke}, Queue: {Value: !Ref Quotes}}
`

// A stack's function is made with what feeds it and who may invoke it, changed in place,
// replaced under another name, and deleted.
func TestStackFunction(t *testing.T) {
	ctx, endpoint := t.Context(), start(t)
	c, functions := cloudformationAs(endpoint, account), functionsClient(endpoint)
	granted := []types.Capability{types.CapabilityCapabilityIam}
	made := must(c.CreateStack(ctx, &cloudformation.CreateStackInput{StackName: new("pricing"), TemplateBody: new(pricing), Capabilities: granted}))(t)
	s := awaitStack(t, c, *made.StackId)
	if s.StackStatus != types.StackStatusCreateComplete {
		t.Fatalf("%q", eventsOfStack(t, c, *made.StackId))
	}
	outputs := func() map[string]string {
		out := map[string]string{}
		for _, o := range awaitStack(t, c, *made.StackId).Outputs {
			out[*o.OutputKey] = *o.OutputValue
		}
		return out
	}
	out := outputs()
	if !strings.HasPrefix(out["Name"], "pricing-Price-") {
		t.Errorf("the function is called %s", out["Name"])
	}
	is := configuration(t, functions, out["Name"])
	equal(t, "ARN", out["Arn"], *is.FunctionArn)
	equal(t, "timeout", int32(10), *is.Timeout)
	equal(t, "variables", "3 7", is.Environment.Variables["RATE"]+" "+is.Environment.Variables["MOST"])
	equal(t, "storage", int32(1024), *is.EphemeralStorage.Size)
	code := *is.CodeSha256
	tried := func() *lambda.GetFunctionEventInvokeConfigOutput {
		return must(functions.GetFunctionEventInvokeConfig(ctx, &lambda.GetFunctionEventInvokeConfigInput{FunctionName: new(out["Name"])}))(t)
	}
	equal(t, "tries", int32(1), *tried().MaximumRetryAttempts)
	if to := *tried().DestinationConfig.OnFailure.Destination; !strings.Contains(to, ":pricing-Quotes-") {
		t.Errorf("failures go to %s", to)
	}
	feed := func() *lambda.GetEventSourceMappingOutput {
		return must(functions.GetEventSourceMapping(ctx, &lambda.GetEventSourceMappingInput{UUID: new(out["Mapping"])}))(t)
	}
	tagged := func() map[string]string {
		return must(functions.ListTags(ctx, &lambda.ListTagsInput{Resource: feed().EventSourceMappingArn}))(t).Tags
	}
	equal(t, "batch", int32(5), *feed().BatchSize)
	equal(t, "tags of the mapping", "3", tagged()["feed"])
	equal(t, "concurrency", int32(2), *feed().ScalingConfig.MaximumConcurrency)
	policy := must(functions.GetPolicy(ctx, &lambda.GetPolicyInput{FunctionName: new(out["Name"])}))(t)
	if !strings.Contains(*policy.Policy, `"`+out["Permission"]+`"`) {
		t.Errorf("%s is not in %s", out["Permission"], *policy.Policy)
	}

	site := func() *lambda.GetFunctionUrlConfigOutput {
		return must(functions.GetFunctionUrlConfig(ctx, &lambda.GetFunctionUrlConfigInput{FunctionName: new(out["Name"])}))(t)
	}
	equal(t, "the URL", out["Url"], *site().FunctionUrl)
	equal(t, "its name", out["Arn"], out["Site"])
	equal(t, "how long pages need not ask", int32(10), *site().Cors.MaxAge)
	if !strings.Contains(*policy.Policy, `"Condition":{"StringEquals":{"lambda:FunctionUrlAuthType":"NONE"}}`) {
		t.Errorf("nobody may visit: %s", *policy.Policy)
	}
	update := func(template string, parameters ...string) {
		t.Helper()
		must(c.UpdateStack(ctx, &cloudformation.UpdateStackInput{StackName: new("pricing"), TemplateBody: &template, Capabilities: append(granted, types.CapabilityCapabilityNamedIam), Parameters: pairs(parameters)}))(t)
		if is := awaitStack(t, c, *made.StackId); is.StackStatus != types.StackStatusUpdateComplete {
			t.Fatalf("%q", eventsOfStack(t, c, *made.StackId))
		}
	}
	changed := strings.Replace(strings.Replace(pricing, "return 1", "return 2", 1), `      EphemeralStorage: {Size: "1024"}`+"\n", "", 1)
	changed = strings.Replace(changed, "MaximumRetryAttempts: 1", "MaximumRetryAttempts: 0", 1)
	update(changed, "Rate", "4", "Seconds", "20", "Batch", "6")
	is = configuration(t, functions, out["Name"])
	equal(t, "timeout", int32(20), *is.Timeout)
	equal(t, "variables", "4 7", is.Environment.Variables["RATE"]+" "+is.Environment.Variables["MOST"])
	equal(t, "storage", int32(512), *is.EphemeralStorage.Size)
	equal(t, "batch", int32(6), *feed().BatchSize)
	equal(t, "tags of the mapping", "4", tagged()["feed"])
	equal(t, "tries", int32(0), *tried().MaximumRetryAttempts)
	equal(t, "how long pages need not ask", int32(20), *site().Cors.MaxAge)
	equal(t, "the URL", out["Url"], *site().FunctionUrl)
	if *is.CodeSha256 == code {
		t.Error("the code is what it was")
	}
	equal(t, "tags", "rentals", must(functions.ListTags(ctx, &lambda.ListTagsInput{Resource: is.FunctionArn}))(t).Tags["team"])

	update(strings.Replace(changed, "      Handler:", "      FunctionName: price\n      Handler:", 1), "Rate", "4", "Seconds", "20", "Batch", "6")
	equal(t, "name", "price", outputs()["Name"])
	listed := must(functions.ListFunctions(ctx, &lambda.ListFunctionsInput{}))(t).Functions
	equal(t, "functions", 1, len(listed))

	must(c.DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: new("pricing")}))(t)
	if gone := awaitStack(t, c, *made.StackId); gone.StackStatus != types.StackStatusDeleteComplete {
		t.Errorf("%q", eventsOfStack(t, c, *made.StackId))
	}
	equal(t, "functions", 0, len(must(functions.ListFunctions(ctx, &lambda.ListFunctionsInput{}))(t).Functions))
	equal(t, "mappings", 0, len(must(functions.ListEventSourceMappings(ctx, &lambda.ListEventSourceMappingsInput{}))(t).EventSourceMappings))
	equal(t, "queues", 0, len(must(client(endpoint).ListQueues(ctx, &sqs.ListQueuesInput{}))(t).QueueUrls))
}

// The code of a function that is in S3, or at a URL, is changed as well, once.
func TestStackFunctionCodeElsewhere(t *testing.T) {
	ctx := t.Context()
	endpoint, a := startArtifacts(t)
	c, functions := cloudformationAs(endpoint, account), functionsClient(endpoint)
	for key, result := range map[string]string{"one": "1", "two": "22"} {
		var packed bytes.Buffer
		w := zip.NewWriter(&packed)
		f := must(w.Create("app.py"))(t)
		fmt.Fprintf(f, "def handler(event, context):\n    return %s\n", result)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		a.put("/bucket/"+key, packed.String())
	}
	const template = `
Parameters: {Key: {Type: String}, Text: {Type: String}}
Resources:
  May:
    Type: AWS::IAM::Role
    Properties: {AssumeRolePolicyDocument: {Version: 2012-10-17, Statement: [{Effect: Allow, Principal: {Service: lambda.amazonaws.com}, Action: "sts:AssumeRole"}]}}
  Packed: {Type: AWS::Lambda::Function, Properties: {Role: !GetAtt May.Arn, Runtime: python3.13, Handler: app.handler, Description: !Ref Text, Code: {S3Bucket: bucket, S3Key: !Ref Key}}}
  Away: {Type: AWS::Lambda::Function, Properties: {Role: !GetAtt May.Arn, PackageType: Image, Description: !Ref Text, Code: {ImageUri: !Sub "http://127.0.0.1:1/${Key}"}}}
Outputs: {Packed: {Value: !Ref Packed}, Away: {Value: !Ref Away}}
`
	s := deployed(t, c, "code", template, "Key", "one", "Text", "first")
	is := func() (string, string, string) {
		t.Helper()
		packed := must(functions.GetFunction(ctx, &lambda.GetFunctionInput{FunctionName: new(s.outputs()["Packed"])}))(t)
		away := must(functions.GetFunction(ctx, &lambda.GetFunctionInput{FunctionName: new(s.outputs()["Away"])}))(t)
		return *packed.Configuration.CodeSha256, *away.Code.ImageUri, *packed.Configuration.Description + *away.Configuration.Description
	}
	before, _, _ := is()
	s.update(types.StackStatusUpdateComplete, template, "Key", "two", "Text", "second")
	after, image, text := is()
	if after == before || image != "http://127.0.0.1:1/two" || text != "secondsecond" {
		t.Errorf("the code is %s, before it was %s; the other is at %s; %s", after, before, image, text)
	}
	s.remove()
}
