package filter

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Each list of rules against values, as JSON: what must match and what must
// not. A value is tried as a member of a body, in an array, in an object in an
// array, and as far as there is an attribute type for it, as an attribute and
// in a String.Array. The examples of AWS's documentation are among them.
func TestOperators(t *testing.T) {
	for _, tt := range []struct{ rules, match, not string }{
		{`["rugby","tennis"]`, `"rugby" "tennis"`, `"baseball" "Rugby" "rugby " "" 1 true null`},
		{`["1"]`, `"1"`, `1 1.0 true`},
		{`["true","null"]`, `"true" "null"`, `true false null`},
		{`[""]`, `""`, `"x" null 0 false`},

		{`[1.5]`, `1.5 1.50 15e-1 0.15E1 1.500001`, `"1.5" 1 15 -1.5 true null`},
		{`[0]`, `0 -0 0.0 0e9 0.000001`, `"" "0" 0.00001 null false`},
		{`[123456789012]`, `123456789012`, `123456789013 "123456789012" 1.23456789012e11`},
		{`[true]`, `true`, `"true" false 1 null`},
		{`[false]`, `false`, `"false" true 0 null`},
		{`[null]`, `null`, `"null" "" 0 false`},

		{`[{"prefix":"bas"}]`, `"baseball" "basketball" "bas"`, `"rugby" "ba" "Baseball" "" 1 null`},
		{`[{"prefix":""}]`, `"" "x"`, `1 null true`},
		{`[{"prefix":"1"}]`, `"12"`, `12`},
		{`[{"suffix":"ball"}]`, `"baseball" "basketball" "ball"`, `"rugby" "balls" "all" null`},
		{`[{"suffix":""}]`, `"" "x"`, `1 null true`},
		{`[{"equals-ignore-case":"tennis"}]`, `"tennis" "Tennis" "TENNIS"`, `"rugby" "tenni" "tennis " 1`},
		{`[{"equals-ignore-case":"STRASSE Σ"}]`, `"strasse σ" "Straſse ς"`, `"straße σ"`},
		{`[{"equals-ignore-case":"1"}]`, `"1"`, `1`},

		{`[{"wildcard":"*ball"}]`, `"baseball" "basketball" "ball"`, `"rugby" "balls" 1`},
		{`[{"wildcard":"bas*all"}]`, `"baseball" "basall" "bas*all"`, `"basal" "baseballs"`},
		{`[{"wildcard":"a*b*c"}]`, `"abc" "aXbYc" "abbbc" "abcbc"`, `"ac" "acb" "abcd"`},
		{`[{"wildcard":"*a*"}]`, `"a" "ba" "ab" "bab"`, `"" "b"`},
		{`[{"wildcard":"ab*ba"}]`, `"abba" "abXba"`, `"aba" "ab"`},
		{`[{"wildcard":"a\\*b\\\\*"}]`, `"a*b\\" "a*b\\c"`, `"axb\\" "a*b"`},
		{`[{"wildcard":"plain"}]`, `"plain"`, `"plain " ""`},
		{`[{"wildcard":"*"}]`, `"" "x"`, `1 null true`},

		{`[{"anything-but":["rugby","tennis"]}]`, `"baseball" "football" "" 1 null true`, `"rugby" "tennis"`},
		{`[{"anything-but":"rugby"}]`, `"Rugby"`, `"rugby"`},
		{`[{"anything-but":[100,500]}]`, `101 100.1 1e10 "100" null`, `100 1e2 500.0`},
		{`[{"anything-but":100}]`, `0`, `100.000001`},
		{`[{"anything-but":{"prefix":"order-"}}]`, `"data-entry" "order_number" 1 null`, `"order-cancelled" "order-"`},
		{`[{"anything-but":{"wildcard":"*ball"}}]`, `"hockey" "basketballs" 1`, `"baseball" "ball"`},
		{`[{"anything-but":{"wildcard":"ball"}}]`, `"baseball"`, `"ball"`},

		{`[{"numeric":["=",301.5]}]`, `301.5 3.015e2 301.500004`, `301.49999 301.50001 "301.5" -301.5`},
		{`[{"numeric":["<",0]}]`, `-0.00001 -1000000000`, `0 -0.000001 1 -1000000001`},
		{`[{"numeric":["<=",0]}]`, `0 -1`, `0.00001 "x" null`},
		{`[{"numeric":[">",0]}]`, `0.00001 1e9`, `0 -1 1000000001`},
		{`[{"numeric":[">=",0.00001]}]`, `0.00001 1`, `0 0.000009`},
		{`[{"numeric":[">",0,"<=",150]}]`, `0.5 150 1`, `0 150.00001 151 "100"`},
		{`[{"numeric":[">=",-5,"<",-1]}]`, `-5 -1.1`, `-1 -5.1`},
		{`[{"numeric":[">",1,"<",1.00001]}]`, ``, `1 1.00001 1.000005`},

		{`[{"exists":true}]`, `"x" "" 0 null false`, ``},
		{`[{"exists":false}]`, ``, `"x" "" 0 null false`},
		{`[{"exists":false},"x"]`, `"x"`, `"y"`},

		{`[{"cidr":"10.0.0.0/24"}]`, `"10.0.0.0" "10.0.0.255"`, `"10.1.1.0" "10.0.1.0" "10.0.0.0/24" "10.0.0" "" 10 "::ffff:10.0.0.1"`},
		{`[{"cidr":"10.0.0.77/24"}]`, `"10.0.0.0"`, `"10.0.1.77"`},
		{`[{"cidr":"0.0.0.0/0"}]`, `"192.0.2.1"`, `"::1"`},
		{`[{"cidr":"2001:db8::/32"}]`, `"2001:db8::1" "2001:0DB8:0:0::ffff"`, `"2001:db9::1" "10.0.0.1"`},

		{`[{"cidr":"2001:db8::/64"}]`, `"2001:db8::1:0:0:1"`, `"2001:db8:0:1::1"`},
		{`[{"cidr":"2001:db8::2/127"}]`, `"2001:db8::2" "2001:db8::3"`, `"2001:db8::1"`},

		{`["x",1,{"prefix":"y"},{"numeric":[">",5]}]`, `"x" 1 "yes" 6`, `"z" 2 null`},
	} {
		for value := range jsonFields(tt.match) {
			tryOperator(t, tt.rules, value, true)
		}
		for value := range jsonFields(tt.not) {
			tryOperator(t, tt.rules, value, false)
		}
	}
}

// jsonFields are the values in a list with spaces between.
func jsonFields(list string) map[string]bool {
	all := map[string]bool{}
	for dec := json.NewDecoder(strings.NewReader(list)); dec.More(); {
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			panic(err)
		}
		all[string(v)] = true
	}
	return all
}

func tryOperator(t *testing.T, rules, v string, want bool) {
	t.Helper()
	check := func(policy string, scope Scope, m *Message, how string) {
		t.Helper()
		p := compile(t, policy, scope)
		if got := p.Match(m) == Match; got != want {
			t.Errorf("%s and %s, %s: %v", rules, v, how, got)
		}
		x := NewIndex(strings.Compare)
		x.Add("it", p)
		for range x.Match(m, nil) {
			return
		}
		if want {
			t.Errorf("%s and %s, %s: not found by the index", rules, v, how)
		}
	}
	flat, deep := `{"k":`+rules+`}`, `{"d":{"k":`+rules+`}}`
	check(flat, MessageBody, NewMessage(nil, []byte(`{"k":`+v+`}`)), "a member")
	check(flat, MessageBody, NewMessage(nil, []byte(`{"k":[[`+v+`]]}`)), "in an array")
	check(deep, MessageBody, NewMessage(nil, []byte(`{"d":[{"k":`+v+`}]}`)), "in an object")
	array := Attribute{"k", "String.Array", `[` + v + `]`}
	check(flat, MessageAttributes, NewMessage([]Attribute{array}, nil), "in a String.Array")
	var single Attribute
	switch value := scalar(decoded(v)); value.kind {
	case stringValue:
		single = Attribute{"k", "String", v[1 : len(v)-1]} // with its escapes
	case numberValue:
		single = Attribute{"k", "Number", v}
	default:
		return
	}
	check(flat, MessageAttributes, NewMessage([]Attribute{single}, nil), "an attribute")
	single.Type += ".custom"
	check(flat, MessageAttributes, NewMessage([]Attribute{single}, nil), "an attribute of a custom type")
}

func decoded(v string) (out any) {
	if err := decode(strings.NewReader(v), &out); err != nil {
		panic(err)
	}
	return out
}

// What is not there, or holds nothing, has no value.
func TestExists(t *testing.T) {
	const there, gone = `[{"exists":true}]`, `[{"exists":false}]`
	for _, tt := range []struct {
		policy, body string
		want         Verdict
	}{
		{`{"k":` + there + `}`, `{}`, BodyMismatch},
		{`{"k":` + gone + `}`, `{}`, Match},
		{`{"k":` + gone + `}`, `{"j":1}`, Match},
		{`{"k":` + gone + `}`, `no JSON`, InvalidMessageBody},
		{`{"k":` + there + `}`, `{"k":[]}`, BodyMismatch},
		{`{"k":` + gone + `}`, `{"k":[]}`, Match},
		{`{"k":` + there + `}`, `{"k":{"a":1}}`, BodyMismatch},
		{`{"k":` + gone + `}`, `{"k":{"a":1}}`, Match},
		{`{"k":` + there + `}`, `{"k":[{"a":1},2]}`, Match},
		{`{"k":` + gone + `}`, `{"k":[{"a":1},2]}`, BodyMismatch},
		{`{"d":{"k":` + gone + `}}`, `{}`, Match},
		{`{"d":{"k":` + gone + `}}`, `{"d":1}`, Match},
		{`{"d":{"k":` + gone + `}}`, `{"d":[]}`, Match},
		{`{"d":{"k":` + gone + `}}`, `{"d":{"k":1}}`, BodyMismatch},
		{`{"d":{"k":` + gone + `,"j":["x"]}}`, `{}`, BodyMismatch},
		{`{"d":{"k":` + gone + `,"j":["x"]}}`, `{"d":{"j":"x"}}`, Match},
		{`{"d":{"$or":[{"k":` + gone + `},{"j":["x"]}]}}`, `{}`, Match},
		{`{"d":{"$or":[{"k":` + there + `},{"j":["x"]}]}}`, `{}`, BodyMismatch},
		{`{"k":[{"anything-but":["x"]}]}`, `{}`, BodyMismatch},
		{`{"k":[{"anything-but":["x"]},{"exists":false}]}`, `{}`, Match},
		{`{"k":[{"anything-but":["x"]},{"exists":false}]}`, `{"k":"x"}`, BodyMismatch},
	} {
		if got := compile(t, tt.policy, MessageBody).Match(NewMessage(nil, []byte(tt.body))); got != tt.want {
			t.Errorf("%s and %s: %v, want %v", tt.policy, tt.body, got, tt.want)
		}
	}
	other, store := Attribute{"other", "String", "x"}, Attribute{"store", "String", "x"}
	for _, tt := range []struct {
		rules      string
		attributes []Attribute
		want       Verdict
	}{
		{there, []Attribute{store}, Match},
		{there, []Attribute{other}, AttributesMismatch},
		{gone, []Attribute{other}, Match},
		{gone, []Attribute{store, other}, AttributesMismatch},
		// It takes an attribute for one to be absent, and Binary is none.
		{gone, nil, NoMessageAttributes},
		{gone, []Attribute{{"other", "Binary", ""}}, NoMessageAttributes},
		{gone, []Attribute{{"store", "Binary", ""}, other}, Match},
		{there, []Attribute{{"store", "Binary", ""}, other}, AttributesMismatch},
		{gone, []Attribute{{"store", "String.Array", "[]"}}, Match},
		{there, []Attribute{{"store", "String.Array", "[]"}}, AttributesMismatch},
		{there, []Attribute{{"store", "String.Array", "[null]"}}, Match},
		{gone, []Attribute{{"store", "String.Array", "x"}}, InvalidAttributes},
	} {
		if got := compile(t, `{"store":`+tt.rules+`}`, MessageAttributes).Match(NewMessage(tt.attributes, nil)); got != tt.want {
			t.Errorf("%s and %v: %v, want %v", tt.rules, tt.attributes, got, tt.want)
		}
	}
}

func TestOr(t *testing.T) {
	// AWS's example, and messages of the kinds that AWS was seen to deliver or not.
	const example = `{
		"$or": [{"metricName": ["CPUUtilization", "ReadLatency"]}, {"namespace": ["AWS/EC2", "AWS/ES"]}],
		"detail": {"scope": ["Service"], "$or": [{"source": ["aws.cloudwatch"]}, {"type": ["CloudWatch Alarm State Change"]}]}
	}`
	for _, tt := range []struct {
		policy, body string
		want         Verdict
	}{
		{example, `{"metricName":"CPUUtilization","detail":{"scope":"aws.cloudwatch","type":"CloudWatch Alarm State Change"}}`, BodyMismatch},
		{example, `{"metricName":"CPUUtilization","detail":{"scope":"Service","type":"CPUUtilization"}}`, BodyMismatch},
		{example, `{"metricName":"CPUUtilization","detail":{"type":"CloudWatch Alarm State Change"}}`, BodyMismatch},
		{example, `{"metricName":"CPUUtilization","detail":{"scope":"Service"}}`, BodyMismatch},
		{example, `{"metricName":"CPUUtilization","scope":"Service"}`, BodyMismatch},
		{example, `{"metricName":"AWS/EC2","detail":{"scope":"Service","type":"CloudWatch Alarm State Change"}}`, BodyMismatch},
		{example, `{"metricName":"CPUUtilization","detail":{"scope":"Service","source":"aws.cloudwatch"}}`, Match},
		{example, `{"metricName":"ReadLatency","detail":{"scope":"Service","type":"CloudWatch Alarm State Change"}}`, Match},
		{example, `{"namespace":"AWS/ES","detail":{"scope":"Service","source":"aws.cloudwatch"}}`, Match},
		// The fields beside an $or and those in it hold for one element.
		{example, `{"namespace":"AWS/ES","detail":[{"scope":"Service"},{"source":"aws.cloudwatch"}]}`, BodyMismatch},
		{example, `{"namespace":"AWS/ES","detail":[{},{"scope":"Service","source":"aws.cloudwatch"}]}`, Match},
		{`{"$or":[{"a":["x"],"b":["y"]},{"$or":[{"c":["x"]},{"d":["y"]}]}]}`, `{"a":"x","d":"y"}`, Match},
		{`{"$or":[{"a":["x"],"b":["y"]},{"$or":[{"c":["x"]},{"d":["y"]}]}]}`, `{"a":"x"}`, BodyMismatch},
	} {
		if got := compile(t, tt.policy, MessageBody).Match(NewMessage(nil, []byte(tt.body))); got != tt.want {
			t.Errorf("%s and %s: %v, want %v", tt.policy, tt.body, got, tt.want)
		}
	}
	const policy = `{"$or":[{"a":["x"]},{"b":[{"numeric":[">",5]}]}]}`
	for _, tt := range []struct {
		attributes []Attribute
		want       Verdict
	}{
		{[]Attribute{{"a", "String", "x"}}, Match},
		{[]Attribute{{"a", "String", "y"}, {"b", "Number", "6"}}, Match},
		{[]Attribute{{"a", "String", "y"}, {"b", "Number", "5"}}, AttributesMismatch},
		{[]Attribute{{"a", "String.Array", "?"}, {"b", "Number", "6"}}, Match},
		{[]Attribute{{"a", "String.Array", "?"}, {"b", "Number", "5"}}, InvalidAttributes},
		{nil, NoMessageAttributes},
	} {
		if got := compile(t, policy, MessageAttributes).Match(NewMessage(tt.attributes, nil)); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.attributes, got, tt.want)
		}
	}
}

// The policies that AWS's guide shows for its example message, in both scopes.
func TestDocumentedExamples(t *testing.T) {
	attributes := []Attribute{
		{"customer_interests", "String.Array", `["soccer", "rugby", "hockey"]`},
		{"store", "String", "example_corp"},
		{"event", "String", "order_placed"},
		{"price_usd", "Number", "210.75"},
	}
	const body = `{"customer_interests":["soccer","rugby","hockey"],"store":"example_corp","event":"order_placed","price_usd":210.75}`
	for policy, want := range map[string]bool{
		`{"store":["example_corp"],"event":[{"anything-but":"order_cancelled"}],"customer_interests":["rugby","football","baseball"],"price_usd":[{"numeric":[">=",100]}]}`: true,
		`{"store":["example_corp"],"event":["order_cancelled"],"encrypted":[false],"customer_interests":["basketball","baseball"]}`:                                         false,
		`{"customer_interests":["rugby"],"price_usd":[{"numeric":[">",100]}]}`:                                                                                              true,
		`{"customer_interests":[{"prefix":"bas"}]}`:                         false,
		`{"customer_interests":[{"anything-but":["rugby","hockey"]}]}`:      true, // for soccer's sake
		`{"store":[{"exists":true}],"encrypted":[{"exists":false}]}`:        true,
		`{"$or":[{"store":["other"]},{"price_usd":[210.75]}]}`:              true,
		`{"event":[{"wildcard":"order_*"}],"store":[{"suffix":"_corp"}]}`:   true,
		`{"event":[{"equals-ignore-case":"ORDER_PLACED"}],"price_usd":[1]}`: false,
	} {
		for scope, m := range []*Message{NewMessage(attributes, nil), NewMessage(nil, []byte(body))} {
			if got := compile(t, policy, Scope(scope)).Match(m) == Match; got != want {
				t.Errorf("%s in scope %v: %v", policy, Scope(scope), got)
			}
		}
	}
}

// parseNumber is exact arithmetic, cut off behind the fifth decimal.
func TestParseNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?(0|[1-9][0-9]{0,11})(\.[0-9]{1,8})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "number")
		want, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("%s is no number", text)
		}
		want.Mul(want, big.NewRat(100_000, 1))
		whole := new(big.Int).Quo(want.Num(), want.Denom()) // towards zero
		inRange := whole.CmpAbs(big.NewInt(maxNumber)) <= 0
		got, ok := parseNumber(text)
		if ok != inRange || ok && got != whole.Int64() {
			t.Fatalf("%s is %d, %v; want %v, %v", text, got, ok, whole, inRange)
		}
	})
	for _, text := range []string{"", "-", ".", "e1", "1e", "1e+", "0x1", "1_0", "Inf", "NaN", "1 ", "--1", "1.2.3", "1e99999999999999999999", "184467440737095.51616"} {
		if n, ok := parseNumber(text); ok {
			t.Errorf("%q is %d", text, n)
		}
	}
	for text, want := range map[string]int64{
		"+5": 500_000, ".5": 50_000, "5.": 500_000, "1e-99999999999999999999": 0,
		"0." + strings.Repeat("0", 1000) + "1e1001": 100_000,
	} {
		if n, ok := parseNumber(text); !ok || n != want {
			t.Errorf("%q is %d, %v", text, n, ok)
		}
	}
}

// Blocks hold their range, and not more than a few times as much.
func TestBlocks(t *testing.T) {
	number := rapid.Int64Range(-maxNumber, maxNumber)
	rapid.Check(t, func(t *rapid.T) {
		a, b := number.Draw(t, "a"), number.Draw(t, "b")
		if rapid.Bool().Draw(t, "near") {
			b = min(maxNumber, a+rapid.Int64Range(0, 1000).Draw(t, "length"))
		}
		low, high := min(a, b), max(a, b)
		in := func(n int64) bool {
			for _, m := range blocks(low, high) {
				if blockOf(position(n), int(m.level)) == m {
					return true
				}
			}
			return false
		}
		for _, n := range []int64{low, high, low + (high-low)/2} {
			if !in(n) {
				t.Fatalf("%d is not in the blocks from %d to %d", n, low, high)
			}
		}
		if far := high + 4*(high-low) + 4; far <= maxNumber && in(far) {
			t.Fatalf("%d is in the blocks from %d to %d", far, low, high)
		}
	})
	if len(blocks(2, 1)) != 0 {
		t.Error("an empty range has blocks")
	}
}

// fold is equal where strings.EqualFold is.
func TestFold(t *testing.T) {
	letters := rapid.SampledFrom([]rune("aAkKK sSſßẞσςΣéÉİıiI1\uFFFD"))
	texts := rapid.StringOfN(letters, 0, 3, -1)
	rapid.Check(t, func(t *rapid.T) {
		a, b := texts.Draw(t, "a"), texts.Draw(t, "b")
		if got, want := fold(a) == fold(b), strings.EqualFold(a, b); got != want {
			t.Fatal(fmt.Sprintf("%q and %q: %v", a, b, got))
		}
	})
}
