package metrics

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/keyspace"
)

// Dimension is a name and a value that distinguish metrics of one name.
type Dimension struct{ Name, Value string }

// Scope is the account and region of metrics.
type Scope struct{ Account, Region string }

// Metric identifies a metric. Its texts have no control characters.
type Metric struct {
	Scope
	Namespace, Name string
	Dimensions      string // result of Dimensions
}

// Dimensions encodes dimensions, whose names differ, in the form in which metrics are compared:
// their order does not matter.
func Dimensions(all ...Dimension) string {
	if len(all) > 1 {
		all = slices.Clone(all)
		slices.SortFunc(all, func(a, b Dimension) int { return cmp.Compare(a.Name, b.Name) })
	}
	var b strings.Builder
	for _, d := range all {
		b.WriteString(d.Name)
		b.WriteByte(within)
		b.WriteString(d.Value)
		b.WriteByte(within)
	}
	return b.String()
}

// SplitDimensions is the inverse of Dimensions.
func SplitDimensions(text string) []Dimension {
	all := make([]Dimension, 0, 2)
	for text != "" {
		var d Dimension
		d.Name, text, _ = strings.Cut(text, string(within))
		d.Value, text, _ = strings.Cut(text, string(within))
		all = append(all, d)
	}
	return all
}

// The separators of the parts of a name, and of dimensions.
const (
	between = '\x00'
	within  = '\x01'
)

// The keys of this package: the prefix of all, and what follows it.
const (
	prefix    = keyspace.MetricSpace
	tagPoints = keyspace.MetricPoints  // resolution, bucket, series, time → Set
	tagSecond = keyspace.MetricSeconds // bucket, series, second → Set
	tagSeries = keyspace.MetricSeries  // name of the series → the minute it was last seen in
	tagFloor  = keyspace.MetricFloors  // resolution → the minute before which points are in the next
	tagOpen   = keyspace.MetricOpen    // resource → the steady sample in progress, with its first minute
	tagClosed = keyspace.MetricClosed  // resource, first minute → the ended steady sample, with its last minute
	tagLatest = keyspace.MetricLatest  // minute of the last write, latest minute ever written, and the former in milliseconds
)

// seriesKey is the key of a series in the list, in the order of account, region, namespace,
// name, dimensions, unit.
func seriesKey(m *Metric, unit string) []byte {
	return append(metricKey(m), unit...)
}

// metricKey is the prefix of the keys of all units of a metric.
func metricKey(m *Metric) []byte {
	k := namePrefix(m.Scope, m.Namespace, m.Name)
	k = append(k, m.Dimensions...)
	return append(k, between)
}

// namePrefix is the prefix of the keys of all series of a scope, a namespace or a metric's
// name, as far as they are given.
func namePrefix(scope Scope, rest ...string) []byte {
	k := append(make([]byte, 0, 128), prefix, tagSeries)
	for _, part := range append([]string{scope.Account, scope.Region}, rest...) {
		k = append(append(k, part...), between)
	}
	return k
}

// seenIn decodes the value of such a key: the minute in which the series was last seen, as far
// as it has been written; 0: never.
func seenIn(value []byte) int64 {
	if len(value) != 4 {
		return 0
	}
	return int64(binary.BigEndian.Uint32(value))
}

// splitSeries decodes a key of seriesKey.
func splitSeries(key []byte) (m Metric, unit string, ok bool) {
	parts := strings.Split(string(key[2:]), string(between))
	if len(parts) != 6 {
		return m, "", false
	}
	return Metric{Scope{parts[0], parts[1]}, parts[2], parts[3], parts[4]}, parts[5], true
}

// id identifies a series in the keys of its points.
type id [16]byte

func idOf(seriesKey []byte) (i id) {
	sum := sha256.Sum256(seriesKey)
	copy(i[:], sum[:])
	return i
}

// resolution is the interval of points, and how long they are kept.
type resolution struct {
	step   int64 // minutes
	bucket int64 // minutes that expire together
	keep   int64 // minutes
}

const (
	hour = 60
	day  = 24 * hour
)

var resolutions = [...]resolution{
	{1, day, 15 * day},
	{5, 8 * day, 63 * day},
	{hour, 32 * day, 455 * day},
}

// Retention is how long points are kept, in minutes.
const Retention = 455 * day

func pointPrefix(res byte) []byte { return []byte{prefix, tagPoints, res} }

func bucketPrefix(res byte, bucket int64) []byte {
	return binary.BigEndian.AppendUint32(pointPrefix(res), uint32(bucket))
}

// pointKey is the key of the point of a series that begins at a minute.
func pointKey(res byte, series id, minute int64) []byte {
	k := bucketPrefix(res, minute/resolutions[res].bucket)
	k = append(k, series[:]...)
	return binary.BigEndian.AppendUint32(k, uint32(minute))
}

const pointKeySize = 3 + 4 + 16 + 4

// splitPoint decodes a key of pointKey.
func splitPoint(key []byte) (bucket int64, series id, minute int64, ok bool) {
	if len(key) != pointKeySize {
		return 0, series, 0, false
	}
	copy(series[:], key[7:])
	return int64(binary.BigEndian.Uint32(key[3:])), series, int64(binary.BigEndian.Uint32(key[23:])), true
}

var latestKey = []byte{prefix, tagLatest}

const minuteMillis = 60_000

// encodeLatest encodes the time of the last write, in epoch milliseconds, and the latest minute
// ever written.
func encodeLatest(at, furthest int64) []byte {
	v := binary.BigEndian.AppendUint32(nil, uint32(at/minuteMillis))
	v = binary.BigEndian.AppendUint32(v, uint32(furthest))
	return binary.BigEndian.AppendUint32(v, uint32(at%minuteMillis))
}

// decodeLatest also decodes the form without milliseconds.
func decodeLatest(v []byte) (at, furthest int64, ok bool) {
	if len(v) < 8 {
		return 0, 0, false
	}
	at, furthest = int64(binary.BigEndian.Uint32(v))*minuteMillis, int64(binary.BigEndian.Uint32(v[4:]))
	if len(v) == 12 {
		at += int64(binary.BigEndian.Uint32(v[8:]))
	}
	return at, furthest, true
}

func floorKey(res byte) []byte { return []byte{prefix, tagFloor, res} }
