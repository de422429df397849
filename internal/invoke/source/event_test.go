package source

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

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
	for _, bad := range []string{"", "{", "[]", `"a"`, "{}", `{"body":"a"}`, `{"body":{"a":"b"}}`, `{"body":[{"unknown":1}]}`} {
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
	} {
		f, err := CompileFilter(c.pattern)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		if got := f.Matches([]byte(c.body)); got != c.want {
			t.Errorf("%s on %s: %t", c.pattern, c.body, got)
		}
	}
}

func FuzzFilter(f *testing.F) {
	f.Add(`{"body":{"a":["b"]}}`, `{"a":"b"}`)
	f.Add(`{"body":[{"prefix":"b"}]}`, `bc`)
	f.Fuzz(func(_ *testing.T, pattern, body string) {
		if f, err := CompileFilter(pattern); err == nil {
			f.Matches([]byte(body))
		}
	})
}

// A record is JSON that says what the message holds.
func FuzzRecord(f *testing.F) {
	f.Add("body", "group", "name", []byte{1}, true)
	f.Fuzz(func(t *testing.T, body, group, name string, value []byte, binary bool) {
		kind := "String"
		if binary {
			kind = "Binary"
		}
		m := &mapping.Mapping{Queue: arn.ARN{Service: "sqs", Region: "us-east-1", Account: "000000000000", Resource: "q"}}
		r := &shard.Received{Message: &message.Message{Body: []byte(body), Group: group, Attributes: []message.Attribute{{Name: name, Type: kind, Value: value}}}, FIFO: true}
		var got struct {
			Body       string
			Attributes map[string]string
			User       map[string]struct {
				StringValue *string
				BinaryValue []byte
			} `json:"messageAttributes"`
		}
		if err := json.Unmarshal(appendRecord(nil, m, r), &got); err != nil {
			t.Fatal(err)
		}
		if utf8.ValidString(body) && got.Body != body {
			t.Errorf("body %q is %q", body, got.Body)
		}
		if a, ok := got.User[name]; ok && binary && string(a.BinaryValue) != string(value) {
			t.Errorf("value %q is %q", value, a.BinaryValue)
		}
	})
}
