package sdk_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"godwit.dev/godwit/internal/config"
)

func putComposite(t *testing.T, endpoint, name, rule string, change func(in *cloudwatch.PutCompositeAlarmInput)) {
	t.Helper()
	in := &cloudwatch.PutCompositeAlarmInput{AlarmName: &name, AlarmRule: &rule}
	if change != nil {
		change(in)
	}
	must(metricsClient(endpoint).PutCompositeAlarm(t.Context(), in))(t)
}

func setState(t *testing.T, endpoint, name string, state types.StateValue) {
	t.Helper()
	must(metricsClient(endpoint).SetAlarmState(t.Context(), &cloudwatch.SetAlarmStateInput{AlarmName: &name, StateValue: state, StateReason: aws.String("by hand")}))(t)
}

func describeComposite(t *testing.T, endpoint, name string) types.CompositeAlarm {
	t.Helper()
	all := must(metricsClient(endpoint).DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{
		AlarmNames: []string{name}, AlarmTypes: []types.AlarmType{types.AlarmTypeCompositeAlarm},
	}))(t)
	if len(all.CompositeAlarms) != 1 || len(all.MetricAlarms) != 0 {
		t.Fatalf("%d alarms are called %s", len(all.CompositeAlarms), name)
	}
	return all.CompositeAlarms[0]
}

// A composite alarm follows its children, tells a topic, waits for its suppressor, and is there
// after a restart.
func TestCompositeAlarms(t *testing.T) {
	endpoint, restart := startDisk(t)
	c, q, top := metricsClient(endpoint), client(endpoint), topicsClient(endpoint)
	made := nextMinute(t, endpoint)
	queue := createQueue(t, q, "told")
	topic := createTopic(t, top, "ops")
	subscribe(t, top, topic, "sqs", queueARN("told"), "RawMessageDelivery", "true")
	putAlarm(t, endpoint, "a", nil)
	putAlarm(t, endpoint, "b", nil)
	putAlarm(t, endpoint, "s", nil)
	const rule = `ALARM(a) AND NOT ALARM("b")`
	putComposite(t, endpoint, "p", rule, func(in *cloudwatch.PutCompositeAlarmInput) {
		in.AlarmDescription, in.AlarmActions, in.Tags = aws.String("why"), []string{topic}, []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}}
		in.ActionsSuppressor, in.ActionsSuppressorWaitPeriod, in.ActionsSuppressorExtensionPeriod = aws.String("s"), aws.Int32(15), aws.Int32(0)
	})
	stamp := made.Format("2006-01-02T15:04:05.000-0700")
	child := func(name, state, at string) string {
		return fmt.Sprintf(`{"arn":"%s","state":{"value":"%s","timestamp":"%s"}}`, alarmARN(name), state, at)
	}
	want := types.CompositeAlarm{
		AlarmName: aws.String("p"), AlarmArn: aws.String(alarmARN("p")), AlarmDescription: aws.String("why"), AlarmRule: aws.String(rule), AlarmConfigurationUpdatedTimestamp: &made,
		ActionsEnabled: aws.Bool(true), OKActions: []string{}, AlarmActions: []string{topic}, InsufficientDataActions: []string{},
		ActionsSuppressor: aws.String("s"), ActionsSuppressorWaitPeriod: aws.Int32(15), ActionsSuppressorExtensionPeriod: aws.Int32(0),
		StateValue: types.StateValueOk, StateReason: aws.String(alarmARN("p") + " was created and its alarm rule evaluates to OK"),
		StateReasonData:       aws.String(`{"triggeringAlarms":[` + child("a", "INSUFFICIENT_DATA", stamp) + "," + child("b", "INSUFFICIENT_DATA", stamp) + "]}"),
		StateUpdatedTimestamp: &made, StateTransitionedTimestamp: &made, ActionsSuppressedBy: types.ActionsSuppressedByWaitPeriod,
		ActionsSuppressedReason: aws.String("Actions suppressed by WaitPeriod"),
	}
	equal(t, "a new composite alarm", want, describeComposite(t, endpoint, "p"))

	putValue(t, endpoint, 20) // of all three, which the setting of b and s undoes
	now := nextMinute(t, endpoint)
	stamp = now.Format("2006-01-02T15:04:05.000-0700")
	if got := describeComposite(t, endpoint, "p"); got.StateValue != types.StateValueOk {
		t.Errorf("with both children in ALARM it is %s", got.StateValue)
	}
	setState(t, endpoint, "s", types.StateValueOk)
	setState(t, endpoint, "b", types.StateValueOk)
	want.StateValue, want.StateUpdatedTimestamp, want.StateTransitionedTimestamp = types.StateValueAlarm, &now, &now
	want.StateReason = aws.String(alarmARN("b") + " transitioned to OK at " + now.Format("Monday 02 January, 2006 15:04:05 MST"))
	want.StateReasonData = aws.String(`{"triggeringAlarms":[` + child("b", "OK", stamp) + "]}")
	equal(t, "an alarm that waits for its suppressor", want, describeComposite(t, endpoint, "p"))
	equal(t, "what was told before its end", 0, len(receive(t, q, queue, 10)))
	advance(t, endpoint, "15s")
	told := bodies(receive(t, q, queue, 10))
	if len(told) != 1 || !strings.Contains(told[0], `"AlarmRule":"ALARM(a) AND NOT ALARM(\"b\")","TriggeringChildren":[{"Arn":"`+alarmARN("b")+`"`) {
		t.Errorf("told %q", told)
	}
	equal(t, "the history", []string{
		`ConfigurationUpdate: Alarm "p" created`, "StateUpdate: Alarm updated from INSUFFICIENT_DATA to OK",
		"StateUpdate: Alarm updated from OK to ALARM", "StateUpdate: Alarm updated from ALARM to OK", // with a, and with b after it
		"StateUpdate: Alarm updated from OK to ALARM",
		"Action: Successfully executed action " + topic,
	}, compositeHistory(t, endpoint, "p"))
	equal(t, "that of alarms on metrics", []string(nil), alarmHistory(t, endpoint, "p"))
	equal(t, "alarms, of which composite ones are asked for", 3, len(must(c.DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{}))(t).MetricAlarms))

	endpoint = restart()
	after := describeComposite(t, endpoint, "p")
	equal(t, "after a restart", types.StateValueAlarm, after.StateValue)
	equal(t, "suppressed by", "", string(after.ActionsSuppressedBy))
	setState(t, endpoint, "a", types.StateValueOk)
	equal(t, "after a child's change", types.StateValueOk, describeComposite(t, endpoint, "p").StateValue)
	equal(t, "its tags", []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}},
		must(metricsClient(endpoint).ListTagsForResource(t.Context(), &cloudwatch.ListTagsForResourceInput{ResourceARN: aws.String(alarmARN("p"))}))(t).Tags)
}

func compositeHistory(t *testing.T, endpoint, name string) (summaries []string) {
	t.Helper()
	out := must(metricsClient(endpoint).DescribeAlarmHistory(t.Context(), &cloudwatch.DescribeAlarmHistoryInput{
		AlarmName: &name, ScanBy: types.ScanByTimestampAscending, AlarmTypes: []types.AlarmType{types.AlarmTypeCompositeAlarm},
	}))(t)
	for _, item := range out.AlarmHistoryItems {
		equal(t, "an item's type", types.AlarmTypeCompositeAlarm, item.AlarmType)
		summaries = append(summaries, string(item.HistoryItemType)+": "+*item.HistorySummary)
	}
	return summaries
}

// Children and parents are told by name, ARN and state alone, and page by page.
func TestCompositeRelatives(t *testing.T) {
	endpoint := start(t)
	c := metricsClient(endpoint)
	putAlarm(t, endpoint, "a", nil)
	putAlarm(t, endpoint, "b", nil)
	putComposite(t, endpoint, "p", "ALARM(a)", nil)
	putComposite(t, endpoint, "q", "ALARM(p) OR ALARM("+alarmARN("b")+") OR OK(a)", func(in *cloudwatch.PutCompositeAlarmInput) {
		in.ActionsSuppressor, in.ActionsSuppressorWaitPeriod, in.ActionsSuppressorExtensionPeriod = aws.String("b"), aws.Int32(1), aws.Int32(1)
	})
	related := func(in *cloudwatch.DescribeAlarmsInput) string {
		t.Helper()
		var all []string
		in.MaxRecords = aws.Int32(1)
		for p := cloudwatch.NewDescribeAlarmsPaginator(c, in); p.HasMorePages(); {
			page := must(p.NextPage(t.Context()))(t)
			for _, a := range page.MetricAlarms {
				equal(t, "a child on a metric", types.MetricAlarm{
					AlarmName: a.AlarmName, AlarmArn: aws.String(alarmARN(*a.AlarmName)), StateValue: "INSUFFICIENT_DATA", StateUpdatedTimestamp: a.StateUpdatedTimestamp,
					OKActions: []string{}, AlarmActions: []string{}, InsufficientDataActions: []string{}, Dimensions: []types.Dimension{},
				}, a)
				all = append(all, *a.AlarmName)
			}
			for _, a := range page.CompositeAlarms {
				equal(t, "a composite relative", types.CompositeAlarm{
					AlarmName: a.AlarmName, AlarmArn: aws.String(alarmARN(*a.AlarmName)), StateValue: "OK", StateUpdatedTimestamp: a.StateUpdatedTimestamp,
					OKActions: []string{}, AlarmActions: []string{}, InsufficientDataActions: []string{},
				}, a)
				all = append(all, *a.AlarmName)
			}
		}
		return strings.Join(all, " ")
	}
	for want, in := range map[string]*cloudwatch.DescribeAlarmsInput{
		"a b p": {ChildrenOfAlarmName: aws.String("q")},
		"a":     {ChildrenOfAlarmName: aws.String("p")},
		"p q":   {ParentsOfAlarmName: aws.String("a")},
		"q":     {ParentsOfAlarmName: aws.String("b")},
		"":      {ParentsOfAlarmName: aws.String("none")},
	} {
		equal(t, "relatives", want, related(in))
	}
	for _, in := range []*cloudwatch.DescribeAlarmsInput{
		{ChildrenOfAlarmName: aws.String("q"), StateValue: types.StateValueOk},
		{ParentsOfAlarmName: aws.String("a"), ChildrenOfAlarmName: aws.String("q")},
		{ParentsOfAlarmName: aws.String("a"), AlarmTypes: []types.AlarmType{types.AlarmTypeCompositeAlarm}},
	} {
		_, err := c.DescribeAlarms(t.Context(), in)
		refused(t, err, "ValidationError", 400, "With ChildrenOfAlarmName or ParentsOfAlarmName there can be no parameters but MaxRecords and NextToken.")
	}
}

// The three protocols have one meaning; there are as many alarms as an account may have, of both kinds.
func TestCompositeProtocols(t *testing.T) {
	endpoint := startWith(t, func(c *config.Config) { c.MaxAlarms = 3 })
	putAlarm(t, endpoint, "a", nil)
	r := callMetricsJSON(t, endpoint, "PutCompositeAlarm", `{"AlarmName":"j","AlarmRule":"OK(a)","ActionsSuppressor":"a","ActionsSuppressorWaitPeriod":1,"ActionsSuppressorExtensionPeriod":2}`)
	equal(t, "PutCompositeAlarm in JSON", "200 ", fmt.Sprint(r.Status, " ", r.Body))
	r = callMetricsQuery(t, endpoint, "PutCompositeAlarm", "AlarmName", "q", "AlarmRule", "OK(a)", "ActionsSuppressor", "a", "ActionsSuppressorWaitPeriod", "1", "ActionsSuppressorExtensionPeriod", "2")
	equal(t, "PutCompositeAlarm as a form", 200, r.Status)
	j, q := describeComposite(t, endpoint, "j"), describeComposite(t, endpoint, "q")
	q.AlarmName, q.AlarmArn, q.StateReason = j.AlarmName, j.AlarmArn, j.StateReason
	equal(t, "one and the other", j, q)
	for _, body := range []string{
		callMetricsJSON(t, endpoint, "DescribeAlarms", `{"AlarmTypes":["CompositeAlarm"],"AlarmNames":["j"]}`).Body,
		callMetricsQuery(t, endpoint, "DescribeAlarms", "AlarmTypes.member.1", "CompositeAlarm", "AlarmNames.member.1", "j").Body,
	} {
		for _, member := range []string{"AlarmRule", "OK(a)", "ActionsSuppressorWaitPeriod", "ActionsSuppressedReason", "Actions suppressed by WaitPeriod", "StateTransitionedTimestamp"} {
			if !strings.Contains(body, member) {
				t.Errorf("there is no %s in %s", member, body)
			}
		}
	}
	_, err := metricsClient(endpoint).PutCompositeAlarm(t.Context(), &cloudwatch.PutCompositeAlarmInput{AlarmName: aws.String("more"), AlarmRule: aws.String("TRUE")})
	refused(t, err, "LimitExceeded", 400, "The maximum number of alarms, 3, has been reached.")
}

// What is refused changes nothing.
func TestCompositeErrors(t *testing.T) {
	endpoint := start(t)
	c := metricsClient(endpoint)
	putAlarm(t, endpoint, "a", nil)
	putComposite(t, endpoint, "p", "ALARM(a)", nil)
	putComposite(t, endpoint, "q", "TRUE", nil)
	for want, in := range map[string]*cloudwatch.PutCompositeAlarmInput{
		"Could not save the composite alarm as alarms [x, y] in the alarm rule do not exist":                                              {AlarmRule: aws.String("ALARM(x) OR OK(y)")},
		"Error in AlarmRule [Unsupported token 'Oldest' at char 12, must be: ')']":                                                        {AlarmRule: aws.String("ALARM(Queue Oldest Age)")},
		"Error in AlarmRule [Unexpected end, must be: ')']":                                                                               {AlarmRule: aws.String("ALARM(a")},
		"AlarmRule must not contain leading or trailing whitespace or be null":                                                            {AlarmRule: aws.String("ALARM(a)\n")},
		"There is an alarm with the name a already, and its type is MetricAlarm.":                                                         {AlarmName: aws.String("a"), AlarmRule: aws.String("TRUE")},
		"Could not save the composite alarm as its actions suppressor x does not exist":                                                   {AlarmRule: aws.String("TRUE"), ActionsSuppressor: aws.String("x"), ActionsSuppressorWaitPeriod: aws.Int32(0), ActionsSuppressorExtensionPeriod: aws.Int32(0)},
		"The action arn:aws:ssm:eu-west-1:111122223333:opsitem:1 is not supported: actions are standard SNS topics and Lambda functions.": {AlarmRule: aws.String("TRUE"), AlarmActions: []string{"arn:aws:ssm:eu-west-1:111122223333:opsitem:1"}},
		"ActionsSuppressorWaitPeriod and ActionsSuppressorExtensionPeriod need an ActionsSuppressor.":                                     {AlarmRule: aws.String("TRUE"), ActionsSuppressorWaitPeriod: aws.Int32(1)},
		"ActionsSuppressorWaitPeriod and ActionsSuppressorExtensionPeriod are required if there is an ActionsSuppressor.":                 {AlarmRule: aws.String("TRUE"), ActionsSuppressor: aws.String("a"), ActionsSuppressorWaitPeriod: aws.Int32(1)},
		"ActionsSuppressorWaitPeriod and ActionsSuppressorExtensionPeriod must not be negative.":                                          {AlarmRule: aws.String("TRUE"), ActionsSuppressor: aws.String("a"), ActionsSuppressorWaitPeriod: aws.Int32(-1), ActionsSuppressorExtensionPeriod: aws.Int32(0)},
	} {
		if in.AlarmName == nil {
			in.AlarmName = aws.String("n")
		}
		_, err := c.PutCompositeAlarm(t.Context(), in)
		refused(t, err, "ValidationError", 400, want)
	}
	_, err := c.PutMetricAlarm(t.Context(), &cloudwatch.PutMetricAlarmInput{
		AlarmName: aws.String("p"), Namespace: aws.String("n"), MetricName: aws.String("m"), Statistic: types.StatisticSum, Period: aws.Int32(60),
		EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(10), ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold,
	})
	refused(t, err, "ValidationError", 400, "There is an alarm with the name p already, and its type is CompositeAlarm.")
	for want, names := range map[string][]string{
		"Cannot delete a as there are composite alarm(s) depending on it.": {"a"},
		"A request can delete one composite alarm, and not 2.":             {"p", "q"},
	} {
		_, err := c.DeleteAlarms(t.Context(), &cloudwatch.DeleteAlarmsInput{AlarmNames: names})
		refused(t, err, "ValidationError", 400, want)
	}
	for _, periods := range []string{`"ActionsSuppressorWaitPeriod":2147483648,"ActionsSuppressorExtensionPeriod":0`, `"ActionsSuppressorWaitPeriod":0,"ActionsSuppressorExtensionPeriod":99999999999`} {
		r := callMetricsJSON(t, endpoint, "PutCompositeAlarm", `{"AlarmName":"n","AlarmRule":"TRUE","ActionsSuppressor":"a",`+periods+`}`)
		if r.Status != 400 || !strings.Contains(r.Body, "must be at most 2147483647") {
			t.Errorf("%s: %d %s", periods, r.Status, r.Body)
		}
	}
	all := must(c.DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{AlarmTypes: []types.AlarmType{types.AlarmTypeCompositeAlarm, types.AlarmTypeMetricAlarm}}))(t)
	equal(t, "alarms", 3, len(all.CompositeAlarms)+len(all.MetricAlarms))
	must(c.DeleteAlarms(t.Context(), &cloudwatch.DeleteAlarmsInput{AlarmNames: []string{"a", "p"}}))(t)
}

// compositeAlarm is an aws_cloudwatch_composite_alarm, whose suppressor the change takes away.
func (s *stack) compositeAlarm() resource {
	name, topic, child := "lost", topicARN("orders"), "dead-letters"
	input := func() *cloudwatch.PutCompositeAlarmInput {
		return &cloudwatch.PutCompositeAlarmInput{AlarmName: &name, ActionsEnabled: aws.Bool(true), AlarmActions: []string{topic}}
	}
	want := fields{"arn": alarmARN(name), "enabled": "true", "alarm": topic, "ok": "0", "insufficient": "0"}
	find := func(t *testing.T) []types.CompositeAlarm {
		t.Helper()
		return must(s.cw.DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{AlarmNames: []string{name}, AlarmTypes: []types.AlarmType{types.AlarmTypeCompositeAlarm}}))(t).CompositeAlarms
	}
	return resource{
		name: "composite alarm", want: [2]fields{
			want.and(fields{"rule": `ALARM("dead-letters")`, "description": "something was lost", "suppressor": child, "wait": "60", "extension": "0", "tag team": "a"}),
			want.and(fields{"rule": "OK(" + alarmARN(child) + ") OR FALSE", "description": "", "suppressor": "", "wait": "0", "extension": "0", "tag team": "b"}),
		},
		create: func(t *testing.T) {
			in := input()
			in.AlarmRule, in.AlarmDescription, in.Tags = aws.String(`ALARM("dead-letters")`), aws.String("something was lost"), []types.Tag{{Key: aws.String("team"), Value: aws.String("a")}}
			in.ActionsSuppressor, in.ActionsSuppressorWaitPeriod, in.ActionsSuppressorExtensionPeriod = &child, aws.Int32(60), aws.Int32(0)
			must(s.cw.PutCompositeAlarm(t.Context(), in))(t)
		},
		change: func(t *testing.T) {
			in := input()
			in.AlarmRule = aws.String("OK(" + alarmARN(child) + ") OR FALSE")
			must(s.cw.PutCompositeAlarm(t.Context(), in))(t)
			must(s.cw.TagResource(t.Context(), &cloudwatch.TagResourceInput{ResourceARN: aws.String(alarmARN(name)), Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("b")}}}))(t)
		},
		read: func(t *testing.T) fields {
			found := find(t)
			if len(found) != 1 {
				t.Fatalf("%d alarms", len(found))
			}
			a := found[0]
			all := fields{
				"arn": *a.AlarmArn, "rule": *a.AlarmRule, "description": aws.ToString(a.AlarmDescription), "enabled": strconv.FormatBool(*a.ActionsEnabled),
				"alarm": strings.Join(a.AlarmActions, " "), "ok": strconv.Itoa(len(a.OKActions)), "insufficient": strconv.Itoa(len(a.InsufficientDataActions)),
				"suppressor": aws.ToString(a.ActionsSuppressor), "wait": strconv.Itoa(int(aws.ToInt32(a.ActionsSuppressorWaitPeriod))),
				"extension": strconv.Itoa(int(aws.ToInt32(a.ActionsSuppressorExtensionPeriod))),
			}
			for _, tag := range must(s.cw.ListTagsForResource(t.Context(), &cloudwatch.ListTagsForResourceInput{ResourceARN: a.AlarmArn}))(t).Tags {
				all["tag "+*tag.Key] = *tag.Value
			}
			return all
		},
		destroy: func(t *testing.T) {
			must(s.cw.DeleteAlarms(t.Context(), &cloudwatch.DeleteAlarmsInput{AlarmNames: []string{name}}))(t)
			equal(t, "after the end", 0, len(find(t)))
		},
	}
}
