package restjson_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/wire/restjson"
)

type input struct {
	Name    string   `wire:"required,uri"`
	Limit   *int     `wire:"query=Limit"`
	Keys    []string `wire:"query=keys"`
	Dry     bool     `wire:"query=dry"`
	Kind    *string  `wire:"header=X-Kind"`
	Text    *string
	Weights map[string]float64
	Inner   *inner
}

type inner struct{ N int }

func TestDecode(t *testing.T) {
	var in input
	err := restjson.Decode(restjson.Request{
		Places: map[string]string{"Name": "n"},
		Query:  url.Values{"Limit": {"7", "8"}, "keys": {"a", "b"}, "dry": {"true"}},
		Header: http.Header{"X-Kind": {"k"}},
		Body:   []byte(`{"Name":"other","Limit":1,"Kind":"x","Text":"t","Weights":{"1":0.25},"Inner":{"N":3},"Unknown":[]}`),
	}, &in)
	if err != nil {
		t.Fatal(err)
	}
	want := input{
		Name: "n", Limit: new(7), Keys: []string{"a", "b"}, Dry: true, Kind: new("k"), Text: new("t"),
		Weights: map[string]float64{"1": 0.25}, Inner: &inner{3},
	}
	if d := cmp.Diff(want, in); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	// What stands elsewhere does not come from the body.
	in = input{}
	err = restjson.Decode(restjson.Request{Body: []byte(`{"Name":"other","Limit":1,"Keys":["x"],"Dry":true,"Kind":"x"}`)}, &in)
	if d := cmp.Diff(input{}, in); d != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, d)
	}
	for _, r := range []restjson.Request{
		{Body: []byte("{")},
		{Body: []byte(`{"Text":1}`)},
		{Query: url.Values{"Limit": {"many"}}},
		{Query: url.Values{"dry": {"perhaps"}}},
	} {
		if err := restjson.Decode(r, &in); fault.KindOf(err) != fault.MalformedInput {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

type whole struct {
	Tail    *string `wire:"header=X-Tail"`
	Count   int     `wire:"header=X-Count"`
	Payload []byte  `wire:"payload"`
	Status  int     `wire:"status"`
}

func TestPayload(t *testing.T) {
	var in whole
	body := []byte(`{"Tail":"x"`)
	if err := restjson.Decode(restjson.Request{Body: body}, &in); err != nil {
		t.Fatal(err)
	}
	clear(body)
	if string(in.Payload) != `{"Tail":"x"` || in.Tail != nil {
		t.Errorf("%+v", in)
	}
	header := http.Header{}
	status := restjson.Head(header, &whole{Tail: new("t"), Count: 3, Status: 202})
	if d := cmp.Diff(http.Header{"X-Tail": {"t"}, "X-Count": {"3"}}, header); d != "" || status != 202 {
		t.Errorf("status %d, -want +got:\n%s", status, d)
	}
	if got, empty := restjson.Append([]byte("<"), &whole{Payload: []byte("raw")}); string(got) != "<raw" || empty {
		t.Errorf("%s, empty %v", got, empty)
	}
	if got, empty := restjson.Append(nil, &whole{}); len(got) != 0 || !empty {
		t.Errorf("%s, empty %v", got, empty)
	}
	if got, _ := restjson.Append(nil, &input{Name: "n", Keys: []string{"a"}, Weights: map[string]float64{"1": 0.25}}); string(got) != `{"Weights":{"1":0.25}}` {
		t.Errorf("%s", got)
	}
}

func TestRoutes(t *testing.T) {
	var r restjson.Routes[string]
	for _, route := range [][3]string{
		{"GET", "/v/things", "list"},
		{"GET", "/v/things?find=Thing", "find"},
		{"POST", "/v/things", "make"},
		{"GET", "/v/things/{Name}", "get"},
		{"GET", "/v/things/{Name}/parts/{Part}", "part"},
	} {
		r.Add(route[0], route[1], route[2])
	}
	for _, tc := range []struct {
		method, path, want string
		places             map[string]string
	}{
		{"GET", "/v/things?find=Thing&a=b", "find", map[string]string{}},
		{"GET", "/v/things?find=Things", "list", map[string]string{}},
		{"GET", "/v/things?find=%zz", "list", map[string]string{}},
		{"POST", "/v/things?find=Thing", "make", map[string]string{}},
		{"GET", "/v/things", "list", map[string]string{}},
		{"GET", "/v/things/", "list", map[string]string{}},
		{"POST", "/v/things", "make", map[string]string{}},
		{"GET", "/v/things/a", "get", map[string]string{"Name": "a"}},
		{"GET", "/v/things/a%3Ab%2Fc", "get", map[string]string{"Name": "a:b/c"}},
		{"GET", "/v/things/a/parts/b", "part", map[string]string{"Name": "a", "Part": "b"}},
		{"DELETE", "/v/things", "", nil},
		{"GET", "/v/others", "", nil},
		{"GET", "/v/things/a/parts", "", nil},
		{"GET", "/v/things//parts/b", "", nil},
		{"GET", "/v/things/%zz", "", nil},
		{"GET", "/", "", nil},
		{"GET", "", "", nil},
	} {
		path, query, _ := strings.Cut(tc.path, "?")
		got, places, ok := r.Find(tc.method, path, query)
		if got != tc.want || ok != (tc.want != "") || cmp.Diff(tc.places, places) != "" {
			t.Errorf("%s %s: %q, %v, %v", tc.method, tc.path, got, places, ok)
		}
	}
}

// Whatever comes, reading ends with an input or with a refusal.
func FuzzDecode(f *testing.F) {
	f.Add("/v/things/a%3Ab", "Limit=7&keys=a&keys=b", []byte(`{"Text":"t"}`))
	f.Add("/v/things/%", "Limit=x", []byte(`{`))
	f.Fuzz(func(t *testing.T, path, query string, body []byte) {
		var r restjson.Routes[bool]
		r.Add("GET", "/v/things/{Name}", true)
		_, places, ok := r.Find("GET", path, query)
		if ok && places["Name"] == "" {
			t.Fatalf("%q has an empty name", path)
		}
		values, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		var in input
		if err := restjson.Decode(restjson.Request{Places: places, Query: values, Body: body}, &in); err != nil && fault.KindOf(err) != fault.MalformedInput {
			t.Fatal(err)
		}
	})
}
