package publication

import (
	"encoding/binary"
	"maps"
	"slices"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/message"
)

// Encode encodes the record: the fields that a message lacks, then a message's record.
func (r *Record) Encode() []byte { return r.AppendTo(nil) }

// AppendTo appends the encoding.
func (r *Record) AppendTo(buf []byte) []byte {
	buf = mutation.AppendText(buf, r.Cursor)
	buf = binary.AppendUvarint(buf, r.Incarnation)
	buf = binary.AppendUvarint(buf, uint64(len(r.P.Bodies)))
	if len(r.P.Bodies) > 0 { // rarely
		buf = r.appendBodies(buf)
	}
	var n message.Notice
	m := r.stored(&n)
	return m.AppendRecord(buf)
}

// appendBodies appends the bodies of single protocols, ordered by protocol.
func (r *Record) appendBodies(buf []byte) []byte {
	for _, protocol := range slices.Sorted(maps.Keys(r.P.Bodies)) {
		body := r.P.Bodies[protocol]
		if r.P.Encrypted() {
			body = string(r.P.encrypted.own[protocol])
		}
		buf = mutation.AppendText(mutation.AppendText(buf, protocol), body)
	}
	return buf
}

// Decode decodes a record. Ciphertexts stay encrypted until Open. Errors: message.ErrCorrupt,
// and that of a topic's name.
func Decode(p []byte) (Record, error) {
	var r Record
	var ok bool
	if r.Cursor, p, ok = mutation.TakeText(p); !ok {
		return Record{}, message.ErrCorrupt
	}
	var w int
	if r.Incarnation, w = binary.Uvarint(p); w <= 0 {
		return Record{}, message.ErrCorrupt
	}
	p = p[w:]
	n, w := binary.Uvarint(p)
	if w <= 0 {
		return Record{}, message.ErrCorrupt
	}
	p = p[w:]
	var bodies map[string]string
	for range n {
		var protocol, body string
		if protocol, p, ok = mutation.TakeText(p); !ok {
			return Record{}, message.ErrCorrupt
		}
		if body, p, ok = mutation.TakeText(p); !ok {
			return Record{}, message.ErrCorrupt
		}
		if bodies == nil {
			bodies = map[string]string{}
		}
		bodies[protocol] = body
	}
	m, err := message.DecodeRecord(p)
	if err != nil {
		return Record{}, err
	}
	if m.Notice == nil {
		return Record{}, message.ErrCorrupt
	}
	r.Topic, err = arn.Parse(m.Notice.Topic)
	r.Signature, r.Sent, r.Sequence = m.Notice.SignatureVersion, m.Sent, m.Notice.Sequence
	r.P.ID, r.P.Sender, r.P.Subject, r.P.Trace = m.ID, m.Sender, m.Notice.Subject, m.Trace
	r.P.Group, r.P.Dedup = m.Group, m.Dedup
	r.P.Attributes, r.P.Body, r.P.Bodies = m.Attributes, m.Body, bodies
	if m.Cipher != nil {
		all := &ciphers{message: m.Cipher, own: make(map[string][]byte, len(bodies))}
		for protocol, cipher := range bodies {
			all.own[protocol] = []byte(cipher)
		}
		r.P.encrypted, r.P.Bodies = all, nil
	}
	return r, err
}
