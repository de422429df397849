package sdk_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// protection is a data protection policy of statements about one identifier each.
func protection(statements ...string) string {
	return `{"Name":"p","Description":"d","Version":"2021-06-01","Statement":[` + strings.Join(statements, ",") + `]}`
}

func protecting(sid, direction, identifier, operation string) string {
	return fmt.Sprintf(`{"Sid":%q,"DataDirection":%q,"Principal":["*"],"DataIdentifier":["arn:aws:dataprotection::aws:data-identifier/%s"],"Operation":%s}`,
		sid, direction, identifier, operation)
}

func putProtection(t *testing.T, c *sns.Client, topic, policy string) {
	t.Helper()
	must(c.PutDataProtectionPolicy(t.Context(), &sns.PutDataProtectionPolicyInput{ResourceArn: &topic, DataProtectionPolicy: &policy}))(t)
}

// The policy is kept as it was written, is no attribute of the topic, and goes with the
// empty one, as Terraform's provider takes it away.
func TestDataProtectionPolicy(t *testing.T) {
	c := topicsClient(start(t))
	get := func(topic string) string {
		t.Helper()
		out := must(c.GetDataProtectionPolicy(t.Context(), &sns.GetDataProtectionPolicyInput{ResourceArn: &topic}))(t)
		return aws.ToString(out.DataProtectionPolicy)
	}
	policy := protection(protecting("a", "Inbound", "EmailAddress", `{"Deny":{}}`))
	topic := createTopic(t, c, "orders")
	before := topicAttributes(t, c, topic)
	equal(t, "the policy of a new topic", "", get(topic))
	putProtection(t, c, topic, policy)
	equal(t, "the policy", policy, get(topic))
	equal(t, "the attributes", before, topicAttributes(t, c, topic))

	_, err := c.PutDataProtectionPolicy(t.Context(), &sns.PutDataProtectionPolicyInput{ResourceArn: &topic, DataProtectionPolicy: aws.String("{}")})
	refused(t, err, "InvalidParameter", http.StatusBadRequest, "Invalid parameter: DataProtectionPolicy Reason: Version must be 2021-06-01")
	named := protection(protecting("a", "Inbound", "Name", `{"Deny":{}}`))
	_, err = c.PutDataProtectionPolicy(t.Context(), &sns.PutDataProtectionPolicyInput{ResourceArn: &topic, DataProtectionPolicy: &named})
	refused(t, err, "InvalidParameter", http.StatusBadRequest,
		"Invalid parameter: DataProtectionPolicy Reason: statement 1: the data identifier Name needs a model of language, which this server does not have")
	equal(t, "the policy after refusals", policy, get(topic))
	putProtection(t, c, topic, "")
	equal(t, "the policy after the empty one", "", get(topic))

	made := must(c.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String("made"), DataProtectionPolicy: &policy}))(t)
	equal(t, "the policy of CreateTopic", policy, get(*made.TopicArn))
	must(c.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String("made"), DataProtectionPolicy: &policy}))(t)

	_, err = c.GetDataProtectionPolicy(t.Context(), &sns.GetDataProtectionPolicyInput{ResourceArn: aws.String("orders")})
	refused(t, err, "InvalidParameter", http.StatusBadRequest, "Invalid parameter: ResourceArn Reason: An ARN must have at least 6 elements, not 1")
	missing := topicARN("missing")
	_, err = c.GetDataProtectionPolicy(t.Context(), &sns.GetDataProtectionPolicyInput{ResourceArn: &missing})
	refused(t, err, "NotFound", http.StatusNotFound, "Topic does not exist")
	_, err = c.PutDataProtectionPolicy(t.Context(), &sns.PutDataProtectionPolicyInput{ResourceArn: &missing, DataProtectionPolicy: &policy})
	refused(t, err, "NotFound", http.StatusNotFound, "Topic does not exist")
}

func TestDataProtectionInbound(t *testing.T) {
	endpoint := start(t)
	c, queues := topicsClient(endpoint), client(endpoint)
	topic := createTopic(t, c, "orders")
	url := createQueue(t, queues, "orders")
	subscribe(t, c, topic, "sqs", queueARN("orders"), "RawMessageDelivery", "true")
	putProtection(t, c, topic, protection(
		protecting("deny", "Inbound", "Ssn-US", `{"Deny":{}}`),
		protecting("mask", "Inbound", "EmailAddress", `{"Deidentify":{"MaskConfig":{"MaskWithCharacter":"#"}}}`),
		protecting("redact", "Inbound", "CreditCardNumber", `{"Deidentify":{"RedactConfig":{}}}`),
		protecting("audit", "Inbound", "EmailAddress", `{"Audit":{"SampleRate":"99","FindingsDestination":{"CloudWatchLogs":{"LogGroup":"/aws/vendedlogs/found"}}}}`),
	))
	denied := "The data protection policy of the topic denies the message, which has data of the identifier Ssn-US"
	_, err := c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("ssn 123-45-6789")})
	refused(t, err, "AuthorizationError", http.StatusForbidden, denied)

	out := must(c.PublishBatch(t.Context(), &sns.PublishBatchInput{TopicArn: &topic, PublishBatchRequestEntries: []snstypes.PublishBatchRequestEntry{
		{Id: aws.String("a"), Message: aws.String("to a@example.com, visa 4111 1111 1111 1111.")},
		{Id: aws.String("b"), Message: aws.String("ssn 123-45-6789")},
	}}))(t)
	equal(t, "those published", 1, len(out.Successful))
	equal(t, "those denied", 1, len(out.Failed))
	equal(t, "the refusal", [3]any{"b", "AuthorizationError", denied},
		[3]any{aws.ToString(out.Failed[0].Id), aws.ToString(out.Failed[0].Code), aws.ToString(out.Failed[0].Message)})
	equal(t, "the message", "to #############, visa .", *takeMessage(t, queues, url).Body)

	must(c.Publish(t.Context(), &sns.PublishInput{
		TopicArn: &topic, MessageStructure: aws.String("json"), Message: aws.String(`{"default":"x","sqs":"b@example.com"}`),
	}))(t)
	equal(t, "the protocol's own message", "#############", *takeMessage(t, queues, url).Body)

	// One publish in a hundred is not audited: what is published often is.
	for range 5 {
		must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("é c@example.com")}))(t)
	}
	advance(t, endpoint, "1m")
	entries := statusEntries(t, endpoint, "/aws/vendedlogs/found")
	if len(entries) == 0 {
		t.Fatal("nothing was audited")
	}
	entry := entries[len(entries)-1]
	equal(t, "what was found", any([]any{map[string]any{
		"name": "EmailAddress", "count": 1.0, "detections": []any{map[string]any{"start": 3.0, "end": 16.0}},
	}}), entry["dataIdentifiers"])
	equal(t, "the topic", any(topic), entry["resourceArn"])
	for _, member := range []string{"messageId", "auditTimestamp", "callerPrincipal"} {
		if entry[member] == "" || entry[member] == nil {
			t.Errorf("an entry without %s: %v", member, entry)
		}
	}
}

// A message that the policy's own patterns cannot be looked for in to the end is refused,
// with nothing of it anywhere; others are published past the same policy.
func TestDataProtectionFailsClosed(t *testing.T) {
	endpoint := start(t)
	c, queues := topicsClient(endpoint), client(endpoint)
	topic := createTopic(t, c, "orders")
	url := createQueue(t, queues, "orders")
	subscribe(t, c, topic, "sqs", queueARN("orders"), "RawMessageDelivery", "true")
	policy := func(regex string) string {
		return strings.Replace(protection(strings.Replace(protecting("mask", "Inbound", "EmailAddress", `{"Deidentify":{"RedactConfig":{}}}`),
			"arn:aws:dataprotection::aws:data-identifier/EmailAddress", "own", 1)), `"Name":"p"`, `"Name":"p","Configuration":{"CustomDataIdentifier":[{"Name":"own","Regex":"`+regex+`"}]}`, 1)
	}
	large := policy("x{999}y{999}z{999}")
	_, err := c.PutDataProtectionPolicy(t.Context(), &sns.PutDataProtectionPolicyInput{ResourceArn: &topic, DataProtectionPolicy: &large})
	refused(t, err, "InvalidParameter", http.StatusBadRequest, "Invalid parameter: DataProtectionPolicy Reason: the regular expressions of all custom data identifiers "+
		"together are compiled to more than 2500 instructions: repetitions that are counted, such as {1000}, have that many each")
	putProtection(t, c, topic, policy("x(.*y)?"))
	hostile := strings.Repeat("x", 200_000)
	_, err = c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: &hostile})
	refused(t, err, "AuthorizationError", http.StatusForbidden,
		"The data protection policy of the topic cannot be applied to the message: looking for data of the custom identifier own takes too long")
	own := must(json.Marshal(map[string]string{"default": "d", "sqs": hostile}))(t)
	_, err = c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, MessageStructure: aws.String("json"), Message: aws.String(string(own))})
	gone(t, err, "AuthorizationError")
	out := must(c.PublishBatch(t.Context(), &sns.PublishBatchInput{TopicArn: &topic, PublishBatchRequestEntries: []snstypes.PublishBatchRequestEntry{
		{Id: aws.String("a"), Message: &hostile}, {Id: aws.String("b"), Message: aws.String("a xyx b")},
	}}))(t)
	equal(t, "those published and refused", [2]int{1, 1}, [2]int{len(out.Successful), len(out.Failed)})
	equal(t, "the message", "a  b", *takeMessage(t, queues, url).Body)
}

// What must not leave the topic is a failed delivery, with a dead letter, of the queue as of
// any endpoint; others get the same message where the policy lets them.
func TestDataProtectionOutbound(t *testing.T) {
	endpoint := start(t)
	c, queues := topicsClient(endpoint), client(endpoint)
	topic := createTopic(t, c, "orders")
	url, dead := createQueue(t, queues, "orders"), createQueue(t, queues, "dead")
	subscribe(t, c, topic, "sqs", queueARN("orders"), "RawMessageDelivery", "true", "RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("dead")+`"}`)
	must(c.SetTopicAttributes(t.Context(), &sns.SetTopicAttributesInput{
		TopicArn: &topic, AttributeName: aws.String("SQSFailureFeedbackRoleArn"), AttributeValue: aws.String(feedbackRole(t, endpoint)),
	}))(t)
	putProtection(t, c, topic, protection(protecting("deny", "Outbound", "EmailAddress", `{"Deny":{}}`)))
	for _, body := range []string{"to a@example.com", "to nobody"} {
		must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: &body}))(t)
	}
	equal(t, "what is let through", "to nobody", *takeMessage(t, queues, url).Body)
	equal(t, "the dead letter", "to a@example.com", *takeMessage(t, queues, dead).Body)
	left := must(queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url}))(t)
	equal(t, "other messages", 0, len(left.Messages))

	advance(t, endpoint, "1m")
	entries := statusEntries(t, endpoint, "sns/us-east-1/000000000000/orders/Failure")
	equal(t, "failed deliveries in the log", 1, len(entries))
	equal(t, "the status code", any(403.0), entries[0]["delivery"].(map[string]any)["statusCode"])

	putProtection(t, c, topic, strings.Replace(protection(protecting("deny", "Outbound", "EmailAddress", `{"Deny":{}}`)),
		`"Principal":["*"]`, `"Principal":["arn:aws:iam::111122223333:root"]`, 1))
	must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("to b@example.com")}))(t)
	equal(t, "what is denied to others", "to b@example.com", *takeMessage(t, queues, url).Body)
}
