package drifting

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"godwit.dev/godwit/internal/api/cloudwatch"
	"godwit.dev/godwit/internal/api/logs"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/stack/resource"
)

func alarm(ctx context.Context, r *reading) error {
	out, err := ask[cloudwatch.DescribeAlarmsOutput](ctx, r, "monitoring", "DescribeAlarms", r.Region, &cloudwatch.DescribeAlarmsInput{AlarmNames: []string{r.Physical}})
	if err != nil {
		return err
	}
	if len(out.MetricAlarms) == 0 {
		return errGone
	}
	r.members(&out.MetricAlarms[0],
		"ActionsEnabled", "AlarmActions", "AlarmDescription", "ComparisonOperator", "DatapointsToAlarm", "Dimensions", "EvaluateLowSampleCountPercentile",
		"EvaluationPeriods", "ExtendedStatistic", "InsufficientDataActions", "MetricName", "Metrics", "Namespace", "OKActions", "Period", "Statistic",
		"Threshold", "ThresholdMetricId", "TreatMissingData", "Unit")
	r.returning()
	return alarmTags(ctx, r)
}

func compositeAlarm(ctx context.Context, r *reading) error {
	out, err := ask[cloudwatch.DescribeAlarmsOutput](ctx, r, "monitoring", "DescribeAlarms", r.Region, &cloudwatch.DescribeAlarmsInput{
		AlarmNames: []string{r.Physical}, AlarmTypes: []string{"CompositeAlarm"},
	})
	if err != nil {
		return err
	}
	if len(out.CompositeAlarms) == 0 {
		return errGone
	}
	r.members(&out.CompositeAlarms[0],
		"ActionsEnabled", "ActionsSuppressor", "ActionsSuppressorExtensionPeriod", "ActionsSuppressorWaitPeriod", "AlarmActions", "AlarmDescription",
		"AlarmRule", "InsufficientDataActions", "OKActions")
	return alarmTags(ctx, r)
}

// alarmTags reads the tags of an alarm of either kind.
func alarmTags(ctx context.Context, r *reading) error {
	if r.Properties["Tags"] == nil {
		return nil
	}
	own := arn.Alarm(r.Region, r.Account, r.Physical).String()
	tags, err := ask[cloudwatch.ListTagsForResourceOutput](ctx, r, "monitoring", "ListTagsForResource", r.Region, &cloudwatch.ListTagsForResourceInput{ResourceARN: &own})
	if err != nil {
		return err
	}
	all := map[string]string{}
	for _, t := range tags.Tags {
		all[*t.Key] = *t.Value
	}
	r.tagged(all)
	return nil
}

// returning takes the ReturnData that queries have by default out of an alarm's actual Metrics
// where the template leaves it out.
func (r *reading) returning() {
	silent := map[any]bool{}
	wanted, _ := r.Properties["Metrics"].([]any)
	for _, q := range wanted {
		if q, ok := q.(map[string]any); ok && q["ReturnData"] == nil {
			id, _ := resource.Scalar(q["Id"])
			silent[id] = true
		}
	}
	actual, _ := r.actual["Metrics"].([]any)
	for _, q := range actual {
		if q, ok := q.(map[string]any); ok && silent[q["Id"]] && q["ReturnData"] == true {
			delete(q, "ReturnData")
		}
	}
}

func logGroup(ctx context.Context, r *reading) error {
	out, err := ask[logs.DescribeLogGroupsOutput](ctx, r, "logs", "DescribeLogGroups", r.Region, &logs.DescribeLogGroupsInput{LogGroupNamePrefix: &r.Physical})
	if err != nil {
		return err
	}
	var found *logs.LogGroup
	for i := range out.LogGroups { // the first of those that begin so
		if out.LogGroups[i].LogGroupName == r.Physical {
			found = &out.LogGroups[i]
		}
	}
	if found == nil {
		return errGone
	}
	delete(r.actual, "RetentionInDays")
	if found.RetentionInDays != nil {
		r.actual["RetentionInDays"] = json.Number(strconv.Itoa(*found.RetentionInDays))
	}
	if r.Properties["DeletionProtectionEnabled"] != nil {
		r.actual["DeletionProtectionEnabled"] = found.DeletionProtectionEnabled != nil && *found.DeletionProtectionEnabled
	}
	if r.Properties["Tags"] == nil {
		return nil
	}
	tags, err := ask[logs.TagsOutput](ctx, r, "logs", "ListTagsForResource", r.Region, &logs.ListTagsForResourceInput{
		ResourceArn: arn.LogGroup(r.Region, r.Account, r.Physical).String(),
	})
	if err == nil {
		r.tagged(tags.Tags)
	}
	return err
}

func logStream(ctx context.Context, r *reading) error {
	of := r.text("LogGroupName")
	out, err := ask[logs.DescribeLogStreamsOutput](ctx, r, "logs", "DescribeLogStreams", r.Region, &logs.DescribeLogStreamsInput{
		LogGroupName: &of, LogStreamNamePrefix: &r.Physical,
	})
	if err == nil && (len(out.LogStreams) == 0 || out.LogStreams[0].LogStreamName != r.Physical) {
		err = errGone
	}
	return err
}

func metricFilter(ctx context.Context, r *reading) error {
	of := r.text("LogGroupName")
	out, err := ask[logs.MetricFiltersOutput](ctx, r, "logs", "DescribeMetricFilters", r.Region, &logs.DescribeMetricFiltersInput{
		LogGroupName: &of, FilterNamePrefix: &r.Physical,
	})
	if err != nil {
		return err
	}
	if len(out.MetricFilters) == 0 || out.MetricFilters[0].FilterName != r.Physical {
		return errGone
	}
	found := &out.MetricFilters[0]
	r.actual["FilterPattern"] = *found.FilterPattern
	var all []any
	for i := range found.MetricTransformations {
		t := &found.MetricTransformations[i]
		actual := map[string]any{"MetricName": *t.MetricName, "MetricNamespace": *t.MetricNamespace, "MetricValue": *t.MetricValue}
		if t.Unit != nil {
			actual["Unit"] = *t.Unit
		}
		if t.DefaultValue != nil {
			actual["DefaultValue"] = json.Number(strconv.FormatFloat(*t.DefaultValue, 'f', -1, 64))
		}
		if len(t.Dimensions) > 0 {
			var dimensions []any
			for _, name := range slices.Sorted(maps.Keys(t.Dimensions)) {
				dimensions = append(dimensions, map[string]any{"Key": name, "Value": t.Dimensions[name]})
			}
			actual["Dimensions"] = dimensions
		}
		all = append(all, actual)
	}
	r.actual["MetricTransformations"] = all
	return nil
}

func subscriptionFilter(ctx context.Context, r *reading) error {
	out, err := ask[logs.SubscriptionFiltersOutput](ctx, r, "logs", "DescribeSubscriptionFilters", r.Region, &logs.DescribeSubscriptionFiltersInput{
		LogGroupName: r.text("LogGroupName"), FilterNamePrefix: &r.Physical,
	})
	if err != nil {
		return err
	}
	if len(out.SubscriptionFilters) == 0 || out.SubscriptionFilters[0].FilterName != r.Physical {
		return errGone
	}
	found := &out.SubscriptionFilters[0]
	r.actual["FilterPattern"], r.actual["DestinationArn"] = *found.FilterPattern, found.DestinationArn
	for name, value := range map[string]string{"RoleArn": found.RoleArn, "Distribution": found.Distribution} {
		switch {
		case r.Properties[name] == nil && name == "Distribution": // it has a default
		case value == "":
			delete(r.actual, name)
		default:
			r.actual[name] = value
		}
	}
	return nil
}
