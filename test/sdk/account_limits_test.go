package sdk_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"godwit.dev/godwit/internal/config"
)

// An account that asks more often than it may is refused with the error that each of AWS's APIs
// throttles with, and no other account is.
func TestAccountRequests(t *testing.T) {
	endpoint := startBuilt(t, nil, func(c *config.Config) { c.Accounts.MaxRequests, c.Enforce = 1, false })
	of := func(account string) aws.Config {
		return aws.Config{Region: "us-east-1", BaseEndpoint: &endpoint, RetryMaxAttempts: 1, HTTPClient: eager, Credentials: credentials.NewStaticCredentialsProvider(account, "x", "")}
	}
	busy := of("111111111111")
	for want, ask := range map[string]func() error{
		"RequestThrottled": func() error {
			_, err := sqs.NewFromConfig(busy).ListQueues(t.Context(), &sqs.ListQueuesInput{})
			return err
		},
		"Throttled": func() error {
			_, err := sns.NewFromConfig(busy).ListTopics(t.Context(), &sns.ListTopicsInput{})
			return err
		},
		"ThrottlingException": func() error {
			_, err := kms.NewFromConfig(busy).ListKeys(t.Context(), &kms.ListKeysInput{})
			return err
		},
	} {
		var err error
		for range 1000 { // one of them comes through at once, and one a second
			if err = ask(); err != nil {
				break
			}
		}
		if refused, ok := errors.AsType[smithy.APIError](err); !ok || refused.ErrorCode() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := sqs.NewFromConfig(of("222222222222")).ListQueues(t.Context(), &sqs.ListQueuesInput{}); err != nil {
		t.Errorf("another account: %v", err)
	}
}

// refusedAs expects a refusal with a code.
func refusedAs(t *testing.T, code string, err error) {
	t.Helper()
	if refused, ok := errors.AsType[smithy.APIError](err); !ok || refused.ErrorCode() != code {
		t.Errorf("%v, want %s", err, code)
	}
}

// An account that sends and publishes more bytes in a second than it may is refused as AWS
// throttles, and what is refused is not there.
func TestAccountBytes(t *testing.T) {
	endpoint := startBuilt(t, nil, func(c *config.Config) { c.Accounts.MaxBytes, c.Enforce = 10, false }) // a message takes a minute's
	queues, topics := client(endpoint), topicsClient(endpoint)
	q := createQueue(t, queues, "q")
	topic := createTopic(t, topics, "t")
	body := strings.Repeat("x", 600)
	send := func() error {
		_, err := queues.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &q, MessageBody: &body})
		return err
	}
	if err := send(); err != nil {
		t.Fatal(err)
	}
	refusedAs(t, "RequestThrottled", send())
	_, err := queues.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: &q, Entries: []sqstypes.SendMessageBatchRequestEntry{
		{Id: aws.String("1"), MessageBody: &body}, {Id: aws.String("2"), MessageBody: &body},
	}})
	refusedAs(t, "RequestThrottled", err)
	_, err = topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: &body})
	refusedAs(t, "Throttled", err)
	_, err = topics.PublishBatch(t.Context(), &sns.PublishBatchInput{TopicArn: &topic, PublishBatchRequestEntries: []snstypes.PublishBatchRequestEntry{
		{Id: aws.String("1"), Message: &body},
	}})
	refusedAs(t, "Throttled", err)
	equal(t, "messages", "1", attributesOf(t, queues, q, "ApproximateNumberOfMessages")["ApproximateNumberOfMessages"])
}

// An account makes as many queues and topics as it may, in all regions together, counted from
// one start of the server to the next, and more once some were deleted.
func TestAccountQueuesAndTopics(t *testing.T) {
	besideOthers(t)
	data := t.TempDir()
	settings := func(c *config.Config) {
		c.Store, c.Data, c.Prometheus, c.PrometheusSeries, c.Enforce = config.PebbleStore, data, true, 10, false
		c.Accounts.MaxQueues, c.Accounts.MaxTopics = 3, 2
	}
	create := func(endpoint, region, name string) (queueErr, topicErr error) {
		_, queueErr = clientOf(endpoint, region, "test").CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name})
		_, topicErr = topicsClientOf(endpoint, region, "test").CreateTopic(t.Context(), &sns.CreateTopicInput{Name: &name})
		return queueErr, topicErr
	}
	t.Run("made", func(t *testing.T) {
		endpoint := startBuilt(t, nil, settings)
		for i, at := range []string{"us-east-1", "eu-west-1"} {
			if q, topic := create(endpoint, at, fmt.Sprint("a", i)); q != nil || topic != nil {
				t.Error(q, topic)
			}
		}
		q, topic := create(endpoint, "us-east-1", "b")
		refusedAs(t, "TopicLimitExceeded", topic)
		if q != nil {
			t.Error(q)
		}
		if q, topic := create(endpoint, "us-east-1", "a0"); q != nil || topic != nil { // which are there
			t.Error(q, topic)
		}
	})
	t.Run("made later", func(t *testing.T) {
		endpoint := startBuilt(t, nil, settings)
		q, topic := create(endpoint, "eu-west-1", "c")
		refusedAs(t, "OverLimit", q)
		refusedAs(t, "TopicLimitExceeded", topic)
		samples := scrape(t, endpoint)
		for name, want := range map[string]string{
			`godwit_account_queues{account="` + account + `"}`: "3", `godwit_account_topics{account="` + account + `"}`: "2",
			`godwit_account_refused_total{limit="queues"}`: "1", `godwit_account_limit_max{limit="topics"}`: "2",
		} {
			if samples[name] != want {
				t.Errorf("%s is %q, want %s", name, samples[name], want)
			}
		}
		queues := client(endpoint)
		url := endpoint + "/" + account + "/b"
		if _, err := queues.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &url}); err != nil {
			t.Fatal(err)
		}
		gone := "arn:aws:sns:us-east-1:" + account + ":a0"
		if _, err := topicsClient(endpoint).DeleteTopic(t.Context(), &sns.DeleteTopicInput{TopicArn: &gone}); err != nil {
			t.Fatal(err)
		}
		if q, topic := create(endpoint, "eu-west-1", "c"); q != nil || topic != nil {
			t.Error(q, topic)
		}
	})
}

// What an account's messages take is bounded, in queues and backlogs together, to the byte from
// one start of the server to the next. Receives and deletes continue, and make room.
func TestAccountStorage(t *testing.T) {
	besideOthers(t)
	data := t.TempDir()
	settings := func(c *config.Config) {
		c.Store, c.Data, c.Prometheus, c.PrometheusSeries, c.Enforce = config.PebbleStore, data, true, 10, false
		c.Accounts.MaxStorage = 20_000
	}
	held := func(t *testing.T, endpoint string) (n int) {
		_, _ = fmt.Sscan(scrape(t, endpoint)[`godwit_account_storage_bytes{account="`+account+`"}`], &n)
		return n
	}
	body := strings.Repeat("x", 1000)
	before := 0
	t.Run("filled", func(t *testing.T) {
		endpoint := startBuilt(t, nil, settings)
		queues, topics := client(endpoint), topicsClient(endpoint)
		q := createQueue(t, queues, "q")
		topic := createTopic(t, topics, "t")
		createQueue(t, queues, "busy")
		waiting := subscribe(t, topics, topic, "sqs", queueARN("busy"))
		// Its messages wait, after the restart too, which would end a fault of the queue.
		equal(t, "pausing", http.StatusOK, post(t, endpoint+"/_godwit/subscriptions/pause", `{"subscription":"`+waiting+`"}`).Status)
		for range 9 {
			if _, err := topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: &body}); err != nil {
				t.Fatal(err)
			}
		}
		sent, err := 0, error(nil)
		for ; err == nil && sent < 100; sent++ {
			_, err = queues.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &q, MessageBody: &body})
		}
		refusedAs(t, "RequestThrottled", err)
		_, err = topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: &body})
		refusedAs(t, "Throttled", err)
		if before = held(t, endpoint); before < 19_000 || before > 20_100 || sent < 5 {
			t.Errorf("%d bytes are held, %d of them sent", before, sent)
		}
	})
	t.Run("emptied", func(t *testing.T) {
		endpoint := startBuilt(t, nil, settings)
		queues := client(endpoint)
		if now := held(t, endpoint); now != before {
			t.Errorf("%d bytes are held, and were %d before the start", now, before)
		}
		q := endpoint + "/" + account + "/q"
		_, err := queues.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &q, MessageBody: &body})
		refusedAs(t, "RequestThrottled", err)
		got, err := queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &q})
		if err != nil || len(got.Messages) != 1 {
			t.Fatal(err)
		}
		if _, err := queues.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &q, ReceiptHandle: got.Messages[0].ReceiptHandle}); err != nil {
			t.Fatal(err)
		}
		if _, err := queues.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &q, MessageBody: &body}); err != nil {
			t.Error(err)
		}
		if _, err := queues.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: &q}); err != nil {
			t.Fatal(err)
		}
		gone := "arn:aws:sns:" + region + ":" + account + ":t"
		if _, err := topicsClient(endpoint).DeleteTopic(t.Context(), &sns.DeleteTopicInput{TopicArn: &gone}); err != nil {
			t.Fatal(err)
		}
		for range 10_000 { // what waited for a deleted topic goes in the background
			if held(t, endpoint) == 0 {
				return
			}
		}
		t.Errorf("%d bytes are held by nothing", held(t, endpoint))
	})
}

// What another account's topic delivers to a queue without room waits with that account, and
// arrives once there is room.
func TestAccountStorageOfOthers(t *testing.T) {
	endpoint := startBuilt(t, nil, func(c *config.Config) { c.Accounts.MaxStorage, c.Enforce = 5000, false })
	const other = "111111111111"
	theirs, topics := clientOf(endpoint, region, other), topicsClient(endpoint)
	q := createQueue(t, theirs, "q", "Policy", `{"Statement":[{"Effect":"Allow","Principal":"*","Action":"sqs:SendMessage","Resource":"*"}]}`)
	topic := createTopic(t, topics, "t")
	subscribe(t, topics, topic, "sqs", "arn:aws:sqs:"+region+":"+other+":q", "RawMessageDelivery", "true")
	var asked struct{ Token string } // the owner of the queue is asked
	if err := json.Unmarshal([]byte(*takeMessage(t, theirs, q).Body), &asked); err != nil {
		t.Fatal(err)
	}
	must(topics.ConfirmSubscription(t.Context(), &sns.ConfirmSubscriptionInput{TopicArn: &topic, Token: &asked.Token}))(t)
	body := strings.Repeat("x", 4990)
	must(theirs.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &q, MessageBody: &body}))(t)
	must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("waits")}))(t)
	advance(t, endpoint, "1s")
	equal(t, "messages", "1", attributesOf(t, theirs, q, "ApproximateNumberOfMessages")["ApproximateNumberOfMessages"])
	if m := takeMessage(t, theirs, q); *m.Body != body {
		t.Errorf("%.20q is there", *m.Body)
	}
	advance(t, endpoint, "1m")
	if m := takeMessage(t, theirs, q); *m.Body != "waits" {
		t.Errorf("%.20q has arrived", *m.Body)
	}
}
