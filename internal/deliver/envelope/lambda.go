package envelope

import (
	"github.com/google/uuid"

	"godwit.dev/godwit/internal/fastjson"
	"godwit.dev/godwit/internal/queue/message"
)

// Lambda is the event for a subscribed function: one record, with AWS's members in AWS's
// order. Like AWS's, it always says signature version 1. It is complete if unsigned is nil.
func Lambda(m *message.Message, o Issuer) (event []byte, unsigned *message.Unsigned) {
	n := *m.Notice
	dst := make([]byte, 0, len(m.Body)+len(m.Body)/8+2048)
	dst = append(dst, `{"Records":[{"EventSource":"aws:sns","EventVersion":"1.0"`...)
	dst = tight(dst, "EventSubscriptionArn", n.Subscription)
	dst = append(dst, `,"Sns":{"Type":"`...)
	dst = append(dst, Type(n.Kind)...)
	dst = append(dst, '"')
	dst = tight(dst, "MessageId", uuid.UUID(m.ID).String())
	if n.Kind != message.Notification {
		dst = tight(dst, "Token", n.Token)
	}
	dst = tight(dst, "TopicArn", n.Topic)
	if n.Subject == "" {
		dst = append(dst, `,"Subject":null`...)
	} else {
		dst = tight(dst, "Subject", n.Subject)
	}
	dst = tight(dst, "Message", string(m.Body))
	if n.Kind != message.Notification {
		dst = tight(dst, "SubscribeUrl", subscribeURL(&n, o))
	}
	dst = append(dst, `,"Timestamp":"`...)
	dst = append(appendTime(dst, m), '"')
	if o.Key != [16]byte{} && n.SignatureVersion != 0 {
		unsigned = &message.Unsigned{Key: o.Key, Version: n.SignatureVersion, Digest: digest(&message.Message{
			ID: m.ID, Sent: m.Sent, Body: m.Body, Notice: &n,
		}, o)}
		dst = append(dst, `,"SignatureVersion":"1","Signature":"`...)
		unsigned.Offset = len(dst)
		dst = append(append(dst, placeholder...), '"')
		dst = tight(dst, "SigningCertUrl", o.URL+CertificatePath(o.Key))
	}
	if n.Kind == message.Notification {
		dst = tight(dst, "UnsubscribeUrl", unsubscribeURL(&n, o))
	}
	dst = append(dst, `,"MessageAttributes":{`...)
	for i := range m.Attributes {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = attribute(dst, &m.Attributes[i])
	}
	return append(dst, "}}}]}"...), unsigned
}

// tight appends a member without white space.
func tight(dst []byte, name, value string) []byte {
	dst = append(append(append(dst, `,"`...), name...), `":`...)
	return fastjson.AppendString(dst, value)
}
