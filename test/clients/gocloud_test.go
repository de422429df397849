package clients_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
	"gocloud.dev/gcerrors"
	"gocloud.dev/pubsub"
	"gocloud.dev/pubsub/awssnssqs"
)

func awsConfig() aws.Config {
	return aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")}
}

func (w *window) sqs() *sqs.Client {
	return sqs.NewFromConfig(awsConfig(), func(o *sqs.Options) { o.BaseEndpoint = &w.url })
}

func (w *window) sns() *sns.Client {
	return sns.NewFromConfig(awsConfig(), func(o *sns.Options) { o.BaseEndpoint = &w.url })
}

func createQueue(t *testing.T, client *sqs.Client, name string, attributes map[string]string) (url, arn string) {
	t.Helper()
	queue, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		t.Fatal(err)
	}
	out, err := client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: queue.QueueUrl, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn},
	})
	if err != nil {
		t.Fatal(err)
	}
	return *queue.QueueUrl, out.Attributes["QueueArn"]
}

// receiveOne waits for a message and deletes it.
func receiveOne(t *testing.T, client *sqs.Client, url string) types.Message {
	t.Helper()
	out, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: &url, WaitTimeSeconds: 20, MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Messages) != 1 {
		t.Fatalf("received %d messages from %s", len(out.Messages), url)
	}
	if _, err := client.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: out.Messages[0].ReceiptHandle}); err != nil {
		t.Fatal(err)
	}
	return out.Messages[0]
}

// goCloudMessages are such as need escaping: the portable type of go-cloud
// takes any bytes and any strings.
var goCloudMessages = map[string]map[string]string{
	"order 1":          {"kind": "order"},
	"Größe < 3 & more": {"a key/with \"marks\"": "ü €"},
	"\x00\xff\xfe":     {},
	"no metadata":      {},
}

// sendAll sends them at once, which go-cloud turns into batches.
func sendAll(t *testing.T, topic *pubsub.Topic) {
	t.Helper()
	errs := make(chan error)
	for body, metadata := range goCloudMessages {
		go func() { errs <- topic.Send(t.Context(), &pubsub.Message{Body: []byte(body), Metadata: metadata}) }()
	}
	for range goCloudMessages {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// receiveAll receives and acknowledges them.
func receiveAll(t *testing.T, subscription *pubsub.Subscription) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	got := map[string]map[string]string{}
	for range goCloudMessages {
		m, err := subscription.Receive(ctx)
		if err != nil {
			t.Fatal(err)
		}
		metadata := map[string]string{}
		maps.Copy(metadata, m.Metadata)
		got[string(m.Body)] = metadata
		m.Ack()
	}
	if d := cmp.Diff(goCloudMessages, got); d != "" {
		t.Errorf("messages (-sent +received):\n%s", d)
	}
}

func shutdown(t *testing.T, what interface{ Shutdown(context.Context) error }) {
	t.Helper()
	if err := what.Shutdown(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

// TestGoCloudSQS: straight to a queue; acknowledged messages are deleted, a
// refused one comes again, until it is a dead letter.
func TestGoCloudSQS(t *testing.T) {
	t.Parallel()
	w := openWindow(t)
	client := w.sqs()
	dead, deadARN := createQueue(t, client, "gocloud-dead", nil)
	url, _ := createQueue(t, client, "gocloud", map[string]string{
		"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":2}`, deadARN),
	})
	topic := awssnssqs.OpenSQSTopic(t.Context(), client, url, nil)
	defer shutdown(t, topic)
	subscription := awssnssqs.OpenSubscription(t.Context(), client, url, nil)
	defer shutdown(t, subscription)
	sendAll(t, topic)
	receiveAll(t, subscription)
	eventuallyEmpty(t, client, "gocloud")

	if err := topic.Send(t.Context(), &pubsub.Message{Body: []byte("poison")}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		m, err := subscription.Receive(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if string(m.Body) != "poison" {
			t.Errorf("received %q", m.Body)
		}
		m.Nack() // a visibility timeout of 0
	}
	// The third receive finds it dead, and waits on.
	ctx, cancel := context.WithCancel(t.Context())
	third := make(chan error, 1)
	go func() {
		_, err := subscription.Receive(ctx)
		third <- err
	}()
	if m := receiveOne(t, client, dead); *m.Body != "poison" {
		t.Errorf("the dead letter is %q", *m.Body)
	}
	cancel()
	if err := <-third; !errors.Is(err, context.Canceled) {
		t.Errorf("the third receive: %v", err)
	}
	w.wantSpoken(t, "sqs json")
}

// TestGoCloudSNS: through a topic to a queue, enveloped and raw.
func TestGoCloudSNS(t *testing.T) {
	t.Parallel()
	for _, raw := range []bool{false, true} {
		t.Run(fmt.Sprintf("raw=%t", raw), func(t *testing.T) {
			w := openWindow(t)
			name := fmt.Sprintf("gocloud-raw-%t", raw)
			url, arn := createQueue(t, w.sqs(), name, nil)
			created, err := w.sns().CreateTopic(t.Context(), &sns.CreateTopicInput{Name: &name})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.sns().Subscribe(t.Context(), &sns.SubscribeInput{
				TopicArn: created.TopicArn, Protocol: aws.String("sqs"), Endpoint: &arn,
				Attributes: map[string]string{"RawMessageDelivery": fmt.Sprint(raw)},
			}); err != nil {
				t.Fatal(err)
			}
			topic := awssnssqs.OpenSNSTopic(t.Context(), w.sns(), *created.TopicArn, nil)
			defer shutdown(t, topic)
			subscription := awssnssqs.OpenSubscription(t.Context(), w.sqs(), url, &awssnssqs.SubscriptionOptions{Raw: raw})
			defer shutdown(t, subscription)
			sendAll(t, topic)
			receiveAll(t, subscription)
			eventuallyEmpty(t, w.sqs(), name)
			w.wantSpoken(t, "sqs json", "sns query")
		})
	}
}

// TestGoCloudErrors: go-cloud knows our errors by their codes.
func TestGoCloudErrors(t *testing.T) {
	t.Parallel()
	w := openWindow(t)
	url, _ := createQueue(t, w.sqs(), "gocloud-errors", nil)
	topic := awssnssqs.OpenSQSTopic(t.Context(), w.sqs(), strings.Replace(url, "errors", "nothing", 1), nil)
	defer shutdown(t, topic)
	if err := topic.Send(t.Context(), &pubsub.Message{Body: []byte("x")}); gcerrors.Code(err) != gcerrors.NotFound {
		t.Errorf("to a queue that does not exist: %v (%v)", gcerrors.Code(err), err)
	}
}

// TestGoCloudFIFO: group and deduplication id go along in the metadata.
func TestGoCloudFIFO(t *testing.T) {
	t.Parallel()
	w := openWindow(t)
	url, _ := createQueue(t, w.sqs(), "gocloud.fifo", map[string]string{"FifoQueue": "true"})
	topic := awssnssqs.OpenSQSTopic(t.Context(), w.sqs(), url, nil)
	defer shutdown(t, topic)
	subscription := awssnssqs.OpenSubscription(t.Context(), w.sqs(), url, nil)
	defer shutdown(t, subscription)
	for _, step := range []string{"1", "2", "2", "3"} {
		if err := topic.Send(t.Context(), &pubsub.Message{Body: []byte(step), Metadata: map[string]string{
			awssnssqs.MetadataKeyMessageGroupID: "g", awssnssqs.MetadataKeyDeduplicationID: step,
		}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []string{"1", "2", "3"} {
		m, err := subscription.Receive(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if string(m.Body) != step {
			t.Errorf("received %q, want %q", m.Body, step)
		}
		m.Ack()
	}
	eventuallyEmpty(t, w.sqs(), "gocloud.fifo")
}
