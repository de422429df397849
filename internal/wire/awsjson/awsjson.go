// Package awsjson reads and writes shapes as AWS JSON 1.0 has them: members
// under their own names, blobs in base64, maps as objects. A member that is
// null is absent; one that is unknown is ignored, also if it differs in case alone.
package awsjson

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/fastjson"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/wire/shape"
)

// FastDecoder is an input with a decoder of its own. The error
// fastjson.ErrUnusual hands the body over to the generic decoder; there is no
// other. What it decodes must not alias the body, unless it is InPlace.
type FastDecoder interface {
	FastDecode(body []byte) error
}

// InPlace is an input that may hold parts of the body that it was decoded from: the
// body must stay as it is while the input is in use, and nothing may keep these longer.
type InPlace interface{ InPlace() }

// Decode reads body into the struct that in points to, which is empty before.
// An empty body is an empty object. Errors are fault.MalformedInput. Nothing in
// the struct aliases body, unless it is InPlace.
func Decode(body []byte, in any) error {
	if err := checkStructures(body); err != nil {
		return err
	}
	if fast, ok := in.(FastDecoder); ok {
		if fast.FastDecode(body) == nil {
			return nil
		}
		reflect.ValueOf(in).Elem().SetZero()
	}
	return decodeGeneric(body, in)
}

// DecodeGeneric is Decode without hand-tuned decoders.
func DecodeGeneric(body []byte, in any) error {
	if err := checkStructures(body); err != nil {
		return err
	}
	return decodeGeneric(body, in)
}

func decodeGeneric(body []byte, in any) error {
	if len(body) == 0 {
		return nil
	}
	if _, ok := in.(OnlyCharacters); ok {
		body = markNoCharacters(body)
	}
	body = ownNames(body, shape.Of(reflect.TypeOf(in).Elem()))
	if err := json.Unmarshal(body, in); err != nil {
		return fault.New(fault.MalformedInput, explain(err))
	}
	return nil
}

// explain puts an error of encoding/json into the words of AWS's services.
func explain(err error) string {
	mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		if _, ok := errors.AsType[base64.CorruptInputError](err); ok {
			return "A blob is not valid base64."
		}
		if errors.Is(err, api.ErrTime) {
			return "A timestamp is not valid."
		}
		return "The request body is not valid JSON."
	}
	got, _, _ := strings.Cut(mismatch.Value, " ") // "number 1.5" gives the number too
	switch got {
	case "object":
		return "Start of structure or map found where not expected."
	case "array":
		return "Start of list found where not expected."
	}
	target := mismatch.Type
	if target.Kind() == reflect.Pointer {
		target = target.Elem()
	}
	switch target.Kind() {
	case reflect.Struct, reflect.Map:
		return "Expected structure or map, found " + token(got) + "."
	case reflect.Slice:
		if target.Elem().Kind() == reflect.Uint8 {
			return token(got) + " can not be converted to a Blob"
		}
		return "Expected list or null, found " + token(got) + "."
	case reflect.Float64:
		return token(got) + " can not be converted to a Double"
	case reflect.Int64:
		return token(got) + " can not be converted to a Long"
	case reflect.Int:
		return token(got) + " can not be converted to an Integer"
	case reflect.Bool:
		return token(got) + " can not be converted to a Boolean"
	default:
		return token(got) + " can not be converted to a String"
	}
}

func token(got string) string {
	switch got {
	case "bool":
		return "BOOLEAN_VALUE"
	case "number":
		return "NUMBER_VALUE"
	case "null":
		return "NULL_VALUE"
	default:
		return "STRING_VALUE"
	}
}

// Append appends the struct that out points to, as an object. Members that are
// nil, and empty strings, are left out. Maps are written in the order of their
// keys.
func Append(dst []byte, out any) []byte {
	v := reflect.ValueOf(out).Elem()
	return encoder{}.appendStruct(dst, shape.Of(v.Type()), v)
}

// AppendQueryJSON is Append in the JSON that Query services have for whoever accepts that only:
// some members have other names, and a map that is flat in forms is a list of its
// entries.
func AppendQueryJSON(dst []byte, out any) []byte {
	v := reflect.ValueOf(out).Elem()
	return encoder{old: true}.appendStruct(dst, shape.Of(v.Type()), v)
}

type encoder struct{ old bool }

func (e encoder) appendStruct(dst []byte, t *shape.Type, v reflect.Value) []byte {
	dst = append(dst, '{')
	first := true
	for i := range t.Fields {
		f := &t.Fields[i]
		member := v.Field(f.Index)
		if f.In != shape.Body || shape.Absent(f.Type, member) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		if !e.old {
			dst = fastjson.AppendString(dst, f.JSON)
			dst = append(dst, ':')
			dst = e.appendValue(dst, f.Type, member)
			continue
		}
		dst = fastjson.AppendString(dst, f.Old)
		dst = append(dst, ':')
		if f.Flat && (f.Type.Kind == shape.Map || f.Type.Kind == shape.Pairs) {
			dst = e.appendEntries(dst, f, member)
		} else {
			dst = e.appendValue(dst, f.Type, member)
		}
	}
	return append(dst, '}')
}

// appendEntries appends a map as the list of its entries.
func (e encoder) appendEntries(dst []byte, f *shape.Field, v reflect.Value) []byte {
	dst = append(dst, '[')
	begin := func(i int, key string) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = fastjson.AppendString(append(dst, '{'), f.Key)
		dst = fastjson.AppendString(append(dst, ':'), key)
		dst = fastjson.AppendString(append(dst, ','), f.Value)
		dst = append(dst, ':')
	}
	if pairs, ok := reflect.TypeAssert[api.Pairs](v); ok {
		for i, pair := range pairs {
			begin(i, pair.Name)
			dst = append(fastjson.AppendString(dst, pair.Value), '}')
		}
		return append(dst, ']')
	}
	for i, key := range sortedKeys(v) {
		begin(i, key.String())
		dst = append(e.appendValue(dst, f.Type.Elem, v.MapIndex(key)), '}')
	}
	return append(dst, ']')
}

func sortedKeys(v reflect.Value) []reflect.Value {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	return keys
}

func (e encoder) appendValue(dst []byte, t *shape.Type, v reflect.Value) []byte {
	if t.Pointer {
		if v.IsNil() {
			return append(dst, "null"...)
		}
		v = v.Elem()
	}
	switch t.Kind {
	case shape.String:
		return fastjson.AppendString(dst, v.String())
	case shape.Int, shape.Long:
		return strconv.AppendInt(dst, v.Int(), 10)
	case shape.Float:
		return fastjson.AppendFloat(dst, v.Float())
	case shape.Time:
		return api.Time(v.Int()).AppendSeconds(dst)
	case shape.Bool:
		return strconv.AppendBool(dst, v.Bool())
	case shape.Blob:
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, v.Bytes())
		return append(dst, '"')
	case shape.List:
		dst = append(dst, '[')
		for i := range v.Len() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = e.appendValue(dst, t.Elem, v.Index(i))
		}
		return append(dst, ']')
	case shape.Map:
		dst = append(dst, '{')
		for i, key := range sortedKeys(v) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = fastjson.AppendString(dst, key.String())
			dst = append(dst, ':')
			dst = e.appendValue(dst, t.Elem, v.MapIndex(key))
		}
		return append(dst, '}')
	case shape.Pairs:
		dst = append(dst, '{')
		for i, pair := range v.Interface().(api.Pairs) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = fastjson.AppendString(dst, pair.Name)
			dst = append(dst, ':')
			dst = fastjson.AppendString(dst, pair.Value)
		}
		return append(dst, '}')
	default:
		return e.appendStruct(dst, t, v)
	}
}
