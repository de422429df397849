package sdk_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"
)

// What AWS itself was seen to answer, where its documents say nothing or otherwise.

// Where nobody is verified an access key is a user, unless it is an account's number, or
// there is none.
func TestSubscriptionPrincipal(t *testing.T) {
	endpoint := startOpen(t)
	for key, want := range map[string]string{
		"test":                 "arn:aws:iam::000000000000:user/test",
		"AKIAIOSFODNN7EXAMPLE": "arn:aws:iam::000000000000:user/AKIAIOSFODNN7EXAMPLE",
		"111122223333":         "arn:aws:iam::111122223333:root",
	} {
		c := topicsClientOf(endpoint, region, key)
		sub := subscribe(t, c, createTopic(t, c, "of-"+key), "sqs", queueARN("q"))
		equal(t, "the principal of "+key, want, subscriptionAttributes(t, c, sub)["SubscriptionPrincipal"])
	}
	topic := createTopic(t, topicsClient(endpoint), "unsigned")
	r := callTopics(t, endpoint, "Subscribe", "TopicArn", topic, "Protocol", "sqs", "Endpoint", queueARN("q"))
	_, rest, _ := strings.Cut(r.Body, "<SubscriptionArn>")
	sub, _, _ := strings.Cut(rest, "</SubscriptionArn>")
	equal(t, "the principal of nobody", "arn:aws:iam::000000000000:root", subscriptionAttributes(t, topicsClient(endpoint), sub)["SubscriptionPrincipal"])
}

// The scope of a filter policy is remembered, and shown with one only.
func TestScopeWithoutPolicy(t *testing.T) {
	c := topicsClient(start(t))
	topic := createTopic(t, c, "orders")
	arn := subscribe(t, c, topic, "sqs", queueARN("q"), "FilterPolicyScope", "MessageBody")
	show := func() string {
		t.Helper()
		all := subscriptionAttributes(t, c, arn)
		return all["FilterPolicy"] + " " + all["FilterPolicyScope"]
	}
	set := func(name, value string) {
		t.Helper()
		must(c.SetSubscriptionAttributes(t.Context(), &sns.SetSubscriptionAttributesInput{
			SubscriptionArn: &arn, AttributeName: &name, AttributeValue: &value,
		}))(t)
	}
	equal(t, "at first", " ", show())
	set("FilterPolicy", `{"a":["b"]}`)
	equal(t, "with a policy", `{"a":["b"]} MessageBody`, show())
	set("FilterPolicy", "")
	equal(t, "without it", " ", show())
	set("FilterPolicyScope", "MessageAttributes")
	set("FilterPolicyScope", "MessageBody")
	equal(t, "set anew", " ", show())
	set("FilterPolicy", `{"a":["b"]}`)
	equal(t, "with a policy again", `{"a":["b"]} MessageBody`, show())
}

func TestTopicBooleansInAnyCase(t *testing.T) {
	c := topicsClient(start(t))
	for i, attributes := range []map[string]string{
		{"FifoTopic": "True", "ContentBasedDeduplication": "False", "FifoThroughputScope": "Topic"},
		{"FifoTopic": "TRUE", "ContentBasedDeduplication": "True"},
	} {
		name := fmt.Sprintf("t%d.fifo", i)
		out := must(c.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: &name, Attributes: attributes}))(t)
		all := topicAttributes(t, c, *out.TopicArn)
		equal(t, "shown", "true "+strings.ToLower(attributes["ContentBasedDeduplication"]), all["FifoTopic"]+" "+all["ContentBasedDeduplication"])
		setTopic(t, c, *out.TopicArn, "ContentBasedDeduplication", "TRUE")
		equal(t, "set", "true", topicAttributes(t, c, *out.TopicArn)["ContentBasedDeduplication"])
	}
	standard := must(c.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String("t"), Attributes: map[string]string{"FifoTopic": "False"}}))(t)
	if _, shown := topicAttributes(t, c, *standard.TopicArn)["FifoTopic"]; shown {
		t.Error("a standard topic shows FifoTopic")
	}
	sub := subscribe(t, c, *standard.TopicArn, "sqs", queueARN("q"), "RawMessageDelivery", "TrUe")
	equal(t, "raw", "true", subscriptionAttributes(t, c, sub)["RawMessageDelivery"])
	_, err := c.SetSubscriptionAttributes(t.Context(), &sns.SetSubscriptionAttributesInput{
		SubscriptionArn: &sub, AttributeName: aws.String("RawMessageDelivery"), AttributeValue: aws.String(""),
	})
	refused(t, err, "InvalidParameter", 400, "Invalid parameter: RawMessageDelivery: Invalid value []. Must be true or false.")
}

// Tokens of lists are base64 as strict decoders take it, in pages of 100.
func TestTopicTokensAreBase64(t *testing.T) {
	c := topicsClient(start(t))
	var last string
	for i := range 101 {
		last = createTopic(t, c, fmt.Sprintf("topic-%03d", i))
		subscribe(t, c, topicARN("topic-000"), "sqs", queueARN(fmt.Sprintf("q%d", i)))
	}
	check := func(what string, n int, token *string) {
		t.Helper()
		equal(t, what, 100, n)
		if _, err := base64.StdEncoding.Strict().DecodeString(aws.ToString(token)); err != nil || token == nil {
			t.Errorf("%s: the token %q: %v", what, aws.ToString(token), err)
		}
	}
	topics := must(c.ListTopics(t.Context(), &sns.ListTopicsInput{}))(t)
	check("topics", len(topics.Topics), topics.NextToken)
	rest := must(c.ListTopics(t.Context(), &sns.ListTopicsInput{NextToken: topics.NextToken}))(t)
	equal(t, "the last topic", []types.Topic{{TopicArn: &last}}, rest.Topics)
	subs := must(c.ListSubscriptions(t.Context(), &sns.ListSubscriptionsInput{}))(t)
	check("subscriptions", len(subs.Subscriptions), subs.NextToken)
	of := must(c.ListSubscriptionsByTopic(t.Context(), &sns.ListSubscriptionsByTopicInput{TopicArn: aws.String(topicARN("topic-000"))}))(t)
	check("subscriptions of a topic", len(of.Subscriptions), of.NextToken)
}

// A subscription is confirmed by its token; of the topic only the region counts.
func TestConfirmByToken(t *testing.T) {
	endpoint := start(t)
	c, h := topicsClient(endpoint), newHook(t)
	topic := createTopic(t, c, "orders")
	sub := subscribe(t, c, topic, "http", h.URL)
	token, _ := decode(t, h.next(t).Body)["Token"].(string)
	if len(token) != 288 || strings.Trim(token, "0123456789abcdef") != "" {
		t.Errorf("the token is %q", token)
	}
	unknown := strings.Repeat("0a", 144)
	visitWith := func(topic, token string) string {
		t.Helper()
		r := visit(t, endpoint+"/?Action=ConfirmSubscription&TopicArn="+topic+"&Token="+token)
		if _, text, refused := strings.Cut(r.Body, "<Message>"); refused {
			text, _, _ = strings.Cut(text, "</Message>")
			return fmt.Sprint(r.Status, " ", text)
		}
		_, arn, _ := strings.Cut(r.Body, "<SubscriptionArn>")
		arn, _, _ = strings.Cut(arn, "</SubscriptionArn>")
		return fmt.Sprint(r.Status, " ", arn)
	}
	abroad := strings.Replace(topic, region, "eu-west-1", 1)
	for _, tc := range []struct{ topic, token, want string }{
		{"not-an-arn", token, "400 Invalid parameter: Topic"},
		{abroad, token, "400 Invalid parameter: Topic"},
		{topic, unknown, "400 Invalid parameter: Token"},
		{topicARN("none"), unknown, "400 Invalid parameter: Token"},
		{topic, "abc123", "400 Invalid parameter: Token"},
		{topic, "randomtoken", "400 Invalid token"},
		{topicARN("none"), token, "200 " + sub},
		{topic, token, "200 " + sub},
		{topicARN("none"), token, "200 " + sub},
	} {
		equal(t, tc.topic+" "+tc.token, tc.want, visitWith(tc.topic, tc.token))
	}
	// The same with a signature.
	confirm := func(topic, token string) (*sns.ConfirmSubscriptionOutput, error) {
		return c.ConfirmSubscription(t.Context(), &sns.ConfirmSubscriptionInput{TopicArn: &topic, Token: &token})
	}
	equal(t, "signed", sub, *must(confirm(topicARN("none"), token))(t).SubscriptionArn)
	for _, tc := range []struct{ topic, token, text string }{
		{"not-an-arn", token, "Invalid parameter: Topic"},
		{abroad, token, "Invalid parameter: Topic"},
		{topicARN("none"), unknown, "Invalid parameter: Token"},
		{topic, "randomtoken", "Invalid token"},
	} {
		_, err := confirm(tc.topic, tc.token)
		refused(t, err, "InvalidParameter", 400, tc.text)
	}
	// A token goes with its topic.
	must(c.DeleteTopic(t.Context(), &sns.DeleteTopicInput{TopicArn: &topic}))(t)
	equal(t, "of a topic that is gone", "400 Invalid parameter: Token", visitWith(topic, token))

	// Links of subscriptions in other regions work: they name the region by the ARN.
	other := topicsClientOf(endpoint, "eu-west-1", "test")
	subscribe(t, other, createTopic(t, other, "orders"), "http", h.URL)
	link, _ := decode(t, h.next(t).Body)["SubscribeURL"].(string)
	equal(t, "abroad", 200, visit(t, link).Status)
}

// A data type has anything behind its dot.
func TestDataTypesWithLabels(t *testing.T) {
	endpoint := start(t)
	c, q := topicsClient(endpoint), client(endpoint)
	topic, url := createTopic(t, c, "orders"), createQueue(t, q, "q")
	subscribe(t, c, topic, "sqs", queueARN("q"), "RawMessageDelivery", "true")
	publish := func(dataType string) error {
		return errorOf(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("m"), MessageAttributes: map[string]types.MessageAttributeValue{
			"attr1": {DataType: &dataType, StringValue: aws.String("v")},
		}}))
	}
	for _, dataType := range []string{"String.prefixed", "String.  prefixed.", "String.é"} {
		if err := publish(dataType); err != nil {
			t.Errorf("%q: %v", dataType, err)
			continue
		}
		equal(t, "the type that came", dataType, *takeMessage(t, q, url).MessageAttributes["attr1"].DataType)
	}
	for _, dataType := range []string{"String.", "Stringprefixed"} {
		refused(t, publish(dataType), "ParameterValueInvalid", 400,
			"The message attribute 'attr1' has an invalid message attribute type, the set of supported type prefixes is Binary, Number, and String.")
	}
}

// A standard queue gets nothing of a FIFO topic's groups, whichever way it goes; of a
// standard topic's it does.
func TestGroupInStandardQueue(t *testing.T) {
	endpoint := start(t)
	c, q := topicsClient(endpoint), client(endpoint)
	topic, url := createFIFOTopic(t, c, "orders.fifo"), createQueue(t, q, "q")
	for raw, body := range map[string]string{"false": "enveloped", "true": "raw"} {
		sub := subscribe(t, c, topic, "sqs", queueARN("q"), "RawMessageDelivery", raw)
		publishTo(t, c, topic, "g", body+"-at-once")
		post(t, endpoint+"/_godwit/faults", `{"arn":"`+queueARN("q")+`","fault":"unavailable"}`)
		publishTo(t, c, topic, "g", body+"-later")
		post(t, endpoint+"/_godwit/faults", `{"arn":"`+queueARN("q")+`","fault":"none"}`)
		advance(t, endpoint, "1m")
		for range 2 {
			m := takeMessage(t, q, url)
			equal(t, "attributes of "+*m.Body, []string{"ApproximateFirstReceiveTimestamp", "ApproximateReceiveCount", "SenderId", "SentTimestamp"},
				slices.Sorted(maps.Keys(m.Attributes)))
		}
		must(c.Unsubscribe(t.Context(), &sns.UnsubscribeInput{SubscriptionArn: &sub}))(t)
	}
	standard := createTopic(t, c, "orders")
	subscribe(t, c, standard, "sqs", queueARN("q"))
	must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &standard, Message: aws.String("m"), MessageGroupId: aws.String("g")}))(t)
	equal(t, "the group of a standard topic", "g", takeMessage(t, q, url).Attributes["MessageGroupId"])
}

// Every topic's messages are numbered from elsewhere, and those of the queue that gets
// them have numbers of their own.
func TestSequenceNumbersBeginElsewhere(t *testing.T) {
	endpoint := start(t)
	c, q := topicsClient(endpoint), client(endpoint)
	a, b := createFIFOTopic(t, c, "a.fifo"), createFIFOTopic(t, c, "b.fifo")
	url := createFIFO(t, q, "q.fifo")
	subscribe(t, c, a, "sqs", queueARN("q.fifo"))
	first, second := publishTo(t, c, a, "g", "1"), publishTo(t, c, a, "g", "2")
	equal(t, "the next", sequence(t, first)+1, sequence(t, second))
	other := publishTo(t, c, b, "g", "1")
	m := takeMessage(t, q, url)
	equal(t, "in the envelope", *first.SequenceNumber, decode(t, *m.Body)["SequenceNumber"])
	numbers := []string{*first.SequenceNumber, *other.SequenceNumber, m.Attributes["SequenceNumber"]}
	for i, n := range numbers {
		if len(n) != 20 || slices.Contains(numbers[:i], n) {
			t.Errorf("sequence numbers %q", numbers)
		}
	}
	for _, n := range numbers[:2] {
		if strings.Contains(n, "000000000000") {
			t.Errorf("%s looks as if it named an account", n)
		}
	}
}

// A batch that is published again is answered as at first, and delivers nothing.
func TestBatchPublishedAgain(t *testing.T) {
	endpoint := start(t)
	c, q := topicsClient(endpoint), client(endpoint)
	topic, url := createFIFOTopic(t, c, "orders.fifo", "ContentBasedDeduplication", "true"), createFIFO(t, q, "q.fifo")
	subscribe(t, c, topic, "sqs", queueARN("q.fifo"), "RawMessageDelivery", "true")
	batch := &sns.PublishBatchInput{TopicArn: &topic, PublishBatchRequestEntries: []types.PublishBatchRequestEntry{
		{Id: aws.String("1"), Message: aws.String("a"), MessageGroupId: aws.String("g"), MessageDeduplicationId: aws.String("d")},
		{Id: aws.String("2"), Message: aws.String("b"), MessageGroupId: aws.String("g")}, // by its content
	}}
	first := must(c.PublishBatch(t.Context(), batch))(t)
	equal(t, "published again", first.Successful, must(c.PublishBatch(t.Context(), batch))(t).Successful)
	equal(t, "received", []string{"a", "b"}, bodies(receive(t, q, url, 10)))
}

// Where a refused policy's fault is, over the wire.
func TestFilterPolicyFaultsHavePlaces(t *testing.T) {
	c := topicsClient(start(t))
	topic := createTopic(t, c, "orders")
	arn := subscribe(t, c, topic, "sqs", queueARN("there"))
	const (
		form   = `FilterPolicy: "suffix" must be an object or an array`
		word   = "failed to parse JSON. Unexpected character ('i' (code 105)): was expecting double-quote to start field name"
		nested = "Filter policy scope MessageAttributes does not support nested filter policy"
	)
	for _, tc := range []struct{ name, value, text string }{
		{"FilterPolicy", `{"key":{"suffix":"value"}}`, form + faultAt(19)},
		{"FilterPolicy", `{"key":{"not-an-operator":"value"}}`, `FilterPolicy: "not-an-operator" must be an object or an array` + faultAt(28)},
		{"FilterPolicy", `{"key":[{"anything-but":{"prefix":false}}]}`, "FilterPolicy: prefix match pattern must be a string" + faultAt(40)},
		{"FilterPolicy", `{invalidjson}`, "FilterPolicy: " + word + faultAt(2)},
		{"RedrivePolicy", `{invalidjson}`, "RedrivePolicy: " + word + faultAt(2)},
		{"FilterPolicy", `{"object":{"key":[{"prefix":"auto-"}]}}`, nested},
	} {
		_, err := c.Subscribe(t.Context(), &sns.SubscribeInput{
			TopicArn: &topic, Protocol: aws.String("sqs"), Endpoint: aws.String(queueARN("q")), Attributes: map[string]string{tc.name: tc.value},
		})
		refused(t, err, "InvalidParameter", 400, "Invalid parameter: Attributes Reason: "+tc.text)
		_, err = c.SetSubscriptionAttributes(t.Context(), &sns.SetSubscriptionAttributesInput{
			SubscriptionArn: &arn, AttributeName: &tc.name, AttributeValue: &tc.value,
		})
		refused(t, err, "InvalidParameter", 400, "Invalid parameter: "+tc.text)
	}
}

// A dot in a policy's key and one in a body's mean the same as nesting.
func TestFilterKeysWithDots(t *testing.T) {
	endpoint := start(t)
	c, q := topicsClient(endpoint), client(endpoint)
	topic, url := createTopic(t, c, "orders"), createQueue(t, q, "q")
	subscribe(t, c, topic, "sqs", queueARN("q"), "RawMessageDelivery", "true", "FilterPolicyScope", "MessageBody", "FilterPolicy", `{"object.nested.test":["v"]}`)
	for _, body := range []string{
		`{"object":{"nested":{"test":"v"}}}`, `{"object.nested.test":"v"}`, `{"object.nested":{"test":"v"}}`, `{"object":{"nested.test":"v"}}`,
	} {
		must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String(`{"object":{"nested":{"test":"w"}}}`)}))(t)
		must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: &body}))(t)
		equal(t, "received", body, *takeMessage(t, q, url).Body)
	}
}

// The headers of each kind of request to a web hook.
func TestWebHookHeaders(t *testing.T) {
	endpoint := start(t)
	c, h := topicsClient(endpoint), newHook(t)
	topic := createTopic(t, c, "orders")
	always := []string{
		"Accept-Encoding", "Connection", "Content-Length", "Content-Type", "User-Agent",
		"X-Amz-Sns-Message-Id", "X-Amz-Sns-Message-Type", "X-Amz-Sns-Topic-Arn",
	}
	check := func(kind string, r hookRequest, more ...string) {
		t.Helper()
		equal(t, "type", kind, r.Header.Get("x-amz-sns-message-type"))
		equal(t, "headers of "+kind, slices.Sorted(slices.Values(append(more, always...))), slices.Sorted(maps.Keys(r.Header)))
		equal(t, "Connection", "Keep-Alive", r.Header.Get("Connection"))
	}
	arn := subscribe(t, c, topic, "http", h.URL)
	confirmation := h.next(t)
	check("SubscriptionConfirmation", confirmation)
	link, _ := decode(t, confirmation.Body)["SubscribeURL"].(string)
	equal(t, "confirmed", 200, visit(t, link).Status)
	publish := func() {
		t.Helper()
		must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("m")}))(t)
	}
	publish()
	check("Notification", h.next(t), "X-Amz-Sns-Subscription-Arn")
	must(c.SetSubscriptionAttributes(t.Context(), &sns.SetSubscriptionAttributesInput{
		SubscriptionArn: &arn, AttributeName: aws.String("RawMessageDelivery"), AttributeValue: aws.String("true"),
	}))(t)
	publish()
	check("Notification", h.next(t), "X-Amz-Sns-Subscription-Arn", "X-Amz-Sns-Rawdelivery")
	equal(t, "unsubscribed", 200, visit(t, endpoint+"/?Action=Unsubscribe&SubscriptionArn="+arn).Status)
	check("UnsubscribeConfirmation", h.next(t), "X-Amz-Sns-Subscription-Arn")
}

// A function is told that its event is signed by version 1, whichever it is.
func TestSignatureOfEvents(t *testing.T) {
	endpoint := start(t)
	topics := topicsClient(endpoint)
	f, topic, _ := subscribedFunction(t, endpoint)
	allowTopic(t, functionsClient(endpoint), "f", topic)
	for _, version := range []string{"1", "2"} {
		setTopic(t, topics, topic, "SignatureVersion", version)
		must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("hello")}))(t)
		advance(t, endpoint, "0s")
		got := f.ran()
		if len(got) != 1 {
			t.Fatalf("%d runs", len(got))
		}
		event := decode(t, got[0])["Records"].([]any)[0].(map[string]any)["Sns"].(map[string]any)
		equal(t, "SignatureVersion", any("1"), event["SignatureVersion"])
		for _, by := range []string{"1", "2"} {
			envelope := map[string]any{"SigningCertURL": event["SigningCertUrl"], "SignatureVersion": by}
			for _, name := range []string{"Message", "MessageId", "Signature", "Timestamp", "TopicArn", "Type"} {
				envelope[name] = event[name]
			}
			document, _ := json.Marshal(envelope)
			if err := verify(t, string(document)); (err == nil) != (by == version) {
				t.Errorf("a topic of version %s, verified by %s: %v", version, by, err)
			}
		}
	}
}
