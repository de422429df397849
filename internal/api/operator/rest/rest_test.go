package rest_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/shard/kernel"
)

type listed struct {
	Name  string `query:"name" required:"true" max:"8"`
	Sort  string `query:"sort" enum:"name,age" default:"name"`
	Limit int    `query:"limit" min:"1" max:"10" default:"5"`
	All   bool   `query:"all"`
	Code  string `query:"code" min:"4" max:"4" json:",omitempty"`
}

func (l *listed) About() string { return "queue:" + l.Name }

type selected struct {
	IDs  []string `json:"ids" max:"2"`
	Text *string  `json:"text,omitempty" filled:"true"`
	List []string `json:"list,omitempty" filled:"true"`
}

type made struct {
	Name  string    `json:"name" required:"true" max:"8"`
	Mode  string    `json:"mode" enum:"move,delete" default:"move"`
	Limit int       `json:"limit" min:"1" max:"10" default:"5"`
	Of    *selected `json:"of"`

	Since *time.Time `json:"since,omitempty"`
}

// ask has a request served by two operations that answer what they have read.
func ask(t *testing.T, o rest.Options, method, target, body string, fail error) (status int, answer string) {
	t.Helper()
	mux := http.NewServeMux()
	for pattern, h := range rest.Handlers([]rest.Operation{
		rest.Define(rest.Operation{Method: http.MethodGet, Path: "/list", Name: "List"}, func(_ context.Context, _ *rest.Call, in *listed) (*listed, error) {
			return in, fail
		}),
		rest.Define(rest.Operation{Method: http.MethodPost, Path: "/make", Name: "Make"}, func(_ context.Context, _ *rest.Call, in *made) (*made, error) {
			return in, fail
		}).Accepts(),
	}, o) {
		mux.Handle(pattern, h)
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body)))
	if w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%s %s may be kept, or taken for something else: %v", method, target, w.Header())
	}
	return w.Code, strings.TrimSpace(w.Body.String())
}

// What is declared of an input is what holds: defaults, bounds, and that nothing unknown is
// passed over.
func TestInputs(t *testing.T) {
	for _, c := range []struct {
		method, target, body string
		status               int
		says                 string
	}{
		{"GET", "/list?name=q", "", 200, `{"Name":"q","Sort":"name","Limit":5,"All":false}`},
		{"GET", "/list?name=q&sort=age&limit=10&all=true", "", 200, `{"Name":"q","Sort":"age","Limit":10,"All":true}`},
		{"GET", "/list?name=q&limit=", "", 200, `"Limit":5`},
		{"GET", "/list", "", 400, "name: it is missing"},
		{"GET", "/list?name=123456789", "", 400, "name: it has more than 8 bytes"},
		{"GET", "/list?name=q&name=r", "", 400, "name: it is given twice"},
		{"GET", "/list?name=q&sort=size", "", 400, "sort: want one of name, age"},
		{"GET", "/list?name=q&limit=0", "", 400, "limit: want a number from 1 to 10"},
		{"POST", "/make", `{"name":"q","limit":0}`, 400, "limit: want a number from 1 to 10"},
		{"GET", "/list?name=q&limit=11", "", 400, "limit: want a number from 1 to 10"},
		{"GET", "/list?name=q&limit=ten", "", 400, "limit: want a number"},
		{"GET", "/list?name=q&all=maybe", "", 400, "all: want true or false"},
		{"GET", "/list?name=q&colour=red", "", 400, `is no parameter of this`},
		{"GET", "/list?name=%zz", "", 400, "the query cannot be read"},

		{"POST", "/make", `{"name":"q"}`, 202, `{"name":"q","mode":"move","limit":5,"of":null}`},
		{"POST", "/make", `{"name":"q","of":{"ids":["1","2"]}}`, 202, `"ids":["1","2"]`},
		{"POST", "/make", `{"name":"q","of":{"ids":["1","2","3"]}}`, 400, "ids: there are more than 2"},
		{"POST", "/make", `{}`, 400, "name: it is missing"},
		{"POST", "/make", ``, 400, "the body is missing"},
		{"POST", "/make", `{"name":`, 400, "the body cannot be read"},
		{"POST", "/make", `{"name":"q","colour":"red"}`, 400, "the body cannot be read"},
		{"POST", "/make", `{"name":7}`, 400, "name: want a string, have number"},
		{"POST", "/make", `{"name":"q","limit":1.5}`, 400, "limit: want a whole number, have number 1.5"},
		{"POST", "/make", `{"name":"q","of":{"ids":[{"env":"A"}]}}`, 400, "of.ids: want a string, have object"},
		{"POST", "/make", `{"name":"q","of":[]}`, 400, "of: want an object, have array"},
		{"POST", "/make", `[]`, 400, "the body: want an object, have array"},
		{"POST", "/make", `{"name":"q","since":"yesterday"}`, 400, "want a time such as 2026-01-31T12:00:00Z, have yesterday"},
		{"GET", "/list?name=q&code=abc", "", 400, "code: it has less than 4 bytes"},
		{"POST", "/make", `{"name":"q"}{}`, 400, "something behind the body's end"},
		{"POST", "/make", `{"name":"q","limit":11}`, 400, "limit: want a number from 1 to 10"},
		{"POST", "/make", `{"name":"q","mode":"burn"}`, 400, "mode: want one of move, delete"},
		{"POST", "/make", `{"name":"q","name":"r"}`, 400, "name: it is given twice"},
		{"POST", "/make", `{"name":"q","Name":"r"}`, 400, `unknown field \"Name\"`},
		{"POST", "/make", `{"name":"q","of":{"IDs":["1"]}}`, 400, `unknown field \"IDs\"`},
		{"POST", "/make", `{"name":"q","of":{"ids":["1"],"ids":[]}}`, 400, "ids: it is given twice"},
		{"POST", "/make", `{"name":"q","of":{"text":null}}`, 400, "text: it is there and names nothing"},
		{"POST", "/make", `{"name":"q","of":{"text":""}}`, 400, "text: it is there and names nothing"},
		{"POST", "/make", `{"name":"q","of":{"list":[]}}`, 400, "list: it is there and names nothing"},
		{"POST", "/make", `{"name":"q","of":{"list":["a"],"text":"b"}}`, 202, `"of":{"ids":null,"text":"b","list":["a"]}`},
		{"POST", "/make?name=q", `{"name":"q"}`, 400, "members of the body"},
		{"POST", "/make", `{"name":"` + strings.Repeat("x", rest.MaxBody) + `"}`, 413, "TooLarge"},
	} {
		status, answer := ask(t, rest.Options{}, c.method, c.target, c.body, nil)
		if status != c.status || !strings.Contains(answer, c.says) {
			t.Errorf("%s %s %.60s: %d %s, want %d with %s", c.method, c.target, c.body, status, answer, c.status, c.says)
		}
	}
}

// Who calls is asked about the resource that is named, before anything is done.
func TestAdmission(t *testing.T) {
	asked := ""
	refusing := rest.Options{Admit: func(_ *http.Request, o *rest.Operation, resource string) (*rest.Call, error) {
		asked += o.Action() + " " + resource + "\n"
		return nil, rest.Forbidden("no")
	}}
	for _, target := range []string{"/list?name=q", "/make"} {
		method, body := http.MethodGet, ""
		if target == "/make" {
			method, body = http.MethodPost, `{"name":"q"}`
		}
		if status, answer := ask(t, refusing, method, target, body, nil); status != 403 || answer != `{"error":"no","code":"Forbidden"}` {
			t.Errorf("%s: %d %s", target, status, answer)
		}
	}
	if asked != "godwit:List queue:q\ngodwit:Make \n" {
		t.Errorf("asked for %q", asked)
	}
}

// A refusal is reported with a status and a word; what is the server's own fault is not shown.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		answer string
	}{
		{rest.NotFound("there is no such thing"), 404, `{"error":"there is no such thing","code":"NotFound"}`},
		{fault.New(fault.QueueDoesNotExist, "The queue does not exist."), 404, `{"error":"The queue does not exist.","code":"NotFound"}`},
		{fault.New(fault.Throttled, "Slower."), 503, `{"error":"Slower.","code":"Unavailable"}`},
		{kernel.ErrFull, 503, `{"error":"The disk has too little free space to accept messages. Receives and deletes go on; free space, or move the data directory.","code":"Unavailable"}`},
		{fault.New(fault.KMSAccessDenied, "No."), 403, `{"error":"No.","code":"Forbidden"}`},
		{errors.New("/var/lib/godwit/store: a secret of ours"), 500, `{"error":"internal error","code":"Internal"}`},
	} {
		if status, answer := ask(t, rest.Options{}, http.MethodGet, "/list?name=q", "", c.err); status != c.status || answer != c.answer {
			t.Errorf("%v: %d %s", c.err, status, answer)
		}
	}
}

// A page continues behind the name that the page before ended with, whatever is in it.
func TestCursors(t *testing.T) {
	for _, name := range []string{"q", "a b/ü?&=", "\x00\xff"} {
		next := rest.Next(name, true)
		if next == nil {
			t.Fatalf("%q: there is no next page", name)
		}
		if got, err := rest.After(*next); err != nil || got != name {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	if rest.Next("q", false) != nil {
		t.Error("the last page has a next one")
	}
	if _, err := rest.After("not base64!"); err == nil {
		t.Error("a cursor of elsewhere is taken")
	}
}
