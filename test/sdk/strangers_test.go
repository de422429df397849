package sdk_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
)

// What is another's stays out of sight: of a user of the account who may nothing, of another
// account's root, and of a user of that account who may everything there.

// callerClients are one caller's.
type callerClients struct {
	sqs    *sqs.Client
	sns    *sns.Client
	lambda *lambda.Client
	cw     *cloudwatch.Client
	logs   *cloudwatchlogs.Client
	iam    *iam.Client
	sts    *sts.Client
	kms    *kms.Client
}

func callersClients(endpoint string, who aws.CredentialsProvider) callerClients {
	return callerClients{
		sqs.New(sqs.Options{BaseEndpoint: &endpoint, Region: region, Credentials: who, RetryMaxAttempts: 1, HTTPClient: eager}),
		sns.New(sns.Options{BaseEndpoint: &endpoint, Region: region, Credentials: who, RetryMaxAttempts: 1, HTTPClient: eager}),
		lambda.New(lambda.Options{BaseEndpoint: &endpoint, Region: region, Credentials: who, RetryMaxAttempts: 1, HTTPClient: eager}),
		cloudwatch.New(cloudwatch.Options{BaseEndpoint: &endpoint, Region: region, Credentials: who, RetryMaxAttempts: 1, HTTPClient: eager}),
		cloudwatchlogs.New(cloudwatchlogs.Options{BaseEndpoint: &endpoint, Region: region, Credentials: who, RetryMaxAttempts: 1, HTTPClient: eager}),
		iamAs(endpoint, who), stsAs(endpoint, who), kmsAs(endpoint, who),
	}
}

// target is what an attack names: something of the victim's, or something that is not there
// and would be called the same.
type target struct {
	url                         string // of a queue
	queue, topic, fn, group     string // ARNs
	layer                       string
	alarm, role, policy, key    string
	subscription, mapping, user string
	name                        string // of all of them
	keyID                       string
	handle, task, ciphertext    string
}

// attacks ask for what is about one thing.
var attacks = map[string]func(ctx context.Context, c callerClients, v target) error{
	"SendMessage": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.sqs.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &v.url, MessageBody: new("x")}))
	},
	"ReceiveMessage": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.sqs.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &v.url}))
	},
	"DeleteMessage": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.sqs.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &v.url, ReceiptHandle: &v.handle}))
	},
	"ChangeMessageVisibility": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.sqs.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: &v.url, ReceiptHandle: &v.handle}))
	},
	"GetQueueAttributes": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.sqs.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &v.url}))
	},
	"SetQueueAttributes": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.sqs.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: &v.url, Attributes: map[string]string{"Policy": ""}}))
	},
	"GetQueueUrl": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.sqs.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &v.name, QueueOwnerAWSAccountId: new(account)}))
	},
	"PurgeQueue": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.sqs.PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: &v.url}))
	},
	"ListQueueTags": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.sqs.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: &v.url}))
	},
	"ListDeadLetterSourceQueues": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.sqs.ListDeadLetterSourceQueues(ctx, &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: &v.url}))
	},
	"StartMessageMoveTask": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.sqs.StartMessageMoveTask(ctx, &sqs.StartMessageMoveTaskInput{SourceArn: &v.queue}))
	},
	"ListMessageMoveTasks": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.sqs.ListMessageMoveTasks(ctx, &sqs.ListMessageMoveTasksInput{SourceArn: &v.queue}))
	},
	"CancelMessageMoveTask": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.sqs.CancelMessageMoveTask(ctx, &sqs.CancelMessageMoveTaskInput{TaskHandle: &v.task}))
	},
	"Publish": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.sns.Publish(ctx, &sns.PublishInput{TopicArn: &v.topic, Message: new("x")}))
	},
	"Subscribe": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.sns.Subscribe(ctx, &sns.SubscribeInput{TopicArn: &v.topic, Protocol: new("sqs"), Endpoint: new(queueARN("eve"))}))
	},
	"GetTopicAttributes": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.sns.GetTopicAttributes(ctx, &sns.GetTopicAttributesInput{TopicArn: &v.topic}))
	},
	"ListSubscriptionsByTopic": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.sns.ListSubscriptionsByTopic(ctx, &sns.ListSubscriptionsByTopicInput{TopicArn: &v.topic}))
	},
	"GetSubscriptionAttributes": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.sns.GetSubscriptionAttributes(ctx, &sns.GetSubscriptionAttributesInput{SubscriptionArn: &v.subscription}))
	},
	"SetSubscriptionAttributes": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.sns.SetSubscriptionAttributes(ctx, &sns.SetSubscriptionAttributesInput{SubscriptionArn: &v.subscription, AttributeName: new("RawMessageDelivery"), AttributeValue: new("false")}))
	},
	"Unsubscribe": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.sns.Unsubscribe(ctx, &sns.UnsubscribeInput{SubscriptionArn: &v.subscription}))
	},
	"ListTagsForResource of SNS": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.sns.ListTagsForResource(ctx, &sns.ListTagsForResourceInput{ResourceArn: &v.topic}))
	},
	"GetFunction": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.lambda.GetFunction(ctx, &lambda.GetFunctionInput{FunctionName: &v.fn}))
	},
	"GetFunctionConfiguration": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.lambda.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: &v.fn}))
	},
	"Invoke": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.lambda.Invoke(ctx, &lambda.InvokeInput{FunctionName: &v.fn}))
	},
	"UpdateFunctionConfiguration": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.lambda.UpdateFunctionConfiguration(ctx, &lambda.UpdateFunctionConfigurationInput{FunctionName: &v.fn, Description: new("x")}))
	},
	"GetPolicy": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.lambda.GetPolicy(ctx, &lambda.GetPolicyInput{FunctionName: &v.fn}))
	},
	"GetFunctionEventInvokeConfig": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.lambda.GetFunctionEventInvokeConfig(ctx, &lambda.GetFunctionEventInvokeConfigInput{FunctionName: &v.fn}))
	},
	"GetLayerVersion": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.lambda.GetLayerVersion(ctx, &lambda.GetLayerVersionInput{LayerName: &v.layer, VersionNumber: new(int64(1))}))
	},
	"GetLayerVersionByArn": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.lambda.GetLayerVersionByArn(ctx, &lambda.GetLayerVersionByArnInput{Arn: new(v.layer + ":1")}))
	},
	"ListLayerVersions": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.lambda.ListLayerVersions(ctx, &lambda.ListLayerVersionsInput{LayerName: &v.layer}))
	},
	"DeleteLayerVersion": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.lambda.DeleteLayerVersion(ctx, &lambda.DeleteLayerVersionInput{LayerName: &v.layer, VersionNumber: new(int64(1))}))
	},
	"GetLayerVersionPolicy": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.lambda.GetLayerVersionPolicy(ctx, &lambda.GetLayerVersionPolicyInput{LayerName: &v.layer, VersionNumber: new(int64(1))}))
	},
	"GetFunctionUrlConfig": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.lambda.GetFunctionUrlConfig(ctx, &lambda.GetFunctionUrlConfigInput{FunctionName: &v.fn}))
	},
	"UpdateFunctionUrlConfig": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.lambda.UpdateFunctionUrlConfig(ctx, &lambda.UpdateFunctionUrlConfigInput{FunctionName: &v.fn, AuthType: lambdatypes.FunctionUrlAuthTypeNone}))
	},
	"ListTags": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.lambda.ListTags(ctx, &lambda.ListTagsInput{Resource: &v.fn}))
	},
	"GetEventSourceMapping": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.lambda.GetEventSourceMapping(ctx, &lambda.GetEventSourceMappingInput{UUID: &v.mapping}))
	},
	"CreateEventSourceMapping": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.lambda.CreateEventSourceMapping(ctx, &lambda.CreateEventSourceMappingInput{FunctionName: new("evil"), EventSourceArn: &v.queue}))
	},
	"GetLogEvents": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.logs.GetLogEvents(ctx, &cloudwatchlogs.GetLogEventsInput{LogGroupIdentifier: &v.group, LogStreamName: new("s")}))
	},
	"FilterLogEvents": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.logs.FilterLogEvents(ctx, &cloudwatchlogs.FilterLogEventsInput{LogGroupIdentifier: &v.group}))
	},
	"DescribeLogStreams": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.logs.DescribeLogStreams(ctx, &cloudwatchlogs.DescribeLogStreamsInput{LogGroupIdentifier: &v.group}))
	},
	"ListTagsForResource of Logs": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.logs.ListTagsForResource(ctx, &cloudwatchlogs.ListTagsForResourceInput{ResourceArn: &v.group}))
	},
	"ListTagsForResource of CloudWatch": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.cw.ListTagsForResource(ctx, &cloudwatch.ListTagsForResourceInput{ResourceARN: &v.alarm}))
	},
	"AssumeRole": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.sts.AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: &v.role, RoleSessionName: new("eve")}))
	},
	"AssumeRoleWithWebIdentity": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.sts.AssumeRoleWithWebIdentity(ctx, &sts.AssumeRoleWithWebIdentityInput{RoleArn: &v.role, RoleSessionName: new("eve"), WebIdentityToken: new("e30." + encode(map[string]any{"iss": "https://example.com", "sub": "s", "aud": "a", "iat": 1, "exp": time.Now().Add(time.Hour).Unix()}) + ".x")}))
	},
	"IAM's GetPolicy": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.iam.GetPolicy(ctx, &iam.GetPolicyInput{PolicyArn: &v.policy}))
	},
	"DescribeKey": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.kms.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: &v.key}))
	},
	"DescribeKey by alias": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.kms.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: new("arn:aws:kms:" + region + ":" + account + ":alias/" + v.name)}))
	},
	"GetKeyPolicy": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.kms.GetKeyPolicy(ctx, &kms.GetKeyPolicyInput{KeyId: &v.key}))
	},
	"Encrypt": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.kms.Encrypt(ctx, &kms.EncryptInput{KeyId: &v.key, Plaintext: []byte("x")}))
	},
	"CreateGrant": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.kms.CreateGrant(ctx, &kms.CreateGrantInput{KeyId: &v.key, GranteePrincipal: new("arn:aws:iam::" + account + ":root"), Operations: []kmstypes.GrantOperation{"Decrypt"}}))
	},
	"ListGrants": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.kms.ListGrants(ctx, &kms.ListGrantsInput{KeyId: &v.key}))
	},
	"ScheduleKeyDeletion": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.kms.ScheduleKeyDeletion(ctx, &kms.ScheduleKeyDeletionInput{KeyId: &v.key}))
	},
	"Decrypt": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.kms.Decrypt(ctx, &kms.DecryptInput{CiphertextBlob: []byte(v.ciphertext), KeyId: &v.key}))
	},
}

// ofAccount are attacks on what is named without an account: the caller's own, which has it,
// or has not.
var ofAccount = map[string]func(ctx context.Context, c callerClients, v target) error{
	"GetUser": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.iam.GetUser(ctx, &iam.GetUserInput{UserName: &v.user}))
	},
	"GetRole": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.iam.GetRole(ctx, &iam.GetRoleInput{RoleName: &v.name}))
	},
	"DeleteUser": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.iam.DeleteUser(ctx, &iam.DeleteUserInput{UserName: &v.user}))
	},
	"CreateAccessKey": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.iam.CreateAccessKey(ctx, &iam.CreateAccessKeyInput{UserName: &v.user}))
	},
	"DescribeAlarmHistory": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.cw.DescribeAlarmHistory(ctx, &cloudwatch.DescribeAlarmHistoryInput{AlarmName: &v.name}))
	},
	"SetAlarmState": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.cw.SetAlarmState(ctx, &cloudwatch.SetAlarmStateInput{AlarmName: &v.name, StateValue: cwtypes.StateValueOk, StateReason: new("x")}))
	},
	"DeleteAlarms": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.cw.DeleteAlarms(ctx, &cloudwatch.DeleteAlarmsInput{AlarmNames: []string{v.name}}))
	},
	"PutLogEvents": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.logs.PutLogEvents(ctx, &cloudwatchlogs.PutLogEventsInput{LogGroupName: &v.name, LogStreamName: new("s"), LogEvents: logEvents(1, "x")}))
	},
	"PutSubscriptionFilter": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.logs.PutSubscriptionFilter(ctx, subscriptionInput(v.name, "f", "", v.fn)))
	},
	"DeleteSubscriptionFilter": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.logs.DeleteSubscriptionFilter(ctx, &cloudwatchlogs.DeleteSubscriptionFilterInput{LogGroupName: &v.name, FilterName: new("f")}))
	},
	"DeleteLogGroup": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.logs.DeleteLogGroup(ctx, &cloudwatchlogs.DeleteLogGroupInput{LogGroupName: &v.name}))
	},
	"DescribeKey by id": func(ctx context.Context, c callerClients, v target) error {
		return errorOf(c.kms.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: &v.keyID}))
	},
}

// lists give what they show.
var lists = map[string]func(ctx context.Context, c callerClients) (any, error){
	"ListQueues": func(ctx context.Context, c callerClients) (any, error) {
		return shown(c.sqs.ListQueues(ctx, &sqs.ListQueuesInput{}))
	},
	"ListTopics": func(ctx context.Context, c callerClients) (any, error) {
		return shown(c.sns.ListTopics(ctx, &sns.ListTopicsInput{}))
	},
	"ListSubscriptions": func(ctx context.Context, c callerClients) (any, error) {
		return shown(c.sns.ListSubscriptions(ctx, &sns.ListSubscriptionsInput{}))
	},
	"ListFunctions": func(ctx context.Context, c callerClients) (any, error) {
		return shown(c.lambda.ListFunctions(ctx, &lambda.ListFunctionsInput{}))
	},
	"ListLayers": func(ctx context.Context, c callerClients) (any, error) {
		return shown(c.lambda.ListLayers(ctx, &lambda.ListLayersInput{}))
	},
	"ListEventSourceMappings": func(ctx context.Context, c callerClients) (any, error) {
		return shown(c.lambda.ListEventSourceMappings(ctx, &lambda.ListEventSourceMappingsInput{}))
	},
	"GetAccountSettings": func(ctx context.Context, c callerClients) (any, error) {
		return shown(c.lambda.GetAccountSettings(ctx, &lambda.GetAccountSettingsInput{}))
	},
	"ListDashboards": func(ctx context.Context, c callerClients) (any, error) {
		return shown(c.cw.ListDashboards(ctx, &cloudwatch.ListDashboardsInput{}))
	},
	"ListMetrics": func(ctx context.Context, c callerClients) (any, error) {
		return shown(c.cw.ListMetrics(ctx, &cloudwatch.ListMetricsInput{IncludeLinkedAccounts: new(true)}))
	},
	"DescribeAlarms": func(ctx context.Context, c callerClients) (any, error) {
		return shown(c.cw.DescribeAlarms(ctx, &cloudwatch.DescribeAlarmsInput{}))
	},
	"DescribeAlarmsForMetric": func(ctx context.Context, c callerClients) (any, error) {
		return shown(c.cw.DescribeAlarmsForMetric(ctx, &cloudwatch.DescribeAlarmsForMetricInput{Namespace: new("n"), MetricName: new("m")}))
	},
	"GetMetricStatistics": func(ctx context.Context, c callerClients) (any, error) {
		out, err := c.cw.GetMetricStatistics(ctx, &cloudwatch.GetMetricStatisticsInput{
			Namespace: new("victim"), MetricName: new("m"), StartTime: new(time.Unix(0, 0)), EndTime: new(time.Unix(4e9, 0)), Period: new(int32(86400 * 30)), Statistics: []cwtypes.Statistic{"Sum"},
		})
		if err == nil && len(out.Datapoints) > 0 {
			return "victim's datapoints", nil
		}
		return "", err
	},
	"DescribeLogGroups": func(ctx context.Context, c callerClients) (any, error) {
		return shown(c.logs.DescribeLogGroups(ctx, &cloudwatchlogs.DescribeLogGroupsInput{IncludeLinkedAccounts: new(true)}))
	},
	"ListUsers": func(ctx context.Context, c callerClients) (any, error) {
		return shown(c.iam.ListUsers(ctx, &iam.ListUsersInput{}))
	},
	"ListRoles": func(ctx context.Context, c callerClients) (any, error) {
		return shown(c.iam.ListRoles(ctx, &iam.ListRolesInput{}))
	},
	"GetAccountAuthorizationDetails": func(ctx context.Context, c callerClients) (any, error) {
		return shown(c.iam.GetAccountAuthorizationDetails(ctx, &iam.GetAccountAuthorizationDetailsInput{}))
	},
	"ListKeys": func(ctx context.Context, c callerClients) (any, error) {
		return shown(c.kms.ListKeys(ctx, &kms.ListKeysInput{}))
	},
	"ListAliases": func(ctx context.Context, c callerClients) (any, error) {
		return shown(c.kms.ListAliases(ctx, &kms.ListAliasesInput{}))
	},
	"ListRetirableGrants": func(ctx context.Context, c callerClients) (any, error) {
		return shown(c.kms.ListRetirableGrants(ctx, &kms.ListRetirableGrantsInput{RetiringPrincipal: new("arn:aws:iam::" + account + ":user/victim")}))
	},
}

func shown[T any](v *T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(v)
	return string(text), err
}

// victims makes one of everything, all by the name victim, and names what is not there by
// the name absent.
func victims(t *testing.T, endpoint string) (there, absent target) {
	t.Helper()
	c, ctx := callersClients(endpoint, credentials.NewStaticCredentialsProvider("test", secretOf("test"), "")), t.Context()
	name := func(name, id string) target {
		return target{
			url: endpoint + "/" + account + "/" + name, queue: queueARN(name), topic: topicARN(name), fn: functionARN(name), layer: layerARN(name), group: "arn:aws:logs:" + region + ":" + account + ":log-group:" + name,
			alarm: alarmARN(name), role: "arn:aws:iam::" + account + ":role/" + name, policy: "arn:aws:iam::" + account + ":policy/" + name, name: name, user: name,
			keyID: id, key: "arn:aws:kms:" + region + ":" + account + ":key/" + id, subscription: topicARN(name) + ":" + id, mapping: id, handle: "x",
		}
	}
	key := makeKey(t, c.kms, &kms.CreateKeyInput{Description: new("victim")})
	there, absent = name("victim", *key.KeyId), name("absent", "00000000-0000-4000-8000-000000000000")
	must(c.kms.CreateAlias(ctx, &kms.CreateAliasInput{AliasName: new("alias/victim"), TargetKeyId: key.KeyId}))(t)
	there.ciphertext = string(must(c.kms.Encrypt(ctx, &kms.EncryptInput{KeyId: key.KeyId, Plaintext: []byte("canary")}))(t).CiphertextBlob)
	forged := []byte(there.ciphertext)
	copy(forged[1:17], strings.Repeat("\x01", 16)) // under a key that is not there
	absent.ciphertext = string(forged)

	createQueue(t, c.sqs, "victim")
	createQueue(t, c.sqs, "victims-source", "RedrivePolicy", redriveTo("victim"))
	send(t, c.sqs, there.url, "canary")
	send(t, c.sqs, there.url, "canary")
	there.handle = *receive(t, c.sqs, there.url, 1)[0].ReceiptHandle
	there.task = startMove(t, c.sqs, &sqs.StartMessageMoveTaskInput{SourceArn: &there.queue, DestinationArn: new(queueARN("victims-source")), MaxNumberOfMessagesPerSecond: new(int32(1))})
	absent.task = base64.StdEncoding.EncodeToString([]byte(`{"taskId":"00000000-0000-4000-8000-000000000000","sourceArn":"` + absent.queue + `"}`))
	createTopic(t, c.sns, "victim")
	there.subscription = subscribe(t, c.sns, there.topic, "sqs", there.queue)
	role := role(t, c.iam, "victim", allow("*", "*"))
	far := startFar(t)
	must(c.lambda.CreateFunction(ctx, &lambda.CreateFunctionInput{
		FunctionName: new("victim"), Role: &role, PackageType: lambdatypes.PackageTypeImage, Code: &lambdatypes.FunctionCode{ImageUri: &far.URL},
		Environment: &lambdatypes.Environment{Variables: map[string]string{"SECRET": "canary"}}, Tags: map[string]string{"t": "canary"},
	}))(t)
	advance(t, endpoint, "1s")
	must(c.lambda.PublishLayerVersion(ctx, &lambda.PublishLayerVersionInput{
		LayerName: new("victim"), Content: &lambdatypes.LayerVersionContentInput{ZipFile: zipOf(t, "a", "canary")}, Description: new("canary"),
	}))(t)
	must(c.lambda.PutFunctionEventInvokeConfig(ctx, &lambda.PutFunctionEventInvokeConfigInput{FunctionName: new("victim"), MaximumRetryAttempts: new(int32(1))}))(t)
	must(c.lambda.CreateFunctionUrlConfig(ctx, &lambda.CreateFunctionUrlConfigInput{FunctionName: new("victim"), AuthType: lambdatypes.FunctionUrlAuthTypeAwsIam}))(t)
	must(c.lambda.AddPermission(ctx, permission("victim", "s", "sns.amazonaws.com")))(t)
	there.mapping = *mapped(t, c.lambda, "victims-source", "victim", func(in *lambda.CreateEventSourceMappingInput) { in.Enabled = new(false) })
	createGroup(t, c.logs, "victim", "s")
	putLogs(t, c.logs, "victim", "s", logEvents(serverNow(t, endpoint), "canary"))
	putAlarm(t, endpoint, "victim", nil)
	must(c.cw.PutMetricData(ctx, &cloudwatch.PutMetricDataInput{Namespace: new("victim"), MetricData: []cwtypes.MetricDatum{{MetricName: new("m"), Value: new(7.0)}}}))(t)
	must(c.iam.CreateUser(ctx, &iam.CreateUserInput{UserName: new("victim")}))(t)
	must(c.iam.CreatePolicy(ctx, &iam.CreatePolicyInput{PolicyName: new("victim"), PolicyDocument: new(allow("arn:aws:sqs:*:*:canary", "sqs:*"))}))(t)
	advance(t, endpoint, "2m")
	return there, absent
}

// boundedUser is a user who might everything, were it not for a boundary.
func boundedUser(t *testing.T, endpoint string) aws.CredentialsProvider {
	t.Helper()
	c := iamClient(endpoint)
	boundary := must(c.CreatePolicy(t.Context(), &iam.CreatePolicyInput{PolicyName: new("nothing"), PolicyDocument: new(nothing)}))(t).Policy.Arn
	keys := userOf(t, c, "bounded", allow("*", "*"))
	must(c.PutUserPermissionsBoundary(t.Context(), &iam.PutUserPermissionsBoundaryInput{UserName: new("bounded"), PermissionsBoundary: boundary}))(t)
	return keys
}

// operatorCall asks for what is Godwit's own, signed by a caller.
func operatorCall(t *testing.T, url, method string, who aws.CredentialsProvider) response {
	t.Helper()
	body := "{}"
	if method == http.MethodGet {
		body = ""
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := who.Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(body))
	req.Header.Set("Content-Type", "application/json")
	if err := v4.NewSigner().SignHTTP(t.Context(), keys, req, hex.EncodeToString(sum[:]), "godwit", region, time.Now()); err != nil {
		t.Fatal(err)
	}
	return do(t, req)
}

var requestID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// toldOf is a refusal without what its target is called.
func toldOf(err error, v target) string {
	refusal, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return fmt.Sprint(err)
	}
	text := refusal.ErrorCode() + ": " + refusal.ErrorMessage()
	return requestID.ReplaceAllString(strings.ReplaceAll(text, v.name, "NAME"), "ID")
}

// Nobody who has no right to it can do anything with, see, or find out whether there is what
// belongs to somebody else.
func TestStrangers(t *testing.T) {
	endpoint := start(t)
	there, absent := victims(t, endpoint)
	const other = "444455556666"
	theirs := iamClientOf(endpoint, other, secretOf(other), "")
	mallory := userOf(t, theirs, "mallory", allow("*", "*"))
	evil := functionsClientOf(endpoint, region, other)
	far := startFar(t)
	must(evil.CreateFunction(t.Context(), &lambda.CreateFunctionInput{
		FunctionName: new("evil"), Role: new(strings.Replace(roleARN, account, other, 1)), PackageType: lambdatypes.PackageTypeImage, Code: &lambdatypes.FunctionCode{ImageUri: &far.URL},
	}))(t)
	advance(t, endpoint, "1s")
	before := counts(t, client(endpoint), there.url)
	for who, caller := range map[string]struct {
		keys    aws.CredentialsProvider
		outside bool
	}{
		"a user who may nothing":                     {makeUser(t, endpoint, "eve"), false},
		"a user with a boundary that allows nothing": {boundedUser(t, endpoint), false},
		"another account's root":                     {credentials.NewStaticCredentialsProvider(other, secretOf(other), ""), true},
		"another account's administrator":            {mallory, true},
	} {
		t.Run(who, func(t *testing.T) {
			c := callersClients(endpoint, caller.keys)
			attack := func(name string, f func(context.Context, callerClients, target) error) {
				one, two := f(t.Context(), c, there), f(t.Context(), c, absent)
				if one == nil {
					t.Errorf("%s is allowed", name)
					return
				}
				if strings.Contains(one.Error(), "canary") {
					t.Errorf("%s tells: %v", name, one)
				}
				if a, b := toldOf(one, there), toldOf(two, absent); a != b {
					t.Errorf("%s tells what is there:\n%s\n%s", name, a, b)
				}
			}
			for name, f := range attacks {
				// In its own account, an alias is looked up before anybody is asked, as with AWS.
				if caller.outside || name != "DescribeKey by alias" {
					attack(name, f)
				}
			}
			for name, f := range ofAccount {
				if !caller.outside {
					attack(name, f)
				} else if one := f(t.Context(), c, there); one != nil && strings.Contains(one.Error(), "canary") {
					t.Errorf("%s tells: %v", name, one)
				}
			}
			for name, f := range lists {
				text, err := f(t.Context(), c)
				switch {
				case !caller.outside && err == nil:
					t.Errorf("%s is allowed", name)
				case strings.Contains(fmt.Sprint(text, err), "canary"), err == nil && strings.Contains(fmt.Sprint(text), "victim"):
					t.Errorf("%s shows %v, %v", name, text, err)
				}
			}
			for _, path := range []string{"clock", "deliveries", "faults", "queue?url=" + there.url, "outbox", "events?function=victim", "backlog?subscription=" + there.subscription, "health?verbose", ""} {
				for _, method := range []string{http.MethodGet, http.MethodPost} {
					r := operatorCall(t, endpoint+"/_godwit/"+path, method, caller.keys)
					if r.Status < 400 && !strings.HasPrefix(path, "health") || strings.Contains(r.Body, "victim") || strings.Contains(r.Body, "canary") {
						t.Errorf("%s /_godwit/%s: %d %s", method, path, r.Status, r.Body)
					}
				}
			}
			for _, path := range []string{"/metrics", "/debug/pprof/", "/debug/pprof/heap"} {
				if r := operatorCall(t, endpoint+path, http.MethodGet, caller.keys); r.Status < 400 || strings.Contains(r.Body, "victim") {
					t.Errorf("%s: %d", path, r.Status)
				}
			}
		})
	}
	equal(t, "the queue after all that", before, counts(t, client(endpoint), there.url))
}

// A message is acted on by its own queue's handle, and by those who may that there.
func TestHandlesOfOthers(t *testing.T) {
	endpoint := start(t)
	root := client(endpoint)
	victim, mine := createQueue(t, root, "victim"), createQueue(t, root, "mine")
	send(t, root, victim, "canary")
	handle := *receive(t, root, victim, 1)[0].ReceiptHandle
	eve := callersClients(endpoint, makeUser(t, endpoint, "eve", statement("Allow", `"sqs:*"`, queueARN("mine")))).sqs
	for _, at := range []struct{ url, code string }{{victim, "AccessDenied"}, {mine, "ReceiptHandleIsInvalid"}} {
		_, err := eve.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &at.url, ReceiptHandle: &handle})
		refusedWith(t, err, at.code, "*")
		_, err = eve.ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: &at.url, ReceiptHandle: &handle})
		refusedWith(t, err, at.code, "*")
	}
	equal(t, "the victim's message", [3]string{"0", "1", "0"}, counts(t, root, victim))
}
