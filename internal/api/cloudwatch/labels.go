package cloudwatch

import (
	"strconv"
	"strings"
	"time"

	"godwit.dev/godwit/internal/metricmath"
	"godwit.dev/godwit/internal/metricmath/label"
	"godwit.dev/godwit/internal/monitor/metrics"
)

// readZone validates the time zone of labels, which is UTC if there is none.
func readZone(in *LabelOptions) (*time.Location, error) {
	if in == nil || in.Timezone == nil {
		return time.UTC, nil
	}
	zone, ok := label.Zone(*in.Timezone)
	if !ok {
		return nil, unfit("The value %s for parameter LabelOptions.Timezone must be + or - and four digits, such as +0130.", shorten(*in.Timezone))
	}
	return zone, nil
}

// dynamicLabel is the label of a series in the result of a query whose label has values.
func (a *asked) dynamicLabel(q *query, s *metricmath.Series) string {
	return q.dynamic.Text(&label.Series{
		Label: s.Label, Points: s.Points, Now: a.now.In(a.zone),
		Property: func(name string) (string, bool) { return a.property(s, name) },
	})
}

// property is a property of the metric that a series is of.
func (a *asked) property(s *metricmath.Series, name string) (value string, ok bool) {
	switch name {
	case "AccountId":
		return a.scope.Account, true
	case "Region":
		return a.scope.Region, true
	case "Period":
		return strconv.FormatInt(s.Period, 10), true
	}
	of := a.metricOf(s)
	if of == nil {
		return "", false
	}
	switch name {
	case "Namespace":
		return of.metric.Namespace, true
	case "MetricName":
		return of.metric.Name, true
	case "Stat":
		return of.stat.Text, true
	}
	dimension, ok := strings.CutPrefix(name, "Dim.")
	if !ok {
		return "", false
	}
	for _, d := range metrics.SplitDimensions(of.metric.Dimensions) {
		if d.Name == dimension {
			return d.Value, true
		}
	}
	return "", false
}

// metricOf is the query of the metric that a series is of, or what a search has made of one; nil: it is of
// several, or of none.
func (a *asked) metricOf(s *metricmath.Series) *query {
	switch n := s.Of - 1; {
	case n < 0:
		return nil
	case n < len(a.queries):
		return &a.queries[n]
	default:
		return &a.searching.found[n-len(a.queries)]
	}
}
