package sdk_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/internal/config"
)

// Who subscribed to another account's topic manages the subscription, as the topic's owner does, and
// nobody else.
func TestSubscriberManagesItsSubscription(t *testing.T) {
	endpoint := startEnforced(t)
	of := func(who string) callerClients {
		return callersClients(endpoint, credentials.NewStaticCredentialsProvider(who, secretOf(who), ""))
	}
	const subscriber, stranger = "444455556666", "777788889999"
	mine, theirs, others := of("test"), of(subscriber), of(stranger)
	topic := createTopic(t, mine.sns, "shared")
	must(mine.sns.AddPermission(t.Context(), &sns.AddPermissionInput{
		TopicArn: &topic, Label: new("theirs"), AWSAccountId: []string{subscriber}, ActionName: []string{"Subscribe"},
	}))(t)
	must(theirs.sqs.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: new("work")}))(t)
	sub := must(theirs.sns.Subscribe(t.Context(), &sns.SubscribeInput{
		TopicArn: &topic, Protocol: new("sqs"), Endpoint: new("arn:aws:sqs:" + region + ":" + subscriber + ":work"), ReturnSubscriptionArn: true,
	}))(t).SubscriptionArn
	set := &sns.SetSubscriptionAttributesInput{SubscriptionArn: sub, AttributeName: new("RawMessageDelivery"), AttributeValue: new("true")}

	_, err := others.sns.SetSubscriptionAttributes(t.Context(), set)
	refusedWith(t, err, "AuthorizationError", "*")
	_, err = others.sns.GetSubscriptionAttributes(t.Context(), &sns.GetSubscriptionAttributesInput{SubscriptionArn: sub})
	refusedWith(t, err, "AuthorizationError", "*")
	_, err = others.sns.Unsubscribe(t.Context(), &sns.UnsubscribeInput{SubscriptionArn: sub})
	refusedWith(t, err, "AuthorizationError", "*")

	must(theirs.sns.SetSubscriptionAttributes(t.Context(), set))(t)
	for who, c := range map[string]callerClients{"its owner": theirs, "the topic's": mine} {
		got := must(c.sns.GetSubscriptionAttributes(t.Context(), &sns.GetSubscriptionAttributesInput{SubscriptionArn: sub}))(t).Attributes
		equal(t, who, []string{subscriber, "true"}, []string{got["Owner"], got["RawMessageDelivery"]})
	}
	must(theirs.sns.Unsubscribe(t.Context(), &sns.UnsubscribeInput{SubscriptionArn: sub}))(t)
	_, err = mine.sns.GetSubscriptionAttributes(t.Context(), &sns.GetSubscriptionAttributesInput{SubscriptionArn: sub})
	refused(t, err, "NotFound", 404, "Subscription does not exist")
}

// Where callers are not authorised, a topic's policy says who of other accounts may subscribe what.
func TestTopicPolicyAdmitsSubscribers(t *testing.T) {
	const friend, stranger = "111122223333", "444455556666"
	endpoint := startWith(t, func(c *config.Config) { c.Enforce = false })
	mine, theirs, others := topicsClient(endpoint), topicsClientOf(endpoint, region, friend), topicsClientOf(endpoint, region, stranger)
	topic := createTopic(t, mine, "shared")
	in := &sns.SubscribeInput{TopicArn: &topic, Protocol: new("sqs"), Endpoint: new("arn:aws:sqs:" + region + ":" + friend + ":work")}
	denied := func(who string) string {
		return "User: arn:aws:iam::" + who + ":root is not authorized to perform: SNS:Subscribe on resource: " + topic +
			" because no resource-based policy allows the SNS:Subscribe action"
	}
	refused(t, errorOf(theirs.Subscribe(t.Context(), in)), "AuthorizationError", 403, denied(friend))
	policy := policyOf(`{"Effect":"Allow","Principal":{"AWS":"` + friend + `"},"Action":"SNS:Subscribe","Resource":"` + topic + `",
		"Condition":{"StringEquals":{"SNS:Protocol":"sqs"},"StringLike":{"SNS:Endpoint":"*:work"}}}`)
	must(mine.SetTopicAttributes(t.Context(), &sns.SetTopicAttributesInput{TopicArn: &topic, AttributeName: new("Policy"), AttributeValue: &policy}))(t)
	refused(t, errorOf(others.Subscribe(t.Context(), in)), "AuthorizationError", 403, denied(stranger))
	refused(t, errorOf(theirs.Subscribe(t.Context(), &sns.SubscribeInput{
		TopicArn: &topic, Protocol: new("http"), Endpoint: new("http://127.0.0.1:1/work"),
	})), "AuthorizationError", 403, denied(friend))
	sub := must(theirs.Subscribe(t.Context(), in))(t).SubscriptionArn

	set := &sns.SetSubscriptionAttributesInput{SubscriptionArn: sub, AttributeName: new("RawMessageDelivery"), AttributeValue: new("true")}
	refusedWith(t, errorOf(others.SetSubscriptionAttributes(t.Context(), set)), "AuthorizationError", "*")
	refusedWith(t, errorOf(others.Unsubscribe(t.Context(), &sns.UnsubscribeInput{SubscriptionArn: sub})), "AuthorizationError", "*")
	must(theirs.SetSubscriptionAttributes(t.Context(), set))(t)
	for _, c := range []*sns.Client{mine, theirs} {
		got := subscriptionAttributes(t, c, *sub)
		equal(t, "the subscription", []string{friend, "true", "false"}, []string{got["Owner"], got["RawMessageDelivery"], got["PendingConfirmation"]})
	}
	equal(t, "theirs", 1, len(must(theirs.ListSubscriptions(t.Context(), &sns.ListSubscriptionsInput{}))(t).Subscriptions))
	must(theirs.Unsubscribe(t.Context(), &sns.UnsubscribeInput{SubscriptionArn: sub}))(t)
	refused(t, errorOf(mine.GetSubscriptionAttributes(t.Context(), &sns.GetSubscriptionAttributesInput{SubscriptionArn: sub})),
		"NotFound", 404, "Subscription does not exist")
}

// A confirmation is a message like any other of the queue that it is for: in a FIFO queue it has a
// group, and no other confirmation is its duplicate.
func TestConfirmationsOfQueues(t *testing.T) {
	const friend = "111122223333"
	endpoint := startWith(t, func(c *config.Config) { c.Enforce = false })
	mine, theirs := topicsClient(endpoint), clientOf(endpoint, region, friend)
	for _, tc := range []struct {
		topic, queue string
		grouped      bool
	}{{"orders", "work", false}, {"orders.fifo", "work.fifo", true}, {"orders.fifo", "plain", false}} {
		attributes := map[string]string{}
		if strings.HasSuffix(tc.queue, ".fifo") {
			attributes["FifoQueue"] = "true"
		}
		url := *must(theirs.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &tc.queue, Attributes: attributes}))(t).QueueUrl
		of := "arn:aws:sqs:" + region + ":" + friend + ":" + tc.queue
		must(theirs.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: map[string]string{
			"Policy": policyOf(`{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"` + of + `"}`),
		}}))(t)
		var topic string
		if strings.HasSuffix(tc.topic, ".fifo") {
			topic = createFIFOTopic(t, mine, tc.topic)
		} else {
			topic = createTopic(t, mine, tc.topic)
		}
		for range 2 { // the second is asked for before anybody has answered the first
			must(mine.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: &topic, Protocol: new("sqs"), Endpoint: &of}))(t)
			m := takeMessage(t, theirs, url)
			got := []any{decode(t, *m.Body)["Type"], m.Attributes["SenderId"], m.Attributes["MessageGroupId"] != "", m.Attributes["MessageDeduplicationId"] != ""}
			equal(t, tc.topic+" to "+tc.queue, []any{"SubscriptionConfirmation", account, tc.grouped, tc.grouped}, got)
		}
	}
}
