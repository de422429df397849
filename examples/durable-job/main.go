// Command durable-job charges invoices that come through an SQS queue, and
// loses none: README.md tells the six steps, worker.go takes them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/cenkalti/backoff/v5"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "durable-job:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	var (
		name        = flag.String("queue", "invoices", "name of the queue; its dead-letter queue is NAME-dead")
		maxReceives = flag.Int("max-receives", 5, "receives before a message is a dead letter, when the queue is created")
		path        = flag.String("ledger", "ledger.db", "SQLite file of attempts and results")
		service     = flag.String("payments", "http://127.0.0.1:8098", "address of the service that charges")
		concurrency = flag.Int("concurrency", 4, "jobs at once")
		lease       = flag.Duration("lease", 30*time.Second, "how soon another worker gets the job of one that died")
		base        = flag.Duration("rest", 2*time.Second, "rest after the first failed attempt; it doubles with each")
		limit       = flag.Duration("longest-rest", 15*time.Minute, "the most it grows to")
	)
	flag.Parse()

	book, err := openLedger(ctx, *path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, book.close()) }()
	cfg, err := config.LoadDefaultConfig(ctx) // heeds AWS_ENDPOINT_URL
	if err != nil {
		return err
	}
	client := sqs.NewFromConfig(cfg)
	queue, err := backoff.Retry(ctx, func() (string, error) { return createQueues(ctx, client, *name, *maxReceives) },
		backoff.WithMaxElapsedTime(time.Minute))
	if err != nil {
		return err
	}
	till := payments{url: *service, http: &http.Client{Timeout: time.Minute}}
	w := worker{
		sqs: client, queue: queue, ledger: book, work: till.charge,
		concurrency: *concurrency, lease: *lease, rest: rest{*base, *limit},
		log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
	w.run(ctx)
	return nil
}

// createQueues makes the queue and its dead-letter queue, or finds them, and
// returns the URL of the first. A message that has been received maxReceives
// times is a dead letter.
func createQueues(ctx context.Context, client *sqs.Client, name string, maxReceives int) (url string, err error) {
	dead, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{
		QueueName:  aws.String(name + "-dead"),
		Attributes: map[string]string{"MessageRetentionPeriod": strconv.Itoa(14 * 24 * 60 * 60)}, // the longest
	})
	if err != nil {
		return "", err
	}
	attributes, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: dead.QueueUrl, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn},
	})
	if err != nil {
		return "", err
	}
	queue, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: map[string]string{
		"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, attributes.Attributes["QueueArn"], maxReceives),
	}})
	if err != nil {
		return "", err
	}
	return *queue.QueueUrl, nil
}
