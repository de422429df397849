package envelope_test

import (
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"godwit.dev/godwit/internal/deliver/envelope"
	"godwit.dev/godwit/internal/queue/message"
)

const public = "http://127.0.0.1:4566"

// unsigned is an issuer without a key, issuer one with it.
var (
	unsigned = envelope.Issuer{URL: public}
	issuer   = envelope.Issuer{URL: public, Key: [16]byte{0xab, 15: 1}}
)

// placeholder is what stands in the place of a signature that is still to be made.
var placeholder = strings.Repeat("A", envelope.SignatureSize)

func notification() *message.Message {
	return &message.Message{
		ID:     message.ID{0x12, 0x34, 15: 0xff},
		Sent:   time.Date(2024, 2, 29, 13, 4, 5, 67_999_999, time.UTC).UnixMilli(),
		Sender: "000000000000", Group: "tenant", Trace: "Root=1",
		Body: []byte("a <b> & \"c\"\n\u2028é"),
		Notice: &message.Notice{
			Kind: message.Notification, Topic: "arn:aws:sns:us-east-1:000000000000:t",
			Subscription: "arn:aws:sns:us-east-1:000000000000:t:s", SignatureVersion: 1,
		},
	}
}

func TestNotificationIsWrittenAsAWSDoes(t *testing.T) {
	m := notification()
	m.Notice.Subject = "S"
	m.Attributes = []message.Attribute{
		{Name: "n", Type: "Number", Value: []byte("1.50")},
		{Name: "b", Type: "Binary", Value: []byte{0, 0xff}},
	}
	const head = `{
  "Type" : "Notification",
  "MessageId" : "12340000-0000-0000-0000-0000000000ff",
  "TopicArn" : "arn:aws:sns:us-east-1:000000000000:t",
  "Subject" : "S",
  "Message" : "a <b> & \"c\"\n` + "\u2028é" + `",
  "Timestamp" : "2024-02-29T13:04:05.067Z",
`
	const tail = `  "UnsubscribeURL" : "http://127.0.0.1:4566/?Action=Unsubscribe&SubscriptionArn=arn:aws:sns:us-east-1:000000000000:t:s",
  "MessageAttributes" : {
    "n" : {"Type":"Number","Value":"1.50"},
    "b" : {"Type":"Binary","Value":"AP8="}
  }
}`
	got, lacks := envelope.Append(nil, m, unsigned)
	if d := cmp.Diff(head+tail, string(got)); d != "" || lacks != nil {
		t.Errorf("unsigned: -want +got:\n%s%+v", d, lacks)
	}
	want := head + `  "SignatureVersion" : "1",
  "Signature" : "` + placeholder + `",
  "SigningCertURL" : "http://127.0.0.1:4566/SimpleNotificationService-ab000000000000000000000000000001.pem",
` + tail
	before := []byte("before")
	got, lacks = envelope.Append(before, m, issuer)
	if d := cmp.Diff("before"+want, string(got)); d != "" {
		t.Errorf("signed: -want +got:\n%s", d)
	}
	if at := strings.Index("before"+want, placeholder); lacks == nil || lacks.Offset != at || lacks.Key != issuer.Key || lacks.Version != 1 {
		t.Errorf("lacks %+v, want a signature at %d", lacks, at)
	}
	m.Notice.SignatureVersion = 0 // a FIFO topic's
	got, lacks = envelope.Append(nil, m, issuer)
	if d := cmp.Diff(head+tail, string(got)); d != "" || lacks != nil {
		t.Errorf("of a topic that does not sign: -want +got:\n%s%+v", d, lacks)
	}
}

// TestDigest: what is signed is the documented text, and the same for every
// subscriber.
func TestDigest(t *testing.T) {
	const stamp = "Timestamp\n2024-02-29T13:04:05.067Z\n"
	const arn = "TopicArn\narn:aws:sns:us-east-1:000000000000:t\n"
	text := "Message\n" + string(notification().Body) + "\nMessageId\n12340000-0000-0000-0000-0000000000ff\n"
	confirm := "SubscribeURL\n" + public + "/?Action=ConfirmSubscription&TopicArn=arn:aws:sns:us-east-1:000000000000:t&Token=tok\n" + stamp + "Token\ntok\n" + arn
	for _, tt := range []struct {
		kind          message.NoticeKind
		subject, want string
	}{
		{message.Notification, "", text + stamp + arn + "Type\nNotification\n"},
		{message.Notification, "S", text + "Subject\nS\n" + stamp + arn + "Type\nNotification\n"},
		{message.SubscriptionConfirmation, "", text + confirm + "Type\nSubscriptionConfirmation\n"},
		{message.UnsubscribeConfirmation, "", text + confirm + "Type\nUnsubscribeConfirmation\n"},
	} {
		m := notification()
		m.Notice.Kind, m.Notice.Subject, m.Notice.Token = tt.kind, tt.subject, "tok"
		for version := range byte(2) {
			m.Notice.SignatureVersion = version + 1
			first, second := sha1.Sum([]byte(tt.want)), sha256.Sum256([]byte(tt.want))
			want := [][]byte{first[:], second[:]}[version]
			_, lacks := envelope.Append(nil, m, issuer)
			if !bytes.Equal(lacks.Digest, want) {
				t.Errorf("%s, version %d: the digest is not of %q", envelope.Type(tt.kind), version+1, tt.want)
			}
			other := *m
			other.Notice = new(*m.Notice)
			other.Notice.Subscription += "2"
			other.Attributes = attributes(1)
			if _, lacks := envelope.Append(nil, &other, issuer); !bytes.Equal(lacks.Digest, want) {
				t.Error("another subscriber's has another digest")
			}
		}
	}
}

func TestConfirmationIsWrittenAsAWSDoes(t *testing.T) {
	m := notification()
	m.Body = []byte("You have chosen")
	m.Notice.Kind, m.Notice.Token, m.Notice.Raw = message.SubscriptionConfirmation, "tok", true
	want := `{
  "Type" : "SubscriptionConfirmation",
  "MessageId" : "12340000-0000-0000-0000-0000000000ff",
  "Token" : "tok",
  "TopicArn" : "arn:aws:sns:us-east-1:000000000000:t",
  "Message" : "You have chosen",
  "SubscribeURL" : "http://127.0.0.1:4566/?Action=ConfirmSubscription&TopicArn=arn:aws:sns:us-east-1:000000000000:t&Token=tok",
  "Timestamp" : "2024-02-29T13:04:05.067Z"
}`
	// Raw delivery does not hold for a confirmation: Body gives the envelope.
	got, lacks := envelope.Body(m, unsigned)
	if d := cmp.Diff(want, string(got)); d != "" || lacks != nil {
		t.Errorf("-want +got:\n%s", d)
	}
}

// TestDecodesToWhatWentIn compares the appender with encoding/json.
func TestDecodesToWhatWentIn(t *testing.T) {
	type value struct{ Type, Value string }
	type decoded struct {
		Type, MessageId, TopicArn, Subject, Message, Timestamp, UnsubscribeURL string
		MessageAttributes                                                      map[string]value
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String()
		m := notification()
		m.Body = rapid.SliceOf(rapid.Byte()).Draw(t, "body")
		m.Notice.Subject = text.Draw(t, "subject")
		want := decoded{
			Type: "Notification", MessageId: "12340000-0000-0000-0000-0000000000ff", TopicArn: m.Notice.Topic,
			Subject: m.Notice.Subject, Message: strings.ToValidUTF8(string(m.Body), "\ufffd"),
			Timestamp:      "2024-02-29T13:04:05.067Z",
			UnsubscribeURL: public + "/?Action=Unsubscribe&SubscriptionArn=" + m.Notice.Subscription,
		}
		if !utf8.Valid(m.Body) { // one replacement for each bad byte, as encoding/json reads them
			raw, _ := json.Marshal(string(m.Body))
			_ = json.Unmarshal(raw, &want.Message)
		}
		for i := range rapid.IntRange(0, 12).Draw(t, "attributes") {
			a := message.Attribute{Name: fmt.Sprint("a", i), Type: "String", Value: []byte(text.Draw(t, "value"))}
			shown := string(a.Value)
			if i%2 == 1 {
				a.Type, shown = "Binary.x", base64.StdEncoding.EncodeToString(a.Value)
			}
			m.Attributes = append(m.Attributes, a)
			if want.MessageAttributes == nil {
				want.MessageAttributes = map[string]value{}
			}
			want.MessageAttributes[a.Name] = value{a.Type, shown}
		}
		encoded, _ := envelope.Append(nil, m, unsigned)
		dec := json.NewDecoder(bytes.NewReader(encoded))
		dec.DisallowUnknownFields()
		var got decoded
		if err := dec.Decode(&got); err != nil {
			t.Fatalf("%v in %s", err, encoded)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("-want +got:\n%s", d)
		}
	})
}

// TestReuse: a signature that was kept is used for the very same text only.
func TestReuse(t *testing.T) {
	body, lacks := envelope.Append(nil, notification(), issuer)
	copy(body[lacks.Offset:], strings.Repeat("S", envelope.SignatureSize))
	kept := envelope.Keep(body, lacks)
	other := issuer
	other.Key[3]++
	for _, tt := range []struct {
		name   string
		change func(m *message.Message)
		issuer envelope.Issuer
		kept   []byte
		want   bool
	}{
		{"the same", func(*message.Message) {}, issuer, kept, true},
		{"another subscriber's", func(m *message.Message) { m.Notice.Subscription += "2" }, issuer, kept, true},
		{"another text", func(m *message.Message) { m.Body = []byte("b") }, issuer, kept, false},
		{"another version", func(m *message.Message) { m.Notice.SignatureVersion = 2 }, issuer, kept, false},
		{"another key", func(*message.Message) {}, other, kept, false},
		{"none", func(*message.Message) {}, issuer, nil, false},
		{"half", func(*message.Message) {}, issuer, kept[:len(kept)-1], false},
		{"more", func(*message.Message) {}, issuer, append(bytes.Clone(kept), 'S'), false},
	} {
		m := notification()
		tt.change(m)
		again, lacks := envelope.Append(nil, m, tt.issuer)
		before := bytes.Clone(again)
		ok := envelope.Reuse(again, lacks, tt.kept)
		if ok != tt.want || !ok && !bytes.Equal(before, again) || ok && !bytes.Contains(again, body[lacks.Offset:lacks.Offset+envelope.SignatureSize]) {
			t.Errorf("%s: %v", tt.name, ok)
		}
	}
}

func attributes(n int) (out []message.Attribute) {
	for i := range n {
		out = append(out, message.Attribute{Name: fmt.Sprint("a", i), Type: "String", Value: []byte("v")})
	}
	return out
}

func TestSQS(t *testing.T) {
	id := message.ID{1}
	sealed := func(m *message.Message) *message.Message { m.Seal(); return m }
	for _, tt := range []struct {
		name       string
		raw        bool
		attributes int
		err        error
	}{
		{"enveloped", false, 2, nil},
		{"enveloped with many attributes", false, 11, nil},
		{"raw", true, 0, nil},
		{"raw with attributes", true, 10, nil},
		{"raw with too many attributes", true, 11, envelope.ErrTooManyAttributes},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := notification()
			m.Notice.Raw, m.Attributes = tt.raw, attributes(tt.attributes)
			want := &message.Message{ID: id, Sender: m.Sender, Group: "tenant", Trace: "Root=1"}
			if tt.raw {
				want.Body, want.Attributes = m.Body, m.Attributes
			} else {
				want.Body, want.Unsigned = envelope.Append(nil, m, issuer)
			}
			got, err := envelope.SQS(m, id, issuer)
			if !errors.Is(err, tt.err) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			if tt.err != nil {
				return
			}
			if tt.raw {
				want = sealed(want)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// TestKnownDigest: the body's digest is taken from the notification, if it is there, for what has
// the same body.
func TestKnownDigest(t *testing.T) {
	m := notification()
	m.BodyMD5, m.Attributes, m.Notice.SignatureVersion = [16]byte{1, 2, 3}, attributes(2), 0
	if got, err := envelope.SQS(m, message.ID{1}, unsigned); err != nil || got.Unsigned != nil || got.BodyMD5 != md5.Sum(got.Body) {
		t.Errorf("an envelope has the digest %x: %v", got.BodyMD5, err)
	}
	m.Notice.Raw = true
	if got, err := envelope.SQS(m, message.ID{1}, unsigned); err != nil || got.BodyMD5 != m.BodyMD5 || got.AttributesMD5 != message.AttributesMD5(m.Attributes) {
		t.Errorf("a raw message has the digests %x and %x: %v", got.BodyMD5, got.AttributesMD5, err)
	}
}

// TestRawText: a text that SQS does not take is for no queue; the envelope carries it.
func TestRawText(t *testing.T) {
	for _, bad := range []func(m *message.Message){
		func(m *message.Message) { m.Body = nil },
		func(m *message.Message) { m.Body = []byte("a\x01") },
		func(m *message.Message) { m.Body = []byte("\uffff") },
		func(m *message.Message) { m.Attributes = attributes(2); m.Attributes[1].Value = []byte("\x0b") },
	} {
		m := notification()
		bad(m)
		whole, err := envelope.SQS(m, message.ID{1}, issuer)
		if err != nil || !whole.Sendable() {
			t.Errorf("%q, %v", whole.Body, err)
		}
		m.Notice.Raw = true
		if _, err := envelope.SQS(m, message.ID{1}, issuer); !errors.Is(err, envelope.ErrRawText) {
			t.Errorf("%q %q: %v", m.Body, m.Attributes, err)
		}
		for _, fromQueue := range []bool{true, false} {
			got := envelope.DeadLetter(m, message.ID{1}, unsigned, fromQueue)
			var in struct {
				Message           string
				MessageAttributes map[string]struct{ Value string }
			}
			if !fromQueue && got.Sendable() && bytes.Equal(got.Body, m.Body) {
				continue // a bad attribute stays behind
			}
			if err := json.Unmarshal(got.Body, &in); err != nil || !got.Sendable() || in.Message != string(m.Body) || got.Attributes != nil {
				t.Errorf("the dead letter of %q: %q %q, %v", m.Body, got.Body, got.Attributes, err)
			}
			for _, a := range m.Attributes {
				if in.MessageAttributes[a.Name].Value != string(a.Value) {
					t.Errorf("%s: %q", a.Name, in.MessageAttributes[a.Name].Value)
				}
			}
		}
	}
	m := notification()
	m.Notice.Raw, m.Attributes = true, []message.Attribute{{Name: "a", Type: "Binary", Value: []byte{1}}}
	if _, err := envelope.SQS(m, message.ID{1}, issuer); err != nil {
		t.Error(err)
	}
}

func TestDeadLetter(t *testing.T) {
	for _, tt := range []struct {
		name           string
		raw, fromQueue bool
		attributes     int // of the message
		want           int // of the dead letter
	}{
		{"enveloped", false, false, 3, 0},
		{"enveloped, for a queue", false, true, 3, 0},
		{"raw, for an endpoint", true, false, 3, 0},
		{"raw, for a queue", true, true, 3, 3},
		{"raw, for a queue, too many", true, true, 11, 11},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := notification()
			m.Notice.Raw, m.Attributes = tt.raw, attributes(tt.attributes)
			got := envelope.DeadLetter(m, message.ID{2}, unsigned, tt.fromQueue)
			body, _ := envelope.Append(nil, m, unsigned)
			if tt.raw {
				body = m.Body
			}
			if !bytes.Equal(got.Body, body) || len(got.Attributes) != tt.want || got.ID != (message.ID{2}) || got.Notice != nil {
				t.Errorf("got %+v", got)
			}
			again := *got
			again.Seal()
			if d := cmp.Diff(&again, got); d != "" {
				t.Errorf("not sealed:\n%s", d)
			}
		})
	}
}
