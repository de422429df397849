package sdk_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// embed is a document of a time in the embedded metric format, with directives and members.
func embed(at time.Time, directives, members string) string {
	return fmt.Sprintf(`{"_aws":{"Timestamp":%d,"CloudWatchMetrics":[%s]},%s}`, at.UnixMilli(), directives, members)
}

// listed are the metrics of the namespace App, as "name dimension=value", in order.
func listed(t *testing.T, endpoint string) (all []string) {
	t.Helper()
	for _, m := range must(metricsClient(endpoint).ListMetrics(t.Context(), &cloudwatch.ListMetricsInput{Namespace: aws.String("App")}))(t).Metrics {
		var by []string
		for _, d := range m.Dimensions {
			by = append(by, *d.Name+"="+*d.Value)
		}
		all = append(all, strings.TrimSpace(*m.MetricName+" "+strings.Join(by, " ")))
	}
	slices.Sort(all)
	return all
}

// Events in the embedded metric format make metrics, whether the request says that they are or not.
func TestEmbeddedMetrics(t *testing.T) {
	endpoint, restart := startDisk(t)
	c, ctx := logsClient(endpoint), t.Context()
	now := nextMinute(t, endpoint)
	from, to := now.Add(-2*time.Minute), now.Add(time.Minute)
	must(c.CreateLogGroup(ctx, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: aws.String("/app")}))(t)
	must(c.CreateLogStream(ctx, &cloudwatchlogs.CreateLogStreamInput{LogGroupName: aws.String("/app"), LogStreamName: aws.String("s")}))(t)
	put := func(options []func(*cloudwatchlogs.Options), messages ...string) {
		t.Helper()
		in := &cloudwatchlogs.PutLogEventsInput{LogGroupName: aws.String("/app"), LogStreamName: aws.String("s")}
		for _, m := range messages {
			in.LogEvents = append(in.LogEvents, types.InputLogEvent{Timestamp: aws.Int64(now.UnixMilli()), Message: &m})
		}
		out := must(c.PutLogEvents(ctx, in, options...))(t)
		if out.RejectedLogEventsInfo != nil {
			t.Errorf("rejected: %+v", out.RejectedLogEventsInfo)
		}
	}
	took := `{"Namespace":"App","Dimensions":[["service"],["service","path"],[]],"Metrics":[{"Name":"took","Unit":"Milliseconds"},{"Name":"calls"}]}`
	put(nil, embed(from, took, `"service":"web","path":"/a","took":[1,2.5],"calls":1,"id":"x"`), "plain", embed(from.Add(time.Second), took, `"service":"web","path":"/b","took":4,"calls":1`))
	put([]func(*cloudwatchlogs.Options){cloudwatchlogs.WithAPIOptions(smithyhttp.AddHeaderValue("x-amzn-logs-format", "json/emf"))},
		embed(now, took, `"service":"web","path":"/a","took":8,"calls":"many"`))
	equal(t, "metrics", []string{
		"calls", "calls path=/a service=web", "calls path=/b service=web", "calls service=web",
		"took", "took path=/a service=web", "took path=/b service=web", "took service=web",
	}, listed(t, endpoint))
	check := func(when string) {
		t.Helper()
		equal(t, "of all"+when, []string{"7.5/3 Milliseconds", "", "8/1 Milliseconds"}, sums(t, endpoint, "took", from, to))
		equal(t, "of a service"+when, []string{"7.5/3 Milliseconds", "", "8/1 Milliseconds"}, sums(t, endpoint, "took", from, to, "service", "web"))
		equal(t, "of a path"+when, []string{"3.5/2 Milliseconds", "", "8/1 Milliseconds"}, sums(t, endpoint, "took", from, to, "service", "web", "path", "/a"))
		equal(t, "of another"+when, []string{"4/1 Milliseconds", "", ""}, sums(t, endpoint, "took", from, to, "service", "web", "path", "/b"))
		equal(t, "without a unit"+when, []string{"2/2 None", "", ""}, sums(t, endpoint, "calls", from, to))
	}
	check("")

	// What does not conform is kept as it is, and makes no metric.
	one := `{"Namespace":"App","Dimensions":[[]],"Metrics":[{"Name":"bad"}]}`
	put(nil,
		embed(now, one, `"bad":"1"`), embed(now, one, `"bad":null`), embed(now, one, `"bad":1e309`), embed(now, one, `"bad":[`+strings.Repeat("1,", 100)+`1]`),
		embed(now.Add(-14*24*time.Hour-time.Minute), one, `"bad":1`), embed(now.Add(3*time.Hour), one, `"bad":1`), embed(now, one, `"bad":1`)+"x", "x "+embed(now, one, `"bad":1`),
		embed(now, strings.Replace(one, "App", "AWS/App", 1), `"bad":1`), embed(now, strings.Replace(one, `"bad"`, `"bad","Unit":"Parsecs"`, 1), `"bad":1`),
		embed(now, strings.Replace(one, "[[]]", `[["d"]]`, 1), `"bad":1`), embed(now, strings.Replace(one, "[[]]", `[["d"]]`, 1), `"bad":1,"d":2`), embed(now, strings.Replace(one, "[[]]", "["+"["+strings.Repeat(`"d",`, 30)+`"d"]]`, 1), `"bad":1,"d":"x"`),
	)
	equal(t, "metrics after bad ones", 8, len(listed(t, endpoint)))
	events := must(c.GetLogEvents(ctx, &cloudwatchlogs.GetLogEventsInput{LogGroupName: aws.String("/app"), LogStreamName: aws.String("s")}))(t).Events
	equal(t, "events", 17, len(events))

	endpoint = restart()
	check(" after a restart")
}

// What is embedded with a StorageResolution of 1 is there by the second.
func TestEmbeddedSeconds(t *testing.T) {
	endpoint := start(t)
	c, ctx := logsClient(endpoint), t.Context()
	now := nextMinute(t, endpoint)
	must(c.CreateLogGroup(ctx, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: aws.String("/app")}))(t)
	must(c.CreateLogStream(ctx, &cloudwatchlogs.CreateLogStreamInput{LogGroupName: aws.String("/app"), LogStreamName: aws.String("s")}))(t)
	in := &cloudwatchlogs.PutLogEventsInput{LogGroupName: aws.String("/app"), LogStreamName: aws.String("s")}
	for _, second := range []time.Duration{50, 50, 57} {
		in.LogEvents = append(in.LogEvents, types.InputLogEvent{Timestamp: aws.Int64(now.UnixMilli()), Message: aws.String(embed(now.Add((second-60)*time.Second),
			`{"Namespace":"App","Dimensions":[[]],"Metrics":[{"Name":"fine","StorageResolution":1},{"Name":"coarse","StorageResolution":60}]}`, `"fine":1,"coarse":1`))})
	}
	must(c.PutLogEvents(ctx, in))(t)
	from := now.Add(-time.Minute)
	read := func(name string, period int32) (all []string) {
		t.Helper()
		result := must(metricsClient(endpoint).GetMetricData(ctx, &cloudwatch.GetMetricDataInput{
			StartTime: &from, EndTime: &now, ScanBy: cwtypes.ScanByTimestampAscending,
			MetricDataQueries: []cwtypes.MetricDataQuery{{Id: aws.String("q"), MetricStat: &cwtypes.MetricStat{
				Metric: &cwtypes.Metric{Namespace: aws.String("App"), MetricName: &name}, Period: &period, Stat: aws.String("Sum"),
			}}},
		}))(t).MetricDataResults[0]
		for i, value := range result.Values {
			all = append(all, fmt.Sprintf("%g:%g", result.Timestamps[i].Sub(from).Seconds(), value))
		}
		return all
	}
	equal(t, "by the second", []string{"50:2", "57:1"}, read("fine", 1))
	equal(t, "by the minute", []string{"0:3"}, read("fine", 60))
	equal(t, "not by the second", []string{"0:3"}, read("coarse", 1))
}

// What a function prints in the embedded metric format makes metrics, with the fields before it that
// Lambda's runtimes put there, too.
func TestEmbeddedMetricsOfFunctions(t *testing.T) {
	endpoint := start(t)
	c := functionsClient(endpoint)
	now := nextMinute(t, endpoint)
	createProgram(t, c, "f", nil)
	line := embed(now, `{"Namespace":"App","Dimensions":[["function"]],"Metrics":[{"Name":"orders","Unit":"Count"}]}`, `"function":"f","orders":[2]`)
	payload := must(json.Marshal(map[string]string{"print": line + "\n2026-11-30T12:00:00.000Z\t6bc28136-4365-b021-0ce6b2e64ab0\tINFO\t" + line + "\n"}))(t)
	invoke(t, c, "f", string(payload))
	eventually(t, "the lines are written", func() bool {
		return slices.Equal(sums(t, endpoint, "orders", now, now.Add(time.Minute), "function", "f"), []string{"4/2 Count"})
	})
}
