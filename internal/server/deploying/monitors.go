package deploying

import (
	"context"
	"encoding/json"
	"maps"
	"strconv"

	"godwit.dev/godwit/internal/api/cloudwatch"
	"godwit.dev/godwit/internal/api/logs"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
	"godwit.dev/godwit/internal/stack/resource"
)

func (w *work) alarmARN() string {
	return arn.ARN{Service: "cloudwatch", Region: w.Region, Account: w.Account, Resource: "alarm:" + w.Target.Physical}.String()
}

func createAlarm(ctx context.Context, w *work) (made, error) {
	t, _ := resource.Find(w.Target.Type)
	if name := w.Target.Physical; t.Named(w.Target.Properties) != "" && !w.Again {
		found, err := ask[cloudwatch.DescribeAlarmsOutput](ctx, w, "monitoring", "DescribeAlarms", w.Region, &cloudwatch.DescribeAlarmsInput{AlarmNames: []string{name}})
		if err != nil {
			return made{}, err
		}
		if len(found.MetricAlarms) > 0 {
			return made{}, w.taken(name)
		}
	}
	return putAlarm(ctx, w)
}

// putAlarm makes an alarm, or gives it other settings: an operation that may be repeated.
func putAlarm(ctx context.Context, w *work) (made, error) {
	properties := maps.Clone(w.Target.Properties)
	properties["AlarmName"] = w.Target.Physical
	if w.Action == stack.Update {
		delete(properties, "Tags") // which the operation does not take of an alarm that is there
	}
	in := &cloudwatch.PutMetricAlarmInput{} // whose members are called as the properties
	document, err := json.Marshal(properties)
	if err == nil {
		err = json.Unmarshal(document, in)
	}
	if err != nil {
		return made{}, &handlerError{"Model validation failed: " + err.Error(), "InvalidRequest"}
	}
	if _, err := ask[cloudwatch.PutMetricAlarmOutput](ctx, w, "monitoring", "PutMetricAlarm", w.Region, in); err != nil {
		return made{}, err
	}
	return made{w.Target.Physical, map[string]any{"Arn": w.alarmARN()}}, nil
}

func updateAlarm(ctx context.Context, w *work) (made, error) {
	is := made{w.Target.Physical, w.Target.Attributes}
	if _, err := putAlarm(ctx, w); err != nil {
		return is, err
	}
	set, gone := retagged(w.Now["Tags"], w.Target.Properties["Tags"])
	own := w.alarmARN()
	if len(gone) > 0 {
		if _, err := ask[cloudwatch.UntagResourceOutput](ctx, w, "monitoring", "UntagResource", w.Region, &cloudwatch.UntagResourceInput{ResourceARN: &own, TagKeys: gone}); err != nil {
			return is, err
		}
	}
	if len(set) > 0 {
		in := &cloudwatch.TagResourceInput{ResourceARN: &own}
		for key, value := range set {
			in.Tags = append(in.Tags, cloudwatch.Tag{Key: &key, Value: &value})
		}
		if _, err := ask[cloudwatch.TagResourceOutput](ctx, w, "monitoring", "TagResource", w.Region, in); err != nil {
			return is, err
		}
	}
	return is, nil
}

func deleteAlarm(ctx context.Context, w *work) error {
	_, err := ask[cloudwatch.DeleteAlarmsOutput](ctx, w, "monitoring", "DeleteAlarms", w.Region, &cloudwatch.DeleteAlarmsInput{AlarmNames: []string{w.Target.Physical}})
	if stacks.IsGone(err) {
		return nil
	}
	return err
}

func (w *work) groupARN() string {
	return arn.LogGroup(w.Region, w.Account, w.Target.Physical).String()
}

func createLogGroup(ctx context.Context, w *work) (made, error) {
	name, properties := w.Target.Physical, w.Target.Properties
	in := &logs.CreateLogGroupInput{LogGroupName: name, Tags: tags(properties["Tags"])}
	if len(in.Tags) == 0 {
		in.Tags = nil
	}
	if class, ok := properties["LogGroupClass"]; ok {
		of := text(class)
		in.LogGroupClass = &of
	}
	if on, ok := properties["DeletionProtectionEnabled"].(bool); ok {
		in.DeletionProtectionEnabled = &on
	}
	if _, err := ask[logs.Empty](ctx, w, "logs", "CreateLogGroup", w.Region, in); err != nil {
		ours, found := w.groupMadeBefore(ctx, err)
		if found != nil {
			return made{}, found
		}
		if !ours {
			return made{}, w.taken(name)
		}
	}
	return made{name, map[string]any{"Arn": w.groupARN() + ":*"}}, w.retain(ctx, properties["RetentionInDays"])
}

// groupMadeBefore reports that a log group that is there was made by this very step, before
// the process began; else it gives why there can be none.
func (w *work) groupMadeBefore(ctx context.Context, why error) (bool, error) {
	if !exists(why) {
		return false, why
	}
	if !w.Again {
		return false, nil
	}
	name := w.Target.Physical
	found, err := ask[logs.DescribeLogGroupsOutput](ctx, w, "logs", "DescribeLogGroups", w.Region, &logs.DescribeLogGroupsInput{LogGroupNamePrefix: &name})
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
func (w *work) retain(ctx context.Context, days any) error {
	if days == nil {
		return nil
	}
	n, err := strconv.Atoi(text(days))
	if err != nil {
		return &handlerError{"RetentionInDays is no number", "InvalidRequest"}
	}
	_, err = ask[logs.Empty](ctx, w, "logs", "PutRetentionPolicy", w.Region, &logs.PutRetentionPolicyInput{LogGroupName: w.Target.Physical, RetentionInDays: &n})
	return err
}

func updateLogGroup(ctx context.Context, w *work) (made, error) {
	is := made{w.Target.Physical, w.Target.Attributes}
	was, now := w.Now, w.Target.Properties
	if before, after := was["RetentionInDays"], now["RetentionInDays"]; !resource.Same(before, after) {
		err := w.retain(ctx, after)
		if after == nil {
			_, err = ask[logs.Empty](ctx, w, "logs", "DeleteRetentionPolicy", w.Region, &logs.GroupInput{LogGroupName: w.Target.Physical})
		}
		if err != nil {
			return is, err
		}
	}
	if before, after := was["DeletionProtectionEnabled"], now["DeletionProtectionEnabled"]; !resource.Same(before, after) {
		on, _ := after.(bool)
		in := &logs.PutLogGroupDeletionProtectionInput{LogGroupIdentifier: w.Target.Physical, DeletionProtectionEnabled: &on}
		if _, err := ask[logs.Empty](ctx, w, "logs", "PutLogGroupDeletionProtection", w.Region, in); err != nil {
			return is, err
		}
	}
	set, gone := retagged(was["Tags"], now["Tags"])
	if len(gone) > 0 {
		if _, err := ask[logs.Empty](ctx, w, "logs", "UntagResource", w.Region, &logs.UntagResourceInput{ResourceArn: w.groupARN(), TagKeys: gone}); err != nil {
			return is, err
		}
	}
	if len(set) > 0 {
		if _, err := ask[logs.Empty](ctx, w, "logs", "TagResource", w.Region, &logs.TagResourceInput{ResourceArn: w.groupARN(), Tags: set}); err != nil {
			return is, err
		}
	}
	return is, nil
}

func deleteLogGroup(ctx context.Context, w *work) error {
	_, err := ask[logs.Empty](ctx, w, "logs", "DeleteLogGroup", w.Region, &logs.GroupInput{LogGroupName: w.Target.Physical})
	if stacks.IsGone(err) {
		return nil
	}
	return err
}

func (w *work) logStream() *logs.StreamInput {
	return &logs.StreamInput{LogGroupName: text(w.Target.Properties["LogGroupName"]), LogStreamName: w.Target.Physical}
}

func createLogStream(ctx context.Context, w *work) (made, error) {
	in := w.logStream()
	if _, err := ask[logs.Empty](ctx, w, "logs", "CreateLogStream", w.Region, in); err != nil {
		if !exists(err) {
			return made{}, err
		}
		found, other := ask[logs.DescribeLogStreamsOutput](ctx, w, "logs", "DescribeLogStreams", w.Region, &logs.DescribeLogStreamsInput{
			LogGroupName: &in.LogGroupName, LogStreamNamePrefix: &in.LogStreamName,
		})
		if other != nil {
			return made{}, other
		}
		if len(found.LogStreams) == 0 || found.LogStreams[0].LogStreamName != in.LogStreamName || !w.Again || found.LogStreams[0].CreationTime < w.Began {
			return made{}, w.taken(in.LogStreamName)
		}
	}
	return made{physical: w.Target.Physical}, nil
}

func deleteLogStream(ctx context.Context, w *work) error {
	_, err := ask[logs.Empty](ctx, w, "logs", "DeleteLogStream", w.Region, w.logStream())
	return unlessGone(err)
}
