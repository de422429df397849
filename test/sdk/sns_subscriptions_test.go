package sdk_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"
)

func TestSubscriptionLifeCycle(t *testing.T) {
	c := topicsClient(start(t))
	topic, other := createTopic(t, c, "orders"), createTopic(t, c, "a-neighbour")
	attributes := []string{
		"FilterPolicy", `{"status":["open"]}`, "RawMessageDelivery", "true",
		"RedrivePolicy", `{"deadLetterTargetArn":"` + queueARN("dead") + `"}`,
	}
	arn := subscribe(t, c, topic, "sqs", queueARN("work"), attributes...)
	if !strings.HasPrefix(arn, topic+":") || !anID.MatchString(arn[len(topic)+1:]) {
		t.Errorf("the subscription's ARN is %s", arn)
	}
	equal(t, "subscribing again", arn, subscribe(t, c, topic, "sqs", queueARN("work")))
	equal(t, "subscribing again with attributes", arn, subscribe(t, c, topic, "sqs", queueARN("work"), attributes...))
	_, err := c.Subscribe(t.Context(), &sns.SubscribeInput{
		TopicArn: &topic, Protocol: aws.String("sqs"), Endpoint: aws.String(queueARN("work")),
		Attributes: map[string]string{"RawMessageDelivery": "false"},
	})
	refused(t, err, "InvalidParameter", 400, "Invalid parameter: Attributes Reason: Subscription already exists with different attributes")

	want := map[string]string{
		"SubscriptionArn": arn, "TopicArn": topic, "Owner": account, "Protocol": "sqs", "Endpoint": queueARN("work"),
		"SubscriptionPrincipal": "arn:aws:iam::" + account + ":root",
		"PendingConfirmation":   "false", "ConfirmationWasAuthenticated": "true",
		"RawMessageDelivery": "true", "FilterPolicy": `{"status":["open"]}`, "FilterPolicyScope": "MessageAttributes",
		"RedrivePolicy": `{"deadLetterTargetArn":"` + queueARN("dead") + `"}`,
	}
	equal(t, "attributes", want, subscriptionAttributes(t, c, arn))

	listed := types.Subscription{
		SubscriptionArn: &arn, TopicArn: &topic, Owner: aws.String(account), Protocol: aws.String("sqs"), Endpoint: aws.String(queueARN("work")),
	}
	neighbour := subscribe(t, c, other, "sqs", queueARN("work"))
	second := listed
	second.SubscriptionArn, second.TopicArn = &neighbour, &other
	equal(t, "ListSubscriptionsByTopic", &sns.ListSubscriptionsByTopicOutput{Subscriptions: []types.Subscription{listed}},
		must(c.ListSubscriptionsByTopic(t.Context(), &sns.ListSubscriptionsByTopicInput{TopicArn: &topic}))(t))
	equal(t, "ListSubscriptions", &sns.ListSubscriptionsOutput{Subscriptions: []types.Subscription{second, listed}},
		must(c.ListSubscriptions(t.Context(), &sns.ListSubscriptionsInput{}))(t))

	for range 2 { // the second finds nothing, and succeeds
		equal(t, "Unsubscribe", &sns.UnsubscribeOutput{}, must(c.Unsubscribe(t.Context(), &sns.UnsubscribeInput{SubscriptionArn: &arn}))(t))
	}
	_, err = c.GetSubscriptionAttributes(t.Context(), &sns.GetSubscriptionAttributesInput{SubscriptionArn: &arn})
	refused(t, err, "NotFound", 404, "Subscription does not exist")
	counts := topicAttributes(t, c, topic)
	if counts["SubscriptionsConfirmed"] != "0" || counts["SubscriptionsDeleted"] != "1" {
		t.Errorf("the topic counts %s confirmed and %s deleted", counts["SubscriptionsConfirmed"], counts["SubscriptionsDeleted"])
	}
	must(c.DeleteTopic(t.Context(), &sns.DeleteTopicInput{TopicArn: &other}))(t)
	if left := must(c.ListSubscriptions(t.Context(), &sns.ListSubscriptionsInput{}))(t).Subscriptions; len(left) != 0 {
		t.Errorf("%d subscriptions outlived their topic", len(left))
	}
}

func TestSetSubscriptionAttributes(t *testing.T) {
	c := topicsClient(start(t))
	topic := createTopic(t, c, "orders")
	arn := subscribe(t, c, topic, "sqs", queueARN("work"))
	initial := subscriptionAttributes(t, c, arn)
	set := func(name, value string) error {
		_, err := c.SetSubscriptionAttributes(t.Context(), &sns.SetSubscriptionAttributesInput{
			SubscriptionArn: &arn, AttributeName: &name, AttributeValue: &value,
		})
		return err
	}
	changes := map[string]string{
		"RawMessageDelivery": "true", "FilterPolicyScope": "MessageBody", "FilterPolicy": `{"status":["open"]}`,
		"RedrivePolicy": `{"deadLetterTargetArn":"` + queueARN("dead") + `"}`,
	}
	want := subscriptionAttributes(t, c, arn)
	for name, value := range changes {
		if err := set(name, value); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		want[name] = value
	}
	equal(t, "changed", want, subscriptionAttributes(t, c, arn))
	for _, tc := range []struct{ name, value, text string }{
		{"Protocol", "http", "Invalid parameter: AttributeName"},
		{"Nonsense", "1", "Invalid parameter: AttributeName"},
		{"RawMessageDelivery", "maybe", "Invalid parameter: RawMessageDelivery: Invalid value [maybe]. Must be true or false."},
		{"FilterPolicy", `{"a":["1"],"b":["1"],"c":["1"],"d":["1"],"e":["1"],"f":["1"]}`, "Invalid parameter: FilterPolicy: Filter policy can not have more than 5 keys"},
		{"SubscriptionRoleArn", "firehose", "Invalid parameter: SubscriptionRoleArn: [firehose] is not the ARN of a role"},
		{"SubscriptionRoleArn", "arn:aws:iam::000000000000:role/r", "Invalid parameter: SubscriptionRoleArn: only subscriptions of the protocol firehose have a role"},
		{"RedrivePolicy", `{"deadLetterTargetArn":"dead"}`, "Invalid parameter: RedrivePolicy: deadLetterTargetArn is an invalid arn"},
		{"RedrivePolicy", `{}`, "Invalid parameter: RedrivePolicy: deadLetterTargetArn is an invalid arn"},
		{"RedrivePolicy", `{"deadLetterTargetArn":7}`, "Invalid parameter: RedrivePolicy: failed to parse JSON."},
		// Some take it for a queue's, and its names count in their exact case.
		{"RedrivePolicy", `{"deadLetterTargetArn":"` + queueARN("dead") + `","maxReceiveCount":5}`, "Invalid parameter: RedrivePolicy: invalid JSON. Attribute maxReceiveCount is unknown."},
		{"RedrivePolicy", `{"DeadLetterTargetArn":"` + queueARN("dead") + `"}`, "Invalid parameter: RedrivePolicy: invalid JSON. Attribute DeadLetterTargetArn is unknown."},
	} {
		refused(t, set(tc.name, tc.value), "InvalidParameter", http.StatusBadRequest, tc.text)
	}
	equal(t, "after refusals", want, subscriptionAttributes(t, c, arn))
	refused(t, set("RawMessageDelivery", ""), "InvalidParameter", http.StatusBadRequest, "Invalid parameter: RawMessageDelivery: Invalid value []. Must be true or false.")
	for name := range changes {
		if err := set(name, map[string]string{"RawMessageDelivery": "false"}[name]); err != nil {
			t.Errorf("deleting %s: %v", name, err)
		}
	}
	equal(t, "after all were deleted", initial, subscriptionAttributes(t, c, arn))
}

func TestSubscribeRefuses(t *testing.T) {
	c := topicsClient(start(t))
	topic := createTopic(t, c, "orders")
	for _, tc := range []struct {
		topic, protocol, endpoint, attribute, value string
		code                                        string
		status                                      int
		text                                        string
	}{
		{topicARN("none"), "sqs", queueARN("q"), "", "", "NotFound", 404, "Topic does not exist"},
		{"orders", "sqs", queueARN("q"), "", "", "InvalidParameter", 400, "Invalid parameter: TopicArn Reason: An ARN must have at least 6 elements, not 1"},
		{"arn:aws:sns:eu-west-1:" + account + ":orders", "sqs", queueARN("q"), "", "", "InvalidParameter", 400, "Invalid parameter: TopicArn"},
		{topic, "pigeon", queueARN("q"), "", "", "InvalidParameter", 400, "Invalid parameter: Amazon SNS does not support this protocol string: pigeon"},
		{topic, "firehose", "arn:aws:firehose:us-east-1:000000000000:deliverystream/s", "", "", "InvalidParameter", 400, "Invalid parameter: Attributes Reason: SubscriptionRoleArn: subscriptions of the protocol firehose need a role"},
		{topic, "email", "example.com", "", "", "InvalidParameter", 400, "Invalid parameter: Email address"},
		{topic, "sqs", "q", "", "", "InvalidParameter", 400, "Invalid parameter: SQS endpoint ARN"},
		{topic, "sqs", "arn:aws:sqs:us-east-1:12345:q", "", "", "InvalidParameter", 400, "Invalid parameter: SQS endpoint ARN"},
		{topic, "lambda", "arn:aws:lambda:us-east-1:12345:function:f", "", "", "InvalidParameter", 400, "Invalid parameter: Lambda endpoint ARN"},
		{topic, "firehose", "arn:aws:firehose:us-east-1:12345:deliverystream/s", "", "", "InvalidParameter", 400, "Invalid parameter: Firehose endpoint ARN"},
		{topic, "sqs", queueARN("q.fifo"), "", "", "InvalidParameter", 400, "Invalid parameter: Invalid parameter: Endpoint Reason: FIFO SQS Queues can not be subscribed to standard SNS topics"},
		{topic, "http", "https://example.com/", "", "", "InvalidParameter", 400, "Invalid parameter: Endpoint must match the specified protocol"},
		{topic, "https", "http://example.com/", "", "", "InvalidParameter", 400, "Invalid parameter: Endpoint must match the specified protocol"},
		{topic, "sqs", queueARN("q"), "Nonsense", "1", "InvalidParameter", 400, "Invalid parameter: Attributes Reason: Unknown attribute: Nonsense"},
		{topic, "http", "http://example.com/", "DeliveryPolicy", `{"healthyRetryPolicy":{"maxDelayTarget":1,"numRetries":1}}`, "InvalidParameter", 400, "Invalid parameter: Attributes Reason: DeliveryPolicy: healthyRetryPolicy.minDelayTarget must be specified"},
	} {
		in := &sns.SubscribeInput{TopicArn: &tc.topic, Protocol: &tc.protocol, Endpoint: &tc.endpoint}
		if tc.attribute != "" {
			in.Attributes = map[string]string{tc.attribute: tc.value}
		}
		_, err := c.Subscribe(t.Context(), in)
		refused(t, err, tc.code, tc.status, tc.text)
	}
	_, err := c.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: &topic, Protocol: aws.String("sqs")})
	refused(t, err, "InvalidParameter", 400, "Invalid parameter: Endpoint")
	if left := must(c.ListSubscriptions(t.Context(), &sns.ListSubscriptionsInput{}))(t).Subscriptions; len(left) != 0 {
		t.Errorf("refusals left %d subscriptions", len(left))
	}
}

func TestListSubscriptionsPages(t *testing.T) {
	c := topicsClient(start(t))
	topic := createTopic(t, c, "orders")
	want := map[string]bool{}
	for i := range 101 {
		want[subscribe(t, c, topic, "sqs", queueARN(fmt.Sprintf("q%03d", i)))] = true
	}
	byTopic, all := map[string]bool{}, map[string]bool{}
	pages := 0
	for p := sns.NewListSubscriptionsByTopicPaginator(c, &sns.ListSubscriptionsByTopicInput{TopicArn: &topic}); p.HasMorePages(); pages++ {
		for _, sub := range must(p.NextPage(t.Context()))(t).Subscriptions {
			byTopic[*sub.SubscriptionArn] = true
		}
	}
	for p := sns.NewListSubscriptionsPaginator(c, &sns.ListSubscriptionsInput{}); p.HasMorePages(); pages++ {
		for _, sub := range must(p.NextPage(t.Context()))(t).Subscriptions {
			all[*sub.SubscriptionArn] = true
		}
	}
	equal(t, "by topic", want, byTopic)
	equal(t, "all", want, all)
	equal(t, "pages", 4, pages)
	_, err := c.ListSubscriptionsByTopic(t.Context(), &sns.ListSubscriptionsByTopicInput{TopicArn: aws.String(topicARN("none"))})
	refused(t, err, "NotFound", 404, "Topic does not exist")
}

// A web hook confirms by visiting a link, and leaves by visiting another.
func TestWebHookLifeCycle(t *testing.T) {
	endpoint := start(t)
	c := topicsClient(endpoint)
	topic, h := createTopic(t, c, "orders"), newHook(t)

	answered := must(c.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: &topic, Protocol: aws.String("http"), Endpoint: &h.URL}))(t)
	equal(t, "Subscribe", "pending confirmation", *answered.SubscriptionArn)
	h.next(t)
	arn := subscribe(t, c, topic, "http", h.URL) // again, for the ARN; the token is another then
	list := func() []types.Subscription {
		return must(c.ListSubscriptionsByTopic(t.Context(), &sns.ListSubscriptionsByTopicInput{TopicArn: &topic}))(t).Subscriptions
	}
	listed := types.Subscription{
		SubscriptionArn: aws.String("PendingConfirmation"), TopicArn: &topic, Owner: aws.String(account),
		Protocol: aws.String("http"), Endpoint: &h.URL,
	}
	equal(t, "a pending one listed", []types.Subscription{listed}, list())

	asked := h.next(t)
	equal(t, "message type", "SubscriptionConfirmation", asked.Header.Get("x-amz-sns-message-type"))
	confirmation := decode(t, asked.Body)
	equal(t, "Type", any("SubscriptionConfirmation"), confirmation["Type"])
	equal(t, "TopicArn", any(topic), confirmation["TopicArn"])
	link, _ := confirmation["SubscribeURL"].(string)
	token, _ := confirmation["Token"].(string)
	if token == "" || !strings.HasPrefix(link, endpoint) {
		t.Fatalf("the confirmation is %s", asked.Body)
	}
	_, err := c.ConfirmSubscription(t.Context(), &sns.ConfirmSubscriptionInput{TopicArn: &topic, Token: aws.String("guessed")})
	refused(t, err, "InvalidParameter", 400, "Invalid token")
	must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("too early")}))(t)

	page := visit(t, link)
	equal(t, "the visit", `200 <ConfirmSubscriptionResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><ConfirmSubscriptionResult>`+
		`<SubscriptionArn>`+arn+`</SubscriptionArn></ConfirmSubscriptionResult>`+
		`<ResponseMetadata><RequestId>ID</RequestId></ResponseMetadata></ConfirmSubscriptionResponse>`,
		fmt.Sprint(page.Status, " ", strings.Replace(withoutIDs(page.Body), topic+":ID", arn, 1)))
	listed.SubscriptionArn = &arn
	equal(t, "a confirmed one listed", []types.Subscription{listed}, list())
	attributes := subscriptionAttributes(t, c, arn)
	equal(t, "PendingConfirmation", "false", attributes["PendingConfirmation"])
	equal(t, "ConfirmationWasAuthenticated", "false", attributes["ConfirmationWasAuthenticated"])
	equal(t, "EffectiveDeliveryPolicy", `{"healthyRetryPolicy":{"minDelayTarget":20,"maxDelayTarget":20,"numRetries":3,"numMaxDelayRetries":0,`+
		`"numNoDelayRetries":0,"numMinDelayRetries":0,"backoffFunction":"linear"},"sicklyRetryPolicy":null,"throttlePolicy":null,`+
		`"requestPolicy":{"headerContentType":"text/plain; charset=UTF-8"},"guaranteed":false}`, attributes["EffectiveDeliveryPolicy"])
	// The token confirms once more, and finds it confirmed.
	again := must(c.ConfirmSubscription(t.Context(), &sns.ConfirmSubscriptionInput{TopicArn: &topic, Token: &token}))(t)
	equal(t, "ConfirmSubscription", &sns.ConfirmSubscriptionOutput{SubscriptionArn: &arn}, again)

	id := *must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("hello")}))(t).MessageId
	request := h.next(t)
	note := decode(t, request.Body)
	equal(t, "message", any("hello"), note["Message"])
	equal(t, "headers", []string{"Notification", id, topic, arn, "text/plain; charset=UTF-8"}, []string{
		request.Header.Get("x-amz-sns-message-type"), request.Header.Get("x-amz-sns-message-id"),
		request.Header.Get("x-amz-sns-topic-arn"), request.Header.Get("x-amz-sns-subscription-arn"), request.Header.Get("Content-Type"),
	})

	link, _ = note["UnsubscribeURL"].(string)
	if page := visit(t, link); page.Status != http.StatusOK || !strings.Contains(page.Body, "<UnsubscribeResponse ") {
		t.Errorf("UnsubscribeURL: %d %s", page.Status, page.Body)
	}
	equal(t, "subscriptions left", 0, len(list()))
}

// Credentials inside an endpoint are never shown again.
func TestEndpointCredentialsAreHidden(t *testing.T) {
	c := topicsClient(start(t))
	topic := createTopic(t, c, "orders")
	arn := subscribe(t, c, topic, "https", "https://user:secret@127.0.0.1:1/hook")
	shown := "https://****:****@127.0.0.1:1/hook"
	equal(t, "attribute", shown, subscriptionAttributes(t, c, arn)["Endpoint"])
	equal(t, "listed", shown, *must(c.ListSubscriptions(t.Context(), &sns.ListSubscriptionsInput{}))(t).Subscriptions[0].Endpoint)
}
