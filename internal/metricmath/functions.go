package metricmath

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// function is a function of the language.
type function struct {
	least, most int // arguments
	// words reports whether an argument, counted from 0, may be a word or a text; nil: none may.
	words func(i int, n *node) bool
	// result is the type of the result; ok is false for arguments that the function does not take.
	result  func(parts []*node) (k kind, ok bool)
	compute func(e *Evaluation, n *node, parts []*value) (*value, error)
	// shares says that the result has series of the arguments.
	shares bool
}

var functions = map[string]*function{
	"METRICS": {0, 1, func(_ int, n *node) bool { return n.operation == aText }, func(parts []*node) (kind, bool) {
		return array, len(parts) == 0 || parts[0].operation == aText
	}, nil, true}, // see metricsOf

	"SEARCH": {2, 3, func(i int, n *node) bool { return i < 2 && n.operation == aText }, func(parts []*node) (kind, bool) {
		return array, parts[0].operation == aText && parts[1].operation == aText && (len(parts) == 2 || parts[2].operation == aNumber)
	}, nil, false}, // see searched

	"ABS":         each(math.Abs),
	"CEIL":        each(math.Ceil),
	"FLOOR":       each(math.Floor),
	"LOG":         each(math.Log),
	"LOG10":       each(math.Log10),
	"DIFF":        next(func(before, p Point) float64 { return p.Value - before.Value }),
	"DIFF_TIME":   next(func(before, p Point) float64 { return float64(p.At - before.At) }),
	"RATE":        next(func(before, p Point) float64 { return (p.Value - before.Value) / float64(p.At-before.At) }),
	"RUNNING_SUM": {1, 1, nil, sameKind, runningSum, false},
	"FILL":        {2, 2, isFiller, fillResult, fill, false},

	"AVG":             reduction(average),
	"DATAPOINT_COUNT": reduction(func(of []float64, _ int) float64 { return float64(len(of)) }),
	"MAX":             reduction(ofSome(slices.Max[[]float64])),
	"MIN":             reduction(ofSome(slices.Min[[]float64])),
	"STDDEV":          reduction(ofSome(deviation)),
	"SUM":             reduction(func(of []float64, _ int) float64 { return sum(of) }),

	"FIRST":        {1, 1, nil, oneOf, first, true},
	"LAST":         {1, 1, nil, oneOf, last, true},
	"METRIC_COUNT": {1, 1, nil, countOf, metricCount, false},
	"REMOVE_EMPTY": {1, 1, nil, someOf, removeEmpty, true},
	"SLICE":        {2, 3, nil, someOf, slice, true},
	"SORT":         {3, 4, isOrder, sortResult, sorted, true},

	"IF":          {2, 3, nil, ifResult, choose, false},
	"PERIOD":      {1, 1, nil, func(parts []*node) (kind, bool) { return scalar, parts[0].kind == single }, period, false},
	"TIME_SERIES": {1, 1, nil, func(parts []*node) (kind, bool) { return single, parts[0].kind == scalar }, timeSeries, false},

	"MINUTE": date(time.Time.Minute),
	"HOUR":   date(time.Time.Hour),
	"DAY":    date(weekday),
	"DATE":   date(time.Time.Day),
	"MONTH":  date(func(t time.Time) int { return int(t.Month()) }),
	"YEAR":   date(time.Time.Year),
	"EPOCH":  date(func(t time.Time) int { return int(t.Unix()) }),
}

func sameKind(parts []*node) (kind, bool) { return parts[0].kind, parts[0].kind != scalar }

// each makes a function of each point.
func each(f func(x float64) float64) *function {
	return &function{1, 1, nil, sameKind, func(e *Evaluation, _ *node, parts []*value) (*value, error) {
		return e.eachPoint(parts[0], f)
	}, false}
}

// next makes a function of each point and the one before it.
func next(f func(before, p Point) float64) *function {
	return &function{1, 1, nil, sameKind, func(e *Evaluation, _ *node, parts []*value) (*value, error) {
		return e.eachNext(parts[0], func(before *Point, p Point) float64 {
			if before == nil {
				return math.NaN()
			}
			return e.computed(f(*before, p))
		})
	}, false}
}

func runningSum(e *Evaluation, _ *node, parts []*value) (*value, error) {
	total := 0.0
	return e.eachNext(parts[0], func(before *Point, p Point) float64 {
		if before == nil {
			total = 0
		}
		total += p.Value
		return e.computed(total)
	})
}

// date makes a function of the time of each period, in UTC.
func date(f func(t time.Time) int) *function {
	return &function{1, 1, nil, func(parts []*node) (kind, bool) { return single, parts[0].kind == single }, func(e *Evaluation, _ *node, parts []*value) (*value, error) {
		return e.grid(parts[0].series[0].Period, func(at int64) float64 { return float64(f(time.Unix(at, 0).UTC())) })
	}, false}
}

// weekday is 1 for Monday to 7 for Sunday.
func weekday(t time.Time) int { return (int(t.Weekday())+6)%7 + 1 }

func timeSeries(e *Evaluation, _ *node, parts []*value) (*value, error) {
	return e.grid(e.period(), func(int64) float64 { return e.computed(parts[0].number) })
}

func period(_ *Evaluation, _ *node, parts []*value) (*value, error) {
	return &value{number: float64(parts[0].series[0].Period)}, nil
}

// reduction makes a function that computes a scalar of a series, and of an array a series: at
// each time at which one of its series has a point. f is given the values that there are, and
// how many there could be.
func reduction(f func(of []float64, most int) float64) *function {
	return &function{1, 1, nil, func(parts []*node) (kind, bool) {
		if parts[0].kind == array {
			return single, true
		}
		return scalar, parts[0].kind == single
	}, func(e *Evaluation, _ *node, parts []*value) (*value, error) {
		if parts[0].kind == single {
			return &value{number: e.reduce(&parts[0].series[0], f)}, nil
		}
		made := Series{}
		if err := e.reserve(2 * size(parts[0].series)); err != nil {
			return nil, err
		}
		var points []Point
		for _, s := range parts[0].series {
			made.Period = divisor(made.Period, s.Period)
			points = append(points, s.Points...)
		}
		slices.SortFunc(points, func(a, b Point) int { return cmp.Compare(a.At, b.At) })
		var values []float64
		for i, p := range points {
			if values = append(values, p.Value); i+1 == len(points) || points[i+1].At != p.At {
				e.put(&made, p.At, e.computed(f(values, len(parts[0].series))))
				values = values[:0]
			}
		}
		if made.Period == 0 {
			made.Period = e.period() // of an empty array
		}
		return &value{series: []Series{made}}, nil
	}, false}
}

// reduce computes a scalar of a series.
func (e *Evaluation) reduce(s *Series, f func(of []float64, most int) float64) float64 {
	values := make([]float64, len(s.Points))
	for i, p := range s.Points {
		values[i] = p.Value
	}
	return finite(f(values, int(max(e.periods(s.Period), int64(len(values))))))
}

// ofSome makes a reduction whose result is unknown if there are no values.
func ofSome(f func(of []float64) float64) func(of []float64, most int) float64 {
	return func(of []float64, _ int) float64 {
		if len(of) == 0 {
			return math.NaN()
		}
		return f(of)
	}
}

func sum(of []float64) (total float64) {
	for _, x := range of {
		total += x
	}
	return total
}

// average counts missing values as 0, as AWS documents it.
func average(of []float64, most int) float64 { return sum(of) / float64(most) }

// deviation is the standard deviation of all values, not of a sample.
func deviation(of []float64) float64 {
	mean, squares := sum(of)/float64(len(of)), 0.0
	for _, x := range of {
		squares += (x - mean) * (x - mean)
	}
	return math.Sqrt(squares / float64(len(of)))
}
