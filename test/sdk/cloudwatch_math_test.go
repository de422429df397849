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

// errorsAndCalls puts two metrics for the five minutes before now, oldest first: errors 1 2 4 8
// 16, and calls 10 - 10 0 20. It returns queries for them, which return no data, with the Ids m1
// and m2.
func errorsAndCalls(t *testing.T, c *cloudwatch.Client, now time.Time) []types.MetricDataQuery {
	t.Helper()
	in := &cloudwatch.PutMetricDataInput{Namespace: aws.String("shop")}
	for i, calls := range []float64{10, -1, 10, 0, 20} {
		at := aws.Time(now.Add(time.Duration(i-5) * time.Minute))
		in.MetricData = append(in.MetricData, types.MetricDatum{MetricName: aws.String("errors"), Timestamp: at, Value: aws.Float64(float64(int(1) << i))})
		if calls >= 0 {
			in.MetricData = append(in.MetricData, types.MetricDatum{MetricName: aws.String("calls"), Timestamp: at, Value: &calls})
		}
	}
	must(c.PutMetricData(t.Context(), in))(t)
	query := func(id, name string) types.MetricDataQuery {
		return types.MetricDataQuery{Id: &id, ReturnData: aws.Bool(false), MetricStat: &types.MetricStat{
			Metric: &types.Metric{Namespace: aws.String("shop"), MetricName: &name}, Period: aws.Int32(60), Stat: aws.String("Sum"),
		}}
	}
	return []types.MetricDataQuery{query("m1", "errors"), query("m2", "calls")}
}

func mathQuery(id, text, label string) types.MetricDataQuery {
	q := types.MetricDataQuery{Id: &id, Expression: &text}
	if label != "" {
		q.Label = &label
	}
	return q
}

// mathResult is a result: "Id, Label, StatusCode: 5:1 4:2", with the minutes before now, and the
// codes of messages behind the StatusCode.
func mathResult(now time.Time, r *types.MetricDataResult) string {
	text := fmt.Sprintf("%s, %s, %s", *r.Id, *r.Label, r.StatusCode)
	for _, message := range r.Messages {
		text += " " + *message.Code
	}
	text += ":"
	for i, value := range r.Values {
		text += fmt.Sprintf(" %g:%.4g", now.Sub(r.Timestamps[i]).Minutes(), value)
	}
	return text
}

// Expressions beside metrics: their results are in the order of the queries, one for each series
// of an array.
func TestMetricMath(t *testing.T) {
	endpoint := start(t)
	c := metricsClient(endpoint)
	now := serverTime(t, endpoint).Truncate(time.Minute)
	queries := errorsAndCalls(t, c, now)
	ask := func(change func(in *cloudwatch.GetMetricDataInput), expressions ...types.MetricDataQuery) *cloudwatch.GetMetricDataOutput {
		t.Helper()
		in := &cloudwatch.GetMetricDataInput{
			StartTime: aws.Time(now.Add(-5 * time.Minute)), EndTime: &now, MetricDataQueries: slices.Concat(expressions, queries), ScanBy: types.ScanByTimestampAscending,
		}
		if change != nil {
			change(in)
		}
		return must(c.GetMetricData(t.Context(), in))(t)
	}
	expect := func(out *cloudwatch.GetMetricDataOutput, want ...string) {
		t.Helper()
		var got []string
		for i := range out.MetricDataResults {
			got = append(got, mathResult(now, &out.MetricDataResults[i]))
		}
		equal(t, "results", strings.Join(want, "\n"), strings.Join(got, "\n"))
	}

	expect(ask(nil, mathQuery("e1", "100 * m1 / m2", "Error rate")), "e1, Error rate, Complete ArithmeticError: 5:10 3:40 1:80")
	expect(ask(func(in *cloudwatch.GetMetricDataInput) { in.ScanBy = "" }, mathQuery("e1", "m1 - m2", "")), "e1, e1, Complete: 1:-4 2:8 3:-6 4:2 5:-9")
	expect(ask(func(in *cloudwatch.GetMetricDataInput) {
		in.MetricDataQueries[2].ReturnData = nil
	}, mathQuery("all", "FILL(METRICS(), 0)", "Filled With 0:"), mathQuery("sum", "SUM(all)", "")),
		"all, Filled With 0: errors, Complete: 5:1 4:2 3:4 2:8 1:16", "all, Filled With 0: calls, Complete: 5:10 4:0 3:10 2:0 1:20",
		"sum, sum, Complete: 5:11 4:2 3:14 2:8 1:36", "m1, errors, Complete: 5:1 4:2 3:4 2:8 1:16")
	expect(ask(nil, mathQuery("e1", "SLICE(SORT(METRICS(), MAX, DESC), 0, 1)", ""), mathQuery("none", "METRICS('x')", ""), mathQuery("empty", "IF(m1 > 99, m1)", "")),
		"e1, calls, Complete: 5:10 3:10 2:0 1:20", "empty, empty, Complete:")
	expect(ask(func(in *cloudwatch.GetMetricDataInput) {
		in.MetricDataQueries[0].Period = aws.Int32(120)
	}, mathQuery("flat", "TIME_SERIES(7)", ""), mathQuery("rate", "m1/PERIOD(m1)*60", "")), "flat, flat, Complete: 5:7 3:7 1:7", "rate, rate, Complete: 5:1 4:2 3:4 2:8 1:16")
	dropped := ask(nil, mathQuery("e1", "m1/0", ""), mathQuery("e2", "LOG(m2)", ""), mathQuery("e3", "e1+m2", ""))
	expect(dropped, "e1, e1, Complete ArithmeticError:", "e2, e2, Complete ArithmeticError: 5:2.303 3:2.303 1:2.996", "e3, e3, Complete: 5:10 3:10 2:0 1:20")
	equal(t, "message", "One or more data-points have been dropped due to non-numeric values (NaN, -Infinite, +Infinite)", *dropped.MetricDataResults[0].Messages[0].Value)

	// By pages of two values: within a series, and between those of an array.
	var pages []string
	in := &cloudwatch.GetMetricDataInput{
		StartTime: aws.Time(now.Add(-5 * time.Minute)), EndTime: &now, MaxDatapoints: aws.Int32(2),
		MetricDataQueries: append([]types.MetricDataQuery{mathQuery("e1", "METRICS()", ""), mathQuery("e2", "IF(m2 == 20, m1)", "")}, queries...),
	}
	for {
		out := must(c.GetMetricData(t.Context(), in))(t)
		for i := range out.MetricDataResults {
			pages = append(pages, mathResult(now, &out.MetricDataResults[i]))
		}
		if in.NextToken = out.NextToken; in.NextToken == nil {
			break
		}
	}
	equal(t, "pages", "e1, errors, PartialData: 1:16 2:8\ne1, errors, PartialData: 3:4 4:2\ne1, errors, Complete: 5:1\ne1, calls, PartialData: 1:20\n"+
		"e1, calls, PartialData: 2:0 3:10\ne1, calls, Complete: 5:10\ne2, e2, Complete: 1:16", strings.Join(pages, "\n"))
}

// What expressions are refused with.
func TestMetricMathErrors(t *testing.T) {
	endpoint := start(t)
	c := metricsClient(endpoint)
	now := serverTime(t, endpoint).Truncate(time.Minute)
	queries := errorsAndCalls(t, c, now)
	ask := func(from time.Duration, expressions ...types.MetricDataQuery) error {
		_, err := c.GetMetricData(t.Context(), &cloudwatch.GetMetricDataInput{
			StartTime: aws.Time(now.Add(-from)), EndTime: &now, MetricDataQueries: slices.Concat(expressions, queries),
		})
		return err
	}
	for text, want := range map[string]string{
		"m1 +":                         "Error in expression 'e1': Invalid syntax",
		"MEDIAN(m1)":                   "Error in expression 'e1': Function 'MEDIAN' not found",
		"ANOMALY_DETECTION_BAND(m1)":   "Error in expression 'e1': The function ANOMALY_DETECTION_BAND is not supported.",
		"SELECT AVG(x) FROM y":         "Error in expression 'e1': Metrics Insights queries are not supported.",
		"m1 + m3":                      "Error in expression 'e1': There is no metric and no expression with the Id 'm3'.",
		"m1 + e1":                      "Error in expression 'e1': It refers to itself.",
		"ABS(1)":                       "Error in expression 'e1': The function ABS does not take these arguments.",
		"METRICS() / METRICS()":        "Error in expression 'e1': The operator / does not take these operands.",
		"[1]":                          "Error in expression 'e1': The elements of an array must be time series.",
		"SUM(m1)":                      "Error in expression 'e1': The result is a single number. It must be a time series, or an array of time series.",
		strings.Repeat("-", 101) + "1": "Error in expression 'e1': It is nested more than 100 deep.",
		strings.Repeat("x", 2049): "1 validation error detected: Value '" + strings.Repeat("x", 128) +
			"' at 'metricDataQueries.1.member.expression' failed to satisfy constraint: Member must have length less than or equal to 2048",
		"": "1 validation error detected: Value '' at 'metricDataQueries.1.member.expression' failed to satisfy constraint: Member must have length greater than or equal to 1",
	} {
		refused(t, ask(time.Hour, mathQuery("e1", text, "")), "ValidationError", 400, want)
	}
	const tooMany = "Error in expression 'e1': It needs too many datapoints. You may reduce them by increasing Period, or decreasing the time range."
	refused(t, ask(455*24*time.Hour, mathQuery("e1", "FILL(m1, 0)", "")), "ValidationError", 400, tooMany)
	wide := []types.MetricDataQuery{mathQuery("e1", "["+strings.TrimSuffix(strings.Repeat("FILL(e2,0),", 100), ",")+"]", ""), mathQuery("e2", "["+strings.TrimSuffix(strings.Repeat("m1,", 500), ",")+"]", "")}
	refused(t, ask(time.Hour, wide...), "ValidationError", 400, tooMany)
	long := mathQuery("e1", strings.Repeat("x", 2048), "")
	refused(t, ask(time.Hour, long), "ValidationError", 400, "Error in expression 'e1': There is no metric and no expression with the Id '"+strings.Repeat("x", 2048)+"'.")
	wrong := mathQuery("e1", "m1", "")
	wrong.Period = aws.Int32(90)
	refused(t, ask(time.Hour, wrong), "ValidationError", 400, "The parameter MetricDataQueries.member.1.Period must be 1, 5, 10, 20, 30, or a multiple of 60.")
	many := repeat(498, func(n int) types.MetricDataQuery {
		return mathQuery(fmt.Sprint("e", n), strings.Repeat("m1+", 60)+"m1", "")
	})
	refused(t, ask(time.Hour, many...), "ValidationError", 400, "Error in expression 'e413': The expressions of a request can have 50000 parts.")
}
