package ingest_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/ingest"
)

const (
	queue  = "arn:aws:sqs:us-east-1:000000000000:orders"
	fifo   = "arn:aws:sqs:us-east-1:000000000000:orders.fifo"
	topic  = "arn:aws:sns:us-east-1:000000000000:orders"
	secret = "a secret of some length"
)

var now = time.Unix(1_700_000_000, 0)

func source(kind ingest.Kind) ingest.Source {
	s := ingest.Source{Name: "shop", Account: "000000000000", Target: queue, Verification: ingest.Verification{Kind: kind}}
	switch kind {
	case ingest.HMAC:
		s.Verification.Header = "X-Signature"
	case ingest.SNS:
		s.Verification.Topics = []string{topic}
	}
	return s
}

func secretOf(kind ingest.Kind, s string) []string {
	switch kind {
	case ingest.StandardWebhooks:
		return []string{"whsec_" + base64.StdEncoding.EncodeToString([]byte(s))}
	case ingest.Basic:
		return []string{"shop:" + s}
	case ingest.SNS:
		return nil
	}
	return []string{s}
}

func compile(t *testing.T, s ingest.Source, secrets ...string) *ingest.Compiled {
	t.Helper()
	c, err := ingest.Compile(s, secrets)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func reason(err error) ingest.Reason {
	if r, ok := errors.AsType[*ingest.Refusal](err); ok {
		return r.Reason
	}
	if err != nil {
		return "no refusal: " + ingest.Reason(err.Error())
	}
	return ""
}

func mac(key string, parts ...string) []byte {
	m := hmac.New(sha256.New, []byte(key))
	m.Write([]byte(strings.Join(parts, "")))
	return m.Sum(nil)
}

// sign makes the headers of a post as the provider of each kind does.
func sign(kind ingest.Kind, key string, at time.Time, body string) http.Header {
	h, ts := http.Header{}, strconv.FormatInt(at.Unix(), 10)
	switch kind {
	case ingest.StandardWebhooks:
		h.Set("webhook-id", "msg_1")
		h.Set("webhook-timestamp", ts)
		h.Set("webhook-signature", "v1a,AAAA v1,"+base64.StdEncoding.EncodeToString(mac(key, "msg_1.", ts, ".", body)))
	case ingest.GitHub:
		h.Set("X-GitHub-Delivery", "delivery-1")
		h.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac(key, body)))
	case ingest.Stripe:
		h.Set("Stripe-Signature", "t="+ts+",v1=00,v1="+hex.EncodeToString(mac(key, ts, ".", body))+",v0=6ffb")
	case ingest.Slack:
		h.Set("X-Slack-Request-Timestamp", ts)
		h.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac(key, "v0:", ts, ":", body)))
	case ingest.Shopify:
		h.Set("X-Shopify-Webhook-Id", "hook-1")
		h.Set("X-Shopify-Hmac-Sha256", base64.StdEncoding.EncodeToString(mac(key, body)))
	case ingest.HMAC:
		h.Set("X-Signature", hex.EncodeToString(mac(key, body)))
	case ingest.Basic:
		h.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("shop:"+key)))
	case ingest.APIKey:
		h.Set("X-Api-Key", key)
	}
	return h
}

var signing = []ingest.Kind{
	ingest.StandardWebhooks, ingest.GitHub, ingest.Stripe, ingest.Slack, ingest.Shopify, ingest.HMAC, ingest.Basic, ingest.APIKey,
}

// Each kind takes what its provider signs with any of its secrets, and nothing else: no other
// body, secret, time, or header that is given twice.
func TestVerify(t *testing.T) {
	const body = `{"id":"evt_1"}`
	for _, kind := range signing {
		t.Run(string(kind), func(t *testing.T) {
			c := compile(t, source(kind), append(secretOf(kind, "the one before this one"), secretOf(kind, secret)...)...)
			check := func(what string, want ingest.Reason, h http.Header, body string) {
				t.Helper()
				if got := reason(c.Verify(now, h, []byte(body))); got != want {
					t.Errorf("%s: %q, want %q", what, got, want)
				}
			}
			check("as it is", "", sign(kind, secret, now, body), body)
			check("with the other secret", "", sign(kind, "the one before this one", now, body), body)
			check("with no secret of it", ingest.Forged, sign(kind, "another secret of it", now, body), body)
			check("nothing", ingest.Unsigned, http.Header{}, body)
			signed := kind != ingest.Basic && kind != ingest.APIKey
			if signed {
				check("another body", ingest.Forged, sign(kind, secret, now, body), body+" ")
			}
			timed := kind == ingest.StandardWebhooks || kind == ingest.Stripe || kind == ingest.Slack
			for _, off := range []time.Duration{-301 * time.Second, 301 * time.Second} {
				if timed {
					check("at "+off.String(), ingest.Untimely, sign(kind, secret, now.Add(off), body), body)
				}
			}
			check("at the edge", "", sign(kind, secret, now.Add(-300*time.Second), body), body)
			for name := range sign(kind, secret, now, body) {
				twice := sign(kind, secret, now, body)
				twice.Add(name, twice.Get(name))
				if name != "X-Github-Delivery" && name != "X-Shopify-Webhook-Id" { // which verify nothing
					check(name+" twice", ingest.Unsigned, twice, body)
				}
			}
		})
	}
}

// What providers have published as examples. Sources: GitHub, "Validating webhook deliveries";
// Slack, "Verifying requests from Slack".
func TestPublishedExamples(t *testing.T) {
	c := compile(t, source(ingest.GitHub), "It's a Secret to Everybody")
	h := http.Header{"X-Hub-Signature-256": {"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}}
	if err := c.Verify(now, h, []byte("Hello, World!")); err != nil {
		t.Error(err)
	}
	c = compile(t, source(ingest.Slack), "8f742231b10e8888abcd99yyyzzz85a5")
	h = http.Header{
		"X-Slack-Request-Timestamp": {"1531420618"}, "X-Slack-Signature": {"v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"},
	}
	const body = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&" +
		"user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2F" +
		"T1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
	if err := c.Verify(time.Unix(1531420618, 0), h, []byte(body)); err != nil {
		t.Error(err)
	}
}

// A signature over a timestamp and the body, in another algorithm and encoding.
func TestTimedHMAC(t *testing.T) {
	s := source(ingest.HMAC)
	s.Verification.TimestampHeader, s.Verification.Encoding, s.Verification.Prefix = "X-Time", "base64", "v1:"
	c := compile(t, s, secret)
	ts := strconv.FormatInt(now.Unix(), 10)
	h := http.Header{"X-Time": {ts}, "X-Signature": {"v1:" + base64.StdEncoding.EncodeToString(mac(secret, ts, ".", "body"))}}
	if err := c.Verify(now, h, []byte("body")); err != nil {
		t.Error(err)
	}
	if got := reason(c.Verify(now.Add(time.Hour), h, []byte("body"))); got != ingest.Untimely {
		t.Errorf("an hour later: %q", got)
	}
}

// Slack is told its challenge, and nobody else is anything.
func TestChallenge(t *testing.T) {
	body := []byte(`{"type":"url_verification","challenge":"3eZb"}`)
	if got, ok := compile(t, source(ingest.Slack), secret).Challenge(body); got != "3eZb" || !ok {
		t.Errorf("%q, %v", got, ok)
	}
	if _, ok := compile(t, source(ingest.GitHub), secret).Challenge(body); ok {
		t.Error("GitHub is told a challenge")
	}
	if _, ok := compile(t, source(ingest.Slack), secret).Challenge([]byte(`{"type":"event_callback","text":"url_verification","challenge":"x"}`)); ok {
		t.Error("an event is taken for a challenge")
	}
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// What of a post becomes the message.
func TestMap(t *testing.T) {
	const body = `{"id":"evt_1","data":{"order":{"id":7,"to":"Mitte"},"tags":["a","b"],"a/b":{"m~n":"x"}}}`
	header := http.Header{"X-Event": {"order.paid"}, "X-Github-Delivery": {"d-1"}}
	tests := map[string]struct {
		kind    ingest.Kind
		target  string
		mapping ingest.Mapping
		body    string
		want    ingest.Event
		refused ingest.Reason
	}{
		"the whole body":            {want: ingest.Event{Body: body, ID: "d-1"}},
		"an id of the body":         {kind: ingest.Stripe, want: ingest.Event{Body: body, ID: "evt_1"}},
		"an id that is not there":   {kind: ingest.Slack, body: "token=1&text=", want: ingest.Event{Body: "token=1&text="}},
		"of FIFO targets":           {target: fifo, want: ingest.Event{Body: body, ID: "d-1", Group: "shop", Dedup: hash("shop\x00\x01d-1")}},
		"of FIFO targets, no id":    {kind: ingest.HMAC, target: fifo, want: ingest.Event{Body: body, Group: "shop", Dedup: hash("shop\x00\x00" + body)}},
		"of FIFO targets, mapped":   {target: fifo, mapping: ingest.Mapping{GroupID: "/data/order/id", DeduplicationID: "/id"}, want: ingest.Event{Body: body, ID: "d-1", Group: "7", Dedup: "evt_1"}},
		"a group that SQS refuses":  {mapping: ingest.Mapping{GroupID: "/to"}, body: `{"to":"Berlin Mitte"}`, want: ingest.Event{Body: `{"to":"Berlin Mitte"}`, ID: "d-1", Group: hash("Berlin Mitte")}},
		"a group that is not there": {target: fifo, mapping: ingest.Mapping{GroupID: "/customer"}, refused: ingest.Unmapped},
		"a message that is not":     {mapping: ingest.Mapping{Message: "/order"}, refused: ingest.Unmapped},
		"an empty message":          {mapping: ingest.Mapping{Message: "/m"}, body: `{"m":""}`, refused: ingest.Unmapped},
		"no JSON":                   {mapping: ingest.Mapping{Message: "/m"}, body: `m=1`, refused: ingest.Unreadable},
		"no text":                   {body: "\xff\xfe", refused: ingest.Unreadable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			kind := test.kind
			if kind == "" {
				kind = ingest.GitHub
			}
			s := source(kind)
			if s.Mapping = test.mapping; test.target != "" {
				s.Target = test.target
			}
			given := body
			if test.body != "" {
				given = test.body
			}
			got, err := compile(t, s, secret).Map(header, []byte(given))
			if reason(err) != test.refused {
				t.Fatalf("%v, want %q", err, test.refused)
			}
			if diff := cmp.Diff(test.want, got); err == nil && diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Attributes take the types of what they are made of, and what is not there is left out.
func TestMapAttributes(t *testing.T) {
	s := source(ingest.GitHub)
	s.Target = topic
	s.Mapping = ingest.Mapping{Message: "/data/order", Subject: "/data/order/to", Attributes: map[string]string{
		"event": "header:X-Event", "id": "id", "order": "/data/order/id", "tags": "/data/tags", "tag": "/data/tags/1",
		"odd": "/data/a~1b/m~01n", "none": "/data/none", "missing": "/data/tags/2", "behind": "/data/tags/-", "zero": "/data/tags/01",
	}}
	const body = `{"data":{"order":{"id":7, "to":"Mitte"},"tags":["a","b"],"a/b":{"m~1n":"x"},"none":null}}`
	got, err := compile(t, s, secret).Map(http.Header{"X-Event": {"order.paid"}, "X-Github-Delivery": {"d-1"}}, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	want := ingest.Event{ID: "d-1", Body: `{"id":7, "to":"Mitte"}`, Subject: "Mitte", Attributes: []ingest.Attribute{
		{"event", "String", "order.paid"},
		{"id", "String", "d-1"},
		{"odd", "String", "x"},
		{"order", "Number", "7"},
		{"tag", "String", "b"},
		{"tags", "String.Array", `["a","b"]`},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// No header with a secret becomes part of a message, though earlier versions took sources that say so.
func TestNoSecretInMessages(t *testing.T) {
	for member, change := range map[string]func(s *ingest.Source){
		"mapping.attributes.key": func(s *ingest.Source) {
			s.Mapping.Attributes = map[string]string{"key": "header:x-shop-KEY", "n": "header:X-N"}
		},
		"verification.idHeader": func(s *ingest.Source) {
			s.Verification.IDHeader = "X-SHOP-Key"
			s.Mapping.Attributes = map[string]string{"n": "header:X-N", "id": "id"}
		},
		"verification.idHeader ": func(s *ingest.Source) {
			s.Verification.IDHeader = "Authorization"
			s.Mapping.Attributes = map[string]string{"n": "header:X-N", "id": "id"}
		},
	} {
		s := source(ingest.APIKey)
		s.Verification.Header = "X-Shop-Key"
		if err := s.CheckExposure(); err != nil {
			t.Fatal(err)
		}
		change(&s)
		r, ok := errors.AsType[*fault.Refusal](s.CheckExposure())
		if !ok || r.Fields[0] != strings.TrimSpace(member) {
			t.Errorf("%s is refused with %v", member, r)
		}
		h := http.Header{}
		for name, value := range map[string]string{"X-Shop-Key": secret, "Authorization": secret, "X-N": "1"} {
			h.Set(name, value)
		}
		e, err := compile(t, s, secret).Map(h, []byte("{}"))
		if diff := cmp.Diff(ingest.Event{Body: "{}", Attributes: []ingest.Attribute{{"n", "String", "1"}}}, e); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", member, err, diff)
		}
	}
}

// A header may be in another encoding than UTF-8.
func TestMapHeaderOfBytes(t *testing.T) {
	s := source(ingest.GitHub)
	s.Mapping.Attributes = map[string]string{"city": "header:X-City", "id": "id"}
	got, err := compile(t, s, secret).Map(http.Header{"X-City": {"K\xf6ln"}, "X-Github-Delivery": {"d-\xff"}}, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]ingest.Attribute{{"city", "String", "K\uFFFDln"}, {"id", "String", "d-\uFFFD"}}, got.Attributes); diff != "" {
		t.Error(diff)
	}
}

// Ids that FIFO targets do not take are replaced by hashes: different ones by different ones.
func TestStrangeIDs(t *testing.T) {
	s := source(ingest.GitHub)
	s.Target = fifo
	c, seen := compile(t, s, secret), map[string]string{}
	for _, id := range []string{"a b", "ä", strings.Repeat("x", 129), strings.Repeat("x", 130), ""} {
		e, err := c.Map(http.Header{"X-Github-Delivery": {id}}, []byte("{}"))
		if err != nil || len(e.Dedup) != 64 || seen[e.Dedup] != "" {
			t.Errorf("%q: %q, %v, as %q", id, e.Dedup, err, seen[e.Dedup])
		}
		seen[e.Dedup] = "taken by " + id
	}
}

// Two sources may have one FIFO target: an event of one is no repeat of the other's.
func TestIDsOfTwoSources(t *testing.T) {
	for _, header := range []http.Header{{"X-Github-Delivery": {"1"}}, {}} {
		seen := map[string]bool{}
		for _, name := range []string{"shop", "till"} {
			s := source(ingest.GitHub)
			s.Name, s.Target = name, fifo
			s.Mapping.GroupID = "/group"
			for range 2 {
				e, err := compile(t, s, secret).Map(header, []byte(`{"group":"g"}`))
				if err != nil {
					t.Fatal(err)
				}
				seen[e.Dedup] = true
			}
		}
		if len(seen) != 2 {
			t.Errorf("%v: %d deduplication ids of an event of two sources, want 2", header, len(seen))
		}
	}
}

// What no source can be is refused, with the member that is at fault.
func TestCheck(t *testing.T) {
	type change func(s *ingest.Source, secrets *[]string)
	tests := map[string]change{
		"name":                    func(s *ingest.Source, _ *[]string) { s.Name = "a/b" },
		"target":                  func(s *ingest.Source, _ *[]string) { s.Target = "arn:aws:lambda:us-east-1:000000000000:function:f" },
		"verification.kind":       func(s *ingest.Source, _ *[]string) { s.Verification.Kind = "none" },
		"verification.header":     func(s *ingest.Source, _ *[]string) { s.Verification.Header = "" },
		"verification.algorithm":  func(s *ingest.Source, _ *[]string) { s.Verification.Algorithm = "md5" },
		"verification.encoding":   func(s *ingest.Source, _ *[]string) { s.Verification.Encoding = "base32" },
		"verification.idHeader":   func(s *ingest.Source, _ *[]string) { s.Verification.IDHeader = "a b" },
		"verification.topics":     func(s *ingest.Source, _ *[]string) { s.Verification.Topics = []string{topic} },
		"verification.tolerance":  func(s *ingest.Source, _ *[]string) { s.Verification.Tolerance = -1 },
		"secrets":                 func(_ *ingest.Source, all *[]string) { *all = nil },
		"secrets[1]":              func(_ *ingest.Source, all *[]string) { *all = append(*all, "short") },
		"limits.bytes":            func(s *ingest.Source, _ *[]string) { s.Limits.Bytes = ingest.MaxBytes + 1 },
		"limits.perSecond":        func(s *ingest.Source, _ *[]string) { s.Limits.PerSecond = -1 },
		"mapping.message":         func(s *ingest.Source, _ *[]string) { s.Mapping.Message = "data" },
		"mapping.subject":         func(s *ingest.Source, _ *[]string) { s.Mapping.Subject = "/s" },
		"mapping.groupId":         func(s *ingest.Source, _ *[]string) { s.Mapping.GroupID = "/~2" },
		"mapping.deduplicationId": func(s *ingest.Source, _ *[]string) { s.Mapping.DeduplicationID = "/id" },
		"mapping.attributes.a":    func(s *ingest.Source, _ *[]string) { s.Mapping.Attributes = map[string]string{"a": "b"} },
		"mapping.attributes.key": func(s *ingest.Source, _ *[]string) {
			s.Mapping.Attributes = map[string]string{"key": "header:Authorization"}
		},
		"verification.origins": func(s *ingest.Source, _ *[]string) {
			*s = source(ingest.SNS)
			s.Verification.Origins = []string{"https://a/b"}
		},
		"verification.topics, of SNS":   func(s *ingest.Source, _ *[]string) { *s = source(ingest.SNS); s.Verification.Topics = nil },
		"secrets[0], of Basic":          func(s *ingest.Source, all *[]string) { *s = source(ingest.Basic); *all = []string{"a:short password"} },
		"secrets[0], Standard Webhooks": func(s *ingest.Source, _ *[]string) { *s = source(ingest.StandardWebhooks) },
	}
	if err := func() error { s := source(ingest.HMAC); return s.Check([]string{secret}) }(); err != nil {
		t.Fatal(err)
	}
	for name, change := range tests {
		s, secrets := source(ingest.HMAC), []string{secret}
		change(&s, &secrets)
		member, _, _ := strings.Cut(name, ",")
		var r *fault.Refusal
		if err := s.Check(secrets); !errors.Is(err, ingest.ErrInvalid) || !errors.As(err, &r) || r.Fields[0] != member {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever strangers post is refused or mapped, and nothing ends the process.
func FuzzPost(f *testing.F) {
	f.Add("t=1,v1=00", `{"id":"x","a":[1,{"b":null}]}`, "/a/1/b")
	f.Add("v1,AAAA v1,", `[]`, "/0")
	f.Add("Basic YTpi", "\x00", "")
	f.Fuzz(func(t *testing.T, header, body, pointer string) {
		for _, kind := range signing {
			s := source(kind)
			s.Mapping.Message = pointer
			c, err := ingest.Compile(s, secretOf(kind, secret))
			if err != nil {
				continue
			}
			h := http.Header{}
			for name := range sign(kind, secret, now, body) {
				h.Set(name, header)
			}
			if c.Verify(now, h, []byte(body)) == nil && header != sign(kind, secret, now, body).Get("X-Api-Key") && !strings.HasPrefix(strings.ToLower(header), "basic ") {
				t.Errorf("%s: %q verifies %q", kind, header, body)
			}
			_, _ = c.Map(h, []byte(body))
			c.Challenge([]byte(body))
		}
		if c, err := ingest.Compile(source(ingest.SNS), nil); err == nil {
			if _, err := c.ReadSNS([]byte(body)); err != nil {
				return
			}
			_, _ = c.Map(http.Header{}, []byte(body))
		}
	})
}
