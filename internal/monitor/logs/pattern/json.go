package pattern

import (
	"slices"
	"strconv"
	"strings"
)

// parseJSON parses { $.a.b[0] = "x*" && … }.
func parseJSON(s *scanner) (func(*Event) bool, error) {
	s.take("{")
	condition, err := conditions(s, 0, func() (func(any) bool, error) { return parseProperty(s) })
	if err != nil {
		return nil, err
	}
	if !s.take("}") {
		return nil, s.unexpected()
	}
	if s.space(); s.peek() != end {
		return nil, s.unexpected()
	}
	return func(e *Event) bool {
		value, ok := e.json()
		return ok && condition(value)
	}, nil
}

// parseProperty parses a selector and the condition on its values.
func parseProperty(s *scanner) (func(any) bool, error) {
	path, err := s.selector()
	if err != nil {
		return nil, err
	}
	some := func(holds func(any) bool) func(any) bool {
		return func(event any) bool { return path.find(event, holds) }
	}
	switch {
	case s.word("IS"):
		switch {
		case s.word("NULL"):
			return some(func(v any) bool { return v == nil }), nil
		case s.word("TRUE"):
			return some(func(v any) bool { return v == true }), nil
		case s.word("FALSE"):
			return some(func(v any) bool { return v == false }), nil
		}
		return nil, s.unexpected()
	case s.word("NOT"):
		if !s.word("EXISTS") {
			return nil, s.unexpected()
		}
		exists := some(func(any) bool { return true })
		return func(event any) bool { return !exists(event) }, nil
	}
	c, ok, err := s.comparison("")
	if err == nil && !ok {
		err = s.unexpected()
	}
	if err != nil {
		return nil, err
	}
	return some(c.value), nil
}

// step is one step of a selector: a member of an object or an element of an array,
// or all of them.
type step struct {
	name  string
	index int // when name is empty
}

// Special values of index.
const (
	elements = -1 // all those of an array
	members  = -2 // all those of an object
)

type path []step

var (
	errWild      = invalid("a selector has one wildcard at most")
	errWildcards = invalid("it has more than 3 wildcards in selectors")
)

// selector reads $.a.b[0].['a.b'][*].*.
func (s *scanner) selector() (p path, err error) {
	if !s.take("$") {
		return nil, s.unexpected()
	}
	wild := false
	for {
		dot := s.peek() == '.'
		if dot {
			s.next()
		}
		var st step
		switch {
		case s.peek() == '[':
			s.next()
			if st, err = s.subscript(); err != nil {
				return nil, err
			}
		case dot && s.peek() == '*':
			s.next()
			st.index = members
		case dot:
			if st.name = s.while(func(r rune) bool { return isWord(r) || strings.ContainsRune("-:/@#", r) }); st.name == "" {
				return nil, s.unexpected()
			}
		case len(p) == 0:
			return nil, s.unexpected()
		default:
			return p, nil
		}
		if st.index < 0 {
			if wild {
				return nil, errWild
			}
			if wild = true; s.wildcards == maxWildcards {
				return nil, errWildcards
			}
			s.wildcards++
		}
		p = append(p, st)
	}
}

// subscript parses the rest of a subscript after [.
func (s *scanner) subscript() (st step, err error) {
	switch s.peek() {
	case '\'', '"':
		if st.name, err = s.quoted(); err == nil && st.name == "" {
			err = s.unexpected()
		}
	case '*':
		s.next()
		st.index = elements
	default:
		digits := s.while(func(r rune) bool { return r >= '0' && r <= '9' })
		if st.index, err = strconv.Atoi(digits); err != nil {
			return st, s.unexpected()
		}
	}
	if err == nil && s.peek() != ']' {
		err = s.unexpected()
	}
	s.next()
	return st, err
}

// find reports whether holds is true of any value that the path selects.
func (p path) find(v any, holds func(any) bool) bool {
	for i, st := range p {
		switch {
		case st.name != "":
			object, ok := v.(map[string]any)
			if !ok {
				return false
			}
			if v, ok = object[st.name]; !ok {
				return false
			}
		case st.index == elements:
			list, _ := v.([]any)
			return slices.ContainsFunc(list, func(element any) bool { return p[i+1:].find(element, holds) })
		case st.index == members:
			object, _ := v.(map[string]any)
			for _, member := range object {
				if p[i+1:].find(member, holds) {
					return true
				}
			}
			return false
		default:
			list, _ := v.([]any)
			if st.index >= len(list) {
				return false
			}
			v = list[st.index]
		}
	}
	return holds(v)
}
