package awsquery

import (
	"encoding/base64"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/fastjson"
	"godwit.dev/godwit/internal/wire/shape"
)

// AppendMembers appends the members of the struct that out points to as XML
// elements. Members that are nil, and empty strings, are left out. Maps are
// written in the order of their keys.
func AppendMembers(dst []byte, out any) []byte {
	v := reflect.ValueOf(out).Elem()
	return appendMembers(dst, shape.Of(v.Type()), v)
}

func appendMembers(dst []byte, t *shape.Type, v reflect.Value) []byte {
	for i := range t.Fields {
		f := &t.Fields[i]
		if member := v.Field(f.Index); !shape.Absent(f.Type, member) {
			dst = appendMember(dst, f, member)
		}
	}
	return dst
}

func appendMember(dst []byte, f *shape.Field, v reflect.Value) []byte {
	item := f.Query
	switch f.Type.Kind {
	case shape.List, shape.Map, shape.Pairs:
		if !f.Flat {
			dst = open(dst, f.Query)
			item = "entry"
			if f.Type.Kind == shape.List {
				item = "member"
			}
		}
	case shape.String, shape.Int, shape.Long, shape.Float, shape.Bool, shape.Time, shape.Blob, shape.Struct:
	}
	switch f.Type.Kind {
	case shape.List:
		for i := range v.Len() {
			dst = appendValue(dst, item, f.Type.Elem, v.Index(i))
		}
	case shape.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			dst = open(dst, item)
			dst = appendText(dst, f.Key, key.String())
			dst = appendValue(dst, f.Value, f.Type.Elem, v.MapIndex(key))
			dst = end(dst, item)
		}
	case shape.Pairs:
		for _, pair := range v.Interface().(api.Pairs) {
			dst = open(dst, item)
			dst = appendText(dst, f.Key, pair.Name)
			dst = appendText(dst, f.Value, pair.Value)
			dst = end(dst, item)
		}
	default:
		return appendValue(dst, item, f.Type, v)
	}
	if !f.Flat {
		dst = end(dst, f.Query)
	}
	return dst
}

func appendValue(dst []byte, name string, t *shape.Type, v reflect.Value) []byte {
	if t.Pointer {
		if v.IsNil() {
			return dst
		}
		v = v.Elem()
	}
	dst = open(dst, name)
	switch t.Kind {
	case shape.String:
		dst = AppendEscaped(dst, v.String())
	case shape.Int, shape.Long:
		dst = strconv.AppendInt(dst, v.Int(), 10)
	case shape.Float:
		dst = fastjson.AppendFloat(dst, v.Float())
	case shape.Time:
		dst = api.Time(v.Int()).AppendISO(dst)
	case shape.Bool:
		dst = strconv.AppendBool(dst, v.Bool())
	case shape.Blob:
		dst = base64.StdEncoding.AppendEncode(dst, v.Bytes())
	default:
		dst = appendMembers(dst, t, v)
	}
	return end(dst, name)
}

func appendText(dst []byte, name, text string) []byte {
	return end(AppendEscaped(open(dst, name), text), name)
}

func open(dst []byte, name string) []byte {
	dst = append(dst, '<')
	dst = append(dst, name...)
	return append(dst, '>')
}

func end(dst []byte, name string) []byte {
	dst = append(dst, '<', '/')
	dst = append(dst, name...)
	return append(dst, '>')
}

// AppendEscaped appends s as character data. A carriage return is written as a
// reference, since a reader would turn it into a line feed; what XML cannot
// hold at all becomes U+FFFD.
func AppendEscaped(dst []byte, s string) []byte {
	start := 0
	for i := 0; i < len(s); {
		c, size, escape := s[i], 1, ""
		switch {
		case c == '&':
			escape = "&amp;"
		case c == '<':
			escape = "&lt;"
		case c == '>':
			escape = "&gt;"
		case c == '"':
			escape = "&quot;"
		case c == '\r':
			escape = "&#xD;"
		case c < ' ' && c != '\n' && c != '\t':
			escape = "\uFFFD"
		case c >= utf8.RuneSelf:
			var r rune
			r, size = utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 || r == 0xFFFE || r == 0xFFFF {
				escape = "\uFFFD"
			}
		}
		if escape != "" {
			dst = append(dst, s[start:i]...)
			dst = append(dst, escape...)
			start = i + size
		}
		i += size
	}
	return append(dst, s[start:]...)
}
