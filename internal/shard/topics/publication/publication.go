// Package publication has the forms of a message published to a topic: as its publisher gives
// it, as the record that fan-outs and archives keep, and as the notification of one
// subscription.
package publication

import (
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/kernel"
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
	Content    string // on FIFO topics: the id derived from the content, if there is no other
	Trace      string
	Body       []byte            // for every protocol without its own body
	Bodies     map[string]string // by protocol; nil if there are none
	Attributes []message.Attribute
	// Caller is the publisher, who needs permission to use the topic's key; nil: the root of
	// the topic's account. Source is the resource for which a service publishes, else nil.
	// Neither is stored.
	Caller *caller.Caller
	Source *arn.ARN
	// Inspected says that the topic's data protection policy was applied, and Audit has the
	// findings to be audited; nil: none. Neither is stored.
	Inspected bool
	Audit     *protect.Audit
	// Joined is run when the publication is accepted, in the same commit; nil: nothing is. It
	// is not stored.
	Joined *kernel.Joined

	encrypted *ciphers // nil: it is in clear
}

// ciphers are a publication's ciphertexts: the message's, and those of the protocols that have
// their own body.
type ciphers struct {
	message []byte
	own     map[string][]byte
}

// Size is the size of the publication, in bytes, as SNS bills it: of the body, or all bodies,
// and of the attributes.
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
	// Incarnation is the shard's latest at the publish: subscriptions with a later one were
	// created after it.
	Incarnation uint64
	Cursor      string // the id of the last subscription that has got it
	Sequence    uint64 // in a FIFO topic
	Replayed    bool   // it is read from the topic's archive
	P           Publication

	note message.Message // reused by Notification
}

// Message is the publication in the form that filter policies match.
func (r *Record) Message() *filter.Message {
	attributes := make([]filter.Attribute, len(r.P.Attributes))
	for i := range attributes {
		a := &r.P.Attributes[i]
		attributes[i] = filter.Attribute{Name: a.Name, Type: a.Type, Value: string(a.Value)}
	}
	return filter.NewMessage(attributes, r.P.Body)
}

// Notification is the publication as stored in a subscription's backlog. It is valid until the
// next call.
func (r *Record) Notification(sub *topic.Subscription) *message.Message {
	n := r.Unaddressed()
	n.Notice.Subscription, n.Notice.Raw = sub.ARN.String(), sub.Raw
	n.Body, n.Cipher, n.Notice.Own = r.Body(sub), r.P.cipherFor(sub), !r.Shared(sub)
	return n
}

// Unaddressed is the latest Notification, for readers of the fields that all subscriptions
// share.
func (r *Record) Unaddressed() *message.Message {
	if r.note.Notice == nil {
		r.note = r.stored(&message.Notice{})
	}
	return &r.note
}

// Body is the body for a subscription.
func (r *Record) Body(sub *topic.Subscription) []byte {
	if body, ok := r.P.Bodies[sub.BodyName()]; ok {
		return []byte(body)
	}
	return r.P.Body
}

// Shared reports that a subscription gets the common body.
func (r *Record) Shared(sub *topic.Subscription) bool {
	_, own := r.P.Bodies[sub.BodyName()]
	return !own
}

// stored is the publication as a message, without the fields that differ between subscriptions;
// n is its notice.
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
