package filter

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The path of a policy and that of a value are compared as their keys joined by dots.
func TestDotsInKeys(t *testing.T) {
	for _, tt := range []struct {
		policy    string
		match, no []string
	}{
		{`{"object.nested":["v"]}`, []string{
			`{"object":{"nested":"v"}}`, `{"object.nested":"v"}`, `{"object":[{"nested":"w"},{"nested":["u","v"]}]}`,
		}, []string{`{"object":"v"}`, `{"object.nested":"w"}`, `{"object":{"nested.v":"v"}}`, `{"object.nested.v":"v"}`, `{"objectxnested":"v"}`}},
		{`{"object":{"nested":["v"]}}`, []string{`{"object":{"nested":"v"}}`, `{"object.nested":"v"}`}, []string{`{"object.nested":"w"}`, `{}`}},
		{`{"object.nested.test":["v"]}`, []string{
			`{"object":{"nested":{"test":"v"}}}`, `{"object.nested.test":"v"}`, `{"object.nested":{"test":"v"}}`, `{"object":{"nested.test":"v"}}`,
			`{"object":{"nested\u002etest":"v"}}`, `{"object":1,"object.nested":{"test":"v"}}`, `{"object":[],"object.nested":[{"test":"v"}]}`,
		}, []string{`{"object.nested":{"test":"w"}}`, `{"object.nested":"v"}`, `{"object..nested.test":"v"}`}},
		{`{"detail":{"payload.nested.another-level.deep":{"inside-list":[{"prefix":"q-test"}]}}}`, []string{
			`{"detail":{"payload":{"nested":{"another-level":{"deep":[{"inside-list":"a"},{"inside-list":"q-test-value"}]}}}}}`,
		}, []string{`{"detail":{"payload":{"nested":{"another-level":{"deep":[{"inside-list":"a"}]}}}}}`}},
		// One element of an array has to have all that is said of it.
		{`{"a.b":["1"],"a.c":["2"]}`, []string{
			`{"a":[{"b":"0"},{"b":"1","c":"2"}]}`, `{"a.b":"1","a.c":"2"}`, `{"a":{"b":"1"},"a.c":"2"}`, `{"a":[{"b":"0"},{"b":"1"}],"a.c":"2"}`,
		}, []string{`{"a":[{"b":"1"},{"c":"2"}]}`, `{"a":{"b":"1"},"a.c":"3"}`, `{"a.b":"1"}`}},
		{`{"a.b":[{"exists":false}]}`, []string{`{}`, `{"a":{}}`, `{"a.c":"x"}`, `{"a":{"b.c":"x"}}`, `{"a":1}`}, []string{`{"a.b":"x"}`, `{"a":{"b":"x"}}`}},
		{`{"$or":[{"a.b":["1"]},{"c":{"d.e":["2"]}}]}`, []string{`{"a":{"b":"1"}}`, `{"c.d.e":"2"}`, `{"c.d":{"e":"2"}}`}, []string{`{"a.b":"2"}`, `{"c.d":"2"}`}},
		{`{"a.b":["1"],"a":{"b":["2"]}}`, []string{`{"a":{"b":["1","2"]}}`}, []string{`{"a":{"b":"1"}}`, `{"a.b":"2"}`}},
	} {
		p, err := Compile(tt.policy, MessageBody)
		if err != nil {
			t.Errorf("%s: %v", tt.policy, err)
			continue
		}
		x := NewIndex(strings.Compare)
		x.Add("sub", p)
		check := func(body string, want Verdict) {
			t.Helper()
			if got := p.Match(NewMessage(nil, []byte(body))); got != want {
				t.Errorf("%s of %s: %v, want %v", tt.policy, body, got, want)
			}
			if found := slices.Collect(x.Match(NewMessage(nil, []byte(body)), nil)); want == Match && len(found) != 1 {
				t.Errorf("%s of %s: the index does not find it", tt.policy, body)
			}
		}
		for _, body := range tt.match {
			check(body, Match)
		}
		for _, body := range tt.no {
			check(body, BodyMismatch)
		}
		x.Remove("sub", p)
		if len(x.lists) != 0 || len(x.keys[MessageBody].members) != 0 {
			t.Errorf("%s leaves something in the index", tt.policy)
		}
	}
}

// The name of an attribute is one key, also after the policy was one of bodies.
func TestDotsInAttributeNames(t *testing.T) {
	p, err := Compile(`{"a.b":["1"]}`, MessageBody)
	if err == nil {
		p, err = p.In(MessageAttributes)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Match(NewMessage([]Attribute{{"a.b", "String", "1"}}, nil)); got != Match {
		t.Error(got)
	}
	if got := p.Match(NewMessage([]Attribute{{"a", "String", `{"b":"1"}`}}, nil)); got != AttributesMismatch {
		t.Error(got)
	}
}

// A body's keys and a policy's are of any length.
func TestManyDots(t *testing.T) {
	long := strings.Repeat("a.", 1000) + "a"
	p, err := Compile(fmt.Sprintf(`{%q:["1"]}`, long), MessageBody)
	if err != nil {
		t.Fatal(err)
	}
	p.Match(NewMessage(nil, fmt.Appendf(nil, `{%q:"1",%q:2}`, long, strings.Repeat(".", 100_000))))
	short, err := Compile(`{"a":["1"]}`, MessageBody)
	if err != nil {
		t.Fatal(err)
	}
	if got := short.Match(NewMessage(nil, fmt.Appendf(nil, `{"a":"1",%q:2}`, strings.Repeat(".", 100_000)))); got != Match {
		t.Error(got)
	}
}
