package logs

import "testing"

func TestTransformationsAreShown(t *testing.T) {
	name, half := "m", 0.5
	for want, m := range map[string]MetricTransformation{
		"MetricTransformation(metricName=m, metricNamespace=null, metricValue=null, defaultValue=0.5, unit=null, dimensions=null)": {
			MetricName: &name, DefaultValue: &half,
		},
		"MetricTransformation(metricName=m, metricNamespace=null, metricValue=null, defaultValue=null, unit=null, dimensions={app=$.a b, part=[x:y]})": {
			MetricName: &name, Dimensions: map[string]string{"part": "[x:y]", "app": "$.a b"},
		},
		"MetricTransformation(metricName=m, metricNamespace=null, metricValue=null, defaultValue=null, unit=null, dimensions={})": {
			MetricName: &name, Dimensions: map[string]string{},
		},
	} {
		if got := m.show(); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}
