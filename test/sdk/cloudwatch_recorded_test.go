package sdk_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/fxamacker/cbor/v2"
)

// callMetricsCBOR sends an operation of CloudWatch in Smithy's RPC v2 protocol.
func callMetricsCBOR(t *testing.T, endpoint, operation string, in map[string]any) (status int, out map[string]any) {
	t.Helper()
	body, err := cbor.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint+"/service/GraniteServiceVersion20100801/operation/"+operation, strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Smithy-Protocol", "rpc-v2-cbor")
	req.Header.Set("Content-Type", "application/cbor")
	r := do(t, req)
	if r.Body != "" {
		if err := cbor.Unmarshal([]byte(r.Body), &out); err != nil {
			t.Fatal(err)
		}
	}
	return r.Status, out
}

// Doubles are doubles, and timestamps numbers with a fraction, in every protocol.
// Integers stay what they are.
func TestFormsOfNumbers(t *testing.T) {
	endpoint := start(t)
	now := serverTime(t, endpoint).Truncate(time.Minute)
	must(metricsClient(endpoint).PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: aws.String("n"), MetricData: []types.MetricDatum{
		{MetricName: aws.String("m"), Value: aws.Float64(41), Timestamp: &now},
		{MetricName: aws.String("m"), Value: aws.Float64(-41), Timestamp: &now},
		{MetricName: aws.String("p"), Value: aws.Float64(41), Timestamp: &now},
		{MetricName: aws.String("large"), Value: aws.Float64(1 << 70), Timestamp: &now},
	}}))(t)
	putAlarm(t, endpoint, "a", func(in *cloudwatch.PutMetricAlarmInput) {
		in.Threshold, in.DatapointsToAlarm = aws.Float64(30), aws.Int32(1)
	})
	span := fmt.Sprintf(`"StartTime":%d,"EndTime":%d`, now.Unix(), now.Unix()+60)
	for _, tt := range []struct{ operation, body, want string }{
		{"DescribeAlarms", `{}`, `"Period":60,"EvaluationPeriods":1,"DatapointsToAlarm":1,"Threshold":30.0,`},
		{
			"GetMetricStatistics", `{"Namespace":"n","MetricName":"m","Period":60,"Statistics":["SampleCount","Average","Sum","Minimum","Maximum"],` + span + `}`,
			fmt.Sprintf(`{"Timestamp":%d.0,"SampleCount":2.0,"Average":0.0,"Sum":0.0,"Minimum":-41.0,"Maximum":41.0,"Unit":"None"}`, now.Unix()),
		},
		{
			"GetMetricStatistics", `{"Namespace":"n","MetricName":"p","Period":60,"ExtendedStatistics":["p100"],` + span + `}`,
			`"ExtendedStatistics":{"p100":41.0}`,
		},
		{
			"GetMetricData", `{"MetricDataQueries":[{"Id":"q","MetricStat":{"Metric":{"Namespace":"n","MetricName":"m"},"Period":60,"Stat":"Maximum"}}],` + span + `}`,
			fmt.Sprintf(`"Timestamps":[%d.0],"Values":[41.0]`, now.Unix()),
		},
		{
			"GetMetricData", `{"MetricDataQueries":[{"Id":"q","MetricStat":{"Metric":{"Namespace":"n","MetricName":"large"},"Period":60,"Stat":"Sum"}}],` + span + `}`,
			`"Values":[1.1805916207174113e+21]`,
		},
	} {
		if r := callMetricsJSON(t, endpoint, tt.operation, tt.body); r.Status != 200 || !strings.Contains(r.Body, tt.want) {
			t.Errorf("%s in JSON: %d %s\nwant %s", tt.operation, r.Status, r.Body, tt.want)
		}
	}
	if r := callMetricsQuery(t, endpoint, "DescribeAlarms"); !strings.Contains(r.Body, "<DatapointsToAlarm>1</DatapointsToAlarm><Threshold>30.0</Threshold>") {
		t.Errorf("DescribeAlarms as a form: %d %s", r.Status, r.Body)
	}
	_, out := callMetricsCBOR(t, endpoint, "DescribeAlarms", map[string]any{})
	alarm := out["MetricAlarms"].([]any)[0].(map[any]any)
	equal(t, "CBOR", map[string]any{"Threshold": 30.0, "Period": uint64(60)}, map[string]any{"Threshold": alarm["Threshold"], "Period": alarm["Period"]})
}

// DescribeAlarms has three lists, whatever is in them.
func TestListsOfAlarms(t *testing.T) {
	endpoint := start(t)
	equal(t, "JSON", `{"CompositeAlarms":[],"LogAlarms":[],"MetricAlarms":[]}`, callMetricsJSON(t, endpoint, "DescribeAlarms", `{}`).Body)
	r := callMetricsQuery(t, endpoint, "DescribeAlarms")
	if want := `<CompositeAlarms></CompositeAlarms><LogAlarms></LogAlarms><MetricAlarms></MetricAlarms>`; !strings.Contains(r.Body, want) {
		t.Errorf("as a form: %s", r.Body)
	}
	_, out := callMetricsCBOR(t, endpoint, "DescribeAlarms", map[string]any{})
	equal(t, "CBOR", map[string]any{"CompositeAlarms": []any{}, "LogAlarms": []any{}, "MetricAlarms": []any{}}, out)
}

// A datum may have Values and the statistics of them: they are not counted twice.
func TestValuesWithStatistics(t *testing.T) {
	endpoint := start(t)
	must(metricsClient(endpoint).PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: aws.String("n"), MetricData: []types.MetricDatum{{
		MetricName: aws.String("sdk"), Unit: types.StandardUnitCount, Values: []float64{1, 10},
		StatisticValues: &types.StatisticSet{SampleCount: aws.Float64(10), Sum: aws.Float64(55), Minimum: aws.Float64(1), Maximum: aws.Float64(10)},
	}}}))(t)
	r := callMetricsJSON(t, endpoint, "PutMetricData", `{"Namespace":"n","MetricData":[{"MetricName":"json","Unit":"Count","Values":[1.0,10.0],"StatisticValues":{"SampleCount":10,"Sum":55,"Minimum":1,"Maximum":10}}]}`)
	equal(t, "JSON", 200, r.Status)
	r = callMetricsQuery(t, endpoint, "PutMetricData", "Namespace", "n", "MetricData.member.1.MetricName", "form", "MetricData.member.1.Unit", "Count",
		"MetricData.member.1.Values.member.1", "1.0", "MetricData.member.1.Values.member.2", "10.0",
		"MetricData.member.1.StatisticValues.SampleCount", "10", "MetricData.member.1.StatisticValues.Sum", "55",
		"MetricData.member.1.StatisticValues.Minimum", "1", "MetricData.member.1.StatisticValues.Maximum", "10")
	equal(t, "as a form", 200, r.Status)
	for _, name := range []string{"sdk", "json", "form"} {
		for stat, want := range map[string]string{"SampleCount": "10", "Sum": "55", "Minimum": "1", "Maximum": "10"} {
			equal(t, name+" "+stat, want, statistic(t, endpoint, "n", name, stat))
		}
	}
}

// A range of no length, as each protocol refuses it, and what is said of labels and
// tokens.
func TestQuestionsAsRecorded(t *testing.T) {
	endpoint := start(t)
	c := metricsClient(endpoint)
	const text = "The parameter StartTime must be less than the parameter EndTime."
	now := serverTime(t, endpoint)
	r := callMetricsJSON(t, endpoint, "GetMetricStatistics", fmt.Sprintf(`{"Namespace":"n","MetricName":"m","Period":60,"Statistics":["Sum"],"StartTime":%[1]d.5,"EndTime":%[1]d.5}`, now.Unix()))
	equal(t, "in JSON", `400 {"__type":"com.amazonaws.cloudwatch.v2010_08_01#InvalidParameterValueException","message":"`+text+`"}`, fmt.Sprint(r.Status, " ", r.Body))
	stamp := now.Format(time.RFC3339)
	r = callMetricsQuery(t, endpoint, "GetMetricStatistics", "Namespace", "n", "MetricName", "m", "Period", "60", "Statistics.member.1", "Sum", "StartTime", stamp, "EndTime", stamp)
	if r.Status != 400 || !strings.Contains(r.Body, "<Code>InvalidParameterValue</Code><Message>"+text+"</Message>") {
		t.Errorf("as a form: %d %s", r.Status, r.Body)
	}

	query := func(id, stat string) types.MetricDataQuery {
		return types.MetricDataQuery{Id: &id, MetricStat: &types.MetricStat{
			Metric: &types.Metric{Namespace: aws.String("n"), MetricName: aws.String("metric1")}, Period: aws.Int32(60), Stat: &stat,
		}}
	}
	out := must(c.GetMetricData(t.Context(), &cloudwatch.GetMetricDataInput{
		StartTime: aws.Time(now.Add(-time.Hour)), EndTime: &now, MetricDataQueries: []types.MetricDataQuery{query("a", "Sum"), query("b", "SampleCount")},
	}))(t)
	equal(t, "labels", []string{"metric1 Sum", "metric1 SampleCount"}, []string{*out.MetricDataResults[0].Label, *out.MetricDataResults[1].Label})
}

// The tags of an alarm that is gone are none, and those of one that never was are
// asked for without success.
func TestTagsOfDeletedAlarms(t *testing.T) {
	endpoint := start(t)
	c := metricsClient(endpoint)
	putAlarm(t, endpoint, "gone", func(in *cloudwatch.PutMetricAlarmInput) {
		in.Tags = []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}}
	})
	must(c.DeleteAlarms(t.Context(), &cloudwatch.DeleteAlarmsInput{AlarmNames: []string{"gone"}}))(t)
	in := &cloudwatch.ListTagsForResourceInput{ResourceARN: aws.String(alarmARN("gone"))}
	equal(t, "SDK", []types.Tag{}, must(c.ListTagsForResource(t.Context(), in))(t).Tags)
	r := callMetricsJSON(t, endpoint, "ListTagsForResource", `{"ResourceARN":"`+alarmARN("gone")+`"}`)
	equal(t, "JSON", `200 {"Tags":[]}`, fmt.Sprint(r.Status, " ", r.Body))
	r = callMetricsQuery(t, endpoint, "ListTagsForResource", "ResourceARN", alarmARN("gone"))
	if r.Status != 200 || !strings.Contains(r.Body, "<ListTagsForResourceResult><Tags></Tags></ListTagsForResourceResult>") {
		t.Errorf("as a form: %d %s", r.Status, r.Body)
	}
	for _, arn := range []string{alarmARN("never"), alarmARN("gon"), alarmARN("gone2")} {
		_, err := c.ListTagsForResource(t.Context(), &cloudwatch.ListTagsForResourceInput{ResourceARN: &arn})
		refused(t, err, "ResourceNotFoundException", 404, "")
	}
	_, err := c.TagResource(t.Context(), &cloudwatch.TagResourceInput{ResourceARN: in.ResourceARN, Tags: []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}}})
	refused(t, err, "ResourceNotFoundException", 404, "")
}

// What is not there is refused without a text, also to who asks by a form for JSON.
func TestNotFoundHasNoText(t *testing.T) {
	endpoint := start(t)
	const form = "Version=2010-08-01&Action=SetAlarmState&AlarmName=none&StateValue=OK&StateReason=r"
	for accept, want := range map[string]string{
		"":                 "<Error><Type>Sender</Type><Code>ResourceNotFound</Code></Error>",
		"application/json": `{"Error":{"Type":"Sender","Code":"ResourceNotFound"},"RequestId":`,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint, strings.NewReader(form))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Accept", accept)
		if r := do(t, req); r.Status != 404 || !strings.Contains(r.Body, want) {
			t.Errorf("%q: %d %s", accept, r.Status, r.Body)
		}
	}
}

// A queue that was never used, or is idle, is listed and read as empty, minute by
// minute, also when it is used again later.
func TestIdleQueueMetrics(t *testing.T) {
	endpoint := start(t)
	c, m := client(endpoint), metricsClient(endpoint)
	nextMinute(t, endpoint)
	url := createQueue(t, c, "q")
	createQueue(t, c, "q.fifo", "FifoQueue", "true")
	createQueue(t, clientOf(endpoint, region, "111111111111"), "of-another")
	list := func(filter cloudwatch.ListMetricsInput) (names []string) {
		t.Helper()
		for _, metric := range must(m.ListMetrics(t.Context(), &filter))(t).Metrics {
			names = append(names, strings.TrimPrefix(*metric.MetricName, "ApproximateNumberOfMessages")+" "+*metric.Dimensions[0].Value)
		}
		return names
	}
	all := []string{"Delayed q", "Delayed q.fifo", "NotVisible q", "NotVisible q.fifo", "Visible q", "Visible q.fifo"}
	equal(t, "listed", all, list(cloudwatch.ListMetricsInput{}))
	equal(t, "by namespace", all, list(cloudwatch.ListMetricsInput{Namespace: aws.String("AWS/SQS"), RecentlyActive: types.RecentlyActivePt3h}))
	equal(t, "by name", all[4:], list(cloudwatch.ListMetricsInput{MetricName: aws.String("ApproximateNumberOfMessagesVisible")}))
	equal(t, "by queue", []string{"Delayed q", "NotVisible q", "Visible q"}, list(cloudwatch.ListMetricsInput{
		Dimensions: []types.DimensionFilter{{Name: aws.String("QueueName"), Value: aws.String("q")}},
	}))
	for _, none := range []cloudwatch.ListMetricsInput{
		{Namespace: aws.String("AWS/SNS")},
		{MetricName: aws.String("NumberOfMessagesSent")},
		{Dimensions: []types.DimensionFilter{{Name: aws.String("QueueName"), Value: aws.String("none")}}},
		{Dimensions: []types.DimensionFilter{{Name: aws.String("TopicName")}}},
	} {
		equal(t, "nothing else", []string(nil), list(none))
	}

	putAlarm(t, endpoint, "filled", func(in *cloudwatch.PutMetricAlarmInput) {
		in.Namespace, in.MetricName, in.Dimensions = aws.String("AWS/SQS"), aws.String("ApproximateNumberOfMessagesVisible"), dimensions("QueueName", "q")
	})
	advance(t, endpoint, "3m")
	read := func(name, queue string) string {
		t.Helper()
		return statistic(t, endpoint, "AWS/SQS", "ApproximateNumberOfMessages"+name, "Maximum", "QueueName", queue)
	}
	for _, name := range []string{"Visible", "NotVisible", "Delayed"} {
		equal(t, name, "0 0 0", read(name, "q"))
		equal(t, name, "0 0 0", read(name, "q.fifo"))
	}
	equal(t, "of a queue that is not there", "", read("Visible", "none"))
	equal(t, "any other metric", "", statistic(t, endpoint, "AWS/SQS", "NumberOfMessagesSent", "Sum", "QueueName", "q"))
	equal(t, "the alarm", types.StateValueOk, describeAlarm(t, endpoint, "filled").StateValue)
	r := callMetricsQuery(t, endpoint, "GetMetricStatistics", "Namespace", "AWS/SQS", "MetricName", "ApproximateNumberOfMessagesVisible", "Period", "300",
		"Dimensions.member.1.Name", "QueueName", "Dimensions.member.1.Value", "q", "Statistics.member.1", "Sum", "Statistics.member.2", "SampleCount",
		"StartTime", serverTime(t, endpoint).Add(-4*time.Minute).Format(time.RFC3339), "EndTime", serverTime(t, endpoint).Format(time.RFC3339))
	if want := "<SampleCount>3.0</SampleCount><Sum>0.0</Sum><Unit>Count</Unit>"; !strings.Contains(r.Body, want) {
		t.Errorf("as a form: %s, want %s", r.Body, want)
	}

	// Its use does not make the minutes before it any other.
	must(c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("m")}))(t)
	equal(t, "in the minute of its use", "0 0 0", read("Visible", "q"))
	nextMinute(t, endpoint)
	equal(t, "used", "0 0 0 1", read("Visible", "q"))
	equal(t, "used", "0 0 0", read("Delayed", "q"))
	must(c.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: &url}))(t)
	advance(t, endpoint, "8h")
	hour := strings.TrimSpace(strings.Repeat("0 ", 60))
	equal(t, "idle again", hour, read("Visible", "q"))
	equal(t, "idle again", hour, read("NotVisible", "q"))
	must(c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("m"), DelaySeconds: 600}))(t)
	nextMinute(t, endpoint)
	equal(t, "used again", strings.TrimPrefix(hour, "0 ")+" 0", read("Visible", "q"))
	equal(t, "used again", strings.TrimPrefix(hour, "0 ")+" 1", read("Delayed", "q"))

	must(c.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: aws.String(url + ".fifo")}))(t)
	equal(t, "gone", "", read("Visible", "q.fifo"))
}

// Many queues are listed in pages, each metric once and in order.
func TestIdleQueuesInPages(t *testing.T) {
	endpoint := start(t)
	c, m := client(endpoint), metricsClient(endpoint)
	const queues = 400
	for n := range queues {
		url := createQueue(t, c, fmt.Sprintf("q%03d", n))
		if n%7 == 0 { // which has metrics of its own
			must(c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("m")}))(t)
		}
	}
	nextMinute(t, endpoint)
	var names []string
	pages := cloudwatch.NewListMetricsPaginator(m, &cloudwatch.ListMetricsInput{Namespace: aws.String("AWS/SQS")})
	for pages.HasMorePages() {
		page := must(pages.NextPage(t.Context()))(t).Metrics
		if len(page) > 500 {
			t.Errorf("%d metrics in a page", len(page))
		}
		for _, metric := range page {
			if name, ok := strings.CutPrefix(*metric.MetricName, "ApproximateNumberOfMessages"); ok && !strings.HasSuffix(name, "Groups") {
				names = append(names, name+" "+*metric.Dimensions[0].Value)
			}
		}
	}
	var want []string
	for _, name := range []string{"Delayed", "NotVisible", "Visible"} {
		for n := range queues {
			want = append(want, fmt.Sprintf("%s q%03d", name, n))
		}
	}
	equal(t, "listed", want, names)
}

// The name of a dashboard is looked at, although none is kept.
func TestDashboardNames(t *testing.T) {
	endpoint := start(t)
	c := metricsClient(endpoint)
	const text = "The value for field DashboardName contains invalid characters. It can only contain alphanumerics, dash (-) and underscore (_).\n"
	_, err := c.PutDashboard(t.Context(), &cloudwatch.PutDashboardInput{DashboardName: aws.String("a b"), DashboardBody: aws.String("{}")})
	refused(t, err, "InvalidParameterValue", 400, text)
	r := callMetricsJSON(t, endpoint, "PutDashboard", `{"DashboardName":"a.b","DashboardBody":"{}"}`, "X-Amzn-Query-Mode", "true")
	equal(t, "in JSON", "com.amazonaws.cloudwatch.v2010_08_01#InvalidParameterValueException "+text, fmt.Sprint(decode(t, r.Body)["__type"], " ", decode(t, r.Body)["message"]))
	equal(t, "in Query's words", "InvalidParameterValue;Sender", r.Header.Get("X-Amzn-Query-Error"))
	r = callMetricsQuery(t, endpoint, "PutDashboard", "DashboardName", "a/b", "DashboardBody", "{}")
	if r.Status != 400 || !strings.Contains(r.Body, "<Code>InvalidParameterValue</Code><Message>"+text+"</Message>") {
		t.Errorf("as a form: %d %s", r.Status, r.Body)
	}
	r = callMetricsQuery(t, endpoint, "PutDashboard", "DashboardName", "a-b_1", "DashboardBody", "{}")
	if r.Status != 400 || !strings.Contains(r.Body, "<Code>InvalidAction</Code><Message>PutDashboard is not built yet.</Message>") {
		t.Errorf("a good name: %d %s", r.Status, r.Body)
	}
}

// There are no dashboards, in every protocol.
func TestNoDashboards(t *testing.T) {
	endpoint := start(t)
	c := metricsClient(endpoint)
	pages := cloudwatch.NewListDashboardsPaginator(c, &cloudwatch.ListDashboardsInput{DashboardNamePrefix: aws.String("d")})
	out := must(pages.NextPage(t.Context()))(t)
	if out.DashboardEntries == nil || len(out.DashboardEntries) > 0 || pages.HasMorePages() {
		t.Errorf("listed: %+v", out)
	}
	_, err := c.ListDashboards(t.Context(), &cloudwatch.ListDashboardsInput{NextToken: aws.String("x")})
	refused(t, err, "InvalidParameterValue", 400, "Request parameter NextToken is invalid")
	r := callMetricsJSON(t, endpoint, "ListDashboards", "{}")
	equal(t, "in JSON", `200 {"DashboardEntries":[]}`, fmt.Sprint(r.Status, " ", r.Body))
	r = callMetricsQuery(t, endpoint, "ListDashboards")
	if r.Status != 200 || !strings.Contains(r.Body, "<ListDashboardsResult><DashboardEntries></DashboardEntries></ListDashboardsResult>") {
		t.Errorf("as a form: %d %s", r.Status, r.Body)
	}
}
