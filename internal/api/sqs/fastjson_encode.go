package sqs

import (
	"encoding/base64"
	"maps"
	"slices"
	"strconv"

	"godwit.dev/godwit/internal/fastjson"
)

// Hand-tuned JSON encoders of the hot operations. They write byte for byte
// what the generic encoder writes.

// AppendJSON implements awsjson.FastEncoder.
func (out *SendMessageOutput) AppendJSON(dst []byte) []byte {
	o := openObject(dst)
	o.string("MD5OfMessageBody", out.MD5OfMessageBody)
	o.string("MD5OfMessageAttributes", out.MD5OfMessageAttributes)
	o.string("MD5OfMessageSystemAttributes", out.MD5OfMessageSystemAttributes)
	o.string("MessageId", out.MessageId)
	o.string("SequenceNumber", out.SequenceNumber)
	return o.close()
}

// AppendJSON implements awsjson.FastEncoder.
func (out *SendMessageBatchOutput) AppendJSON(dst []byte) []byte {
	o := openObject(dst)
	if out.Successful != nil {
		o.name("Successful")
		o.dst = append(o.dst, '[')
		for i := range out.Successful {
			e := &out.Successful[i]
			entry := o.element(i)
			entry.string("Id", e.Id)
			entry.string("MessageId", e.MessageId)
			entry.string("MD5OfMessageBody", e.MD5OfMessageBody)
			entry.string("MD5OfMessageAttributes", e.MD5OfMessageAttributes)
			entry.string("MD5OfMessageSystemAttributes", e.MD5OfMessageSystemAttributes)
			entry.string("SequenceNumber", e.SequenceNumber)
			o.dst = entry.close()
		}
		o.dst = append(o.dst, ']')
	}
	o.failed(out.Failed)
	return o.close()
}

// AppendJSON implements awsjson.FastEncoder.
func (out *DeleteMessageBatchOutput) AppendJSON(dst []byte) []byte {
	o := openObject(dst)
	if out.Successful != nil {
		o.name("Successful")
		o.dst = append(o.dst, '[')
		for i := range out.Successful {
			entry := o.element(i)
			entry.string("Id", out.Successful[i].Id)
			o.dst = entry.close()
		}
		o.dst = append(o.dst, ']')
	}
	o.failed(out.Failed)
	return o.close()
}

// AppendJSON implements awsjson.FastEncoder.
func (out *ReceiveMessageOutput) AppendJSON(dst []byte) []byte {
	o := openObject(dst)
	if out.Messages != nil {
		o.name("Messages")
		o.dst = append(o.dst, '[')
		for i := range out.Messages {
			m := &out.Messages[i]
			entry := o.element(i)
			entry.string("MessageId", m.MessageId)
			entry.string("ReceiptHandle", m.ReceiptHandle)
			entry.string("MD5OfBody", m.MD5OfBody)
			entry.string("Body", m.Body)
			if m.Attributes != nil {
				entry.name("Attributes")
				pairs := openObject(entry.dst)
				for _, pair := range m.Attributes {
					pairs.escapedName(pair.Name)
					pairs.dst = fastjson.AppendString(pairs.dst, pair.Value)
				}
				entry.dst = pairs.close()
			}
			entry.string("MD5OfMessageAttributes", m.MD5OfMessageAttributes)
			entry.attributes(m.MessageAttributes)
			o.dst = entry.close()
		}
		o.dst = append(o.dst, ']')
	}
	return o.close()
}

// object is a JSON object under construction, appended to dst.
type object struct {
	dst   []byte
	begun bool // it has a member
}

func openObject(dst []byte) object { return object{dst: append(dst, '{')} }

func (o *object) close() []byte { return append(o.dst, '}') }

// element opens the i-th object of an array, appended to o.
func (o *object) element(i int) object {
	if i > 0 {
		o.dst = append(o.dst, ',')
	}
	return openObject(o.dst)
}

// name writes the name of a member, which needs no escaping.
func (o *object) name(name string) {
	if o.begun {
		o.dst = append(o.dst, ',')
	}
	o.begun = true
	o.dst = append(o.dst, '"')
	o.dst = append(o.dst, name...)
	o.dst = append(o.dst, '"', ':')
}

func (o *object) escapedName(name string) {
	if o.begun {
		o.dst = append(o.dst, ',')
	}
	o.begun = true
	o.dst = fastjson.AppendString(o.dst, name)
	o.dst = append(o.dst, ':')
}

// string writes a member unless it is empty.
func (o *object) string(name, value string) {
	if value != "" {
		o.name(name)
		o.dst = fastjson.AppendString(o.dst, value)
	}
}

func (o *object) failed(entries []BatchResultErrorEntry) {
	if entries == nil {
		return
	}
	o.name("Failed")
	o.dst = append(o.dst, '[')
	for i := range entries {
		e := &entries[i]
		entry := o.element(i)
		entry.string("Id", e.Id)
		entry.name("SenderFault")
		entry.dst = strconv.AppendBool(entry.dst, e.SenderFault)
		entry.string("Code", e.Code)
		entry.string("Message", e.Message)
		o.dst = entry.close()
	}
	o.dst = append(o.dst, ']')
}

func (o *object) attributes(attributes map[string]MessageAttributeValue) {
	if attributes == nil {
		return
	}
	o.name("MessageAttributes")
	all := openObject(o.dst)
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		value := attributes[name]
		all.escapedName(name)
		one := openObject(all.dst)
		if value.StringValue != nil {
			one.name("StringValue")
			one.dst = fastjson.AppendString(one.dst, *value.StringValue)
		}
		if value.BinaryValue != nil {
			one.name("BinaryValue")
			one.base64(value.BinaryValue)
		}
		if value.StringListValues != nil {
			one.name("StringListValues")
			one.dst = append(one.dst, '[')
			for i, s := range value.StringListValues {
				if i > 0 {
					one.dst = append(one.dst, ',')
				}
				one.dst = fastjson.AppendString(one.dst, s)
			}
			one.dst = append(one.dst, ']')
		}
		if value.BinaryListValues != nil {
			one.name("BinaryListValues")
			one.dst = append(one.dst, '[')
			for i, p := range value.BinaryListValues {
				if i > 0 {
					one.dst = append(one.dst, ',')
				}
				one.base64(p)
			}
			one.dst = append(one.dst, ']')
		}
		one.string("DataType", value.DataType)
		all.dst = one.close()
	}
	o.dst = all.close()
}

func (o *object) base64(p []byte) {
	o.dst = append(o.dst, '"')
	o.dst = base64.StdEncoding.AppendEncode(o.dst, p)
	o.dst = append(o.dst, '"')
}
