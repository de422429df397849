package sdk_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// Dead letters of a FIFO topic's subscription that had one deduplication id, at different times, are all
// delivered when they are redriven at once.
func TestRedriveSharedDeduplicationID(t *testing.T) {
	endpoint := start(t)
	queues, topics := client(endpoint), topicsClient(endpoint)
	topic := createFIFOTopic(t, topics, "t.fifo")
	dead, q := createFIFO(t, queues, "dead.fifo"), createFIFO(t, queues, "q.fifo")
	subscribe(t, topics, topic, "sqs", queueARN("q.fifo"), "RawMessageDelivery", "true", "RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("dead.fifo")+`"}`)
	must(queues.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &q}))(t)
	for _, body := range []string{"1", "2"} {
		must(topics.Publish(t.Context(), &sns.PublishInput{
			TopicArn: &topic, Message: &body, MessageGroupId: aws.String("g"), MessageDeduplicationId: aws.String("same"),
		}))(t)
		advance(t, endpoint, "6m") // longer than the topic remembers it
	}
	equal(t, "dead letters", "2", attributesOf(t, queues, dead)["ApproximateNumberOfMessages"])
	q = createFIFO(t, queues, "q.fifo")
	must(queues.StartMessageMoveTask(t.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(queueARN("dead.fifo"))}))(t)
	for range 10 {
		advance(t, endpoint, time.Second.String())
	}
	equal(t, "dead letters", "0", attributesOf(t, queues, dead)["ApproximateNumberOfMessages"])
	want(t, receive(t, queues, q, 10), "1", "2")
}
