package sdk_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
)

// Alarms on each statistic hold its value against the threshold.
func TestAlarmStatistics(t *testing.T) {
	endpoint := start(t)
	nextMinute(t, endpoint)
	wanted := map[string]float64{
		"SampleCount": 20, "Sum": 210, "Average": 10.5, "Minimum": 1, "Maximum": 20,
		"p50": 10, "p95": 19, "p100": 20, "tm90": 9.5, "IQM": 10.5, "TC(5:10)": 5, "TS(5:10)": 40, "PR(:5)": 25, "WM(10%:90%)": 10.5,
	}
	for name, value := range wanted {
		for _, comparison := range []types.ComparisonOperator{types.ComparisonOperatorGreaterThanThreshold, types.ComparisonOperatorGreaterThanOrEqualToThreshold} {
			putAlarm(t, endpoint, fmt.Sprint(name, " ", comparison), func(in *cloudwatch.PutMetricAlarmInput) {
				in.ComparisonOperator, in.Threshold = comparison, &value
				if in.Statistic = types.Statistic(name); !slices.Contains(in.Statistic.Values(), in.Statistic) {
					in.Statistic, in.ExtendedStatistic = "", &name
				}
			})
		}
	}
	for n := range 20 {
		putValue(t, endpoint, float64(n+1))
	}
	nextMinute(t, endpoint)
	for name := range wanted {
		equal(t, name+" above its value", types.StateValueOk, describeAlarm(t, endpoint, name+" GreaterThanThreshold").StateValue)
		equal(t, name+" at its value", types.StateValueAlarm, describeAlarm(t, endpoint, name+" GreaterThanOrEqualToThreshold").StateValue)
	}
}

// The periods of an alarm end at each minute: a window that slides, M out of N of
// which must breach.
func TestAlarmWindows(t *testing.T) {
	endpoint := start(t)
	nextMinute(t, endpoint)
	putAlarm(t, endpoint, "five", func(in *cloudwatch.PutMetricAlarmInput) {
		in.Period, in.TreatMissingData = aws.Int32(300), aws.String("notBreaching")
	})
	putAlarm(t, endpoint, "2 of 3", func(in *cloudwatch.PutMetricAlarmInput) {
		in.EvaluationPeriods, in.DatapointsToAlarm, in.TreatMissingData = aws.Int32(3), aws.Int32(2), aws.String("notBreaching")
	})
	var five, some string
	for _, value := range []float64{6, 0, 0, 6, 11, 0, 11, 0, 0, 0, 0, 0} {
		putValue(t, endpoint, value)
		nextMinute(t, endpoint)
		five += string(describeAlarm(t, endpoint, "five").StateValue[0])
		some += string(describeAlarm(t, endpoint, "2 of 3").StateValue[0])
	}
	equal(t, "sums of five minutes, by the minute", "OOOAAAAAAAAO", five)
	equal(t, "two of three minutes", "OOOOOOAOOOOO", some)
}
