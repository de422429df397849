// Package envelope renders what subscribers receive: the JSON envelope of a message, and the
// SQS messages for queues.
//
// A signature costs a thousand times as much as the rest of an envelope. So rendering and
// signing are separate: an envelope is rendered with a placeholder for the signature and with
// the digest to be signed (message.Unsigned), and package signing replaces the placeholder
// when the first copy leaves the server. An envelope without a signature, as of FIFO topics,
// has no SignatureVersion, Signature and SigningCertURL.
package envelope

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"slices"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fastjson"
	"godwit.dev/godwit/internal/queue/message"
)

// maxRawAttributes bounds the message attributes of raw delivery to a queue. Source: the SNS
// developer guide, "Raw message delivery".
const maxRawAttributes = 10

// ErrTooManyAttributes is the error for raw delivery of more than maxRawAttributes message
// attributes to a queue: a client-side error.
var ErrTooManyAttributes = errors.New("raw delivery to a queue carries at most 10 message attributes")

// replayed marks a message from a topic's archive: as a member of its envelope, or with raw
// delivery as an attribute, if there may be another one.
const replayed = "Replayed"

var kinds = map[message.NoticeKind]string{
	message.Notification:             "Notification",
	message.SubscriptionConfirmation: "SubscriptionConfirmation",
	message.UnsubscribeConfirmation:  "UnsubscribeConfirmation",
}

// Type is the name of a notice's kind in envelopes and in the header x-amz-sns-message-type.
func Type(k message.NoticeKind) string { return kinds[k] }

// Issuer identifies this server in envelopes.
type Issuer struct {
	URL string   // for subscribers, without a final slash
	Key [16]byte // the id of the signing key; zero: no signature
}

// CertificatePath is the path of a signing key's certificate.
func CertificatePath(key [16]byte) string {
	return CertificatePrefix + hex.EncodeToString(key[:]) + CertificateSuffix
}

// The prefix and the suffix of a CertificatePath.
const (
	CertificatePrefix = "/SimpleNotificationService-"
	CertificateSuffix = ".pem"
)

// Append appends the JSON envelope of m, which must have a Notice, to dst. Members, their
// order and the white space are AWS's; HTML characters are not escaped. unsigned has offsets
// from the start of dst; it is nil if the envelope needs no signature.
func Append(dst []byte, m *message.Message, o Issuer) (_ []byte, unsigned *message.Unsigned) {
	n := m.Notice
	confirmation := n.Kind != message.Notification
	dst = append(dst, "{\n  \"Type\" : \""...)
	dst = append(dst, Type(n.Kind)...)
	dst = append(dst, "\",\n  \"MessageId\" : \""...)
	dst = append(dst, uuid.UUID(m.ID).String()...)
	dst = append(dst, '"')
	if n.Sequence != 0 {
		dst = member(dst, "SequenceNumber", message.SequenceNumber(n.Sequence))
	}
	if confirmation {
		dst = member(dst, "Token", n.Token)
	}
	dst = member(dst, "TopicArn", n.Topic)
	if n.Subject != "" {
		dst = member(dst, "Subject", n.Subject)
	}
	dst = member(dst, "Message", string(m.Body))
	if confirmation {
		dst = member(dst, "SubscribeURL", subscribeURL(n, o))
	}
	dst = append(dst, ",\n  \"Timestamp\" : \""...)
	dst = appendTime(dst, m)
	dst = append(dst, '"')
	if n.Replayed {
		dst = member(dst, replayed, "true")
	}
	if o.Key != [16]byte{} && n.SignatureVersion != 0 {
		unsigned = &message.Unsigned{Key: o.Key, Version: n.SignatureVersion, Digest: digest(m, o)}
		dst = append(dst, ",\n  \"SignatureVersion\" : \""...)
		dst = append(dst, '0'+n.SignatureVersion)
		dst = append(dst, "\",\n  \"Signature\" : \""...)
		unsigned.Offset = len(dst)
		dst = append(dst, placeholder...)
		dst = append(dst, '"')
		dst = member(dst, "SigningCertURL", o.URL+CertificatePath(o.Key))
	}
	if !confirmation {
		dst = member(dst, "UnsubscribeURL", unsubscribeURL(n, o))
	}
	if len(m.Attributes) > 0 {
		dst = append(dst, ",\n  \"MessageAttributes\" : {"...)
		for i := range m.Attributes {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, "\n    "...)
			dst = attribute(dst, &m.Attributes[i])
		}
		dst = append(dst, "\n  }"...)
	}
	return append(dst, "\n}"...), unsigned
}

func subscribeURL(n *message.Notice, o Issuer) string {
	return o.URL + "/?Action=ConfirmSubscription&TopicArn=" + n.Topic + "&Token=" + n.Token
}

func unsubscribeURL(n *message.Notice, o Issuer) string {
	return o.URL + "/?Action=Unsubscribe&SubscriptionArn=" + n.Subscription
}

func appendTime(dst []byte, m *message.Message) []byte {
	return clock.Time(m.Sent).AppendFormat(dst, clock.ISO8601)
}

func member(dst []byte, name, value string) []byte {
	dst = append(dst, ",\n  \""...)
	dst = append(dst, name...)
	dst = append(dst, "\" : "...)
	return fastjson.AppendString(dst, value)
}

func attribute(dst []byte, a *message.Attribute) []byte {
	dst = fastjson.AppendString(dst, a.Name)
	dst = append(dst, ` : {"Type":`...)
	dst = fastjson.AppendString(dst, a.Type)
	dst = append(dst, `,"Value":`...)
	if a.Binary() {
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, a.Value)
		dst = append(dst, '"')
	} else {
		dst = fastjson.AppendString(dst, string(a.Value))
	}
	return append(dst, '}')
}

// Raw reports whether m is delivered raw. Confirmations never are.
func Raw(m *message.Message) bool { return m.Notice.Raw && m.Notice.Kind == message.Notification }

// Signed reports whether m is delivered with a signature, by any protocol.
func Signed(m *message.Message) bool { return !Raw(m) && m.Notice.SignatureVersion != 0 }

// Body is the body for an HTTP/S endpoint: the envelope, or with raw delivery the message
// alone. It is complete if unsigned is nil.
func Body(m *message.Message, o Issuer) (body []byte, unsigned *message.Unsigned) {
	if Raw(m) {
		return m.Body, nil
	}
	return enveloped(m, o)
}

func enveloped(m *message.Message, o Issuer) ([]byte, *message.Unsigned) {
	size := len(m.Body) + len(m.Body)/8 + 1536
	for i := range m.Attributes {
		size += 64 + 2*len(m.Attributes[i].Value)
	}
	return Append(make([]byte, 0, size), m, o)
}

// ErrRawText is the error for raw delivery of a text that SQS does not take: the envelope would
// carry it, which escapes it, and is never empty.
var ErrRawText = errors.New("raw delivery to a queue carries no empty text and no control characters")

// SQS makes the message for a subscribed queue: the envelope as its body, or with raw
// delivery the message and its attributes. It is sealed, or has Unsigned; the queue's shard
// sets Sent. Errors: ErrTooManyAttributes, ErrRawText.
func SQS(m *message.Message, newID message.ID, o Issuer) (*message.Message, error) {
	if Raw(m) {
		switch {
		case len(m.Attributes) > maxRawAttributes:
			return nil, ErrTooManyAttributes
		case !m.Sendable():
			return nil, ErrRawText
		}
	}
	return inQueue(m, newID, o, Raw(m), true), nil
}

// DeadLetter makes the message for a dead-letter queue. Whatever the protocol, it is what an
// SQS subscriber would receive; with raw delivery the body alone, and with its attributes if
// the subscriber is a queue (fromQueue). All attributes are kept, also beyond
// maxRawAttributes, which may be why the delivery failed. What SQS does not take raw is in the
// envelope. It is sealed, or has Unsigned; the queue's shard sets Sent.
func DeadLetter(m *message.Message, newID message.ID, o Issuer, fromQueue bool) *message.Message {
	raw := Raw(m)
	if raw {
		kept := message.Message{Body: m.Body}
		if fromQueue {
			kept.Attributes = m.Attributes
		}
		raw = kept.Sendable()
	}
	return inQueue(m, newID, o, raw, fromQueue)
}

// RawDeadLetter is DeadLetter without an envelope, for a queue to which the envelope is too long,
// whatever SQS takes: it is all that is left of the message. nil: the delivery is not raw.
func RawDeadLetter(m *message.Message, newID message.ID, fromQueue bool) *message.Message {
	if !Raw(m) {
		return nil
	}
	return inQueue(m, newID, Issuer{}, true, fromQueue) // which only an envelope names
}

func inQueue(m *message.Message, newID message.ID, o Issuer, raw, attributes bool) *message.Message {
	out := &message.Message{ID: newID, Sender: m.Sender, Group: m.Group, Dedup: m.Dedup, Trace: m.Trace}
	if raw {
		out.Body = m.Body
		if attributes {
			out.Attributes = m.Attributes
			if m.Notice.Replayed && len(m.Attributes) < maxRawAttributes {
				out.Attributes = append(slices.Clone(m.Attributes), message.Attribute{Name: replayed, Type: "String", Value: []byte("true")})
			}
		}
	} else {
		out.Body, out.Unsigned = enveloped(m, o)
	}
	switch {
	case out.Unsigned != nil: // it is sealed with the signature
	case raw && m.BodyMD5 != [16]byte{}: // it is known already
		out.SealAs(m.BodyMD5)
	default:
		out.Seal()
	}
	return out
}
