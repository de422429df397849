package awsquery

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/sns"
	"godwit.dev/godwit/internal/api/sqs"
	"godwit.dev/godwit/internal/fault"
)

type value struct {
	Type string
	Text *string
	Data []byte
}

type input struct {
	Name    string
	Maybe   *string
	Count   *int
	Share   *float64
	Flag    bool
	Blob    []byte
	Inner   value
	Names   []string
	Flat    []string          `wire:"name=FlatName,flat"`
	Items   []value           `wire:"name=Item,flat"`
	Members []value           `wire:"name=Members"`
	Attrs   map[string]string `wire:"name=Attr,flat,key=Name,value=Value"`
	Values  map[string]value  `wire:"key=Name,value=Value"`
	Plain   map[string]string
}

func TestDecode(t *testing.T) {
	one, half, empty, infinite := 1, 0.5, "", math.Inf(-1)
	for form, want := range map[string]input{
		"":                                 {},
		"Action=X&Unknown.1.Deep=2&=&a&&":  {},
		"Name=a%20b+c%2B%C3%A9&Maybe=":     {Name: "a b c+é", Maybe: &empty},
		"Name=first&Name=second":           {Name: "first"},
		"Count=1&Flag=TRUE&Blob=AP8%3D":    {Count: &one, Flag: true, Blob: []byte{0, 255}},
		"Share=%2B5e-1":                    {Share: &half},
		"Share=-Infinity":                  {Share: &infinite},
		"Inner.Type=t&Inner.Text=":         {Inner: value{Type: "t", Text: &empty}},
		"Name.1=x&Inner=y":                 {},
		"Names.member.2=b&Names.member.1=": {Names: []string{"", "b"}},
		"Names=":                           {Names: []string{}},
		// Numbers count as numbers, and gaps close.
		"FlatName.10=j&FlatName.9=i&FlatName.1=a": {Flat: []string{"a", "i", "j"}},
		"FlatName=All": {Flat: []string{"All"}},
		"FlatName=":    {Flat: []string{}},
		"FlatName.x=1": {},
		"Item.2.Type=b&Item.1.Type=a&Item.1.Text=x&Item-x=0":       {Items: []value{{Type: "a", Text: new("x")}, {Type: "b"}}},
		"Members.member.1.Type=a":                                  {Members: []value{{Type: "a"}}},
		"Members.1.Type=a":                                         {},
		"Attr.1.Name=a&Attr.1.Value=1&Attr.2.Value=&Attr.2.Name=b": {Attrs: map[string]string{"a": "1", "b": ""}},
		"Attr.Name=a&Attr.Value=1":                                 {Attrs: map[string]string{"a": "1"}},
		"Attr.1.Name=a":                                            {Attrs: map[string]string{"a": ""}},
		"Values.entry.1.Name=n&Values.entry.1.Value.Type=Binary&Values.entry.1.Value.Data=AQ==": {Values: map[string]value{"n": {Type: "Binary", Data: []byte{1}}}},
		"Plain.entry.1.key=k&Plain.entry.1.value=v":                                             {Plain: map[string]string{"k": "v"}},
	} {
		t.Run(form, func(t *testing.T) {
			parsed, err := Parse([]byte(form), "")
			if err != nil {
				t.Fatal(err)
			}
			var got input
			if err := Decode(parsed, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBodyComesBeforeURL(t *testing.T) {
	form, err := Parse([]byte("Name=body"), "Name=url&Count=2")
	if err != nil {
		t.Fatal(err)
	}
	if form.Get("Name") != "body" || form.Get("Count") != "2" || form.Get("Nam") != "" {
		t.Errorf("%+v", form)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for form, want := range map[string]string{
		"Name=%zz":                   "The request contains a parameter with an invalid escape sequence.",
		"%=1":                        "The request contains a parameter with an invalid escape sequence.",
		"Count=x":                    "The value of parameter Count can not be converted to an Integer",
		"Count=":                     "The value of parameter Count can not be converted to an Integer",
		"Count=99999999999":          "The value of parameter Count can not be converted to an Integer",
		"Share=":                     "The value of parameter Share can not be converted to a Double",
		"Share=1_0":                  "The value of parameter Share can not be converted to a Double",
		"Share=0x1p4":                "The value of parameter Share can not be converted to a Double",
		"Share=inf":                  "The value of parameter Share can not be converted to a Double",
		"Flag=1":                     "The value of parameter Flag can not be converted to a Boolean",
		"Blob=*":                     "The value of parameter Blob is not valid base64.",
		"Item.1.Data=*":              "The value of parameter Data is not valid base64.",
		"FlatName.0=a":               "The index 0 of parameter FlatName is not between 1 and 10000.",
		"FlatName.-1=a":              "The index -1 of parameter FlatName is not between 1 and 10000.",
		"Item.999999999.Type=a":      "The index 999999999 of parameter Item is not between 1 and 10000.",
		"Names.member.10001=a":       "The index 10001 of parameter Names is not between 1 and 10000.",
		"Attr.1.Value=1":             "An entry of parameter Attr has no Name.",
		"Plain.entry.1.Key=k":        "An entry of parameter Plain has no key.",
		strings.Repeat("a&", 10_001): "The request has more than 10000 parameters.",
	} {
		parsed, err := Parse([]byte(form), "")
		if err == nil {
			err = Decode(parsed, new(input))
		}
		if fault.KindOf(err) != fault.MalformedInput || err.Error() != want {
			t.Errorf("%.40s: %v; want %s", form, err, want)
		}
	}
}

type output struct {
	Name    string
	Count   int
	Maybe   *int
	Flag    bool
	Blob    []byte
	Names   []string
	Flat    []string          `wire:"name=FlatName,flat"`
	Items   []value           `wire:"name=Item,flat"`
	Attrs   map[string]string `wire:"name=Attr,flat,key=Name,value=Value"`
	Values  map[string]value  `wire:"key=Name,value=Value"`
	Ordered api.Pairs         `wire:"name=Pair,flat,key=Name,value=Value"`
	Inner   value
}

func TestAppendMembers(t *testing.T) {
	zero := 0
	for want, out := range map[string]output{
		"<Count>0</Count><Flag>false</Flag><Inner></Inner>": {},
		"<Count>0</Count><Flag>false</Flag><Names></Names><Values></Values><Inner></Inner>": {
			Names: []string{}, Flat: []string{}, Attrs: map[string]string{}, Values: map[string]value{},
		},
		"<Name>&lt;a&gt;&amp;&quot;'\n\t&#xD;\uFFFDé</Name><Count>-1</Count><Maybe>0</Maybe><Flag>true</Flag><Blob>AP8=</Blob>" +
			"<Names><member>a</member><member></member></Names><FlatName>b</FlatName><Item><Type>t</Type></Item>" +
			"<Attr><Name>a</Name><Value>1</Value></Attr><Attr><Name>b</Name><Value>2</Value></Attr>" +
			"<Values><entry><Name>v</Name><Value><Type>x</Type></Value></entry></Values>" +
			"<Pair><Name>z</Name><Value>1</Value></Pair><Pair><Name>a</Name><Value>2</Value></Pair><Inner><Type>i</Type></Inner>": {
			Name: "<a>&\"'\n\t\r\x00é", Count: -1, Maybe: &zero, Flag: true, Blob: []byte{0, 255}, Names: []string{"a", ""}, Flat: []string{"b"},
			Items: []value{{Type: "t"}}, Attrs: map[string]string{"b": "2", "a": "1"}, Values: map[string]value{"v": {Type: "x"}},
			Ordered: api.Pairs{{Name: "z", Value: "1"}, {Name: "a", Value: "2"}}, Inner: value{Type: "i"},
		},
	} {
		if got := string(AppendMembers(nil, &out)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, form := range []string{
		"Action=X&Name=a", "Item.1.Type=a&Item.2.Data=AQ==", "Attr.1.Name=a&Attr.1.Value=b&Attr=&Attr.Name=c", "FlatName=a&FlatName.1=b&FlatName-1=c",
		"Values.entry.1.Name=n&Values.entry.1.Value.Type=t", "Names.member.1=a&Names.member.1.x=b&Names.1=c", "..=&.1=&Item..Type=", "%41ttr.1.Name=x",
		"MessageAttribute.1.Name=n&MessageAttribute.1.Value.DataType=String&MessageAttribute.1.Value.StringListValue.1=x",
		"Item.00001.Type=a&Item.1.Type=b&Item.+1.Type=c",
		"Action=SendMessageBatch&Version=2012-11-05&QueueUrl=http%3A%2F%2Fh%2F000000000000%2Fq&SendMessageBatchRequestEntry.1.Id=a&" +
			"SendMessageBatchRequestEntry.1.MessageBody=x&SendMessageBatchRequestEntry.1.DelaySeconds=5&SendMessageBatchRequestEntry.2.Id=b&" +
			"SendMessageBatchRequestEntry.1.MessageSystemAttribute.1.Name=AWSTraceHeader&SendMessageBatchRequestEntry.1.MessageSystemAttribute.1.Value.StringValue=Root%3D1",
		"QueueName=q&Attribute.1.Name=FifoQueue&Attribute.1.Value=true&Tag.1.Key=k&Tag.1.Value=v", "AWSAccountId.1=1&ActionName.1=*&Label=l",
		"AttributeName.1=All&MessageAttributeName.2=a.*&MessageSystemAttributeName.1=All&MaxNumberOfMessages=10&WaitTimeSeconds=-1",
	} {
		f.Add(form)
	}
	inputs := []reflect.Type{reflect.TypeFor[input](), reflect.TypeFor[sns.PublishInput](), reflect.TypeFor[sns.CreateTopicInput]()}
	for _, op := range sqs.New(sqs.Options{}).Operations() {
		inputs = append(inputs, op.Input)
	}
	f.Fuzz(func(t *testing.T, encoded string) {
		form, err := Parse([]byte(encoded), "")
		if err != nil {
			if fault.KindOf(err) != fault.MalformedInput {
				t.Fatalf("%v", err)
			}
			return
		}
		// The order of parameters means nothing, unless one is given twice.
		pairs := strings.Split(encoded, "&")
		slices.Reverse(pairs)
		reversed, err := Parse([]byte(strings.Join(pairs, "&")), "")
		if err != nil || len(reversed) != len(form) {
			t.Fatalf("backwards: %v", err)
		}
		twice := false
		for i := range form[min(1, len(form)):] {
			twice = twice || form[i].key == form[i+1].key
		}
		for _, of := range inputs {
			in := reflect.New(of).Interface()
			err := Decode(form, in)
			if err != nil && fault.KindOf(err) != fault.MalformedInput {
				t.Fatalf("%v", err)
			}
			again := reflect.New(of).Interface()
			if errAgain := Decode(reversed, again); !twice && ((err == nil) != (errAgain == nil) || err == nil && !reflect.DeepEqual(in, again)) {
				t.Fatalf("%s: %+v, %v; backwards %+v, %v", of, in, err, again, errAgain)
			}
			// No more elements than parameters, whatever their numbers.
			if n := elements(reflect.ValueOf(in)); n > len(form) {
				t.Fatalf("%d parameters gave %d elements", len(form), n)
			}
		}
		// What is written of any text is XML, and reads as that text.
		doc := append(AppendEscaped([]byte("<x>"), encoded), "</x>"...)
		var back struct {
			Text string `xml:",chardata"`
		}
		if err := xml.Unmarshal(doc, &back); err != nil {
			t.Fatalf("%q: %v", doc, err)
		}
		if !strings.Contains(back.Text, "\uFFFD") && back.Text != encoded {
			t.Fatalf("%q came back as %q", encoded, back.Text)
		}
	})
}

func elements(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			n = elements(v.Elem())
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			n += elements(field)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return 0
		}
		n = v.Len()
		for i := range v.Len() {
			n += elements(v.Index(i))
		}
	case reflect.Map:
		n = v.Len()
		for _, key := range v.MapKeys() {
			n += elements(v.MapIndex(key))
		}
	}
	return n
}

func BenchmarkPublish(b *testing.B) {
	body := "Action=Publish&Version=2010-03-31&TopicArn=arn%3Aaws%3Asns%3Aus-east-1%3A000000000000%3At&Message=" + strings.Repeat("0123456789abcdef", 64)
	out := &sns.PublishOutput{MessageId: "f47ac10b-58cc-4372-a567-0e02b2c3d479"}
	b.ReportAllocs()
	buf := make([]byte, 0, 4096)
	for b.Loop() {
		form, err := Parse([]byte(body), "")
		if err != nil {
			b.Fatal(err)
		}
		if err := Decode(form, new(sns.PublishInput)); err != nil {
			b.Fatal(err)
		}
		buf = AppendMembers(buf[:0], out)
	}
	fmt.Fprint(io.Discard, len(buf))
}

// FuzzUnescape compares with the standard library.
func FuzzUnescape(f *testing.F) {
	for _, s := range []string{"", "a+b", "%41%7a%2B", "%", "%4", "%g0", "%0g", "100%", "%e4%F6", "+%+", "\x00\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, err := url.QueryUnescape(s)
		var got strings.Builder
		if ok := unescape(&got, []byte(s)); ok != (err == nil) || ok && got.String() != want {
			t.Errorf("%q gives %q, %v, want %q, %v", s, got.String(), ok, want, err)
		}
	})
}
