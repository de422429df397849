package sdk_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
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
	if last, want := history[len(history)-1], "Action: Failed to execute action "+functionARN("on-call")+`. Received error: "`; !strings.HasPrefix(last, want) {
		t.Errorf("without a permission: %s, want %s", last, want)
	}
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

// While a function cannot be notified, others are; it receives all states as soon as
// it can be. Asynchronous invocations have no order among themselves.
func TestAlarmActionsWaitForTheirOwnTarget(t *testing.T) {
	endpoint := start(t)
	functions, topics, f := functionsClient(endpoint), topicsClient(endpoint), startFar(t)
	createFar(t, endpoint, functions, "on-call", f, "")
	must(functions.AddPermission(t.Context(), &lambda.AddPermissionInput{
		FunctionName: aws.String("on-call"), StatementId: aws.String("s"), Action: aws.String("lambda:InvokeFunction"),
		Principal: aws.String("lambda.alarms.cloudwatch.amazonaws.com"),
	}))(t)
	ops := createTopic(t, topics, "ops")
	nextMinute(t, endpoint)
	for _, name := range []string{"a", "b"} {
		putAlarm(t, endpoint, name, func(in *cloudwatch.PutMetricAlarmInput) {
			in.TreatMissingData = aws.String("ignore")
			in.AlarmActions, in.OKActions = []string{functionARN("on-call"), ops}, []string{functionARN("on-call"), ops}
		})
	}
	set := func(name string, state types.StateValue) {
		t.Helper()
		must(metricsClient(endpoint).SetAlarmState(t.Context(), &cloudwatch.SetAlarmStateInput{AlarmName: &name, StateValue: state, StateReason: aws.String("testing")}))(t)
	}
	actions := func(name string) (all []string) {
		t.Helper()
		for _, line := range alarmHistory(t, endpoint, name) {
			if action, ok := strings.CutPrefix(line, "Action: Successfully executed action "); ok {
				all = append(all, action)
			}
		}
		return all
	}
	if r := post(t, endpoint+"/_godwit/faults", `{"arn":"`+functionARN("on-call")+`","fault":"unavailable"}`); r.Status != 200 {
		t.Fatal(r.Body)
	}
	set("a", types.StateValueAlarm)
	set("a", types.StateValueOk)
	set("b", types.StateValueAlarm)
	equal(t, "the actions of the one", []string{ops, ops}, actions("a"))
	equal(t, "the actions of the other", []string{ops}, actions("b"))
	equal(t, "the runs", 0, len(f.ran()))
	post(t, endpoint+"/_godwit/faults", `{"arn":"`+functionARN("on-call")+`","fault":"none"}`)
	advance(t, endpoint, "1m")
	var told []string
	for _, run := range f.ran() {
		data := decode(t, run)["alarmData"].(map[string]any)
		told = append(told, data["alarmName"].(string)+" "+data["state"].(map[string]any)["value"].(string))
	}
	slices.Sort(told)
	equal(t, "what the function was told of", []string{"a ALARM", "a OK", "b ALARM"}, told)
}

// What happens to a function, invoked either way, is in AWS/Lambda's metrics, by
// AWS's names, units and dimensions.
func TestMetricsOfFunctions(t *testing.T) {
	endpoint := start(t)
	functions, f := functionsClient(endpoint), startFar(t)
	createFar(t, endpoint, functions, "f", f, queueARN("gone"))
	nextMinute(t, endpoint)
	invoked := func(name string) {
		t.Helper()
		must(functions.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: &name}))(t)
	}
	invoked("f")
	f.fail(1)
	invokeAsync(t, functions, "f", `{}`)
	advance(t, endpoint, "3m") // the retry, a minute later, succeeds
	expect := func(want map[string]float64, dimension ...string) {
		t.Helper()
		for name, value := range want {
			sum := 0.0
			for _, p := range must(metricsClient(endpoint).GetMetricStatistics(t.Context(), &cloudwatch.GetMetricStatisticsInput{
				Namespace: aws.String("AWS/Lambda"), MetricName: &name, Dimensions: dimensions(dimension...), Period: aws.Int32(86400),
				StartTime: aws.Time(serverTime(t, endpoint).Add(-20 * time.Hour)), EndTime: aws.Time(serverTime(t, endpoint).Add(time.Hour)),
				Statistics: []types.Statistic{types.StatisticSum},
			}))(t).Datapoints {
				sum += *p.Sum
			}
			if sum != value {
				t.Errorf("%s of %v: %v, want %v", name, dimension, sum, value)
			}
		}
	}
	expect(map[string]float64{
		"Invocations": 3, "Errors": 1, "Throttles": 0, "AsyncEventsReceived": 1, "AsyncEventAge": 60_000, "AsyncEventsDropped": 0, "ConcurrentExecutions": 3,
	}, "FunctionName", "f")

	// Of these two each invocation has a value, so that their averages are rates.
	for _, name := range []string{"Errors", "Throttles"} {
		count := 0.0
		for _, p := range must(metricsClient(endpoint).GetMetricStatistics(t.Context(), &cloudwatch.GetMetricStatisticsInput{
			Namespace: aws.String("AWS/Lambda"), MetricName: &name, Dimensions: dimensions("FunctionName", "f"), Period: aws.Int32(60),
			StartTime: aws.Time(serverTime(t, endpoint).Add(-time.Hour)), EndTime: aws.Time(serverTime(t, endpoint).Add(time.Hour)),
			Statistics: []types.Statistic{types.StatisticSampleCount},
		}))(t).Datapoints {
			count += *p.SampleCount
		}
		if count != 3 {
			t.Errorf("%v values of %s", count, name)
		}
	}

	// An event that is given up: neither its dead letter nor its record arrives.
	must(functions.PutFunctionEventInvokeConfig(t.Context(), &lambda.PutFunctionEventInvokeConfigInput{
		FunctionName: aws.String("f"), DestinationConfig: &lambdatypes.DestinationConfig{OnFailure: &lambdatypes.OnFailure{Destination: aws.String(queueARN("gone"))}},
	}))(t)
	f.fail(3)
	invokeAsync(t, functions, "f", `{}`)
	advance(t, endpoint, "10m")
	must(functions.PutFunctionConcurrency(t.Context(), &lambda.PutFunctionConcurrencyInput{FunctionName: aws.String("f"), ReservedConcurrentExecutions: aws.Int32(0)}))(t)
	if _, err := functions.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("f")}); err == nil {
		t.Error("a function without concurrency runs")
	}
	advance(t, endpoint, "1m")
	all := map[string]float64{
		"Invocations": 6, "Errors": 4, "Throttles": 1, "AsyncEventsReceived": 2, "AsyncEventAge": 60_000 + 60_000 + 180_000, "AsyncEventsDropped": 1, "ConcurrentExecutions": 6,
		"DeadLetterErrors": 1, "DestinationDeliveryFailures": 1,
	}
	expect(all, "FunctionName", "f")
	expect(all, "FunctionName", "f", "Resource", "f")
	expect(all)
	equal(t, "the units", map[string]string{
		"Invocations": "Count", "Errors": "Count", "Throttles": "Count", "Duration": "Milliseconds", "ConcurrentExecutions": "Count", "AsyncEventsReceived": "Count",
		"AsyncEventAge": "Milliseconds", "AsyncEventsDropped": "Count", "DeadLetterErrors": "Count", "DestinationDeliveryFailures": "Count",
	}, metricUnits(t, endpoint, "AWS/Lambda", "FunctionName", "f"))

	// A dead letter that arrives is sent, as its queue counts it.
	createQueue(t, client(endpoint), "dead")
	createFar(t, endpoint, functions, "g", f, queueARN("dead"))
	f.fail(3)
	invokeAsync(t, functions, "g", `{}`)
	advance(t, endpoint, "10m")
	equal(t, "sent to the dead-letter queue", 1.0, total(t, endpoint, "AWS/SQS", "NumberOfMessagesSent", "QueueName", "dead"))

	// An alias, and the version that it leads to.
	must(functions.DeleteFunctionConcurrency(t.Context(), &lambda.DeleteFunctionConcurrencyInput{FunctionName: aws.String("f")}))(t)
	must(functions.PublishVersion(t.Context(), &lambda.PublishVersionInput{FunctionName: aws.String("f")}))(t)
	advance(t, endpoint, "0s")
	must(functions.CreateAlias(t.Context(), &lambda.CreateAliasInput{FunctionName: aws.String("f"), Name: aws.String("live"), FunctionVersion: aws.String("1")}))(t)
	invoked("f:live")
	invoked("f:1")
	advance(t, endpoint, "1m")
	expect(map[string]float64{"Invocations": 8}, "FunctionName", "f")
	expect(map[string]float64{"Invocations": 6}, "FunctionName", "f", "Resource", "f")
	expect(map[string]float64{"Invocations": 1}, "FunctionName", "f", "Resource", "f:1")
	expect(map[string]float64{"Invocations": 1}, "FunctionName", "f", "Resource", "f:live")
	expect(map[string]float64{"Invocations": 1}, "FunctionName", "f", "Resource", "f:live", "ExecutedVersion", "1")
}
