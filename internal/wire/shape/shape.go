// Package shape describes the Go types of an operation's input and output for
// codecs: which members they have, of which kind, and what each protocol calls
// them. A type is described once and the description is shared.
package shape

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	"godwit.dev/godwit/internal/api"
)

// Kind is what a member holds.
type Kind uint8

// The kinds of member.
const (
	String Kind = iota + 1
	Int         // of 32 bits
	Long        // int64
	Float       // float64
	Bool
	Time   // api.Time
	Blob   // []byte
	List   // a slice of Elem
	Map    // a map from string to Elem
	Pairs  // api.Pairs, which is written as a map from string to string
	Struct // Fields
)

// Location is where a REST protocol has a member.
type Location uint8

// The locations of a member.
const (
	Body    Location = iota // in the JSON of the body
	URI                     // of a request: in a place of the path, under its name
	Query                   // of a request: a parameter of the URL
	Header                  // a header
	Payload                 // the member is the body
	Status                  // of an answer: the HTTP status
)

// Type describes a Go type.
type Type struct {
	Kind Kind
	// Pointer says that values are pointers to what Kind says: nil is absent.
	Pointer bool
	Go      reflect.Type // as declared, with the pointer
	Elem    *Type        // of a List, a Map or Pairs
	Fields  []Field      // of a Struct, in the order of declaration

	byQuery map[string]*Field
}

// Field describes a member of a struct.
type Field struct {
	Index    int
	Name     string // the Go field, and AWS's name of the member
	JSON     string // its name in JSON
	Old      string // its name in the JSON of Query
	Query    string // its name in forms and XML
	Also     string // another name in forms, which some clients give it
	Flat     bool   // in forms and XML, a list or map without a wrapper
	Key      string // what a map's entry calls its key in forms and XML
	Value    string // and its value
	Required bool
	In       Location // in REST protocols
	At       string   // there, the parameter's or the header's name
	Type     *Type
}

// ByQuery finds a struct's field by its name in forms.
func (t *Type) ByQuery(name string) *Field { return t.byQuery[name] }

// Field finds a struct's field by its Go name.
func (t *Type) Field(name string) *Field {
	for i := range t.Fields {
		if t.Fields[i].Name == name {
			return &t.Fields[i]
		}
	}
	return nil
}

// Missing names the required members that the struct v, described by t, does
// not have. A plain string is missing when it is empty.
func (t *Type) Missing(v reflect.Value) (names []string) {
	for i := range t.Fields {
		f := &t.Fields[i]
		if f.Required && Absent(f.Type, v.Field(f.Index)) {
			names = append(names, f.Name)
		}
	}
	return names
}

// Absent reports whether v, described by t, is left out of an answer: nil, or
// a plain empty string. Plain numbers, bools and structs never are.
func Absent(t *Type, v reflect.Value) bool {
	switch {
	case t.Pointer:
		return v.IsNil()
	case t.Kind == String:
		return v.Len() == 0
	case t.Kind == Blob || t.Kind == List || t.Kind == Map || t.Kind == Pairs:
		return v.IsNil()
	default:
		return false
	}
}

var known sync.Map // reflect.Type → *Type

// Of describes a struct. It panics if the struct has a field that no codec can
// handle, which is a mistake in the program.
func Of(t reflect.Type) *Type {
	if d, ok := known.Load(t); ok {
		return d.(*Type)
	}
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("shape: %v is not a struct", t))
	}
	d, _ := known.LoadOrStore(t, describe(t))
	return d.(*Type)
}

var (
	blobType  = reflect.TypeFor[[]byte]()
	pairsType = reflect.TypeFor[api.Pairs]()
	timeType  = reflect.TypeFor[api.Time]()
	plain     = &Type{Kind: String, Go: reflect.TypeFor[string]()}
)

func describe(t reflect.Type) *Type {
	d := &Type{Go: t}
	if t.Kind() == reflect.Pointer {
		d.Pointer = true
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.String:
		d.Kind = String
	case t.Kind() == reflect.Int:
		d.Kind = Int
	case t == timeType:
		d.Kind = Time
	case t.Kind() == reflect.Int64:
		d.Kind = Long
	case t.Kind() == reflect.Float64:
		d.Kind = Float
	case t.Kind() == reflect.Bool:
		d.Kind = Bool
	case t.Kind() == reflect.Struct:
		d.Kind = Struct
		d.fields(t)
	case d.Pointer:
		panic(fmt.Sprintf("shape: unfit type %v", d.Go))
	case t == blobType:
		d.Kind = Blob
	case t == pairsType:
		d.Kind, d.Elem = Pairs, plain
	case t.Kind() == reflect.Slice:
		d.Kind, d.Elem = List, element(t)
	case t.Kind() == reflect.Map && t.Key() == plain.Go:
		d.Kind, d.Elem = Map, element(t)
	default:
		panic(fmt.Sprintf("shape: unfit type %v", d.Go))
	}
	return d
}

// element describes what t, a slice or map, holds: no collection again, which
// no protocol here could name.
func element(t reflect.Type) *Type {
	d := describe(t.Elem())
	if d.Kind == List || d.Kind == Map || d.Kind == Pairs {
		panic(fmt.Sprintf("shape: unfit type %v", t))
	}
	return d
}

func (t *Type) fields(s reflect.Type) {
	t.byQuery = make(map[string]*Field, s.NumField())
	t.Fields = make([]Field, 0, s.NumField())
	for i := range s.NumField() {
		sf := s.Field(i)
		if !sf.IsExported() {
			continue
		}
		f := Field{Index: i, Name: sf.Name, JSON: sf.Name, Query: sf.Name, Key: "key", Value: "value"}
		if name, _, _ := strings.Cut(sf.Tag.Get("json"), ","); name != "" {
			f.JSON = name
		}
		f.Old = f.JSON
		for option := range strings.SplitSeq(sf.Tag.Get("wire"), ",") {
			name, value, _ := strings.Cut(option, "=")
			switch name {
			case "":
			case "name":
				f.Query = value
			case "key":
				f.Key = value
			case "value":
				f.Value = value
			case "old":
				f.Old = value
			case "also":
				f.Also = value
			case "flat":
				f.Flat = true
			case "required":
				f.Required = true
			case "uri":
				f.In, f.At = URI, sf.Name
			case "query":
				f.In, f.At = Query, value
			case "header":
				f.In, f.At = Header, value
			case "payload":
				f.In = Payload
			case "status":
				f.In = Status
			default:
				panic(fmt.Sprintf("shape: %v.%s: unknown option %q", s, sf.Name, option))
			}
		}
		f.Type = describe(sf.Type)
		t.Fields = append(t.Fields, f)
	}
	for i := range t.Fields {
		f := &t.Fields[i]
		if t.byQuery[f.Query] = f; f.Also != "" {
			t.byQuery[f.Also] = f
		}
	}
}
