package awsjson

import (
	"bytes"
	"encoding/json"

	"godwit.dev/godwit/internal/wire/shape"
)

// ownNames is a JSON text in which the members that a type does not have are blank, in a copy.
// Like AWS, it tells upper case from lower; encoding/json would take QUEUEURL for QueueUrl. What is
// no JSON, or not of the type, is left to the decoder.
func ownNames(body []byte, t *shape.Type) []byte {
	w := walk{body: body, kept: body}
	w.value(t)
	return w.kept
}

// walk goes once through a JSON text.
type walk struct {
	body []byte
	at   int
	kept []byte // body, or its copy once a name is blank
}

// has reports whether there are names to compare in a value of the type.
func has(t *shape.Type) bool {
	switch t.Kind {
	case shape.Struct:
		return true
	case shape.List, shape.Map:
		return has(t.Elem)
	default:
		return false
	}
}

// value passes over a value; false: the text ends, or is no JSON.
func (w *walk) value(t *shape.Type) bool {
	switch first := w.next(); {
	case !has(t):
		return w.skip()
	case first == '{' && t.Kind != shape.List:
		return w.object(t)
	case first == '[' && t.Kind == shape.List:
		return w.list(t.Elem)
	default:
		return w.skip()
	}
}

// next is the next character that is no space, or 0 at the end.
func (w *walk) next() byte {
	for ; w.at < len(w.body); w.at++ {
		switch c := w.body[w.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// take passes over a character, if it is the next.
func (w *walk) take(c byte) bool {
	if w.next() != c {
		return false
	}
	w.at++
	return true
}

func (w *walk) list(of *shape.Type) bool {
	w.at++
	if w.take(']') {
		return true
	}
	for {
		if !w.value(of) {
			return false
		}
		if !w.take(',') {
			return w.take(']')
		}
	}
}

// object passes over a structure, or a map.
func (w *walk) object(t *shape.Type) bool {
	w.at++
	if w.take('}') {
		return true
	}
	for {
		if w.next() != '"' {
			return false
		}
		from := w.at + 1
		w.at = from + skipText(w.body[from:])
		to := w.at - 1 // the closing quote
		if !w.take(':') {
			return false
		}
		of := t.Elem
		if t.Kind == shape.Struct {
			of = w.member(t, from, to)
		}
		if of == nil && !w.skip() || of != nil && !w.value(of) {
			return false
		}
		if !w.take(',') {
			return w.take('}')
		}
	}
}

// member is the type of the member whose name is between from and to. If there is none of that name
// it is nil, and the name is made blank.
func (w *walk) member(t *shape.Type, from, to int) *shape.Type {
	name := w.body[from:to]
	if bytes.IndexByte(name, '\\') >= 0 {
		var plain string
		if json.Unmarshal(w.body[from-1:to+1], &plain) != nil {
			return nil
		}
		name = []byte(plain)
	}
	for i := range t.Fields {
		if t.Fields[i].JSON == string(name) {
			return t.Fields[i].Type
		}
	}
	if &w.kept[0] == &w.body[0] {
		w.kept = bytes.Clone(w.body)
	}
	for i := from; i < to; i++ {
		w.kept[i] = ' '
	}
	return nil
}

// skip passes over a value of any kind.
func (w *walk) skip() bool {
	depth := 0
	for w.next() != 0 {
		switch c := w.body[w.at]; c {
		case '"':
			w.at += 1 + skipText(w.body[w.at+1:])
		case '{', '[':
			depth++
			w.at++
		case '}', ']':
			if depth == 0 {
				return false
			}
			depth--
			w.at++
		case ',', ':':
			if depth == 0 {
				return false
			}
			w.at++
			continue
		default: // a number or a word
			for w.at < len(w.body) && !ends(w.body[w.at]) {
				w.at++
			}
		}
		if depth == 0 {
			return true
		}
	}
	return false
}

// ends reports whether a number or a word ends before a character.
func ends(c byte) bool {
	switch c {
	case ' ', '\t', '\r', '\n', ',', ':', ']', '}', '[', '{', '"':
		return true
	}
	return false
}
