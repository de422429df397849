package audit

import (
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// data are the operations on the content of resources. All others are management events.
var data = map[string][]string{
	"sqs": {
		"SendMessage", "SendMessageBatch", "ReceiveMessage", "DeleteMessage", "DeleteMessageBatch",
		"ChangeMessageVisibility", "ChangeMessageVisibilityBatch",
	},
	"sns":        {"Publish", "PublishBatch"},
	"lambda":     {"Invoke", "InvokeAsync", "InvokeWithResponseStream", "InvokeFunctionUrl"},
	"logs":       {"PutLogEvents", "GetLogEvents", "FilterLogEvents"},
	"firehose":   {"PutRecord", "PutRecordBatch"},
	"monitoring": {"PutMetricData", "GetMetricData", "GetMetricStatistics", "ListMetrics", "GetMetricWidgetImage"},
}

func isData(service, operation string) bool { return slices.Contains(data[service], operation) }

// reading are the prefixes of operations that change nothing.
var reading = []string{"Get", "List", "Describe", "Filter", "Receive", "Simulate", "Check", "Validate"}

func isReading(operation string) bool {
	return slices.ContainsFunc(reading, func(prefix string) bool { return strings.HasPrefix(operation, prefix) })
}

// named are the members of inputs with names of resources and their targets, which are never
// a secret or a body.
var named = map[string]bool{
	"QueueUrl": true, "QueueName": true, "QueueNamePrefix": true, "SourceArn": true, "DestinationArn": true,
	"TopicArn": true, "TargetArn": true, "SubscriptionArn": true, "Protocol": true, "ResourceArn": true, "ResourceARN": true,
	"PlatformApplicationArn": true, "EndpointArn": true, "Platform": true,
	"Name": true, "AttributeName": true, "Label": true,
	"FunctionName": true, "Qualifier": true, "StatementId": true, "Action": true, "Principal": true, "Role": true, "UUID": true,
	"EventSourceArn": true, "FunctionVersion": true, "Runtime": true, "Handler": true, "AuthType": true,
	"AlarmName": true, "AlarmNames": true, "AlarmNamePrefix": true, "Namespace": true, "MetricName": true,
	"LogGroupName": true, "LogGroupIdentifier": true, "LogStreamName": true, "LogGroupNamePrefix": true,
	"UserName": true, "NewUserName": true, "GroupName": true, "NewGroupName": true, "RoleName": true, "PolicyName": true, "PolicyArn": true,
	"PolicySourceArn": true, "VersionId": true, "SetAsDefault": true, "AccessKeyId": true, "Status": true, "Path": true, "PathPrefix": true,
	"PermissionsBoundary": true, "InstanceProfileName": true, "OpenIDConnectProviderArn": true, "Url": true, "MaxSessionDuration": true,
	"RoleArn": true, "RoleSessionName": true, "DurationSeconds": true, "ProviderId": true,
	"KeyId": true, "AliasName": true, "TargetKeyId": true, "GrantId": true, "GranteePrincipal": true, "RetiringPrincipal": true,
	"StackName": true, "ChangeSetName": true, "ChangeSetType": true, "LogicalResourceId": true, "PhysicalResourceId": true, "RoleARN": true,
	"ExportName": true, "Resource": true, "DashboardName": true, "DashboardNames": true, "DashboardNamePrefix": true, "TaskHandle": true,
	"StackDriftDetectionId": true, "OnFailure": true, "DeliveryStreamName": true, "DeliveryStreamType": true,
	"LayerName": true, "VersionNumber": true, "Layers": true, "Arn": true, "OrganizationId": true,
	"KeySpec": true, "KeyUsage": true, "PendingWindowInDays": true, "SourceKeyId": true, "DestinationKeyId": true, "Operations": true,
}

// parameters are these members of an input, with CloudTrail's names; nil: there are none.
func parameters(in any) any {
	v := reflect.ValueOf(in)
	if !v.IsValid() || v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return nil
	}
	v = v.Elem()
	found := map[string]any{}
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if !named[name] {
			continue
		}
		member := v.Field(i)
		if member.Kind() == reflect.Pointer {
			member = member.Elem()
		}
		switch {
		case !member.IsValid() || member.IsZero():
		case member.Kind() == reflect.String:
			found[lower(name)] = bounded(member.String())
		case member.Kind() == reflect.Bool, member.CanInt():
			found[lower(name)] = member.Interface()
		case member.Kind() == reflect.Slice && member.Type().Elem().Kind() == reflect.String:
			const most = 100
			var texts []string
			for j := range min(member.Len(), most) {
				texts = append(texts, bounded(member.Index(j).String()))
			}
			found[lower(name)] = texts
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found
}

// lower is a member's name in CloudTrail's form: queueUrl.
func lower(name string) string {
	first, size := utf8.DecodeRuneInString(name)
	return string(unicode.ToLower(first)) + name[size:]
}
