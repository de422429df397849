package sdk_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

func batchEntry(id, message string) types.PublishBatchRequestEntry {
	return types.PublishBatchRequestEntry{Id: &id, Message: &message}
}

// Entries that are at fault fail alone; the others go to every subscriber, as
// they would by themselves.
func TestPublishBatch(t *testing.T) {
	endpoint := start(t)
	topics, queues := topicsClient(endpoint), client(endpoint)
	topic := createTopic(t, topics, "orders")
	all, open := createQueue(t, queues, "all"), createQueue(t, queues, "open")
	subscribe(t, topics, topic, "sqs", queueARN("all"))
	subscribe(t, topics, topic, "sqs", queueARN("open"), "RawMessageDelivery", "true", "FilterPolicy", `{"status":["open"]}`)
	status := func(value string) map[string]types.MessageAttributeValue {
		return map[string]types.MessageAttributeValue{"status": textAttribute(value)}
	}
	out := must(topics.PublishBatch(t.Context(), &sns.PublishBatchInput{TopicArn: &topic, PublishBatchRequestEntries: []types.PublishBatchRequestEntry{
		{Id: aws.String("first"), Message: aws.String("one"), Subject: aws.String("An order"), MessageAttributes: status("open")},
		{Id: aws.String("empty"), Message: aws.String("")},
		{Id: aws.String("subject"), Message: aws.String("x"), Subject: aws.String("a\nb")},
		{Id: aws.String("dedup"), Message: aws.String("x"), MessageDeduplicationId: aws.String("1")},
		{Id: aws.String("by-protocol_2"), Message: aws.String(`{"default":"d","sqs":"two"}`), MessageStructure: aws.String("json")},
		{Id: aws.String("third"), Message: aws.String("three"), MessageAttributes: status("closed"), MessageGroupId: aws.String("tenant")},
	}}))(t)
	var ids []*string
	for i, id := range []string{"first", "by-protocol_2", "third"} {
		if i >= len(out.Successful) || *out.Successful[i].Id != id || !anID.MatchString(*out.Successful[i].MessageId) {
			t.Fatalf("Successful is %+v", out.Successful)
		}
		ids = append(ids, out.Successful[i].MessageId)
		out.Successful[i].MessageId = nil
	}
	failedWith := func(id, message string) types.BatchResultErrorEntry {
		return types.BatchResultErrorEntry{Id: &id, Code: aws.String("InvalidParameter"), Message: &message, SenderFault: true}
	}
	equal(t, "PublishBatch", &sns.PublishBatchOutput{
		Successful: []types.PublishBatchResultEntry{{Id: aws.String("first")}, {Id: aws.String("by-protocol_2")}, {Id: aws.String("third")}},
		Failed: []types.BatchResultErrorEntry{
			failedWith("empty", "Invalid parameter: Empty message"),
			failedWith("subject", "Invalid parameter: Subject"),
			failedWith("dedup", "Invalid parameter: MessageDeduplicationId Reason: The request includes MessageDeduplicationId parameter that is not valid for this topic type"),
		},
	}, out)

	var got []string
	for range 3 {
		m := takeMessage(t, queues, all)
		note := decode(t, *m.Body)
		got = append(got, fmt.Sprint(note["MessageId"], " ", note["Subject"], " ", note["Message"], " ", m.Attributes["MessageGroupId"]))
	}
	equal(t, "envelopes, in order", []string{
		*ids[0] + " An order one ", *ids[1] + " <nil> two ", *ids[2] + " <nil> three tenant",
	}, got)
	equal(t, "filtered", "one", *takeMessage(t, queues, open).Body)
	for _, url := range []string{all, open} {
		equal(t, "left", "0", attributesOf(t, queues, url)["ApproximateNumberOfMessages"])
	}
}

// What is wrong with the call itself, or makes AWS refuse it whole, publishes
// nothing.
func TestPublishBatchRefuses(t *testing.T) {
	endpoint := startOpen(t)
	topics, queues := topicsClient(endpoint), client(endpoint)
	topic, queue := createTopic(t, topics, "orders"), createQueue(t, queues, "q")
	subscribe(t, topics, topic, "sqs", queueARN("q"), "RawMessageDelivery", "true")
	good := batchEntry("good", "hello")
	var eleven []types.PublishBatchRequestEntry
	for i := range 11 {
		eleven = append(eleven, batchEntry(fmt.Sprint(i), "m"))
	}
	bad := good
	bad.Id, bad.MessageAttributes = aws.String("bad"), map[string]types.MessageAttributeValue{"a": textAttribute("x", "Text")}
	unstructured := good
	unstructured.Id, unstructured.MessageStructure = aws.String("bad"), aws.String("json")
	odd := good
	odd.Id, odd.MessageStructure = aws.String("bad"), aws.String("xml")
	half := batchEntry("half", strings.Repeat("x", 131_072))
	tooMuch := batchEntry("more", strings.Repeat("x", 131_072-10)) // and 11 bytes of an attribute
	tooMuch.MessageAttributes = map[string]types.MessageAttributeValue{"name": textAttribute("x")}
	for _, tc := range []struct {
		name, topic string
		entries     []types.PublishBatchRequestEntry
		code        string
		status      int
		text        string
	}{
		{"no entry", topic, []types.PublishBatchRequestEntry{}, "EmptyBatchRequest", 400, "The batch request doesn't contain any entries."},
		{"eleven", topic, eleven, "TooManyEntriesInBatchRequest", 400, "The batch request contains more entries than permissible."},
		{"twice", topic, []types.PublishBatchRequestEntry{good, batchEntry("b", "m"), good}, "BatchEntryIdsNotDistinct", 400, "Two or more batch entries in the request have the same Id."},
		{"an id with a dot", topic, []types.PublishBatchRequestEntry{good, batchEntry("a.b", "m")}, "InvalidBatchEntryId", 400, "The Id of a batch entry in the batch request contains an impermissible character: a.b"},
		{"a long id", topic, []types.PublishBatchRequestEntry{batchEntry(strings.Repeat("a", 81), "m")}, "InvalidBatchEntryId", 400, "The Id of a batch entry in the batch request is too long: " + strings.Repeat("a", 81)},
		{"too long", topic, []types.PublishBatchRequestEntry{half, tooMuch}, "BatchRequestTooLong", 400, "The length of all the messages put together is more than the limit."},
		{"an attribute", topic, []types.PublishBatchRequestEntry{good, bad}, "ParameterValueInvalid", 400, "The message attribute 'a' has an invalid message attribute type, the set of supported type prefixes is Binary, Number, and String."},
		{"no JSON", topic, []types.PublishBatchRequestEntry{good, unstructured}, "InvalidParameter", 400, "Invalid parameter: Message Structure - JSON message body failed to parse"},
		{"another structure", topic, []types.PublishBatchRequestEntry{good, odd}, "InvalidParameter", 400, "Invalid parameter: MessageStructure"},
		{"unknown topic", topicARN("none"), []types.PublishBatchRequestEntry{good}, "NotFound", 404, "Topic does not exist"},
		{"nothing good for an unknown topic", topicARN("none"), []types.PublishBatchRequestEntry{batchEntry("a", "")}, "NotFound", 404, "Topic does not exist"},
		{"no ARN", "orders", []types.PublishBatchRequestEntry{good}, "InvalidParameter", 400, "Invalid parameter: TopicArn Reason: An ARN must have at least 6 elements, not 1"},
		{"other account", "arn:aws:sns:us-east-1:111122223333:orders", []types.PublishBatchRequestEntry{good}, "AuthorizationError", 403, "User: arn:aws:iam::000000000000:root is not authorized to perform: SNS:Publish on resource: arn:aws:sns:us-east-1:111122223333:orders because no resource-based policy allows the SNS:Publish action"},
	} {
		_, err := topics.PublishBatch(t.Context(), &sns.PublishBatchInput{TopicArn: &tc.topic, PublishBatchRequestEntries: tc.entries})
		t.Run(tc.name, func(t *testing.T) { refused(t, err, tc.code, tc.status, tc.text) })
	}
	// The largest there can be: nothing that was refused came before it.
	most := batchEntry("most", strings.Repeat("x", 131_072))
	out := must(topics.PublishBatch(t.Context(), &sns.PublishBatchInput{TopicArn: &topic, PublishBatchRequestEntries: []types.PublishBatchRequestEntry{half, most}}))(t)
	equal(t, "accepted", 2, len(out.Successful))
	equal(t, "came", "2", attributesOf(t, queues, queue)["ApproximateNumberOfMessages"])
}

// In Query, and the XML of its answer.
func TestPublishBatchQuery(t *testing.T) {
	endpoint := start(t)
	topic := createTopic(t, topicsClient(endpoint), "orders")
	const at = "PublishBatchRequestEntries.member."
	r := callTopics(t, endpoint, "PublishBatch", "TopicArn", topic,
		at+"1.Id", "a", at+"1.Message", "hello",
		at+"1.MessageAttributes.entry.1.Name", "n", at+"1.MessageAttributes.entry.1.Value.DataType", "String", at+"1.MessageAttributes.entry.1.Value.StringValue", "v",
		at+"2.Id", "b", at+"2.Message", "")
	equal(t, "PublishBatch", `200 <PublishBatchResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><PublishBatchResult>`+
		`<Successful><member><Id>a</Id><MessageId>ID</MessageId></member></Successful>`+
		`<Failed><member><Id>b</Id><Code>InvalidParameter</Code><Message>Invalid parameter: Empty message</Message><SenderFault>true</SenderFault></member></Failed>`+
		`</PublishBatchResult><ResponseMetadata><RequestId>ID</RequestId></ResponseMetadata></PublishBatchResponse>`,
		fmt.Sprint(r.Status, " ", withoutIDs(r.Body)))
	r = callTopics(t, endpoint, "PublishBatch", "TopicArn", topic, at+"1.Id", "a", at+"1.Message", "hello")
	if !strings.Contains(r.Body, "<Failed></Failed>") {
		t.Errorf("without failures: %s", r.Body)
	}
}

// A batch to a topic that more queues have subscribed than one commit takes.
func TestPublishBatchToMany(t *testing.T) {
	endpoint := start(t)
	topics, queues := topicsClient(endpoint), client(endpoint)
	topic := createTopic(t, topics, "orders")
	const subscribers = 60 // and ten messages each: more than 512
	for i := range subscribers {
		createQueue(t, queues, fmt.Sprintf("q%02d", i))
		subscribe(t, topics, topic, "sqs", queueARN(fmt.Sprintf("q%02d", i)), "RawMessageDelivery", "true")
	}
	var entries []types.PublishBatchRequestEntry
	want := ""
	for i := range 10 {
		entries = append(entries, batchEntry(fmt.Sprint(i), fmt.Sprint(i)))
		want += fmt.Sprint(i)
	}
	must(topics.PublishBatch(t.Context(), &sns.PublishBatchInput{TopicArn: &topic, PublishBatchRequestEntries: entries}))(t)
	for i := range subscribers {
		url := endpoint + "/" + account + fmt.Sprintf("/q%02d", i)
		got := ""
		out := must(queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10}))(t)
		for _, m := range out.Messages {
			got += *m.Body
		}
		if got != want {
			t.Errorf("queue %d got %q", i, got)
		}
	}
}
