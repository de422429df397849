package metricmath

import "math"

// cursor finds the points of a series at times that are asked for in ascending order.
type cursor []Point

// at is the value at a time; NaN: there is none.
func (c *cursor) at(at int64) float64 {
	for len(*c) > 0 && (*c)[0].At < at {
		*c = (*c)[1:]
	}
	if len(*c) > 0 && (*c)[0].At == at {
		return (*c)[0].Value
	}
	return math.NaN()
}

// The fillers of FILL that are words.
const (
	repeat = "REPEAT"
	linear = "LINEAR"
)

func isFiller(i int, n *node) bool {
	return i == 1 && n.operation == aWord && (n.text == repeat || n.text == linear)
}

func fillResult(parts []*node) (kind, bool) {
	return parts[0].kind, parts[0].kind != scalar && parts[1].kind != array
}

// fill gives each series a point in those of its periods in which it has none: a scalar, what
// another series has there, the point before, or what lies between the points around it.
func fill(e *Evaluation, n *node, parts []*value) (*value, error) {
	return e.eachSeries(parts[0], func(s *Series) (Series, error) {
		if err := e.reserve(len(s.Points)); err != nil {
			return Series{}, err
		}
		filler := func(int64) float64 { return e.computed(parts[1].number) }
		switch word := n.parts[1].text; {
		case parts[1].kind == single:
			other := cursor(parts[1].series[0].Points)
			filler = other.at
		case n.parts[1].operation == aWord && word == repeat:
			filler = around(s.Points, func(before, _ *Point, _ int64) float64 {
				if before == nil {
					return math.NaN()
				}
				return before.Value
			})
		case n.parts[1].operation == aWord && word == linear:
			filler = around(s.Points, func(before, after *Point, at int64) float64 {
				if before == nil || after == nil {
					return math.NaN()
				}
				return before.Value + (after.Value-before.Value)*float64(at-before.At)/float64(after.At-before.At)
			})
		}
		own := cursor(s.Points)
		made := Series{Label: s.Label, Period: s.Period}
		err := e.eachPeriod(s.Period, func(at int64) {
			for len(own) > 0 && own[0].At < at { // also those between the beginnings of periods
				made.Points = append(made.Points, own[0])
				own = own[1:]
			}
			if len(own) == 0 || own[0].At != at {
				e.put(&made, at, filler(at))
			}
		})
		made.Points = append(made.Points, own...)
		return made, err
	})
}

// around makes a filler of the points before and after a gap; nil: there is none.
func around(points []Point, f func(before, after *Point, at int64) float64) func(at int64) float64 {
	next := 0
	return func(at int64) float64 {
		for next < len(points) && points[next].At < at {
			next++
		}
		var before, after *Point
		if next > 0 {
			before = &points[next-1]
		}
		if next < len(points) {
			after = &points[next]
		}
		return f(before, after, at)
	}
}

// ifResult takes a condition that is a series with anything but arrays, and one that is a scalar
// with series.
func ifResult(parts []*node) (kind, bool) {
	ok := parts[0].kind != array
	for _, part := range parts[1:] {
		ok = ok && part.kind != array && (parts[0].kind == single || part.kind == single)
	}
	return single, ok
}

// choose computes IF. A series without a point where the condition holds counts as 0 there.
func choose(e *Evaluation, _ *node, parts []*value) (*value, error) {
	condition, otherwise := parts[0], &value{number: math.NaN()}
	if len(parts) == 3 {
		otherwise = parts[2]
	}
	if condition.kind == scalar {
		made := Series{Period: parts[1].series[0].Period}
		switch {
		case e.options.Whole:
			if made = parts[1].series[0]; otherwise.kind == single && len(otherwise.series[0].Points) > len(made.Points) {
				made = otherwise.series[0]
			}
		case math.IsNaN(condition.number):
		case condition.number != 0:
			made = parts[1].series[0]
		case otherwise.kind == single:
			made = otherwise.series[0]
		}
		made.Label, made.Of = "", 0
		return &value{series: []Series{made}}, e.reserve(len(made.Points) + seriesPoints)
	}
	of := func(v *value) func(at int64) float64 {
		if v.kind == scalar {
			return func(int64) float64 { return v.number }
		}
		points := cursor(v.series[0].Points)
		return points.at
	}
	yes, no := of(parts[1]), of(otherwise)
	made, err := e.eachNext(condition, func(_ *Point, p Point) float64 {
		switch {
		case p.Value == 0:
			return no(p.At)
		case parts[1].kind == single:
			if x := yes(p.At); !math.IsNaN(x) {
				return x
			}
			return 0
		}
		return yes(p.At)
	})
	if err == nil {
		made.series[0].Label, made.series[0].Of = "", 0
	}
	return made, err
}
