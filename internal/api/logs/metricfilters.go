package logs

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/monitor/logs"
	"godwit.dev/godwit/internal/monitor/metrics"
)

// The limits of metric filters. Source: the API model, and the user guide of CloudWatch Logs.
const (
	maxMetricName  = metrics.MaxName
	maxMetricValue = 100
	maxTransforms  = 1
	maxDimensions  = 3
)

// PutMetricFilterInput is the request of PutMetricFilter.
type PutMetricFilterInput struct {
	LogGroupName              string                 `json:"logGroupName" wire:"required"`
	FilterName                string                 `json:"filterName" wire:"required"`
	FilterPattern             *string                `json:"filterPattern" wire:"required"`
	MetricTransformations     []MetricTransformation `json:"metricTransformations" wire:"required"`
	ApplyOnTransformedLogs    *bool                  `json:"applyOnTransformedLogs"`
	FieldSelectionCriteria    *string                `json:"fieldSelectionCriteria"`
	EmitSystemFieldDimensions []string               `json:"emitSystemFieldDimensions"`
}

// MetricTransformation is the metric that a filter makes.
type MetricTransformation struct {
	MetricName      *string           `json:"metricName"`
	MetricNamespace *string           `json:"metricNamespace"`
	MetricValue     *string           `json:"metricValue"`
	DefaultValue    *float64          `json:"defaultValue"`
	Unit            *string           `json:"unit"`
	Dimensions      map[string]string `json:"dimensions"`
}

// DescribeMetricFiltersInput is the request of DescribeMetricFilters.
type DescribeMetricFiltersInput struct {
	LogGroupName     *string `json:"logGroupName"`
	FilterNamePrefix *string `json:"filterNamePrefix"`
	MetricName       *string `json:"metricName"`
	MetricNamespace  *string `json:"metricNamespace"`
	NextToken        *string `json:"nextToken"`
	Limit            *int    `json:"limit"`
}

// MetricFilter is a filter of a group.
type MetricFilter struct {
	FilterName             string                 `json:"filterName"`
	FilterPattern          *string                `json:"filterPattern"`
	MetricTransformations  []MetricTransformation `json:"metricTransformations"`
	CreationTime           int64                  `json:"creationTime"`
	LogGroupName           string                 `json:"logGroupName"`
	ApplyOnTransformedLogs bool                   `json:"applyOnTransformedLogs"`
}

// MetricFiltersOutput is the answer of DescribeMetricFilters.
type MetricFiltersOutput struct {
	MetricFilters []MetricFilter `json:"metricFilters"`
	NextToken     string         `json:"nextToken"`
}

// putMetricFilter answers PutMetricFilter.
func (s *Service) putMetricFilter(_ context.Context, call *api.Call, in *PutMetricFilterInput) (*Empty, error) {
	f, err := readMetricFilter(in)
	if err != nil {
		return nil, err
	}
	a, err := group(call, in.LogGroupName)
	if err != nil {
		return nil, err
	}
	if err := s.there(call, in.LogGroupName); err != nil {
		return nil, err
	}
	if err := f.Check(); err != nil {
		return nil, invalid("%s", err)
	}
	return nil, s.store.PutFilter(a, *f)
}

// readMetricFilter validates a filter, but for its pattern and selectors.
func readMetricFilter(in *PutMetricFilterInput) (*logs.MetricFilter, error) {
	if err := checkFilterName(in.FilterName); err != nil {
		return nil, err
	}
	if err := short("filterPattern", api.Deref(in.FilterPattern), maxFilterPattern); err != nil {
		return nil, err
	}
	if len(in.MetricTransformations) > maxTransforms {
		all := make([]string, min(len(in.MetricTransformations), 20))
		for i := range all {
			all[i] = in.MetricTransformations[i].show()
		}
		return nil, invalid("1 validation error detected: Value '[%s]' at 'metricTransformations' failed to satisfy constraint: "+atMost, strings.Join(all, ", "), maxTransforms)
	}
	if len(in.MetricTransformations) == 0 {
		return nil, constraint("metricTransformations", "[]", fmt.Sprintf(atLeast, 1))
	}
	t := &in.MetricTransformations[0]
	for _, m := range []struct {
		member string
		value  *string
		most   int
	}{{"metricName", t.MetricName, maxMetricName}, {"metricNamespace", t.MetricNamespace, maxMetricName}, {"metricValue", t.MetricValue, maxMetricValue}} {
		if m.value == nil {
			return nil, null("metricTransformations.1.member." + m.member)
		}
		if err := short(m.member, *m.value, m.most); err != nil {
			return nil, err
		}
	}
	for _, n := range []struct{ name, not string }{{in.FilterName, ":*"}, {*t.MetricName, ":*$"}, {*t.MetricNamespace, ":*$"}} {
		if n.name == "" || strings.ContainsAny(n.name, n.not) {
			return nil, invalid("Invalid metric filter: %q is no name: it is not empty, and has none of %q.", n.name, n.not)
		}
	}
	switch {
	case len(t.Dimensions) > maxDimensions:
		return nil, invalid("Invalid metric transformation: there can be at most %d dimensions.", maxDimensions)
	case len(t.Dimensions) > 0 && t.DefaultValue != nil:
		return nil, invalid("Invalid metric transformation: dimensions and default value are mutually exclusive properties.")
	case metrics.Reserved(*t.MetricNamespace):
		return nil, invalid("Invalid metric transformation: the namespace must not begin with AWS/.")
	case in.ApplyOnTransformedLogs != nil && *in.ApplyOnTransformedLogs, in.FieldSelectionCriteria != nil, len(in.EmitSystemFieldDimensions) > 0:
		return nil, invalid("Transformed logs, and criteria and dimensions of system fields, are not built yet.")
	}
	if t.DefaultValue != nil && !metrics.ValidValue(*t.DefaultValue) {
		return nil, invalid("Invalid metric transformation: a metric cannot have the default value.")
	}
	for name, selector := range t.Dimensions {
		if len(selector) > maxMetricName || !(metrics.Dimension{Name: name, Value: selector}).Valid() {
			return nil, invalid("Invalid metric transformation: the name of a dimension is ASCII text that is not blank and does not begin with a colon; it and the selector have at most %d characters.", maxMetricName)
		}
	}
	if err := oneOf("unit", t.Unit, metrics.AllUnits...); err != nil {
		return nil, err
	}
	return &logs.MetricFilter{
		Name: in.FilterName, Pattern: *in.FilterPattern, Namespace: *t.MetricNamespace, Metric: *t.MetricName, Value: *t.MetricValue,
		Default: t.DefaultValue, Unit: api.Deref(t.Unit), By: t.Dimensions,
	}, nil
}

// describeMetricFilters answers DescribeMetricFilters, by group and name.
func (s *Service) describeMetricFilters(_ context.Context, call *api.Call, in *DescribeMetricFiltersInput) (*MetricFiltersOutput, error) {
	if in.FilterNamePrefix != nil {
		if err := short("filterNamePrefix", *in.FilterNamePrefix, maxFilterName); err != nil {
			return nil, err
		}
	}
	if (in.MetricName == nil) != (in.MetricNamespace == nil) {
		return nil, invalid("metricName and metricNamespace go together.")
	}
	most, err := limit(in.Limit, maxListed)
	if err != nil {
		return nil, err
	}
	const list = "DescribeMetricFilters"
	after, err := readListToken(list, in.NextToken)
	if err != nil {
		return nil, err
	}
	out := &MetricFiltersOutput{MetricFilters: []MetricFilter{}}
	from, name, _ := strings.Cut(after, "\x00") // the group and the filter after which it goes on
	return out, s.eachFiltered(call, in.LogGroupName, from, func(of string, filters []logs.MetricFilter) (more bool) {
		for i := range filters {
			f := &filters[i]
			switch {
			case of == from && f.Name <= name, !strings.HasPrefix(f.Name, api.Deref(in.FilterNamePrefix)),
				in.MetricName != nil && (f.Metric != *in.MetricName || f.Namespace != *in.MetricNamespace):
				continue
			case len(out.MetricFilters) == most:
				last := &out.MetricFilters[most-1]
				out.NextToken = listToken(list, last.LogGroupName+"\x00"+last.FilterName)
				return false
			}
			out.MetricFilters = append(out.MetricFilters, shownFilter(of, f))
		}
		return true
	})
}

// eachFiltered calls f with the groups that have filters, by name, from one on: one group, or all of
// them.
func (s *Service) eachFiltered(call *api.Call, one *string, from string, f func(name string, filters []logs.MetricFilter) (more bool)) error {
	if one != nil {
		a, err := group(call, *one)
		if err != nil {
			return err
		}
		filters, err := s.store.Filters(a)
		if err == nil {
			f(*one, filters)
		}
		return err
	}
	of := logs.GroupFilter{Region: call.Region, Account: call.Account, Filtered: true}
	if from != "" { // that group itself has more, perhaps
		a, err := group(call, from)
		if err != nil {
			return err
		}
		if filters, err := s.store.Filters(a); err == nil && !f(from, filters) {
			return nil
		}
	}
	for page := (logs.Page{After: from, Limit: maxListed}); ; {
		found, next, err := s.store.Groups(of, page)
		if err != nil {
			return err
		}
		for i := range found {
			if name, _ := found[i].ARN.LogGroupName(); !f(name, found[i].Filters) {
				return nil
			}
		}
		if next == "" {
			return nil
		}
		page.After = next
	}
}

func shownFilter(group string, f *logs.MetricFilter) MetricFilter {
	t := MetricTransformation{MetricName: &f.Metric, MetricNamespace: &f.Namespace, MetricValue: &f.Value, DefaultValue: f.Default, Dimensions: f.By}
	if f.Unit != "" {
		t.Unit = &f.Unit
	}
	return MetricFilter{
		FilterName: f.Name, FilterPattern: &f.Pattern, MetricTransformations: []MetricTransformation{t}, CreationTime: f.Created, LogGroupName: group,
	}
}

// deleteMetricFilter answers DeleteMetricFilter.
func (s *Service) deleteMetricFilter(_ context.Context, call *api.Call, in *FilterInput) (*Empty, error) {
	if err := cmp.Or(checkFilter(in), checkFilterName(in.FilterName)); err != nil {
		return nil, err
	}
	a, err := group(call, in.LogGroupName)
	if err != nil {
		return nil, err
	}
	return nil, s.store.DeleteFilter(a, in.FilterName)
}

// show is a transformation in AWS's messages.
func (t *MetricTransformation) show() string {
	value, dimensions := "null", "null"
	if t.DefaultValue != nil {
		value = fmt.Sprint(*t.DefaultValue)
		if !strings.ContainsAny(value, ".e") {
			value += ".0"
		}
	}
	if t.Dimensions != nil {
		pairs := make([]string, 0, len(t.Dimensions))
		for _, name := range slices.Sorted(maps.Keys(t.Dimensions)) {
			pairs = append(pairs, name+"="+t.Dimensions[name])
		}
		dimensions = "{" + strings.Join(pairs, ", ") + "}"
	}
	return fmt.Sprintf("MetricTransformation(metricName=%s, metricNamespace=%s, metricValue=%s, defaultValue=%s, unit=%s, dimensions=%s)",
		orNull(t.MetricName), orNull(t.MetricNamespace), orNull(t.MetricValue), value, orNull(t.Unit), dimensions)
}

// checkFilter refuses names of a metric filter that are too long.
func checkFilter(in *FilterInput) error {
	if err := checkLong(in.LogGroupName); err != nil {
		return err
	}
	return short("filterName", in.FilterName, maxFilterName)
}
