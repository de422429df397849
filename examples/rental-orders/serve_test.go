package rental_test

import (
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

const (
	account     = "000000000000"
	keyAlias    = "alias/rental-orders"
	alarmsTopic = "Rental-Alarms"
	alarmsQueue = "Rental-Alarms"
)

// production is the shop with functions on godwit serve: everything that keeps orders is
// under one key of the shop's own, and nobody may more than needed.
type production struct {
	*office
	kms        *kms.Client
	iam        *iam.Client
	cloudwatch *cloudwatch.Client

	key         string // ARN
	alarms      string // ARN of the topic
	announcer   aws.Config
	caretaker   aws.Config
	withoutUser aws.Config // whose key nobody has
}

// TestRentalInServe is README.md's part on production.
func TestRentalInServe(t *testing.T) {
	t.Parallel()
	godwit, clerk := build(t, "clerk")
	address, dir := freeAddress(t), filepath.Join(t.TempDir(), "godwit")
	printed, err := exec.Command(godwit, "init", "--dir", dir, "-o", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var root struct{ AccessKeyID, SecretAccessKey string }
	if err := json.Unmarshal(printed, &root); err != nil {
		t.Fatal(err)
	}
	launch(t, t, "http://"+address+"/_godwit/health", godwit,
		"serve", "--config", filepath.Join(dir, "godwit.yaml"), "--listen", address, "--log-level", "warn", "--jitter", "0")

	s := &production{office: &office{shop: newShop("http://"+address, ""), zip: packed(t, clerk)}}
	config := s.as(root.AccessKeyID, root.SecretAccessKey)
	s.withoutUser = s.as("test", "test")
	s.sns, s.sqs, s.lambda, s.logs = sns.NewFromConfig(config), sqs.NewFromConfig(config), lambda.NewFromConfig(config), cloudwatchlogs.NewFromConfig(config)
	s.kms, s.iam, s.cloudwatch = kms.NewFromConfig(config), iam.NewFromConfig(config), cloudwatch.NewFromConfig(config)
	for _, step := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"the key and the resources under it", s.setUp},
		{"users that may what they need", s.hire},
		{"nobody else may anything", s.closed},
		{"an order is reserved and billed", s.billed},
		{"a broken order is redriven once billing is mended", s.broken},
		{"an order that the queue does not take is redriven", s.undelivered},
		{"without permission the topic cannot invoke", s.forbidden},
		{"an alarm is heard", s.alarm},
		{"nothing is anywhere else", func(t *testing.T) {
			s.awaitCount(t, fulfilmentName, "ApproximateNumberOfMessagesNotVisible", "0") // billing has said so, and not deleted it yet
			for _, queue := range []string{fulfilmentName, fulfilmentDLQ, fanoutDLQ, billingDLQ, billingOwnDLQ, alarmsQueue} {
				s.wantEmpty(t, queue)
			}
		}},
	} {
		if !t.Run(step.name, step.run) {
			t.FailNow() // the steps build on each other
		}
		if s.refused != "" {
			t.Skip(s.refused)
		}
	}
}

// as is the configuration of a client with a key.
func (s *production) as(id, secret string) aws.Config {
	return aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider(id, secret, ""), BaseEndpoint: &s.endpoint}
}

// createSealedTopic makes a topic under the shop's key.
func (s *production) createSealedTopic(t *testing.T, name string) string {
	t.Helper()
	out, err := s.sns.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: &name, Attributes: map[string]string{"KmsMasterKeyId": keyAlias}})
	if err != nil {
		t.Fatal(err)
	}
	return *out.TopicArn
}

func (s *production) setUp(t *testing.T) {
	key, err := s.kms.CreateKey(t.Context(), &kms.CreateKeyInput{Policy: policy(keyPolicy, "", "")})
	if err != nil {
		t.Fatal(err)
	}
	s.key = *key.KeyMetadata.Arn
	if _, err := s.kms.CreateAlias(t.Context(), &kms.CreateAliasInput{AliasName: aws.String(keyAlias), TargetKeyId: &s.key}); err != nil {
		t.Fatal(err)
	}
	s.topic, s.alarms = s.createSealedTopic(t, topicName), s.createSealedTopic(t, alarmsTopic)
	if _, err := s.sns.SetTopicAttributes(t.Context(), &sns.SetTopicAttributesInput{
		TopicArn: &s.alarms, AttributeName: aws.String("Policy"), AttributeValue: policy(alarmsMayPublish, s.key, s.alarms),
	}); err != nil {
		t.Fatal(err)
	}
	fromTopic := *policy(topicMaySend, s.key, s.topic)
	for _, name := range []string{fulfilmentDLQ, billingOwnDLQ} { // which no topic sends to
		s.createQueue(t, name, map[string]string{"KmsMasterKeyId": keyAlias})
	}
	for name, admitting := range map[string]string{fanoutDLQ: fromTopic, billingDLQ: fromTopic, alarmsQueue: *policy(topicMaySend, s.key, s.alarms)} {
		s.createQueue(t, name, map[string]string{"KmsMasterKeyId": keyAlias, "Policy": admitting})
	}
	s.createQueue(t, fulfilmentName, map[string]string{
		"KmsMasterKeyId": keyAlias, "Policy": fromTopic, "VisibilityTimeout": "10",
		"RedrivePolicy": `{"deadLetterTargetArn":"` + s.arn[fulfilmentDLQ] + `","maxReceiveCount":3}`,
	})
	s.subscribeFulfilment(t)
	if _, err := s.sns.Subscribe(t.Context(), &sns.SubscribeInput{
		TopicArn: &s.alarms, Protocol: aws.String("sqs"), Endpoint: aws.String(s.arn[alarmsQueue]),
	}); err != nil {
		t.Fatal(err)
	}

	if _, err := s.iam.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: aws.String("rental"), AssumeRolePolicyDocument: aws.String(lambdaMayAssume)}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.iam.PutRolePolicy(t.Context(), &iam.PutRolePolicyInput{
		RoleName: aws.String("rental"), PolicyName: aws.String("billing"), PolicyDocument: policy(billingMay, s.key, s.topic),
	}); err != nil {
		t.Fatal(err)
	}
	own := s.arn[billingOwnDLQ]
	billing := s.createFunction(t, billingFunction, map[string]string{"ANNOUNCED": "reserved", "QUEUED": "billed", "BROKEN": "X-"},
		&lambdatypes.DeadLetterConfig{TargetArn: &own})
	// The clock is a real one: retries of a minute and two are left out.
	if _, err := s.lambda.PutFunctionEventInvokeConfig(t.Context(), &lambda.PutFunctionEventInvokeConfigInput{
		FunctionName: aws.String(billingFunction), MaximumRetryAttempts: aws.Int32(0),
	}); err != nil {
		t.Fatal(err)
	}
	s.allow(t)
	s.toBilling = s.subscribe(t, "lambda", billing, map[string]string{
		"FilterPolicy":  filterPolicy,
		"RedrivePolicy": `{"deadLetterTargetArn":"` + s.arn[billingDLQ] + `"}`,
	})
	s.feed(t, fulfilmentName, billingFunction)
}

// user makes one with a policy and an access key.
func (s *production) user(t *testing.T, name, may string) aws.Config {
	t.Helper()
	if _, err := s.iam.CreateUser(t.Context(), &iam.CreateUserInput{UserName: &name}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.iam.PutUserPolicy(t.Context(), &iam.PutUserPolicyInput{
		UserName: &name, PolicyName: aws.String("rental"), PolicyDocument: policy(may, s.key, s.topic),
	}); err != nil {
		t.Fatal(err)
	}
	made, err := s.iam.CreateAccessKey(t.Context(), &iam.CreateAccessKeyInput{UserName: &name})
	if err != nil {
		t.Fatal(err)
	}
	return s.as(*made.AccessKey.AccessKeyId, *made.AccessKey.SecretAccessKey)
}

// hire has users do from here on what the root user does not have to.
func (s *production) hire(t *testing.T) {
	s.announcer, s.caretaker = s.user(t, "office", officeMay), s.user(t, "warehouse", warehouseMay)
	s.sns, s.sqs = sns.NewFromConfig(s.announcer), sqs.NewFromConfig(s.caretaker)
}

// closed: the users may not do each other's work, and others nothing.
func (s *production) closed(t *testing.T) {
	queue := s.url[fulfilmentDLQ]
	receive := func(config aws.Config) error {
		_, err := sqs.NewFromConfig(config).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &queue})
		return err
	}
	publish := func(config aws.Config) error {
		_, err := sns.NewFromConfig(config).Publish(t.Context(), &sns.PublishInput{TopicArn: &s.topic, Message: aws.String("x")})
		return err
	}
	for _, c := range []struct {
		what string
		err  error
		want string
	}{
		{"the office receives", receive(s.announcer), "AccessDenied"},
		{"the warehouse publishes", publish(s.caretaker), "AuthorizationError"},
		{"somebody receives", receive(s.withoutUser), "InvalidClientTokenId"},
		{"somebody publishes", publish(s.withoutUser), "InvalidClientTokenId"},
	} {
		if refused, ok := errors.AsType[smithy.APIError](c.err); !ok || refused.ErrorCode() != c.want {
			t.Errorf("%s: %v, want %s", c.what, c.err, c.want)
		}
	}
}

func (s *production) billed(t *testing.T) {
	s.publish(t, "R-1", "confirmed")
	s.publish(t, "R-2", "quoted") // which neither wants
	s.said(t, billingFunction, "reserved R-1", 1)
	s.said(t, billingFunction, "billed R-1", 1)
}

// awaitCount waits until a queue counts as many messages as wanted.
func (s *production) awaitCount(t *testing.T, queue string, count sqstypes.QueueAttributeName, want string) {
	t.Helper()
	eventually(t, string(count)+" of "+queue+" is "+want, func() (bool, error) {
		out, err := s.sqs.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
			QueueUrl: aws.String(s.url[queue]), AttributeNames: []sqstypes.QueueAttributeName{count},
		})
		return err == nil && out.Attributes[string(count)] == want, err
	})
}

// redrive moves what a dead-letter queue has to the queue of fulfilment.
func (s *production) redrive(t *testing.T, from string) {
	t.Helper()
	source, to := s.arn[from], s.arn[fulfilmentName]
	if _, err := s.sqs.StartMessageMoveTask(t.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: &source, DestinationArn: &to}); err != nil {
		t.Fatal(err)
	}
	eventually(t, from+" is redriven", func() (bool, error) {
		out, err := s.sqs.ListMessageMoveTasks(t.Context(), &sqs.ListMessageMoveTasksInput{SourceArn: &source})
		if err != nil || len(out.Results) == 0 {
			return false, err
		}
		task := out.Results[0]
		if reason := aws.ToString(task.FailureReason); reason != "" {
			t.Fatalf("%s is not redriven: %s", from, reason)
		}
		return aws.ToString(task.Status) == "COMPLETED" && task.ApproximateNumberOfMessagesMoved == 1, nil
	})
}

// broken: billing fails with the announcement, and with the queue's message three times.
// Mended, it bills what is redriven.
func (s *production) broken(t *testing.T) {
	s.publish(t, "X-1", "confirmed")
	own := s.url[billingOwnDLQ]
	out, err := s.sqs.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &own, WaitTimeSeconds: 20, MessageAttributeNames: []string{"All"}})
	if err != nil || len(out.Messages) != 1 || aws.ToString(out.Messages[0].MessageAttributes["ErrorMessage"].StringValue) != "order X-1 is broken" {
		t.Fatalf("%s has %+v: %v", billingOwnDLQ, out, err)
	}
	if _, err := s.sqs.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &own, ReceiptHandle: out.Messages[0].ReceiptHandle}); err != nil {
		t.Fatal(err)
	}
	s.awaitCount(t, fulfilmentDLQ, "ApproximateNumberOfMessages", "1")
	if _, err := s.lambda.UpdateFunctionConfiguration(t.Context(), &lambda.UpdateFunctionConfigurationInput{
		FunctionName: aws.String(billingFunction),
		Environment:  &lambdatypes.Environment{Variables: map[string]string{"ANNOUNCED": "reserved", "QUEUED": "billed"}},
	}); err != nil {
		t.Fatal(err)
	}
	s.redrive(t, fulfilmentDLQ)
	s.said(t, billingFunction, "billed X-1", 1)
}

// undelivered: the queue of fulfilment does not let the topic in any more, which no retry
// would change. The order waits in the dead-letter queue of the subscription.
func (s *production) undelivered(t *testing.T) {
	url := s.url[fulfilmentName]
	owner := sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: &s.endpoint, Credentials: s.lambda.Options().Credentials})
	admit := func(policy string) {
		t.Helper()
		if _, err := owner.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: map[string]string{"Policy": policy}}); err != nil {
			t.Fatal(err)
		}
	}
	admit("")
	s.publish(t, "R-3", "canceled")
	s.awaitCount(t, fanoutDLQ, "ApproximateNumberOfMessages", "1")
	admit(*policy(topicMaySend, s.key, s.topic))
	s.redrive(t, fanoutDLQ)
	s.said(t, billingFunction, "billed R-3", 1)
	s.said(t, billingFunction, "reserved R-3", 1)
}

// alarm: CloudWatch publishes to a topic under the key, as the key's policy lets it.
func (s *production) alarm(t *testing.T) {
	name := aws.String("Rental-Dead-Letters")
	if _, err := s.cloudwatch.PutMetricAlarm(t.Context(), &cloudwatch.PutMetricAlarmInput{
		AlarmName: name, Namespace: aws.String("AWS/SQS"), MetricName: aws.String("ApproximateNumberOfMessagesVisible"),
		Dimensions: []cloudwatchtypes.Dimension{{Name: aws.String("QueueName"), Value: aws.String(fulfilmentDLQ)}},
		Statistic:  cloudwatchtypes.StatisticMaximum, Period: aws.Int32(60), EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(0),
		ComparisonOperator: cloudwatchtypes.ComparisonOperatorGreaterThanThreshold, AlarmActions: []string{s.alarms},
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.cloudwatch.SetAlarmState(t.Context(), &cloudwatch.SetAlarmStateInput{
		AlarmName: name, StateValue: cloudwatchtypes.StateValueAlarm, StateReason: aws.String("to hear it"),
	}); err != nil {
		t.Fatal(err)
	}
	var said struct{ AlarmName, NewStateValue string }
	if m := s.take(t, alarmsQueue); json.Unmarshal([]byte(m.Envelope.Message), &said) != nil || said.AlarmName != *name || said.NewStateValue != "ALARM" {
		t.Errorf("%s has %s", alarmsQueue, m.Envelope.Message)
	}
}
