package sdk_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	logstypes "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// compared detects the drift of a stack and waits for what comes of it.
func compared(t *testing.T, c *cloudformation.Client, name string) *cloudformation.DescribeStackDriftDetectionStatusOutput {
	t.Helper()
	begun := must(c.DetectStackDrift(t.Context(), &cloudformation.DetectStackDriftInput{StackName: &name}))(t)
	var out *cloudformation.DescribeStackDriftDetectionStatusOutput
	eventually(t, "drift detection is over", func() bool {
		out = must(c.DescribeStackDriftDetectionStatus(t.Context(), &cloudformation.DescribeStackDriftDetectionStatusInput{StackDriftDetectionId: begun.StackDriftDetectionId}))(t)
		return out.DetectionStatus != types.StackDriftDetectionStatusDetectionInProgress
	})
	return out
}

// drifts are what a comparison has found: id, status, and the places that differ.
func drifts(t *testing.T, c *cloudformation.Client, name string, filters ...types.StackResourceDriftStatus) (lines []string) {
	t.Helper()
	for token := (*string)(nil); ; {
		out := must(c.DescribeStackResourceDrifts(t.Context(), &cloudformation.DescribeStackResourceDriftsInput{StackName: &name, StackResourceDriftStatusFilters: filters, NextToken: token, MaxResults: new(int32(3))}))(t)
		for _, d := range out.StackResourceDrifts {
			line := *d.LogicalResourceId + " " + string(d.StackResourceDriftStatus)
			for _, p := range d.PropertyDifferences {
				line += " " + *p.PropertyPath + " " + string(p.DifferenceType) + " " + *p.ExpectedValue + " " + *p.ActualValue
			}
			lines = append(lines, line)
		}
		if token = out.NextToken; token == nil {
			return lines
		}
	}
}

const monitors = `
Resources:
  Log: {Type: AWS::Logs::LogGroup, Properties: {LogGroupName: /rentals, RetentionInDays: 7, Tags: [{Key: team, Value: rentals}]}}
  Lines: {Type: AWS::Logs::LogStream, Properties: {LogGroupName: !Ref Log}}
  CDKMetadata: {Type: AWS::CDK::Metadata, Properties: {Analytics: "v2:deflate64:none"}}
  Many:
    Type: AWS::CloudWatch::Alarm
    Properties:
      Namespace: AWS/SQS
      MetricName: ApproximateNumberOfMessagesVisible
      Dimensions: [{Name: QueueName, Value: dead}]
      Statistic: Maximum
      Period: "60"
      EvaluationPeriods: 1
      Threshold: "5.0"
      ComparisonOperator: GreaterThanThreshold
  Rate:
    Type: AWS::CloudWatch::Alarm
    Properties:
      Metrics:
        - {Id: rate, Expression: "100 * failed / FILL(sent, 1)", Label: Failures}
        - {Id: failed, MetricStat: {Metric: {Namespace: shop, MetricName: failed}, Period: "60", Stat: Sum}, ReturnData: "false"}
        - {Id: sent, MetricStat: {Metric: {Namespace: shop, MetricName: sent, Dimensions: [{Name: to, Value: all}]}, Period: 60, Stat: Sum, Unit: Count}, ReturnData: false}
      EvaluationPeriods: 1
      Threshold: 5
      ComparisonOperator: GreaterThanThreshold
  Errors:
    Type: AWS::Logs::MetricFilter
    Properties:
      LogGroupName: !Ref Log
      FilterPattern: ERROR
      MetricTransformations: [{MetricName: Errors, MetricNamespace: Rentals, MetricValue: "1", DefaultValue: 0, Unit: Count}]
  Slow:
    Type: AWS::Logs::MetricFilter
    Properties:
      LogGroupName: !Ref Log
      FilterName: slow
      FilterPattern: "{ $.took > 5 }"
      MetricTransformations: [{MetricName: Took, MetricNamespace: Rentals, MetricValue: $.took, Dimensions: [{Key: path, Value: $.path}]}]
  Reader:
    Type: AWS::Lambda::Function
    Properties: {PackageType: Image, Role: "arn:aws:iam::000000000000:role/function", Code: {ImageUri: "http://127.0.0.1:1/"}}
  Reads:
    Type: AWS::Lambda::Permission
    Properties: {Action: "lambda:InvokeFunction", FunctionName: !Ref Reader, Principal: logs.amazonaws.com, SourceArn: !GetAtt Log.Arn, SourceAccount: !Ref AWS::AccountId}
  Subscribed:
    Type: AWS::Logs::SubscriptionFilter
    DependsOn: Reads
    Properties: {LogGroupName: !Ref Log, FilterPattern: "", DestinationArn: !GetAtt Reader.Arn}
  Other:
    Type: AWS::Logs::SubscriptionFilter
    DependsOn: Reads
    Properties: {LogGroupName: !Ref Log, FilterName: other, FilterPattern: ERROR, DestinationArn: !GetAtt Reader.Arn, Distribution: Random}
  Either:
    Type: AWS::CloudWatch::CompositeAlarm
    Properties:
      AlarmRule: !Sub 'ALARM("${Rate}") OR OK(${Rate.Arn})'
      AlarmDescription: either
      ActionsEnabled: "false"
      ActionsSuppressor: !GetAtt Rate.Arn
      ActionsSuppressorWaitPeriod: "60"
      ActionsSuppressorExtensionPeriod: 0
      Tags: [{Key: team, Value: rentals}]
  Managed:
    Type: AWS::IAM::ManagedPolicy
    Properties: {PolicyDocument: {Version: 2012-10-17, Statement: [{Effect: Allow, Action: "sqs:*", Resource: "*"}]}, Roles: [!Ref Clerk]}
  Profile: {Type: AWS::IAM::InstanceProfile, Properties: {Roles: [!Ref Clerk]}}
  Clerk:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument: {Version: 2012-10-17, Statement: [{Effect: Allow, Principal: {Service: ec2.amazonaws.com}, Action: "sts:AssumeRole"}]}
`

// Right after it was made nothing of a stack has drifted, whatever it is made of. What is then
// changed and deleted beside the stack is reported, property by property.
func TestStackDrift(t *testing.T) {
	ctx, endpoint := t.Context(), start(t)
	c := cloudformationAs(endpoint, account)
	makeRoles(endpoint, account)
	granted := []types.Capability{types.CapabilityCapabilityIam}
	out := map[string]map[string]string{}
	for name, template := range map[string]string{"shop": shop, "staff": staff, "pricing": pricing, "watch": monitors} {
		made := must(c.CreateStack(ctx, &cloudformation.CreateStackInput{StackName: &name, TemplateBody: &template, Capabilities: granted}))(t)
		s := awaitStack(t, c, *made.StackId)
		if s.StackStatus != types.StackStatusCreateComplete {
			t.Fatalf("%q", eventsOfStack(t, c, name))
		}
		equal(t, "before", types.StackDriftStatusNotChecked, s.DriftInformation.StackDriftStatus)
		equal(t, "drifts before", 0, len(drifts(t, c, name)))
		found := compared(t, c, name)
		if found.StackDriftStatus != types.StackDriftStatusInSync || *found.DriftedStackResourceCount != 0 || found.DetectionStatus != types.StackDriftDetectionStatusDetectionComplete {
			t.Errorf("%s is new, and %s: %q", name, found.StackDriftStatus, drifts(t, c, name, types.StackResourceDriftStatusModified, types.StackResourceDriftStatusDeleted))
		}
		equal(t, "stack", *made.StackId, *found.StackId)
		out[name] = map[string]string{}
		for _, r := range must(c.DescribeStackResources(ctx, &cloudformation.DescribeStackResourcesInput{StackName: &name}))(t).StackResources {
			out[name][*r.LogicalResourceId] = *r.PhysicalResourceId
		}
		s = awaitStack(t, c, name)
		equal(t, "after", types.StackDriftStatusInSync, s.DriftInformation.StackDriftStatus)
		if s.DriftInformation.LastCheckTimestamp == nil {
			t.Error("it is not told when it was checked")
		}
	}
	if lines := drifts(t, c, "watch", types.StackResourceDriftStatusNotChecked); !slices.Equal(lines, []string{"CDKMetadata NOT_CHECKED"}) {
		t.Errorf("not checked: %q", lines)
	}

	queues, topics, identities, functions := client(endpoint), topicsClient(endpoint), iamClient(endpoint), functionsClient(endpoint)
	orders := out["shop"]["Orders"]
	redrive := must(queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &orders, AttributeNames: []sqstypes.QueueAttributeName{"RedrivePolicy"}}))(t).Attributes["RedrivePolicy"]
	must(queues.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: &orders, Attributes: map[string]string{
		"DelaySeconds": "9", "VisibilityTimeout": "77", "RedrivePolicy": strings.ReplaceAll(redrive, `"maxReceiveCount":3`, `"maxReceiveCount":4`),
	}}))(t)
	must(queues.TagQueue(ctx, &sqs.TagQueueInput{QueueUrl: new(out["shop"]["Orders"]), Tags: map[string]string{"more": "tags"}}))(t)
	must(queues.UntagQueue(ctx, &sqs.UntagQueueInput{QueueUrl: new(out["shop"]["Orders"]), TagKeys: []string{"team"}}))(t)
	must(topics.SetSubscriptionAttributes(ctx, &sns.SetSubscriptionAttributesInput{SubscriptionArn: new(out["shop"]["Feed"]), AttributeName: new("FilterPolicy"), AttributeValue: new(`{"status":["confirmed","quoted"]}`)}))(t)
	must(topics.SetTopicAttributes(ctx, &sns.SetTopicAttributesInput{TopicArn: new(out["shop"]["Events"]), AttributeName: new("DisplayName"), AttributeValue: new("")}))(t)
	must(queues.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: new(out["shop"]["Dead"])}))(t)
	found := compared(t, c, "shop")
	equal(t, "status", types.StackDriftStatusDrifted, found.StackDriftStatus)
	equal(t, "drifted", int32(4), *found.DriftedStackResourceCount)
	want := []string{
		"Dead DELETED",
		"Events MODIFIED /DisplayName REMOVE Events null",
		"Feed MODIFIED /FilterPolicy/status/1 ADD null quoted",
		"MayPublish IN_SYNC",
		`Orders MODIFIED /DelaySeconds NOT_EQUAL 0 9 /RedrivePolicy/maxReceiveCount NOT_EQUAL 3 4 /Tags/0 REMOVE {"Key":"team","Value":"rentals"} null /Tags/0 ADD null {"Key":"more","Value":"tags"}`,
	}
	if lines := drifts(t, c, "shop"); !slices.Equal(lines, want) {
		t.Errorf("drifts of shop:\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	detail := must(c.DescribeStackResource(ctx, &cloudformation.DescribeStackResourceInput{StackName: new("shop"), LogicalResourceId: new("Dead")}))(t)
	equal(t, "of a resource", types.StackResourceDriftStatusDeleted, detail.StackResourceDetail.DriftInformation.StackResourceDriftStatus)

	must(queues.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: new(out["shop"]["Orders"]), Attributes: map[string]string{"Policy": ""}}))(t)
	one := must(c.DetectStackResourceDrift(ctx, &cloudformation.DetectStackResourceDriftInput{StackName: new("shop"), LogicalResourceId: new("MayPublish")}))(t).StackResourceDrift
	equal(t, "a policy that was taken away", types.StackResourceDriftStatusDeleted, one.StackResourceDriftStatus)

	// An update forgets what was found of what it changes.
	must(c.UpdateStack(ctx, &cloudformation.UpdateStackInput{StackName: new("shop"), TemplateBody: new(strings.Replace(shop, "DisplayName: Events", "DisplayName: Others", 1))}))(t)
	equal(t, "after an update", types.StackDriftStatusNotChecked, awaitStack(t, c, "shop").DriftInformation.StackDriftStatus)
	if lines := drifts(t, c, "shop", types.StackResourceDriftStatusModified); len(lines) != 2 {
		t.Errorf("after an update: %q", lines)
	}

	must(identities.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: new(out["staff"]["Clerk"]), PolicyName: new("own"), PolicyDocument: new(`{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Action":"sqs:SendMessage","Resource":"*"}]}`)}))(t)
	must(identities.DetachRolePolicy(ctx, &iam.DetachRolePolicyInput{RoleName: new(out["staff"]["Clerk"]), PolicyArn: new("arn:aws:iam::aws:policy/AmazonSQSReadOnlyAccess")}))(t)
	must(identities.RemoveUserFromGroup(ctx, &iam.RemoveUserFromGroupInput{GroupName: new(out["staff"]["Team"]), UserName: new(out["staff"]["Ann"])}))(t)
	must(identities.DeleteUserPolicy(ctx, &iam.DeleteUserPolicyInput{UserName: new(out["staff"]["Ann"]), PolicyName: new("shared")}))(t)
	compared(t, c, "staff")
	want = []string{
		`Ann MODIFIED /Groups REMOVE ["` + out["staff"]["Team"] + `"] null`,
		`Clerk MODIFIED /ManagedPolicyArns REMOVE ["arn:aws:iam::aws:policy/AmazonSQSReadOnlyAccess"] null /Policies/0/PolicyDocument/Statement/0 REMOVE {"Action":"sqs:SendMessage","Effect":"Allow","Resource":"*"} null` +
			` /Policies/0/PolicyDocument/Statement/0 ADD null {"Action":"sqs:SendMessage","Effect":"Deny","Resource":"*"}`,
	}
	lines := drifts(t, c, "staff", types.StackResourceDriftStatusModified)
	if len(lines) != 3 || !slices.Equal(lines[:2], want) || !strings.HasPrefix(lines[2], "Shared MODIFIED /PolicyDocument REMOVE ") {
		t.Errorf("drifts of staff:\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}

	must(functions.UpdateFunctionConfiguration(ctx, &lambda.UpdateFunctionConfigurationInput{FunctionName: new(out["pricing"]["Price"]), Timeout: new(int32(20))}))(t)
	must(functions.RemovePermission(ctx, &lambda.RemovePermissionInput{FunctionName: new(out["pricing"]["Price"]), StatementId: new(out["pricing"]["MayInvoke"])}))(t)
	must(functions.UpdateEventSourceMapping(ctx, &lambda.UpdateEventSourceMappingInput{UUID: new(out["pricing"]["Feed"]), BatchSize: new(int32(6))}))(t)
	must(functions.DeleteFunctionEventInvokeConfig(ctx, &lambda.DeleteFunctionEventInvokeConfigInput{FunctionName: new(out["pricing"]["Price"]), Qualifier: new("$LATEST")}))(t)
	must(functions.UpdateFunctionUrlConfig(ctx, &lambda.UpdateFunctionUrlConfigInput{FunctionName: new(out["pricing"]["Site"]), Cors: &lambdatypes.Cors{AllowOrigins: []string{"*"}}}))(t)
	compared(t, c, "pricing")
	want = []string{
		"Feed MODIFIED /BatchSize NOT_EQUAL 5 6", "MayInvoke DELETED", "Price MODIFIED /Timeout NOT_EQUAL 10 20", "Retry DELETED",
		`Site MODIFIED /Cors/AllowMethods REMOVE ["GET"] null /Cors/AllowOrigins/0 REMOVE https://a.example null /Cors/AllowOrigins/0 ADD null * /Cors/MaxAge REMOVE 10 null`,
	}
	if lines := drifts(t, c, "pricing", types.StackResourceDriftStatusModified, types.StackResourceDriftStatusDeleted); !slices.Equal(lines, want) {
		t.Errorf("drifts of pricing: %q, want %q", lines, want)
	}

	must(logsClient(endpoint).PutRetentionPolicy(ctx, &cloudwatchlogs.PutRetentionPolicyInput{LogGroupName: new("/rentals"), RetentionInDays: new(int32(30))}))(t)
	must(metricsClient(endpoint).DeleteAlarms(ctx, &cloudwatch.DeleteAlarmsInput{AlarmNames: []string{out["watch"]["Many"]}}))(t)
	putAlarm(t, endpoint, out["watch"]["Rate"], func(in *cloudwatch.PutMetricAlarmInput) {
		is := describeAlarm(t, endpoint, out["watch"]["Rate"])
		onQueries(is.Metrics...)(in)
		in.Metrics[0].Expression, in.Metrics[1].MetricStat.Stat, in.Threshold = new("failed"), new("Maximum"), is.Threshold
	})
	putComposite(t, endpoint, out["watch"]["Either"], `OK("`+out["watch"]["Rate"]+`")`, func(in *cloudwatch.PutCompositeAlarmInput) {
		in.ActionsEnabled, in.AlarmDescription = new(false), new("either")
	})
	must(logsClient(endpoint).DeleteMetricFilter(ctx, &cloudwatchlogs.DeleteMetricFilterInput{LogGroupName: new("/rentals"), FilterName: new(out["watch"]["Errors"])}))(t)
	must(logsClient(endpoint).PutMetricFilter(ctx, &cloudwatchlogs.PutMetricFilterInput{LogGroupName: new("/rentals"), FilterName: new("slow"), FilterPattern: new("{ $.took > 9 }"), MetricTransformations: []logstypes.MetricTransformation{{
		MetricName: new("Took"), MetricNamespace: new("Rentals"), MetricValue: new("$.took"), Dimensions: map[string]string{"path": "$.path"},
	}}}))(t)
	must(logsClient(endpoint).DeleteSubscriptionFilter(ctx, &cloudwatchlogs.DeleteSubscriptionFilterInput{LogGroupName: new("/rentals"), FilterName: new(out["watch"]["Subscribed"])}))(t)
	must(logsClient(endpoint).PutSubscriptionFilter(ctx, subscriptionInput("/rentals", "other", "WARN", functionARN(out["watch"]["Reader"]))))(t)
	only := must(c.DetectStackDrift(ctx, &cloudformation.DetectStackDriftInput{StackName: new("watch"), LogicalResourceIds: []string{"Log", "Rate", "Either", "Errors", "Slow", "Subscribed", "Other"}}))(t)
	eventually(t, "drift detection is over", func() bool {
		return must(c.DescribeStackDriftDetectionStatus(ctx, &cloudformation.DescribeStackDriftDetectionStatusInput{StackDriftDetectionId: only.StackDriftDetectionId}))(t).DetectionStatus != types.StackDriftDetectionStatusDetectionInProgress
	})
	rate := out["watch"]["Rate"]
	want = []string{
		"Either MODIFIED /ActionsSuppressor REMOVE " + alarmARN(rate) + " null /ActionsSuppressorExtensionPeriod REMOVE 0 null /ActionsSuppressorWaitPeriod REMOVE 60 null" +
			` /AlarmRule NOT_EQUAL ALARM("` + rate + `") OR OK(` + alarmARN(rate) + `) OK("` + rate + `")`,
		"Errors DELETED",
		"Log MODIFIED /RetentionInDays NOT_EQUAL 7 30",
		"Other MODIFIED /Distribution NOT_EQUAL Random ByLogStream /FilterPattern NOT_EQUAL ERROR WARN",
		"Rate MODIFIED /Metrics/0/Expression NOT_EQUAL 100 * failed / FILL(sent, 1) failed /Metrics/1/MetricStat/Stat NOT_EQUAL Sum Maximum",
		"Slow MODIFIED /FilterPattern NOT_EQUAL { $.took > 5 } { $.took > 9 }",
		"Subscribed DELETED",
	}
	if lines := drifts(t, c, "watch", types.StackResourceDriftStatusModified, types.StackResourceDriftStatusDeleted); !slices.Equal(lines, want) {
		t.Errorf("drifts of watch: %q, want %q", lines, want)
	}
}

// Who may not ask a service does not learn what of it has drifted, and is told so.
func TestStackDriftRefusals(t *testing.T) {
	ctx, endpoint := t.Context(), start(t)
	root := cloudformationAs(endpoint, account)
	deploy(t, root, "shop", shop)
	who := userOf(t, iamClient(endpoint), "looker", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["cloudformation:*","sqs:*"],"Resource":"*"}]}`)
	c := cloudformation.New(cloudformation.Options{Region: region, BaseEndpoint: &endpoint, Credentials: who, RetryMaxAttempts: 1, HTTPClient: eager})
	found := compared(t, c, "shop")
	equal(t, "status", types.StackDriftDetectionStatusDetectionFailed, found.DetectionStatus)
	equal(t, "stack", types.StackDriftStatusUnknown, found.StackDriftStatus)
	equal(t, "reason", "Failed to detect drift on resource [Events, Feed]", *found.DetectionStatusReason)

	_, err := c.DetectStackDrift(ctx, &cloudformation.DetectStackDriftInput{StackName: new("none")})
	refusedWith(t, err, "ValidationError", "Stack [none] does not exist")
	_, err = c.DetectStackDrift(ctx, &cloudformation.DetectStackDriftInput{StackName: new("shop"), LogicalResourceIds: []string{"None"}})
	refusedWith(t, err, "ValidationError", "Resource None does not exist for stack shop")
	_, err = c.DetectStackResourceDrift(ctx, &cloudformation.DetectStackResourceDriftInput{StackName: new("shop"), LogicalResourceId: new("None")})
	refusedWith(t, err, "ValidationError", "Resource None does not exist for stack shop")
	_, err = c.DescribeStackDriftDetectionStatus(ctx, &cloudformation.DescribeStackDriftDetectionStatusInput{StackDriftDetectionId: new("3e4dff8c-0000-4000-8000-000000000000")})
	refusedWith(t, err, "ValidationError", "Drift detection operation [3e4dff8c-0000-4000-8000-000000000000] does not exist")
	_, err = c.DescribeStackResourceDrifts(ctx, &cloudformation.DescribeStackResourceDriftsInput{StackName: new("shop"), MaxResults: new(int32(101))})
	refusedWith(t, err, "ValidationError", "1 validation error detected: Value '101' at 'maxResults' failed to satisfy constraint: Member must have value less than or equal to 100")
	deploy(t, root, "late", `{"Resources":{"A":{"Type":"AWS::SQS::Queue","Properties":{"MessageRetentionPeriod":1}}}}`)
	_, err = c.DetectStackDrift(ctx, &cloudformation.DetectStackDriftInput{StackName: new("late")})
	if err == nil || !strings.Contains(err.Error(), "in status ROLLBACK_COMPLETE") {
		t.Errorf("of a stack that was rolled back: %v", err)
	}
}
