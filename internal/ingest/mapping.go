package ingest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"godwit.dev/godwit/internal/arn"
)

// Reason is why a post is refused, for metrics.
type Reason string

// The reasons.
const (
	Unknown      Reason = "unknown_source"
	Unsigned     Reason = "unsigned"  // what has to be verified is missing or unreadable
	Forged       Reason = "signature" // it matches none of the secrets
	Untimely     Reason = "timestamp" // signed too long ago, or in the future
	Unencodable  Reason = "media_type"
	Unreadable   Reason = "body"
	Unmapped     Reason = "mapping" // the body lacks a value of the mapping
	TooLarge     Reason = "size"
	TooSlow      Reason = "slow"
	TooMany      Reason = "rate"
	TooManyNow   Reason = "concurrency"
	Stopped      Reason = "paused"
	TargetFails  Reason = "target"   // it does not exist, or denies the send
	Rejected     Reason = "rejected" // the target refuses the message
	NotNow       Reason = "unavailable"
	Uncertified  Reason = "certificate" // of SNS: it cannot be fetched
	WrongRequest Reason = "request"     // method or path
)

// Reasons are all reasons.
var Reasons = []Reason{
	Unknown, Unsigned, Forged, Untimely, Uncertified, Unencodable, Unreadable, Unmapped, TooLarge, TooSlow, TooMany, TooManyNow, Stopped,
	TargetFails, Rejected, NotNow, WrongRequest,
}

// Attribute is a message attribute: a String, Number or String.Array.
type Attribute struct{ Name, Type, Value string }

// Event is the message of a verified post.
type Event struct {
	ID         string // the provider's; empty: it has none
	Body       string
	Subject    string // empty: none
	Attributes []Attribute
	Group      string // empty: none
	Dedup      string // of FIFO targets; else empty
}

// origin is the source of an attribute's value.
type origin struct {
	pointer Pointer
	header  string // in place of the pointer
	id      bool   // the provider's id of the event
}

func parseOrigin(from string) (o origin, err error) {
	name, isHeader := strings.CutPrefix(from, "header:")
	switch {
	case from == "id":
		o.id = true
	case isHeader && validHeader(name) && !credential(name):
		o.header = name
	case isHeader && validHeader(name):
		err = errors.New(name + " can have a secret")
	case isHeader:
		err = errors.New("want header: and the name of a header")
	case from == "":
		err = errors.New("want a JSON pointer, header:NAME or id")
	default:
		o.pointer, err = parsePointer(from)
	}
	return o, err
}

// credential reports whether a header may have a secret, which must not become an attribute.
func credential(name string) bool {
	switch strings.ToLower(name) {
	case "authorization", "proxy-authorization", "cookie", "x-api-key":
		return true
	}
	return false
}

// mapper is a compiled mapping.
type mapper struct {
	name             string // of the source
	message, subject Pointer
	group, dedup     Pointer
	id               Pointer // of the provider's id, if that is in the body
	idHeader         string
	whole, json      bool // the message is the whole body; the body must be parsed
	has              struct{ subject, group, dedup, id bool }
	fifo             bool
	names            []string // of the attributes, sorted
	origins          []origin
}

func newMapper(s *Source, target arn.ARN) (m mapper, err error) {
	from := s.Mapping
	m.name, m.fifo = s.Name, target.FIFO()
	if m.idHeader = s.Verification.idHeader(); s.Verification.secret(m.idHeader) {
		m.idHeader = ""
	}
	id := idPointers[s.Verification.Kind]
	if s.Verification.Kind == SNS && from.Message == "" {
		from.Message = "/Message" // the publisher's message
	}
	m.whole = from.Message == ""
	m.has.subject, m.has.group, m.has.dedup, m.has.id = from.Subject != "", from.GroupID != "", from.DeduplicationID != "", id != ""
	for _, p := range []struct {
		to   *Pointer
		text string
	}{{&m.message, from.Message}, {&m.subject, from.Subject}, {&m.group, from.GroupID}, {&m.dedup, from.DeduplicationID}, {&m.id, id}} {
		if *p.to, err = parsePointer(p.text); err != nil {
			return m, err
		}
	}
	m.json = !m.whole || m.has.subject || m.has.group || m.has.dedup || m.has.id
	for _, name := range slices.Sorted(maps.Keys(from.Attributes)) {
		o, err := parseOrigin(from.Attributes[name])
		if err != nil {
			return m, err
		}
		if s.Verification.secret(o.header) {
			continue
		}
		m.names = append(m.names, name)
		m.json = m.json || !o.id && o.header == ""
		m.origins = append(m.origins, o)
	}
	return m, nil
}

// Map makes a message of a verified post. It does not keep body. Errors: *Refusal.
func (c *Compiled) Map(h Header, body []byte) (e Event, err error) {
	m := &c.mapper
	if !utf8.Valid(body) {
		return e, &Refusal{Unreadable, ErrNotUTF8}
	}
	d := document{raw: body}
	if m.json && !json.Valid(body) {
		if !c.strict() {
			d.raw = nil // it was only parsed for the provider's id
		} else {
			return e, &Refusal{Unreadable, ErrNotJSON}
		}
	}
	if e.ID = one(h, m.idHeader); m.has.id {
		e.ID, _ = text(d.find(m.id))
	}
	if m.whole {
		e.Body = string(body)
	} else if e.Body, err = m.required(&d, m.message, c.Mapping.Message); err != nil {
		return e, err
	}
	if e.Body == "" {
		return e, &Refusal{Unmapped, ErrEmpty}
	}
	if m.has.subject {
		e.Subject, _ = text(d.find(m.subject))
	}
	if m.has.group {
		if e.Group, err = m.required(&d, m.group, c.Mapping.GroupID); err != nil {
			return e, err
		}
		e.Group = usable(e.Group)
	} else if m.fifo {
		e.Group = m.name
	}
	for i, name := range m.names {
		if a := m.attribute(&d, h, &m.origins[i], e.ID); a.Value != "" {
			a.Name = name
			e.Attributes = append(e.Attributes, a)
		}
	}
	if m.fifo {
		if e.Dedup = m.ownDedup(e.ID, body); m.has.dedup {
			if e.Dedup, err = m.required(&d, m.dedup, c.Mapping.DeduplicationID); err != nil {
				return e, err
			}
		}
		e.Dedup = usable(e.Dedup)
	}
	return e, nil
}

// strict reports whether the mapping itself needs the parsed body.
func (c *Compiled) strict() bool {
	m := &c.mapper
	if !m.whole || m.has.subject || m.has.group || m.has.dedup {
		return true
	}
	return slices.ContainsFunc(m.origins, func(o origin) bool { return !o.id && o.header == "" })
}

func (m *mapper) required(d *document, p Pointer, written string) (string, error) {
	s, ok := text(d.find(p))
	if !ok || s == "" {
		return "", &Refusal{Unmapped, ErrNoValue.With(written)}
	}
	return s, nil
}

// attribute is an attribute, or empty if the post does not have the value. A header may have
// bytes that are no text in UTF-8, which no message has: they are replaced.
func (m *mapper) attribute(d *document, h Header, o *origin, id string) Attribute {
	switch {
	case o.id:
		return Attribute{Type: "String", Value: strings.ToValidUTF8(id, "\uFFFD")}
	case o.header != "":
		return Attribute{Type: "String", Value: strings.ToValidUTF8(one(h, o.header), "\uFFFD")}
	}
	value := d.find(o.pointer)
	s, ok := text(value)
	if !ok {
		return Attribute{}
	}
	switch c := value[0]; {
	case c == '-' || c >= '0' && c <= '9':
		return Attribute{Type: "Number", Value: s}
	case c == '[':
		return Attribute{Type: "String.Array", Value: s}
	default:
		return Attribute{Type: "String", Value: s}
	}
}

// ownDedup is the deduplication id of an event: of its id, or else of its body. It differs from
// source to source, since several may have one target, and providers' ids are only their own.
func (m *mapper) ownDedup(id string, body []byte) string {
	h := sha256.New()
	h.Write([]byte(m.name))
	if id == "" {
		h.Write([]byte{0, 0})
		h.Write(body)
	} else {
		h.Write([]byte{0, 1})
		h.Write([]byte(id))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// usable is an id that topics and queues accept: 1 to 128 letters, digits and punctuation. An
// invalid one is replaced by its hash.
func usable(id string) string {
	if len(id) > 128 || strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c > '~' }) {
		sum := sha256.Sum256([]byte(id))
		return hex.EncodeToString(sum[:])
	}
	return id
}
