// Package resource is the catalogue of resource types: the properties of each, which of them
// replace a resource when they change, the attributes of GetAtt, and how names are generated.
// Source: the types' pages in AWS's template reference, and the schemas that AWS publishes.
package resource

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/decimal"
)

// Kind is the kind of a property's value.
type Kind uint8

// The kinds of properties.
const (
	String Kind = iota
	Integer
	Number
	Boolean
	Object   // with members of its own
	Document // JSON, as an object or as its text
	List     // of objects
	Strings  // a list
)

// Property is a property of a type.
type Property struct {
	Kind     Kind
	Required bool
	Replaces bool // a change of it replaces the resource
}

// Shorthands for the tables.
const (
	required = 1 << iota
	replaces
)

func prop(k Kind, is ...int) (p Property) {
	p.Kind = k
	for _, f := range is {
		p.Required = p.Required || f&required != 0
		p.Replaces = p.Replaces || f&replaces != 0
	}
	return p
}

// Type is a type of resources.
type Type struct {
	Name       string // "AWS::SQS::Queue"
	Properties map[string]Property
	Attributes []string // of GetAtt; one that ends in * is a prefix
	// NameProperty is the property with the resource's name; empty: its service assigns one.
	NameProperty string
	// MaxName bounds a generated name, in bytes; Suffix is its end.
	MaxName int
	Suffix  func(properties map[string]any) string
	// Lower says that names have no capitals.
	Lower bool
	// Tags is the property with a list of tags, to which the stack's are added; empty: it has
	// none.
	Tags string
	// IAM says that a template with this type needs CAPABILITY_IAM; with a name,
	// CAPABILITY_NAMED_IAM.
	IAM bool
}

var types = func() map[string]*Type {
	all := map[string]*Type{}
	for _, group := range [][]Type{sqsTypes, snsTypes, monitoringTypes, identityTypes, lambdaTypes, kmsTypes, streamTypes, ownTypes, placeTypes, nestedTypes} {
		for i := range group {
			all[group[i].Name] = &group[i]
		}
	}
	return all
}()

// Find finds a type.
func Find(name string) (t *Type, ok bool) {
	t, ok = types[name]
	return t, ok
}

// Catalogue has all types, for checking templates. It is a template.Catalogue.
type Catalogue struct{}

// Has reports that a type exists.
func (Catalogue) Has(name string) bool { return types[name] != nil }

// Gives reports that a type has an attribute of GetAtt.
func (Catalogue) Gives(name, attribute string) bool {
	t := types[name]
	return t != nil && t.Has(attribute)
}

// Grants reports that a template with a type needs CAPABILITY_IAM, and the property by which
// it needs CAPABILITY_NAMED_IAM.
func (Catalogue) Grants(name string) (yes bool, named string) {
	if t := types[name]; t != nil && t.IAM {
		return true, t.NameProperty
	}
	return false, ""
}

// Has reports that GetAtt has an attribute.
func (t *Type) Has(attribute string) bool {
	return slices.ContainsFunc(t.Attributes, func(a string) bool {
		prefix, open := strings.CutSuffix(a, "*")
		return a == attribute || open && strings.HasPrefix(attribute, prefix)
	})
}

// Normalise converts properties to the form of their types, as templates may write them in
// several: numbers as text, lists of one. Errors: ErrExtraneous,
// ErrRequired, ErrMismatch.
func (t *Type) Normalise(properties map[string]any) (map[string]any, error) {
	normal := make(map[string]any, len(properties))
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		p, ok := t.Properties[name]
		if !ok {
			return nil, ErrExtraneous.With(name)
		}
		value := properties[name]
		if value == nil {
			continue
		}
		value, err := p.normal(name, value)
		if err != nil {
			return nil, err
		}
		normal[name] = value
	}
	for _, name := range slices.Sorted(maps.Keys(t.Properties)) {
		if _, ok := normal[name]; !ok && t.Properties[name].Required {
			return nil, ErrRequired.With(name)
		}
	}
	return normal, nil
}

// NormaliseOne is Normalise for one property.
func (t *Type) NormaliseOne(name string, value any) (any, error) {
	return t.Properties[name].normal(name, value)
}

// found is AWS's name of the type of a value.
func found(value any) string {
	switch value.(type) {
	case string:
		return "String"
	case bool:
		return "Boolean"
	case json.Number:
		return "Integer"
	case []any:
		return "JSONArray"
	default:
		return "JSONObject"
	}
}

func (p Property) normal(name string, value any) (any, error) {
	mismatch := func(want string) error {
		return ErrMismatch.With(name, want, found(value))
	}
	text, scalar := Scalar(value)
	switch p.Kind {
	case String:
		if !scalar {
			return nil, mismatch("String")
		}
		return text, nil
	case Integer, Number:
		want, read := "Integer", Whole
		if p.Kind == Number {
			want, read = "Number", Decimal
		}
		number, ok := read(text)
		if !scalar || !ok {
			return nil, mismatch(want)
		}
		return number, nil
	case Boolean:
		if on, err := strconv.ParseBool(strings.ToLower(text)); scalar && err == nil && len(text) > 1 {
			return on, nil
		}
		return nil, mismatch("Boolean")
	case Object:
		if _, ok := value.(map[string]any); !ok {
			return nil, mismatch("JSONObject")
		}
		return value, nil
	case Document:
		if scalar {
			var parsed any
			if err := decode(text, &parsed); err != nil {
				return text, nil //nolint:nilerr // its service says what is wrong with it
			}
			return parsed, nil
		}
		return value, nil
	case List:
		if one, ok := value.(map[string]any); ok {
			return []any{one}, nil
		}
		if _, ok := value.([]any); !ok {
			return nil, mismatch("JSONArray")
		}
		return value, nil
	default:
		if scalar {
			return []any{text}, nil
		}
		list, ok := value.([]any)
		if !ok {
			return nil, mismatch("JSONArray")
		}
		texts := make([]any, 0, len(list))
		for i, e := range list {
			text, ok := Scalar(e)
			if !ok {
				return nil, ErrMismatch.With(name+"/"+strconv.Itoa(i), "String", found(e))
			}
			texts = append(texts, text)
		}
		return texts, nil
	}
}

func decode(text string, to any) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return d.Decode(to)
}

// Scalar is the text of a value that is not an object or list.
func Scalar(value any) (text string, ok bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case json.Number:
		return v.String(), true
	case int:
		return strconv.Itoa(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	default:
		return "", false
	}
}

// Whole is the integer that a text is, in JSON's form: templates also write 010 and +5, which
// JSON does not have.
func Whole(text string) (json.Number, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return json.Number(strconv.FormatInt(n, 10)), err == nil
}

// Decimal is the number that a text is, in JSON's form.
func Decimal(text string) (json.Number, bool) {
	n, ok := decimal.Parse(text)
	switch {
	case !ok:
		return "", false
	case json.Valid([]byte(text)):
		return json.Number(text), true
	}
	return json.Number(strconv.FormatFloat(n, 'f', -1, 64)), true
}

// Change is the effect of a change of properties on a resource.
type Change uint8

// The changes.
const (
	Unchanged Change = iota
	InPlace
	Replaced
)

// Compare returns the effect of a change of normalised properties, and the changed ones.
func (t *Type) Compare(was, now map[string]any) (change Change, names []string) {
	all := maps.Clone(was)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, now)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if Same(was[name], now[name]) {
			continue
		}
		names = append(names, name)
		change = max(change, InPlace)
		if t.Properties[name].Replaces {
			change = Replaced
		}
	}
	return change, names
}

// Same reports that two values have the same JSON.
func Same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// Tag is a tag of a stack.
type Tag struct{ Key, Value string }

// Tagged adds a stack's tags to those of a resource, which come first and override them.
func (t *Type) Tagged(properties map[string]any, tags []Tag) map[string]any {
	if t.Tags == "" || len(tags) == 0 {
		return properties
	}
	own, _ := properties[t.Tags].([]any)
	has := map[string]bool{}
	for _, tag := range own {
		if tag, ok := tag.(map[string]any); ok {
			key, _ := Scalar(tag["Key"])
			has[key] = true
		}
	}
	all := slices.Clone(own)
	for _, tag := range tags {
		if !has[tag.Key] {
			all = append(all, map[string]any{"Key": tag.Key, "Value": tag.Value})
		}
	}
	properties = maps.Clone(properties)
	properties[t.Tags] = all
	return properties
}

// Named is the resource's name in its properties; empty: none.
func (t *Type) Named(properties map[string]any) string {
	if t.NameProperty == "" {
		return ""
	}
	name, _ := Scalar(properties[t.NameProperty])
	return name
}

// alphabet are the characters of the random part of generated names.
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

const (
	drawn      = 12 // characters of the random part
	defaultMax = 255
)

// PhysicalName is the name in a resource's properties, or one generated from the names of its
// stack and itself and a salt of 12 bytes or more.
func (t *Type) PhysicalName(stack, logical string, salt []byte, properties map[string]any) string {
	if name := t.Named(properties); name != "" {
		return name
	}
	end := make([]byte, 0, 1+drawn)
	end = append(end, '-')
	for _, b := range salt[:drawn] {
		end = append(end, alphabet[int(b)%len(alphabet)])
	}
	suffix := ""
	if t.Suffix != nil {
		suffix = t.Suffix(properties)
	}
	most := t.MaxName
	if most == 0 {
		most = defaultMax
	}
	limit := most - len(end) - len(suffix)
	begin := stack + "-" + logical
	if len(begin) > limit { // both stay recognisable
		half := min(len(logical), limit/2)
		begin = stack[:min(len(stack), limit-half-1)] + "-" + logical[:half]
	}
	name := begin + string(end) + suffix
	if t.Lower {
		name = strings.ToLower(name)
	}
	return name
}
