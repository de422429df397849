package cloudwatch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/metricmath"
	"godwit.dev/godwit/internal/monitor/metrics"
)

// Bounds of the expressions in a request, in datapoints: of what they hold at once, and of all
// that they make and look at.
const (
	maxHeld = 3 * maxDataPoints
	maxMade = 50 * maxDataPoints
)

// readExpression validates a query that is an expression, but for its language; number is its
// place, counted from 1.
func readExpression(number int, in *MetricDataQuery) (q query, err error) {
	if err := checkLength(fmt.Sprintf("metricDataQueries.%d.member.expression", number), in.Expression, 1, metricmath.MaxExpression); err != nil {
		return q, err
	}
	q = query{id: *in.Id, label: api.Deref(in.Label), expression: *in.Expression, returned: in.ReturnData == nil || *in.ReturnData}
	if in.Period != nil {
		if q.period, err = readPeriod(fmt.Sprintf("MetricDataQueries.member.%d.Period", number), *in.Period); err != nil {
			return q, unfit("%s", err)
		}
	}
	return q, nil
}

// compile parses the expressions among queries; nil: there are none.
func compile(queries []query) (*metricmath.Program, error) {
	if !slices.ContainsFunc(queries, func(q query) bool { return q.expression != "" }) {
		return nil, nil
	}
	all := make([]metricmath.Query, len(queries))
	for i, q := range queries {
		all[i] = metricmath.Query{ID: q.id, Expression: q.expression, Label: q.label, Period: q.period}
	}
	program, err := metricmath.Compile(all)
	if err != nil {
		return nil, err
	}
	return program, checkSearches(queries, program.Searches())
}

// asked are queries with their range of time.
type asked struct {
	ctx       context.Context // of the request
	service   *Service
	scope     metrics.Scope
	queries   []query
	program   *metricmath.Program // nil: there are no expressions
	now       time.Time
	zone      *time.Location // of the times in labels
	from, to  time.Time
	ascending bool

	evaluation *metricmath.Evaluation // nil: not begun
	searching  searching
}

// span is the range of time for a period in seconds, in epoch seconds.
func (a *asked) span(period int64) (from, to int64) { return span(a.now, a.from, a.to, period) }

// results computes the results of a query: of an expression that is an array there are n, and
// else one. result makes one of them.
func (a *asked) results(at int) (n int, result func(i int) MetricDataResult, err error) {
	q := &a.queries[at]
	if q.expression == "" {
		from, to := a.span(q.period)
		only, err := a.service.answer(q, from, to, a.ascending)
		if q.dynamic != nil {
			only.Label = a.dynamicLabel(q, &metricmath.Series{Label: q.label, Points: only.points(a.ascending), Period: q.period, Of: at + 1})
		}
		return 1, func(int) MetricDataResult { return only }, err
	}
	if a.evaluation == nil {
		a.evaluation = a.program.Evaluate(metricmath.Options{Read: a.read, Search: a.search, Span: a.span, Bounds: metricmath.Bounds{Held: maxHeld, Made: maxMade}})
	}
	all, err := a.evaluation.Result(at)
	var messages []MessageData
	if a.evaluation.Dropped(at) {
		messages = []MessageData{{"ArithmeticError", "One or more data-points have been dropped due to non-numeric values (NaN, -Infinite, +Infinite)"}}
	}
	return len(all), func(i int) MetricDataResult {
		series := &all[i]
		r := MetricDataResult{
			Id: q.id, Label: series.Label, Timestamps: make([]api.Time, len(series.Points)), Values: make([]float64, len(series.Points)), StatusCode: "Complete",
			Messages: messages,
		}
		if q.dynamic != nil {
			r.Label = a.dynamicLabel(q, series)
		}
		for j, point := range series.Points {
			r.Timestamps[j], r.Values[j] = api.TimeOf(time.Unix(point.At, 0)), point.Value
		}
		if !a.ascending {
			slices.Reverse(r.Timestamps)
			slices.Reverse(r.Values)
		}
		return r
	}, err
}

// read returns the points of a metric, for expressions.
func (a *asked) read(at int) ([]metricmath.Point, error) { return a.points(&a.queries[at]) }

func (a *asked) points(q *query) ([]metricmath.Point, error) {
	from, to := a.span(q.period)
	result, err := a.service.answer(q, from, to, true)
	if err != nil {
		return nil, err
	}
	return result.points(true), nil
}

// points are the points of a result, in ascending order.
func (r *MetricDataResult) points(ascending bool) []metricmath.Point {
	points := make([]metricmath.Point, len(r.Values))
	for i, value := range r.Values {
		points[i] = metricmath.Point{At: r.Timestamps[i].Std().Unix(), Value: value}
	}
	if !ascending {
		slices.Reverse(points)
	}
	return points
}
