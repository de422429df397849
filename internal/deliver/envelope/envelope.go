// Package envelope renders what subscribers get: the JSON envelope around a
// message, and the SQS messages that carry it to queues.
//
// A signature costs a thousand times what the rest of an envelope does, so that
// rendering and signing are two steps: an envelope is rendered with a placeholder for its
// signature and with the digest of what is to be signed (message.Unsigned), and
// package signing fills the placeholder when the first copy leaves. An envelope that
// is not to be signed, as those of FIFO topics are not, has none of
// SignatureVersion, Signature and SigningCertURL.
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

// MaxRawAttributes is how many message attributes raw delivery to a queue
// carries. Source: the SNS developer guide, "Raw message delivery".
const MaxRawAttributes = 10

// ErrTooManyAttributes reports a raw delivery to a queue with more than
// MaxRawAttributes message attributes: a client-side error.
var ErrTooManyAttributes = errors.New("raw delivery to a queue carries at most 10 message attributes")

// replayed marks a message out of a topic's archive: a member of its envelope,
// or with raw delivery an attribute, if the attributes allow one more.
const replayed = "Replayed"

// timestamp is how an envelope writes the moment of the publish: milliseconds, UTC.
const timestamp = "2006-01-02T15:04:05.000Z"

var kinds = map[message.NoticeKind]string{
	message.Notification:             "Notification",
	message.SubscriptionConfirmation: "SubscriptionConfirmation",
	message.UnsubscribeConfirmation:  "UnsubscribeConfirmation",
}

// Type is the name of a notice's kind, in envelopes and in the header
// x-amz-sns-message-type.
func Type(k message.NoticeKind) string { return kinds[k] }

// Issuer is this server as its envelopes show it.
type Issuer struct {
	URL string   // as subscribers reach it, without a slash at the end
	Key [16]byte // the id of the key that signs; zero: nothing is signed
}

// CertificatePath is where the certificate of a signing key is served.
func CertificatePath(key [16]byte) string {
	return CertificatePrefix + hex.EncodeToString(key[:]) + CertificateSuffix
}

// What a CertificatePath begins and ends with.
const (
	CertificatePrefix = "/SimpleNotificationService-"
	CertificateSuffix = ".pem"
)

// Append adds the JSON envelope of m, which must have a Notice, to dst.
// Members, their order and the white space are AWS's; characters that matter in
// HTML are not escaped. unsigned, with an offset from the start of dst, is nil
// if the envelope is whole as it is.
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
	return clock.Time(m.Sent).AppendFormat(dst, timestamp)
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

// Raw reports that m goes out bare. Confirmations never do.
func Raw(m *message.Message) bool { return m.Notice.Raw && m.Notice.Kind == message.Notification }

// Signed reports that m goes out with a signature, wherever it goes.
func Signed(m *message.Message) bool { return !Raw(m) && m.Notice.SignatureVersion != 0 }

// Body is what an HTTP/S endpoint is sent: the envelope, or with raw delivery
// the bare message. It is whole if unsigned is nil.
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

// SQS makes the message that a subscribed queue gets: the envelope as its body,
// or with raw delivery the bare message and its attributes. It is sealed, or
// Unsigned; the queue's shard fills in Sent. The error is ErrTooManyAttributes.
func SQS(m *message.Message, newID message.ID, o Issuer) (*message.Message, error) {
	if Raw(m) && len(m.Attributes) > MaxRawAttributes {
		return nil, ErrTooManyAttributes
	}
	return inQueue(m, newID, o, true), nil
}

// DeadLetter makes the message that a dead-letter queue gets: what an SQS
// subscriber would have got, whatever the protocol; with raw delivery the bare
// body, and its attributes if the subscriber is a queue (fromQueue). Nothing is
// left out: attributes beyond MaxRawAttributes, which may be why the delivery
// failed, are kept. It is sealed, or Unsigned; the queue's shard fills in Sent.
func DeadLetter(m *message.Message, newID message.ID, o Issuer, fromQueue bool) *message.Message {
	return inQueue(m, newID, o, fromQueue)
}

func inQueue(m *message.Message, newID message.ID, o Issuer, attributes bool) *message.Message {
	out := &message.Message{ID: newID, Sender: m.Sender, Group: m.Group, Dedup: m.Dedup, Trace: m.Trace}
	if Raw(m) {
		out.Body = m.Body
		if attributes {
			out.Attributes = m.Attributes
			if m.Notice.Replayed && len(m.Attributes) < MaxRawAttributes {
				out.Attributes = append(slices.Clone(m.Attributes), message.Attribute{Name: replayed, Type: "String", Value: []byte("true")})
			}
		}
	} else {
		out.Body, out.Unsigned = enveloped(m, o)
	}
	if out.Unsigned == nil { // else sealed with its signature
		out.Seal()
	}
	return out
}
