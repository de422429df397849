// Package publication is what is published to a topic: as its publisher gives it, as the
// record that fan-outs and archives keep, and as the notification that one subscription
// gets.
package publication

import (
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/topic/filter"
	"godwit.dev/godwit/internal/topic/protect"
)

// Publication is a message for a topic's subscribers.
type Publication struct {
	ID         message.ID
	Sender     string
	Subject    string // empty: none
	Group      string
	Dedup      string // MessageDeduplicationId, on FIFO topics only
	Content    string // on FIFO topics: the id that the content gives, where there is no other
	Trace      string
	Body       []byte            // for every protocol that has no body of its own
	Bodies     map[string]string // by protocol; nil if there are none
	Attributes []message.Attribute
	// Caller is who publishes, who has to have the right to the topic's key; nil: the root
	// of the topic's account. Source is what a service publishes for, else nil. Neither
	// is kept.
	Caller *caller.Caller
	Source *arn.ARN
	// Inspected says that the topic's data protection policy was applied, and Audit what its
	// audit tells; nil: nothing. Neither is kept.
	Inspected bool
	Audit     *protect.Audit

	encrypted *ciphers // nil: it is in clear
}

// ciphers are a publication's ciphertexts: the message's, and by protocol of those that
// have a body of their own.
type ciphers struct {
	message []byte
	own     map[string][]byte
}

// Size is that of what was published, in bytes, as SNS bills it: of the body, or all
// bodies, and of the attributes.
func (p *Publication) Size() int {
	m := message.Message{Body: p.Body, Attributes: p.Attributes}
	size := m.Size()
	for _, own := range p.Bodies {
		size += len(own)
	}
	return size
}

// RecordSize bounds the record of one notification, in bytes.
func (p *Publication) RecordSize() int {
	body := len(p.Body)
	for _, own := range p.Bodies {
		body = max(body, len(own))
	}
	m := message.Message{Attributes: p.Attributes}
	return body + m.Size() + len(p.Subject) + 512
}

// Record is a publication that is being added to the backlogs of its subscriptions, or in an
// archive.
type Record struct {
	Topic     arn.ARN
	Signature byte  // the version of its signature; 0: it is not signed
	Sent      int64 // epoch milliseconds of the publish
	// Incarnation is the shard's latest at the publish: what has a later one was
	// subscribed after it.
	Incarnation uint64
	Cursor      string // the id of the last subscription that has got it
	Sequence    uint64 // in a FIFO topic
	Replayed    bool   // it is read from the topic's archive
	P           Publication

	note message.Message // reused by Notification
}

// Message is the publication as filter policies see it.
func (r *Record) Message() *filter.Message {
	attributes := make([]filter.Attribute, len(r.P.Attributes))
	for i := range attributes {
		a := &r.P.Attributes[i]
		attributes[i] = filter.Attribute{Name: a.Name, Type: a.Type, Value: string(a.Value)}
	}
	return filter.NewMessage(attributes, r.P.Body)
}

// Notification is the publication as it stands in a subscription's backlog. It
// is valid until the next call.
func (r *Record) Notification(sub *topic.Subscription) *message.Message {
	n := r.Unaddressed()
	n.Notice.Subscription, n.Notice.Raw = sub.ARN.String(), sub.Raw
	n.Body, n.Cipher, n.Notice.Own = r.Body(sub), r.P.cipherFor(sub), !r.Shared(sub)
	return n
}

// Unaddressed is the latest Notification, for those who do not look at what differs from
// subscription to subscription.
func (r *Record) Unaddressed() *message.Message {
	if r.note.Notice == nil {
		r.note = r.stored(&message.Notice{})
	}
	return &r.note
}

// Body is what a subscription gets.
func (r *Record) Body(sub *topic.Subscription) []byte {
	if body, ok := r.P.Bodies[sub.BodyName()]; ok {
		return []byte(body)
	}
	return r.P.Body
}

// Shared reports that a subscription gets the body that most get.
func (r *Record) Shared(sub *topic.Subscription) bool {
	_, own := r.P.Bodies[sub.BodyName()]
	return !own
}

// stored is the publication as a message, without what differs from
// subscription to subscription; n is its notice.
func (r *Record) stored(n *message.Notice) message.Message {
	*n = message.Notice{
		Kind: message.Notification, Topic: r.Topic.String(), Subject: r.P.Subject, SignatureVersion: r.Signature,
		Sequence: r.Sequence, Replayed: r.Replayed,
	}
	m := message.Message{
		ID: r.P.ID, Sent: r.Sent, Sender: r.P.Sender, Group: r.P.Group, Dedup: r.P.Dedup, Trace: r.P.Trace,
		Attributes: r.P.Attributes, Body: r.P.Body, Notice: n,
	}
	if r.P.encrypted != nil {
		m.Cipher = r.P.encrypted.message
	}
	return m
}
