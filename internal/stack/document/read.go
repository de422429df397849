package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Bounds of templates. AWS documents the sizes; depth and number are our own.
const (
	MaxInline = 51_200    // bytes of a template that is part of a request
	MaxBytes  = 1_000_000 // of one that is fetched
	maxDepth  = 100       // of lists and maps in each other
	MaxNodes  = 100_000   // values, after all expansion
)

// Read parses a template, JSON if it starts with a brace, else YAML. An error is a *[Refusal].
func Read(body []byte) (*Node, error) {
	if len(body) > MaxBytes {
		return nil, &Refusal{Err: ErrTooLong.With(MaxBytes)}
	}
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(body) {
		return nil, &Refusal{Err: ErrStructure}
	}
	var root *Node
	var err error
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
		root, err = readJSON(body)
	} else {
		root, err = readYAML(body)
	}
	if err != nil {
		return nil, err
	}
	if root == nil || root.Kind != Map {
		return nil, root.Refuse(ErrStructure)
	}
	return root, notNull(root)
}

// notNull refuses null values.
func notNull(n *Node) error {
	if n.Kind == Null {
		return n.Refuse(ErrNull.With(n.Path()))
	}
	for _, item := range n.Items {
		if err := notNull(item); err != nil {
			return err
		}
	}
	for _, m := range n.Members {
		if err := notNull(m.Value); err != nil {
			return err
		}
	}
	return nil
}

// counter bounds what a parser makes.
type counter struct{ nodes int }

func (c *counter) check(line, depth int) error {
	if c.nodes++; c.nodes > MaxNodes {
		return &Refusal{Line: line, Err: ErrTooManyValues.With(MaxNodes)}
	}
	if depth > maxDepth {
		return &Refusal{Line: line, Err: ErrTooDeep.With(maxDepth)}
	}
	return nil
}

type jsonReader struct {
	counter
	body []byte
	d    *json.Decoder
	line int // of the byte at
	at   int
}

func readJSON(body []byte) (*Node, error) {
	r := &jsonReader{body: body, d: json.NewDecoder(bytes.NewReader(body)), line: 1}
	r.d.UseNumber()
	n, err := r.value(0)
	if err != nil {
		return nil, err
	}
	if _, err := r.d.Token(); !errors.Is(err, io.EOF) {
		return nil, r.malformed(err)
	}
	return n, nil
}

// malformed is the error of invalid JSON, with its line.
func (r *jsonReader) malformed(err error) *Refusal {
	at := int(r.d.InputOffset())
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = int(syntax.Offset)
	}
	before := r.body[:min(max(at, 0), len(r.body))]
	line, column := bytes.Count(before, []byte("\n"))+1, len(before)-bytes.LastIndexByte(before, '\n')-1
	return &Refusal{Line: line, Err: ErrJSON.With(line, max(column, 1))}
}

// token is the next one, and the line that it ends on.
func (r *jsonReader) token() (json.Token, error) {
	t, err := r.d.Token()
	if err != nil {
		return nil, r.malformed(err)
	}
	end := min(int(r.d.InputOffset()), len(r.body))
	r.line += bytes.Count(r.body[r.at:end], []byte("\n"))
	r.at = end
	return t, nil
}

func (r *jsonReader) value(depth int) (*Node, error) {
	t, err := r.token()
	if err != nil {
		return nil, err
	}
	if err := r.check(r.line, depth); err != nil {
		return nil, err
	}
	n := &Node{Line: r.line}
	switch t := t.(type) {
	case string:
		n.Kind, n.Text = String, t
	case json.Number:
		n.Kind, n.Text = Number, t.String()
	case bool:
		n.Kind, n.Text = Bool, strconv.FormatBool(t)
	case json.Delim:
		if t == '[' {
			return r.list(n, depth)
		}
		return r.object(n, depth)
	}
	return n, nil
}

func (r *jsonReader) list(n *Node, depth int) (*Node, error) {
	n.Kind = List
	for r.d.More() {
		item, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		n.Items = append(n.Items, item)
	}
	_, err := r.token()
	return n.adopt(), err
}

func (r *jsonReader) object(n *Node, depth int) (*Node, error) {
	n.Kind = Map
	seen := map[string]bool{}
	for r.d.More() {
		key, err := r.token()
		if err != nil {
			return nil, err
		}
		name, _ := key.(string) // the decoder accepts nothing else
		if seen[name] {
			return nil, r.malformed(nil)
		}
		seen[name] = true
		value, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		n.Members = append(n.Members, Member{name, argument(name, value)})
	}
	_, err := r.token()
	return n.adopt(), err
}

var lineOf = regexp.MustCompile(`line (\d+)`)

func malformedYAML(line, column int) *Refusal {
	var err error = ErrYAML
	switch {
	case column > 0:
		err = ErrYAMLColumn.With(line, column)
	case line > 0:
		err = ErrYAMLLine.With(line)
	}
	return &Refusal{Line: line, Err: err}
}

// lines returns a text line by line, and so knows how far a reader of it has come.
type lines struct {
	rest []byte
	line int // the last one returned, from 1
}

func (l *lines) Read(p []byte) (int, error) {
	if len(l.rest) == 0 {
		return 0, io.EOF
	}
	n := bytes.IndexByte(l.rest, '\n') + 1
	if n == 0 || n > len(p) {
		n = min(len(l.rest), len(p))
	}
	copy(p, l.rest[:n])
	if l.rest = l.rest[n:]; p[n-1] == '\n' || len(l.rest) == 0 {
		l.line++
	}
	return n, nil
}

// broken is the line of an error of the library. For an unclosed value the library reports
// where it begins, from 0; for an unexpected one it reports where the block begins, which does
// not help.
func (l *lines) broken(err error) int {
	line, text := 0, err.Error()
	if m := lineOf.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1]) // digits
	}
	switch {
	case strings.Contains(text, "did not find expected ',' or"):
		return line + 1
	case strings.Contains(text, "did not find expected"), strings.Contains(text, "tab character"), line == 0:
		return l.line
	}
	return line
}

func readYAML(body []byte) (*Node, error) {
	text := &lines{rest: body}
	d := yaml.NewDecoder(text)
	var doc, next yaml.Node
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, malformedYAML(text.broken(err), 0)
	}
	if err := d.Decode(&next); !errors.Is(err, io.EOF) {
		return nil, malformedYAML(next.Line, 0) // a second document, or invalid text
	}
	if len(doc.Content) != 1 {
		return nil, nil
	}
	var c counter
	return c.yaml(doc.Content[0], 0)
}

func (c *counter) yaml(y *yaml.Node, depth int) (*Node, error) {
	if err := c.check(y.Line, depth); err != nil {
		return nil, err
	}
	n := &Node{Line: y.Line}
	switch y.Kind {
	case yaml.AliasNode:
		return nil, &Refusal{Line: y.Line, Err: ErrAlias}
	case yaml.ScalarNode:
		if n.Kind, n.Text = scalar(y); n.Kind == Bool && n.Text != y.Value {
			n.spelled = y.Value
		}
	case yaml.SequenceNode:
		n.Kind = List
		for _, item := range y.Content {
			value, err := c.yaml(item, depth+1)
			if err != nil {
				return nil, err
			}
			n.Items = append(n.Items, value)
		}
	case yaml.MappingNode:
		n.Kind = Map
		seen := map[string]bool{}
		for i := 0; i+1 < len(y.Content); i += 2 {
			key := y.Content[i]
			if key.Kind == yaml.AliasNode {
				return c.yaml(key, depth)
			}
			name := key.Value
			if key.Kind != yaml.ScalarNode || seen[name] {
				return nil, malformedYAML(key.Line, key.Column)
			}
			seen[name] = true
			value, err := c.yaml(y.Content[i+1], depth+1)
			if err != nil {
				return nil, err
			}
			if key.Line < value.Line { // a block starts below its name
				value.Line = key.Line
			}
			n.Members = append(n.Members, Member{name, argument(name, value)})
		}
	default:
		return nil, malformedYAML(y.Line, y.Column)
	}
	return tagged(y, n.adopt())
}

// local reports whether a tag is one of CloudFormation's, not of YAML's own.
func local(tag string) bool {
	return len(tag) > 1 && tag[0] == '!' && tag[1] != '!'
}

// tagged converts a short tag to the function that it abbreviates.
func tagged(y *yaml.Node, n *Node) (*Node, error) {
	tag := y.Tag
	if !local(tag) {
		switch tag {
		case "", "!", "!!str", "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq", "!!timestamp", "!!merge":
			return n, nil
		}
		return nil, malformedYAML(y.Line, y.Column)
	}
	name := tag[1:]
	switch name {
	case "Ref", "Condition":
	case "GetAtt":
		name = "Fn::GetAtt"
		n = argument(name, n)
	default:
		name = "Fn::" + name
		n = argument(name, n)
	}
	return NewMap(n.Line, Member{name, n}), nil
}

// nameOf restores the spelling of a node that is a name: a condition may be called On.
func nameOf(name string, n *Node) {
	named := []*Node{n}
	switch name {
	case "Condition", "Ref":
	case "DependsOn":
		named = append(named, n.Items...)
	case "Fn::If", "Fn::GetAtt":
		named = n.Items[:min(1, len(n.Items))]
	default:
		return
	}
	for _, n := range named {
		if n.Kind == Bool && n.spelled != "" {
			n.Kind, n.Text = String, n.spelled
		}
	}
}

// argument is the argument of a member or a tag of this name. The text of an Fn::GetAtt is a
// resource and its attribute.
func argument(name string, n *Node) *Node {
	nameOf(name, n)
	resource, attribute, ok := strings.Cut(n.Text, ".")
	if name != "Fn::GetAtt" || n.Kind != String || !ok {
		return n
	}
	return NewList(n.Line, NewString(resource, n.Line), NewString(attribute, n.Line))
}

var (
	number = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
	truth  = regexp.MustCompile(`^([Tt]rue|TRUE|[Yy]es|YES|[Oo]n|ON)$`)
	lie    = regexp.MustCompile(`^([Ff]alse|FALSE|[Nn]o|NO|[Oo]ff|OFF)$`)
	null   = regexp.MustCompile(`^(~|[Nn]ull|NULL|)$`)
)

// scalar parses a plain scalar by the rules of YAML 1.1, like AWS. A date stays a text, and so
// does a number with leading zeros, such as an account id.
func scalar(y *yaml.Node) (Kind, string) {
	plain := y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
	switch text := y.Value; {
	case local(y.Tag): // the argument of a function, which is a text
		return String, text
	case !plain || y.Tag == "!!str":
		if y.Style&yaml.TaggedStyle != 0 || !plain || !truth.MatchString(text) && !lie.MatchString(text) {
			return String, text
		}
		return truthValue(text)
	case null.MatchString(text):
		return Null, ""
	case truth.MatchString(text), lie.MatchString(text):
		return truthValue(text)
	case number.MatchString(text):
		return Number, text
	default:
		return String, text
	}
}

func truthValue(text string) (Kind, string) {
	return Bool, strconv.FormatBool(truth.MatchString(text))
}
