package sdk_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
)

// putFound puts a value of the minute before now for a metric with dimensions as in "Function=a".
func putFound(t *testing.T, c *cloudwatch.Client, now time.Time, namespace, name string, value float64, dimensions ...string) {
	t.Helper()
	datum := types.MetricDatum{MetricName: &name, Timestamp: aws.Time(now.Add(-time.Minute)), Value: &value}
	for _, d := range dimensions {
		key, value, _ := strings.Cut(d, "=")
		datum.Dimensions = append(datum.Dimensions, types.Dimension{Name: &key, Value: &value})
	}
	must(c.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: &namespace, MetricData: []types.MetricDatum{datum}}))(t)
}

// searched asks for expressions over the five minutes before now.
func searched(now time.Time, queries ...types.MetricDataQuery) *cloudwatch.GetMetricDataInput {
	return &cloudwatch.GetMetricDataInput{StartTime: aws.Time(now.Add(-5 * time.Minute)), EndTime: &now, MetricDataQueries: queries}
}

// A SEARCH finds metrics by the parts of their names. Its result is an array, with the Id of the expression.
func TestSearchExpressions(t *testing.T) {
	endpoint := start(t)
	c := metricsClient(endpoint)
	now := serverTime(t, endpoint).Truncate(time.Minute)
	putFound(t, c, now, "Shop", "OrderErrors", 1, "Function=orders")
	putFound(t, c, now, "Shop", "OrderErrors", 5, "Function=billing")
	putFound(t, c, now, "Shop", "OrderErrors", 3, "Function=billing", "Stage=test")
	putFound(t, c, now, "Shop", "Invocations", 9, "Function=orders")
	putFound(t, c, now, "Other", "Errors", 7)
	expect := func(want string, queries ...types.MetricDataQuery) {
		t.Helper()
		out := must(c.GetMetricData(t.Context(), searched(now, queries...)))(t)
		var got []string
		for i := range out.MetricDataResults {
			got = append(got, mathResult(now, &out.MetricDataResults[i]))
		}
		equal(t, *queries[0].Expression, want, strings.Join(got, "\n"))
	}
	errorsOf := `SEARCH('{Shop,Function} MetricName="OrderErrors"', 'Sum', 60)`
	expect("e1, billing, Complete: 1:5\ne1, orders, Complete: 1:1", mathQuery("e1", errorsOf, ""))
	expect("e1, billing, Complete: 1:5\ne1, orders, Complete: 1:1", // as Grafana asks for several values
		mathQuery("e1", `REMOVE_EMPTY(SEARCH('Namespace="Shop" MetricName="OrderErrors" "Function"=("orders" OR "billing") NOT Stage=test', 'Sum', 60))`, ""))
	expect("e1, sum, Complete: 1:6", mathQuery("e1", "SUM("+errorsOf+")", "sum"))
	expect("e1, orders, Complete: 1:1\ne1, billing, Complete: 1:5", mathQuery("e1", "SORT("+errorsOf+", SUM, ASC)", ""))
	expect("e1, Errors of billing, Complete: 1:5", mathQuery("e1", "SLICE("+errorsOf+", 0, 1)", "Errors of"))
	expect("e2, e2, Complete: 1:6", mathQuery("e2", "SUM(e1)", ""), func() types.MetricDataQuery {
		q := mathQuery("e1", errorsOf, "")
		q.ReturnData = aws.Bool(false)
		return q
	}())
	expect("e1, Invocations, Complete: 1:9", mathQuery("e1", `SEARCH('{Shop,Function} invocations', 'Maximum', 60)`, ""))
	expect("e1, Other Errors, Complete: 1:7\ne1, Shop billing OrderErrors, Complete: 1:5\ne1, Shop billing test OrderErrors, Complete: 1:3\ne1, Shop orders OrderErrors, Complete: 1:1",
		mathQuery("e1", `SEARCH('errors', 'Sum', 60)`, ""))
	expect("e1, OrderErrors, Complete: 1:3", mathQuery("e1", `SEARCH('Namespace="Shop" Stage=TEST NOT (orders OR "x")', 'Sum', 60)`, ""))
	expect("e1, SEARCHED, Complete: 1:7 2:0 3:0 4:0 5:0", mathQuery("e1", `FILL(SUM(SEARCH('{Other}', 'Sum', 60)), 0)`, "SEARCHED"))
	expect("", mathQuery("e1", `SEARCH('{None}', 'Sum', 60)`, ""))

	// Without a period the query's counts.
	q := mathQuery("e1", `SEARCH('{Other}', 'SampleCount')`, "")
	q.Period = aws.Int32(60)
	expect("e1, Errors, Complete: 1:1", q)
}

// A SEARCH has 100 series at most, and a message says that there were more.
func TestManyFound(t *testing.T) {
	endpoint := start(t)
	c := metricsClient(endpoint)
	now := serverTime(t, endpoint).Truncate(time.Minute)
	data := make([]types.MetricDatum, 101)
	for i := range data {
		data[i] = types.MetricDatum{MetricName: aws.String(fmt.Sprintf("n%03d", i)), Timestamp: aws.Time(now.Add(-time.Minute)), Value: aws.Float64(1)}
	}
	must(c.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: aws.String("Many"), MetricData: data}))(t)
	out := must(c.GetMetricData(t.Context(), searched(now, mathQuery("e1", `SEARCH('{Many}', 'Sum', 60)`, ""))))(t)
	if len(out.MetricDataResults) != 100 || len(out.Messages) != 1 || *out.Messages[0].Code != "MaxMetricsExceeded" || *out.MetricDataResults[99].Label != "n099" {
		t.Errorf("%d results, messages %v", len(out.MetricDataResults), out.Messages)
	}
	out = must(c.GetMetricData(t.Context(), searched(now, mathQuery("e1", `SUM(SEARCH('{Many} NOT n000', 'Sum', 60))`, ""))))(t)
	if len(out.Messages) != 0 || out.MetricDataResults[0].Values[0] != 100 {
		t.Errorf("%v, messages %v", out.MetricDataResults, out.Messages)
	}
}

func TestRefusedSearches(t *testing.T) {
	endpoint := start(t)
	c := metricsClient(endpoint)
	now := serverTime(t, endpoint).Truncate(time.Minute)
	for expression, want := range map[string]string{
		`SEARCH('{Shop', 'Sum', 60)`:    "Error in expression 'e1': The text of a SEARCH must have a schema or a search term in the syntax of CloudWatch's search expressions, and no more than 1024 characters.",
		`SEARCH('a', 'Summe', 60)`:      "Error in expression 'e1': The value Summe is not a valid statistic.",
		`SEARCH('a', 'Sum', 61)`:        "Error in expression 'e1': The parameter Period must be 1, 5, 10, 20, 30, or a multiple of 60.",
		`SEARCH('a')`:                   "Error in expression 'e1': The function SEARCH does not take these arguments.",
		`SEARCH('a','Sum') + METRICS()`: "Error in expression 'e1': The operator + does not take these operands.",
	} {
		_, err := c.GetMetricData(t.Context(), searched(now, mathQuery("e1", expression, "")))
		refused(t, err, "ValidationError", 400, want)
	}
	alarm := func(expression string, period *int32) error {
		q := mathQuery("e1", expression, "")
		q.Period = period
		_, err := c.PutMetricAlarm(t.Context(), &cloudwatch.PutMetricAlarmInput{
			AlarmName: aws.String("a"), Metrics: []types.MetricDataQuery{q}, EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(1), ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold,
		})
		return err
	}
	for _, expression := range []string{`SEARCH('a', 'Sum', 60)`, `SUM(SEARCH('a', 'Sum', 60))`} {
		refused(t, alarm(expression, nil), "ValidationError", 400, "Period must not be null")
		refused(t, alarm(expression, aws.Int32(60)), "ValidationError", 400, "SEARCH is not supported on Metric Alarms")
	}
}

// Labels with values of the series, and properties of its metric.
func TestDynamicLabels(t *testing.T) {
	endpoint := start(t)
	c := metricsClient(endpoint)
	now := serverTime(t, endpoint).Truncate(time.Minute)
	queries := errorsAndCalls(t, c, now)
	putFound(t, c, now, "Shop", "OrderErrors", 1, "Function=orders")
	putFound(t, c, now, "Shop", "OrderErrors", 5, "Function=billing")
	labels := func(zone string, label string, queries ...types.MetricDataQuery) string {
		t.Helper()
		queries[0].Label, queries[0].ReturnData = &label, nil
		in := searched(now, queries...)
		if zone != "" {
			in.LabelOptions = &types.LabelOptions{Timezone: &zone}
		}
		var got []string
		for _, r := range must(c.GetMetricData(t.Context(), in))(t).MetricDataResults {
			got = append(got, *r.Label)
		}
		return strings.Join(got, ", ")
	}
	equal(t, "values", "errors 16 1 6.2 31 16 1 5", labels("", "${LABEL} ${MAX} ${MIN} ${AVG} ${SUM} ${LAST} ${FIRST} ${DATAPOINT_COUNT}", queries[0]))
	equal(t, "properties", "000000000000 "+region+" shop errors 60 Sum ${PROP('Dim.x')}", labels("", "${PROP('AccountId')} ${PROP('Region')} ${PROP('Namespace')} ${PROP('MetricName')} ${PROP('Period')} ${PROP('Stat')} ${PROP('Dim.x')}", queries[0]))
	last := now.Add(-time.Minute)
	equal(t, "times", last.UTC().Format("2006-01-02T15:04:05+00:00"), labels("", "${LAST_TIME}", queries[0]))
	equal(t, "times in a zone", last.In(time.FixedZone("", 5400)).Format("2006-01-02T15:04:05-07:00"), labels("+0130", "${MAX_TIME}", queries[0]))
	equal(t, "those of a search", "billing: 5 of OrderErrors, billing, orders: 1 of OrderErrors, orders",
		labels("", "${LABEL}: ${MAX} of ${PROP('MetricName')}, ${PROP('Dim.Function')}", mathQuery("e1", `SEARCH('{Shop,Function} errors', 'Sum', 60)`, "")))
	equal(t, "those of an expression", "e1 6 ${PROP('MetricName')}", labels("", "${LABEL} ${SUM} ${PROP('MetricName')}", mathQuery("e1", `SUM(SEARCH('{Shop,Function} errors', 'Sum', 60))`, "")))
	equal(t, "those of calls on errors", "e1 10", labels("", "${LABEL} ${FIRST}", mathQuery("e1", "m2 / m1", ""), queries[0], queries[1]))

	in := searched(now, queries[1])
	in.MetricDataQueries[0].ReturnData = nil
	in.LabelOptions = &types.LabelOptions{Timezone: aws.String("UTC")}
	_, err := c.GetMetricData(t.Context(), in)
	refused(t, err, "ValidationError", 400, "The value UTC for parameter LabelOptions.Timezone must be + or - and four digits, such as +0130.")
}
