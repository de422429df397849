package smpp

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"unicode/utf16"

	smssender "godwit.dev/godwit/internal/deliver/sms"
	"godwit.dev/godwit/internal/sms"
)

// The commands of SMPP 3.4 that are supported; an answer has the highest bit set. Source:
// SMPP 3.4, 5.1.2.1.
const (
	answer          uint32 = 0x8000_0000
	genericNack     uint32 = 0x8000_0000
	submit          uint32 = 0x0000_0004
	deliverSM       uint32 = 0x0000_0005
	unbind          uint32 = 0x0000_0006
	bindTransceiver uint32 = 0x0000_0009
	enquireLink     uint32 = 0x0000_0015
)

// Statuses. Source: SMPP 3.4, 5.1.3.
const (
	statusOK             = 0x00
	statusInvalidCommand = 0x03
)

const (
	headerSize = 16
	maxPDU     = 64 << 10
)

// pdu is an SMPP PDU.
type pdu struct {
	command, status, sequence uint32
	body                      []byte
}

var errPDU = errors.New("smpp: what was received cannot be read")

// readPDU reads the next PDU.
func readPDU(r *bufio.Reader) (p pdu, err error) {
	var head [headerSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return p, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size < headerSize || size > maxPDU {
		return p, errPDU
	}
	p.command, p.status = binary.BigEndian.Uint32(head[4:]), binary.BigEndian.Uint32(head[8:])
	p.sequence = binary.BigEndian.Uint32(head[12:])
	p.body = make([]byte, size-headerSize)
	_, err = io.ReadFull(r, p.body)
	return p, err
}

// append appends the encoded PDU.
func (p *pdu) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(headerSize+len(p.body)))
	b = binary.BigEndian.AppendUint32(b, p.command)
	b = binary.BigEndian.AppendUint32(b, p.status)
	b = binary.BigEndian.AppendUint32(b, p.sequence)
	return append(b, p.body...)
}

func cString(b []byte, s string) []byte { return append(append(b, s...), 0) }

// bindBody is the body of bind_transceiver.
func bindBody(systemID, password string) []byte {
	b := cString(cString(cString(nil, systemID), password), "") // no system type
	b = append(b, 0x34, 0, 0)                                   // version 3.4; any address
	return cString(b, "")
}

// The types of numbers and their plans. Source: SMPP 3.4, 5.2.5 and 5.2.6.
const (
	tonUnknown, tonInternational, tonNetwork, tonAlphanumeric = 0, 1, 3, 5
	npiUnknown, npiISDN                                       = 0, 1
	shortCode                                                 = 6 // digits at most
)

// address encodes a number or a name.
func address(b []byte, name string) []byte {
	digits := strings.TrimPrefix(name, "+")
	switch {
	case name == "":
		b = append(b, tonUnknown, npiUnknown)
	case strings.Trim(digits, "0123456789") != "":
		b = append(b, tonAlphanumeric, npiUnknown)
	case len(digits) <= shortCode:
		b = append(b, tonNetwork, npiUnknown)
	default:
		b = append(b, tonInternational, npiISDN)
	}
	return cString(b, digits)
}

// submitBody is the submit_sm of a part. If there are several, it has a header with its
// number. Source: SMPP 3.4, 4.4.1; 3GPP TS 23.040, 9.2.3.24.1.
func submitBody(t *smssender.Text, part int) []byte {
	const userHeader, receipt, ucs2 = 0x40, 0x01, 0x08
	text := t.Alphabet.Encode(t.Parts[part])
	class := byte(0)
	if len(t.Parts) > 1 {
		class = userHeader
		text = append([]byte{5, 0, 3, t.Reference(), byte(len(t.Parts)), byte(part + 1)}, text...)
	}
	b := cString(make([]byte, 0, 64+len(text)), "") // no service type
	b = address(b, t.From)
	b = address(b, t.To)
	b = append(b, class, 0, 0)      // no protocol id, lowest priority
	b = cString(cString(b, ""), "") // now, and with the SMSC's default validity
	b = append(b, receipt, 0)       // a final receipt; replaces nothing
	coding := byte(0)
	if t.Alphabet == sms.UCS2 {
		coding = ucs2
	}
	b = append(b, coding, 0, byte(len(text)))
	return append(b, text...)
}

// delivered is the content of a deliver_sm: a message from a phone, or a receipt.
type delivered struct {
	from    string
	text    string
	receipt bool
	id      string // of a receipt's message, if it is not in the text
}

// readDelivered parses the body of a deliver_sm.
func readDelivered(body []byte) (d delivered, ok bool) {
	r := reader{body}
	r.text() // service type
	ton := r.byte()
	r.byte()
	d.from = r.text()
	r.byte()
	r.byte()
	r.text() // destination
	class := r.byte()
	r.byte()
	r.byte()
	r.text()
	r.text()
	r.byte()
	r.byte()
	coding := r.byte()
	r.byte()
	size := int(r.byte())
	if r.body == nil || size > len(r.body) {
		return d, false
	}
	text := r.body[:size]
	if class&0x40 != 0 && len(text) > 0 && int(text[0]) < len(text) {
		text = text[int(text[0])+1:]
	}
	if d.text = string(text); coding == 0x08 {
		units := make([]uint16, len(text)/2)
		for i := range units {
			units[i] = binary.BigEndian.Uint16(text[2*i:])
		}
		d.text = string(utf16.Decode(units))
	}
	if ton == tonInternational && !strings.HasPrefix(d.from, "+") {
		d.from = "+" + d.from
	}
	const kind, receipt = 0x3c, 0x04
	d.receipt = class&kind == receipt
	d.id = option(r.body[size:], receiptedMessageID)
	return d, true
}

// receiptedMessageID is the optional parameter with the id of a receipt's message. Source:
// SMPP 3.4, 5.3.2.12.
const receiptedMessageID = 0x001e

// option is an optional parameter as text; empty: there is none. Source: SMPP 3.4, 3.2.4.1.
func option(rest []byte, tag uint16) string {
	for len(rest) >= 4 {
		this, size := binary.BigEndian.Uint16(rest), int(binary.BigEndian.Uint16(rest[2:]))
		if rest = rest[4:]; size > len(rest) {
			return ""
		}
		if this == tag {
			text, _, _ := strings.Cut(string(rest[:size]), "\x00")
			return text
		}
		rest = rest[size:]
	}
	return ""
}

// messageID is the message's id in the answer to a submit, without leading zeros: receipts
// may differ in these.
func messageID(body []byte) string {
	r := reader{body}
	return plainID(r.text())
}

func plainID(id string) string {
	if short := strings.TrimLeft(id, "0"); short != "" {
		return strings.ToLower(short)
	}
	return id
}

// receiptOf returns the message's id and final state in a receipt: DELIVRD, UNDELIV, EXPIRED,
// …; empty: none. Source: SMPP 3.4, appendix B.
func receiptOf(d delivered) (id, state string) {
	if id = d.id; id == "" {
		if _, rest, ok := strings.Cut(d.text, "id:"); ok {
			id, _, _ = strings.Cut(rest, " ")
		}
	}
	_, rest, ok := strings.Cut(d.text, "stat:")
	if ok && len(rest) >= 7 {
		state = strings.ToUpper(rest[:7])
	}
	return plainID(id), state
}

// reader parses a body; it becomes nil when the body is too short.
type reader struct{ body []byte }

func (r *reader) byte() byte {
	if len(r.body) == 0 {
		r.body = nil
		return 0
	}
	c := r.body[0]
	r.body = r.body[1:]
	return c
}

func (r *reader) text() string {
	end := bytes.IndexByte(r.body, 0)
	if end < 0 {
		r.body = nil
		return ""
	}
	s := string(r.body[:end])
	r.body = r.body[end+1:]
	return s
}
