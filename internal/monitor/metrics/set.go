package metrics

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"slices"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/store"
)

// The distribution of a set's values is exact for up to maxExact different ones. Beyond that it
// is a sketch, with a relative error of at most accuracy, in at most maxBuckets buckets of each
// sign: some 17 orders of magnitude.
const (
	maxExact   = 64
	accuracy   = 0.01
	maxBuckets = 2048
)

var indexing = func() mapping.IndexMapping {
	m, err := mapping.NewLogarithmicMapping(accuracy)
	if err != nil {
		panic(err) // the accuracy is a constant
	}
	return m
}()

func newStore() store.Store { return store.NewCollapsingLowestDenseStore(maxBuckets) }

// Set summarises the values of a metric in a period: their statistics and, if known, their
// distribution. The zero Set is empty.
type Set struct {
	Count, Sum, Min, Max float64

	// The distribution: exact, in order of the values; or sketch; or opaque, which is unknown,
	// as only statistics were put. With none of them all values are equal.
	exact  []bin
	sketch *ddsketch.DDSketch
	opaque bool

	filled bool // it is Fill's, and is replaced by other values of its time
}

// bin is a value and its count.
type bin struct{ value, count float64 }

// Add adds a value that occurred count times. Both are finite, count above 0.
func (s *Set) Add(value, count float64) {
	s.distribute(value, count)
	s.total(count, value*count, value, value)
}

// AddStatistics adds values of which only the statistics are known. If all values are equal,
// their distribution is known, too.
func (s *Set) AddStatistics(count, sum, minimum, maximum float64) {
	if minimum == maximum {
		s.distribute(minimum, count)
	} else {
		s.exact, s.sketch, s.opaque = nil, nil, true
	}
	s.total(count, sum, minimum, maximum)
}

// Merge adds the values of another set.
func (s *Set) Merge(o *Set) {
	switch {
	case o.Count == 0:
	case s.Count == 0:
		*s = o.Clone()
	case o.opaque:
		s.AddStatistics(o.Count, o.Sum, o.Min, o.Max)
	default:
		whole := *s
		whole.total(o.Count, o.Sum, o.Min, o.Max)
		for _, b := range o.bins() {
			s.Add(b.value, b.count)
		}
		s.Count, s.Sum, s.Min, s.Max = whole.Count, whole.Sum, whole.Min, whole.Max // bins are not exact
	}
	s.filled = false
}

// Clone is a copy that shares nothing with s.
func (s *Set) Clone() Set {
	c := *s
	c.exact = slices.Clone(s.exact)
	if s.sketch != nil {
		c.sketch = s.sketch.Copy()
	}
	return c
}

func (s *Set) total(count, sum, minimum, maximum float64) {
	if s.Count == 0 {
		s.Min, s.Max = minimum, maximum
	} else {
		s.Min, s.Max = min(s.Min, minimum), max(s.Max, maximum)
	}
	s.Count += count
	s.Sum += sum
}

func (s *Set) distribute(value, count float64) {
	if s.Count == 0 || s.opaque {
		return
	}
	if s.sketch != nil {
		s.draw(value, count)
		return
	}
	if s.exact == nil {
		if value == s.Min && value == s.Max {
			return
		}
		s.exact = append(make([]bin, 0, 4), bin{s.mean(), s.Count})
	}
	at, found := slices.BinarySearchFunc(s.exact, value, func(b bin, value float64) int { return cmp.Compare(b.value, value) })
	switch {
	case found:
		s.exact[at].count += count
	case len(s.exact) < maxExact:
		s.exact = slices.Insert(s.exact, at, bin{value, count})
	default:
		known := s.exact
		s.exact, s.sketch = nil, ddsketch.NewDDSketchFromStoreProvider(indexing, newStore)
		for _, b := range known {
			s.draw(b.value, b.count)
		}
		s.draw(value, count)
	}
}

// draw adds to the sketch. A value out of its range makes the distribution unknown.
func (s *Set) draw(value, count float64) {
	if s.sketch != nil && s.sketch.AddWithCount(value, count) != nil {
		s.sketch, s.opaque = nil, true
	}
}

func (s *Set) mean() float64 { return min(max(s.Sum/s.Count, s.Min), s.Max) }

// bins is the distribution in ascending order; nil if it is unknown, or there is none.
func (s *Set) bins() []bin {
	switch {
	case s.Count == 0 || s.opaque:
		return nil
	case s.sketch == nil && s.exact == nil:
		return []bin{{s.mean(), s.Count}}
	case s.sketch == nil:
		return s.exact
	}
	var all []bin
	s.sketch.ForEach(func(value, count float64) bool {
		all = append(all, bin{min(max(value, s.Min), s.Max), count})
		return false
	})
	slices.SortFunc(all, func(a, b bin) int { return cmp.Compare(a.value, b.value) })
	return all
}

// place is the position of a value among the bins: not before the one that it would be counted
// in.
func (s *Set) place(value float64) float64 {
	if s.sketch == nil || value < indexing.MinIndexableValue() || value > indexing.MaxIndexableValue() {
		return value
	}
	return max(value, min(indexing.Value(indexing.Index(value)), s.Max))
}

// The forms of an encoded set.
const (
	formAlike byte = iota + 1
	formExact
	formSketch
	formOpaque
	formFilled
)

// errSet reports an invalid encoding of a set.
var errSet = errors.New("metrics: a datapoint cannot be read")

// encode encodes the set: its form, count, sum, minimum and maximum, and the distribution.
// Small integers take few bytes.
func (s *Set) encode() []byte {
	form := formAlike
	switch {
	case s.filled:
		form = formFilled
	case s.opaque:
		form = formOpaque
	case s.sketch != nil:
		form = formSketch
	case s.exact != nil:
		form = formExact
	}
	dst := []byte{form}
	for _, f := range [...]float64{s.Count, s.Sum, s.Min, s.Max} {
		dst = appendFloat(dst, f)
	}
	for _, b := range s.exact {
		dst = appendFloat(appendFloat(dst, b.value), b.count)
	}
	if s.sketch != nil {
		s.sketch.Encode(&dst, true)
	}
	return dst
}

// decodeSet decodes a set. It does not alias p.
func decodeSet(p []byte) (s Set, err error) {
	if len(p) == 0 {
		return s, errSet
	}
	form, p := p[0], p[1:]
	for _, f := range [...]*float64{&s.Count, &s.Sum, &s.Min, &s.Max} {
		if *f, p, err = takeFloat(p); err != nil {
			return Set{}, err
		}
	}
	switch form {
	case formAlike:
	case formOpaque:
		s.opaque = true
	case formFilled:
		s.filled = true
	case formExact:
		for len(p) > 0 && len(s.exact) < maxExact {
			var b bin
			if b.value, p, err = takeFloat(p); err == nil {
				b.count, p, err = takeFloat(p)
			}
			if err != nil {
				return Set{}, err
			}
			s.exact = append(s.exact, b)
		}
	case formSketch:
		if s.sketch, err = decodeSketch(p); err != nil {
			return Set{}, err
		}
		p = nil
	default:
		return Set{}, errSet
	}
	if len(p) > 0 {
		return Set{}, errSet
	}
	return s, nil
}

// decodeSketch decodes a sketch. For invalid bytes the library may return one that it cannot
// handle.
func decodeSketch(p []byte) (sketch *ddsketch.DDSketch, err error) {
	defer func() {
		if recover() != nil {
			sketch, err = nil, errSet
		}
	}()
	if sketch, err = ddsketch.DecodeDDSketch(p, newStore, indexing); err != nil {
		return nil, errSet
	}
	for _, values := range [...]store.Store{sketch.GetPositiveValueStore(), sketch.GetNegativeValueStore()} {
		if values.IsEmpty() {
			continue
		}
		least, err := values.MinIndex()
		if err != nil || least < indexing.Index(indexing.MinIndexableValue()) {
			return nil, errSet
		}
		most, err := values.MaxIndex()
		if err != nil || most > indexing.Index(indexing.MaxIndexableValue()) {
			return nil, errSet
		}
	}
	return sketch, nil
}

// appendFloat appends the bits of f in reverse order, as the last ones of small integers are
// zeros.
func appendFloat(dst []byte, f float64) []byte {
	return binary.AppendUvarint(dst, bits.Reverse64(math.Float64bits(f)))
}

func takeFloat(p []byte) (f float64, rest []byte, err error) {
	n, size := binary.Uvarint(p)
	if size <= 0 {
		return 0, nil, errSet
	}
	return math.Float64frombits(bits.Reverse64(n)), p[size:], nil
}
