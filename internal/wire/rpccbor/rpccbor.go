// Package rpccbor reads and writes shapes as Smithy's RPC v2 protocol has them
// in CBOR (RFC 8949): members under their own names, blobs as byte strings,
// moments as epoch seconds under tag 1. A member that is null is absent; one
// that is unknown is ignored.
package rpccbor

import (
	"encoding/binary"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/wire/shape"
)

// What a body may hold at most. Its size bounds the rest.
const (
	maxNested   = 16
	maxElements = 100_000
	maxPairs    = 10_000
)

var decoding = func() cbor.DecMode {
	mode, err := cbor.DecOptions{
		DefaultMapType:  reflect.TypeFor[map[string]any](),
		IntDec:          cbor.IntDecConvertSignedOrBigInt,
		DupMapKey:       cbor.DupMapKeyEnforcedAPF,
		MaxNestedLevels: maxNested, MaxArrayElements: maxElements, MaxMapPairs: maxPairs,
	}.DecMode()
	if err != nil {
		panic(err) // the options above are constants
	}
	return mode
}()

// Decode reads body into the struct that in points to, which is empty before.
// An empty body is an empty map. Errors are fault.MalformedInput. Nothing in
// the struct aliases body.
func Decode(body []byte, in any) error {
	if len(body) == 0 {
		return nil
	}
	if err := checkItems(body); err != nil {
		return err
	}
	var document any
	if err := decoding.Unmarshal(body, &document); err != nil {
		return fault.New(fault.MalformedInput, "The request body is not valid CBOR.")
	}
	v := reflect.ValueOf(in).Elem()
	return decodeStruct(document, shape.Of(v.Type()), v)
}

func decodeStruct(document any, t *shape.Type, v reflect.Value) error {
	members, ok := document.(map[string]any)
	if !ok {
		return mismatch(document, t)
	}
	for i := range t.Fields {
		f := &t.Fields[i]
		member, there := members[f.JSON]
		if !there || member == nil {
			continue
		}
		if err := decodeValue(member, f.Type, v.Field(f.Index)); err != nil {
			return err
		}
	}
	return nil
}

func decodeValue(document any, t *shape.Type, v reflect.Value) error {
	if t.Pointer {
		p := reflect.New(t.Go.Elem())
		v.Set(p)
		v = p.Elem()
	}
	switch t.Kind {
	case shape.List:
		elements, ok := document.([]any)
		if !ok {
			return mismatch(document, t)
		}
		list := reflect.MakeSlice(t.Go, len(elements), len(elements))
		for i, element := range elements {
			if element == nil && t.Elem.Kind == shape.Struct {
				continue
			}
			if err := decodeValue(element, t.Elem, list.Index(i)); err != nil {
				return err
			}
		}
		v.Set(list)
		return nil
	case shape.Map:
		entries, ok := document.(map[string]any)
		if !ok {
			return mismatch(document, t)
		}
		all := reflect.MakeMapWithSize(t.Go, len(entries))
		for key, entry := range entries {
			value := reflect.New(t.Elem.Go).Elem()
			if entry != nil {
				if err := decodeValue(entry, t.Elem, value); err != nil {
					return err
				}
			}
			all.SetMapIndex(reflect.ValueOf(key), value)
		}
		v.Set(all)
		return nil
	case shape.Struct:
		return decodeStruct(document, t, v)
	case shape.Pairs:
		return nil // only answers have them
	default:
		if !setScalar(document, t.Kind, v) {
			return mismatch(document, t)
		}
		return nil
	}
}

// setScalar sets v, which is of kind k; false says that the document is not.
func setScalar(document any, k shape.Kind, v reflect.Value) bool {
	switch d := document.(type) {
	case string:
		if k == shape.String {
			v.SetString(d)
			return true
		}
	case []byte:
		if k == shape.Blob {
			v.SetBytes(d)
			return true
		}
	case bool:
		if k == shape.Bool {
			v.SetBool(d)
			return true
		}
	case int64:
		switch {
		case k == shape.Long, k == shape.Int && int64(int32(d)) == d:
			v.SetInt(d)
			return true
		case k == shape.Float:
			v.SetFloat(float64(d))
			return true
		}
	case big.Int: // clients write whole doubles as integers, up to 2⁶⁴
		if k == shape.Float {
			f, _ := new(big.Float).SetInt(&d).Float64()
			v.SetFloat(f)
			return true
		}
	case float64:
		switch {
		case k == shape.Float:
			v.SetFloat(d)
			return true
		case k == shape.Int && float64(int32(d)) == d, k == shape.Long && float64(int64(d)) == d:
			v.SetInt(int64(d))
			return true
		}
	case time.Time:
		if k == shape.Time && d.Year() >= 1 && d.Year() <= 9999 {
			v.SetInt(d.Round(time.Millisecond).UnixMilli())
			return true
		}
	}
	return false
}

// mismatch says that a member is not of the kind that it should be.
func mismatch(document any, t *shape.Type) error {
	return fault.Newf(fault.MalformedInput, "Expected %s, found %s.", wanted(t.Kind), found(document))
}

func wanted(k shape.Kind) string {
	switch k {
	case shape.String:
		return "a text string"
	case shape.Int, shape.Long:
		return "an integer"
	case shape.Float:
		return "a number"
	case shape.Bool:
		return "a boolean"
	case shape.Time:
		return "a timestamp"
	case shape.Blob:
		return "a byte string"
	case shape.List:
		return "a list"
	default:
		return "a map"
	}
}

func found(document any) string {
	switch document.(type) {
	case nil:
		return "null"
	case string:
		return "a text string"
	case []byte:
		return "a byte string"
	case bool:
		return "a boolean"
	case int64, float64, big.Int:
		return "a number"
	case []any:
		return "a list"
	case map[string]any:
		return "a map"
	case time.Time:
		return "a timestamp"
	default:
		return "something else"
	}
}

// The first bytes of what is written.
const (
	majorUnsigned = 0 << 5
	majorNegative = 1 << 5
	majorBytes    = 2 << 5
	majorText     = 3 << 5
	listOpen      = 4<<5 | 31
	mapOpen       = 5<<5 | 31
	timeTag       = 6<<5 | 1
	falseByte     = 7<<5 | 20
	null          = 7<<5 | 22
	double        = 7<<5 | 27
	closing       = 7<<5 | 31
)

// Append appends the struct that out points to, as a map. Members that are nil,
// and empty strings, are left out. Maps are written in the order of their keys;
// they and lists are of indefinite length, as AWS writes them.
func Append(dst []byte, out any) []byte {
	v := reflect.ValueOf(out).Elem()
	return appendStruct(dst, shape.Of(v.Type()), v)
}

// AppendTexts appends a map of texts: names and values, alternately.
func AppendTexts(dst []byte, texts ...string) []byte {
	dst = append(dst, mapOpen)
	for _, text := range texts {
		dst = appendText(dst, text)
	}
	return append(dst, closing)
}

func appendStruct(dst []byte, t *shape.Type, v reflect.Value) []byte {
	dst = append(dst, mapOpen)
	for i := range t.Fields {
		f := &t.Fields[i]
		if member := v.Field(f.Index); !shape.Absent(f.Type, member) {
			dst = appendValue(appendText(dst, f.JSON), f.Type, member)
		}
	}
	return append(dst, closing)
}

func appendValue(dst []byte, t *shape.Type, v reflect.Value) []byte {
	if t.Pointer {
		if v.IsNil() {
			return append(dst, null)
		}
		v = v.Elem()
	}
	switch t.Kind {
	case shape.String:
		return appendText(dst, v.String())
	case shape.Int, shape.Long:
		if n := v.Int(); n < 0 {
			return appendHead(dst, majorNegative, uint64(-(n + 1)))
		}
		return appendHead(dst, majorUnsigned, uint64(v.Int()))
	case shape.Float:
		return appendDouble(dst, v.Float())
	case shape.Bool:
		if v.Bool() {
			return append(dst, falseByte+1)
		}
		return append(dst, falseByte)
	case shape.Time:
		return appendDouble(append(dst, timeTag), float64(v.Int())/1000)
	case shape.Blob:
		return append(appendHead(dst, majorBytes, uint64(v.Len())), v.Bytes()...)
	case shape.List:
		dst = append(dst, listOpen)
		for i := range v.Len() {
			dst = appendValue(dst, t.Elem, v.Index(i))
		}
		return append(dst, closing)
	case shape.Map:
		dst = append(dst, mapOpen)
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			dst = appendValue(appendText(dst, key.String()), t.Elem, v.MapIndex(key))
		}
		return append(dst, closing)
	case shape.Pairs:
		dst = append(dst, mapOpen)
		for _, pair := range v.Interface().(api.Pairs) {
			dst = appendText(appendText(dst, pair.Name), pair.Value)
		}
		return append(dst, closing)
	default:
		return appendStruct(dst, t, v)
	}
}

func appendDouble(dst []byte, f float64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, double), math.Float64bits(f))
}

// appendText appends a text string; what is not UTF-8 in it becomes U+FFFD.
func appendText(dst []byte, s string) []byte {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return append(appendHead(dst, majorText, uint64(len(s))), s...)
}

func appendHead(dst []byte, major byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(dst, major|byte(n))
	case n <= math.MaxUint8:
		return append(dst, major|24, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, major|25), uint16(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, major|26), uint32(n))
	default:
		return binary.BigEndian.AppendUint64(append(dst, major|27), n)
	}
}
