package sigv4

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
)

// signer signs requests as AWS publishes it, apart from what verifies them, and only in
// the forms that need no encoding.
type signer struct {
	key, secret, token, region, service string
	at                                  time.Time
}

func hmacOf(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func (s signer) scope() string {
	return s.at.Format("20060102") + "/" + s.region + "/" + s.service + "/aws4_request"
}

func (s signer) signature(canonical string) string {
	sum := sha256.Sum256([]byte(canonical))
	text := "AWS4-HMAC-SHA256\n" + s.at.Format(basicForm) + "\n" + s.scope() + "\n" + hex.EncodeToString(sum[:])
	key := []byte("AWS4" + s.secret)
	for part := range strings.SplitSeq(s.scope(), "/") {
		key = hmacOf(key, part)
	}
	return hex.EncodeToString(hmacOf(key, text))
}

// header signs a request in its header, over Host and all that is in it, with the time in
// X-Amz-Date unless it has a Date.
func (s signer) header(r *Request, body string) {
	sum := sha256.Sum256([]byte(body))
	s.headerOver(r, body, hex.EncodeToString(sum[:]))
}

// headerOver is header with something else in the place of the body's digest.
func (s signer) headerOver(r *Request, body, digest string) {
	r.Payload = sha256.Sum256([]byte(body))
	if r.Header.Get("Date") == "" {
		r.Header.Set("X-Amz-Date", s.at.Format(basicForm))
	}
	if s.token != "" {
		r.Header.Set("X-Amz-Security-Token", s.token)
	}
	values := map[string]string{"host": r.Host}
	for name, v := range r.Header {
		values[strings.ToLower(name)] = strings.Join(v, ",")
	}
	var names []string
	for name := range values {
		names = append(names, name)
	}
	sort.Strings(names)
	var lines strings.Builder
	for _, name := range names {
		fmt.Fprintf(&lines, "%s:%s\n", name, values[name])
	}
	list := strings.Join(names, ";")
	canonical := strings.Join([]string{r.Method, r.Path, r.Query, lines.String(), list, digest}, "\n")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+s.key+"/"+s.scope()+", SignedHeaders="+list+", Signature="+s.signature(canonical))
}

// query presigns a request over Host alone. Its own query is sorted before X-Amz-.
func (s signer) query(r *Request, expires, body string) {
	r.Payload = sha256.Sum256([]byte(body))
	parameters := []string{
		"X-Amz-Algorithm=AWS4-HMAC-SHA256", "X-Amz-Credential=" + strings.ReplaceAll(s.key+"/"+s.scope(), "/", "%2F"),
		"X-Amz-Date=" + s.at.Format(basicForm),
	}
	if expires != "" {
		parameters = append(parameters, "X-Amz-Expires="+expires)
	}
	if s.token != "" {
		parameters = append(parameters, "X-Amz-Security-Token="+s.token)
	}
	r.Query = "Action=ListQueues&" + strings.Join(append(parameters, "X-Amz-SignedHeaders=host"), "&")
	canonical := strings.Join([]string{r.Method, r.Path, r.Query, "host:" + r.Host + "\n", "host", hex.EncodeToString(r.Payload[:])}, "\n")
	r.Query += "&X-Amz-Signature=" + s.signature(canonical)
}

var (
	noon  = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	alice = signer{"AKIAALICE", "alice's secret", "", "eu-west-1", "sqs", noon}
)

// world is a verifier with some keys, and its clocks.
type world struct {
	*Verifier
	system, now time.Time
	keys        map[string]Credential
	tokens      map[string]string
}

func newWorld() *world {
	w := &world{
		system: noon, now: noon,
		keys: map[string]Credential{
			"AKIAALICE": {Secret: "alice's secret", Caller: &caller.Caller{Name: "alice"}},
			"ASIABOB":   {Secret: "bob's secret", Caller: &caller.Caller{Name: "bob"}, Expires: noon.Add(time.Hour)},
		},
		tokens: map[string]string{"ASIABOB": "token"},
	}
	w.Verifier = New(Options{
		System: func() time.Time { return w.system },
		Now:    func() time.Time { return w.now },
		Keys: func(key, token string) (Credential, error) {
			c, ok := w.keys[key]
			switch {
			case !ok:
				return Credential{}, ErrUnknownKey
			case token != w.tokens[key]:
				return c, ErrToken
			}
			return c, nil
		},
	})
	return w
}

func newRequest() Request {
	return Request{Method: "POST", Path: "/", Host: "sqs.eu-west-1.amazonaws.com", Header: http.Header{"X-Amz-Target": {"AmazonSQS.ListQueues"}}, Service: "sqs"}
}

// verify gives who was verified, or the kind and text of the refusal.
func (w *world) verify(t *testing.T, r Request) string {
	t.Helper()
	who, err := w.Verify(&r)
	if refusal, ok := errors.AsType[*fault.Error](err); ok {
		return fmt.Sprintf("%d %s", refusal.Kind, refusal.Message)
	}
	if err != nil {
		return err.Error()
	}
	return who.Name
}

func sortedUnique(names []string) []string {
	sort.Strings(names)
	return slices.Compact(names)
}

func said(kind fault.Kind, text string) string { return fmt.Sprintf("%d %s", kind, text) }

// A Date is enough of a time, in the basic form or in HTTP's.
func TestDate(t *testing.T) {
	for _, form := range []string{basicForm, http.TimeFormat, time.RFC850, time.ANSIC} {
		w, r := newWorld(), newRequest()
		r.Header.Set("Date", noon.Format(form))
		alice.header(&r, "")
		if got := w.verify(t, r); got != "alice" {
			t.Errorf("%s: %s", noon.Format(form), got)
		}
		w.system = noon.Add(time.Hour)
		if got := w.verify(t, r); got == "alice" {
			t.Errorf("%s: accepted an hour later", noon.Format(form))
		}
	}
}

// The token of a presigned request may stand in its header, beside the query.
func TestTokenBesideQuery(t *testing.T) {
	w, r := newWorld(), newRequest()
	signer{"ASIABOB", "bob's secret", "", "eu-west-1", "sqs", noon}.query(&r, "60", "")
	for token, want := range map[string]bool{"": false, "another": false, "token": true} {
		r.Header.Set("X-Amz-Security-Token", token)
		if got := w.verify(t, r); (got == "bob") != want {
			t.Errorf("%q: %s", token, got)
		}
	}
}

// The checks, in the order in which they are made: each case fails at one, and at later
// ones as well.
func TestOrderOfChecks(t *testing.T) {
	const unknown = "The security token included in the request is invalid."
	bob := signer{"ASIABOB", "bob's secret", "token", "eu-west-1", "sqs", noon}
	with := func(s signer, change func(s *signer)) signer {
		change(&s)
		return s
	}
	set := func(name, value string) func(w *world, r *Request) {
		return func(_ *world, r *Request) { r.Header.Set(name, value) }
	}
	edit := func(old, with string) func(w *world, r *Request) {
		return func(_ *world, r *Request) {
			if header := r.Header.Get("Authorization"); header != "" {
				r.Header.Set("Authorization", strings.Replace(header, old, with, 1))
			}
			r.Query = strings.Replace(r.Query, strings.ReplaceAll(strings.ReplaceAll(old, "/", "%2F"), ";", "%3B"), strings.ReplaceAll(with, "/", "%2F"), 1)
		}
	}
	nobody := with(alice, func(s *signer) { s.key, s.secret = "AKIANOBODY", "another" })
	for name, tc := range map[string]struct {
		by            signer
		change        func(w *world, r *Request)
		header, query string // what is said in each form; empty: it is not tried
		expires       string
	}{
		"a key":     {by: alice, header: "alice", query: "alice"},
		"a session": {by: bob, header: "bob", query: "bob"},

		"both": {
			by: nobody, change: func(_ *world, r *Request) {
				nobody.query(r, "60", "")
				r.Header.Set("Authorization", "Basic Zm9v")
			},
			header: said(fault.SignatureDoesNotMatch, "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header."),
		},
		"nothing":        {by: alice, change: func(_ *world, r *Request) { r.Header.Del("Authorization"); r.Query = "" }, header: missing, query: missing},
		"another scheme": {by: alice, change: set("Authorization", "Basic Zm9v"), header: missing},
		"two headers": {
			by: nobody, change: func(_ *world, r *Request) { r.Header.Add("Authorization", r.Header.Get("Authorization")) },
			header: said(fault.IncompleteSignature, "The request has more than one Authorization header."),
		},
		"incomplete": {
			by: nobody, change: func(_ *world, r *Request) {
				r.Header.Set("Authorization", "AWS4-X")
				r.Header.Del("X-Amz-Date")
			},
			header: said(fault.IncompleteSignature, "Authorization header requires 'Credential' parameter. Authorization header requires 'Signature' parameter. "+
				"Authorization header requires 'SignedHeaders' parameter. Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. "+
				"(Hashed with SHA-256 and encoded with Base64) Authorization=stDJ5LzKjj3bBOLg8vQ9eVG2tWagrg6XrWkxF70MkSQ="),
		},
		"incomplete, presigned": {
			by: nobody, change: func(_ *world, r *Request) { r.Query = "X-Amz-Algorithm=AWS4-X&X-Amz-Date=x" },
			query: said(fault.IncompleteSignature, "AWS query-string parameters must include 'X-Amz-Credential'. AWS query-string parameters must include 'X-Amz-Signature'. "+
				"AWS query-string parameters must include 'X-Amz-SignedHeaders'. Re-examine the query-string parameters."),
		},
		"no pair": {
			by: nobody, change: set("Authorization", "AWS4-HMAC-SHA256 Signature=b,    Credential,    SignedHeaders"),
			header: said(fault.IncompleteSignature, "'Credential' not a valid key=value pair (missing equal-sign) in Authorization header "+
				"(Hashed with SHA-256 and encoded with Base64) Authorization=Iiqf/GC4N8CR/GVFK5AUTLFNdbqNkomRaAsXiLMhUuE="),
		},
		"a date": {
			by: nobody, change: set("X-Amz-Date", "201"),
			header: said(fault.IncompleteSignature, "Date must be in ISO-8601 'basic format'. Got '201'. See http://en.wikipedia.org/wiki/ISO_8601"),
		},
		"15 minutes old": {by: with(alice, func(s *signer) { s.at = noon.Add(-skew) }), header: "alice"},
		"older": {
			by: with(nobody, func(s *signer) { s.at = noon.Add(-skew - time.Second) }), expires: "901", change: edit("host", "x"),
			header: said(fault.SignatureDoesNotMatch, "Signature expired: 20261122T114459Z is now earlier than 20261122T114500Z (20261122T120000Z - 15 min.)"),
			query:  said(fault.SignatureDoesNotMatch, errHost.Message),
		},
		"a day old": {
			by:     with(nobody, func(s *signer) { s.at = noon.Add(-24 * time.Hour) }),
			header: said(fault.SignatureDoesNotMatch, "Signature expired: 20261121T120000Z is now earlier than 20261122T114500Z (20261122T120000Z - 15 min.)"),
			query:  said(fault.SignatureDoesNotMatch, "Signature expired: 20261121T120000Z is now earlier than 20261122T115900Z (20261122T120000Z - 1 min.)"),
		},
		"a day old, and good for it": {by: with(alice, func(s *signer) { s.at = noon.Add(-24 * time.Hour) }), expires: "86400", query: "alice"},
		"a day old, and not good for it": {
			by: with(alice, func(s *signer) { s.at = noon.Add(-24 * time.Hour) }), expires: "86399",
			query: said(fault.SignatureDoesNotMatch, "Signature expired: 20261121T120000Z is now earlier than 20261121T120001Z (20261122T120000Z - 86399 sec.)"),
		},
		"as old as can be": {by: with(alice, func(s *signer) { s.at = noon.Add(-maxExpires) }), expires: "604800", query: "alice"},
		"good for too long": {
			by: nobody, expires: "604801",
			query: said(fault.IncompleteSignature, "X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires must be less than 604800 seconds"),
		},
		"good for longer than 64 bits hold": {
			by: nobody, expires: "99999999999999999999",
			query: said(fault.IncompleteSignature, "X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires must be less than 604800 seconds"),
		},
		"good for no number":          {by: nobody, expires: "1h", query: said(fault.IncompleteSignature, "X-Amz-Expires should be a number")},
		"good for less than no time":  {by: nobody, expires: "-1", query: said(fault.IncompleteSignature, "X-Amz-Expires must be non-negative")},
		"good for far less than that": {by: nobody, expires: "-99999999999999999999", query: said(fault.IncompleteSignature, "X-Amz-Expires must be non-negative")},
		"good for a second":           {by: alice, expires: "1", query: "alice"},
		"good for no time":            {by: alice, expires: "0", query: said(fault.SignatureDoesNotMatch, "Request has expired")},
		"good for no time, and ahead": {
			by: with(alice, func(s *signer) { s.at = noon.Add(time.Minute) }), expires: "0",
			query: said(fault.SignatureDoesNotMatch, "Request has expired"),
		},
		"15 minutes ahead": {by: with(alice, func(s *signer) { s.at = noon.Add(skew) }), header: "alice", query: "alice"},
		"further ahead": {
			by: with(nobody, func(s *signer) { s.at = noon.Add(skew + time.Second) }), expires: "604800",
			header: said(fault.SignatureDoesNotMatch, "Signature not yet current: 20261122T121501Z is still later than 20261122T121500Z (20261122T120000Z + 15 min.)"),
			query:  said(fault.SignatureDoesNotMatch, "Signature not yet current: 20261122T121501Z is still later than 20261122T121500Z (20261122T120000Z + 15 min.)"),
		},
		"Host is not signed": {
			by: nobody, change: func(w *world, r *Request) { edit("host", "hosts")(w, r); edit("AWS4-HMAC-SHA256", "AWS4-X")(w, r) },
			header: said(fault.SignatureDoesNotMatch, errHost.Message), query: said(fault.SignatureDoesNotMatch, errHost.Message),
		},
		"the algorithm": {
			by: nobody, change: func(w *world, r *Request) { edit("AWS4-HMAC-SHA256", "AWS4-X")(w, r); edit("/aws4_request", "")(w, r) },
			header: said(fault.IncompleteSignature, "Unsupported AWS 'algorithm': 'AWS4-X' (only AWS4-HMAC-SHA256 for now). "),
			query:  said(fault.IncompleteSignature, "Unsupported AWS 'algorithm': 'AWS4-X' (only AWS4-HMAC-SHA256 for now). "),
		},
		"the credential": {
			by: nobody, change: edit("/sqs/", "/"),
			header: said(fault.IncompleteSignature, "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, got 'AKIANOBODY/20261122/eu-west-1/aws4_request'"),
			query:  said(fault.IncompleteSignature, "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, got 'AKIANOBODY/20261122/eu-west-1/aws4_request'"),
		},
		"the scope": {
			by: nobody, change: edit("20261122/eu-west-1/sqs/aws4_request", "20261121/nowhere/sns/aws5_request"),
			header: said(fault.SignatureDoesNotMatch, "Credential should be scoped to a valid region, not 'nowhere'. Credential should be scoped to correct service: 'sqs'. "+
				"Credential should be scoped with a valid terminator: 'aws4_request', not 'aws5_request'. "+
				"Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: '20261121' != '20261122', from '20261122T120000Z'. "),
		},
		"the region of the endpoint": {
			by: nobody, change: func(_ *world, r *Request) { r.Region = "eu-west-2" },
			header: said(fault.SignatureDoesNotMatch, "Credential should be scoped to a valid region, not 'eu-west-1'. "),
			query:  said(fault.SignatureDoesNotMatch, "Credential should be scoped to a valid region, not 'eu-west-1'. "),
		},
		"the default region": {by: with(alice, func(s *signer) { s.region = "local" }), change: func(_ *world, r *Request) { r.Default = "local" }, header: "alice", query: "alice"},

		"nobody's key":     {by: nobody, header: said(fault.Unauthenticated, unknown), query: said(fault.Unauthenticated, unknown)},
		"another secret":   {by: with(alice, func(s *signer) { s.secret = "another" }), header: mismatched, query: mismatched},
		"another token":    {by: with(bob, func(s *signer) { s.token = "tokem" }), header: said(fault.Unauthenticated, unknown), query: said(fault.Unauthenticated, unknown)},
		"no token":         {by: with(bob, func(s *signer) { s.token = "" }), header: said(fault.Unauthenticated, unknown), query: said(fault.Unauthenticated, unknown)},
		"a token too many": {by: with(alice, func(s *signer) { s.token = "token" }), header: said(fault.Unauthenticated, unknown), query: said(fault.Unauthenticated, unknown)},
		"a wrong token and another secret": {
			by:     with(bob, func(s *signer) { s.token, s.secret = "tokem", "another" }),
			header: mismatched, query: mismatched,
		},
		"an expired session": {
			by: bob, change: func(w *world, _ *Request) { w.now = noon.Add(time.Hour) },
			header: said(fault.ExpiredToken, "The security token included in the request is expired"),
			query:  said(fault.ExpiredToken, "The security token included in the request is expired"),
		},
		"a session in its last second": {by: bob, change: func(w *world, _ *Request) { w.now = noon.Add(time.Hour - 1) }, header: "bob", query: "bob"},
		"a key that was deleted":       {by: alice, change: func(w *world, _ *Request) { delete(w.keys, "AKIAALICE") }, header: said(fault.Unauthenticated, unknown)},
	} {
		t.Run(name, func(t *testing.T) {
			for form, want := range map[string]string{"header": tc.header, "query": tc.query} {
				if want == "" {
					continue
				}
				w, r := newWorld(), newRequest()
				if form == "query" {
					tc.by.query(&r, cmp.Or(tc.expires, "60"), "{}")
				} else {
					tc.by.header(&r, "{}")
				}
				if tc.change != nil {
					tc.change(w, &r)
				}
				if got := w.verify(t, r); got != want {
					t.Errorf("in the %s:\ngot  %s\nwant %s", form, got, want)
				}
			}
		})
	}
}

var (
	missing    = said(fault.MissingAuthentication, "Request is missing Authentication Token")
	mismatched = said(fault.SignatureDoesNotMatch, "The request signature we calculated does not match the signature you provided. "+
		"Check your AWS Secret Access Key and signing method. Consult the service documentation for details.")
)
