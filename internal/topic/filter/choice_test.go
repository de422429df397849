package filter

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Many rules of a key take the values that one of them takes.
func TestChoiceTakesWhatOneOfTheRulesTakes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []string
		for range rapid.IntRange(1, 20).Draw(t, "rules") {
			all = append(all, drawRule(t))
		}
		d := Prepare(`{"a":[` + strings.Join(all, ",") + `]}`)
		if d.err != nil {
			t.Fatal(d.err)
		}
		rules := d.policy.written.fields[0].rules
		c := choose(rules)
		for _, v := range []value{
			{kind: trueValue},
			{kind: falseValue},
			{kind: nullValue},
			{text: rapid.StringMatching(`[xykK*]{0,6}`).Draw(t, "text")},
			numberOf(rapid.StringMatching(`-?[0-9]{1,3}(\.[0-9]{1,6})?`).Draw(t, "number")),
		} {
			if got, want := c.matches(v), slices.ContainsFunc(rules, func(r rule) bool { return r.matches(v) }); got != want {
				t.Errorf("%v on %+v: %v", all, v, got)
			}
		}
		for _, text := range append(slices.Clone(someTexts), "::ffff:10.0.0.1", "10.0.0.255", "10.0.1.0", "2001:db8::2", "ſ", "K") {
			v := value{text: text}
			if got, want := c.matches(v), slices.ContainsFunc(rules, func(r rule) bool { return r.matches(v) }); got != want {
				t.Errorf("%v on %+v: %v", all, v, got)
			}
		}
		for _, number := range someNumbers {
			v := numberOf(number)
			if got, want := c.matches(v), slices.ContainsFunc(rules, func(r rule) bool { return r.matches(v) }); got != want {
				t.Errorf("%v on %+v: %v", all, v, got)
			}
		}
	})
}

// What many rules are asked in is small, however many values a message has: the tests
// of the time are benchmarks.
func TestChoiceIsSmall(t *testing.T) {
	var prefixes, numbers, networks []string
	for range 100 {
		prefixes = append(prefixes, `{"prefix":"ab"}`, `{"prefix":"abc"}`)
		numbers = append(numbers, `{"numeric":[">",1,"<",5]}`, `3`, `4.5`)
		networks = append(networks, `{"cidr":"10.0.0.0/8"}`, `{"cidr":"10.1.0.0/16"}`)
	}
	for name, tt := range map[string]struct {
		rules []string
		size  func(*choice) int
	}{
		"prefixes": {prefixes, func(c *choice) int { return len(c.prefixes) }},
		"numbers":  {numbers, func(c *choice) int { return len(c.numbers) }},
		"networks": {networks, func(c *choice) int { return len(c.networks) }},
	} {
		if n := tt.size(compile(t, `{"a":[`+strings.Join(tt.rules[:100], ",")+`]}`, MessageBody).written.fields[0].choice); n != 1 {
			t.Errorf("%s: %d are left of those that are in one", name, n)
		}
	}
}

// The rules of an event pattern, of which there may be more than a filter policy may have, are
// asked in one, too.
func TestChoiceOfPatterns(t *testing.T) {
	p, err := CompilePattern(`{"a":["` + strings.Repeat(`x","`, maxCombinations) + `y"]}`)
	if err != nil {
		t.Fatal(err)
	}
	if p.written.fields[0].choice == nil {
		t.Error("each value is compared with each rule")
	}
}
