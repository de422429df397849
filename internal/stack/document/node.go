package document

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Kind is the kind of a node.
type Kind uint8

// The kinds of nodes. Null occurs nowhere in a tree that Read has returned.
const (
	Null Kind = iota
	String
	Number // Text is a number of JSON
	Bool   // Text is true or false
	List
	Map
)

// Node is a value of a template. It is immutable once its tree is made, and belongs to one
// tree: Clone makes a copy for another place.
type Node struct {
	Kind    Kind
	Text    string   // of a scalar
	Items   []*Node  // of a list
	Members []Member // of a map, as written
	Line    int      // from 1; of a node made by a transform, that of its source
	up      *Node
	name    string // within up
	spelled string // of a truth value that is written differently
	index   map[string]int
}

// Member is an entry of a map.
type Member struct {
	Name  string
	Value *Node
}

// indexed is the number of members from which on a map has an index.
const indexed = 12

// NewString makes a text, for transforms.
func NewString(text string, line int) *Node { return &Node{Kind: String, Text: text, Line: line} }

// NewList makes a list of nodes, which become part of it.
func NewList(line int, items ...*Node) *Node {
	return (&Node{Kind: List, Items: items, Line: line}).adopt()
}

// NewMap makes a map of members, whose values become part of it.
func NewMap(line int, members ...Member) *Node {
	return (&Node{Kind: Map, Members: members, Line: line}).adopt()
}

// adopt sets the parent of the nodes within n.
func (n *Node) adopt() *Node {
	for i, item := range n.Items {
		item.up, item.name = n, strconv.Itoa(i)
	}
	if len(n.Members) > indexed {
		n.index = make(map[string]int, len(n.Members))
	}
	for i, m := range n.Members {
		m.Value.up, m.Value.name = n, m.Name
		if n.index != nil {
			n.index[m.Name] = i
		}
	}
	return n
}

// Clone copies a node and all within it, without its parent.
func (n *Node) Clone() *Node {
	c := &Node{Kind: n.Kind, Text: n.Text, Line: n.Line}
	for _, item := range n.Items {
		c.Items = append(c.Items, item.Clone())
	}
	for _, m := range n.Members {
		c.Members = append(c.Members, Member{m.Name, m.Value.Clone()})
	}
	return c.adopt()
}

// Get finds a member of a map; nil if n is none or has no such member.
func (n *Node) Get(name string) *Node {
	if n == nil {
		return nil
	}
	if n.index != nil {
		if i, ok := n.index[name]; ok {
			return n.Members[i].Value
		}
		return nil
	}
	for _, m := range n.Members {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// Scalar reports whether n is a text, a number or a truth value.
func (n *Node) Scalar() bool {
	return n != nil && (n.Kind == String || n.Kind == Number || n.Kind == Bool)
}

// Text is the text of a member that is not a function; name is the member's, for the error. It
// is empty if there is none.
func Text(n *Node, name string) (string, error) {
	if n == nil {
		return "", nil
	}
	if !n.Scalar() {
		return "", n.Refuse(ErrNoText.With(name))
	}
	return n.Text, nil
}

// Only is the single member of a map with one; the name is empty for anything else.
func (n *Node) Only() (string, *Node) {
	if n == nil || len(n.Members) != 1 {
		return "", nil
	}
	return n.Members[0].Name, n.Members[0].Value
}

// Path is the path of a node in its tree, as /Resources/Queue/Properties.
func (n *Node) Path() string {
	var names []string
	for ; n != nil && n.up != nil; n = n.up {
		names = append(names, n.name)
	}
	var b strings.Builder
	for _, name := range slices.Backward(names) {
		b.WriteByte('/')
		b.WriteString(name)
	}
	return b.String()
}

// Plain is the value without its lines: map[string]any, []any, string, [json.Number] or bool.
func (n *Node) Plain() any {
	switch n.Kind {
	case Number:
		return json.Number(n.Text)
	case Bool:
		return n.Text == "true"
	case List:
		list := make([]any, 0, len(n.Items))
		for _, item := range n.Items {
			list = append(list, item.Plain())
		}
		return list
	case Map:
		m := make(map[string]any, len(n.Members))
		for _, member := range n.Members {
			m[member.Name] = member.Value.Plain()
		}
		return m
	case Null:
		return nil
	case String:
	}
	return n.Text
}

// Count is how many nodes there are in n, itself included.
func (n *Node) Count() int {
	count := 1
	for _, item := range n.Items {
		count += item.Count()
	}
	for _, m := range n.Members {
		count += m.Value.Count()
	}
	return count
}

// MarshalJSON writes the value with its members in the order of the template.
func (n *Node) MarshalJSON() ([]byte, error) { return n.appendJSON(nil), nil }

func (n *Node) appendJSON(b []byte) []byte {
	switch n.Kind {
	case String:
		return appendText(b, n.Text)
	case List:
		b = append(b, '[')
		for i, item := range n.Items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.appendJSON(b)
		}
		return append(b, ']')
	case Map:
		b = append(b, '{')
		for i, m := range n.Members {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendText(b, m.Name), ':')
			b = m.Value.appendJSON(b)
		}
		return append(b, '}')
	case Null:
		return append(b, "null"...)
	case Number, Bool:
	}
	return append(b, n.Text...)
}

func appendText(b []byte, s string) []byte {
	text, _ := json.Marshal(s) // a string can always be encoded
	return append(b, text...)
}
