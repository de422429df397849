package iam

import (
	"strings"
	"time"
)

// AWS's managed policies for the services that Godwit has. They allow what AWS's do, on these
// services.

const awsPolicies = "arn:aws:iam::aws:policy"

// awsAccount is the account of AWS's managed policies.
const awsAccount = "aws"

// awsDocument is the document of a policy that allows actions on all resources.
func awsDocument(actions ...string) string {
	return `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["` + strings.Join(actions, `","`) + `"],"Resource":"*"}]}`
}

// awsPaths are the policies by path and name.
var awsPaths = map[string]string{
	"/AdministratorAccess": `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}`,
	"/PowerUserAccess": `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","NotAction":["iam:*","organizations:*","account:*"],"Resource":"*"},` +
		`{"Effect":"Allow","Action":["iam:CreateServiceLinkedRole","iam:DeleteServiceLinkedRole","iam:ListRoles","organizations:DescribeOrganization","account:ListRegions","account:GetAccountInformation"],"Resource":"*"}]}`,
	"/ReadOnlyAccess": awsDocument("sqs:Get*", "sqs:List*", "sqs:Receive*", "sns:Check*", "sns:Get*", "sns:List*", "lambda:Get*", "lambda:List*",
		"cloudwatch:Describe*", "cloudwatch:Get*", "cloudwatch:List*", "logs:Describe*", "logs:FilterLogEvents", "logs:Get*", "logs:List*",
		"cloudformation:Describe*", "cloudformation:Detect*", "cloudformation:EstimateTemplateCost", "cloudformation:Get*", "cloudformation:List*", "cloudformation:ValidateTemplate",
		"firehose:Describe*", "firehose:List*",
		"iam:Generate*", "iam:Get*", "iam:List*", "iam:Simulate*", "kms:Describe*", "kms:Get*", "kms:List*", "sts:GetAccessKeyInfo", "sts:GetCallerIdentity", "sts:GetSessionToken"),
	"/IAMFullAccess":     awsDocument("iam:*", "organizations:DescribeAccount", "organizations:DescribeOrganization"),
	"/IAMReadOnlyAccess": awsDocument("iam:GenerateCredentialReport", "iam:GenerateServiceLastAccessedDetails", "iam:Get*", "iam:List*", "iam:SimulateCustomPolicy", "iam:SimulatePrincipalPolicy"),

	// Godwit's own, for read-only access without messages.
	"/GodwitReadOnlyAccess": awsDocument("godwit:Read"),

	"/AmazonSQSFullAccess":     awsDocument("sqs:*"),
	"/AmazonSQSReadOnlyAccess": awsDocument("sqs:GetQueueAttributes", "sqs:GetQueueUrl", "sqs:ListDeadLetterSourceQueues", "sqs:ListQueues", "sqs:ListMessageMoveTasks", "sqs:ListQueueTags"),
	"/AmazonSNSFullAccess":     awsDocument("sns:*"),
	"/AmazonSNSReadOnlyAccess": awsDocument("sns:GetTopicAttributes", "sns:List*", "sns:CheckIfPhoneNumberIsOptedOut", "sns:GetEndpointAttributes", "sns:GetDataProtectionPolicy", "sns:GetPlatformApplicationAttributes", "sns:GetSMSAttributes", "sns:GetSMSSandboxAccountStatus", "sns:GetSubscriptionAttributes"),

	"/CloudWatchFullAccess":         awsDocument("autoscaling:Describe*", "cloudwatch:*", "logs:*", "sns:*", "iam:GetPolicy", "iam:GetPolicyVersion", "iam:GetRole"),
	"/CloudWatchFullAccessV2":       awsDocument("cloudwatch:*", "logs:*", "sns:CreateTopic", "sns:ListSubscriptions", "sns:ListSubscriptionsByTopic", "sns:ListTopics", "sns:Subscribe", "iam:GetPolicy", "iam:GetPolicyVersion", "iam:GetRole"),
	"/CloudWatchReadOnlyAccess":     awsDocument("cloudwatch:Describe*", "cloudwatch:Get*", "cloudwatch:List*", "logs:Get*", "logs:List*", "logs:Describe*", "logs:FilterLogEvents", "sns:Get*", "sns:List*"),
	"/CloudWatchLogsFullAccess":     awsDocument("logs:*", "cloudwatch:GenerateQuery"),
	"/CloudWatchLogsReadOnlyAccess": awsDocument("logs:Describe*", "logs:Get*", "logs:List*", "logs:StartQuery", "logs:StopQuery", "logs:TestMetricFilter", "logs:FilterLogEvents"),

	"/AWSLambda_FullAccess":     awsDocument("lambda:*", "cloudwatch:ListMetrics", "cloudwatch:GetMetricData", "iam:GetPolicy", "iam:GetPolicyVersion", "iam:GetRole", "iam:GetRolePolicy", "iam:ListAttachedRolePolicies", "iam:ListRolePolicies", "iam:ListRoles", "iam:PassRole", "kms:ListAliases", "logs:DescribeLogGroups", "logs:DescribeLogStreams", "logs:FilterLogEvents", "logs:GetLogEvents", "logs:StartLiveTail", "logs:StopLiveTail"),
	"/AWSLambda_ReadOnlyAccess": awsDocument("lambda:Get*", "lambda:List*", "cloudwatch:GetMetricData", "cloudwatch:ListMetrics", "iam:GetPolicy", "iam:GetPolicyVersion", "iam:GetRole", "iam:GetRolePolicy", "iam:ListAttachedRolePolicies", "iam:ListRolePolicies", "iam:ListRoles", "logs:DescribeLogGroups", "logs:DescribeLogStreams", "logs:FilterLogEvents", "logs:GetLogEvents", "kms:ListAliases"),

	"/AWSCloudFormationFullAccess":         awsDocument("cloudformation:*"),
	"/AWSCloudFormationReadOnlyAccess":     awsDocument("cloudformation:Describe*", "cloudformation:EstimateTemplateCost", "cloudformation:Get*", "cloudformation:List*", "cloudformation:ValidateTemplate", "cloudformation:Detect*"),
	"/AmazonKinesisFirehoseFullAccess":     awsDocument("firehose:*"),
	"/AmazonKinesisFirehoseReadOnlyAccess": awsDocument("firehose:Describe*", "firehose:List*"),

	// Templates and modules attach these to roles of functions whose tracing or insights are on.
	"/AWSXRayDaemonWriteAccess": awsDocument("xray:PutTraceSegments", "xray:PutTelemetryRecords", "xray:GetSamplingRules", "xray:GetSamplingTargets", "xray:GetSamplingStatisticSummaries"),
	"/AWSXrayWriteOnlyAccess":   awsDocument("xray:PutTraceSegments", "xray:PutTelemetryRecords", "xray:GetSamplingRules", "xray:GetSamplingTargets", "xray:GetSamplingStatisticSummaries"),
	"/CloudWatchLambdaInsightsExecutionRolePolicy": `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"logs:CreateLogGroup","Resource":"*"},` +
		`{"Effect":"Allow","Action":["logs:CreateLogStream","logs:PutLogEvents"],"Resource":"arn:aws:logs:*:*:log-group:/aws/lambda-insights:*"}]}`,

	"/service-role/AWSLambdaBasicExecutionRole":     awsDocument("logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"),
	"/service-role/AWSLambdaSQSQueueExecutionRole":  awsDocument("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"),
	"/service-role/AWSLambdaRole":                   awsDocument("lambda:InvokeFunction"),
	"/service-role/AWSLambdaVPCAccessExecutionRole": awsDocument("logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents", "ec2:CreateNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets", "ec2:DeleteNetworkInterface", "ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses"),
	"/service-role/AmazonSNSRole":                   awsDocument("logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents", "logs:PutMetricFilter", "logs:PutRetentionPolicy"),
	"/AWSKeyManagementServicePowerUser":             awsDocument("kms:CreateAlias", "kms:CreateKey", "kms:DeleteAlias", "kms:Describe*", "kms:GenerateRandom", "kms:Get*", "kms:List*", "kms:TagResource", "kms:UntagResource", "iam:ListGroups", "iam:ListRoles", "iam:ListUsers"),
}

// awsManaged are AWS's managed policies by their ARNs.
var awsManaged = func() map[string]*Entity {
	all := map[string]*Entity{}
	made := time.Date(2015, 2, 6, 18, 40, 0, 0, time.UTC) // of AWS's first one
	for path, document := range awsPaths {
		cut := strings.LastIndexByte(path, '/') + 1
		e := &Entity{
			Kind: Policy, Account: awsAccount, Path: path[:cut], Name: path[cut:], Created: made,
			Policy: &PolicyPart{Versions: []Version{{Number: 1, Document: document, Created: made}}, Default: 1, Latest: 1, Updated: made},
		}
		e.ID = awsPolicyID(e.Name)
		all[awsPolicies+path] = e
	}
	return all
}()

// awsPolicyID derives the unique id of an AWS policy from its name, so that it is the same on
// all servers.
func awsPolicyID(name string) string {
	var random Random
	h := uint64(14695981039346656037)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	for i := range random {
		random[i] = byte(h >> (8 * i))
	}
	return NewID(PrefixPolicy, "000000000000", random)
}

// AWSManaged is one of AWS's managed policies; nil: there is none.
func AWSManaged(arn string) *Entity { return awsManaged[arn] }

// EachAWSManaged calls f with AWS's managed policies, unordered.
func EachAWSManaged(f func(e *Entity)) {
	for _, e := range awsManaged {
		f(e)
	}
}
