package sdk_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server"
	"godwit.dev/godwit/test/output"
)

// logBuffer keeps what several goroutines log.
type logBuffer struct {
	output.Buffer
}

// take is the lines so far with a message, each decoded.
func (l *logBuffer) take(t *testing.T, message string) (lines []map[string]any) {
	t.Helper()
	for line := range strings.Lines(l.Take()) {
		if m := decode(t, line); m["msg"] == message {
			lines = append(lines, m)
		}
	}
	return lines
}

// startLogging is start with a log at the level debug.
func startLogging(t *testing.T) (endpoint string, log *logBuffer) {
	t.Helper()
	log = &logBuffer{}
	s := server.New(config.Config{
		Listen: "127.0.0.1:0", Store: config.MemoryStore, Clock: config.VirtualClock, Region: region, Account: account,
		AllowPrivateEndpoints: true, JitterSeed: 1, Retry429: true, EndpointConcurrency: 50, DeliveryConcurrency: 500,
	}, slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})), nil)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return "http://" + s.Addr().String(), log
}

// logging is what SNS needs to write delivery status logs.
var logging = []string{"logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"}

// feedbackRole makes the role that topics' delivery status logs are written with, and gives
// its ARN.
func feedbackRole(t *testing.T, endpoint string) string {
	t.Helper()
	c, name := iamClient(endpoint), "feedback"
	made := must(c.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: new(strings.Replace(lambdaTrust, "lambda.", "sns.", 1))}))(t)
	must(c.PutRolePolicy(t.Context(), &iam.PutRolePolicyInput{RoleName: &name, PolicyName: new("logs"), PolicyDocument: new(allow("*", logging...))}))(t)
	return *made.Role.Arn
}

// The feedback attributes decide what of a topic's deliveries is logged.
func TestDeliveryStatusAttributes(t *testing.T) {
	const group = "sns/us-east-1/000000000000/orders"
	endpoint := start(t)
	queues, topics := client(endpoint), topicsClient(endpoint)
	topic := createTopic(t, topics, "orders")
	createQueue(t, queues, "dlq")
	q := createQueue(t, queues, "q")
	subscribe(t, topics, topic, "sqs", queueARN("q"))
	h, _ := subscribeFickle(t, endpoint, topic, queueARN("dlq"))
	set := func(name, value string) {
		t.Helper()
		must(topics.SetTopicAttributes(t.Context(), &sns.SetTopicAttributesInput{TopicArn: &topic, AttributeName: &name, AttributeValue: &value}))(t)
	}
	// publish gives the entries of one publish: destinations, statuses and groups.
	groups, seen := logsClient(endpoint), map[string]bool{}
	publish := func() map[string]string {
		t.Helper()
		must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: new("s3cret")}))(t)
		advance(t, endpoint, "0s")
		out := map[string]string{}
		for _, name := range []string{group, group + "/Failure"} {
			found, err := groups.FilterLogEvents(t.Context(), &cloudwatchlogs.FilterLogEventsInput{LogGroupName: &name})
			if err != nil {
				wantLogsError(t, name, err, notFound, noGroup) // nothing was logged yet
				continue
			}
			for _, event := range found.Events {
				var entry struct {
					Delivery struct{ Destination string }
					Status   string
				}
				if err := json.Unmarshal([]byte(*event.Message), &entry); err != nil {
					t.Fatal(err)
				}
				if strings.Contains(*event.Message, "s3cret") || strings.Contains(entry.Delivery.Destination, "key") {
					t.Errorf("an entry with a secret: %s", *event.Message)
				}
				to := "hook"
				if strings.HasPrefix(entry.Delivery.Destination, "arn:") {
					to = entry.Delivery.Destination
				}
				if !seen[*event.EventId] {
					out[to] = entry.Status + " " + name
				}
				seen[*event.EventId] = true
			}
		}
		return out
	}
	role := feedbackRole(t, endpoint)
	equal(t, "by default", map[string]string{}, publish())
	set("HTTPSuccessFeedbackRoleArn", role)
	equal(t, "HTTP successes", map[string]string{"hook": "SUCCESS " + group}, publish())
	set("SQSSuccessFeedbackRoleArn", role)
	equal(t, "SQS successes, too", map[string]string{"hook": "SUCCESS " + group, queueARN("q"): "SUCCESS " + group}, publish())
	set("HTTPSuccessFeedbackSampleRate", "0")
	equal(t, "none of HTTP's", map[string]string{queueARN("q"): "SUCCESS " + group}, publish())
	set("SQSSuccessFeedbackSampleRate", "0")
	equal(t, "none of SQS's", map[string]string{}, publish())
	set("SQSSuccessFeedbackSampleRate", "100")
	equal(t, "all of SQS's", map[string]string{queueARN("q"): "SUCCESS " + group}, publish())
	set("SQSSuccessFeedbackRoleArn", "")
	set("HTTPFailureFeedbackRoleArn", role)
	equal(t, "no failures", map[string]string{}, publish())
	h.failing.Store(true)
	equal(t, "a failure", map[string]string{"hook": "FAILURE " + group + "/Failure"}, publish())
	set("HTTPFailureFeedbackRoleArn", "")
	must(queues.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &q}))(t)
	equal(t, "unasked", map[string]string{}, publish())
	set("SQSFailureFeedbackRoleArn", role)
	set("SQSSuccessFeedbackSampleRate", "0") // not of failures
	equal(t, "a failure of SQS", map[string]string{queueARN("q"): "FAILURE " + group + "/Failure"}, publish())
}

// What a publish counts, by the names of the metrics.
func TestPublishMetrics(t *testing.T) {
	endpoint, log := startLogging(t)
	queues, topics := client(endpoint), topicsClient(endpoint)
	topic := createTopic(t, topics, "orders")
	createQueue(t, queues, "all")
	createQueue(t, queues, "some")
	subscribe(t, topics, topic, "sqs", queueARN("all"))
	subscribe(t, topics, topic, "sqs", queueARN("some"), "FilterPolicy", `{"a":["x"]}`)
	subscribe(t, topics, topic, "sqs", queueARN("none"), "FilterPolicy", `{"a":["x"]}`, "FilterPolicyScope", "MessageBody")
	must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: new("hello")}))(t)
	advance(t, endpoint, "0s")
	lines := log.take(t, "SNS metrics")
	if len(lines) != 1 {
		t.Fatalf("lines %v", lines)
	}
	equal(t, "metrics", map[string]any{
		"topic": topic, "NumberOfMessagesPublished": 1.0, "PublishSize": 5.0, "NumberOfNotificationsDelivered": 1.0,
		"NumberOfNotificationsFilteredOut": 2.0, "NumberOfNotificationsFilteredOut-NoMessageAttributes": 1.0,
		"NumberOfNotificationsFilteredOut-InvalidMessageBody": 1.0,
	}, contentOf(lines[0]))
}

// contentOf is a log line without what every line has.
func contentOf(line map[string]any) map[string]any {
	for _, name := range []string{"time", "level", "msg"} {
		delete(line, name)
	}
	return line
}
