package awsquery

import (
	"encoding/base64"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/wire/shape"
)

// MaxIndex bounds the number in the path of a list's element.
const MaxIndex = 10_000

// Decode reads form into the struct that in points to, which is empty before.
// Unknown parameters are ignored; the elements of a list come in the order of
// their numbers, and gaps close. Errors are fault.MalformedInput.
//
// Every element comes from at least one parameter, so that what is allocated is
// bounded by the request's size whatever numbers it names.
func Decode(form Form, in any) error {
	v := reflect.ValueOf(in).Elem()
	return decodeStruct(group{form, 0}, shape.Of(v.Type()), v)
}

// group is a run of parameters that share the first at bytes of their keys.
type group struct {
	form Form
	at   int
}

// split takes the run of parameters off the front whose keys continue with the
// same segment. In the order of the keys a segment's own parameter and the run
// below it need not be neighbours: they come as two groups.
func (g *group) split() (segment string, below group, leaf bool) {
	rest := g.form[0].key[g.at:]
	segment, _, deeper := strings.Cut(rest, ".")
	end := g.at + len(segment)
	if deeper {
		end++
	}
	prefix := g.form[0].key[:end]
	n := 1
	for n < len(g.form) && len(g.form[n].key) >= end && g.form[n].key[g.at:end] == prefix[g.at:] &&
		(deeper || len(g.form[n].key) == end) {
		n++
	}
	below = group{g.form[:n], end}
	g.form = g.form[n:]
	return segment, below, !deeper
}

func decodeStruct(g group, t *shape.Type, v reflect.Value) error {
	for len(g.form) > 0 {
		segment, below, leaf := g.split()
		f := t.ByQuery(segment)
		if f == nil {
			continue
		}
		if err := decodeField(below, leaf, f, v.Field(f.Index)); err != nil {
			return err
		}
	}
	return nil
}

func decodeField(g group, leaf bool, f *shape.Field, v reflect.Value) error {
	switch f.Type.Kind {
	case shape.Struct:
		if leaf {
			return nil
		}
		if f.Type.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(f.Type.Go.Elem()))
			}
			v = v.Elem()
		}
		return decodeStruct(g, f.Type, v)
	case shape.List, shape.Map:
		return decodeCollection(g, leaf, f, v)
	case shape.Pairs:
		return nil // only answers have them
	default:
		if !leaf {
			return nil
		}
		return decodeScalar(f.Query, g.form[0].value, f.Type, v)
	}
}

// decodeCollection reads a list or a map. Without a number its only element
// may stand at the name itself, as AWS's own examples have it: AttributeName=All,
// Attribute.Name=x&Attribute.Value=y. A name with an empty value alone is an
// empty collection.
func decodeCollection(g group, leaf bool, f *shape.Field, v reflect.Value) error {
	t := f.Type
	if leaf {
		if t.Kind == shape.List && f.Flat && g.form[0].value != "" && t.Elem.Kind != shape.Struct {
			return decodeElements(f, []element{{0, g, true}}, v)
		}
		if v.IsNil() {
			makeEmpty(t, v)
		}
		return nil
	}
	if !f.Flat {
		wrapper := "member"
		if t.Kind == shape.Map {
			wrapper = "entry"
		}
		for len(g.form) > 0 {
			segment, below, leaf := g.split()
			if segment == wrapper && !leaf {
				return decodeNumbered(below, f, v)
			}
		}
		return nil
	}
	return decodeNumbered(g, f, v)
}

type element struct {
	index int
	group group
	leaf  bool
}

func decodeNumbered(g group, f *shape.Field, v reflect.Value) error {
	var elements []element
	whole := g
	for len(g.form) > 0 {
		segment, below, leaf := g.split()
		index, err := strconv.Atoi(segment)
		if err != nil {
			if f.Type.Kind == shape.Map && f.Flat && segment == f.Key {
				elements = append(elements, element{0, whole, false})
			}
			continue
		}
		if index < 1 || index > MaxIndex {
			return fault.Newf(fault.MalformedInput, "The index %d of parameter %s is not between 1 and %d.", index, f.Query, MaxIndex)
		}
		elements = append(elements, element{index, below, leaf})
	}
	if len(elements) == 0 {
		return nil
	}
	slices.SortStableFunc(elements, func(a, b element) int { return a.index - b.index })
	return decodeElements(f, elements, v)
}

func decodeElements(f *shape.Field, elements []element, v reflect.Value) error {
	t := f.Type
	if t.Kind == shape.Map {
		return decodeEntries(f, elements, v)
	}
	// What is there already came from the name itself, without a number.
	list := reflect.MakeSlice(t.Go, 0, v.Len()+len(elements))
	list = reflect.AppendSlice(list, v)
	for _, e := range elements {
		item := reflect.New(t.Elem.Go).Elem()
		var err error
		switch {
		case t.Elem.Kind == shape.Struct && !e.leaf:
			err = decodeStruct(e.group, t.Elem, item)
		case t.Elem.Kind != shape.Struct && e.leaf:
			err = decodeScalar(f.Query, e.group.form[0].value, t.Elem, item)
		default:
			continue
		}
		if err != nil {
			return err
		}
		list = reflect.Append(list, item)
	}
	v.Set(list)
	return nil
}

func decodeEntries(f *shape.Field, elements []element, v reflect.Value) error {
	t := f.Type
	if v.IsNil() {
		makeEmpty(t, v)
	}
	for _, e := range elements {
		if e.leaf {
			continue
		}
		value := reflect.New(t.Elem.Go).Elem()
		key, named := "", false
		for g := e.group; len(g.form) > 0; {
			segment, below, leaf := g.split()
			var err error
			switch {
			case segment == f.Key && leaf:
				key, named = below.form[0].value, true
			case segment == f.Value && t.Elem.Kind == shape.Struct && !leaf:
				err = decodeStruct(below, t.Elem, value)
			case segment == f.Value && t.Elem.Kind != shape.Struct && leaf:
				err = decodeScalar(f.Query, below.form[0].value, t.Elem, value)
			}
			if err != nil {
				return err
			}
		}
		if !named {
			return fault.Newf(fault.MalformedInput, "An entry of parameter %s has no %s.", f.Query, f.Key)
		}
		v.SetMapIndex(reflect.ValueOf(key), value)
	}
	return nil
}

func makeEmpty(t *shape.Type, v reflect.Value) {
	if t.Kind == shape.Map {
		v.Set(reflect.MakeMap(t.Go))
	} else {
		v.Set(reflect.MakeSlice(t.Go, 0, 0))
	}
}

func decodeScalar(name, text string, t *shape.Type, v reflect.Value) error {
	if t.Pointer {
		p := reflect.New(t.Go.Elem())
		v.Set(p)
		v = p.Elem()
	}
	switch t.Kind {
	case shape.String:
		v.SetString(text)
	case shape.Int:
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return fault.Newf(fault.MalformedInput, "The value of parameter %s can not be converted to an Integer", name)
		}
		v.SetInt(n)
	case shape.Long:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fault.Newf(fault.MalformedInput, "The value of parameter %s can not be converted to a Long", name)
		}
		v.SetInt(n)
	case shape.Float:
		n, err := api.ParseDouble(text)
		if err != nil {
			return fault.Newf(fault.MalformedInput, "The value of parameter %s can not be converted to a Double", name)
		}
		v.SetFloat(n)
	case shape.Time:
		at, err := api.ParseTime(text)
		if err != nil {
			return fault.Newf(fault.MalformedInput, "The value of parameter %s is not a valid timestamp", name)
		}
		v.SetInt(int64(at))
	case shape.Bool:
		switch {
		case strings.EqualFold(text, "true"):
			v.SetBool(true)
		case strings.EqualFold(text, "false"):
			v.SetBool(false)
		default:
			return fault.Newf(fault.MalformedInput, "The value of parameter %s can not be converted to a Boolean", name)
		}
	case shape.Blob:
		p, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return fault.Newf(fault.MalformedInput, "The value of parameter %s is not valid base64.", name)
		}
		v.SetBytes(p)
	case shape.List, shape.Map, shape.Pairs, shape.Struct: // not scalars
	}
	return nil
}
