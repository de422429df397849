package deploying

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/cloudwatch"
	"godwit.dev/godwit/internal/api/logs"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/server/deploying/step"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
	"godwit.dev/godwit/internal/stack/resource"
)

func alarmARN(w *step.Work) string {
	return arn.Alarm(w.Region, w.Account, w.Target.Physical).String()
}

// isComposite reports whether the alarm of a step is one on other alarms.
func isComposite(w *step.Work) bool { return w.Target.Type == "AWS::CloudWatch::CompositeAlarm" }

func createAlarm(ctx context.Context, w *step.Work) (step.Made, error) {
	t, _ := resource.Find(w.Target.Type)
	if name := w.Target.Physical; t.Named(w.Target.Properties) != "" {
		found, err := step.Ask[cloudwatch.DescribeAlarmsOutput](ctx, w, "monitoring", "DescribeAlarms", w.Region, &cloudwatch.DescribeAlarmsInput{
			AlarmNames: []string{name}, AlarmTypes: []string{"CompositeAlarm", "MetricAlarm"},
		})
		if err != nil {
			return step.Made{}, err
		}
		var configured *api.Time // that of the name, of either kind
		for i := range found.MetricAlarms {
			configured = found.MetricAlarms[i].AlarmConfigurationUpdatedTimestamp
		}
		for i := range found.CompositeAlarms {
			configured = found.CompositeAlarms[i].AlarmConfigurationUpdatedTimestamp
		}
		if configured != nil && !w.OwnSince(*configured) {
			return step.Made{}, w.Taken(name)
		}
	}
	return putAlarm(ctx, w)
}

// putAlarm makes an alarm, or gives it other settings: an operation that may be repeated.
func putAlarm(ctx context.Context, w *step.Work) (step.Made, error) {
	properties := maps.Clone(w.Target.Properties)
	properties["AlarmName"] = w.Target.Physical
	if w.Action == stack.Update {
		delete(properties, "Tags") // which the operation does not take of an alarm that is there
	}
	if queries, ok := properties["Metrics"].([]any); ok {
		properties["Metrics"] = typedQueries(queries)
	}
	var err error
	if isComposite(w) {
		err = put[cloudwatch.PutCompositeAlarmInput, cloudwatch.PutCompositeAlarmOutput](ctx, w, "PutCompositeAlarm", properties)
	} else {
		err = put[cloudwatch.PutMetricAlarmInput, cloudwatch.PutMetricAlarmOutput](ctx, w, "PutMetricAlarm", properties)
	}
	if err != nil {
		return step.Made{}, err
	}
	return step.Made{Physical: w.Target.Physical, Attributes: map[string]any{"Arn": alarmARN(w)}}, nil
}

// put calls an operation whose members are called as the properties.
func put[I, O any](ctx context.Context, w *step.Work, operation string, properties map[string]any) error {
	in := new(I)
	document, err := json.Marshal(properties)
	if err == nil {
		err = json.Unmarshal(document, in)
	}
	if err != nil {
		return &step.Error{Text: "Model validation failed: " + err.Error(), Code: "InvalidRequest"}
	}
	_, err = step.Ask[O](ctx, w, "monitoring", operation, w.Region, in)
	return err
}

// typedQueries are an alarm's Metrics with numbers and truth values where the template has their
// texts.
func typedQueries(queries []any) []any {
	typed := slices.Clone(queries)
	for i, q := range typed {
		q, ok := q.(map[string]any)
		if !ok {
			continue
		}
		q = maps.Clone(q)
		setWhole(q, "Period")
		switch text, _ := q["ReturnData"].(string); strings.ToLower(text) {
		case "true":
			q["ReturnData"] = true
		case "false":
			q["ReturnData"] = false
		}
		if stat, ok := q["MetricStat"].(map[string]any); ok {
			stat = maps.Clone(stat)
			setWhole(stat, "Period")
			q["MetricStat"] = stat
		}
		typed[i] = q
	}
	return typed
}

// setWhole makes a member that is the text of an integer the integer.
func setWhole(of map[string]any, name string) {
	if text, ok := of[name].(string); ok {
		if n, ok := resource.Whole(text); ok {
			of[name] = n
		}
	}
}

func updateAlarm(ctx context.Context, w *step.Work) (step.Made, error) {
	is := step.Made{Physical: w.Target.Physical, Attributes: w.Target.Attributes}
	if _, err := putAlarm(ctx, w); err != nil {
		return is, err
	}
	set, gone := step.Retagged(w.Now["Tags"], w.Target.Properties["Tags"])
	own := alarmARN(w)
	if len(gone) > 0 {
		if _, err := step.Ask[cloudwatch.UntagResourceOutput](ctx, w, "monitoring", "UntagResource", w.Region, &cloudwatch.UntagResourceInput{ResourceARN: &own, TagKeys: gone}); err != nil {
			return is, err
		}
	}
	if len(set) > 0 {
		in := &cloudwatch.TagResourceInput{ResourceARN: &own}
		for key, value := range set {
			in.Tags = append(in.Tags, cloudwatch.Tag{Key: &key, Value: &value})
		}
		if _, err := step.Ask[cloudwatch.TagResourceOutput](ctx, w, "monitoring", "TagResource", w.Region, in); err != nil {
			return is, err
		}
	}
	return is, nil
}

func deleteAlarm(ctx context.Context, w *step.Work) error {
	_, err := step.Ask[cloudwatch.DeleteAlarmsOutput](ctx, w, "monitoring", "DeleteAlarms", w.Region, &cloudwatch.DeleteAlarmsInput{AlarmNames: []string{w.Target.Physical}})
	if stacks.IsGone(err) {
		return nil
	}
	return err
}

func groupARN(w *step.Work) string {
	return arn.LogGroup(w.Region, w.Account, w.Target.Physical).String()
}

func createLogGroup(ctx context.Context, w *step.Work) (step.Made, error) {
	name, properties := w.Target.Physical, w.Target.Properties
	in := &logs.CreateLogGroupInput{LogGroupName: name, Tags: step.Tags(properties["Tags"])}
	if len(in.Tags) == 0 {
		in.Tags = nil
	}
	if class, ok := properties["LogGroupClass"]; ok {
		of := step.Text(class)
		in.LogGroupClass = &of
	}
	if on, ok := properties["DeletionProtectionEnabled"].(bool); ok {
		in.DeletionProtectionEnabled = &on
	}
	if _, err := step.Ask[logs.Empty](ctx, w, "logs", "CreateLogGroup", w.Region, in); err != nil {
		ours, found := groupMadeBefore(ctx, w, err)
		if found != nil {
			return step.Made{}, found
		}
		if !ours {
			return step.Made{}, w.Taken(name)
		}
	}
	return step.Made{Physical: name, Attributes: map[string]any{"Arn": groupARN(w) + ":*"}}, retain(ctx, w, properties["RetentionInDays"])
}

// groupMadeBefore reports that a log group that is there was made by this very step, before
// the process began; else it gives why there can be none.
func groupMadeBefore(ctx context.Context, w *step.Work, why error) (bool, error) {
	if !step.Exists(why) {
		return false, why
	}
	if !w.Again {
		return false, nil
	}
	name := w.Target.Physical
	found, err := step.Ask[logs.DescribeLogGroupsOutput](ctx, w, "logs", "DescribeLogGroups", w.Region, &logs.DescribeLogGroupsInput{LogGroupNamePrefix: &name})
	if err != nil {
		return false, err
	}
	for i := range found.LogGroups {
		if g := &found.LogGroups[i]; g.LogGroupName == name {
			return g.CreationTime >= w.Began, nil
		}
	}
	return false, nil
}

// retain sets how long a log group's events are kept.
func retain(ctx context.Context, w *step.Work, days any) error {
	if days == nil {
		return nil
	}
	n, err := strconv.Atoi(step.Text(days))
	if err != nil {
		return &step.Error{Text: "RetentionInDays is no number", Code: "InvalidRequest"}
	}
	_, err = step.Ask[logs.Empty](ctx, w, "logs", "PutRetentionPolicy", w.Region, &logs.PutRetentionPolicyInput{LogGroupName: w.Target.Physical, RetentionInDays: &n})
	return err
}

func updateLogGroup(ctx context.Context, w *step.Work) (step.Made, error) {
	is := step.Made{Physical: w.Target.Physical, Attributes: w.Target.Attributes}
	was, now := w.Now, w.Target.Properties
	if before, after := was["RetentionInDays"], now["RetentionInDays"]; !resource.Same(before, after) {
		err := retain(ctx, w, after)
		if after == nil {
			_, err = step.Ask[logs.Empty](ctx, w, "logs", "DeleteRetentionPolicy", w.Region, &logs.GroupInput{LogGroupName: w.Target.Physical})
		}
		if err != nil {
			return is, err
		}
	}
	if before, after := was["DeletionProtectionEnabled"], now["DeletionProtectionEnabled"]; !resource.Same(before, after) {
		on, _ := after.(bool)
		in := &logs.PutLogGroupDeletionProtectionInput{LogGroupIdentifier: w.Target.Physical, DeletionProtectionEnabled: &on}
		if _, err := step.Ask[logs.Empty](ctx, w, "logs", "PutLogGroupDeletionProtection", w.Region, in); err != nil {
			return is, err
		}
	}
	set, gone := step.Retagged(was["Tags"], now["Tags"])
	if len(gone) > 0 {
		if _, err := step.Ask[logs.Empty](ctx, w, "logs", "UntagResource", w.Region, &logs.UntagResourceInput{ResourceArn: groupARN(w), TagKeys: gone}); err != nil {
			return is, err
		}
	}
	if len(set) > 0 {
		if _, err := step.Ask[logs.Empty](ctx, w, "logs", "TagResource", w.Region, &logs.TagResourceInput{ResourceArn: groupARN(w), Tags: set}); err != nil {
			return is, err
		}
	}
	return is, nil
}

func deleteLogGroup(ctx context.Context, w *step.Work) error {
	_, err := step.Ask[logs.Empty](ctx, w, "logs", "DeleteLogGroup", w.Region, &logs.GroupInput{LogGroupName: w.Target.Physical})
	if stacks.IsGone(err) {
		return nil
	}
	return err
}

func logStream(w *step.Work) *logs.StreamInput {
	return &logs.StreamInput{LogGroupName: step.Text(w.Target.Properties["LogGroupName"]), LogStreamName: w.Target.Physical}
}

func createLogStream(ctx context.Context, w *step.Work) (step.Made, error) {
	in := logStream(w)
	if _, err := step.Ask[logs.Empty](ctx, w, "logs", "CreateLogStream", w.Region, in); err != nil {
		if !step.Exists(err) {
			return step.Made{}, err
		}
		found, other := step.Ask[logs.DescribeLogStreamsOutput](ctx, w, "logs", "DescribeLogStreams", w.Region, &logs.DescribeLogStreamsInput{
			LogGroupName: &in.LogGroupName, LogStreamNamePrefix: &in.LogStreamName,
		})
		if other != nil {
			return step.Made{}, other
		}
		if len(found.LogStreams) == 0 || found.LogStreams[0].LogStreamName != in.LogStreamName || !w.Again || found.LogStreams[0].CreationTime < w.Began {
			return step.Made{}, w.Taken(in.LogStreamName)
		}
	}
	return step.Made{Physical: w.Target.Physical}, nil
}

func deleteLogStream(ctx context.Context, w *step.Work) error {
	_, err := step.Ask[logs.Empty](ctx, w, "logs", "DeleteLogStream", w.Region, logStream(w))
	return step.UnlessGone(err)
}
