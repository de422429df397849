package checklist

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"godwit.dev/godwit/internal/wire/restjson"
)

// Recorder is a transport that notes what the services of its models answer,
// and passes everything on as it is. It may be used by many goroutines.
type Recorder struct {
	next   http.RoundTripper
	models []Model

	routes restjson.Routes[Item] // of the services that have some

	shapes map[string]map[string]Exchange // by service and action

	mu       sync.Mutex
	seen     map[Item]bool
	answered map[string]bool // members of answers, by their paths
	absent   map[string]bool // lists and maps that an answer lacked
	wrong    map[string]bool // what is not as the shapes say
}

// NewRecorder returns a recorder in front of next.
func NewRecorder(next http.RoundTripper, models ...Model) *Recorder {
	r := &Recorder{
		next: next, models: models, shapes: map[string]map[string]Exchange{},
		seen: map[Item]bool{}, answered: map[string]bool{}, absent: map[string]bool{}, wrong: map[string]bool{},
	}
	for _, m := range models {
		if shapes, err := Shapes(m.Service); err == nil { // not every service's are there
			r.shapes[m.Service] = shapes
		}
		for action, route := range m.Routes {
			method, path, _ := strings.Cut(route, " ")
			r.routes.Add(method, path, Item{Service: m.Service, Action: action, Protocol: JSON})
		}
	}
	return r
}

// Seen reports whether the item was answered.
func (r *Recorder) Seen(i Item) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[i]
}

// RoundTrip implements http.RoundTripper.
func (r *Recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	form, err := formOf(req)
	if err != nil {
		return nil, err
	}
	model, item := r.identify(req, form)
	resp, err := r.next.RoundTrip(req)
	if err != nil || model == nil {
		return resp, err
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			return nil, err
		}
		resp.Body = io.NopCloser(bytes.NewReader(body))
		item.Protocol, item.Error = "", cmp.Or(resp.Header.Get("X-Amzn-Errortype"), model.errorName(body))
	} else if r.shapes[item.Service] != nil {
		body, err := r.walk(item, resp.Header.Get("Content-Type"), resp.Body)
		resp.Body.Close()
		if err != nil {
			return nil, err
		}
		resp.Body = io.NopCloser(bytes.NewReader(body))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[item] = true
	return resp, nil
}

func sortedKeys(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

// formOf reads the parameters of a request in Query, from its URL and its
// body, which it puts back.
func formOf(req *http.Request) (url.Values, error) {
	form := req.URL.Query()
	if req.Body == nil || !strings.HasPrefix(req.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		return form, nil
	}
	body, err := io.ReadAll(req.Body)
	req.Body.Close()
	if err != nil {
		return nil, err
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	// What cannot be read as a form is the server's to refuse.
	sent, _ := url.ParseQuery(string(body))
	for name, values := range sent {
		form[name] = append(form[name], values...)
	}
	return form, nil
}

// identify finds what a request asks for; no model if it is of none.
func (r *Recorder) identify(req *http.Request, form url.Values) (*Model, Item) {
	prefix, action, isJSON := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
	item := Item{Action: action, Protocol: JSON}
	if !isJSON {
		item.Action, item.Protocol = form.Get("Action"), Query
	}
	if target, name, ok := cborPath(req.URL.Path); ok {
		prefix, isJSON, item.Action, item.Protocol = target, true, name, CBOR
	}
	item.Protocol = cmp.Or(sdkOf(req), item.Protocol)
	rest, _, isREST := r.routes.Find(req.Method, req.URL.EscapedPath(), req.URL.RawQuery)
	if isREST {
		item.Action, item.Protocol = rest.Action, cmp.Or(sdkOf(req), JSON)
	}
	for n := range r.models {
		m := &r.models[n]
		if isREST && m.Service == rest.Service {
			item.Service = m.Service
			return m, item
		}
		if m.Routes != nil {
			continue
		}
		of := form.Get("Version") == m.Version || form.Get("Version") == "" && form.Has("Action") && m.Service == "sqs"
		if isJSON {
			of = prefix == m.Target
		}
		if _, known := m.Actions[item.Action]; of && known {
			item.Service = m.Service
			return m, item
		}
	}
	return nil, Item{}
}

// cborPath takes the path of a request in CBOR apart.
func cborPath(path string) (target, action string, ok bool) {
	rest, ok := strings.CutPrefix(path, "/service/")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "/operation/")
}

// sdkOf is SDK for a request that the AWS SDK for Go made, else empty.
func sdkOf(req *http.Request) string {
	if strings.Contains(req.UserAgent(), "aws-sdk-go-v2") {
		return SDK
	}
	return ""
}

// cborType is the type of an error in CBOR, without its name space; empty if there
// is none. The type is a text, behind its length.
func cborType(body []byte) string {
	_, rest, found := bytes.Cut(body, []byte("\x66__type\x78"))
	if !found || len(rest) == 0 || len(rest) <= int(rest[0]) {
		return ""
	}
	_, name, _ := strings.Cut(string(rest[1:1+int(rest[0])]), "#")
	return name
}

// errorCode finds the code in an error's body, in XML or JSON.
var errorCode = regexp.MustCompile(`<Code>([^<]+)</Code>|"Code":"([^"]+)"`)

// errorName is the model's name for the error that body holds.
func (m *Model) errorName(body []byte) string {
	var typed struct {
		Type string `json:"__type"`
	}
	var code string
	if json.Unmarshal(body, &typed) == nil && typed.Type != "" {
		code = typed.Type[strings.LastIndexByte(typed.Type, '#')+1:]
	} else if found := errorCode.FindSubmatch(body); found != nil {
		code = string(found[1]) + string(found[2])
	} else {
		code = cborType(body)
	}
	for _, names := range m.Actions {
		if slices.Contains(names, code) {
			return code
		}
	}
	for name, as := range m.Codes {
		if as == code {
			return name
		}
	}
	return strings.TrimPrefix(code, "AWS.SimpleQueueService.")
}
