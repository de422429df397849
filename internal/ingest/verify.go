package ingest

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // of providers that sign with nothing better; HMAC-SHA1 is not broken
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"strconv"
	"strings"
	"time"

	"godwit.dev/godwit/internal/arn"
)

// Header has header values, like http.Header.
type Header interface{ Values(name string) []string }

// The encodings of signatures.
const (
	hexadecimal = "hex"
	inBase64    = "base64"
)

var algorithms = map[string]func() hash.Hash{"sha1": sha1.New, "sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New}

func (v *Verification) algorithm() string { return orElse(v.Algorithm, "sha256") }
func (v *Verification) encoding() string  { return orElse(v.Encoding, hexadecimal) }

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// idPointers are the pointers to the provider's id of the event, by kind. There the signature
// covers it.
var idPointers = map[Kind]string{Stripe: "/id", Slack: "/event_id", SNS: "/MessageId"}

// idHeader is the header with the provider's id of the event; empty: there is none.
func (v *Verification) idHeader() string {
	switch v.Kind {
	case StandardWebhooks:
		return "webhook-id"
	case GitHub:
		return "X-GitHub-Delivery"
	case Shopify:
		return "X-Shopify-Webhook-Id"
	default:
		return v.IDHeader
	}
}

// Compiled is a source for verifying posts. It is immutable, and safe for concurrent use.
type Compiled struct {
	Source
	TargetARN arn.ARN

	mapper mapper
	keys   [][]byte
}

// Compile validates and compiles a source. Errors: ErrInvalid.
func Compile(s Source, secrets []string) (*Compiled, error) {
	if err := s.Check(secrets); err != nil {
		return nil, err
	}
	c := &Compiled{Source: s}
	var err error
	if c.TargetARN, err = arn.Parse(s.Target); err != nil {
		return nil, err
	}
	if c.mapper, err = newMapper(&c.Source, c.TargetARN); err != nil {
		return nil, invalid("mapping", "%s", err)
	}
	for _, secret := range secrets {
		key := []byte(secret)
		if s.Verification.Kind == StandardWebhooks {
			key, _ = standardKey(secret) // it was validated
		}
		c.keys = append(c.keys, key)
	}
	return c, nil
}

// one is the only value of a header; empty if it has none, or several, which a proxy might
// interpret differently.
func one(h Header, name string) string {
	if name == "" {
		return ""
	}
	if all := h.Values(name); len(all) == 1 {
		return all[0]
	}
	return ""
}

func unsigned(what string) error {
	return &Refusal{Unsigned, ErrUnsigned.With(what)}
}

var errForged = &Refusal{Forged, ErrForged}

// Verify refuses a post whose sender does not have one of the secrets; comparisons take
// constant time. Posts of SNS are verified by VerifySNS. Errors: *Refusal.
func (c *Compiled) Verify(now time.Time, h Header, body []byte) error {
	v := &c.Verification
	switch v.Kind {
	case StandardWebhooks:
		return c.standard(now, h, body)
	case GitHub:
		return c.signed(h, "X-Hub-Signature-256", "sha256=", hexadecimal, "sha256", body)
	case Shopify:
		return c.signed(h, "X-Shopify-Hmac-Sha256", "", inBase64, "sha256", body)
	case Stripe:
		return c.stripe(now, h, body)
	case Slack:
		return c.slack(now, h, body)
	case HMAC:
		if v.TimestampHeader == "" {
			return c.signed(h, v.Header, v.Prefix, v.encoding(), v.algorithm(), body)
		}
		at := one(h, v.TimestampHeader)
		if err := c.timely(now, at); err != nil {
			return err
		}
		return c.signed(h, v.Header, v.Prefix, v.encoding(), v.algorithm(), []byte(at), dot, body)
	case Basic:
		return c.basic(h)
	case APIKey:
		key := one(h, orElse(v.Header, "X-Api-Key"))
		if key == "" {
			return unsigned(orElse(v.Header, "X-Api-Key"))
		}
		return c.equals([]byte(key))
	default:
		return errForged
	}
}

var dot = []byte(".")

// timely refuses a time in epoch seconds that is too far from now.
func (c *Compiled) timely(now time.Time, at string) error {
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || at == "" || at[0] == '+' || len(at) > 12 {
		return &Refusal{Unsigned, ErrNoTimestamp}
	}
	tolerance := c.Verification.Tolerance
	if tolerance == 0 {
		tolerance = defaultTolerance
	}
	if d := now.Unix() - seconds; d > int64(tolerance) || -d > int64(tolerance) {
		return &Refusal{Untimely, ErrUntimely.With(tolerance)}
	}
	return nil
}

// signed verifies a header with one signature.
func (c *Compiled) signed(h Header, header, prefix, encoding, algorithm string, parts ...[]byte) error {
	value, ok := strings.CutPrefix(one(h, header), prefix)
	if !ok || value == "" {
		return unsigned(header)
	}
	given, ok := decoded(value, encoding)
	if !ok {
		return unsigned(header)
	}
	return c.matches([][]byte{given}, algorithms[algorithm], parts...)
}

func decoded(s, encoding string) (b []byte, ok bool) {
	var err error
	if encoding == inBase64 {
		b, err = base64.StdEncoding.DecodeString(s)
	} else {
		b, err = hex.DecodeString(s)
	}
	return b, err == nil && len(b) > 0
}

// matches compares signatures with those of the secrets. All are compared, whichever matches.
func (c *Compiled) matches(given [][]byte, algorithm func() hash.Hash, parts ...[]byte) error {
	found := 0
	for _, key := range c.keys {
		mac := hmac.New(algorithm, key)
		for _, part := range parts {
			mac.Write(part)
		}
		want := mac.Sum(nil)
		for _, g := range given {
			found |= subtle.ConstantTimeCompare(g, want)
		}
	}
	if found == 0 {
		return errForged
	}
	return nil
}

// equals compares a key or a password with the secrets. They are hashed first, as the time of
// a comparison would disclose different lengths.
func (c *Compiled) equals(given []byte) error {
	sum := sha256.Sum256(given)
	found := 0
	for _, key := range c.keys {
		want := sha256.Sum256(key)
		found |= subtle.ConstantTimeCompare(sum[:], want[:])
	}
	if found == 0 {
		return errForged
	}
	return nil
}

// maxSignatures bounds the signatures of one header that are tried.
const maxSignatures = 16

// standard verifies by Standard Webhooks (specification 1.0.0, "Signature scheme").
func (c *Compiled) standard(now time.Time, h Header, body []byte) error {
	id, at := one(h, "webhook-id"), one(h, "webhook-timestamp")
	if id == "" {
		return unsigned("webhook-id")
	}
	if err := c.timely(now, at); err != nil {
		return err
	}
	var given [][]byte
	for i, field := range strings.Fields(one(h, "webhook-signature")) {
		if value, ok := strings.CutPrefix(field, "v1,"); ok && i < maxSignatures {
			if b, ok := decoded(value, inBase64); ok {
				given = append(given, b)
			}
		}
	}
	if len(given) == 0 {
		return unsigned("webhook-signature")
	}
	return c.matches(given, sha256.New, []byte(id), dot, []byte(at), dot, body)
}

// stripe verifies Stripe-Signature: t=TIME,v1=HEX, with a v1 for each secret that Stripe
// signs with. Source: Stripe's documentation, "Verify webhook signatures manually".
func (c *Compiled) stripe(now time.Time, h Header, body []byte) error {
	at := ""
	var given [][]byte
	for i, field := range strings.Split(one(h, "Stripe-Signature"), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		switch {
		case i >= maxSignatures:
		case name == "t":
			if at != "" {
				return unsigned("Stripe-Signature")
			}
			at = value
		case name == "v1":
			if b, ok := decoded(value, hexadecimal); ok {
				given = append(given, b)
			}
		}
	}
	if at == "" || len(given) == 0 {
		return unsigned("Stripe-Signature")
	}
	if err := c.timely(now, at); err != nil {
		return err
	}
	return c.matches(given, sha256.New, []byte(at), dot, body)
}

// slack verifies by Slack's documentation, "Verifying requests from Slack".
func (c *Compiled) slack(now time.Time, h Header, body []byte) error {
	at := one(h, "X-Slack-Request-Timestamp")
	if err := c.timely(now, at); err != nil {
		return err
	}
	return c.signed(h, "X-Slack-Signature", "v0=", hexadecimal, "sha256", []byte("v0:"+at+":"), body)
}

func (c *Compiled) basic(h Header) error {
	scheme, value, _ := strings.Cut(one(h, "Authorization"), " ")
	if !strings.EqualFold(scheme, "Basic") {
		return unsigned("Authorization")
	}
	given, err := base64.StdEncoding.DecodeString(strings.TrimSpace(value))
	if err != nil {
		return unsigned("Authorization")
	}
	return c.equals(given)
}

// Challenge is the answer, as text, to the post by which Slack checks a source's URL; ok is
// false for other posts. The post must have been verified. Source: Slack's documentation,
// "url_verification event".
func (c *Compiled) Challenge(body []byte) (answer string, ok bool) {
	if c.Verification.Kind != Slack || !strings.Contains(string(body), "url_verification") {
		return "", false
	}
	d := document{raw: body}
	kind, _ := text(d.find(Pointer{[]string{"type"}}))
	answer, ok = text(d.find(Pointer{[]string{"challenge"}}))
	return answer, ok && kind == "url_verification" && len(answer) <= maxSecret
}
