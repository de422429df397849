package sdk_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
)

// A stack's policy keeps resources from being changed, replaced and removed, unless one that
// is given with the update lets it.
func TestStackPolicy(t *testing.T) {
	ctx, endpoint := t.Context(), start(t)
	c := cloudformationAs(endpoint, account)
	const policy = `{"Statement":[{"Effect":"Allow","Principal":"*","Action":"Update:*","Resource":"*"},{"Effect":"Deny","Principal":"*","Action":"Update:*","Resource":"LogicalResourceId/Orders"}]}`
	const open = `{"Statement":[{"Effect":"Allow","Principal":"*","Action":"Update:*","Resource":"*"}]}`
	made := must(c.CreateStack(ctx, &cloudformation.CreateStackInput{StackName: new("shop"), TemplateBody: new(shop), StackPolicyBody: new(policy)}))(t)
	awaitStack(t, c, *made.StackId)
	equal(t, "policy", policy, *must(c.GetStackPolicy(ctx, &cloudformation.GetStackPolicyInput{StackName: new("shop")}))(t).StackPolicyBody)
	update := func(template, during string, parameters ...string) types.StackStatus {
		t.Helper()
		in := &cloudformation.UpdateStackInput{StackName: new("shop"), TemplateBody: &template, Parameters: pairs(parameters)}
		if during != "" {
			in.StackPolicyDuringUpdateBody = &during
		}
		must(c.UpdateStack(ctx, in))(t)
		return awaitStack(t, c, *made.StackId).StackStatus
	}
	equal(t, "modify", types.StackStatusUpdateRollbackComplete, update(shop, "", "Delay", "4"))
	want := "Orders UPDATE_FAILED: Action denied by stack policy: Statement [#2] does not allow [Update:Modify] for resource [LogicalResourceId/Orders]"
	if lines := eventsOfStack(t, c, "shop"); !slices.Contains(lines, want) {
		t.Errorf("%q lacks %s", lines, want)
	}
	equal(t, "another", types.StackStatusUpdateComplete, update(strings.Replace(shop, "DisplayName: Events", "DisplayName: Others", 1), ""))
	equal(t, "remove", types.StackStatusUpdateRollbackComplete, update("Resources: {Dead: {Type: AWS::SQS::Queue}}", ""))
	equal(t, "meanwhile", types.StackStatusUpdateComplete, update(shop, open, "Delay", "4"))
	equal(t, "after", types.StackStatusUpdateRollbackComplete, update(shop, "", "Delay", "5"))
	must(c.SetStackPolicy(ctx, &cloudformation.SetStackPolicyInput{StackName: new("shop"), StackPolicyBody: new(open)}))(t)
	equal(t, "set", types.StackStatusUpdateComplete, update(shop, "", "Delay", "5"))
	_, err := c.SetStackPolicy(ctx, &cloudformation.SetStackPolicyInput{StackName: new("shop"), StackPolicyBody: new(`{"Statement":[{}]}`)})
	refusedWith(t, err, "ValidationError", "Error validating stack policy: Invalid stack policy")
	_, err = c.GetStackPolicy(ctx, &cloudformation.GetStackPolicyInput{StackName: new("none")})
	refusedWith(t, err, "ValidationError", "Stack [none] does not exist")

	who := userOf(t, iamClient(endpoint), "deployer", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["cloudformation:UpdateStack","sqs:*","sns:*"],"Resource":"*"}]}`)
	limited := cloudformation.New(cloudformation.Options{Region: region, BaseEndpoint: &endpoint, Credentials: who, RetryMaxAttempts: 1, HTTPClient: eager})
	_, err = limited.UpdateStack(ctx, &cloudformation.UpdateStackInput{StackName: new("shop"), TemplateBody: new(shop), StackPolicyDuringUpdateBody: new(open)})
	if err == nil || !strings.Contains(err.Error(), "cloudformation:SetStackPolicy") {
		t.Errorf("with a policy by who may set none: %v", err)
	}
}

// Two deployments of a stack at once are refused, and change nothing.
func TestStackTwice(t *testing.T) {
	ctx, endpoint := t.Context(), start(t)
	c := cloudformationAs(endpoint, account)
	const many = "Resources: {Q: {Type: AWS::SQS::Queue}, R: {Type: AWS::SQS::Queue}}"
	fault := func(kind string) {
		admin(t, endpoint+"/_godwit/faults", `{"arn":"arn:aws:sqs:`+region+`:`+account+`:*","fault":"`+kind+`"}`)
	}
	fault("unavailable") // its steps wait until that is over
	made := must(c.CreateStack(ctx, &cloudformation.CreateStackInput{StackName: new("many"), TemplateBody: new(many)}))(t)
	_, err := c.UpdateStack(ctx, &cloudformation.UpdateStackInput{StackName: new("many"), TemplateBody: new("Resources: {Q: {Type: AWS::SQS::Queue}}")})
	refusedWith(t, err, "ValidationError", "Stack:"+*made.StackId+" is in CREATE_IN_PROGRESS state and can not be updated.")
	_, err = c.CreateStack(ctx, &cloudformation.CreateStackInput{StackName: new("many"), TemplateBody: new(many)})
	refusedWith(t, err, "AlreadyExistsException", "Stack [many] already exists")
	_, err = c.CreateChangeSet(ctx, &cloudformation.CreateChangeSetInput{StackName: new("many"), ChangeSetName: new("c"), TemplateBody: new(many)})
	refusedWith(t, err, "ValidationError", "Stack:"+*made.StackId+" is in CREATE_IN_PROGRESS state and can not be updated.")
	fault("none")
	equal(t, "the first", types.StackStatusCreateComplete, awaitStack(t, c, *made.StackId).StackStatus)
}

// The sequence of calls that Terraform's aws_cloudformation_stack makes: create and wait,
// read back with the template and the policy, update with what changed, delete and wait until
// it is gone.
func TestStackAsTerraform(t *testing.T) {
	ctx, endpoint := t.Context(), start(t)
	c := cloudformationAs(endpoint, account)
	token := new("tf-create")
	made := must(c.CreateStack(ctx, &cloudformation.CreateStackInput{
		StackName: new("tf"), ClientRequestToken: token, TemplateBody: new(shop), Parameters: pairs([]string{"Delay", "1"}),
		OnFailure: types.OnFailureDelete, TimeoutInMinutes: new(int32(10)), Tags: []types.Tag{{Key: new("by"), Value: new("terraform")}},
	}))(t)
	again := must(c.CreateStack(ctx, &cloudformation.CreateStackInput{StackName: new("tf"), ClientRequestToken: token, TemplateBody: new(shop)}))(t)
	equal(t, "the same request again", *made.StackId, *again.StackId)
	s := awaitStack(t, c, *made.StackId)
	equal(t, "created", types.StackStatusCreateComplete, s.StackStatus)
	equal(t, "minutes", int32(10), *s.TimeoutInMinutes)
	equal(t, "rollback", false, *s.DisableRollback)
	equal(t, "tag", "terraform", *s.Tags[0].Value)
	equal(t, "template", shop, *must(c.GetTemplate(ctx, &cloudformation.GetTemplateInput{StackName: made.StackId, TemplateStage: types.TemplateStageOriginal}))(t).TemplateBody)
	if policy := must(c.GetStackPolicy(ctx, &cloudformation.GetStackPolicyInput{StackName: made.StackId}))(t); policy.StackPolicyBody != nil {
		t.Errorf("a stack without a policy has %s", *policy.StackPolicyBody)
	}
	token = new("tf-update")
	must(c.UpdateStack(ctx, &cloudformation.UpdateStackInput{
		StackName: made.StackId, ClientRequestToken: token, TemplateBody: new(shop), Parameters: pairs([]string{"Delay", "2"}), Tags: []types.Tag{{Key: new("by"), Value: new("terraform")}},
	}))(t)
	equal(t, "updated", types.StackStatusUpdateComplete, awaitStack(t, c, *made.StackId).StackStatus)
	for _, e := range must(c.DescribeStackEvents(ctx, &cloudformation.DescribeStackEventsInput{StackName: made.StackId}))(t).StackEvents {
		if e.ResourceStatus == types.ResourceStatusUpdateComplete && *e.ClientRequestToken != *token {
			t.Errorf("an event of the update has the token %s", *e.ClientRequestToken)
		}
	}
	must(c.DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: made.StackId, ClientRequestToken: new("tf-delete")}))(t)
	equal(t, "deleted", types.StackStatusDeleteComplete, awaitStack(t, c, *made.StackId).StackStatus)
}

// A policy of a queue or a topic that a template gives another logical id stays, also if that update is
// rolled back.
func TestStackPolicyRenamed(t *testing.T) {
	ctx, endpoint := t.Context(), start(t)
	c, queues, topics := cloudformationAs(endpoint, account), client(endpoint), topicsClient(endpoint)
	template := func(id, sid, more string) string {
		document := `{Version: 2012-10-17, Statement: [{Sid: ` + sid + `, Effect: Allow, Principal: "*", Action: "%s", Resource: !%s}]}`
		return `
Resources:
  Q: {Type: AWS::SQS::Queue}
  T: {Type: AWS::SNS::Topic}
  ` + id + `Q: {Type: AWS::SQS::QueuePolicy, Properties: {Queues: [!Ref Q], PolicyDocument: ` + fmt.Sprintf(document, "sqs:SendMessage", "GetAtt Q.Arn") + `}}
  ` + id + `T: {Type: AWS::SNS::TopicPolicy, Properties: {Topics: [!Ref T], PolicyDocument: ` + fmt.Sprintf(document, "sns:Publish", "Ref T") + `}}` + more + `
Outputs: {Queue: {Value: !Ref Q}, Topic: {Value: !Ref T}}`
	}
	s := deployed(t, c, "policed", template("A", "first", ""))
	has := func(sid string) {
		t.Helper()
		if policy := attributesOf(t, queues, s.outputs()["Queue"])["Policy"]; !strings.Contains(policy, sid) {
			t.Errorf("the queue's policy is %q, without %s", policy, sid)
		}
		if policy := must(topics.GetTopicAttributes(ctx, &sns.GetTopicAttributesInput{TopicArn: new(s.outputs()["Topic"])}))(t).Attributes["Policy"]; !strings.Contains(policy, sid) {
			t.Errorf("the topic's policy is %q, without %s", policy, sid)
		}
	}
	has("first")
	s.update(types.StackStatusUpdateComplete, template("B", "first", ""))
	has("first")
	s.update(types.StackStatusUpdateRollbackComplete, template("C", "second", "\n  Bad: {Type: AWS::SQS::Queue, DependsOn: [CQ, CT], Properties: {QueueName: not a name}}"))
	has("first")
	s.update(types.StackStatusUpdateComplete, template("C", "second", ""))
	has("second")
	s.remove()
}
