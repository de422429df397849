package sdk_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"godwit.dev/godwit/internal/config"
)

// artifacts is as much of S3 as reading an object takes.
type artifacts struct {
	*httptest.Server

	mu      sync.Mutex
	objects map[string]string // by /BUCKET/KEY
}

func (a *artifacts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	body, ok := a.objects[r.URL.Path]
	a.mu.Unlock()
	if !ok {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `<Error><Code>NoSuchKey</Code><Message>The specified key does not exist.</Message></Error>`)
		return
	}
	w.Header().Set("ETag", `"e"`)
	w.Header().Set("Last-Modified", "Thu, 26 Nov 2026 08:00:00 GMT")
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	if r.Method != http.MethodHead {
		fmt.Fprint(w, body)
	}
}

func (a *artifacts) put(path, body string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.objects[path] = body
}

// startArtifacts is a server that reads templates and code from another one.
func startArtifacts(t *testing.T) (endpoint string, a *artifacts) {
	t.Helper()
	a = &artifacts{objects: map[string]string{}}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return startWith(t, func(c *config.Config) { c.Artifacts.Endpoint = a.URL }), a
}

const (
	outerTemplate = `
Parameters: {Delay: {Type: Number, Default: 1}, Fail: {Type: String, Default: "no"}, Inner: {Type: String}}
Conditions: {Fails: !Equals [!Ref Fail, "yes"]}
Resources:
  Part:
    Type: AWS::CloudFormation::Stack
    Properties: {TemplateURL: !Ref Inner, Parameters: {Delay: !Ref Delay, Names: [a, b]}, Tags: [{Key: team, Value: rentals}]}
  Last:
    Type: AWS::SQS::Queue
    DependsOn: Part
    Properties: {QueueName: !If [Fails, "not a name", !Ref AWS::NoValue], Tags: [{Key: of, Value: !GetAtt Part.Outputs.Name}]}
Outputs: {Queue: {Value: !Sub "${Part.Outputs.Url}"}, Part: {Value: !Ref Part}}
`
	innerTemplate = `
Parameters: {Delay: {Type: Number}, Names: {Type: CommaDelimitedList}}
Resources:
  Q: {Type: AWS::SQS::Queue, Properties: {DelaySeconds: !Ref Delay, Tags: [{Key: second, Value: !Select [1, !Ref Names]}]}}
Outputs: {Url: {Value: !Ref Q}, Name: {Value: !GetAtt Q.QueueName}}
`
)

// A stack within a stack is made, changed, brought back and deleted with it.
func TestNestedStack(t *testing.T) {
	ctx := t.Context()
	endpoint, a := startArtifacts(t)
	a.put("/bucket/dir/inner.yaml", innerTemplate)
	c, queues := cloudformationAs(endpoint, account), client(endpoint)
	inner := a.URL + "/bucket/dir/inner.yaml"
	s := deploy(t, c, "outer", outerTemplate, "Inner", inner)
	if s.StackStatus != types.StackStatusCreateComplete {
		t.Fatalf("%q", eventsOfStack(t, c, "outer"))
	}
	outputs := map[string]string{}
	for _, o := range s.Outputs {
		outputs[*o.OutputKey] = *o.OutputValue
	}
	part := awaitStack(t, c, outputs["Part"])
	equal(t, "parent", *s.StackId, *part.ParentId)
	equal(t, "root", *s.StackId, *part.RootId)
	if !strings.HasPrefix(*part.StackName, "outer-Part-") || s.ParentId != nil || s.RootId != nil {
		t.Errorf("%s is in %v, %v", *part.StackName, s.ParentId, s.RootId)
	}
	equal(t, "tags", "rentals", *part.Tags[0].Value)
	delay := func() string {
		t.Helper()
		return must(queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: new(outputs["Queue"]), AttributeNames: []sqstypes.QueueAttributeName{"DelaySeconds"}}))(t).Attributes["DelaySeconds"]
	}
	equal(t, "delay", "1", delay())
	tags := must(queues.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: new(outputs["Queue"])}))(t).Tags
	equal(t, "a list as a parameter", "b", tags["second"])

	update := func(parameters ...string) types.Stack {
		t.Helper()
		must(c.UpdateStack(ctx, &cloudformation.UpdateStackInput{StackName: new("outer"), TemplateBody: new(outerTemplate), Parameters: pairs(append(parameters, "Inner", inner))}))(t)
		return awaitStack(t, c, "outer")
	}
	equal(t, "changed", types.StackStatusUpdateComplete, update("Delay", "2").StackStatus)
	equal(t, "delay", "2", delay())

	// What fails behind the part brings the part back too.
	if got := update("Delay", "3", "Fail", "yes"); got.StackStatus != types.StackStatusUpdateRollbackComplete {
		t.Errorf("%s: %q", got.StackStatus, eventsOfStack(t, c, "outer"))
	}
	equal(t, "delay", "2", delay())

	// What fails within the part fails the stack.
	equal(t, "failed within", types.StackStatusUpdateRollbackComplete, update("Delay", "9999").StackStatus)
	equal(t, "delay", "2", delay())
	want := "Part UPDATE_FAILED: Embedded stack " + outputs["Part"] + " was not successfully updated. Currently in UPDATE_ROLLBACK_COMPLETE"
	if lines := eventsOfStack(t, c, "outer"); !slices.Contains(lines, want) {
		t.Errorf("%q lacks %s", lines, want)
	}
	equal(t, "part", types.StackStatusUpdateRollbackComplete, awaitStack(t, c, outputs["Part"]).StackStatus)

	must(c.DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: new("outer")}))(t)
	equal(t, "deleted", types.StackStatusDeleteComplete, awaitStack(t, c, *s.StackId).StackStatus)
	equal(t, "part", types.StackStatusDeleteComplete, awaitStack(t, c, outputs["Part"]).StackStatus)
	equal(t, "queues", 0, len(must(queues.ListQueues(ctx, &sqs.ListQueuesInput{}))(t).QueueUrls))
}

// A creation that fails within goes away with all that it made; a template that names itself
// comes to an end.
func TestNestedStackFailures(t *testing.T) {
	ctx := t.Context()
	endpoint, a := startArtifacts(t)
	c, queues := cloudformationAs(endpoint, account), client(endpoint)
	a.put("/bucket/inner", innerTemplate)
	s := deploy(t, c, "outer", outerTemplate, "Inner", a.URL+"/bucket/inner", "Delay", "9999")
	equal(t, "status", types.StackStatusRollbackComplete, s.StackStatus)
	lines := strings.Join(eventsOfStack(t, c, "outer"), "\n")
	if !strings.Contains(lines, "Part CREATE_FAILED: Embedded stack arn:aws:cloudformation:") || !strings.Contains(lines, " was not successfully created: The following resource(s) failed to create: [Q].") {
		t.Errorf("%s", lines)
	}
	a.put("/bucket/self", `{"Parameters":{"P":{"Type":"String"}},"Resources":{"Q":{"Type":"AWS::SQS::Queue"},"S":{"Type":"AWS::CloudFormation::Stack","Properties":{"TemplateURL":{"Ref":"P"},"Parameters":{"P":{"Ref":"P"}}}}}}`)
	must(c.CreateStack(ctx, &cloudformation.CreateStackInput{StackName: new("self"), TemplateURL: new(a.URL + "/bucket/self"), Parameters: pairs([]string{"P", a.URL + "/bucket/self"})}))(t)
	equal(t, "in itself", types.StackStatusRollbackComplete, awaitStack(t, c, "self").StackStatus)
	equal(t, "queues", 0, len(must(queues.ListQueues(ctx, &sqs.ListQueuesInput{}))(t).QueueUrls))
	gone := must(c.ListStacks(ctx, &cloudformation.ListStacksInput{StackStatusFilter: []types.StackStatus{types.StackStatusDeleteComplete}}))(t).StackSummaries
	if len(gone) != 11 { // the part of the first, and ten within each other
		t.Errorf("%d stacks were deleted", len(gone))
	}
	s = deploy(t, c, "none", outerTemplate, "Inner", a.URL+"/bucket/none")
	if lines := strings.Join(eventsOfStack(t, c, "none"), "\n"); !strings.Contains(lines, "The object is in the bucket bucket, with the key none.") {
		t.Errorf("%s: %s", s.StackStatus, lines)
	}
}

// Templates and code that are in S3, as sam and aws cloudformation package put them there, are
// read from the endpoint that the server is given; without one, and of other servers, they are
// refused.
func TestTemplateURL(t *testing.T) {
	ctx := t.Context()
	endpoint, a := startArtifacts(t)
	c := cloudformationAs(endpoint, account)
	a.put("/bucket/shop.template", shop)
	for _, link := range []string{a.URL + "/bucket/shop.template", "https://s3.amazonaws.com/bucket/shop.template", "https://s3.eu-west-1.amazonaws.com/bucket/shop.template", "https://bucket.s3.eu-west-1.amazonaws.com/shop.template"} {
		valid := must(c.ValidateTemplate(ctx, &cloudformation.ValidateTemplateInput{TemplateURL: &link}))(t)
		equal(t, link, "rentals", *valid.Description)
	}
	_, err := c.ValidateTemplate(ctx, &cloudformation.ValidateTemplateInput{TemplateURL: new("http://127.0.0.1:1/bucket/shop.template")})
	if err == nil || !strings.Contains(err.Error(), "TemplateURL must be a supported URL") {
		t.Errorf("of another server: %v", err)
	}
	_, err = c.ValidateTemplate(ctx, &cloudformation.ValidateTemplateInput{TemplateURL: new(a.URL + "/bucket/none")})
	if err == nil || !strings.Contains(err.Error(), "S3 error: S3.NoSuchKey: The specified key does not exist. The object is in the bucket bucket, with the key none.") {
		t.Errorf("of no object: %v", err)
	}
	a.put("/bucket/large", strings.Repeat("#", 1_000_001))
	_, err = c.ValidateTemplate(ctx, &cloudformation.ValidateTemplateInput{TemplateURL: new(a.URL + "/bucket/large")})
	if err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("of a large object: %v", err)
	}
	who := userOf(t, iamClient(endpoint), "deployer", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"cloudformation:*","Resource":"*"}]}`)
	limited := cloudformation.New(cloudformation.Options{Region: region, BaseEndpoint: &endpoint, Credentials: who, RetryMaxAttempts: 1, HTTPClient: eager})
	_, err = limited.ValidateTemplate(ctx, &cloudformation.ValidateTemplateInput{TemplateURL: new(a.URL + "/bucket/shop.template")})
	if err == nil || !strings.Contains(err.Error(), "s3:GetObject") {
		t.Errorf("by who may not read objects: %v", err)
	}
	_, err = cloudformationAs(start(t), account).CreateStack(ctx, &cloudformation.CreateStackInput{StackName: new("s"), TemplateURL: new("https://s3.amazonaws.com/bucket/shop.template")})
	if err == nil || !strings.Contains(err.Error(), "--artifacts-s3-endpoint") {
		t.Errorf("without an endpoint: %v", err)
	}

	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	f := must(w.Create("app.py"))(t)
	fmt.Fprint(f, "def handler(event, context):\n    return 1\n")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	a.put("/bucket/code", packed.String())
	packaged := `
Transform: AWS::Serverless-2016-10-31
Resources:
  Price:
    Type: AWS::Serverless::Function
    Properties: {CodeUri: s3://bucket/code, Handler: app.handler, Runtime: python3.13}
`
	a.put("/bucket/packaged", packaged)
	must(c.CreateChangeSet(ctx, &cloudformation.CreateChangeSetInput{
		StackName: new("sam"), ChangeSetName: new("first"), ChangeSetType: types.ChangeSetTypeCreate, TemplateURL: new(a.URL + "/bucket/packaged"),
		Capabilities: []types.Capability{types.CapabilityCapabilityIam, types.CapabilityCapabilityAutoExpand},
	}))(t)
	must(c.ExecuteChangeSet(ctx, &cloudformation.ExecuteChangeSetInput{StackName: new("sam"), ChangeSetName: new("first")}))(t)
	if s := awaitStack(t, c, "sam"); s.StackStatus != types.StackStatusCreateComplete {
		t.Errorf("%q", eventsOfStack(t, c, "sam"))
	}
}
