package sdk_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"
)

func topicTag(key, value string) types.Tag { return types.Tag{Key: &key, Value: &value} }

func TestTopicTags(t *testing.T) {
	endpoint := start(t)
	c := topicsClient(endpoint)
	arn := *must(c.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String("orders"), Tags: []types.Tag{topicTag("team", "rental")}}))(t).TopicArn
	tags := func() []types.Tag {
		t.Helper()
		return must(c.ListTagsForResource(t.Context(), &sns.ListTagsForResourceInput{ResourceArn: &arn}))(t).Tags
	}
	equal(t, "TagResource", &sns.TagResourceOutput{}, must(c.TagResource(t.Context(), &sns.TagResourceInput{
		ResourceArn: &arn, Tags: []types.Tag{topicTag("team", "sales"), topicTag("Größe: x/y=1+2@-_.", ""), topicTag("stage", "test")},
	}))(t))
	equal(t, "tags", []types.Tag{topicTag("Größe: x/y=1+2@-_.", ""), topicTag("stage", "test"), topicTag("team", "sales")}, tags())
	equal(t, "UntagResource", &sns.UntagResourceOutput{}, must(c.UntagResource(t.Context(), &sns.UntagResourceInput{
		ResourceArn: &arn, TagKeys: []string{"stage", "never there"},
	}))(t))
	want := []types.Tag{topicTag("Größe: x/y=1+2@-_.", ""), topicTag("team", "sales")}
	equal(t, "tags left", want, tags())

	// CreateTopic compares with the tags of now.
	must(c.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String("orders"), Tags: []types.Tag{topicTag("team", "sales")}}))(t)
	_, err := c.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String("orders"), Tags: []types.Tag{topicTag("team", "rental")}})
	refused(t, err, "InvalidParameter", 400, "Invalid parameter: Tags Reason: Topic already exists with different tags")

	// Refusals change nothing.
	none := aws.String(topicARN("none"))
	const badKey = "Invalid parameter: Tags Reason: a key must have 1 to 128 letters, digits, spaces and characters of _.:/=+-@"
	for _, tc := range []struct {
		name string
		err  error
		code string
		http int
		text string
	}{
		{"tag nothing", errorOf(c.TagResource(t.Context(), &sns.TagResourceInput{ResourceArn: none, Tags: want})), "ResourceNotFound", 404, "Resource does not exist"},
		{"untag nothing", errorOf(c.UntagResource(t.Context(), &sns.UntagResourceInput{ResourceArn: none, TagKeys: []string{"a"}})), "ResourceNotFound", 404, "Resource does not exist"},
		{"tags of nothing", errorOf(c.ListTagsForResource(t.Context(), &sns.ListTagsForResourceInput{ResourceArn: none})), "ResourceNotFound", 404, "Resource does not exist"},
		{"twice", errorOf(c.TagResource(t.Context(), &sns.TagResourceInput{ResourceArn: &arn, Tags: []types.Tag{topicTag("a", "1"), topicTag("a", "2")}})), "InvalidParameter", 400, "Invalid parameter: Duplicated keys are not allowed."},
		{"no key", errorOf(c.TagResource(t.Context(), &sns.TagResourceInput{ResourceArn: &arn, Tags: []types.Tag{topicTag("", "1")}})), "InvalidParameter", 400, badKey},
		{"a long key", errorOf(c.TagResource(t.Context(), &sns.TagResourceInput{ResourceArn: &arn, Tags: []types.Tag{topicTag(strings.Repeat("ö", 129), "1")}})), "InvalidParameter", 400, badKey},
		{"a bad key", errorOf(c.TagResource(t.Context(), &sns.TagResourceInput{ResourceArn: &arn, Tags: []types.Tag{topicTag("a&b", "1")}})), "InvalidParameter", 400, badKey},
		{"a bad key to remove", errorOf(c.UntagResource(t.Context(), &sns.UntagResourceInput{ResourceArn: &arn, TagKeys: []string{"a&b"}})), "InvalidParameter", 400, badKey},
		{"a reserved key", errorOf(c.TagResource(t.Context(), &sns.TagResourceInput{ResourceArn: &arn, Tags: []types.Tag{topicTag("AWS:x", "1")}})), "InvalidParameter", 400, "Invalid parameter: Tags Reason: the prefix aws: is reserved"},
		{"a long value", errorOf(c.TagResource(t.Context(), &sns.TagResourceInput{ResourceArn: &arn, Tags: []types.Tag{topicTag("a", strings.Repeat("x", 257))}})), "InvalidParameter", 400, "Invalid parameter: Tags Reason: a value must have at most 256 letters, digits, spaces and characters of _.:/=+-@"},
		{"no ARN", errorOf(c.ListTagsForResource(t.Context(), &sns.ListTagsForResourceInput{ResourceArn: aws.String("orders")})), "InvalidParameter", 400, "Invalid parameter: ResourceArn Reason: An ARN must have at least 6 elements, not 1"},
	} {
		t.Run(tc.name, func(t *testing.T) { refused(t, tc.err, tc.code, tc.http, tc.text) })
	}
	equal(t, "tags after refusals", want, tags())
	equal(t, "an untagged topic", 0, len(must(c.ListTagsForResource(t.Context(), &sns.ListTagsForResourceInput{
		ResourceArn: aws.String(createTopic(t, c, "untagged")),
	}))(t).Tags))
}

// At most 50 tags, however they come.
func TestTopicTagLimit(t *testing.T) {
	c := topicsClient(start(t))
	many := func(from, to int) (tags []types.Tag) {
		for i := from; i < to; i++ {
			tags = append(tags, topicTag(fmt.Sprint("k", i), "v"))
		}
		return tags
	}
	_, err := c.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String("orders"), Tags: many(0, 51)})
	refused(t, err, "TagLimitExceeded", 400, "Can't add more than 50 tags to a topic.")
	arn := createTopic(t, c, "orders")
	must(c.TagResource(t.Context(), &sns.TagResourceInput{ResourceArn: &arn, Tags: many(0, 50)}))(t)
	_, err = c.TagResource(t.Context(), &sns.TagResourceInput{ResourceArn: &arn, Tags: many(49, 51)})
	refused(t, err, "TagLimitExceeded", 400, "Could not complete request: tag quota of per resource exceeded")
	must(c.TagResource(t.Context(), &sns.TagResourceInput{ResourceArn: &arn, Tags: many(40, 50)}))(t) // replaced, not added
	var keys []string
	for i := range 51 {
		keys = append(keys, fmt.Sprint("k", i))
	}
	_, err = c.UntagResource(t.Context(), &sns.UntagResourceInput{ResourceArn: &arn, TagKeys: keys})
	refused(t, err, "TagLimitExceeded", 400, "Can't add more than 50 tags to a topic.")
	equal(t, "tags", 50, len(must(c.ListTagsForResource(t.Context(), &sns.ListTagsForResourceInput{ResourceArn: &arn}))(t).Tags))
}

// An empty result is a result: clients that look for its element find it.
func TestTagQueries(t *testing.T) {
	endpoint := start(t)
	topic := createTopic(t, topicsClient(endpoint), "orders")
	for _, tc := range []struct {
		operation  string
		parameters []string
		result     string
	}{
		{"TagResource", []string{"Tags.member.1.Key", "a", "Tags.member.1.Value", "1"}, ""},
		{"ListTagsForResource", nil, "<Tags><member><Key>a</Key><Value>1</Value></member></Tags>"},
		{"UntagResource", []string{"TagKeys.member.1", "a"}, ""},
		{"ListTagsForResource", nil, "<Tags></Tags>"},
	} {
		r := callTopics(t, endpoint, tc.operation, append(tc.parameters, "ResourceArn", topic)...)
		equal(t, tc.operation, "200 <"+tc.operation+`Response xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><`+tc.operation+"Result>"+tc.result+
			"</"+tc.operation+"Result><ResponseMetadata><RequestId>ID</RequestId></ResponseMetadata></"+tc.operation+"Response>",
			fmt.Sprint(r.Status, " ", withoutIDs(r.Body)))
	}
	r := callTopics(t, endpoint, "TagResource", "ResourceArn", topic)
	if r.Status != 400 || !strings.Contains(r.Body, "<Code>ValidationError</Code><Message>1 validation error detected: Value null at 'tags' failed") {
		t.Errorf("without tags: %d %s", r.Status, r.Body)
	}
}

func errorOf[T any](_ T, err error) error { return err }
