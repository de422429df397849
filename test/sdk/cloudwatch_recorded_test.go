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
// asked for in vain.
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
