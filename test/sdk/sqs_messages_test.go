package sdk_test

import (
	"crypto/md5"
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/queue/message"
)

var uuidForm = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

func md5Of(s string) *string {
	sum := md5.Sum([]byte(s))
	return aws.String(hex.EncodeToString(sum[:]))
}

func attributesMD5(attrs ...message.Attribute) *string {
	sum := message.AttributesMD5(attrs)
	return aws.String(hex.EncodeToString(sum[:]))
}

func send(t *testing.T, c *sqs.Client, url, body string) *sqs.SendMessageOutput {
	t.Helper()
	return must(c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}))(t)
}

// receive receives without waiting, with every attribute.
func receive(t *testing.T, c *sqs.Client, url string, most int32) []types.Message {
	t.Helper()
	return must(c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: most, MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	}))(t).Messages
}

func bodies(messages []types.Message) []string {
	var all []string
	for _, m := range messages {
		all = append(all, aws.ToString(m.Body))
	}
	slices.Sort(all)
	return all
}

func counts(t *testing.T, c *sqs.Client, url string) [3]string {
	t.Helper()
	a := attributesOf(t, c, url)
	return [3]string{a["ApproximateNumberOfMessages"], a["ApproximateNumberOfMessagesNotVisible"], a["ApproximateNumberOfMessagesDelayed"]}
}

func TestSendAndReceive(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	url := createQueue(t, c, "q")
	body := "héllo\t<&>\n\"😀\""
	attrs := map[string]types.MessageAttributeValue{
		"order-status": {DataType: aws.String("String"), StringValue: aws.String("confirmed")},
		"price.net":    {DataType: aws.String("Number.eur"), StringValue: aws.String("12.50")},
		"price.gross":  {DataType: aws.String("Number"), StringValue: aws.String("15")},
		"blob":         {DataType: aws.String("Binary"), BinaryValue: []byte{0, 1, 255}},
	}
	blob := message.Attribute{Name: "blob", Type: "Binary", Value: []byte{0, 1, 255}}
	status := message.Attribute{Name: "order-status", Type: "String", Value: []byte("confirmed")}
	gross := message.Attribute{Name: "price.gross", Type: "Number", Value: []byte("15")}
	net := message.Attribute{Name: "price.net", Type: "Number.eur", Value: []byte("12.50")}
	trace := message.Attribute{Name: "AWSTraceHeader", Type: "String", Value: []byte("Root=1-5759e988-bd862e3fe1be46a994272793")}

	sent := must(c.SendMessage(t.Context(), &sqs.SendMessageInput{
		QueueUrl: &url, MessageBody: &body, MessageAttributes: attrs, MessageGroupId: aws.String("tenant-1"),
		MessageSystemAttributes: map[string]types.MessageSystemAttributeValue{
			"AWSTraceHeader": {DataType: aws.String("String"), StringValue: aws.String(string(trace.Value))},
		},
	}))(t)
	if !uuidForm.MatchString(aws.ToString(sent.MessageId)) {
		t.Errorf("MessageId is %s", aws.ToString(sent.MessageId))
	}
	equal(t, "SendMessage", &sqs.SendMessageOutput{
		MessageId: sent.MessageId, MD5OfMessageBody: md5Of(body),
		MD5OfMessageAttributes: attributesMD5(blob, status, gross, net), MD5OfMessageSystemAttributes: attributesMD5(trace),
	}, sent)
	equal(t, "counts", [3]string{"1", "0", "0"}, counts(t, c, url))

	advance(t, endpoint, "5s")
	got := receive(t, c, url, 10)
	if len(got) != 1 {
		t.Fatalf("received %d messages", len(got))
	}
	m := got[0]
	sentAt, _ := strconv.ParseInt(m.Attributes["SentTimestamp"], 10, 64)
	if sentAt < 1_700_000_000_000 || aws.ToString(m.ReceiptHandle) == "" {
		t.Errorf("SentTimestamp %q, ReceiptHandle %q", m.Attributes["SentTimestamp"], aws.ToString(m.ReceiptHandle))
	}
	first := strconv.FormatInt(sentAt+5000, 10)
	equal(t, "ReceiveMessage", types.Message{
		MessageId: sent.MessageId, ReceiptHandle: m.ReceiptHandle, Body: &body, MD5OfBody: md5Of(body),
		MessageAttributes: attrs, MD5OfMessageAttributes: sent.MD5OfMessageAttributes,
		Attributes: map[string]string{
			"SenderId": account, "SentTimestamp": m.Attributes["SentTimestamp"], "ApproximateReceiveCount": "1",
			"ApproximateFirstReceiveTimestamp": first, "MessageGroupId": "tenant-1", "AWSTraceHeader": string(trace.Value),
		},
	}, m)
	equal(t, "counts", [3]string{"0", "1", "0"}, counts(t, c, url))
	equal(t, "nothing is left", []types.Message(nil), receive(t, c, url, 10))

	// Its visibility runs out: it comes again, with another handle, and each
	// selector gives what it names.
	for i, tt := range []struct {
		in         sqs.ReceiveMessageInput
		system     []string
		attributes []message.Attribute
	}{
		{in: sqs.ReceiveMessageInput{}},
		{in: sqs.ReceiveMessageInput{MessageAttributeNames: []string{".*"}}, attributes: []message.Attribute{blob, status, gross, net}},
		{in: sqs.ReceiveMessageInput{MessageAttributeNames: []string{"price.*"}}, attributes: []message.Attribute{gross, net}},
		{in: sqs.ReceiveMessageInput{MessageAttributeNames: []string{"price.g*", "blob", "none"}}, attributes: []message.Attribute{blob, gross}},
		{in: sqs.ReceiveMessageInput{MessageAttributeNames: []string{"none"}}},
		{
			in:     sqs.ReceiveMessageInput{AttributeNames: []types.QueueAttributeName{"ApproximateReceiveCount", "SequenceNumber"}}, //nolint:staticcheck // the older name is still sent
			system: []string{"ApproximateReceiveCount"},
		},
		{
			in:     sqs.ReceiveMessageInput{AttributeNames: []types.QueueAttributeName{"Policy", "VisibilityTimeout", "SentTimestamp"}}, //nolint:staticcheck // the SDK's type has the queue's attributes
			system: []string{"SentTimestamp"},
		},
		{
			in:     sqs.ReceiveMessageInput{MessageSystemAttributeNames: []types.MessageSystemAttributeName{"SentTimestamp", "AWSTraceHeader"}},
			system: []string{"SentTimestamp", "AWSTraceHeader"},
		},
	} {
		advance(t, endpoint, "30s")
		tt.in.QueueUrl = &url
		again := must(c.ReceiveMessage(t.Context(), &tt.in))(t).Messages
		if len(again) != 1 {
			t.Fatalf("receive %d: %d messages", i, len(again))
		}
		want := types.Message{MessageId: sent.MessageId, ReceiptHandle: again[0].ReceiptHandle, Body: &body, MD5OfBody: md5Of(body)}
		for _, name := range tt.system {
			if want.Attributes == nil {
				want.Attributes = map[string]string{}
			}
			want.Attributes[name] = m.Attributes[name]
			if name == "ApproximateReceiveCount" {
				want.Attributes[name] = strconv.Itoa(i + 2)
			}
		}
		if tt.attributes != nil {
			want.MD5OfMessageAttributes = attributesMD5(tt.attributes...)
			want.MessageAttributes = map[string]types.MessageAttributeValue{}
			for _, a := range tt.attributes {
				want.MessageAttributes[a.Name] = attrs[a.Name]
			}
		}
		equal(t, "receive "+strconv.Itoa(i), want, again[0])
		if aws.ToString(again[0].ReceiptHandle) == aws.ToString(m.ReceiptHandle) {
			t.Errorf("receive %d has the handle of an earlier one", i)
		}
	}

	// The first handle still deletes it, and again.
	for range 2 {
		equal(t, "DeleteMessage", &sqs.DeleteMessageOutput{},
			must(c.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle}))(t))
	}
	equal(t, "counts", [3]string{"0", "0", "0"}, counts(t, c, url))
	advance(t, endpoint, "12h")
	equal(t, "a deleted message", []types.Message(nil), receive(t, c, url, 10))
}

func TestTraceHeaderOfTheRequest(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	url := createQueue(t, c, "q")
	req := newJSON(t, endpoint, "SendMessage", `{"QueueUrl":"`+url+`","MessageBody":"b"}`)
	req.Header.Set("X-Amzn-Trace-Id", "Root=1-abc")
	if r := do(t, req); r.Status != 200 || strings.Contains(r.Body, "MD5OfMessageSystemAttributes") {
		t.Fatalf("send: %d %s", r.Status, r.Body)
	}
	if got := receive(t, c, url, 1); len(got) != 1 || got[0].Attributes["AWSTraceHeader"] != "Root=1-abc" {
		t.Errorf("received %v", got)
	}
}

func TestSendMessageBatch(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	url := createQueue(t, c, "q", "MaximumMessageSize", "1024")
	entry := func(id, body string, delay int32) types.SendMessageBatchRequestEntry {
		return types.SendMessageBatchRequestEntry{Id: &id, MessageBody: &body, DelaySeconds: delay}
	}
	withAttribute := entry("attr", "with attribute", 0)
	withAttribute.MessageAttributes = map[string]types.MessageAttributeValue{"a": {DataType: aws.String("String"), StringValue: aws.String("x")}}
	withTrace := entry("trace", "with trace", 0)
	withTrace.MessageSystemAttributes = map[string]types.MessageSystemAttributeValue{"AWSTraceHeader": {DataType: aws.String("String"), StringValue: aws.String("Root=1")}}
	badAttribute := entry("bad", "bad attribute", 0)
	badAttribute.MessageAttributes = map[string]types.MessageAttributeValue{"a": {DataType: aws.String("Number"), StringValue: aws.String("x")}}

	out := must(c.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: []types.SendMessageBatchRequestEntry{
		entry("plain", "plain", 0), entry("long", strings.Repeat("x", 1025), 0), withAttribute,
		entry("late", "x", 901), withTrace, badAttribute, entry("delayed", "delayed", 60),
	}}))(t)
	if len(out.Successful) != 4 {
		t.Fatalf("SendMessageBatch: %v", out)
	}
	ok := func(i int, id, body string) types.SendMessageBatchResultEntry {
		return types.SendMessageBatchResultEntry{Id: &id, MessageId: out.Successful[i].MessageId, MD5OfMessageBody: md5Of(body)}
	}
	want := &sqs.SendMessageBatchOutput{
		Successful: []types.SendMessageBatchResultEntry{ok(0, "plain", "plain"), ok(1, "attr", "with attribute"), ok(2, "trace", "with trace"), ok(3, "delayed", "delayed")},
		Failed: []types.BatchResultErrorEntry{
			{Id: aws.String("long"), Code: aws.String("InvalidParameterValue"), SenderFault: true, Message: aws.String("One or more parameters cannot be validated. Reason: Message must be shorter than 1024 bytes.")},
			{Id: aws.String("late"), Code: aws.String("InvalidParameterValue"), SenderFault: true, Message: aws.String("Value 901 for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900.")},
			{Id: aws.String("bad"), Code: aws.String("InvalidParameterValue"), SenderFault: true, Message: aws.String("Can't cast the value of message (user) attribute 'a' to a number.")},
		},
	}
	want.Successful[1].MD5OfMessageAttributes = attributesMD5(message.Attribute{Name: "a", Type: "String", Value: []byte("x")})
	want.Successful[2].MD5OfMessageSystemAttributes = attributesMD5(message.Attribute{Name: "AWSTraceHeader", Type: "String", Value: []byte("Root=1")})
	equal(t, "SendMessageBatch", want, out)
	ids := map[string]bool{}
	for _, e := range out.Successful {
		ids[aws.ToString(e.MessageId)] = true
	}
	if len(ids) != 4 {
		t.Errorf("the four ids are not distinct: %v", ids)
	}
	equal(t, "counts", [3]string{"3", "0", "1"}, counts(t, c, url))
	for _, delay := range []string{"900", "901"} { // all succeed, all fail
		r := callJSON(t, endpoint, "SendMessageBatch", `{"QueueUrl":"`+url+`","Entries":[{"Id":"only","MessageBody":"x","DelaySeconds":`+delay+`}]}`)
		if !strings.Contains(r.Body, `"Successful":[`) || strings.Contains(r.Body, `"Failed":[`) != (delay == "901") {
			t.Errorf("SendMessageBatch has or lacks a list: %s", r.Body)
		}
	}
	equal(t, "received", []string{"plain", "with attribute", "with trace"}, bodies(receive(t, c, url, 10)))
}

func TestDeleteMessageBatch(t *testing.T) {
	c := client(start(t))
	url := createQueue(t, c, "q")
	other := createQueue(t, c, "other")
	for _, body := range []string{"1", "2", "3"} {
		send(t, c, url, body)
	}
	send(t, c, other, "elsewhere")
	got := receive(t, c, url, 10)
	foreign := receive(t, c, other, 1)
	if len(got) != 3 || len(foreign) != 1 {
		t.Fatalf("received %d and %d messages", len(got), len(foreign))
	}
	out := must(c.DeleteMessageBatch(t.Context(), &sqs.DeleteMessageBatchInput{QueueUrl: &url, Entries: []types.DeleteMessageBatchRequestEntry{
		{Id: aws.String("a"), ReceiptHandle: got[0].ReceiptHandle},
		{Id: aws.String("b"), ReceiptHandle: aws.String("garbage")},
		{Id: aws.String("c"), ReceiptHandle: got[1].ReceiptHandle},
		{Id: aws.String("d"), ReceiptHandle: foreign[0].ReceiptHandle},
	}}))(t)
	equal(t, "DeleteMessageBatch", &sqs.DeleteMessageBatchOutput{
		Successful: []types.DeleteMessageBatchResultEntry{{Id: aws.String("a")}, {Id: aws.String("c")}},
		Failed: []types.BatchResultErrorEntry{
			{Id: aws.String("b"), Code: aws.String("ReceiptHandleIsInvalid"), SenderFault: true, Message: aws.String(`The input receipt handle "garbage" is not a valid receipt handle.`)},
			{Id: aws.String("d"), Code: aws.String("ReceiptHandleIsInvalid"), SenderFault: true, Message: aws.String(`The input receipt handle "` + *foreign[0].ReceiptHandle + `" is not a valid receipt handle.`)},
		},
	}, out)
	equal(t, "counts", [3]string{"0", "1", "0"}, counts(t, c, url))
	equal(t, "counts of the other", [3]string{"0", "1", "0"}, counts(t, c, other))
}

func TestVisibility(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	url := createQueue(t, c, "q", "VisibilityTimeout", "60")
	send(t, c, url, "m")
	change := func(handle *string, seconds int32) {
		t.Helper()
		equal(t, "ChangeMessageVisibility", &sqs.ChangeMessageVisibilityOutput{}, must(c.ChangeMessageVisibility(t.Context(),
			&sqs.ChangeMessageVisibilityInput{QueueUrl: &url, ReceiptHandle: handle, VisibilityTimeout: seconds}))(t))
	}
	expect := func(n int, why string) []types.Message {
		t.Helper()
		got := receive(t, c, url, 10)
		if len(got) != n {
			t.Fatalf("%s: %d messages, want %d", why, len(got), n)
		}
		return got
	}
	m := expect(1, "a new message")[0]
	advance(t, endpoint, "59s")
	expect(0, "within the queue's visibility timeout")
	change(m.ReceiptHandle, 100)
	advance(t, endpoint, "99s")
	expect(0, "within the changed timeout")
	advance(t, endpoint, "1s")
	m = expect(1, "after the changed timeout")[0]
	change(m.ReceiptHandle, 0)
	m = expect(1, "returned at once")[0]
	equal(t, "receive count", "3", m.Attributes["ApproximateReceiveCount"])

	advance(t, endpoint, "60s")
	own := must(c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, VisibilityTimeout: 5}))(t).Messages
	if len(own) != 1 {
		t.Fatalf("received %d messages", len(own))
	}
	advance(t, endpoint, "5s")
	expect(1, "after the receive's own timeout")
	advance(t, endpoint, "61s")
	change(own[0].ReceiptHandle, 10) // an earlier handle, whose visibility has run out
	if got := callJSON(t, endpoint, "ChangeMessageVisibility", `{"QueueUrl":"`+url+`","ReceiptHandle":"garbage","VisibilityTimeout":1}`); got.Status != 400 {
		t.Errorf("a made-up handle: %d %s", got.Status, got.Body)
	}
}

func TestDelays(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	url := createQueue(t, c, "q", "DelaySeconds", "10", "VisibilityTimeout", "43200")
	send(t, c, url, "queue's delay")
	must(c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("own delay"), DelaySeconds: 20}))(t)
	// The SDK leaves out a zero; the protocol need not.
	if r := callJSON(t, endpoint, "SendMessage", `{"QueueUrl":"`+url+`","MessageBody":"no delay","DelaySeconds":0}`); r.Status != 200 {
		t.Fatalf("SendMessage: %d %s", r.Status, r.Body)
	}
	equal(t, "counts", [3]string{"1", "0", "2"}, counts(t, c, url))
	equal(t, "at once", []string{"no delay"}, bodies(receive(t, c, url, 10)))
	advance(t, endpoint, "9s")
	equal(t, "after 9 s", []string(nil), bodies(receive(t, c, url, 10)))
	advance(t, endpoint, "1s")
	equal(t, "after 10 s", []string{"queue's delay"}, bodies(receive(t, c, url, 10)))
	advance(t, endpoint, "10s")
	equal(t, "after 20 s", []string{"own delay"}, bodies(receive(t, c, url, 10)))

	// A new delay holds for later messages only.
	send(t, c, url, "old")
	must(c.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: map[string]string{"DelaySeconds": "0"}}))(t)
	send(t, c, url, "new")
	equal(t, "with a new delay", []string{"new"}, bodies(receive(t, c, url, 10)))
	advance(t, endpoint, "10s")
	equal(t, "after the old delay", []string{"old"}, bodies(receive(t, c, url, 1)))
}

func TestRetention(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	url := createQueue(t, c, "q", "MessageRetentionPeriod", "3600")
	send(t, c, url, "short-lived")
	advance(t, endpoint, "59m")
	send(t, c, url, "later")
	equal(t, "before", []string{"later", "short-lived"}, bodies(receive(t, c, url, 10)))
	advance(t, endpoint, "1m")
	equal(t, "the first has expired", []string{"later"}, bodies(receive(t, c, url, 10)))
	// A changed period holds for messages already there.
	must(c.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: map[string]string{"MessageRetentionPeriod": "60"}}))(t)
	advance(t, endpoint, "1m")
	equal(t, "the second too", []string(nil), bodies(receive(t, c, url, 10)))
	equal(t, "counts", [3]string{"0", "0", "0"}, counts(t, c, url))
}

func TestDeadLetters(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	dead := createQueue(t, c, "dead")
	url := createQueue(t, c, "q", "RedrivePolicy", `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":"2"}`)
	sent := must(c.SendMessage(t.Context(), &sqs.SendMessageInput{
		QueueUrl: &url, MessageBody: aws.String("poison"),
		MessageAttributes: map[string]types.MessageAttributeValue{"a": {DataType: aws.String("String"), StringValue: aws.String("x")}},
	}))(t)
	var last types.Message
	for i := range 2 {
		got := receive(t, c, url, 10)
		if len(got) != 1 {
			t.Fatalf("receive %d: %d messages", i+1, len(got))
		}
		last = got[0]
		advance(t, endpoint, "30s")
	}
	equal(t, "after two receives", []types.Message(nil), receive(t, c, url, 10))
	advance(t, endpoint, "1s") // what moves has arrived
	equal(t, "counts of the source", [3]string{"0", "0", "0"}, counts(t, c, url))
	got := receive(t, c, dead, 10)
	if len(got) != 1 {
		t.Fatalf("the dead-letter queue gives %d messages", len(got))
	}
	equal(t, "the dead letter", types.Message{
		MessageId: sent.MessageId, ReceiptHandle: got[0].ReceiptHandle, Body: aws.String("poison"), MD5OfBody: sent.MD5OfMessageBody,
		MessageAttributes: last.MessageAttributes, MD5OfMessageAttributes: sent.MD5OfMessageAttributes,
		Attributes: map[string]string{
			"SenderId": account, "SentTimestamp": last.Attributes["SentTimestamp"], "ApproximateReceiveCount": "3",
			"ApproximateFirstReceiveTimestamp": last.Attributes["ApproximateFirstReceiveTimestamp"],
			"DeadLetterQueueSourceArn":         "arn:aws:sqs:us-east-1:000000000000:q",
		},
	}, got[0])
}

// A long poll is answered as soon as there is a message, before its 20 s are over.
func TestLongPoll(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	url := createQueue(t, c, "q", "ReceiveMessageWaitTimeSeconds", "20")
	const wait = 20 * time.Second
	for _, tt := range []struct {
		name    string
		in      sqs.ReceiveMessageInput
		trigger func()
	}{
		{"send, the request's wait", sqs.ReceiveMessageInput{WaitTimeSeconds: 20}, func() { send(t, c, url, "m") }},
		{"send, the queue's wait", sqs.ReceiveMessageInput{}, func() { send(t, c, url, "m") }},
		{"delay", sqs.ReceiveMessageInput{WaitTimeSeconds: 20}, func() {
			must(c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("m"), DelaySeconds: 30}))(t)
			advance(t, endpoint, "30s")
		}},
	} {
		tt.in.QueueUrl = &url
		began := clock.System.Now()
		done := make(chan []types.Message, 1)
		go func() {
			out, err := c.ReceiveMessage(t.Context(), &tt.in)
			if err != nil {
				t.Error(err)
				out = &sqs.ReceiveMessageOutput{}
			}
			done <- out.Messages
		}()
		tt.trigger()
		got := <-done
		if took := clock.System.Now().Sub(began); len(got) != 1 || took >= wait {
			t.Fatalf("%s: %d messages after %s", tt.name, len(got), took)
		}
		must(c.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: got[0].ReceiptHandle}))(t)
	}
	// A short poll of the same queue asks for no wait.
	began := clock.System.Now()
	r := callJSON(t, endpoint, "ReceiveMessage", `{"QueueUrl":"`+url+`","WaitTimeSeconds":0}`)
	if took := clock.System.Now().Sub(began); r.Status != 200 || r.Body != "{}" || took >= wait {
		t.Errorf("short poll: %d %s after %s", r.Status, r.Body, took)
	}
}

// Half of a surrogate pair, as is left of a text that was cut, is no character either: it is
// refused, and does not become another one.
func TestTextThatIsNone(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	q := createQueue(t, c, "q")
	for _, text := range []string{`\ud83d`, `a\uDE00`, `\ud83d\ud83d\ude00`, "a\xffb", "\xed\xa0\x80"} {
		r := callJSON(t, endpoint, "SendMessage", `{"QueueUrl":"`+q+`","MessageBody":"`+text+`"}`)
		if r.Status != 400 || !strings.Contains(r.Body, "#InvalidMessageContents") {
			t.Errorf("the body %q: %d %s", text, r.Status, r.Body)
		}
		r = callJSON(t, endpoint, "SendMessage", `{"QueueUrl":"`+q+`","MessageBody":"b","MessageAttributes":{"a":{"DataType":"String","StringValue":"`+text+`"}}}`)
		if r.Status != 400 || !strings.Contains(r.Body, "#InvalidParameterValueException") {
			t.Errorf("the attribute %q: %d %s", text, r.Status, r.Body)
		}
		r = callJSON(t, endpoint, "SendMessageBatch", `{"QueueUrl":"`+q+`","Entries":[{"Id":"1","MessageBody":"b"},{"Id":"2","MessageBody":"`+text+`"}]}`)
		if r.Status != 200 || !strings.Contains(r.Body, `"Successful":[{"Id":"1"`) || !strings.Contains(r.Body, `"Failed":[{"Id":"2","SenderFault":true,"Code":"InvalidMessageContents"`) {
			t.Errorf("the entry %q: %d %s", text, r.Status, r.Body)
		}
	}
	must(c.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: &q}))(t)
	callJSON(t, endpoint, "SendMessage", `{"QueueUrl":"`+q+`","MessageBody":"\ud83d\ude00 \\ud83d \ufffd","Unknown":null}`)
	equal(t, "what is text", "\U0001F600 \\ud83d \uFFFD", aws.ToString(receive(t, c, q, 1)[0].Body))
}

// SenderId is the unique id of who sent a message: of a user, or of a role with the session's name.
func TestSenderID(t *testing.T) {
	endpoint := start(t)
	root, users := client(endpoint), iamClient(endpoint)
	url := createQueue(t, root, "q")
	may := statement("Allow", `["sqs:*","sts:AssumeRole"]`, "*")
	ann := makeUser(t, endpoint, "ann", may)
	role := must(users.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: aws.String("worker"), AssumeRolePolicyDocument: aws.String(trustRoot)}))(t).Role
	must(users.PutRolePolicy(t.Context(), &iam.PutRolePolicyInput{
		RoleName: role.RoleName, PolicyName: aws.String("p"), PolicyDocument: aws.String(`{"Version":"2012-10-17","Statement":[` + may + `]}`),
	}))(t)
	assumed := must(stsAs(endpoint, ann).AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: role.Arn, RoleSessionName: aws.String("job-1")}))(t).Credentials

	send(t, root, url, "root")
	send(t, callersClients(endpoint, ann).sqs, url, "user")
	must(callersClients(endpoint, session(assumed)).sqs.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{
		QueueUrl: &url, Entries: []types.SendMessageBatchRequestEntry{{Id: aws.String("a"), MessageBody: aws.String("role")}},
	}))(t)
	got := map[string]string{}
	for _, m := range receive(t, root, url, 10) {
		got[*m.Body] = m.Attributes["SenderId"]
	}
	user := must(users.GetUser(t.Context(), &iam.GetUserInput{UserName: aws.String("ann")}))(t).User
	equal(t, "senders", map[string]string{"root": account, "user": *user.UserId, "role": *role.RoleId + ":job-1"}, got)
}
