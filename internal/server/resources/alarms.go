package resources

import (
	"context"
	"maps"
	"slices"
)

// exclusive are members of which an alarm has those of one group: what is wanted of one takes
// the place of the others.
var exclusive = [][][]string{
	{{"Metrics"}, {"MetricName", "Namespace", "Dimensions", "Period", "Unit", "Statistic", "ExtendedStatistic", "EvaluateLowSampleCountPercentile"}},
	{{"Statistic"}, {"ExtendedStatistic", "EvaluateLowSampleCountPercentile"}},
	{{"Threshold"}, {"ThresholdMetricId"}},
}

// over is the alarm in place of another one, whose members it keeps where it says nothing: an
// alarm is put as a whole.
func (a Alarm) over(is Alarm) Alarm {
	all := maps.Clone(is)
	if all == nil {
		all = Alarm{}
	}
	for _, groups := range exclusive {
		for i, group := range groups {
			if !slices.ContainsFunc(group, func(name string) bool { return a[name] != nil }) {
				continue
			}
			for _, name := range groups[1-i] {
				delete(all, name)
			}
		}
	}
	maps.Copy(all, a)
	return all
}

// sameMember reports that two values of an alarm's member mean the same: none is an empty list.
func sameMember(is, want any) bool {
	if list, ok := want.([]any); is == nil && ok && len(list) == 0 {
		return true
	}
	return written(is) == written(want)
}

func (a *Applying) alarms(ctx context.Context, set *Set) error {
	if len(set.Alarms) == 0 {
		return nil
	}
	all, err := a.To.alarms(ctx)
	if err != nil {
		return err
	}
	there := map[string]Alarm{}
	for _, alarm := range all {
		there[alarm.name()] = alarm
	}
	for _, want := range set.Alarms {
		is, ok := there[want.name()]
		what := "alarm " + want.name()
		put := func() error { return a.To.json(ctx, "PutMetricAlarm", want.over(is), nil) }
		if !ok {
			if err := a.change(Change{New: true, What: what}, put); err != nil {
				return err
			}
			continue
		}
		var differ []string
		for _, name := range sortedKeys(want) {
			if !sameMember(is[name], want[name]) {
				differ = append(differ, name)
			}
		}
		for i, name := range differ {
			do := put
			if i > 0 { // the alarm is put as a whole
				do = nil
			}
			if err := a.change(Change{What: what, Name: name, Was: written(is[name]), To: written(want[name])}, do); err != nil {
				return err
			}
		}
	}
	return nil
}
