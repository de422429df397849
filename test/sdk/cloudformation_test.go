package sdk_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

func cloudformationAs(endpoint, who string) *cloudformation.Client {
	return cloudformation.New(cloudformation.Options{Region: region, BaseEndpoint: &endpoint, Credentials: credentials.NewStaticCredentialsProvider(who, secretOf(who), ""), RetryMaxAttempts: 1, HTTPClient: eager})
}

// shop is a topic that feeds a queue with a dead-letter queue.
const shop = `
AWSTemplateFormatVersion: "2010-09-09"
Description: rentals
Parameters:
  Delay: {Type: Number, Default: 0}
  Secret: {Type: String, NoEcho: true, Default: hush}
Resources:
  Dead:
    Type: AWS::SQS::Queue
  Orders:
    Type: AWS::SQS::Queue
    Properties:
      DelaySeconds: !Ref Delay
      RedrivePolicy:
        deadLetterTargetArn: !GetAtt Dead.Arn
        maxReceiveCount: 3
      Tags: [{Key: team, Value: rentals}]
  Events:
    Type: AWS::SNS::Topic
    Properties: {DisplayName: Events}
  MayPublish:
    Type: AWS::SQS::QueuePolicy
    Properties:
      Queues: [!Ref Orders]
      PolicyDocument:
        Version: 2012-10-17
        Statement: [{Effect: Allow, Principal: {Service: sns.amazonaws.com}, Action: "sqs:SendMessage", Resource: !GetAtt Orders.Arn,
                     Condition: {ArnEquals: {"aws:SourceArn": !Ref Events}}}]
  Feed:
    Type: AWS::SNS::Subscription
    DependsOn: MayPublish
    Properties: {TopicArn: !Ref Events, Protocol: sqs, Endpoint: !GetAtt Orders.Arn, RawMessageDelivery: true, FilterPolicy: {status: [confirmed]}}
Outputs:
  Queue: {Value: !Ref Orders, Description: where orders come in}
  Topic: {Value: !Ref Events, Export: {Name: !Sub "${AWS::StackName}-topic"}}
`

// awaitStack returns a stack once nothing of it is under way.
func awaitStack(t *testing.T, c *cloudformation.Client, name string) types.Stack {
	t.Helper()
	var s types.Stack
	eventually(t, "nothing of the stack is under way", func() bool {
		s = must(c.DescribeStacks(t.Context(), &cloudformation.DescribeStacksInput{StackName: &name}))(t).Stacks[0]
		return !strings.HasSuffix(string(s.StackStatus), "_IN_PROGRESS")
	})
	return s
}

func deploy(t *testing.T, c *cloudformation.Client, name, template string, parameters ...string) types.Stack {
	t.Helper()
	made := must(c.CreateStack(t.Context(), &cloudformation.CreateStackInput{StackName: &name, TemplateBody: &template, Parameters: pairs(parameters)}))(t)
	return awaitStack(t, c, *made.StackId)
}

func pairs(of []string) (all []types.Parameter) {
	for i := 0; i+1 < len(of); i += 2 {
		all = append(all, types.Parameter{ParameterKey: &of[i], ParameterValue: &of[i+1]})
	}
	return all
}

// eventsOfStack is what a stack's events say, the oldest first: id, status and reason.
func eventsOfStack(t *testing.T, c *cloudformation.Client, name string) (lines []string) {
	t.Helper()
	for token := (*string)(nil); ; {
		out := must(c.DescribeStackEvents(t.Context(), &cloudformation.DescribeStackEventsInput{StackName: &name, NextToken: token}))(t)
		for _, e := range out.StackEvents {
			line := *e.LogicalResourceId + " " + string(e.ResourceStatus)
			if e.ResourceStatusReason != nil {
				line += ": " + *e.ResourceStatusReason
			}
			lines = append(lines, line)
		}
		if token = out.NextToken; token == nil {
			slices.Reverse(lines)
			return lines
		}
	}
}

// A stack's resources work together, are listed, and go with it.
func TestStack(t *testing.T) {
	endpoint := start(t)
	c, queues, topics := cloudformationAs(endpoint, account), client(endpoint), topicsClient(endpoint)
	s := deploy(t, c, "shop", shop, "Delay", "0")
	if s.StackStatus != types.StackStatusCreateComplete {
		t.Fatalf("%s: %q", s.StackStatus, eventsOfStack(t, c, "shop"))
	}
	outputs := map[string]string{}
	for _, o := range s.Outputs {
		outputs[*o.OutputKey] = *o.OutputValue
	}
	for _, p := range s.Parameters {
		if *p.ParameterKey == "Secret" {
			equal(t, "a parameter that is not to be shown", "****", *p.ParameterValue)
		}
	}
	for status, want := range map[string]string{"confirmed": "in", "quoted": ""} {
		must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: new(outputs["Topic"]), Message: new("in"), MessageAttributes: map[string]snstypes.MessageAttributeValue{"status": textAttribute(status)}}))(t)
		got := must(queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: new(outputs["Queue"])}))(t)
		if want == "" {
			equal(t, status, 0, len(got.Messages))
			continue
		}
		equal(t, status, want, *got.Messages[0].Body)
	}
	exports := must(c.ListExports(t.Context(), &cloudformation.ListExportsInput{}))(t)
	equal(t, "export", "shop-topic", *exports.Exports[0].Name)
	resources := must(c.DescribeStackResources(t.Context(), &cloudformation.DescribeStackResourcesInput{StackName: new("shop")}))(t)
	equal(t, "resources", 5, len(resources.StackResources))
	one := must(c.DescribeStackResource(t.Context(), &cloudformation.DescribeStackResourceInput{StackName: new("shop"), LogicalResourceId: new("Orders")}))(t)
	equal(t, "Ref of a queue", outputs["Queue"], *one.StackResourceDetail.PhysicalResourceId)
	equal(t, "text", shop, *must(c.GetTemplate(t.Context(), &cloudformation.GetTemplateInput{StackName: new("shop")}))(t).TemplateBody)

	must(c.DeleteStack(t.Context(), &cloudformation.DeleteStackInput{StackName: new("shop")}))(t)
	gone := awaitStack(t, c, *s.StackId)
	if gone.StackStatus != types.StackStatusDeleteComplete {
		t.Errorf("%s: %q", gone.StackStatus, eventsOfStack(t, c, *s.StackId))
	}
	equal(t, "queues", 0, len(must(queues.ListQueues(t.Context(), &sqs.ListQueuesInput{}))(t).QueueUrls))
	equal(t, "topics", 0, len(must(topics.ListTopics(t.Context(), &sns.ListTopicsInput{}))(t).Topics))
	_, err := c.DescribeStacks(t.Context(), &cloudformation.DescribeStacksInput{StackName: new("shop")})
	refusedWith(t, err, "ValidationError", "Stack with id shop does not exist")
}

// What cannot be created is reported, and what was created before it is deleted.
func TestStackRollback(t *testing.T) {
	endpoint := start(t)
	c, queues := cloudformationAs(endpoint, account), client(endpoint)
	must(queues.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: new("theirs")}))(t)
	s := deploy(t, c, "late", `{"Resources":{"A":{"Type":"AWS::SQS::Queue"},"B":{"Type":"AWS::SQS::Queue","DependsOn":"A","Properties":{"QueueName":"theirs"}}}}`)
	equal(t, "status", types.StackStatusRollbackComplete, s.StackStatus)
	lines := eventsOfStack(t, c, "late")
	for i, want := range []string{
		"late CREATE_IN_PROGRESS: User Initiated", "A CREATE_IN_PROGRESS", "A CREATE_COMPLETE", "B CREATE_IN_PROGRESS",
		`B CREATE_FAILED: Resource handler returned message: "Resource of type 'AWS::SQS::Queue' with identifier 'theirs' already exists." (RequestToken: `,
		"late ROLLBACK_IN_PROGRESS: The following resource(s) failed to create: [B]. Rollback requested by user.",
		"B DELETE_COMPLETE", "A DELETE_IN_PROGRESS", "A DELETE_COMPLETE", "late ROLLBACK_COMPLETE",
	} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Fatalf("event %d of %q, want %s", i, lines, want)
		}
	}
	left := must(queues.ListQueues(t.Context(), &sqs.ListQueuesInput{}))(t).QueueUrls
	if len(left) != 1 || !strings.HasSuffix(left[0], "/theirs") {
		t.Errorf("queues: %q", left)
	}
}

// An update changes in place what it can, replaces what it must, and goes back if it fails.
func TestStackUpdate(t *testing.T) {
	endpoint := start(t)
	c, queues := cloudformationAs(endpoint, account), client(endpoint)
	s := deploy(t, c, "shop", shop)
	update := func(template string, parameters ...string) types.Stack {
		t.Helper()
		must(c.UpdateStack(t.Context(), &cloudformation.UpdateStackInput{StackName: new("shop"), TemplateBody: &template, Parameters: pairs(parameters)}))(t)
		return awaitStack(t, c, *s.StackId)
	}
	link := func() string {
		return *must(c.DescribeStackResource(t.Context(), &cloudformation.DescribeStackResourceInput{StackName: new("shop"), LogicalResourceId: new("Orders")}))(t).StackResourceDetail.PhysicalResourceId
	}
	before := link()
	equal(t, "in place", types.StackStatusUpdateComplete, update(shop, "Delay", "7").StackStatus)
	equal(t, "its queue", before, link())
	has := must(queues.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &before, AttributeNames: []sqstypes.QueueAttributeName{"DelaySeconds"}}))(t)
	equal(t, "delay", "7", has.Attributes["DelaySeconds"])

	_, err := c.UpdateStack(t.Context(), &cloudformation.UpdateStackInput{StackName: new("shop"), TemplateBody: new(shop), Parameters: pairs([]string{"Delay", "7"})})
	refusedWith(t, err, "ValidationError", "No updates are to be performed.")

	named := strings.Replace(shop, "      DelaySeconds", "      QueueName: orders\n      DelaySeconds", 1)
	equal(t, "replaced", types.StackStatusUpdateComplete, update(named, "Delay", "7").StackStatus)
	if after := link(); !strings.HasSuffix(after, "/orders") {
		t.Errorf("the queue is %s", after)
	}
	_, err = queues.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &before})
	if err == nil {
		t.Error("the queue that was replaced is still there")
	}

	bad := strings.Replace(named, "maxReceiveCount: 3", "maxReceiveCount: 3000", 1) + "  New: {Value: x}\n"
	bad = strings.Replace(bad, "DisplayName: Events", "DisplayName: Others", 1)
	equal(t, "failed", types.StackStatusUpdateRollbackComplete, update(bad, "Delay", "9").StackStatus)
	has = must(queues.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: new(link()), AttributeNames: []sqstypes.QueueAttributeName{"DelaySeconds", "RedrivePolicy"}}))(t)
	equal(t, "delay", "7", has.Attributes["DelaySeconds"])
	if !strings.Contains(has.Attributes["RedrivePolicy"], "3") || strings.Contains(has.Attributes["RedrivePolicy"], "3000") {
		t.Errorf("after the rollback: %v", has.Attributes)
	}
	equal(t, "queues", 2, len(must(queues.ListQueues(t.Context(), &sqs.ListQueuesInput{}))(t).QueueUrls))
}

// A change set says what would change, and does it: as aws cloudformation deploy asks.
func TestChangeSet(t *testing.T) {
	ctx, endpoint := t.Context(), start(t)
	c := cloudformationAs(endpoint, account)
	prepare := func(name string, kind types.ChangeSetType, parameters ...string) *cloudformation.DescribeChangeSetOutput {
		t.Helper()
		made := must(c.CreateChangeSet(ctx, &cloudformation.CreateChangeSetInput{StackName: new("shop"), ChangeSetName: &name, ChangeSetType: kind, TemplateBody: new(shop), Parameters: pairs(parameters)}))(t)
		return must(c.DescribeChangeSet(ctx, &cloudformation.DescribeChangeSetInput{ChangeSetName: made.Id}))(t)
	}
	execute := func(name string) types.Stack {
		t.Helper()
		must(c.ExecuteChangeSet(ctx, &cloudformation.ExecuteChangeSetInput{StackName: new("shop"), ChangeSetName: &name}))(t)
		return awaitStack(t, c, "shop")
	}
	first := prepare("first", types.ChangeSetTypeCreate)
	equal(t, "changes", 5, len(first.Changes))
	equal(t, "stack", types.StackStatusReviewInProgress, must(c.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: new("shop")}))(t).Stacks[0].StackStatus)
	equal(t, "made", types.StackStatusCreateComplete, execute("first").StackStatus)

	second := prepare("second", types.ChangeSetTypeUpdate, "Delay", "5")
	equal(t, "changes", 1, len(second.Changes))
	change := second.Changes[0].ResourceChange
	equal(t, "replacement", types.ReplacementFalse, change.Replacement)
	equal(t, "property", "DelaySeconds", *change.Details[0].Target.Name)
	equal(t, "updated", types.StackStatusUpdateComplete, execute("second").StackStatus)

	third := prepare("third", types.ChangeSetTypeUpdate, "Delay", "5")
	equal(t, "nothing", types.ChangeSetStatusFailed, third.Status)
	equal(t, "reason", "The submitted information didn't contain changes. Submit different information to create a change set.", *third.StatusReason)
	_, err := c.ExecuteChangeSet(ctx, &cloudformation.ExecuteChangeSetInput{StackName: new("shop"), ChangeSetName: new("third")})
	refusedWith(t, err, "InvalidChangeSetStatus", "ChangeSet ["+*third.ChangeSetId+"] cannot be executed in its current status of [FAILED]")
	must(c.DeleteChangeSet(ctx, &cloudformation.DeleteChangeSetInput{StackName: new("shop"), ChangeSetName: new("third")}))(t)
	_, err = c.DescribeChangeSet(ctx, &cloudformation.DescribeChangeSetInput{StackName: new("shop"), ChangeSetName: new("third")})
	refusedWith(t, err, "ChangeSetNotFound", "ChangeSet [third] does not exist")

	// The CDK deletes the set of its name before it makes it, whether there is one or not.
	must(c.DeleteChangeSet(ctx, &cloudformation.DeleteChangeSetInput{StackName: new("shop"), ChangeSetName: new("third")}))(t)
	_, err = c.DeleteChangeSet(ctx, &cloudformation.DeleteChangeSetInput{StackName: new("none"), ChangeSetName: new("third")})
	refusedWith(t, err, "ValidationError", "Stack [none] does not exist")
}

// What is refused makes nothing.
func TestStackRefusals(t *testing.T) {
	c := cloudformationAs(start(t), account)
	for text, in := range map[string]*cloudformation.CreateStackInput{
		"Template format error: Unrecognized resource types: [AWS::S3::Bucket] (line 1, /Resources/B/Type)": {
			StackName: new("s"), TemplateBody: new(`{"Resources":{"Q":{"Type":"AWS::SQS::Queue"},"B":{"Type":"AWS::S3::Bucket"}}}`),
		},
		"Either Template URL or Template Body must be specified.": {StackName: new("s")},
		"Template error: resource Q does not support attribute type Size in Fn::GetAtt (line 1, /Outputs/O/Value)": {
			StackName: new("s"), TemplateBody: new(`{"Resources":{"Q":{"Type":"AWS::SQS::Queue"}},"Outputs":{"O":{"Value":{"Fn::GetAtt":["Q","Size"]}}}}`),
		},
		"1 validation error detected: Value '1s' at 'stackName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z][-a-zA-Z0-9]*": {
			StackName: new("1s"), TemplateBody: new(shop),
		},
		"1 validation error detected: Value '' at 'tags.1.member.key' failed to satisfy constraint: Member must have length greater than or equal to 1": {
			StackName: new("s"), TemplateBody: new(shop), Tags: []types.Tag{{Key: new(""), Value: new("s")}},
		},
		"1 validation error detected: Value ' a' at 'clientRequestToken' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9][-a-zA-Z0-9]*": {
			StackName: new("s"), TemplateBody: new(shop), ClientRequestToken: new(" a"),
		},
		"1 validation error detected: Value '0' at 'timeoutInMinutes' failed to satisfy constraint: Member must have value greater than or equal to 1": {
			StackName: new("s"), TemplateBody: new(shop), TimeoutInMinutes: new(int32(0)),
		},
		"Role arn:aws:iam::" + account + ":user/deployer is invalid or cannot be assumed": {
			StackName: new("s"), TemplateBody: new(shop), RoleARN: new("arn:aws:iam::" + account + ":user/deployer"),
		},
		"aws: prefixed tag key names are not allowed for external use.": {
			StackName: new("s"), TemplateBody: new(shop), Tags: []types.Tag{{Key: new("Aws:stack"), Value: new("s")}},
		},
	} {
		_, err := c.CreateStack(t.Context(), in)
		refusedWith(t, err, "ValidationError", text)
	}
	equal(t, "stacks", 0, len(must(c.ListStacks(t.Context(), &cloudformation.ListStacksInput{}))(t).StackSummaries))
	s := deploy(t, c, "shop", shop)
	_, err := c.CreateStack(t.Context(), &cloudformation.CreateStackInput{StackName: new("shop"), TemplateBody: new(shop)})
	refusedWith(t, err, "AlreadyExistsException", "Stack [shop] already exists")
	must(c.UpdateTerminationProtection(t.Context(), &cloudformation.UpdateTerminationProtectionInput{StackName: s.StackId, EnableTerminationProtection: new(true)}))(t)
	_, err = c.DeleteStack(t.Context(), &cloudformation.DeleteStackInput{StackName: new("shop")})
	refusedWith(t, err, "ValidationError", "Stack [shop] cannot be deleted while TerminationProtection is enabled")

	importer := `{"Resources":{"Q":{"Type":"AWS::SQS::Queue","Properties":{"Tags":[{"Key":"of","Value":{"Fn::ImportValue":"shop-topic"}}]}}}}`
	equal(t, "importer", types.StackStatusCreateComplete, deploy(t, c, "importer", importer).StackStatus)
	imports := must(c.ListImports(t.Context(), &cloudformation.ListImportsInput{ExportName: new("shop-topic")}))(t)
	equal(t, "imports", "importer", imports.Imports[0])
	must(c.UpdateTerminationProtection(t.Context(), &cloudformation.UpdateTerminationProtectionInput{StackName: s.StackId, EnableTerminationProtection: new(false)}))(t)
	must(c.DeleteStack(t.Context(), &cloudformation.DeleteStackInput{StackName: new("shop")}))(t)
	kept := awaitStack(t, c, "shop")
	equal(t, "with an export in use", types.StackStatusCreateComplete, kept.StackStatus)
	equal(t, "why", "Delete canceled. Cannot delete export shop-topic as it is in use by importer.", *kept.StackStatusReason)
	again := deploy(t, c, "again", strings.Replace(shop, "${AWS::StackName}-topic", "shop-topic", 1))
	equal(t, "an export that there is", "Export with name shop-topic is already exported by stack shop. Rollback requested by user.", reasonOf(t, c, "again", types.ResourceStatusRollbackInProgress))
	equal(t, "with an export that there is", types.StackStatusRollbackComplete, again.StackStatus)
	must(c.UpdateStack(t.Context(), &cloudformation.UpdateStackInput{StackName: new("shop"), TemplateBody: new(shop), Parameters: pairs([]string{"Delay", "3"})}))(t)
	equal(t, "an update of what was not deleted", types.StackStatusUpdateComplete, awaitStack(t, c, "shop").StackStatus)
	summary := must(c.GetTemplateSummary(t.Context(), &cloudformation.GetTemplateSummaryInput{TemplateBody: new(shop)}))(t)
	equal(t, "parameters", 2, len(summary.Parameters))
	valid := must(c.ValidateTemplate(t.Context(), &cloudformation.ValidateTemplateInput{TemplateBody: new(shop)}))(t)
	equal(t, "description", "rentals", *valid.Description)
}

// A request that is sent again with its token, as its answer was lost, begins nothing more and is no
// failure, whether what it began is over or not.
func TestStackRequestAgain(t *testing.T) {
	ctx, endpoint := t.Context(), start(t)
	c := cloudformationAs(endpoint, account)
	template := func(delay string) *string {
		return new("Resources: {Q: {Type: AWS::SQS::Queue, Properties: {DelaySeconds: " + delay + "}}}")
	}
	s := deployed(t, c, "s", *template("1"))
	update := func(delay, token string) error {
		_, err := c.UpdateStack(ctx, &cloudformation.UpdateStackInput{StackName: new("s"), TemplateBody: template(delay), ClientRequestToken: &token})
		return err
	}
	for range 3 {
		if err := update("2", "first"); err != nil {
			t.Error(err)
		}
		s.ends(types.StackStatusUpdateComplete)
	}
	refusedWith(t, update("2", "second"), "ValidationError", "No updates are to be performed.")
	must(c.CreateChangeSet(ctx, &cloudformation.CreateChangeSetInput{StackName: new("s"), ChangeSetName: new("cs"), TemplateBody: template("3")}))(t)
	execute := func(token string) error {
		_, err := c.ExecuteChangeSet(ctx, &cloudformation.ExecuteChangeSetInput{StackName: new("s"), ChangeSetName: new("cs"), ClientRequestToken: &token})
		return err
	}
	for range 3 {
		if err := execute("third"); err != nil {
			t.Error(err)
		}
	}
	refusedWith(t, execute("fourth"), "InvalidChangeSetStatus", "*")
	s.ends(types.StackStatusUpdateComplete)
	updates := 0
	for _, line := range eventsOfStack(t, c, "s") {
		if strings.HasPrefix(line, "s UPDATE_IN_PROGRESS") {
			updates++
		}
	}
	equal(t, "updates", 2, updates)
}

// reasonOf is why a stack has become as given.
func reasonOf(t *testing.T, c *cloudformation.Client, stack string, status types.ResourceStatus) string {
	t.Helper()
	for _, e := range must(c.DescribeStackEvents(t.Context(), &cloudformation.DescribeStackEventsInput{StackName: &stack}))(t).StackEvents {
		if e.ResourceStatus == status && *e.LogicalResourceId == stack && e.ResourceStatusReason != nil {
			return *e.ResourceStatusReason
		}
	}
	return ""
}

// Steps are taken as whoever deploys, or in the role that is given: what that may not do fails,
// and says so.
func TestStackPermissions(t *testing.T) {
	ctx, endpoint := t.Context(), start(t)
	who := userOf(t, iamClient(endpoint), "deployer", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["cloudformation:*","sqs:*"],"Resource":"*"}]}`)
	c := cloudformation.New(cloudformation.Options{Region: region, BaseEndpoint: &endpoint, Credentials: who, RetryMaxAttempts: 1, HTTPClient: eager})
	s := deploy(t, c, "queue", `{"Resources":{"Q":{"Type":"AWS::SQS::Queue"}}}`)
	equal(t, "what it may make", types.StackStatusCreateComplete, s.StackStatus)
	s = deploy(t, c, "topic", `{"Resources":{"T":{"Type":"AWS::SNS::Topic"}}}`)
	equal(t, "what it may not", types.StackStatusRollbackComplete, s.StackStatus)
	if lines := eventsOfStack(t, c, "topic"); !strings.Contains(strings.Join(lines, "\n"), "is not authorized to perform: SNS:CreateTopic") || !strings.Contains(strings.Join(lines, "\n"), "HandlerErrorCode: AccessDenied") {
		t.Errorf("%q", lines)
	}
	_, err := c.CreateStack(ctx, &cloudformation.CreateStackInput{StackName: new("roled"), TemplateBody: new(shop), RoleARN: new("arn:aws:iam::" + account + ":role/deploying")})
	if err == nil || !strings.Contains(err.Error(), "iam:PassRole") {
		t.Errorf("with a role that may not be passed: %v", err)
	}
}

// Alarms and log groups are made, changed and deleted as well.
func TestStackMonitors(t *testing.T) {
	endpoint := start(t)
	c := cloudformationAs(endpoint, account)
	const template = `
Parameters: {Days: {Type: Number, Default: 7}, At: {Type: Number, Default: 5}}
Resources:
  Log: {Type: AWS::Logs::LogGroup, Properties: {LogGroupName: /rentals, RetentionInDays: !Ref Days}}
  Lines: {Type: AWS::Logs::LogStream, Properties: {LogGroupName: !Ref Log}}
  CDKMetadata: {Type: AWS::CDK::Metadata, Properties: {Analytics: "v2:deflate64:none"}}
  Many:
    Type: AWS::CloudWatch::Alarm
    Properties:
      Namespace: AWS/SQS
      MetricName: ApproximateNumberOfMessagesVisible
      Dimensions: [{Name: QueueName, Value: dead}]
      Statistic: Maximum
      Period: 60
      EvaluationPeriods: 1
      Threshold: !Ref At
      ComparisonOperator: GreaterThanThreshold
Outputs: {Alarm: {Value: !Ref Many}, Log: {Value: !GetAtt Log.Arn}, Lines: {Value: !Ref Lines}}
`
	s := deploy(t, c, "watch", template)
	if s.StackStatus != types.StackStatusCreateComplete {
		t.Fatalf("%q", eventsOfStack(t, c, "watch"))
	}
	groups, alarms := logsClient(endpoint), metricsClient(endpoint)
	days := func() int32 {
		return *must(groups.DescribeLogGroups(t.Context(), &cloudwatchlogs.DescribeLogGroupsInput{LogGroupNamePrefix: new("/rentals")}))(t).LogGroups[0].RetentionInDays
	}
	threshold := func() float64 {
		return *must(alarms.DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{}))(t).MetricAlarms[0].Threshold
	}
	equal(t, "days", int32(7), days())
	streams := must(groups.DescribeLogStreams(t.Context(), &cloudwatchlogs.DescribeLogStreamsInput{LogGroupName: new("/rentals")}))(t).LogStreams
	if len(streams) != 1 || !strings.HasPrefix(*streams[0].LogStreamName, "watch-Lines-") {
		t.Errorf("log streams: %v", streams)
	}
	equal(t, "threshold", 5.0, threshold())
	must(c.UpdateStack(t.Context(), &cloudformation.UpdateStackInput{StackName: new("watch"), UsePreviousTemplate: new(true), Parameters: pairs([]string{"Days", "14", "At", "9.5"})}))(t)
	equal(t, "updated", types.StackStatusUpdateComplete, awaitStack(t, c, "watch").StackStatus)
	equal(t, "days", int32(14), days())
	equal(t, "threshold", 9.5, threshold())
	must(c.DeleteStack(t.Context(), &cloudformation.DeleteStackInput{StackName: new("watch")}))(t)
	awaitStack(t, c, *s.StackId)
	equal(t, "alarms", 0, len(must(alarms.DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{}))(t).MetricAlarms))
	equal(t, "groups", 0, len(must(groups.DescribeLogGroups(t.Context(), &cloudwatchlogs.DescribeLogGroupsInput{LogGroupNamePrefix: new("/rentals")}))(t).LogGroups))
}

// An output's value may be empty, and is answered as that: clients read it of each output.
func TestEmptyOutput(t *testing.T) {
	c := cloudformationAs(start(t), "test")
	s := deploy(t, c, "empty", `{"Resources": {"Q": {"Type": "AWS::SQS::Queue"}},
		"Outputs": {"None": {"Value": "", "Export": {"Name": "none"}}, "Joined": {"Value": {"Fn::Join": ["", []]}}}}`)
	if len(s.Outputs) != 2 {
		t.Fatalf("%s: %v", s.StackStatus, s.Outputs)
	}
	for _, o := range s.Outputs {
		if o.OutputValue == nil || *o.OutputValue != "" {
			t.Errorf("%s: %v", *o.OutputKey, o.OutputValue)
		}
	}
	exports := must(c.ListExports(t.Context(), &cloudformation.ListExportsInput{}))(t).Exports
	if len(exports) != 1 || exports[0].Value == nil || *exports[0].Value != "" {
		t.Errorf("%+v", exports)
	}
}
