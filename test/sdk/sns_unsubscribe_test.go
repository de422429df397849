package sdk_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// leave visits a web hook's UnsubscribeURL.
func leave(t *testing.T, endpoint, subscription string) response {
	t.Helper()
	return visit(t, endpoint+"/?Action=Unsubscribe&SubscriptionArn="+subscription)
}

// A web hook that is removed by its link is told so, and comes back as it was
// by visiting another.
func TestUnsubscribeConfirmation(t *testing.T) {
	endpoint := start(t)
	c := topicsClient(endpoint)
	topic, h := createTopic(t, c, "orders"), newHook(t)
	arn, _ := confirmedHook(t, c, topic, h, "FilterPolicy", `{"a":["x"]}`, "RawMessageDelivery", "true")
	before := subscriptionAttributes(t, c, arn)
	if page := leave(t, endpoint, arn); page.Status != http.StatusOK || !strings.Contains(page.Body, "<UnsubscribeResponse ") {
		t.Fatalf("leaving: %d %s", page.Status, page.Body)
	}
	_, err := c.GetSubscriptionAttributes(t.Context(), &sns.GetSubscriptionAttributesInput{SubscriptionArn: &arn})
	refused(t, err, "NotFound", 404, "Subscription does not exist")
	equal(t, "SubscriptionsDeleted", "1", topicAttributes(t, c, topic)["SubscriptionsDeleted"])

	told := h.next(t)
	envelope := verified(t, told.Body, "UnsubscribeConfirmation", "1")
	token, _ := envelope["Token"].(string)
	link := endpoint + "/?Action=ConfirmSubscription&TopicArn=" + topic + "&Token=" + token
	want := map[string]any{
		"Type": "UnsubscribeConfirmation", "TopicArn": topic, "Token": token, "SubscribeURL": link,
		"Message": "You have chosen to deactivate subscription " + arn +
			".\nTo cancel this operation and restore the subscription, visit the SubscribeURL included in this message.",
	}
	for _, name := range []string{"MessageId", "Timestamp", "SignatureVersion", "Signature", "SigningCertURL"} {
		want[name] = envelope[name]
	}
	equal(t, "the message", want, envelope)
	equal(t, "headers", []string{"UnsubscribeConfirmation", envelope["MessageId"].(string), topic, arn, "text/plain; charset=UTF-8", ""}, []string{
		told.Header.Get("x-amz-sns-message-type"), told.Header.Get("x-amz-sns-message-id"), told.Header.Get("x-amz-sns-topic-arn"),
		told.Header.Get("x-amz-sns-subscription-arn"), told.Header.Get("Content-Type"), told.Header.Get("x-amz-sns-rawdelivery"),
	})

	must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("missed")}))(t)
	_, err = c.ConfirmSubscription(t.Context(), &sns.ConfirmSubscriptionInput{TopicArn: &topic, Token: aws.String("guessed")})
	refused(t, err, "InvalidParameter", 400, "Invalid token")
	if page := visit(t, link); page.Status != http.StatusOK || !strings.Contains(page.Body, "<SubscriptionArn>"+arn+"</SubscriptionArn>") {
		t.Fatalf("coming back: %d %s", page.Status, page.Body)
	}
	equal(t, "attributes", before, subscriptionAttributes(t, c, arn))
	equal(t, "SubscriptionsDeleted", "0", topicAttributes(t, c, topic)["SubscriptionsDeleted"])
	callTopics(t, endpoint, "Publish", "TopicArn", topic, "Message", "gets this",
		"MessageAttributes.entry.1.Name", "a", "MessageAttributes.entry.1.Value.DataType", "String", "MessageAttributes.entry.1.Value.StringValue", "x")
	equal(t, "the next message", "gets this", h.next(t).Body)
}

// It is retried like a notification, across a restart, until the endpoint takes
// it.
func TestUnsubscribeConfirmationIsRetried(t *testing.T) {
	d := newDurable(t)
	c := topicsClient(d.URL)
	topic, h := createTopic(t, c, "orders"), newHook(t)
	arn, _ := confirmedHook(t, c, topic, h)
	h.answer(http.StatusServiceUnavailable)
	leave(t, d.URL, arn)
	first := h.next(t).Body
	advance(t, d.URL, "20s")
	equal(t, "the first retry", first, h.next(t).Body)
	d.restart()
	h.answer(http.StatusOK)
	advance(t, d.URL, "20s")
	equal(t, "the retry behind a restart", first, h.next(t).Body)
	advance(t, d.URL, "1h")
	if len(h.requests) != 0 {
		t.Errorf("told %d times more", len(h.requests))
	}
	link, _ := decode(t, first)["SubscribeURL"].(string)
	if page := visit(t, link); page.Status != http.StatusOK {
		t.Errorf("coming back: %d %s", page.Status, page.Body)
	}
}

// It never becomes a dead letter, and the link works for two days.
func TestUnsubscribeConfirmationEnds(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status int
		tries  int
	}{{"refused", http.StatusNotFound, 1}, {"never answered well", http.StatusServiceUnavailable, 4}} {
		t.Run(tc.name, func(t *testing.T) {
			endpoint := start(t)
			c, q := topicsClient(endpoint), client(endpoint)
			topic, h := createTopic(t, c, "orders"), newHook(t)
			dead := createQueue(t, q, "dead")
			arn, _ := confirmedHook(t, c, topic, h, "RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("dead")+`"}`)
			h.answer(tc.status)
			leave(t, endpoint, arn)
			advance(t, endpoint, "2h")
			var last string
			for range tc.tries {
				last = h.next(t).Body
			}
			if len(h.requests) != 0 {
				t.Errorf("told %d times more", len(h.requests))
			}
			out := must(q.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &dead}))(t)
			equal(t, "dead letters", 0, len(out.Messages))
			link, _ := decode(t, last)["SubscribeURL"].(string)
			advance(t, endpoint, "46h")
			if page := visit(t, link); page.Status != http.StatusBadRequest || !strings.Contains(page.Body, "Invalid parameter: Token") {
				t.Errorf("after two days: %d %s", page.Status, page.Body)
			}
		})
	}
}

// Who signs the request means it, and queues are not told.
func TestUnsubscribedWithoutConfirmation(t *testing.T) {
	endpoint := start(t)
	c, q := topicsClient(endpoint), client(endpoint)
	topic, h := createTopic(t, c, "orders"), newHook(t)
	arn, _ := confirmedHook(t, c, topic, h)
	must(c.Unsubscribe(t.Context(), &sns.UnsubscribeInput{SubscriptionArn: &arn}))(t)

	pending := subscribe(t, c, topic, "http", h.URL)
	h.next(t) // asked to confirm
	leave(t, endpoint, pending)

	work := createQueue(t, q, "work")
	mine := subscribe(t, c, topic, "sqs", queueARN("work"))
	must(c.Unsubscribe(t.Context(), &sns.UnsubscribeInput{SubscriptionArn: &mine}))(t)
	advance(t, endpoint, "1h")
	if len(h.requests) != 0 {
		t.Errorf("the web hook was told %d times", len(h.requests))
	}
	out := must(q.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &work}))(t)
	equal(t, "messages in the queue", 0, len(out.Messages))
	equal(t, "SubscriptionsDeleted", "3", topicAttributes(t, c, topic)["SubscriptionsDeleted"])
}

// Whoever knows the ARN of a queue's or a function's subscription, which no token confirmed, cannot
// end it without a signature.
func TestUnsubscribingAQueueIsSigned(t *testing.T) {
	endpoint := start(t)
	c, q := topicsClient(endpoint), client(endpoint)
	topic, work := createTopic(t, c, "orders"), createQueue(t, q, "work")
	for protocol, of := range map[string]string{"sqs": queueARN("work"), "lambda": functionARN("resize")} {
		arn := subscribe(t, c, topic, protocol, of)
		if page := leave(t, endpoint, arn); page.Status != http.StatusForbidden || !strings.Contains(page.Body, "<Code>AuthorizationError</Code>") {
			t.Errorf("%s: %d %s", protocol, page.Status, page.Body)
		}
		equal(t, "it is still there", arn, subscriptionAttributes(t, c, arn)["SubscriptionArn"])
	}
	must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("hello")}))(t)
	out := must(q.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &work}))(t)
	equal(t, "messages in the queue", 1, len(out.Messages))
}

// AuthenticateOnUnsubscribe takes a signed request to set, and one to unsubscribe.
func TestAuthenticateOnUnsubscribe(t *testing.T) {
	endpoint := start(t)
	c := topicsClient(endpoint)
	topic, h := createTopic(t, c, "orders"), newHook(t)
	arn := subscribe(t, c, topic, "http", h.URL)
	confirmation := decode(t, h.next(t).Body)
	token, _ := confirmation["Token"].(string)
	link, _ := confirmation["SubscribeURL"].(string)
	forbidden := func(what string, page response) {
		t.Helper()
		if page.Status != http.StatusForbidden || !strings.Contains(page.Body, "<Code>AuthorizationError</Code>") {
			t.Errorf("%s: %d %s", what, page.Status, page.Body)
		}
	}
	forbidden("confirmed without credentials", visit(t, link+"&AuthenticateOnUnsubscribe=true"))
	equal(t, "PendingConfirmation", "true", subscriptionAttributes(t, c, arn)["PendingConfirmation"])
	must(c.ConfirmSubscription(t.Context(), &sns.ConfirmSubscriptionInput{
		TopicArn: &topic, Token: &token, AuthenticateOnUnsubscribe: aws.String("true"),
	}))(t)
	equal(t, "ConfirmationWasAuthenticated", "true", subscriptionAttributes(t, c, arn)["ConfirmationWasAuthenticated"])
	visit(t, link) // once more, without credentials, changes nothing
	equal(t, "ConfirmationWasAuthenticated", "true", subscriptionAttributes(t, c, arn)["ConfirmationWasAuthenticated"])

	must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("hello")}))(t)
	away, _ := decode(t, h.next(t).Body)["UnsubscribeURL"].(string)
	forbidden("the UnsubscribeURL", visit(t, away))
	forbidden("the same by POST", do(t, withoutSignature(newTopics(t, endpoint, "Unsubscribe", "SubscriptionArn", arn))))
	equal(t, "it is still there", arn, subscriptionAttributes(t, c, arn)["SubscriptionArn"])
	must(c.Unsubscribe(t.Context(), &sns.UnsubscribeInput{SubscriptionArn: &arn}))(t)
	advance(t, endpoint, "1h")
	equal(t, "told", "0", fmt.Sprint(len(h.requests)))

	// Confirmed with credentials but without the flag, anybody with the link may.
	arn = subscribe(t, c, topic, "http", h.URL)
	token, _ = decode(t, h.next(t).Body)["Token"].(string)
	must(c.ConfirmSubscription(t.Context(), &sns.ConfirmSubscriptionInput{TopicArn: &topic, Token: &token}))(t)
	equal(t, "without the flag", http.StatusOK, leave(t, endpoint, arn).Status)
	h.next(t)
}
