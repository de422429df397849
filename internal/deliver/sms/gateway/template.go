// Package gateway sends text messages by a provider's HTTP API. A Template defines the
// requests and the meaning of answers: Twilio's, Vonage's, or an operator's own.
//
// Providers do not deduplicate: a request without an answer is reported as unknown, and the
// next attempt may be a duplicate for the phone.
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

// Template defines the API of a provider. It is the file of --sms-http.
type Template struct {
	// Preset is twilio or vonage, which require only Account and Secret; empty: the members
	// that follow apply.
	Preset  string `json:"preset"`
	Account string `json:"account"` // the account's SID, or the API key
	Secret  string `json:"secret"`  // the auth token, or the API secret

	URL         string            `json:"url"`
	Method      string            `json:"method"` // the default is POST
	ContentType string            `json:"contentType"`
	Headers     map[string]string `json:"headers"`
	User        string            `json:"user"` // for basic authentication; empty: none
	Password    string            `json:"password"`
	// Body is a Go template with the fields To, From, Text, ID and Type, and the functions
	// json and query, which quote a text for these formats. So is URL.
	Body string `json:"body"`
	// Status is the path of the code in a JSON answer: members and indexes, separated by
	// dots, with * for all elements of an array. Empty: only the HTTP status counts.
	Status string `json:"status"`
	// The codes of messages that were accepted, permanently refused, or refused because of an
	// opt-out. With other codes the message is retried.
	Taken     []string `json:"taken"`
	Permanent []string `json:"permanent"`
	OptedOut  []string `json:"optedOut"`
	// ID is the path of the provider's ids of messages in a JSON answer, which its receipts
	// have. Empty: there are none.
	ID string `json:"id"`
	// Callback configures the provider's reports; nil: there are none.
	Callback *Callback `json:"callback"`
}

// presets set the templates of known providers. Sources: Twilio's Programmable Messaging API
// and its error dictionary; Vonage's SMS API and its error codes.
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

// ReadTemplate parses and validates a template file. Errors do not disclose its secrets.
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

// message has the fields for templates.
type message struct {
	To, Digits, From, Text, ID, Type string
	Callback                         string // the callback's URL; empty: none
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

// compile parses the templates of the URL and the body, and executes them once.
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

// reply is the kind of an answer.
type reply int

const (
	taken reply = iota
	later
	forGood
	optedOut
	silent // there is no code
)

// read parses an answer's body. Of several codes the worst counts. code is a code that the
// template has, or short.
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

// codes are the texts and numbers at a path.
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
