package attack_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/wire/shape"
)

// A document is an input before a protocol writes it: nil, bool, string, []byte,
// number, moment, list, object, or raw. Whether it has the types that its
// operation declares is up to whoever drew it.
type (
	document any
	number   string // as JSON writes it
	moment   float64
	list     []document
	object   []member // members of a structure, or entries of a map
	raw      string   // goes into JSON and CBOR as it is
)

type member struct {
	name  string
	field *shape.Field // nil: an entry of a map, or a member that nobody knows
	value document
}

// appendJSON writes a document as AWS JSON has it.
func appendJSON(dst []byte, d document) []byte {
	switch d := d.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, d)
	case string:
		return appendJSONText(dst, d)
	case []byte:
		return appendJSONText(dst, base64.StdEncoding.EncodeToString(d))
	case number:
		return append(dst, d...)
	case moment:
		return strconv.AppendFloat(dst, float64(d), 'f', -1, 64)
	case list:
		dst = append(dst, '[')
		for i, v := range d {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, v)
		}
		return append(dst, ']')
	case object:
		dst = append(dst, '{')
		for i, m := range d {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendJSONText(dst, m.name), ':')
			dst = appendJSON(dst, m.value)
		}
		return append(dst, '}')
	case raw:
		return append(dst, d...)
	}
	panic(fmt.Sprintf("%T", d))
}

// appendJSONText lets bytes that are no UTF-8 through.
func appendJSONText(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ':
			dst = fmt.Appendf(dst, `\u%04x`, c)
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// appendCBOR writes a document as RFC 8949 has it.
func appendCBOR(dst []byte, d document) []byte {
	head := func(major byte, n int) []byte {
		switch {
		case n < 24:
			return append(dst, major<<5|byte(n))
		case n <= math.MaxUint16:
			return binary.BigEndian.AppendUint16(append(dst, major<<5|25), uint16(n))
		}
		return binary.BigEndian.AppendUint64(append(dst, major<<5|27), uint64(n))
	}
	double := func(f float64) []byte { return binary.BigEndian.AppendUint64(append(dst, 0xfb), math.Float64bits(f)) }
	switch d := d.(type) {
	case nil:
		return append(dst, 0xf6)
	case bool:
		if d {
			return append(dst, 0xf5)
		}
		return append(dst, 0xf4)
	case string:
		return append(head(3, len(d)), d...)
	case []byte:
		return append(head(2, len(d)), d...)
	case number:
		if n, err := strconv.ParseInt(string(d), 10, 64); err == nil {
			if n >= 0 {
				return binary.BigEndian.AppendUint64(append(dst, 0x1b), uint64(n))
			}
			return binary.BigEndian.AppendUint64(append(dst, 0x3b), uint64(-(n + 1)))
		}
		f, err := strconv.ParseFloat(string(d), 64)
		if err != nil && f == 0 {
			f = math.NaN()
		}
		return double(f)
	case moment:
		dst = append(dst, 0xc1)
		return double(float64(d))
	case list:
		dst = head(4, len(d))
		for _, v := range d {
			dst = appendCBOR(dst, v)
		}
		return dst
	case object:
		dst = head(5, len(d))
		for _, m := range d {
			dst = appendCBOR(dst, m.name)
			dst = appendCBOR(dst, m.value)
		}
		return dst
	case raw:
		return append(dst, d...)
	}
	panic(fmt.Sprintf("%T", d))
}

// form collects the parameters by which Query has a document.
type form struct {
	rand  *rand.Rand
	pairs []string
}

func (f *form) add(name, value string) {
	f.pairs = append(f.pairs, url.QueryEscape(name)+"="+url.QueryEscape(value))
}

// put writes the document at a name. field is the member that it is, nil in lists,
// maps and what nobody knows.
func (f *form) put(name string, field *shape.Field, d document) {
	switch d := d.(type) {
	case list:
		if field == nil || !field.Flat {
			name += ".member"
		}
		for i, v := range d {
			f.put(fmt.Sprintf("%s.%d", name, f.index(i)), nil, v)
		}
		if len(d) == 0 {
			f.add(name, "")
		}
	case object:
		isMap := field != nil && field.Type.Kind == shape.Map
		if isMap && !field.Flat {
			name += ".entry"
		}
		for i, m := range d {
			at := name + "." + m.name
			if m.field != nil {
				at = name + "." + m.field.Query
			}
			if isMap {
				at = fmt.Sprintf("%s.%d", name, f.index(i))
				f.add(at+"."+field.Key, m.name)
				at += "." + field.Value
			}
			f.put(strings.TrimPrefix(at, "."), m.field, m.value)
		}
	default:
		f.add(name, text(d))
	}
}

// index is the number of a list's element, which need not be the next one.
func (f *form) index(i int) int {
	if f.rand.IntN(200) == 0 {
		return [...]int{0, -1, 10_000, 10_001, math.MaxInt64}[f.rand.IntN(5)]
	}
	return i + 1
}

// text is how forms, paths, parameters and headers have a scalar.
func text(d document) string {
	switch d := d.(type) {
	case nil:
		return ""
	case string:
		return d
	case raw:
		return string(d)
	case number:
		return string(d)
	case []byte:
		return base64.StdEncoding.EncodeToString(d)
	}
	return string(appendJSON(nil, d))
}

// harvest collects the texts of a JSON document by the names of their members.
func harvest(body []byte, found func(name, value string)) {
	var v any
	if json.Unmarshal(body, &v) == nil {
		walk("", v, found)
	}
}

func walk(name string, v any, found func(name, value string)) {
	switch v := v.(type) {
	case string:
		found(name, v)
	case map[string]any:
		for name, v := range v {
			walk(name, v, found)
		}
	case map[any]any: // of CBOR
		for key, v := range v {
			walk(fmt.Sprint(key), v, found)
		}
	case []any:
		for _, v := range v {
			walk(name, v, found)
		}
	}
}
