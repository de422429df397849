package stack

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/stack/resource"
)

// DriftStatus is the result of comparing actual resources with the template, in AWS's words.
type DriftStatus string

// The statuses of resources, and the last three with Drifted those of stacks.
const (
	Modified   DriftStatus = "MODIFIED"
	Deleted    DriftStatus = "DELETED"
	InSync     DriftStatus = "IN_SYNC"
	NotChecked DriftStatus = "NOT_CHECKED"
	Unknown    DriftStatus = "UNKNOWN"
	Drifted    DriftStatus = "DRIFTED"
)

// The kinds of differences, as AWS names them.
const (
	Added    = "ADD"
	Removed  = "REMOVE"
	NotEqual = "NOT_EQUAL"
)

// Difference is a difference of a resource from its template.
type Difference struct {
	Path     string `json:"path"`     // a JSON pointer into the properties
	Expected string `json:"expected"` // as JSON, or the text itself
	Actual   string `json:"actual"`
	Kind     string `json:"kind"`
}

// Drift is the result of comparing a resource.
type Drift struct {
	Status      DriftStatus    `json:"status"`
	At          int64          `json:"at"` // epoch milliseconds
	Expected    map[string]any `json:"expected,omitempty"`
	Actual      map[string]any `json:"actual,omitempty"`
	Differences []Difference   `json:"differences,omitempty"`
	Reason      string         `json:"reason,omitempty"` // why it is unknown
}

// Detection is a comparison of a stack's resources with their state in the services.
type Detection struct {
	ID      string         `json:"id"`
	By      *caller.Caller `json:"by,omitempty"`   // the requester, while it is in progress
	Only    []string       `json:"only,omitempty"` // resources to be compared; none: all
	Phase   uint64         `json:"phase"`          // of the stack when it began
	Began   int64          `json:"began"`          // epoch milliseconds
	Ended   int64          `json:"ended,omitempty"`
	Status  DriftStatus    `json:"status,omitempty"`
	Drifted int            `json:"drifted,omitempty"` // resources
	Failure string         `json:"failure,omitempty"`
}

// mostDetections is how many comparisons a stack keeps.
const mostDetections = 10

// Detectable reports that a stack is in a state that can be compared.
func (s Status) Detectable() bool {
	return slices.Contains([]Status{CreateComplete, UpdateComplete, UpdateRollbackDone, UpdateRollbackFailed}, s)
}

// Detecting is the comparison in progress; nil: there is none.
func (m *Machine) Detecting() *Detection {
	if n := len(m.Detections); n > 0 && m.Detections[n-1].Ended == 0 {
		return &m.Detections[n-1]
	}
	return nil
}

// Detect begins a comparison, which Detected ends.
func (m *Machine) Detect(now int64, d Detection) {
	d.Began, d.Phase = now, m.Phase
	m.Detections = append(slices.Clone(m.Detections), d) // others read the former slice
	if n := len(m.Detections) - mostDetections; n > 0 {
		m.Detections = m.Detections[n:]
	}
}

// Detected applies the results of a comparison, by resource. Resources that have changed
// meanwhile were not compared.
func (m *Machine) Detected(now int64, id string, found map[string]Drift) {
	if d := m.Detecting(); d == nil || d.ID != id {
		return
	}
	m.Detections = slices.Clone(m.Detections)
	d := m.Detecting()
	d.By, d.Ended = nil, now
	if d.Phase != m.Phase {
		d.Status, d.Failure = Unknown, m.Sentence(ErrChangedMeanwhile)
		return
	}
	var failed []string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		drift := found[name]
		if m.observe(now, name, drift) && drift.Status == Unknown {
			failed = append(failed, name)
		}
	}
	d.Status, d.Drifted = m.judged()
	if failed != nil {
		d.Failure = m.Sentence(ErrNotCompared.With(strings.Join(failed, ", ")))
	}
	m.Drift, m.DriftAt = d.Status, now
}

// Observe applies the result of comparing one resource.
func (m *Machine) Observe(now int64, id string, drift Drift) {
	if m.observe(now, id, drift) {
		if status, _ := m.judged(); status == Drifted || m.Drift != "" && m.Drift != NotChecked {
			m.Drift, m.DriftAt = status, now
		}
	}
}

func (m *Machine) observe(now int64, id string, drift Drift) bool {
	r := m.Resources[id]
	if r == nil || !r.Exists() {
		return false
	}
	drift.At = now
	r.Drift = &drift
	m.touch(id)
	return true
}

// judged is the status of the stack, by those of its resources.
func (m *Machine) judged() (status DriftStatus, drifted int) {
	status = InSync
	for _, r := range m.Resources {
		switch {
		case r.Drift == nil || !r.Exists():
		case r.Drift.Status == Modified || r.Drift.Status == Deleted:
			drifted++
		case r.Drift.Status == Unknown:
			status = Unknown
		}
	}
	if drifted > 0 {
		status = Drifted
	}
	return status, drifted
}

// Compared is the drift of a resource with the given actual properties; only properties in its
// template are compared.
func (r *Resource) Compared(actual map[string]any) Drift {
	t := typed(r.Type)
	seen := map[string]any{}
	for name := range r.Properties {
		if value, ok := actual[name]; ok && value != nil {
			seen[name] = value
		}
	}
	for name, value := range seen {
		if normal, err := t.NormaliseOne(name, value); err == nil {
			seen[name] = normal
		}
	}
	d := Drift{Status: InSync, Expected: r.Properties, Actual: seen}
	for _, name := range slices.Sorted(maps.Keys(r.Properties)) {
		d.compare("/"+escape(name), r.Properties[name], seen[name])
	}
	if d.Differences != nil {
		d.Status = Modified
	}
	return d
}

// escape escapes a name for a JSON pointer.
func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

func (d *Drift) differ(path, kind string, expected, actual any) {
	d.Differences = append(d.Differences, Difference{Path: path, Expected: written(expected), Actual: written(actual), Kind: kind})
}

// written is a value as AWS shows it.
func written(value any) string {
	if value == nil {
		return "null"
	}
	if s, ok := resource.Scalar(value); ok {
		return s
	}
	text, _ := json.Marshal(value) //nolint:errchkjson // it has been read from JSON
	return string(text)
}

func (d *Drift) compare(path string, expected, actual any) {
	if alike(expected, actual) {
		return
	}
	switch want := expected.(type) {
	case map[string]any:
		got, ok := actual.(map[string]any)
		if !ok {
			break
		}
		for _, name := range slices.Sorted(maps.Keys(want)) {
			d.compare(path+"/"+escape(name), want[name], got[name])
		}
		for _, name := range slices.Sorted(maps.Keys(got)) {
			if _, ok := want[name]; !ok {
				d.differ(path+"/"+escape(name), Added, nil, got[name])
			}
		}
		return
	case []any:
		if got, ok := actual.([]any); ok {
			d.list(path, want, got)
			return
		}
	}
	kind := NotEqual
	if actual == nil {
		kind = Removed
	}
	d.differ(path, kind, expected, actual)
}

// list compares lists without an order. Named elements are compared by name.
func (d *Drift) list(path string, want, got []any) {
	left := slices.Clone(got)
	index := make([]int, len(got))
	for i := range got {
		index[i] = i
	}
	take := func(match func(any) bool) (any, bool) {
		i := slices.IndexFunc(left, match)
		if i < 0 {
			return nil, false
		}
		found := left[i]
		left, index = slices.Delete(left, i, i+1), slices.Delete(index, i, i+1)
		return found, true
	}
	var missing []int
	for i, item := range want {
		if _, ok := take(func(other any) bool { return alike(item, other) }); !ok {
			missing = append(missing, i)
		}
	}
	for _, i := range missing {
		at := path + "/" + strconv.Itoa(i)
		name, named := nameOf(want[i])
		other, ok := take(func(other any) bool {
			its, has := nameOf(other)
			return named && has && its == name
		})
		if !ok {
			d.differ(at, Removed, want[i], nil)
			continue
		}
		d.compare(at, want[i], other)
	}
	for i, other := range left {
		d.differ(path+"/"+strconv.Itoa(index[i]), Added, nil, other)
	}
}

// nameOf is the identifying name of an element of a list.
func nameOf(item any) (string, bool) {
	object, _ := item.(map[string]any)
	for _, key := range []string{"Key", "Name", "PolicyName", "Id", "Sid"} {
		if name, ok := resource.Scalar(object[key]); ok {
			return name, true
		}
	}
	return "", false
}

// alike reports that two values are equivalent: templates may write numbers and truth values as
// texts, and a list of one element as the element.
func alike(a, b any) bool {
	x, scalarX := resource.Scalar(a)
	y, scalarY := resource.Scalar(b)
	if scalarX && scalarY {
		return x == y || sameNumber(a, b, x, y)
	}
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, alike)
	case []any:
		if scalarY && len(a) == 1 {
			return alike(a[0], b)
		}
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		left := slices.Clone(b)
		for _, item := range a {
			i := slices.IndexFunc(left, func(other any) bool { return alike(item, other) })
			if i < 0 {
				return false
			}
			left = slices.Delete(left, i, i+1)
		}
		return true
	}
	if list, ok := b.([]any); ok && scalarX && len(list) == 1 {
		return alike(a, list[0])
	}
	return a == nil && b == nil
}

func sameNumber(a, b any, x, y string) bool {
	_, isX := a.(string)
	_, isY := b.(string)
	if isX && isY {
		return false
	}
	left, errX := strconv.ParseFloat(x, 64)
	right, errY := strconv.ParseFloat(y, 64)
	return errX == nil && errY == nil && left == right
}
