package pattern

import "strings"

var (
	errEllipses = invalid("it has more than one ellipsis")
	errName     = invalid("a condition is about the field it stands at")
)

// parseFields parses [a, b=x || b=y, ..., n>9]. An ellipsis matches any number of fields;
// without one the last field takes the rest of the line.
func parseFields(s *scanner) (func(string) bool, error) {
	s.take("[")
	var before, after []func(string) bool // the ellipsis
	ellipsis := false
	if s.take("]") {
		return fieldsEnd(s, func(string) bool { return true })
	}
	for {
		if s.take("...") {
			if ellipsis {
				return nil, errEllipses
			}
			ellipsis = true
		} else {
			test, err := parseField(s)
			if err != nil {
				return nil, err
			}
			if ellipsis {
				after = append(after, test)
			} else {
				before = append(before, test)
			}
		}
		if s.take("]") {
			break
		}
		if !s.take(",") {
			return nil, s.unexpected()
		}
	}
	return fieldsEnd(s, func(message string) bool {
		if !ellipsis {
			fields, rest := split(message, len(before)-1)
			if len(fields) < len(before)-1 || rest == "" {
				return false
			}
			last, behind := split(rest, 1)
			if strings.TrimSpace(behind) == "" {
				rest = last[0] // without its quotes or brackets
			}
			return holdAll(before, append(fields, rest))
		}
		fields, _ := split(message, -1)
		if len(fields) < len(before)+len(after) {
			return false
		}
		return holdAll(before, fields) && holdAll(after, fields[len(fields)-len(after):])
	})
}

func fieldsEnd(s *scanner, match func(string) bool) (func(string) bool, error) {
	if s.space(); s.peek() != end {
		return nil, s.unexpected()
	}
	return match, nil
}

func holdAll(tests []func(string) bool, fields []string) bool {
	for i, test := range tests {
		if !test(fields[i]) {
			return false
		}
	}
	return true
}

// parseField parses a field's name and its conditions, each of which repeats the name. A field
// without conditions matches anything.
func parseField(s *scanner) (func(string) bool, error) {
	s.space()
	if r := s.peek(); r == ',' || r == ']' {
		return func(string) bool { return true }, nil
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
		return func(string) bool { return true }, nil
	}
	return test, err
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
