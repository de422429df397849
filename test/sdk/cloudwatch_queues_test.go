package sdk_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// expectQueueMetrics compares the largest values by the minute of a queue's metrics.
func expectQueueMetrics(t *testing.T, endpoint, queue string, want map[string]string) {
	t.Helper()
	for name, values := range want {
		if got := statistic(t, endpoint, "AWS/SQS", name, "Maximum", "QueueName", queue); got != values {
			t.Errorf("%s of %s is %q, want %q", name, queue, got, values)
		}
	}
}

// sendGroup sends messages of a group, ten at a time.
func sendGroup(t *testing.T, c *sqs.Client, url, group string, n int, delay int32) {
	t.Helper()
	for ; n > 0; n -= 10 {
		var entries []sqstypes.SendMessageBatchRequestEntry
		for i := range min(n, 10) {
			entries = append(entries, sqstypes.SendMessageBatchRequestEntry{
				Id: aws.String(fmt.Sprint(i)), MessageBody: aws.String("m"), MessageGroupId: &group, DelaySeconds: delay,
			})
		}
		out := must(c.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: entries}))(t)
		equal(t, "the failures of a batch", 0, len(out.Failed))
	}
}

// What a fair queue holds beside its noisy groups has metrics of its own.
func TestFairQueueMetrics(t *testing.T) {
	endpoint := startCounting(t)
	c := client(endpoint)
	nextMinute(t, endpoint)
	url := createQueue(t, c, "shared", "VisibilityTimeout", "3600")
	receive := func() (n int) {
		t.Helper()
		return len(must(c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10}))(t).Messages)
	}
	sendGroup(t, c, url, "loud", 40, 0)
	for range 3 {
		equal(t, "received", 10, receive())
	}
	sendGroup(t, c, url, "loud", 3, 600)
	advance(t, endpoint, "20s")
	sendGroup(t, c, url, "quiet", 5, 0)
	sendGroup(t, c, url, "quiet", 2, 600)
	out := must(c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: 1, MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{"MessageGroupId"},
	}))(t)
	equal(t, "who comes first", "quiet", out.Messages[0].Attributes["MessageGroupId"])
	nextMinute(t, endpoint)
	expectQueueMetrics(t, endpoint, "shared", map[string]string{
		"ApproximateNumberOfMessagesVisible":                 "14",
		"ApproximateNumberOfMessagesNotVisible":              "31",
		"ApproximateNumberOfMessagesDelayed":                 "5",
		"ApproximateAgeOfOldestMessage":                      "60",
		"ApproximateNumberOfNoisyGroups":                     "1",
		"ApproximateNumberOfMessagesVisibleInQuietGroups":    "4",
		"ApproximateNumberOfMessagesNotVisibleInQuietGroups": "1",
		"ApproximateNumberOfMessagesDelayedInQuietGroups":    "2",
		"ApproximateAgeOfOldestMessageInQuietGroups":         "40",
	})
	samples := scrape(t, endpoint)
	const of = `account="000000000000",queue="shared",region="us-east-1"`
	for name, want := range map[string]string{
		"godwit_sqs_noisy_groups{" + of + "}":                     "1",
		"godwit_sqs_quiet_messages{" + of + `,state="visible"}`:   "4",
		"godwit_sqs_quiet_messages{" + of + `,state="in-flight"}`: "1",
		"godwit_sqs_quiet_messages{" + of + `,state="delayed"}`:   "2",
		"godwit_sqs_oldest_quiet_message_age_seconds{" + of + "}": "40",
		"godwit_sqs_oldest_message_age_seconds{" + of + "}":       "60",
		"godwit_sqs_messages{" + of + `,state="visible"}`:         "14",
	} {
		equal(t, name, want, samples[name])
	}
	for name, unit := range map[string]types.StandardUnit{
		"ApproximateNumberOfMessagesVisibleInQuietGroups": types.StandardUnitCount, "ApproximateAgeOfOldestMessageInQuietGroups": types.StandardUnitSeconds,
	} {
		end := serverTime(t, endpoint)
		points := must(metricsClient(endpoint).GetMetricStatistics(t.Context(), &cloudwatch.GetMetricStatisticsInput{
			Namespace: aws.String("AWS/SQS"), MetricName: &name, Dimensions: dimensions("QueueName", "shared"),
			StartTime: aws.Time(end.Add(-60e9)), EndTime: &end, Period: aws.Int32(60), Statistics: []types.Statistic{types.StatisticSum},
		}))(t).Datapoints
		if len(points) != 1 || points[0].Unit != unit {
			t.Errorf("%s: %+v", name, points)
		}
	}
}

// A queue without groups is quiet as a whole.
func TestQuietQueueMetrics(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	nextMinute(t, endpoint)
	url := createQueue(t, c, "plain")
	must(c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("m")}))(t)
	nextMinute(t, endpoint)
	expectQueueMetrics(t, endpoint, "plain", map[string]string{
		"ApproximateNumberOfNoisyGroups":                     "0",
		"ApproximateNumberOfMessagesVisibleInQuietGroups":    "1",
		"ApproximateNumberOfMessagesNotVisibleInQuietGroups": "0",
		"ApproximateNumberOfMessagesDelayedInQuietGroups":    "0",
		"ApproximateAgeOfOldestMessageInQuietGroups":         "60",
		"ApproximateNumberOfMessagesNotVisible":              "",
		"ApproximateNumberOfMessagesDelayed":                 "",
	})
	takeMessage(t, c, url)
	nextMinute(t, endpoint)
	expectQueueMetrics(t, endpoint, "plain", map[string]string{
		"ApproximateAgeOfOldestMessage": "60", "ApproximateAgeOfOldestMessageInQuietGroups": "60 0", "ApproximateNumberOfMessagesVisible": "1 0",
	})
}

// The metrics that only a FIFO queue has.
func TestFIFOQueueMetrics(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	nextMinute(t, endpoint)
	url := createQueue(t, c, "q.fifo", "FifoQueue", "true", "VisibilityTimeout", "3600")
	send := func(group, id string) {
		t.Helper()
		must(c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("m"), MessageGroupId: &group, MessageDeduplicationId: &id}))(t)
	}
	send("a", "1")
	send("a", "1")
	send("a", "1")
	send("b", "2")
	send("c", "3")
	must(c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 2}))(t)
	nextMinute(t, endpoint)
	nextMinute(t, endpoint)
	expectQueueMetrics(t, endpoint, "q.fifo", map[string]string{
		"NumberOfMessagesSent":                            "1 0",
		"NumberOfDeduplicatedSentMessages":                "1 0",
		"ApproximateNumberOfGroupsWithInflightMessages":   "2 2",
		"ApproximateNumberOfMessagesVisible":              "1 1",
		"ApproximateNumberOfMessagesNotVisible":           "2 2",
		"ApproximateNumberOfNoisyGroups":                  "",
		"ApproximateNumberOfMessagesVisibleInQuietGroups": "",
	})
	equal(t, "duplicates", "2 0", statistic(t, endpoint, "AWS/SQS", "NumberOfDeduplicatedSentMessages", "Sum", "QueueName", "q.fifo"))
}

// A dead-letter queue counts no sends for what a maxReceiveCount moves, and its age
// runs from the move; the queue it came from forgets what is received thrice.
func TestDeadLetterQueueMetrics(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	nextMinute(t, endpoint)
	createQueue(t, c, "dead")
	url := createQueue(t, c, "work", "VisibilityTimeout", "0", "RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("dead")+`","maxReceiveCount":3}`)
	must(c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("m")}))(t)
	receive := func() {
		t.Helper()
		must(c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url}))(t)
	}
	nextMinute(t, endpoint)
	receive()
	receive()
	nextMinute(t, endpoint)
	receive()
	nextMinute(t, endpoint) // it waits, received three times
	receive()               // and moves
	nextMinute(t, endpoint)
	nextMinute(t, endpoint)
	expectQueueMetrics(t, endpoint, "work", map[string]string{
		"NumberOfMessagesSent":               "1 0 0 0 0",
		"NumberOfMessagesReceived":           "0 1 1 0 0",
		"NumberOfEmptyReceives":              "0 0 0 1 0",
		"ApproximateNumberOfMessagesVisible": "1 1 1 0 0",
		"ApproximateAgeOfOldestMessage":      "60 120",
	})
	expectQueueMetrics(t, endpoint, "dead", map[string]string{
		"NumberOfMessagesSent":               "0 0",
		"NumberOfMessagesReceived":           "0 0",
		"ApproximateNumberOfMessagesVisible": "0 0 0 1 1",
		"ApproximateAgeOfOldestMessage":      "60 120",
	})

	// Nor does what a move task brings back count.
	must(c.StartMessageMoveTask(t.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(queueARN("dead"))}))(t)
	nextMinute(t, endpoint)
	expectQueueMetrics(t, endpoint, "work", map[string]string{
		"NumberOfMessagesSent":               "1 0 0 0 0 0",
		"ApproximateNumberOfMessagesVisible": "1 1 1 0 0 1",
	})
	expectQueueMetrics(t, endpoint, "dead", map[string]string{
		"NumberOfMessagesReceived": "0 0 0", "NumberOfMessagesDeleted": "0 0 0", "ApproximateNumberOfMessagesVisible": "0 0 0 1 1 0",
	})
}

// A restart does not interrupt the metrics of a queue that is empty, or the alarm on
// it.
func TestMetricsGoOnAfterARestart(t *testing.T) {
	endpoint, restart := startDisk(t)
	c := client(endpoint)
	nextMinute(t, endpoint)
	url := createQueue(t, c, "q")
	send(t, c, url, "m")
	remove(t, c, url, receive(t, c, url, 1)[0])
	putAlarm(t, endpoint, "filled", func(in *cloudwatch.PutMetricAlarmInput) {
		in.Namespace, in.MetricName, in.Dimensions = aws.String("AWS/SQS"), aws.String("ApproximateNumberOfMessagesVisible"), dimensions("QueueName", "q")
	})
	advance(t, endpoint, "10m")
	endpoint = restart()
	advance(t, endpoint, "10m")
	a := describeAlarm(t, endpoint, "filled")
	equal(t, "the alarm", types.StateValueOk, a.StateValue)
	equal(t, "its history", []string{`ConfigurationUpdate: Alarm "filled" created`, "StateUpdate: Alarm updated from INSUFFICIENT_DATA to OK"}, alarmHistory(t, endpoint, "filled"))
	equal(t, "the metric", 20, len(strings.Fields(statistic(t, endpoint, "AWS/SQS", "ApproximateNumberOfMessagesVisible", "Maximum", "QueueName", "q"))))
}
