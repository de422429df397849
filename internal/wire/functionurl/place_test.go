package functionurl

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// What is for a function URL is told by Host, and then by the path as it was sent; nothing that only
// resembles one is.
func TestOf(t *testing.T) {
	const id = "0123456789abcdef0123456789abcdef"
	at := func(host, path string) string {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		u, err := url.ParseRequestURI(path)
		if err != nil {
			t.Fatal(err)
		}
		r.URL, r.RequestURI, r.Host = u, path, host
		p, ok := Of(r)
		if !ok {
			return ""
		}
		if p.ByHost() != (p.Region != "") || Is(r) != ok {
			t.Errorf("%s%s is %+v", host, path, p)
		}
		return strings.Join([]string{p.ID, p.Region, p.Domain, p.Path}, " ")
	}
	const own, name = "localhost:4566", id + ".lambda-url.eu-west-1.example.com"
	for _, c := range []struct{ host, path, want string }{
		{name, "/", id + " eu-west-1 " + name + " /"},
		{name + ":4566", "/_godwit/function-url/x/", id + " eu-west-1 " + name + " /_godwit/function-url/x/"},
		{strings.ToUpper(name), "/a%2fb//c", id + " eu-west-1 " + name + " /a%2fb//c"},
		{id + ".lambda-url.us-gov-west-1.localhost.", "/", id + " us-gov-west-1 " + id + ".lambda-url.us-gov-west-1.localhost. /"},
		{own, "/_godwit/function-url/" + id + "/a/../b", id + "  localhost /a/../b"},
		{own, "/_godwit/function-url/" + id + "/a%2fb|", id + "  localhost /a%2fb|"},
		{own, "http://" + own + "/_godwit/function-url/" + id + "/a?b", id + "  localhost /a"},
		{own, "/_godwit/function-url/" + id, id + "  localhost /"},
		{"[::1]:4566", "/_godwit/function-url/" + id + "/%2e%2e/clock", id + "  [::1] /%2e%2e/clock"},
		{own, "/_godwit/function-url/../clock", "..  localhost /clock"}, // there is no such URL
		{own, "/_godwit/function-url", ""},
		{own, "/_godwit/function-urls/" + id, ""},
		{own, "/_godwit/function%2durl/" + id + "/", ""},
		{own, "/_godwit%2ffunction-url/" + id + "/", ""},
		{own, "/_godwit%2ffunction-url/" + id + "/|", ""},
		{own, "//_godwit/function-url/" + id + "/", ""},
		{own, "/x/_godwit/function-url/" + id + "/", ""},
		{own, "/?/_godwit/function-url/" + id + "/", ""},
		{id[1:] + ".lambda-url.eu-west-1.example.com", "/", ""},
		{"g" + id[1:] + ".lambda-url.eu-west-1.example.com", "/", ""},
		{"a." + name, "/", ""},
		{id + ".lambda-url.eu-west-1", "/", ""},
		{id + ".lambda-url.eu-west-1.", "/", ""},
		{id + ".lambda-url..example.com", "/", ""},
		{id + ".lambda-url.example.com", "/", ""},
		{id + ".lambda.eu-west-1.example.com", "/", ""},
		{id, "/", ""},
		{"", "/", ""},
	} {
		if got := at(c.host, c.path); got != c.want {
			t.Errorf("%s%s is %q, want %q", c.host, c.path, got, c.want)
		}
	}
}
