package awsjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/wire/awsjson"
)

type everything struct {
	Text     string
	Optional *string
	Count    *int
	Number   int
	Flag     bool
	Maybe    *bool
	Blob     []byte
	Names    []string
	Blobs    [][]byte
	Items    []item
	Tags     map[string]string `json:"tags"`
	Values   map[string]item
	Ordered  api.Pairs
	Inner    item
}

type item struct {
	Id string
	N  *int
}

func TestAppend(t *testing.T) {
	text, count, yes := "", 0, true
	for name, test := range map[string]struct {
		out  everything
		want string
	}{
		"absent": {everything{}, `{"Number":0,"Flag":false,"Inner":{}}`},
		"empty": {
			everything{
				Optional: &text, Count: &count, Blob: []byte{}, Names: []string{}, Items: []item{},
				Tags: map[string]string{}, Values: map[string]item{}, Ordered: api.Pairs{},
			},
			`{"Optional":"","Count":0,"Number":0,"Flag":false,"Blob":"","Names":[],"Items":[],"tags":{},"Values":{},"Ordered":{},"Inner":{}}`,
		},
		"full": {
			everything{
				Text: "a\"b\\\n<é>\x01", Number: -7, Flag: true, Maybe: &yes, Blob: []byte{0, 255}, Names: []string{"", "x"},
				Blobs: [][]byte{{1}, nil}, Items: []item{{Id: "1", N: &count}, {}},
				Tags: map[string]string{"b": "2", "a": "1"}, Values: map[string]item{"k\t": {Id: "i"}},
				Ordered: api.Pairs{{Name: "z", Value: "1"}, {Name: "a", Value: ""}}, Inner: item{Id: "in"},
			},
			`{"Text":"a\"b\\\n<é>\u0001","Number":-7,"Flag":true,"Maybe":true,"Blob":"AP8=","Names":["","x"],"Blobs":["AQ==",""],` +
				`"Items":[{"Id":"1","N":0},{}],"tags":{"a":"1","b":"2"},"Values":{"k\t":{"Id":"i"}},"Ordered":{"z":"1","a":""},"Inner":{"Id":"in"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := string(awsjson.Append([]byte("x"), &test.out))
			if got != "x"+test.want {
				t.Errorf("got  %s\nwant x%s", got, test.want)
			}
			if !json.Valid([]byte(got[1:])) {
				t.Error("this is not JSON")
			}
		})
	}
}

func TestDecode(t *testing.T) {
	var got everything
	err := awsjson.Decode([]byte(`{"Text":"a\u00e9","Optional":"","Count":3,"Maybe":null,"Blob":"AP8=","Names":["x"],"Unknown":{"a":[1]},
		"Items":[{"Id":"1"}],"tags":{"k":"v"},"Values":{"v":{"N":1}},"Names2":1}`), &got)
	empty, three, one := "", 3, 1
	want := everything{
		Text: "aé", Optional: &empty, Count: &three, Blob: []byte{0, 255}, Names: []string{"x"},
		Items: []item{{Id: "1"}}, Tags: map[string]string{"k": "v"}, Values: map[string]item{"v": {N: &one}},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	got = everything{}
	if err := awsjson.Decode(nil, &got); err != nil || !cmp.Equal(got, everything{}) {
		t.Errorf("an empty body is %+v, %v", got, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for body, want := range map[string]string{
		`{`:                         "The request body is not valid JSON.",
		`{"Text":"a"} x`:            "The request body is not valid JSON.",
		`Action=SendMessage`:        "The request body is not valid JSON.",
		`[]`:                        "Start of list found where not expected.",
		`"x"`:                       "Expected structure or map, found STRING_VALUE.",
		`{"Text":1}`:                "NUMBER_VALUE can not be converted to a String",
		`{"Text":true}`:             "BOOLEAN_VALUE can not be converted to a String",
		`{"Text":{}}`:               "Start of structure or map found where not expected.",
		`{"Text":[]}`:               "Start of list found where not expected.",
		`{"Count":"5"}`:             "STRING_VALUE can not be converted to an Integer",
		`{"Count":1.5}`:             "NUMBER_VALUE can not be converted to an Integer",
		`{"Count":1e999}`:           "NUMBER_VALUE can not be converted to an Integer",
		`{"Flag":"true"}`:           "STRING_VALUE can not be converted to a Boolean",
		`{"Blob":"*"}`:              "A blob is not valid base64.",
		`{"Blob":7}`:                "NUMBER_VALUE can not be converted to a Blob",
		`{"Names":"x"}`:             "Expected list or null, found STRING_VALUE.",
		`{"tags":"x"}`:              "Expected structure or map, found STRING_VALUE.",
		`{"tags":{"a":1}}`:          "NUMBER_VALUE can not be converted to a String",
		`{"Items":[{"Id":{}}]}`:     "Start of structure or map found where not expected.",
		strings.Repeat("[", 20_000): "The request body is not valid JSON.",
	} {
		var in everything
		err := awsjson.Decode([]byte(body), &in)
		if fault.KindOf(err) != fault.MalformedInput || err.Error() != want {
			t.Errorf("%.40s: %v; want %s", body, err, want)
		}
	}
}
