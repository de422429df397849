package filter

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// document is a JSON document parsed in one pass: its values in the order in which they begin.
// The name of a member precedes its value.
type document struct {
	source string
	nodes  []node
	// work is the cost of compiling the document: bytes read and nodes visited.
	work int
}

// node is a value, or a member's name.
type node struct {
	kind       byte // '{', '[', '"', 't', 'f', 'n', or '0' of any number
	plain      bool // of a string: its text equals its source text
	start, end uint32
	next       uint32 // the node after the value and all its parts
}

// at is the index of a value in a document.
type at uint32

// deepest is the maximum nesting of values: that of encoding/json.
const deepest = 10_000

// expected is what may follow in a document.
type expected uint8

const (
	aValue      expected = iota
	aValueOrEnd          // after [
	aName                // after a comma in an object
	aNameOrEnd           // after {
	aColon               // after a name
	aCommaOrEnd          // after a value
)

// takeApart parses the one JSON value of a source. ok is false if it is invalid, or nested
// deeper than encoding/json allows: it accepts what json.Valid accepts.
func takeApart(source string) (d *document, ok bool) {
	d = &document{source: source, work: len(source)}
	d.nodes = make([]node, 0, 1+strings.Count(source, ",")+2*strings.Count(source, ":"))
	var open []uint32 // the containers that are open
	next := aValue
	for i := 0; i < len(source); {
		switch c := source[i]; c {
		case ' ', '\t', '\r', '\n':
			i++
		case '{', '[':
			if next > aValueOrEnd || len(open) == deepest {
				return nil, false
			}
			open = append(open, uint32(len(d.nodes)))
			d.add(node{kind: c, start: uint32(i)})
			if next = aValueOrEnd; c == '{' {
				next = aNameOrEnd
			}
			i++
		case '}', ']':
			if len(open) == 0 {
				return nil, false
			}
			of := &d.nodes[open[len(open)-1]]
			switch {
			case of.kind != c-2: // { and } are two apart, and so are [ and ]
				return nil, false
			case next != aCommaOrEnd && next != aValueOrEnd && next != aNameOrEnd:
				return nil, false
			}
			i++
			of.end, of.next = uint32(i), uint32(len(d.nodes))
			open = open[:len(open)-1]
			next = aCommaOrEnd
		case ',':
			if next != aCommaOrEnd || len(open) == 0 {
				return nil, false
			}
			if next = aValue; d.nodes[open[len(open)-1]].kind == '{' {
				next = aName
			}
			i++
		case ':':
			if next != aColon {
				return nil, false
			}
			next = aValue
			i++
		case '"':
			switch next {
			case aValue, aValueOrEnd:
				next = aCommaOrEnd
			case aName, aNameOrEnd:
				next = aColon
			default:
				return nil, false
			}
			end, plain := endOfString(source, i+1)
			if end == 0 {
				return nil, false
			}
			d.add(node{kind: c, plain: plain, start: uint32(i), end: uint32(end)})
			i = end
		default:
			end := endOfScalar(source, i)
			if next > aValueOrEnd || end == 0 {
				return nil, false
			}
			if c == '-' || c >= '0' && c <= '9' {
				c = '0'
			}
			d.add(node{kind: c, start: uint32(i), end: uint32(end)})
			next = aCommaOrEnd
			i = end
		}
	}
	return d, next == aCommaOrEnd && len(open) == 0
}

// add appends a node; next is that of a value without parts.
func (d *document) add(n node) {
	n.next = uint32(len(d.nodes)) + 1
	d.nodes = append(d.nodes, n)
}

// endOfString is the end of a string, after its closing quote; i is after its opening one. 0:
// it is invalid.
func endOfString(source string, i int) (end int, plain bool) {
	plain = true
	for ; i < len(source); i++ {
		switch c := source[i]; {
		case c == '"':
			return i + 1, plain
		case c == '\\':
			plain = false
			if i = endOfEscape(source, i+1); i == 0 {
				return 0, false
			}
			i--
		case c >= utf8.RuneSelf:
			plain = false // it may be invalid UTF-8
		case c < ' ':
			return 0, false
		}
	}
	return 0, false
}

// endOfEscape is the end of an escape sequence after a backslash in a string; 0: it is invalid.
func endOfEscape(source string, i int) (end int) {
	if i == len(source) {
		return 0
	}
	switch source[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		end = i + 5
		if end > len(source) {
			return 0
		}
		for _, c := range []byte(source[i+1 : end]) {
			if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
				return 0
			}
		}
		return end
	}
	return 0
}

// endOfScalar is the end of a number, true, false or null; 0: it is none of them.
func endOfScalar(source string, i int) (end int) {
	switch source[i] {
	case 't':
		return endOfWord(source, i, "true")
	case 'f':
		return endOfWord(source, i, "false")
	case 'n':
		return endOfWord(source, i, "null")
	case '-':
		i++
	}
	whole := endOfDigits(source, i)
	if whole == i || whole > i+1 && source[i] == '0' {
		return 0
	}
	i = whole
	if i < len(source) && source[i] == '.' {
		if end = endOfDigits(source, i+1); end == i+1 {
			return 0
		}
		i = end
	}
	if i < len(source) && source[i]|0x20 == 'e' {
		if i++; i < len(source) && (source[i] == '+' || source[i] == '-') {
			i++
		}
		if end = endOfDigits(source, i); end == i {
			return 0
		}
		i = end
	}
	return i
}

func endOfWord(source string, i int, word string) (end int) {
	if !strings.HasPrefix(source[i:], word) {
		return 0
	}
	return i + len(word)
}

func endOfDigits(source string, i int) (end int) {
	for i < len(source) && source[i] >= '0' && source[i] <= '9' {
		i++
	}
	return i
}

func (d *document) kind(v at) byte { return d.nodes[v].kind }

// written is the source text of a value.
func (d *document) written(v at) string { return d.source[d.nodes[v].start:d.nodes[v].end] }

// text is the content of a string, or the source text of any other scalar.
func (d *document) text(v at) string {
	n, written := &d.nodes[v], d.written(v)
	d.work++
	switch {
	case n.kind != '"':
		return written
	case n.plain:
		return written[1 : len(written)-1]
	case strings.IndexByte(written, '\\') < 0 && utf8.ValidString(written):
		d.work += len(written)
		return written[1 : len(written)-1]
	}
	d.work += len(written)
	var s string
	_ = json.Unmarshal([]byte(written), &s) // a string of valid JSON
	return s
}

// elements are the elements of an array.
func (d *document) elements(v at) []at {
	n := 0
	for range d.children(v) {
		n++
	}
	all := make([]at, 0, n)
	for e := range d.children(v) {
		all = append(all, e)
	}
	return all
}

// children yields the values, and names, directly in a container.
func (d *document) children(v at) func(yield func(at) bool) {
	return func(yield func(at) bool) {
		for i := v + 1; uint32(i) < d.nodes[v].next; i = at(d.nodes[i].next) {
			d.work++
			if !yield(i) {
				return
			}
		}
	}
}

// member is a key of an object and its value.
type member struct {
	name  string
	value at
}

// fewMembers is the number of keys of an object up to which duplicates are found by linear
// search.
const fewMembers = 8

// members are the members of an object, in the order in which they are written. A later value
// of the same key replaces the earlier one, in its place.
func (d *document) members(v at) []member {
	var all []member
	var places map[string]int
	place := func(name string) (int, bool) {
		if places != nil {
			i, ok := places[name]
			return i, ok
		}
		for i := range all {
			if all[i].name == name {
				return i, true
			}
		}
		return 0, false
	}
	isName := true
	var name string
	for c := range d.children(v) {
		if isName {
			name, isName = d.text(c), false
			continue
		}
		isName = true
		if i, again := place(name); again {
			all[i].value = c
			continue
		}
		if all = append(all, member{name, c}); places != nil {
			places[name] = len(all) - 1
		} else if len(all) == fewMembers {
			places = make(map[string]int, 2*fewMembers)
			for i := range all {
				places[all[i].name] = i
			}
		}
	}
	return all
}
