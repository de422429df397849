package sdk_test

import (
	"maps"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

func attributesOf(t *testing.T, c *sqs.Client, url string, names ...types.QueueAttributeName) map[string]string {
	t.Helper()
	if names == nil {
		names = []types.QueueAttributeName{types.QueueAttributeNameAll}
	}
	return must(c.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: names}))(t).Attributes
}

func TestQueueLifeCycle(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	url := endpoint + "/000000000000/orders"

	created := must(c.CreateQueue(t.Context(), &sqs.CreateQueueInput{
		QueueName: aws.String("orders"), Attributes: map[string]string{"VisibilityTimeout": "45", "DelaySeconds": "007"},
		Tags: map[string]string{"team": "rental"},
	}))(t)
	equal(t, "CreateQueue", &sqs.CreateQueueOutput{QueueUrl: &url}, created)

	// Again, naming other attributes with the values that they have, or none.
	for _, attrs := range []map[string]string{nil, {"VisibilityTimeout": "45"}, {"MessageRetentionPeriod": "345600", "DelaySeconds": "7"}} {
		again := must(c.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("orders"), Attributes: attrs}))(t)
		equal(t, "CreateQueue again", &sqs.CreateQueueOutput{QueueUrl: &url}, again)
	}

	found := must(c.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("orders")}))(t)
	equal(t, "GetQueueUrl", &sqs.GetQueueUrlOutput{QueueUrl: &url}, found)
	found = must(c.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("orders"), QueueOwnerAWSAccountId: aws.String(account)}))(t)
	equal(t, "GetQueueUrl with owner", &sqs.GetQueueUrlOutput{QueueUrl: &url}, found)

	listed := must(c.ListQueues(t.Context(), &sqs.ListQueuesInput{}))(t)
	equal(t, "ListQueues", &sqs.ListQueuesOutput{QueueUrls: []string{url}}, listed)

	deleted := must(c.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &url}))(t)
	equal(t, "DeleteQueue", &sqs.DeleteQueueOutput{}, deleted)
	listed = must(c.ListQueues(t.Context(), &sqs.ListQueuesInput{}))(t)
	equal(t, "ListQueues of none", &sqs.ListQueuesOutput{}, listed)
}

func TestQueueAttributes(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	dead := createQueue(t, c, "dead", "RedriveAllowPolicy", `{ "redrivePermission": "byQueue", "sourceQueueArns": ["arn:aws:sqs:us-east-1:000000000000:orders"] }`)
	url := createQueue(t, c, "orders")

	all := attributesOf(t, c, url)
	created := all["CreatedTimestamp"]
	if n, err := strconv.ParseInt(created, 10, 64); err != nil || n < 1_700_000_000 {
		t.Errorf("CreatedTimestamp is %q", created)
	}
	want := map[string]string{
		"QueueArn": "arn:aws:sqs:us-east-1:000000000000:orders", "CreatedTimestamp": created, "LastModifiedTimestamp": created,
		"ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesNotVisible": "0", "ApproximateNumberOfMessagesDelayed": "0",
		"DelaySeconds": "0", "MaximumMessageSize": "1048576", "MessageRetentionPeriod": "345600",
		"ReceiveMessageWaitTimeSeconds": "0", "VisibilityTimeout": "30", "SqsManagedSseEnabled": "true",
	}
	equal(t, "a new queue", want, all)
	equal(t, "no names", map[string]string(nil), must(c.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url}))(t).Attributes)

	set := map[string]string{
		"DelaySeconds": "900", "MaximumMessageSize": "1024", "MessageRetentionPeriod": "60",
		"ReceiveMessageWaitTimeSeconds": "20", "VisibilityTimeout": "43200",
		"Policy":             `{ "Version": "2012-10-17", "Statement": ` + allowAll("sqs:*") + ` }`,
		"RedrivePolicy":      `{ "maxReceiveCount": "3", "deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:dead" }`,
		"RedriveAllowPolicy": `{ "redrivePermission": "denyAll" }`,
		"KmsMasterKeyId":     "alias/aws/sqs",
	}
	advance(t, endpoint, "10s")
	changed := must(c.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: set}))(t)
	equal(t, "SetQueueAttributes", &sqs.SetQueueAttributesOutput{}, changed)
	maps.Copy(want, set)
	n, _ := strconv.ParseInt(created, 10, 64)
	want["LastModifiedTimestamp"] = strconv.FormatInt(n+10, 10)
	want["Policy"] = `{"Version":"2012-10-17","Statement":` + allowAll("sqs:*") + `}`
	want["RedrivePolicy"] = `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":3}`
	want["RedriveAllowPolicy"] = `{"redrivePermission":"denyAll"}`
	want["SqsManagedSseEnabled"] = "false"
	want["KmsDataKeyReusePeriodSeconds"] = "300"
	equal(t, "all attributes set", want, attributesOf(t, c, url))
	equal(t, "named ones", map[string]string{"VisibilityTimeout": "43200", "Policy": want["Policy"]},
		attributesOf(t, c, url, types.QueueAttributeNameVisibilityTimeout, types.QueueAttributeNamePolicy))

	// The empty string removes; the encryption stays off.
	must(c.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: map[string]string{
		"Policy": "", "RedrivePolicy": "", "RedriveAllowPolicy": "", "KmsMasterKeyId": "",
	}}))(t)
	for _, name := range []string{"Policy", "RedrivePolicy", "RedriveAllowPolicy", "KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds"} {
		delete(want, name)
	}
	equal(t, "removed ones", want, attributesOf(t, c, url))

	equal(t, "the dead-letter queue's", map[string]string{
		"RedriveAllowPolicy": `{"redrivePermission":"byQueue","sourceQueueArns":["arn:aws:sqs:us-east-1:000000000000:orders"]}`,
	}, attributesOf(t, c, dead, types.QueueAttributeNameRedriveAllowPolicy, types.QueueAttributeNameRedrivePolicy))
}

func TestListQueues(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	urls := map[string]string{}
	for _, name := range []string{"b-2", "a-1", "b-1", "b-3", "c"} {
		urls[name] = createQueue(t, c, name)
	}
	equal(t, "all, by name", &sqs.ListQueuesOutput{QueueUrls: []string{urls["a-1"], urls["b-1"], urls["b-2"], urls["b-3"], urls["c"]}},
		must(c.ListQueues(t.Context(), &sqs.ListQueuesInput{}))(t))
	equal(t, "by prefix", &sqs.ListQueuesOutput{QueueUrls: []string{urls["b-1"], urls["b-2"], urls["b-3"]}},
		must(c.ListQueues(t.Context(), &sqs.ListQueuesInput{QueueNamePrefix: aws.String("b-")}))(t))

	var got [][]string
	pages := sqs.NewListQueuesPaginator(c, &sqs.ListQueuesInput{QueueNamePrefix: aws.String("b"), MaxResults: aws.Int32(2)})
	for pages.HasMorePages() {
		got = append(got, must(pages.NextPage(t.Context()))(t).QueueUrls)
	}
	equal(t, "pages", [][]string{{urls["b-1"], urls["b-2"]}, {urls["b-3"]}}, got)
}

func TestRegionsAndAccountsAreApart(t *testing.T) {
	endpoint := start(t)
	here := client(endpoint)
	west := clientOf(endpoint, "eu-west-1", "test")
	other := clientOf(endpoint, region, "111111111111")
	url := createQueue(t, here, "q", "DelaySeconds", "1")
	equal(t, "same account, other region", endpoint+"/queue/eu-west-1/000000000000/q", createQueue(t, west, "q", "DelaySeconds", "2"))
	equal(t, "other account", endpoint+"/111111111111/q", createQueue(t, other, "q", "DelaySeconds", "3"))

	for _, tt := range []struct {
		c          *sqs.Client
		url        string
		arn, delay string
	}{
		{here, url, "arn:aws:sqs:us-east-1:000000000000:q", "1"},
		{west, url, "arn:aws:sqs:eu-west-1:000000000000:q", "2"},
		{other, endpoint + "/111111111111/q", "arn:aws:sqs:us-east-1:111111111111:q", "3"},
		// Hosts and path-style URLs that AWS's older tools make up.
		{here, "http://queue.localhost.localstack.cloud:4566/000000000000/q", "arn:aws:sqs:us-east-1:000000000000:q", "1"},
		{here, endpoint + "/queue/eu-west-1/000000000000/q", "arn:aws:sqs:eu-west-1:000000000000:q", "2"},
	} {
		equal(t, tt.arn, map[string]string{"QueueArn": tt.arn, "DelaySeconds": tt.delay},
			attributesOf(t, tt.c, tt.url, types.QueueAttributeNameQueueArn, types.QueueAttributeNameDelaySeconds))
	}
	must(west.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &url}))(t)
	equal(t, "queues of the first region", []string{url}, must(here.ListQueues(t.Context(), &sqs.ListQueuesInput{}))(t).QueueUrls)
}
