package resources

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"godwit.dev/godwit/internal/alarm/rule"
	"godwit.dev/godwit/internal/arn"
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

// sameMember reports that two values of an alarm's member mean the same: none is an empty list, a
// query returns data by default, and tags that are not wanted are left.
func sameMember(name string, is, want any) bool {
	if name == "Tags" {
		there, _ := is.([]any)
		wanted, _ := want.([]any)
		return !slices.ContainsFunc(wanted, func(tag any) bool {
			return !slices.ContainsFunc(there, func(t any) bool { return written(t) == written(tag) })
		})
	}
	if name == "Metrics" {
		is, want = returning(is), returning(want)
	}
	if list, ok := want.([]any); is == nil && ok && len(list) == 0 {
		return true
	}
	return written(is) == written(want)
}

// returning are an alarm's Metrics with the ReturnData that they have by default, and without
// lists of no dimensions.
func returning(queries any) any {
	list, ok := queries.([]any)
	if !ok {
		return queries
	}
	list = slices.Clone(list)
	for i, q := range list {
		q, ok := q.(map[string]any)
		if !ok {
			continue
		}
		q = maps.Clone(q)
		if q["ReturnData"] == nil {
			q["ReturnData"] = true
		}
		if stat, ok := q["MetricStat"].(map[string]any); ok {
			if metric, ok := stat["Metric"].(map[string]any); ok {
				metric, stat = maps.Clone(metric), maps.Clone(stat)
				if none, ok := metric["Dimensions"].([]any); ok && len(none) == 0 {
					delete(metric, "Dimensions")
				}
				stat["Metric"], q["MetricStat"] = metric, stat
			}
		}
		list[i] = q
	}
	return list
}

func (a *Applying) alarms(ctx context.Context, set *Set) error {
	if len(set.Alarms) == 0 {
		return nil
	}
	all, arns, err := a.To.alarms(ctx)
	if err != nil {
		return err
	}
	there := map[string]Alarm{}
	for _, alarm := range all {
		there[alarm.name()] = alarm
	}
	for _, want := range inOrder(set.Alarms) {
		is, ok := there[want.name()]
		what := "alarm " + want.name()
		put := func() error { return a.To.json(ctx, want.operation(), want.over(is), nil) }
		if !ok {
			if err := a.change(Change{New: true, What: what}, put); err != nil {
				return err
			}
			continue
		}
		if want["Tags"] != nil {
			tags, err := a.To.alarmTags(ctx, arns[want.name()])
			if err != nil && !isRefusal(err) {
				return err
			}
			is["Tags"] = tags
		}
		var differ []string
		for _, name := range sortedKeys(want) {
			if !sameMember(name, is[name], want[name]) {
				differ = append(differ, name)
			}
		}
		do := put // the alarm is put as a whole
		for _, name := range differ {
			c := Change{What: what, Name: name, Was: written(is[name]), To: written(want[name])}
			if name == "Tags" { // which are those of a new alarm only
				err = a.change(c, func() error {
					return a.To.json(ctx, "TagResource", map[string]any{"ResourceARN": arns[want.name()], "Tags": want["Tags"]}, nil)
				})
			} else {
				err = a.change(c, do)
				do = nil
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// inOrder are alarms in an order in which composite ones follow those that they depend on. Where
// they depend on each other their order is kept, and the server has the say.
func inOrder(all []Alarm) (ordered []Alarm) {
	waiting := map[string]bool{} // composite alarms that are not yet among the ordered ones
	for _, a := range all {
		if a.rule() != "" {
			waiting[a.name()] = true
		}
	}
	depends := func(a Alarm) bool {
		r, err := rule.Parse(a.rule())
		if err != nil {
			return false // the server says why it refuses it
		}
		suppressor, _ := a["ActionsSuppressor"].(string)
		return slices.ContainsFunc(append(r.Children(), suppressor), func(on string) bool {
			if of, err := arn.Parse(on); err == nil {
				on, _ = of.AlarmName()
			}
			return waiting[on] && on != a.name()
		})
	}
	for len(all) > 0 {
		var later []Alarm
		for _, a := range all {
			if a.rule() != "" && depends(a) {
				later = append(later, a)
				continue
			}
			ordered = append(ordered, a)
			delete(waiting, a.name())
		}
		if len(later) == len(all) {
			return append(ordered, later...)
		}
		all = later
	}
	return ordered
}

// alarms are all alarms, and their ARNs by name.
func (s *Server) alarms(ctx context.Context) (all []Alarm, arns map[string]string, err error) {
	arns = map[string]string{}
	in := map[string]any{"AlarmTypes": []string{"CompositeAlarm", "MetricAlarm"}}
	for range maxPages {
		var out struct {
			MetricAlarms, CompositeAlarms []Alarm
			NextToken                     string
		}
		if err := s.json(ctx, "DescribeAlarms", in, &out); err != nil {
			return nil, nil, err
		}
		for _, a := range append(out.MetricAlarms, out.CompositeAlarms...) {
			arns[a.name()], _ = a["AlarmArn"].(string)
			for _, name := range ofAlarms {
				delete(a, name)
			}
			for name, value := range a {
				if list, ok := value.([]any); value == nil || ok && len(list) == 0 {
					delete(a, name)
				} else {
					a[name] = plain(value)
				}
			}
			all = append(all, a)
		}
		if out.NextToken == "" {
			break
		}
		in["NextToken"] = out.NextToken
	}
	slices.SortFunc(all, func(a, b Alarm) int { return cmp.Compare(a.name(), b.name()) })
	return all, arns, nil
}

// alarmTags are the tags of an alarm, in the form of the operations that make alarms, and in the order of their keys.
func (s *Server) alarmTags(ctx context.Context, arn string) ([]any, error) {
	var out struct{ Tags []struct{ Key, Value string } }
	if err := s.json(ctx, "ListTagsForResource", map[string]any{"ResourceARN": arn}, &out); err != nil {
		return nil, err
	}
	tags := Tags{}
	for _, tag := range out.Tags {
		tags[tag.Key] = tag.Value
	}
	var all []any
	for _, key := range sortedKeys(tags.own()) {
		all = append(all, map[string]any{"Key": key, "Value": tags[key]})
	}
	return all, nil
}

// alarms reads the alarms.
func (e *exporting) alarms(ctx context.Context) error {
	all, arns, err := e.Server.alarms(ctx)
	if err != nil {
		return e.unless(err, "alarms")
	}
	for _, a := range all {
		tags, err := e.alarmTags(ctx, arns[a.name()])
		if e.unless(err, "tags of alarm "+a.name()) != nil {
			return err
		}
		if len(tags) > 0 {
			a["Tags"] = tags
		}
	}
	e.set.Alarms = all
	return nil
}
