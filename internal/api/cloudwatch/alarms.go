package cloudwatch

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/alarm"
	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/check"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/monitor/alarms"
)

// The limits of requests about alarms. Source: CloudWatch's API model.
const (
	maxNames       = 100
	maxRecords     = 100
	defaultRecords = 50
	maxReason      = 1023
	maxReasonData  = 4000
	maxAction      = 1024
)

var (
	alarmTypes  = []string{"CompositeAlarm", "MetricAlarm"}
	stateValues = []string{"INSUFFICIENT_DATA", "ALARM", "OK"}
)

func checkNames(names []string) error {
	if len(names) > maxNames {
		return unfit("1 validation error detected: Value at 'alarmNames' failed to satisfy constraint: Member must have length less than or equal to %d", maxNames)
	}
	return nil
}

func alarmIDs(call *api.Call, names []string) []alarms.ID {
	ids := make([]alarms.ID, len(names))
	for i, name := range names {
		ids[i] = alarmID(call, name)
	}
	return ids
}

func readRecords(n *int, otherwise int) (int, error) {
	if n == nil {
		return otherwise, nil
	}
	return *n, checkPositive("maxRecords", n, maxRecords)
}

// readAlarmTypes reads which kinds of alarms are asked for: without types, those on metrics.
func readAlarmTypes(types []string) (metric, composite bool, err error) {
	if slices.ContainsFunc(types, func(t string) bool { return !slices.Contains(alarmTypes, t) }) {
		return false, false, breaks("["+strings.Join(types, ", ")+"]", "alarmTypes", check.Enums(alarmTypes...))
	}
	return len(types) == 0 || slices.Contains(types, string(alarm.Metric)), slices.Contains(types, string(alarm.Composite)), nil
}

// describeAlarms answers DescribeAlarms, ordered by name.
func (s *Service) describeAlarms(_ context.Context, call *api.Call, in *DescribeAlarmsInput) (*DescribeAlarmsOutput, error) {
	limit, err := readRecords(in.MaxRecords, defaultRecords)
	err = cmp.Or(err, checkLength("alarmNamePrefix", in.AlarmNamePrefix, 1, maxName), checkLength("actionPrefix", in.ActionPrefix, 1, maxAction))
	if err != nil {
		return nil, err
	}
	metric, composite, err := readAlarmTypes(in.AlarmTypes)
	if err != nil {
		return nil, err
	}
	if in.ChildrenOfAlarmName != nil || in.ParentsOfAlarmName != nil {
		return s.describeRelated(call, in, limit)
	}
	switch {
	case len(in.AlarmNames) > 0 && in.AlarmNamePrefix != nil:
		return nil, unfit("The parameters AlarmNames and AlarmNamePrefix are mutually exclusive and you have specified both.")
	case in.StateValue != nil && !slices.Contains(stateValues, *in.StateValue):
		return nil, notInEnum(*in.StateValue, "stateValue", stateValues)
	}
	if err := checkNames(in.AlarmNames); err != nil {
		return nil, err
	}
	after, ok := readToken("DescribeAlarms", in.NextToken)
	if !ok {
		return nil, fault.New(fault.InvalidNextToken, "")
	}
	found := s.alarms.List(scope(call), func(a *alarm.Alarm) bool {
		return (a.Kind() == alarm.Metric && metric || a.Kind() == alarm.Composite && composite) &&
			a.Name > after && (len(in.AlarmNames) == 0 || slices.Contains(in.AlarmNames, a.Name)) &&
			strings.HasPrefix(a.Name, api.Deref(in.AlarmNamePrefix)) && (in.StateValue == nil || string(a.State) == *in.StateValue) &&
			(in.ActionPrefix == nil || slices.ContainsFunc(slices.Concat(a.OKActions, a.AlarmActions, a.InsufficientActions), func(action string) bool {
				return strings.HasPrefix(action, *in.ActionPrefix)
			}))
	})
	return shownAlarms("DescribeAlarms", found, limit, showAlarm, showComposite), nil
}

// shownAlarms is a page of alarms, which are ordered by name.
func shownAlarms(list string, found []alarm.Alarm, limit int, metric func(*alarm.Alarm) MetricAlarm, composite func(*alarm.Alarm) CompositeAlarm) *DescribeAlarmsOutput {
	out := &DescribeAlarmsOutput{CompositeAlarms: []CompositeAlarm{}, LogAlarms: []LogAlarm{}, MetricAlarms: []MetricAlarm{}}
	if len(found) > limit {
		found = found[:limit]
		out.NextToken = nextToken(list, found[limit-1].Name)
	}
	for i := range found {
		if found[i].Kind() == alarm.Composite {
			out.CompositeAlarms = append(out.CompositeAlarms, composite(&found[i]))
		} else {
			out.MetricAlarms = append(out.MetricAlarms, metric(&found[i]))
		}
	}
	return out
}

func emptyOr(all []string) []string {
	if all == nil {
		return []string{}
	}
	return all
}

func showAlarm(a *alarm.Alarm) MetricAlarm {
	m := MetricAlarm{
		AlarmName: a.Name, AlarmArn: a.ARN(), AlarmDescription: a.Description, AlarmConfigurationUpdatedTimestamp: new(api.TimeOf(a.Configured)),
		ActionsEnabled: new(!a.Disabled), OKActions: emptyOr(a.OKActions), AlarmActions: emptyOr(a.AlarmActions),
		InsufficientDataActions: emptyOr(a.InsufficientActions),
		StateValue:              string(a.State), StateReason: a.Reason, StateReasonData: a.Data,
		StateUpdatedTimestamp: api.TimeOf(a.Updated), StateTransitionedTimestamp: new(api.TimeOf(a.Transitioned)),
		MetricName: a.MetricName, Namespace: a.Namespace, Statistic: a.Statistic,
		Unit: a.Unit, EvaluationPeriods: &a.EvaluationPeriods, Threshold: &a.Threshold, ComparisonOperator: string(a.Comparison),
		TreatMissingData: string(a.Missing), EvaluateLowSampleCountPercentile: a.LowSamples,
	}
	if a.Extended {
		m.Statistic, m.ExtendedStatistic = "", a.Statistic
	}
	if a.DatapointsToAlarm > 0 {
		m.DatapointsToAlarm = &a.DatapointsToAlarm
	}
	m.Dimensions = ownDimensions(a.Dimensions)
	if len(a.Metrics) == 0 {
		m.Period = &a.Period
		return m
	}
	for i := range a.Metrics {
		m.Metrics = append(m.Metrics, showQuery(&a.Metrics[i]))
	}
	return m
}

// describeAlarmsForMetric answers DescribeAlarmsForMetric.
func (s *Service) describeAlarmsForMetric(_ context.Context, call *api.Call, in *DescribeAlarmsForMetricInput) (*DescribeAlarmsForMetricOutput, error) {
	if err := cmp.Or(
		checkLength("namespace", in.Namespace, 1, maxName), checkLength("metricName", in.MetricName, 1, maxName),
		checkPositive("period", in.Period, math.MaxInt32),
	); err != nil {
		return nil, err
	}
	dimensions, err := readDimensions("Dimensions", in.Dimensions)
	if err != nil {
		return nil, unfit("%s", err)
	}
	if in.Statistic != nil && !slices.Contains(basicStatistics, *in.Statistic) {
		return nil, notInEnum(*in.Statistic, "statistic", basicStatistics)
	}
	if err := checkUnit("Unit", in.Unit); err != nil {
		return nil, unfit("%s", err)
	}
	is := func(want *string, has string) bool { return want == nil || *want == has }
	found := s.alarms.List(scope(call), func(a *alarm.Alarm) bool {
		return a.Kind() == alarm.Metric && a.Namespace == *in.Namespace && a.MetricName == *in.MetricName && alarms.MetricOf(a, a.Stat()).Dimensions == dimensions &&
			is(in.Statistic, a.Statistic) && is(in.ExtendedStatistic, a.Statistic) && is(in.Unit, a.Unit) && (in.Period == nil || *in.Period == a.Period)
	})
	out := &DescribeAlarmsForMetricOutput{MetricAlarms: []MetricAlarm{}}
	for i := range found {
		out.MetricAlarms = append(out.MetricAlarms, showAlarm(&found[i]))
	}
	return out, nil
}

// describeAlarmHistory answers DescribeAlarmHistory, by default newest first.
func (s *Service) describeAlarmHistory(_ context.Context, call *api.Call, in *DescribeAlarmHistoryInput) (*DescribeAlarmHistoryOutput, error) {
	limit, err := readRecords(in.MaxRecords, maxRecords)
	if err := cmp.Or(err, checkLength("alarmName", in.AlarmName, 1, maxName)); err != nil {
		return nil, err
	}
	metric, composite, err := readAlarmTypes(in.AlarmTypes)
	if err != nil {
		return nil, err
	}
	if in.HistoryItemType != nil && !slices.Contains(alarm.ItemTypes, alarm.ItemType(*in.HistoryItemType)) {
		return nil, notInEnum(*in.HistoryItemType, "historyItemType", texts(alarm.ItemTypes))
	}
	if in.ScanBy != nil && !slices.Contains(scanOrders, *in.ScanBy) {
		return nil, notInEnum(*in.ScanBy, "scanBy", scanOrders)
	}
	query := alarms.HistoryQuery{
		Scope: scope(call), Name: api.Deref(in.AlarmName), Type: alarm.ItemType(api.Deref(in.HistoryItemType)),
		Descending: api.Deref(in.ScanBy) != scanOrders[1], Limit: limit,
	}
	switch {
	case !composite:
		query.Of = alarm.Metric
	case !metric:
		query.Of = alarm.Composite
	}
	if in.StartDate != nil {
		query.From = in.StartDate.Std()
	}
	if in.EndDate != nil {
		query.To = in.EndDate.Std()
	}
	list := fmt.Sprintf("DescribeAlarmHistory %q %v", query.Name, query.Descending)
	after, ok := readToken(list, in.NextToken)
	if !ok {
		return nil, fault.New(fault.InvalidNextToken, "")
	}
	query.After = []byte(after)
	out := &DescribeAlarmHistoryOutput{AlarmHistoryItems: []AlarmHistoryItem{}}
	if in.AlarmContributorId != nil { // of alarms that are not built
		return out, nil
	}
	items, next, err := s.alarms.History(query)
	if err != nil {
		return nil, err
	}
	for i := range items {
		item := &items[i]
		out.AlarmHistoryItems = append(out.AlarmHistoryItems, AlarmHistoryItem{
			AlarmName: item.Name, AlarmType: string(item.Kind()), Timestamp: api.TimeOf(item.At), HistoryItemType: string(item.Type),
			HistorySummary: item.Summary, HistoryData: item.Data,
		})
	}
	if next != nil {
		out.NextToken = nextToken(list, string(next))
	}
	return out, nil
}

// deleteAlarms answers DeleteAlarms. Like AWS, it ignores unknown names, unless all are
// unknown. Of composite alarms it deletes one.
func (s *Service) deleteAlarms(_ context.Context, call *api.Call, in *DeleteAlarmsInput) (*DeleteAlarmsOutput, error) {
	if err := checkNames(in.AlarmNames); err != nil {
		return nil, err
	}
	ids := alarmIDs(call, in.AlarmNames)
	composites := map[alarms.ID]bool{}
	for _, id := range ids {
		if a, ok := s.alarms.Get(id); ok && a.Kind() == alarm.Composite {
			composites[id] = true
		}
	}
	if len(composites) > 1 {
		return nil, unfit("A request can delete one composite alarm, and not %d.", len(composites))
	}
	return nil, s.alarms.Delete(ids)
}

// enableAlarmActions answers EnableAlarmActions. It ignores unknown alarms.
func (s *Service) enableAlarmActions(_ context.Context, call *api.Call, in *EnableAlarmActionsInput) (*EnableAlarmActionsOutput, error) {
	if err := checkNames(in.AlarmNames); err != nil {
		return nil, err
	}
	return nil, s.alarms.Enable(alarmIDs(call, in.AlarmNames), true)
}

// disableAlarmActions answers DisableAlarmActions.
func (s *Service) disableAlarmActions(_ context.Context, call *api.Call, in *DisableAlarmActionsInput) (*DisableAlarmActionsOutput, error) {
	if err := checkNames(in.AlarmNames); err != nil {
		return nil, err
	}
	return nil, s.alarms.Enable(alarmIDs(call, in.AlarmNames), false)
}

// setAlarmState answers SetAlarmState.
func (s *Service) setAlarmState(ctx context.Context, call *api.Call, in *SetAlarmStateInput) (*SetAlarmStateOutput, error) {
	data := api.Deref(in.StateReasonData)
	if err := cmp.Or(
		checkLength("alarmName", in.AlarmName, 1, maxName), checkLength("stateReason", in.StateReason, 0, maxReason), checkLength("stateReasonData", in.StateReasonData, 0, maxReasonData),
	); err != nil {
		return nil, err
	}
	switch {
	case !slices.Contains(stateValues, *in.StateValue):
		return nil, notInEnum(*in.StateValue, "stateValue", stateValues)
	case data != "" && !json.Valid([]byte(data)):
		return nil, fault.New(fault.InvalidFormat, "")
	}
	return nil, s.alarms.SetState(ctx, alarmID(call, *in.AlarmName), alarm.Status{State: alarm.State(*in.StateValue), Reason: *in.StateReason, Data: data})
}
