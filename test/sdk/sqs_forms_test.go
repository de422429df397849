package sdk_test

import (
	"encoding/base64"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	sqsapi "godwit.dev/godwit/internal/api/sqs"
	"godwit.dev/godwit/internal/queue/message"
)

// A script is a series of requests in one form. Where a wanted answer has a
// string that begins with $, what came is remembered under it, and stands for
// it from then on.
type script struct {
	t        *testing.T
	form     form
	endpoint string
	seen     map[string]string
	used     map[string]bool
}

func (s *script) call(operation string, in, want members) {
	s.t.Helper()
	s.used[operation] = true
	in, _ = s.known(in).(members)
	got := s.form.answer(s.t, operation, do(s.t, s.form.request(s.t, s.endpoint, operation, in)))
	s.learn(want, got)
	equal(s.t, operation, s.known(plain(want)), any(got))
}

// known replaces what is remembered.
func (s *script) known(v any) any {
	switch v := v.(type) {
	case members:
		out := members{}
		for name, value := range v {
			out[name] = s.known(value)
		}
		return out
	case list:
		out := make(list, len(v))
		for i := range v {
			out[i] = s.known(v[i])
		}
		return out
	case string:
		if text, ok := s.seen[v]; ok {
			return text
		}
	}
	return v
}

func (s *script) learn(want, got any) {
	switch want := want.(type) {
	case members:
		got, _ := got.(members)
		for name, value := range want {
			s.learn(value, got[name])
		}
	case list:
		got, _ := got.(list)
		for i := range min(len(want), len(got)) {
			s.learn(want[i], got[i])
		}
	case string:
		text, _ := got.(string)
		if _, known := s.seen[want]; strings.HasPrefix(want, "$") && !known && text != "" {
			s.seen[want] = text
		}
	}
}

// Every action, with every member of its request and of its answer, works and
// reads alike in every form of both protocols.
func TestEveryFormOfEveryAction(t *testing.T) {
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			endpoint := start(t)
			s := &script{t: t, form: f, endpoint: endpoint, seen: map[string]string{}, used: map[string]bool{}}
			s.queues()
			s.messages()
			s.batches()
			s.moves()
			s.fifo()
			all := slices.Sorted(maps.Keys(everyAction("", "")))
			equal(t, "the actions", all, slices.Sorted(maps.Keys(s.used)))
		})
	}
}

func (s *script) url(name string) string { return s.endpoint + "/000000000000/" + name }

func (s *script) queues() {
	q, other, dead := s.url("q"), s.url("q2"), s.url("dead")
	redrive := `{"deadLetterTargetArn":"` + queueARN("dead") + `","maxReceiveCount":100}`
	s.call("CreateQueue", members{"QueueName": "dead"}, members{"QueueUrl": dead})
	s.call("CreateQueue", members{
		"QueueName": "q", "Attributes": members{"VisibilityTimeout": "45", "Policy": `{"Id":"<&\"é>","Statement":` + allowAll("sqs:*") + `}`}, "tags": members{"team": "rental", "empty": ""},
	}, members{"QueueUrl": q})
	s.call("CreateQueue", members{"QueueName": "q2"}, members{"QueueUrl": other})
	s.call("GetQueueUrl", members{"QueueName": "q", "QueueOwnerAWSAccountId": account}, members{"QueueUrl": q})
	s.call("ListQueues", members{}, members{"QueueUrls": list{dead, q, other}})
	s.call("ListQueues", members{"QueueNamePrefix": "q", "MaxResults": 1}, members{"QueueUrls": list{q}, "NextToken": "$page"})
	s.call("ListQueues", members{"QueueNamePrefix": "q", "MaxResults": 1, "NextToken": "$page"}, members{"QueueUrls": list{other}})
	s.call("ListQueues", members{"QueueNamePrefix": "x"}, members{})

	set := members{
		"DelaySeconds": "0", "MaximumMessageSize": "2048", "MessageRetentionPeriod": "3600", "ReceiveMessageWaitTimeSeconds": "0",
		"VisibilityTimeout": "60", "RedrivePolicy": redrive, "RedriveAllowPolicy": `{"redrivePermission":"denyAll"}`,
		"KmsMasterKeyId": "alias/aws/sqs", "KmsDataKeyReusePeriodSeconds": "60",
	}
	s.call("SetQueueAttributes", members{"QueueUrl": q, "Attributes": set}, members{})
	want := members{
		"Policy": `{"Id":"<&\"é>","Statement":` + allowAll("sqs:*") + `}`, "SqsManagedSseEnabled": "false", "QueueArn": queueARN("q"), "CreatedTimestamp": "$created", "LastModifiedTimestamp": "$modified",
		"ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesNotVisible": "0", "ApproximateNumberOfMessagesDelayed": "0",
	}
	maps.Copy(want, set)
	s.call("GetQueueAttributes", members{"QueueUrl": q, "AttributeNames": list{"All"}}, members{"Attributes": want})
	s.call("GetQueueAttributes", members{"QueueUrl": q, "AttributeNames": list{"QueueArn", "DelaySeconds"}}, members{"Attributes": members{"QueueArn": queueARN("q"), "DelaySeconds": "0"}})
	s.call("GetQueueAttributes", members{"QueueUrl": q}, members{})
	s.call("SetQueueAttributes", members{"QueueUrl": q, "Attributes": members{"Policy": "", "RedriveAllowPolicy": "", "KmsMasterKeyId": ""}}, members{})
	s.call("GetQueueAttributes", members{"QueueUrl": q, "AttributeNames": list{"Policy", "KmsMasterKeyId", "RedriveAllowPolicy"}}, members{})

	s.call("ListQueueTags", members{"QueueUrl": q}, members{"Tags": members{"team": "rental", "empty": ""}})
	s.call("TagQueue", members{"QueueUrl": q, "Tags": members{"a b": "<1>", "team": "billing"}}, members{})
	s.call("UntagQueue", members{"QueueUrl": q, "TagKeys": list{"empty", "none"}}, members{})
	s.call("ListQueueTags", members{"QueueUrl": q}, members{"Tags": members{"team": "billing", "a b": "<1>"}})
	s.call("ListQueueTags", members{"QueueUrl": other}, members{})

	s.call("AddPermission", members{"QueueUrl": q, "Label": "l", "AWSAccountIds": list{"111111111111", "222222222222"}, "Actions": list{"SendMessage", "*"}}, members{})
	s.call("GetQueueAttributes", members{"QueueUrl": q, "AttributeNames": list{"Policy"}}, members{"Attributes": members{
		"Policy": `{"Version":"2008-10-17","Id":"` + queueARN("q") + `/SQSDefaultPolicy","Statement":[{"Sid":"l","Effect":"Allow","Principal":{"AWS":` +
			`["arn:aws:iam::111111111111:root","arn:aws:iam::222222222222:root"]},"Action":["SQS:SendMessage","SQS:*"],"Resource":"` + queueARN("q") + `"}]}`,
	}})
	s.call("RemovePermission", members{"QueueUrl": q, "Label": "l"}, members{})

	s.call("ListDeadLetterSourceQueues", members{"QueueUrl": other}, members{})
	s.call("SetQueueAttributes", members{"QueueUrl": other, "Attributes": members{"RedrivePolicy": redrive}}, members{})
	s.call("ListDeadLetterSourceQueues", members{"QueueUrl": dead, "MaxResults": 1}, members{"queueUrls": list{q}, "NextToken": "$sources"})
	s.call("ListDeadLetterSourceQueues", members{"QueueUrl": dead, "MaxResults": 1, "NextToken": "$sources"}, members{"queueUrls": list{other}})
}

func (s *script) messages() {
	q := s.url("q")
	body := "a <b> & \"c\"\t\r\n é😀+%41"
	blob := base64.StdEncoding.EncodeToString([]byte{0, 1, 255})
	attributes := members{
		"text":  members{"DataType": "String", "StringValue": "x & y"},
		"price": members{"DataType": "Number.eur", "StringValue": "-1.5e3"},
		"blob":  members{"DataType": "Binary.gif", "BinaryValue": blob},
	}
	digest := aws.ToString(attributesMD5(
		message.Attribute{Name: "blob", Type: "Binary.gif", Value: []byte{0, 1, 255}},
		message.Attribute{Name: "price", Type: "Number.eur", Value: []byte("-1.5e3")}, text("text", "x & y")))
	s.call("SendMessage", members{
		"QueueUrl": q, "MessageBody": body, "DelaySeconds": 0, "MessageAttributes": attributes, "MessageGroupId": "tenant",
		"MessageSystemAttributes": members{"AWSTraceHeader": members{"DataType": "String", "StringValue": "Root=1"}},
	}, members{
		"MessageId": "$sent", "MD5OfMessageBody": *md5Of(body), "MD5OfMessageAttributes": digest,
		"MD5OfMessageSystemAttributes": *attributesMD5(text("AWSTraceHeader", "Root=1")),
	})
	s.call("SendMessage", members{"QueueUrl": q, "MessageBody": "late", "DelaySeconds": 900}, members{"MessageId": "$late", "MD5OfMessageBody": *md5Of("late")})
	s.call("ReceiveMessage", members{
		"QueueUrl": q, "MaxNumberOfMessages": 10, "VisibilityTimeout": 20, "WaitTimeSeconds": 1,
		"AttributeNames": list{"SenderId", "SentTimestamp"}, "MessageSystemAttributeNames": list{"All"}, "MessageAttributeNames": list{"text", "pri*", "bl.*", "blob"},
	}, members{"Messages": list{members{
		"MessageId": "$sent", "ReceiptHandle": "$handle", "Body": body, "MD5OfBody": *md5Of(body),
		"MessageAttributes": attributes, "MD5OfMessageAttributes": digest,
		"Attributes": members{
			"SenderId": account, "SentTimestamp": "$when", "ApproximateReceiveCount": "1", "ApproximateFirstReceiveTimestamp": "$when",
			"MessageGroupId": "tenant", "AWSTraceHeader": "Root=1",
		},
	}}})
	s.call("ReceiveMessage", members{"QueueUrl": q}, members{})
	s.call("ChangeMessageVisibility", members{"QueueUrl": q, "ReceiptHandle": "$handle", "VisibilityTimeout": 0}, members{})
	s.call("ReceiveMessage", members{"QueueUrl": q, "MessageAttributeNames": list{"price"}, "AttributeNames": list{"ApproximateReceiveCount"}}, members{"Messages": list{members{
		"MessageId": "$sent", "ReceiptHandle": "$second", "Body": body, "MD5OfBody": *md5Of(body), "Attributes": members{"ApproximateReceiveCount": "2"},
		"MessageAttributes":      members{"price": attributes["price"]},
		"MD5OfMessageAttributes": *attributesMD5(message.Attribute{Name: "price", Type: "Number.eur", Value: []byte("-1.5e3")}),
	}}})
	s.call("DeleteMessage", members{"QueueUrl": q, "ReceiptHandle": "$second"}, members{})
	s.call("PurgeQueue", members{"QueueUrl": q}, members{})
	s.call("GetQueueAttributes", members{"QueueUrl": q, "AttributeNames": list{"ApproximateNumberOfMessagesDelayed"}}, members{"Attributes": members{"ApproximateNumberOfMessagesDelayed": "0"}})
}

func (s *script) batches() {
	q := s.url("q")
	entry := func(id string, more members) members {
		e := members{"Id": id}
		maps.Copy(e, more)
		return e
	}
	failed := func(id, code, text string) members {
		return entry(id, members{"SenderFault": "true", "Code": code, "Message": text})
	}
	s.call("SendMessageBatch", members{"QueueUrl": q, "Entries": list{
		entry("1", members{
			"MessageBody": "one", "DelaySeconds": 0, "MessageGroupId": "tenant",
			"MessageAttributes":       members{"a": members{"DataType": "String", "StringValue": "x"}},
			"MessageSystemAttributes": members{"AWSTraceHeader": members{"DataType": "String", "StringValue": "Root=2"}},
		}),
		entry("2", members{"MessageBody": "two", "MessageDeduplicationId": "d"}),
		entry("3", members{"MessageBody": "three", "DelaySeconds": 901}),
		entry("4", members{"MessageBody": "four"}),
	}}, members{
		"Successful": list{
			entry("1", members{
				"MessageId": "$one", "MD5OfMessageBody": *md5Of("one"), "MD5OfMessageAttributes": *attributesMD5(text("a", "x")),
				"MD5OfMessageSystemAttributes": *attributesMD5(text("AWSTraceHeader", "Root=2")),
			}),
			entry("4", members{"MessageId": "$four", "MD5OfMessageBody": *md5Of("four")}),
		},
		"Failed": list{
			failed("2", "InvalidParameterValue", "Value d for parameter MessageDeduplicationId is invalid. Reason: The request include parameter that is not valid for this queue type."),
			failed("3", "InvalidParameterValue", "Value 901 for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900."),
		},
	})
	for _, name := range []string{"one", "four"} {
		s.call("ReceiveMessage", members{"QueueUrl": q}, members{"Messages": list{
			members{"MessageId": "$" + name, "ReceiptHandle": "$handle of " + name, "Body": name, "MD5OfBody": *md5Of(name)},
		}})
	}
	const badHandle = `The input receipt handle "garbage" is not a valid receipt handle.`
	s.call("ChangeMessageVisibilityBatch", members{"QueueUrl": q, "Entries": list{
		entry("1", members{"ReceiptHandle": "$handle of one", "VisibilityTimeout": 0}),
		entry("2", members{"ReceiptHandle": "garbage", "VisibilityTimeout": 0}),
		entry("3", members{"ReceiptHandle": "$handle of four", "VisibilityTimeout": 30}),
	}}, members{
		"Successful": list{entry("1", nil), entry("3", nil)},
		"Failed":     list{failed("2", "ReceiptHandleIsInvalid", badHandle)},
	})
	s.call("DeleteMessageBatch", members{"QueueUrl": q, "Entries": list{
		entry("1", members{"ReceiptHandle": "$handle of four"}), entry("2", members{"ReceiptHandle": "garbage"}),
	}}, members{"Successful": list{entry("1", nil)}, "Failed": list{failed("2", "ReceiptHandleIsInvalid", badHandle)}})
	s.call("ReceiveMessage", members{"QueueUrl": q, "MaxNumberOfMessages": 10}, members{"Messages": list{
		members{"MessageId": "$one", "ReceiptHandle": "$again", "Body": "one", "MD5OfBody": *md5Of("one")},
	}})
	s.call("DeleteMessageBatch", members{"QueueUrl": q, "Entries": list{entry("1", members{"ReceiptHandle": "$again"})}}, members{"Successful": list{entry("1", nil)}})
}

func (s *script) moves() {
	dead, q := s.url("dead"), s.url("q")
	s.call("SendMessage", members{"QueueUrl": dead, "MessageBody": "m"}, members{"MessageId": "$dead", "MD5OfMessageBody": *md5Of("m")})
	s.call("ListMessageMoveTasks", members{"SourceArn": queueARN("dead")}, members{})
	s.call("StartMessageMoveTask", members{"SourceArn": queueARN("dead"), "DestinationArn": queueARN("q"), "MaxNumberOfMessagesPerSecond": 1}, members{"TaskHandle": "$task"})
	task := members{
		"TaskHandle": "$task", "Status": "RUNNING", "SourceArn": queueARN("dead"), "DestinationArn": queueARN("q"), "MaxNumberOfMessagesPerSecond": 1,
		"ApproximateNumberOfMessagesMoved": 0, "ApproximateNumberOfMessagesToMove": 1, "StartedTimestamp": "$started",
	}
	s.call("ListMessageMoveTasks", members{"SourceArn": queueARN("dead"), "MaxResults": 10}, members{"Results": list{task}})
	s.call("CancelMessageMoveTask", members{"TaskHandle": "$task"}, members{"ApproximateNumberOfMessagesMoved": 0})
	advance(s.t, s.endpoint, "1s")
	// One that fails reports why.
	s.call("StartMessageMoveTask", members{"SourceArn": queueARN("dead")}, members{"TaskHandle": "$second task"})
	advance(s.t, s.endpoint, "1s")
	delete(task, "TaskHandle")
	task["Status"] = "CANCELLED"
	s.call("ListMessageMoveTasks", members{"SourceArn": queueARN("dead"), "MaxResults": 2}, members{"Results": list{
		members{
			"Status": "FAILED", "SourceArn": queueARN("dead"), "ApproximateNumberOfMessagesMoved": 0, "ApproximateNumberOfMessagesToMove": 1,
			"FailureReason": "CouldNotDetermineMessageSource", "StartedTimestamp": "$second start",
		}, task,
	}})
	s.call("DeleteQueue", members{"QueueUrl": q}, members{})
	s.call("ListQueues", members{"QueueNamePrefix": "q"}, members{"QueueUrls": list{s.url("q2")}})
}

func (s *script) fifo() {
	q := s.url("q.fifo")
	attributes := members{
		"FifoQueue": "true", "ContentBasedDeduplication": "true", "DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId",
	}
	names := list{}
	for name := range attributes {
		names = append(names, name)
	}
	s.call("CreateQueue", members{"QueueName": "q.fifo", "Attributes": attributes}, members{"QueueUrl": q})
	s.call("GetQueueAttributes", members{"QueueUrl": q, "AttributeNames": names}, members{"Attributes": attributes})
	s.call("SendMessage", members{"QueueUrl": q, "MessageBody": "one", "MessageGroupId": "g", "MessageDeduplicationId": "d1"}, members{
		"MessageId": "$first", "MD5OfMessageBody": *md5Of("one"), "SequenceNumber": "$first number",
	})
	// A duplicate answers as the first did.
	s.call("SendMessageBatch", members{"QueueUrl": q, "Entries": list{
		members{"Id": "1", "MessageBody": "one", "MessageGroupId": "g", "MessageDeduplicationId": "d1"},
		members{"Id": "2", "MessageBody": "two", "MessageGroupId": "g", "MessageDeduplicationId": "d2"},
	}}, members{"Successful": list{
		members{"Id": "1", "MessageId": "$first", "MD5OfMessageBody": *md5Of("one"), "SequenceNumber": "$first number"},
		members{"Id": "2", "MessageId": "$other", "MD5OfMessageBody": *md5Of("two"), "SequenceNumber": "$other number"},
	}})
	message := func(id, name, body, number string) members {
		return members{
			"MessageId": id, "ReceiptHandle": "$fifo handle of " + body, "Body": body, "MD5OfBody": *md5Of(body),
			"Attributes": members{"MessageGroupId": "g", "MessageDeduplicationId": name, "SequenceNumber": number},
		}
	}
	in := members{
		"QueueUrl": q, "MaxNumberOfMessages": 2, "ReceiveRequestAttemptId": "attempt",
		"MessageSystemAttributeNames": list{"MessageGroupId", "MessageDeduplicationId", "SequenceNumber", "DeadLetterQueueSourceArn"},
	}
	for range 2 { // the same attempt gives the same messages and handles
		s.call("ReceiveMessage", in, members{"Messages": list{message("$first", "d1", "one", "$first number"), message("$other", "d2", "two", "$other number")}})
	}
	if first := s.seen["$first number"]; len(first) != 20 || s.seen["$other number"] <= first {
		s.t.Errorf("SequenceNumber %s, then %s", first, s.seen["$other number"])
	}
}

// Every action has every member that the SDK knows, and no other.
func TestEveryMember(t *testing.T) {
	sdk := reflect.TypeFor[*sqs.Client]()
	ours := map[string]bool{}
	for _, op := range sqsapi.New(sqsapi.Options{}).Operations() {
		ours[op.Name] = true
		method, ok := sdk.MethodByName(op.Name)
		if !ok {
			t.Errorf("the SDK does not know %s", op.Name)
			continue
		}
		sameMembers(t, op.Name+"Input", method.Type.In(2), op.Input)
		sameMembers(t, op.Name+"Output", method.Type.Out(0), op.Output)
	}
	for method := range sdk.Methods() {
		if method.Type.NumIn() == 4 && !ours[method.Name] {
			t.Errorf("%s is not answered", method.Name)
		}
	}
}

func sameMembers(t *testing.T, what string, want, got reflect.Type) {
	t.Helper()
	for want.Kind() == reflect.Pointer || want.Kind() == reflect.Slice || want.Kind() == reflect.Map {
		want = want.Elem()
	}
	for got.Kind() == reflect.Pointer || got.Kind() == reflect.Slice || got.Kind() == reflect.Map {
		got = got.Elem()
	}
	if want.Kind() != reflect.Struct {
		return
	}
	if got.Kind() != reflect.Struct {
		t.Errorf("%s is %s, for the SDK's %s", what, got, want)
		return
	}
	left := map[string]reflect.Type{}
	for field := range got.Fields() {
		left[field.Name] = field.Type
	}
	for field := range want.Fields() {
		if !field.IsExported() || field.Name == "ResultMetadata" {
			continue
		}
		mine, ok := left[field.Name]
		if !ok {
			t.Errorf("%s lacks %s", what, field.Name)
			continue
		}
		delete(left, field.Name)
		sameMembers(t, what+"."+field.Name, field.Type, mine)
	}
	for name := range left {
		t.Errorf("%s has %s, which the SDK does not know", what, name)
	}
}
