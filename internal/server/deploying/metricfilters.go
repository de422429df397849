package deploying

import (
	"context"

	"godwit.dev/godwit/internal/api/logs"
	"godwit.dev/godwit/internal/decimal"
	"godwit.dev/godwit/internal/server/deploying/step"
)

func createMetricFilter(ctx context.Context, w *step.Work) (step.Made, error) {
	group, name := step.Text(w.Target.Properties["LogGroupName"]), w.Target.Physical
	found, err := step.Ask[logs.MetricFiltersOutput](ctx, w, "logs", "DescribeMetricFilters", w.Region, &logs.DescribeMetricFiltersInput{LogGroupName: &group, FilterNamePrefix: &name})
	if err != nil {
		return step.Made{}, err
	}
	if all := found.MetricFilters; len(all) > 0 && all[0].FilterName == name && (!w.Again || all[0].CreationTime < w.Began) { // the first of those that begin so
		return step.Made{}, w.Taken(name)
	}
	if err := putMetricFilter(ctx, w); err != nil {
		return step.Made{}, err
	}
	return step.Made{Physical: name}, nil
}

func updateMetricFilter(ctx context.Context, w *step.Work) (step.Made, error) {
	return step.Made{Physical: w.Target.Physical}, putMetricFilter(ctx, w)
}

// putMetricFilter makes a filter, or gives it other settings: an operation that may be repeated.
func putMetricFilter(ctx context.Context, w *step.Work) error {
	properties := w.Target.Properties
	pattern := step.Text(properties["FilterPattern"])
	in := &logs.PutMetricFilterInput{LogGroupName: step.Text(properties["LogGroupName"]), FilterName: w.Target.Physical, FilterPattern: &pattern}
	if on, ok := properties["ApplyOnTransformedLogs"].(bool); ok {
		in.ApplyOnTransformedLogs = &on
	}
	transformations, _ := properties["MetricTransformations"].([]any)
	for _, one := range transformations {
		of, ok := one.(map[string]any)
		if !ok {
			return &step.Error{Text: "Model validation failed: MetricTransformations are objects", Code: "InvalidRequest"}
		}
		t, err := transformation(of)
		if err != nil {
			return err
		}
		in.MetricTransformations = append(in.MetricTransformations, t)
	}
	_, err := step.Ask[logs.Empty](ctx, w, "logs", "PutMetricFilter", w.Region, in)
	return err
}

// transformation is a metric that a filter makes, of a template.
func transformation(of map[string]any) (t logs.MetricTransformation, err error) {
	for name, value := range of {
		text := step.Text(value)
		switch name {
		case "MetricName":
			t.MetricName = &text
		case "MetricNamespace":
			t.MetricNamespace = &text
		case "MetricValue":
			t.MetricValue = &text
		case "Unit":
			t.Unit = &text
		case "DefaultValue":
			number, ok := decimal.Parse(text)
			if !ok {
				return t, &step.Error{Text: "Model validation failed: DefaultValue is no number", Code: "InvalidRequest"}
			}
			t.DefaultValue = &number
		case "Dimensions":
			t.Dimensions = step.Tags(value) // a list of Key and Value, as tags are
			if list, ok := value.([]any); !ok || len(t.Dimensions) != len(list) {
				return t, &step.Error{Text: "Model validation failed: Dimensions are objects of a Key, which occurs once, and a Value", Code: "InvalidRequest"}
			}
		default:
			return t, &step.Error{Text: "Model validation failed: MetricTransformations have no " + name, Code: "InvalidRequest"}
		}
	}
	return t, nil
}

func deleteMetricFilter(ctx context.Context, w *step.Work) error {
	_, err := step.Ask[logs.Empty](ctx, w, "logs", "DeleteMetricFilter", w.Region, &logs.FilterInput{
		LogGroupName: step.Text(w.Target.Properties["LogGroupName"]), FilterName: w.Target.Physical,
	})
	return step.UnlessGone(err)
}
