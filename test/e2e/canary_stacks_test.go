package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfntypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/firehose"
	firehosetypes "github.com/aws/aws-sdk-go-v2/service/firehose/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"godwit.dev/godwit/test/sdkhttp"
)

// collector takes traces, and keeps them.
type collector struct {
	*httptest.Server

	mu  sync.Mutex
	all strings.Builder
}

func newCollector(t *testing.T) *collector {
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, _ = io.Copy(&c.all, r.Body) // what did not come is not looked at
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all.String()
}

// secretive are resources that are given secrets, and one that makes some.
const secretive = `
Parameters: {Secret: {Type: String, NoEcho: true}}
Resources:
  Posted: {Type: AWS::SQS::Queue}
  Partner:
    Type: Godwit::Ingest::Source
    Properties: {Name: partner, Target: !GetAtt Posted.Arn, Secrets: [!Ref Secret], Verification: {Kind: api-key}}
  Stored: {Type: AWS::SSM::Parameter, Properties: {Name: /app/stored, Type: String, Value: canary-stored}}
  Person: {Type: AWS::IAM::User}
  Key: {Type: AWS::IAM::AccessKey, Properties: {UserName: !Ref Person}}
  Kept: {Type: AWS::SSM::Parameter, Properties: {Name: /app/key, Type: String, Value: !GetAtt Key.SecretAccessKey}}
  May:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument: {Version: 2012-10-17, Statement: [{Effect: Allow, Principal: {Service: lambda.amazonaws.com}, Action: "sts:AssumeRole"}]}
  Remote:
    Type: AWS::Lambda::Function
    Properties:
      {PackageType: Image, Role: !GetAtt May.Arn, Code: {ImageUri: "https://user:canary-password@127.0.0.1:1/"}, Environment: {Variables: {TOKEN: !Ref Secret}}}
Outputs: {Made: {Value: !GetAtt Key.SecretAccessKey}}
`

// Secrets of stacks, sources of posts and delivery streams, and those that the server asks S3 with,
// are in no file of a server of production in clear, nor in its log, audit log, traces, metrics and
// answers to operators; what a template says is not to be shown is in no answer about a stack.
func TestStacksAndSourcesSpreadNothing(t *testing.T) {
	p := initialise(t)
	logs, apart, traces := t.TempDir(), t.TempDir(), newCollector(t)
	access := filepath.Join(apart, "access")
	if err := os.WriteFile(access, []byte("AKIDEXAMPLE\ncanary-artifacts\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	posts := freeAddress(t)
	s := p.serve(t, freeAddress(t), nil, "--log-level", "debug", "--audit-log", filepath.Join(logs, "audit.log"), "--audit-data-events", "--audit-log-group", "audit",
		"--ingest-listen", posts, "--firehose-directory", filepath.Join(apart, "objects"), "--trace-endpoint", traces.URL,
		"--artifacts-s3-endpoint", "http://127.0.0.1:1", "--artifacts-s3-credentials", access)
	ctx, creds := t.Context(), credentials.NewStaticCredentialsProvider(p.AccessKeyID, p.SecretAccessKey, "")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	stacks := cloudformation.New(cloudformation.Options{Region: region, BaseEndpoint: &s.base, Credentials: creds, HTTPClient: sdkhttp.Of(s.http), RetryMaxAttempts: 1})
	const given, later = "canary-parameter-1", "canary-parameter-2"
	told := "" // of stacks
	ends := func(name string, want cfntypes.StackStatus) (is cfntypes.Stack) {
		t.Helper()
		eventually(t, "the end of "+name, func() (bool, error) {
			found, err := stacks.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &name})
			if err == nil {
				is = found.Stacks[0]
			}
			return err == nil && !strings.HasSuffix(string(is.StackStatus), "_IN_PROGRESS"), err
		})
		events, err := stacks.DescribeStackEvents(ctx, &cloudformation.DescribeStackEventsInput{StackName: &name})
		must(err)
		resources, err := stacks.DescribeStackResources(ctx, &cloudformation.DescribeStackResourcesInput{StackName: &name})
		must(err)
		template, err := stacks.GetTemplate(ctx, &cloudformation.GetTemplateInput{StackName: &name})
		must(err)
		text, err := json.Marshal([]any{is, events.StackEvents, resources.StackResources, template.TemplateBody})
		must(err)
		if told += string(text); is.StackStatus != want {
			t.Fatalf("%s is %s: %s", name, is.StackStatus, text)
		}
		return is
	}
	secret := func(value string) []cfntypes.Parameter {
		return []cfntypes.Parameter{{ParameterKey: aws.String("Secret"), ParameterValue: &value}}
	}
	granted := []cfntypes.Capability{cfntypes.CapabilityCapabilityIam}
	_, err := stacks.CreateStack(ctx, &cloudformation.CreateStackInput{StackName: aws.String("app"), TemplateBody: aws.String(secretive), Parameters: secret(given), Capabilities: granted})
	must(err)
	made := *ends("app", cfntypes.StackStatusCreateComplete).Outputs[0].OutputValue
	other := strings.Replace(secretive, "Name: partner", "Name: other", 1)
	_, err = stacks.UpdateStack(ctx, &cloudformation.UpdateStackInput{StackName: aws.String("app"), TemplateBody: &other, Parameters: secret(later), Capabilities: granted})
	must(err)
	ends("app", cfntypes.StackStatusUpdateComplete)
	failing := "Parameters: {Secret: {Type: String, NoEcho: true}}\nResources: {P: {Type: AWS::SSM::Parameter, Properties: {Name: p, Type: String, Value: !Ref Secret, AllowedPattern: ^x$}}}"
	_, err = stacks.CreateStack(ctx, &cloudformation.CreateStackInput{StackName: aws.String("fails"), TemplateBody: &failing, Parameters: secret(given)})
	must(err)
	ends("fails", cfntypes.StackStatusRollbackComplete)
	_, err = stacks.CreateStack(ctx, &cloudformation.CreateStackInput{StackName: aws.String("url"), TemplateURL: aws.String("https://s3.amazonaws.com/templates/one.yaml?X-Amz-Signature=canary-signature")})
	if err == nil {
		t.Error("a template is read where nobody serves one")
	} else {
		told += err.Error()
	}

	post := func(key string, want int) {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+posts+"/in/other", strings.NewReader(`{"canary":"body"}`))
		must(err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Api-Key", key)
		answer, err := http.DefaultClient.Do(r)
		must(err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if must(err); answer.StatusCode != want {
			t.Errorf("a post is answered %d: %s", answer.StatusCode, text)
		}
		told += string(text)
	}
	post(later, http.StatusAccepted)
	post("canary-wrong-key", http.StatusUnauthorized)

	users := iam.New(iam.Options{Region: region, BaseEndpoint: &s.base, Credentials: creds, HTTPClient: sdkhttp.Of(s.http)})
	role, err := users.CreateRole(ctx, &iam.CreateRoleInput{RoleName: aws.String("stream"), AssumeRolePolicyDocument: aws.String(
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"firehose.amazonaws.com"},"Action":"sts:AssumeRole"}]}`)})
	must(err)
	streams := firehose.New(firehose.Options{Region: region, BaseEndpoint: &s.base, Credentials: creds, HTTPClient: sdkhttp.Of(s.http)})
	_, err = streams.CreateDeliveryStream(ctx, &firehose.CreateDeliveryStreamInput{
		DeliveryStreamName: aws.String("orders"), HttpEndpointDestinationConfiguration: &firehosetypes.HttpEndpointDestinationConfiguration{
			EndpointConfiguration: &firehosetypes.HttpEndpointConfiguration{Url: aws.String("https://127.0.0.1:1/"), AccessKey: aws.String("canary-access-key")},
			RoleARN:               role.Role.Arn, S3Configuration: &firehosetypes.S3DestinationConfiguration{RoleARN: role.Role.Arn, BucketARN: aws.String("arn:aws:s3:::lake")},
		},
	})
	must(err)
	for range 20 {
		_, err = streams.PutRecord(ctx, &firehose.PutRecordInput{DeliveryStreamName: aws.String("orders"), Record: &firehosetypes.Record{Data: []byte("canary-record")}})
		must(err)
	}
	described, err := streams.DescribeDeliveryStream(ctx, &firehose.DescribeDeliveryStreamInput{DeliveryStreamName: aws.String("orders")})
	must(err)
	text, err := json.Marshal(described.DeliveryStreamDescription)
	must(err)
	told += string(text)

	shown := "" // to operators
	for _, args := range [][]string{{"export"}, {"sources", "-o", "json"}, {"queues", "-o", "json"}, {"functions", "-o", "json"}, {"doctor", "-o", "json"}} {
		out, err := p.run(append(args, "--endpoint", s.base)...).CombinedOutput()
		if err != nil && args[0] != "doctor" { // whose status tells what it finds
			t.Errorf("godwit %v: %v: %s", args, err, out)
		}
		shown += string(out)
	}
	if !strings.Contains(shown, "other") {
		t.Errorf("operators are not shown the source:\n%s", shown)
	}

	secrets := []string{"canary", p.SecretAccessKey, made}
	check := func(when string) {
		t.Helper()
		for _, dir := range []string{p.data, p.dir, logs} {
			for _, found := range filesWith(t, dir, secrets...) {
				t.Errorf("%s: %s", when, found)
			}
		}
		for _, secret := range secrets {
			for what, text := range map[string]string{"it has printed": s.stdout.String() + s.stderr.String(), "it has traced": traces.text(), "operators are shown": shown} {
				if at := strings.Index(text, secret); at >= 0 {
					t.Errorf("%s %s %.6s…: …%s…", when, what, secret, text[max(0, at-200):min(len(text), at+100)])
				}
			}
		}
	}
	for _, secret := range []string{given, later, "canary-signature", "canary-artifacts", "canary-wrong-key", "canary-access-key"} {
		if at := strings.Index(told, secret); at >= 0 {
			t.Errorf("an answer tells %s: …%s…", secret, told[max(0, at-300):min(len(told), at+100)])
		}
	}
	eventually(t, "a trace of a request", func() (bool, error) { return strings.Contains(traces.text(), "CreateStack"), nil })
	check("while it runs")
	s.kill()
	check("killed")
	for _, name := range []string{"CreateStack", "PutSource", "CreateDeliveryStream", "PutRecord", "CreateAccessKey"} {
		if len(filesWith(t, logs, fmt.Sprintf(`"eventName":"%s"`, name))) == 0 {
			t.Errorf("the audit log has no %s", name)
		}
	}
}
