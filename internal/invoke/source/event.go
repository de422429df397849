package source

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strconv"

	"godwit.dev/godwit/internal/function/mapping"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
)

// record is a message as a function gets it. Source: the Lambda developer guide,
// "Using Lambda with Amazon SQS", and events of the service.
type record struct {
	MessageID     string               `json:"messageId"`
	ReceiptHandle string               `json:"receiptHandle"`
	Body          string               `json:"body"`
	Attributes    map[string]string    `json:"attributes"`
	UserDefined   map[string]attribute `json:"messageAttributes"`
	AttributesMD5 *json.RawMessage     `json:"md5OfMessageAttributes,omitempty"`
	BodyMD5       string               `json:"md5OfBody"`
	Source        string               `json:"eventSource"`
	SourceARN     string               `json:"eventSourceARN"`
	Region        string               `json:"awsRegion"`
}

type attribute struct {
	StringValue *string  `json:"stringValue,omitempty"`
	BinaryValue *string  `json:"binaryValue,omitempty"` // base64
	StringList  []string `json:"stringListValues"`
	BinaryList  []string `json:"binaryListValues"`
	Type        string   `json:"dataType"`
}

var null = json.RawMessage("null")

// appendRecord appends a message as JSON.
func appendRecord(b []byte, m *mapping.Mapping, r *shard.Received) []byte {
	out := record{
		MessageID: r.ID.String(), ReceiptHandle: r.ReceiptHandle, Body: string(r.Body), Attributes: systemAttributes(r),
		UserDefined: map[string]attribute{}, BodyMD5: hex.EncodeToString(r.BodyMD5[:]),
		Source: "aws:sqs", SourceARN: m.Queue.String(), Region: m.Queue.Region,
	}
	switch {
	case len(r.Attributes) > 0:
		out.AttributesMD5 = new(json.RawMessage(`"` + hex.EncodeToString(r.AttributesMD5[:]) + `"`))
	case m.Window > 0:
		out.AttributesMD5 = &null
	}
	for _, a := range r.Attributes {
		shown := attribute{StringList: []string{}, BinaryList: []string{}, Type: a.Type}
		if a.Binary() {
			shown.BinaryValue = new(base64.StdEncoding.EncodeToString(a.Value))
		} else {
			shown.StringValue = new(string(a.Value))
		}
		out.UserDefined[a.Name] = shown
	}
	buf := bytes.NewBuffer(b)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		panic(err) // a record holds nothing that JSON cannot
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

func systemAttributes(r *shard.Received) map[string]string {
	all := map[string]string{
		"ApproximateReceiveCount":          strconv.Itoa(r.Receives),
		"SentTimestamp":                    strconv.FormatInt(r.Sent, 10),
		"SenderId":                         r.Sender,
		"ApproximateFirstReceiveTimestamp": strconv.FormatInt(r.FirstReceived, 10),
	}
	set := func(name, value string) {
		if value != "" {
			all[name] = value
		}
	}
	set("MessageGroupId", r.Group)
	set("MessageDeduplicationId", r.Dedup)
	set("AWSTraceHeader", r.Trace)
	set("DeadLetterQueueSourceArn", r.Source)
	if r.FIFO {
		all["SequenceNumber"] = message.SequenceNumber(r.Sequence)
	}
	return all
}

// failed tells which messages of a batch the function says have failed. whole says
// that all have: the answer cannot be understood, or names what was not in the
// batch. Source: the Lambda developer guide, "Handling errors for an SQS event
// source", success and failure conditions.
func failed(payload []byte, batch []item) (ids map[string]bool, whole bool) {
	if len(bytes.TrimSpace(payload)) == 0 {
		return nil, false
	}
	var answer map[string]json.RawMessage // whose names are exact, as those of a struct are not
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
