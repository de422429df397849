package sqs

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
)

func TestQueueOf(t *testing.T) {
	call := newCall()
	q := arn.Queue(testRegion, testAccount, "Some_queue-1")
	for url, want := range map[string]arn.ARN{
		urlOf("Some_queue-1"): q,
		"Some_queue-1":        q,
		"https://sqs.eu-west-1.amazonaws.com/000000000000/Some_queue-1":               arn.Queue("eu-west-1", testAccount, "Some_queue-1"),
		"http://eu-west-1.queue.localhost.localstack.cloud/000000000000/Some_queue-1": arn.Queue("eu-west-1", testAccount, "Some_queue-1"),
		"http://godwit.team-a-1.svc/000000000000/Some_queue-1":                        q,
		"http://[::1]:4566/111111111111/x":                                            arn.Queue(testRegion, "111111111111", "x"),
		"http://h/queue/eu-west-1/000000000000/Some_queue-1":                          arn.Queue("eu-west-1", testAccount, "Some_queue-1"),
		"http://h/000000000000/x.fifo":                                                arn.Queue(testRegion, testAccount, "x.fifo"),
	} {
		if got, err := queueOf(call, url); err != nil || got != want {
			t.Errorf("queueOf(%s) = %v, %v; want %v", url, got, err, want)
		}
	}
	for _, url := range []string{
		"no queue",
		"/000000000000/q",
		"ftp://h/000000000000/q",
		"http:///000000000000/q",
		"http://h",
		"http://h/",
		"http://h/q",
		"http://h/00000000000/q",
		"http://h/00000000000a/q",
		"http://h/000000000000/",
		"http://h/000000000000/q/",
		"http://h/queue//000000000000/q",
		"http://h/queue/000000000000/q",
		"http://h/000000000000/a b",
		"http://h/000000000000/.fifo",
		"http://h/000000000000/q?x=1",
		urlOf(strings.Repeat("q", 81)),
		urlOf(strings.Repeat("q", 76)) + ".fifo",
	} {
		_, err := queueOf(call, url)
		wantFault(t, err, fault.QueueDoesNotExist, "")
	}
}

func TestIsNumber(t *testing.T) {
	for s, want := range map[string]bool{
		"0": true, "-1": true, "+1.5": true, ".5": true, "5.": true, "1e9": true, "1.5E-3": true,
		strings.Repeat("9", 38): true,
		"":                      false, "-": false, ".": false, "1e": false, "e1": false, "1.2.3": false, "0x1": false, "NaN": false,
		" 1": false, "1e1.5": false, "--1": false, "1_0": false,
	} {
		if isNumber(s) != want {
			t.Errorf("isNumber(%q) = %t", s, !want)
		}
	}
}

func TestAttributeRules(t *testing.T) {
	text := func(v string) MessageAttributeValue {
		return MessageAttributeValue{DataType: "String", StringValue: new(v)}
	}
	eleven := map[string]MessageAttributeValue{}
	for i := range 11 {
		eleven["a"+strconv.Itoa(i)] = text("x")
	}
	const reserved = "You can't use message attribute names beginning with 'AWS.' or 'Amazon.'. These strings are reserved for internal use."
	for _, tt := range []struct {
		name  string
		value MessageAttributeValue
		kind  fault.Kind // 0 means accepted
		text  string
	}{
		{"a", text("x"), 0, ""},
		{"A-1_b.c", MessageAttributeValue{DataType: "String.label", StringValue: new("é")}, 0, ""},
		{strings.Repeat("n", 256), text("x"), 0, ""},
		{"awsome", text("x"), 0, ""},
		{"n", MessageAttributeValue{DataType: "Number.int", StringValue: new("-1.5e3")}, 0, ""},
		{"b", MessageAttributeValue{DataType: "Binary.png", BinaryValue: []byte{0}}, 0, ""},
		{"", text("x"), fault.InvalidParameter, "The request must contain non-empty message (user) attribute names."},
		{strings.Repeat("n", 257), text("x"), fault.InvalidParameter, "Message (user) attribute name must be shorter than 256 bytes."},
		{".a", text("x"), fault.InvalidParameter, "Message (user) attribute name must not begin with character '.'."},
		{"a.", text("x"), fault.InvalidParameter, "Message (user) attribute name must not end with character '.'."},
		{"a..b", text("x"), fault.InvalidParameter, "Message (user) attribute name must not have successive '.' characters."},
		{"AWS.a", text("x"), fault.InvalidParameter, reserved},
		{"aws.a", text("x"), fault.InvalidParameter, reserved},
		{"Amazon.a", text("x"), fault.InvalidParameter, reserved},
		{"a b", text("x"), fault.InvalidParameter, "The message attribute name 'a b' is invalid. Attribute name can contain A-Z, a-z, 0-9, underscore (_), hyphen (-), and period (.) characters."},
		{"a", MessageAttributeValue{StringValue: new("x")}, fault.InvalidParameter, "The message (user) attribute 'a' must contain a non-empty message attribute type."},
		{"a", MessageAttributeValue{DataType: "Text", StringValue: new("x")}, fault.InvalidParameter, "The type of message (user) attribute 'a' is invalid. You must use only the following supported type prefixes: Binary, Number, String."},
		{"a", MessageAttributeValue{DataType: "Strings", StringValue: new("x")}, fault.InvalidParameter, ""},
		{"a", MessageAttributeValue{DataType: "String.", StringValue: new("x")}, fault.InvalidParameter, ""},
		{"a", MessageAttributeValue{DataType: "String." + strings.Repeat("l", 250), StringValue: new("x")}, fault.InvalidParameter, "Message (user) attribute type must be shorter than 256 bytes."},
		{"a", text(""), fault.InvalidParameter, "Message (user) attribute 'a' must contain a non-empty value of type 'String'."},
		{"a", MessageAttributeValue{DataType: "Binary", BinaryValue: []byte{}}, fault.InvalidParameter, "Message (user) attribute 'a' must contain a non-empty value of type 'Binary'."},
		{"a", MessageAttributeValue{DataType: "String", StringValue: new("x"), BinaryValue: []byte{1}}, fault.InvalidParameter, "Message (user) attribute 'a' must have a single value."},
		{"a", MessageAttributeValue{DataType: "Binary", StringValue: new("x")}, fault.InvalidParameter, "The message (user) attribute 'a' with type 'Binary' must use field 'Binary'."},
		{"a", MessageAttributeValue{DataType: "String", BinaryValue: []byte{1}}, fault.InvalidParameter, "The message (user) attribute 'a' with type 'String' must use field 'String'."},
		{"a", text("\x01"), fault.InvalidParameter, invalidCharacters},
		{"a", MessageAttributeValue{DataType: "Number", StringValue: new("ten")}, fault.InvalidParameter, "Can't cast the value of message (user) attribute 'a' to a number."},
		{"a", MessageAttributeValue{DataType: "String", StringListValues: []string{"x"}}, fault.UnsupportedOperation, "Message attribute list values in SendMessage operation are not supported."},
	} {
		attrs, err := attributesOf(map[string]MessageAttributeValue{tt.name: tt.value})
		if tt.kind != 0 {
			wantFault(t, err, tt.kind, tt.text)
		} else if err != nil || len(attrs) != 1 || attrs[0].Name != tt.name || attrs[0].Type != tt.value.DataType {
			t.Errorf("%q: %v, %v", tt.name, attrs, err)
		}
	}
	_, err := attributesOf(eleven)
	wantFault(t, err, fault.InvalidParameter, "Number of message attributes [11] exceeds the allowed maximum [10].")
	delete(eleven, "a10")
	attrs, err := attributesOf(eleven)
	var names []string
	for _, a := range attrs {
		names = append(names, a.Name)
	}
	if want := slices.Sorted(maps.Keys(eleven)); err != nil || !slices.Equal(names, want) {
		t.Errorf("ten attributes come out as %v, %v; want %v", names, err, want)
	}
}

func TestCheckBatch(t *testing.T) {
	const bad = "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long."
	many := strings.Fields("1 2 3 4 5 6 7 8 9 10 11")
	for _, tt := range []struct {
		ids  []string
		kind fault.Kind
		text string
	}{
		{[]string{"a", "A", strings.Repeat("x", 80), "-_1"}, 0, ""},
		{many[:10], 0, ""},
		{nil, fault.EmptyBatchRequest, "There should be at least one SendMessageBatchRequestEntry in the request."},
		{many, fault.TooManyEntriesInBatchRequest, "Maximum number of entries per request are 10. You have sent 11."},
		{[]string{"id_1", "id_2", "id_2", "id_1"}, fault.BatchEntryIdsNotDistinct, "Id id_2 repeated."},
		{[]string{"a", ""}, fault.InvalidBatchEntryID, bad},
		{[]string{"a b"}, fault.InvalidBatchEntryID, bad},
		{[]string{"é"}, fault.InvalidBatchEntryID, bad},
		{[]string{strings.Repeat("x", 81)}, fault.InvalidBatchEntryID, bad},
	} {
		err := checkBatch("SendMessageBatch", len(tt.ids), func(i int) string { return tt.ids[i] })
		if tt.kind != 0 {
			wantFault(t, err, tt.kind, tt.text)
		} else if err != nil {
			t.Errorf("%q: %v", tt.ids, err)
		}
	}
}

func TestCheckLength(t *testing.T) {
	half := strings.Repeat("x", 1<<19)
	entries := []SendMessageBatchRequestEntry{{MessageBody: half}, {MessageBody: half}}
	if err := checkLength(entries); err != nil {
		t.Errorf("1 MiB: %v", err)
	}
	entries[1].MessageAttributes = map[string]MessageAttributeValue{"n": {DataType: "String", StringValue: new("vv")}}
	wantFault(t, checkLength(entries), fault.BatchRequestTooLong, "Batch requests cannot be longer than 1048576 bytes. You have sent 1048585 bytes.")
	entries[1].MessageAttributes = map[string]MessageAttributeValue{"n": {DataType: "Binary", BinaryValue: []byte{1, 2, 3}}}
	wantFault(t, checkLength(entries), fault.BatchRequestTooLong, "Batch requests cannot be longer than 1048576 bytes. You have sent 1048586 bytes.")
}
