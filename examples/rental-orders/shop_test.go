package rental_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// The rental shop's resources, named as in the README.
const (
	topicName          = "Rental-Orders"
	fulfilmentName     = "Rental-Fulfilment"
	fulfilmentDLQ      = "Rental-Fulfilment-DLQ"
	fanoutDLQ          = "Rental-Fulfilment-Fanout-DLQ"
	billingDLQ         = "Rental-Billing-Fanout-DLQ"
	filterPolicy       = `{"order-status":["confirmed","canceled"]}`
	billingRetryPolicy = `{"healthyRetryPolicy":{"minDelayTarget":1,"maxDelayTarget":4,"numRetries":5,` +
		`"numNoDelayRetries":1,"numMinDelayRetries":1,"numMaxDelayRetries":1,"backoffFunction":"linear"}}`
)

// schedule is what billingRetryPolicy says: the wait before each retry. One
// immediate, one before the backoff, two in it (from the least to the greatest
// delay), one after it.
var schedule = []time.Duration{0, time.Second, time.Second, 4 * time.Second, 4 * time.Second}

// shop is the rental shop: clients of the server, and what has been set up.
type shop struct {
	endpoint string // of godwit
	billing  string // base URL of the billing endpoint
	sns      *sns.Client
	sqs      *sqs.Client

	topic                   string            // ARN
	url, arn                map[string]string // of queues, by name
	toFulfilment, toBilling string            // ARNs of the subscriptions
}

func newShop(endpoint, billing string) *shop {
	config := aws.Config{
		Region:       "us-east-1",
		Credentials:  credentials.NewStaticCredentialsProvider("test", "test", ""),
		BaseEndpoint: &endpoint,
	}
	return &shop{
		endpoint: endpoint, billing: billing,
		sns: sns.NewFromConfig(config), sqs: sqs.NewFromConfig(config),
		url: map[string]string{}, arn: map[string]string{},
	}
}

func (s *shop) createQueue(t *testing.T, name string, attributes map[string]string) {
	t.Helper()
	created, err := s.sqs.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.sqs.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: created.QueueUrl, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameQueueArn},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.url[name], s.arn[name] = *created.QueueUrl, got.Attributes["QueueArn"]
}

func (s *shop) subscribe(t *testing.T, protocol, endpoint string, attributes map[string]string) string {
	t.Helper()
	out, err := s.sns.Subscribe(t.Context(), &sns.SubscribeInput{
		TopicArn: &s.topic, Protocol: &protocol, Endpoint: &endpoint, Attributes: attributes, ReturnSubscriptionArn: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return *out.SubscriptionArn
}

func (s *shop) createTopic(t *testing.T) {
	t.Helper()
	topic, err := s.sns.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String(topicName)})
	if err != nil {
		t.Fatal(err)
	}
	s.topic = *topic.TopicArn
}

func (s *shop) subscribeFulfilment(t *testing.T) {
	t.Helper()
	s.toFulfilment = s.subscribe(t, "sqs", s.arn[fulfilmentName], map[string]string{
		"FilterPolicy":  filterPolicy,
		"RedrivePolicy": `{"deadLetterTargetArn":"` + s.arn[fanoutDLQ] + `"}`,
	})
}

func (s *shop) setUp(t *testing.T) {
	for _, name := range []string{fulfilmentDLQ, fanoutDLQ, billingDLQ} {
		s.createQueue(t, name, nil)
	}
	s.createQueue(t, fulfilmentName, map[string]string{
		"RedrivePolicy": `{"deadLetterTargetArn":"` + s.arn[fulfilmentDLQ] + `","maxReceiveCount":3}`,
	})
	s.createTopic(t)
	s.subscribeFulfilment(t)
	s.toBilling = s.subscribe(t, "http", s.billing+"/orders", map[string]string{
		"FilterPolicy":   filterPolicy,
		"DeliveryPolicy": billingRetryPolicy,
		"RedrivePolicy":  `{"deadLetterTargetArn":"` + s.arn[billingDLQ] + `"}`,
	})
	eventually(t, "billing confirms its subscription", func() (bool, error) {
		out, err := s.sns.GetSubscriptionAttributes(t.Context(), &sns.GetSubscriptionAttributesInput{SubscriptionArn: &s.toBilling})
		return err == nil && out.Attributes["PendingConfirmation"] == "false", err
	})
}

func body(order, status string) string {
	return `{"order":"` + order + `","status":"` + status + `"}`
}

// publish announces an order and returns the id of the message.
func (s *shop) publish(t *testing.T, order, status string) (id string) {
	t.Helper()
	out, err := s.sns.Publish(t.Context(), &sns.PublishInput{
		TopicArn: &s.topic,
		Message:  aws.String(body(order, status)),
		MessageAttributes: map[string]snstypes.MessageAttributeValue{
			"order-status": {DataType: aws.String("String"), StringValue: &status},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return *out.MessageId
}

// setBilling makes billing answer status from now on.
func (s *shop) setBilling(t *testing.T, status int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.billing+"/status/"+strconv.Itoa(status), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("billing refused the status: %s", resp.Status)
	}
}

// arrival is one notification that reached billing.
type arrival struct {
	At        time.Time
	Status    int
	MessageID string `json:"messageId"`
	Order     string
}

func (s *shop) arrivals(t *testing.T, order string) (all []arrival) {
	t.Helper()
	if err := getJSON(t.Context(), s.billing+"/arrivals/"+order, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// delivery is the server's account of one message on its way to a subscriber.
type delivery struct {
	MessageID     string     `json:"messageId"`
	State         string     `json:"state"`
	Attempt       int        `json:"attempt"`
	NextAttemptAt *time.Time `json:"nextAttemptAt"`
	Attempts      []attempt  `json:"attempts"`
}

type attempt struct {
	At      time.Time `json:"at"`
	Outcome string    `json:"outcome"`
	Status  int       `json:"status"`
}

// deliveries asks for all deliveries of a subscription.
func (s *shop) deliveries(t *testing.T, subscription string) []delivery {
	t.Helper()
	var answer struct{ Deliveries []delivery }
	if err := getJSON(t.Context(), s.endpoint+"/_godwit/deliveries?subscription="+url.QueryEscape(subscription), &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Deliveries
}

// delivery finds the one of a message; ok is false if there is none.
func (s *shop) delivery(t *testing.T, subscription, messageID string) (d delivery, ok bool) {
	t.Helper()
	for _, d := range s.deliveries(t, subscription) {
		if d.MessageID == messageID {
			return d, true
		}
	}
	return delivery{}, false
}

// awaitDelivery waits until the delivery of a message is as wanted.
func (s *shop) awaitDelivery(t *testing.T, subscription, messageID, what string, wanted func(delivery) bool) (d delivery) {
	t.Helper()
	eventually(t, what, func() (bool, error) {
		var ok bool
		d, ok = s.delivery(t, subscription, messageID)
		return ok && wanted(d), nil
	})
	return d
}

// received is a message taken from a queue: the envelope of a notification.
type received struct {
	sqstypes.Message
	Envelope struct {
		Type, MessageId, TopicArn, Message string
		MessageAttributes                  map[string]struct{ Type, Value string }
	}
}

// receive takes one message from a queue and hides it for visibility seconds.
// ok is false if none comes within wait seconds.
func (s *shop) receive(t *testing.T, queue string, visibility, wait int32) (m received, ok bool) {
	t.Helper()
	out, err := s.sqs.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: aws.String(s.url[queue]), VisibilityTimeout: visibility, WaitTimeSeconds: wait,
		MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{sqstypes.MessageSystemAttributeNameAll},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Messages) == 0 {
		return received{}, false
	}
	m.Message = out.Messages[0]
	if err := json.Unmarshal([]byte(*m.Body), &m.Envelope); err != nil {
		t.Fatalf("%s holds what is no envelope: %v", queue, err)
	}
	return m, true
}

// take receives a message, which has to come, and deletes it.
func (s *shop) take(t *testing.T, queue string) received {
	t.Helper()
	m, ok := s.receive(t, queue, 30, 20)
	if !ok {
		t.Fatalf("nothing came to %s", queue)
	}
	if _, err := s.sqs.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{
		QueueUrl: aws.String(s.url[queue]), ReceiptHandle: m.ReceiptHandle,
	}); err != nil {
		t.Fatal(err)
	}
	return m
}

// wantEmpty checks that a queue holds nothing: visible, leased or delayed.
func (s *shop) wantEmpty(t *testing.T, queue string) {
	t.Helper()
	out, err := s.sqs.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: aws.String(s.url[queue]), AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameAll},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, count := range []string{
		"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed",
	} {
		if n := out.Attributes[count]; n != "0" {
			t.Errorf("%s of %s is %q, want 0", count, queue, n)
		}
	}
}
