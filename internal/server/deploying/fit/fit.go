// Package fit gives the inputs of operations the properties of a template.
package fit

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/stack/resource"
)

// Into gives an input the properties that its members are called as, in whatever case: templates
// have KmsKeyArn where Lambda has KMSKeyArn. What else there is at the top is left out; in what is
// nested, nothing may be. An error says what does not fit, and where.
func Into(properties map[string]any, in any) error {
	t := reflect.TypeOf(in).Elem()
	fit := make(map[string]any, len(properties))
	var err error
	for name, value := range properties {
		f, ok := t.FieldByNameFunc(func(member string) bool { return strings.EqualFold(member, name) })
		if !ok {
			continue
		}
		if fit[f.Name], err = fitting("#/"+name, value, f.Type); err != nil {
			return err
		}
	}
	document, err := json.Marshal(fit)
	if err == nil {
		err = json.Unmarshal(document, in)
	}
	return err
}

var (
	ownForm = reflect.TypeFor[json.Unmarshaler]()
	ownText = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// fitting is a value as a type has it, where templates may write it otherwise: numbers and
// truth values as text, and texts as numbers. path is where it stands.
func fitting(path string, value any, t reflect.Type) (any, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if p := reflect.PointerTo(t); t.Kind() != reflect.Struct && (p.Implements(ownForm) || p.Implements(ownText)) {
		return value, nil
	}
	var err error
	switch v := value.(type) {
	case map[string]any:
		fit := make(map[string]any, len(v))
		for name, one := range v {
			fit[name] = one
			switch {
			case t.Kind() == reflect.Struct && t.NumField() > 0: // else it is refused whatever is in it
				f, ok := t.FieldByName(name)
				if !ok {
					return nil, fmt.Errorf("%s: extraneous key [%s] is not permitted", path, name)
				}
				fit[name], err = fitting(path+"/"+name, one, f.Type)
			case t.Kind() == reflect.Map:
				fit[name], err = fitting(path+"/"+name, one, t.Elem())
			}
			if err != nil {
				return nil, err
			}
		}
		return fit, nil
	case []any:
		if t.Kind() != reflect.Slice {
			return value, nil
		}
		fit := make([]any, len(v))
		for i, one := range v {
			if fit[i], err = fitting(path+"/"+strconv.Itoa(i), one, t.Elem()); err != nil {
				return nil, err
			}
		}
		return fit, nil
	}
	return scalar(value, t.Kind()), nil
}

// scalar is a value as a kind has it, if it can be.
func scalar(value any, k reflect.Kind) any {
	text, ok := resource.Scalar(value)
	if !ok {
		return value
	}
	switch k {
	case reflect.String:
		return text
	case reflect.Bool:
		if on, err := strconv.ParseBool(text); err == nil && len(text) > 1 {
			return on
		}
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64:
		if number, ok := resource.Whole(text); ok {
			return number
		}
		if number, ok := resource.Decimal(text); ok {
			return number
		}
	default:
	}
	return value
}
