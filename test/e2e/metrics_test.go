package e2e_test

import (
	"path/filepath"
	"testing"
	"time"
)

// metrics calls an operation of CloudWatch.
func (c client) metrics(t *testing.T, operation string, in, out any) {
	t.Helper()
	if err := c.json(t.Context(), cloudWatchJSON, operation, in, out); err != nil {
		t.Fatal(err)
	}
}

// sums are the sums of a metric by the minute, of the last hours.
func (c client) sums(t *testing.T, at time.Time, namespace, name string, dimensions ...object) (sums []float64) {
	t.Helper()
	var out struct{ MetricDataResults []struct{ Values []float64 } }
	c.metrics(t, "GetMetricData", object{
		"StartTime": at.Add(-3 * time.Hour).Unix(), "EndTime": at.Add(time.Minute).Unix(), "ScanBy": "TimestampAscending",
		"MetricDataQueries": []object{{"Id": "q", "MetricStat": object{
			"Metric": object{"Namespace": namespace, "MetricName": name, "Dimensions": dimensions}, "Period": 60, "Stat": "Sum",
		}}},
	}, &out)
	return out.MetricDataResults[0].Values
}

// After kill -9 metrics are as they were, but for the last minute, and alarms continue
// where they stood. A queue that held messages before continues to be measured.
func TestMetricsAndAlarmsKill9(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	flags := append(virtual, "--data", data)
	p := start(t, flags...)
	queue := p.createQueue(t, "watched")
	p.mustSQS(t, "SendMessage", object{"QueueUrl": queue, "MessageBody": "x"}, nil)
	p.metrics(t, "PutMetricAlarm", object{
		"AlarmName": "not empty", "Namespace": "AWS/SQS", "MetricName": "ApproximateNumberOfMessagesVisible", "Statistic": "Maximum", "Period": 60,
		"Dimensions": []object{{"Name": "QueueName", "Value": "watched"}}, "EvaluationPeriods": 1, "Threshold": 0, "ComparisonOperator": "GreaterThanThreshold",
	}, nil)
	p.metrics(t, "PutMetricData", object{"Namespace": "own", "MetricData": []object{{"MetricName": "m", "Value": 3}}}, nil)
	p.advance(t, "2m")
	p.mustSQS(t, "SendMessage", object{"QueueUrl": queue, "MessageBody": "lost to the metrics"}, nil)
	p.kill()

	p = start(t, flags...)
	now := p.advance(t, "0s").Now
	of := object{"Name": "QueueName", "Value": "watched"}
	sent, own := p.sums(t, now, "AWS/SQS", "NumberOfMessagesSent", of), p.sums(t, now, "own", "m")
	if len(sent) < 1 || sent[0] != 1 || len(own) != 1 || own[0] != 3 {
		t.Errorf("after kill -9 %v were sent, and m was %v", sent, own)
	}
	state := func() string {
		var out struct{ MetricAlarms []struct{ StateValue string } }
		p.metrics(t, "DescribeAlarms", object{}, &out)
		return out.MetricAlarms[0].StateValue
	}
	if got := state(); got != "ALARM" {
		t.Errorf("the alarm is in the state %s", got)
	}
	p.advance(t, "1m")
	visible := p.sums(t, now.Add(time.Minute), "AWS/SQS", "ApproximateNumberOfMessagesVisible", of)
	if len(visible) < 3 || visible[len(visible)-1] != 2 {
		t.Errorf("the queue is measured as %v", visible)
	}
	p.mustSQS(t, "PurgeQueue", object{"QueueUrl": queue}, nil)
	p.advance(t, "1m")
	if got := state(); got != "OK" {
		t.Errorf("once the queue is empty the alarm is in the state %s", got)
	}
}
