package cloudwatch

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"godwit.dev/godwit/internal/alarm"
	"godwit.dev/godwit/internal/alarm/rule"
	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/fault"
)

// maxSuppressor is the length of the longest name or ARN of a suppressor. Source: CloudWatch's API
// model.
const maxSuppressor = 1600

// putCompositeAlarm answers PutCompositeAlarm.
func (s *Service) putCompositeAlarm(_ context.Context, call *api.Call, in *PutCompositeAlarmInput) (*PutCompositeAlarmOutput, error) {
	if err := cmp.Or(
		checkAlarmName(*in.AlarmName), checkLength("alarmRule", in.AlarmRule, 1, rule.MaxLength),
		checkLength("alarmDescription", in.AlarmDescription, 0, maxDescription), checkLength("actionsSuppressor", in.ActionsSuppressor, 1, maxSuppressor),
	); err != nil {
		return nil, err
	}
	config := alarm.Config{
		Description: in.AlarmDescription, Disabled: in.ActionsEnabled != nil && !*in.ActionsEnabled,
		OKActions: in.OKActions, AlarmActions: in.AlarmActions, InsufficientActions: in.InsufficientDataActions, Rule: *in.AlarmRule,
	}
	wait, extension := in.ActionsSuppressorWaitPeriod, in.ActionsSuppressorExtensionPeriod
	switch {
	case in.ActionsSuppressor == nil && (wait != nil || extension != nil):
		return nil, unfit("ActionsSuppressorWaitPeriod and ActionsSuppressorExtensionPeriod need an ActionsSuppressor.")
	case in.ActionsSuppressor == nil:
	case wait == nil || extension == nil:
		return nil, unfit("ActionsSuppressorWaitPeriod and ActionsSuppressorExtensionPeriod are required if there is an ActionsSuppressor.")
	case *wait < 0 || *extension < 0:
		return nil, unfit("ActionsSuppressorWaitPeriod and ActionsSuppressorExtensionPeriod must not be negative.")
	case *wait > math.MaxInt32 || *extension > math.MaxInt32: // which JSON and CBOR can say
		return nil, unfit("ActionsSuppressorWaitPeriod and ActionsSuppressorExtensionPeriod must be at most %d.", math.MaxInt32)
	default:
		config.Suppressor = &alarm.Suppressor{Alarm: *in.ActionsSuppressor, Wait: *wait, Extension: *extension}
	}
	return nil, s.put(call, *in.AlarmName, config, in.Tags)
}

func showComposite(a *alarm.Alarm) CompositeAlarm {
	c := CompositeAlarm{
		ActionsEnabled: new(!a.Disabled), AlarmActions: emptyOr(a.AlarmActions), AlarmArn: a.ARN(),
		AlarmConfigurationUpdatedTimestamp: new(api.TimeOf(a.Configured)), AlarmDescription: a.Description, AlarmName: a.Name, AlarmRule: a.Rule,
		InsufficientDataActions: emptyOr(a.InsufficientActions), OKActions: emptyOr(a.OKActions),
		StateReason: a.Reason, StateReasonData: a.Data, StateUpdatedTimestamp: api.TimeOf(a.Updated), StateValue: string(a.State),
		StateTransitionedTimestamp: new(api.TimeOf(a.Transitioned)),
	}
	if s := a.Suppressor; s != nil {
		c.ActionsSuppressor, c.ActionsSuppressorWaitPeriod, c.ActionsSuppressorExtensionPeriod = s.Alarm, &s.Wait, &s.Extension
	}
	if s := a.Suppressed; s != nil {
		c.ActionsSuppressedBy, c.ActionsSuppressedReason = string(s.By), s.Reason()
	}
	return c
}

// describeRelated answers DescribeAlarms for the children of a composite alarm, or the composite
// alarms that have an alarm as a child. Of these it tells little, and takes no other parameters.
func (s *Service) describeRelated(call *api.Call, in *DescribeAlarmsInput, limit int) (*DescribeAlarmsOutput, error) {
	alone := len(in.AlarmNames) == 0 && len(in.AlarmTypes) == 0 && in.AlarmNamePrefix == nil && in.StateValue == nil && in.ActionPrefix == nil
	if !alone || in.ChildrenOfAlarmName != nil && in.ParentsOfAlarmName != nil {
		return nil, unfit("With ChildrenOfAlarmName or ParentsOfAlarmName there can be no parameters but MaxRecords and NextToken.")
	}
	related, of, name := s.alarms.Children, "ChildrenOfAlarmName", in.ChildrenOfAlarmName
	if in.ParentsOfAlarmName != nil {
		related, of, name = s.alarms.Parents, "ParentsOfAlarmName", in.ParentsOfAlarmName
	}
	list := fmt.Sprintf("DescribeAlarms %s %q", of, *name)
	after, ok := readToken(list, in.NextToken)
	if !ok {
		return nil, fault.New(fault.InvalidNextToken, "")
	}
	found := slices.DeleteFunc(related(alarmID(call, *name)), func(a alarm.Alarm) bool { return a.Name <= after })
	return shownAlarms(list, found, limit, func(a *alarm.Alarm) MetricAlarm {
		return MetricAlarm{
			AlarmName: a.Name, AlarmArn: a.ARN(), StateValue: string(a.State), StateUpdatedTimestamp: api.TimeOf(a.Updated),
			OKActions: []string{}, AlarmActions: []string{}, InsufficientDataActions: []string{}, Dimensions: []Dimension{},
		}
	}, func(a *alarm.Alarm) CompositeAlarm {
		return CompositeAlarm{
			AlarmName: a.Name, AlarmArn: a.ARN(), StateValue: string(a.State), StateUpdatedTimestamp: api.TimeOf(a.Updated),
			OKActions: []string{}, AlarmActions: []string{}, InsufficientDataActions: []string{},
		}
	}), nil
}
