package sdk_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// Each operator, in both scopes, lets through what it should and nothing else.
func TestFilterOperators(t *testing.T) {
	endpoint := start(t)
	topics, queues := topicsClient(endpoint), client(endpoint)
	topic := createTopic(t, topics, "orders")
	// A message is what its key k is; the last one passes every policy, so that
	// all that were to come have come before it.
	const last = `"END"`
	messages := []string{`"open"`, `"Open"`, `"reopened"`, `"10.0.0.7"`, `5`, `7.25`, `["new","open"]`, `[true,7.25]`, `[null]`, ``, last}
	cases := []struct{ rules, passed string }{
		{`"open"`, `"open" ["new","open"]`},
		{`5`, `5`},
		{`true`, `[true,7.25]`},
		{`null`, `[null]`},
		{`{"prefix":"o"}`, `"open" ["new","open"]`},
		{`{"suffix":"open"}`, `"open" ["new","open"]`},
		{`{"equals-ignore-case":"OPEN"}`, `"open" "Open" ["new","open"]`},
		{`{"wildcard":"*ope*"}`, `"open" "reopened" ["new","open"]`},
		{`{"anything-but":["open","END"]}`, `"Open" "reopened" "10.0.0.7" 5 7.25 ["new","open"] [true,7.25] [null]`},
		{`{"anything-but":7.25}`, `"open" "Open" "reopened" "10.0.0.7" 5 ["new","open"] [true,7.25] [null]`},
		{`{"anything-but":{"prefix":"o"}}`, `"Open" "reopened" "10.0.0.7" 5 7.25 ["new","open"] [true,7.25] [null]`},
		{`{"anything-but":{"wildcard":"*ope*"}}`, `"Open" "10.0.0.7" 5 7.25 ["new","open"] [true,7.25] [null]`},
		{`{"numeric":["=",7.25]}`, `7.25 [true,7.25]`},
		{`{"numeric":[">",5]}`, `7.25 [true,7.25]`},
		{`{"numeric":[">=",5,"<",7.25]}`, `5`},
		{`{"exists":true}`, `"open" "Open" "reopened" "10.0.0.7" 5 7.25 ["new","open"] [true,7.25] [null]`},
		{`{"exists":false}`, ` `},
		{`{"cidr":"10.0.0.0/24"}`, `"10.0.0.7"`},
	}
	type subscriber struct{ what, queue, passed string }
	var subscribers []subscriber
	add := func(what, policy, scope, passed string) {
		name := fmt.Sprintf("q%d", len(subscribers))
		url := createQueue(t, queues, name)
		subscribe(t, topics, topic, "sqs", queueARN(name), "FilterPolicy", policy, "FilterPolicyScope", scope)
		subscribers = append(subscribers, subscriber{what + " in " + scope, url, passed})
	}
	for _, tc := range cases {
		for _, scope := range []string{"MessageAttributes", "MessageBody"} {
			add(tc.rules, `{"k":[`+tc.rules+`,`+last+`]}`, scope, tc.passed)
			add("$or with "+tc.rules, `{"other":["x"],"$or":[{"k":[`+tc.rules+`]},{"k":[`+last+`]}]}`, scope, tc.passed)
		}
	}
	add("nested", `{"deep":{"k":["open",`+last+`]}}`, "MessageBody", `"open" ["new","open"]`)

	for _, k := range messages {
		attributes := map[string]types.MessageAttributeValue{"other": textAttribute("x")}
		body := `{"other":"x"}`
		switch {
		case k == "":
		case k[0] == '"':
			attributes["k"] = textAttribute(strings.Trim(k, `"`))
		case k[0] == '[':
			attributes["k"] = textAttribute(k, "String.Array")
		default:
			attributes["k"] = textAttribute(k, "Number")
		}
		if k != "" {
			body = `{"other":"x","k":` + k + `,"deep":[{"j":1},{"k":` + k + `}]}`
		}
		must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: &body, Subject: aws.String("k is " + k), MessageAttributes: attributes}))(t)
	}
	for _, s := range subscribers {
		var passed []string
		for len(passed) == 0 || passed[len(passed)-1] != last {
			subject, _ := decode(t, *takeMessage(t, queues, s.queue).Body)["Subject"].(string)
			passed = append(passed, strings.TrimPrefix(subject, "k is "))
		}
		got := strings.Join(passed[:len(passed)-1], " ")
		if s.passed == " " { // the message without k, whose subject ends in a blank
			s.passed = ""
			equal(t, s.what+": how many", 2, len(passed))
		}
		equal(t, s.what, s.passed, got)
	}
}

// exists false wants an attribute to be there, though not that one; Binary ones
// do not count.
func TestFilterExistsFalse(t *testing.T) {
	endpoint := start(t)
	topics, queues := topicsClient(endpoint), client(endpoint)
	topic, queue := createTopic(t, topics, "orders"), createQueue(t, queues, "q")
	subscribe(t, topics, topic, "sqs", queueARN("q"), "RawMessageDelivery", "true", "FilterPolicy", `{"store":[{"exists":false}]}`)
	for _, m := range []struct {
		text       string
		attributes map[string]types.MessageAttributeValue
	}{
		{"none", nil},
		{"binary only", map[string]types.MessageAttributeValue{"label": {DataType: aws.String("Binary"), BinaryValue: []byte{1}}}},
		{"store", map[string]types.MessageAttributeValue{"store": textAttribute("x"), "other": textAttribute("x")}},
		{"other", map[string]types.MessageAttributeValue{"other": textAttribute("x")}},
	} {
		must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: &m.text, MessageAttributes: m.attributes}))(t)
	}
	equal(t, "what passed", "other", *takeMessage(t, queues, queue).Body)
	equal(t, "left", "0", attributesOf(t, queues, queue)["ApproximateNumberOfMessages"])
}

// faultAt is the second line of a refusal, with the column at which AWS's parser stopped.
func faultAt(column int) string {
	return fmt.Sprintf("\n at [Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: 1, column: %d]", column)
}

func TestFilterPolicyRefusals(t *testing.T) {
	endpoint := start(t)
	c := topicsClient(endpoint)
	topic := createTopic(t, c, "orders")
	arn := subscribe(t, c, topic, "sqs", queueARN("work"), "FilterPolicy", `{"k":["x"]}`)
	many := func(n int) string { return `["v` + strings.Repeat(`","v`, n-1) + `"]` }
	for _, tc := range []struct{ policy, scope, text string }{
		{`{"k":`, "MessageBody", "FilterPolicy: failed to parse JSON."},
		{`{"k":"x"}`, "MessageBody", `FilterPolicy: "k" must be an object or an array` + faultAt(7)},
		{`{"k":[]}`, "MessageBody", "FilterPolicy: Empty arrays are not allowed" + faultAt(8)},
		{`{"k":[["x"]]}`, "MessageBody", "FilterPolicy: Match value must be String, number, true, false, or null" + faultAt(8)},
		{`{"k":[{"like":"x"}]}`, "MessageBody", "FilterPolicy: Unrecognized match type like" + faultAt(16)},
		{`{"k":[{"prefix":"x","suffix":"y"}]}`, "MessageBody", "FilterPolicy: Only one key allowed in match expression" + faultAt(31)},
		{`{"k":[{"suffix":1}]}`, "MessageBody", "FilterPolicy: suffix match pattern must be a string" + faultAt(18)},
		{`{"k":[{"numeric":["<",1,">",0]}]}`, "MessageBody", "FilterPolicy: Too many elements in numeric expression" + faultAt(26)},
		{`{"k":[{"numeric":[">",3,"<",1]}]}`, "MessageBody", "FilterPolicy: Bottom must be less than top" + faultAt(31)},
		{`{"k":[{"exists":"yes"}]}`, "MessageBody", "FilterPolicy: exists match pattern must be either true or false." + faultAt(18)},
		{`{"k":[{"anything-but":{"suffix":"x"}}]}`, "MessageBody", "FilterPolicy: Unsupported anything-but pattern: suffix" + faultAt(34)},
		{`{"k":[{"cidr":"10.0.0.0"}]}`, "MessageBody", "FilterPolicy: Malformed CIDR, one '/' required"},
		{`{"k":{"j":["x"]}}`, "MessageAttributes", "Filter policy scope MessageAttributes does not support nested filter policy"},
		{`{"a":["1"],"b":["1"],"c":["1"],"d":["1"],"e":["1"],"f":["1"]}`, "MessageBody", "FilterPolicy: Filter policy can not have more than 5 keys"},
		{`{"a":` + many(151) + `}`, "MessageAttributes", "FilterPolicy: Filter policy is too complex"},
		{`{"a":{"b":{"c":` + many(4) + `}},"d":{"e":` + many(3) + `},"f":` + many(3) + `}`, "MessageBody", "FilterPolicy: Filter policy is too complex"},
		{`{"$or":[{"a":` + many(100) + `},{"b":` + many(51) + `}]}`, "MessageAttributes", "FilterPolicy: Filter policy is too complex"},
	} {
		_, err := c.Subscribe(t.Context(), &sns.SubscribeInput{
			TopicArn: &topic, Protocol: aws.String("sqs"), Endpoint: aws.String(queueARN("other")),
			Attributes: map[string]string{"FilterPolicy": tc.policy, "FilterPolicyScope": tc.scope},
		})
		refused(t, err, "InvalidParameter", http.StatusBadRequest, "Invalid parameter: Attributes Reason: "+tc.text)
		must(c.SetSubscriptionAttributes(t.Context(), &sns.SetSubscriptionAttributesInput{
			SubscriptionArn: &arn, AttributeName: aws.String("FilterPolicyScope"), AttributeValue: &tc.scope,
		}))(t)
		_, err = c.SetSubscriptionAttributes(t.Context(), &sns.SetSubscriptionAttributesInput{
			SubscriptionArn: &arn, AttributeName: aws.String("FilterPolicy"), AttributeValue: &tc.policy,
		})
		refused(t, err, "InvalidParameter", http.StatusBadRequest, "Invalid parameter: "+tc.text)
	}
	equal(t, "after refusals", `{"k":["x"]}`, subscriptionAttributes(t, c, arn)["FilterPolicy"])
	equal(t, "subscriptions", 1, len(must(c.ListSubscriptions(t.Context(), &sns.ListSubscriptionsInput{}))(t).Subscriptions))
}

// One queue among very many filtered subscriptions gets its messages, and no
// other does, through changes of its policy.
func TestFilterAmongMany(t *testing.T) {
	endpoint := start(t)
	topics, queues := topicsClient(endpoint), client(endpoint)
	topic, queue := createTopic(t, topics, "orders"), createQueue(t, queues, "mine")
	for i := range 200 {
		subscribe(t, topics, topic, "sqs", queueARN(fmt.Sprintf("q%d", i)), "FilterPolicy", fmt.Sprintf(`{"customer":["c%d"],"type":["order"]}`, i))
	}
	arn := subscribe(t, topics, topic, "sqs", queueARN("mine"), "RawMessageDelivery", "true", "FilterPolicy", `{"customer":["me"],"type":["order"]}`)
	publish := func(text, customer string) {
		must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: &text, MessageAttributes: map[string]types.MessageAttributeValue{
			"customer": textAttribute(customer), "type": textAttribute("order"),
		}}))(t)
	}
	publish("not mine", "you")
	publish("mine", "me")
	equal(t, "first", "mine", *takeMessage(t, queues, queue).Body)
	must(topics.SetSubscriptionAttributes(t.Context(), &sns.SetSubscriptionAttributesInput{
		SubscriptionArn: &arn, AttributeName: aws.String("FilterPolicy"), AttributeValue: aws.String(`{"customer":[{"prefix":"y"}]}`),
	}))(t)
	publish("no longer mine", "me")
	publish("now mine", "you")
	equal(t, "second", "now mine", *takeMessage(t, queues, queue).Body)
	must(topics.Unsubscribe(t.Context(), &sns.UnsubscribeInput{SubscriptionArn: &arn}))(t)
	publish("too late", "you")
	out := must(queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &queue}))(t)
	equal(t, "third", 0, len(out.Messages))
}
