package resources

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Attributes are a resource's by name. In a file a value may be a number, true or false, and a
// document may be written out.
type Attributes map[string]string

// Tags are a resource's. Their values are texts, whatever they look like.
type Tags map[string]string

// Document is a JSON document, which a file may write out.
type Document string

// displayName is the attribute that is text for people: it is the same only where it is equal.
const displayName = "DisplayName"

// UnmarshalYAML implements yaml.Unmarshaler.
func (a *Attributes) UnmarshalYAML(node *yaml.Node) error {
	var values map[string]yaml.Node
	if err := node.Decode(&values); err != nil {
		return err
	}
	*a = Attributes{}
	for name, value := range values {
		text, err := textOf(&value)
		if err != nil {
			return fmt.Errorf("line %d: %s: %w", value.Line, name, err)
		}
		(*a)[name] = text
	}
	return nil
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (t *Tags) UnmarshalYAML(node *yaml.Node) error {
	var values map[string]yaml.Node
	if err := node.Decode(&values); err != nil {
		return err
	}
	*t = Tags{}
	for name, value := range values {
		at := resolved(&value)
		if at.Kind != yaml.ScalarNode {
			return fmt.Errorf("line %d: tag %s: want text", value.Line, name)
		}
		(*t)[name] = scalarText(at)
	}
	return nil
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (d *Document) UnmarshalYAML(node *yaml.Node) error {
	text, err := textOf(node)
	if err != nil {
		return fmt.Errorf("line %d: %w", node.Line, err)
	}
	*d = Document(text)
	return nil
}

// MarshalYAML implements yaml.Marshaler: documents are written out.
func (a Attributes) MarshalYAML() (any, error) {
	values := map[string]any{}
	for name, text := range a {
		if values[name] = text; name != displayName {
			values[name] = writtenOut(text)
		}
	}
	return values, nil
}

// MarshalYAML implements yaml.Marshaler.
func (d Document) MarshalYAML() (any, error) { return writtenOut(string(d)), nil }

// resolved is what an alias stands for.
func resolved(node *yaml.Node) *yaml.Node {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node
}

func scalarText(node *yaml.Node) string {
	if node.ShortTag() == "!!null" {
		return ""
	}
	return node.Value
}

// textOf is a scalar as it is written, or another value as JSON.
func textOf(node *yaml.Node) (string, error) {
	if node = resolved(node); node.Kind == yaml.ScalarNode {
		return scalarText(node), nil
	}
	var whole any // which refuses what is within itself, or grows without bound
	if err := node.Decode(&whole); err != nil {
		return "", err
	}
	value, err := asJSON(node)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "", fmt.Errorf("it cannot be written as JSON: %w", err)
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// asJSON is a part of a document, with each number as it is written. What looks like a day, as the
// Version of a policy does, is text.
func asJSON(node *yaml.Node) (any, error) {
	switch node = resolved(node); node.Kind {
	case yaml.MappingNode:
		var members map[string]yaml.Node
		if err := node.Decode(&members); err != nil {
			return nil, err
		}
		out := map[string]any{}
		for name, member := range members {
			value, err := asJSON(&member)
			if err != nil {
				return nil, err
			}
			out[name] = value
		}
		return out, nil
	case yaml.SequenceNode:
		out := make([]any, len(node.Content))
		for i := range node.Content {
			var err error
			if out[i], err = asJSON(node.Content[i]); err != nil {
				return nil, err
			}
		}
		return out, nil
	default:
		switch tag := node.ShortTag(); {
		case tag == "!!timestamp":
			return node.Value, nil
		case (tag == "!!int" || tag == "!!float") && json.Valid([]byte(node.Value)):
			return json.Number(node.Value), nil
		}
		var value any
		err := node.Decode(&value)
		return value, err
	}
}

// writtenOut is a document as a value of YAML, and any other text as it is.
func writtenOut(text string) any {
	document := parsed(text)
	if document == nil {
		return text
	}
	return asYAML(document)
}

// asYAML has numbers as they are written in JSON.
func asYAML(v any) any {
	switch v := v.(type) {
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.String()}
	case []any:
		for i := range v {
			v[i] = asYAML(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = asYAML(v[name])
		}
	}
	return v
}

// parsed is a JSON document with its numbers as they are written; nil: the text is none.
func parsed(text string) map[string]any {
	var document map[string]any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if decoder.Decode(&document) != nil || decoder.More() {
		return nil
	}
	return document
}

var integer = regexp.MustCompile(`^[0-9]+$`)

// same reports that two values of an attribute mean the same.
func same(name, a, b string) bool {
	switch {
	case a == b:
		return true
	case name == displayName:
		return false
	case strings.EqualFold(a, b) && (strings.EqualFold(a, "true") || strings.EqualFold(a, "false")):
		return true
	case integer.MatchString(a) && integer.MatchString(b):
		return strings.TrimLeft(a, "0") == strings.TrimLeft(b, "0")
	}
	c := canonical(name, a)
	return c != "" && c == canonical(name, b)
}

// canonical is the document of an attribute in one form, however it was written and whatever a
// server adds to it; "" if it is none.
func canonical(name, text string) string {
	document := parsed(text)
	if document == nil {
		return ""
	}
	// In a RedrivePolicy AWS answers a number as it was put, number or text.
	if n, ok := document["maxReceiveCount"]; ok {
		document["maxReceiveCount"] = fmt.Sprint(n)
	}
	if name == "DeliveryPolicy" {
		prune(document)
	}
	out, err := json.Marshal(document)
	if err != nil { // it was read just now
		return ""
	}
	return string(out)
}

// prune leaves out of a delivery policy what SNS shows of members that were not put: nulls, and
// two that are false.
func prune(document map[string]any) {
	for name, value := range document {
		inner, ok := value.(map[string]any)
		switch {
		case value == nil, value == false && (name == "disableSubscriptionOverrides" || name == "guaranteed"):
			delete(document, name)
		case ok:
			prune(inner)
		}
	}
}
