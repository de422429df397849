package sdk_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"godwit.dev/godwit/internal/config"
)

// What PutMetricData refuses, and then takes nothing of.
func TestPutMetricDataErrors(t *testing.T) {
	endpoint := start(t)
	c := metricsClient(endpoint)
	now := serverTime(t, endpoint)
	one := aws.Float64(1)
	valid := types.MetricDatum{MetricName: aws.String("valid"), Value: one}
	for _, tc := range []struct {
		datum      types.MetricDatum
		code, text string
	}{
		{types.MetricDatum{MetricName: aws.String(""), Value: one}, "InvalidParameterValue", "The value  for parameter MetricData.member.2.MetricName is invalid. It must not be empty."},
		{types.MetricDatum{MetricName: aws.String("m")}, "InvalidParameterCombination", "At least one of the parameters MetricData.member.2.Value and MetricData.member.2.StatisticValues must be specified."},
		{types.MetricDatum{MetricName: aws.String("m"), Value: one, StatisticValues: &types.StatisticSet{SampleCount: one, Sum: one, Minimum: one, Maximum: one}}, "InvalidParameterCombination", "The parameters MetricData.member.2.Value and MetricData.member.2.StatisticValues are mutually exclusive and you have specified both."},
		{types.MetricDatum{MetricName: aws.String("m"), Value: one, Values: []float64{1}}, "InvalidParameterCombination", "The parameters MetricData.member.2.Value and MetricData.member.2.Values are mutually exclusive and you have specified both."},
		{types.MetricDatum{MetricName: aws.String("m"), Values: []float64{1}, StatisticValues: &types.StatisticSet{SampleCount: aws.Float64(0), Sum: one, Minimum: one, Maximum: one}}, "InvalidParameterValue", "The value 0 for parameter MetricData.member.2.StatisticValues.SampleCount is invalid."},
		{types.MetricDatum{MetricName: aws.String("m"), Values: []float64{math.NaN()}, StatisticValues: &types.StatisticSet{SampleCount: one, Sum: one, Minimum: one, Maximum: one}}, "InvalidParameterValue", "The value NaN for parameter MetricData.member.2.Values.member.1 is invalid."},
		{types.MetricDatum{MetricName: aws.String("m"), Values: []float64{1, 2}, Counts: []float64{1}}, "InvalidParameterValue", "The parameters MetricData.member.2.Values and MetricData.member.2.Counts must be of the same size."},
		{types.MetricDatum{MetricName: aws.String("m"), Values: []float64{1}, Counts: []float64{0}}, "InvalidParameterValue", "The value 0 for parameter MetricData.member.2.Counts.member.1 is invalid."},
		{types.MetricDatum{MetricName: aws.String("m"), Values: make([]float64, 151)}, "InvalidParameterValue", "The collection MetricData.member.2.Values must not have a size greater than 150."},
		{types.MetricDatum{MetricName: aws.String("m"), Value: aws.Float64(1e300)}, "InvalidParameterValue", "The value 1" + strings.Repeat(",000", 100) + " for parameter MetricData.member.2.Value is invalid."},
		{types.MetricDatum{MetricName: aws.String("m"), Value: one, Timestamp: aws.Time(now.Add(-15 * 24 * time.Hour))}, "InvalidParameterValue", "The parameter MetricData.member.2.Timestamp must specify a time within the past two weeks."},
		{types.MetricDatum{MetricName: aws.String("m"), Value: one, Timestamp: aws.Time(now.Add(3 * time.Hour))}, "InvalidParameterValue", "The parameter MetricData.member.2.Timestamp must specify a time no more than two hours in the future."},
		{types.MetricDatum{MetricName: aws.String("m"), Value: one, Unit: "Parsecs"}, "InvalidParameterValue", "The parameter MetricData.member.2.Unit must be a value in the set [ Seconds, Microseconds, Milliseconds, Bytes, Kilobytes, Megabytes, Gigabytes, Terabytes, Bits, Kilobits, Megabits, Gigabits, Terabits, Percent, Count, Bytes/Second, Kilobytes/Second, Megabytes/Second, Gigabytes/Second, Terabytes/Second, Bits/Second, Kilobits/Second, Megabits/Second, Gigabits/Second, Terabits/Second, Count/Second, None ]."},
		{types.MetricDatum{MetricName: aws.String("m"), Value: one, StorageResolution: aws.Int32(2)}, "InvalidParameterValue", "The parameter MetricData.member.2.StorageResolution must be a value in the set [ 1, 60 ]."},
		{types.MetricDatum{MetricName: aws.String("m"), Value: aws.Float64(1e-300)}, "InvalidParameterValue", "The value 0 for parameter MetricData.member.2.Value is invalid."},
		{types.MetricDatum{MetricName: aws.String("m"), Value: aws.Float64(math.NaN())}, "InvalidParameterValue", "The value NaN for parameter MetricData.member.2.Value is invalid."},
		{types.MetricDatum{MetricName: aws.String("m"), Values: []float64{1, math.Inf(-1)}}, "InvalidParameterValue", "The value -∞ for parameter MetricData.member.2.Values.member.2 is invalid."},
		{types.MetricDatum{MetricName: aws.String("m"), Values: []float64{1}, Counts: []float64{math.Inf(1)}}, "InvalidParameterValue", "The value ∞ for parameter MetricData.member.2.Counts.member.1 is invalid."},
		{types.MetricDatum{MetricName: aws.String("m"), StatisticValues: &types.StatisticSet{SampleCount: one, Sum: one, Minimum: aws.Float64(2), Maximum: one}}, "InvalidParameterValue", "The parameter MetricData.member.2.StatisticValues.Maximum must be greater than MetricData.member.2.StatisticValues.Minimum."},
		{types.MetricDatum{MetricName: aws.String("\u00e9"), Value: one}, "InvalidParameterValue", "The value for parameter MetricData.member.2.MetricName contains non-ASCII characters."},
		{types.MetricDatum{MetricName: aws.String(strings.Repeat("m", 256)), Value: one}, "InvalidParameterValue", "The parameter MetricData.member.2.MetricName must be shorter than 256 characters."},
		{types.MetricDatum{MetricName: aws.String("m"), Value: one, Dimensions: dimensions("a", "1", "b", "\u4e16")}, "InvalidParameterValue", "The value for parameter MetricData.member.2.Dimensions.member.2.Value contains non-ASCII characters."},
		{types.MetricDatum{MetricName: aws.String("m"), Value: one, Dimensions: dimensions(" ", "1")}, "InvalidParameterValue", "The value   for parameter MetricData.member.2.Dimensions.member.1.Name is invalid. It must have a character that is no whitespace."},
		{types.MetricDatum{MetricName: aws.String("m"), Value: one, Dimensions: dimensions("a", " ")}, "InvalidParameterValue", "The value   for parameter MetricData.member.2.Dimensions.member.1.Value is invalid. It must have a character that is no whitespace."},
		{types.MetricDatum{MetricName: aws.String("m"), Value: one, Dimensions: dimensions(":a", "1")}, "InvalidParameterValue", "The value :a for parameter MetricData.member.2.Dimensions.member.1.Name is invalid. It must not begin with a colon."},
		{types.MetricDatum{MetricName: aws.String("m"), Value: one, Dimensions: dimensions(strings.Repeat("a", 256), "1")}, "InvalidParameterValue", "The parameter MetricData.member.2.Dimensions.member.1.Name must be shorter than 256 characters."},
		{types.MetricDatum{MetricName: aws.String("m"), Value: one, Dimensions: dimensions("a", strings.Repeat("1", 1025))}, "InvalidParameterValue", "The parameter MetricData.member.2.Dimensions.member.1.Value must be shorter than 1025 characters."},
		{types.MetricDatum{MetricName: aws.String("m"), Value: one, Dimensions: dimensions("a", "1", "a", "2")}, "InvalidParameterValue", "The dimension a is given more than once in MetricData.member.2.Dimensions."},
		{types.MetricDatum{MetricName: aws.String("m"), Value: one, Dimensions: dimensions("a", "1\x01")}, "InvalidParameterValue", "The parameter MetricData.member.2.Dimensions.member.1.Value must not contain control characters."},
		{types.MetricDatum{MetricName: aws.String("m"), Value: one, Dimensions: slices.Repeat(dimensions("a", "1"), 31)}, "InvalidParameterValue", "The collection MetricData.member.2.Dimensions must not have a size greater than 30."},
		{types.MetricDatum{MetricName: aws.String("m"), StatisticValues: &types.StatisticSet{SampleCount: aws.Float64(0), Sum: one, Minimum: one, Maximum: one}}, "InvalidParameterValue", "The value 0 for parameter MetricData.member.2.StatisticValues.SampleCount is invalid."},
	} {
		_, err := c.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: aws.String("n"), MetricData: []types.MetricDatum{valid, tc.datum}})
		refused(t, err, tc.code, 400, tc.text)
	}
	for namespace, text := range map[string]string{
		"AWS/SQS": "The value AWS/ for parameter Namespace is invalid.",
		":n":      "The value :n for parameter Namespace is invalid. It must not begin with a colon.",
		"\u00fc":  "The value for parameter Namespace contains non-ASCII characters.",
	} {
		_, err := c.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: &namespace, MetricData: []types.MetricDatum{valid}})
		refused(t, err, "InvalidParameterValue", 400, text)
	}
	_, err := c.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: aws.String("n")})
	refused(t, err, "MissingParameter", 400, "The parameter MetricData is required.")
	many := make([]types.MetricDatum, 1001)
	for i := range many {
		many[i] = valid
	}
	_, err = c.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: aws.String("n"), MetricData: many})
	refused(t, err, "InvalidParameterValue", 400, "The collection MetricData must not have a size greater than 1000.")

	equal(t, "nothing was taken", []types.Metric{}, must(c.ListMetrics(t.Context(), &cloudwatch.ListMetricsInput{}))(t).Metrics)

	r := callMetricsJSON(t, endpoint, "PutMetricData", `{"Namespace":"n","MetricData":[{"Value":1}]}`, "X-Amzn-Query-Mode", "true")
	equal(t, "by hand", `400 MissingParameter;Sender {"__type":"com.amazonaws.cloudwatch.v2010_08_01#MissingRequiredParameterException","message":"The parameter MetricData.member.1.MetricName is required."}`,
		fmt.Sprint(r.Status, " ", r.Header.Get("X-Amzn-Query-Error"), " ", r.Body))
	r = callMetricsJSON(t, endpoint, "PutMetricData", `{"Namespace":"n","MetricData":[{"MetricName":"m","Value":"1"}]}`)
	equal(t, "a text for a number", `400 {"__type":"com.amazon.coral.service#SerializationException","message":"STRING_VALUE can not be converted to a Double"}`, fmt.Sprint(r.Status, " ", r.Body))
	r = callMetricsJSON(t, endpoint, "PutMetricData", `{"Namespace":"n","MetricData":[{"MetricName":"m","Values":[1,null]}]}`)
	equal(t, "nothing for a number", `400 {"__type":"com.amazon.coral.service#SerializationException","message":"NULL_VALUE can not be converted to a Double"}`, fmt.Sprint(r.Status, " ", r.Body))
	for text, shown := range map[string]string{"NaN": "NaN", "Infinity": "∞", "-Infinity": "-∞"} { // as JSON has them
		r = callMetricsJSON(t, endpoint, "PutMetricData", `{"Namespace":"n","MetricData":[{"MetricName":"m","Values":[1,"`+text+`"]}]}`)
		equal(t, "no number", `400 {"__type":"com.amazonaws.cloudwatch.v2010_08_01#InvalidParameterValueException","message":"The value `+shown+
			` for parameter MetricData.member.1.Values.member.2 is invalid."}`, fmt.Sprint(r.Status, " ", r.Body))
	}
	r = callMetricsJSON(t, endpoint, "PutMetricData", `{"Namespace":"n","MetricData":[{"MetricName":"m","Value":1,"Dimensions":[{"Value":"v"}]}]}`)
	equal(t, "a dimension without a name", `400 {"__type":"com.amazonaws.cloudwatch.v2010_08_01#MissingRequiredParameterException","message":"The parameter MetricData.member.1.Dimensions.member.1.Name is required."}`,
		fmt.Sprint(r.Status, " ", r.Body))
	r = callMetricsQuery(t, endpoint, "PutMetricData", "Namespace", "n", "MetricData.member.1.MetricName", "m", "MetricData.member.1.Value", "NaN")
	if r.Status != 400 || !strings.Contains(r.Body, "<Code>InvalidParameterValue</Code><Message>The value NaN for parameter MetricData.member.1.Value is invalid.</Message>") {
		t.Errorf("no number: %d %s", r.Status, r.Body)
	}
	r = callMetricsQuery(t, endpoint, "PutDashboard", "DashboardName", "d")
	if r.Status != 400 || !strings.Contains(r.Body, "<Code>InvalidAction</Code>") {
		t.Errorf("an action that is not built: %d %s", r.Status, r.Body)
	}
}

// What questions about metrics are refused with.
func TestGetMetricErrors(t *testing.T) {
	endpoint := start(t)
	c := metricsClient(endpoint)
	now := serverTime(t, endpoint)
	for _, tc := range []struct {
		change     func(in *cloudwatch.GetMetricStatisticsInput)
		code, text string
	}{
		{func(in *cloudwatch.GetMetricStatisticsInput) {
			in.StartTime = aws.Time(now.Add(-24 * time.Hour))
			in.Period = aws.Int32(1)
		}, "InvalidParameterCombination", "You have requested up to 86400 datapoints, which exceeds the limit of 1440. You may reduce the datapoints requested by increasing Period, or decreasing the time range."},
		{func(in *cloudwatch.GetMetricStatisticsInput) { in.Statistics = nil }, "InvalidParameterCombination", "Must specify either Statistics or ExtendedStatistics"},
		{func(in *cloudwatch.GetMetricStatisticsInput) { in.ExtendedStatistics = []string{"p9"} }, "InvalidParameterCombination", "The parameters Statistics and ExtendedStatistics are mutually exclusive and you have specified both."},
		{func(in *cloudwatch.GetMetricStatisticsInput) { in.Statistics = []types.Statistic{"Median"} }, "InvalidParameterValue", "The parameter Statistics.member.1 must be a value in the set [ SampleCount, Average, Sum, Minimum, Maximum ]."},
		{func(in *cloudwatch.GetMetricStatisticsInput) {
			in.Statistics, in.ExtendedStatistics = nil, []string{"p101"}
		}, "InvalidParameterValue", "The value p101 for parameter ExtendedStatistics.member.1 is not supported."},
		{func(in *cloudwatch.GetMetricStatisticsInput) { in.Period = aws.Int32(90) }, "InvalidParameterValue", "The parameter Period must be 1, 5, 10, 20, 30, or a multiple of 60."},
	} {
		in := &cloudwatch.GetMetricStatisticsInput{
			Namespace: aws.String("n"), MetricName: aws.String("m"), StartTime: aws.Time(now.Add(-time.Hour)), EndTime: &now, Period: aws.Int32(60),
			Statistics: []types.Statistic{types.StatisticSum},
		}
		tc.change(in)
		_, err := c.GetMetricStatistics(t.Context(), in)
		refused(t, err, tc.code, 400, tc.text)
	}
	r := callMetricsQuery(t, endpoint, "GetMetricStatistics", "Namespace", "n", "MetricName", "m")
	if r.Status != 400 || !strings.Contains(r.Body, "<Code>MissingParameter</Code><Message>The parameter StartTime is required.</Message>") {
		t.Errorf("without a time: %d %s", r.Status, r.Body)
	}

	query := func(id, stat string) types.MetricDataQuery {
		return types.MetricDataQuery{Id: &id, MetricStat: &types.MetricStat{
			Metric: &types.Metric{Namespace: aws.String("n"), MetricName: aws.String("m")}, Period: aws.Int32(60), Stat: &stat,
		}}
	}
	for _, tc := range []struct {
		queries []types.MetricDataQuery
		text    string
	}{
		{[]types.MetricDataQuery{query("A", "Sum")}, "The value A for parameter MetricDataQueries.member.1.Id is not matching the expected pattern ^[a-z][a-zA-Z0-9_]*$."},
		{[]types.MetricDataQuery{query("a", "Sum"), query("a", "Sum")}, "The values for parameter id in MetricDataQueries are not unique."},
		{[]types.MetricDataQuery{query("a", "Sum"), query("b", "None")}, "The value None for parameter MetricDataQueries.member.2.MetricStat.Stat is not a valid statistic."},
		{[]types.MetricDataQuery{{Id: aws.String("e"), Expression: aws.String("1")}}, "Error in expression 'e': The result is a single number. It must be a time series, or an array of time series."},
		{nil, "The parameter MetricDataQueries must have at least one element."},
	} {
		if tc.queries == nil {
			tc.queries = []types.MetricDataQuery{}
		}
		_, err := c.GetMetricData(t.Context(), &cloudwatch.GetMetricDataInput{StartTime: aws.Time(now.Add(-time.Hour)), EndTime: &now, MetricDataQueries: tc.queries})
		refused(t, err, "ValidationError", 400, tc.text)
	}
	_, err := c.GetMetricData(t.Context(), &cloudwatch.GetMetricDataInput{
		StartTime: aws.Time(now.Add(-time.Hour)), EndTime: &now, MetricDataQueries: []types.MetricDataQuery{query("a", "Sum")}, NextToken: aws.String("x"),
	})
	refused(t, err, "InvalidNextToken", 400, "The next token is not valid.")
	_, err = c.ListMetrics(t.Context(), &cloudwatch.ListMetricsInput{NextToken: aws.String("x")})
	refused(t, err, "InvalidParameterValue", 400, "Request parameter NextToken is invalid")
}

// What requests about alarms are refused with.
func TestAlarmErrors(t *testing.T) {
	endpoint := startWith(t, func(c *config.Config) { c.MaxAlarms = 2 })
	c := metricsClient(endpoint)
	constraint := func(value, member, rest string) string {
		return fmt.Sprintf("1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: %s", value, member, rest)
	}
	for _, tc := range []struct {
		change func(in *cloudwatch.PutMetricAlarmInput)
		text   string
	}{
		{func(in *cloudwatch.PutMetricAlarmInput) { in.MetricName = nil }, "1 validation error detected: Value null at 'metricName' failed to satisfy constraint: Member must not be null"},
		{func(in *cloudwatch.PutMetricAlarmInput) { in.Threshold = nil }, "1 validation error detected: Value null at 'threshold' failed to satisfy constraint: Member must not be null"},
		{func(in *cloudwatch.PutMetricAlarmInput) { in.Threshold = aws.Float64(math.Inf(1)) }, "The value ∞ for parameter Threshold is invalid."},
		{func(in *cloudwatch.PutMetricAlarmInput) { in.Period = aws.Int32(90) }, "Period must be 10, 20, 30 or a multiple of 60"},
		{func(in *cloudwatch.PutMetricAlarmInput) { in.Period = aws.Int32(5) }, "Period must be 10, 20, 30 or a multiple of 60"},
		{func(in *cloudwatch.PutMetricAlarmInput) { in.EvaluationPeriods = aws.Int32(1441) }, "Metrics cannot be checked across more than a day (EvaluationPeriods * Period must be <= 86400) for alarms using period < 3600"},
		{func(in *cloudwatch.PutMetricAlarmInput) {
			in.Period, in.EvaluationPeriods = aws.Int32(3600), aws.Int32(169)
		}, "Metrics cannot be checked across more than a week (EvaluationPeriods * Period must be <= 604800) for alarms using period >= 3600"},
		{func(in *cloudwatch.PutMetricAlarmInput) { in.MetricName = aws.String("m\u00e9") }, "MetricName must not contain Non-ASCII characters."},
		{func(in *cloudwatch.PutMetricAlarmInput) { in.Namespace = aws.String("\u00e9") }, "Namespace must not contain Non-ASCII characters."},
		{func(in *cloudwatch.PutMetricAlarmInput) {
			in.AlarmActions = []string{"arn:aws:sns:eu-west-1:000000000000:ops"}
		}, "Invalid region eu-west-1 specified. Only us-east-1 is supported."},
		{func(in *cloudwatch.PutMetricAlarmInput) { in.DatapointsToAlarm = aws.Int32(2) }, "DatapointsToAlarm must be less than or equal to EvaluationPeriods"},
		{func(in *cloudwatch.PutMetricAlarmInput) { in.ComparisonOperator = "Near" }, constraint("Near", "comparisonOperator", "Member must satisfy enum value set: [GreaterThanOrEqualToThreshold, GreaterThanThreshold, LessThanThreshold, LessThanOrEqualToThreshold]")},
		{func(in *cloudwatch.PutMetricAlarmInput) {
			in.ComparisonOperator = types.ComparisonOperatorLessThanLowerThreshold
		}, "The comparison operator LessThanLowerThreshold is for anomaly detection, which is not supported yet."},
		{func(in *cloudwatch.PutMetricAlarmInput) { in.ExtendedStatistic = aws.String("p9") }, "The parameters Statistic and ExtendedStatistic are mutually exclusive and you have specified both."},
		{func(in *cloudwatch.PutMetricAlarmInput) { in.EvaluateLowSampleCountPercentile = aws.String("ignore") }, "The parameter EvaluateLowSampleCountPercentile is for percentiles only."},
		{func(in *cloudwatch.PutMetricAlarmInput) { in.EvaluateLowSampleCountPercentile = aws.String("unknown") }, "Option unknown is not supported. Supported options for parameter EvaluateLowSampleCountPercentile are evaluate and ignore."},
		{func(in *cloudwatch.PutMetricAlarmInput) {
			in.Statistic, in.ExtendedStatistic = "", aws.String("90")
		}, "The value 90 for parameter ExtendedStatistic is not supported."},
		{func(in *cloudwatch.PutMetricAlarmInput) { in.AlarmActions = []string{"me"} }, "Invalid arn syntax: me"},
		{func(in *cloudwatch.PutMetricAlarmInput) {
			in.OKActions = []string{"arn:aws:automate:us-east-1:ec2:stop"}
		}, "The action arn:aws:automate:us-east-1:ec2:stop is not supported: actions are standard SNS topics and Lambda functions."},
		{func(in *cloudwatch.PutMetricAlarmInput) {
			in.OKActions = []string{"arn:aws:ssm:us-east-1:000000000000:opsitem:1"}
		}, "The action arn:aws:ssm:us-east-1:000000000000:opsitem:1 is not supported: actions are standard SNS topics and Lambda functions."},
		{func(in *cloudwatch.PutMetricAlarmInput) { in.TreatMissingData = aws.String("never") }, "Unsupported TreatMissingData value: never. Valid values: breaching, notBreaching, ignore, missing"},
		{func(in *cloudwatch.PutMetricAlarmInput) { in.AlarmName = aws.String(strings.Repeat("x", 256)) }, constraint(strings.Repeat("x", 128), "alarmName", "Member must have length less than or equal to 255")},
		{func(in *cloudwatch.PutMetricAlarmInput) { in.AlarmName = aws.String("") }, constraint("", "alarmName", "Member must have length greater than or equal to 1")},
		{func(in *cloudwatch.PutMetricAlarmInput) {
			in.AlarmDescription = aws.String(strings.Repeat("\u00e9", 1025))
		}, constraint(strings.Repeat("\u00e9", 64), "alarmDescription", "Member must have length less than or equal to 1024")},
		{func(in *cloudwatch.PutMetricAlarmInput) { in.EvaluationPeriods = aws.Int32(0) }, constraint("0", "evaluationPeriods", "Member must have value greater than or equal to 1")},
		{func(in *cloudwatch.PutMetricAlarmInput) { in.DatapointsToAlarm = aws.Int32(0) }, constraint("0", "datapointsToAlarm", "Member must have value greater than or equal to 1")},
		{func(in *cloudwatch.PutMetricAlarmInput) {
			in.ThresholdMetricId = aws.String("ad1")
		}, "Alarms with a ThresholdMetricId, for anomaly detection, are not supported yet."},
	} {
		in := &cloudwatch.PutMetricAlarmInput{
			AlarmName: aws.String("a"), Namespace: aws.String("n"), MetricName: aws.String("m"), Statistic: types.StatisticSum, Period: aws.Int32(60),
			EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(10), ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold,
		}
		tc.change(in)
		_, err := c.PutMetricAlarm(t.Context(), in)
		code := "ValidationError"
		if strings.Contains(tc.text, "ExtendedStatistic is not supported") {
			code = "InvalidParameterValue"
		}
		refused(t, err, code, 400, tc.text)
	}
	equal(t, "there is none", 0, len(must(c.DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{}))(t).MetricAlarms))
	putAlarm(t, endpoint, "a", nil)
	putAlarm(t, endpoint, "b", nil)
	putAlarm(t, endpoint, "b", nil)
	_, err := c.PutMetricAlarm(t.Context(), &cloudwatch.PutMetricAlarmInput{
		AlarmName: aws.String("c"), Namespace: aws.String("n"), MetricName: aws.String("m"), Statistic: types.StatisticSum, Period: aws.Int32(60),
		EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(10), ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold,
	})
	refused(t, err, "LimitExceeded", 400, "The maximum number of alarms, 2, has been reached.")

	set := &cloudwatch.SetAlarmStateInput{AlarmName: aws.String("none"), StateValue: types.StateValueOk, StateReason: aws.String("r")}
	_, err = c.SetAlarmState(t.Context(), set)
	refused(t, err, "ResourceNotFound", 404, "")
	set.StateReasonData = aws.String("{")
	_, err = c.SetAlarmState(t.Context(), set)
	refused(t, err, "InvalidFormat", 400, "Data was not syntactically valid JSON.")
	set.StateReasonData, set.StateValue = nil, "GOOD"
	_, err = c.SetAlarmState(t.Context(), set)
	refused(t, err, "ValidationError", 400, constraint("GOOD", "stateValue", "Member must satisfy enum value set: [INSUFFICIENT_DATA, ALARM, OK]"))
	_, err = c.DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{StateValue: "GOOD"})
	refused(t, err, "ValidationError", 400, constraint("GOOD", "stateValue", "Member must satisfy enum value set: [INSUFFICIENT_DATA, ALARM, OK]"))
	set.StateValue, set.StateReason = types.StateValueOk, aws.String(strings.Repeat("\u00e9", 1024))
	_, err = c.SetAlarmState(t.Context(), set)
	refused(t, err, "ValidationError", 400, constraint(strings.Repeat("\u00e9", 64), "stateReason", "Member must have length less than or equal to 1023"))
	for _, tc := range []struct {
		in     cloudwatch.DescribeAlarmsInput
		value  string
		member string
		rest   string
	}{
		{cloudwatch.DescribeAlarmsInput{MaxRecords: aws.Int32(0)}, "0", "maxRecords", "Member must have value greater than or equal to 1"},
		{cloudwatch.DescribeAlarmsInput{MaxRecords: aws.Int32(101)}, "101", "maxRecords", "Member must have value less than or equal to 100"},
		{cloudwatch.DescribeAlarmsInput{AlarmNamePrefix: aws.String("")}, "", "alarmNamePrefix", "Member must have length greater than or equal to 1"},
		{cloudwatch.DescribeAlarmsInput{ActionPrefix: aws.String("")}, "", "actionPrefix", "Member must have length greater than or equal to 1"},
		{cloudwatch.DescribeAlarmsInput{AlarmTypes: []types.AlarmType{"MetricAlarm", "X"}}, "[MetricAlarm, X]", "alarmTypes", "Member must satisfy constraint: [Member must satisfy enum value set: [CompositeAlarm, MetricAlarm]]"},
	} {
		_, err = c.DescribeAlarms(t.Context(), &tc.in)
		refused(t, err, "ValidationError", 400, constraint(tc.value, tc.member, tc.rest))
	}
	many := slices.Repeat([]string{"a"}, 101)
	tooMany := "1 validation error detected: Value at 'alarmNames' failed to satisfy constraint: Member must have length less than or equal to 100"
	_, err = c.DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{AlarmNames: many})
	refused(t, err, "ValidationError", 400, tooMany)
	_, err = c.DeleteAlarms(t.Context(), &cloudwatch.DeleteAlarmsInput{AlarmNames: many})
	refused(t, err, "ValidationError", 400, tooMany)
	_, err = c.EnableAlarmActions(t.Context(), &cloudwatch.EnableAlarmActionsInput{AlarmNames: many})
	refused(t, err, "ValidationError", 400, tooMany)
	_, err = c.DisableAlarmActions(t.Context(), &cloudwatch.DisableAlarmActionsInput{AlarmNames: many})
	refused(t, err, "ValidationError", 400, tooMany)
	_, err = c.DescribeAlarmsForMetric(t.Context(), &cloudwatch.DescribeAlarmsForMetricInput{Namespace: aws.String("n"), MetricName: aws.String("m"), Period: aws.Int32(0)})
	refused(t, err, "ValidationError", 400, constraint("0", "period", "Member must have value greater than or equal to 1"))
	_, err = c.DescribeAlarmsForMetric(t.Context(), &cloudwatch.DescribeAlarmsForMetricInput{Namespace: aws.String(""), MetricName: aws.String("m")})
	refused(t, err, "ValidationError", 400, constraint("", "namespace", "Member must have length greater than or equal to 1"))
	_, err = c.DescribeAlarmsForMetric(t.Context(), &cloudwatch.DescribeAlarmsForMetricInput{Namespace: aws.String("n"), MetricName: aws.String("m"), Statistic: "p9"})
	refused(t, err, "ValidationError", 400, constraint("p9", "statistic", "Member must satisfy enum value set: [SampleCount, Average, Sum, Minimum, Maximum]"))
	_, err = c.DescribeAlarmHistory(t.Context(), &cloudwatch.DescribeAlarmHistoryInput{MaxRecords: aws.Int32(101)})
	refused(t, err, "ValidationError", 400, constraint("101", "maxRecords", "Member must have value less than or equal to 100"))
	_, err = c.DescribeAlarmHistory(t.Context(), &cloudwatch.DescribeAlarmHistoryInput{HistoryItemType: "X"})
	refused(t, err, "ValidationError", 400, constraint("X", "historyItemType", "Member must satisfy enum value set: [ConfigurationUpdate, StateUpdate, Action, AlarmContributorStateUpdate, AlarmContributorAction]"))
	_, err = c.DescribeAlarmHistory(t.Context(), &cloudwatch.DescribeAlarmHistoryInput{ScanBy: "X"})
	refused(t, err, "ValidationError", 400, constraint("X", "scanBy", "Member must satisfy enum value set: [TimestampDescending, TimestampAscending]"))
	_, err = c.DescribeAlarmHistory(t.Context(), &cloudwatch.DescribeAlarmHistoryInput{AlarmName: aws.String("")})
	refused(t, err, "ValidationError", 400, constraint("", "alarmName", "Member must have length greater than or equal to 1"))

	_, err = c.DeleteAlarms(t.Context(), &cloudwatch.DeleteAlarmsInput{AlarmNames: []string{"none"}})
	refused(t, err, "ResourceNotFound", 404, "")
	_, err = c.DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{NextToken: aws.String("x")})
	refused(t, err, "InvalidNextToken", 400, "The next token is not valid.")
	_, err = c.DescribeAlarmHistory(t.Context(), &cloudwatch.DescribeAlarmHistoryInput{NextToken: aws.String("x")})
	refused(t, err, "InvalidNextToken", 400, "The next token is not valid.")

	for text, want := range map[string]string{"x": "InvalidParameterValue", alarmARN("none"): "ResourceNotFoundException"} {
		status, message := 404, ""
		if want == "InvalidParameterValue" {
			status, message = 400, "The value x for parameter ResourceARN is not the ARN of a CloudWatch resource."
		}
		_, err = c.TagResource(t.Context(), &cloudwatch.TagResourceInput{ResourceARN: &text, Tags: []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}}})
		refused(t, err, want, status, message)
		_, err = c.UntagResource(t.Context(), &cloudwatch.UntagResourceInput{ResourceARN: &text, TagKeys: []string{"k"}})
		refused(t, err, want, status, message)
		_, err = c.ListTagsForResource(t.Context(), &cloudwatch.ListTagsForResourceInput{ResourceARN: &text})
		refused(t, err, want, status, message)
	}
	r := callMetricsQuery(t, endpoint, "DeleteAlarms", "AlarmNames.member.1", "none")
	if r.Status != 404 || !strings.Contains(r.Body, "<Type>Sender</Type><Code>ResourceNotFound</Code></Error>") {
		t.Errorf("as a form: %d %s", r.Status, r.Body)
	}
}
