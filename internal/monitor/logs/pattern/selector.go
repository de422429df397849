package pattern

import (
	"encoding/json"
	"slices"
	"strings"
)

// Selector names a part of an event: a property of one in JSON, such as $.a.b[0], or a field of a
// space-delimited one, such as $size.
type Selector struct {
	path  path
	field string
}

var errField = invalid("the pattern has no field of that name")

// ParseSelector parses a selector for events that a pattern selects. The text of an error is for the
// author of the selector.
func (p *Pattern) ParseSelector(text string) (s Selector, err error) {
	if name, ok := strings.CutPrefix(text, "$"); ok && !strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "[") {
		if !slices.Contains(p.names, name) {
			return s, errField
		}
		return Selector{field: name}, nil
	}
	read := &scanner{text: text}
	if s.path, err = read.selector(); err != nil {
		return s, err
	}
	if read.space(); read.peek() != end {
		return s, read.unexpected()
	}
	return s, nil
}

// Value is the text or number of an event that a selector names; of several, the first.
func (p *Pattern) Value(e *Event, s Selector) (value string, ok bool) {
	if s.field != "" {
		return p.field(e.message, s.field)
	}
	event, decoded := e.json()
	if !decoded {
		return "", false
	}
	s.path.find(event, func(v any) bool {
		switch v := v.(type) {
		case string:
			value, ok = v, true
		case json.Number:
			value, ok = v.String(), true
		}
		return ok
	})
	return value, ok
}
