// Package restjson reads and writes shapes as AWS's REST-JSON services have them:
// members in the path, in parameters and headers, the others as JSON in the body,
// or one that is the body.
package restjson

import (
	"bytes"
	"net/http"
	"net/url"
	"reflect"
	"strconv"

	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/wire/awsjson"
	"godwit.dev/godwit/internal/wire/shape"
)

// Request is what an input is read from.
type Request struct {
	Places map[string]string // the members that stand in the path
	Query  url.Values
	Header http.Header
	Body   []byte
}

// Decode reads a request into the struct that in points to, which is empty before.
// A member that the model has elsewhere is not taken from the body. Errors are
// fault.MalformedInput. Nothing in the struct aliases the body.
func Decode(r Request, in any) error {
	v := reflect.ValueOf(in).Elem()
	t := shape.Of(v.Type())
	if payload(t) == nil {
		if err := awsjson.DecodeGeneric(r.Body, in); err != nil {
			return err
		}
	}
	for i := range t.Fields {
		f := &t.Fields[i]
		var values []string
		switch f.In {
		case shape.Body, shape.Status:
			continue
		case shape.Payload:
			v.Field(f.Index).SetBytes(bytes.Clone(r.Body))
			continue
		case shape.URI:
			values = []string{r.Places[f.At]}
		case shape.Query:
			values = r.Query[f.At]
		case shape.Header:
			values = r.Header.Values(f.At)
		}
		v.Field(f.Index).SetZero()
		if err := set(f, v.Field(f.Index), values); err != nil {
			return err
		}
	}
	return nil
}

// payload is the member that is the whole body; nil if there is none.
func payload(t *shape.Type) *shape.Field {
	for i := range t.Fields {
		if t.Fields[i].In == shape.Payload {
			return &t.Fields[i]
		}
	}
	return nil
}

// set gives a member the values of a place, a parameter or a header.
func set(f *shape.Field, v reflect.Value, values []string) error {
	if len(values) == 0 {
		return nil
	}
	if f.Type.Kind == shape.List {
		for _, text := range values {
			item := reflect.New(f.Type.Elem.Go).Elem()
			if err := scalar(f.Type.Elem, item, text); err != nil {
				return err
			}
			v.Set(reflect.Append(v, item))
		}
		return nil
	}
	return scalar(f.Type, v, values[0])
}

func scalar(t *shape.Type, v reflect.Value, text string) error {
	if t.Pointer {
		v.Set(reflect.New(t.Go.Elem()))
		v = v.Elem()
	}
	switch t.Kind {
	case shape.String:
		v.SetString(text)
	case shape.Int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fault.New(fault.MalformedInput, "STRING_VALUE can not be converted to an Integer")
		}
		v.SetInt(int64(n))
	case shape.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fault.New(fault.MalformedInput, "STRING_VALUE can not be converted to a Boolean")
		}
		v.SetBool(b)
	default:
		panic("restjson: " + t.Go.String() + " fits into no path, parameter or header")
	}
	return nil
}

// Append appends the body of an answer: the member that is one, or the others as
// an object. empty says that there are none of these.
func Append(dst []byte, out any) (body []byte, empty bool) {
	v := reflect.ValueOf(out).Elem()
	t := shape.Of(v.Type())
	if f := payload(t); f != nil {
		return append(dst, v.Field(f.Index).Bytes()...), v.Field(f.Index).Len() == 0
	}
	for i := range t.Fields {
		if t.Fields[i].In == shape.Body {
			return awsjson.Append(dst, out), false
		}
	}
	return dst, true
}

// Head writes the members of an answer that are headers, and returns the status
// that another one gives; 0: none does.
func Head(header http.Header, out any) (status int) {
	v := reflect.ValueOf(out).Elem()
	t := shape.Of(v.Type())
	for i := range t.Fields {
		f := &t.Fields[i]
		member := v.Field(f.Index)
		switch {
		case f.In == shape.Status:
			status = int(member.Int())
		case f.In == shape.Header && !shape.Absent(f.Type, member):
			if f.Type.Pointer {
				member = member.Elem()
			}
			header.Set(f.At, text(f.Type, member))
		}
	}
	return status
}

func text(t *shape.Type, v reflect.Value) string {
	switch t.Kind {
	case shape.Int:
		return strconv.FormatInt(v.Int(), 10)
	case shape.Bool:
		return strconv.FormatBool(v.Bool())
	default:
		return v.String()
	}
}
