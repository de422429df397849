// Package message is what a queue holds: the message, its digests, and the record
// in which it is stored.
package message

import (
	"cmp"
	"crypto/md5" //nolint:gosec // the SQS protocol's checksum, not a protection
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"godwit.dev/godwit/internal/multimd5"
	"godwit.dev/godwit/internal/mutation"
)

// ErrCorrupt reports stored bytes that are no record of a message.
var ErrCorrupt = errors.New("message: corrupt record")

// ID is a message's id: the 16 bytes of a UUID.
type ID [16]byte

// String writes the id as UUIDs are written.
func (id ID) String() string {
	var b [36]byte
	hex.Encode(b[:8], id[:4])
	hex.Encode(b[9:13], id[4:6])
	hex.Encode(b[14:18], id[6:8])
	hex.Encode(b[19:23], id[8:10])
	hex.Encode(b[24:], id[10:])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// Attribute is a user attribute of a message. Value holds the text of a String
// or Number and the raw bytes of a Binary.
type Attribute struct {
	Name  string
	Type  string // "String", "Number", "Binary", "String.Array", each with an optional ".label"
	Value []byte
}

// Binary reports whether the value is bytes rather than text.
func (a Attribute) Binary() bool {
	return a.Type == "Binary" || len(a.Type) > 7 && a.Type[:7] == "Binary."
}

// Message is what a queue holds. Once accepted it never changes; what does
// (receive count, due time, lease) is kept beside it.
type Message struct {
	ID     ID
	Sent   int64  // epoch milliseconds of the first send; retention counts from it
	Sender string // SenderId: an account or an access key's principal
	Group  string // MessageGroupId, or empty
	Dedup  string // MessageDeduplicationId, or empty
	Trace  string // AWSTraceHeader, or empty
	// Source is the ARN of the queue that a dead letter came from by its
	// maxReceiveCount, or empty.
	Source string
	// Receives and FirstReceived are the history of a message that was moved here
	// from another queue: how often it was received there, and the epoch
	// milliseconds of the first time.
	Receives      uint32
	FirstReceived int64
	// Moved is when the queue's dead-letter rule moved it here, in epoch
	// milliseconds; 0: it did not. Sent stays what it was, as retention counts from it.
	Moved         int64
	Attributes    []Attribute
	Body          []byte
	BodyMD5       [md5.Size]byte // with Notice, all zero where it is not known yet
	AttributesMD5 [md5.Size]byte // all zero without attributes
	// Notice is set in the backlog of a subscription only.
	Notice *Notice
	// Origin is, of a dead letter of a subscription, the record that the message
	// had in its backlog, from which it can be delivered again.
	Origin []byte
	// Unsigned is set while Body lacks its signature, and BodyMD5 with it.
	Unsigned *Unsigned
	// Cipher is, of a message that is encrypted, what stands in the record in place of
	// the body, the attributes and Unsigned. Those are empty until Decrypt.
	Cipher []byte
}

// Unsigned says which signature a body still lacks, and where it goes. The body
// has its final length already, with something in the place of the signature.
type Unsigned struct {
	Key     [16]byte // the id of the key that the body names
	Version byte     // 1: RSA over SHA-1, 2: RSA over SHA-256
	Digest  []byte   // of what is signed
	Offset  int      // of the signature's first byte in the body
}

// NoticeKind says what a message in a subscription's backlog is.
type NoticeKind byte

// The kinds of notice.
const (
	Notification             NoticeKind = 1
	SubscriptionConfirmation NoticeKind = 2
	UnsubscribeConfirmation  NoticeKind = 3
	PlatformEvent            NoticeKind = 4 // of an endpoint, for the topic that wants to know
)

// Notice is what rendering a publish for a subscriber needs beyond the body
// and its attributes, fixed at the time of the publish.
type Notice struct {
	Kind             NoticeKind
	Topic            string // ARN
	Subscription     string // ARN
	Subject          string // empty: none was given
	Token            string // for confirmations; of what was published to no topic, whom it is for
	Raw              bool   // RawMessageDelivery at the time of the publish
	SignatureVersion byte   // 1 or 2; 0: it is not signed, as on a FIFO topic
	Sequence         uint64 // of the message in its FIFO topic; 0: the topic is a standard one
	Replayed         bool   // it comes out of the topic's archive
	Own              bool   // the body was published for this protocol or platform alone
}

// ownBit stands in the kind of a notice with Own.
const ownBit = 1 << 7

// SequenceNumber writes a sequence as AWS does, in 20 digits.
func SequenceNumber(n uint64) string { return fmt.Sprintf("1%019d", n) }

// legacyOrigin is where the sequence numbers of all queues and topics once began.
const legacyOrigin = 10_000_000_000_000_000_000

// NewOrigin chooses where the sequence numbers of a queue or topic begin, by its ARN and
// its incarnation: far from where those of any other do, so that nobody takes
// numbers of two for the same. It is a number of 20 digits with room for 10^18 more.
func NewOrigin(arn string, incarnation uint64) uint64 {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(arn), incarnation))
	const low, room = 11_000_000_000_000_000_000, 6_000_000_000_000_000_000
	return low + binary.BigEndian.Uint64(sum[:])%room
}

// NumberFrom writes a sequence as AWS does, in 20 digits, counted from an origin; 0 is
// the one that all had before each got its own.
func NumberFrom(origin, n uint64) string {
	return strconv.FormatUint(cmp.Or(origin, legacyOrigin)+n, 10)
}

// Seal computes the digests that SQS answers to senders and receivers.
func (m *Message) Seal() {
	m.SealAs(md5.Sum(m.Body)) //nolint:gosec // see the import
}

// SealAs is Seal where the body's digest is known already.
func (m *Message) SealAs(bodyMD5 [md5.Size]byte) {
	m.BodyMD5 = bodyMD5
	m.sealAttributes()
}

func (m *Message) sealAttributes() {
	m.AttributesMD5 = [md5.Size]byte{}
	if len(m.Attributes) > 0 {
		m.AttributesMD5 = AttributesMD5(m.Attributes)
	}
}

// SealAll seals several messages in less time than each by itself.
func SealAll(msgs []*Message) {
	var digests multimd5.Batch
	for _, m := range msgs {
		digests.Add(&m.BodyMD5, m.Body)
		m.sealAttributes()
	}
	digests.Flush()
}

// Size is what counts against MaximumMessageSize, in bytes: the body, and the
// names, types and values of the attributes.
func (m *Message) Size() int {
	n := len(m.Body)
	if m.Body == nil { // encrypted: a little more than it was
		n = len(m.Cipher)
	}
	for i := range m.Attributes {
		a := &m.Attributes[i]
		n += len(a.Name) + len(a.Type) + len(a.Value)
	}
	return n
}

// RecordHead is what most records have besides body and attributes at most, in bytes.
const RecordHead = 128

// The first byte of a record is its version; the second holds these flags.
const (
	recordVersion    = 1
	encryptedVersion = 2 // the same, with Cipher for a body
)

const (
	flagAttributes = 1 << iota
	flagExtra      // any of Group, Dedup, Trace, Source
	flagNotice
	flagRaw
	flagPast // Receives and FirstReceived, and Moved
	flagOrigin
	flagUnsigned
	flagSequence // of the notice, with Replayed in its highest bit
)

// replayedBit marks the sequence of a replayed message, and movedBit the count of
// receives behind which Moved follows.
const (
	replayedBit = 1 << 63
	movedBit    = 1 << 31
)

// sentOffset is where a record keeps Sent, so that a scan need not decode it.
const sentOffset = 2

// AppendRecord encodes m behind buf.
func (m *Message) AppendRecord(buf []byte) []byte {
	if m.Cipher != nil {
		at := len(buf)
		buf = m.sealed().AppendRecord(buf)
		buf[at] = encryptedVersion
		return buf
	}
	flags := m.recordFlags()
	buf = slices.Grow(buf, m.Size()+RecordHead)
	buf = append(buf, recordVersion, flags)
	buf = binary.BigEndian.AppendUint64(buf, uint64(m.Sent))
	buf = append(buf, m.ID[:]...)
	buf = append(buf, m.BodyMD5[:]...)
	buf = mutation.AppendText(buf, m.Sender)
	if flags&flagExtra != 0 {
		buf = mutation.AppendText(buf, m.Group)
		buf = mutation.AppendText(buf, m.Dedup)
		buf = mutation.AppendText(buf, m.Trace)
		buf = mutation.AppendText(buf, m.Source)
	}
	if flags&flagPast != 0 {
		receives := m.Receives &^ movedBit
		if m.Moved != 0 {
			receives |= movedBit
		}
		buf = binary.BigEndian.AppendUint32(buf, receives)
		buf = binary.BigEndian.AppendUint64(buf, uint64(m.FirstReceived))
		if m.Moved != 0 {
			buf = binary.BigEndian.AppendUint64(buf, uint64(m.Moved))
		}
	}
	if flags&flagOrigin != 0 {
		buf = mutation.AppendText(buf, m.Origin)
	}
	if m.Notice != nil {
		buf = m.Notice.append(buf)
	}
	if u := m.Unsigned; u != nil {
		buf = append(append(buf, u.Key[:]...), u.Version)
		buf = mutation.AppendText(buf, u.Digest)
		buf = binary.AppendUvarint(buf, uint64(u.Offset))
	}
	if flags&flagAttributes != 0 {
		buf = append(buf, m.AttributesMD5[:]...)
		buf = binary.AppendUvarint(buf, uint64(len(m.Attributes)))
		for i := range m.Attributes {
			a := &m.Attributes[i]
			buf = mutation.AppendText(buf, a.Name)
			buf = mutation.AppendText(buf, a.Type)
			buf = mutation.AppendText(buf, a.Value)
		}
	}
	return append(buf, m.Body...)
}

// recordFlags says which parts the record has.
func (m *Message) recordFlags() (flags byte) {
	if len(m.Attributes) > 0 {
		flags |= flagAttributes
	}
	if m.Group != "" || m.Dedup != "" || m.Trace != "" || m.Source != "" {
		flags |= flagExtra
	}
	if len(m.Origin) > 0 {
		flags |= flagOrigin
	}
	if m.Receives > 0 || m.FirstReceived != 0 || m.Moved != 0 {
		flags |= flagPast
	}
	if m.Notice != nil {
		flags |= flagNotice
		if m.Notice.Raw {
			flags |= flagRaw
		}
		if m.Notice.Sequence != 0 {
			flags |= flagSequence
		}
	}
	if m.Unsigned != nil {
		flags |= flagUnsigned
	}
	return flags
}

// append encodes a notice behind buf; recordFlags has what it leaves out.
func (n *Notice) append(buf []byte) []byte {
	kind := byte(n.Kind)
	if n.Own {
		kind |= ownBit
	}
	buf = append(buf, kind, n.SignatureVersion)
	buf = mutation.AppendText(buf, n.Topic)
	buf = mutation.AppendText(buf, n.Subscription)
	buf = mutation.AppendText(buf, n.Subject)
	buf = mutation.AppendText(buf, n.Token)
	if n.Sequence != 0 {
		sequence := n.Sequence
		if n.Replayed {
			sequence |= replayedBit
		}
		buf = binary.BigEndian.AppendUint64(buf, sequence)
	}
	return buf
}

// DecodeRecord reads what AppendRecord wrote. The body, the attributes' values
// and the digest of what is to be signed alias p.
func DecodeRecord(p []byte) (*Message, error) {
	if len(p) < 2 || p[0] != recordVersion && p[0] != encryptedVersion {
		return nil, fmt.Errorf("%w: version", ErrCorrupt)
	}
	flags := p[1]
	if p[0] == encryptedVersion && flags&(flagAttributes|flagUnsigned) != 0 {
		return nil, fmt.Errorf("%w: flags", ErrCorrupt)
	}
	r := reader{p: p[2:]}
	m := &Message{Sent: int64(r.uint64())}
	copy(m.ID[:], r.fixed(len(m.ID)))
	copy(m.BodyMD5[:], r.fixed(len(m.BodyMD5)))
	m.Sender = r.string()
	if flags&flagExtra != 0 {
		m.Group, m.Dedup, m.Trace, m.Source = r.string(), r.string(), r.string(), r.string()
	}
	if flags&flagPast != 0 {
		receives := binary.BigEndian.Uint32(r.fixed(4))
		m.Receives, m.FirstReceived = receives&^movedBit, int64(r.uint64())
		if receives&movedBit != 0 {
			m.Moved = int64(r.uint64())
		}
	}
	if flags&flagOrigin != 0 {
		m.Origin = r.bytes()
	}
	if flags&flagNotice != 0 {
		head := r.fixed(2)
		m.Notice = &Notice{
			Kind: NoticeKind(head[0] &^ ownBit), SignatureVersion: head[1], Raw: flags&flagRaw != 0, Own: head[0]&ownBit != 0,
			Topic: r.string(), Subscription: r.string(), Subject: r.string(), Token: r.string(),
		}
		if flags&flagSequence != 0 {
			sequence := r.uint64()
			m.Notice.Sequence, m.Notice.Replayed = sequence&^replayedBit, sequence&replayedBit != 0
		}
	}
	var offset uint64
	if flags&flagUnsigned != 0 {
		u := &Unsigned{}
		copy(u.Key[:], r.fixed(len(u.Key)))
		u.Version, u.Digest = r.fixed(1)[0], r.bytes()
		offset = r.uvarint()
		m.Unsigned = u
	}
	if flags&flagAttributes != 0 {
		copy(m.AttributesMD5[:], r.fixed(len(m.AttributesMD5)))
		n := r.uvarint()
		if n == 0 || n > uint64(len(r.p))/3 { // each has three lengths at least
			return nil, fmt.Errorf("%w: attributes", ErrCorrupt)
		}
		m.Attributes = make([]Attribute, n)
		for i := range m.Attributes {
			m.Attributes[i] = Attribute{Name: r.string(), Type: r.string(), Value: r.bytes()}
		}
	}
	if r.short {
		return nil, fmt.Errorf("%w: truncated", ErrCorrupt)
	}
	if m.Body = r.p; p[0] == encryptedVersion {
		m.Body, m.Cipher = nil, r.p
	}
	if m.Unsigned != nil {
		if offset > uint64(len(m.Body)) {
			return nil, fmt.Errorf("%w: signature", ErrCorrupt)
		}
		m.Unsigned.Offset = int(offset)
	}
	return m, nil
}

// SetRecordID puts another id into an encoded record.
func SetRecordID(p []byte, id ID) { copy(p[sentOffset+8:], id[:]) }

// RecordSent reads Sent out of an encoded record, ok false if it is none.
func RecordSent(p []byte) (sent int64, ok bool) {
	if len(p) < sentOffset+8 || p[0] != recordVersion && p[0] != encryptedVersion {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(p[sentOffset:])), true
}

// reader takes a record apart and remembers whether it ran out of bytes.
type reader struct {
	p     []byte
	short bool
}

var zeros [64]byte

// fixed takes n bytes, at most 64; zeros when there are not as many.
func (r *reader) fixed(n int) []byte {
	if len(r.p) < n {
		r.short, r.p = true, nil
		return zeros[:n]
	}
	p := r.p[:n]
	r.p = r.p[n:]
	return p
}

func (r *reader) uint64() uint64 { return binary.BigEndian.Uint64(r.fixed(8)) }

func (r *reader) uvarint() uint64 {
	n, w := binary.Uvarint(r.p)
	if w <= 0 {
		r.short, r.p = true, nil
		return 0
	}
	r.p = r.p[w:]
	return n
}

func (r *reader) bytes() []byte {
	n := r.uvarint()
	if n > uint64(len(r.p)) {
		r.short, r.p = true, nil
		return nil
	}
	p := r.p[:n:n]
	r.p = r.p[n:]
	return p
}

func (r *reader) string() string { return string(r.bytes()) }
