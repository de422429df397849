package clients_test

import (
	"context"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-aws/sns"
	"github.com/ThreeDotsLabs/watermill-aws/sqs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	awssns "github.com/aws/aws-sdk-go-v2/service/sns"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	smithy "github.com/aws/smithy-go/endpoints"
	"github.com/google/go-cmp/cmp"
)

// to makes the clients of Watermill's adapters go to a window.
func (w *window) to(t *testing.T) (forSNS []func(*awssns.Options), forSQS []func(*awssqs.Options)) {
	t.Helper()
	u, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	endpoint := smithy.Endpoint{URI: *u}
	return []func(*awssns.Options){awssns.WithEndpointResolverV2(sns.OverrideEndpointResolver{Endpoint: endpoint})},
		[]func(*awssqs.Options){awssqs.WithEndpointResolverV2(sqs.OverrideEndpointResolver{Endpoint: endpoint})}
}

// TestWatermillSQS: publisher and subscriber create the queue, metadata goes
// along, an acknowledged message is deleted and one that is refused comes
// again, until it is a dead letter.
func TestWatermillSQS(t *testing.T) {
	t.Parallel()
	w := openWindow(t)
	_, options := w.to(t)
	client := w.sqs()
	dead, deadARN := createQueue(t, client, "watermill-dead", nil)

	attributes := sqs.QueueConfigAttributes{
		VisibilityTimeout: "1", // Watermill leaves a message that is refused to its lease
		RedrivePolicy:     fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":2}`, deadARN),
	}
	publisher, err := sqs.NewPublisher(sqs.PublisherConfig{
		AWSConfig: awsConfig(), OptFns: options, CreateQueueConfig: attributes,
	}, watermill.NopLogger{})
	if err != nil {
		t.Fatal(err)
	}
	subscriber, err := sqs.NewSubscriber(sqs.SubscriberConfig{
		AWSConfig: awsConfig(), OptFns: options, QueueConfigAttributes: attributes,
	}, watermill.NopLogger{})
	if err != nil {
		t.Fatal(err)
	}
	defer subscriber.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	incoming, err := subscriber.Subscribe(ctx, "watermill")
	if err != nil {
		t.Fatal(err)
	}
	sent := wmMessage("order 1", "kind", "grün")
	if err := publisher.Publish("watermill", sent); err != nil {
		t.Fatal(err)
	}
	got := take(t, incoming)
	wantSame(t, sent, got)
	got.Ack()

	poison := wmMessage("order 2")
	if err := publisher.Publish("watermill", poison); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got := take(t, incoming)
		wantSame(t, poison, got)
		got.Nack()
	}
	m := receiveOne(t, client, dead)
	if *m.Body != "order 2" || *m.MessageAttributes[sqs.UUIDAttribute].StringValue != poison.UUID {
		t.Errorf("the dead letter is %q", *m.Body)
	}
	eventuallyEmpty(t, client, "watermill")
	w.wantSpoken(t, "sqs json")
}

// TestWatermillSNS: from a topic to two queues, which the subscribers create,
// allow the topic to send to, and subscribe.
func TestWatermillSNS(t *testing.T) {
	t.Parallel()
	w := openWindow(t)
	forSNS, forSQS := w.to(t)
	resolver, err := sns.NewGenerateArnTopicResolver("000000000000", "us-east-1")
	if err != nil {
		t.Fatal(err)
	}
	publisher, err := sns.NewPublisher(sns.PublisherConfig{
		AWSConfig: awsConfig(), OptFns: forSNS, TopicResolver: resolver,
	}, watermill.NopLogger{})
	if err != nil {
		t.Fatal(err)
	}
	const topic = "watermill-topic"
	if _, err := publisher.CreateTopic(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	queues := map[string]<-chan *message.Message{}
	for _, name := range []string{"watermill-billing", "watermill-fulfilment"} {
		subscriber, err := sns.NewSubscriber(sns.SubscriberConfig{
			AWSConfig: awsConfig(), OptFns: forSNS, TopicResolver: resolver,
			GenerateSqsQueueName: func(context.Context, sns.TopicArn) (string, error) { return name, nil },
		}, sqs.SubscriberConfig{AWSConfig: awsConfig(), OptFns: forSQS}, watermill.NopLogger{})
		if err != nil {
			t.Fatal(err)
		}
		defer subscriber.Close()
		if queues[name], err = subscriber.Subscribe(ctx, topic); err != nil {
			t.Fatal(err)
		}
	}
	sent := wmMessage("order 3", "kind", "order")
	if err := publisher.Publish(topic, sent); err != nil {
		t.Fatal(err)
	}
	for name, incoming := range queues {
		got := take(t, incoming)
		wantSame(t, sent, got)
		got.Ack()
		eventuallyEmpty(t, w.sqs(), name)
	}
	w.wantSpoken(t, "sqs json", "sns query")
}

// TestWatermillFIFO: a group comes in its order, one after the other.
func TestWatermillFIFO(t *testing.T) {
	t.Parallel()
	w := openWindow(t)
	_, options := w.to(t)
	attributes := sqs.QueueConfigAttributes{FifoQueue: true, ContentBasedDeduplication: true}
	publisher, err := sqs.NewPublisher(sqs.PublisherConfig{
		AWSConfig: awsConfig(), OptFns: options, CreateQueueConfig: attributes,
		GenerateSendMessageInput: func(_ context.Context, queue sqs.QueueURL, m *types.Message) (*awssqs.SendMessageInput, error) {
			return &awssqs.SendMessageInput{
				QueueUrl: aws.String(string(queue)), MessageBody: m.Body, MessageAttributes: m.MessageAttributes,
				MessageGroupId: aws.String("g"),
			}, nil
		},
	}, watermill.NopLogger{})
	if err != nil {
		t.Fatal(err)
	}
	subscriber, err := sqs.NewSubscriber(sqs.SubscriberConfig{
		AWSConfig: awsConfig(), OptFns: options, QueueConfigAttributes: attributes,
	}, watermill.NopLogger{})
	if err != nil {
		t.Fatal(err)
	}
	defer subscriber.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	incoming, err := subscriber.Subscribe(ctx, "watermill.fifo")
	if err != nil {
		t.Fatal(err)
	}
	var sent []*message.Message
	for i := range 10 {
		sent = append(sent, wmMessage(fmt.Sprintf("step %d", i)))
	}
	if err := publisher.Publish("watermill.fifo", sent...); err != nil {
		t.Fatal(err)
	}
	for _, want := range sent {
		got := take(t, incoming)
		wantSame(t, want, got)
		got.Ack()
	}
	eventuallyEmpty(t, w.sqs(), "watermill.fifo")
}

// wmMessage makes a message with metadata, an even list of keys and values.
func wmMessage(payload string, metadata ...string) *message.Message {
	m := message.NewMessage(watermill.NewUUID(), []byte(payload))
	for i := 0; i+1 < len(metadata); i += 2 {
		m.Metadata.Set(metadata[i], metadata[i+1])
	}
	return m
}

func take(t *testing.T, incoming <-chan *message.Message) *message.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	select {
	case m := <-incoming:
		return m
	case <-ctx.Done():
		t.Fatalf("no message within %v", testTimeout)
		return nil
	}
}

func wantSame(t *testing.T, want, got *message.Message) {
	t.Helper()
	if got.UUID != want.UUID || string(got.Payload) != string(want.Payload) {
		t.Errorf("got %s %q, want %s %q", got.UUID, got.Payload, want.UUID, want.Payload)
	}
	if d := cmp.Diff(want.Metadata, got.Metadata); d != "" {
		t.Errorf("metadata (-sent +received):\n%s", d)
	}
}

// eventuallyEmpty waits until a queue holds nothing: an acknowledgement has no
// answer.
func eventuallyEmpty(t *testing.T, client *awssqs.Client, name string) {
	t.Helper()
	queue, err := client.GetQueueUrl(t.Context(), &awssqs.GetQueueUrlInput{QueueName: &name})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		out, err := client.GetQueueAttributes(t.Context(), &awssqs.GetQueueAttributesInput{
			QueueUrl: queue.QueueUrl, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
		})
		if err != nil {
			t.Fatal(err)
		}
		var counts [3]string
		for i, suffix := range []string{"", "NotVisible", "Delayed"} {
			counts[i] = out.Attributes["ApproximateNumberOfMessages"+suffix]
		}
		if counts == [3]string{"0", "0", "0"} {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s holds %v after %v", name, counts, testTimeout)
		}
	}
}
