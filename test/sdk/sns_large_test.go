package sdk_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"
)

const (
	defaultMessage = 262_144
	largestMessage = 1_048_576
)

func setSize(t *testing.T, c *sns.Client, topic, size string) error {
	t.Helper()
	_, err := c.SetTopicAttributes(t.Context(), &sns.SetTopicAttributesInput{TopicArn: &topic, AttributeName: aws.String("MaximumMessageSize"), AttributeValue: &size})
	return err
}

// A topic takes messages up to its MaximumMessageSize, which is 256 KiB as long as it is not
// set. Attributes count, a subject does not.
func TestMaximumMessageSize(t *testing.T) {
	endpoint := start(t)
	c, queues := topicsClient(endpoint), client(endpoint)
	topic := createTopic(t, c, "orders")
	publish := func(size int, in sns.PublishInput) error {
		in.TopicArn, in.Message = &topic, aws.String(strings.Repeat("x", size))
		_, err := c.Publish(t.Context(), &in)
		return err
	}
	tooLong := func(size int, in sns.PublishInput) {
		t.Helper()
		refused(t, publish(size, in), "InvalidParameter", 400, "Invalid parameter: Message too long")
	}
	fits := func(size int, in sns.PublishInput) {
		t.Helper()
		if err := publish(size, in); err != nil {
			t.Error(err)
		}
	}
	attributes := sns.PublishInput{MessageAttributes: map[string]types.MessageAttributeValue{"attr1": textAttribute(strings.Repeat("v", 44))}} // 55 bytes

	equal(t, "before it is set", "", topicAttributes(t, c, topic)["MaximumMessageSize"])
	fits(defaultMessage, sns.PublishInput{Subject: aws.String(strings.Repeat("s", 100))})
	tooLong(defaultMessage+1, sns.PublishInput{})
	fits(defaultMessage-55, attributes)
	tooLong(defaultMessage-54, attributes)

	must(0, setSize(t, c, topic, "1024"))(t)
	equal(t, "once it is set", "1024", topicAttributes(t, c, topic)["MaximumMessageSize"])
	fits(1024, sns.PublishInput{})
	tooLong(1025, sns.PublishInput{})

	must(0, setSize(t, c, topic, "1048576"))(t)
	enveloped, raw := createQueue(t, queues, "enveloped"), createQueue(t, queues, "raw")
	subscribe(t, c, topic, "sqs", queueARN("enveloped"))
	subscribe(t, c, topic, "sqs", queueARN("raw"), "RawMessageDelivery", "true")
	fits(largestMessage, sns.PublishInput{})
	tooLong(largestMessage+1, sns.PublishInput{})
	whole := strings.Repeat("x", largestMessage)
	var envelope struct{ Message string }
	if err := json.Unmarshal([]byte(*takeMessage(t, queues, enveloped).Body), &envelope); err != nil || envelope.Message != whole {
		t.Errorf("the envelope has %d bytes, %v", len(envelope.Message), err)
	}
	if body := *takeMessage(t, queues, raw).Body; body != whole {
		t.Errorf("the raw message has %d bytes", len(body))
	}

	for _, size := range []string{"1023", "1048577", "4 096", ""} {
		refused(t, setSize(t, c, topic, size), "InvalidParameter", 400, "Invalid parameter: MaximumMessageSize: "+size+" is not an integer between 1024 and 1048576 bytes")
	}
	_, err := c.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String("no"), Attributes: map[string]string{"MaximumMessageSize": "999"}})
	refused(t, err, "InvalidParameter", 400, "Invalid parameter: Attributes Reason: MaximumMessageSize: 999 is not an integer between 1024 and 1048576 bytes")

	topic = topicARN("none") // it is told first that there is none
	refused(t, publish(defaultMessage+1, sns.PublishInput{}), "NotFound", 404, "Topic does not exist")
}

// A batch has no more bytes together than one message may have.
func TestMaximumMessageSizeOfBatches(t *testing.T) {
	endpoint := start(t)
	c := topicsClient(endpoint)
	topic := createFIFOTopic(t, c, "orders.fifo", "ContentBasedDeduplication", "true")
	publish := func(sizes ...int) (*sns.PublishBatchOutput, error) {
		in := sns.PublishBatchInput{TopicArn: &topic}
		for i, size := range sizes {
			e := batchEntry(fmt.Sprint(i), strings.Repeat("x", size))
			e.MessageGroupId = aws.String("g")
			in.PublishBatchRequestEntries = append(in.PublishBatchRequestEntries, e)
		}
		return c.PublishBatch(t.Context(), &in)
	}
	tooLong := func(sizes ...int) {
		t.Helper()
		_, err := publish(sizes...)
		refused(t, err, "BatchRequestTooLong", 400, "The length of all the messages put together is more than the limit.")
	}
	tooLong(131_072, 131_073)
	must(0, setSize(t, c, topic, "300000"))(t)
	tooLong(200_000, 100_001)
	equal(t, "published", 2, len(must(publish(200_000, 100_000))(t).Successful))
}

// A topic of large messages has 100 subscriptions at most, of queues, functions and delivery
// streams.
func TestSubscriptionsOfLargeMessages(t *testing.T) {
	endpoint := start(t)
	c, queues := topicsClient(endpoint), client(endpoint)
	topic := createTopic(t, c, "orders")
	add := func(i int) error {
		queue := queueARN(fmt.Sprint("q", i))
		_, err := c.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: &topic, Protocol: aws.String("sqs"), Endpoint: &queue})
		return err
	}
	for i := range 102 {
		createQueue(t, queues, fmt.Sprint("q", i))
	}
	for i := range 100 {
		must(0, add(i))(t)
	}
	must(0, setSize(t, c, topic, "262145"))(t)
	const tooMany = "Invalid parameter: A topic with MaximumMessageSize greater than 262144 bytes supports a maximum of 100 subscriptions"
	refused(t, add(100), "InvalidParameter", 400, tooMany)
	must(0, add(0))(t) // is there

	must(0, setSize(t, c, topic, "262144"))(t)
	must(0, add(100))(t)
	refused(t, setSize(t, c, topic, "262145"), "InvalidParameter", 400, tooMany)
	equal(t, "unchanged", "262144", topicAttributes(t, c, topic)["MaximumMessageSize"])

	other := must(c.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String("other"), Attributes: map[string]string{"MaximumMessageSize": "1048576"}}))(t)
	topic = *other.TopicArn
	_, err := c.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: &topic, Protocol: aws.String("https"), Endpoint: aws.String("https://example.com/")})
	refused(t, err, "InvalidParameter", 400, "Invalid parameter: MaximumMessageSize greater than 262144 bytes is not supported for the following protocol: [https]")
}

// What a topic has made of the largest message is a function's dead letter, too, though it is
// larger than an event may otherwise be. The record for a destination has no payloads then.
func TestDeadLettersOfLargeEvents(t *testing.T) {
	endpoint := start(t)
	c, topics, queues := functionsClient(endpoint), topicsClient(endpoint), client(endpoint)
	dead := createQueue(t, queues, "dead")
	f := failingOnce(t, endpoint, queueARN("dead"))
	topic := createTopic(t, topics, "orders")
	must(0, setSize(t, topics, topic, "1048576"))(t)
	allowTopic(t, c, "f", topic)
	subscribe(t, topics, topic, "lambda", functionARN("f"))
	whole := strings.Repeat(`"`, largestMessage)
	publish := func() {
		t.Helper()
		f.fail(1)
		must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: &whole}))(t)
		advance(t, endpoint, "0s")
	}
	publish()
	var event struct {
		Records []struct{ Sns struct{ Message string } }
	}
	if err := json.Unmarshal([]byte(*takeMessage(t, queues, dead).Body), &event); err != nil || len(event.Records) != 1 || event.Records[0].Sns.Message != whole {
		t.Errorf("the dead letter has %d records, %v", len(event.Records), err)
	}

	failed := createQueue(t, queues, "failed")
	must(c.UpdateFunctionEventInvokeConfig(t.Context(), &lambda.UpdateFunctionEventInvokeConfigInput{
		FunctionName: aws.String("f"), DestinationConfig: &lambdatypes.DestinationConfig{OnFailure: &lambdatypes.OnFailure{Destination: aws.String(queueARN("failed"))}},
	}))(t)
	publish()
	takeMessage(t, queues, dead)
	record := decode(t, *takeMessage(t, queues, failed).Body)
	equal(t, "the payloads", []any{nil, nil}, []any{record["requestPayload"], record["responsePayload"]})
}

// A function's dead letters to a topic may have as many bytes as the topic's messages.
func TestDeadLettersToTopicsOfLargeMessages(t *testing.T) {
	endpoint := start(t)
	c, topics, queues := functionsClient(endpoint), topicsClient(endpoint), client(endpoint)
	topic := createTopic(t, topics, "dead")
	dead := createQueue(t, queues, "dead")
	subscribe(t, topics, topic, "sqs", queueARN("dead"), "RawMessageDelivery", "true")
	must(0, setSize(t, topics, topic, "300000"))(t)
	f := failingOnce(t, endpoint, topic)
	f.fail(2)
	fits, tooLong := `"`+strings.Repeat("x", 299_000)+`"`, `"`+strings.Repeat("x", 300_000)+`"`
	invokeAsync(t, c, "f", tooLong)
	advance(t, endpoint, "0s")
	invokeAsync(t, c, "f", fits)
	advance(t, endpoint, "0s")
	if body := *takeMessage(t, queues, dead).Body; body != fits {
		t.Errorf("the dead letter has %d bytes", len(body))
	}
}

// failingOnce is a function whose events are tried once, with a dead-letter queue or topic.
func failingOnce(t *testing.T, endpoint, deadLetter string) *far {
	t.Helper()
	c, f := functionsClient(endpoint), startFar(t)
	createFar(t, endpoint, c, "f", f, deadLetter)
	must(c.PutFunctionEventInvokeConfig(t.Context(), &lambda.PutFunctionEventInvokeConfigInput{
		FunctionName: aws.String("f"), MaximumRetryAttempts: aws.Int32(0),
	}))(t)
	return f
}

// A queue with the MaximumMessageSize that was the largest for years takes the envelopes of messages that
// have no more themselves; one of a smaller queue is too long with its envelope.
func TestEnvelopesLargerThanTheQueueTakes(t *testing.T) {
	endpoint := start(t)
	c, queues := topicsClient(endpoint), client(endpoint)
	topic := createTopic(t, c, "orders")
	former, between, small := createQueue(t, queues, "former", "MaximumMessageSize", "262144"),
		createQueue(t, queues, "between", "MaximumMessageSize", "262145"), createQueue(t, queues, "small", "MaximumMessageSize", "262143")
	dead, later := createQueue(t, queues, "dead"), createQueue(t, queues, "waits", "MaximumMessageSize", "262144")
	for _, name := range []string{"former", "between", "small"} {
		subscribe(t, c, topic, "sqs", queueARN(name), "RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("dead")+`"}`)
	}
	whole := strings.Repeat(`"`, 256<<10)
	must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: &whole}))(t)
	for _, url := range []string{former, between, dead} {
		var envelope struct{ Message string }
		if err := json.Unmarshal([]byte(*takeMessage(t, queues, url).Body), &envelope); err != nil || envelope.Message != whole {
			t.Errorf("%s: the envelope has %d bytes, %v", url, len(envelope.Message), err)
		}
	}
	for _, url := range []string{former, between, small, dead} {
		equal(t, url, "0", attributesOf(t, queues, url, "ApproximateNumberOfMessages")["ApproximateNumberOfMessages"])
	}

	// What waits encrypted is longer than what was published.
	key := makeKey(t, newKMS(t, endpoint, "test"), &kms.CreateKeyInput{}).KeyId
	setTopic(t, c, topic, "KmsMasterKeyId", *key)
	waits := subscribe(t, c, topic, "sqs", queueARN("waits"), "RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("dead")+`"}`)
	admin(t, endpoint+"/_godwit/subscriptions/pause", `{"subscription":"`+waits+`"}`)
	must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: &whole}))(t)
	for _, url := range []string{former, between, dead} {
		takeMessage(t, queues, url)
	}
	admin(t, endpoint+"/_godwit/subscriptions/resume", `{"subscription":"`+waits+`"}`)
	takeMessage(t, queues, later)
	equal(t, "dead letters of an encrypted topic", "0", attributesOf(t, queues, dead, "ApproximateNumberOfMessages")["ApproximateNumberOfMessages"])
}
