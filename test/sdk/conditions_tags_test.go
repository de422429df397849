package sdk_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cloudformationtypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
)

// A Deny on a tag holds for log groups, alarms and stacks, too, and an Allow lets in.
func TestTagsOfWhatIsWatched(t *testing.T) {
	endpoint, ctx := start(t), t.Context()
	stacks, logs, alarms := cloudformationAs(endpoint, account), logsClient(endpoint), metricsClient(endpoint)
	const template = "Resources: {Q: {Type: AWS::SQS::Queue}}"
	for name, tags := range map[string]map[string]string{"prod": {"env": "prod"}, "test": {"env": "test"}} {
		must(logs.CreateLogGroup(ctx, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: &name, Tags: tags}))(t)
		must(alarms.PutMetricAlarm(ctx, &cloudwatch.PutMetricAlarmInput{
			AlarmName: &name, Namespace: new("n"), MetricName: new("m"), Period: new(int32(60)), EvaluationPeriods: new(int32(1)), Threshold: new(1.0),
			ComparisonOperator: cloudwatchtypes.ComparisonOperatorGreaterThanThreshold, Statistic: cloudwatchtypes.StatisticSum,
			Tags: []cloudwatchtypes.Tag{{Key: new("env"), Value: new(tags["env"])}},
		}))(t)
		made := must(stacks.CreateStack(ctx, &cloudformation.CreateStackInput{
			StackName: &name, TemplateBody: new(template), Tags: []cloudformationtypes.Tag{{Key: new("env"), Value: new(tags["env"])}},
		}))(t)
		awaitStack(t, stacks, *made.StackId)
	}
	id := must(stacks.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: new("prod")}))(t).Stacks[0].StackId
	const all = `["logs:*","cloudwatch:*","cloudformation:*"]`
	deny := makeUser(t, endpoint, "denied", statement("Allow", all, "*"),
		`{"Effect":"Deny","Action":"*","Resource":"*","Condition":{"StringEquals":{"aws:ResourceTag/env":"prod"}}}`)
	allow := makeUser(t, endpoint, "allowed", `{"Effect":"Allow","Action":`+all+`,"Resource":"*","Condition":{"StringEquals":{"aws:ResourceTag/env":"test"}}}`)
	for who, user := range map[string]aws.CredentialsProvider{"denied": deny, "allowed": allow} {
		for what, ask := range map[string]func(name string) error{
			"a log group": func(name string) error {
				_, err := logs.PutRetentionPolicy(ctx, &cloudwatchlogs.PutRetentionPolicyInput{LogGroupName: &name, RetentionInDays: new(int32(1))}, func(o *cloudwatchlogs.Options) { o.Credentials = user })
				return err
			},
			"an alarm": func(name string) error {
				_, err := alarms.DisableAlarmActions(ctx, &cloudwatch.DisableAlarmActionsInput{AlarmNames: []string{name}}, func(o *cloudwatch.Options) { o.Credentials = user })
				return err
			},
			"a stack": func(name string) error {
				_, err := stacks.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &name}, func(o *cloudformation.Options) { o.Credentials = user })
				return err
			},
			"a stack by its id": func(name string) error {
				if name == "prod" {
					name = *id
				}
				_, err := stacks.GetTemplate(ctx, &cloudformation.GetTemplateInput{StackName: &name}, func(o *cloudformation.Options) { o.Credentials = user })
				return err
			},
		} {
			deniedTo(t, who+": "+what, ask("prod"))
			if err := ask("test"); err != nil {
				t.Errorf("%s: %s: %v", who, what, err)
			}
		}
	}
}
