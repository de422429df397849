package pattern

import (
	"encoding/json"
	"strconv"
	"strings"
)

// parseJSON reads { $.a.b[0] = "x*" && … }.
func parseJSON(s *scanner) (func(string) bool, error) {
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
	return func(message string) bool {
		// Most events that are no JSON are told by their first character.
		message = strings.TrimSpace(message)
		if message == "" || message[0] != '{' && message[0] != '[' {
			return false
		}
		d := json.NewDecoder(strings.NewReader(message))
		d.UseNumber()
		var event any
		if d.Decode(&event) != nil || d.More() {
			return false
		}
		return condition(event)
	}, nil
}

// parseProperty reads a selector and what is to hold of what it selects.
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

// step is one step of a selector: a member of an object, an element of an array,
// or all elements.
type step struct {
	name  string
	index int // when name is empty; wild: all
}

const wild = -1

type path []step

var errWild = invalid("a selector has one wildcard at most")

// selector reads $.a.b[0].['a.b'][*].
func (s *scanner) selector() (p path, err error) {
	if !s.take("$") {
		return nil, s.unexpected()
	}
	wildcards := 0
	for {
		dot := s.peek() == '.'
		if dot {
			s.next()
		}
		switch {
		case s.peek() == '[':
			s.next()
			st, err := s.subscript()
			if err != nil {
				return nil, err
			}
			if st.name == "" && st.index == wild {
				wildcards++
			}
			if wildcards > 1 {
				return nil, errWild
			}
			p = append(p, st)
		case dot:
			name := s.while(func(r rune) bool { return isWord(r) || strings.ContainsRune("-:/@#", r) })
			if name == "" {
				return nil, s.unexpected()
			}
			p = append(p, step{name: name})
		case len(p) == 0:
			return nil, s.unexpected()
		default:
			return p, nil
		}
	}
}

// subscript reads what stands behind a [.
func (s *scanner) subscript() (st step, err error) {
	switch s.peek() {
	case '\'', '"':
		if st.name, err = s.quoted(); err == nil && st.name == "" {
			err = s.unexpected()
		}
	case '*':
		s.next()
		st.index = wild
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

// find reports whether holds is true of anything that the path selects.
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
		case st.index == wild:
			list, _ := v.([]any)
			for _, element := range list {
				if p[i+1:].find(element, holds) {
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
