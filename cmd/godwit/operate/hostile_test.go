package operate

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
)

// hostile is what a stranger may have put into any text: ANSI, C1 controls, marks of direction,
// tags that cannot be seen, lines of his own, bytes that are no text, a formula.
const hostile = "=cmd|'/c x'!A1\x1b[2J\x1b]0;x\x07\u009b31m\u202e\u2066\u200b\U000e0041\r\nFORGED\x00\xff<script>"

// schema is one of the API's document.
type schema struct {
	Ref                  string `json:"$ref"`
	Type                 any
	Properties           map[string]*schema
	Items                *schema
	AdditionalProperties any
	AllOf, AnyOf, OneOf  []*schema
}

// document is the API's.
type apiDocument struct {
	Paths map[string]map[string]struct {
		Responses map[string]struct {
			Content map[string]struct{ Schema *schema }
		}
	}
	Components struct{ Schemas map[string]*schema }
}

// sample is a value of a schema in which every text is hostile, and lists have one member.
func (d *apiDocument) sample(s *schema, name string) any {
	if s == nil || name == "next" {
		return nil
	}
	if s.Ref != "" {
		return d.sample(d.Components.Schemas[s.Ref[strings.LastIndex(s.Ref, "/")+1:]], name)
	}
	for _, one := range append(append(s.AllOf, s.AnyOf...), s.OneOf...) {
		if one.Ref != "" || one.Type != "null" {
			return d.sample(one, name)
		}
	}
	kind, _ := s.Type.(string)
	if several, ok := s.Type.([]any); ok {
		kind, _ = several[0].(string)
	}
	switch kind {
	case "object":
		out := map[string]any{}
		for name, of := range s.Properties {
			out[name] = d.sample(of, name)
		}
		if s.Properties == nil {
			out[hostile] = hostile
		}
		return out
	case "array":
		return []any{d.sample(s.Items, "")}
	case "integer":
		return 7
	case "number":
		return 1.5
	case "boolean":
		return true
	default:
		return hostile
	}
}

// runner is a command.
type runner interface{ Run(s Streams) error }

// commands are those that can be run, below a command, by their names.
func commands(v reflect.Value, name string, found map[string]reflect.Value) {
	if _, ok := reflect.TypeAssert[runner](v.Addr()); ok {
		found[name] = v
		return
	}
	for i := range v.NumField() {
		if _, ok := v.Type().Field(i).Tag.Lookup("cmd"); ok {
			commands(v.Field(i), name+" "+strings.ToLower(v.Type().Field(i).Name), found)
		}
	}
}

// fill gives a command its arguments, those that can be left out if all is said, and the
// defaults of its flags.
func fill(v reflect.Value, all bool) {
	for i := range v.NumField() {
		f, field := v.Type().Field(i), v.Field(i)
		_, argument := f.Tag.Lookup("arg")
		_, optional := f.Tag.Lookup("optional")
		switch {
		case f.Anonymous && f.Name != "Connection":
			fill(field, all)
		case f.Name == "Kind":
			field.SetString("delete")
		case argument && field.Kind() == reflect.String && f.Name != "File" && (all || !optional):
			field.SetString("arn:aws:sqs:us-east-1:000000000000:x")
		case f.Name == "File" && !optional:
			field.SetString("-")
		case f.Name == "Yes":
			field.SetBool(true)
		case f.Name == "Limit":
			field.SetInt(1)
		}
	}
}

// TestHostile: no command writes anything to a terminal that somebody else has made up, be it
// a table, JSON or an error, whatever the server's answers hold.
func TestHostile(t *testing.T) {
	text, err := os.ReadFile("../../../internal/api/operator/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc apiDocument
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	refuses := false
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		op := doc.Paths[r.URL.Path][strings.ToLower(r.Method)]
		var answer any = map[string]string{"error": hostile, "code": "Forbidden"}
		if refuses {
			w.WriteHeader(http.StatusForbidden)
		} else {
			for _, status := range []string{"200", "202"} {
				if content, ok := op.Responses[status].Content["application/json"]; ok {
					answer = doc.sample(content.Schema, "")
				}
			}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(s.Close)
	found := map[string]reflect.Value{}
	for name, command := range map[string]any{
		"queues": &Queues{}, "topics": &Topics{}, "subscriptions": &Subscriptions{}, "deliveries": &Deliveries{}, "messages": &Messages{}, "dlq": &DLQ{},
		"functions": &Functions{}, "jobs": &Jobs{}, "doctor": &Doctor{}, "keys": &Keys{}, "sources": &Sources{}, "simulate": &Simulate{},
	} {
		commands(reflect.ValueOf(command).Elem(), name, found)
	}
	if len(found) < 24 {
		t.Errorf("only %d commands", len(found))
	}
	for name, v := range found {
		for _, all := range []bool{false, true} {
			for _, output := range []string{"table", "json", "refused"} {
				fresh := reflect.New(v.Type())
				fill(fresh.Elem(), all)
				fresh.Elem().FieldByName("Connection").Set(reflect.ValueOf(Connection{Endpoint: s.URL, Output: strings.Replace(output, "refused", "table", 1)}))
				refuses = output == "refused"
				var out, said bytes.Buffer
				err := fresh.Interface().(runner).Run(Streams{In: strings.NewReader("name: shop"), Out: &out, Err: &said})
				switch {
				case !refuses && name == "jobs start": // of a job in no state that there is
					if err == nil || !strings.Contains(err.Error(), "the job has not ended") || strings.ContainsFunc(err.Error(), unsafe) {
						t.Errorf("%s: %q", name, err)
					}
				case refuses && (err == nil || strings.ContainsFunc(err.Error(), unsafe)):
					t.Errorf("%s, refused: %q", name, err)
				case !refuses && (err != nil || out.Len() == 0):
					t.Errorf("%s, as %s: %v, %q", name, output, err, out.String())
				case output == "json" && !json.Valid(out.Bytes()):
					t.Errorf("%s prints no JSON: %q", name, out.String())
				}
				shown := strings.ReplaceAll(strings.ReplaceAll(out.String()+said.String(), "\n", ""), "\r", "")
				if strings.ContainsFunc(shown, unsafe) || strings.Contains(out.String(), "\nFORGED") || strings.Contains(said.String(), "\nFORGED") {
					t.Errorf("%s, as %s: %q", name, output, out.String()+said.String())
				}
			}
		}
	}
}
