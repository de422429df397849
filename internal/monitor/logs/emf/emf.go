// Package emf reads CloudWatch's embedded metric format: metrics that are written into log events.
// Source: "Specification: Embedded metric format" in the CloudWatch user guide.
//
// It has no I/O. The cost of a message without metrics is that of a search for a few characters, that of
// one with metrics is bounded by its length and MaxMetrics: each member is decoded once, however often
// it is named.
package emf

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"godwit.dev/godwit/internal/decimal"
	"godwit.dev/godwit/internal/monitor/metrics"
)

// The bounds of a document. Source: the specification.
const (
	maxNames  = 100 // metrics of a directive
	maxKeys   = 30  // of a set of dimensions
	maxKey    = 250 // characters of one of them
	maxValues = 100 // in the array of a metric
)

// Bounds of what a document makes, so that a short one does not make much more than its length. What
// exceeds them is left out.
const (
	MaxMetrics = 1000      // as many as a call of PutMetricData
	maxEncoded = 256 << 10 // bytes of the dimensions of all its metrics
)

// marker is in all documents. It has no quotation mark before it, as many JSON texts have, at each of which the
// search would stop.
const marker = `CloudWatchMetrics"`

// Document has the metrics of a message.
type Document struct {
	Time    int64 // epoch milliseconds, if Timed
	Timed   bool
	Metrics []Metric // MaxMetrics at most
}

// Metric is a metric of a document. Its name, namespace, unit and dimensions are such that clients may
// put them.
type Metric struct {
	Namespace, Name, Unit string
	Dimensions            string    // a result of metrics.Dimensions
	Fine                  bool      // it is of high resolution
	Values                []float64 // 1 to 100, which clients may put; metrics share it
}

// Read reads the document that a message is, but for white space around it. ok is false of one that is no
// valid document. Metrics and sets of dimensions that name members which are not there, or have no fitting
// value, are left out, and so are values that clients may not put.
func Read(message string) (d Document, ok bool) {
	message = strings.TrimSpace(message)
	// Most events are recognised by their first character.
	if message == "" || message[0] != '{' || !strings.Contains(message, marker) {
		return d, false
	}
	var root object
	if json.Unmarshal([]byte(message), &root) != nil {
		return d, false
	}
	var meta object
	var directives []object
	if !read(root["_aws"], &meta) || !read(meta["CloudWatchMetrics"], &directives) {
		return d, false
	}
	if at, given := meta["Timestamp"]; given {
		if d.Time, d.Timed = milliseconds(at); !d.Timed {
			return d, false
		}
	}
	r := reader{root: root, members: map[string]member{}}
	for _, one := range directives {
		if !r.directive(one) {
			return Document{}, false
		}
	}
	d.Metrics = r.metrics
	return d, true
}

// ReadLogged is Read of what a function wrote, whose runtime may have put fields with tabs behind them
// before it: the time and the id of the request, for example.
func ReadLogged(message string) (d Document, ok bool) {
	if begin := strings.IndexByte(message, '{'); begin > 0 && message[begin-1] == '\t' {
		message = message[begin:]
	}
	return Read(message)
}

// object is an object whose members are decoded by need. Their names are case-sensitive.
type object = map[string]json.RawMessage

// read decodes a value of a type that has no null; ok is false of another value, and of none.
func read[T any](raw json.RawMessage, to *T) (ok bool) {
	return len(raw) > 0 && raw[0] != 'n' && json.Unmarshal(raw, to) == nil
}

// milliseconds reads a time that is a whole number.
func milliseconds(raw json.RawMessage) (at int64, ok bool) {
	n, ok := decimal.Parse(string(raw))
	if !ok || n != math.Trunc(n) || math.Abs(n) > 1<<53 {
		return 0, false
	}
	return int64(n), true
}

// member is a decoded member of the root: a text, or numbers that are values of a metric.
type member struct {
	text    string
	valid   bool // a dimension may have the text as its value
	numbers []float64
	kind    kind
}

type kind int

const (
	other kind = iota
	text
	numbers
	tooMany // numbers
)

// reader collects the metrics of a document.
type reader struct {
	root    object
	members map[string]member // those that were named
	encoded int               // bytes of dimensions
	metrics []Metric
}

// member decodes a member of the root.
func (r *reader) member(name string) member {
	m, known := r.members[name]
	if !known {
		m = decode(r.root[name])
		r.members[name] = m
	}
	return m
}

func decode(raw json.RawMessage) (m member) {
	if len(raw) == 0 {
		return m
	}
	switch raw[0] {
	case '"':
		if json.Unmarshal(raw, &m.text) == nil {
			m.kind, m.valid = text, metrics.Dimension{Name: "x", Value: m.text}.Valid()
		}
	case '[':
		var each []json.RawMessage
		if json.Unmarshal(raw, &each) != nil {
			return m
		}
		if len(each) > maxValues {
			m.kind = tooMany
			return m
		}
		for _, one := range each {
			if !m.add(one) {
				return member{}
			}
		}
	default:
		m.add(raw)
	}
	return m
}

// add adds a number, or leaves it out if clients may not put it; ok is false of what is none.
func (m *member) add(raw json.RawMessage) (ok bool) {
	if raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return false
	}
	m.kind = numbers
	if n, ok := decimal.Parse(string(raw)); ok && metrics.ValidValue(n) {
		m.numbers = append(m.numbers, n)
	}
	return true
}

// directive adds the metrics of a directive; ok is false of one that is not valid.
func (r *reader) directive(d object) (ok bool) {
	var namespace string
	var names []object
	if !read(d["Namespace"], &namespace) || !metrics.ValidNamespace(namespace) ||
		!read(d["Metrics"], &names) || len(names) > maxNames {
		return false
	}
	var found []Metric
	for _, one := range names {
		m := Metric{Namespace: namespace, Unit: "None"}
		if !m.define(one) {
			return false
		}
		target := r.member(m.Name)
		if target.kind == tooMany {
			return false
		}
		if m.Values = target.numbers; len(m.Values) > 0 {
			found = append(found, m)
		}
	}
	sets, ok := r.sets(d, len(found))
	if !ok {
		return false
	}
	for _, set := range sets {
		for _, m := range found {
			if len(r.metrics) == MaxMetrics {
				return true
			}
			m.Dimensions = set
			r.metrics = append(r.metrics, m)
		}
	}
	return true
}

// define reads the definition of a metric.
func (m *Metric) define(d object) (ok bool) {
	if !read(d["Name"], &m.Name) || !metrics.ValidName(m.Name) {
		return false
	}
	if unit, given := d["Unit"]; given && (!read(unit, &m.Unit) || !slices.Contains(metrics.AllUnits, m.Unit)) {
		return false
	}
	if raw, given := d["StorageResolution"]; given {
		seconds, _ := decimal.Parse(string(raw))
		if seconds != 1 && seconds != 60 {
			return false
		}
		m.Fine = seconds == 1
	}
	return true
}

// sets are the sets of dimensions of a directive with that many metrics, encoded. One that has none has a set
// without dimensions: the specification wants a set at least, but AWS's own exporters leave them out.
func (r *reader) sets(d object, count int) (all []string, ok bool) {
	var keys [][]*string
	if raw, given := d["Dimensions"]; given && !read(raw, &keys) {
		return nil, false
	}
	if len(keys) == 0 {
		return []string{""}, true
	}
	for _, set := range keys {
		if set == nil || len(set) > maxKeys {
			return nil, false
		}
		var by []metrics.Dimension
		size := 0
		for _, key := range set {
			if key == nil || *key == "" || utf8.RuneCountInString(*key) > maxKey {
				return nil, false
			}
			target := r.member(*key)
			one := metrics.Dimension{Name: *key, Value: target.text}
			if target.valid && metrics.ValidDimensionName(*key) && !slices.ContainsFunc(by, func(o metrics.Dimension) bool { return o.Name == *key }) {
				by = append(by, one)
				size += len(one.Name) + len(one.Value)
			}
		}
		size *= count // each metric has them
		if count > 0 && len(by) == len(set) && len(r.metrics)+len(all)*count < MaxMetrics && r.encoded+size <= maxEncoded {
			r.encoded += size
			all = append(all, metrics.Dimensions(by...))
		}
	}
	return all, true
}
