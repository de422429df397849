package awsjson_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/firehose"
	"godwit.dev/godwit/internal/api/sqs"
	"godwit.dev/godwit/internal/wire/awsjson"
)

// The inputs with decoders of their own.
var fastInputs = map[string]reflect.Type{
	"SendMessage":             reflect.TypeFor[sqs.SendMessageInput](),
	"SendMessageBatch":        reflect.TypeFor[sqs.SendMessageBatchInput](),
	"ReceiveMessage":          reflect.TypeFor[sqs.ReceiveMessageInput](),
	"DeleteMessage":           reflect.TypeFor[sqs.DeleteMessageInput](),
	"DeleteMessageBatch":      reflect.TypeFor[sqs.DeleteMessageBatchInput](),
	"ChangeMessageVisibility": reflect.TypeFor[sqs.ChangeMessageVisibilityInput](),
	"PutRecordBatch":          reflect.TypeFor[firehose.PutRecordBatchInput](),
}

// decodeBoth fails t unless both decoders of a body agree, and reports whether
// the hand-tuned one took it.
func decodeBoth(t interface{ Errorf(string, ...any) }, of reflect.Type, body []byte) (taken bool) {
	want := reflect.New(of).Interface()
	wantErr := awsjson.DecodeGeneric(body, want)
	got := reflect.New(of).Interface()
	pooled := append([]byte(nil), body...)
	gotErr := awsjson.Decode(pooled, got)
	cloneBodies(got)
	clear(pooled) // nothing else may alias it
	if (gotErr == nil) != (wantErr == nil) || gotErr != nil && gotErr.Error() != wantErr.Error() {
		t.Errorf("%s: error %v; the generic decoder's is %v", body, gotErr, wantErr)
	} else if diff := cmp.Diff(want, got); gotErr == nil && diff != "" {
		t.Errorf("%s: the generic decoder differs:\n%s", body, diff)
	}
	fast := reflect.New(of).Interface().(awsjson.FastDecoder)
	taken = fast.FastDecode(body) == nil
	if taken && wantErr != nil {
		t.Errorf("%s was taken, though %v", body, wantErr)
	}
	return taken
}

// cloneBodies makes the texts of an input its own that it says are parts of the body.
func cloneBodies(in any) {
	switch in := in.(type) {
	case *sqs.SendMessageInput:
		in.MessageBody = strings.Clone(in.MessageBody)
	case *sqs.SendMessageBatchInput:
		for i := range in.Entries {
			in.Entries[i].MessageBody = strings.Clone(in.Entries[i].MessageBody)
		}
	}
}

// fill draws a value for v; pointers, slices and maps may be nil or empty.
func fill(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "a\"\\b", "x\n\t\r\x00", "漢字 and some longer text behind it", `{"json":"in json"}`})).Draw(t, "string"))
	case reflect.Int:
		v.SetInt(int64(rapid.IntRange(-1_000_000, 1_000_000).Draw(t, "int")))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Uint8:
		v.SetUint(uint64(rapid.Byte().Draw(t, "byte")))
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "set") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem())
		}
	case reflect.Slice:
		if n := rapid.IntRange(-1, 3).Draw(t, "length"); n >= 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				fill(t, v.Index(i))
			}
		}
	case reflect.Map:
		if n := rapid.IntRange(-1, 3).Draw(t, "length"); n >= 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for range n {
				key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				fill(t, key)
				fill(t, value)
				v.SetMapIndex(key, value)
			}
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(t, field)
		}
	}
}

// Whatever an SDK may send, the hand-tuned decoders take it, unless it holds
// what they leave aside, and read what the generic one reads.
func TestFastDecodersAgree(t *testing.T) {
	for name, of := range fastInputs {
		t.Run(name, func(t *testing.T) {
			taken := 0
			rapid.Check(t, func(t *rapid.T) {
				in := reflect.New(of)
				fill(t, in.Elem())
				body := awsjson.Append(nil, in.Interface())
				if rapid.Bool().Draw(t, "indent") {
					var value any
					if err := json.Unmarshal(body, &value); err != nil {
						t.Fatal(err)
					}
					body, _ = json.MarshalIndent(value, "", "\t")
				}
				if decodeBoth(t, of, body) {
					taken++
				}
			})
			if taken < 20 {
				t.Errorf("only %d bodies were taken", taken)
			}
		})
	}
}

// What SDKs send most must not fall back.
func TestUsualIsTaken(t *testing.T) {
	for name, body := range map[string]string{
		"SendMessage": `{"QueueUrl":"http://localhost:4566/000000000000/q","MessageBody":"{\"a\": \"\u00e9漢\"}","DelaySeconds":0,` +
			`"MessageAttributes":{"n":{"DataType":"Number","StringValue":"1"},"b":{"DataType":"Binary","BinaryValue":"AP8="}},` +
			`"MessageSystemAttributes":{},"MessageGroupId":"g","MessageDeduplicationId":"d"}`,
		"SendMessageBatch":        `{"QueueUrl": "u", "Entries": [{"Id": "1", "MessageBody": "a"}, {"Id": "2", "MessageBody": "b", "DelaySeconds": 900}]}`,
		"ReceiveMessage":          `{"QueueUrl":"u","MaxNumberOfMessages":10,"WaitTimeSeconds":20,"VisibilityTimeout":30,"AttributeNames":["All"],"MessageAttributeNames":[]}`,
		"DeleteMessage":           `{"QueueUrl":"u","ReceiptHandle":"h"}`,
		"DeleteMessageBatch":      `{"QueueUrl":"u","Entries":[{"Id":"1","ReceiptHandle":"h"}]}`,
		"ChangeMessageVisibility": `{"QueueUrl":"u","ReceiptHandle":"h","VisibilityTimeout":-1}`,
		"PutRecordBatch":          `{"DeliveryStreamName":"s","Records":[{"Data":"AP8="},{"Data":""}]}`,
	} {
		if !decodeBoth(t, fastInputs[name], []byte(body)) {
			t.Errorf("%s was not taken: %s", name, body)
		}
	}
}

// Every decoder that an input has is in the table above.
func TestTableIsComplete(t *testing.T) {
	if len(fastInputs) != 7 {
		t.Fatal("a decoder was added or removed: say so here")
	}
	for name, of := range fastInputs {
		if _, ok := reflect.TypeAssert[awsjson.FastDecoder](reflect.New(of)); !ok {
			t.Errorf("%s has no decoder of its own", name)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, body := range []string{
		`{}`, `null`, `{"QueueUrl":null}`, `{"queueurl":"x"}`, `{"QueueUrl":"a","QueueUrl":"b"}`, `{"QueueUrl":"\ud800"}`, "{\"QueueUrl\":\"\xff\"}",
		`{"Entries":[{"Id":"1"}],"Entries":[{"MessageBody":"x"}]}`, `{"MessageAttributes":{"a":{"DataType":"x"},"a":{}}}`,
		`{"MessageAttributes":{"a":{"BinaryValue":"*"}}}`, `{"DelaySeconds":1.0}`, `{"DelaySeconds":01}`, `{"DelaySeconds":-0}`,
		`{"MessageAttributes":{"a":{}},"MessageAttributes":{"b":{}}}`, `{"AttributeNames":["a",null]}`, `{"VisibilityTimeout":12345678901234567890}`,
		`{"DeliveryStreamName":"s","Records":[{"Data":"AP8="},{"Data":""},{}]}`, `{"Records":[{"Data":"","Data":"AA=="}],"Records":[]}`, `{"Records":[{"Data":[1]}]}`,
	} {
		f.Add([]byte(body))
	}
	f.Add(sendBody)
	f.Add(receiveBody)
	f.Add(batchBody())
	f.Add([]byte(`{"QueueUrl":"u","MessageBody":"\u00e9\ud83d\ude00","MessageGroupId":"g","MessageDeduplicationId":"d","ReceiveRequestAttemptId":"r",` +
		`"MessageAttributes":{"a.b":{"DataType":"Binary.x","BinaryValue":"AP8="}},"MessageSystemAttributes":{"AWSTraceHeader":{"DataType":"String","StringValue":"Root=1"}},` +
		`"Entries":[{"Id":"1","ReceiptHandle":"h","MessageBody":"b","DelaySeconds":900}],"ReceiptHandle":"h","VisibilityTimeout":0}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, of := range fastInputs {
			decodeBoth(t, of, body)
		}
	})
}

var (
	sendBody    = mustJSON(map[string]any{"QueueUrl": "http://127.0.0.1:4566/000000000000/bench", "MessageBody": string(make1K())})
	receiveBody = mustJSON(map[string]any{"QueueUrl": "http://127.0.0.1:4566/000000000000/bench", "MaxNumberOfMessages": 10, "AttributeNames": []string{"All"}, "WaitTimeSeconds": 1})
)

func make1K() []byte {
	p := make([]byte, 1024)
	for i := range p {
		p[i] = 'a' + byte(i%26)
	}
	return p
}

func mustJSON(v any) []byte {
	p, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return p
}

func batchBody() []byte {
	var entries []map[string]any
	for i := range 10 {
		entries = append(entries, map[string]any{"Id": string(rune('0' + i)), "MessageBody": string(make1K())})
	}
	return mustJSON(map[string]any{"QueueUrl": "http://127.0.0.1:4566/000000000000/bench", "Entries": entries})
}

func BenchmarkDecode(b *testing.B) {
	for _, c := range []struct {
		name string
		body []byte
		in   func() any
	}{
		{"SendMessage", sendBody, func() any { return new(sqs.SendMessageInput) }},
		{"SendMessageBatch10", batchBody(), func() any { return new(sqs.SendMessageBatchInput) }},
		{"ReceiveMessage", receiveBody, func() any { return new(sqs.ReceiveMessageInput) }},
	} {
		for path, decode := range map[string]func([]byte, any) error{"fast": awsjson.Decode, "generic": awsjson.DecodeGeneric} {
			b.Run(c.name+"/"+path, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := decode(c.body, c.in()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	sent := &sqs.SendMessageOutput{MD5OfMessageBody: "5eb63bbbe01eeed093cb22bb8f5acdc3", MessageId: "f47ac10b-58cc-4372-a567-0e02b2c3d479"}
	received := new(sqs.ReceiveMessageOutput)
	for range 10 {
		received.Messages = append(received.Messages, sqs.Message{
			MessageId: sent.MessageId, MD5OfBody: sent.MD5OfMessageBody, Body: string(make1K()), ReceiptHandle: string(make1K()[:100]),
			Attributes: api.Pairs{{Name: "SenderId", Value: "000000000000"}, {Name: "SentTimestamp", Value: "1767225600000"}},
		})
	}
	for name, out := range map[string]any{"SendMessage": sent, "ReceiveMessage10": received} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			buf := make([]byte, 0, 64<<10)
			for b.Loop() {
				buf = awsjson.Append(buf[:0], out)
			}
		})
	}
}
