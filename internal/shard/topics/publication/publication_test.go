package publication_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/topics/publication"
	"godwit.dev/godwit/internal/topic"
)

var topicARN = arn.ARN{Service: "sns", Region: "us-east-1", Account: "111122223333", Resource: "news"}

func record() publication.Record {
	return publication.Record{
		Topic: topicARN, Signature: 2, Sent: 1234, Incarnation: 300, Cursor: "a cursor", Sequence: 7,
		P: publication.Publication{
			ID: message.ID{1, 2}, Sender: "AIDA", Subject: "a subject", Group: "g", Dedup: "d", Trace: "Root=1", Body: []byte("a body"),
			Bodies:     map[string]string{"sqs": "for queues", "email": ""},
			Attributes: []message.Attribute{{Name: "n", Type: "String", Value: []byte("v")}, {Name: "b", Type: "Binary", Value: []byte{0, 255}}},
		},
	}
}

// content is what is encrypted.
type content struct {
	Body       []byte
	Attributes []message.Attribute
	Subject    string
}

// encrypt and open stand in for a key.
func encrypt(m *message.Message) (err error) {
	m.Cipher, err = json.Marshal(content{m.Body, m.Attributes, m.Notice.Subject})
	m.Cipher = bytes.Map(func(r rune) rune { return r + 1 }, m.Cipher)
	return err
}

func open(m *message.Message) error {
	var c content
	err := json.Unmarshal(bytes.Map(func(r rune) rune { return r - 1 }, m.Cipher), &c)
	if m.Notice == nil {
		m.Notice = &message.Notice{}
	}
	m.Body, m.Attributes, m.Notice.Subject = c.Body, c.Attributes, c.Subject
	return err
}

func equal(t *testing.T, want, got publication.Record) {
	t.Helper()
	hidden := cmpopts.IgnoreUnexported(publication.Record{}, publication.Publication{})
	if diff := cmp.Diff(want, got, hidden, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRecord(t *testing.T) {
	for name, change := range map[string]func(r *publication.Record){
		"full":          func(*publication.Record) {},
		"empty":         func(r *publication.Record) { *r = publication.Record{Topic: topicARN} },
		"no own bodies": func(r *publication.Record) { r.P.Bodies = nil },
		"not signed":    func(r *publication.Record) { r.Signature, r.Sequence, r.Cursor = 0, 0, "" },
	} {
		t.Run(name, func(t *testing.T) {
			r := record()
			change(&r)
			got, err := publication.Decode(r.Encode())
			if err != nil {
				t.Fatal(err)
			}
			equal(t, r, got)
		})
	}
}

// Of what is encrypted nothing is in the record in clear, and it opens to the same.
func TestEncrypted(t *testing.T) {
	r := record()
	sealed, err := publication.SealRecord(r.Encode(), encrypt)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"a body", "a subject", "for queues", "String"} {
		if bytes.Contains(sealed, []byte(secret)) {
			t.Errorf("%q is in the record: %q", secret, sealed)
		}
	}
	got, err := publication.Decode(sealed)
	if err != nil {
		t.Fatal(err)
	}
	if !got.P.Encrypted() || len(got.P.Body) > 0 || len(got.P.Bodies) > 0 {
		t.Errorf("before it is opened: %+v", got.P)
	}
	queue, mail, hook := &topic.Subscription{Protocol: topic.SQS}, &topic.Subscription{Protocol: topic.Email}, &topic.Subscription{Protocol: topic.HTTP}
	ciphers := map[string]bool{}
	for _, sub := range []*topic.Subscription{queue, mail, hook} {
		ciphers[string(got.Notification(sub).Cipher)] = true
	}
	if len(ciphers) != 3 || ciphers[""] {
		t.Errorf("what protocols get is not encrypted each for itself: %v", ciphers)
	}
	if err := got.Open(open); err != nil {
		t.Fatal(err)
	}
	equal(t, r, got)
	again, err := publication.Decode(got.Encode())
	if err != nil || !again.P.Encrypted() {
		t.Errorf("what was opened is kept in clear: %v", err)
	}
	if twice, err := publication.SealRecord(sealed, encrypt); twice != nil || err != nil {
		t.Errorf("what is encrypted is encrypted again: %q, %v", twice, err)
	}
}

func TestNoKey(t *testing.T) {
	reason := errors.New("no key")
	fails := func(*message.Message) error { return reason }
	r := record()
	if err := r.P.Encrypt(fails); !errors.Is(err, reason) {
		t.Error(err)
	}
	if _, err := publication.SealRecord(r.Encode(), fails); !errors.Is(err, reason) {
		t.Error(err)
	}
	sealed, err := publication.SealRecord(r.Encode(), encrypt)
	if err != nil {
		t.Fatal(err)
	}
	got, err := publication.Decode(sealed)
	if err != nil {
		t.Fatal(err)
	}
	if err := got.Open(fails); !errors.Is(err, reason) {
		t.Error(err)
	}
}

// A subscription gets the body of its protocol, even an empty one, or else that of all.
func TestNotification(t *testing.T) {
	r := record()
	for _, tt := range []struct {
		protocol topic.Protocol
		raw      bool
		body     string
		own      bool
	}{
		{topic.SQS, true, "for queues", true},
		{topic.Email, false, "", true},
		{topic.HTTP, false, "a body", false},
	} {
		sub := &topic.Subscription{Protocol: tt.protocol, ARN: arn.ARN{Service: "sns", Resource: tt.protocol.String()}}
		sub.Raw = tt.raw
		n := r.Notification(sub)
		if string(n.Body) != tt.body || n.Notice.Own != tt.own || n.Notice.Raw != tt.raw || n.Notice.Subscription != sub.ARN.String() {
			t.Errorf("%s: %q %+v", tt.protocol, n.Body, n.Notice)
		}
		if n.Notice.Topic != topicARN.String() || n.Notice.Subject != "a subject" || n.Notice.Sequence != 7 || n.ID != r.P.ID || n.Sent != 1234 {
			t.Errorf("%s: %+v", tt.protocol, n)
		}
		if shared := r.Shared(sub); shared == tt.own {
			t.Errorf("%s: shared %t", tt.protocol, shared)
		}
	}
	f := r.Message()
	if f == nil {
		t.Error("filters see nothing")
	}
}

// A record's bound holds for the largest of the bodies.
func TestSizes(t *testing.T) {
	r := record()
	attributes := (&message.Message{Attributes: r.P.Attributes}).Size()
	if got, want := r.P.Size(), len("a body")+len("for queues")+attributes; got != want {
		t.Errorf("billed as %d bytes, want %d", got, want)
	}
	r.P.Bodies["sqs"] = string(make([]byte, 5000))
	n := r.Notification(&topic.Subscription{Protocol: topic.SQS, ARN: arn.ARN{Service: "sns", Resource: "s"}})
	if bound, size := r.P.RecordSize(), len(n.AppendRecord(nil)); size > bound || bound > size+1024 {
		t.Errorf("a record of %d bytes is bounded by %d", size, bound)
	}
}

func FuzzDecode(f *testing.F) {
	r := record()
	f.Add(r.Encode())
	if sealed, err := publication.SealRecord(r.Encode(), encrypt); err == nil {
		f.Add(sealed)
	}
	f.Add([]byte{0, 0, 255, 255, 255, 255, 15})
	f.Fuzz(func(t *testing.T, p []byte) {
		r, err := publication.Decode(p)
		if err != nil {
			return
		}
		again, err := publication.Decode(r.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again.Encode(), r.Encode()) {
			t.Error("a record that is read and written changes")
		}
	})
}
