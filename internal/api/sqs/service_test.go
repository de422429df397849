package sqs

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
)

func TestCreateQueueRefusals(t *testing.T) {
	const target = "arn:aws:sqs:us-east-1:000000000000:"
	redrive := func(name string) map[string]string {
		return map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + target + name + `","maxReceiveCount":3}`}
	}
	shown := func(name string) string {
		return "Value " + redrive(name)["RedrivePolicy"] + " for parameter RedrivePolicy is invalid. Reason: "
	}
	for _, tt := range []struct {
		in   CreateQueueInput
		kind fault.Kind
		text string
	}{
		{CreateQueueInput{QueueName: new("a b")}, fault.InvalidParameter, "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"},
		{CreateQueueInput{QueueName: new(strings.Repeat("a", 81))}, fault.InvalidParameter, "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"},
		{CreateQueueInput{QueueName: new("a.fifo")}, fault.InvalidParameter, "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"},
		{CreateQueueInput{QueueName: new("a"), Attributes: map[string]string{"FifoQueue": "true"}}, fault.InvalidParameter, "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo suffix and be 1 to 80 in length."},
		{CreateQueueInput{QueueName: new("a"), Attributes: map[string]string{"FifoQueue": "false"}}, fault.InvalidAttributeName, "Unknown Attribute FifoQueue."},
		{CreateQueueInput{QueueName: new("a"), Attributes: map[string]string{"DelaySeconds": "901"}}, fault.InvalidAttributeValue, "Invalid value for the parameter DelaySeconds."},
		{CreateQueueInput{QueueName: new("a"), Attributes: map[string]string{"KmsMasterKeyId": "k", "SqsManagedSseEnabled": "true"}}, fault.InvalidAttributeName, ""},
		{CreateQueueInput{QueueName: new("a"), Attributes: redrive("missing")}, fault.InvalidParameter, shown("missing") + "Dead letter target does not exist."},
		{CreateQueueInput{QueueName: new("a"), Attributes: redrive("closed")}, fault.InvalidParameter, shown("closed") + "The RedriveAllowPolicy of the dead-letter queue does not permit this source queue."},
		{CreateQueueInput{QueueName: new("a"), Attributes: redrive("x.fifo")}, fault.InvalidParameter, shown("x.fifo") + "Dead-letter queue must be same type of queue as the source."},
		{CreateQueueInput{QueueName: new("a"), Tags: map[string]string{"": "v"}}, fault.InvalidParameter, ""},
		{CreateQueueInput{QueueName: new("a"), Tags: map[string]string{"k": strings.Repeat("v", 257)}}, fault.InvalidParameter, ""},
	} {
		f := newFake("closed")
		f.queues[arn.Queue(testRegion, testAccount, "closed")]["RedriveAllowPolicy"] = `{"redrivePermission":"denyAll"}`
		_, err := newService(f).CreateQueue(t.Context(), newCall(), &tt.in)
		wantFault(t, err, tt.kind, tt.text)
		if len(f.queues) != 1 {
			t.Errorf("%v: a refused request made a queue", tt.in)
		}
	}
}

func TestCreateQueue(t *testing.T) {
	f := newFake("dlq")
	out, err := newService(f).CreateQueue(t.Context(), newCall(), &CreateQueueInput{QueueName: new("q"), Attributes: map[string]string{
		"DelaySeconds": "05", "Policy": "", "KmsMasterKeyId": "k",
		"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dlq", "maxReceiveCount":"3"}`,
	}})
	if err != nil || out.QueueUrl != "http://localhost:4566/000000000000/q" {
		t.Fatalf("CreateQueue: %v, %v", out, err)
	}
	want := map[string]string{
		"DelaySeconds": "5", "KmsMasterKeyId": "k", "SqsManagedSseEnabled": "false",
		"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dlq","maxReceiveCount":3}`,
	}
	if diff := cmp.Diff(want, f.queues[arn.Queue(testRegion, testAccount, "q")]); diff != "" {
		t.Errorf("attributes of the command (-want +got):\n%s", diff)
	}
}

func TestListQueuesPages(t *testing.T) {
	s := newService(newFake("a1", "a2", "a3", "b1"))
	in := &ListQueuesInput{QueueNamePrefix: new("a"), MaxResults: new(2)}
	first, err := s.ListQueues(t.Context(), newCall(), in)
	if err != nil || first.NextToken == "" {
		t.Fatalf("first page: %v, %v", first, err)
	}
	if diff := cmp.Diff([]string{urlOf("a1"), urlOf("a2")}, first.QueueUrls); diff != "" {
		t.Errorf("first page (-want +got):\n%s", diff)
	}
	in.NextToken = &first.NextToken
	second, err := s.ListQueues(t.Context(), newCall(), in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&ListQueuesOutput{QueueUrls: []string{urlOf("a3")}}, second); diff != "" {
		t.Errorf("second page (-want +got):\n%s", diff)
	}

	other := newCall()
	other.Account = "111111111111"
	for name, tt := range map[string]struct {
		call   *api.Call
		prefix string
		token  string
	}{
		"garbage":           {newCall(), "a", "garbage"},
		"too short":         {newCall(), "a", "AAAA"},
		"another prefix":    {newCall(), "b", first.NextToken},
		"another's":         {other, "a", first.NextToken},
		"changed":           {newCall(), "a", "A" + first.NextToken[1:]},
		"of nothing behind": {newCall(), "a", first.NextToken[:16]},
	} {
		if name == "changed" && tt.token == first.NextToken {
			tt.token = "B" + first.NextToken[1:]
		}
		_, err := s.ListQueues(t.Context(), tt.call, &ListQueuesInput{QueueNamePrefix: &tt.prefix, MaxResults: new(2), NextToken: &tt.token})
		wantFault(t, err, fault.InvalidParameter, "Invalid or expired next token.")
	}
	all, err := s.ListQueues(t.Context(), newCall(), &ListQueuesInput{})
	if err != nil || len(all.QueueUrls) != 4 || all.NextToken != "" {
		t.Errorf("without MaxResults: %v, %v", all, err)
	}
	for _, n := range []int{0, -1, 1001} {
		_, err := s.ListQueues(t.Context(), newCall(), &ListQueuesInput{MaxResults: &n})
		wantFault(t, err, fault.InvalidParameter, "")
	}
}

func TestSendMessageRefusals(t *testing.T) {
	for _, tt := range []struct {
		in   SendMessageInput
		kind fault.Kind
		text string
	}{
		{SendMessageInput{QueueUrl: "http://h", MessageBody: "b"}, fault.QueueDoesNotExist, ""},
		{SendMessageInput{QueueUrl: urlOf("none"), MessageBody: "\x00"}, fault.QueueDoesNotExist, ""},
		{SendMessageInput{MessageBody: ""}, fault.MissingParameter, "The request must contain the parameter MessageBody."},
		{SendMessageInput{MessageBody: "\x00"}, fault.InvalidMessageContents, invalidCharacters},
		{SendMessageInput{MessageBody: "b", DelaySeconds: new(901)}, fault.InvalidParameter, "Value 901 for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900."},
		{SendMessageInput{MessageBody: "b", DelaySeconds: new(-1)}, fault.InvalidParameter, "Value -1 for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900."},
		{SendMessageInput{MessageBody: "b", MessageDeduplicationId: new("d")}, fault.InvalidParameter, "Value d for parameter MessageDeduplicationId is invalid. Reason: The request include parameter that is not valid for this queue type."},
		{SendMessageInput{MessageBody: "b", MessageGroupId: new("a b")}, fault.InvalidParameter, ""},
		{SendMessageInput{MessageBody: "b", MessageGroupId: new(strings.Repeat("g", 129))}, fault.InvalidParameter, ""},
		{SendMessageInput{MessageBody: strings.Repeat("x", 1<<20+1)}, fault.InvalidParameter, "One or more parameters are invalid. Reason: Message must be shorter than 1048576 bytes."},
		{SendMessageInput{MessageBody: strings.Repeat("x", 1<<20-7), MessageAttributes: map[string]MessageAttributeValue{"a": {DataType: "String", StringValue: new("v")}}}, fault.InvalidParameter, "One or more parameters are invalid. Reason: Message must be shorter than 1048576 bytes."},
		{SendMessageInput{MessageBody: "b", MessageSystemAttributes: map[string]MessageAttributeValue{"SenderId": {DataType: "String", StringValue: new("v")}}}, fault.InvalidParameter, "Message system attribute name 'SenderId' is invalid."},
		{SendMessageInput{MessageBody: "b", MessageSystemAttributes: map[string]MessageAttributeValue{"AWSTraceHeader": {DataType: "Number", StringValue: new("1")}}}, fault.InvalidParameter, ""},
		{SendMessageInput{MessageBody: "b", MessageSystemAttributes: map[string]MessageAttributeValue{"AWSTraceHeader": {DataType: "String"}}}, fault.InvalidParameter, "Message system attribute 'AWSTraceHeader' must contain a non-empty value of type 'String'."},
	} {
		f := newFake("q")
		if tt.in.QueueUrl == "" {
			tt.in.QueueUrl = urlOf("q")
		}
		_, err := newService(f).SendMessage(t.Context(), newCall(), &tt.in)
		wantFault(t, err, tt.kind, tt.text)
		if len(f.sent) > 0 {
			t.Errorf("%s: a refused message was sent", tt.text)
		}
	}
}

func TestSendMessage(t *testing.T) {
	f := newFake("q")
	call := newCall()
	call.Header.Set("X-Amzn-Trace-Id", "Root=1-header")
	out, err := newService(f).SendMessage(t.Context(), call, &SendMessageInput{
		QueueUrl: urlOf("q"), MessageBody: "hello", MessageGroupId: new("tenant"),
		MessageAttributes: map[string]MessageAttributeValue{
			"b": {DataType: "Binary", BinaryValue: []byte{1, 2}},
			"a": {DataType: "String", StringValue: new("x")},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := f.sent[0].Message
	if diff := cmp.Diff(&SendMessageOutput{
		MD5OfMessageBody:       "5d41402abc4b2a76b9719d911017c592",
		MD5OfMessageAttributes: digest(message.AttributesMD5(m.Attributes)),
		MessageId:              "00000000-0000-0000-0000-000000000001",
	}, out); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	want := &message.Message{
		ID: message.ID{15: 1}, Sender: testAccount, Group: "tenant", Trace: "Root=1-header", Body: []byte("hello"),
		Attributes: []message.Attribute{{Name: "a", Type: "String", Value: []byte("x")}, {Name: "b", Type: "Binary", Value: []byte{1, 2}}},
	}
	want.Seal()
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	if f.sent[0].Delay >= 0 {
		t.Errorf("without DelaySeconds the delay is %v, not the queue's own", f.sent[0].Delay)
	}

	// The system attribute wins over the header, and has a digest.
	out, err = newService(f).SendMessage(t.Context(), call, &SendMessageInput{
		QueueUrl: urlOf("q"), MessageBody: "hello", DelaySeconds: new(0),
		MessageSystemAttributes: map[string]MessageAttributeValue{"AWSTraceHeader": {DataType: "String", StringValue: new("Root=1-attribute")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	sum := digest(message.AttributesMD5([]message.Attribute{{Name: "AWSTraceHeader", Type: "String", Value: []byte("Root=1-attribute")}}))
	if out.MD5OfMessageSystemAttributes != sum || out.MD5OfMessageAttributes != "" {
		t.Errorf("digests %q, %q; want %q and none", out.MD5OfMessageSystemAttributes, out.MD5OfMessageAttributes, sum)
	}
	if got := f.sent[1]; got.Message.Trace != "Root=1-attribute" || got.Delay != 0 {
		t.Errorf("trace %q, delay %v", got.Message.Trace, got.Delay)
	}
}

func TestSendMessageBatchPartial(t *testing.T) {
	f := newFake("q")
	f.queues[arn.Queue(testRegion, testAccount, "q")]["MaximumMessageSize"] = "1024"
	out, err := newService(f).SendMessageBatch(t.Context(), newCall(), &SendMessageBatchInput{QueueUrl: urlOf("q"), Entries: []SendMessageBatchRequestEntry{
		{Id: "good1", MessageBody: "one"},
		{Id: "long", MessageBody: strings.Repeat("x", 1025)},
		{Id: "late", MessageBody: "x", DelaySeconds: new(1000)},
		{Id: "empty"},
		{Id: "bad", MessageBody: "\x00"},
		{Id: "good2", MessageBody: "two", DelaySeconds: new(5)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := &SendMessageBatchOutput{
		Successful: []SendMessageBatchResultEntry{
			{Id: "good1", MessageId: "00000000-0000-0000-0000-000000000001", MD5OfMessageBody: "f97c5d29941bfb1b2fdab0874906ab82"},
			{Id: "good2", MessageId: "00000000-0000-0000-0000-000000000002", MD5OfMessageBody: "b8a9f715dbb64fd5c56e7783c6820a61"},
		},
		Failed: []BatchResultErrorEntry{
			{Id: "long", Code: "InvalidParameterValue", Message: "One or more parameters cannot be validated. Reason: Message must be shorter than 1024 bytes.", SenderFault: true},
			{Id: "late", Code: "InvalidParameterValue", Message: "Value 1000 for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900.", SenderFault: true},
			{Id: "empty", Code: "InvalidParameterValue", Message: "The request must contain the parameter MessageBody.", SenderFault: true},
			{Id: "bad", Code: "InvalidMessageContents", Message: invalidCharacters, SenderFault: true},
		},
	}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	if len(f.sent) != 2 || string(f.sent[1].Message.Body) != "two" || f.sent[1].Delay != 5*time.Second {
		t.Errorf("sent: %v", f.sent)
	}
}

func TestBatchesCheckTheQueueFirst(t *testing.T) {
	s := newService(newFake())
	_, err := s.SendMessageBatch(t.Context(), newCall(), &SendMessageBatchInput{QueueUrl: urlOf("none")})
	wantFault(t, err, fault.QueueDoesNotExist, "")
	_, err = s.DeleteMessageBatch(t.Context(), newCall(), &DeleteMessageBatchInput{QueueUrl: urlOf("none")})
	wantFault(t, err, fault.QueueDoesNotExist, "")
}

func TestDeleteMessageBatchPartial(t *testing.T) {
	f := newFake("q")
	f.errs = []error{nil, fault.New(fault.ReceiptHandleIsInvalid, "bad handle"), nil}
	out, err := newService(f).DeleteMessageBatch(t.Context(), newCall(), &DeleteMessageBatchInput{QueueUrl: urlOf("q"), Entries: []DeleteMessageBatchRequestEntry{
		{Id: "a", ReceiptHandle: "1"}, {Id: "b", ReceiptHandle: "2"}, {Id: "c", ReceiptHandle: "3"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&DeleteMessageBatchOutput{
		Successful: []DeleteMessageBatchResultEntry{{Id: "a"}, {Id: "c"}},
		Failed:     []BatchResultErrorEntry{{Id: "b", Code: "Other", Message: "bad handle", SenderFault: true}},
	}, out); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1", "2", "3"}, f.handles); diff != "" {
		t.Errorf("handles (-want +got):\n%s", diff)
	}
}

func TestReceiveMessageRequest(t *testing.T) {
	const own = -time.Second
	for _, tt := range []struct {
		in   ReceiveMessageInput
		want shard.ReceiveRequest
		kind fault.Kind
		text string
	}{
		{in: ReceiveMessageInput{}, want: shard.ReceiveRequest{Max: 1, Visibility: own, Wait: own}},
		{in: ReceiveMessageInput{MaxNumberOfMessages: new(10), VisibilityTimeout: new(0), WaitTimeSeconds: new(0)}, want: shard.ReceiveRequest{Max: 10}},
		{in: ReceiveMessageInput{VisibilityTimeout: new(43200), WaitTimeSeconds: new(20)}, want: shard.ReceiveRequest{Max: 1, Visibility: 12 * time.Hour, Wait: 20 * time.Second}},
		{in: ReceiveMessageInput{MaxNumberOfMessages: new(0)}, kind: fault.InvalidParameter, text: "Value 0 for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided."},
		{in: ReceiveMessageInput{MaxNumberOfMessages: new(11)}, kind: fault.InvalidParameter},
		{in: ReceiveMessageInput{VisibilityTimeout: new(43201)}, kind: fault.InvalidParameter, text: "Value 43201 for parameter VisibilityTimeout is invalid. Reason: Must be between 0 and 43200, if provided."},
		{in: ReceiveMessageInput{VisibilityTimeout: new(-1)}, kind: fault.InvalidParameter},
		{in: ReceiveMessageInput{WaitTimeSeconds: new(21)}, kind: fault.InvalidParameter, text: "Value 21 for parameter WaitTimeSeconds is invalid. Reason: Must be >= 0 and <= 20, if provided."},
		{in: ReceiveMessageInput{WaitTimeSeconds: new(-1)}, kind: fault.InvalidParameter},
		{in: ReceiveMessageInput{AttributeNames: []string{"Policy", "SqsManagedSseEnabled"}}, want: shard.ReceiveRequest{Max: 1, Visibility: own, Wait: own}},
		{in: ReceiveMessageInput{MessageSystemAttributeNames: []string{"All", "VisibilityTimeout"}}, want: shard.ReceiveRequest{Max: 1, Visibility: own, Wait: own}},
		{in: ReceiveMessageInput{AttributeNames: []string{"Colour"}}, kind: fault.InvalidAttributeName, text: "Unknown Attribute Colour."},
		{in: ReceiveMessageInput{MessageSystemAttributeNames: []string{"senderId"}}, kind: fault.InvalidAttributeName, text: "Unknown Attribute senderId."},
		{in: ReceiveMessageInput{ReceiveRequestAttemptId: new("r")}, want: shard.ReceiveRequest{Max: 1, Visibility: own, Wait: own}},
	} {
		f := newFake("q")
		tt.in.QueueUrl = urlOf("q")
		_, err := newService(f).ReceiveMessage(t.Context(), newCall(), &tt.in)
		if tt.kind != 0 {
			wantFault(t, err, tt.kind, tt.text)
		} else if err != nil {
			t.Errorf("%v: %v", tt.in, err)
		} else {
			tt.want.Queue = arn.Queue(testRegion, testAccount, "q")
		}
		if diff := cmp.Diff(tt.want, f.received); diff != "" {
			t.Errorf("request (-want +got):\n%s", diff)
		}
	}
}

func TestReceiveMessageAnswer(t *testing.T) {
	m := &message.Message{
		ID:   message.ID{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef},
		Sent: 1700000000123, Sender: testAccount, Group: "g", Trace: "Root=1", Source: "arn:aws:sqs:us-east-1:000000000000:src",
		Body: []byte("hello"), Attributes: []message.Attribute{{Name: "a", Type: "String", Value: []byte("x")}, {Name: "b", Type: "Binary", Value: []byte{1}}},
	}
	m.Seal()
	f := newFake("q")
	f.gives = []shard.Received{{Message: m, ReceiptHandle: "h", Receives: 2, FirstReceived: 1700000001000}}
	base := Message{MessageId: "01234567-89ab-cdef-0123-456789abcdef", ReceiptHandle: "h", MD5OfBody: "5d41402abc4b2a76b9719d911017c592", Body: "hello"}

	everything := base
	everything.Attributes = api.Pairs{
		{Name: "SenderId", Value: testAccount},
		{Name: "SentTimestamp", Value: "1700000000123"},
		{Name: "ApproximateReceiveCount", Value: "2"},
		{Name: "ApproximateFirstReceiveTimestamp", Value: "1700000001000"},
		{Name: "MessageGroupId", Value: "g"},
		{Name: "AWSTraceHeader", Value: "Root=1"},
		{Name: "DeadLetterQueueSourceArn", Value: "arn:aws:sqs:us-east-1:000000000000:src"},
	}
	everything.MD5OfMessageAttributes = digest(m.AttributesMD5)
	everything.MessageAttributes = map[string]MessageAttributeValue{"a": {DataType: "String", StringValue: new("x")}, "b": {DataType: "Binary", BinaryValue: []byte{1}}}

	some := base
	some.Attributes = api.Pairs{{Name: "SentTimestamp", Value: "1700000000123"}, {Name: "ApproximateReceiveCount", Value: "2"}}
	some.MD5OfMessageAttributes = digest(message.AttributesMD5(m.Attributes[1:]))
	some.MessageAttributes = map[string]MessageAttributeValue{"b": {DataType: "Binary", BinaryValue: []byte{1}}}

	for _, tt := range []struct {
		in   ReceiveMessageInput
		want Message
	}{
		{ReceiveMessageInput{}, base},
		{ReceiveMessageInput{MessageAttributeNames: []string{"c", "z.*"}}, base},
		{ReceiveMessageInput{AttributeNames: []string{"All"}, MessageAttributeNames: []string{"All"}}, everything},
		{ReceiveMessageInput{MessageSystemAttributeNames: []string{"All"}, MessageAttributeNames: []string{".*"}}, everything},
		{ReceiveMessageInput{AttributeNames: []string{"ApproximateReceiveCount"}, MessageSystemAttributeNames: []string{"SentTimestamp", "SequenceNumber"}, MessageAttributeNames: []string{"b"}}, some},
	} {
		tt.in.QueueUrl = urlOf("q")
		out, err := newService(f).ReceiveMessage(t.Context(), newCall(), &tt.in)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]Message{tt.want}, out.Messages); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tt.in, diff)
		}
	}
}

func TestSelectUser(t *testing.T) {
	for _, tt := range []struct {
		selectors []string
		yes, no   []string
	}{
		{nil, nil, []string{"a", ""}},
		{[]string{"All"}, []string{"a", "b.c"}, nil},
		{[]string{"a", ".*"}, []string{"a", "b.c"}, nil},
		{[]string{"*"}, []string{"a"}, nil},
		{[]string{"all"}, []string{"all"}, []string{"a"}},
		{[]string{"order", "price.*"}, []string{"order", "price.net", "price", "prices"}, []string{"orders", "pric", "x.price"}},
		{[]string{"pri*"}, []string{"price", "pri", "private.x"}, []string{"pr", "Price"}},
	} {
		u := selectUser(tt.selectors)
		for _, name := range tt.yes {
			if !u.match(name) {
				t.Errorf("%q do not select %q", tt.selectors, name)
			}
		}
		for _, name := range tt.no {
			if u.match(name) {
				t.Errorf("%q select %q", tt.selectors, name)
			}
		}
	}
}

func TestChangeMessageVisibility(t *testing.T) {
	f := newFake("q")
	f.errs = []error{nil}
	s := newService(f)
	if _, err := s.ChangeMessageVisibility(t.Context(), newCall(), &ChangeMessageVisibilityInput{QueueUrl: urlOf("q"), ReceiptHandle: "h", VisibilityTimeout: new(43200)}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]shard.VisibilityChange{{Handle: "h", Timeout: 12 * time.Hour}}, f.changed); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
	for _, n := range []int{-1, 43201} {
		_, err := s.ChangeMessageVisibility(t.Context(), newCall(), &ChangeMessageVisibilityInput{QueueUrl: urlOf("q"), ReceiptHandle: "h", VisibilityTimeout: &n})
		wantFault(t, err, fault.InvalidParameter, "")
	}
	f.errs = []error{fault.New(fault.ReceiptHandleIsInvalid, "bad")}
	_, err := s.ChangeMessageVisibility(t.Context(), newCall(), &ChangeMessageVisibilityInput{QueueUrl: urlOf("q"), ReceiptHandle: "x", VisibilityTimeout: new(1)})
	wantFault(t, err, fault.ReceiptHandleIsInvalid, "bad")
	_, err = s.DeleteMessage(t.Context(), newCall(), &DeleteMessageInput{QueueUrl: urlOf("q"), ReceiptHandle: "x"})
	wantFault(t, err, fault.ReceiptHandleIsInvalid, "bad")
}

func TestGetQueueAttributes(t *testing.T) {
	f := newFake("q", "k")
	f.queues[arn.Queue(testRegion, testAccount, "k")] = map[string]string{"KmsMasterKeyId": "key", "SqsManagedSseEnabled": "false", "DelaySeconds": "7"}
	s := newService(f)
	get := func(name string, names ...string) map[string]string {
		t.Helper()
		out, err := s.GetQueueAttributes(t.Context(), newCall(), &GetQueueAttributesInput{QueueUrl: urlOf(name), AttributeNames: names})
		if err != nil {
			t.Fatal(err)
		}
		if out == nil {
			return nil
		}
		return out.Attributes
	}
	zero := "-62135596800" // the fake's queues have no times
	plain := map[string]string{
		"QueueArn": "arn:aws:sqs:us-east-1:000000000000:q", "CreatedTimestamp": zero, "LastModifiedTimestamp": zero,
		"ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesNotVisible": "0", "ApproximateNumberOfMessagesDelayed": "0",
		"DelaySeconds": "0", "MaximumMessageSize": "1048576", "MessageRetentionPeriod": "345600",
		"ReceiveMessageWaitTimeSeconds": "0", "VisibilityTimeout": "30", "SqsManagedSseEnabled": "true",
	}
	if diff := cmp.Diff(plain, get("q", "QueueArn", "All")); diff != "" {
		t.Errorf("All (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"DelaySeconds": "7", "KmsMasterKeyId": "key", "KmsDataKeyReusePeriodSeconds": "300", "SqsManagedSseEnabled": "false"},
		get("k", "DelaySeconds", "KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds", "SqsManagedSseEnabled", "Policy", "FifoQueue")); diff != "" {
		t.Errorf("named (-want +got):\n%s", diff)
	}
	if got := get("q"); len(got) != 0 {
		t.Errorf("no names give %v", got)
	}
	_, err := s.GetQueueAttributes(t.Context(), newCall(), &GetQueueAttributesInput{QueueUrl: urlOf("q"), AttributeNames: []string{"Colour"}})
	wantFault(t, err, fault.InvalidAttributeName, "Unknown Attribute Colour.")
}

func TestSetQueueAttributesRefusals(t *testing.T) {
	for name, kind := range map[string]fault.Kind{
		"QueueArn":  fault.InvalidAttributeName,
		"FifoQueue": fault.InvalidAttributeName,
		"Policy":    fault.InvalidAttributeValue,
	} {
		f := newFake("q")
		_, err := newService(f).SetQueueAttributes(t.Context(), newCall(), &SetQueueAttributesInput{
			QueueUrl: urlOf("q"), Attributes: map[string]string{"DelaySeconds": "5", name: "true"},
		})
		wantFault(t, err, kind, "")
		if len(f.queues[arn.Queue(testRegion, testAccount, "q")]) != 0 {
			t.Errorf("a refused %s changed the queue", name)
		}
	}
	f := newFake("q")
	_, err := newService(f).SetQueueAttributes(t.Context(), newCall(), &SetQueueAttributesInput{
		QueueUrl: urlOf("q"), Attributes: map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:111111111111:x","maxReceiveCount":1}`},
	})
	wantFault(t, err, fault.InvalidParameter, "")
}

// What lists a thousand queues reserves memory before it walks through their names:
// hundreds of such calls at once took gigabytes.
func TestListingsReserve(t *testing.T) {
	held := map[string]int64{}
	for _, op := range New(Options{}).Operations() {
		held[op.Name] = op.Answer
	}
	for _, name := range []string{"ListQueues", "ListDeadLetterSourceQueues"} {
		if held[name] < 1<<20 {
			t.Errorf("%s reserves %d bytes", name, held[name])
		}
	}
}
