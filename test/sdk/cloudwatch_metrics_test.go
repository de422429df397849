package sdk_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// metricsClient is a CloudWatch client of account 000000000000.
func metricsClient(endpoint string) *cloudwatch.Client {
	return cloudwatch.New(cloudwatch.Options{
		BaseEndpoint:     &endpoint,
		Region:           region,
		Credentials:      credentials.NewStaticCredentialsProvider("test", secretOf("test"), ""),
		RetryMaxAttempts: 1,
		HTTPClient:       eager,
	})
}

// serverTime is where the server's clock stands.
func serverTime(t *testing.T, endpoint string) time.Time {
	t.Helper()
	var answer struct{ Now time.Time }
	if err := json.Unmarshal([]byte(post(t, endpoint+"/_godwit/clock", `{"advance":"0s"}`).Body), &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Now
}

// nextMinute moves the server's clock to the beginning of the next minute, at
// which everything of the last one is reported.
func nextMinute(t *testing.T, endpoint string) time.Time {
	t.Helper()
	now := serverTime(t, endpoint)
	next := now.Truncate(time.Minute).Add(time.Minute)
	advance(t, endpoint, next.Sub(now).String())
	return next
}

func dimensions(pairs ...string) []types.Dimension {
	all := []types.Dimension{}
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, types.Dimension{Name: &pairs[i], Value: &pairs[i+1]})
	}
	return all
}

// statistic is one statistic of a metric with one dimension, by the minute, of the
// last hour: "0 1 …" from the oldest to the newest, with - for none.
func statistic(t *testing.T, endpoint, namespace, name, stat string, dimension ...string) string {
	t.Helper()
	now := serverTime(t, endpoint).Truncate(time.Minute)
	in := &cloudwatch.GetMetricDataInput{
		StartTime: aws.Time(now.Add(-time.Hour)), EndTime: aws.Time(now.Add(time.Minute)), ScanBy: types.ScanByTimestampAscending,
		MetricDataQueries: []types.MetricDataQuery{{Id: aws.String("q"), MetricStat: &types.MetricStat{
			Metric: &types.Metric{Namespace: &namespace, MetricName: &name, Dimensions: dimensions(dimension...)},
			Period: aws.Int32(60), Stat: &stat,
		}}},
	}
	result := must(metricsClient(endpoint).GetMetricData(t.Context(), in))(t).MetricDataResults[0]
	var values []string
	for i, value := range result.Values {
		if i > 0 {
			for gap := result.Timestamps[i-1].Add(time.Minute); gap.Before(result.Timestamps[i]); gap = gap.Add(time.Minute) {
				values = append(values, "-")
			}
		}
		values = append(values, fmt.Sprint(value))
	}
	return strings.Join(values, " ")
}

// What is put in comes out again, whichever way it is put and asked for.
func TestPutAndGetMetrics(t *testing.T) {
	endpoint := start(t)
	c := metricsClient(endpoint)
	now := serverTime(t, endpoint).Truncate(time.Minute)
	ago := func(minutes int) *time.Time { return aws.Time(now.Add(-time.Duration(minutes) * time.Minute)) }
	put := func(data ...types.MetricDatum) {
		t.Helper()
		must(c.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: aws.String("shop"), MetricData: data}))(t)
	}
	name, of := aws.String("latency"), dimensions("service", "cart", "host", "a")
	reverse := []types.Dimension{of[1], of[0]}
	put(
		types.MetricDatum{MetricName: name, Dimensions: of, Timestamp: ago(3), Value: aws.Float64(1.5), Unit: types.StandardUnitMilliseconds},
		types.MetricDatum{MetricName: name, Dimensions: reverse, Timestamp: ago(3), Value: aws.Float64(0), Unit: types.StandardUnitMilliseconds},
		types.MetricDatum{MetricName: name, Dimensions: of, Timestamp: ago(2), Values: []float64{1, 2, 10}, Counts: []float64{5, 4, 1}, Unit: types.StandardUnitMilliseconds},
	)
	put(types.MetricDatum{MetricName: name, Dimensions: of, Timestamp: ago(1), Unit: types.StandardUnitMilliseconds, StatisticValues: &types.StatisticSet{
		SampleCount: aws.Float64(4), Sum: aws.Float64(10), Minimum: aws.Float64(1), Maximum: aws.Float64(4),
	}})
	put(types.MetricDatum{MetricName: name, Value: aws.Float64(7)}) // without dimensions it is another metric

	statistics := func(change func(*cloudwatch.GetMetricStatisticsInput)) []types.Datapoint {
		t.Helper()
		in := &cloudwatch.GetMetricStatisticsInput{
			Namespace: aws.String("shop"), MetricName: name, Dimensions: of, StartTime: ago(10), EndTime: ago(-1), Period: aws.Int32(60),
			Statistics: []types.Statistic{types.StatisticSampleCount, types.StatisticAverage, types.StatisticSum, types.StatisticMinimum, types.StatisticMaximum},
		}
		change(in)
		out := must(c.GetMetricStatistics(t.Context(), in))(t)
		equal(t, "the label", "latency", aws.ToString(out.Label))
		return out.Datapoints
	}
	ms := types.StandardUnitMilliseconds
	point := func(at *time.Time, count, average, sum, least, most float64) types.Datapoint {
		return types.Datapoint{Timestamp: at, SampleCount: &count, Average: &average, Sum: &sum, Minimum: &least, Maximum: &most, Unit: ms}
	}
	equal(t, "the statistics by the minute", []types.Datapoint{
		point(ago(3), 2, 0.75, 1.5, 0, 1.5), point(ago(2), 10, 2.3, 23, 1, 10), point(ago(1), 4, 2.5, 10, 1, 4),
	}, statistics(func(*cloudwatch.GetMetricStatisticsInput) {}))
	equal(t, "those of ten minutes", []types.Datapoint{point(ago(10), 16, 34.5/16, 34.5, 0, 10)},
		statistics(func(in *cloudwatch.GetMetricStatisticsInput) { in.Period = aws.Int32(600) }))
	equal(t, "percentiles, which a minute of statistics does not have", []types.Datapoint{
		{Timestamp: ago(3), Unit: ms, ExtendedStatistics: map[string]float64{"p50": 0, "tm90": 0.6666666666666667, "PR(:1)": 50}},
		{Timestamp: ago(2), Unit: ms, ExtendedStatistics: map[string]float64{"p50": 1, "tm90": 13.0 / 9, "PR(:1)": 50}},
	}, statistics(func(in *cloudwatch.GetMetricStatisticsInput) {
		in.Statistics, in.ExtendedStatistics = nil, []string{"p50", "tm90", "PR(:1)"}
	}))
	equal(t, "those of another unit", []types.Datapoint{}, statistics(func(in *cloudwatch.GetMetricStatisticsInput) {
		in.Unit = types.StandardUnitSeconds
	}))
	equal(t, "those of no dimensions", []types.Datapoint{{Timestamp: ago(0), Sum: aws.Float64(7), Unit: types.StandardUnitNone}},
		statistics(func(in *cloudwatch.GetMetricStatisticsInput) {
			in.Dimensions, in.Statistics = nil, []types.Statistic{types.StatisticSum}
		}))

	listed := must(c.ListMetrics(t.Context(), &cloudwatch.ListMetricsInput{}))(t)
	equal(t, "the metrics", []types.Metric{
		{Namespace: aws.String("shop"), MetricName: name, Dimensions: []types.Dimension{}},
		{Namespace: aws.String("shop"), MetricName: name, Dimensions: dimensions("host", "a", "service", "cart")},
	}, listed.Metrics)
	listed = must(c.ListMetrics(t.Context(), &cloudwatch.ListMetricsInput{
		Namespace: aws.String("shop"), MetricName: name, Dimensions: []types.DimensionFilter{{Name: aws.String("host")}},
		RecentlyActive: types.RecentlyActivePt3h, IncludeLinkedAccounts: aws.Bool(true),
	}))(t)
	equal(t, "one of them", 1, len(listed.Metrics))
	equal(t, "its account", []string{account}, listed.OwningAccounts)

	// It is all there after hours and days, as long as it is kept.
	advance(t, endpoint, "20h")
	equal(t, "the next day", 3, len(statistics(func(*cloudwatch.GetMetricStatisticsInput) {})))
	advance(t, endpoint, "480h")
	samples := 0.0
	for _, point := range statistics(func(in *cloudwatch.GetMetricStatisticsInput) { in.StartTime, in.Period = ago(120), aws.Int32(300) }) {
		if point.Timestamp.Unix()%300 != 0 {
			t.Errorf("a datapoint at %v", point.Timestamp)
		}
		samples += *point.SampleCount
	}
	equal(t, "the samples after three weeks", 16.0, samples)
	listed = must(c.ListMetrics(t.Context(), &cloudwatch.ListMetricsInput{}))(t)
	equal(t, "the metrics of the last two weeks", []types.Metric{}, listed.Metrics)
}

// GetMetricData answers every query, in pages, with labels that tell them apart.
func TestGetMetricData(t *testing.T) {
	endpoint := start(t)
	c := metricsClient(endpoint)
	now := serverTime(t, endpoint).Truncate(5 * time.Minute)
	var data []types.MetricDatum
	for n := range 10 {
		data = append(data, types.MetricDatum{
			MetricName: aws.String("m"), Value: aws.Float64(float64(n)), Timestamp: aws.Time(now.Add(-time.Duration(n) * time.Minute)), Unit: types.StandardUnitCount,
		})
	}
	data = append(data, types.MetricDatum{MetricName: aws.String("m"), Value: aws.Float64(1), Timestamp: aws.Time(now), Unit: types.StandardUnitSeconds})
	must(c.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: aws.String("n"), MetricData: data}))(t)
	query := func(id, name, stat string, period int32) types.MetricDataQuery {
		return types.MetricDataQuery{Id: &id, MetricStat: &types.MetricStat{
			Metric: &types.Metric{Namespace: aws.String("n"), MetricName: &name}, Period: &period, Stat: &stat, Unit: types.StandardUnitCount,
		}}
	}
	in := &cloudwatch.GetMetricDataInput{
		StartTime: aws.Time(now.Add(-time.Hour)), EndTime: aws.Time(now.Add(time.Minute)),
		MetricDataQueries: []types.MetricDataQuery{
			query("a", "m", "Sum", 60), query("b", "m", "p50", 300), query("c", "none", "Sum", 60), query("d", "m", "Maximum", 60), query("e", "m", "Sum", 60),
		},
	}
	in.MetricDataQueries[3].ReturnData = aws.Bool(false)
	in.MetricDataQueries[4].Label = aws.String("mine")
	in.MetricDataQueries[4].MetricStat.Unit = ""
	type result struct {
		ID, Label string
		First     time.Time
		Values    string
		Status    types.StatusCode
		Messages  string
	}
	show := func(all []types.MetricDataResult) []result {
		var shown []result
		for _, r := range all {
			one := result{ID: *r.Id, Label: *r.Label, Values: fmt.Sprint(r.Values), Status: r.StatusCode}
			if len(r.Timestamps) > 0 {
				one.First = r.Timestamps[0]
			}
			for _, m := range r.Messages {
				one.Messages += *m.Code + ": " + *m.Value
			}
			shown = append(shown, one)
		}
		return shown
	}
	out := must(c.GetMetricData(t.Context(), in))(t)
	complete := types.StatusCodeComplete
	want := []result{
		{"a", "m Sum 60", now, "[0 1 2 3 4 5 6 7 8 9]", complete, ""},
		{"b", "m p50 300", now, "[0 3 7]", complete, ""},
		{"c", "none Sum 60", time.Time{}, "[]", complete, ""},
		{"e", "mine", now, "[0 1 2 3 4 5 6 7 8 9]", complete, "MultipleUnits: Multiple units returned: '[Count, Seconds]'"},
	}
	equal(t, "the results", want, show(out.MetricDataResults))
	equal(t, "no messages", []types.MessageData{}, out.Messages)
	equal(t, "no further page", "", aws.ToString(out.NextToken))

	in.ScanBy, in.MaxDatapoints = types.ScanByTimestampAscending, aws.Int32(4)
	var pages []string
	p := cloudwatch.NewGetMetricDataPaginator(c, in)
	for p.HasMorePages() {
		page := ""
		for _, r := range must(p.NextPage(t.Context()))(t).MetricDataResults {
			page += fmt.Sprint(*r.Id, r.Values, r.StatusCode, " ")
		}
		pages = append(pages, page)
	}
	equal(t, "pages", []string{
		"a[9 8 7 6]PartialData ", "a[5 4 3 2]PartialData ", "a[1 0]Complete b[7 3]PartialData ", "b[0]Complete c[]Complete e[9 8 7]PartialData ",
		"e[6 5 4 3]PartialData ", "e[2 1 0]Complete ",
	}, pages)

	// One query has the name of its metric alone.
	in = &cloudwatch.GetMetricDataInput{StartTime: in.StartTime, EndTime: in.EndTime, MetricDataQueries: in.MetricDataQueries[:1]}
	equal(t, "a single label", "m", *must(c.GetMetricData(t.Context(), in))(t).MetricDataResults[0].Label)
}

// Metrics are listed in pages of 500.
func TestListMetricsPages(t *testing.T) {
	endpoint := start(t)
	c := metricsClient(endpoint)
	var names []string
	for n := range 1200 {
		names = append(names, fmt.Sprintf("m%04d", n))
	}
	for chunk := range slices.Chunk(names, 1000) {
		in := &cloudwatch.PutMetricDataInput{Namespace: aws.String("n")}
		for _, name := range chunk {
			in.MetricData = append(in.MetricData, types.MetricDatum{MetricName: &name, Value: aws.Float64(1)})
		}
		must(c.PutMetricData(t.Context(), in))(t)
	}
	var got []string
	var sizes []int
	p := cloudwatch.NewListMetricsPaginator(c, &cloudwatch.ListMetricsInput{})
	for p.HasMorePages() {
		page := must(p.NextPage(t.Context()))(t).Metrics
		sizes = append(sizes, len(page))
		for _, m := range page {
			got = append(got, *m.MetricName)
		}
	}
	equal(t, "the names", names, got)
	equal(t, "the pages", []int{500, 500, 200}, sizes)
}

// callMetricsJSON sends an operation of CloudWatch in AWS JSON 1.0.
func callMetricsJSON(t *testing.T, endpoint, operation, body string, header ...string) response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("X-Amz-Target", "GraniteServiceVersion20100801."+operation)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return do(t, req)
}

// callMetricsQuery sends an operation of CloudWatch as a form.
func callMetricsQuery(t *testing.T, endpoint, operation string, parameters ...string) response {
	t.Helper()
	form := url.Values{"Action": {operation}, "Version": {"2010-08-01"}}
	for i := 0; i < len(parameters); i += 2 {
		form.Set(parameters[i], parameters[i+1])
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return do(t, req)
}

// The same in the protocols of other SDKs, by hand.
func TestMetricsInOtherProtocols(t *testing.T) {
	endpoint := start(t)
	now := serverTime(t, endpoint).Truncate(time.Minute)
	stamp := now.Format("2006-01-02T15:04:05Z")

	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	fmt.Fprintf(w, `{"Namespace":"n","MetricData":[{"MetricName":"a","Timestamp":%d,"Value":1.5,"Unit":"Count","Dimensions":[{"Name":"d","Value":"v"}]}]}`, now.Unix())
	w.Close()
	r := callMetricsJSON(t, endpoint, "PutMetricData", zipped.String(), "Content-Encoding", "gzip")
	equal(t, "PutMetricData in JSON", "200 ", fmt.Sprint(r.Status, " ", r.Body))
	r = callMetricsQuery(t, endpoint, "PutMetricData", "Namespace", "n", "MetricData.member.1.MetricName", "a", "MetricData.member.1.Timestamp", stamp,
		"MetricData.member.1.Value", "2", "MetricData.member.1.Unit", "Count",
		"MetricData.member.1.Dimensions.member.1.Name", "d", "MetricData.member.1.Dimensions.member.1.Value", "v")
	if r.Status != 200 || !strings.HasPrefix(r.Body, `<PutMetricDataResponse xmlns="http://monitoring.amazonaws.com/doc/2010-08-01/"><ResponseMetadata><RequestId>`) {
		t.Errorf("PutMetricData as a form: %d %s", r.Status, r.Body)
	}

	ask := fmt.Sprintf(`"StartTime":%d,"EndTime":%d`, now.Unix()-60, now.Unix()+60)
	r = callMetricsJSON(t, endpoint, "GetMetricStatistics",
		`{"Namespace":"n","MetricName":"a","Dimensions":[{"Name":"d","Value":"v"}],"Period":60,"Statistics":["Sum","SampleCount"],`+ask+`}`)
	equal(t, "GetMetricStatistics in JSON", fmt.Sprintf(`200 {"Label":"a","Datapoints":[{"Timestamp":%d.0,"SampleCount":2.0,"Sum":3.5,"Unit":"Count"}]}`, now.Unix()), fmt.Sprint(r.Status, " ", r.Body))
	r = callMetricsQuery(t, endpoint, "GetMetricStatistics", "Namespace", "n", "MetricName", "a", "Dimensions.member.1.Name", "d", "Dimensions.member.1.Value", "v",
		"Period", "60", "ExtendedStatistics.member.1", "p100", "StartTime", stamp, "EndTime", now.Add(time.Minute).Format(time.RFC3339))
	if want := `<GetMetricStatisticsResult><Label>a</Label><Datapoints><member><Timestamp>` + stamp + `</Timestamp><Unit>Count</Unit>` +
		`<ExtendedStatistics><entry><key>p100</key><value>2.0</value></entry></ExtendedStatistics></member></Datapoints></GetMetricStatisticsResult>`; !strings.Contains(r.Body, want) {
		t.Errorf("GetMetricStatistics as a form: %d %s\nwant %s", r.Status, r.Body, want)
	}

	r = callMetricsJSON(t, endpoint, "GetMetricData",
		`{"MetricDataQueries":[{"Id":"q","MetricStat":{"Metric":{"Namespace":"n","MetricName":"a","Dimensions":[{"Name":"d","Value":"v"}]},"Period":60,"Stat":"Average"}}],`+ask+`}`)
	equal(t, "GetMetricData in JSON", fmt.Sprintf(`200 {"MetricDataResults":[{"Id":"q","Label":"a","Timestamps":[%d.0],"Values":[1.75],"StatusCode":"Complete"}],"Messages":[]}`, now.Unix()), fmt.Sprint(r.Status, " ", r.Body))
	r = callMetricsQuery(t, endpoint, "GetMetricData", "StartTime", stamp, "EndTime", now.Add(time.Minute).Format(time.RFC3339),
		"MetricDataQueries.member.1.Id", "q", "MetricDataQueries.member.1.MetricStat.Metric.Namespace", "n", "MetricDataQueries.member.1.MetricStat.Metric.MetricName", "a",
		"MetricDataQueries.member.1.MetricStat.Metric.Dimensions.member.1.Name", "d", "MetricDataQueries.member.1.MetricStat.Metric.Dimensions.member.1.Value", "v",
		"MetricDataQueries.member.1.MetricStat.Period", "60", "MetricDataQueries.member.1.MetricStat.Stat", "Sum")
	if want := `<member><Id>q</Id><Label>a</Label><Timestamps><member>` + stamp + `</member></Timestamps><Values><member>3.5</member></Values><StatusCode>Complete</StatusCode></member>`; !strings.Contains(r.Body, want) {
		t.Errorf("GetMetricData as a form: %d %s\nwant %s", r.Status, r.Body, want)
	}

	r = callMetricsJSON(t, endpoint, "ListMetrics", `{"Dimensions":[{"Name":"d"}]}`)
	equal(t, "ListMetrics in JSON", `200 {"Metrics":[{"Namespace":"n","MetricName":"a","Dimensions":[{"Name":"d","Value":"v"}]}]}`, fmt.Sprint(r.Status, " ", r.Body))
	r = callMetricsQuery(t, endpoint, "ListMetrics", "Namespace", "n")
	if want := `<ListMetricsResult><Metrics><member><Namespace>n</Namespace><MetricName>a</MetricName><Dimensions><member><Name>d</Name><Value>v</Value></member></Dimensions></member></Metrics></ListMetricsResult>`; !strings.Contains(r.Body, want) {
		t.Errorf("ListMetrics as a form: %d %s", r.Status, r.Body)
	}
}

// A queue's metrics, by AWS's names and units, while it is active.
func TestQueueMetrics(t *testing.T) {
	endpoint := start(t)
	nextMinute(t, endpoint)
	c := client(endpoint)
	queue := createQueue(t, c, "q", "VisibilityTimeout", "300")
	createQueue(t, c, "unused")
	at := serverTime(t, endpoint)
	for n := range 3 {
		must(c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &queue, MessageBody: aws.String(strings.Repeat("x", 10*(n+1)))}))(t)
	}
	must(c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &queue, MessageBody: aws.String("later"), DelaySeconds: 600}))(t)
	got := must(c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &queue, MaxNumberOfMessages: 2}))(t).Messages
	for range 2 { // deleting again counts again
		must(c.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &queue, ReceiptHandle: got[0].ReceiptHandle}))(t)
	}
	nextMinute(t, endpoint)
	nextMinute(t, endpoint)
	for name, want := range map[string][4]string{ // sums, samples, largest, unit
		"NumberOfMessagesSent":                  {"4 0", "4 1", "1 0", "Count"},
		"NumberOfMessagesReceived":              {"2 0", "1 1", "2 0", "Count"},
		"NumberOfMessagesDeleted":               {"2 0", "2 1", "1 0", "Count"},
		"NumberOfEmptyReceives":                 {"0 0", "1 1", "0 0", "Count"},
		"SentMessageSize":                       {"65", "4", "30", "Bytes"},
		"ApproximateNumberOfMessagesVisible":    {"1 1", "1 1", "1 1", "Count"},
		"ApproximateNumberOfMessagesNotVisible": {"1 1", "1 1", "1 1", "Count"},
		"ApproximateNumberOfMessagesDelayed":    {"1 1", "1 1", "1 1", "Count"},
		"ApproximateAgeOfOldestMessage":         {"60 120", "1 1", "60 120", "Seconds"},
	} {
		for i, stat := range []string{"Sum", "SampleCount", "Maximum"} {
			if got := statistic(t, endpoint, "AWS/SQS", name, stat, "QueueName", "q"); got != want[i] {
				t.Errorf("%s of %s is %s, want %s", stat, name, got, want[i])
			}
		}
		points := must(metricsClient(endpoint).GetMetricStatistics(t.Context(), &cloudwatch.GetMetricStatisticsInput{
			Namespace: aws.String("AWS/SQS"), MetricName: &name, Dimensions: dimensions("QueueName", "q"),
			StartTime: &at, EndTime: aws.Time(at.Add(time.Minute)), Period: aws.Int32(60), Statistics: []types.Statistic{types.StatisticSum},
		}))(t).Datapoints
		if len(points) != 1 || string(points[0].Unit) != want[3] || !points[0].Timestamp.Equal(at) {
			t.Errorf("%s: %+v", name, points)
		}
	}

	// It is active as long as it has messages, and six hours after.
	advance(t, endpoint, "90h")
	if got := statistic(t, endpoint, "AWS/SQS", "ApproximateNumberOfMessagesVisible", "Average", "QueueName", "q"); got != strings.TrimSpace(strings.Repeat("3 ", 60)) {
		t.Errorf("after days it has %s", got)
	}
	must(c.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: &queue}))(t)
	advance(t, endpoint, "5h")
	if got := statistic(t, endpoint, "AWS/SQS", "ApproximateNumberOfMessagesVisible", "Average", "QueueName", "q"); got != strings.TrimSpace(strings.Repeat("0 ", 60)) {
		t.Errorf("hours after a purge it has %s", got)
	}
	advance(t, endpoint, "3h")
	if got := statistic(t, endpoint, "AWS/SQS", "NumberOfMessagesSent", "Average", "QueueName", "q"); got != "" {
		t.Errorf("idle for hours and empty it has %s", got)
	}
}
