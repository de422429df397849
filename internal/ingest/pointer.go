package ingest

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// Bounds of a pointer.
const (
	maxPointer = 1024 // bytes
	maxDepth   = 32   // members
)

// Pointer is a JSON pointer (RFC 6901). The zero value points to the whole document.
type Pointer struct{ tokens []string }

// parsePointer parses a pointer.
func parsePointer(text string) (p Pointer, err error) {
	switch {
	case text == "":
		return p, nil
	case len(text) > maxPointer:
		return p, errors.New("a JSON pointer has " + strconv.Itoa(maxPointer) + " bytes at most")
	case text[0] != '/':
		return p, errors.New("a JSON pointer begins with /, as in /data/id")
	}
	for token := range strings.SplitSeq(text[1:], "/") {
		rest := strings.NewReplacer("~0", "", "~1", "").Replace(token)
		if strings.Contains(rest, "~") {
			return Pointer{}, errors.New("in a JSON pointer ~ is written ~0, and / in a name ~1")
		}
		// ~01 means ~1, not /, as with one pass from the left.
		p.tokens = append(p.tokens, strings.NewReplacer("~0", "~", "~1", "/").Replace(token))
	}
	if len(p.tokens) > maxDepth {
		return Pointer{}, errors.New("a JSON pointer has " + strconv.Itoa(maxDepth) + " members at most")
	}
	return p, nil
}

// document is a JSON body, whose outermost members are parsed only once.
type document struct {
	raw     json.RawMessage
	members map[string]json.RawMessage // nil until needed
}

// find is the raw value at p; nil: there is none.
func (d *document) find(p Pointer) json.RawMessage {
	at := d.raw
	for i, token := range p.tokens {
		at = bytes.TrimLeft(at, " \t\r\n")
		if len(at) == 0 {
			return nil
		}
		switch at[0] {
		case '{':
			var members map[string]json.RawMessage
			if i == 0 {
				members = d.members
			}
			if members == nil && json.Unmarshal(at, &members) != nil {
				return nil
			}
			if i == 0 {
				d.members = members
			}
			next, ok := members[token]
			if !ok {
				return nil
			}
			at = next
		case '[':
			n, ok := index(token)
			var all []json.RawMessage
			if !ok || json.Unmarshal(at, &all) != nil || n >= len(all) {
				return nil
			}
			at = all[n]
		default:
			return nil
		}
	}
	return bytes.TrimSpace(at)
}

// member is a member of an object.
type member struct {
	name  string
	value json.RawMessage
}

// membersOf are an object's outermost members in their order, repeated ones too; ok is false if
// it is not an object, or more than one value.
func membersOf(object []byte) (members []member, ok bool) {
	if !json.Valid(object) {
		return nil, false
	}
	in := json.NewDecoder(bytes.NewReader(object))
	if first, err := in.Token(); err != nil || first != json.Delim('{') {
		return nil, false
	}
	for in.More() {
		name, err := in.Token()
		var value json.RawMessage
		if err != nil || in.Decode(&value) != nil {
			return nil, false
		}
		members = append(members, member{name.(string), value}) // so Token gives it in an object
	}
	return members, true
}

// index parses an array index: digits without a leading zero. "-" is past the end.
func index(token string) (n int, ok bool) {
	if token == "" || len(token) > 9 || len(token) > 1 && token[0] == '0' || slices.ContainsFunc([]byte(token), func(c byte) bool { return c < '0' || c > '9' }) {
		return 0, false
	}
	n, err := strconv.Atoi(token)
	return n, err == nil
}

// text is a value as text: the content of a string, or else the raw JSON; ok is false if
// there is none, or it is null.
func text(value json.RawMessage) (s string, ok bool) {
	switch {
	case len(value) == 0 || value[0] == 'n':
		return "", false
	case value[0] == '"':
		return s, json.Unmarshal(value, &s) == nil
	default:
		return string(value), true
	}
}
