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

// Data are taken from two weeks ago to two hours ahead.
func TestTimestampsOfData(t *testing.T) {
	endpoint := start(t)
	c := metricsClient(endpoint)
	now := serverTime(t, endpoint)
	for ago, want := range map[time.Duration]string{
		14*24*time.Hour - time.Second: "", 14*24*time.Hour + time.Second: "The parameter MetricData.member.1.Timestamp must specify a time within the past two weeks.",
		-2*time.Hour + time.Second: "", -2*time.Hour - time.Second: "The parameter MetricData.member.1.Timestamp must specify a time no more than two hours in the future.",
	} {
		_, err := c.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: aws.String("n"), MetricData: []types.MetricDatum{
			{MetricName: aws.String("m"), Value: aws.Float64(1), Timestamp: aws.Time(now.Add(-ago))},
		}})
		if want != "" {
			refused(t, err, "InvalidParameterValue", 400, want)
			continue
		}
		if err != nil {
			t.Errorf("%v ago: %v", ago, err)
		}
		at := now.Add(-ago).Truncate(time.Minute)
		equal(t, fmt.Sprint(ago, " ago"), 1, len(must(c.GetMetricStatistics(t.Context(), &cloudwatch.GetMetricStatisticsInput{
			Namespace: aws.String("n"), MetricName: aws.String("m"), StartTime: &at, EndTime: aws.Time(at.Add(time.Minute)), Period: aws.Int32(60),
			Statistics: []types.Statistic{types.StatisticSum},
		}))(t).Datapoints))
	}
}

// Values are zero, or from 2^-360 to 2^360 of either sign.
func TestValuesOfData(t *testing.T) {
	endpoint := start(t)
	c := metricsClient(endpoint)
	put := func(value float64) error {
		_, err := c.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: aws.String("n"), MetricData: []types.MetricDatum{
			{MetricName: aws.String("m"), Value: &value},
			{MetricName: aws.String("m"), Values: []float64{value}, Counts: []float64{0.5}},
			{MetricName: aws.String("m"), StatisticValues: &types.StatisticSet{SampleCount: aws.Float64(1), Sum: &value, Minimum: &value, Maximum: &value}},
		}})
		return err
	}
	least, most := math.Ldexp(1, -360), math.Ldexp(1, 360)
	for sign, shown := range map[float64]string{1: "", -1: "-"} {
		for _, value := range []float64{0, least, 1, most} {
			if err := put(sign * value); err != nil {
				t.Errorf("%g: %v", sign*value, err)
			}
		}
		for value, digits := range map[float64]string{
			math.Nextafter(least, 0): "0", math.Nextafter(most, math.MaxFloat64): "2,348,542,582,773,834" + strings.Repeat(",000", 31),
		} {
			refused(t, put(sign*value), "InvalidParameterValue", 400, "The value "+shown+digits+" for parameter MetricData.member.1.Value is invalid.")
		}
	}
}

// Data about entities are data.
func TestEntityMetricData(t *testing.T) {
	endpoint := start(t)
	c := metricsClient(endpoint)
	now := serverTime(t, endpoint)
	in := &cloudwatch.PutMetricDataInput{
		Namespace: aws.String("n"), StrictEntityValidation: aws.Bool(true),
		EntityMetricData: []types.EntityMetricData{{
			Entity:     &types.Entity{KeyAttributes: map[string]string{"Type": "Service", "Name": "shop"}, Attributes: map[string]string{"a": "b"}},
			MetricData: []types.MetricDatum{{MetricName: aws.String("m"), Value: aws.Float64(5)}},
		}, {MetricData: []types.MetricDatum{{MetricName: aws.String("m"), Value: aws.Float64(2)}}}},
	}
	must(c.PutMetricData(t.Context(), in))(t)
	in.EntityMetricData[1].MetricData[0].Value = aws.Float64(math.NaN())
	_, err := c.PutMetricData(t.Context(), in)
	refused(t, err, "InvalidParameterValue", 400, "The value NaN for parameter EntityMetricData.member.2.MetricData.member.1.Value is invalid.")
	in.MetricData = slices.Repeat([]types.MetricDatum{{MetricName: aws.String("m"), Value: aws.Float64(1)}}, 999)
	_, err = c.PutMetricData(t.Context(), in)
	refused(t, err, "InvalidParameterValue", 400, "The collection MetricData must not have a size greater than 1000.")
	points := must(c.GetMetricStatistics(t.Context(), &cloudwatch.GetMetricStatisticsInput{
		Namespace: aws.String("n"), MetricName: aws.String("m"), StartTime: aws.Time(now.Add(-time.Minute)), EndTime: aws.Time(now.Add(time.Minute)), Period: aws.Int32(120),
		Statistics: []types.Statistic{types.StatisticSum},
	}))(t).Datapoints
	if len(points) != 1 || *points[0].Sum != 7 {
		t.Errorf("%+v", points)
	}
}

// A range ends behind its beginning, and may reach beyond all data.
func TestRanges(t *testing.T) {
	endpoint := start(t)
	c := metricsClient(endpoint)
	now := serverTime(t, endpoint)
	putValue(t, endpoint, 1)
	for _, tc := range []struct {
		to   time.Time
		want string // of GetMetricData, if it refuses
	}{
		{now, "The parameter StartTime must not equal parameter EndTime."},
		{now.Add(-time.Minute), "The parameter EndTime must be greater than StartTime."},
		{now.Truncate(time.Second).Add(time.Second - time.Millisecond), ""}, // the same second
	} {
		_, err := c.GetMetricData(t.Context(), &cloudwatch.GetMetricDataInput{StartTime: &now, EndTime: &tc.to, MetricDataQueries: []types.MetricDataQuery{
			{Id: aws.String("q"), MetricStat: &types.MetricStat{Metric: &types.Metric{Namespace: aws.String("n"), MetricName: aws.String("m")}, Period: aws.Int32(60), Stat: aws.String("Sum")}},
		}})
		if tc.want != "" {
			refused(t, err, "ValidationError", 400, tc.want)
		}
		_, err = c.GetMetricStatistics(t.Context(), &cloudwatch.GetMetricStatisticsInput{
			StartTime: &now, EndTime: &tc.to, Namespace: aws.String("n"), MetricName: aws.String("m"), Period: aws.Int32(60), Statistics: []types.Statistic{types.StatisticSum},
		})
		refused(t, err, "InvalidParameterValue", 400, "The parameter StartTime must be less than the parameter EndTime.")
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
