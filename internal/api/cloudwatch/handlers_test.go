package cloudwatch

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/apitest"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/monitor"
	"godwit.dev/godwit/internal/monitor/alarms"
	"godwit.dev/godwit/internal/monitor/metrics"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store/memory"
)

var now = time.Date(2026, 1, 1, 12, 0, 30, 0, time.UTC)

// step is one request, and what its answer or its refusal's text must have in it.
type step struct {
	operation, in string
	kind          fault.Kind // ok: it is not refused
	want          string
}

const ok = apitest.Answered

// executor executes nothing.
type executor struct{}

func (executor) Execute(_ context.Context, _ alarms.Action, end *kernel.Joined) error {
	end.Shard.View(end.Run)
	return nil
}

// service is the service over real metrics and alarms, without any.
func service(t *testing.T) *Service {
	t.Helper()
	j := journal.Open(journal.Options{Store: memory.New()})
	t.Cleanup(j.Close)
	k := kernel.New(kernel.Options{Journal: j, Clock: clock.NewVirtual(now), Logger: slog.New(slog.DiscardHandler)})
	points := metrics.New(k, metrics.Options{})
	all := alarms.New(k, alarms.Options{Metrics: points, Executor: executor{}, Wake: func() {}, WakeShort: func() {}, MaxAlarms: 2})
	if err := k.Load(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	return New(Options{Metrics: monitor.NewReader(points, nil), Alarms: all})
}

func call(operation string) *api.Call {
	return &api.Call{Region: "us-east-1", Account: "000000000000", AccessKey: "test", Operation: operation, Time: now}
}

// run asks the service one step after the other. In an input {0} is the minute before now, and
// {1} the one after.
func run(t *testing.T, steps []step) {
	t.Helper()
	asker := apitest.New(t, service(t).Operations(), call)
	at := strings.NewReplacer("{0}", fmt.Sprint(now.Add(-time.Minute).Unix()), "{1}", fmt.Sprint(now.Add(time.Minute).Unix()))
	for _, s := range steps {
		asker.Check(s.operation, at.Replace(s.in), s.kind, s.want)
	}
}

func TestMetrics(t *testing.T) {
	const span = `"StartTime":{0},"EndTime":{1},"Period":60`
	query := func(q string) string { return `{"MetricDataQueries":[` + q + `],"StartTime":{0},"EndTime":{1}}` }
	const stat = `"MetricStat":{"Metric":{"Namespace":"n","MetricName":"m","Dimensions":[{"Name":"d","Value":"1"}]},"Period":60,"Stat":"Sum"}`
	run(t, []step{
		{"ListMetrics", `{}`, ok, `"Metrics":[]`},
		{"PutMetricData", `{"Namespace":"n","MetricData":[{"MetricName":"m","Dimensions":[{"Name":"d","Value":"1"}],"Value":3},{"MetricName":"m","Dimensions":[{"Name":"d","Value":"1"}],"Values":[1,2],"Counts":[2,1]}]}`, ok, `{}`},
		{"PutMetricData", `{"Namespace":"AWS/SQS","MetricData":[{"MetricName":"m","Value":3}]}`, fault.InvalidParameter, "AWS/"},
		{"PutMetricData", `{"MetricData":[{"MetricName":"m","Value":3}]}`, fault.MissingParameter, "Namespace"},
		{"PutMetricData", `{"Namespace":"n","MetricData":[{"Value":3}]}`, fault.MissingParameter, "MetricName"},
		{"PutMetricData", `{"Namespace":"n","MetricData":[{"MetricName":"m","Value":3,"StorageResolution":7}]}`, fault.InvalidParameter, "StorageResolution"},
		{"PutMetricData", `{"Namespace":"n","MetricData":[{"MetricName":"m","Value":3,"Unit":"Furlongs"}]}`, fault.InvalidParameter, "Unit"},
		{"ListMetrics", `{"Namespace":"n"}`, ok, `"MetricName":"m"`},
		{"ListMetrics", `{"Namespace":"other"}`, ok, `"Metrics":[]`},
		{"GetMetricStatistics", `{"Namespace":"n","MetricName":"m","Dimensions":[{"Name":"d","Value":"1"}],` + span + `,"Statistics":["Sum","SampleCount"]}`, ok, `"Sum":7`},
		{"GetMetricStatistics", `{"Namespace":"n","MetricName":"m",` + span + `,"Statistics":["Sum"]}`, ok, `"Datapoints":[]`},
		{"GetMetricStatistics", `{"Namespace":"n","MetricName":"m",` + span + `}`, fault.InvalidParameterCombination, "Statistics"},
		{"GetMetricStatistics", `{"Namespace":"n","MetricName":"m","StartTime":{1},"EndTime":{0},"Period":60,"Statistics":["Sum"]}`, fault.InvalidParameter, "StartTime"},
		{"GetMetricData", query(`{"Id":"a",` + stat + `}`), ok, `"Values":[7]`},
		{"GetMetricData", query(`{"Id":"e","Expression":"a*2"},{"Id":"a","ReturnData":false,` + stat + `}`), ok, `"Values":[14]`},
		{"GetMetricData", query(`{"Id":"e","Expression":"[` + strings.Repeat("a,", 499) + `a]","ReturnData":false},{"Id":"all","Expression":"[` + strings.Repeat("e,", 9) + `e]"},{"Id":"a","ReturnData":false,` + stat + `}`), ok, `"NextToken":""`},
		{"GetMetricData", query(`{"Id":"e","Expression":"[` + strings.Repeat("a,", 499) + `a]","ReturnData":false},{"Id":"all","Expression":"[` + strings.Repeat("e,", 9) + `e,a]"},{"Id":"a","ReturnData":false,` + stat + `}`), ok, `"NextToken":"MQpH`},
		{"GetMetricData", query(`{"Id":"e","Expression":"a*"},{"Id":"a",` + stat + `}`), fault.ValidationFailed, "Error in expression 'e': Invalid syntax"},
		{"GetMetricData", query(`{"Id":"A",` + stat + `}`), fault.ValidationFailed, "Id"},
		{"GetMetricData", query(`{"Id":"a",` + stat + `},{"Id":"a",` + stat + `}`), fault.ValidationFailed, ""},
		{"GetMetricData", `{"MetricDataQueries":[{"Id":"a",` + stat + `}],"StartTime":{0},"EndTime":{1},"NextToken":"x"}`, fault.InvalidNextToken, ""},
		{"PutDashboard", `{"DashboardName":"d","DashboardBody":"{}"}`, fault.InvalidAction, "not built"},
	})
}

func TestAlarms(t *testing.T) {
	const a = `"MetricName":"m","Namespace":"n","Statistic":"Sum","Period":60,"EvaluationPeriods":1,"Threshold":1,"ComparisonOperator":"GreaterThanThreshold"`
	const arn = `"ResourceARN":"arn:aws:cloudwatch:us-east-1:000000000000:alarm:one"`
	run(t, []step{
		{"PutMetricAlarm", `{"AlarmName":"one",` + a + `,"Tags":[{"Key":"k","Value":"v"}]}`, ok, `{}`},
		{"PutMetricAlarm", `{"AlarmName":"two",` + a + `}`, ok, `{}`},
		{"PutMetricAlarm", `{"AlarmName":"three",` + a + `}`, fault.LimitExceeded, "2"},
		{"PutMetricAlarm", `{"AlarmName":"one",` + strings.Replace(a, `"Period":60`, `"Period":61`, 1) + `}`, fault.ValidationFailed, "Period"},
		{"PutMetricAlarm", `{"AlarmName":"one",` + strings.Replace(a, "GreaterThanThreshold", "Above", 1) + `}`, fault.ValidationFailed, "comparisonOperator"},
		{"DescribeAlarms", `{}`, ok, `"AlarmName":"two"`},
		{"DescribeAlarms", `{"AlarmNames":["one"]}`, ok, `"StateValue":"INSUFFICIENT_DATA"`},
		{"DescribeAlarmsForMetric", `{"MetricName":"m","Namespace":"n"}`, ok, `"AlarmName":"one"`},
		{"DescribeAlarmsForMetric", `{"MetricName":"other","Namespace":"n"}`, ok, `"MetricAlarms":[]`},
		{"SetAlarmState", `{"AlarmName":"one","StateValue":"ALARM","StateReason":"r"}`, ok, `{}`},
		{"SetAlarmState", `{"AlarmName":"none","StateValue":"ALARM","StateReason":"r"}`, fault.NotFound, ""},
		{"SetAlarmState", `{"AlarmName":"","StateValue":"ALARM","StateReason":"r"}`, fault.ValidationFailed, "Value '' at 'alarmName' failed to satisfy constraint: Member must have length greater than or equal to 1"},
		{"SetAlarmState", `{"AlarmName":"` + strings.Repeat("a", 256) + `","StateValue":"ALARM","StateReason":"r"}`, fault.ValidationFailed, "less than or equal to 255"},
		{"SetAlarmState", `{"AlarmName":"one","StateValue":"ALARM","StateReason":"r","StateReasonData":"{"}`, fault.InvalidFormat, ""},
		{"DescribeAlarms", `{"StateValue":"ALARM"}`, ok, `"AlarmName":"one"`},
		{"DescribeAlarmHistory", `{"AlarmName":"one","HistoryItemType":"StateUpdate"}`, ok, `to ALARM`},
		{"DisableAlarmActions", `{"AlarmNames":["one","none"]}`, ok, `{}`},
		{"DescribeAlarms", `{"AlarmNames":["one"]}`, ok, `"ActionsEnabled":false`},
		{"EnableAlarmActions", `{"AlarmNames":["one"]}`, ok, `{}`},
		{"DescribeAlarms", `{"AlarmNames":["one"]}`, ok, `"ActionsEnabled":true`},
		{"ListTagsForResource", `{` + arn + `}`, ok, `"Key":"k"`},
		{"TagResource", `{` + arn + `,"Tags":[{"Key":"l","Value":"w"}]}`, ok, `{}`},
		{"UntagResource", `{` + arn + `,"TagKeys":["k"]}`, ok, `{}`},
		{"ListTagsForResource", `{` + arn + `}`, ok, `[{"Key":"l","Value":"w"}]`},
		{"TagResource", `{"ResourceARN":"arn:aws:cloudwatch:us-east-1:000000000000:alarm:none","Tags":[{"Key":"l","Value":"w"}]}`, fault.ResourceNotFound, ""},
		{"DeleteAlarms", `{"AlarmNames":["none"]}`, fault.NotFound, ""},
		{"DeleteAlarms", `{"AlarmNames":["one","none","two"]}`, ok, `{}`},
		{"DescribeAlarms", `{}`, ok, `"MetricAlarms":[]`},
	})
}
