package sdk_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
)

func putFilter(t *testing.T, c *cloudwatchlogs.Client, group, name, pattern string, m types.MetricTransformation) {
	t.Helper()
	m.MetricNamespace = aws.String("App")
	must(c.PutMetricFilter(t.Context(), &cloudwatchlogs.PutMetricFilterInput{
		LogGroupName: &group, FilterName: &name, FilterPattern: &pattern, MetricTransformations: []types.MetricTransformation{m},
	}))(t)
}

// sums are the sums and counts of samples of a metric, minute by minute.
func sums(t *testing.T, endpoint, name string, from, to time.Time, dimensions ...string) (all []string) {
	t.Helper()
	in := &cloudwatch.GetMetricStatisticsInput{
		Namespace: aws.String("App"), MetricName: &name, StartTime: &from, EndTime: &to, Period: aws.Int32(60),
		Statistics: []cwtypes.Statistic{cwtypes.StatisticSum, cwtypes.StatisticSampleCount},
	}
	for i := 0; i < len(dimensions); i += 2 {
		in.Dimensions = append(in.Dimensions, cwtypes.Dimension{Name: &dimensions[i], Value: &dimensions[i+1]})
	}
	at := map[int]string{}
	for _, p := range must(metricsClient(endpoint).GetMetricStatistics(t.Context(), in))(t).Datapoints {
		at[int(p.Timestamp.Sub(from).Minutes())] = fmt.Sprintf("%v/%v %s", *p.Sum, *p.SampleCount, p.Unit)
	}
	for minute := range int(to.Sub(from).Minutes()) {
		all = append(all, at[minute])
	}
	return all
}

// What a filter counts of the events of its group is a metric, at the events' times, and alarms are
// evaluated on it.
func TestMetricFilters(t *testing.T) {
	endpoint, restart := startDisk(t)
	c, ctx := logsClient(endpoint), t.Context()
	now := nextMinute(t, endpoint)
	must(c.CreateLogGroup(ctx, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: aws.String("/app")}))(t)
	must(c.CreateLogStream(ctx, &cloudwatchlogs.CreateLogStreamInput{LogGroupName: aws.String("/app"), LogStreamName: aws.String("s")}))(t)
	putFilter(t, c, "/app", "errors", "ERROR", types.MetricTransformation{MetricName: aws.String("Errors"), MetricValue: aws.String("1"), DefaultValue: aws.Float64(0), Unit: types.StandardUnitCount})
	putFilter(t, c, "/app", "latency", `{ $.took = * }`, types.MetricTransformation{
		MetricName: aws.String("Latency"), MetricValue: aws.String("$.took"), Unit: types.StandardUnitMilliseconds, Dimensions: map[string]string{"path": "$.path"},
	})
	putFilter(t, c, "/app", "bytes", `[ip, code=2*, ..., size]`, types.MetricTransformation{MetricName: aws.String("Bytes"), MetricValue: aws.String("$size")})
	putAlarmOn := func(in *cloudwatch.PutMetricAlarmInput) {
		in.Namespace, in.MetricName, in.Threshold = aws.String("App"), aws.String("Errors"), aws.Float64(1)
	}
	putAlarm(t, endpoint, "errors", putAlarmOn)

	from := now.Add(-2 * time.Minute)
	put := func(lines ...string) {
		t.Helper()
		in := &cloudwatchlogs.PutLogEventsInput{LogGroupName: aws.String("/app"), LogStreamName: aws.String("s")}
		for _, line := range lines {
			minute, message, _ := strings.Cut(line, " ")
			at := from.Add(time.Duration(minute[0]-'0') * time.Minute).UnixMilli()
			in.LogEvents = append(in.LogEvents, types.InputLogEvent{Timestamp: &at, Message: &message})
		}
		must(c.PutLogEvents(ctx, in))(t)
	}
	put("0 fine", "0 fine", "1 ERROR a", "1 ERROR b", `1 {"took":12.5,"path":"/a"}`, `1 {"took":2,"path":"/b"}`, `1 {"took":"slow","path":"/b"}`, `1 {"took":3}`,
		"1 127.0.0.1 200 GET / 512", "1 127.0.0.1 404 GET / 7", "2 ERROR c", `2 {"took":5,"path":"/a"}`)
	put("0 fine again", "2 ERROR d")
	to := from.Add(3 * time.Minute)
	equal(t, "errors", []string{"0/1 Count", "2/2 Count", "2/2 Count"}, sums(t, endpoint, "Errors", from, to))
	equal(t, "latency of a path", []string{"", "12.5/1 Milliseconds", "5/1 Milliseconds"}, sums(t, endpoint, "Latency", from, to, "path", "/a"))
	equal(t, "latency of another", []string{"", "2/1 Milliseconds", ""}, sums(t, endpoint, "Latency", from, to, "path", "/b"))
	equal(t, "latency of all", []string{"", "", ""}, sums(t, endpoint, "Latency", from, to))
	equal(t, "bytes", []string{"", "512/1 None", ""}, sums(t, endpoint, "Bytes", from, to))

	endpoint = restart()
	c = logsClient(endpoint)
	nextMinute(t, endpoint)
	equal(t, "the alarm", cwtypes.StateValueAlarm, describeAlarm(t, endpoint, "errors").StateValue)
	equal(t, "errors after a restart", []string{"0/1 Count", "2/2 Count", "2/2 Count"}, sums(t, endpoint, "Errors", from, to))
	equal(t, "filters of the group", int32(3), *must(c.DescribeLogGroups(ctx, &cloudwatchlogs.DescribeLogGroupsInput{}))(t).LogGroups[0].MetricFilterCount)
	must(c.DeleteMetricFilter(ctx, &cloudwatchlogs.DeleteMetricFilterInput{LogGroupName: aws.String("/app"), FilterName: aws.String("errors")}))(t)
	put("2 ERROR e", "2 127.0.0.1 200 GET / 1")
	equal(t, "errors without the filter", []string{"0/1 Count", "2/2 Count", "2/2 Count"}, sums(t, endpoint, "Errors", from, to))
	equal(t, "bytes with theirs", []string{"", "512/1 None", "1/1 None"}, sums(t, endpoint, "Bytes", from, to))
}

func TestDescribeMetricFilters(t *testing.T) {
	endpoint := start(t)
	c, ctx := logsClient(endpoint), t.Context()
	made := serverTime(t, endpoint).UnixMilli()
	for _, group := range []string{"/a", "/b", "/c"} {
		must(c.CreateLogGroup(ctx, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: &group}))(t)
		if group == "/b" {
			continue
		}
		for n := range 4 {
			putFilter(t, c, group, fmt.Sprint("f", n), " ", types.MetricTransformation{MetricName: aws.String(fmt.Sprint("M", n%2)), MetricValue: aws.String("1.5")})
		}
	}
	describe := func(in cloudwatchlogs.DescribeMetricFiltersInput) string {
		t.Helper()
		var all []string
		in.Limit = aws.Int32(3)
		for p := cloudwatchlogs.NewDescribeMetricFiltersPaginator(c, &in); p.HasMorePages(); {
			page := must(p.NextPage(ctx))(t)
			if len(page.MetricFilters) > 3 {
				t.Errorf("a page of %d filters", len(page.MetricFilters))
			}
			for _, f := range page.MetricFilters {
				all = append(all, *f.LogGroupName+*f.FilterName)
			}
		}
		return strings.Join(all, " ")
	}
	for want, in := range map[string]cloudwatchlogs.DescribeMetricFiltersInput{
		"/af0 /af1 /af2 /af3 /cf0 /cf1 /cf2 /cf3": {},
		"/af0 /af1 /af2 /af3":                     {LogGroupName: aws.String("/a")},
		"":                                        {LogGroupName: aws.String("/b")},
		"/cf2":                                    {LogGroupName: aws.String("/c"), FilterNamePrefix: aws.String("f2")},
		"/af1 /af3 /cf1 /cf3":                     {MetricName: aws.String("M1"), MetricNamespace: aws.String("App")},
	} {
		equal(t, "filters", want, describe(in))
	}
	one := must(c.DescribeMetricFilters(ctx, &cloudwatchlogs.DescribeMetricFiltersInput{LogGroupName: aws.String("/a"), FilterNamePrefix: aws.String("f0")}))(t)
	equal(t, "a filter", []types.MetricFilter{{
		FilterName: aws.String("f0"), FilterPattern: aws.String(" "), LogGroupName: aws.String("/a"), CreationTime: &made,
		MetricTransformations: []types.MetricTransformation{{MetricName: aws.String("M0"), MetricNamespace: aws.String("App"), MetricValue: aws.String("1.5")}},
	}}, one.MetricFilters)
	putFilter(t, c, "/a", "f0", "", types.MetricTransformation{MetricName: aws.String("Other"), MetricValue: aws.String("$.a")})
	equal(t, "replaced", "Other", *must(c.DescribeMetricFilters(ctx, &cloudwatchlogs.DescribeMetricFiltersInput{LogGroupName: aws.String("/a")}))(t).MetricFilters[0].MetricTransformations[0].MetricName)
	for n := range 96 {
		putFilter(t, c, "/a", fmt.Sprint("more", n), "", types.MetricTransformation{MetricName: aws.String("M"), MetricValue: aws.String("1")})
	}
	refusedFilter := func(change func(in *cloudwatchlogs.PutMetricFilterInput), code, text string) {
		t.Helper()
		in := &cloudwatchlogs.PutMetricFilterInput{
			LogGroupName: aws.String("/b"), FilterName: aws.String("f"), FilterPattern: aws.String(""),
			MetricTransformations: []types.MetricTransformation{{MetricName: aws.String("M"), MetricNamespace: aws.String("App"), MetricValue: aws.String("1")}},
		}
		change(in)
		wantLogsError(t, "PutMetricFilter", outcome(c.PutMetricFilter(ctx, in)), code, text)
	}
	refusedFilter(func(in *cloudwatchlogs.PutMetricFilterInput) { in.LogGroupName = aws.String("/a") }, "LimitExceededException", "Resource limit exceeded.")
	refusedFilter(func(in *cloudwatchlogs.PutMetricFilterInput) { in.LogGroupName = aws.String("/none") }, noLogResource, "The specified log group does not exist.")
	refusedFilter(func(in *cloudwatchlogs.PutMetricFilterInput) { in.FilterPattern = aws.String("a:b") }, invalidParameter, "Invalid character(s) in term ':'")
	refusedFilter(func(in *cloudwatchlogs.PutMetricFilterInput) {
		in.MetricTransformations[0].DefaultValue, in.MetricTransformations[0].Dimensions = aws.Float64(0), map[string]string{"d": "$.a"}
	}, invalidParameter, "Invalid metric transformation: dimensions and default value are mutually exclusive properties.")
	for _, value := range []string{"", "many", "NaN", "$size", "$.", "$.a b", "0x1", "1e308", "-1e-320"} {
		refusedFilter(func(in *cloudwatchlogs.PutMetricFilterInput) { in.MetricTransformations[0].MetricValue = &value }, invalidParameter, "")
	}
	refusedFilter(func(in *cloudwatchlogs.PutMetricFilterInput) {
		in.MetricTransformations[0].MetricNamespace = aws.String("AWS/SQS")
	}, invalidParameter, "")
	refusedFilter(func(in *cloudwatchlogs.PutMetricFilterInput) { in.MetricTransformations[0].Unit = "Miles" }, invalidParameter, "")
	refusedFilter(func(in *cloudwatchlogs.PutMetricFilterInput) { in.FilterName = aws.String("a:b") }, invalidParameter, "")
	refusedFilter(func(in *cloudwatchlogs.PutMetricFilterInput) {
		in.MetricTransformations[0].MetricName = aws.String("a$")
	}, invalidParameter, "")
	refusedFilter(func(in *cloudwatchlogs.PutMetricFilterInput) {
		in.MetricTransformations[0].DefaultValue = aws.Float64(1e308)
	}, invalidParameter, "")
	for _, name := range []string{"", " ", ":a", "é", "a\n", strings.Repeat("x", 256)} {
		refusedFilter(func(in *cloudwatchlogs.PutMetricFilterInput) {
			in.MetricTransformations[0].Dimensions = map[string]string{name: "$.a"}
		}, invalidParameter, "")
	}
	equal(t, "what was refused", "", describe(cloudwatchlogs.DescribeMetricFiltersInput{LogGroupName: aws.String("/b")}))
	wantLogsError(t, "DeleteMetricFilter", outcome(c.DeleteMetricFilter(ctx, &cloudwatchlogs.DeleteMetricFilterInput{LogGroupName: aws.String("/b"), FilterName: aws.String("f")})), noLogResource, "The specified metric filter does not exist.")
}

// What a template has in place of a number, or of dimensions, is refused, and the group stays as it is.
func TestMetricFilterOfBadTemplates(t *testing.T) {
	endpoint := start(t)
	c, ctx := logsClient(endpoint), t.Context()
	must(c.CreateLogGroup(ctx, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: aws.String("/app"), Tags: map[string]string{"team": "a"}}))(t)
	putFilter(t, c, "/app", "first", "", types.MetricTransformation{MetricName: aws.String("M"), MetricValue: aws.String("1")})
	for name, bad := range map[string]string{
		"nan": "DefaultValue: NaN", "infinite": "DefaultValue: -Inf", "huge": `DefaultValue: "1e308"`,
		"names": "Dimensions: [path]", "map": "Dimensions: {path: $.path}", "twice": "Dimensions: [{Key: a, Value: $.a}, {Key: a, Value: $.b}]",
	} {
		deployedBadly(t, cloudformationAs(endpoint, account), name, `
Resources:
  Filter:
    Type: AWS::Logs::MetricFilter
    Properties:
      LogGroupName: /app
      FilterPattern: ""
      MetricTransformations: [{MetricName: M, MetricNamespace: App, MetricValue: "1", `+bad+`}]
`)
	}
	equal(t, "filters", 1, len(must(c.DescribeMetricFilters(ctx, &cloudwatchlogs.DescribeMetricFiltersInput{LogGroupName: aws.String("/app")}))(t).MetricFilters))
	group := must(c.DescribeLogGroups(ctx, &cloudwatchlogs.DescribeLogGroupsInput{}))(t).LogGroups[0]
	equal(t, "tags", map[string]string{"team": "a"}, must(c.ListTagsForResource(ctx, &cloudwatchlogs.ListTagsForResourceInput{ResourceArn: group.LogGroupArn}))(t).Tags)
}
