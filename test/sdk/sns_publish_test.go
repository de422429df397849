package sdk_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

var timestamp = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)

// textAttribute is a message attribute of type String, or of the one given.
func textAttribute(value string, dataType ...string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: aws.String(append(dataType, "String")[0]), StringValue: &value}
}

func TestPublishReachesQueues(t *testing.T) {
	endpoint := start(t)
	topics, queues := topicsClient(endpoint), client(endpoint)
	topic := createTopic(t, topics, "orders")
	envelopes, raws := createQueue(t, queues, "envelopes"), createQueue(t, queues, "raws")
	inEnvelope := subscribe(t, topics, topic, "sqs", queueARN("envelopes"))
	subscribe(t, topics, topic, "sqs", queueARN("raws"), "RawMessageDelivery", "true")

	out := must(topics.Publish(t.Context(), &sns.PublishInput{
		TopicArn: &topic, Message: aws.String("Grüße <&>\n\""), Subject: aws.String("An order"),
		MessageAttributes: map[string]types.MessageAttributeValue{
			"status": textAttribute("open"),
			"lines":  textAttribute("2", "Number.int"),
			"tags":   textAttribute(`["a","b"]`, "String.Array"),
			"label":  {DataType: aws.String("Binary"), BinaryValue: []byte{0, 0xff}},
		},
	}))(t)
	if !anID.MatchString(*out.MessageId) || out.SequenceNumber != nil {
		t.Errorf("Publish answered %v, %v", *out.MessageId, out.SequenceNumber)
	}

	got := decode(t, *takeMessage(t, queues, envelopes).Body)
	if at, _ := got["Timestamp"].(string); !timestamp.MatchString(at) {
		t.Errorf("Timestamp is %v", got["Timestamp"])
	}
	if link, _ := got["UnsubscribeURL"].(string); !strings.HasPrefix(link, endpoint+"/?Action=Unsubscribe&SubscriptionArn="+inEnvelope) {
		t.Errorf("UnsubscribeURL is %v", got["UnsubscribeURL"])
	}
	want := map[string]any{
		"Type": "Notification", "MessageId": *out.MessageId, "TopicArn": topic,
		"Subject": "An order", "Message": "Grüße <&>\n\"",
		"MessageAttributes": map[string]any{
			"status": map[string]any{"Type": "String", "Value": "open"},
			"lines":  map[string]any{"Type": "Number.int", "Value": "2"},
			"tags":   map[string]any{"Type": "String.Array", "Value": `["a","b"]`},
			"label":  map[string]any{"Type": "Binary", "Value": "AP8="},
		},
	}
	for _, volatile := range []string{"Timestamp", "UnsubscribeURL", "SignatureVersion", "Signature", "SigningCertURL"} {
		delete(got, volatile)
	}
	equal(t, "envelope", want, got)

	raw := takeMessage(t, queues, raws)
	equal(t, "raw body", "Grüße <&>\n\"", *raw.Body)
	equal(t, "raw attributes", map[string]sqstypes.MessageAttributeValue{
		"status": {DataType: aws.String("String"), StringValue: aws.String("open")},
		"lines":  {DataType: aws.String("Number.int"), StringValue: aws.String("2")},
		"tags":   {DataType: aws.String("String.Array"), StringValue: aws.String(`["a","b"]`)},
		"label":  {DataType: aws.String("Binary"), BinaryValue: []byte{0, 0xff}},
	}, raw.MessageAttributes)

	// What is not given is not there.
	must(topics.Publish(t.Context(), &sns.PublishInput{TargetArn: &topic, Message: aws.String("bare")}))(t)
	bare := decode(t, *takeMessage(t, queues, envelopes).Body)
	equal(t, "Message", any("bare"), bare["Message"])
	for _, absent := range []string{"Subject", "MessageAttributes", "SequenceNumber"} {
		if v, there := bare[absent]; there {
			t.Errorf("%s is %v", absent, v)
		}
	}
}

func TestPublishByProtocol(t *testing.T) {
	endpoint := start(t)
	topics, queues := topicsClient(endpoint), client(endpoint)
	topic, queue := createTopic(t, topics, "orders"), createQueue(t, queues, "q")
	subscribe(t, topics, topic, "sqs", queueARN("q"), "RawMessageDelivery", "true")
	for document, want := range map[string]string{
		`{"default":"for all","sqs":"for queues","http":"for hooks"}`: "for queues",
		`{"default":"for all","http":"for hooks"}`:                    "for all",
	} {
		must(topics.Publish(t.Context(), &sns.PublishInput{
			TopicArn: &topic, Message: &document, MessageStructure: aws.String("json"),
		}))(t)
		equal(t, document, want, *takeMessage(t, queues, queue).Body)
	}
}

func TestFilterPolicies(t *testing.T) {
	endpoint := start(t)
	topics, queues := topicsClient(endpoint), client(endpoint)
	topic, queue := createTopic(t, topics, "orders"), createQueue(t, queues, "q")
	arn := subscribe(t, topics, topic, "sqs", queueARN("q"), "RawMessageDelivery", "true", "FilterPolicy", `{"status":["open","late"]}`)
	publish := func(message string, attributes map[string]types.MessageAttributeValue) {
		t.Helper()
		must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: &message, MessageAttributes: attributes}))(t)
	}
	status := func(value types.MessageAttributeValue) map[string]types.MessageAttributeValue {
		return map[string]types.MessageAttributeValue{"status": value}
	}
	// A message is taken after each that has to come: what should have been
	// filtered out before it would be found in its place.
	publish("no attributes", nil)
	publish("closed", status(textAttribute("closed")))
	publish("open", status(textAttribute("open")))
	equal(t, "first", "open", *takeMessage(t, queues, queue).Body)
	publish("other name", map[string]types.MessageAttributeValue{"state": textAttribute("open")})
	publish("array", status(textAttribute(`["new","late"]`, "String.Array")))
	equal(t, "second", "array", *takeMessage(t, queues, queue).Body)

	// A changed policy holds from the next publish.
	for name, value := range map[string]string{"FilterPolicyScope": "MessageBody", "FilterPolicy": `{"status":["open"]}`} {
		must(topics.SetSubscriptionAttributes(t.Context(), &sns.SetSubscriptionAttributesInput{
			SubscriptionArn: &arn, AttributeName: &name, AttributeValue: &value,
		}))(t)
	}
	publish(`{"status":"closed"}`, status(textAttribute("open")))
	publish(`{"status":"open"}`, nil)
	equal(t, "third", `{"status":"open"}`, *takeMessage(t, queues, queue).Body)
	equal(t, "left", "0", attributesOf(t, queues, queue)["ApproximateNumberOfMessages"])
}

func TestPublishRefuses(t *testing.T) {
	endpoint := start(t)
	topics, queues := topicsClient(endpoint), client(endpoint)
	topic, queue := createTopic(t, topics, "orders"), createQueue(t, queues, "q")
	subscribe(t, topics, topic, "sqs", queueARN("q"), "RawMessageDelivery", "true")
	hello := aws.String("hello")
	for _, tc := range []struct {
		name   string
		in     sns.PublishInput
		code   string
		status int
		text   string
	}{
		{"unknown topic", sns.PublishInput{TopicArn: aws.String(topicARN("none")), Message: hello}, "NotFound", 404, "Topic does not exist"},
		{"no target", sns.PublishInput{Message: hello}, "InvalidParameter", 400, "Invalid parameter: TopicArn or TargetArn Reason: no value for required parameter"},
		{"two targets", sns.PublishInput{TopicArn: &topic, TargetArn: &topic, Message: hello}, "InvalidParameter", 400, "Invalid parameter: TopicArn, TargetArn and PhoneNumber Reason: exactly one of them must be given"},
		{"no ARN", sns.PublishInput{TopicArn: aws.String("orders"), Message: hello}, "InvalidParameter", 400, "Invalid parameter: TopicArn Reason: An ARN must have at least 6 elements, not 1"},
		{"other region", sns.PublishInput{TopicArn: aws.String("arn:aws:sns:eu-west-1:" + account + ":orders"), Message: hello}, "InvalidParameter", 400, "Invalid parameter: TopicArn"},
		{"other account", sns.PublishInput{TopicArn: aws.String("arn:aws:sns:us-east-1:111122223333:orders"), Message: hello}, "AuthorizationError", 403, "User: arn:aws:iam::000000000000:root is not authorized to perform: SNS:Publish on resource: arn:aws:sns:us-east-1:111122223333:orders because no resource-based policy allows the SNS:Publish action"},
		{"empty message", sns.PublishInput{TopicArn: &topic, Message: aws.String("")}, "InvalidParameter", 400, "Invalid parameter: Empty message"},
		{"message too long", sns.PublishInput{TopicArn: &topic, Message: aws.String(strings.Repeat("x", 262_145))}, "InvalidParameter", 400, "Invalid parameter: Message too long"},
		{"with attributes too long", sns.PublishInput{
			TopicArn: &topic, Message: aws.String(strings.Repeat("x", 262_144-10)),
			MessageAttributes: map[string]types.MessageAttributeValue{"name": textAttribute("x")}, // 11 bytes
		}, "InvalidParameter", 400, "Invalid parameter: Message too long"},
		{"subject", sns.PublishInput{TopicArn: &topic, Message: hello, Subject: aws.String(strings.Repeat("s", 101))}, "InvalidParameter", 400, "Invalid parameter: Subject"},
		{"no default", sns.PublishInput{TopicArn: &topic, Message: aws.String(`{"sqs":"x"}`), MessageStructure: aws.String("json")}, "InvalidParameter", 400, "Invalid parameter: Message Structure - No default entry in JSON message body"},
		{"dedup", sns.PublishInput{TopicArn: &topic, Message: hello, MessageDeduplicationId: aws.String("1")}, "InvalidParameter", 400, "Invalid parameter: MessageDeduplicationId Reason: The request includes MessageDeduplicationId parameter that is not valid for this topic type"},
		{"attribute type", sns.PublishInput{TopicArn: &topic, Message: hello, MessageAttributes: map[string]types.MessageAttributeValue{"a": textAttribute("x", "Text")}}, "ParameterValueInvalid", 400, "The message attribute 'a' has an invalid message attribute type, the set of supported type prefixes is Binary, Number, and String."},
	} {
		_, err := topics.Publish(t.Context(), &tc.in)
		t.Run(tc.name, func(t *testing.T) { refused(t, err, tc.code, tc.status, tc.text) })
	}
	// The longest comes first: nothing that was refused is before it.
	longest := strings.Repeat("x", 262_144)
	must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: &longest}))(t)
	if got := *takeMessage(t, queues, queue).Body; got != longest {
		t.Errorf("got %d bytes", len(got))
	}
}

// Accounts and regions do not see each other's topics, though one server has
// them all.
func TestTopicsAreApart(t *testing.T) {
	endpoint := start(t)
	here := topicsClient(endpoint)
	abroad, another := topicsClientOf(endpoint, "eu-west-1", "test"), topicsClientOf(endpoint, region, "111122223333")
	arns := []string{createTopic(t, here, "orders"), createTopic(t, abroad, "orders"), createTopic(t, another, "orders")}
	equal(t, "ARNs", []string{
		topicARN("orders"), "arn:aws:sns:eu-west-1:000000000000:orders", "arn:aws:sns:us-east-1:111122223333:orders",
	}, arns)
	for i, c := range []*sns.Client{here, abroad, another} {
		equal(t, "ListTopics", []types.Topic{{TopicArn: &arns[i]}}, must(c.ListTopics(t.Context(), &sns.ListTopicsInput{}))(t).Topics)
		must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &arns[i], Message: aws.String("to nobody")}))(t)
	}
	must(here.DeleteTopic(t.Context(), &sns.DeleteTopicInput{TopicArn: &arns[0]}))(t)
	equal(t, "Owner", "111122223333", topicAttributes(t, another, arns[2])["Owner"])
}
