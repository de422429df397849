package awsjson_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/wire/awsjson"
)

type nested struct {
	Name  string
	Value *string
}

type named struct {
	QueueUrl string
	Lower    string `json:"lower"`
	Known    *nested
	Entries  []nested
	ByName   map[string]nested
	Texts    map[string]string
	Tags     api.Pairs
	Size     int
}

// As at AWS, a member's name is exact: encoding/json takes one of other case as well.
func TestNamesAreExact(t *testing.T) {
	text := "v"
	full := named{
		QueueUrl: "u", Lower: "l", Known: &nested{"n", &text}, Entries: []nested{{"e", nil}, {"f", &text}},
		ByName: map[string]nested{"name": {"m", nil}}, Texts: map[string]string{"queueUrl": "t", "\"}": "]"}, Size: 3,
	}
	for _, c := range []struct {
		name, body string
		want       named
	}{
		{"exact", `{"QueueUrl":"u","lower":"l","Known":{"Name":"n","Value":"v"},"Entries":[{"Name":"e"},{"Name":"f","Value":"v"}],
			"ByName":{"name":{"Name":"m"}},"Texts":{"queueUrl":"t","\"}":"]"},"Size":3}`, full},
		{"unknown members beside", `{"x":{"QueueUrl":["a\\",{"b":"\"}"}]},"QueueUrl":"u","Lower":"no","lower":"l","Known":{"name":"no","Name":"n","Value":"v","more":[]},
			"Entries":[{"Name":"e","NAME":"no"},{"value":1,"Name":"f","Value":"v"}],"ByName":{"name":{"Name":"m","name":{}}},"Texts":{"queueUrl":"t","\"}":"]"},"Size":3,"SIZE":"no"}`, full},
		{"other case", `{"queueurl":"u","QUEUEURL":"u","LOWER":"l","known":{"Name":"n"},"entries":[{}],"texts":{"a":"b"},"tags":{"a":"b"},"ſize":1}`, named{}},
		{
			"other case within", `{"Known":{"name":"n"},"Entries":[{"name":"e"},null],"ByName":{"a":{"NAME":"m"},"b":null}}`,
			named{Known: &nested{}, Entries: []nested{{}, {}}, ByName: map[string]nested{"a": {}, "b": {}}},
		},
		{"escaped", `{"\u0051ueueUrl":"u","\u0071ueueUrl":"no"}`, named{QueueUrl: "u"}},
		{"the last counts", `{"QueueUrl":"a","QueueUrl":"u","queueUrl":"b"}`, named{QueueUrl: "u"}},
		{"spaces", " {\t\"queueUrl\" :\n\"no\" , \"QueueUrl\"\r: \"u\" } ", named{QueueUrl: "u"}},
		{"none", `{}`, named{}},
	} {
		var got named
		before := c.body
		body := []byte(c.body)
		if err := awsjson.DecodeGeneric(body, &got); err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
		if string(body) != before {
			t.Errorf("%s: the body was changed", c.name)
		}
	}
	for _, bad := range []string{`{`, `{"queueurl"`, `{"queueurl":`, `{"queueurl":1`, `{"queueurl":1,`, `{"queueurl":]}`, `{"a":1}}`, `{"QueueUrl":1}`, `[{"queueurl":1}]`, `"`, `{"a\`, `{"Entries":[{"a":}]}`, `{"Entries":[`, `{"Entries":{"Name":"a"}}`, `{"Known":[{"name":"a"}]}`, `{:}`, `{"\q":1}`} {
		if err := awsjson.DecodeGeneric([]byte(bad), new(named)); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

func FuzzNames(f *testing.F) {
	f.Add([]byte(`{"queueurl":"a","Known":{"name":[1,{}]},"Entries":[{"Name":"x"}],"Size":1}`))
	f.Fuzz(func(_ *testing.T, body []byte) { _ = awsjson.DecodeGeneric(body, new(named)) })
}
