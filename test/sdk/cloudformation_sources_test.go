package sdk_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/internal/config"
)

// way is a source of posts, into a queue.
const way = `
Parameters: {Secret: {Type: String, NoEcho: true}}
Resources:
  Orders: {Type: AWS::SQS::Queue}
  Shop:
    Type: Godwit::Ingest::Source
    Properties:
      Target: !GetAtt Orders.Arn
      Verification: {Kind: api-key, IdHeader: X-Event}
      Secrets: [!Ref Secret]
      Mapping: {Message: /order}
      Limits: {Bytes: "1000"}
Outputs: {Queue: {Value: !Ref Orders}, Source: {Value: !Ref Shop}, Path: {Value: !GetAtt Shop.Path}, Owner: {Value: !GetAtt Shop.Owner}}
`

// A source of a stack takes posts, is changed in place, replaced under another name, and goes
// with the stack. Its secrets are not told.
func TestStackSource(t *testing.T) {
	ctx := t.Context()
	at := startServer(t, withTestKeys, func(c *config.Config) { c.IngestListen = "127.0.0.1:0" })
	endpoint := "http://" + at.Addr().String()
	c, queues := cloudformationAs(endpoint, account), client(endpoint)
	const first, second = "a key of sixteen bytes", "another key of some length"
	s := deployed(t, c, "ways", way, "Secret", first)
	out := s.outputs()
	if !strings.HasPrefix(out["Source"], "ways-Shop-") || out["Path"] != "/in/"+out["Source"] {
		t.Errorf("the source %s at %s", out["Source"], out["Path"])
	}
	equal(t, "owner", "arn:aws:iam::"+account+":root", out["Owner"])
	post := func(path, key, body string) int {
		t.Helper()
		r := must(http.NewRequestWithContext(ctx, http.MethodPost, "http://"+at.IngestAddr().String()+path, strings.NewReader(body)))(t)
		r.Header.Set("X-Api-Key", key)
		r.Header.Set("Content-Type", "application/json")
		return do(t, r).Status
	}
	equal(t, "a post", http.StatusAccepted, post(out["Path"], first, `{"order":"7"}`))
	got := must(queues.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: new(out["Queue"])}))(t)
	equal(t, "message", "7", *got.Messages[0].Body)
	equal(t, "too much", http.StatusRequestEntityTooLarge, post(out["Path"], first, `{"order":"`+strings.Repeat("x", 1000)+`"}`))

	s.update(types.StackStatusUpdateComplete, strings.Replace(way, "      Mapping: {Message: /order}\n", "", 1), "Secret", second)
	equal(t, "the key of before", http.StatusUnauthorized, post(out["Path"], first, `{}`))
	equal(t, "a post without a mapping", http.StatusAccepted, post(out["Path"], second, `{}`))
	s.update(types.StackStatusUpdateComplete, strings.Replace(way, "      Mapping:", "      Name: shop\n      Paused: true\n      Mapping:", 1), "Secret", second)
	equal(t, "replaced", "/in/shop", s.outputs()["Path"])
	equal(t, "paused", http.StatusServiceUnavailable, post("/in/shop", second, `{"order":"8"}`))
	equal(t, "the source of before", http.StatusUnauthorized, post(out["Path"], second, `{}`))

	for token := (*string)(nil); ; {
		events := must(c.DescribeStackEvents(ctx, &cloudformation.DescribeStackEventsInput{StackName: &s.id, NextToken: token}))(t)
		for _, e := range events.StackEvents {
			if e.ResourceProperties != nil && (strings.Contains(*e.ResourceProperties, first) || strings.Contains(*e.ResourceProperties, second)) {
				t.Errorf("an event tells of the secret: %s", *e.ResourceProperties)
			}
		}
		if token = events.NextToken; token == nil {
			break
		}
	}

	taken := deployedBadly(t, c, "taken", strings.Replace(way, "      Mapping:", "      Name: shop\n      Mapping:", 1), "Secret", first)
	taken.told("Resource of type 'Godwit::Ingest::Source' with identifier 'shop' already exists.")
	for _, wrong := range []struct{ of, to, told string }{
		{"Kind: api-key", "Kind: a-whisper", "kind"},
		{`Bytes: "1000"`, "Bites: 1", "#/Limits: extraneous key [Bites] is not permitted"},
	} {
		made := deployedBadly(t, c, "wrong", strings.Replace(way, wrong.of, wrong.to, 1), "Secret", first)
		made.told(wrong.told)
		made.remove()
	}
	s.remove()
	equal(t, "a source that is gone", http.StatusUnauthorized, post("/in/shop", second, `{"order":"9"}`))
}

// Who deploys a source has to be allowed godwit:PutSource, and to send to its target.
func TestStackSourcePermissions(t *testing.T) {
	ctx, endpoint := t.Context(), start(t)
	who := iamClient(endpoint)
	for name, actions := range map[string]string{
		"none": `"cloudformation:*","sqs:*"`, "deaf": `"cloudformation:*","sqs:CreateQueue","sqs:GetQueueUrl","sqs:GetQueueAttributes","sqs:DeleteQueue","godwit:PutSource","godwit:DeleteSource"`,
		"both": `"cloudformation:*","sqs:*","godwit:PutSource","godwit:DeleteSource"`,
	} {
		must(who.CreateUser(ctx, &iam.CreateUserInput{UserName: &name}))(t)
		must(who.PutUserPolicy(ctx, &iam.PutUserPolicyInput{UserName: &name, PolicyName: new("p"), PolicyDocument: new(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":[` + actions + `],"Resource":"*"}]}`)}))(t)
		key := must(who.CreateAccessKey(ctx, &iam.CreateAccessKeyInput{UserName: &name}))(t).AccessKey
		c := cloudformation.New(cloudformation.Options{
			Region: region, BaseEndpoint: &endpoint, Credentials: credentials.NewStaticCredentialsProvider(*key.AccessKeyId, *key.SecretAccessKey, ""), RetryMaxAttempts: 1, HTTPClient: eager,
		})
		made := must(c.CreateStack(ctx, &cloudformation.CreateStackInput{StackName: &name, TemplateBody: new(way), Parameters: pairs([]string{"Secret", "a key of sixteen bytes"})}))(t)
		s := &stackUnderTest{t, c, *made.StackId}
		if name == "both" {
			s.ends(types.StackStatusCreateComplete)
			equal(t, "owner", "arn:aws:iam::"+account+":user/both", s.outputs()["Owner"])
			s.remove()
			continue
		}
		s.ends(types.StackStatusRollbackComplete)
		s.told(map[string]string{"none": "is not authorized to perform: godwit:PutSource", "deaf": "is not authorized to perform: sqs:"}[name])
	}
}

// Parameters of the store are in stacks: others read them by their names.
func TestStackStore(t *testing.T) {
	ctx, endpoint := t.Context(), start(t)
	c, queues := cloudformationAs(endpoint, account), client(endpoint)
	const store = `
Parameters: {Delay: {Type: String, Default: "7"}}
Resources:
  Wait: {Type: AWS::SSM::Parameter, Properties: {Name: /shop/delay, Type: String, Value: !Ref Delay, AllowedPattern: "[0-9]+", Description: seconds}}
  Names: {Type: AWS::SSM::Parameter, Properties: {Type: StringList, Value: "a,b"}}
  Handle: {Type: AWS::CloudFormation::WaitConditionHandle}
Outputs: {Delay: {Value: !Ref Wait}, Value: {Value: !GetAtt Wait.Value}, Type: {Value: !GetAtt Names.Type}, Names: {Value: !Ref Names}}
`
	s := deployed(t, c, "store", store)
	out := s.outputs()
	equal(t, "Ref and GetAtt", "/shop/delay 7 StringList", out["Delay"]+" "+out["Value"]+" "+out["Type"])
	const read = `
Parameters: {Delay: {Type: "AWS::SSM::Parameter::Value<String>", Default: /shop/delay}}
Resources:
  Q: {Type: AWS::SQS::Queue, Properties: {DelaySeconds: !Ref Delay, VisibilityTimeout: "{{resolve:ssm:/shop/delay}}"}}
Outputs: {Queue: {Value: !Ref Q}}
`
	r := deployed(t, c, "reader", read)
	is := func() string {
		a := attributesOf(t, queues, r.outputs()["Queue"])
		return a["DelaySeconds"] + " " + a["VisibilityTimeout"]
	}
	equal(t, "what is read", "7 7", is())
	for _, p := range awaitStack(t, c, r.id).Parameters {
		equal(t, "the parameter's own value", "/shop/delay 7", *p.ParameterValue+" "+*p.ResolvedValue)
	}
	s.update(types.StackStatusUpdateComplete, store, "Delay", "9")
	equal(t, "what has been read stays", "7 7", is())
	r.update(types.StackStatusUpdateComplete, read)
	equal(t, "what an update reads", "9 9", is())

	s.update(types.StackStatusUpdateRollbackComplete, store, "Delay", "soon")
	s.told("Parameter value, cannot be validated against allowedPattern: [0-9]+")
	equal(t, "value", "9", s.outputs()["Value"])
	deployedBadly(t, c, "taken", `{"Resources": {"P": {"Type": "AWS::SSM::Parameter", "Properties": {"Name": "/shop/delay", "Type": "String", "Value": "1"}}}}`).told("Resource of type 'AWS::SSM::Parameter' with identifier '/shop/delay' already exists.")
	_, err := c.CreateStack(ctx, &cloudformation.CreateStackInput{StackName: new("blind"), TemplateBody: new(strings.Replace(read, "/shop/delay", "/nowhere", 1))})
	refusedWith(t, err, "ValidationError", "Unable to fetch parameters [/nowhere] from parameter store for this account.")

	s.update(types.StackStatusUpdateComplete, strings.ReplaceAll(store, "/shop/delay", "/shop/later"), "Delay", "9")
	equal(t, "replaced", "/shop/later", s.outputs()["Delay"])
	_, err = c.UpdateStack(ctx, &cloudformation.UpdateStackInput{StackName: new("reader"), TemplateBody: new(read)})
	refusedWith(t, err, "ValidationError", "Unable to fetch parameters [/shop/delay] from parameter store for this account.")
	s.remove()
	r.remove()
}

// What CDK synthesizes asks the store which version of its own stack there is.
func TestStackOfCDK(t *testing.T) {
	ctx, c := t.Context(), cloudformationAs(start(t), account)
	const synthesized = `{
  "Resources": {
    "Orders12AB34CD": {"Type": "AWS::SQS::Queue", "UpdateReplacePolicy": "Delete", "DeletionPolicy": "Delete", "Metadata": {"aws:cdk:path": "Shop/Orders/Resource"}},
    "CDKMetadata": {"Type": "AWS::CDK::Metadata", "Properties": {"Analytics": "v2:deflate64:H4sI"}, "Condition": "CDKMetadataAvailable"}
  },
  "Conditions": {"CDKMetadataAvailable": {"Fn::Equals": [{"Ref": "AWS::Region"}, "us-east-1"]}},
  "Parameters": {"BootstrapVersion": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/cdk-bootstrap/hnb659fds/version"}},
  "Rules": {"CheckBootstrapVersion": {"Assertions": [{
    "Assert": {"Fn::Not": [{"Fn::Contains": [["1", "2", "3", "4", "5"], {"Ref": "BootstrapVersion"}]}]},
    "AssertDescription": "CDK bootstrap stack version 6 required."}]}}
}`
	_, err := c.CreateStack(ctx, &cloudformation.CreateStackInput{StackName: new("shop"), TemplateBody: new(synthesized)})
	refusedWith(t, err, "ValidationError", "Unable to fetch parameters [/cdk-bootstrap/hnb659fds/version] from parameter store for this account.")
	const toolkit = `{"Resources": {"Version": {"Type": "AWS::SSM::Parameter", "Properties": {"Name": "/cdk-bootstrap/hnb659fds/version", "Type": "String", "Value": "5"}}}}`
	old := deployed(t, c, "toolkit", toolkit)
	if _, err := c.CreateStack(ctx, &cloudformation.CreateStackInput{StackName: new("shop"), TemplateBody: new(synthesized)}); err == nil || !strings.Contains(err.Error(), "CDK bootstrap stack version 6 required.") {
		t.Errorf("an old version: %v", err)
	}
	old.update(types.StackStatusUpdateComplete, strings.Replace(toolkit, `"5"`, `"21"`, 1))
	deployed(t, c, "shop", synthesized).remove()
}
