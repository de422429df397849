package sigv4

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"godwit.dev/godwit/internal/caller"
)

// part is something of a request that is signed, as a text that may be changed.
type part struct {
	name string
	get  func(r *Request, body *string) *string
}

func headerPart(name string) part {
	return part{"header " + name, func(r *Request, _ *string) *string { return &r.Header[name][0] }}
}

// parts are all of a request's that are signed, and the signature.
func parts(r Request) []part {
	all := []part{
		{"method", func(r *Request, _ *string) *string { return &r.Method }},
		{"path", func(r *Request, _ *string) *string { return &r.Path }},
		{"query", func(r *Request, _ *string) *string { return &r.Query }},
		{"host", func(r *Request, _ *string) *string { return &r.Host }},
		{"body", func(_ *Request, body *string) *string { return body }},
	}
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		all = append(all, headerPart(name))
	}
	return all
}

// copyOf is a request that shares nothing with r.
func copyOf(r Request) Request {
	r.Header = r.Header.Clone()
	return r
}

// A path of slashes alone is "/" even where paths count as they were sent; no other is.
func TestSlashesAloneAreTheRoot(t *testing.T) {
	w := newWorld()
	for signed, sent := range map[string]map[string]bool{
		"/":  {"/": true, "//": true, "///": true, "/./": false, "//.": false, "//a": false, "/a/..": false},
		"/a": {"/a": true, "//a": false, "/a//": false},
	} {
		for path, holds := range sent {
			r := Request{Method: "POST", Path: signed, Host: "sts.example.com", Service: "sts", Exact: true, Header: http.Header{}}
			(&signer{"ASIABOB", "bob's secret", "token", "eu-west-1", "sts", noon}).header(&r, "")
			r.Payload, r.Path = sha256.Sum256(nil), path
			if _, err := w.Verify(&r); (err == nil) != holds {
				t.Errorf("signed as %s, sent as %s: %v", signed, path, err)
			}
		}
	}
}

// Whatever byte of what is signed is changed, left out or added, the request is refused,
// unless it says the same by the published rules: they do not tell spaces around a value,
// or a second one within it, from none, nor a byte of a query from its encoded form.
func TestEveryChangeIsRefused(t *testing.T) {
	w := newWorld()
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.StringN(0, 20, 60).Draw(t, "body")
		r := Request{
			Method: rapid.SampledFrom([]string{"GET", "POST", "PUT", "DELETE"}).Draw(t, "method"),
			Path:   "/" + rapid.StringMatching(`[a-zA-Z0-9_.~-]{0,12}`).Draw(t, "path"),
			Host:   "sqs.eu-west-1.example.com:4566", Service: "sqs", Exact: true,
			Header: http.Header{
				"X-Amz-Target": {"AmazonSQS." + rapid.StringMatching(`[A-Za-z]{1,9}`).Draw(t, "target")},
				"Content-Type": {"application/x-amz-json-1.0"},
			},
		}
		by := signer{"ASIABOB", "bob's secret", "token", "eu-west-1", "sqs", noon}
		if rapid.Bool().Draw(t, "presigned") {
			r.Header = http.Header{}
			by.query(&r, "900", body)
		} else {
			r.Query = rapid.SampledFrom([]string{"", "a=b", "a=b&c=d%20e"}).Draw(t, "query")
			by.header(&r, body)
		}
		original := copyOf(r)
		if _, err := w.Verify(&r); err != nil {
			t.Fatalf("as it was signed: %v", err)
		}
		p := rapid.SampledFrom(parts(r)).Draw(t, "part")
		changed := copyOf(original)
		text, changedBody := p.get(&changed, &body), body
		if p.name == "body" {
			text = &changedBody
		}
		at := rapid.IntRange(0, len(*text)).Draw(t, "at")
		before := *text
		switch rapid.IntRange(0, 2).Draw(t, "how") {
		case 0:
			*text = before[:at] + string(rapid.ByteRange(0x21, 0xff).Draw(t, "byte")) + before[at:]
		case 1:
			if at == len(before) {
				return
			}
			*text = before[:at] + before[at+1:]
		default:
			if at == len(before) {
				return
			}
			*text = before[:at] + string([]byte{rapid.ByteRange(0x21, 0x7e).Draw(t, "byte")}) + before[at+1:]
		}
		changed.Payload = sha256.Sum256([]byte(changedBody))
		if same(original, changed) {
			return
		}
		if _, err := w.Verify(&changed); err == nil {
			t.Fatalf("%s: %q may be %q", p.name, before, *text)
		}
	})
}

// same says that two requests say the same, by rules of its own.
func same(a, b Request) bool {
	if len(a.Header["Authorization"]) > 0 && a.Header["Authorization"][0] != b.Header["Authorization"][0] {
		// Spaces and empty parts between the parts of the header, and parts with names
		// that nobody knows, are nothing that is signed.
		if fields(a.Header["Authorization"][0]) != fields(b.Header["Authorization"][0]) {
			return false
		}
	}
	if a.Method != b.Method || a.Path != cmp.Or(b.Path, "/") && (a.Path != "/" || strings.Trim(b.Path, "/") != "") || a.Host != b.Host || a.Payload != b.Payload || meaning(a.Query) != meaning(b.Query) {
		return false
	}
	for name := range a.Header {
		if name != "Authorization" && strings.Join(strings.Fields(a.Header[name][0]), " ") != strings.Join(strings.Fields(b.Header[name][0]), " ") {
			return false
		}
	}
	return true
}

func fields(authorization string) string {
	algorithm, rest, _ := strings.Cut(strings.TrimLeft(authorization, " "), " ")
	known := map[string]string{}
	for pair := range strings.SplitSeq(rest, ",") {
		if name, value, ok := strings.Cut(strings.TrimSpace(pair), "="); ok {
			switch name {
			case "Credential", "SignedHeaders", "Signature":
				known[name] += value
			}
		}
	}
	return algorithm + fmt.Sprint(known)
}

func meaning(query string) string {
	var pairs []string
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if name != "" || value != "" || strings.Contains(pair, "=") {
			pairs = append(pairs, unescape(name)+"\x00"+unescape(value))
		}
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "\x01")
}

// Each byte of a scope counts, and of a date.
func TestEveryByteOfTheCredential(t *testing.T) {
	w := newWorld()
	r := newRequest()
	alice.header(&r, "{}")
	for _, name := range []string{"Authorization", "X-Amz-Date"} {
		text := r.Header.Get(name)
		for i := range len(text) {
			for _, c := range []byte{'0', '1', 'x', 'Z', '/', ';', '_'} {
				changed := copyOf(r)
				other := []byte(text)
				other[i] = c
				changed.Header[name] = []string{string(other)}
				if _, err := w.Verify(&changed); err == nil && !same(r, changed) {
					t.Errorf("%s: %q may be %q", name, text, other)
				}
			}
		}
	}
}

// A body is what the header says that it is, or nothing happens.
func TestPayload(t *testing.T) {
	const sum = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a" // of {}
	for name, tc := range map[string]struct {
		said     []string
		unsigned bool
		ok       bool
	}{
		"nothing":                 {nil, false, true},
		"the digest":              {[]string{sum}, false, true},
		"in capitals":             {[]string{strings.ToUpper(sum)}, false, false},
		"another":                 {[]string{strings.Replace(sum, "4", "5", 1)}, false, false},
		"twice":                   {[]string{sum, sum}, false, false},
		"unsigned":                {[]string{"UNSIGNED-PAYLOAD"}, false, false},
		"unsigned, and it may be": {[]string{"UNSIGNED-PAYLOAD"}, true, true},
		"chunks":                  {[]string{"STREAMING-AWS4-HMAC-SHA256-PAYLOAD"}, true, false},
		"chunks with a trailer":   {[]string{"STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"}, true, false},
		"unsigned chunks":         {[]string{"STREAMING-UNSIGNED-PAYLOAD-TRAILER"}, true, false},
		"empty":                   {[]string{""}, false, false},
	} {
		w, r := newWorld(), newRequest()
		if tc.said != nil {
			r.Header["X-Amz-Content-Sha256"] = tc.said
		}
		digest := sum
		if tc.unsigned {
			digest = tc.said[0]
		}
		alice.headerOver(&r, "{}", digest)
		r.Unsigned = tc.unsigned
		if who, err := w.Verify(&r); (err == nil) != tc.ok {
			t.Errorf("%s: %v, %v", name, who, err)
		}
	}
}

// Only what has verified a request is kept, and not without end.
func TestSigningKeysAreBounded(t *testing.T) {
	w := newWorld()
	for i := range 100 {
		r, by := newRequest(), alice
		switch by.region = fmt.Sprintf("eu-west-%d", i); i % 2 {
		case 0:
			by.secret = "another"
		case 1:
			by.key = fmt.Sprint("AKIANOBODY", i)
		}
		by.header(&r, "{}")
		if _, err := w.Verify(&r); err == nil {
			t.Fatal("verified")
		}
	}
	if n := len(w.signing.keys); n != 0 {
		t.Errorf("%d keys are kept of requests that were refused", n)
	}
	for i := range maxSigningKeys + 100 {
		r, by := newRequest(), alice
		by.region = fmt.Sprintf("eu-west-%d", i)
		by.header(&r, "{}")
		if _, err := w.Verify(&r); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(w.signing.keys); n != maxSigningKeys {
		t.Errorf("%d keys are kept", n)
	}
	// Yesterday's go first.
	w.system = noon.Add(24 * time.Hour)
	for i := range maxSigningKeys + 100 {
		r, by := newRequest(), alice
		by.region, by.at = fmt.Sprintf("eu-west-%d", i), w.system
		by.header(&r, "{}")
		if _, err := w.Verify(&r); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(w.signing.keys); n != maxSigningKeys {
		t.Errorf("%d keys are kept", n)
	}
}

// A key that is deleted, gets another secret or another owner is that from the next
// request on, however often it was used before.
func TestKeysAreAskedFor(t *testing.T) {
	w := newWorld()
	r := newRequest()
	alice.header(&r, "{}")
	for range 3 {
		if got := w.verify(t, copyOf(r)); got != "alice" {
			t.Fatal(got)
		}
	}
	w.keys["AKIAALICE"] = Credential{Secret: "alice's secret", Caller: &caller.Caller{Name: "carol"}}
	if got := w.verify(t, copyOf(r)); got != "carol" {
		t.Error(got)
	}
	for _, revision := range []uint64{0, 1} {
		w.keys["AKIAALICE"] = Credential{Secret: "a new secret", Revision: revision, Caller: &caller.Caller{Name: "alice"}}
		if got := w.verify(t, copyOf(r)); got != mismatched {
			t.Error(got)
		}
		renewed, by := newRequest(), alice
		by.secret = "a new secret"
		by.header(&renewed, "{}")
		if got := w.verify(t, renewed); got != "alice" {
			t.Error(got)
		}
	}
	delete(w.keys, "AKIAALICE")
	if got := w.verify(t, copyOf(r)); got == "alice" {
		t.Error("a deleted key goes on")
	}
}

// Secrets are not printed.
func TestSecretsAreHidden(t *testing.T) {
	c := Credential{Secret: "sesame", Caller: &caller.Caller{ARN: "arn"}}
	if text := fmt.Sprintf("%v %+v %#v %s", c, c, c, c) + c.LogValue().String() + fmt.Sprint([]Credential{c}, struct{ C Credential }{c}); strings.Contains(text, "sesame") {
		t.Error(text)
	}
}

// Whatever the head says, it is refused or verified, and nothing is verified that was
// not signed.
func FuzzVerify(f *testing.F) {
	w := newWorld()
	r := newRequest()
	alice.header(&r, "{}")
	f.Add("POST", "/", "", r.Header.Get("Authorization"), "20261122T120000Z", "", "a")
	presigned := newRequest()
	alice.query(&presigned, "60", "")
	f.Add("GET", "/a/../b", presigned.Query, "", "", "", "")
	f.Add("GET", "//", "X-Amz-Signature=%zz&X-Amz-Credential=a%2Fb&&=&+", "AWS4-HMAC-SHA256 Credential=,,=,", "Sun, 22 Nov 2026 12:00:00 GMT", "token", "x  y")
	f.Fuzz(func(t *testing.T, method, path, query, authorization, date, token, value string) {
		r := Request{Method: method, Path: path, Query: query, Host: "h", Header: http.Header{"X-Amz-Target": {value}}}
		for name, v := range map[string]string{"Authorization": authorization, "X-Amz-Date": date, "X-Amz-Security-Token": token} {
			if v != "" {
				r.Header[name] = []string{v}
			}
		}
		// Its body is one that nobody has signed.
		r.Payload = sha256.Sum256([]byte("not signed"))
		if who, err := w.Verify(&r); err == nil {
			t.Errorf("verified as %s", who.Name)
		}
	})
}

// parseBasic takes what time.Parse takes.
func TestParseBasic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.StringMatching(`[0-9]{4}(0[0-9]|1[0-3])([0-3][0-9])T([0-2][0-9])([0-6][0-9])([0-6][0-9])Z`),
			rapid.StringMatching(`[0-9TZ.+-]{15,17}`),
		).Draw(t, "text")
		got, ok := parseBasic(text)
		want, err := time.Parse(basicForm, text)
		if ok != (err == nil && len(text) == len(basicForm)) || ok && !got.Equal(want) {
			t.Fatalf("%q: %v, %t, want %v, %v", text, got, ok, want, err)
		}
	})
}
