package sdk_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// total adds up a statistic by the minute.
func total(t *testing.T, endpoint, namespace, name, dimension, value string) (sum float64) {
	t.Helper()
	for field := range strings.FieldsSeq(statistic(t, endpoint, namespace, name, "Sum", dimension, value)) {
		if field != "-" {
			n, err := strconv.ParseFloat(field, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}

// statusEntries are the entries of a delivery status log, in the order of time.
func statusEntries(t *testing.T, endpoint, group string) (entries []map[string]any) {
	t.Helper()
	for _, event := range must(logsClient(endpoint).FilterLogEvents(t.Context(), &cloudwatchlogs.FilterLogEventsInput{LogGroupName: &group}))(t).Events {
		entries = append(entries, decode(t, *event.Message))
	}
	return entries
}

// The documented life of a failed delivery: attempts fail, which metrics and the
// delivery status log tell; the message goes to the dead-letter queue, which has an
// entry of its own in the log and shows in the queue's metrics; an alarm on these
// tells a web hook through a topic; the message is taken, and the alarm clears.
func TestLifeOfAFailedDelivery(t *testing.T) {
	endpoint := start(t)
	queues, topics := client(endpoint), topicsClient(endpoint)
	broken, pager := newHook(t), newHook(t)
	dead := createQueue(t, queues, "dead")
	orders, ops := createTopic(t, topics, "orders"), createTopic(t, topics, "ops")
	role := feedbackRole(t, endpoint)
	for _, name := range []string{"HTTPSuccess", "HTTPFailure", "SQSSuccess", "SQSFailure"} {
		must(topics.SetTopicAttributes(t.Context(), &sns.SetTopicAttributesInput{
			TopicArn: &orders, AttributeName: aws.String(name + "FeedbackRoleArn"), AttributeValue: &role,
		}))(t)
	}
	confirm := func(topic string, h *hook, attributes ...string) {
		t.Helper()
		subscribe(t, topics, topic, "http", h.URL, attributes...)
		token := decode(t, h.next(t).Body)["Token"].(string)
		must(topics.ConfirmSubscription(t.Context(), &sns.ConfirmSubscriptionInput{TopicArn: &topic, Token: &token}))(t)
	}
	redrive := `{"deadLetterTargetArn":"` + queueARN("dead") + `"}`
	confirm(orders, broken, "RedrivePolicy", redrive,
		"DeliveryPolicy", `{"healthyRetryPolicy":{"numRetries":3,"minDelayTarget":20,"maxDelayTarget":20}}`)
	confirm(ops, pager)
	broken.answer(503)
	nextMinute(t, endpoint)
	must(metricsClient(endpoint).PutMetricAlarm(t.Context(), &cloudwatch.PutMetricAlarmInput{
		AlarmName: aws.String("not empty"), Namespace: aws.String("AWS/SQS"), MetricName: aws.String("ApproximateNumberOfMessagesVisible"),
		Dimensions: dimensions("QueueName", "dead"), Statistic: types.StatisticMaximum, Period: aws.Int32(60), EvaluationPeriods: aws.Int32(1),
		Threshold: aws.Float64(0), ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold, TreatMissingData: aws.String("notBreaching"),
		AlarmActions: []string{ops}, OKActions: []string{ops},
	}))(t)
	began := nextMinute(t, endpoint)
	equal(t, "the alarm at first", types.StateValueOk, describeAlarm(t, endpoint, "not empty").StateValue)
	pager.next(t) // from INSUFFICIENT_DATA to OK

	id := must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &orders, Message: aws.String("an order")}))(t).MessageId
	advance(t, endpoint, "2m30s")
	entries := statusEntries(t, endpoint, "sns/us-east-1/000000000000/orders/Failure")
	equal(t, "entries of failed attempts", 4, len(entries))
	for i, entry := range entries {
		notification, delivery := entry["notification"].(map[string]any), entry["delivery"].(map[string]any)
		equal(t, "the status", "FAILURE", entry["status"])
		equal(t, "the message", *id, notification["messageId"])
		equal(t, "the topic", orders, notification["topicArn"])
		equal(t, "the publish", began.UTC().Format("2006-01-02 15:04:05.000"), notification["timestamp"])
		for _, name := range []string{"deliveryId", "providerResponse"} {
			if delivery[name] == "" {
				t.Errorf("an entry without %s: %v", name, entry)
			}
			delete(delivery, name)
		}
		dwell := delivery["dwellTimeMs"].(float64)
		if least, most := 20_000*float64(i), 30_000*float64(i); dwell < least || dwell > most { // with jitter
			t.Errorf("attempt %d after %v ms", i+1, dwell)
		}
		delete(delivery, "dwellTimeMs")
		equal(t, "the delivery", map[string]any{
			"redrivePolicy": redrive, "destination": broken.URL, "attempts": float64(i + 1), "statusCode": 503.0,
		}, delivery)
	}
	entries = statusEntries(t, endpoint, "sns/us-east-1/000000000000/orders")
	equal(t, "entries of the redrive", 1, len(entries))
	delivery := entries[0]["delivery"].(map[string]any)
	equal(t, "its status", "SUCCESS", entries[0]["status"])
	equal(t, "its destination", any(queueARN("dead")), delivery["destination"])
	equal(t, "its redrive policy", nil, delivery["redrivePolicy"])
	equal(t, "its code", any(200.0), delivery["statusCode"])
	if response := decode(t, delivery["providerResponse"].(string)); response["sqsMessageId"] == "" || response["sqsRequestId"] == "" {
		t.Errorf("what the queue answered: %v", response)
	}

	nextMinute(t, endpoint)
	for name, want := range map[string]float64{
		"NumberOfMessagesPublished": 1, "NumberOfNotificationsFailed": 4, "NumberOfNotificationsRedrivenToDlq": 1,
		"NumberOfNotificationsFailedToRedriveToDlq": 0, "NumberOfNotificationsDelivered": 0, "PublishSize": 8,
	} {
		equal(t, name, want, total(t, endpoint, "AWS/SNS", name, "TopicName", "orders"))
	}
	equal(t, "sent to the dead-letter queue", 1.0, total(t, endpoint, "AWS/SQS", "NumberOfMessagesSent", "QueueName", "dead"))
	held := strings.Fields(statistic(t, endpoint, "AWS/SQS", "ApproximateNumberOfMessagesVisible", "Maximum", "QueueName", "dead"))
	equal(t, "it holds", "1", held[len(held)-1])
	ages := strings.Fields(statistic(t, endpoint, "AWS/SQS", "ApproximateAgeOfOldestMessage", "Maximum", "QueueName", "dead"))
	if age, err := strconv.Atoi(ages[len(ages)-1]); err != nil || age < 60 || age > 120 {
		t.Errorf("its message is %v old, not one or two minutes, since it came", ages)
	}

	told := pager.next(t)
	equal(t, "the kind of request", "Notification", told.Header.Get("X-Amz-Sns-Message-Type"))
	envelope := decode(t, told.Body)
	equal(t, "the subject", `ALARM: "not empty" in US East (N. Virginia)`, envelope["Subject"])
	n := decode(t, envelope["Message"].(string))
	reason := n["NewStateReason"].(string)
	if !strings.HasPrefix(reason, "Threshold Crossed: 1 datapoint [1.0 (") || !strings.HasSuffix(reason, ")] was greater than the threshold (0.0).") {
		t.Errorf("the reason is %s", reason)
	}
	for _, name := range []string{"NewStateReason", "StateChangeTime", "AlarmConfigurationUpdatedTimestamp"} {
		delete(n, name)
	}
	equal(t, "the notification", map[string]any{
		"AlarmName": "not empty", "AlarmDescription": nil, "AWSAccountId": account, "NewStateValue": "ALARM", "OldStateValue": "OK",
		"Region": "US East (N. Virginia)", "AlarmArn": alarmARN("not empty"), "ActionExecutedAfterMuteWindow": false,
		"OKActions": []any{ops}, "AlarmActions": []any{ops}, "InsufficientDataActions": []any{},
		"Trigger": map[string]any{
			"MetricName": "ApproximateNumberOfMessagesVisible", "Namespace": "AWS/SQS", "StatisticType": "Statistic", "Statistic": "MAXIMUM", "Unit": nil,
			"Dimensions": []any{map[string]any{"value": "dead", "name": "QueueName"}}, "Period": 60.0, "EvaluationPeriods": 1.0,
			"ComparisonOperator": "GreaterThanThreshold", "Threshold": 0.0, "TreatMissingData": "notBreaching", "EvaluateLowSampleCountPercentile": "",
		},
	}, n)
	advance(t, endpoint, "5h")
	equal(t, "hours later", types.StateValueAlarm, describeAlarm(t, endpoint, "not empty").StateValue)

	got := must(queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &dead}))(t).Messages
	equal(t, "dead letters", 1, len(got))
	equal(t, "the message", any("an order"), decode(t, *got[0].Body)["Message"])
	must(queues.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &dead, ReceiptHandle: got[0].ReceiptHandle}))(t)
	nextMinute(t, endpoint)
	for name, want := range map[string]float64{"NumberOfMessagesReceived": 1, "NumberOfMessagesDeleted": 1, "NumberOfMessagesSent": 0} {
		equal(t, name+" of the last hour", want, total(t, endpoint, "AWS/SQS", name, "QueueName", "dead"))
	}
	equal(t, "when it has been taken", types.StateValueOk, describeAlarm(t, endpoint, "not empty").StateValue)
	envelope = decode(t, pager.next(t).Body)
	equal(t, "the subject", `OK: "not empty" in US East (N. Virginia)`, envelope["Subject"])
	equal(t, "the states", [2]any{"ALARM", "OK"}, [2]any{decode(t, envelope["Message"].(string))["OldStateValue"], decode(t, envelope["Message"].(string))["NewStateValue"]})
	equal(t, "the alarm's history", []string{
		`ConfigurationUpdate: Alarm "not empty" created`,
		"StateUpdate: Alarm updated from INSUFFICIENT_DATA to OK", "Action: Successfully executed action " + ops,
		"StateUpdate: Alarm updated from OK to ALARM", "Action: Successfully executed action " + ops,
		"StateUpdate: Alarm updated from ALARM to OK", "Action: Successfully executed action " + ops,
	}, alarmHistory(t, endpoint, "not empty"))
	advance(t, endpoint, fmt.Sprint(10*time.Minute))
	equal(t, "nothing more is told", 0, len(pager.requests))
}
