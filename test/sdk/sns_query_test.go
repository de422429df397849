package sdk_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// Each operation by a form written by hand, and the XML that answers it.
func TestTopicQueries(t *testing.T) {
	endpoint := start(t)
	const (
		topic = "arn:aws:sns:us-east-1:000000000000:orders"
		queue = "arn:aws:sqs:us-east-1:000000000000:work"
		// The ARN as a request has to name it is known after Subscribe only.
		subscription = topic + ":ID"
	)
	var real string
	for _, tc := range []struct {
		operation  string
		parameters []string
		result     string // inside <…Result>; "-" is an answer without one
	}{
		{"CreateTopic", []string{
			"Name", "orders", "Attributes.entry.1.key", "DisplayName", "Attributes.entry.1.value", "A & B",
			"Tags.member.1.Key", "team", "Tags.member.1.Value", "rental",
		}, "<TopicArn>" + topic + "</TopicArn>"},
		{"ListTopics", nil, "<Topics><member><TopicArn>" + topic + "</TopicArn></member></Topics>"},
		{"SetTopicAttributes", []string{"TopicArn", topic, "AttributeName", "Policy", "AttributeValue", `{"Statement":` + allowAll("SNS:Publish") + `}`}, "-"},
		{"GetTopicAttributes", []string{"TopicArn", topic}, "<Attributes>" + xmlEntries(
			"DisplayName", "A &amp; B", "EffectiveDeliveryPolicy", strings.ReplaceAll(defaultDeliveryPolicy, `"`, "&quot;"), "Owner", account,
			"Policy", strings.ReplaceAll(`{"Statement":`+allowAll("SNS:Publish")+`}`, `"`, "&quot;"), "SubscriptionsConfirmed", "0", "SubscriptionsDeleted", "0", "SubscriptionsPending", "0", "TopicArn", topic,
		) + "</Attributes>"},
		{"Subscribe", []string{
			"TopicArn", topic, "Protocol", "sqs", "Endpoint", queue, "ReturnSubscriptionArn", "true",
			"Attributes.entry.1.key", "RawMessageDelivery", "Attributes.entry.1.value", "true",
		}, "<SubscriptionArn>" + subscription + "</SubscriptionArn>"},
		{"SetSubscriptionAttributes", []string{
			"SubscriptionArn", subscription, "AttributeName", "FilterPolicy", "AttributeValue", `{"a":["b"]}`,
		}, "-"},
		{"GetSubscriptionAttributes", []string{"SubscriptionArn", subscription}, "<Attributes>" + xmlEntries(
			"ConfirmationWasAuthenticated", "true", "Endpoint", queue, "FilterPolicy", "{&quot;a&quot;:[&quot;b&quot;]}",
			"FilterPolicyScope", "MessageAttributes", "Owner", account, "PendingConfirmation", "false", "Protocol", "sqs",
			"RawMessageDelivery", "true", "SubscriptionArn", subscription,
			"SubscriptionPrincipal", "arn:aws:iam::000000000000:root", "TopicArn", topic,
		) + "</Attributes>"},
		{"ListSubscriptions", nil, "<Subscriptions><member><SubscriptionArn>" + subscription + "</SubscriptionArn><Owner>" + account +
			"</Owner><Protocol>sqs</Protocol><Endpoint>" + queue + "</Endpoint><TopicArn>" + topic + "</TopicArn></member></Subscriptions>"},
		{"ListSubscriptionsByTopic", []string{"TopicArn", topic}, "<Subscriptions><member><SubscriptionArn>" + subscription + "</SubscriptionArn><Owner>" + account +
			"</Owner><Protocol>sqs</Protocol><Endpoint>" + queue + "</Endpoint><TopicArn>" + topic + "</TopicArn></member></Subscriptions>"},
		{"Publish", []string{
			"TopicArn", topic, "Message", "hello", "MessageAttributes.entry.1.Name", "a",
			"MessageAttributes.entry.1.Value.DataType", "Binary", "MessageAttributes.entry.1.Value.BinaryValue", "AP8=",
		}, "<MessageId>ID</MessageId>"},
		{"Unsubscribe", []string{"SubscriptionArn", subscription}, "-"},
		{"ListSubscriptions", nil, "<Subscriptions></Subscriptions>"},
		{"DeleteTopic", []string{"TopicArn", topic}, "-"},
		{"ListTopics", nil, "<Topics></Topics>"},
	} {
		parameters := make([]string, len(tc.parameters))
		for i, p := range tc.parameters {
			parameters[i] = p
			if p == subscription {
				parameters[i] = real
			}
		}
		r := callTopics(t, endpoint, tc.operation, parameters...)
		if tc.operation == "Subscribe" {
			_, rest, _ := strings.Cut(r.Body, "<SubscriptionArn>")
			real, _, _ = strings.Cut(rest, "</SubscriptionArn>")
		}
		want := "<" + tc.operation + `Response xmlns="http://sns.amazonaws.com/doc/2010-03-31/">`
		if tc.result != "-" {
			want += "<" + tc.operation + "Result>" + tc.result + "</" + tc.operation + "Result>"
		}
		want += "<ResponseMetadata><RequestId>ID</RequestId></ResponseMetadata></" + tc.operation + "Response>"
		equal(t, tc.operation, want, withoutIDs(r.Body))
		equal(t, tc.operation+": status and type", "200 text/xml", fmt.Sprint(r.Status, " ", r.Header.Get("Content-Type")))
		if id := r.Header.Get("x-amzn-RequestId"); !strings.Contains(r.Body, "<RequestId>"+id+"</RequestId>") {
			t.Errorf("%s: the request id of the header, %q, is not that of the body", tc.operation, id)
		}
	}
}

func xmlEntries(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		fmt.Fprintf(&b, "<entry><key>%s</key><value>%s</value></entry>", pairs[i], pairs[i+1])
	}
	return b.String()
}

// What the SDK would not send, and the XML of refusals.
func TestTopicQueryRefusals(t *testing.T) {
	endpoint := start(t)
	createTopic(t, topicsClient(endpoint), "orders")
	orders := topicARN("orders")
	for _, tc := range []struct {
		operation  string
		parameters []string
		status     int
		code, text string
	}{
		{"CreateTopic", nil, 400, "ValidationError", "1 validation error detected: Value null at 'name' failed to satisfy constraint: Member must not be null"},
		{"CreateTopic", []string{"Name", "a/b"}, 400, "InvalidParameter", "Invalid parameter: Topic Name"},
		{"GetTopicAttributes", []string{"TopicArn", topicARN("none")}, 404, "NotFound", "Topic does not exist"},
		{"GetTopicAttributes", []string{"TopicArn", "a:b"}, 400, "InvalidParameter", "Invalid parameter: TopicArn Reason: An ARN must have at least 6 elements, not 2"},
		{"DeleteTopic", []string{"TopicArn", "orders"}, 400, "InvalidParameter", "Invalid parameter: TopicArn Reason: An ARN must have at least 6 elements, not 1"},
		{"SetTopicAttributes", []string{"TopicArn", orders, "AttributeName", "Policy", "AttributeValue", "{"}, 400, "InvalidParameter", "Invalid parameter: Policy Error: null"},
		{"Subscribe", []string{"TopicArn", orders, "Protocol", "sqs"}, 400, "InvalidParameter", "Invalid parameter: Endpoint"},
		{"ConfirmSubscription", []string{"TopicArn", orders, "Token", "abc123"}, 400, "InvalidParameter", "Invalid parameter: Token"},
		{"ConfirmSubscription", []string{"TopicArn", topicARN("none"), "Token", "x"}, 400, "InvalidParameter", "Invalid token"},
		{"Unsubscribe", []string{"SubscriptionArn", "x"}, 400, "InvalidParameter", "Invalid parameter: SubscriptionArn Reason: An ARN must have at least 6 elements, not 1"},
		{"Unsubscribe", []string{"SubscriptionArn", orders}, 400, "InvalidParameter", "Invalid parameter: SubscriptionId"},
		{"GetSubscriptionAttributes", []string{"SubscriptionArn", orders + ":none"}, 404, "NotFound", "Subscription does not exist"},
		{"SetSubscriptionAttributes", []string{"SubscriptionArn", orders + ":none", "AttributeName", "FilterPolicy"}, 404, "NotFound", "Subscription does not exist"},
		{"Publish", []string{"TopicArn", orders}, 400, "ValidationError", "1 validation error detected: Value null at 'message' failed to satisfy constraint: Member must not be null"},
		{"Publish", []string{"TopicArn", orders, "Message", ""}, 400, "InvalidParameter", "Invalid parameter: Empty message"},
		{"Publish", []string{"TopicArn", orders, "Message", "m", "MessageAttributes.entry.1.Name", "a", "MessageAttributes.entry.1.Value.StringValue", "b"}, 400, "ValidationError", "1 validation error detected: Value null at 'messageAttributes.a.member.dataType' failed to satisfy constraint: Member must not be null"},
		{"CreateTopic", []string{"Name", ""}, 400, "InvalidParameter", "Invalid parameter: Topic Name"},
		{"SetTopicAttributes", []string{"TopicArn", orders, "AttributeName", "FifoTopic", "AttributeValue", "false"}, 400, "InvalidParameter", "Invalid parameter: AttributeName"},
		// The ARN that callers are authorised by is missed before anything else is.
		{"Unsubscribe", nil, 400, "InvalidParameter", "Invalid parameter: SubscriptionArn Reason: no value for required parameter"},
		{"DeleteTopic", nil, 400, "InvalidParameter", "Invalid parameter: TopicArn Reason: no value for required parameter"},
		{"Subscribe", nil, 400, "InvalidParameter", "Invalid parameter: TopicArn Reason: no value for required parameter"},
		{"SetSubscriptionAttributes", []string{"SubscriptionArn", ""}, 400, "InvalidParameter", "Invalid parameter: SubscriptionArn Reason: no value for required parameter"},
		{"DeletePlatformApplication", nil, 400, "InvalidParameter", "Invalid parameter: PlatformApplicationArn Reason: no value for required parameter"},
		{"SetEndpointAttributes", nil, 400, "InvalidParameter", "Invalid parameter: EndpointArn Reason: no value for required parameter"},
		{"ConfirmSubscription", []string{"Token", "abc123"}, 400, "ValidationError", "1 validation error detected: Value null at 'topicArn' failed to satisfy constraint: Member must not be null"},
		{"GetSubscriptionAttributes", []string{"SubscriptionArn", queueARN("q") + ":8d8d6d4a-3c8f-4b1c-9d3d-0d4d3c0d1c5e"}, 404, "NotFound", "Subscription does not exist"},
		{"Publish", []string{"TargetArn", "arn:aws:sns:us-east-1:000000000000:endpoint/APNS/abcdef/8d8d6d4a-3c8f-4b1c-9d3d-0d4d3c0d1c5e", "Message", "m"}, 400, "InvalidParameter", "Invalid parameter: TargetArn Reason: No endpoint found for the target arn specified"},
		{"PublishBatch", []string{
			"TopicArn", orders, "PublishBatchRequestEntries.member.1.Id", "a", "PublishBatchRequestEntries.member.1.Message", "m",
			"PublishBatchRequestEntries.member.1.MessageAttributes.entry.1.Name", "attr1", "PublishBatchRequestEntries.member.1.MessageAttributes.entry.1.Value.StringValue", "b",
		}, 400, "ValidationError", "1 validation error detected: Value null at 'publishBatchRequestEntries.1.member.messageAttributes.attr1.member.dataType' failed to satisfy constraint: Member must not be null"},
		{"PublishBatch", []string{
			"TopicArn", orders, "PublishBatchRequestEntries.member.1.MessageAttributes.entry.1.Name", "a",
			"PublishBatchRequestEntries.member.2.MessageAttributes.entry.1.Name", "b",
		}, 400, "ValidationError", "2 validation errors detected: Value null at 'publishBatchRequestEntries.1.member.messageAttributes.a.member.dataType' failed to satisfy constraint: Member must not be null; " +
			"Value null at 'publishBatchRequestEntries.2.member.messageAttributes.b.member.dataType' failed to satisfy constraint: Member must not be null"},
		{"PublishTwice", []string{"TopicArn", orders}, 400, "InvalidAction", "Godwit has no action PublishTwice of SNS."},
	} {
		r := callTopics(t, endpoint, tc.operation, tc.parameters...)
		want := `<ErrorResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><Error><Type>Sender</Type><Code>` + tc.code +
			`</Code><Message>` + tc.text + `</Message></Error><RequestId>ID</RequestId></ErrorResponse>`
		equal(t, fmt.Sprint(tc.operation, tc.parameters), fmt.Sprint(tc.status, want), fmt.Sprint(r.Status, withoutIDs(r.Body)))
	}
	// Unsubscribing what is not there succeeds.
	if r := callTopics(t, endpoint, "Unsubscribe", "SubscriptionArn", orders+":none"); r.Status != http.StatusOK {
		t.Errorf("Unsubscribe of none: %d %s", r.Status, r.Body)
	}
}
