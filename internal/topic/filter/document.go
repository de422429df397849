package filter

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// document is a JSON document taken apart in one pass: its values in the order in
// which they begin. A name of an object's member stands before its value.
type document struct {
	source string
	nodes  []node
	// work counts what compiling the document took: bytes read and nodes visited.
	work int
}

// node is a value, or a member's name.
type node struct {
	kind       byte // '{', '[', '"', 't', 'f', 'n', or '0' of any number
	plain      bool // of a string: its text is as it is written
	start, end uint32
	next       uint32 // the node behind the value and all that is in it
}

// at is the place of a value in a document.
type at uint32

// takeApart reads the one JSON value of a source. ok is false if it is none, or
// nested deeper than encoding/json goes.
func takeApart(source string) (d *document, ok bool) {
	if !json.Valid([]byte(source)) {
		return nil, false
	}
	d = &document{source: source, work: len(source)}
	d.nodes = make([]node, 0, 1+strings.Count(source, ",")+2*strings.Count(source, ":"))
	var open []uint32 // the containers that are open
	for i := 0; i < len(source); {
		switch c := source[i]; c {
		case '{', '[':
			open = append(open, uint32(len(d.nodes)))
			d.add(node{kind: c, start: uint32(i)})
			i++
		case '}', ']':
			i++
			of := &d.nodes[open[len(open)-1]]
			of.end, of.next = uint32(i), uint32(len(d.nodes))
			open = open[:len(open)-1]
		case ' ', '\t', '\r', '\n', ',', ':':
			i++
		case '"':
			end, plain := endOfString(source, i+1)
			d.add(node{kind: c, plain: plain, start: uint32(i), end: uint32(end)})
			i = end
		default:
			end := i + 1
			for end < len(source) && !strings.ContainsRune(" \t\r\n,:]}", rune(source[end])) {
				end++
			}
			if c == '-' || c >= '0' && c <= '9' {
				c = '0'
			}
			d.add(node{kind: c, start: uint32(i), end: uint32(end)})
			i = end
		}
	}
	return d, true
}

// add puts a node behind the others; next is that of a value without parts.
func (d *document) add(n node) {
	n.next = uint32(len(d.nodes)) + 1
	d.nodes = append(d.nodes, n)
}

// endOfString finds the end of a string, behind its closing quote, from behind its
// opening one.
func endOfString(source string, i int) (end int, plain bool) {
	plain = true
	for ; source[i] != '"'; i++ {
		switch c := source[i]; {
		case c == '\\':
			plain = false
			i++
		case c >= utf8.RuneSelf:
			plain = false // it may be no UTF-8
		}
	}
	return i + 1, plain
}

func (d *document) kind(v at) byte { return d.nodes[v].kind }

// written is a value as it is written.
func (d *document) written(v at) string { return d.source[d.nodes[v].start:d.nodes[v].end] }

// text is the content of a string, or any other scalar as it is written.
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

// elements are the places of an array's elements.
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

// children yields the values, and names, that stand directly in a container.
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

// member is a key of an object and the place of its value.
type member struct {
	name  string
	value at
}

// fewMembers is up to how many keys of an object are looked through for one that
// comes again.
const fewMembers = 8

// members are those of an object, in the order in which they are written. A later
// value of the same key takes the earlier one's place.
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
