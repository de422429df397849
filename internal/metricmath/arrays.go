package metricmath

import (
	"cmp"
	"math"
	"slices"
)

// fromArray makes the type of a function of an array and scalars.
func fromArray(parts []*node, result kind) (kind, bool) {
	ok := parts[0].kind == array
	for _, part := range parts[1:] {
		ok = ok && part.kind == scalar
	}
	return result, ok
}

func oneOf(parts []*node) (kind, bool)   { return fromArray(parts, single) }
func someOf(parts []*node) (kind, bool)  { return fromArray(parts, array) }
func countOf(parts []*node) (kind, bool) { return fromArray(parts, scalar) }

// at is a series of an array; of an empty one, a series without points.
func (e *Evaluation) at(v *value, i int) *value {
	if len(v.series) == 0 {
		return &value{series: []Series{{Period: e.period()}}}
	}
	return &value{series: v.series[i : i+1 : i+1]}
}

func first(e *Evaluation, _ *node, parts []*value) (*value, error) { return e.at(parts[0], 0), nil }

func last(e *Evaluation, _ *node, parts []*value) (*value, error) {
	return e.at(parts[0], len(parts[0].series)-1), nil
}

func metricCount(_ *Evaluation, _ *node, parts []*value) (*value, error) {
	return &value{number: float64(len(parts[0].series))}, nil
}

func removeEmpty(_ *Evaluation, _ *node, parts []*value) (*value, error) {
	v := &value{}
	for _, s := range parts[0].series {
		if len(s.Points) > 0 {
			v.series = append(v.series, s)
		}
	}
	return v, nil
}

// place is the place in an array that a scalar names, at most n; an unknown one is 0.
func place(x float64, n int) int {
	if math.IsNaN(x) {
		return 0
	}
	return int(min(max(x, 0), float64(n)))
}

func slice(e *Evaluation, _ *node, parts []*value) (*value, error) {
	all := parts[0].series
	if e.options.Whole {
		return &value{series: all}, nil
	}
	from, to := place(parts[1].number, len(all)), len(all)
	if len(parts) == 3 {
		to = max(from, place(parts[2].number, len(all)))
	}
	return &value{series: all[from:to:to]}, nil
}

// sortKeys are the functions that SORT takes.
var sortKeys = map[string]func(of []float64, most int) float64{
	"AVG": average, "MAX": ofSome(slices.Max[[]float64]), "MIN": ofSome(slices.Min[[]float64]),
	"SUM": func(of []float64, _ int) float64 { return sum(of) },
}

func isOrder(i int, n *node) bool {
	return n.operation == aWord && (i == 1 && sortKeys[n.text] != nil || i == 2 && (n.text == "ASC" || n.text == "DESC"))
}

func sortResult(parts []*node) (kind, bool) {
	_, ok := fromArray(parts, array)
	return array, ok && parts[1].operation == aWord && parts[2].operation == aWord
}

// sorted sorts an array; series without a key are last.
func sorted(e *Evaluation, n *node, parts []*value) (*value, error) {
	type keyed struct {
		Series
		key float64
	}
	all := make([]keyed, len(parts[0].series))
	for i, s := range parts[0].series {
		all[i] = keyed{s, e.reduce(&s, sortKeys[n.parts[1].text])}
	}
	descending := n.parts[2].text == "DESC"
	slices.SortStableFunc(all, func(a, b keyed) int {
		switch unknown, other := math.IsNaN(a.key), math.IsNaN(b.key); {
		case unknown && other:
			return 0
		case unknown:
			return 1
		case other:
			return -1
		case descending:
			return cmp.Compare(b.key, a.key)
		}
		return cmp.Compare(a.key, b.key)
	})
	if len(parts) == 4 {
		all = all[:place(parts[3].number, len(all))]
	}
	v := &value{series: make([]Series, len(all))}
	for i := range all {
		v.series[i] = all[i].Series
	}
	return v, nil
}
