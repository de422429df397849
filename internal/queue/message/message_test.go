package message

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestAttributesMD5 holds the digest against ones that the AWS SDKs accept.
// The first three are AWS's own answers, recorded by the tests of moto, a mock
// of AWS; the last were computed from the developer guide's description.
func TestAttributesMD5(t *testing.T) {
	cases := []struct {
		want  string
		attrs []Attribute
	}{
		{"2e2e4876d8e0bd6b8c2c8f556831c349", []Attribute{{"timestamp", "Number.java.lang.Long", []byte("1493147359900")}}},
		{"36655e7e9d7c0e8479fa3f3f42247ae7", []Attribute{{"SOME_Valid.attribute-Name", "Number", []byte("1493147359900")}}},
		{"b12289320bb6e494b18b645ef562b4a9", []Attribute{
			{"timestamp", "Number.java.lang.Long", []byte("1602845432024")},
			{"id", "String", []byte("2018fc74-4f77-1a5a-1be0-c2d037d5052b")},
			{"contentType", "String", []byte("application/json")},
		}},
		{"8950c4f7b9df2f96e742f9ca6f995495", []Attribute{{"binary", "Binary", []byte{2, 3, 4}}}},
		{"6609cff969701117b5992c68d80ac434", []Attribute{
			{"b", "String", []byte("x")}, {"B", "String", []byte("y")}, {"a.b", "Binary.png", []byte{0, 255}}, {"aa", "Number", []byte("1")},
		}},
	}
	for _, c := range cases {
		names := append([]Attribute(nil), c.attrs...)
		got := AttributesMD5(c.attrs)
		if hex.EncodeToString(got[:]) != c.want {
			t.Errorf("%v: %x, want %s", c.attrs, got, c.want)
		}
		if !cmp.Equal(names, c.attrs) {
			t.Errorf("the attributes are in another order now: %v", c.attrs)
		}
	}
}

// TestSeal: the digests are of what the message holds now.
func TestSeal(t *testing.T) {
	m := Message{Body: []byte("The quick brown fox jumps over the lazy dog"), Attributes: []Attribute{{"a", "String", []byte("b")}}}
	m.Seal()
	if got := hex.EncodeToString(m.BodyMD5[:]); got != "9e107d9d372bb6826bd81d3542a419d6" {
		t.Errorf("the body's digest is %s", got)
	}
	if m.AttributesMD5 != AttributesMD5(m.Attributes) {
		t.Errorf("the attributes' digest is %x", m.AttributesMD5)
	}
	m.Attributes = nil
	m.Seal()
	if m.AttributesMD5 != [md5.Size]byte{} {
		t.Errorf("without attributes the digest is %x", m.AttributesMD5)
	}
}

// TestSealAll: each message is sealed as it would be by itself, be they one or many.
func TestSealAll(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 10, 16, 17, 40} {
		msgs, want := make([]*Message, n), make([]Message, n)
		for i := range msgs {
			m := Message{Body: bytes.Repeat([]byte{byte(i + 1)}, 61*i), AttributesMD5: [md5.Size]byte{1}}
			if i%3 == 1 {
				m.Attributes = []Attribute{{"a", "Number", []byte{'0' + byte(i%10)}}}
			}
			want[i] = m
			want[i].Seal()
			msgs[i] = &m
		}
		SealAll(msgs)
		for i, m := range msgs {
			if diff := cmp.Diff(&want[i], m); diff != "" {
				t.Errorf("message %d of %d: (-want +got)\n%s", i, n, diff)
			}
		}
	}
}

// TestSize: body, and names, types and values of the attributes.
func TestSize(t *testing.T) {
	m := Message{Body: make([]byte, 1000), Trace: "not counted", Attributes: []Attribute{
		{"name", "String", []byte("value")}, {"n", "Binary", make([]byte, 100)},
	}}
	if got := m.Size(); got != 1000+4+6+5+1+6+100 {
		t.Errorf("the size is %d", got)
	}
}

// TestBinary: only Binary, with or without a label, is.
func TestBinary(t *testing.T) {
	for kind, want := range map[string]bool{
		"Binary": true, "Binary.png": true,
		"String": false, "Number": false, "String.Binary": false, "Binaries": false, "binary": false, "": false,
	} {
		if got := (Attribute{Type: kind}).Binary(); got != want {
			t.Errorf("%q: %v", kind, got)
		}
	}
}

func drawMessage(t *rapid.T) *Message {
	text := func(label string) string {
		return rapid.OneOf(rapid.Just(""), rapid.String(), rapid.StringN(120, 300, -1)).Draw(t, label)
	}
	octets := func(label string) []byte { return rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, label) }
	m := &Message{
		Sent: rapid.Int64().Draw(t, "sent"), Sender: text("sender"), Group: text("group"), Dedup: text("dedup"),
		Trace: text("trace"), Source: text("source"), Body: octets("body"),
	}
	copy(m.ID[:], octets("id"))
	copy(m.BodyMD5[:], octets("digest"))
	for range rapid.IntRange(0, 3).Draw(t, "attributes") {
		m.Attributes = append(m.Attributes, Attribute{Name: text("name"), Type: text("type"), Value: octets("value")})
	}
	if len(m.Attributes) > 0 {
		copy(m.AttributesMD5[:], octets("attributes digest"))
	}
	if rapid.Bool().Draw(t, "past") {
		m.Receives, m.FirstReceived = rapid.Uint32().Draw(t, "receives")>>1, rapid.Int64().Draw(t, "first received")
		m.Moved = rapid.Int64().Draw(t, "moved")
	}
	if rapid.Bool().Draw(t, "origin") {
		m.Origin = octets("origin")
	}
	if rapid.Bool().Draw(t, "notice") {
		m.Notice = &Notice{
			Kind: NoticeKind(rapid.ByteRange(0, 127).Draw(t, "kind")), Own: rapid.Bool().Draw(t, "own"), Topic: text("topic"), Subscription: text("subscription"),
			Subject: text("subject"), Token: text("token"), Raw: rapid.Bool().Draw(t, "raw"),
			SignatureVersion: rapid.Byte().Draw(t, "version"), Sequence: rapid.Uint64().Draw(t, "sequence") >> 1,
		}
		m.Notice.Replayed = m.Notice.Sequence != 0 && rapid.Bool().Draw(t, "replayed")
	}
	if rapid.Bool().Draw(t, "unsigned") {
		m.Unsigned = &Unsigned{
			Version: rapid.Byte().Draw(t, "hash"), Digest: octets("signed"),
			Offset: rapid.IntRange(0, len(m.Body)).Draw(t, "offset"),
		}
		copy(m.Unsigned.Key[:], octets("key"))
	}
	return m
}

// TestRecordRoundTrip: a record gives back the message, and no shorter part of
// it can be read but one that lacks of the body what is behind its signature.
func TestRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMessage(t)
		before := octetsOf("before")
		record := m.AppendRecord(before)
		if !bytes.HasPrefix(record, before) {
			t.Fatal("what was in the buffer is gone")
		}
		record = record[len(before):]
		got, err := DecodeRecord(record)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, got, cmp.Comparer(bytes.Equal)); diff != "" {
			t.Fatal(diff)
		}
		if sent, ok := RecordSent(record); !ok || sent != m.Sent {
			t.Fatalf("sent at %d, %v", sent, ok)
		}
		later := bytes.Clone(record)
		later[0] = encryptedVersion + 1
		if _, err := DecodeRecord(later); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("a record of a later version is read: %v", err)
		}
		cut := rapid.IntRange(0, len(record)-1).Draw(t, "cut")
		_, err = DecodeRecord(record[:cut])
		least := len(record) - len(m.Body)
		if m.Unsigned != nil {
			least += m.Unsigned.Offset
		}
		if whole := cut >= least; whole != (err == nil) {
			t.Fatalf("cut at %d of %d with a body of %d: %v", cut, len(record), len(m.Body), err)
		}
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatalf("another error: %v", err)
		}
	})
}

func octetsOf(s string) []byte { return append(make([]byte, 0, 64), s...) }

// FuzzDecodeRecord: nothing makes it panic or take much memory, and what it
// reads is written as it was read.
func FuzzDecodeRecord(f *testing.F) {
	full := Message{
		Sent: 1, Sender: "s", Group: "g", Dedup: "d", Trace: "t", Source: "q", Receives: 3, FirstReceived: 9, Moved: 11, Body: []byte("body"),
		Attributes: []Attribute{{"n", "String", []byte("v")}},
		Notice:     &Notice{Kind: Notification, Topic: "t", Subscription: "s", Subject: "x", Token: "y", Raw: true, SignatureVersion: 2},
		Unsigned:   &Unsigned{Version: 1, Digest: []byte("digest"), Offset: 4},
	}
	f.Add((&Message{}).AppendRecord(nil))
	f.Add(full.AppendRecord(nil))
	f.Add([]byte{recordVersion, 0xff})
	f.Fuzz(func(t *testing.T, p []byte) {
		m, err := DecodeRecord(p)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("another error: %v", err)
			}
			return
		}
		again, err := DecodeRecord(m.AppendRecord(nil))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, again, cmp.Comparer(bytes.Equal)); diff != "" {
			t.Fatal(diff)
		}
	})
}
