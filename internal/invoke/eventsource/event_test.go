package eventsource

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/function/mapping"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
)

func TestFailed(t *testing.T) {
	batch := []item{{id: "a"}, {id: "b"}, {id: "c"}}
	for answer, want := range map[string]string{ // the ids, or all
		"":                           "",
		" \n":                        "",
		"null":                       "",
		"{}":                         "",
		`{"other":[1]}`:              "",
		`{"batchItemFailures":[]}`:   "",
		`{"batchItemFailures":null}`: "",
		`{"batchItemFailures":[{"itemIdentifier":"a"},{"itemIdentifier":"c"},{"itemIdentifier":"a"}]}`: "a c",
		`{"batchItemFailures":[{"itemIdentifier":"a","more":1}]}`:                                      "a",
		`{"batchItemFailures":[{"itemIdentifier":"a"},{"itemIdentifier":"z"}]}`:                        "all",
		`{"batchItemFailures":[{"itemIdentifier":""}]}`:                                                "all",
		`{"batchItemFailures":[{"itemIdentifier":null}]}`:                                              "all",
		`{"batchItemFailures":[{"itemidentifier":"a"}]}`:                                               "all",
		`{"batchItemFailures":[{}]}`:                                                                   "all",
		`{"batchItemFailures":[null]}`:                                                                 "all",
		`{"batchItemFailures":"a"}`:                                                                    "all",
		`{"batchItemFailures":[`:                                                                       "all",
		`[]`:                                                                                           "all",
		`"a"`:                                                                                          "all",
		`7`:                                                                                            "all",
	} {
		ids, whole := failed([]byte(answer), batch)
		got := strings.Join(slices.Sorted(maps.Keys(ids)), " ")
		if whole {
			got = "all"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", answer, got, want)
		}
	}
}

func FuzzFailed(f *testing.F) {
	f.Add([]byte(`{"batchItemFailures":[{"itemIdentifier":"a"}]}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		ids, whole := failed(answer, []item{{id: "a"}, {id: "b"}})
		if whole && ids != nil {
			t.Error("all, and some")
		}
		for id := range ids {
			if id != "a" && id != "b" {
				t.Errorf("%q was not in the batch", id)
			}
		}
	})
}

func TestFilters(t *testing.T) {
	for _, bad := range []string{
		"", "{", "[]", `"a"`, "{}", `{"body":"a"}`, `{"body":{"a":"b"}}`, `{"body":[{"unknown":1}]}`,
		// What names something else than the body would match no message, and so delete them all.
		`{"messageAttributes":{"a":{"stringValue":["b"]}}}`, `{"body":["x"],"attributes":{"SenderId":["y"]}}`, `{"Body":["x"]}`,
		`{"a":[{"exists":false}],"body":["x"]}`, `{"$or":[{"body":["x"]},{"messageId":["y"]}]}`, `{"$or":["x"]}`,
		`{"$or":[{"body":["x"]},{"$or":[{"body":["y"]},{"a":["z"]}]}]}`,
	} {
		if _, err := CompileFilter(bad); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	for _, c := range []struct {
		pattern, body string
		want          bool
	}{
		{`{"body":{"a":["b"]}}`, `{"a":"b"}`, true},
		{`{"body":{"a":["b"]}}`, ` {"a":"b","c":1} `, true},
		{`{"body":{"a":["b"]}}`, `{"a":"c"}`, false},
		{`{"body":{"a":["b"]}}`, `a`, false},
		{`{"body":{"a":["b"]}}`, `{"a":"b"`, false},
		{`{"body":{"a":{"b":[{"numeric":[">",1,"<=",3]}]}}}`, `{"a":{"b":3}}`, true},
		{`{"body":{"a":{"b":[{"numeric":[">",1,"<=",3]}]}}}`, `{"a":{"b":4}}`, false},
		{`{"body":{"a":[{"exists":false}]}}`, `{"b":1}`, true},
		{`{"body":{"a":[{"exists":false}]}}`, `{"a":1}`, false},
		{`{"body":{"a":[{"exists":false}]}}`, `plain`, false},
		{`{"body":["b"]}`, `b`, true},
		{`{"body":["b"]}`, `c`, false},
		{`{"body":["b"]}`, `{"b":"b"}`, false},
		{`{"body":[{"prefix":"a\"b"}]}`, "a\"b\nc", true},
		{`{"body":[{"anything-but":["b"]}]}`, `c`, true},
		{`{"body":[{"anything-but":["b"]}]}`, `{"c":1}`, false},
		// The bounds of topics' policies are not those of mappings.
		{`{"body":{"a":["1","2","3"],"b":["1","2","3"],"c":["1","2","3"]}}`, `{"a":"3","b":"1","c":"2"}`, true},
		{`{"body":{"a":["1","2","3"],"b":["1","2","3"],"c":["1","2","3"]}}`, `{"a":"3","b":"1","c":"4"}`, false},
		{`{"$or":[{"body":{"a":[1],"b":[2],"c":[3],"d":[4],"e":[5],"f":[6],"g":[7],"h":[8]}},{"body":{"a":{"b":{"c":{"d":["x"]}}}}}]}`, `{"a":{"b":{"c":{"d":"x"}}}}`, true},
		{`{"body":{"a":[1],"b":[{"exists":false}],"c":[{"exists":false}],"d":[{"exists":false}],"e":[{"exists":false}],"f":[{"exists":false}]}}`, `{"a":1}`, true},
		{`{"$or":[{"body":["x"]},{"body":[{"prefix":"y"}]}]}`, `yz`, true},
		{`{"body.a":["b"]}`, `{"a":"b"}`, true},
	} {
		f, err := CompileFilter(c.pattern)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		if got := f.matches(contentOf([]byte(c.body))); got != c.want {
			t.Errorf("%s on %s: %t", c.pattern, c.body, got)
		}
	}
}

func FuzzFilter(f *testing.F) {
	f.Add(`{"body":{"a":["b"]}}`, `{"a":"b"}`)
	f.Add(`{"body":[{"prefix":"b"}]}`, `bc`)
	f.Fuzz(func(_ *testing.T, pattern, body string) {
		if f, err := CompileFilter(pattern); err == nil {
			f.matches(contentOf([]byte(body)))
		}
	})
}

// record is what a record holds.
type record struct {
	MessageID     string               `json:"messageId"`
	ReceiptHandle string               `json:"receiptHandle"`
	Body          string               `json:"body"`
	Attributes    map[string]string    `json:"attributes"`
	UserDefined   map[string]attribute `json:"messageAttributes"`
	AttributesMD5 *string              `json:"md5OfMessageAttributes"`
	BodyMD5       string               `json:"md5OfBody"`
	Source        string               `json:"eventSource"`
	SourceARN     string               `json:"eventSourceARN"`
	Region        string               `json:"awsRegion"`
}

type attribute struct {
	StringValue *string  `json:"stringValue"`
	BinaryValue []byte   `json:"binaryValue"`
	StringList  []string `json:"stringListValues"`
	BinaryList  []string `json:"binaryListValues"`
	Type        string   `json:"dataType"`
}

// A record is JSON that says what the message holds, and no more.
func FuzzRecord(f *testing.F) {
	f.Add("body", "group", "trace", "name", []byte{1}, true, true, 0)
	f.Add("\"a\\\n<é>", "", "", "", []byte(nil), false, false, 1)
	f.Add("{}", "", "Root=1", "n", []byte("v\""), false, true, 2)
	f.Fuzz(func(t *testing.T, body, group, trace, name string, value []byte, binary, fifo bool, window int) {
		m := &mapping.Mapping{Queue: arn.ARN{Service: "sqs", Region: "us-east-1", Account: "000000000000", Resource: "q"}}
		m.Window = time.Duration(window)
		r := &shard.Received{
			Message:       &message.Message{Body: []byte(body), BodyMD5: [16]byte{1}, Group: group, Trace: trace, Sender: "me", Sent: 5},
			ReceiptHandle: "handle", Receives: 3, FirstReceived: 7, Sequence: 9, FIFO: fifo,
		}
		text := func(s string) string { return string([]rune(s)) } // with U+FFFD for what is no UTF-8
		want := record{
			MessageID: r.ID.String(), ReceiptHandle: "handle", Body: text(body), UserDefined: map[string]attribute{},
			Attributes: map[string]string{"ApproximateReceiveCount": "3", "SentTimestamp": "5", "ApproximateFirstReceiveTimestamp": "7", "SenderId": "me"},
			BodyMD5:    "01000000000000000000000000000000", Source: "aws:sqs", SourceARN: "arn:aws:sqs:us-east-1:000000000000:q", Region: "us-east-1",
		}
		if group != "" {
			want.Attributes["MessageGroupId"] = text(group)
		}
		if trace != "" {
			want.Attributes["AWSTraceHeader"] = text(trace)
		}
		if fifo {
			want.Attributes["SequenceNumber"] = message.SequenceNumber(9)
		}
		if name != "" {
			shown := attribute{StringList: []string{}, BinaryList: []string{}, Type: "Binary", BinaryValue: append([]byte{}, value...)}
			if !binary {
				shown = attribute{StringList: []string{}, BinaryList: []string{}, Type: "String", StringValue: new(text(string(value)))}
			}
			r.Attributes = []message.Attribute{{Name: name, Type: shown.Type, Value: value}}
			r.AttributesMD5 = [16]byte{2}
			want.UserDefined[text(name)] = shown
			want.AttributesMD5 = new("02000000000000000000000000000000")
		}
		raw := appendRecord(nil, m, r)
		var got record
		in := json.NewDecoder(bytes.NewReader(raw))
		in.DisallowUnknownFields()
		if err := in.Decode(&got); err != nil || in.More() {
			t.Fatalf("%v: %s", err, raw)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", raw, d)
		}
		if null := strings.Contains(string(raw), `"md5OfMessageAttributes":null`); null != (name == "" && m.Window > 0) {
			t.Errorf("window %d: %s", window, raw)
		}
	})
}
