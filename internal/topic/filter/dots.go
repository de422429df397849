package filter

import (
	"reflect"
	"slices"
	"strings"
)

// AWS compares the path of a policy with that of a value in a body as the keys joined by
// dots, wherever the dots come from: {"a.b":["x"]} and {"a":{"b":["x"]}} match the same
// bodies, {"a.b":"x"} and {"a":{"b":"x"}} among them.
//
// A policy is brought into the form without dots when it is compiled. A body is left as
// it is: few have such keys, and what is made of one may be many times its size.

// maxSteps is how many keys of a policy a dot may part: a longer path is left whole
// behind that, and no body that has it in parts is matched.
const maxSteps = MaxCombinations

// inBodies is o as it is held against bodies, where no key has a dot; nil if none of o's
// has one.
func inBodies(o *object) *object {
	if !o.dotted() {
		return nil
	}
	out := &object{}
	out.take(o)
	return out
}

func (o *object) dotted() bool {
	for i := range o.fields {
		if f := &o.fields[i]; strings.IndexByte(f.key, '.') >= 0 || f.nested != nil && f.nested.dotted() {
			return true
		}
	}
	for _, or := range o.ors {
		if slices.ContainsFunc(or, func(branch object) bool { return branch.dotted() }) {
			return true
		}
	}
	return false
}

// take adds what from demands. Objects under one path become one, so that an element of
// an array has to have all that is said of it.
func (o *object) take(from *object) {
	for i := range from.fields {
		o.takeField(&from.fields[i])
	}
	for _, or := range from.ors {
		branches := make([]object, len(or))
		for i := range or {
			branches[i].take(&or[i])
		}
		o.ors = append(o.ors, branches)
	}
}

func (o *object) takeField(f *field) {
	key := f.key
	for range maxSteps {
		first, rest, parted := strings.Cut(key, ".")
		if !parted {
			break
		}
		o, key = o.under(first), rest
	}
	if f.nested != nil {
		o.under(key).take(f.nested)
		return
	}
	leaf := *f
	leaf.key = key
	o.fields = append(o.fields, leaf)
}

// under is the object at a key, which is made if there is none.
func (o *object) under(key string) *object {
	for i := range o.fields {
		if f := &o.fields[i]; f.key == key && f.nested != nil {
			return f.nested
		}
	}
	f := field{key: key, nested: &object{}}
	o.fields = append(o.fields, f)
	return f.nested
}

// dots are the objects of a body that have keys with a dot: these keys, in order.
type dots map[uintptr][]string

func (d *dots) find(v any) {
	switch v := v.(type) {
	case map[string]any:
		var names []string
		for name, child := range v {
			if strings.IndexByte(name, '.') >= 0 {
				names = append(names, name)
			}
			d.find(child)
		}
		if names == nil {
			return
		}
		slices.Sort(names)
		if *d == nil {
			*d = dots{}
		}
		(*d)[identity(v)] = names
	case []any:
		for _, e := range v {
			d.find(e)
		}
	default:
	}
}

// identity identifies an object of a body. The body keeps it where it is.
func identity(members map[string]any) uintptr { return reflect.ValueOf(members).Pointer() }

func (d dots) of(members map[string]any) []string {
	if len(d) == 0 {
		return nil
	}
	return d[identity(members)]
}

// view is what a body has under a path: the objects there, and the parts of objects
// above whose keys continue with a dot behind it.
type view []part

// part is the members of an object whose keys begin with prefix, under the rest of
// these.
type part struct {
	members map[string]any
	prefix  string // empty, or with a dot at its end
}

// matches is object.matchesMembers for a body with dots in its keys.
func (d dots) matches(o *object, in view) bool {
	for i := range o.fields {
		if !d.matchesField(&o.fields[i], in) {
			return false
		}
	}
	for _, or := range o.ors {
		if !slices.ContainsFunc(or, func(branch object) bool { return d.matches(&branch, in) }) {
			return false
		}
	}
	return true
}

func (d dots) matchesField(f *field, in view) bool {
	var there []any // values under the key itself
	var below view  // under keys that continue behind it
	for _, p := range in {
		path := p.prefix + f.key
		if v, ok := p.members[path]; ok {
			there = append(there, v)
		}
		path += "."
		names := d.of(p.members)
		if i, _ := slices.BinarySearch(names, path); i < len(names) && strings.HasPrefix(names[i], path) {
			below = append(below, part{p.members, path})
		}
	}
	switch {
	case f.nested == nil:
		return f.matches(there)
	case len(there) == 0 && len(below) == 0:
		return f.nested.matchesAbsence()
	case len(there) == 0:
		return d.matches(f.nested, below)
	}
	return slices.ContainsFunc(there, func(v any) bool { return d.matchesValue(f.nested, v, below) })
}

// matchesValue is object.matches for a value beside others below its path.
func (d dots) matchesValue(o *object, v any, below view) bool {
	switch v := v.(type) {
	case map[string]any:
		return d.matches(o, append(view{{members: v}}, below...))
	case []any:
		if len(v) > 0 {
			return slices.ContainsFunc(v, func(e any) bool { return d.matchesValue(o, e, below) })
		}
	default:
	}
	if len(below) > 0 {
		return d.matches(o, below)
	}
	return o.matchesAbsence()
}
