package ingest

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
)

// ErrInvalid is the error of an invalid source: with the member's name, and what is wrong.
var ErrInvalid = fault.NewRule(fault.InvalidParameter, "ingest: the source is not valid")

func invalid(member, format string, args ...any) error {
	return ErrInvalid.With(member, fmt.Sprintf(format, args...))
}

// Kind is a method of verification.
type Kind string

// The kinds.
const (
	StandardWebhooks Kind = "standard-webhooks" // standardwebhooks.com
	GitHub           Kind = "github"
	Stripe           Kind = "stripe"
	Slack            Kind = "slack"
	Shopify          Kind = "shopify"
	SNS              Kind = "sns" // the signature of a topic of AWS, or of another Godwit
	HMAC             Kind = "hmac"
	Basic            Kind = "basic"
	APIKey           Kind = "api-key"
)

// Kinds are all kinds. None accepts unverified posts.
var Kinds = []Kind{StandardWebhooks, GitHub, Stripe, Slack, Shopify, SNS, HMAC, Basic, APIKey}

// Limits of a source and of its posts.
const (
	MaxName       = 64
	maxSecrets    = 8         // concurrently valid, for rotation
	minSecret     = 16        // bytes
	maxSecret     = 1024      // bytes
	maxAttributes = 10        // of a message
	MaxBytes      = 1 << 20   // bound of MaxBytes; SNS and SQS may accept less
	DefaultBytes  = 256 << 10 // the default of MaxBytes
	maxRate       = 100_000   // posts a second
	MaxConcurrent = 10_000    // posts at once
	maxTolerance  = 24 * 3600 // seconds
)

// defaultTolerance is the default of how far the signed time may be from now, in seconds.
// Source: Standard Webhooks, Stripe and Slack all recommend five minutes.
const defaultTolerance = 300

// defaultConcurrent is the default of how many posts of a source are published concurrently.
const defaultConcurrent = 64

// Source is the configuration of a source, without its secrets.
type Source struct {
	Name    string `json:"name"`    // in the path: /in/NAME
	Account string `json:"account"` // 12 digits
	Target  string `json:"target"`  // ARN of a topic or a queue
	// Owner is the publisher; nil: the account's root user.
	Owner        *caller.Caller `json:"owner,omitempty"`
	Verification Verification   `json:"verification"`
	Mapping      Mapping        `json:"mapping"`
	Limits       Limits         `json:"limits"`
	Paused       bool           `json:"paused,omitempty"`
	Created      int64          `json:"created"` // epoch milliseconds
	Changed      int64          `json:"changed"`
}

// Verification says how posts are verified. Empty members have defaults.
type Verification struct {
	Kind Kind `json:"kind"`
	// Tolerance is how far the signed time may be from now, in seconds. For SNS, 0 means no
	// limit, because its retries continue for weeks.
	Tolerance int `json:"tolerance,omitempty"`
	// Header has the signature, for HMAC, or the key, for APIKey.
	Header string `json:"header,omitempty"`
	// Algorithm and Encoding are for HMAC: sha1, sha256, sha384 or sha512; hex or base64.
	// Prefix precedes the signature, for example "sha256=".
	Algorithm string `json:"algorithm,omitempty"`
	Encoding  string `json:"encoding,omitempty"`
	Prefix    string `json:"prefix,omitempty"`
	// TimestampHeader has, for HMAC, a time in epoch seconds: then the signed text is the
	// time, a dot and the body.
	TimestampHeader string `json:"timestampHeader,omitempty"`
	// IDHeader has the provider's id of the event, for HMAC, Basic and APIKey.
	IDHeader string `json:"idHeader,omitempty"`
	// Topics are the ARNs of the topics that SNS may post for.
	Topics []string `json:"topics,omitempty"`
	// Origins are origins of SNS's certificates, besides AWS's: scheme://host[:port].
	Origins []string `json:"origins,omitempty"`
}

// Mapping says how a post becomes a message. A value is a JSON pointer (RFC 6901) into the
// body; for attributes also "header:NAME", and "id" for the provider's id of the event.
type Mapping struct {
	Message         string            `json:"message,omitempty"` // empty: the unchanged body
	Subject         string            `json:"subject,omitempty"` // of topics; empty: none
	Attributes      map[string]string `json:"attributes,omitempty"`
	GroupID         string            `json:"groupId,omitempty"`         // empty: for FIFO targets the source's name
	DeduplicationID string            `json:"deduplicationId,omitempty"` // empty: for FIFO targets the provider's id, or the body's hash
}

// Limits are the limits of a source. 0 is the default.
type Limits struct {
	Bytes      int `json:"bytes,omitempty"`
	PerSecond  int `json:"perSecond,omitempty"` // 0: no limit
	Concurrent int `json:"concurrent,omitempty"`
}

// MaxBytes bounds the size of a post, in bytes.
func (l Limits) MaxBytes() int64 {
	if l.Bytes == 0 {
		return DefaultBytes
	}
	return int64(l.Bytes)
}

// MaxConcurrent bounds the posts that are published concurrently.
func (l Limits) MaxConcurrent() int {
	if l.Concurrent == 0 {
		return defaultConcurrent
	}
	return l.Concurrent
}

// ValidName reports whether a source may have a name: 1 to 64 letters, digits, hyphens and
// underscores.
func ValidName(name string) bool {
	return name != "" && len(name) <= MaxName && !strings.ContainsFunc(name, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '-' && c != '_'
	})
}

// Check validates a source. Errors: ErrInvalid.
func (s *Source) Check(secrets []string) error {
	if !ValidName(s.Name) {
		return invalid("name", "it has to be 1 to %d letters, digits, hyphens and underscores", MaxName)
	}
	target, err := arn.Parse(s.Target)
	if err != nil || target.Service != "sns" && target.Service != "sqs" || target.Resource == "" || strings.ContainsAny(target.Resource, ":/") {
		return invalid("target", "it has to be the ARN of a topic or of a queue")
	}
	if err := s.Limits.check(); err != nil {
		return err
	}
	if err := s.Mapping.check(target); err != nil {
		return err
	}
	if err := s.Verification.check(); err != nil {
		return err
	}
	return s.Verification.checkSecrets(secrets)
}

// CheckExposure refuses a source by which a header with a secret would become part of messages.
// A source that an earlier version accepted has no such part. Errors: ErrInvalid.
func (s *Source) CheckExposure() error {
	const problem = "%s has the secret, which would be in the messages"
	v := &s.Verification
	if v.secret(v.IDHeader) {
		return invalid("verification.idHeader", problem, v.IDHeader)
	}
	for name, from := range s.Mapping.Attributes {
		if o, err := parseOrigin(from); err == nil && v.secret(o.header) {
			return invalid("mapping.attributes."+name, problem, o.header)
		}
	}
	return nil
}

// secret reports whether a header has, or may have, a secret.
func (v *Verification) secret(header string) bool {
	return credential(header) || v.Kind == APIKey && header != "" && strings.EqualFold(header, v.Header)
}

func (l Limits) check() error {
	for _, of := range []struct {
		member     string
		have, most int
	}{{"bytes", l.Bytes, MaxBytes}, {"perSecond", l.PerSecond, maxRate}, {"concurrent", l.Concurrent, MaxConcurrent}} {
		if of.have < 0 || of.have > of.most {
			return invalid("limits."+of.member, "it has to be a number from 1 to %d, or 0 for the default", of.most)
		}
	}
	return nil
}

func (m *Mapping) check(target arn.ARN) error {
	for _, of := range []struct{ member, pointer string }{
		{"message", m.Message}, {"subject", m.Subject}, {"groupId", m.GroupID}, {"deduplicationId", m.DeduplicationID},
	} {
		if of.pointer == "" {
			continue
		}
		if _, err := parsePointer(of.pointer); err != nil {
			return invalid("mapping."+of.member, "%s", err)
		}
	}
	if target.Service != "sns" && m.Subject != "" {
		return invalid("mapping.subject", "messages of queues have none")
	}
	if !target.FIFO() && m.DeduplicationID != "" {
		return invalid("mapping.deduplicationId", "the target has to be a FIFO topic or queue")
	}
	if len(m.Attributes) > maxAttributes {
		return invalid("mapping.attributes", "a message has %d at most", maxAttributes)
	}
	for name, from := range m.Attributes {
		if name == "" {
			return invalid("mapping.attributes", "one has no name")
		}
		if _, err := parseOrigin(from); err != nil {
			return invalid("mapping.attributes."+name, "%s", err)
		}
	}
	return nil
}

// applies are the members of each kind, besides tolerance.
var applies = map[Kind][]string{
	HMAC:   {"header", "algorithm", "encoding", "prefix", "timestampHeader", "idHeader"},
	Basic:  {"idHeader"},
	APIKey: {"header", "idHeader"},
	SNS:    {"topics", "origins"},
}

func (v *Verification) check() error {
	if !slices.Contains(Kinds, v.Kind) {
		return invalid("verification.kind", "it has to be one of %s", join(Kinds))
	}
	for member, given := range map[string]bool{
		"header": v.Header != "", "algorithm": v.Algorithm != "", "encoding": v.Encoding != "", "prefix": v.Prefix != "",
		"timestampHeader": v.TimestampHeader != "", "idHeader": v.IDHeader != "", "topics": len(v.Topics) > 0, "origins": len(v.Origins) > 0,
	} {
		if given && !slices.Contains(applies[v.Kind], member) {
			return invalid("verification."+member, "it does not go with %s", v.Kind)
		}
	}
	for member, name := range map[string]string{"header": v.Header, "timestampHeader": v.TimestampHeader, "idHeader": v.IDHeader} {
		if name != "" && !validHeader(name) {
			return invalid("verification."+member, "it has to be the name of a header")
		}
	}
	if v.Tolerance < 0 || v.Tolerance > maxTolerance {
		return invalid("verification.tolerance", "it has to be 1 to %d seconds, or 0 for the default", maxTolerance)
	}
	switch v.Kind {
	case HMAC:
		if v.Header == "" {
			return invalid("verification.header", "it has to name the header of the signature")
		}
		if _, ok := algorithms[v.algorithm()]; !ok {
			return invalid("verification.algorithm", "it has to be one of sha1, sha256, sha384, sha512")
		}
		if v.encoding() != hexadecimal && v.encoding() != inBase64 {
			return invalid("verification.encoding", "it has to be hex or base64")
		}
	case SNS:
		return v.checkSNS()
	default:
	}
	return nil
}

func (v *Verification) checkSNS() error {
	if len(v.Topics) == 0 {
		return invalid("verification.topics", "it has to name the topics that may post: anybody can have a topic")
	}
	for _, topic := range v.Topics {
		if a, err := arn.Parse(topic); err != nil || a.Service != "sns" {
			return invalid("verification.topics", "%q is not the ARN of a topic", topic)
		}
	}
	for _, origin := range v.Origins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Scheme+"://"+u.Host != origin {
			return invalid("verification.origins", "want scheme://host or scheme://host:port, have %q", origin)
		}
	}
	return nil
}

func (v *Verification) checkSecrets(secrets []string) error {
	if v.Kind == SNS {
		if len(secrets) > 0 {
			return invalid("secrets", "SNS signs with a certificate, and has none")
		}
		return nil
	}
	if len(secrets) == 0 {
		return invalid("secrets", "there has to be one, or several while they are rotated")
	}
	if len(secrets) > maxSecrets {
		return invalid("secrets", "there are more than %d", maxSecrets)
	}
	for i, secret := range secrets {
		member := "secrets[" + strconv.Itoa(i) + "]"
		if len(secret) < minSecret || len(secret) > maxSecret {
			return invalid(member, "it has to have %d to %d bytes", minSecret, maxSecret)
		}
		switch v.Kind {
		case StandardWebhooks:
			if key, err := standardKey(secret); err != nil || len(key) < minSecret {
				return invalid(member, "it has to be whsec_ and base64 of %d bytes or more", minSecret)
			}
		case Basic:
			if user, password, ok := strings.Cut(secret, ":"); !ok || user == "" || len(password) < minSecret {
				return invalid(member, "it has to be USER:PASSWORD, the password of %d bytes or more", minSecret)
			}
		default:
		}
	}
	return nil
}

// standardKey is the key of a secret of Standard Webhooks, which may have the prefix whsec_.
func standardKey(secret string) ([]byte, error) {
	return base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
}

// validHeader reports whether a name is a token of RFC 9110.
func validHeader(name string) bool {
	return name != "" && len(name) <= 128 && !strings.ContainsFunc(name, func(c rune) bool {
		return c <= ' ' || c > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
	})
}

func join(kinds []Kind) string {
	all := make([]string, len(kinds))
	for i, k := range kinds {
		all[i] = string(k)
	}
	return strings.Join(all, ", ")
}
