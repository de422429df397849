package filter_test

import (
	"fmt"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/topic/filter"
)

// values is a JSON array of n strings.
func values(n int) string {
	return `["` + strings.TrimSuffix(strings.Repeat(`v","`, n), `","`) + `"]`
}

// refused reports what is wrong with compiling a policy, if anything is.
func refused(policy string, scope filter.Scope, want string) string {
	got := ""
	_, err := filter.Compile(policy, scope)
	if err != nil {
		got, _, _ = strings.Cut(refusal.Text(err), "\n at [Source: ") // see TestPlaces
	}
	if got != want || want != "" && fault.KindOf(err) != fault.InvalidParameter {
		return fmt.Sprintf("%.80s:\n got %v\nwant %s", policy, err, want)
	}
	return ""
}

// Where AWS's parser stopped, in the document without space.
func TestPlaces(t *testing.T) {
	for _, tt := range []struct {
		policy string
		column int // 0: none
	}{
		{`{"key":[["value"]]}`, 10},
		{`{"key":[{"wrong-operator":true}]}`, 31},
		{`{"key":[{"suffix":"value","prefix":"value2"}]}`, 37},
		{`{"key":[]}`, 10},
		{`{"key":[{"suffix":100}]}`, 22},
		{`{"key":{"suffix":"value"}}`, 19},
		{`{"key":[{"numeric":[]}]}`, 22},
		{`{"key":[{"numeric":["operator"]}]}`, 32},
		{`{"key":[{"numeric":[">=",1,">",2]}]}`, 31},
		{`{"key":[{"numeric":[">",3,"<",1]}]}`, 33},
		{`{"key":[{"exists":"no"}]}`, 20},
		{`{"key_a":"value_one"}`, 11},
		{"{ \"key\" :\n[ { \"exists\" : \"no\" } ] }", 20},
		{`{"k\"é😀 ":[{"exists":"no"}]}`, 24},
		{`{invalidjson}`, 2},
		{` { invalidjson}`, 2},
		{`invalid-json`, 8},

		{`{"a":["1"],"b":["1"],"c":["1"],"d":["1"],"e":["1"],"f":["1"]}`, 0},
		{`{"key":[{"cidr":"10.0.0.0"}]}`, 0},
		{`{"key":` + values(151) + `}`, 0},
		{`{"a":{"b":["c"]}}`, 0},
		{`["a"]`, 0},
	} {
		_, err := filter.Compile(tt.policy, filter.MessageAttributes)
		if err == nil {
			t.Errorf("%s is taken", tt.policy)
			continue
		}
		want := ""
		if tt.column > 0 {
			want = fmt.Sprintf(" at [Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: 1, column: %d]", tt.column)
		}
		if _, got, _ := strings.Cut(refusal.Text(err), "\n"); got != want {
			t.Errorf("%s:\n got %s\nwant %s", tt.policy, got, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	const nested = "Filter policy scope MessageAttributes does not support nested filter policy"
	for _, tt := range []struct {
		policy string
		scope  filter.Scope
		want   string // "" if taken
	}{
		{`{invalidjson}`, filter.MessageAttributes, "FilterPolicy: failed to parse JSON. Unexpected character ('i' (code 105)): was expecting double-quote to start field name"},
		{`invalid-json`, filter.MessageAttributes, "FilterPolicy: failed to parse JSON. Unrecognized token 'invalid': was expecting (JSON String, Number, Array, Object or token 'null', 'true' or 'false')"},
		{``, filter.MessageAttributes, "FilterPolicy: failed to parse JSON."},
		{`["a"]`, filter.MessageAttributes, "FilterPolicy: failed to parse JSON."},
		{`{"a":["x"]} 1`, filter.MessageAttributes, "FilterPolicy: failed to parse JSON."},
		{`{"a":["x"],"b":["x"],"c":["x"],"d":["x"],"e":["x"],"f":["x"]}`, filter.MessageAttributes, "FilterPolicy: Filter policy can not have more than 5 keys"},
		{`{"a":["x"],"b":["x"],"c":["x"],"d":["x"],"e":["x"],"f":["x"]}`, filter.MessageBody, "FilterPolicy: Filter policy can not have more than 5 keys"},
		{`{"a":["x"],"b":["x"],"c":["x"],"d":["x"],"e":["x"],"e":["x"]}`, filter.MessageAttributes, ""},
		{`{"n":{"a":["x"],"b":["x"],"c":["x"],"d":["x"],"e":["x"],"f":["x"]}}`, filter.MessageBody, ""},
		{`{"a":"x"}`, filter.MessageAttributes, `FilterPolicy: "a" must be an object or an array`},
		{`{"a":{"b":"x"}}`, filter.MessageBody, `FilterPolicy: "b" must be an object or an array`},
		{`{"key":{"suffix":"value"}}`, filter.MessageBody, `FilterPolicy: "suffix" must be an object or an array`},
		{`{"a":[]}`, filter.MessageAttributes, "FilterPolicy: Empty arrays are not allowed"},
		{`{}`, filter.MessageBody, ""},
		{`{"a":{}}`, filter.MessageBody, "FilterPolicy: Empty objects are not allowed"},
		{`{"a":{"b":["x"]}}`, filter.MessageAttributes, nested},
		{`{"$or":[{"a":["x"]},{"a":{"b":["x"]}}]}`, filter.MessageAttributes, nested},
		{`{"a":["` + strings.Repeat("x", filter.MaxSize) + `"]}`, filter.MessageBody, fmt.Sprintf("FilterPolicy: Filter policy is too long: %d bytes, at most 262144", filter.MaxSize+10)},

		{`{"$or":[{"a":["x"]},{"b":["y"]}]}`, filter.MessageAttributes, ""},
		{`{"$or":[{"a":["x"]},{}]}`, filter.MessageAttributes, "FilterPolicy: Empty objects are not allowed"},
		{`{"$or":[{"a":["x"]},{"b":[]}]}`, filter.MessageAttributes, "FilterPolicy: Empty arrays are not allowed"},
		// These are no $or, but a key like any other.
		{`{"$or":[{"a":["x"]}]}`, filter.MessageAttributes, "FilterPolicy: Unrecognized match type a"},
		{`{"$or":[{"a":["x"]},"b"]}`, filter.MessageAttributes, "FilterPolicy: Unrecognized match type a"},
		{`{"$or":[{"prefix":"x"},{"suffix":"y"}]}`, filter.MessageAttributes, ""},
		{`{"$or":["x",{"suffix":"y"}]}`, filter.MessageAttributes, ""},
	} {
		if wrong := refused(tt.policy, tt.scope, tt.want); wrong != "" {
			t.Error(wrong)
		}
	}
}

// The texts are those of AWS and of its open-source rule engine.
func TestRuleRefusals(t *testing.T) {
	const (
		mixed    = "Inside anything but list, either all values are number or string, mixed type is not supported"
		scalars  = "Inside anything but list, start|null|boolean is not supported."
		inRange  = "Value must be between -1.0E9 and 1.0E9, inclusive"
		twoKeys  = "Only one key allowed in match expression"
		oneSlash = "Malformed CIDR, one '/' required"
	)
	for _, tt := range []struct{ rule, want string }{
		{`["value"]`, "Match value must be String, number, true, false, or null"},
		{`{"wrong-operator":true}`, "Unrecognized match type wrong-operator"},
		{`{"wrong-operator":true,"prefix":"x"}`, "Unrecognized match type wrong-operator"},
		{`{"suffix":"value","prefix":"value2"}`, twoKeys},
		{`{}`, "Match expression name not found"},
		{`1e400`, ""},
		{`-1000000001`, ""},
		{`true`, ""},
		{`null`, ""},

		{`{"prefix":""}`, ""},
		{`{"prefix":1}`, "prefix match pattern must be a string"},
		{`{"prefix":{"equals-ignore-case":"x"}}`, "prefix match pattern must be a string"},
		{`{"suffix":100}`, "suffix match pattern must be a string"},
		{`{"suffix":null}`, "suffix match pattern must be a string"},
		{`{"suffix":["test","test2"]}`, "suffix match pattern must be a string"},
		{`{"equals-ignore-case":["x"]}`, "equals-ignore-case match pattern must be a string"},

		{`{"wildcard":5}`, "wildcard match pattern must be a string"},
		{`{"wildcard":"*"}`, ""},
		{`{"wildcard":"abc**def"}`, "Consecutive wildcard characters at pos 4"},
		{`{"wildcard":"a\\*****"}`, "Consecutive wildcard characters at pos 4"},
		{`{"wildcard":"é\\b"}`, "Invalid escape character at pos 3"},
		{`{"wildcard":"a\\"}`, "Invalid escape character at pos 2"},

		{`{"anything-but":"x"}`, ""},
		{`{"anything-but":1.5}`, ""},
		{`{"anything-but":["x","y"]}`, ""},
		{`{"anything-but":[1,2]}`, ""},
		{`{"anything-but":[1,"x"]}`, mixed},
		{`{"anything-but":[]}`, mixed},
		{`{"anything-but":[null]}`, scalars},
		{`{"anything-but":["x",["y"]]}`, scalars},
		{`{"anything-but":true}`, "Value of anything-but must be an array or single string/number value."},
		{`{"anything-but":[1000000001]}`, inRange},
		{`{"anything-but":"x","prefix":"y"}`, "Too many elements in numeric expression"},
		{`{"anything-but":{}}`, "Anything-But expression name not found"},
		{`{"anything-but":{"prefix":"x"}}`, ""},
		{`{"anything-but":{"prefix":""}}`, "Null prefix/suffix not allowed"},
		{`{"anything-but":{"prefix":["x"]}}`, "prefix match pattern must be a string"},
		{`{"anything-but":{"prefix":false}}`, "prefix match pattern must be a string"},
		{`{"anything-but":{"prefix":"x","wildcard":"y"}}`, twoKeys},
		{`{"anything-but":{"wildcard":"x*"}}`, ""},
		{`{"anything-but":{"wildcard":["x*"]}}`, "wildcard match pattern must be a string"},
		{`{"anything-but":{"wildcard":"**"}}`, "Consecutive wildcard characters at pos 1"},
		{`{"anything-but":{"suffix":"x"}}`, "Unsupported anything-but pattern: suffix"},
		{`{"anything-but":{"equals-ignore-case":"x"}}`, "Unsupported anything-but pattern: equals-ignore-case"},
		{`{"anything-but":{"numeric":["=",1]}}`, "Unsupported anything-but pattern: numeric"},

		{`{"exists":true}`, ""},
		{`{"exists":null}`, "exists match pattern must be either true or false."},
		{`{"exists":"no"}`, "exists match pattern must be either true or false."},
		{`{"exists":true,"prefix":"x"}`, twoKeys},

		{`{"numeric":["=",0]}`, ""},
		{`{"numeric":[">=",-1000000000,"<=",1000000000]}`, ""},
		{`{"numeric":5}`, "Value of numeric must be an array."},
		{`{"numeric":[]}`, "Invalid member in numeric match: ]"},
		{`{"numeric":[1,"<="]}`, "Invalid member in numeric match: 1"},
		{`{"numeric":[["="],1]}`, "Invalid member in numeric match: ["},
		{`{"numeric":["operator"]}`, "Unrecognized numeric range operator: operator"},
		{`{"numeric":["=","000"]}`, "Value of equals must be numeric"},
		{`{"numeric":[">="]}`, "Value of >= must be numeric"},
		{`{"numeric":["<",100,">",10]}`, "Too many elements in numeric expression"},
		{`{"numeric":["=",1,2]}`, "Too many elements in numeric expression"},
		{`{"numeric":[">=",1,">",2]}`, "Bad numeric range operator: >"},
		{`{"numeric":[">",3,"<",1]}`, "Bottom must be less than top"},
		{`{"numeric":[">=",3,"<=",3]}`, "Bottom must be less than top"},
		{`{"numeric":[">",20,"<="]}`, "Value of <= must be numeric"},
		{`{"numeric":[">",20,30]}`, "Bad value in numeric range: 30"},
		{`{"numeric":[">",20,"test"]}`, "Bad numeric range operator: test"},
		{`{"numeric":[">","20","<","30"]}`, "Value of > must be numeric"},
		{`{"numeric":[">",20,"<","30"]}`, "Value of < must be numeric"},
		{`{"numeric":[">",20,"<",30,"<",50]}`, "Too many terms in numeric range expression"},
		{`{"numeric":["<",1000000001]}`, inRange},
		{`{"numeric":[">",0,"<",1e10]}`, inRange},
		{`{"numeric":["=",1],"prefix":"x"}`, "Too many elements in numeric expression"},

		{`{"cidr":"10.0.0.0/24"}`, ""},
		{`{"cidr":"2001:db8::/32"}`, ""},
		{`{"cidr":1}`, "prefix match pattern must be a string"},
		{`{"cidr":"10.0.0.0"}`, oneSlash},
		{`{"cidr":"10.0.0.0/8/8"}`, oneSlash},
		{`{"cidr":"10.0.0.0/x"}`, "Malformed CIDR, mask bits must be an integer"},
		{`{"cidr":"10.0.0.0/-1"}`, "Malformed CIDR, mask bits must not be negative"},
		{`{"cidr":"10.0.0.0/32"}`, "IPv4 mask bits must be < 32"},
		{`{"cidr":"2001:db8::/128"}`, "IPv6 mask bits must be < 128"},
		{`{"cidr":"bad-host/8"}`, "Nonstandard IP address: bad-host"},
		{`{"cidr":"fe80::1%eth0/8"}`, "Nonstandard IP address: fe80::1%eth0"},
	} {
		want := ""
		if tt.want != "" {
			want = "FilterPolicy: " + tt.want
		}
		for _, policy := range []string{`{"key":[` + tt.rule + `]}`, `{"$or":[{"a":["x"]},{"key":["x", ` + tt.rule + `]}]}`} {
			if wrong := refused(policy, filter.MessageAttributes, want); wrong != "" {
				t.Error(wrong)
			}
		}
	}
}

func TestCombinations(t *testing.T) {
	const tooComplex = "FilterPolicy: Filter policy is too complex"
	or := func(branches ...string) string { return `"$or":[` + strings.Join(branches, ",") + `]` }
	key := func(name string, n int) string { return `"` + name + `":` + values(n) }
	for _, tt := range []struct {
		taken, refused string // one value more is one too many
		scope          filter.Scope
	}{
		{`{` + key("a", 150) + `}`, `{` + key("a", 151) + `}`, filter.MessageAttributes},
		{`{` + key("a", 10) + `,` + key("b", 15) + `}`, `{` + key("a", 10) + `,` + key("b", 16) + `}`, filter.MessageAttributes},
		// AWS's example: 4 × depth 3 × 3 × depth 2 = 72, and so two more below a top-level key.
		{
			`{"a":{"b":{` + key("c", 4) + `}},"d":{` + key("e", 3) + `},` + key("f", 2) + `}`,
			`{"a":{"b":{` + key("c", 4) + `}},"d":{` + key("e", 3) + `},` + key("f", 3) + `}`, filter.MessageBody,
		},
		{`{"a":{` + key("b", 75) + `}}`, `{"a":{` + key("b", 76) + `}}`, filter.MessageBody},
		{ // the sum over the objects of an $or
			`{` + or(`{`+key("a", 100)+`}`, `{`+key("b", 5)+`,`+key("c", 10)+`}`) + `}`,
			`{` + or(`{`+key("a", 101)+`}`, `{`+key("b", 5)+`,`+key("c", 10)+`}`) + `}`, filter.MessageAttributes,
		},
		{ // times the keys before and behind it
			`{` + key("a", 2) + `,` + or(`{`+key("b", 10)+`}`, `{`+key("c", 15)+`}`) + `,` + key("d", 3) + `}`,
			`{` + key("a", 2) + `,` + or(`{`+key("b", 10)+`}`, `{`+key("c", 16)+`}`) + `,` + key("d", 3) + `}`, filter.MessageAttributes,
		},
		{ // an $or in an object counts at the object's depth, and one in another within its sum
			`{"a":{` + or(`{`+key("b", 25)+`}`, `{`+or(`{`+key("c", 30)+`}`, `{`+key("d", 20)+`}`)+`}`) + `}}`,
			`{"a":{` + or(`{`+key("b", 25)+`}`, `{`+or(`{`+key("c", 30)+`}`, `{`+key("d", 21)+`}`)+`}`) + `}}`, filter.MessageBody,
		},
		{
			`{"x":{"a":{"b":["1"]}},` + or(`{"n":{`+key("a", 20)+`}}`, `{`+key("b", 10)+`}`) + `}`,
			`{"x":{"a":{"b":["1"]}},` + or(`{"n":{`+key("a", 20)+`}}`, `{`+key("b", 11)+`}`) + `}`, filter.MessageBody,
		},
		// An anything-but is one value, however much it names.
		{`{"a":[{"anything-but":` + values(500) + `}]}`, `{"a":[{"anything-but":` + values(500) + `}],` + key("b", 151) + `}`, filter.MessageAttributes},
	} {
		if wrong := refused(tt.taken, tt.scope, ""); wrong != "" {
			t.Error(wrong)
		}
		if wrong := refused(tt.refused, tt.scope, tooComplex); wrong != "" {
			t.Error(wrong)
		}
	}
	deep := strings.Repeat(`{"a":`, 5000) + `["x"]` + strings.Repeat(`}`, 5000)
	if wrong := refused(deep, filter.MessageBody, tooComplex); wrong != "" {
		t.Error(wrong)
	}
}
