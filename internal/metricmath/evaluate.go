package metricmath

import (
	"cmp"
	"math"
)

// Bounds are bounds of an evaluation, in datapoints of 16 bytes.
type Bounds struct {
	Held int // by metrics and results at once
	Made int // and looked at, altogether
}

// Options are what an evaluation needs.
type Options struct {
	// Read returns the points of a metric, by its place among the queries. It is called once at
	// most for each metric.
	Read func(query int) ([]Point, error)
	// Search calls f with the series that a search finds, in order, and returns its error. nil: SEARCH is
	// not supported.
	Search func(s *Search, f func(Series) error) error
	// Span is the range of time for series with a period in seconds, in epoch seconds: periods
	// begin at from and at the multiples of the period after it, below to.
	Span   func(period int64) (from, to int64)
	Bounds Bounds
	// Whole makes an evaluation that takes as much as one of any values of the same points can:
	// no point is dropped, and where a scalar chooses among series all or the longest are taken.
	// Its values mean nothing.
	Whole bool
}

// Evaluation computes the results of a program's queries.
type Evaluation struct {
	*Program
	options Options
	results []*value // those of queries that others refer to
	dropped []bool   // the queries whose expressions made points that were dropped
	current int      // the query whose expression is evaluated
	held    int
	made    int
}

// Evaluate begins an evaluation.
func (p *Program) Evaluate(o Options) *Evaluation {
	return &Evaluation{Program: p, options: o, results: make([]*value, len(p.queries)), dropped: make([]bool, len(p.queries))}
}

// Result returns the time series of a query, in the order of an array. Its errors are those of
// Read and Search, and ErrDatapoints. Of is one more than the place of a metric among the queries, or
// what Search has set.
func (e *Evaluation) Result(query int) ([]Series, error) {
	v, err := e.of(query)
	if err != nil {
		return nil, err
	}
	e.release(v)
	return v.series, nil
}

// Dropped reports whether points were dropped from the result of a query, or on the way to it in
// its own expression, because what was computed is no finite number. Result comes before it.
func (e *Evaluation) Dropped(query int) bool { return e.dropped[query] }

// value is the value of a part of an expression.
type value struct {
	kind   kind
	number float64  // of a scalar; NaN: it is unknown
	series []Series // of others
	own    int      // the points that are held for this value alone
}

// A point uses pointBytes, and a series without its points as much as seriesPoints points.
const (
	pointBytes   = 16
	seriesPoints = 3
)

// size is the memory of series, in points.
func size(series []Series) int { return count(series) + len(series)*seriesPoints }

func count(series []Series) (points int) {
	for i := range series {
		points += len(series[i].Points)
	}
	return points
}

func (e *Evaluation) tooMany() error { return ErrDatapoints.With(e.queries[e.current].ID) }

// spend counts work.
func (e *Evaluation) spend(points int) error {
	if e.made += points; e.made > e.options.Bounds.Made {
		return e.tooMany()
	}
	return nil
}

// reserve counts points that are going to be made as work, and as held until the part of the
// expression that makes them is evaluated.
func (e *Evaluation) reserve(points int) error {
	if e.held += points; e.held > e.options.Bounds.Held {
		return e.tooMany()
	}
	return e.spend(points)
}

// release ends the holding of a value's points.
func (e *Evaluation) release(v *value) {
	e.held -= v.own
	v.own = 0
}

// of returns the result of a query.
func (e *Evaluation) of(query int) (*value, error) {
	if known := e.results[query]; known != nil {
		return &value{kind: known.kind, series: known.series}, nil
	}
	before := e.current
	e.current = query
	v, err := e.compute(query)
	e.current = before
	if err != nil || e.used[query] == 0 {
		return v, err
	}
	e.results[query] = v // which keeps its points
	return &value{kind: v.kind, series: v.series}, nil
}

func (e *Evaluation) compute(query int) (*value, error) {
	q := &e.queries[query]
	if e.roots[query] == nil {
		points, err := e.options.Read(query)
		if err != nil {
			return nil, err
		}
		v := &value{kind: single, series: []Series{{Label: q.Label, Period: q.Period, Points: points, Of: query + 1}}, own: len(points) + seriesPoints}
		return v, e.reserve(v.own)
	}
	v, err := e.evaluate(e.roots[query])
	if err != nil {
		return nil, err
	}
	labelled := make([]Series, len(v.series)) // those of v may be of another query
	for i, s := range v.series {
		label, made := e.label(q, s.Label)
		if made {
			long := len(label)/pointBytes + 1
			if err := e.reserve(long); err != nil {
				return nil, err
			}
			v.own += long
		}
		labelled[i] = s
		labelled[i].Label = label
	}
	v.series = labelled
	return v, e.spend(len(labelled))
}

// label is the label of a series in the result of an expression. made says that it is a new text.
func (e *Evaluation) label(q *Query, of string) (label string, made bool) {
	switch {
	case !e.Array(e.current) || of == "":
		return cmp.Or(q.Label, q.ID), false
	case q.Label == "":
		return of, false
	}
	return q.Label + " " + of, true
}

// evaluate computes a part of an expression.
func (e *Evaluation) evaluate(n *node) (*value, error) {
	switch n.operation {
	case aNumber:
		return &value{number: n.number}, nil
	case anID:
		return e.of(n.queries[0])
	case aText, aWord:
		return &value{}, nil
	default:
	}
	if n.operation == aCall {
		switch n.text {
		case "METRICS":
			return e.metricsOf(n)
		case "SEARCH":
			return e.searched(n)
		}
	}
	parts := make([]*value, len(n.parts))
	used := 0
	for i, part := range n.parts {
		var err error
		if parts[i], err = e.evaluate(part); err != nil {
			return nil, err
		}
		used += size(parts[i].series)
	}
	if err := e.spend(used + 1); err != nil {
		return nil, err
	}
	owned := 0
	for _, part := range parts {
		owned += part.own
	}
	before := e.held
	if shares(n) {
		for _, part := range parts {
			if err := e.reserve(len(part.series) * seriesPoints); err != nil {
				return nil, err
			}
		}
	}
	v, err := e.combine(n, parts)
	if err != nil {
		return nil, err
	}
	v.kind, v.own = n.kind, size(v.series)
	if shares(n) { // the rest of the points is held for others
		v.own = min(count(v.series), owned) + len(v.series)*seriesPoints
	}
	e.held = before - owned + v.own
	return v, nil
}

// shares reports whether the series in the value of a part are those of its own parts.
func shares(n *node) bool {
	return n.operation == anArray || n.operation == aCall && functions[n.text].shares
}

// combine computes a part of an expression of the values of its own parts.
func (e *Evaluation) combine(n *node, parts []*value) (*value, error) {
	switch n.operation {
	case anArray:
		v := &value{}
		for _, part := range parts {
			v.series = append(v.series, part.series...)
		}
		return v, nil
	case aNegation:
		if parts[0].kind == scalar {
			return &value{number: -parts[0].number}, nil
		}
		return e.eachPoint(parts[0], func(x float64) float64 { return -x })
	case anOperator:
		return e.operate(operators[n.text], parts[0], parts[1])
	default:
		return functions[n.text].compute(e, n, parts)
	}
}

func (e *Evaluation) metricsOf(n *node) (*value, error) {
	v := &value{kind: array, own: len(n.queries) * seriesPoints}
	if err := e.reserve(v.own); err != nil {
		return nil, err
	}
	v.series = make([]Series, 0, len(n.queries))
	for _, query := range n.queries {
		one, err := e.of(query)
		if err != nil {
			return nil, err
		}
		v.series = append(v.series, one.series...)
	}
	return v, nil
}

func (e *Evaluation) searched(n *node) (*value, error) {
	if e.options.Search == nil {
		return nil, ErrUnsupported.With(e.queries[e.current].ID, n.text)
	}
	v := &value{kind: array}
	return v, e.options.Search(n.search, func(s Series) error {
		more := len(s.Points) + seriesPoints + len(s.Label)/pointBytes
		v.series, v.own = append(v.series, s), v.own+more
		return e.reserve(more)
	})
}

// fallbackPeriod is the period of series that depend on no metric, in seconds.
const fallbackPeriod = 60

// period is the period of a series that the current expression makes of nothing, in seconds:
// the expression's own, or the longest that the periods of its metrics and searches are multiples of, or else
// of all metrics.
func (e *Evaluation) period() int64 {
	if own := e.queries[e.current].Period; own > 0 {
		return own
	}
	all := e.steps[e.current]
	for _, metric := range e.metrics[e.current] {
		all = divisor(all, e.queries[metric].Period)
	}
	if all > 0 {
		return all
	}
	for i := range e.queries {
		if e.roots[i] == nil {
			all = divisor(all, e.queries[i].Period)
		}
	}
	return cmp.Or(all, fallbackPeriod)
}

// divisor is the greatest common divisor of two periods; of 0 and another, the other.
func divisor(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// periods is how many periods there are in the range of time.
func (e *Evaluation) periods(period int64) int64 {
	from, to := e.options.Span(period)
	if period <= 0 || to <= from {
		return 0
	}
	return (to-from-1)/period + 1
}

// eachPeriod calls f with the beginning of each period in the range of time, in epoch seconds,
// in ascending order, after it has reserved a point for each.
func (e *Evaluation) eachPeriod(period int64, f func(at int64)) error {
	n := e.periods(period)
	if n > int64(e.options.Bounds.Held) {
		return e.tooMany()
	}
	if err := e.reserve(int(n) + seriesPoints); err != nil {
		return err
	}
	from, _ := e.options.Span(period)
	for i := range n {
		f(from + i*period)
	}
	return nil
}

// grid makes a series with a point in each period; f is given the period's beginning.
func (e *Evaluation) grid(period int64, f func(at int64) float64) (*value, error) {
	s := Series{Period: period}
	err := e.eachPeriod(period, func(at int64) { e.put(&s, at, f(at)) })
	return &value{series: []Series{s}}, err
}

// computed is what was computed for a point. If it is no finite number, the point is going to be
// dropped, and not for want of data.
func (e *Evaluation) computed(x float64) float64 {
	if !isFinite(x) {
		e.dropped[e.current] = true
	}
	return x
}

// put adds a point, unless its value is no finite number.
func (e *Evaluation) put(s *Series, at int64, value float64) {
	switch {
	case isFinite(value):
		s.Points = append(s.Points, Point{at, value})
	case e.options.Whole:
		s.Points = append(s.Points, Point{at, 1})
	}
}

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
