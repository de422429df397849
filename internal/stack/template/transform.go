package template

import (
	"slices"
	"strings"

	"godwit.dev/godwit/internal/stack/document"
	"godwit.dev/godwit/internal/stack/sam"
)

// Bounds of Fn::ForEach. AWS documents how deep loops may be nested.
const (
	maxLoops    = 5
	maxExpanded = 4 << 20 // bytes of the text that loops make
)

// transform replaces the parsed template by the expanded one.
func (b *Bound) transform() error {
	root := b.Template.root
	if b.Template.extended {
		x := &expansion{b: b, nodes: document.MaxNodes, bytes: maxExpanded}
		var err error
		if root, err = x.expand(root, nil); err != nil {
			return err
		}
	}
	if slices.Contains(b.Template.Transforms, Serverless) {
		var err error
		if root, err = sam.Expand(root); err != nil {
			return err
		}
		if count := root.Count(); count > document.MaxNodes {
			return root.Refuse(ErrExpanded.With(document.MaxNodes))
		}
	}
	members := slices.DeleteFunc(slices.Clone(root.Members), func(m document.Member) bool { return m.Name == "Transform" })
	for i := range members {
		members[i].Value = members[i].Value.Clone() // root stays as it is: it may be the parsed one
	}
	expanded, err := load(document.NewMap(root.Line, members...), b.Template.extended)
	if err == nil {
		b.Template = expanded
	}
	return err
}

// expansion expands the loops of a template.
type expansion struct {
	b            *Bound
	nodes, bytes int // that may still be made
}

// loop sets the value of a loop's identifier.
type loop struct {
	name, value string
	around      *loop
	depth       int
}

func (x *expansion) spend(n *Node, bytes int) error {
	x.nodes, x.bytes = x.nodes-1, x.bytes-bytes
	if x.nodes < 0 || x.bytes < 0 {
		return n.Refuse(ErrLoopSize.With(document.MaxNodes, maxExpanded))
	}
	return nil
}

// expand copies a node with its loops unrolled and the identifiers of those around it replaced.
func (x *expansion) expand(n *Node, within *loop) (*Node, error) {
	switch n.Kind {
	case document.String:
		s, err := x.replace(n, n.Text, within)
		return document.NewString(s, n.Line), err
	case document.List:
		if err := x.spend(n, 0); err != nil {
			return nil, err
		}
		items := make([]*Node, len(n.Items))
		for i, item := range n.Items {
			var err error
			if items[i], err = x.expand(item, within); err != nil {
				return nil, err
			}
		}
		return document.NewList(n.Line, items...), nil
	case document.Map:
		return x.object(n, within)
	case document.Null, document.Number, document.Bool:
	}
	return n.Clone(), x.spend(n, len(n.Text))
}

func (x *expansion) object(n *Node, within *loop) (*Node, error) {
	if name, arg := n.Only(); name == fnRef && arg.Kind == document.String {
		for l := within; l != nil; l = l.around {
			if l.name == arg.Text {
				return document.NewString(l.value, n.Line), x.spend(n, len(l.value))
			}
		}
	}
	if err := x.spend(n, 0); err != nil {
		return nil, err
	}
	var members []document.Member
	for _, m := range n.Members {
		if strings.HasPrefix(m.Name, forEach) {
			made, err := x.unroll(m, within)
			if err != nil {
				return nil, err
			}
			members = append(members, made...)
			continue
		}
		name, err := x.replace(m.Value, m.Name, within)
		if err != nil {
			return nil, err
		}
		value, err := x.expand(m.Value, within)
		if err != nil {
			return nil, err
		}
		members = append(members, document.Member{Name: name, Value: value})
	}
	seen := make(map[string]bool, len(members))
	for _, m := range members {
		if seen[m.Name] {
			return nil, n.Refuse(ErrLoopTwice.With(m.Name))
		}
		seen[m.Name] = true
	}
	return x.fold(document.NewMap(n.Line, members...))
}

// fold evaluates a function in the name of a Ref or Fn::GetAtt.
func (x *expansion) fold(n *Node) (*Node, error) {
	name, arg := n.Only()
	at := arg
	if name == fnGetAtt && len(arg.Items) == 2 {
		at = arg.Items[0]
	} else if name != fnRef {
		return n, nil
	}
	if inner, _ := function(at, false); inner == "" {
		return n, nil
	}
	s, err := x.b.early.text(at, ErrRef)
	if err != nil {
		return nil, err
	}
	folded := document.NewString(s, n.Line)
	if name == fnGetAtt {
		folded = document.NewList(arg.Line, folded, arg.Items[1].Clone())
	}
	return document.NewMap(n.Line, document.Member{Name: name, Value: folded}), nil
}

// replace replaces the identifiers of loops by their values: unchanged for ${Name}, and without
// characters that no logical id may have for &{Name}.
func (x *expansion) replace(n *Node, s string, within *loop) (string, error) {
	for l := within; l != nil; l = l.around {
		for _, mark := range []string{"$", "&"} {
			value, placeholder := l.value, mark+"{"+l.name+"}"
			if mark == "&" {
				value = letters(value)
			}
			if count := strings.Count(s, placeholder); count > 0 {
				if err := x.spend(n, count*len(value)); err != nil {
					return "", err
				}
				s = strings.ReplaceAll(s, placeholder, value)
			}
		}
	}
	return s, x.spend(n, len(s))
}

// letters are the characters of a text that a logical id may have.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && alphanumeric(string(r)) {
			return r
		}
		return -1
	}, s)
}

// unroll makes the members of a loop.
func (x *expansion) unroll(m document.Member, within *loop) ([]document.Member, error) {
	n := m.Value
	if n.Kind != document.List || len(n.Items) != 3 || n.Items[0].Kind != document.String || n.Items[2].Kind != document.Map {
		return nil, n.Refuse(ErrLoop.With(m.Name))
	}
	inner := loop{name: n.Items[0].Text, around: within, depth: 1}
	if within != nil {
		inner.depth = within.depth + 1
	}
	if inner.depth > maxLoops {
		return nil, n.Refuse(ErrLoopDepth.With(maxLoops))
	}
	for l := within; l != nil; l = l.around {
		if l.name == inner.name {
			return nil, n.Refuse(ErrLoopAround.With(inner.name))
		}
	}
	if !alphanumeric(inner.name) || x.b.Template.Parameters[inner.name] != nil {
		return nil, n.Refuse(ErrLoopIdentifier.With(inner.name))
	}
	collection, err := x.expand(n.Items[1], within)
	if err != nil {
		return nil, err
	}
	v, err := x.b.early.value(collection)
	if err != nil {
		return nil, err
	}
	values, ok := v.([]any)
	if !ok {
		return nil, n.Refuse(ErrLoopList.With(m.Name))
	}
	var members []document.Member
	for _, v := range values {
		if inner.value, ok = asText(v); !ok {
			return nil, n.Refuse(ErrLoopTexts.With(m.Name))
		}
		made, err := x.object(n.Items[2], &inner)
		if err != nil {
			return nil, err
		}
		members = append(members, made.Members...)
	}
	return members, nil
}

// policies resolves deletion policies of resources that are functions.
func (b *Bound) policies() error {
	for _, r := range b.Template.Resources {
		for name, policy := range map[string]*string{"DeletionPolicy": &r.DeletionPolicy, "UpdateReplacePolicy": &r.UpdateReplacePolicy} {
			n := r.node.Get(name)
			if n == nil || n.Kind != document.Map {
				continue
			}
			s, err := b.early.text(n, document.ErrNoText.With(name))
			if err != nil {
				return err
			}
			if *policy, err = b.Template.policy(document.NewString(s, n.Line), name, r); err != nil {
				return err
			}
		}
	}
	return nil
}
