package metricmath

import "math"

// truth is the value of a comparison.
func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// operators are what binary operators compute. A result that is no finite number is dropped,
// and so are those of what is divided by zero.
var operators = map[string]func(a, b float64) float64{
	"+": func(a, b float64) float64 { return a + b },
	"-": func(a, b float64) float64 { return a - b },
	"*": func(a, b float64) float64 { return a * b },
	"/": func(a, b float64) float64 { return a / b },
	"^": math.Pow,

	"==": known(func(a, b float64) bool { return a == b }),
	"!=": known(func(a, b float64) bool { return a != b }),
	"<":  known(func(a, b float64) bool { return a < b }),
	">":  known(func(a, b float64) bool { return a > b }),
	"<=": known(func(a, b float64) bool { return a <= b }),
	">=": known(func(a, b float64) bool { return a >= b }),
	"&&": known(func(a, b float64) bool { return a != 0 && b != 0 }),
	"||": known(func(a, b float64) bool { return a != 0 || b != 0 }),
}

// known makes an operator of a test, whose result is unknown if an operand is.
func known(test func(a, b float64) bool) func(a, b float64) float64 {
	return func(a, b float64) float64 {
		if math.IsNaN(a) || math.IsNaN(b) {
			return math.NaN()
		}
		return truth(test(a, b))
	}
}

// finite is a scalar's value: what is no finite number is NaN.
func finite(x float64) float64 {
	if math.IsInf(x, 0) {
		return math.NaN()
	}
	return x
}

// operate applies a binary operator.
func (e *Evaluation) operate(f func(a, b float64) float64, left, right *value) (*value, error) {
	switch {
	case left.kind == scalar && right.kind == scalar:
		return &value{number: finite(f(left.number, right.number))}, nil
	case right.kind == scalar:
		return e.eachPoint(left, func(x float64) float64 { return f(x, right.number) })
	case left.kind == scalar:
		return e.eachPoint(right, func(x float64) float64 { return f(left.number, x) })
	case left.kind == array:
		return e.eachSeries(left, func(s *Series) (Series, error) { return e.pair(f, s.Label, s, &right.series[0]) })
	case right.kind == array:
		return e.eachSeries(right, func(s *Series) (Series, error) { return e.pair(f, s.Label, &left.series[0], s) })
	}
	s, err := e.pair(f, "", &left.series[0], &right.series[0])
	return &value{series: []Series{s}}, err
}

// pair applies an operator to two series. Where only one of them has a point, the other is 0.
func (e *Evaluation) pair(f func(a, b float64) float64, label string, a, b *Series) (Series, error) {
	made := Series{Label: label, Period: divisor(a.Period, b.Period)}
	if err := e.reserve(len(a.Points) + len(b.Points) + seriesPoints); err != nil {
		return made, err
	}
	made.Points = make([]Point, 0, max(len(a.Points), len(b.Points)))
	left, right := a.Points, b.Points
	for len(left) > 0 || len(right) > 0 {
		switch {
		case len(right) == 0 || len(left) > 0 && left[0].At < right[0].At:
			e.put(&made, left[0].At, e.computed(f(left[0].Value, 0)))
			left = left[1:]
		case len(left) == 0 || right[0].At < left[0].At:
			e.put(&made, right[0].At, e.computed(f(0, right[0].Value)))
			right = right[1:]
		default:
			e.put(&made, left[0].At, e.computed(f(left[0].Value, right[0].Value)))
			left, right = left[1:], right[1:]
		}
	}
	return made, nil
}

// eachSeries makes a series of each one of a value.
func (e *Evaluation) eachSeries(of *value, f func(s *Series) (Series, error)) (*value, error) {
	v := &value{series: make([]Series, len(of.series))}
	for i := range of.series {
		var err error
		if v.series[i], err = f(&of.series[i]); err != nil {
			return nil, err
		}
		v.series[i].Of = of.series[i].Of
	}
	return v, nil
}

// eachPoint applies a function to each point of each series.
func (e *Evaluation) eachPoint(of *value, f func(x float64) float64) (*value, error) {
	return e.eachNext(of, func(_ *Point, p Point) float64 { return e.computed(f(p.Value)) })
}

// eachNext makes a point of each one of each series and the one before it, if there is one.
func (e *Evaluation) eachNext(of *value, f func(before *Point, p Point) float64) (*value, error) {
	return e.eachSeries(of, func(s *Series) (Series, error) {
		made := Series{Label: s.Label, Period: s.Period}
		if err := e.reserve(len(s.Points) + seriesPoints); err != nil {
			return made, err
		}
		made.Points = make([]Point, 0, len(s.Points))
		var before *Point
		for i, p := range s.Points {
			e.put(&made, p.At, f(before, p))
			before = &s.Points[i]
		}
		return made, nil
	})
}
