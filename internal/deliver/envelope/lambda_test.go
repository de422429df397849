package envelope_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/deliver/envelope"
	"godwit.dev/godwit/internal/queue/message"
)

func TestLambdaEventIsAsAWSMakesIt(t *testing.T) {
	m := notification()
	m.Notice.SignatureVersion = 2 // it signs so, and says 1
	sns := map[string]any{
		"Type": "Notification", "MessageId": "12340000-0000-0000-0000-0000000000ff",
		"TopicArn": "arn:aws:sns:us-east-1:000000000000:t", "Subject": nil, "Message": string(m.Body),
		"Timestamp": "2024-02-29T13:04:05.067Z", "SignatureVersion": "1", "Signature": placeholder,
		"SigningCertUrl":    public + "/SimpleNotificationService-ab000000000000000000000000000001.pem",
		"UnsubscribeUrl":    public + "/?Action=Unsubscribe&SubscriptionArn=arn:aws:sns:us-east-1:000000000000:t:s",
		"MessageAttributes": map[string]any{},
	}
	want := map[string]any{"Records": []any{map[string]any{
		"EventSource": "aws:sns", "EventVersion": "1.0",
		"EventSubscriptionArn": "arn:aws:sns:us-east-1:000000000000:t:s", "Sns": sns,
	}}}
	check := func() {
		t.Helper()
		event, lacks := envelope.Lambda(m, issuer)
		var got any
		if err := json.Unmarshal(event, &got); err != nil {
			t.Fatalf("%v in %s", err, event)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
		// The same text, signed for an SQS subscriber.
		_, other := envelope.Append(nil, m, issuer)
		if lacks == nil || lacks.Version != 2 || !bytes.Equal(lacks.Digest, other.Digest) ||
			string(event[lacks.Offset:lacks.Offset+envelope.SignatureSize]) != placeholder {
			t.Errorf("lacks %+v", lacks)
		}
	}
	check()
	m.Notice.Subject = "<S>"
	m.Attributes = []message.Attribute{
		{Name: "n", Type: "Number", Value: []byte("1.50")},
		{Name: "b", Type: "Binary", Value: []byte{0, 0xff}},
	}
	sns["Subject"] = "<S>"
	sns["MessageAttributes"] = map[string]any{
		"n": map[string]any{"Type": "Number", "Value": "1.50"}, "b": map[string]any{"Type": "Binary", "Value": "AP8="},
	}
	check()
}
