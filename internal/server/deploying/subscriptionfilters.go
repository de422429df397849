package deploying

import (
	"context"

	"godwit.dev/godwit/internal/api/logs"
	"godwit.dev/godwit/internal/server/deploying/step"
)

func createSubscriptionFilter(ctx context.Context, w *step.Work) (step.Made, error) {
	group, name := step.Text(w.Target.Properties["LogGroupName"]), w.Target.Physical
	found, err := step.Ask[logs.SubscriptionFiltersOutput](ctx, w, "logs", "DescribeSubscriptionFilters", w.Region, &logs.DescribeSubscriptionFiltersInput{LogGroupName: group, FilterNamePrefix: &name})
	if err != nil {
		return step.Made{}, err
	}
	if all := found.SubscriptionFilters; len(all) > 0 && all[0].FilterName == name && (!w.Again || all[0].CreationTime < w.Began) { // the first of those that begin so
		return step.Made{}, w.Taken(name)
	}
	if err := putSubscriptionFilter(ctx, w); err != nil {
		return step.Made{}, err
	}
	return step.Made{Physical: name}, nil
}

func updateSubscriptionFilter(ctx context.Context, w *step.Work) (step.Made, error) {
	return step.Made{Physical: w.Target.Physical}, putSubscriptionFilter(ctx, w)
}

// putSubscriptionFilter makes a filter, or gives it other settings: an operation that may be repeated.
func putSubscriptionFilter(ctx context.Context, w *step.Work) error {
	properties := w.Target.Properties
	pattern := step.Text(properties["FilterPattern"])
	in := &logs.PutSubscriptionFilterInput{
		LogGroupName: step.Text(properties["LogGroupName"]), FilterName: w.Target.Physical, FilterPattern: &pattern, DestinationArn: step.Text(properties["DestinationArn"]),
		RoleArn: step.Optional(properties["RoleArn"]), Distribution: step.Optional(properties["Distribution"]), FieldSelectionCriteria: step.Optional(properties["FieldSelectionCriteria"]),
	}
	if on, ok := properties["ApplyOnTransformedLogs"].(bool); ok {
		in.ApplyOnTransformedLogs = &on
	}
	fields, _ := properties["EmitSystemFields"].([]any)
	for _, field := range fields {
		in.EmitSystemFields = append(in.EmitSystemFields, step.Text(field))
	}
	_, err := step.Ask[logs.Empty](ctx, w, "logs", "PutSubscriptionFilter", w.Region, in)
	return err
}

func deleteSubscriptionFilter(ctx context.Context, w *step.Work) error {
	_, err := step.Ask[logs.Empty](ctx, w, "logs", "DeleteSubscriptionFilter", w.Region, &logs.FilterInput{
		LogGroupName: step.Text(w.Target.Properties["LogGroupName"]), FilterName: w.Target.Physical,
	})
	return step.UnlessGone(err)
}
