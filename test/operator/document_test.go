package operator_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// openAPI is as much of a document as is looked at here.
type openAPI struct {
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]*schema }
}

type operation struct {
	OperationID string
	Action      string `json:"x-godwit-action"`
	Parameters  []parameter
	RequestBody struct{ Content map[string]media }
	Responses   map[string]struct{ Content map[string]media }
}

type parameter struct {
	Name     string
	Required bool
	Schema   *schema
}

type media struct{ Schema *schema }

type schema struct {
	Ref                  string `json:"$ref"`
	Type                 any
	Format               string
	Enum                 []any
	Properties           map[string]*schema
	Required             []string
	AdditionalProperties any
	Items                *schema
	AnyOf                []*schema
	Minimum, Maximum     *float64
}

var read = sync.OnceValues(func() (*openAPI, error) {
	text, err := os.ReadFile("../../internal/api/operator/openapi.json")
	if err != nil {
		return nil, err
	}
	doc := &openAPI{}
	return doc, json.Unmarshal(text, doc)
})

// document is the one that the server serves, which TestServedDocument compares.
func document(w *world) *openAPI {
	doc, err := read()
	if err != nil && w != nil {
		w.t.Fatal(err)
	} else if err != nil {
		panic(err)
	}
	return doc
}

func TestServedDocument(t *testing.T) {
	w := start(t)
	text, err := os.ReadFile("../../internal/api/operator/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if got := w.fetch(http.MethodGet, w.endpoint+prefix+"openapi.json", "", http.StatusOK); got != string(text) {
		t.Error("the server serves another document")
	}
}

// What the document names is there, with the method that it names and no other.
func TestPathsAndMethods(t *testing.T) {
	w := start(t)
	for path, item := range document(w).Paths {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
			req, err := http.NewRequestWithContext(t.Context(), method, w.endpoint+path+"?none=1", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			_, there := item[strings.ToLower(method)]
			if want := http.StatusBadRequest; there && resp.StatusCode != want {
				t.Errorf("%s %s with a parameter that there is not: %d", method, path, resp.StatusCode)
			}
			if want := http.StatusMethodNotAllowed; !there && resp.StatusCode != want && resp.StatusCode != http.StatusNotFound {
				t.Errorf("%s %s: %d", method, path, resp.StatusCode)
			}
		}
	}
}

// Every parameter holds what the document says of it.
func TestParameters(t *testing.T) {
	w := start(t)
	for path, item := range document(w).Paths {
		op, ok := item["get"]
		if !ok {
			continue
		}
		short := strings.TrimPrefix(path, prefix)
		for _, p := range op.Parameters {
			if p.Required {
				w.refused(http.StatusBadRequest, http.MethodGet, short, "")
			}
			if p.Schema.Enum != nil || p.Schema.Type == "integer" || p.Schema.Type == "boolean" {
				w.refused(http.StatusBadRequest, http.MethodGet, short, p.Name+"=no-such-value")
			}
			if p.Schema.Maximum != nil {
				w.refused(http.StatusBadRequest, http.MethodGet, short, fmt.Sprintf("%s=%.0f", p.Name, *p.Schema.Maximum+1))
				w.refused(http.StatusBadRequest, http.MethodGet, short, fmt.Sprintf("%s=%.0f", p.Name, *p.Schema.Minimum-1))
			}
			w.refused(http.StatusBadRequest, http.MethodGet, short, p.Name+"=a&"+p.Name+"=b")
		}
	}
}

func (d *openAPI) operation(t *testing.T, method, path string) operation {
	t.Helper()
	op, ok := d.Paths[path][strings.ToLower(method)]
	if !ok {
		t.Fatalf("the document has no %s %s", method, path)
	}
	return op
}

// check holds a value against a schema, and says what is wrong.
func (d *openAPI) check(s *schema, value any, at string) (wrong []string) {
	if s == nil {
		return []string{at + " has no schema"}
	}
	if s.Ref != "" {
		name := strings.TrimPrefix(s.Ref, "#/components/schemas/")
		return d.check(d.Components.Schemas[name], value, at)
	}
	if s.AnyOf != nil {
		for _, one := range s.AnyOf {
			if len(d.check(one, value, at)) == 0 {
				return nil
			}
		}
		return append(d.check(s.AnyOf[0], value, at), at+" is none of what it may be")
	}
	types := []string{}
	switch t := s.Type.(type) {
	case string:
		types = append(types, t)
	case []any:
		for _, one := range t {
			types = append(types, one.(string))
		}
	}
	kind := kindOf(value)
	if len(types) > 0 && !slices.Contains(types, kind) && (kind != "integer" || !slices.Contains(types, "number")) {
		return []string{fmt.Sprintf("%s is a %s, and not a %v", at, kind, types)}
	}
	if s.Enum != nil && !slices.Contains(s.Enum, value) {
		wrong = append(wrong, fmt.Sprintf("%s is %v, and none of %v", at, value, s.Enum))
	}
	if text, ok := value.(string); ok && s.Format == "date-time" {
		if _, err := time.Parse(time.RFC3339Nano, text); err != nil || !strings.HasSuffix(text, "Z") {
			wrong = append(wrong, at+" is no time: "+text)
		}
	}
	switch v := value.(type) {
	case []any:
		for _, one := range v {
			wrong = append(wrong, d.check(s.Items, one, at+"[]")...)
		}
	case map[string]any:
		wrong = append(wrong, d.checkObject(s, v, at)...)
	}
	return wrong
}

func (d *openAPI) checkObject(s *schema, v map[string]any, at string) (wrong []string) {
	for _, name := range s.Required {
		if _, ok := v[name]; !ok {
			wrong = append(wrong, at+" has no "+name)
		}
	}
	for name, one := range v {
		switch member := s.Properties[name]; {
		case member != nil:
			wrong = append(wrong, d.check(member, one, at+"."+name)...)
		case s.AdditionalProperties == false:
			wrong = append(wrong, at+" has "+name+", which is not in the document")
		}
	}
	return wrong
}

func kindOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64:
		if v == float64(int64(v)) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	default:
		return "object"
	}
}
