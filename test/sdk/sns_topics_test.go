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

const defaultDeliveryPolicy = `{"http":{"defaultHealthyRetryPolicy":{"minDelayTarget":20,"maxDelayTarget":20,"numRetries":3,` +
	`"numMaxDelayRetries":0,"numNoDelayRetries":0,"numMinDelayRetries":0,"backoffFunction":"linear"},` +
	`"disableSubscriptionOverrides":false,"defaultRequestPolicy":{"headerContentType":"text/plain; charset=UTF-8"}}}`

func TestTopicLifeCycle(t *testing.T) {
	c := topicsClient(start(t))
	arn := topicARN("orders")

	created := must(c.CreateTopic(t.Context(), &sns.CreateTopicInput{
		Name: aws.String("orders"), Attributes: map[string]string{"DisplayName": "Orders"},
		Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("rental")}},
	}))(t)
	equal(t, "CreateTopic", &sns.CreateTopicOutput{TopicArn: &arn}, created)

	// Again, naming nothing, or what it has.
	for _, in := range []*sns.CreateTopicInput{
		{},
		{Attributes: map[string]string{"DisplayName": "Orders"}},
		{Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("rental")}}},
	} {
		in.Name = aws.String("orders")
		equal(t, "CreateTopic again", &sns.CreateTopicOutput{TopicArn: &arn}, must(c.CreateTopic(t.Context(), in))(t))
	}
	_, err := c.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String("orders"), Attributes: map[string]string{"DisplayName": "Other"}})
	refused(t, err, "InvalidParameter", 400, "Invalid parameter: Attributes Reason: Topic already exists with different attributes")
	_, err = c.CreateTopic(t.Context(), &sns.CreateTopicInput{
		Name: aws.String("orders"), Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("sales")}},
	})
	refused(t, err, "InvalidParameter", 400, "Invalid parameter: Tags Reason: Topic already exists with different tags")

	listed := must(c.ListTopics(t.Context(), &sns.ListTopicsInput{}))(t)
	equal(t, "ListTopics", &sns.ListTopicsOutput{Topics: []types.Topic{{TopicArn: &arn}}}, listed)

	for range 2 { // the second finds nothing, and succeeds
		equal(t, "DeleteTopic", &sns.DeleteTopicOutput{}, must(c.DeleteTopic(t.Context(), &sns.DeleteTopicInput{TopicArn: &arn}))(t))
	}
	_, err = c.GetTopicAttributes(t.Context(), &sns.GetTopicAttributesInput{TopicArn: &arn})
	refused(t, err, "NotFound", 404, "Topic does not exist")
	listed = must(c.ListTopics(t.Context(), &sns.ListTopicsInput{}))(t)
	if len(listed.Topics) != 0 || listed.NextToken != nil {
		t.Errorf("after the deletion there are %d topics, token %v", len(listed.Topics), listed.NextToken)
	}
}

func TestTopicAttributes(t *testing.T) {
	c := topicsClient(start(t))
	arn := createTopic(t, c, "orders")
	initial := map[string]string{
		"TopicArn": arn, "Owner": account, "DisplayName": "",
		"SubscriptionsConfirmed": "0", "SubscriptionsPending": "0", "SubscriptionsDeleted": "0",
		"EffectiveDeliveryPolicy": defaultDeliveryPolicy,
	}
	got := topicAttributes(t, c, arn)
	equal(t, "a new topic", initial, without(got, "Policy"))
	policy := decode(t, got["Policy"])
	if policy["Version"] != "2008-10-17" || policy["Id"] != "__default_policy_ID" {
		t.Errorf("the default policy is %s", got["Policy"])
	}

	set := func(name, value string) error {
		_, err := c.SetTopicAttributes(t.Context(), &sns.SetTopicAttributesInput{TopicArn: &arn, AttributeName: &name, AttributeValue: &value})
		return err
	}
	for _, pair := range [][2]string{
		{"DisplayName", "Orders of today"},
		{"SignatureVersion", "2"},
		{"Policy", `{ "Version": "2012-10-17", "Statement": ` + allowAll("SNS:Publish") + ` }`},
		{"HTTPSuccessFeedbackSampleRate", "50"},
		{"LambdaFailureFeedbackRoleArn", "arn:aws:iam::000000000000:role/logs"},
		{"KmsMasterKeyId", "alias/aws/sns"},
		{"TracingConfig", "Active"},
		{"DeliveryPolicy", `{ "http": { "defaultHealthyRetryPolicy": { "minDelayTarget": 1, "maxDelayTarget": 60, "numRetries": 50,
			"numNoDelayRetries": 3, "numMinDelayRetries": 2, "numMaxDelayRetries": 35, "backoffFunction": "exponential" } } }`},
	} {
		if err := set(pair[0], pair[1]); err != nil {
			t.Errorf("%s: %v", pair[0], err)
		}
	}
	const retries = `{"minDelayTarget":1,"maxDelayTarget":60,"numRetries":50,"numMaxDelayRetries":35,"numNoDelayRetries":3,"numMinDelayRetries":2,"backoffFunction":"exponential"}`
	equal(t, "after SetTopicAttributes", map[string]string{
		"TopicArn": arn, "Owner": account, "DisplayName": "Orders of today", "SignatureVersion": "2",
		"Policy": `{"Version":"2012-10-17","Statement":` + allowAll("SNS:Publish") + `}`, "HTTPSuccessFeedbackSampleRate": "50",
		"LambdaFailureFeedbackRoleArn": "arn:aws:iam::000000000000:role/logs", "KmsMasterKeyId": "alias/aws/sns", "TracingConfig": "Active",
		"SubscriptionsConfirmed": "0", "SubscriptionsPending": "0", "SubscriptionsDeleted": "0",
		"DeliveryPolicy": `{"http":{"defaultHealthyRetryPolicy":` + retries + `,"disableSubscriptionOverrides":false}}`,
		"EffectiveDeliveryPolicy": `{"http":{"defaultHealthyRetryPolicy":` + retries +
			`,"disableSubscriptionOverrides":false,"defaultRequestPolicy":{"headerContentType":"text/plain; charset=UTF-8"}}}`,
	}, topicAttributes(t, c, arn))

	for _, name := range []string{
		"DisplayName", "SignatureVersion", "Policy", "HTTPSuccessFeedbackSampleRate", "LambdaFailureFeedbackRoleArn", "KmsMasterKeyId",
		"TracingConfig", "DeliveryPolicy",
	} {
		if err := set(name, ""); err != nil {
			t.Errorf("deleting %s: %v", name, err)
		}
	}
	equal(t, "after all were deleted", got, topicAttributes(t, c, arn))

	for _, tc := range []struct{ name, value, text string }{
		{"Owner", "1", "Invalid parameter: AttributeName"},
		{"Nonsense", "1", "Invalid parameter: AttributeName"},
		{
			"DeliveryPolicy", `{"http":{"defaultHealthyRetryPolicy":{"minDelayTarget":1,"maxDelayTarget":1,"numRetries":101}}}`,
			"Invalid parameter: DeliveryPolicy: http.defaultHealthyRetryPolicy.numRetries must be less than or equal to 100",
		},
		{"KmsMasterKeyId", "two words", "Invalid parameter: KmsMasterKeyId: not the id, ARN or alias of a key"},
		{"TracingConfig", "Passive", "Invalid parameter: TracingConfig: Invalid value [Passive]. Must be PassThrough or Active."},
		{"DisplayName", strings.Repeat("é", 101), "Invalid parameter: DisplayName"},
		{"DisplayName", "two\nlines", "Invalid parameter: DisplayName"},
		{"DeliveryPolicy", `{"https":{}}`, "Invalid parameter: DeliveryPolicy: Unexpected JSON member: https"},
	} {
		refused(t, set(tc.name, tc.value), "InvalidParameter", 400, tc.text)
	}
	equal(t, "after refusals", got, topicAttributes(t, c, arn))
}

func TestCreateTopicRefuses(t *testing.T) {
	c := topicsClient(start(t))
	for _, tc := range []struct {
		in   sns.CreateTopicInput
		text string
	}{
		{sns.CreateTopicInput{Name: aws.String("a b")}, "Invalid parameter: Topic Name"},
		{sns.CreateTopicInput{Name: aws.String("a:b")}, "Invalid parameter: Topic Name"},
		{sns.CreateTopicInput{Name: aws.String("a.fifo")}, "Invalid parameter: Topic Name"},
		{
			sns.CreateTopicInput{Name: aws.String("a"), Attributes: map[string]string{"Nonsense": "1"}},
			"Invalid parameter: Attributes Reason: Unknown attribute: Nonsense",
		},
		{
			sns.CreateTopicInput{Name: aws.String("a"), Attributes: map[string]string{
				"DeliveryPolicy": `{"http":{"defaultHealthyRetryPolicy":{"maxDelayTarget":1,"numRetries":1}}}`,
			}},
			"Invalid parameter: Attributes Reason: DeliveryPolicy: http.defaultHealthyRetryPolicy.minDelayTarget must be specified",
		},
		{
			sns.CreateTopicInput{Name: aws.String("a"), Attributes: map[string]string{"DisplayName": strings.Repeat("d", 101)}},
			"Invalid parameter: Attributes Reason: DisplayName",
		},
		{
			sns.CreateTopicInput{Name: aws.String("a"), DataProtectionPolicy: aws.String("{}")},
			"Invalid parameter: DataProtectionPolicy Reason: Version must be 2021-06-01",
		},
		{
			sns.CreateTopicInput{Name: aws.String("a"), Tags: []types.Tag{
				{Key: aws.String("k"), Value: aws.String("1")}, {Key: aws.String("k"), Value: aws.String("2")},
			}},
			"Invalid parameter: Duplicated keys are not allowed.",
		},
	} {
		_, err := c.CreateTopic(t.Context(), &tc.in)
		refused(t, err, "InvalidParameter", http.StatusBadRequest, tc.text)
	}
	if listed := must(c.ListTopics(t.Context(), &sns.ListTopicsInput{}))(t); len(listed.Topics) != 0 {
		t.Errorf("refusals left %d topics", len(listed.Topics))
	}
}

func TestListTopicsPages(t *testing.T) {
	endpoint := start(t)
	c := topicsClient(endpoint)
	var want []types.Topic
	for i := range 201 {
		want = append(want, types.Topic{TopicArn: aws.String(createTopic(t, c, fmt.Sprintf("t%03d", i)))})
	}
	// Neighbours, which are not listed.
	createTopic(t, topicsClientOf(endpoint, "eu-west-1", "test"), "elsewhere")
	createTopic(t, topicsClientOf(endpoint, region, "111122223333"), "another")

	var sizes []int
	var got []types.Topic
	for pages := sns.NewListTopicsPaginator(c, &sns.ListTopicsInput{}); pages.HasMorePages(); {
		page := must(pages.NextPage(t.Context()))(t)
		sizes = append(sizes, len(page.Topics))
		got = append(got, page.Topics...)
	}
	equal(t, "sizes of pages", []int{100, 100, 1}, sizes)
	equal(t, "topics", want, got)
	_, err := c.ListTopics(t.Context(), &sns.ListTopicsInput{NextToken: aws.String("nonsense")})
	refused(t, err, "InvalidParameter", 400, "Invalid parameter: NextToken")
}
