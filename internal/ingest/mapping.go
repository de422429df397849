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

// Reason is why a post is refused, as metrics have it.
type Reason string

// The reasons.
const (
	Unknown      Reason = "unknown_source"
	Unsigned     Reason = "unsigned"  // what has to be verified is missing, or cannot be read
	Forged       Reason = "signature" // it is not what one of the secrets gives
	Untimely     Reason = "timestamp" // it was signed too long ago, or will be
	Unencodable  Reason = "media_type"
	Unreadable   Reason = "body"
	Unmapped     Reason = "mapping" // what the mapping asks for is not in the body
	TooLarge     Reason = "size"
	TooSlow      Reason = "slow"
	TooMany      Reason = "rate"
	TooManyNow   Reason = "concurrency"
	Stopped      Reason = "paused"
	TargetFails  Reason = "target"   // it is not there, or may not be sent to
	Rejected     Reason = "rejected" // the target takes no such message
	NotNow       Reason = "unavailable"
	Uncertified  Reason = "certificate" // of SNS: it cannot be had
	WrongRequest Reason = "request"     // method or path
)

// Reasons are all of them.
var Reasons = []Reason{
	Unknown, Unsigned, Forged, Untimely, Uncertified, Unencodable, Unreadable, Unmapped, TooLarge, TooSlow, TooMany, TooManyNow, Stopped,
	TargetFails, Rejected, NotNow, WrongRequest,
}

// Refusal refuses a post.
type Refusal struct {
	Reason Reason
	Text   string // for whoever posted, without anything of the body
}

func (r *Refusal) Error() string { return "ingest: " + string(r.Reason) + ": " + r.Text }

// Attribute is a message attribute: a String, Number or String.Array.
type Attribute struct{ Name, Type, Value string }

// Event is what becomes of a post that is verified.
type Event struct {
	ID         string // the provider's; empty: it has none
	Body       string
	Subject    string // empty: none
	Attributes []Attribute
	Group      string // empty: none
	Dedup      string // of FIFO targets; else empty
}

// origin is where an attribute's value comes from.
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
		o.pointer, err = ParsePointer(from)
	}
	return o, err
}

// credential reports that a header can have a secret, which is not to become an attribute.
func credential(name string) bool {
	switch strings.ToLower(name) {
	case "authorization", "proxy-authorization", "cookie", "x-api-key":
		return true
	}
	return false
}

// mapper is a mapping that was read.
type mapper struct {
	name             string // of the source
	message, subject Pointer
	group, dedup     Pointer
	id               Pointer // of the provider's id, if that is in the body
	idHeader         string
	whole, json      bool // the message is the whole body; the body is looked into
	has              struct{ subject, group, dedup, id bool }
	fifo             bool
	names            []string // of the attributes, sorted
	origins          []origin
}

func newMapper(s *Source, target arn.ARN) (m mapper, err error) {
	from := s.Mapping
	m.name, m.fifo = s.Name, target.FIFO()
	m.idHeader = s.Verification.idHeader()
	id := idPointers[s.Verification.Kind]
	if s.Verification.Kind == SNS && from.Message == "" {
		from.Message = "/Message" // which is what its publisher has written
	}
	m.whole = from.Message == ""
	m.has.subject, m.has.group, m.has.dedup, m.has.id = from.Subject != "", from.GroupID != "", from.DeduplicationID != "", id != ""
	for _, p := range []struct {
		to   *Pointer
		text string
	}{{&m.message, from.Message}, {&m.subject, from.Subject}, {&m.group, from.GroupID}, {&m.dedup, from.DeduplicationID}, {&m.id, id}} {
		if *p.to, err = ParsePointer(p.text); err != nil {
			return m, err
		}
	}
	m.json = !m.whole || m.has.subject || m.has.group || m.has.dedup || m.has.id
	m.names = slices.Sorted(maps.Keys(from.Attributes))
	for _, name := range m.names {
		o, err := parseOrigin(from.Attributes[name])
		if err != nil {
			return m, err
		}
		m.json = m.json || !o.id && o.header == ""
		m.origins = append(m.origins, o)
	}
	return m, nil
}

// Map makes a message of a post that was verified. It does not keep body. Errors: *Refusal.
func (c *Compiled) Map(h Header, body []byte) (e Event, err error) {
	m := &c.mapper
	if !utf8.Valid(body) {
		return e, &Refusal{Unreadable, "The body has to be text in UTF-8."}
	}
	d := document{raw: body}
	if m.json && !json.Valid(body) {
		if !c.strict() {
			d.raw = nil // only the provider's id was looked for
		} else {
			return e, &Refusal{Unreadable, "The body has to be JSON, and cannot be read as such."}
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
		return e, &Refusal{Unmapped, "The message would be empty, which no queue takes."}
	}
	if m.has.subject {
		e.Subject, _ = text(d.find(m.subject))
	}
	if m.has.group {
		if e.Group, err = m.required(&d, m.group, c.Mapping.GroupID); err != nil {
			return e, err
		}
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
		e.Dedup = e.ID
		if m.has.dedup {
			if e.Dedup, err = m.required(&d, m.dedup, c.Mapping.DeduplicationID); err != nil {
				return e, err
			}
		}
		e.Dedup = usable(e.Dedup, body)
		e.Group = usable(e.Group, nil)
	}
	return e, nil
}

// strict reports that the mapping itself looks into the body.
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
		return "", &Refusal{Unmapped, "The body has nothing at " + written + "."}
	}
	return s, nil
}

// attribute is empty where the post has no such value.
func (m *mapper) attribute(d *document, h Header, o *origin, id string) Attribute {
	switch {
	case o.id:
		return Attribute{Type: "String", Value: id}
	case o.header != "":
		return Attribute{Type: "String", Value: one(h, o.header)}
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

// usable is an id as FIFO topics and queues take it: 1 to 128 letters, digits and
// punctuation. Another one is replaced by its hash, an empty one by the hash of otherwise.
func usable(id string, otherwise []byte) string {
	if id == "" {
		sum := sha256.Sum256(otherwise)
		return hex.EncodeToString(sum[:])
	}
	if len(id) > 128 || strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c > '~' }) {
		sum := sha256.Sum256([]byte(id))
		return hex.EncodeToString(sum[:])
	}
	return id
}
