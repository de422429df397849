package rest

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// object is a JSON object whose members keep their order.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(m.value); err != nil {
			return nil, err
		}
		b.Truncate(b.Len() - 1)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

var timeType = reflect.TypeFor[time.Time]()

// Info is the general part of the document.
type Info struct {
	Title, Version, Description string
}

// Document is the OpenAPI 3.1 document of operations, indented.
func Document(info Info, all []Operation) ([]byte, error) {
	schemas := &schemas{made: map[string]any{}}
	schemas.of(reflect.TypeFor[Problem]())
	var paths object
	for i := range all {
		at := slices.IndexFunc(paths, func(m member) bool { return m.name == all[i].Path })
		if at < 0 {
			at = len(paths)
			paths = append(paths, member{all[i].Path, object{}})
		}
		paths[at].value = append(paths[at].value.(object), member{strings.ToLower(all[i].Method), operation(&all[i], schemas)})
	}
	var components object
	for _, name := range slices.Sorted(maps.Keys(schemas.made)) {
		components = append(components, member{name, schemas.made[name]})
	}
	text, err := json.Marshal(object{
		{"openapi", "3.1.0"},
		{"info", object{{"title", info.Title}, {"version", info.Version}, {"description", info.Description}}},
		{"paths", paths},
		{"components", object{{"schemas", components}}},
	})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = json.Indent(&b, text, "", " ")
	b.WriteByte('\n')
	return b.Bytes(), err
}

func operation(op *Operation, s *schemas) object {
	o := object{{"operationId", op.Name}, {"summary", op.Summary}}
	if !op.Open {
		o = append(o, member{"x-godwit-action", op.Action()})
	}
	if op.Method == http.MethodGet {
		var parameters []any
		for f := range op.in.Fields() {
			name := f.Tag.Get("query")
			if name == "" {
				continue
			}
			parameters = append(parameters, object{
				{"name", name},
				{"in", "query"},
				{"required", f.Tag.Get("required") == "true"},
				{"description", f.Tag.Get("doc")},
				{"schema", s.bounded(f)},
			})
		}
		if len(parameters) > 0 {
			o = append(o, member{"parameters", parameters})
		}
	} else {
		o = append(o, member{"requestBody", object{{"required", true}, {"content", content("application/json", s.request(op.in))}}})
	}
	media, status := "application/json", http.StatusOK
	if op.Stream {
		media = "text/event-stream"
	}
	if op.accepted {
		status = http.StatusAccepted
	}
	out := s.of
	if op.Binary {
		media, out = "application/octet-stream", func(reflect.Type) any { return object{} }
	}
	answers := object{{strconv.Itoa(status), object{{"description", "done"}, {"content", content(media, out(op.out))}}}}
	for _, status := range op.refusals() {
		answers = append(answers, member{strconv.Itoa(status), object{
			{"description", http.StatusText(status)},
			{"content", content("application/json", s.of(reflect.TypeFor[Problem]()))},
		}})
	}
	return append(o, member{"responses", answers})
}

// refusals are the error statuses of the operation.
func (o *Operation) refusals() []int {
	all := append([]int{http.StatusInternalServerError}, o.Statuses...)
	if !o.Open {
		all = append(all, http.StatusUnauthorized, http.StatusForbidden)
	}
	if o.Method != http.MethodGet {
		all = append(all, http.StatusRequestEntityTooLarge)
	}
	all = append(all, http.StatusBadRequest)
	slices.Sort(all)
	return slices.Compact(all)
}

func content(media string, schema any) object {
	return object{{media, object{{"schema", schema}}}}
}

// schemas are the schemas of structs, by name.
type schemas struct {
	made  map[string]any
	input bool // of requests: members may be missing unless required
}

// request is the schema of a request.
func (s *schemas) request(t reflect.Type) any {
	s.input = true
	defer func() { s.input = false }()
	return s.of(t)
}

// of is the schema of a type; for a struct, a reference.
func (s *schemas) of(t reflect.Type) any {
	switch t.Kind() {
	case reflect.Pointer:
		inner := s.of(t.Elem())
		if o, ok := inner.(object); ok && o[0].name == "type" {
			return append(object{{"type", []any{o[0].value, "null"}}}, o[1:]...)
		}
		return object{{"anyOf", []any{inner, object{{"type", "null"}}}}}
	case reflect.String:
		return object{{"type", "string"}}
	case reflect.Bool:
		return object{{"type", "boolean"}}
	case reflect.Int, reflect.Int64, reflect.Int32:
		return object{{"type", "integer"}}
	case reflect.Float64:
		return object{{"type", "number"}}
	case reflect.Slice:
		return object{{"type", "array"}, {"items", s.of(t.Elem())}}
	case reflect.Map:
		return object{{"type", "object"}, {"additionalProperties", s.of(t.Elem())}}
	case reflect.Interface:
		return object{}
	case reflect.Struct:
		if t == timeType {
			return object{{"type", "string"}, {"format", "date-time"}}
		}
		name := t.Name()
		if s.input {
			name += "Request"
		}
		if _, ok := s.made[name]; !ok {
			s.made[name] = object{} // it may be recursive
			s.made[name] = s.object(t)
		}
		return object{{"$ref", "#/components/schemas/" + name}}
	default:
		panic("rest: no schema for " + t.String())
	}
}

func (s *schemas) object(t reflect.Type) object {
	var properties object
	required := []string{}
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		for f := range t.Fields() {
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous && name == "" {
				walk(f.Type)
				continue
			}
			if name == "" || name == "-" {
				continue
			}
			schema := s.bounded(f)
			if doc := f.Tag.Get("doc"); doc != "" {
				if o, ok := schema.(object); ok {
					schema = append(slices.Clip(o), member{"description", doc})
				}
			}
			properties = append(properties, member{name, schema})
			optional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
			if s.input {
				optional = f.Tag.Get("required") != "true"
			}
			if !optional {
				required = append(required, name)
			}
		}
	}
	walk(t)
	return object{{"type", "object"}, {"properties", properties}, {"required", required}, {"additionalProperties", false}}
}

// bounded is the schema of a field, with the constraints of its tags.
func (s *schemas) bounded(f reflect.StructField) any {
	schema, ok := s.of(f.Type).(object)
	if !ok {
		return s.of(f.Type)
	}
	kind := f.Type.Kind()
	if enum := f.Tag.Get("enum"); enum != "" {
		schema = append(schema, member{"enum", strings.Split(enum, ",")})
	}
	for _, b := range [...]struct{ tag, number, text, list string }{{"min", "minimum", "minLength", "minItems"}, {"max", "maximum", "maxLength", "maxItems"}} {
		n, err := strconv.ParseInt(f.Tag.Get(b.tag), 10, 64)
		if err != nil {
			continue
		}
		switch kind {
		case reflect.String:
			schema = append(schema, member{b.text, n})
		case reflect.Slice:
			schema = append(schema, member{b.list, n})
		default:
			schema = append(schema, member{b.number, n})
		}
	}
	if text := f.Tag.Get("default"); text != "" {
		var value any = text
		if kind != reflect.String {
			_ = json.Unmarshal([]byte(text), &value) // a number, true or false
		}
		schema = append(schema, member{"default", value})
	}
	return schema
}
