package envelope_test

import (
	"bytes"
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
	"godwit.dev/godwit/internal/queue"
)

const public = "http://127.0.0.1:4566"

func notification() *queue.Message {
	return &queue.Message{
		ID:     queue.ID{0x12, 0x34, 15: 0xff},
		Sent:   time.Date(2024, 2, 29, 13, 4, 5, 67_999_999, time.UTC).UnixMilli(),
		Sender: "000000000000", Group: "tenant", Trace: "Root=1",
		Body: []byte("a <b> & \"c\"\n\u2028é"),
		Notice: &queue.Notice{
			Kind: queue.Notification, Topic: "arn:aws:sns:us-east-1:000000000000:t",
			Subscription: "arn:aws:sns:us-east-1:000000000000:t:s", SignatureVersion: 1,
		},
	}
}

func TestNotificationIsWrittenAsAWSDoes(t *testing.T) {
	m := notification()
	m.Notice.Subject = "S"
	m.Attributes = []queue.Attribute{
		{Name: "n", Type: "Number", Value: []byte("1.50")},
		{Name: "b", Type: "Binary", Value: []byte{0, 0xff}},
	}
	want := `{
  "Type" : "Notification",
  "MessageId" : "12340000-0000-0000-0000-0000000000ff",
  "TopicArn" : "arn:aws:sns:us-east-1:000000000000:t",
  "Subject" : "S",
  "Message" : "a <b> & \"c\"\n` + "\u2028é" + `",
  "Timestamp" : "2024-02-29T13:04:05.067Z",
  "UnsubscribeURL" : "http://127.0.0.1:4566/?Action=Unsubscribe&SubscriptionArn=arn:aws:sns:us-east-1:000000000000:t:s",
  "MessageAttributes" : {
    "n" : {"Type":"Number","Value":"1.50"},
    "b" : {"Type":"Binary","Value":"AP8="}
  }
}`
	if d := cmp.Diff(want, string(envelope.Append(nil, m, public))); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestConfirmationIsWrittenAsAWSDoes(t *testing.T) {
	m := notification()
	m.Body = []byte("You have chosen")
	m.Notice.Kind, m.Notice.Token, m.Notice.Raw = queue.SubscriptionConfirmation, "tok", true
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
	if d := cmp.Diff(want, string(envelope.Body(m, public))); d != "" {
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
			a := queue.Attribute{Name: fmt.Sprint("a", i), Type: "String", Value: []byte(text.Draw(t, "value"))}
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
		dec := json.NewDecoder(bytes.NewReader(envelope.Append(nil, m, public)))
		dec.DisallowUnknownFields()
		var got decoded
		if err := dec.Decode(&got); err != nil {
			t.Fatalf("%v in %s", err, envelope.Append(nil, m, public))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("-want +got:\n%s", d)
		}
	})
}

func attributes(n int) (out []queue.Attribute) {
	for i := range n {
		out = append(out, queue.Attribute{Name: fmt.Sprint("a", i), Type: "String", Value: []byte("v")})
	}
	return out
}

func TestSQS(t *testing.T) {
	id := queue.ID{1}
	sealed := func(m *queue.Message) *queue.Message { m.Seal(); return m }
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
			want := &queue.Message{ID: id, Sender: m.Sender, Group: "tenant", Trace: "Root=1"}
			if tt.raw {
				want.Body, want.Attributes = m.Body, m.Attributes
			} else {
				want.Body = envelope.Append(nil, m, public)
			}
			got, err := envelope.SQS(m, id, public)
			if !errors.Is(err, tt.err) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			if tt.err != nil {
				return
			}
			if d := cmp.Diff(sealed(want), got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
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
			got := envelope.DeadLetter(m, queue.ID{2}, public, tt.fromQueue)
			body := envelope.Append(nil, m, public)
			if tt.raw {
				body = m.Body
			}
			if !bytes.Equal(got.Body, body) || len(got.Attributes) != tt.want || got.ID != (queue.ID{2}) || got.Notice != nil {
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
