package alarms

import (
	"errors"
	"fmt"
	"time"

	"godwit.dev/godwit/internal/alarm"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/metricmath"
	"godwit.dev/godwit/internal/monitor/metrics"
)

// points are the latest periods before a time, in epoch seconds, of what an alarm watches, the
// newest first.
func (e *Engine) points(a *alarm.Alarm, end int64) ([]alarm.Point, error) {
	n, period := a.Looked(), int64(a.Period)
	from := end - int64(n)*period
	points := make([]alarm.Point, n)
	for i := range points {
		points[i].At = time.Unix(end-int64(i+1)*period, 0).UTC()
	}
	set := func(start int64, samples, value float64) {
		p := &points[n-1-int((start-from)/period)]
		p.Real, p.Samples, p.Value = true, samples, value
	}
	over := metrics.Periods{From: from, To: end, Length: period}
	var err error
	if len(a.Metrics) == 0 {
		err = e.read(a, a.Stat(), over, set)
	} else {
		var values []metricmath.Point
		values, err = e.Values(a, over)
		for _, v := range values {
			set(v.At, 0, v.Value)
		}
	}
	if fault.KindOf(err) == fault.ValidationFailed || errors.Is(err, errStatistic) { // it must not block others
		e.kernel.Logger.Error("an alarm cannot be evaluated", "alarm", a.ARN(), "reason", err.Error())
		return points, nil
	}
	return points, err
}

// errStatistic is of an alarm that another version has made.
var errStatistic = errors.New("alarms: unknown statistic")

// MetricOf is the metric of a statistic that an alarm has, in the alarm's account and region.
func MetricOf(a *alarm.Alarm, s *alarm.Stat) metrics.Metric {
	dimensions := make([]metrics.Dimension, len(s.Dimensions))
	for i, d := range s.Dimensions {
		dimensions[i] = metrics.Dimension(d)
	}
	return metrics.Metric{
		Scope: metrics.Scope{Account: a.Account, Region: a.Region}, Namespace: s.Namespace, Name: s.Name, Dimensions: metrics.Dimensions(dimensions...),
	}
}

// read calls f with the periods of a metric of an alarm that have data, in ascending order. If
// the metric has several units, one is used.
func (e *Engine) read(a *alarm.Alarm, s *alarm.Stat, p metrics.Periods, f func(start int64, samples, value float64)) error {
	stat, ok := metrics.ParseStatistic(s.Statistic)
	if !ok {
		return fmt.Errorf("%w %q", errStatistic, s.Statistic)
	}
	m := MetricOf(a, s)
	units := []string{s.Unit}
	if s.Unit == "" {
		var err error
		if units, err = e.options.Metrics.Units(m); err != nil {
			return err
		}
	}
	for _, unit := range units {
		read, err := e.options.Metrics.Read(m, unit, p.From, p.To, p.Length)
		if err != nil {
			return err
		}
		for i := range read {
			if value, ok := stat.Of(&read[i].Set); ok {
				f(read[i].Start, read[i].Set.Count, value)
			}
		}
		if len(read) > 0 {
			break
		}
	}
	return nil
}

// bounds of an evaluation, in datapoints, which takes place each minute or more often. Ten
// metrics over the longest range of an alarm have 86,420.
var bounds = metricmath.Bounds{Held: 200_000, Made: 1_000_000}

// Check refuses Metrics whose evaluation would take too many datapoints, and expressions that
// cannot be evaluated. Its errors are those of package metricmath.
func Check(c *alarm.Config) error {
	p := metrics.Periods{To: int64(c.Looked()) * int64(c.Period), Length: int64(c.Period)}
	_, err := evaluate(c, p, true, func(int) ([]metricmath.Point, error) {
		points := make([]metricmath.Point, c.Looked())
		for i := range points {
			points[i] = metricmath.Point{At: int64(i) * p.Length, Value: float64(i)}
		}
		return points, nil
	})
	return err
}

// Values are the values of the query that an alarm with Metrics watches, in ascending order. The
// periods may be others than the alarm's. Its errors are those of package metricmath, and of
// reading metrics.
func (e *Engine) Values(a *alarm.Alarm, p metrics.Periods) ([]metricmath.Point, error) {
	return evaluate(&a.Config, p, false, func(query int) (points []metricmath.Point, err error) {
		err = e.read(a, a.Metrics[query].Stat, p, func(start int64, _, value float64) {
			points = append(points, metricmath.Point{At: start, Value: value})
		})
		return points, err
	})
}

// evaluate computes the values of the query that is watched, or, whole, only takes as much for it
// as any values of the metrics' points can.
func evaluate(c *alarm.Config, p metrics.Periods, whole bool, read func(query int) ([]metricmath.Point, error)) ([]metricmath.Point, error) {
	queries := make([]metricmath.Query, len(c.Metrics))
	for i := range c.Metrics {
		q := &c.Metrics[i]
		queries[i] = metricmath.Query{ID: q.ID, Expression: q.Expression, Label: q.Label, Period: p.Length}
	}
	program, err := metricmath.Compile(queries)
	if err != nil {
		return nil, err
	}
	series, err := program.Evaluate(metricmath.Options{
		Read: read, Span: func(int64) (from, to int64) { return p.From, p.To }, Bounds: bounds, Whole: whole,
	}).Result(c.Watched())
	if err != nil || len(series) == 0 {
		return nil, err
	}
	return series[0].Points, nil
}
