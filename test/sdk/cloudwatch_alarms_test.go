package sdk_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
)

func alarmARN(name string) string {
	return "arn:aws:cloudwatch:" + region + ":" + account + ":alarm:" + name
}

// putAlarm makes an alarm on the sum of n/m that is above 10 for a minute.
func putAlarm(t *testing.T, endpoint, name string, change func(in *cloudwatch.PutMetricAlarmInput)) {
	t.Helper()
	in := &cloudwatch.PutMetricAlarmInput{
		AlarmName: &name, Namespace: aws.String("n"), MetricName: aws.String("m"), Statistic: types.StatisticSum, Period: aws.Int32(60),
		EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(10), ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold,
	}
	if change != nil {
		change(in)
	}
	must(metricsClient(endpoint).PutMetricAlarm(t.Context(), in))(t)
}

func putValue(t *testing.T, endpoint string, value float64) {
	t.Helper()
	must(metricsClient(endpoint).PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{
		Namespace: aws.String("n"), MetricData: []types.MetricDatum{{MetricName: aws.String("m"), Value: &value}},
	}))(t)
}

func describeAlarm(t *testing.T, endpoint, name string) types.MetricAlarm {
	t.Helper()
	all := must(metricsClient(endpoint).DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{AlarmNames: []string{name}}))(t).MetricAlarms
	if len(all) != 1 {
		t.Fatalf("%d alarms are called %s", len(all), name)
	}
	return all[0]
}

func alarmHistory(t *testing.T, endpoint, name string) (summaries []string) {
	t.Helper()
	out := must(metricsClient(endpoint).DescribeAlarmHistory(t.Context(), &cloudwatch.DescribeAlarmHistoryInput{
		AlarmName: &name, ScanBy: types.ScanByTimestampAscending,
	}))(t)
	for _, item := range out.AlarmHistoryItems {
		summaries = append(summaries, string(item.HistoryItemType)+": "+*item.HistorySummary)
	}
	return summaries
}

// An alarm goes through its states as its metric does, minute by minute.
func TestAlarmStates(t *testing.T) {
	endpoint := start(t)
	created := nextMinute(t, endpoint)
	putAlarm(t, endpoint, "a", func(in *cloudwatch.PutMetricAlarmInput) {
		in.AlarmDescription, in.Tags = aws.String("too much"), []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}}
		in.Dimensions, in.Unit, in.DatapointsToAlarm = dimensions("d", "v"), types.StandardUnitCount, aws.Int32(1)
		in.TreatMissingData = aws.String("ignore")
	})
	want := types.MetricAlarm{
		AlarmName: aws.String("a"), AlarmArn: aws.String(alarmARN("a")), AlarmDescription: aws.String("too much"), AlarmConfigurationUpdatedTimestamp: &created,
		ActionsEnabled: aws.Bool(true), OKActions: []string{}, AlarmActions: []string{}, InsufficientDataActions: []string{},
		StateValue: types.StateValueInsufficientData, StateReason: aws.String("Unchecked: Initial alarm creation"),
		StateUpdatedTimestamp: &created, StateTransitionedTimestamp: &created,
		MetricName: aws.String("m"), Namespace: aws.String("n"), Statistic: types.StatisticSum, Dimensions: dimensions("d", "v"), Period: aws.Int32(60),
		Unit: types.StandardUnitCount, EvaluationPeriods: aws.Int32(1), DatapointsToAlarm: aws.Int32(1), Threshold: aws.Float64(10),
		ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold, TreatMissingData: aws.String("ignore"),
	}
	equal(t, "a new alarm", want, describeAlarm(t, endpoint, "a"))
	nextMinute(t, endpoint)
	equal(t, "an alarm without data", want, describeAlarm(t, endpoint, "a"))

	at := serverTime(t, endpoint)
	must(metricsClient(endpoint).PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: aws.String("n"), MetricData: []types.MetricDatum{
		{MetricName: aws.String("m"), Dimensions: dimensions("d", "v"), Unit: types.StandardUnitCount, Values: []float64{20, 1.5}},
	}}))(t)
	now := nextMinute(t, endpoint)
	want.StateValue = types.StateValueAlarm
	want.StateReason = aws.String("Threshold Crossed: 1 out of the last 1 datapoints [21.5 (" + at.Format("02/01/06 15:04:05") +
		")] was greater than the threshold (10.0) (minimum 1 datapoint for OK -> ALARM transition).")
	stamp := func(at time.Time) string { return at.Format("2006-01-02T15:04:05.000-0700") }
	want.StateReasonData = aws.String(`{"version":"1.0","queryDate":"` + stamp(now) + `","startDate":"` + stamp(at) + `","unit":"Count","statistic":"Sum","period":60,` +
		`"recentDatapoints":[21.5],"threshold":10.0,"evaluatedDatapoints":[{"timestamp":"` + stamp(at) + `","sampleCount":2.0,"value":21.5}]}`)
	want.StateUpdatedTimestamp, want.StateTransitionedTimestamp = &now, &now
	equal(t, "an alarm with data", want, describeAlarm(t, endpoint, "a"))
	advance(t, endpoint, "10m")
	equal(t, "an alarm that ignores missing data", want, describeAlarm(t, endpoint, "a"))

	equal(t, "the history", []string{
		`ConfigurationUpdate: Alarm "a" created`, "StateUpdate: Alarm updated from INSUFFICIENT_DATA to ALARM",
	}, alarmHistory(t, endpoint, "a"))
	out := must(metricsClient(endpoint).DescribeAlarmHistory(t.Context(), &cloudwatch.DescribeAlarmHistoryInput{MaxRecords: aws.Int32(1)}))(t)
	item := out.AlarmHistoryItems[0]
	equal(t, "its newest item", types.AlarmHistoryItem{
		AlarmName: aws.String("a"), AlarmType: types.AlarmTypeMetricAlarm, Timestamp: &now, HistoryItemType: types.HistoryItemTypeStateUpdate,
		HistorySummary: aws.String("Alarm updated from INSUFFICIENT_DATA to ALARM"),
		HistoryData: aws.String(`{"version":"1.0","oldState":{"stateValue":"INSUFFICIENT_DATA","stateReason":"Unchecked: Initial alarm creation"},` +
			`"newState":{"stateValue":"ALARM","stateReason":"` + *want.StateReason + `","stateReasonData":` + *want.StateReasonData + `}}`),
	}, item)
	out = must(metricsClient(endpoint).DescribeAlarmHistory(t.Context(), &cloudwatch.DescribeAlarmHistoryInput{
		NextToken: out.NextToken, HistoryItemType: types.HistoryItemTypeConfigurationUpdate, EndDate: &created, StartDate: &created,
	}))(t)
	equal(t, "the next page", `Alarm "a" created`, *out.AlarmHistoryItems[0].HistorySummary)
	equal(t, "and there is none after", "", aws.ToString(out.NextToken))

	tags := must(metricsClient(endpoint).ListTagsForResource(t.Context(), &cloudwatch.ListTagsForResourceInput{ResourceARN: aws.String(alarmARN("a"))}))(t).Tags
	equal(t, "its tags", []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}}, tags)
}

// Treatments of missing data, sets of datapoints and percentiles, as they pass.
func TestAlarmTreatments(t *testing.T) {
	endpoint := start(t)
	nextMinute(t, endpoint)
	for _, treatment := range []string{"missing", "ignore", "breaching", "notBreaching"} {
		putAlarm(t, endpoint, treatment, func(in *cloudwatch.PutMetricAlarmInput) {
			in.TreatMissingData, in.EvaluationPeriods, in.DatapointsToAlarm = &treatment, aws.Int32(3), aws.Int32(2)
		})
	}
	putAlarm(t, endpoint, "p90", func(in *cloudwatch.PutMetricAlarmInput) {
		in.Statistic, in.ExtendedStatistic, in.EvaluateLowSampleCountPercentile = "", aws.String("p90"), aws.String("ignore")
		in.Period = aws.Int32(120)
	})
	putAlarm(t, endpoint, "lower", func(in *cloudwatch.PutMetricAlarmInput) {
		in.ComparisonOperator = types.ComparisonOperatorLessThanOrEqualToThreshold
	})
	states := func() string {
		t.Helper()
		var all []string
		for _, a := range must(metricsClient(endpoint).DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{}))(t).MetricAlarms {
			all = append(all, *a.AlarmName+" "+map[types.StateValue]string{"OK": "ok", "ALARM": "ALARM", "INSUFFICIENT_DATA": "-"}[a.StateValue])
		}
		return strings.Join(all, ", ")
	}
	for i, step := range []struct {
		values []float64
		want   string
	}{
		{nil, "breaching ALARM, ignore -, lower -, missing -, notBreaching ok, p90 -"},
		{[]float64{5}, "breaching ALARM, ignore ok, lower ALARM, missing ok, notBreaching ok, p90 -"},
		{[]float64{20}, "breaching ALARM, ignore ok, lower ok, missing ok, notBreaching ok, p90 -"},
		{[]float64{20}, "breaching ALARM, ignore ALARM, lower ok, missing ALARM, notBreaching ALARM, p90 -"},
		{nil, "breaching ALARM, ignore ALARM, lower ok, missing ALARM, notBreaching ALARM, p90 -"},
		{[]float64{1}, "breaching ALARM, ignore ALARM, lower ALARM, missing ALARM, notBreaching ALARM, p90 -"},
		{[]float64{1}, "breaching ok, ignore ok, lower ALARM, missing ok, notBreaching ok, p90 -"},
	} {
		for _, value := range step.values {
			putValue(t, endpoint, value)
		}
		nextMinute(t, endpoint)
		if got := states(); got != step.want {
			t.Errorf("after minute %d:\n%s\nwant\n%s", i+1, got, step.want)
		}
	}
	must(metricsClient(endpoint).PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: aws.String("n"), MetricData: []types.MetricDatum{
		{MetricName: aws.String("m"), Values: []float64{1, 20}, Counts: []float64{80, 20}},
	}}))(t)
	nextMinute(t, endpoint)
	equal(t, "a percentile of enough samples", types.StateValueAlarm, describeAlarm(t, endpoint, "p90").StateValue)
}

// SetAlarmState holds until the alarm is evaluated; actions can be switched off.
func TestSetAlarmState(t *testing.T) {
	endpoint := start(t)
	c, queues, topics := metricsClient(endpoint), client(endpoint), topicsClient(endpoint)
	ops := createTopic(t, topics, "ops")
	inbox := createQueue(t, queues, "inbox")
	subscribe(t, topics, ops, "sqs", queueARN("inbox"), "RawMessageDelivery", "true")
	nextMinute(t, endpoint)
	putAlarm(t, endpoint, "a", func(in *cloudwatch.PutMetricAlarmInput) {
		in.AlarmActions, in.OKActions, in.InsufficientDataActions = []string{ops}, []string{ops}, []string{ops}
		in.TreatMissingData = aws.String("notBreaching")
	})
	set := func(state types.StateValue) {
		t.Helper()
		must(c.SetAlarmState(t.Context(), &cloudwatch.SetAlarmStateInput{
			AlarmName: aws.String("a"), StateValue: state, StateReason: aws.String("testing"), StateReasonData: aws.String(`{"by":"me"}`),
		}))(t)
	}
	told := func() string {
		t.Helper()
		n := decode(t, *takeMessage(t, queues, inbox).Body)
		return fmt.Sprint(n["OldStateValue"], " ", n["NewStateValue"], " ", n["NewStateReason"])
	}
	set(types.StateValueAlarm)
	equal(t, "the notification", "INSUFFICIENT_DATA ALARM testing", told())
	set(types.StateValueAlarm) // no change: no action
	a := describeAlarm(t, endpoint, "a")
	equal(t, "the state", fmt.Sprint(types.StateValueAlarm, ` testing {"by":"me"}`), fmt.Sprint(a.StateValue, " ", *a.StateReason, " ", *a.StateReasonData))
	nextMinute(t, endpoint)
	equal(t, "the notification of the evaluation", "ALARM OK Threshold Crossed: no datapoints were received for 1 period and 1 missing datapoint was treated as [NonBreaching].", told())

	must(c.DisableAlarmActions(t.Context(), &cloudwatch.DisableAlarmActionsInput{AlarmNames: []string{"a", "none"}}))(t)
	equal(t, "switched off", false, *describeAlarm(t, endpoint, "a").ActionsEnabled)
	set(types.StateValueAlarm)
	must(c.EnableAlarmActions(t.Context(), &cloudwatch.EnableAlarmActionsInput{AlarmNames: []string{"a"}}))(t)
	nextMinute(t, endpoint)
	equal(t, "the first notification after", "ALARM OK", told()[:8])
	equal(t, "the history", []string{
		`ConfigurationUpdate: Alarm "a" created`,
		"StateUpdate: Alarm updated from INSUFFICIENT_DATA to ALARM", "Action: Successfully executed action " + ops,
		"StateUpdate: Alarm updated from ALARM to OK", "Action: Successfully executed action " + ops,
		`ConfigurationUpdate: Alarm "a" updated`,
		"StateUpdate: Alarm updated from OK to ALARM",
		`ConfigurationUpdate: Alarm "a" updated`,
		"StateUpdate: Alarm updated from ALARM to OK", "Action: Successfully executed action " + ops,
	}, alarmHistory(t, endpoint, "a"))

	// An action that cannot be executed is in the history, and does no harm.
	must(topics.DeleteTopic(t.Context(), &sns.DeleteTopicInput{TopicArn: &ops}))(t)
	set(types.StateValueAlarm)
	history := alarmHistory(t, endpoint, "a")
	equal(t, "a topic that is gone", "Action: Failed to execute action "+ops+`. Received error: "Topic does not exist"`, history[len(history)-1])
}

// Where nobody is verified, a topic of another account hears of an alarm if its policy lets
// the alarm's account publish.
func TestAlarmsOfOtherAccounts(t *testing.T) {
	endpoint := startOpen(t)
	elsewhere := topicsClientOf(endpoint, region, "111111111111")
	ops := createTopic(t, elsewhere, "ops")
	nextMinute(t, endpoint)
	putAlarm(t, endpoint, "a", func(in *cloudwatch.PutMetricAlarmInput) {
		in.AlarmActions, in.OKActions, in.TreatMissingData = []string{ops}, []string{ops}, aws.String("ignore")
	})
	set := func(state types.StateValue) (last string) {
		t.Helper()
		must(metricsClient(endpoint).SetAlarmState(t.Context(), &cloudwatch.SetAlarmStateInput{AlarmName: aws.String("a"), StateValue: state, StateReason: aws.String("testing")}))(t)
		history := alarmHistory(t, endpoint, "a")
		return history[len(history)-1]
	}
	equal(t, "without a permission", "Action: Failed to execute action "+ops+`. Received error: "The topic's policy does not let account 000000000000 publish."`, set(types.StateValueAlarm))
	must(elsewhere.AddPermission(t.Context(), &sns.AddPermissionInput{
		TopicArn: &ops, Label: aws.String("alarms"), AWSAccountId: []string{account}, ActionName: []string{"Publish"},
	}))(t)
	equal(t, "with one", "Action: Successfully executed action "+ops, set(types.StateValueOk))
}

func TestDescribeAlarms(t *testing.T) {
	endpoint := start(t)
	c := metricsClient(endpoint)
	ops := "arn:aws:sns:us-east-1:000000000000:ops"
	for n := range 7 {
		putAlarm(t, endpoint, fmt.Sprintf("a%d", n), func(in *cloudwatch.PutMetricAlarmInput) {
			if n%2 == 0 {
				in.AlarmActions = []string{ops}
			}
			if n == 3 {
				in.Statistic, in.Dimensions = types.StatisticMaximum, dimensions("x", "1", "y", "2")
			}
		})
	}
	putAlarm(t, endpoint, "b", nil)
	describe := func(in *cloudwatch.DescribeAlarmsInput) string {
		t.Helper()
		var all []string
		for p := cloudwatch.NewDescribeAlarmsPaginator(c, in); p.HasMorePages(); {
			page := must(p.NextPage(t.Context()))(t)
			equal(t, "composite alarms", []types.CompositeAlarm{}, page.CompositeAlarms)
			for _, a := range page.MetricAlarms {
				all = append(all, *a.AlarmName)
			}
		}
		return strings.Join(all, " ")
	}
	for want, in := range map[string]*cloudwatch.DescribeAlarmsInput{
		"a0 a1 a2 a3 a4 a5 a6 b": {MaxRecords: aws.Int32(3)},
		"a0 a1 a2 a3 a4 a5 a6":   {AlarmNamePrefix: aws.String("a"), AlarmTypes: []types.AlarmType{types.AlarmTypeMetricAlarm}},
		"a0 a2 a4 a6":            {ActionPrefix: aws.String("arn:aws:sns"), StateValue: types.StateValueInsufficientData},
		"a1 b":                   {AlarmNames: []string{"b", "a1", "none"}},
		"":                       {AlarmTypes: []types.AlarmType{types.AlarmTypeCompositeAlarm}},
	} {
		equal(t, "alarms", want, describe(in))
	}
	forMetric := func(in *cloudwatch.DescribeAlarmsForMetricInput) string {
		t.Helper()
		in.Namespace, in.MetricName = aws.String("n"), aws.String("m")
		var all []string
		for _, a := range must(c.DescribeAlarmsForMetric(t.Context(), in))(t).MetricAlarms {
			all = append(all, *a.AlarmName)
		}
		return strings.Join(all, " ")
	}
	equal(t, "for a metric", "a0 a1 a2 a4 a5 a6 b", forMetric(&cloudwatch.DescribeAlarmsForMetricInput{Period: aws.Int32(60)}))
	equal(t, "with dimensions", "a3", forMetric(&cloudwatch.DescribeAlarmsForMetricInput{Dimensions: dimensions("y", "2", "x", "1"), Statistic: types.StatisticMaximum}))

	// A second put replaces the configuration and keeps the state.
	putAlarm(t, endpoint, "b", func(in *cloudwatch.PutMetricAlarmInput) { in.Threshold = aws.Float64(5) })
	equal(t, "the new threshold", 5.0, *describeAlarm(t, endpoint, "b").Threshold)

	must(c.DeleteAlarms(t.Context(), &cloudwatch.DeleteAlarmsInput{AlarmNames: []string{"b", "none", "a1"}}))(t)
	equal(t, "what is left beside a wrong name", "a0 a2 a3 a4 a5 a6", describe(&cloudwatch.DescribeAlarmsInput{}))
	must(c.DeleteAlarms(t.Context(), &cloudwatch.DeleteAlarmsInput{AlarmNames: []string{"a2", "a3", "a2"}}))(t)
	equal(t, "what is left", "a0 a4 a5 a6", describe(&cloudwatch.DescribeAlarmsInput{}))
	equal(t, "the parents of an alarm", "", describe(&cloudwatch.DescribeAlarmsInput{ParentsOfAlarmName: aws.String("a0")}))

	id := aws.String(alarmARN("a0"))
	must(c.TagResource(t.Context(), &cloudwatch.TagResourceInput{ResourceARN: id, Tags: []types.Tag{{Key: aws.String("b"), Value: aws.String("")}, {Key: aws.String("a"), Value: aws.String("1")}}}))(t)
	must(c.UntagResource(t.Context(), &cloudwatch.UntagResourceInput{ResourceARN: id, TagKeys: []string{"a", "none"}}))(t)
	equal(t, "tags", []types.Tag{{Key: aws.String("b"), Value: aws.String("")}},
		must(c.ListTagsForResource(t.Context(), &cloudwatch.ListTagsForResourceInput{ResourceARN: id}))(t).Tags)
}

// The alarms in the protocols of other SDKs, by hand.
func TestAlarmsInOtherProtocols(t *testing.T) {
	endpoint := start(t)
	now := nextMinute(t, endpoint)
	r := callMetricsJSON(t, endpoint, "PutMetricAlarm", `{"AlarmName":"j","Namespace":"n","MetricName":"m","Statistic":"Sum","Period":60,"EvaluationPeriods":1,"Threshold":10,"ComparisonOperator":"GreaterThanThreshold"}`)
	equal(t, "PutMetricAlarm in JSON", "200 ", fmt.Sprint(r.Status, " ", r.Body))
	r = callMetricsQuery(t, endpoint, "PutMetricAlarm", "AlarmName", "q", "Namespace", "n", "MetricName", "m", "ExtendedStatistic", "p99", "Period", "60", "EvaluationPeriods", "1",
		"Threshold", "1.5", "ComparisonOperator", "LessThanThreshold", "AlarmActions.member.1", topicARN("ops"), "Dimensions.member.1.Name", "d", "Dimensions.member.1.Value", "v")
	equal(t, "PutMetricAlarm as a form", 200, r.Status)

	r = callMetricsJSON(t, endpoint, "DescribeAlarms", `{"AlarmNames":["j"]}`)
	equal(t, "DescribeAlarms in JSON", fmt.Sprintf(`{"CompositeAlarms":[],"LogAlarms":[],"MetricAlarms":[{"AlarmName":"j","AlarmArn":"%s","AlarmConfigurationUpdatedTimestamp":%[2]d.0,"ActionsEnabled":true,`+
		`"OKActions":[],"AlarmActions":[],"InsufficientDataActions":[],"StateValue":"INSUFFICIENT_DATA","StateReason":"Unchecked: Initial alarm creation","StateUpdatedTimestamp":%[2]d.0,`+
		`"MetricName":"m","Namespace":"n","Statistic":"Sum","Dimensions":[],"Period":60,"EvaluationPeriods":1,"Threshold":10.0,"ComparisonOperator":"GreaterThanThreshold","StateTransitionedTimestamp":%[2]d.0}]}`,
		alarmARN("j"), now.Unix()), r.Body)
	r = callMetricsQuery(t, endpoint, "DescribeAlarms", "AlarmNames.member.1", "q")
	iso := now.Format("2006-01-02T15:04:05Z")
	if want := `<DescribeAlarmsResult><CompositeAlarms></CompositeAlarms><LogAlarms></LogAlarms><MetricAlarms><member><AlarmName>q</AlarmName><AlarmArn>` + alarmARN("q") + `</AlarmArn>` +
		`<AlarmConfigurationUpdatedTimestamp>` + iso + `</AlarmConfigurationUpdatedTimestamp><ActionsEnabled>true</ActionsEnabled><OKActions></OKActions><AlarmActions><member>` + topicARN("ops") + `</member></AlarmActions>` +
		`<InsufficientDataActions></InsufficientDataActions><StateValue>INSUFFICIENT_DATA</StateValue><StateReason>Unchecked: Initial alarm creation</StateReason><StateUpdatedTimestamp>` + iso + `</StateUpdatedTimestamp>` +
		`<MetricName>m</MetricName><Namespace>n</Namespace><ExtendedStatistic>p99</ExtendedStatistic><Dimensions><member><Name>d</Name><Value>v</Value></member></Dimensions><Period>60</Period>` +
		`<EvaluationPeriods>1</EvaluationPeriods><Threshold>1.5</Threshold><ComparisonOperator>LessThanThreshold</ComparisonOperator>`; !strings.Contains(r.Body, want) {
		t.Errorf("DescribeAlarms as a form: %s\nwant %s", r.Body, want)
	}
	for _, call := range [][]string{
		{"SetAlarmState", "AlarmName", "q", "StateValue", "OK", "StateReason", "by hand"},
		{"DisableAlarmActions", "AlarmNames.member.1", "q"},
		{"EnableAlarmActions", "AlarmNames.member.1", "q"},
		{"DescribeAlarmsForMetric", "MetricName", "m", "Namespace", "n"},
		{"DescribeAlarmHistory", "AlarmName", "q", "MaxRecords", "1", "HistoryItemType", "StateUpdate"},
		{"TagResource", "ResourceARN", alarmARN("q"), "Tags.member.1.Key", "k", "Tags.member.1.Value", "v"},
		{"ListTagsForResource", "ResourceARN", alarmARN("q")},
		{"UntagResource", "ResourceARN", alarmARN("q"), "TagKeys.member.1", "k"},
		{"DeleteAlarms", "AlarmNames.member.1", "q"},
	} {
		r := callMetricsQuery(t, endpoint, call[0], call[1:]...)
		want := map[string]string{
			"DescribeAlarmsForMetric": "<MetricAlarms><member><AlarmName>j</AlarmName>", "ListTagsForResource": "<Tags><member><Key>k</Key><Value>v</Value></member></Tags>",
			"DescribeAlarmHistory": "<HistorySummary>Alarm updated from INSUFFICIENT_DATA to OK</HistorySummary>", "TagResource": "<TagResourceResult></TagResourceResult>",
		}[call[0]]
		if r.Status != 200 || !strings.Contains(r.Body, want) {
			t.Errorf("%s: %d %s", call[0], r.Status, r.Body)
		}
	}
	for _, call := range [][]string{
		{"SetAlarmState", `{"AlarmName":"j","StateValue":"OK","StateReason":"by hand"}`, ""},
		{"DisableAlarmActions", `{"AlarmNames":["j"]}`, ""},
		{"EnableAlarmActions", `{"AlarmNames":["j"]}`, ""},
		{"DescribeAlarmHistory", `{"AlarmName":"j","HistoryItemType":"StateUpdate"}`, fmt.Sprintf(`{"AlarmHistoryItems":[{"AlarmName":"j","AlarmType":"MetricAlarm","Timestamp":%d.0,"HistoryItemType":"StateUpdate",`+
			`"HistorySummary":"Alarm updated from INSUFFICIENT_DATA to OK","HistoryData":"{\"version\":\"1.0\",\"oldState\":{\"stateValue\":\"INSUFFICIENT_DATA\",\"stateReason\":\"Unchecked: Initial alarm creation\"},\"newState\":{\"stateValue\":\"OK\",\"stateReason\":\"by hand\"}}"}]}`, now.Unix())},
		{"TagResource", `{"ResourceARN":"` + alarmARN("j") + `","Tags":[{"Key":"k","Value":"v"}]}`, "{}"},
		{"ListTagsForResource", `{"ResourceARN":"` + alarmARN("j") + `"}`, `{"Tags":[{"Key":"k","Value":"v"}]}`},
		{"UntagResource", `{"ResourceARN":"` + alarmARN("j") + `","TagKeys":["k"]}`, "{}"},
		{"DescribeAlarmsForMetric", `{"MetricName":"x","Namespace":"n"}`, `{"MetricAlarms":[]}`},
		{"DeleteAlarms", `{"AlarmNames":["j"]}`, ""},
	} {
		if r := callMetricsJSON(t, endpoint, call[0], call[1]); r.Status != 200 || r.Body != call[2] {
			t.Errorf("%s in JSON: %d %s", call[0], r.Status, r.Body)
		}
	}
}
