package sdk_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
)

// sumQuery is a query for the sum of shop's metric of a name, which returns no data.
func sumQuery(id, name string) types.MetricDataQuery {
	return types.MetricDataQuery{Id: &id, ReturnData: aws.Bool(false), MetricStat: &types.MetricStat{
		Metric: &types.Metric{Namespace: aws.String("shop"), MetricName: &name, Dimensions: dimensions("d", "v")}, Period: aws.Int32(60), Stat: aws.String("Sum"),
	}}
}

// onQueries makes of the alarm of putAlarm one on queries.
func onQueries(queries ...types.MetricDataQuery) func(in *cloudwatch.PutMetricAlarmInput) {
	return func(in *cloudwatch.PutMetricAlarmInput) {
		in.Namespace, in.MetricName, in.Statistic, in.Period = nil, nil, "", nil
		in.Metrics = queries
	}
}

func putShop(t *testing.T, endpoint string, values map[string]float64) {
	t.Helper()
	in := &cloudwatch.PutMetricDataInput{Namespace: aws.String("shop")}
	for name, value := range values {
		in.MetricData = append(in.MetricData, types.MetricDatum{MetricName: &name, Dimensions: dimensions("d", "v"), Value: &value})
	}
	must(metricsClient(endpoint).PutMetricData(t.Context(), in))(t)
}

// An alarm on an expression goes through its states as the result does, and tells so with its
// queries.
func TestAlarmOnExpression(t *testing.T) {
	endpoint := start(t)
	c, queues, topics := metricsClient(endpoint), client(endpoint), topicsClient(endpoint)
	ops := createTopic(t, topics, "ops")
	inbox := createQueue(t, queues, "inbox")
	subscribe(t, topics, ops, "sqs", queueARN("inbox"), "RawMessageDelivery", "true")
	created := nextMinute(t, endpoint)
	errors, calls := sumQuery("m1", "errors"), sumQuery("m2", "calls")
	calls.MetricStat.Unit, calls.Label = types.StandardUnitNone, aws.String("Calls")
	rate := mathQuery("e1", "100 * m1 / m2", "Error rate")
	putAlarm(t, endpoint, "rate", func(in *cloudwatch.PutMetricAlarmInput) {
		onQueries(rate, errors, calls)(in)
		in.AlarmActions, in.OKActions = []string{ops}, []string{ops}
	})
	rate.ReturnData = aws.Bool(true) // as it is by default
	want := types.MetricAlarm{
		AlarmName: aws.String("rate"), AlarmArn: aws.String(alarmARN("rate")), AlarmConfigurationUpdatedTimestamp: &created,
		ActionsEnabled: aws.Bool(true), OKActions: []string{ops}, AlarmActions: []string{ops}, InsufficientDataActions: []string{},
		StateValue: types.StateValueInsufficientData, StateReason: aws.String("Unchecked: Initial alarm creation"),
		StateUpdatedTimestamp: &created, StateTransitionedTimestamp: &created, Dimensions: []types.Dimension{},
		Metrics:           []types.MetricDataQuery{rate, errors, calls},
		EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(10), ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold,
	}
	equal(t, "a new alarm", want, describeAlarm(t, endpoint, "rate"))
	nextMinute(t, endpoint)
	equal(t, "an alarm without data", want, describeAlarm(t, endpoint, "rate"))
	equal(t, "those for a metric", 0, len(must(c.DescribeAlarmsForMetric(t.Context(), &cloudwatch.DescribeAlarmsForMetricInput{
		Namespace: aws.String("shop"), MetricName: aws.String("errors"), Dimensions: dimensions("d", "v"),
	}))(t).MetricAlarms))

	at := serverTime(t, endpoint)
	putShop(t, endpoint, map[string]float64{"errors": 3, "calls": 20})
	now := nextMinute(t, endpoint)
	want.StateValue = types.StateValueAlarm
	want.StateReason = aws.String("Threshold Crossed: 1 datapoint [15.0 (" + at.Format("02/01/06 15:04:05") + ")] was greater than the threshold (10.0).")
	stamp := func(at time.Time) string { return at.Format("2006-01-02T15:04:05.000-0700") }
	want.StateReasonData = aws.String(`{"version":"1.0","queryDate":"` + stamp(now) + `","startDate":"` + stamp(at) + `","period":60,` +
		`"recentDatapoints":[15.0],"threshold":10.0,"evaluatedDatapoints":[{"timestamp":"` + stamp(at) + `","value":15.0}]}`)
	want.StateUpdatedTimestamp, want.StateTransitionedTimestamp = &now, &now
	equal(t, "an alarm with data", want, describeAlarm(t, endpoint, "rate"))
	stat := func(name, unit string) string {
		return `"MetricStat":{"Metric":{"Dimensions":[{"value":"v","name":"d"}],"MetricName":"` + name + `","Namespace":"shop"},"Period":60,"Stat":"Sum"` + unit + `}`
	}
	_, trigger, _ := strings.Cut(*takeMessage(t, queues, inbox).Body, `"Trigger":`)
	equal(t, "the trigger", `{"Period":60,"EvaluationPeriods":1,"ComparisonOperator":"GreaterThanThreshold","Threshold":10.0,"TreatMissingData":"missing","EvaluateLowSampleCountPercentile":"",`+
		`"Metrics":[{"Expression":"100 * m1 / m2","Id":"e1","Label":"Error rate","ReturnData":true},{"Id":"m1",`+stat("errors", "")+`,"ReturnData":false},`+
		`{"Id":"m2","Label":"Calls",`+stat("calls", `,"Unit":"None"`)+`,"ReturnData":false}]}}`, trigger)

	// Of nothing but errors there is no rate: a division by zero has no datapoint.
	putShop(t, endpoint, map[string]float64{"errors": 3, "calls": 0})
	nextMinute(t, endpoint)
	equal(t, "state without a datapoint", types.StateValueAlarm, describeAlarm(t, endpoint, "rate").StateValue)
	putShop(t, endpoint, map[string]float64{"errors": 3, "calls": 200})
	nextMinute(t, endpoint)
	n := decode(t, *takeMessage(t, queues, inbox).Body)
	equal(t, "the second notification", "ALARM OK", fmt.Sprint(n["OldStateValue"], " ", n["NewStateValue"]))
	advance(t, endpoint, "5m")
	equal(t, "an alarm whose data ended", "Insufficient Data: 1 datapoint was unknown.", *describeAlarm(t, endpoint, "rate").StateReason)
	equal(t, "the history", []string{
		`ConfigurationUpdate: Alarm "rate" created`,
		"StateUpdate: Alarm updated from INSUFFICIENT_DATA to ALARM", "Action: Successfully executed action " + ops,
		"StateUpdate: Alarm updated from ALARM to OK", "Action: Successfully executed action " + ops,
		"StateUpdate: Alarm updated from OK to INSUFFICIENT_DATA",
	}, alarmHistory(t, endpoint, "rate"))
	out := must(c.DescribeAlarmHistory(t.Context(), &cloudwatch.DescribeAlarmHistoryInput{HistoryItemType: types.HistoryItemTypeConfigurationUpdate}))(t)
	data, _ := decode(t, *out.AlarmHistoryItems[0].HistoryData)["createdAlarm"].(map[string]any)
	equal(t, "queries in the history", `[map[expression:100 * m1 / m2 id:e1 label:Error rate returnData:true] `+
		`map[id:m1 metricStat:map[metric:map[dimensions:map[d:v] name:errors namespace:shop] period:60 stat:Sum] returnData:false] `+
		`map[id:m2 label:Calls metricStat:map[metric:map[dimensions:map[d:v] name:calls namespace:shop] period:60 stat:Sum unit:None] returnData:false]]`, fmt.Sprint(data["metrics"]))

	// One on a metric takes its place, and the other way round.
	putAlarm(t, endpoint, "rate", nil)
	if a := describeAlarm(t, endpoint, "rate"); len(a.Metrics) != 0 || aws.ToString(a.MetricName) != "m" || aws.ToInt32(a.Period) != 60 {
		t.Errorf("on a metric: %+v", a)
	}
	putAlarm(t, endpoint, "rate", onQueries(rate, errors, calls))
	if a := describeAlarm(t, endpoint, "rate"); len(a.Metrics) != 3 || a.MetricName != nil || a.Namespace != nil || a.Period != nil || a.Statistic != "" {
		t.Errorf("on queries again: %+v", a)
	}
}

// What else an alarm is on: a single metric, FILL in place of a treatment of missing data,
// expressions on expressions, functions that look back, and short periods.
func TestAlarmsOnQueries(t *testing.T) {
	endpoint := start(t)
	nextMinute(t, endpoint)
	single := sumQuery("q1", "errors")
	single.ReturnData, single.AccountId, single.MetricStat.Stat = nil, aws.String(account), aws.String("p90")
	putAlarm(t, endpoint, "single", onQueries(single))
	putAlarm(t, endpoint, "filled", onQueries(mathQuery("e1", "FILL(m1, 50)", ""), sumQuery("m1", "errors")))
	half := mathQuery("half", "all / 2", "")
	half.ReturnData = aws.Bool(false)
	all := mathQuery("all", "SUM(METRICS())", "")
	all.ReturnData = aws.Bool(false)
	putAlarm(t, endpoint, "nested", onQueries(half, all, sumQuery("m1", "errors"), sumQuery("m2", "calls"), mathQuery("watched", "IF(half > 10, half)", "")))
	putAlarm(t, endpoint, "rise", onQueries(mathQuery("e1", "DIFF(m1)", ""), sumQuery("m1", "errors")))
	series := mathQuery("flat", "TIME_SERIES(11)", "")
	series.Period = aws.Int32(30)
	putAlarm(t, endpoint, "flat", onQueries(series))
	states := func() string {
		t.Helper()
		var all []string
		for _, a := range must(metricsClient(endpoint).DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{}))(t).MetricAlarms {
			all = append(all, *a.AlarmName+" "+map[types.StateValue]string{"OK": "ok", "ALARM": "ALARM", "INSUFFICIENT_DATA": "-"}[a.StateValue])
		}
		return strings.Join(all, ", ")
	}
	equal(t, "account", account, aws.ToString(describeAlarm(t, endpoint, "single").Metrics[0].AccountId))
	advance(t, endpoint, "30s")
	equal(t, "after half a minute", "filled -, flat ALARM, nested -, rise -, single -", states())
	nextMinute(t, endpoint)
	equal(t, "without data", "filled ALARM, flat ALARM, nested -, rise -, single -", states())
	putShop(t, endpoint, map[string]float64{"errors": 5, "calls": 1})
	nextMinute(t, endpoint)
	equal(t, "few errors", "filled ok, flat ALARM, nested -, rise -, single ok", states())
	putShop(t, endpoint, map[string]float64{"errors": 16, "calls": 6})
	nextMinute(t, endpoint)
	equal(t, "more errors", "filled ALARM, flat ALARM, nested ALARM, rise ALARM, single ALARM", states())
	putShop(t, endpoint, map[string]float64{"errors": 16, "calls": 4})
	nextMinute(t, endpoint)
	equal(t, "as many errors", "filled ALARM, flat ALARM, nested ALARM, rise ok, single ALARM", states())
}

// What Metrics are refused with.
func TestQueryAlarmErrors(t *testing.T) {
	endpoint := start(t)
	c := metricsClient(endpoint)
	m1, m2 := sumQuery("m1", "errors"), sumQuery("m2", "calls")
	e1 := mathQuery("e1", "m1 + m2", "")
	const faulty, onlyOne = "Invalid metrics list", "Exactly one element of the metrics list should return data."
	changed := func(q types.MetricDataQuery, change func(q *types.MetricDataQuery)) types.MetricDataQuery {
		if q.MetricStat != nil {
			stat := *q.MetricStat
			q.MetricStat = &stat
		}
		change(&q)
		return q
	}
	returned := changed(m1, func(q *types.MetricDataQuery) { q.ReturnData = nil })
	many := func(n int, q func(id string) types.MetricDataQuery) (all []types.MetricDataQuery) {
		for i := range n {
			all = append(all, changed(q(fmt.Sprintf("x%d", i)), func(q *types.MetricDataQuery) { q.ReturnData = aws.Bool(false) }))
		}
		return append(all, e1, m1, m2)
	}
	for i, tc := range []struct {
		queries []types.MetricDataQuery
		text    string
	}{
		{[]types.MetricDataQuery{m1, m2}, onlyOne},
		{[]types.MetricDataQuery{e1, returned, m2}, onlyOne},
		{[]types.MetricDataQuery{e1, m1, m2, m2}, faulty},
		{[]types.MetricDataQuery{changed(returned, func(q *types.MetricDataQuery) { q.Id = aws.String("a.b") })}, faulty},
		{[]types.MetricDataQuery{changed(returned, func(q *types.MetricDataQuery) { q.MetricStat = nil })}, faulty},
		{[]types.MetricDataQuery{changed(returned, func(q *types.MetricDataQuery) { q.Expression = aws.String("m2") }), m2}, faulty},
		{[]types.MetricDataQuery{changed(returned, func(q *types.MetricDataQuery) { q.MetricStat.Stat = aws.String("Most") })}, faulty},
		{[]types.MetricDataQuery{mathQuery("e1", strings.Repeat("1", 2049), ""), m1}, faulty},
		{many(9, func(id string) types.MetricDataQuery { return sumQuery(id, "errors") }), faulty},
		{many(10, func(id string) types.MetricDataQuery { return mathQuery(id, "m1", "") }), faulty},
		{
			[]types.MetricDataQuery{changed(returned, func(q *types.MetricDataQuery) { q.AccountId = aws.String("111122223333") })},
			"The value 111122223333 for parameter Metrics.member.1.AccountId is not an account that is linked to this one.",
		},
		{[]types.MetricDataQuery{mathQuery("e1", "m1 +", ""), m1}, "Error in expression 'e1': Invalid syntax"},
		{[]types.MetricDataQuery{mathQuery("e1", "ANOMALY_DETECTOR(m1)", ""), m1}, "Error in expression 'e1': Function 'ANOMALY_DETECTOR' not found"},
		{[]types.MetricDataQuery{mathQuery("e1", "ANOMALY_DETECTION_BAND(m1, 2)", ""), m1}, "Error in expression 'e1': The function ANOMALY_DETECTION_BAND is not supported."},
		{[]types.MetricDataQuery{mathQuery("e1", "SELECT SUM(x) FROM y", "")}, "Error in expression 'e1': Metrics Insights queries are not supported."},
		{[]types.MetricDataQuery{mathQuery("e1", "m1 + m3", ""), m1}, "Error in expression 'e1': There is no metric and no expression with the Id 'm3'."},
		{
			[]types.MetricDataQuery{mathQuery("e1", "METRICS() * 2", ""), m1, m2},
			"Metrics expression that return multi time series are only allowed for MetricsInsights expression with an ORDER BY clause",
		},
		{[]types.MetricDataQuery{mathQuery("e1", "TIME_SERIES(1)", "")}, "Period must not be null"},
		{
			[]types.MetricDataQuery{e1, m1, changed(m2, func(q *types.MetricDataQuery) { q.MetricStat.Period = aws.Int32(300) })},
			"The Metrics of an alarm must have one period, and have 60 and 300.",
		},
		{[]types.MetricDataQuery{changed(returned, func(q *types.MetricDataQuery) { q.MetricStat.Period = aws.Int32(5) })}, "Period must be 10, 20, 30 or a multiple of 60"},
		{[]types.MetricDataQuery{changed(returned, func(q *types.MetricDataQuery) { q.Label = aws.String(strings.Repeat("x", 120<<10)) })}, "The Metrics of an alarm must not be larger than 122880 bytes."},
	} {
		in := &cloudwatch.PutMetricAlarmInput{
			AlarmName: aws.String("a"), EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(10), ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold, Metrics: tc.queries,
		}
		_, err := c.PutMetricAlarm(t.Context(), in)
		if err == nil {
			t.Errorf("%d is accepted, want %s", i, tc.text)
			continue
		}
		refused(t, err, "ValidationError", 400, tc.text)
	}
	for want, change := range map[string]func(in *cloudwatch.PutMetricAlarmInput){
		"Namespace should not be set if list of Metrics is set.":         func(in *cloudwatch.PutMetricAlarmInput) { in.Namespace = aws.String("n") },
		"MetricName should not be set if list of Metrics is set.":        func(in *cloudwatch.PutMetricAlarmInput) { in.MetricName = aws.String("m") },
		"Dimensions should not be set if list of Metrics is set.":        func(in *cloudwatch.PutMetricAlarmInput) { in.Dimensions = dimensions("d", "v") },
		"Period should not be set if list of Metrics is set.":            func(in *cloudwatch.PutMetricAlarmInput) { in.Period = aws.Int32(60) },
		"Unit should not be set if list of Metrics is set.":              func(in *cloudwatch.PutMetricAlarmInput) { in.Unit = types.StandardUnitCount },
		"Statistic should not be set if list of Metrics is set.":         func(in *cloudwatch.PutMetricAlarmInput) { in.Statistic = types.StatisticSum },
		"ExtendedStatistic should not be set if list of Metrics is set.": func(in *cloudwatch.PutMetricAlarmInput) { in.ExtendedStatistic = aws.String("p90") },
		"The parameter EvaluateLowSampleCountPercentile is for percentiles only.": func(in *cloudwatch.PutMetricAlarmInput) {
			in.EvaluateLowSampleCountPercentile = aws.String("ignore")
		},
		"Metrics cannot be checked across more than a day (EvaluationPeriods * Period must be <= 86400) for alarms using period < 3600": func(in *cloudwatch.PutMetricAlarmInput) {
			in.EvaluationPeriods = aws.Int32(1441)
		},
		// An expression whose evaluation takes more datapoints than each minute may have.
		"Error in expression 'e1': It needs too many datapoints. You may reduce them by increasing Period, or decreasing the time range.": func(in *cloudwatch.PutMetricAlarmInput) {
			in.Metrics = []types.MetricDataQuery{mathQuery("e1", "m1"+strings.Repeat("+m1", 680), ""), m1}
			in.EvaluationPeriods = aws.Int32(1440)
		},
	} {
		in := &cloudwatch.PutMetricAlarmInput{
			AlarmName: aws.String("a"), EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(10), ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold,
			Metrics: []types.MetricDataQuery{e1, m1, m2},
		}
		change(in)
		_, err := c.PutMetricAlarm(t.Context(), in)
		refused(t, err, "ValidationError", 400, want)
	}
	equal(t, "there is none", 0, len(must(c.DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{}))(t).MetricAlarms))
	putAlarm(t, endpoint, "most", onQueries(many(8, func(id string) types.MetricDataQuery { return sumQuery(id, "errors") })...))
	putAlarm(t, endpoint, "most", onQueries(many(9, func(id string) types.MetricDataQuery { return mathQuery(id, "m1", "") })...))
}

// Metrics in the protocols of other SDKs, by hand.
func TestQueryAlarmsInOtherProtocols(t *testing.T) {
	endpoint := start(t)
	m1 := `{"Id":"m1","MetricStat":{"Metric":{"Namespace":"shop","MetricName":"errors","Dimensions":[]},"Period":60,"Stat":"Sum"},"ReturnData":false}`
	r := callMetricsJSON(t, endpoint, "PutMetricAlarm", `{"AlarmName":"j","EvaluationPeriods":1,"Threshold":10,"ComparisonOperator":"GreaterThanThreshold","Metrics":[{"Id":"e1","Expression":"m1*2"},`+m1+`]}`)
	equal(t, "PutMetricAlarm in JSON", "200 ", fmt.Sprint(r.Status, " ", r.Body))
	r = callMetricsJSON(t, endpoint, "DescribeAlarms", `{"AlarmNames":["j"]}`)
	if want := `"Dimensions":[],"EvaluationPeriods":1,"Threshold":10.0,"ComparisonOperator":"GreaterThanThreshold","Metrics":[{"Id":"e1","Expression":"m1*2","ReturnData":true},` + m1 + `],`; !strings.Contains(r.Body, want) {
		t.Errorf("DescribeAlarms in JSON: %s\nwant %s", r.Body, want)
	}
	r = callMetricsQuery(t, endpoint, "PutMetricAlarm", "AlarmName", "q", "EvaluationPeriods", "1", "Threshold", "1.5", "ComparisonOperator", "LessThanThreshold",
		"Metrics.member.1.Id", "m1", "Metrics.member.1.MetricStat.Metric.Namespace", "shop", "Metrics.member.1.MetricStat.Metric.MetricName", "errors",
		"Metrics.member.1.MetricStat.Period", "60", "Metrics.member.1.MetricStat.Stat", "Sum")
	equal(t, "PutMetricAlarm as a form", 200, r.Status)
	r = callMetricsQuery(t, endpoint, "DescribeAlarms", "AlarmNames.member.1", "q")
	if want := `<Metrics><member><Id>m1</Id><MetricStat><Metric><Namespace>shop</Namespace><MetricName>errors</MetricName><Dimensions></Dimensions></Metric><Period>60</Period>` +
		`<Stat>Sum</Stat></MetricStat><ReturnData>true</ReturnData></member></Metrics>`; !strings.Contains(r.Body, want) || slices.Contains(strings.Split(r.Body, "<"), "StateReasonData>") {
		t.Errorf("DescribeAlarms as a form: %s\nwant %s", r.Body, want)
	}
}
