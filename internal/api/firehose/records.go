package firehose

import (
	"context"
	"encoding/base64"
	"fmt"
	"unsafe"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/deliverystream"
	"godwit.dev/godwit/internal/fastjson"
	"godwit.dev/godwit/internal/fault"
)

// putRecord answers PutRecord.
func (s *Service) putRecord(ctx context.Context, call *api.Call, in *PutRecordInput) (*PutRecordOutput, error) {
	a, err := named(call, in.DeliveryStreamName)
	if err != nil {
		return nil, err
	}
	if err := checkData("record.data", in.Record.Data); err != nil {
		return nil, err
	}
	found, err := s.Store.Find(a)
	if err != nil {
		return nil, err
	}
	ids, err := s.Store.Put(ctx, a, []deliverystream.Record{{Data: in.Record.Data}})
	s.put(call, found, "PutRecord", 1, int64(len(in.Record.Data)), err)
	if err != nil {
		return nil, err
	}
	return &PutRecordOutput{ids[0], found.Encryption.Enabled}, nil
}

// putRecordBatch answers PutRecordBatch. If the stream cannot accept records for now, each of
// them fails, as with AWS: callers put these again.
func (s *Service) putRecordBatch(ctx context.Context, call *api.Call, in *PutRecordBatchInput) (*PutRecordBatchOutput, error) {
	a, err := named(call, in.DeliveryStreamName)
	if err != nil {
		return nil, err
	}
	records, size, err := batch(in.Records)
	if err != nil {
		return nil, err
	}
	found, err := s.Store.Find(a)
	if err != nil {
		return nil, err
	}
	out := &PutRecordBatchOutput{Encrypted: found.Encryption.Enabled, RequestResponses: make([]PutRecordBatchEntry, len(records))}
	ids, err := s.Store.Put(ctx, a, records)
	s.put(call, found, "PutRecordBatch", len(records), size, err)
	if throttled(err) {
		code, text, _ := call.Describe(err)
		for i := range out.RequestResponses {
			out.RequestResponses[i] = PutRecordBatchEntry{ErrorCode: code, ErrorMessage: text}
		}
		out.FailedPutCount = len(records)
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		out.RequestResponses[i].RecordId = id
	}
	return out, nil
}

// batch validates the records of a batch.
func batch(in []Record) (records []deliverystream.Record, size int64, err error) {
	switch n := len(in); {
	case n == 0:
		return nil, 0, constraint("records", "[]", "Member must have length greater than or equal to 1")
	case n > deliverystream.MaxRecords:
		return nil, 0, constraint("records", fmt.Sprintf("[%d records]", n), "Member must have length less than or equal to 500")
	}
	records = make([]deliverystream.Record, len(in))
	for i := range in {
		if err := checkData(fmt.Sprintf("records.%d.member.data", i+1), in[i].Data); err != nil {
			return nil, 0, err
		}
		records[i].Data = in[i].Data
		size += int64(len(in[i].Data))
	}
	if size > deliverystream.MaxBatch {
		return nil, 0, invalid("Records size exceeds 4 MB limit")
	}
	return records, size, nil
}

func checkData(member string, data []byte) error {
	switch {
	case data == nil:
		return missing(member)
	case len(data) > deliverystream.MaxRecord:
		return invalidShape("1 validation error detected: Value at '%s' failed to satisfy constraint: Member must have length less than or equal to %d", member, deliverystream.MaxRecord)
	}
	return nil
}

// put reports a put to Observe.
func (s *Service) put(call *api.Call, found *deliverystream.Stream, name string, records int, size int64, err error) {
	r := Putting(found.ARN(), name, records, size, err)
	s.done(call, r)
}

// Putting is the Request of a put, successful or not.
func Putting(a arn.ARN, name string, records int, size int64, err error) Request {
	r := Request{Stream: a, Name: name}
	switch {
	case err == nil:
		r.Records, r.Bytes = records, size
	case throttled(err):
		r.Throttled = records
	}
	return r
}

// throttled reports that a delivery stream takes no records now, and may take them later. Firehose
// counts all of these as throttled.
func throttled(err error) bool {
	kind := fault.KindOf(err)
	return kind == fault.Throttled || kind == fault.Unavailable
}

// FastDecode implements awsjson.FastDecoder.
func (in *PutRecordBatchInput) FastDecode(body []byte) error {
	s := fastjson.Scan(body)
	for key, ok := s.Object(); ok; key, ok = s.Key() {
		switch string(key) {
		case "DeliveryStreamName":
			in.DeliveryStreamName = s.String()
		case "Records":
			if in.Records != nil {
				s.Fail()
			}
			in.Records = make([]Record, 0, deliverystream.MaxRecords)
			buffer := make([]byte, 0, base64.StdEncoding.DecodedLen(len(body)))
			for more := s.Array(); more; more = s.More() {
				var data []byte
				data, buffer = scanRecord(&s, buffer)
				in.Records = append(in.Records, Record{data})
			}
		default:
			s.Fail()
		}
	}
	return s.End()
}

// scanRecord decodes a record; the data is appended to buffer.
func scanRecord(s *fastjson.Scanner, buffer []byte) (data, rest []byte) {
	for key, ok := s.Object(); ok; key, ok = s.Key() {
		if string(key) != "Data" || data != nil {
			s.Fail()
			return data, buffer
		}
		text := s.Text()
		n := base64.StdEncoding.DecodedLen(len(text))
		if n > cap(buffer) {
			s.Fail()
			return data, buffer
		}
		n, err := base64.StdEncoding.Decode(buffer[:n], unsafe.Slice(unsafe.StringData(text), len(text))) //nolint:gosec // it is only read
		if err != nil {
			s.Fail()
			return data, buffer
		}
		data, buffer = buffer[:n:n], buffer[n:n]
		if cap(buffer) > 0 {
			buffer = buffer[0:0:cap(buffer)]
		}
	}
	return data, buffer
}
