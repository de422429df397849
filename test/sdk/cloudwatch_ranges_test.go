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

// Periods begin at the StartTime, rounded down as far as its age asks for; what is
// kept more coarsely for its age is there in periods of that length only.
func TestPeriodsByAge(t *testing.T) {
	endpoint := start(t)
	c := metricsClient(endpoint)
	base := serverTime(t, endpoint).Truncate(time.Hour)
	in := &cloudwatch.PutMetricDataInput{Namespace: aws.String("n")}
	for n := range 60 {
		in.MetricData = append(in.MetricData, types.MetricDatum{
			MetricName: aws.String("m"), Value: aws.Float64(1), Timestamp: aws.Time(base.Add(-time.Duration(n+1) * time.Minute)),
		})
	}
	must(c.PutMetricData(t.Context(), in))(t)
	// expect asks for sums from and to some time before base, which are shown by the
	// minutes before base.
	expect := func(when string, period int32, from, to time.Duration, want string) {
		t.Helper()
		show := func(at time.Time, sum float64) string { return fmt.Sprintf("%g:%g", base.Sub(at).Minutes(), sum) }
		var data, statistics []string
		out := must(c.GetMetricData(t.Context(), &cloudwatch.GetMetricDataInput{
			StartTime: aws.Time(base.Add(-from)), EndTime: aws.Time(base.Add(-to)), ScanBy: types.ScanByTimestampAscending,
			MetricDataQueries: []types.MetricDataQuery{{Id: aws.String("q"), MetricStat: &types.MetricStat{
				Metric: &types.Metric{Namespace: aws.String("n"), MetricName: aws.String("m")}, Period: &period, Stat: aws.String("Sum"),
			}}},
		}))(t).MetricDataResults[0]
		for i, value := range out.Values {
			data = append(data, show(out.Timestamps[i], value))
		}
		for _, point := range must(c.GetMetricStatistics(t.Context(), &cloudwatch.GetMetricStatisticsInput{
			Namespace: aws.String("n"), MetricName: aws.String("m"), StartTime: aws.Time(base.Add(-from)), EndTime: aws.Time(base.Add(-to)),
			Period: &period, Statistics: []types.Statistic{types.StatisticSum},
		}))(t).Datapoints {
			statistics = append(statistics, show(*point.Timestamp, *point.Sum))
		}
		equal(t, fmt.Sprintf("%s, by %d s, GetMetricData", when, period), want, strings.Join(data, " "))
		equal(t, fmt.Sprintf("%s, by %d s, GetMetricStatistics", when, period), want, strings.Join(statistics, " "))
	}
	const half = 30 * time.Second
	expect("now", 300, 53*time.Minute+half, 38*time.Minute+half, "54:5 49:5 44:5 39:5")
	expect("now", 300, 53*time.Minute+half, 39*time.Minute, "54:5 49:5 44:5")
	expect("now", 3600, 7*time.Minute, 0, "7:7")
	expect("now", 86400, 24*time.Hour+30*time.Minute, 0, "1470:30 30:30")
	expect("now", 60, 3*time.Minute, time.Minute, "3:1 2:1")
	advance(t, endpoint, "384h")
	expect("after 16 days", 60, 53*time.Minute, 0, "")
	expect("after 16 days", 120, 53*time.Minute, 0, "")
	expect("after 16 days", 300, 53*time.Minute+half, 38*time.Minute+half, "55:5 50:5 45:5 40:5")
	expect("after 16 days", 600, 52*time.Minute, 45*time.Minute, "55:10")
	advance(t, endpoint, "1152h")
	expect("after 64 days", 300, 53*time.Minute, 0, "")
	expect("after 64 days", 7200, 53*time.Minute, 0, "60:60")
	expect("after 64 days", 3600, 53*time.Minute, 52*time.Minute, "60:60")
	advance(t, endpoint, "9432h")
	expect("after 457 days", 86400, 24*time.Hour, 0, "")
}

// A range ends behind its beginning, and may reach beyond all data.
func TestRanges(t *testing.T) {
	endpoint := start(t)
	c := metricsClient(endpoint)
	now := serverTime(t, endpoint)
	putValue(t, endpoint, 1)
	for _, tc := range []struct {
		from, to time.Time
		want     string
	}{
		{now, now, "The parameter StartTime must not equal parameter EndTime."},
		{now, now.Add(-time.Minute), "The parameter StartTime must be less than the parameter EndTime."},
	} {
		_, err := c.GetMetricData(t.Context(), &cloudwatch.GetMetricDataInput{StartTime: &tc.from, EndTime: &tc.to, MetricDataQueries: []types.MetricDataQuery{
			{Id: aws.String("q"), MetricStat: &types.MetricStat{Metric: &types.Metric{Namespace: aws.String("n"), MetricName: aws.String("m")}, Period: aws.Int32(60), Stat: aws.String("Sum")}},
		}})
		refused(t, err, "ValidationError", 400, tc.want)
		_, err = c.GetMetricStatistics(t.Context(), &cloudwatch.GetMetricStatisticsInput{
			StartTime: &tc.from, EndTime: &tc.to, Namespace: aws.String("n"), MetricName: aws.String("m"), Period: aws.Int32(60), Statistics: []types.Statistic{types.StatisticSum},
		})
		refused(t, err, "InvalidParameterValue", 400, tc.want)
	}
	for _, period := range []string{"1", "60", "3600"} {
		r := callMetricsQuery(t, endpoint, "GetMetricData", "StartTime", "0001-01-01T00:00:00Z", "EndTime", "9999-12-31T23:59:59Z",
			"MetricDataQueries.member.1.Id", "q", "MetricDataQueries.member.1.MetricStat.Metric.Namespace", "n", "MetricDataQueries.member.1.MetricStat.Metric.MetricName", "m",
			"MetricDataQueries.member.1.MetricStat.Period", period, "MetricDataQueries.member.1.MetricStat.Stat", "Sum")
		if r.Status != 200 || !strings.Contains(r.Body, "<Values><member>1.0</member></Values>") {
			t.Errorf("all time by %s s: %d %s", period, r.Status, r.Body)
		}
	}
}
