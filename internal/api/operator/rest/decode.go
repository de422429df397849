package rest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// decode decodes a request into in, a pointer to the operation's input. Unknown parameters
// and members are refused.
func decode(w http.ResponseWriter, r *http.Request, op *Operation, in any) error {
	v := reflect.ValueOf(in).Elem()
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return BadRequest("the query cannot be read: " + err.Error())
	}
	if op.Method != http.MethodGet {
		if len(query) > 0 {
			return BadRequest("the parameters are members of the body")
		}
		if err := body(w, r, in); err != nil {
			return err
		}
		return checkBody(v)
	}
	known := map[string]bool{}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name := f.Tag.Get("query")
		if name == "" {
			continue
		}
		known[name] = true
		values := query[name]
		if len(values) > 1 {
			return BadRequest(name + ": it is given twice")
		}
		text := f.Tag.Get("default")
		if len(values) == 1 && values[0] != "" {
			text = values[0]
		}
		if text == "" {
			if f.Tag.Get("required") == "true" {
				return BadRequest(name + ": it is missing")
			}
			continue
		}
		if err := set(v.Field(i), f, name, text); err != nil {
			return err
		}
	}
	for name := range query {
		if !known[name] {
			return BadRequest(strconv.Quote(name) + " is no parameter of this")
		}
	}
	return nil
}

func body(w http.ResponseWriter, r *http.Request, in any) error {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err == nil {
		err = decoder.Decode(in)
	}
	var large *http.MaxBytesError
	var kind *json.UnmarshalTypeError
	var moment *time.ParseError
	switch {
	case errors.As(err, &large):
		return &Refusal{http.StatusRequestEntityTooLarge, "TooLarge", "the body has more than " + strconv.Itoa(MaxBody) + " bytes"}
	case errors.Is(err, io.EOF):
		return BadRequest("the body is missing: it is JSON")
	case errors.As(err, &kind):
		return BadRequest(cmp.Or(kind.Field, "the body") + ": want " + kindOf(kind.Type) + ", have " + kind.Value)
	case errors.As(err, &moment):
		return BadRequest(fmt.Sprintf("the body cannot be read: want a time such as 2026-01-31T12:00:00Z, have %s", moment.Value))
	case err != nil:
		return BadRequest("the body cannot be read: " + strings.TrimPrefix(err.Error(), "json: "))
	case decoder.More():
		return BadRequest("there is something behind the body's end")
	}
	return checkMembers(text, reflect.TypeOf(in))
}

// kindOf is the word of JSON for values of a type.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	default:
		return "a number"
	}
}

// checkBody checks the members of a body by their tags.
func checkBody(v reflect.Value) error {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			if err := checkBody(v.Field(i)); err != nil {
				return err
			}
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		field := v.Field(i)
		if field.IsZero() {
			if f.Tag.Get("required") == "true" {
				return BadRequest(name + ": it is missing")
			}
			if text := f.Tag.Get("default"); text != "" {
				if err := set(field, f, name, text); err != nil {
					return err
				}
			}
			continue
		}
		for field.Kind() == reflect.Pointer {
			field = field.Elem()
		}
		if err := bound(field, f, name); err != nil {
			return err
		}
		if field.Kind() == reflect.Struct && field.Type() != timeType {
			if err := checkBody(field); err != nil {
				return err
			}
		}
	}
	return nil
}

// set parses a parameter.
func set(v reflect.Value, f reflect.StructField, name, text string) error {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return BadRequest(name + ": want a number")
		}
		v.SetInt(n)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return BadRequest(name + ": want true or false")
		}
		v.SetBool(b)
	default:
		panic("rest: a parameter is a " + v.Kind().String())
	}
	return bound(v, f, name)
}

// bound checks a value by its tags.
func bound(v reflect.Value, f reflect.StructField, name string) error {
	switch v.Kind() {
	case reflect.String:
		if enum := f.Tag.Get("enum"); enum != "" && !slices.Contains(strings.Split(enum, ","), v.String()) {
			return BadRequest(name + ": want one of " + strings.ReplaceAll(enum, ",", ", "))
		}
		if least := f.Tag.Get("min"); least != "" {
			if n, _ := strconv.Atoi(least); len(v.String()) < n {
				return BadRequest(name + ": it has less than " + least + " bytes")
			}
		}
		if most := f.Tag.Get("max"); most != "" {
			if n, _ := strconv.Atoi(most); len(v.String()) > n {
				return BadRequest(name + ": it has more than " + most + " bytes")
			}
		}
	case reflect.Int, reflect.Int64:
		least, most := f.Tag.Get("min"), f.Tag.Get("max")
		if low, err := strconv.ParseInt(least, 10, 64); err == nil && v.Int() < low {
			return BadRequest(name + ": want a number from " + least + " to " + most)
		}
		if high, err := strconv.ParseInt(most, 10, 64); err == nil && v.Int() > high {
			return BadRequest(name + ": want a number from " + least + " to " + most)
		}
	case reflect.Slice:
		if n, err := strconv.Atoi(f.Tag.Get("max")); err == nil && v.Len() > n {
			return BadRequest(name + ": there are more than " + strconv.Itoa(n))
		}
	default:
	}
	return nil
}
