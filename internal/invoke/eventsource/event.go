package eventsource

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strconv"

	"godwit.dev/godwit/internal/fastjson"
	"godwit.dev/godwit/internal/function/mapping"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
)

// appendRecord appends the JSON of a message's record. Source: the Lambda developer guide,
// "Using Lambda with Amazon SQS", and events of the service.
func appendRecord(b []byte, m *mapping.Mapping, r *shard.Received) []byte {
	b = appendMember(b, `{"messageId":`, r.ID.String())
	b = appendMember(b, `,"receiptHandle":`, r.ReceiptHandle)
	b = appendMember(b, `,"body":`, string(r.Body))
	b = appendSystemAttributes(append(b, `,"attributes":`...), r)
	b = append(b, `,"messageAttributes":{`...)
	for i := range r.Attributes {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendAttribute(b, &r.Attributes[i])
	}
	b = append(b, '}')
	switch {
	case len(r.Attributes) > 0:
		b = append(b, `,"md5OfMessageAttributes":"`...)
		b = append(hex.AppendEncode(b, r.AttributesMD5[:]), '"')
	case m.Window > 0:
		b = append(b, `,"md5OfMessageAttributes":null`...)
	}
	b = append(b, `,"md5OfBody":"`...)
	b = append(hex.AppendEncode(b, r.BodyMD5[:]), `","eventSource":"aws:sqs"`...)
	b = appendMember(b, `,"eventSourceARN":`, m.Queue.String())
	b = appendMember(b, `,"awsRegion":`, m.Queue.Region)
	return append(b, '}')
}

func appendMember(b []byte, name, value string) []byte {
	return fastjson.AppendString(append(b, name...), value)
}

func appendAttribute(b []byte, a *message.Attribute) []byte {
	b = append(fastjson.AppendString(b, a.Name), ":{"...)
	if a.Binary() {
		b = append(b, `"binaryValue":"`...)
		b = append(base64.StdEncoding.AppendEncode(b, a.Value), '"')
	} else {
		b = appendMember(b, `"stringValue":`, string(a.Value))
	}
	b = appendMember(b, `,"stringListValues":[],"binaryListValues":[],"dataType":`, a.Type)
	return append(b, '}')
}

func appendSystemAttributes(b []byte, r *shard.Received) []byte {
	b = strconv.AppendInt(append(b, `{"ApproximateReceiveCount":"`...), int64(r.Receives), 10)
	b = strconv.AppendInt(append(b, `","SentTimestamp":"`...), r.Sent, 10)
	b = strconv.AppendInt(append(b, `","ApproximateFirstReceiveTimestamp":"`...), r.FirstReceived, 10)
	b = appendMember(append(b, '"'), `,"SenderId":`, r.Sender)
	for _, a := range [...]struct{ name, value string }{
		{`,"MessageGroupId":`, r.Group},
		{`,"MessageDeduplicationId":`, r.Dedup},
		{`,"AWSTraceHeader":`, r.Trace},
		{`,"DeadLetterQueueSourceArn":`, r.Source},
	} {
		if a.value != "" {
			b = appendMember(b, a.name, a.value)
		}
	}
	if r.FIFO {
		b = appendMember(b, `,"SequenceNumber":`, message.NumberFrom(r.Origin, r.Sequence))
	}
	return append(b, '}')
}

// failed returns the messages of a batch that the function reports as failed. whole means
// all: the answer is invalid, or has an id that is not in the batch. Source: the Lambda
// developer guide, "Handling errors for an SQS event source", success and failure conditions.
func failed(payload []byte, batch []item) (ids map[string]bool, whole bool) {
	if len(bytes.TrimSpace(payload)) == 0 {
		return nil, false
	}
	var answer map[string]json.RawMessage // names are case-sensitive, unlike with a struct
	if json.Unmarshal(payload, &answer) != nil {
		return nil, true
	}
	var failures []map[string]json.RawMessage
	if list := answer["batchItemFailures"]; len(list) > 0 && json.Unmarshal(list, &failures) != nil {
		return nil, true
	}
	sent := make(map[string]bool, len(batch))
	for i := range batch {
		sent[batch[i].id] = true
	}
	ids = make(map[string]bool, len(failures))
	for _, f := range failures {
		var id string
		if json.Unmarshal(f["itemIdentifier"], &id) != nil || !sent[id] {
			return nil, true
		}
		ids[id] = true
	}
	return ids, false
}
