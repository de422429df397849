package sdk_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"
)

// metricUnits are the metrics of a namespace with one of the dimensions, and their
// units.
func metricUnits(t *testing.T, endpoint, namespace, dimension, value string) map[string]string {
	t.Helper()
	c, now := metricsClient(endpoint), serverTime(t, endpoint)
	units := map[string]string{}
	for _, m := range must(c.ListMetrics(t.Context(), &cloudwatch.ListMetricsInput{
		Namespace: &namespace, Dimensions: []types.DimensionFilter{{Name: &dimension, Value: &value}},
	}))(t).Metrics {
		points := must(c.GetMetricStatistics(t.Context(), &cloudwatch.GetMetricStatisticsInput{
			Namespace: &namespace, MetricName: m.MetricName, Dimensions: m.Dimensions, StartTime: aws.Time(now.Add(-24 * 3600e9)), EndTime: &now,
			Period: aws.Int32(86400), Statistics: []types.Statistic{types.StatisticSum},
		}))(t).Datapoints
		for _, p := range points {
			units[*m.MetricName] = string(p.Unit)
		}
	}
	return units
}

// All metrics of a topic, by AWS's names and units: what filters keep out, in its
// five kinds, failed attempts over HTTP and given-up deliveries over the rest, and
// both ends of a redrive.
func TestTopicMetrics(t *testing.T) {
	endpoint := start(t)
	queues, topics := client(endpoint), topicsClient(endpoint)
	nextMinute(t, endpoint)
	topic := createTopic(t, topics, "t")
	createQueue(t, queues, "q")
	createQueue(t, queues, "dead")
	subscribe(t, topics, topic, "sqs", queueARN("q"))
	subscribe(t, topics, topic, "sqs", queueARN("by-attribute"), "FilterPolicy", `{"a":["x"]}`)
	subscribe(t, topics, topic, "sqs", queueARN("by-body"), "FilterPolicy", `{"b":["x"]}`, "FilterPolicyScope", "MessageBody")
	publish := func(message, kind, value string) {
		t.Helper()
		in := &sns.PublishInput{TopicArn: &topic, Message: &message}
		if kind != "" {
			in.MessageAttributes = map[string]snstypes.MessageAttributeValue{"a": {DataType: &kind, StringValue: &value}}
		}
		must(topics.Publish(t.Context(), in))(t)
	}
	publish("12345", "", "")                     // no attributes, no JSON
	publish(`{"b":"y"}`, "String", "y")          // neither fits
	publish(`{"b":"y"}`, "String.Array", `["x"`) // an attribute that cannot be read
	advance(t, endpoint, "1m")
	expect := func(what string, want map[string]float64) {
		t.Helper()
		for name, value := range want {
			if got := total(t, endpoint, "AWS/SNS", name, "TopicName", "t"); got != value {
				t.Errorf("%s: %s is %v, want %v", what, name, got, value)
			}
		}
	}
	expect("filters", map[string]float64{
		"NumberOfMessagesPublished": 3, "PublishSize": 5 + 17 + 26, "NumberOfNotificationsDelivered": 3, "NumberOfNotificationsFailed": 0,
		"NumberOfNotificationsFilteredOut":                     6,
		"NumberOfNotificationsFilteredOut-NoMessageAttributes": 1,
		"NumberOfNotificationsFilteredOut-MessageAttributes":   1,
		"NumberOfNotificationsFilteredOut-InvalidAttributes":   1,
		"NumberOfNotificationsFilteredOut-MessageBody":         2,
		"NumberOfNotificationsFilteredOut-InvalidMessageBody":  1,
	})

	h, _ := subscribeFickle(t, endpoint, topic, queueARN("dead"))
	h.failing.Store(true)
	subscribe(t, topics, topic, "sqs", queueARN("gone"))
	subscribe(t, topics, topic, "sqs", queueARN("gone-2"), "RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("gone-3")+`"}`)
	publish("12345", "String", "y")
	advance(t, endpoint, "10m")
	expect("failures", map[string]float64{
		"NumberOfMessagesPublished": 4, "NumberOfNotificationsDelivered": 4,
		"NumberOfNotificationsFailed":               4 + 2, // attempts at the web hook, and the queues that are gone once each
		"NumberOfNotificationsRedrivenToDlq":        1,
		"NumberOfNotificationsFailedToRedriveToDlq": 1,
	})
	equal(t, "the units", map[string]string{
		"NumberOfMessagesPublished": "Count", "PublishSize": "Bytes", "NumberOfNotificationsDelivered": "Count", "NumberOfNotificationsFailed": "Count",
		"NumberOfNotificationsFilteredOut": "Count", "NumberOfNotificationsFilteredOut-NoMessageAttributes": "Count",
		"NumberOfNotificationsFilteredOut-MessageAttributes": "Count", "NumberOfNotificationsFilteredOut-InvalidAttributes": "Count",
		"NumberOfNotificationsFilteredOut-MessageBody": "Count", "NumberOfNotificationsFilteredOut-InvalidMessageBody": "Count",
		"NumberOfNotificationsRedrivenToDlq": "Count", "NumberOfNotificationsFailedToRedriveToDlq": "Count",
	}, metricUnits(t, endpoint, "AWS/SNS", "TopicName", "t"))
}
