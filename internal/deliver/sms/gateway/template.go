// Package gateway hands text messages to a provider's HTTP API. What a request looks like,
// and what an answer says, is a Template: Twilio's, Vonage's, or an operator's own.
//
// Providers know no message twice: a request that was sent and not answered is reported as
// unknown, and the next attempt may have the phone get it again.
package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"text/template"
)

// Template is how a provider is spoken to. It is the file of --sms-http.
type Template struct {
	// Preset is twilio or vonage, which need Account and Secret and nothing else; empty:
	// all that follows counts.
	Preset  string `json:"preset"`
	Account string `json:"account"` // the account's SID, or the API key
	Secret  string `json:"secret"`  // the auth token, or the API secret

	URL         string            `json:"url"`
	Method      string            `json:"method"` // POST unless given
	ContentType string            `json:"contentType"`
	Headers     map[string]string `json:"headers"`
	User        string            `json:"user"` // of basic authentication; empty: there is none
	Password    string            `json:"password"`
	// Body is a template of Go, whose fields are To, From, Text, ID and Type, and whose
	// functions are json and query, which quote a text for their format. So is URL.
	Body string `json:"body"`
	// Status leads to the code in an answer of JSON: members and places, with dots between,
	// * for all of an array. Empty: the HTTP status alone counts.
	Status string `json:"status"`
	// The codes by which a message has been taken, is refused for good, and by which its
	// phone wants none. With others it is tried again.
	Taken     []string `json:"taken"`
	Permanent []string `json:"permanent"`
	OptedOut  []string `json:"optedOut"`
	// ID leads to the provider's ids of messages, in an answer of JSON, by which its receipts
	// name them. Empty: it gives none.
	ID string `json:"id"`
	// Callback is where the provider reports what became of messages; nil: nowhere.
	Callback *Callback `json:"callback"`
}

// presets are what is known of providers. Sources: Twilio's Programmable Messaging
// API and its error dictionary; Vonage's SMS API and its error codes.
var presets = map[string]func(t *Template){
	"twilio": func(t *Template) {
		t.URL = cmp.Or(t.URL, "https://api.twilio.com/2010-04-01/Accounts/"+url.PathEscape(t.Account)+"/Messages.json")
		t.User, t.Password = t.Account, t.Secret
		t.ContentType = form
		t.Body = "To={{query .To}}&From={{query .From}}&Body={{query .Text}}"
		t.Status, t.ID = "code", "sid"
		if t.Callback != nil {
			t.Body += "&StatusCallback={{query .Callback}}"
		}
		t.Permanent, t.OptedOut = []string{"21211", "21612", "21614"}, []string{"21610"}
	},
	"vonage": func(t *Template) {
		t.URL = cmp.Or(t.URL, "https://rest.nexmo.com/sms/json")
		t.ContentType = form
		t.Body = "api_key=" + url.QueryEscape(t.Account) + "&api_secret=" + url.QueryEscape(t.Secret) +
			"&to={{query .Digits}}&from={{query .From}}&text={{query .Text}}&type={{if .Unicode}}unicode{{else}}text{{end}}"
		t.Status, t.Taken, t.Permanent = "messages.*.status", []string{"0"}, []string{"2", "3", "6", "7"}
		t.ID = "messages.*.message-id"
		if t.Callback != nil {
			t.Body += "&status-report-req=1&callback={{query .Callback}}"
		}
	},
}

const form = "application/x-www-form-urlencoded"

// ReadTemplate reads the file of a template. Errors say what is wrong with it, and none
// of what is secret in it.
func ReadTemplate(text []byte) (*Template, error) {
	t := &Template{}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(t); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return nil, fmt.Errorf("not JSON, at byte %d", syntax.Offset)
		}
		if strings.HasPrefix(err.Error(), "json: unknown field") {
			return nil, errors.New(strings.TrimPrefix(err.Error(), "json: "))
		}
		return nil, errors.New("not an object of the members that a provider has")
	}
	if t.Preset != "" {
		fill, ok := presets[t.Preset]
		if !ok {
			return nil, errors.New("preset: want twilio or vonage")
		}
		if t.Account == "" || t.Secret == "" {
			return nil, errors.New("a preset needs account and secret")
		}
		fill(t)
	}
	if err := t.checkCallback(); err != nil {
		return nil, err
	}
	t.Method = cmp.Or(t.Method, http.MethodPost)
	if _, _, err := t.compile(); err != nil {
		return nil, err
	}
	return t, nil
}

// message is what templates see.
type message struct {
	To, Digits, From, Text, ID, Type string
	Callback                         string // where the provider is to call; empty: nowhere
	Unicode                          bool
}

var functions = template.FuncMap{
	"query": url.QueryEscape,
	"json": func(s string) (string, error) {
		b, err := json.Marshal(s)
		return string(b), err
	},
}

var errTemplate = errors.New("url or body: not a template of what a message has")

// compile reads the templates of the URL and the body, and tries them.
func (t *Template) compile() (address, body *template.Template, err error) {
	if address, err = template.New("url").Funcs(functions).Option("missingkey=error").Parse(t.URL); err != nil {
		return nil, nil, errTemplate
	}
	if body, err = template.New("body").Funcs(functions).Option("missingkey=error").Parse(t.Body); err != nil {
		return nil, nil, errTemplate
	}
	var b bytes.Buffer
	if address.Execute(&b, &message{To: "+1", Digits: "1"}) != nil {
		return nil, nil, errTemplate
	}
	u, err := url.Parse(b.String())
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, nil, errors.New("url: want http://… or https://…")
	}
	if body.Execute(&b, &message{}) != nil {
		return nil, nil, errTemplate
	}
	return address, body, nil
}

// reply is what an answer says.
type reply int

const (
	taken reply = iota
	later
	forGood
	optedOut
	silent // it has no code
)

// read takes an answer's body apart. The worst of several codes counts. code is one of
// those that the template knows, or short.
func (t *Template) read(body []byte) (v reply, code string, ids []string) {
	v = silent
	var document any
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if t.Status == "" && t.ID == "" || dec.Decode(&document) != nil {
		return v, "", nil
	}
	if t.ID != "" {
		ids = codes(document, strings.Split(t.ID, "."))
	}
	if t.Status == "" {
		return v, "", ids
	}
	for _, code1 := range codes(document, strings.Split(t.Status, ".")) {
		this := later
		switch {
		case slices.Contains(t.Taken, code1):
			this = taken
		case slices.Contains(t.OptedOut, code1):
			this = optedOut
		case slices.Contains(t.Permanent, code1):
			this = forGood
		}
		if v == silent || this > v {
			v, code = this, code1
		}
	}
	return v, code, ids
}

// codes are the texts and numbers that a path leads to.
func codes(v any, path []string) (all []string) {
	if len(path) == 0 {
		switch v := v.(type) {
		case string:
			return []string{v}
		case json.Number:
			return []string{v.String()}
		}
		return nil
	}
	switch v := v.(type) {
	case map[string]any:
		if inner, ok := v[path[0]]; ok {
			return codes(inner, path[1:])
		}
	case []any:
		for i, inner := range v {
			if path[0] == "*" || path[0] == fmt.Sprint(i) {
				all = append(all, codes(inner, path[1:])...)
			}
		}
	}
	return all
}
