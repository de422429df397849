package message

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
)

// What is encrypted is in the record no more, survives that it moves on, and comes back.
func TestEncrypt(t *testing.T) {
	seal := func(p []byte) ([]byte, error) {
		sealed := bytes.Clone(p)
		for i := range sealed {
			sealed[i] ^= 0x5a
		}
		return sealed, nil
	}
	m := &Message{
		ID: ID{1}, Sent: 5, Sender: "a", Group: "g", Body: []byte("canary body"),
		Attributes: []Attribute{{Name: "canary name", Type: "String", Value: []byte("canary value")}},
		Unsigned:   &Unsigned{Version: 2, Digest: []byte("canary digest"), Offset: 3},
		Notice:     &Notice{Kind: Notification, Topic: "t", Subscription: "s", Subject: "canary subject", Token: "canary token", Sequence: 7},
	}
	m.Seal()
	size := m.Size()
	if _, err := m.Encrypt(nil, seal); err != nil {
		t.Fatal(err)
	}
	record := m.AppendRecord(nil)
	if bytes.Contains(record, []byte("canary")) || bytes.Contains(record, m.BodyMD5[:]) {
		t.Errorf("the record is %q", record)
	}
	if sent, ok := RecordSent(record); !ok || sent != 5 {
		t.Errorf("it was sent at %d", sent)
	}
	moved, err := DecodeRecord(record)
	if err != nil || moved.Body != nil || moved.Attributes != nil || moved.Group != "g" || moved.Notice.Sequence != 7 {
		t.Fatalf("%+v: %v", moved, err)
	}
	if n := moved.Size(); n < size {
		t.Errorf("its size is %d, less than %d", n, size)
	}
	moved.Source = "elsewhere"
	again, err := DecodeRecord(moved.AppendRecord(nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Decrypt(seal); err != nil {
		t.Fatal(err)
	}
	want := *m
	want.Source = "elsewhere"
	if !reflect.DeepEqual(again, &want) {
		t.Errorf("got %+v, want %+v", again, &want)
	}
	no := errors.New("no")
	if err := again.Decrypt(func([]byte) ([]byte, error) { return nil, no }); !errors.Is(err, no) {
		t.Errorf("got %v", err)
	}
	if err := again.Decrypt(func(p []byte) ([]byte, error) { return p, nil }); !errors.Is(err, ErrCorrupt) {
		t.Error("it was read without being opened")
	}
}
