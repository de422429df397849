package sdk_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

// An alarm invokes a function whose policy lets it, with what the guide documents.
func TestAlarmInvokesFunction(t *testing.T) {
	endpoint := start(t)
	functions, f := functionsClient(endpoint), startFar(t)
	createFar(t, endpoint, functions, "on-call", f, "")
	nextMinute(t, endpoint)
	putAlarm(t, endpoint, "a", func(in *cloudwatch.PutMetricAlarmInput) {
		in.AlarmActions, in.TreatMissingData = []string{functionARN("on-call")}, aws.String("ignore")
	})
	set := func(state types.StateValue) {
		t.Helper()
		must(metricsClient(endpoint).SetAlarmState(t.Context(), &cloudwatch.SetAlarmStateInput{
			AlarmName: aws.String("a"), StateValue: state, StateReason: aws.String("testing"),
		}))(t)
		advance(t, endpoint, "0s")
	}
	set(types.StateValueAlarm)
	history := alarmHistory(t, endpoint, "a")
	equal(t, "without a permission", "Action: Failed to execute action "+functionARN("on-call"), history[len(history)-1])
	equal(t, "its runs", 0, len(f.ran()))

	must(functions.AddPermission(t.Context(), &lambda.AddPermissionInput{
		FunctionName: aws.String("on-call"), StatementId: aws.String("s"), Action: aws.String("lambda:InvokeFunction"),
		Principal: aws.String("lambda.alarms.cloudwatch.amazonaws.com"), SourceArn: aws.String(alarmARN("a")),
	}))(t)
	set(types.StateValueOk)
	set(types.StateValueAlarm)
	runs := f.ran()
	if len(runs) != 1 {
		t.Fatalf("%d runs", len(runs))
	}
	event := decode(t, runs[0])
	data := event["alarmData"].(map[string]any)
	equal(t, "the source", "aws.cloudwatch", event["source"])
	equal(t, "the alarm", alarmARN("a"), event["alarmArn"])
	equal(t, "the state", "ALARM", data["state"].(map[string]any)["value"])
	equal(t, "the state before", "OK", data["previousState"].(map[string]any)["value"])
}

// What happens to a function, invoked either way, is in AWS/Lambda's metrics.
func TestMetricsOfFunctions(t *testing.T) {
	endpoint := start(t)
	functions, f := functionsClient(endpoint), startFar(t)
	createFar(t, endpoint, functions, "f", f, "")
	at := nextMinute(t, endpoint)
	must(functions.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("f")}))(t)
	f.fail(1)
	invokeAsync(t, functions, "f", `{}`)
	advance(t, endpoint, "3m") // the retry, a minute later, succeeds
	for name, want := range map[string]float64{
		"Invocations": 3, "Errors": 1, "AsyncEventsReceived": 1,
	} {
		points := must(metricsClient(endpoint).GetMetricStatistics(t.Context(), &cloudwatch.GetMetricStatisticsInput{
			Namespace: aws.String("AWS/Lambda"), MetricName: &name, Dimensions: dimensions("FunctionName", "f"),
			StartTime: &at, EndTime: aws.Time(at.Add(5 * time.Minute)), Period: aws.Int32(300), Statistics: []types.Statistic{types.StatisticSum},
		}))(t).Datapoints
		sum := 0.0
		for _, p := range points {
			sum += *p.Sum
		}
		if sum != want {
			t.Errorf("%s: %v, want %v", name, sum, want)
		}
	}
}
