package filter

import (
	"reflect"
	"slices"
	"strings"
)

// AWS compares the path of a policy with that of a value in a body as the keys joined by dots,
// no matter which dots are part of keys: {"a.b":["x"]} and {"a":{"b":["x"]}} match the same
// bodies, including {"a.b":"x"} and {"a":{"b":"x"}}.
//
// A policy is converted to the form without dots when it is compiled. A body is not converted:
// few have such keys, and the converted form may be many times larger.

// maxSteps bounds how many keys the dots of a key are split into: the rest of a longer path is
// not split, and bodies that have it split do not match.
const maxSteps = maxCombinations

// inBodies is o converted for matching bodies: no key has a dot. It is nil if no key of o has
// one.
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

// take adds the requirements of from. Objects under one path are merged, so that a single
// element of an array has to satisfy all of them.
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

// under is the object at a key, which it makes if there is none.
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

// dots maps the objects of a body to their keys with a dot, in order.
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

// identity identifies an object of a body, which does not move.
func identity(members map[string]any) uintptr { return reflect.ValueOf(members).Pointer() }

func (d dots) of(members map[string]any) []string {
	if len(d) == 0 {
		return nil
	}
	return d[identity(members)]
}

// view is the part of a body under a path: the objects there, and parts of objects above whose
// keys continue with a dot after it.
type view []part

// part has the members of an object whose keys begin with prefix, under the rest of the key.
type part struct {
	members map[string]any
	prefix  string // empty, or ends with a dot
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
	var below view  // under keys that continue after it
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

// matchesValue is object.matches for a value and others below its path.
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
