// Package constraints refuses requests that violate the constraints of AWS's models, with
// AWS's messages: required members, lengths, ranges, patterns, enumerations.
// test/checklist/generate makes the tables from the models.
package constraints

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/check"
	"godwit.dev/godwit/internal/fault"
)

//go:embed *.json
var tables embed.FS

// Table has the constraints of a service. A member is the name of its shape, or empty without
// constraints, followed by "!" if it is required.
type Table struct {
	Shapes     map[string]*Shape
	Operations map[string]map[string]string
}

// Shape has the constraints of a value.
type Shape struct {
	Min     *int              `json:",omitempty"` // of a number, or of the length of a text, list or blob
	Max     *int              `json:",omitempty"`
	Pattern string            `json:",omitempty"` // AWS's form; it must match the whole text
	Enum    []string          `json:",omitempty"`
	Of      string            `json:",omitempty"` // the shape of a list's entries
	Members map[string]string `json:",omitempty"` // of a structure
	Hidden  bool              `json:",omitempty"` // messages must not have the value

	once    sync.Once
	pattern *regexp.Regexp
}

// service has the form of a service's validation messages.
type service struct {
	// mute omits values from all messages.
	mute bool
	// own are messages for values that do not match a pattern, by member.
	own map[string]string
	// left are patterns that are not validated here, because the service's handlers do, with
	// other messages.
	left []string
}

var services = map[string]service{
	"iam": {mute: true, own: map[string]string{
		`[\w+=,.@-]+`: "The specified value for %s is invalid. It must contain only alphanumeric characters and/or the following: +=,.@_-",
		`(\u002F)|(\u002F[\u0021-\u007E]+\u002F)`: "The specified value for %s is invalid. It must begin and end with / and contain only alphanumeric characters and/or / characters.",
		`((/[A-Za-z0-9\.,\+@=_-]+)*)/`:            "The specified value for %s is invalid. It must begin and end with / and contain only alphanumeric characters and/or / characters.",
		`\u002F[\u0021-\u007F]*`:                  "The specified value for %s is invalid. It must begin with / and contain only alphanumeric characters and/or / characters.",
		`[\u0009\u000A\u000D\u0020-\u00FF]+`:      "The specified value for %s is invalid. It must contain only printable ASCII characters.",
	}, left: []string{`[\u0020-\u00FF]+`}}, // of markers, which are not AWS's
	"sts": {}, "cloudformation": {},
	"kms": {left: []string{`[\u0020-\u00FF]*`, `^[a-zA-Z0-9:/_-]+$`}},
}

// load returns the table of a service.
var load = func() func(name string) *Table {
	var mu sync.Mutex
	loaded := map[string]*Table{}
	return func(name string) *Table {
		mu.Lock()
		defer mu.Unlock()
		if loaded[name] == nil {
			text, err := tables.ReadFile(name + ".json")
			t := &Table{}
			if err == nil {
				err = json.Unmarshal(text, t)
			}
			if err != nil {
				panic(fmt.Sprintf("constraints: %v", err)) // the tables are embedded
			}
			loaded[name] = t
		}
		return loaded[name]
	}
}()

// Of is the table of a service, for example "iam".
func Of(name string) *Table { return load(name) }

// Guard adds to a service's operations the validation of its model.
func Guard(name string, operations []api.Operation) []api.Operation {
	guarded := slices.Clone(operations)
	for i := range guarded {
		op := guarded[i]
		members := sync.OnceValue(func() []member { return load(name).members(op.Input, load(name).Operations[op.Name]) })
		guarded[i].Check = func(in any) error {
			f := finder{table: load(name), service: services[name]}
			f.structure("", members(), reflect.ValueOf(in).Elem())
			return f.err()
		}
	}
	return guarded
}

// member is a constrained member of a structure.
type member struct {
	name     string // as in AWS's messages
	index    int
	shape    *Shape // nil: any value
	required bool
}

func (t *Table) members(of reflect.Type, named map[string]string) []member {
	all := make([]member, 0, len(named))
	for _, name := range slices.Sorted(maps.Keys(named)) {
		field, ok := of.FieldByName(name)
		if !ok {
			continue // no handler reads it
		}
		shape, required := strings.CutSuffix(named[name], "!")
		all = append(all, member{strings.ToLower(name[:1]) + name[1:], field.Index[0], t.Shapes[shape], required})
	}
	return all
}

// finder collects the violations of a request.
type finder struct {
	table   *Table
	service service
	broken  []string
	own     string // the first of the service's own messages
}

func (f *finder) err() error {
	switch {
	case len(f.broken) > 0:
		return fault.New(fault.ValidationFailed, check.Violations(f.broken))
	case f.own != "":
		return fault.New(fault.ValidationFailed, f.own)
	}
	return nil
}

const maxShown = 2_048 // bytes of a value in a message

// refuse adds a violation of a rule by a member; shown is empty if the value must not be
// shown.
func (f *finder) refuse(at string, shown *string, rule string) {
	value := "Value"
	if shown != nil && !f.service.mute {
		value += " '" + fault.Excerpt(*shown, maxShown, "…") + "'"
	}
	f.broken = append(f.broken, value+" at '"+at+"' failed to satisfy constraint: "+rule)
}

func (f *finder) structure(path string, members []member, in reflect.Value) {
	for i := range members {
		m := &members[i]
		f.member(path+m.name, m, in.Field(m.index))
	}
}

func (f *finder) member(at string, m *member, v reflect.Value) {
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil():
		v = v.Elem()
	case v.Kind() == reflect.Pointer, v.Kind() == reflect.Slice && v.IsNil(), v.Kind() == reflect.Map && v.IsNil(), v.Kind() == reflect.String && v.Len() == 0:
		if v.Kind() == reflect.String && m.required && m.shape != nil && m.shape.Min != nil {
			break // treated as an empty text, which clients send, not as absent
		}
		if m.required {
			f.broken = append(f.broken, check.NotNull(at))
		}
		return
	}
	if m.shape != nil {
		f.value(at, m.shape, v)
	}
}

func (f *finder) value(at string, s *Shape, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		text := v.String()
		shown := &text
		if s.Hidden {
			shown = nil
		}
		f.text(at, s, text, shown)
	case reflect.Int, reflect.Int64:
		text := strconv.FormatInt(v.Int(), 10)
		f.bounds(at, s, int(v.Int()), &text, "value")
	case reflect.Struct:
		f.structure(at+".", f.table.members(v.Type(), s.Members), v)
	case reflect.Slice:
		f.bounds(at, s, v.Len(), nil, "length")
		if s.Of != "" {
			f.entries(at, f.table.Shapes[s.Of], v)
		}
	}
}

// bounds checks a number, or a length.
func (f *finder) bounds(at string, s *Shape, n int, shown *string, of string) {
	for _, rule := range s.ranges(n, of) {
		f.refuse(at, shown, rule)
	}
}

func (s *Shape) ranges(n int, of string) (broken []string) {
	if s.Max != nil && n > *s.Max {
		broken = append(broken, atMost(of, *s.Max))
	}
	if s.Min != nil && n < *s.Min {
		broken = append(broken, atLeast(of, *s.Min))
	}
	return broken
}

func atMost(of string, n int) string {
	return "Member must have " + of + " less than or equal to " + strconv.Itoa(n)
}

func atLeast(of string, n int) string {
	return "Member must have " + of + " greater than or equal to " + strconv.Itoa(n)
}

func (f *finder) text(at string, s *Shape, text string, shown *string) {
	f.bounds(at, s, len([]rune(text)), shown, "length")
	if !f.matches(s, text) {
		if own, ok := f.service.own[s.Pattern]; ok {
			f.own = cmp.Or(f.own, fmt.Sprintf(own, at))
		} else {
			f.refuse(at, shown, "Member must satisfy regular expression pattern: "+s.Pattern)
		}
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, text) {
		f.refuse(at, shown, check.Enum(s.Enum...))
	}
}

// matches reports whether a text matches the pattern, unless its handler checks it.
func (f *finder) matches(s *Shape, text string) bool {
	if s.Pattern == "" || slices.Contains(f.service.left, s.Pattern) {
		return true
	}
	s.once.Do(func() { s.pattern = regexp.MustCompile("^(?:" + goPattern(s.Pattern) + ")$") })
	return s.pattern.MatchString(text)
}

var escape = regexp.MustCompile(`\\u([0-9A-F]{4,6})`)

// goPattern converts one of AWS's patterns, which are Java's, to Go's syntax.
func goPattern(pattern string) string {
	if pattern == `^[a-z0-9]([a-z0-9]|-(?!-)){1,61}[a-z0-9]$` { // it has a look-ahead
		pattern = `[a-z0-9]+(-[a-z0-9]+)*`
	}
	return escape.ReplaceAllString(pattern, `\x{$1}`)
}

// entries checks the entries of a list: for texts with one message for all; for structures
// member by member.
func (f *finder) entries(at string, s *Shape, v reflect.Value) {
	if s == nil {
		return
	}
	for i := range v.Len() {
		entry := v.Index(i)
		switch entry.Kind() {
		case reflect.Struct:
			f.value(at+"."+strconv.Itoa(i+1)+".member", s, entry)
		case reflect.String:
			one := finder{table: f.table, service: service{left: f.service.left}}
			if one.text("", s, entry.String(), nil); len(one.broken) == 0 {
				continue
			}
			all := make([]string, v.Len())
			for i := range all {
				all[i] = v.Index(i).String()
			}
			shown := "[" + strings.Join(all, ", ") + "]"
			f.refuse(at, &shown, "Member must satisfy constraint: ["+strings.Join(s.rules(), ", ")+"]")
			return
		}
	}
}

// rules are all rules of a text of the shape.
func (s *Shape) rules() (all []string) {
	if s.Max != nil {
		all = append(all, atMost("length", *s.Max))
	}
	if s.Min != nil {
		all = append(all, atLeast("length", *s.Min))
	}
	if s.Pattern != "" {
		all = append(all, "Member must satisfy regular expression pattern: "+s.Pattern)
	}
	if len(s.Enum) > 0 {
		all = append(all, check.Enum(s.Enum...))
	}
	if s.Pattern != "" || len(s.Enum) > 0 {
		all = append(all, "Member must not be null")
	}
	return all
}
