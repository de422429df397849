package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
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

// header signs a request in its header, over Host and all that is in it.
func (s signer) header(r *Request, body string) {
	r.Payload = sha256.Sum256([]byte(body))
	r.Header.Set("X-Amz-Date", s.at.Format(basicForm))
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
	canonical := strings.Join([]string{r.Method, r.Path, r.Query, lines.String(), list, hex.EncodeToString(r.Payload[:])}, "\n")
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
	if r.Query = strings.Join(append(parameters, "X-Amz-SignedHeaders=host"), "&"); r.Query != "" {
		r.Query = "Action=ListQueues&" + r.Query
	}
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

func said(kind fault.Kind, text string) string { return fmt.Sprintf("%d %s", kind, text) }

func TestVerify(t *testing.T) {
	const unknown = "The security token included in the request is invalid."
	bob := signer{"ASIABOB", "bob's secret", "token", "eu-west-1", "sqs", noon}
	for name, tc := range map[string]struct {
		by     signer
		change func(w *world, r *Request)
		want   string
	}{
		"a key":                          {by: alice, want: "alice"},
		"a session":                      {by: bob, want: "bob"},
		"another token":                  {by: signer{"ASIABOB", "bob's secret", "tokem", "eu-west-1", "sqs", noon}, want: said(fault.Unauthenticated, unknown)},
		"no token":                       {by: signer{"ASIABOB", "bob's secret", "", "eu-west-1", "sqs", noon}, want: said(fault.Unauthenticated, unknown)},
		"a token too many":               {by: signer{"AKIAALICE", "alice's secret", "token", "eu-west-1", "sqs", noon}, want: said(fault.Unauthenticated, unknown)},
		"the signature before the token": {by: signer{"ASIABOB", "another", "tokem", "eu-west-1", "sqs", noon}, want: said(fault.SignatureDoesNotMatch, errMismatch.Message)},
		"another secret":                 {by: signer{"AKIAALICE", "another", "", "eu-west-1", "sqs", noon}, want: said(fault.SignatureDoesNotMatch, errMismatch.Message)},
		"nobody's key":                   {by: signer{"AKIANOBODY", "another", "", "eu-west-1", "sqs", noon}, want: said(fault.Unauthenticated, unknown)},
	} {
		t.Run(name, func(t *testing.T) {
			for _, presign := range []bool{false, true} {
				w, r := newWorld(), newRequest()
				if presign {
					tc.by.query(&r, "60", "{}")
				} else {
					tc.by.header(&r, "{}")
				}
				if tc.change != nil {
					tc.change(w, &r)
				}
				if got := w.verify(t, r); got != tc.want {
					t.Errorf("presigned %t:\ngot  %s\nwant %s", presign, got, tc.want)
				}
			}
		})
	}
}
