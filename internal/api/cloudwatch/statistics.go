package cloudwatch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/monitor/metrics"
)

// The limits of GetMetricStatistics. Source: CloudWatch's API reference and model.
const (
	maxDatapoints = 1440
	maxStatistics = 5
	maxExtended   = 10
)

var basicStatistics = []string{"SampleCount", "Average", "Sum", "Minimum", "Maximum"}

func atLeastOne(a, b string) error {
	return fault.Newf(fault.InvalidParameterCombination, "At least one of the parameters %s and %s must be specified.", a, b)
}

// getMetricStatistics answers GetMetricStatistics: a datapoint for each period with data,
// and, if the request has no unit, for each unit, ordered by time. Periods begin at
// StartTime, which is rounded down by its age and the period.
func (s *Service) getMetricStatistics(_ context.Context, call *api.Call, in *GetMetricStatisticsInput) (*GetMetricStatisticsOutput, error) {
	m, stats, err := readStatisticsQuery(call, in)
	if err != nil {
		return nil, err
	}
	period, err := readPeriod("Period", *in.Period)
	if err != nil {
		return nil, err
	}
	from, to := in.StartTime.Std(), in.EndTime.Std()
	if from.Unix() >= to.Unix() {
		return nil, invalid("The parameter StartTime must be less than the parameter EndTime.")
	}
	if asked := (to.Unix() - from.Unix()) / int64(*in.Period); asked > maxDatapoints {
		return nil, fault.Newf(fault.InvalidParameterCombination,
			"You have requested up to %d datapoints, which exceeds the limit of %d. "+
				"You may reduce the datapoints requested by increasing Period, or decreasing the time range.", asked, maxDatapoints)
	}
	wanted := []string{api.Deref(in.Unit)}
	if in.Unit == nil {
		if wanted, err = s.metrics.Units(m); err != nil {
			return nil, err
		}
	}
	out := &GetMetricStatisticsOutput{Label: m.Name, Datapoints: []Datapoint{}}
	start, end := span(call.Time, from, to, period)
	for _, unit := range wanted {
		if err := s.metrics.Each(m, unit, start, end, period, func(start int64, set *metrics.Set) {
			if point, ok := datapoint(start, set, unit, stats); ok {
				out.Datapoints = append(out.Datapoints, point)
			}
		}); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(out.Datapoints, func(a, b Datapoint) int { return int(a.Timestamp/1000 - b.Timestamp/1000) })
	return out, nil
}

func readStatisticsQuery(call *api.Call, in *GetMetricStatisticsInput) (m metrics.Metric, stats []metrics.Statistic, err error) {
	if err := checkNamespace("Namespace", in.Namespace); err != nil {
		return m, nil, err
	}
	if err := checkText("MetricName", in.MetricName, maxName); err != nil {
		return m, nil, err
	}
	dimensions, err := readDimensions("Dimensions", in.Dimensions)
	if err != nil {
		return m, nil, err
	}
	switch {
	case in.StartTime == nil:
		return m, nil, missing("StartTime")
	case in.EndTime == nil:
		return m, nil, missing("EndTime")
	case in.Period == nil:
		return m, nil, missing("Period")
	}
	if err := checkUnit("Unit", in.Unit); err != nil {
		return m, nil, err
	}
	switch {
	case len(in.Statistics) == 0 && len(in.ExtendedStatistics) == 0:
		return m, nil, fault.New(fault.InvalidParameterCombination, "Must specify either Statistics or ExtendedStatistics")
	case len(in.Statistics) > 0 && len(in.ExtendedStatistics) > 0:
		return m, nil, exclusive("Statistics", "ExtendedStatistics")
	case len(in.Statistics) > maxStatistics:
		return m, nil, tooMany("Statistics", maxStatistics)
	case len(in.ExtendedStatistics) > maxExtended:
		return m, nil, tooMany("ExtendedStatistics", maxExtended)
	}
	for i, name := range in.Statistics {
		if !slices.Contains(basicStatistics, name) {
			return m, nil, notInSet(fmt.Sprintf("Statistics.member.%d", i+1), basicStatistics)
		}
	}
	for i, name := range slices.Concat(in.Statistics, in.ExtendedStatistics) {
		stat, ok := metrics.ParseStatistic(name)
		if !ok || len(in.Statistics) == 0 && !stat.Extended() {
			return m, nil, invalid("The value %s for parameter ExtendedStatistics.member.%d is not supported.", shorten(name), i+1)
		}
		stats = append(stats, stat)
	}
	return metrics.Metric{Scope: scope(call), Namespace: *in.Namespace, Name: *in.MetricName, Dimensions: dimensions}, stats, nil
}

// span is the range that is read for a range of time, in epoch seconds. It begins with the
// minute of from, or, for older data, with its five minutes or its hour, and ends with the
// minute of to. For periods below a minute both ends are rounded down to multiples of the
// period.
func span(now, from, to time.Time, period int64) (start, end int64) {
	if period%60 != 0 {
		return from.Unix() / period * period, to.Unix() / period * period
	}
	return metrics.Kept(metrics.Minute(from), metrics.Minute(now)) * 60, metrics.Minute(to.Add(time.Minute-1)) * 60
}

// datapoint computes the statistics of the period that begins at start; ok is false if there
// are no values.
func datapoint(start int64, set *metrics.Set, unit string, stats []metrics.Statistic) (point Datapoint, ok bool) {
	point = Datapoint{Timestamp: api.TimeOf(time.Unix(start, 0)), Unit: unit}
	for _, stat := range stats {
		value, there := stat.Of(set)
		if !there {
			continue
		}
		ok = true
		switch stat.Text {
		case "SampleCount":
			point.SampleCount = &value
		case "Average":
			point.Average = &value
		case "Sum":
			point.Sum = &value
		case "Minimum":
			point.Minimum = &value
		case "Maximum":
			point.Maximum = &value
		default:
			if point.ExtendedStatistics == nil {
				point.ExtendedStatistics = make(map[string]float64, len(stats))
			}
			point.ExtendedStatistics[stat.Text] = value
		}
	}
	return point, ok
}
