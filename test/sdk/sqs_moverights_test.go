package sdk_test

import (
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/internal/config"
)

// userOf makes a user who may what the policy says, or changes what it may, and gives its
// first key.
func userOf(t *testing.T, c *iam.Client, name, policy string) aws.CredentialsProvider {
	t.Helper()
	must(c.CreateUser(t.Context(), &iam.CreateUserInput{UserName: &name}))(t)
	setUser(t, c, name, policy)
	key := must(c.CreateAccessKey(t.Context(), &iam.CreateAccessKeyInput{UserName: &name}))(t).AccessKey
	return credentials.NewStaticCredentialsProvider(*key.AccessKeyId, *key.SecretAccessKey, "")
}

func setUser(t *testing.T, c *iam.Client, name, policy string) {
	t.Helper()
	must(c.PutUserPolicy(t.Context(), &iam.PutUserPolicyInput{UserName: &name, PolicyName: aws.String("may"), PolicyDocument: &policy}))(t)
}

// movers may start and follow tasks, and send to a queue.
func movers(queue string) string {
	return policyOf(`{"Effect":"Allow","Action":["sqs:StartMessageMoveTask","sqs:ListMessageMoveTasks","sqs:ReceiveMessage","sqs:DeleteMessage","sqs:GetQueueAttributes"],"Resource":"*"},` +
		`{"Effect":"Allow","Action":"sqs:SendMessage","Resource":"` + queueARN(queue) + `"}`)
}

// A move task takes and sends as whoever asked for it: it ends where that one may not, or may
// not any more, and continues behind a restart as the same.
func TestMoveTaskNeedsTheRight(t *testing.T) {
	endpoint := start(t)
	root, identities := client(endpoint), iamClientOf(endpoint, "test", secretOf("test"), "")
	dead, sources := deadLetters(t, endpoint, root, 4, "s1")
	mover := userOf(t, identities, "mover", movers("elsewhere"))
	c := sqs.New(sqs.Options{BaseEndpoint: &endpoint, Region: region, Credentials: mover, RetryMaxAttempts: 1, HTTPClient: eager})
	createQueue(t, root, "target")
	_, err := c.StartMessageMoveTask(t.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(queueARN("dead")), DestinationArn: aws.String(queueARN("target"))})
	refusedWith(t, err, "AccessDenied", "*")

	failed := func(what string, moved int64, left string) {
		t.Helper()
		task := moveTasks(t, c, 1)[0]
		equal(t, what, "FAILED AccessDenied", aws.ToString(task.Status)+" "+aws.ToString(task.FailureReason))
		equal(t, what+": moved", moved, task.ApproximateNumberOfMessagesMoved)
		equal(t, what+": left", left, counts(t, root, dead)[0])
	}
	startMove(t, c, &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(queueARN("dead"))})
	advance(t, endpoint, "10ms")
	failed("the queues that they came from", 0, "4")

	setUser(t, identities, "mover", movers("s1"))
	startMove(t, c, &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(queueARN("dead")), MaxNumberOfMessagesPerSecond: aws.Int32(1)})
	advance(t, endpoint, "2s")
	equal(t, "moved", "2", counts(t, root, sources["s1"])[0])
	setUser(t, identities, "mover", movers("elsewhere"))
	advance(t, endpoint, "2s")
	failed("while it runs", 2, "2")

	setUser(t, identities, "mover", movers("s1"))
	startMove(t, c, &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(queueARN("dead"))})
	advance(t, endpoint, "10ms")
	equal(t, "with the right", "4", counts(t, root, sources["s1"])[0])
}

// A task that a restart finds continues with the rights of whoever asked for it.
func TestMoveTaskKeepsItsRights(t *testing.T) {
	besideOthers(t)
	endpoint, restart := startDiskWith(t, func(c *config.Config) { enforce(c) })
	asRoot := func() *sqs.Client {
		return sqs.New(sqs.Options{BaseEndpoint: &endpoint, Region: region, Credentials: credentials.NewStaticCredentialsProvider(rootKey, rootSecret, ""), RetryMaxAttempts: 1, HTTPClient: eager})
	}
	identities := func() *iam.Client { return iamClientOf(endpoint, rootKey, rootSecret, "") }
	dead := createQueue(t, asRoot(), "dead")
	createQueue(t, asRoot(), "s1", "RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("dead")+`","maxReceiveCount":1}`)
	createQueue(t, asRoot(), "target")
	for range 3 {
		send(t, asRoot(), dead, "x")
	}
	keys := userOf(t, identities(), "mover", movers("target"))
	c := sqs.New(sqs.Options{BaseEndpoint: &endpoint, Region: region, Credentials: keys, RetryMaxAttempts: 1, HTTPClient: eager})
	startMove(t, c, &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(queueARN("dead")), DestinationArn: aws.String(queueARN("target")), MaxNumberOfMessagesPerSecond: aws.Int32(1)})
	endpoint = restart()
	setUser(t, identities(), "mover", movers("elsewhere"))
	advanceAsRoot(t, endpoint, "2s")
	task := moveTasks(t, asRoot(), 1)[0]
	equal(t, "after the restart", "FAILED AccessDenied", aws.ToString(task.Status)+" "+aws.ToString(task.FailureReason))
}

// SNS is given the role that it logs deliveries with by those alone who may pass it.
func TestFeedbackRoleIsPassed(t *testing.T) {
	endpoint := start(t)
	identities := iamClientOf(endpoint, "test", secretOf("test"), "")
	topic := createTopic(t, topicsClient(endpoint), "told")
	setter := userOf(t, identities, "setter", allow("*", "sns:*"))
	c := sns.New(sns.Options{BaseEndpoint: &endpoint, Region: region, Credentials: setter, RetryMaxAttempts: 1, HTTPClient: eager})
	const feedback = "arn:aws:iam::" + account + ":role/feedback"
	set := func(attribute string) error {
		_, err := c.SetTopicAttributes(t.Context(), &sns.SetTopicAttributesInput{TopicArn: &topic, AttributeName: &attribute, AttributeValue: aws.String(feedback)})
		return err
	}
	create := func(name string) error {
		_, err := c.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: &name, Attributes: map[string]string{"LambdaFailureFeedbackRoleArn": feedback}})
		return err
	}
	const denied = "User: arn:aws:iam::000000000000:user/setter is not authorized to perform: iam:PassRole on resource: " + feedback +
		" because no identity-based policy allows the iam:PassRole action"
	refused(t, set("SQSSuccessFeedbackRoleArn"), "AuthorizationError", http.StatusForbidden, denied)
	refused(t, create("other"), "AuthorizationError", http.StatusForbidden, denied)
	passTo := func(service string) string {
		return policyOf(`{"Effect":"Allow","Action":"sns:*","Resource":"*"},{"Effect":"Allow","Action":"iam:PassRole","Resource":"` + feedback +
			`","Condition":{"StringEquals":{"iam:PassedToService":"` + service + `"}}}`)
	}
	setUser(t, identities, "setter", passTo("lambda.amazonaws.com"))
	refused(t, set("SQSSuccessFeedbackRoleArn"), "AuthorizationError", http.StatusForbidden, denied)
	setUser(t, identities, "setter", passTo("sns.amazonaws.com"))
	if err := set("SQSSuccessFeedbackRoleArn"); err != nil {
		t.Error(err)
	}
	if err := create("other"); err != nil {
		t.Error(err)
	}
}
