package sdk_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/internal/config"
)

// TestEncryptedTopic: who publishes to a topic under a customer's key needs the right to
// that, which is asked for again after five minutes. What the topic has accepted is
// delivered whatever becomes of the key, until that is deleted.
func TestEncryptedTopic(t *testing.T) {
	endpoint := startWith(t, func(c *config.Config) { c.Metrics = false }) // weeks go by
	c, queues, k := topicsClient(endpoint), client(endpoint), newKMS(t, endpoint, account)
	key := makeKey(t, k, &kms.CreateKeyInput{})
	topic := createTopic(t, c, "orders")
	must(c.SetTopicAttributes(t.Context(), &sns.SetTopicAttributesInput{TopicArn: &topic, AttributeName: aws.String("KmsMasterKeyId"), AttributeValue: key.KeyId}))(t)
	q := createQueue(t, queues, "q")
	subscribe(t, c, topic, "sqs", queueARN("q"))
	h := newHook(t)
	sub, _ := confirmedHook(t, c, topic, h)
	publish := func(by *sns.Client, text string) error {
		_, err := by.Publish(t.Context(), &sns.PublishInput{
			TopicArn: &topic, Message: &text, Subject: aws.String("subject of " + text),
			MessageAttributes: map[string]types.MessageAttributeValue{"a": {DataType: aws.String("String"), StringValue: aws.String("v")}},
		})
		return err
	}
	batch := func(by *sns.Client) error {
		_, err := by.PublishBatch(t.Context(), &sns.PublishBatchInput{
			TopicArn: &topic, PublishBatchRequestEntries: []types.PublishBatchRequestEntry{{Id: aws.String("a"), Message: aws.String("of a batch")}},
		})
		return err
	}
	delivered := func(text string) {
		t.Helper()
		for where, body := range map[string]string{"queue": *takeMessage(t, queues, q).Body, "hook": h.next(t).Body} {
			got := decode(t, body)
			if got["Message"] != text || got["Subject"] != "subject of "+text || got["MessageAttributes"] == nil {
				t.Errorf("the %s got %s", where, body)
			}
		}
	}
	if err := publish(c, "one"); err != nil {
		t.Fatal(err)
	}
	delivered("one")

	users := iamClientOf(endpoint, account, secretOf(account), "")
	must(users.CreateUser(t.Context(), &iam.CreateUserInput{UserName: aws.String("ann")}))(t)
	access := must(users.CreateAccessKey(t.Context(), &iam.CreateAccessKeyInput{UserName: aws.String("ann")}))(t).AccessKey
	ann := sns.New(sns.Options{BaseEndpoint: &endpoint, Region: region, Credentials: iamClientOf(endpoint, *access.AccessKeyId, *access.SecretAccessKey, "").Options().Credentials, RetryMaxAttempts: 1, HTTPClient: eager})
	allow := func(actions string) {
		t.Helper()
		must(users.PutUserPolicy(t.Context(), &iam.PutUserPolicyInput{
			UserName: aws.String("ann"), PolicyName: aws.String("p"),
			PolicyDocument: aws.String(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":` + actions + `,"Resource":"*"}]}`),
		}))(t)
	}
	for _, actions := range []string{`"sns:*"`, `["sns:*","kms:GenerateDataKey"]`, `["sns:*","kms:Decrypt"]`} {
		allow(actions)
		refusedWith(t, publish(ann, "not allowed"), "KMSAccessDenied", "*")
		refusedWith(t, batch(ann), "KMSAccessDenied", "*")
	}
	allow(`["sns:*","kms:GenerateDataKey","kms:Decrypt"]`)
	if err := publish(ann, "two"); err != nil {
		t.Fatal(err)
	}
	delivered("two")

	admin(t, endpoint+"/_godwit/subscriptions/pause", `{"subscription":"`+sub+`"}`)
	ask(t, k.DisableKey, &kms.DisableKeyInput{KeyId: key.KeyId})
	if err := publish(c, "three"); err != nil {
		t.Errorf("while its data key is reused: %v", err)
	}
	takeMessage(t, queues, q)
	advance(t, endpoint, "6m")
	refusedWith(t, publish(c, "four"), "KMSDisabled", *key.Arn+" is disabled.")
	refusedWith(t, batch(c), "KMSDisabled", *key.Arn+" is disabled.")
	admin(t, endpoint+"/_godwit/subscriptions/resume", `{"subscription":"`+sub+`"}`)
	advance(t, endpoint, "0s")
	if body := h.next(t).Body; decode(t, body)["Message"] != "three" {
		t.Errorf("what was accepted before became %s", body)
	}

	// What waits when the key goes is dropped, and nothing else stands still for it.
	ask(t, k.EnableKey, &kms.EnableKeyInput{KeyId: key.KeyId})
	admin(t, endpoint+"/_godwit/subscriptions/pause", `{"subscription":"`+sub+`"}`)
	if err := publish(c, "five"); err != nil {
		t.Fatal(err)
	}
	takeMessage(t, queues, q)
	ask(t, k.ScheduleKeyDeletion, &kms.ScheduleKeyDeletionInput{KeyId: key.KeyId, PendingWindowInDays: aws.Int32(7)})
	advance(t, endpoint, "6m")
	refusedWith(t, publish(c, "six"), "KMSInvalidState", *key.Arn+" is pending deletion.")
	refusedWith(t, batch(c), "KMSInvalidState", *key.Arn+" is pending deletion.")
	advance(t, endpoint, "8d")
	refusedWith(t, publish(c, "six"), "KMSNotFound", "*")
	must(c.SetTopicAttributes(t.Context(), &sns.SetTopicAttributesInput{TopicArn: &topic, AttributeName: aws.String("KmsMasterKeyId"), AttributeValue: aws.String("")}))(t)
	if err := publish(c, "seven"); err != nil {
		t.Fatal(err)
	}
	admin(t, endpoint+"/_godwit/subscriptions/resume", `{"subscription":"`+sub+`"}`)
	advance(t, endpoint, "0s")
	delivered("seven")
	dropped := 0
	for _, d := range admin(t, endpoint+"/_godwit/deliveries?subscription="+sub, "")["deliveries"].([]any) {
		if d.(map[string]any)["state"] == "dropped" {
			dropped++
		}
	}
	equal(t, "dropped deliveries", 1, dropped)
}

// TestEncryptedDeadLetter: a dead letter of a subscription under the key that AWS manages
// is refused, and told; under a customer's key whose policy lets SNS in it comes.
func TestEncryptedDeadLetter(t *testing.T) {
	endpoint := start(t)
	c, queues, k := topicsClient(endpoint), client(endpoint), newKMS(t, endpoint, account)
	policy := `{"Version":"2012-10-17","Statement":[
		{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::` + account + `:root"},"Action":"kms:*","Resource":"*"},
		{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},"Action":["kms:GenerateDataKey*","kms:Decrypt"],"Resource":"*"}]}`
	key := makeKey(t, k, &kms.CreateKeyInput{Policy: &policy})
	topic := createTopic(t, c, "orders")
	role := feedbackRole(t, endpoint)
	for _, name := range []string{"HTTPFailureFeedbackRoleArn", "SQSFailureFeedbackRoleArn"} {
		must(c.SetTopicAttributes(t.Context(), &sns.SetTopicAttributesInput{
			TopicArn: &topic, AttributeName: &name, AttributeValue: &role,
		}))(t)
	}
	own := createQueue(t, queues, "own", "KmsMasterKeyId", *key.KeyId)
	managed := createQueue(t, queues, "managed", "KmsMasterKeyId", "alias/aws/sqs")
	for _, name := range []string{"own", "managed"} {
		subscribe(t, c, topic, "sqs", queueARN("gone-"+name), "RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN(name)+`"}`)
	}
	must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("an order")}))(t)
	advance(t, endpoint, "1m")
	if body := *takeMessage(t, queues, own).Body; decode(t, body)["Message"] != "an order" {
		t.Errorf("under the customer's key: %s", body)
	}
	got := must(queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &managed}))(t)
	equal(t, "dead letters under AWS's key", 0, len(got.Messages))
	found := false
	for _, e := range statusEntries(t, endpoint, "sns/"+region+"/"+account+"/orders/Failure") {
		response, _ := e["delivery"].(map[string]any)["providerResponse"].(string)
		found = found || strings.Contains(response, `"ErrorCode":"KMS.AccessDeniedException"`) && strings.Contains(response, `"sqsRequestId":"Unrecoverable"`)
	}
	if !found {
		t.Errorf("the delivery's log does not tell: %v", statusEntries(t, endpoint, "sns/"+region+"/"+account+"/orders/Failure"))
	}
}
