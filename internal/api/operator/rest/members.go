package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// checkMembers refuses what encoding/json passes over in a body: a member that is given twice, of
// which it takes the last, and one in another case of letters, which would be the same member. One
// with the tag filled that is there says something: null and empty values, as of a variable
// that is not set, are refused. The body was decoded into the type before.
func checkMembers(text []byte, t reflect.Type) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	first, err := d.Token()
	if err != nil {
		return BadRequest("the body cannot be read: " + err.Error())
	}
	return checkValue(d, first, t)
}

// checkValue checks the value that begins with a token; t is nil where nothing is declared of it.
func checkValue(d *json.Decoder, first json.Token, t reflect.Type) error {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch first {
	case json.Delim('['):
		var of reflect.Type
		if t != nil && t.Kind() == reflect.Slice {
			of = t.Elem()
		}
		for d.More() {
			next, err := d.Token()
			if err != nil {
				return err
			}
			if err := checkValue(d, next, of); err != nil {
				return err
			}
		}
	case json.Delim('{'):
		if err := checkObject(d, t); err != nil {
			return err
		}
	default:
		return nil
	}
	_, err := d.Token() // the end
	return err
}

func checkObject(d *json.Decoder, t reflect.Type) error {
	var declared map[string]reflect.StructField
	var of reflect.Type
	switch {
	case t == nil:
	case t.Kind() == reflect.Map:
		of = t.Elem()
	case t.Kind() == reflect.Struct:
		declared = map[string]reflect.StructField{}
		declare(declared, t)
	}
	seen := map[string]bool{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string) // JSON has no other names
		if seen[name] {
			return BadRequest(name + ": it is given twice")
		}
		seen[name] = true
		f, ok := declared[name]
		if declared != nil && !ok {
			return BadRequest(fmt.Sprintf("the body cannot be read: unknown field %q", name))
		}
		if ok {
			of = f.Type
		}
		if token, err = d.Token(); err != nil {
			return err
		}
		if f.Tag.Get("filled") == "true" && (token == nil || token == "" || token == json.Delim('[') && !d.More()) {
			return BadRequest(name + ": it is there and names nothing: leave it out to mean everything")
		}
		if n, ok := token.(json.Number); ok && belowLeast(n, f) { // once decoded it would be as if it were not there
			return BadRequest(name + ": want a number from " + f.Tag.Get("min") + " to " + f.Tag.Get("max"))
		}
		if err := checkValue(d, token, of); err != nil {
			return err
		}
	}
	return nil
}

func belowLeast(n json.Number, f reflect.StructField) bool {
	least, err := strconv.ParseInt(f.Tag.Get("min"), 10, 64)
	given, fraction := n.Int64()
	return err == nil && fraction == nil && given < least
}

// declare collects the members of a struct by their names.
func declare(all map[string]reflect.StructField, t reflect.Type) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			declare(all, f.Type)
		case name == "":
			all[f.Name] = f
		case name != "-":
			all[name] = f
		}
	}
}
