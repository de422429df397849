package sdk_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

const (
	keeping = `
Parameters: {Version: {Type: String}, Fail: {Type: String, Default: "no"}, Inner: {Type: String}}
Conditions: {Fails: !Equals [!Ref Fail, "yes"]}
Resources:
  Part: {Type: AWS::CloudFormation::Stack, Properties: {TemplateURL: !Ref Inner, Parameters: {Version: !Ref Version}}}
  Last: {Type: AWS::SQS::Queue, DependsOn: Part, Properties: {QueueName: !If [Fails, "not a name", !Ref AWS::NoValue]}}
Outputs: {Queue: {Value: !GetAtt Part.Outputs.Queue}, Part: {Value: !Ref Part}}
`
	kept = `
Parameters: {Version: {Type: String}}
Conditions: {First: !Equals [!Ref Version, "1"], Second: !Equals [!Ref Version, "2"], Bad: !Equals [!Ref Version, "bad"]}
Resources:
  Removed: {Type: AWS::SQS::Queue, Condition: First}
  Q: {Type: AWS::SQS::Queue, Properties: {FifoQueue: !If [First, !Ref AWS::NoValue, true]}}
  R: {Type: AWS::SQS::Queue, DependsOn: Q, Properties: {DelaySeconds: !If [Bad, 9999, 0]}}
Outputs: {Queue: {Value: !Ref Q}}
`
)

// What a nested stack does not need any more goes once the stack around it is complete, so that a
// failure behind it finds it as it was, with its messages.
func TestNestedStackWaitsForItsRoot(t *testing.T) {
	ctx := t.Context()
	endpoint, a := startArtifacts(t)
	a.put("/bucket/inner", kept)
	c, queues := cloudformationAs(endpoint, account), client(endpoint)
	inner := a.URL + "/bucket/inner"
	s := deployed(t, c, "root", keeping, "Inner", inner, "Version", "1")
	first := s.outputs()["Queue"]
	all := func() int { return len(must(queues.ListQueues(ctx, &sqs.ListQueuesInput{}))(t).QueueUrls) }
	equal(t, "queues", 4, all())
	for _, link := range must(queues.ListQueues(ctx, &sqs.ListQueuesInput{}))(t).QueueUrls {
		must(queues.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &link, MessageBody: new("precious")}))(t)
	}
	holds := func(links ...string) {
		t.Helper()
		for _, link := range links {
			equal(t, "messages in "+link, "1", attributesOf(t, queues, link)["ApproximateNumberOfMessages"])
		}
	}
	removed := func() string {
		t.Helper()
		return *must(c.DescribeStackResource(ctx, &cloudformation.DescribeStackResourceInput{StackName: new(s.outputs()["Part"]), LogicalResourceId: new("Removed")}))(t).StackResourceDetail.PhysicalResourceId
	}
	gone := removed()
	s.update(types.StackStatusUpdateRollbackComplete, keeping, "Inner", inner, "Version", "2", "Fail", "yes")
	equal(t, "queue", first, s.outputs()["Queue"])
	holds(first, gone)
	equal(t, "queues", 4, all())

	// The template that the part was made of need not be there any more.
	s.update(types.StackStatusUpdateRollbackComplete, keeping, "Inner", inner, "Version", "bad")
	holds(first, gone)
	must(c.UpdateStack(ctx, &cloudformation.UpdateStackInput{StackName: new("root"), TemplateBody: new(keeping), DisableRollback: new(true), Parameters: pairs([]string{"Inner", inner, "Version", "2", "Fail", "yes"})}))(t)
	s.ends(types.StackStatusUpdateFailed)
	equal(t, "part", types.StackStatusUpdateCompleteCleanupInProgress, must(c.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: new(s.outputs()["Part"])}))(t).Stacks[0].StackStatus)
	holds(first, gone)
	a.put("/bucket/inner", "Resources: {")
	must(c.RollbackStack(ctx, &cloudformation.RollbackStackInput{StackName: new("root")}))(t)
	s.ends(types.StackStatusUpdateRollbackComplete)
	holds(first, gone)
	equal(t, "queues", 4, all())

	a.put("/bucket/inner", kept)
	s.update(types.StackStatusUpdateComplete, keeping, "Inner", inner, "Version", "2")
	equal(t, "part", types.StackStatusUpdateComplete, awaitStack(t, c, s.outputs()["Part"]).StackStatus)
	equal(t, "queues", 3, all())
	if link := s.outputs()["Queue"]; !strings.HasSuffix(link, ".fifo") {
		t.Errorf("the queue is %s", link)
	}
	s.remove()
	equal(t, "queues", 0, all())
}

// A rollback that fails within a nested stack goes on with the stack around it, and without what is to
// be skipped there.
func TestNestedStackContinuesRollback(t *testing.T) {
	ctx := t.Context()
	endpoint, a := startArtifacts(t)
	a.put("/bucket/inner", strings.Replace(kept, "FifoQueue: !If [First, !Ref AWS::NoValue, true]", "DelaySeconds: !If [First, 1, 2]", 1))
	c, queues := cloudformationAs(endpoint, account), client(endpoint)
	inner := a.URL + "/bucket/inner"
	s := deployed(t, c, "root", keeping, "Inner", inner, "Version", "1")
	must(c.UpdateStack(ctx, &cloudformation.UpdateStackInput{StackName: new("root"), TemplateBody: new(keeping), DisableRollback: new(true), Parameters: pairs([]string{"Inner", inner, "Version", "2", "Fail", "yes"})}))(t)
	s.ends(types.StackStatusUpdateFailed)
	must(queues.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: new(s.outputs()["Queue"])}))(t)
	must(c.RollbackStack(ctx, &cloudformation.RollbackStackInput{StackName: new("root")}))(t)
	s.ends(types.StackStatusUpdateRollbackFailed)
	equal(t, "part", types.StackStatusUpdateRollbackFailed, awaitStack(t, c, s.outputs()["Part"]).StackStatus)
	_, err := c.ContinueUpdateRollback(ctx, &cloudformation.ContinueUpdateRollbackInput{StackName: new("root"), ResourcesToSkip: []string{"Last.Q"}})
	refusedWith(t, err, "ValidationError", "Resource Last.Q does not exist for stack root")
	must(c.ContinueUpdateRollback(ctx, &cloudformation.ContinueUpdateRollbackInput{StackName: new("root"), ResourcesToSkip: []string{"Part.Q"}}))(t)
	s.ends(types.StackStatusUpdateRollbackComplete)
	equal(t, "part", types.StackStatusUpdateRollbackComplete, awaitStack(t, c, s.outputs()["Part"]).StackStatus)
	s.remove()
}

// A nested stack whose export is in use is not deleted, and says so, rather than being tried for ever.
func TestNestedStackExportInUse(t *testing.T) {
	ctx := t.Context()
	endpoint, a := startArtifacts(t)
	a.put("/bucket/inner", "Resources: {Q: {Type: AWS::SQS::Queue}}\nOutputs: {O: {Value: !Ref Q, Export: {Name: shared}}}")
	c := cloudformationAs(endpoint, account)
	s := deployed(t, c, "root", fmt.Sprintf("Resources: {Part: {Type: AWS::CloudFormation::Stack, Properties: {TemplateURL: %s/bucket/inner}}}", a.URL))
	user := deployed(t, c, "user", "Resources: {Q: {Type: AWS::SQS::Queue, Properties: {Tags: [{Key: k, Value: !ImportValue shared}]}}}")
	must(c.DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: new("root")}))(t)
	s.ends(types.StackStatusDeleteFailed)
	s.told("Cannot delete export shared as it is in use by user.")
	user.remove()
	s.remove()
}

// The rollback of a nested stack takes no capability that the failed update was not given: that was
// for what it was to become.
func TestNestedStackRollbackNeedsNoCapability(t *testing.T) {
	ctx := t.Context()
	endpoint, a := startArtifacts(t)
	a.put("/bucket/role", `{"Resources":{"R":{"Type":"AWS::IAM::Role","Properties":{"AssumeRolePolicyDocument":{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"Service":"lambda.amazonaws.com"},"Action":"sts:AssumeRole"}}}}}}`)
	a.put("/bucket/queue", `{"Resources":{"Q":{"Type":"AWS::SQS::Queue"}}}`)
	c := cloudformationAs(endpoint, account)
	template := strings.Replace(keeping, ", Parameters: {Version: !Ref Version}", "", 1)
	template = strings.Replace(template, "Queue: {Value: !GetAtt Part.Outputs.Queue}, ", "", 1)
	s := deployed(t, c, "root", template, "Inner", a.URL+"/bucket/role", "Version", "1")
	must(c.UpdateStack(ctx, &cloudformation.UpdateStackInput{StackName: new("root"), TemplateBody: &template, Parameters: pairs([]string{"Inner", a.URL + "/bucket/queue", "Version", "1", "Fail", "yes"})}))(t)
	s.ends(types.StackStatusUpdateRollbackComplete)
	equal(t, "roles", 1, len(must(iamClient(endpoint).ListRoles(ctx, &iam.ListRolesInput{}))(t).Roles))
	s.remove()
}
