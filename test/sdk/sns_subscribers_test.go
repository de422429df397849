package sdk_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
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
