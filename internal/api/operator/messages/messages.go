// Package messages shows the messages of queues without receiving them, and has the
// operator's actions on single messages and deliveries.
package messages

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"godwit.dev/godwit/internal/api/operator/catalog"
	"godwit.dev/godwit/internal/api/operator/recent"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/inspect"
)

// Options are the dependencies of Messages.
type Options struct {
	Engine   *shard.Engine
	Inspect  *inspect.Inspector
	Operator *deliver.Operator
	Catalog  *catalog.Catalog
	Recent   *recent.Publishes
	NewID    func() string
}

// Messages answers the operations on messages.
type Messages struct{ Options }

// New makes Messages.
func New(o Options) *Messages { return &Messages{o} }

// Message is a message of a queue with its state.
type Message struct {
	Position        string      `json:"position" doc:"Names it in this queue."`
	MessageID       string      `json:"messageId"`
	SentAt          time.Time   `json:"sentAt"`
	State           string      `json:"state" enum:"visible,in-flight,delayed" doc:"visible also where another message of its group is before it."`
	AvailableAt     *time.Time  `json:"availableAt" doc:"When one that is delayed or in flight can be received."`
	Receives        int         `json:"receives" doc:"Also in queues that it was moved here from."`
	FirstReceivedAt *time.Time  `json:"firstReceivedAt"`
	Group           *string     `json:"group"`
	Deduplication   *string     `json:"deduplicationId"`
	SequenceNumber  *string     `json:"sequenceNumber" doc:"Of FIFO queues."`
	Sender          string      `json:"sender"`
	Trace           *string     `json:"trace"`
	SizeBytes       int         `json:"sizeBytes"`
	Encrypted       bool        `json:"encrypted" doc:"It is kept under a key."`
	Refused         *string     `json:"refused" doc:"Why it is not decrypted: it has no body and no attributes then."`
	Unsigned        bool        `json:"unsigned" doc:"A signature of SNS is put into its body when it is first received."`
	Body            string      `json:"body"`
	BodyEncoding    string      `json:"bodyEncoding" enum:"utf-8,base64"`
	BodyTruncated   bool        `json:"bodyTruncated"`
	Attributes      []Attribute `json:"attributes"`
	DeadLetter      *DeadLetter `json:"deadLetter" doc:"Of one that somebody could not handle; else null."`
}

// Attribute is a message attribute.
type Attribute struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Value    string `json:"value"`
	Encoding string `json:"encoding" enum:"utf-8,base64"`
}

// DeadLetter is why a message was moved to the dead-letter queue.
type DeadLetter struct {
	From     string     `json:"from" doc:"ARN of the queue, subscription or function that it comes from; of a function empty."`
	Kind     string     `json:"kind" enum:"queue,subscription,function"`
	Cause    string     `json:"cause"`
	Attempts int        `json:"attempts" doc:"Receives, or attempts at delivery; 0: not known."`
	DiedAt   *time.Time `json:"diedAt"`
}

// ListMessages asks for messages.
type ListMessages struct {
	ARN       string `query:"arn" required:"true" max:"2048" doc:"The queue's."`
	State     string `query:"state" enum:"visible,in-flight,delayed"`
	Search    string `query:"search" max:"1024" doc:"Text in the body, or in an attribute's name or value, whatever its case."`
	ID        string `query:"id" max:"64" doc:"A message id."`
	Group     string `query:"group" max:"128" doc:"A message group."`
	From      string `query:"from" max:"2048" doc:"Dead letters of this queue or subscription, by ARN."`
	Cause     string `query:"cause" max:"1024" doc:"Dead letters with this cause."`
	Limit     int    `query:"limit" min:"1" max:"100" default:"20"`
	Cursor    string `query:"cursor" max:"4096" doc:"next of the page before."`
	BodyBytes int    `query:"bodyBytes" min:"0" max:"65536" default:"4096" doc:"How much of each body at most."`
}

// About implements rest.About.
func (l *ListMessages) About() string { return l.ARN }

// MessagePage is a page of messages, in the order of acceptance; in groups, group by group;
// delayed ones, if only these are requested, by due time.
type MessagePage struct {
	Messages   []Message `json:"messages"`
	Scanned    int       `json:"scanned" doc:"How many were looked at for this page."`
	Total      int64     `json:"total" doc:"How many are in the queue."`
	Unreadable int       `json:"unreadable" doc:"Records that are damaged."`
	Next       *string   `json:"next" doc:"A page may be empty and have one: a call looks at 20,000 messages at most."`
}

// OneMessage names a message.
type OneMessage struct {
	ARN      string `query:"arn" required:"true" max:"2048" doc:"The queue's."`
	Position string `query:"position" required:"true" max:"64"`
}

// About implements rest.About.
func (m *OneMessage) About() string { return m.ARN }

// List shows messages of a queue.
func (m *Messages) List(ctx context.Context, c *rest.Call, in *ListMessages) (*MessagePage, error) {
	queue, err := catalog.ParseQueue(in.ARN)
	if err != nil {
		return nil, err
	}
	q := inspect.Query{Queue: queue, Limit: in.Limit, State: inspect.State(in.State), Group: in.Group, Caller: c.Caller, Match: matcher(in)}
	if q.From, err = readCursor(in.Cursor); err != nil {
		return nil, err
	}
	found, err := m.Inspect.Scan(ctx, q)
	if err != nil {
		return nil, err
	}
	out := &MessagePage{Messages: make([]Message, len(found.Messages)), Scanned: found.Scanned, Total: found.Total, Unreadable: found.Unreadable}
	for i := range found.Messages {
		out.Messages[i] = shown(&found.Messages[i], found.Origin, queue.FIFO(), in.BodyBytes)
	}
	out.Next = writeCursor(found.Next)
	return out, nil
}

// Get shows one message, with its whole body.
func (m *Messages) Get(ctx context.Context, c *rest.Call, in *OneMessage) (*Message, error) {
	queue, err := catalog.ParseQueue(in.ARN)
	if err != nil {
		return nil, err
	}
	at, err := ReadPosition(in.Position)
	if err != nil {
		return nil, err
	}
	found, origin, err := m.Inspect.At(ctx, queue, at.Incarnation, inspect.Place{Lane: at.Lane, Sequence: at.Sequence}, c.Caller)
	if err != nil {
		return nil, err
	}
	out := shown(&found, origin, queue.FIFO(), len(found.Body))
	return &out, nil
}

// matcher returns the filter of a request; nil: all messages match.
func matcher(in *ListMessages) func(*inspect.Message) bool {
	if in.Search == "" && in.ID == "" && in.From == "" && in.Cause == "" {
		return nil
	}
	search := bytes.ToLower([]byte(in.Search))
	return func(m *inspect.Message) bool {
		if in.ID != "" && m.ID.String() != in.ID {
			return false
		}
		if in.From != "" || in.Cause != "" {
			d := deathOf(m)
			if d == nil || in.From != "" && d.From != in.From || in.Cause != "" && d.Cause != in.Cause {
				return false
			}
		}
		return len(search) == 0 || has(m, search)
	}
}

// Picking returns a filter of messages by a text, case-insensitive, by the source of dead
// letters, and by their cause; nil: all match.
func Picking(search, from, cause string) func(*inspect.Message) bool {
	return matcher(&ListMessages{Search: search, From: from, Cause: cause})
}

// tokens match the confirmation tokens in the bodies of SNS's messages.
var tokens = regexp.MustCompile(`(Token(?:"\s*:\s*"|=))[0-9A-Za-z]{16,}`)

// masked is a body without confirmation tokens: a token allows to confirm in the name of the
// queue's owner, which the permission to see messages does not include.
func masked(body []byte) []byte {
	if !bytes.Contains(body, []byte("SubscriptionConfirmation")) && !bytes.Contains(body, []byte("UnsubscribeConfirmation")) {
		return body
	}
	return tokens.ReplaceAll(body, []byte("${1}****"))
}

// has reports whether a message contains a text, which is in lower case.
func has(m *inspect.Message, search []byte) bool {
	return bytes.Contains(bytes.ToLower(masked(m.Body)), search) || hasAttribute(m.Attributes, search)
}

// hasAttribute reports whether an attribute contains a text, which is in lower case.
func hasAttribute(all []message.Attribute, search []byte) bool {
	return slices.ContainsFunc(all, func(a message.Attribute) bool {
		return strings.Contains(strings.ToLower(a.Name), string(search)) || bytes.Contains(bytes.ToLower(a.Value), search)
	})
}

func shown(m *inspect.Message, origin uint64, fifo bool, limit int) Message {
	out := Message{
		Position: Position(m), MessageID: m.ID.String(), SentAt: clock.Time(m.Sent), State: string(m.State),
		Receives: m.Receives, Group: rest.Optional(m.Group), Deduplication: rest.Optional(m.Dedup), Sender: m.Sender, Trace: rest.Optional(m.Trace),
		SizeBytes: m.Size(), Encrypted: m.Encrypted, Unsigned: m.Unsigned != nil, Attributes: shownAttributes(m.Attributes), DeadLetter: deathOf(m),
	}
	if m.Available != 0 {
		out.AvailableAt = moment(m.Available)
	}
	if m.First != 0 {
		out.FirstReceivedAt = moment(m.First)
	}
	if fifo {
		out.SequenceNumber = rest.Optional(message.NumberFrom(origin, m.Sequence))
	}
	if m.Refused != nil {
		out.Refused = rest.Optional(refusal.Text(m.Refused))
	}
	out.Body, out.BodyEncoding, out.BodyTruncated = shownBody(m.Body, limit)
	return out
}

// shownBody is a body in an answer: masked, and truncated to limit bytes.
func shownBody(whole []byte, limit int) (as, encoding string, truncated bool) {
	body := masked(whole)
	if truncated = len(body) > limit; truncated {
		valid := utf8.Valid(body)
		for body = body[:limit]; len(body) > 0 && len(body) > limit-utf8.UTFMax && valid && !utf8.Valid(body); {
			body = body[:len(body)-1] // do not cut a character
		}
	}
	as, encoding = encoded(body)
	return as, encoding, truncated
}

func shownAttributes(all []message.Attribute) []Attribute {
	out := make([]Attribute, len(all))
	for i := range all {
		a := &all[i]
		one := Attribute{Name: a.Name, Type: a.Type}
		if one.Value, one.Encoding = encoded(a.Value); a.Binary() {
			one.Value, one.Encoding = base64.StdEncoding.EncodeToString(a.Value), "base64"
		}
		out[i] = one
	}
	return out
}

// encoded is a value as it is, or, if it is not text, in base64.
func encoded(value []byte) (as, encoding string) {
	if utf8.Valid(value) {
		return string(value), "utf-8"
	}
	return base64.StdEncoding.EncodeToString(value), "base64"
}

// deathOf is why a message was moved to the dead-letter queue; nil: not known.
func deathOf(m *inspect.Message) *DeadLetter {
	switch {
	case m.Source != "":
		d := &DeadLetter{From: m.Source, Kind: "queue", Cause: "received too often without being deleted", Attempts: int(m.Message.Receives)}
		if m.Moved != 0 {
			d.DiedAt = moment(m.Moved)
		}
		return d
	case len(m.Origin) > 0:
		origin, err := message.DecodeRecord(m.Origin)
		if err != nil || origin.Notice == nil {
			return nil
		}
		d := &DeadLetter{From: origin.Notice.Subscription, Kind: "subscription", Cause: origin.Source, Attempts: int(origin.Receives), DiedAt: moment(m.Sent)}
		if d.Cause == "" {
			d.Cause = "not known: an earlier version kept no cause"
		}
		return d
	}
	var cause string
	known := false
	for i := range m.Attributes {
		switch m.Attributes[i].Name {
		case "ErrorMessage":
			cause = string(m.Attributes[i].Value)
		case "ErrorCode":
			known = true
		}
	}
	if !known {
		return nil
	}
	return &DeadLetter{Kind: "function", Cause: causeOf(cause), DiedAt: moment(m.Sent)}
}

// maxCause bounds a cause, in bytes: senders can set any text, and a longer one could not be
// searched for.
const maxCause = 1024

// causeOf is a cause as searchable text.
func causeOf(said string) string {
	said = strings.ToValidUTF8(said, "\uFFFD")
	if len(said) <= maxCause {
		return said
	}
	return strings.ToValidUTF8(said[:maxCause], "") // do not cut a character
}

func moment(milliseconds int64) *time.Time {
	t := clock.Time(milliseconds)
	return &t
}

// Position encodes where a message is for the API: with the incarnation of its queue, as another
// queue of the name has other messages in the same places.
func Position(m *inspect.Message) string {
	return fmt.Sprintf("%d-%d-%d", m.Lane, m.Sequence, m.Incarnation)
}

// ReadPosition decodes the result of Position. Those of versions before, which are in their jobs,
// have no incarnation.
func ReadPosition(s string) (p shard.Picked, err error) {
	parts := strings.Split(s, "-")
	var numbers [3]uint64
	if len(parts) < 2 || len(parts) > len(numbers) {
		return p, errPosition
	}
	for i, part := range parts {
		if numbers[i], err = strconv.ParseUint(part, 10, 64); err != nil {
			return p, errPosition
		}
	}
	return shard.Picked{Lane: layout.Lane(numbers[0]), Sequence: numbers[1], Incarnation: layout.Incarnation(numbers[2])}, nil
}

var errPosition = rest.BadRequest("position: it is none of a message")

func readCursor(s string) (c inspect.Cursor, err error) {
	if s == "" {
		return c, nil
	}
	value, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || json.Unmarshal(value, &c) != nil {
		return c, rest.BadRequest("cursor: it is none of this list")
	}
	return c, nil
}

func writeCursor(c *inspect.Cursor) *string {
	if c == nil {
		return nil
	}
	value, err := json.Marshal(c)
	if err != nil { // numbers
		panic(err)
	}
	return rest.Optional(base64.RawURLEncoding.EncodeToString(value))
}
