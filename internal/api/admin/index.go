package admin

import (
	"html/template"
	"net/http"
	"slices"
	"strings"
)

// entry is a line of the index.
type entry struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Does   string `json:"does"`

	// Open says that the path needs no parameters, so that the page can link to it.
	Open bool `json:"-"`
}

// successors are the paths below /_godwit/v1/ that replace paths below /_godwit/, for all methods.
var successors = map[string]string{
	"clock": "clock", "deliveries": "deliveries", "queue": "queue", "backlog": "subscription", "events": "function", "faults": "faults",
	"deliveries/retry": "delivery/retry", "deliveries/drop": "delivery/drop",
	"subscriptions/pause": "subscription/pause", "subscriptions/resume": "subscription/resume",
}

// successorOf is the path that replaces another; empty: none does.
func successorOf(path string) string {
	if to := successors[strings.TrimPrefix(path, "/_godwit/")]; to != "" {
		return "/_godwit/v1/" + to
	}
	return ""
}

// entries are the paths below /_godwit/, in the order of docs/admin-api.md.
var entries = []entry{
	{"GET", "/_godwit/", "this list", true},
	{"GET", "/_godwit/ui/", "the console: what there is and how it stands, to look at and to mend", true},
	{"GET", "/_godwit/health", "what is wrong, if anything", true},
	{"GET", "/_godwit/ready", "whether to send requests", true},
	{"GET", "/_godwit/clock", "what time it is here, by which clock, and when the next timer of a virtual one is due", true},
	{"POST", "/_godwit/clock", "moves the virtual clock", false},
	{"GET", "/_godwit/deliveries", "a subscription's deliveries, attempt by attempt", false},
	{"GET", "/_godwit/queue", "what is in a queue, and what happened to it", false},
	{"GET", "/_godwit/backlog", "what a subscription is owed: how much, since when, and whether it is paused", false},
	{"POST", "/_godwit/deliveries/retry", "makes the next attempt of one delivery, or of all, due now", false},
	{"POST", "/_godwit/deliveries/drop", "gives up on one delivery, or on all: into the dead-letter queue", false},
	{"POST", "/_godwit/subscriptions/pause", "stops a subscription's deliveries", false},
	{"POST", "/_godwit/subscriptions/resume", "lets them go on", false},
	{"GET", "/_godwit/outbox/sms", "the text messages that godwit dev keeps in place of sending them", true},
	{"POST", "/_godwit/sms/receive", "take a text message as if a phone had sent it", false},
	{"GET", "/_godwit/outbox", "the mails that godwit dev keeps in place of sending them", true},
	{"GET", "/_godwit/outbox/push", "the push messages that godwit dev keeps in place of sending them", true},
	{"GET", "/_godwit/events", "the asynchronous invocations that wait for a function: how many, and since when", false},
	{"GET", "/_godwit/functions/code", "a function's zip, by the token of the link that GetFunction gives", false},
	{"POST", "/_godwit/keys/rotate-root", "puts what is sealed on the disk under a new root key", false},
	{"GET", "/_godwit/faults", "what is made to fail on purpose", true},
	{"POST", "/_godwit/faults", "makes a queue, a function, a delivery stream, a platform application, mails or text messages, or all of a service, fail on purpose (godwit dev only)", false},
	{"GET", "/_godwit/v1/openapi.json", "the OpenAPI document of the operator's API, whose paths begin with /_godwit/v1/", true},
	{"GET", "/metrics", "metrics in Prometheus's form", true},
}

// index is the answer of Index.
type index struct {
	Version string   `json:"version"`
	Paths   []listed `json:"paths"`
}

type listed struct {
	entry
	Successor string `json:"successor,omitempty"` // the path of the operator's API that replaces it; empty: none does
}

// Index answers with a list of these patterns of http.ServeMux, as JSON or, if the request
// accepts text/html, as a page.
func Index(version string, patterns []string) http.Handler {
	answer := index{Version: version}
	for _, e := range entries {
		if slices.Contains(patterns, e.Method+" "+e.Path) {
			answer.Paths = append(answer.Paths, listed{e, successorOf(e.Path)})
		}
	}
	for _, pattern := range slices.Sorted(slices.Values(patterns)) {
		method, path, _ := strings.Cut(pattern, " ")
		known := slices.ContainsFunc(entries, func(e entry) bool { return e.Method == method && e.Path == path })
		if !known && !strings.HasPrefix(path, "/_godwit/v1/") { // the OpenAPI document lists these
			answer.Paths = append(answer.Paths, listed{entry: entry{Method: method, Path: path}})
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "Accept")
		if !strings.Contains(r.Header.Get("Accept"), "text/html") {
			writeJSON(w, http.StatusOK, answer)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		_ = page.Execute(w, answer) // an error means that the client is gone
	})
}

var page = template.Must(template.New("index").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Godwit</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60em; margin: 3em auto; padding: 0 1em; color-scheme: light dark }
td { padding: .15em 1em .15em 0; vertical-align: top }
</style>
<h1>Godwit {{.Version}}</h1>
<table>
{{range .Paths}}<tr><td>{{.Method}}<td>{{if .Open}}<a href="{{.Path}}"><code>{{.Path}}</code></a>{{else}}<code>{{.Path}}</code>{{end}}<td>{{.Does}}{{with .Successor}}; replaced by <code>{{.}}</code>{{end}}
{{end}}</table>
<p>Parameters, bodies and answers: docs/admin-api.md.
</html>
`))
