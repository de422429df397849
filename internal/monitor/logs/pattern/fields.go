package pattern

import "strings"

var (
	errEllipses = invalid("it has more than one ellipsis")
	errName     = invalid("a condition is about the field it stands at")
)

// layout is how a space-delimited pattern takes a line apart. An ellipsis stands for any number of
// fields between those before it and those after it; without one the last field takes the rest of
// the line.
type layout struct {
	before, after []field
	ellipsis      bool
}

// field is one field: its name, empty if it has none, and whether a value is as the pattern wants.
type field struct {
	name string
	test func(value string) bool
}

// fields are the values of a line's fields, those before the ellipsis and those after it; ok says that
// there are enough.
func (l *layout) fields(line string) (before, after []string, ok bool) {
	if !l.ellipsis && len(l.before) == 0 {
		return nil, nil, true
	}
	if !l.ellipsis {
		fields, rest := split(line, len(l.before)-1)
		if len(fields) < len(l.before)-1 || rest == "" {
			return nil, nil, false
		}
		last, behind := split(rest, 1)
		if strings.TrimSpace(behind) == "" {
			rest = last[0] // without its quotes or brackets
		}
		return append(fields, rest), nil, true
	}
	fields, _ := split(line, -1)
	if len(fields) < len(l.before)+len(l.after) {
		return nil, nil, false
	}
	return fields[:len(l.before)], fields[len(fields)-len(l.after):], true
}

func (l *layout) match(line string) bool {
	before, after, ok := l.fields(line)
	return ok && holdAll(l.before, before) && holdAll(l.after, after)
}

// value is the value of the field with a name.
func (l *layout) value(line, name string) (string, bool) {
	before, after, ok := l.fields(line)
	if !ok {
		return "", false
	}
	for i := range l.before {
		if l.before[i].name == name {
			return before[i], true
		}
	}
	for i := range l.after {
		if l.after[i].name == name {
			return after[i], true
		}
	}
	return "", false
}

// parseFields parses [a, b=x || b=y, ..., n>9].
func (p *Pattern) parseFields(s *scanner) error {
	s.take("[")
	var l layout
	for more := !s.take("]"); more; {
		if s.take("...") {
			if l.ellipsis {
				return errEllipses
			}
			l.ellipsis = true
		} else {
			f, err := parseField(s)
			if err != nil {
				return err
			}
			if f.name != "" {
				p.names = append(p.names, f.name)
			}
			if l.ellipsis {
				l.after = append(l.after, f)
			} else {
				l.before = append(l.before, f)
			}
		}
		if s.take("]") {
			break
		}
		if !s.take(",") {
			return s.unexpected()
		}
	}
	if s.space(); s.peek() != end {
		return s.unexpected()
	}
	p.match, p.field = func(e *Event) bool { return l.match(e.message) }, l.value
	return nil
}

func holdAll(fields []field, values []string) bool {
	for i, f := range fields {
		if !f.test(values[i]) {
			return false
		}
	}
	return true
}

// parseField parses a field's name and its conditions, each of which repeats the name. A field
// without conditions matches anything.
func parseField(s *scanner) (field, error) {
	s.space()
	if r := s.peek(); r == ',' || r == ']' {
		return field{test: func(string) bool { return true }}, nil
	}
	name, free := "", false
	test, err := conditions(s, 0, func() (func(string) bool, error) {
		s.space()
		this := s.while(func(r rune) bool { return isWord(r) || r == '-' || r == '$' || r == '.' })
		if this == "" {
			return nil, s.unexpected()
		}
		if name == "" {
			name = this
		}
		if this != name {
			return nil, errName
		}
		c, ok, err := s.comparison(",")
		if err != nil {
			return nil, err
		}
		if !ok {
			free = true
			return func(string) bool { return true }, nil
		}
		return c.field, nil
	})
	if err == nil && free {
		test = func(string) bool { return true }
	}
	return field{strings.TrimPrefix(name, "$"), test}, err
}

// split splits a line into up to limit fields; all if limit is negative. Fields are separated by
// spaces; a text in quotes or brackets is one field, without these.
func split(line string, limit int) (fields []string, rest string) {
	rest = strings.TrimLeft(line, " \t\r\n")
	for rest != "" && len(fields) != limit {
		closing := -1
		switch rest[0] {
		case '"':
			closing = strings.IndexByte(rest[1:], '"')
		case '[':
			closing = strings.IndexByte(rest[1:], ']')
		}
		if closing >= 0 {
			fields, rest = append(fields, rest[1:1+closing]), rest[2+closing:]
		} else {
			at := strings.IndexAny(rest, " \t\r\n")
			if at < 0 {
				at = len(rest)
			}
			fields, rest = append(fields, rest[:at]), rest[at:]
		}
		rest = strings.TrimLeft(rest, " \t\r\n")
	}
	return fields, rest
}
