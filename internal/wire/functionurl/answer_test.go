package functionurl

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// No function sets a cookie of the web console's, whatever a browser makes of its text, nor a header
// that acts on all of the server's origin.
func TestCookiesOfServer(t *testing.T) {
	path, host := &Place{}, &Place{Region: "us-east-1"}
	for _, c := range []struct {
		place  *Place
		cookie string
		passes bool
	}{
		{path, "a=1", true},
		{path, "a=godwit-session=1", true},
		{path, "__Host-a=1", true},
		{path, "godwit-session=1", false},
		{path, "godwit-sign-in=1", false},
		{path, " godwit-session =1", false},
		{path, "\x00godwit-session=1", false}, // which is written as a blank
		{path, "\x7f\r\ngodwit-session=1", false},
		{path, "=godwit-session=1", false}, // without a name, a browser sends the value alone
		{path, " = godwit-session=1", false},
		{path, "__Host-godwit-session=1; Secure; Path=/", false},
		{path, "__host-godwit-session=1; Secure; Path=/", false},
		{path, "__Secure-godwit-x=1", false},
		{path, "=__Host-godwit-session=1", false},
		{host, "godwit-session=1", true},
		{host, "godwit-session=1; Path=/_godwit/", true},
		{host, "a=1; Domain=example.com", true},
		{host, "godwit-session=1; Path=/_godwit/; Domain=example.com", false}, // browsers would send it to the console
		{host, "godwit-session=1;domain =.example.com", false},
		{host, "=godwit-session=1; Domain=example.com", false},
	} {
		for _, way := range []string{"cookies", "headers"} {
			a := &answer{status: 200, header: map[string][]string{}}
			if way == "cookies" {
				a.cookies = []string{c.cookie}
			} else {
				a.header["Set-Cookie"] = []string{line(c.cookie)}
			}
			out := httptest.NewRecorder()
			a.write(out, c.place)
			if got := out.Header()["Set-Cookie"]; c.passes != slices.Equal(got, []string{c.cookie}) || !c.passes && len(got) > 0 {
				t.Errorf("%q in %s, by host %t: %q", c.cookie, way, c.place.ByHost(), got)
			}
		}
	}
	for _, name := range []string{"Clear-Site-Data", "Strict-Transport-Security", "Nel", "Report-To", "Accept-Ch"} {
		a, out := &answer{status: 200, header: map[string][]string{name: {"x"}}}, httptest.NewRecorder()
		if a.write(out, path); out.Header().Get(name) != "" {
			t.Errorf("%s is there", name)
		}
	}
}

// Headers and cookies that are too large for clients are no answer.
func TestLargeHead(t *testing.T) {
	for returned, want := range map[string]bool{
		`{"statusCode":200,"headers":{"x-a":"%"}}`: false,
		`{"statusCode":200,"cookies":["a=%"]}`:     false,
		`{"statusCode":200,"body":"%"}`:            true,
	} {
		if _, ok := read([]byte(strings.Replace(returned, "%", strings.Repeat("a", maxHead), 1))); ok != want {
			t.Errorf("%s: %t", returned, ok)
		}
	}
}

// No function gets the cookies of the web console.
func TestCookiesOfConsole(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	r.Header["Cookie"] = []string{"__Host-godwit-session=secret; a=1", "godwit-session=secret;godwit-sign-in=secret; __Host-b=2"}
	a := &asked{}
	if got := a.cookies(r.Header); !slices.Equal(got, []string{"a=1", "__Host-b=2"}) {
		t.Errorf("got %q", got)
	}
	a.place.Region = "us-east-1"
	if got := a.cookies(r.Header); len(got) != 5 {
		t.Errorf("at an origin of its own: %q", got)
	}
}
