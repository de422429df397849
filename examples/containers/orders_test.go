package containers_test

import (
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	tc "github.com/testcontainers/testcontainers-go"

	"godwit.dev/godwit/examples/containers"
	"godwit.dev/godwit/testcontainers"
)

// A confirmed order comes to the warehouse, also after a day in which its queue was out of
// order; one that is only quoted does not.
func TestPublish(t *testing.T) {
	tc.SkipIfProviderIsNotHealthy(t)
	binary := os.Getenv("GODWIT_LINUX_BINARY")
	if binary == "" {
		t.Skip("GODWIT_LINUX_BINARY names no godwit for Linux, of which to build the image")
	}
	ctx := t.Context()
	c, err := testcontainers.Run(ctx, "", testcontainers.WithBinary(binary), testcontainers.WithVirtualClock())
	if c != nil {
		tc.CleanupContainer(t, c)
	}
	must(t, err)
	config, err := c.Config(ctx)
	must(t, err)
	topics, queues := sns.NewFromConfig(config), sqs.NewFromConfig(config)
	topic, err := topics.CreateTopic(ctx, &sns.CreateTopicInput{Name: aws.String("orders")})
	must(t, err)
	queue, err := queues.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("warehouse")})
	must(t, err)
	arn := "arn:aws:sqs:" + testcontainers.Region + ":" + testcontainers.Account + ":warehouse"
	_, err = topics.Subscribe(ctx, &sns.SubscribeInput{
		TopicArn: topic.TopicArn, Protocol: aws.String("sqs"), Endpoint: &arn,
		Attributes: map[string]string{"RawMessageDelivery": "true", "FilterPolicy": `{"status":["confirmed"]}`},
	})
	must(t, err)

	must(t, c.Fault(ctx, arn, "unavailable"))
	must(t, containers.Publish(ctx, topics, *topic.TopicArn, containers.Order{ID: "1", Status: "confirmed"}))
	must(t, containers.Publish(ctx, topics, *topic.TopicArn, containers.Order{ID: "2", Status: "quoted"}))
	must(t, c.Advance(ctx, 24*time.Hour))
	must(t, c.Fault(ctx, arn, "none"))
	must(t, c.Advance(ctx, time.Minute))
	got, err := queues.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: queue.QueueUrl, MaxNumberOfMessages: 10})
	must(t, err)
	if len(got.Messages) != 1 || *got.Messages[0].Body != `{"id":"1","status":"confirmed"}` {
		t.Errorf("the warehouse has %+v", got.Messages)
	}

	must(t, c.Reset(ctx))
	left, err := queues.ListQueues(ctx, &sqs.ListQueuesInput{})
	must(t, err)
	if len(left.QueueUrls) != 0 {
		t.Errorf("a reset leaves %v", left.QueueUrls)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
