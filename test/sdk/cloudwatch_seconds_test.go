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

// putFine puts a value of n/m, to be kept by the second, some time ago.
func putFine(t *testing.T, endpoint string, ago time.Duration, value float64) {
	t.Helper()
	must(metricsClient(endpoint).PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: aws.String("n"), MetricData: []types.MetricDatum{{
		MetricName: aws.String("m"), Value: &value, StorageResolution: aws.Int32(1), Timestamp: aws.Time(serverTime(t, endpoint).Add(-ago)),
	}}}))(t)
}

// What is put with a StorageResolution of 1 is there by the second for three hours,
// and by the minute behind that.
func TestMetricsBySeconds(t *testing.T) {
	endpoint := start(t)
	base := nextMinute(t, endpoint)
	advance(t, endpoint, "47s500ms")
	for _, ago := range []time.Duration{46 * time.Second, 45 * time.Second, 24 * time.Second, 13 * time.Second, 2 * time.Second, 2 * time.Second} {
		putFine(t, endpoint, ago, 1)
	}
	must(metricsClient(endpoint).PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: aws.String("n"), MetricData: []types.MetricDatum{
		{MetricName: aws.String("coarse"), Value: aws.Float64(1), StorageResolution: aws.Int32(60)}, {MetricName: aws.String("coarse"), Value: aws.Float64(1)},
	}}))(t)
	// read shows the values of a metric by their seconds after base.
	read := func(name string, period int32, from, to time.Time) (data, statistics string) {
		t.Helper()
		c := metricsClient(endpoint)
		var fields []string
		result := must(c.GetMetricData(t.Context(), &cloudwatch.GetMetricDataInput{
			StartTime: &from, EndTime: &to, ScanBy: types.ScanByTimestampAscending,
			MetricDataQueries: []types.MetricDataQuery{{Id: aws.String("q"), MetricStat: &types.MetricStat{
				Metric: &types.Metric{Namespace: aws.String("n"), MetricName: &name}, Period: &period, Stat: aws.String("Sum"),
			}}},
		}))(t).MetricDataResults[0]
		for i, value := range result.Values {
			fields = append(fields, fmt.Sprintf("%g:%g", result.Timestamps[i].Sub(base).Seconds(), value))
		}
		data, fields = strings.Join(fields, " "), nil
		for _, point := range must(c.GetMetricStatistics(t.Context(), &cloudwatch.GetMetricStatisticsInput{
			Namespace: aws.String("n"), MetricName: &name, StartTime: &from, EndTime: &to, Period: &period, Statistics: []types.Statistic{types.StatisticSum},
		}))(t).Datapoints {
			fields = append(fields, fmt.Sprintf("%g:%g", point.Timestamp.Sub(base).Seconds(), *point.Sum))
		}
		return data, strings.Join(fields, " ")
	}
	both := func(what, name string, period int32, from, to time.Time, want string) {
		t.Helper()
		data, statistics := read(name, period, from, to)
		equal(t, what+", GetMetricData", want, data)
		equal(t, what+", GetMetricStatistics", want, statistics)
	}
	all := func(when string) {
		t.Helper()
		to := base.Add(2 * time.Minute)
		both("by 1 s "+when, "m", 1, base, to, "1:1 2:1 23:1 34:1 45:2")
		both("by 5 s "+when, "m", 5, base, to, "0:2 20:1 30:1 45:2")
		both("by 10 s "+when, "m", 10, base, to, "0:2 20:1 30:1 40:2")
		both("by 20 s "+when, "m", 20, base, to, "0:2 20:2 40:2")
		both("by 30 s "+when, "m", 30, base, to, "0:3 30:3")
		both("by the minute "+when, "m", 60, base, to, "0:6")
		both("what was put by the minute, by 10 s "+when, "coarse", 10, base, to, "0:2")
		both("from a moment within a period "+when, "m", 10, base.Add(27*time.Second), base.Add(44*time.Second), "20:1 30:1")
	}
	all("in memory")
	advance(t, endpoint, "20s")
	all("in the store")
	advance(t, endpoint, "2h58m")
	all("almost three hours later")
	advance(t, endpoint, "2m")
	both("three hours later, by 10 s", "m", 10, base, base.Add(2*time.Minute), "")
	both("three hours later, by the minute", "m", 60, base, base.Add(2*time.Minute), "0:6")
}

// Alarms on short periods are evaluated every ten seconds.
func TestShortAlarms(t *testing.T) {
	endpoint := start(t)
	nextMinute(t, endpoint)
	for _, period := range []int32{10, 20, 30} {
		putAlarm(t, endpoint, fmt.Sprint(period), func(in *cloudwatch.PutMetricAlarmInput) {
			in.Period, in.EvaluationPeriods, in.TreatMissingData = &period, aws.Int32(2), aws.String("notBreaching")
		})
		equal(t, "the period", period, *describeAlarm(t, endpoint, fmt.Sprint(period)).Period)
	}
	var got []string
	for n := range 13 {
		if n < 6 {
			putFine(t, endpoint, 0, 11)
		}
		advance(t, endpoint, "10s")
		states := fmt.Sprint(10*(n+1), "s")
		for _, name := range []string{"10", "20", "30"} {
			states += " " + string(describeAlarm(t, endpoint, name).StateValue)
		}
		got = append(got, states)
	}
	equal(t, "the states", []string{
		"10s OK OK OK",
		"20s ALARM OK OK",
		"30s ALARM ALARM OK",
		"40s ALARM ALARM ALARM",
		"50s ALARM ALARM ALARM",
		"60s ALARM ALARM ALARM",
		"70s ALARM ALARM ALARM",
		"80s ALARM ALARM ALARM",
		"90s OK ALARM ALARM",
		"100s OK ALARM ALARM",
		"110s OK ALARM ALARM",
		"120s OK OK ALARM",
		"130s OK OK ALARM",
	}, got)
	equal(t, "the history", []string{
		`ConfigurationUpdate: Alarm "10" created`, "StateUpdate: Alarm updated from INSUFFICIENT_DATA to OK",
		"StateUpdate: Alarm updated from OK to ALARM", "StateUpdate: Alarm updated from ALARM to OK",
	}, alarmHistory(t, endpoint, "10"))
	equal(t, "how long it has been OK", 40*time.Second, serverTime(t, endpoint).Sub(*describeAlarm(t, endpoint, "10").StateTransitionedTimestamp))
}
