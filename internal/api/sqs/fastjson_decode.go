package sqs

import (
	"encoding/base64"

	"godwit.dev/godwit/internal/fastjson"
)

// Hand-tuned JSON decoders of the hot operations. They decode what SDKs send, and leave the
// rest (unknown members, null, wrong types, repeated lists) to the generic decoder. For the
// requests that they decode, the result must be that of the generic decoder.

// InPlace implements awsjson.InPlace: MessageBody may alias the request's body, because the
// stored record is encoded from it.
func (*SendMessageInput) InPlace() {}

// InPlace implements awsjson.InPlace, as it is for SendMessageInput.
func (*SendMessageBatchInput) InPlace() {}

// OnlyCharacters implements awsjson.OnlyCharacters: what is no character is refused.
func (*SendMessageInput) OnlyCharacters() {}

// OnlyCharacters implements awsjson.OnlyCharacters, as it is for SendMessageInput.
func (*SendMessageBatchInput) OnlyCharacters() {}

// FastDecode implements awsjson.FastDecoder.
func (in *SendMessageInput) FastDecode(body []byte) error {
	s := fastjson.Scan(body)
	for key, ok := s.Object(); ok; key, ok = s.Key() {
		switch string(key) {
		case "QueueUrl":
			in.QueueUrl = s.String()
		case "MessageBody":
			in.MessageBody = s.Text()
		case "DelaySeconds":
			in.DelaySeconds = scanInt(&s)
		case "MessageAttributes":
			in.MessageAttributes = scanAttributes(&s, in.MessageAttributes)
		case "MessageSystemAttributes":
			in.MessageSystemAttributes = scanAttributes(&s, in.MessageSystemAttributes)
		case "MessageDeduplicationId":
			in.MessageDeduplicationId = scanString(&s)
		case "MessageGroupId":
			in.MessageGroupId = scanString(&s)
		default:
			s.Fail()
		}
	}
	return s.End()
}

// FastDecode implements awsjson.FastDecoder.
func (in *SendMessageBatchInput) FastDecode(body []byte) error {
	s := fastjson.Scan(body)
	for key, ok := s.Object(); ok; key, ok = s.Key() {
		switch string(key) {
		case "QueueUrl":
			in.QueueUrl = s.String()
		case "Entries":
			if in.Entries != nil {
				s.Fail()
			}
			in.Entries = make([]SendMessageBatchRequestEntry, 0, usualBatch)
			for more := s.Array(); more; more = s.More() {
				in.Entries = append(in.Entries, SendMessageBatchRequestEntry{})
				in.Entries[len(in.Entries)-1].scan(&s)
			}
		default:
			s.Fail()
		}
	}
	return s.End()
}

// usualBatch is how many entries SDKs send at most.
const usualBatch = 10

func (e *SendMessageBatchRequestEntry) scan(s *fastjson.Scanner) {
	for key, ok := s.Object(); ok; key, ok = s.Key() {
		switch string(key) {
		case "Id":
			e.Id = s.String()
		case "MessageBody":
			e.MessageBody = s.Text()
		case "DelaySeconds":
			e.DelaySeconds = scanInt(s)
		case "MessageAttributes":
			e.MessageAttributes = scanAttributes(s, e.MessageAttributes)
		case "MessageSystemAttributes":
			e.MessageSystemAttributes = scanAttributes(s, e.MessageSystemAttributes)
		case "MessageDeduplicationId":
			e.MessageDeduplicationId = scanString(s)
		case "MessageGroupId":
			e.MessageGroupId = scanString(s)
		default:
			s.Fail()
		}
	}
}

// FastDecode implements awsjson.FastDecoder.
func (in *ReceiveMessageInput) FastDecode(body []byte) error {
	s := fastjson.Scan(body)
	for key, ok := s.Object(); ok; key, ok = s.Key() {
		switch string(key) {
		case "QueueUrl":
			in.QueueUrl = s.String()
		case "AttributeNames":
			in.AttributeNames = scanStrings(&s, in.AttributeNames)
		case "MessageSystemAttributeNames":
			in.MessageSystemAttributeNames = scanStrings(&s, in.MessageSystemAttributeNames)
		case "MessageAttributeNames":
			in.MessageAttributeNames = scanStrings(&s, in.MessageAttributeNames)
		case "MaxNumberOfMessages":
			in.MaxNumberOfMessages = scanInt(&s)
		case "VisibilityTimeout":
			in.VisibilityTimeout = scanInt(&s)
		case "WaitTimeSeconds":
			in.WaitTimeSeconds = scanInt(&s)
		case "ReceiveRequestAttemptId":
			in.ReceiveRequestAttemptId = scanString(&s)
		default:
			s.Fail()
		}
	}
	return s.End()
}

// FastDecode implements awsjson.FastDecoder.
func (in *DeleteMessageInput) FastDecode(body []byte) error {
	s := fastjson.Scan(body)
	for key, ok := s.Object(); ok; key, ok = s.Key() {
		switch string(key) {
		case "QueueUrl":
			in.QueueUrl = s.String()
		case "ReceiptHandle":
			in.ReceiptHandle = s.String()
		default:
			s.Fail()
		}
	}
	return s.End()
}

// FastDecode implements awsjson.FastDecoder.
func (in *DeleteMessageBatchInput) FastDecode(body []byte) error {
	s := fastjson.Scan(body)
	for key, ok := s.Object(); ok; key, ok = s.Key() {
		switch string(key) {
		case "QueueUrl":
			in.QueueUrl = s.String()
		case "Entries":
			if in.Entries != nil {
				s.Fail()
			}
			in.Entries = make([]DeleteMessageBatchRequestEntry, 0, usualBatch)
			for more := s.Array(); more; more = s.More() {
				in.Entries = append(in.Entries, DeleteMessageBatchRequestEntry{})
				in.Entries[len(in.Entries)-1].scan(&s)
			}
		default:
			s.Fail()
		}
	}
	return s.End()
}

func (e *DeleteMessageBatchRequestEntry) scan(s *fastjson.Scanner) {
	for key, ok := s.Object(); ok; key, ok = s.Key() {
		switch string(key) {
		case "Id":
			e.Id = s.String()
		case "ReceiptHandle":
			e.ReceiptHandle = s.String()
		default:
			s.Fail()
		}
	}
}

// FastDecode implements awsjson.FastDecoder.
func (in *ChangeMessageVisibilityInput) FastDecode(body []byte) error {
	s := fastjson.Scan(body)
	for key, ok := s.Object(); ok; key, ok = s.Key() {
		switch string(key) {
		case "QueueUrl":
			in.QueueUrl = s.String()
		case "ReceiptHandle":
			in.ReceiptHandle = s.String()
		case "VisibilityTimeout":
			in.VisibilityTimeout = scanInt(&s)
		default:
			s.Fail()
		}
	}
	return s.End()
}

func scanInt(s *fastjson.Scanner) *int {
	n := s.Int()
	return &n
}

func scanString(s *fastjson.Scanner) *string {
	text := s.String()
	return &text
}

func scanStrings(s *fastjson.Scanner, before []string) []string {
	if before != nil {
		s.Fail()
	}
	list := []string{}
	for more := s.Array(); more; more = s.More() {
		list = append(list, s.String())
	}
	return list
}

func scanAttributes(s *fastjson.Scanner, before map[string]MessageAttributeValue) map[string]MessageAttributeValue {
	if before != nil {
		s.Fail() // the generic decoder merges the two
	}
	attributes := make(map[string]MessageAttributeValue)
	for key, ok := s.Object(); ok; key, ok = s.Key() {
		name := string(key)
		var value MessageAttributeValue
		for key, ok := s.Object(); ok; key, ok = s.Key() {
			switch string(key) {
			case "DataType":
				value.DataType = s.String()
			case "StringValue":
				value.StringValue = scanString(s)
			case "BinaryValue":
				var err error
				if value.BinaryValue, err = base64.StdEncoding.DecodeString(s.String()); err != nil {
					s.Fail()
				}
			default:
				s.Fail()
			}
		}
		attributes[name] = value
	}
	return attributes
}
