package sdk_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/smithy-go"
)

// wantLogsError checks the code of an error, and its text if one is wanted.
func wantLogsError(t *testing.T, what string, err error, code, message string) {
	t.Helper()
	refusal, ok := errors.AsType[smithy.APIError](err)
	if !ok || refusal.ErrorCode() != code || message != "" && refusal.ErrorMessage() != message {
		t.Errorf("%s: %v, want %s: %s", what, err, code, message)
	}
}

// outcome drops a call's answer.
func outcome[T any](_ T, err error) error { return err }

const (
	invalidParameter = "InvalidParameterException"
	noLogResource    = "ResourceNotFoundException"
	alreadyExists    = "ResourceAlreadyExistsException"
	noGroup          = "The specified log group does not exist."
	noStream         = "The specified log stream does not exist."
)

// TestLogErrors provokes every error that the model gives an action, but for what
// the exemptions list; an action that was refused has changed nothing.
func TestLogErrors(t *testing.T) {
	endpoint := start(t)
	c, ctx := logsClient(endpoint), t.Context()
	now := serverNow(t, endpoint)
	createGroup(t, c, "/app", "s")
	const bad, pattern = "no:name", `Value 'no:name' at 'logGroupName' failed to satisfy constraint: Member must satisfy regular expression pattern: [\.\-_/#A-Za-z0-9]+`
	invalidName := "1 validation error detected: " + pattern
	many := map[string]string{}
	for i := range 51 {
		many[fmt.Sprint("k", i)] = ""
	}
	put := func(group, stream string, events ...types.InputLogEvent) error {
		if events == nil {
			events = []types.InputLogEvent{} // the SDK itself refuses nil
		}
		return outcome(c.PutLogEvents(ctx, &cloudwatchlogs.PutLogEventsInput{LogGroupName: &group, LogStreamName: &stream, LogEvents: events}))
	}
	create := func(change func(in *cloudwatchlogs.CreateLogGroupInput)) error {
		in := &cloudwatchlogs.CreateLogGroupInput{LogGroupName: new("/new")}
		change(in)
		return outcome(c.CreateLogGroup(ctx, in))
	}
	get := func(change func(in *cloudwatchlogs.GetLogEventsInput)) error {
		in := &cloudwatchlogs.GetLogEventsInput{LogGroupName: new("/app"), LogStreamName: new("s")}
		change(in)
		return outcome(c.GetLogEvents(ctx, in))
	}
	filter := func(change func(in *cloudwatchlogs.FilterLogEventsInput)) error {
		in := &cloudwatchlogs.FilterLogEventsInput{LogGroupName: new("/app")}
		change(in)
		return outcome(c.FilterLogEvents(ctx, in))
	}
	streams := func(change func(in *cloudwatchlogs.DescribeLogStreamsInput)) error {
		in := &cloudwatchlogs.DescribeLogStreamsInput{LogGroupName: new("/app")}
		change(in)
		return outcome(c.DescribeLogStreams(ctx, in))
	}
	event := func(at int64, message string) types.InputLogEvent {
		return types.InputLogEvent{Timestamp: &at, Message: &message}
	}
	missing, goneARN := new("/none"), new(logGroupARN+"/none")

	for _, tt := range []struct {
		what          string
		err           error
		code, message string
	}{
		{"CreateLogGroup: name", create(func(in *cloudwatchlogs.CreateLogGroupInput) { in.LogGroupName = new(bad) }), invalidParameter, invalidName},
		{"CreateLogGroup: long name", create(func(in *cloudwatchlogs.CreateLogGroupInput) { in.LogGroupName = new(strings.Repeat("a", 513)) }), invalidParameter, ""},
		{"CreateLogGroup: AWS's", create(func(in *cloudwatchlogs.CreateLogGroupInput) { in.LogGroupName = new("aws/x") }), invalidParameter, "Log groups starting with AWS/ are reserved for AWS."},
		{
			"CreateLogGroup: key", create(func(in *cloudwatchlogs.CreateLogGroupInput) {
				in.KmsKeyId = new("arn:aws:kms:us-east-1:000000000000:key/k")
			}), invalidParameter,
			"Log groups are not encrypted with keys of KMS here: kmsKeyId is not supported.",
		},
		{
			"CreateLogGroup: class", create(func(in *cloudwatchlogs.CreateLogGroupInput) { in.LogGroupClass = "X" }), invalidParameter,
			"1 validation error detected: Value 'X' at 'logGroupClass' failed to satisfy constraint: Member must satisfy enum value set: [STANDARD, INFREQUENT_ACCESS, DELIVERY]",
		},
		{"CreateLogGroup: tags", create(func(in *cloudwatchlogs.CreateLogGroupInput) { in.Tags = many }), invalidParameter, ""},
		{"CreateLogGroup: tag", create(func(in *cloudwatchlogs.CreateLogGroupInput) { in.Tags = map[string]string{"a!": ""} }), invalidParameter, ""},
		{"CreateLogGroup: AWS's tag", create(func(in *cloudwatchlogs.CreateLogGroupInput) { in.Tags = map[string]string{"aws:x": ""} }), invalidParameter, ""},
		{"CreateLogGroup: twice", create(func(in *cloudwatchlogs.CreateLogGroupInput) { in.LogGroupName = new("/app") }), alreadyExists, "The specified log group already exists"},
		{"DeleteLogGroup: name", outcome(c.DeleteLogGroup(ctx, &cloudwatchlogs.DeleteLogGroupInput{LogGroupName: new(bad)})), invalidParameter, invalidName},
		{"DeleteLogGroup: none", outcome(c.DeleteLogGroup(ctx, &cloudwatchlogs.DeleteLogGroupInput{LogGroupName: missing})), noLogResource, noGroup},
		{
			"DescribeLogGroups: limit", outcome(c.DescribeLogGroups(ctx, &cloudwatchlogs.DescribeLogGroupsInput{Limit: new(int32(51))})), invalidParameter,
			"1 validation error detected: Value '51' at 'limit' failed to satisfy constraint: Member must have value less than or equal to 50",
		},
		{
			"DescribeLogGroups: both", outcome(c.DescribeLogGroups(ctx, &cloudwatchlogs.DescribeLogGroupsInput{LogGroupNamePrefix: new("a"), LogGroupNamePattern: new("b")})), invalidParameter,
			"LogGroup name prefix and LogGroup name pattern are mutually exclusive parameters.",
		},
		{"DescribeLogGroups: token", outcome(c.DescribeLogGroups(ctx, &cloudwatchlogs.DescribeLogGroupsInput{NextToken: new("x")})), invalidParameter, "The specified nextToken is invalid."},
		{"PutRetentionPolicy: days", outcome(c.PutRetentionPolicy(ctx, &cloudwatchlogs.PutRetentionPolicyInput{LogGroupName: new("/app"), RetentionInDays: new(int32(2))})), invalidParameter, ""},
		{"PutRetentionPolicy: none", outcome(c.PutRetentionPolicy(ctx, &cloudwatchlogs.PutRetentionPolicyInput{LogGroupName: missing, RetentionInDays: new(int32(1))})), noLogResource, noGroup},
		{"DeleteRetentionPolicy: name", outcome(c.DeleteRetentionPolicy(ctx, &cloudwatchlogs.DeleteRetentionPolicyInput{LogGroupName: new(bad)})), invalidParameter, invalidName},
		{"DeleteRetentionPolicy: none", outcome(c.DeleteRetentionPolicy(ctx, &cloudwatchlogs.DeleteRetentionPolicyInput{LogGroupName: missing})), noLogResource, noGroup},
		{"PutLogGroupDeletionProtection: name", outcome(c.PutLogGroupDeletionProtection(ctx, &cloudwatchlogs.PutLogGroupDeletionProtectionInput{LogGroupIdentifier: new("a b"), DeletionProtectionEnabled: new(true)})), invalidParameter, ""},
		{"PutLogGroupDeletionProtection: none", outcome(c.PutLogGroupDeletionProtection(ctx, &cloudwatchlogs.PutLogGroupDeletionProtectionInput{LogGroupIdentifier: goneARN, DeletionProtectionEnabled: new(true)})), noLogResource, noGroup},
		{"TagResource: ARN", outcome(c.TagResource(ctx, &cloudwatchlogs.TagResourceInput{ResourceArn: new("arn:aws:logs:x"), Tags: map[string]string{"a": ""}})), invalidParameter, ""},
		{"TagResource: none", outcome(c.TagResource(ctx, &cloudwatchlogs.TagResourceInput{ResourceArn: goneARN, Tags: map[string]string{"a": ""}})), noLogResource, noGroup},
		{"TagResource: elsewhere", outcome(c.TagResource(ctx, &cloudwatchlogs.TagResourceInput{ResourceArn: new("arn:aws:logs:eu-west-1:000000000000:log-group:/app"), Tags: map[string]string{"a": ""}})), noLogResource, noGroup},
		{"TagResource: of another account", outcome(c.TagResource(ctx, &cloudwatchlogs.TagResourceInput{ResourceArn: new("arn:aws:logs:us-east-1:111111111111:log-group:/app"), Tags: map[string]string{"a": ""}})), noLogResource, noGroup},
		{"TagResource: too many", outcome(c.TagResource(ctx, &cloudwatchlogs.TagResourceInput{ResourceArn: new(logGroupARN + "/app"), Tags: many})), "TooManyTagsException", ""},
		{"UntagResource: ARN", outcome(c.UntagResource(ctx, &cloudwatchlogs.UntagResourceInput{ResourceArn: new("x"), TagKeys: []string{"a"}})), invalidParameter, ""},
		{"UntagResource: none", outcome(c.UntagResource(ctx, &cloudwatchlogs.UntagResourceInput{ResourceArn: goneARN, TagKeys: []string{"a"}})), noLogResource, noGroup},
		{"ListTagsForResource: ARN", outcome(c.ListTagsForResource(ctx, &cloudwatchlogs.ListTagsForResourceInput{ResourceArn: new("x")})), invalidParameter, ""},
		{"ListTagsForResource: none", outcome(c.ListTagsForResource(ctx, &cloudwatchlogs.ListTagsForResourceInput{ResourceArn: goneARN})), noLogResource, noGroup},
		{"TagLogGroup: too many", outcome(c.TagLogGroup(ctx, &cloudwatchlogs.TagLogGroupInput{LogGroupName: new("/app"), Tags: many})), invalidParameter, ""},                 //nolint:staticcheck // clients still use it
		{"TagLogGroup: none", outcome(c.TagLogGroup(ctx, &cloudwatchlogs.TagLogGroupInput{LogGroupName: missing, Tags: map[string]string{"a": ""}})), noLogResource, noGroup}, //nolint:staticcheck // clients still use it
		{"UntagLogGroup: none", outcome(c.UntagLogGroup(ctx, &cloudwatchlogs.UntagLogGroupInput{LogGroupName: missing, Tags: []string{"a"}})), noLogResource, noGroup},        //nolint:staticcheck // clients still use it
		{"ListTagsLogGroup: none", outcome(c.ListTagsLogGroup(ctx, &cloudwatchlogs.ListTagsLogGroupInput{LogGroupName: missing})), noLogResource, noGroup},                    //nolint:staticcheck // clients still use it
		{"CreateLogStream: name", outcome(c.CreateLogStream(ctx, &cloudwatchlogs.CreateLogStreamInput{LogGroupName: new("/app"), LogStreamName: new("a:b")})), invalidParameter, ""},
		{"CreateLogStream: a zero", outcome(c.CreateLogStream(ctx, &cloudwatchlogs.CreateLogStreamInput{LogGroupName: new("/app"), LogStreamName: new("a\x00b")})), invalidParameter, ""},
		{"CreateLogStream: none", outcome(c.CreateLogStream(ctx, &cloudwatchlogs.CreateLogStreamInput{LogGroupName: missing, LogStreamName: new("s")})), noLogResource, noGroup},
		{"CreateLogStream: twice", outcome(c.CreateLogStream(ctx, &cloudwatchlogs.CreateLogStreamInput{LogGroupName: new("/app"), LogStreamName: new("s")})), alreadyExists, "The specified log stream already exists"},
		{"DeleteLogStream: name", outcome(c.DeleteLogStream(ctx, &cloudwatchlogs.DeleteLogStreamInput{LogGroupName: new("/app"), LogStreamName: new("a*")})), invalidParameter, ""},
		{"DeleteLogStream: none", outcome(c.DeleteLogStream(ctx, &cloudwatchlogs.DeleteLogStreamInput{LogGroupName: new("/app"), LogStreamName: new("x")})), noLogResource, noStream},
		{
			"DescribeLogStreams: both", streams(func(in *cloudwatchlogs.DescribeLogStreamsInput) { in.LogGroupIdentifier = new("/app") }), "ValidationException",
			"LogGroup name and LogGroup ARN are mutually exclusive parameters.",
		},
		{"DescribeLogStreams: neither", streams(func(in *cloudwatchlogs.DescribeLogStreamsInput) { in.LogGroupName = nil }), invalidParameter, ""},
		{"DescribeLogStreams: order", streams(func(in *cloudwatchlogs.DescribeLogStreamsInput) {
			in.OrderBy, in.LogStreamNamePrefix = types.OrderByLastEventTime, new("a")
		}), invalidParameter, ""},
		{"DescribeLogStreams: none", streams(func(in *cloudwatchlogs.DescribeLogStreamsInput) { in.LogGroupName = missing }), noLogResource, noGroup},
		{"PutLogEvents: none", put("/none", "s", event(now, "x")), noLogResource, noGroup},
		{"PutLogEvents: no stream", put("/app", "x", event(now, "x")), noLogResource, noStream},
		{"PutLogEvents: order", put("/app", "s", event(now, "x"), event(now-1, "y")), invalidParameter, "Log events in a single PutLogEvents request must be in chronological order."},
		{"PutLogEvents: span", put("/app", "s", event(now-86_400_001, "x"), event(now, "y")), invalidParameter, "The batch of log events in a single PutLogEvents request cannot span more than 24 hours."},
		{"PutLogEvents: nothing", put("/app", "s"), invalidParameter, ""},
		{"PutLogEvents: empty", put("/app", "s", event(now, "")), invalidParameter, ""},
		{"PutLogEvents: before 1970", put("/app", "s", event(-1, "x")), invalidParameter, ""},
		{"PutLogEvents: large", put("/app", "s", event(now, strings.Repeat("x", 1_048_576))), invalidParameter, "Log event too large: 1048602 bytes exceeds limit of 1048576"},
		{"PutLogEvents: large batch", put("/app", "s", event(now, strings.Repeat("x", 600_000)), event(now, strings.Repeat("x", 600_000))), invalidParameter, "Upload too large: 1200052 bytes exceeds limit of 1048576"},
		{"GetLogEvents: token", get(func(in *cloudwatchlogs.GetLogEventsInput) { in.NextToken = new("x") }), invalidParameter, "The specified nextToken is invalid."},
		{
			"GetLogEvents: limit", get(func(in *cloudwatchlogs.GetLogEventsInput) { in.Limit = new(int32(10_001)) }), invalidParameter,
			"1 validation error detected: Value '10001' at 'limit' failed to satisfy constraint: Member must have value less than or equal to 10000",
		},
		{"GetLogEvents: times", get(func(in *cloudwatchlogs.GetLogEventsInput) { in.StartTime, in.EndTime = new(now), new(now-1) }), invalidParameter, ""},
		{"GetLogEvents: none", get(func(in *cloudwatchlogs.GetLogEventsInput) { in.LogGroupName = missing }), noLogResource, noGroup},
		{"GetLogEvents: no stream", get(func(in *cloudwatchlogs.GetLogEventsInput) { in.LogStreamName = new("x") }), noLogResource, noStream},
		{"FilterLogEvents: pattern", filter(func(in *cloudwatchlogs.FilterLogEventsInput) { in.FilterPattern = new("a:b") }), invalidParameter, "Invalid character(s) in term ':'"},
		{"FilterLogEvents: token", filter(func(in *cloudwatchlogs.FilterLogEventsInput) { in.NextToken = new("x") }), invalidParameter, "The specified nextToken is invalid."},
		{"FilterLogEvents: limit", filter(func(in *cloudwatchlogs.FilterLogEventsInput) { in.Limit = new(int32(10_001)) }), invalidParameter, ""},
		{"FilterLogEvents: both", filter(func(in *cloudwatchlogs.FilterLogEventsInput) {
			in.LogStreamNames, in.LogStreamNamePrefix = []string{"s"}, new("s")
		}), invalidParameter, ""},
		{"FilterLogEvents: none", filter(func(in *cloudwatchlogs.FilterLogEventsInput) { in.LogGroupName = missing }), noLogResource, noGroup},
		{"FilterLogEvents: no stream", filter(func(in *cloudwatchlogs.FilterLogEventsInput) { in.LogStreamNames = []string{"x"} }), noLogResource, noStream},
	} {
		wantLogsError(t, tt.what, tt.err, tt.code, tt.message)
	}
	must(c.PutLogGroupDeletionProtection(ctx, &cloudwatchlogs.PutLogGroupDeletionProtectionInput{LogGroupIdentifier: new("/app"), DeletionProtectionEnabled: new(true)}))(t)
	for _, err := range []error{
		outcome(c.DeleteLogGroup(ctx, &cloudwatchlogs.DeleteLogGroupInput{LogGroupName: new("/app")})),
		outcome(c.DeleteLogStream(ctx, &cloudwatchlogs.DeleteLogStreamInput{LogGroupName: new("/app"), LogStreamName: new("s")})),
	} {
		wantLogsError(t, "protected", err, "ValidationException", "")
	}
	found := must(c.FilterLogEvents(ctx, &cloudwatchlogs.FilterLogEventsInput{LogGroupName: new("/app")}))(t)
	groups := must(c.DescribeLogGroups(ctx, &cloudwatchlogs.DescribeLogGroupsInput{}))(t)
	tags := must(c.ListTagsForResource(ctx, &cloudwatchlogs.ListTagsForResourceInput{ResourceArn: new(logGroupARN + "/app")}))(t)
	if len(found.Events) != 0 || len(groups.LogGroups) != 1 || len(tags.Tags) != 0 || groups.LogGroups[0].RetentionInDays != nil {
		t.Errorf("something was changed: %+v %+v %+v", found.Events, groups.LogGroups, tags.Tags)
	}
}

// TestLogsRefuseStrangers: a key that nobody has, and a user without permission, change nothing.
func TestLogsRefuseStrangers(t *testing.T) {
	endpoint := start(t)
	c, ctx := logsClient(endpoint), t.Context()
	createGroup(t, c, "/app", "s")
	with := func(key, secret, token string) *cloudwatchlogs.Client {
		return cloudwatchlogs.New(cloudwatchlogs.Options{
			BaseEndpoint: &endpoint, Region: region, Credentials: credentials.NewStaticCredentialsProvider(key, secret, token), RetryMaxAttempts: 1, HTTPClient: eager,
		})
	}
	stranger := with("test", secretOf("test"), "no such token")
	wantLogsError(t, "a stranger puts events", outcome(stranger.PutLogEvents(ctx, &cloudwatchlogs.PutLogEventsInput{
		LogGroupName: new("/app"), LogStreamName: new("s"), LogEvents: logEvents(serverNow(t, endpoint), "of a stranger"),
	})), "UnrecognizedClientException", "The security token included in the request is invalid.")

	users := iamClientOf(endpoint, account, secretOf(account), "")
	must(users.CreateUser(ctx, &iam.CreateUserInput{UserName: new("ann")}))(t)
	key := must(users.CreateAccessKey(ctx, &iam.CreateAccessKeyInput{UserName: new("ann")}))(t).AccessKey
	ann := with(*key.AccessKeyId, *key.SecretAccessKey, "")
	wantLogsError(t, "a user protects the group", outcome(ann.PutLogGroupDeletionProtection(ctx, &cloudwatchlogs.PutLogGroupDeletionProtectionInput{
		LogGroupIdentifier: new("/app"), DeletionProtectionEnabled: new(true),
	})), "AccessDeniedException", "User: arn:aws:iam::"+account+":user/ann is not authorized to perform: logs:PutLogGroupDeletionProtection on resource: "+
		logGroupARN+"/app:log-stream: because no identity-based policy allows the logs:PutLogGroupDeletionProtection action")

	groups := must(c.DescribeLogGroups(ctx, &cloudwatchlogs.DescribeLogGroupsInput{}))(t)
	found := must(c.FilterLogEvents(ctx, &cloudwatchlogs.FilterLogEventsInput{LogGroupName: new("/app")}))(t)
	if len(found.Events) != 0 || *groups.LogGroups[0].DeletionProtectionEnabled {
		t.Errorf("something was changed: %+v %+v", found.Events, groups.LogGroups)
	}
}
