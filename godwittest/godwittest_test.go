package godwittest_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/godwittest"
)

// A message that is not deleted is there again after its visibility timeout, and not a second
// earlier.
func TestVisibilityTimeout(t *testing.T) {
	t.Parallel()
	s := godwittest.Start(t)
	queues := sqs.NewFromConfig(s.Config())
	q, err := queues.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("orders"), Attributes: map[string]string{"VisibilityTimeout": "30"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := queues.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: q.QueueUrl, MessageBody: aws.String("1")}); err != nil {
		t.Fatal(err)
	}
	receive := func() int {
		t.Helper()
		out, err := queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: q.QueueUrl})
		if err != nil {
			t.Fatal(err)
		}
		return len(out.Messages)
	}
	if receive() != 1 || receive() != 0 {
		t.Error("it is not received once")
	}
	began := s.Now()
	s.Advance(29 * time.Second)
	if receive() != 0 {
		t.Error("it is back too early")
	}
	s.Advance(time.Second)
	if receive() != 1 {
		t.Error("it is not back")
	}
	if passed := s.Now().Sub(began); passed != 30*time.Second {
		t.Errorf("%s have passed", passed)
	}
}

var link = regexp.MustCompile(`"SubscribeURL"\s*:\s*"([^"]+)"`)

// A web hook that fails is tried again by its schedule, which passes at once.
func TestRetries(t *testing.T) {
	t.Parallel()
	s := godwittest.Start(t)
	var attempts atomic.Int64
	links := make(chan string, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if found := link.FindSubmatch(body); found != nil && r.Header.Get("x-amz-sns-message-type") == "SubscriptionConfirmation" {
			links <- string(found[1])
			return
		}
		attempts.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer hook.Close()
	topics := sns.NewFromConfig(s.Config())
	topic, err := topics.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String("orders")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := topics.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: topic.TopicArn, Protocol: aws.String("http"), Endpoint: &hook.URL}); err != nil {
		t.Fatal(err)
	}
	confirmed, err := http.Get(<-links)
	if err != nil {
		t.Fatal(err)
	}
	confirmed.Body.Close()
	if _, err := topics.Publish(t.Context(), &sns.PublishInput{TopicArn: topic.TopicArn, Message: aws.String("hello")}); err != nil {
		t.Fatal(err)
	}
	s.Advance(time.Hour)
	if n := attempts.Load(); n != 4 { // three retries, 20 s apart
		t.Errorf("%d attempts", n)
	}
}

// What is out of order fails, and then does not.
func TestFault(t *testing.T) {
	t.Parallel()
	s := godwittest.Start(t)
	queues, topics := sqs.NewFromConfig(s.Config()), sns.NewFromConfig(s.Config())
	q, err := queues.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("orders")})
	if err != nil {
		t.Fatal(err)
	}
	arn := "arn:aws:sqs:" + godwittest.Region + ":" + godwittest.Account + ":orders"
	topic, err := topics.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String("orders")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := topics.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: topic.TopicArn, Protocol: aws.String("sqs"), Endpoint: &arn}); err != nil {
		t.Fatal(err)
	}
	s.Fault(arn, godwittest.Unavailable)
	if _, err := topics.Publish(t.Context(), &sns.PublishInput{TopicArn: topic.TopicArn, Message: aws.String("hello")}); err != nil {
		t.Fatal(err)
	}
	received := func() int {
		t.Helper()
		out, err := queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: q.QueueUrl})
		if err != nil {
			t.Fatal(err)
		}
		return len(out.Messages)
	}
	s.Advance(time.Hour)
	if _, err := queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: q.QueueUrl}); err == nil {
		t.Error("the queue is in order")
	}
	s.Fault(arn, godwittest.None)
	if received() != 0 {
		t.Error("it has come through")
	}
	s.Advance(time.Minute)
	if received() != 1 {
		t.Error("it does not come through")
	}
}

// BenchmarkStart is how long a test waits for a server, which is 20 ms at most.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		godwittest.Start(b)
	}
}
