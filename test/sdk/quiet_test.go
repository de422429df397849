package sdk_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server"
)

// TestLogIsQuiet: what clients do, and what they are refused, is not worth a line at
// the least level of godwit serve, and so not at that of godwit dev.
func TestLogIsQuiet(t *testing.T) {
	log := &logBuffer{}
	s := server.New(config.Config{
		Listen: "127.0.0.1:0", Store: config.PebbleStore, Data: t.TempDir(), Clock: config.VirtualClock, Region: region, Account: account,
		AllowPrivateEndpoints: true, JitterSeed: 1, Retry429: true, EndpointConcurrency: 50, DeliveryConcurrency: 500,
		Metrics: true, Prometheus: true, PrometheusSeries: 10,
	}, slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelInfo})), nil)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	log.take(t, "") // the start's own
	endpoint, ctx := "http://"+s.Addr().String(), t.Context()

	queues, topics, groups := client(endpoint), topicsClient(endpoint), logsClient(endpoint)
	topic := createTopic(t, topics, "orders")
	url := createQueue(t, queues, "work")
	createQueue(t, queues, "dlq")
	subscribe(t, topics, topic, "sqs", queueARN("work"))
	h, _ := subscribeFickle(t, endpoint, topic, queueARN("dlq"))
	functions, far := functionsClient(endpoint), startFar(t)
	createFar(t, endpoint, functions, "f", far, "")
	for range 3 {
		must(topics.Publish(ctx, &sns.PublishInput{TopicArn: &topic, Message: new("hello")}))(t)
		advance(t, endpoint, "1s")
		takeMessage(t, queues, url)
		must(functions.Invoke(ctx, &lambda.InvokeInput{FunctionName: new("f")}))(t)
		invokeAsync(t, functions, "f", `{}`)
	}
	createGroup(t, groups, "/app", "s")
	putLogs(t, groups, "/app", "s", logEvents(serverNow(t, endpoint), "hello"))
	must(metricsClient(endpoint).PutMetricData(ctx, &cloudwatch.PutMetricDataInput{
		Namespace: new("n"), MetricData: []cwtypes.MetricDatum{{MetricName: new("m"), Value: new(1.0)}},
	}))(t)
	far.fail(1)
	must(functions.Invoke(ctx, &lambda.InvokeInput{FunctionName: new("f")}))(t) // a function's own mistake
	h.failing.Store(true)                                                       // a failed attempt, which is tried again
	must(topics.Publish(ctx, &sns.PublishInput{TopicArn: &topic, Message: new("hello")}))(t)
	advance(t, endpoint, "1s")
	h.failing.Store(false)
	advance(t, endpoint, "1h")
	_, _ = queues.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: new("nobody")})
	_, _ = groups.DeleteLogGroup(ctx, &cloudwatchlogs.DeleteLogGroupInput{LogGroupName: new("none")})
	callJSON(t, endpoint, "SendMessage", `{`)
	callQuery(t, endpoint, "Nothing")
	scrape(t, endpoint)

	text := log.String()
	if text != "" {
		t.Errorf("what was logged of ordinary traffic:\n%s", text)
	}
	if err := s.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
}
