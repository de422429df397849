package filter

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/fault"
)

func compile(t testing.TB, policy string, scope Scope) *Policy {
	t.Helper()
	p, err := Compile(policy, scope)
	if err != nil {
		t.Fatalf("Compile(%s, %v): %v", policy, scope, err)
	}
	return p
}

func TestMatchAttributes(t *testing.T) {
	str := func(name, value string) Attribute { return Attribute{name, "String", value} }
	for _, tt := range []struct {
		name, policy string
		attributes   []Attribute
		want         Verdict
	}{
		{"one of the values", `{"order-status":["confirmed","canceled"]}`, []Attribute{str("order-status", "canceled")}, Match},
		{"none of the values", `{"order-status":["confirmed","canceled"]}`, []Attribute{str("order-status", "cancel")}, AttributesMismatch},
		{"case matters", `{"a":["x"]}`, []Attribute{str("a", "X")}, AttributesMismatch},
		{"key missing", `{"a":["x"]}`, []Attribute{str("b", "x")}, AttributesMismatch},
		{"no attributes", `{"a":["x"]}`, nil, NoMessageAttributes},
		{"only binary", `{"a":["x"]}`, []Attribute{{"a", "Binary", "x"}}, NoMessageAttributes},
		{"binary is ignored", `{"a":["x"]}`, []Attribute{{"a", "Binary.png", "x"}, str("b", "x")}, AttributesMismatch},
		{"all keys", `{"a":["x"],"b":["y"]}`, []Attribute{str("b", "y"), str("a", "x")}, Match},
		{"all but one key", `{"a":["x"],"b":["y"]}`, []Attribute{str("b", "z"), str("a", "x")}, AttributesMismatch},
		{"further attributes", `{"a":["x"]}`, []Attribute{str("b", "z"), str("a", "x")}, Match},
		{"custom type", `{"a":["x"]}`, []Attribute{{"a", "String.colour", "x"}}, Match},
		{"a number is no string", `{"a":["1"]}`, []Attribute{{"a", "Number", "1"}}, AttributesMismatch},
		{"array", `{"a":["y"]}`, []Attribute{{"a", "String.Array", `["x","y",1,null]`}}, Match},
		{"array without it", `{"a":["z"]}`, []Attribute{{"a", "String.Array", `["x","y"]`}}, AttributesMismatch},
		{"numbers in an array are no strings", `{"a":["1"]}`, []Attribute{{"a", "String.Array", `[1]`}}, AttributesMismatch},
		{"empty array", `{"a":["1"]}`, []Attribute{{"a", "String.Array", `[]`}}, AttributesMismatch},
		{"no array", `{"a":["x"]}`, []Attribute{{"a", "String.Array", `x`}}, InvalidAttributes},
		{"null is no array", `{"a":["x"]}`, []Attribute{{"a", "String.Array", `null`}}, InvalidAttributes},
		{"an escaped quotation mark", `{"a":["x\"y"]}`, []Attribute{str("a", `x\"y`)}, Match},
		{"an escaped backslash", `{"a":["x\\y"]}`, []Attribute{str("a", `x\\y`)}, Match},
		{"an escaped letter", `{"a":["xé"]}`, []Attribute{str("a", `x\u00e9`)}, Match},
		{"a quotation mark", `{"a":["x\"y"]}`, []Attribute{str("a", `x"y`)}, InvalidAttributes},
		{"a backslash", `{"a":["x\\y"]}`, []Attribute{str("a", `x\y`)}, InvalidAttributes},
		{"a backslash at the end", `{"a":[{"prefix":"x"}]}`, []Attribute{str("a", `x\`)}, InvalidAttributes},
		{"a tabulator", `{"a":[{"prefix":"x"}]}`, []Attribute{str("a", "x\ty")}, InvalidAttributes},
		{"a quotation mark, and absence", `{"a":[{"exists":false}]}`, []Attribute{str("a", `"`)}, InvalidAttributes},
		{"a quotation mark that is not asked for", `{"a":["x"]}`, []Attribute{str("b", `"`), str("a", "x")}, Match},
		{"a bad array that is not asked for", `{"a":["x"]}`, []Attribute{{"b", "String.Array", `x`}, str("a", "x")}, Match},
		{"empty policy", `{}`, nil, Match},
		{"escapes", `{"a":["é\n"]}`, []Attribute{str("a", `é\n`)}, Match},
		{"$or as a key", `{"$or":["x"]}`, []Attribute{str("$or", "x")}, Match},
	} {
		m := NewMessage(tt.attributes, nil)
		p := compile(t, tt.policy, MessageAttributes)
		for range 2 { // the second time from what the first one parsed
			if got := p.Match(m); got != tt.want {
				t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
			}
		}
	}
}

func TestMatchBody(t *testing.T) {
	for _, tt := range []struct {
		name, policy, body string
		want               Verdict
	}{
		{"string", `{"a":["x","y"]}`, `{"a":"y","b":1}`, Match},
		{"other string", `{"a":["x"]}`, `{"a":"y"}`, BodyMismatch},
		{"missing", `{"a":["x"]}`, `{"b":"x"}`, BodyMismatch},
		{"number", `{"a":["1"]}`, `{"a":1}`, BodyMismatch},
		{"element of an array", `{"a":["x"]}`, `{"a":["y","x"]}`, Match},
		{"array of arrays", `{"a":["x"]}`, `{"a":[["y"],["x"]]}`, Match},
		{"no element", `{"a":["x"]}`, `{"a":["y"]}`, BodyMismatch},
		{"object where a string should be", `{"a":["x"]}`, `{"a":{"x":"x"}}`, BodyMismatch},
		{"nested", `{"a":{"b":{"c":["x"]}}}`, `{"a":{"b":{"c":"x"}}}`, Match},
		{"nested elsewhere", `{"a":{"b":["x"]}}`, `{"b":"x","a":{"c":"x"}}`, BodyMismatch},
		{"string where an object should be", `{"a":{"b":["x"]}}`, `{"a":"b"}`, BodyMismatch},
		{"object in an array", `{"a":{"b":["x"]}}`, `{"a":[{"b":"y"},{"b":"x"}]}`, Match},
		{"by one element", `{"a":{"b":["x"],"c":["y"]}}`, `{"a":[{"b":"x","c":"z"},{"b":"x","c":"y"}]}`, Match},
		{"not by one element", `{"a":{"b":["x"],"c":["y"]}}`, `{"a":[{"b":"x","c":"z"},{"b":"z","c":"y"}]}`, BodyMismatch},
		{"no JSON", `{"a":["x"]}`, `order 17`, InvalidMessageBody},
		{"no object", `{"a":["x"]}`, `["a"]`, InvalidMessageBody},
		{"null", `{"a":["x"]}`, `null`, InvalidMessageBody},
		{"empty policy does not look", `{}`, `order 17`, Match},
	} {
		m := NewMessage(nil, []byte(tt.body))
		p := compile(t, tt.policy, MessageBody)
		for range 2 {
			if got := p.Match(m); got != tt.want {
				t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
			}
		}
	}
}

func TestNilPolicyMatches(t *testing.T) {
	if got := (*Policy)(nil).Match(NewMessage(nil, nil)); got != Match {
		t.Error(got)
	}
}

func TestScopes(t *testing.T) {
	for _, s := range []Scope{MessageAttributes, MessageBody} {
		if got, err := ParseScope(s.String()); got != s || err != nil {
			t.Errorf("%v reads back as %v, %v", s, got, err)
		}
	}
	if _, err := ParseScope("Body"); !errors.Is(err, ErrScope) {
		t.Errorf("%v", err)
	}
}

func TestVerdictNames(t *testing.T) {
	if len(verdictNames) != Verdicts {
		t.Errorf("%d names for %d verdicts", len(verdictNames), Verdicts)
	}
}

// Whatever the policy and the message are, compiling either refuses with
// InvalidParameter or gives a policy that keeps its source, recompiles, judges
// within its scope, and is found in an index whenever it matches.
func FuzzFilter(f *testing.F) {
	f.Add(`{"order-status":["confirmed","canceled"]}`, "order-status", "String", "confirmed", `{"order-status":"confirmed"}`)
	f.Add(`{"a":{"b":["x"],"c":["y"]}}`, "a", "String.Array", `["x"]`, `{"a":[{"b":"x","c":"y"}]}`)
	f.Add(`{"$or":[{"a":["x"]},{"b":[{"exists":false}]}],"b":[{"prefix":""}]}`, "a", "Binary", ``, `[[[`)
	f.Add(`{"a":[1,true,null,[],{}]}`, "", "", `null`, `null`)
	f.Add(`{"a":[{"numeric":[">",1,"<=",2e3]},{"anything-but":[1,2.5]},1e10]}`, "a", "Number", `1.50`, `{"a":[1e10,null,{"a":1}]}`)
	f.Add(`{"a":[{"wildcard":"x*\\**y"},{"anything-but":{"wildcard":"*"}},{"equals-ignore-case":"ſ"}]}`, "a", "String", `xx**y`, `{"a":"S"}`)
	f.Add(`{"a":[{"cidr":"::/0"},{"suffix":"y"},{"anything-but":{"prefix":"y"}}]}`, "a", "String.Array", `[[],["::1"]]`, `{"a":[]}`)
	f.Fuzz(func(t *testing.T, policy, name, kind, text, body string) {
		m := NewMessage([]Attribute{{name, kind, text}}, []byte(body))
		for _, scope := range []Scope{MessageAttributes, MessageBody} {
			d := Prepare(policy)
			if d.work > workPerByte*len(policy) {
				t.Fatalf("%d steps for %d bytes", d.work, len(policy))
			}
			p, err := d.Policy(scope)
			if err != nil {
				if fault.KindOf(err) != fault.InvalidParameter {
					t.Fatalf("refused with %v", err)
				}
				continue
			}
			if p.String() != policy || p.Scope() != scope {
				t.Fatalf("%s became %s", policy, p)
			}
			v := p.Match(m)
			if v != p.Match(m) {
				t.Fatal("two verdicts on one message")
			}
			ofBody := v == BodyMismatch || v == InvalidMessageBody
			if v != Match && ofBody != (scope == MessageBody) {
				t.Fatalf("verdict %v in scope %v", v, scope)
			}
			var o map[string]any
			if valid := json.Unmarshal([]byte(body), &o) == nil && o != nil; valid && v == InvalidMessageBody {
				t.Fatalf("%s is an object", body)
			}
			x := NewIndex(strings.Compare)
			x.Add("it", p)
			if found := slices.Collect(x.Match(m, nil)); v == Match && len(found) != 1 {
				t.Fatalf("matches, and the index finds %v", found)
			}
			if x.Remove("it", p); !vacant(x) {
				t.Fatal("the index is not empty after all")
			}
		}
	})
}
