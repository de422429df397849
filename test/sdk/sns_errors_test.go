package sdk_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/test/checklist"
)

// topicCalls are a request of each action that has all that it must have.
var topicCalls = map[string][]string{
	"AddPermission": {
		"TopicArn", topicARN("orders"), "Label", "l", "AWSAccountId.member.1", "111122223333", "ActionName.member.1", "Publish",
	},
	"ConfirmSubscription": {"TopicArn", topicARN("orders"), "Token", "t"},
	"CreatePlatformApplication": {
		"Name", "a", "Platform", "GCM", "Attributes.entry.1.key", "PlatformCredential", "Attributes.entry.1.value", "c",
	},
	"CreatePlatformEndpoint":             {"PlatformApplicationArn", unknownApp, "Token", "t"},
	"DeleteEndpoint":                     {"EndpointArn", unknownEndpoint},
	"DeletePlatformApplication":          {"PlatformApplicationArn", unknownApp},
	"GetEndpointAttributes":              {"EndpointArn", unknownEndpoint},
	"GetPlatformApplicationAttributes":   {"PlatformApplicationArn", unknownApp},
	"ListEndpointsByPlatformApplication": {"PlatformApplicationArn", unknownApp},
	"ListPlatformApplications":           {},
	"SetEndpointAttributes":              {"EndpointArn", unknownEndpoint, "Attributes.entry.1.key", "Enabled", "Attributes.entry.1.value", "true"},
	"SetPlatformApplicationAttributes":   {"PlatformApplicationArn", unknownApp, "Attributes.entry.1.key", "Enabled", "Attributes.entry.1.value", "true"},

	"CreateTopic":               {"Name", "another"},
	"DeleteTopic":               {"TopicArn", topicARN("orders")},
	"GetDataProtectionPolicy":   {"ResourceArn", topicARN("orders")},
	"PutDataProtectionPolicy":   {"ResourceArn", topicARN("orders"), "DataProtectionPolicy", "{}"},
	"GetSubscriptionAttributes": {"SubscriptionArn", topicARN("orders") + ":id"},
	"GetTopicAttributes":        {"TopicArn", topicARN("orders")},
	"ListSubscriptions":         {},
	"ListSubscriptionsByTopic":  {"TopicArn", topicARN("orders")},
	"ListTagsForResource":       {"ResourceArn", topicARN("orders")},
	"ListTopics":                {},
	"Publish":                   {"TopicArn", topicARN("orders"), "Message", "m"},
	"PublishBatch":              {"TopicArn", topicARN("orders"), "PublishBatchRequestEntries.member.1.Id", "a", "PublishBatchRequestEntries.member.1.Message", "m"},
	"RemovePermission":          {"TopicArn", topicARN("orders"), "Label", "l"},
	"SetSubscriptionAttributes": {"SubscriptionArn", topicARN("orders") + ":id", "AttributeName", "RawMessageDelivery", "AttributeValue", "true"},
	"SetTopicAttributes":        {"TopicArn", topicARN("orders"), "AttributeName", "DisplayName", "AttributeValue", "d"},
	"Subscribe":                 {"TopicArn", topicARN("orders"), "Protocol", "sqs", "Endpoint", queueARN("q")},
	"TagResource":               {"ResourceArn", topicARN("orders"), "Tags.member.1.Key", "k", "Tags.member.1.Value", "v"},
	"Unsubscribe":               {"SubscriptionArn", topicARN("orders") + ":id"},
	"UntagResource":             {"ResourceArn", topicARN("orders"), "TagKeys.member.1", "k"},

	"CheckIfPhoneNumberIsOptedOut": {"phoneNumber", "+15551234567"},
	"CreateSMSSandboxPhoneNumber":  {"PhoneNumber", "+15551234567"},
	"DeleteSMSSandboxPhoneNumber":  {"PhoneNumber", "+15551234567"},
	"GetSMSAttributes":             {},
	"GetSMSSandboxAccountStatus":   {},
	"ListOriginationNumbers":       {},
	"ListPhoneNumbersOptedOut":     {},
	"ListSMSSandboxPhoneNumbers":   {},
	"OptInPhoneNumber":             {"phoneNumber", "+15551234567"},
	"SetSMSAttributes":             {"attributes.entry.1.key", "DefaultSMSType", "attributes.entry.1.value", "Promotional"},
	"VerifySMSSandboxPhoneNumber":  {"PhoneNumber", "+15551234567", "OneTimePassword", "123456"},
}

// builtActions are the actions of a service but for those that are exempt as a
// whole.
func builtActions(t *testing.T, service string) []string {
	t.Helper()
	model := must(checklist.Load(service))(t)
	for _, e := range must(checklist.Exemptions(service))(t) {
		if len(e.Errors)+len(e.Protocols) == 0 {
			for _, action := range e.Actions {
				delete(model.Actions, action)
			}
		}
	}
	return slices.Sorted(maps.Keys(model.Actions))
}

// What can befall any call: the service is in trouble, the caller may do
// nothing, the signature is an old one. Nothing is done then.
func TestEveryTopicActionCanFail(t *testing.T) {
	endpoint := start(t)
	c := topicsClient(endpoint)
	createTopic(t, c, "orders")
	subscribe(t, c, topicARN("orders"), "sqs", queueARN("work"))
	before := topicAttributes(t, c, topicARN("orders"))
	fault := func(name string) {
		t.Helper()
		if r := post(t, endpoint+"/_godwit/faults", `{"arn":"arn:aws:sns:`+region+":"+account+`:*","fault":"`+name+`"}`); r.Status != 200 {
			t.Fatalf("fault %s: %d %s", name, r.Status, r.Body)
		}
	}
	want := func(operation string, r response, status int, side, code, text string) {
		t.Helper()
		equal(t, operation, fmt.Sprint(status, ` <ErrorResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><Error><Type>`, side, `</Type><Code>`, code,
			`</Code><Message>`, text, `</Message></Error><RequestId>ID</RequestId></ErrorResponse>`), fmt.Sprint(r.Status, " ", withoutIDs(r.Body)))
	}
	for _, action := range builtActions(t, "sns") {
		call, there := topicCalls[action]
		if !there {
			t.Errorf("no request of %s to try", action)
			continue
		}
		want(action, callTopics(t, endpoint, action, append(slices.Clone(call), "AWSAccessKeyId", "test", "SignatureVersion", "2", "Signature", "s")...),
			403, "Sender", "InvalidSecurity", "The request must be signed with Signature Version 4.")
		fault("internal")
		want(action, callTopics(t, endpoint, action, call...), 500, "Receiver", "InternalError", "We encountered an internal error. Please try again.")
		fault("unavailable")
		want(action, callTopics(t, endpoint, action, call...), 503, "Receiver", "ServiceUnavailable", "The service is unavailable.")
		fault("throttled")
		want(action, callTopics(t, endpoint, action, call...), 429, "Sender", "Throttled", "Rate exceeded.")
		fault("denied")
		want(action, callTopics(t, endpoint, action, call...), 403, "Sender", "AuthorizationError",
			"The caller is not authorized to perform this action, because no identity-based policy allows it.")
		fault("none")
	}
	// Other accounts and regions do not notice.
	fault("denied")
	createTopic(t, topicsClientOf(endpoint, "eu-west-1", "test"), "orders")
	createTopic(t, topicsClientOf(endpoint, region, "111122223333"), "orders")
	createQueue(t, client(endpoint), "q")
	fault("none")
	equal(t, "the topic afterwards", before, topicAttributes(t, c, topicARN("orders")))
	equal(t, "topics", 1, len(must(c.ListTopics(t.Context(), &sns.ListTopicsInput{}))(t).Topics))
}

// What is another's, is not there, or has no name, action by action.
func TestTopicActionsRefuse(t *testing.T) {
	endpoint := start(t)
	c := topicsClient(endpoint)
	createTopic(t, c, "orders")
	for _, action := range builtActions(t, "sns") {
		call := topicCalls[action]
		// The resource is the first parameter where there is one.
		if len(call) == 0 || !strings.HasSuffix(call[0], "Arn") || strings.Contains(action, "Platform") || strings.Contains(action, "Endpoint") || strings.Contains(action, "DataProtection") {
			continue
		}
		with := func(resource string) []string {
			changed := slices.Clone(call)
			changed[1] = resource
			return changed
		}
		wantCode := func(what string, r response, status int, code string) {
			t.Helper()
			if r.Status != status || !strings.Contains(r.Body, "<Code>"+code+"</Code>") {
				t.Errorf("%s of %s: %d %s, want %d %s", action, what, r.Status, r.Body, status, code)
			}
		}
		suffix := strings.TrimPrefix(call[1], topicARN("orders"))
		wantCode("no ARN", callTopics(t, endpoint, action, with("orders")...), 400, "InvalidParameter")
		wantCode("a queue", callTopics(t, endpoint, action, with(queueARN("orders"))...), 400, "InvalidParameter")
		missing := callTopics(t, endpoint, action, with(topicARN("none")+suffix)...)
		switch action {
		case "DeleteTopic", "Unsubscribe":
			equal(t, action+" of what is not there", 200, missing.Status)
		case "TagResource", "UntagResource", "ListTagsForResource":
			wantCode("what is not there", missing, 404, "ResourceNotFound")
		case "ConfirmSubscription": // goes by the token
			wantCode("what is not there", missing, 400, "InvalidParameter")
		default:
			wantCode("what is not there", missing, 404, "NotFound")
		}
	}
	for _, action := range []string{"ListTopics", "ListSubscriptions"} {
		if r := callTopics(t, endpoint, action, "NextToken", "nonsense"); r.Status != 400 || !strings.Contains(r.Body, "<Code>InvalidParameter</Code>") {
			t.Errorf("%s: %d %s", action, r.Status, r.Body)
		}
	}
}

// The quotas, which are off by default.
func TestTopicQuotas(t *testing.T) {
	endpoint := startWith(t, func(c *config.Config) { c.MaxTopics, c.MaxSubscriptions, c.MaxFilterPolicies = 2, 3, 1 })
	c := topicsClient(endpoint)
	topic := createTopic(t, c, "a")
	createTopic(t, c, "b")
	_, err := c.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String("c")})
	refused(t, err, "TopicLimitExceeded", 403, "The account has as many topics as it may have.")
	createTopic(t, c, "a") // it is there
	createTopic(t, topicsClientOf(endpoint, "eu-west-1", "test"), "c")
	must(c.DeleteTopic(t.Context(), &sns.DeleteTopicInput{TopicArn: aws.String(topicARN("b"))}))(t)
	createTopic(t, c, "c")

	const tooMany, tooManyFilters = "The account has as many subscriptions as it may have.", "The account has as many filter policies as it may have."
	in := func(queue string, attributes map[string]string) *sns.SubscribeInput {
		return &sns.SubscribeInput{
			TopicArn: &topic, Protocol: aws.String("sqs"), Endpoint: aws.String(queueARN(queue)), Attributes: attributes, ReturnSubscriptionArn: true,
		}
	}
	// Two web hooks that will find no room when they confirm.
	filtered, plain := newHook(t), newHook(t)
	token := func(h *hook) string {
		t.Helper()
		token, _ := decode(t, h.next(t).Body)["Token"].(string)
		return token
	}
	confirm := func(token string) error {
		_, err := c.ConfirmSubscription(t.Context(), &sns.ConfirmSubscriptionInput{TopicArn: &topic, Token: &token})
		return err
	}
	subscribe(t, c, topic, "http", filtered.URL, "FilterPolicy", `{"a":["b"]}`)
	filteredToken := token(filtered)
	subscribe(t, c, topic, "http", plain.URL)
	plainToken := token(plain)

	filter := map[string]string{"FilterPolicy": `{"a":["b"]}`}
	must(c.Subscribe(t.Context(), in("q1", filter)))(t)
	_, err = c.Subscribe(t.Context(), in("q2", filter))
	refused(t, err, "FilterPolicyLimitExceeded", 403, tooManyFilters)
	second := must(c.Subscribe(t.Context(), in("q2", nil)))(t).SubscriptionArn
	_, err = c.SetSubscriptionAttributes(t.Context(), &sns.SetSubscriptionAttributesInput{
		SubscriptionArn: second, AttributeName: aws.String("FilterPolicy"), AttributeValue: aws.String(`{"a":["b"]}`),
	})
	refused(t, err, "FilterPolicyLimitExceeded", 403, tooManyFilters)
	refused(t, confirm(filteredToken), "FilterPolicyLimitExceeded", 403, tooManyFilters)
	must(c.Subscribe(t.Context(), in("q3", nil)))(t)
	_, err = c.Subscribe(t.Context(), in("q4", nil))
	refused(t, err, "SubscriptionLimitExceeded", 403, tooMany)
	refused(t, confirm(plainToken), "SubscriptionLimitExceeded", 403, tooMany)
	counts := topicAttributes(t, c, topic)
	equal(t, "confirmed and pending", "3 2", counts["SubscriptionsConfirmed"]+" "+counts["SubscriptionsPending"])
	must(c.Unsubscribe(t.Context(), &sns.UnsubscribeInput{SubscriptionArn: second}))(t)
	if err := confirm(plainToken); err != nil {
		t.Error(err)
	}
}

// Messages a second, counted by account and region, by each entry of a batch.
func TestPublishQuota(t *testing.T) {
	endpoint := startWith(t, func(c *config.Config) { c.MaxPublishes = 12 })
	c, abroad := topicsClient(endpoint), topicsClientOf(endpoint, "eu-west-1", "test")
	publish := func(c *sns.Client) error {
		topic := createTopic(t, c, "orders")
		return errorOf(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("m")}))
	}
	var entries []types.PublishBatchRequestEntry
	for i := range 10 {
		entries = append(entries, batchEntry(fmt.Sprint(i), "m"))
	}
	batch := func() error {
		topic := createTopic(t, c, "orders")
		return errorOf(c.PublishBatch(t.Context(), &sns.PublishBatchInput{TopicArn: &topic, PublishBatchRequestEntries: entries}))
	}
	if err := batch(); err != nil {
		t.Error(err)
	}
	refused(t, batch(), "Throttled", 429, "Rate exceeded")
	for range 2 {
		if err := publish(c); err != nil {
			t.Error(err)
		}
	}
	refused(t, publish(c), "Throttled", 429, "Rate exceeded")
	if err := publish(abroad); err != nil {
		t.Error(err)
	}
	advance(t, endpoint, "1s")
	if err := batch(); err != nil {
		t.Error(err)
	}
}

// What is to be encrypted under a key that does not exist is not taken in: neither
// by a topic, nor by a queue that has subscribed, nor as a dead letter.
func TestTopicsKeyThatDoesNotExist(t *testing.T) {
	endpoint := start(t)
	c, queues := topicsClient(endpoint), client(endpoint)
	topic, queue, dead := createTopic(t, c, "t"), createQueue(t, queues, "q"), createQueue(t, queues, "dead")
	sub := subscribe(t, c, topic, "sqs", queueARN("q"), "RawMessageDelivery", "true", "RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("dead")+`"}`)
	set := func(key string) {
		t.Helper()
		must(c.SetTopicAttributes(t.Context(), &sns.SetTopicAttributesInput{TopicArn: &topic, AttributeName: aws.String("KmsMasterKeyId"), AttributeValue: &key}))(t)
	}
	const kms = "arn:aws:kms:us-east-1:000000000000:"
	for key, text := range map[string]string{
		"mrk-1":        "Key '" + kms + "key/mrk-1' does not exist",
		"alias/orders": "Alias " + kms + "alias/orders is not found.",
	} {
		set(key)
		_, err := c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("lost")})
		refused(t, err, "KMSNotFound", http.StatusBadRequest, text)
		_, err = c.PublishBatch(t.Context(), &sns.PublishBatchInput{TopicArn: &topic, PublishBatchRequestEntries: []types.PublishBatchRequestEntry{{Id: aws.String("1"), Message: aws.String("lost")}}})
		refused(t, err, "KMSNotFound", http.StatusBadRequest, text)
	}
	for _, key := range []string{"alias/aws/sns", kms + "alias/aws/sns", ""} {
		set(key)
		must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("under " + key)}))(t)
		equal(t, "received", "under "+key, *takeMessage(t, queues, queue).Body)
	}
	for _, url := range []string{queue, dead} {
		must(queues.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: map[string]string{"KmsMasterKeyId": "mrk-1"}}))(t)
	}
	must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("lost")}))(t)
	advance(t, endpoint, "1s")
	for _, url := range []string{queue, dead} {
		equal(t, "in "+url, "0", attributesOf(t, queues, url)["ApproximateNumberOfMessages"])
	}
	set("")
	must(c.Unsubscribe(t.Context(), &sns.UnsubscribeInput{SubscriptionArn: &sub}))(t)
}
