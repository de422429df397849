package filter

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// vacant says whether nothing is left in an index.
func vacant[H any](x *Index[H]) bool {
	return len(x.always) == 0 && len(x.lists) == 0 && len(x.keys[MessageAttributes].members) == 0 && len(x.keys[MessageBody].members) == 0
}

// The values that random policies name and random messages hold.
var (
	someKeys    = []string{"a", "b", "c"}
	someTexts   = []string{"", "x", "X", "xy", "xyx", "yx", "10.0.0.1", "10.0.0.2", "2001:db8::1", strings.Repeat("x", 40), strings.Repeat("x", 39) + "y", "k", "K"}
	someNumbers = []string{"0", "1", "1.0", "1.5", "-3", "100", "99.99999", "1e9", "123456789012"}
	someScalars = append(quoted(someTexts), append(slices.Clone(someNumbers), "true", "false", "null")...)
)

func quoted(all []string) (out []string) {
	for _, s := range all {
		p, _ := json.Marshal(s)
		out = append(out, string(p))
	}
	return out
}

func drawRule(t *rapid.T) string {
	text := func() string { return rapid.SampledFrom(quoted(someTexts)).Draw(t, "text") }
	number := func() string { return rapid.SampledFrom(someNumbers[:8]).Draw(t, "number") }
	switch rapid.SampledFrom([]string{
		"scalar", "prefix", "suffix", "equals-ignore-case", "wildcard", "numeric", "range", "exists", "cidr",
		"anything-but", "anything-but numbers", "anything-but prefix", "anything-but wildcard",
	}).Draw(t, "operator") {
	case "prefix":
		return `{"prefix":` + text() + `}`
	case "suffix":
		return `{"suffix":` + text() + `}`
	case "equals-ignore-case":
		return `{"equals-ignore-case":` + text() + `}`
	case "wildcard":
		return `{"wildcard":` + rapid.SampledFrom(quoted([]string{"*", "x*", "*x", "x*x", "*y*", "xy"})).Draw(t, "wildcard") + `}`
	case "numeric":
		return `{"numeric":["` + rapid.SampledFrom([]string{"=", "<", "<=", ">", ">="}).Draw(t, "comparison") + `",` + number() + `]}`
	case "range":
		return `{"numeric":[">",` + rapid.SampledFrom([]string{"-3", "0", "1"}).Draw(t, "low") + `,"<=",` +
			rapid.SampledFrom([]string{"1.00001", "2", "100"}).Draw(t, "high") + `]}`
	case "exists":
		return fmt.Sprintf(`{"exists":%v}`, rapid.Bool().Draw(t, "exists"))
	case "cidr":
		return `{"cidr":"` + rapid.SampledFrom([]string{"10.0.0.0/24", "10.0.0.0/31", "0.0.0.0/0", "::/0", "2001:db8::/127"}).Draw(t, "network") + `"}`
	case "anything-but":
		return `{"anything-but":[` + text() + `,` + text() + `]}`
	case "anything-but numbers":
		return `{"anything-but":[` + number() + `,` + number() + `]}`
	case "anything-but prefix":
		return `{"anything-but":{"prefix":"x"}}`
	case "anything-but wildcard":
		return `{"anything-but":{"wildcard":"*x"}}`
	default:
		return rapid.SampledFrom(someScalars).Draw(t, "scalar")
	}
}

func drawObject(t *rapid.T, scope Scope, depth int) string {
	var members []string
	for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom(someKeys), 1, 2, rapid.ID).Draw(t, "keys") {
		if scope == MessageBody && depth < 2 && rapid.IntRange(0, 2).Draw(t, "nested") == 0 {
			members = append(members, `"`+key+`":`+drawObject(t, scope, depth+1))
			continue
		}
		var rules []string
		for range rapid.IntRange(1, 3).Draw(t, "rules") {
			rules = append(rules, drawRule(t))
		}
		members = append(members, `"`+key+`":[`+strings.Join(rules, ",")+`]`)
	}
	if depth < 2 && rapid.IntRange(0, 3).Draw(t, "or") == 0 {
		members = append(members, `"$or":[`+drawObject(t, scope, depth+1)+`,`+drawObject(t, scope, depth+1)+`]`)
	}
	return `{` + strings.Join(members, ",") + `}`
}

func drawPolicy(t *rapid.T) *Policy {
	if rapid.IntRange(0, 9).Draw(t, "none") == 0 {
		return nil
	}
	scope := rapid.SampledFrom([]Scope{MessageAttributes, MessageBody}).Draw(t, "scope")
	p, err := Compile(drawObject(t, scope, 0), scope)
	if err != nil { // too complex
		p, _ = Compile(`{}`, scope)
	}
	return p
}

func drawBody(t *rapid.T, depth int) string {
	switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
	case kind == 0 && depth < 4:
		var elements []string
		for range rapid.IntRange(0, 3).Draw(t, "elements") {
			elements = append(elements, drawBody(t, depth+1))
		}
		return `[` + strings.Join(elements, ",") + `]`
	case kind == 1 && depth < 4 || depth == 0:
		var members []string
		for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom(append(someKeys, "d", "e")), 0, 4, rapid.ID).Draw(t, "members") {
			members = append(members, `"`+key+`":`+drawBody(t, depth+1))
		}
		return `{` + strings.Join(members, ",") + `}`
	default:
		return rapid.SampledFrom(someScalars).Draw(t, "value")
	}
}

func drawMessage(t *rapid.T) *Message {
	var attributes []Attribute
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(append(someKeys, "d")), 0, 3, rapid.ID).Draw(t, "attributes") {
		a := Attribute{Name: name, Type: rapid.SampledFrom([]string{"String", "Number", "String.Array", "Binary"}).Draw(t, "type")}
		switch a.Type {
		case "Number":
			a.Value = rapid.SampledFrom(someNumbers).Draw(t, "number")
		case "String.Array":
			a.Value = `[` + strings.Join(rapid.SliceOfN(rapid.SampledFrom(someScalars), 0, 3).Draw(t, "array"), ",") + `]`
			if rapid.IntRange(0, 9).Draw(t, "broken") == 0 {
				a.Value = `[`
			}
		default:
			a.Value = rapid.SampledFrom(someTexts).Draw(t, "text")
		}
		attributes = append(attributes, a)
	}
	body := "text"
	if rapid.IntRange(0, 9).Draw(t, "no JSON") > 0 {
		body = drawBody(t, 0)
	}
	return NewMessage(attributes, []byte(body))
}

// Whatever has been put in and taken out, what the index finds and the policies
// let pass is what a check of every policy lets pass, in order, from any place on.
func TestIndexEqualsLoop(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := NewIndex(func(a, b int) int { return a - b })
		policies := map[int]*Policy{}
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) {},
			"add": func(t *rapid.T) {
				for range rapid.IntRange(1, 10).Draw(t, "how many") {
					id := rapid.IntRange(0, 1000).Draw(t, "id")
					if _, there := policies[id]; !there {
						policies[id] = drawPolicy(t)
						x.Add(id, policies[id])
					}
				}
			},
			"remove": func(t *rapid.T) {
				for id, p := range policies {
					if rapid.IntRange(0, 3).Draw(t, "this") == 0 {
						x.Remove(id, p)
						delete(policies, id)
					}
				}
			},
			"match": func(t *rapid.T) {
				m, after := drawMessage(t), rapid.IntRange(-1, 1000).Draw(t, "after")
				var want, got []int
				for id, p := range policies {
					if id > after && p.Match(m) == Match {
						want = append(want, id)
					}
				}
				slices.Sort(want)
				last := after
				for id := range x.Match(m, func(id int) bool { return id <= after }) {
					if id <= last {
						t.Fatalf("%d behind %d", id, last)
					}
					if last = id; policies[id].Match(m) == Match {
						got = append(got, id)
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("the index differs (-loop +index):\n%s", diff)
				}
			},
		})
		for id, p := range policies {
			x.Remove(id, p)
		}
		if !vacant(x) {
			t.Fatal("something is left in the index")
		}
	})
}

// The index finds little that does not match, whatever operator the policies use
// and whatever else they have in common.
func TestIndexIsSelective(t *testing.T) {
	const n = 1000
	for _, tt := range []struct {
		name, policy string // %d: differs
		scope        Scope
		message      *Message // matches that of 500 in 1000
		most         int
	}{
		{"strings", `{"type":["order"],"id":["%d"]}`, MessageAttributes, NewMessage([]Attribute{{"type", "String", "order"}, {"id", "String", "500"}}, nil), 2},
		{"numbers", `{"type":["order"],"id":[%d]}`, MessageAttributes, NewMessage([]Attribute{{"type", "String", "order"}, {"id", "Number", "5e2"}}, nil), 2},
		{"ignoring case", `{"id":[{"equals-ignore-case":"C%d"}]}`, MessageAttributes, NewMessage([]Attribute{{"id", "String", "c500"}}, nil), 1},
		{"prefixes", `{"id":[{"prefix":"%d-"}]}`, MessageBody, NewMessage(nil, []byte(`{"id":"500-17"}`)), 1},
		{"suffixes", `{"id":[{"suffix":"-%d"}]}`, MessageBody, NewMessage(nil, []byte(`{"id":"17-500"}`)), 1},
		{"wildcards", `{"id":[{"wildcard":"*/%d"}]}`, MessageBody, NewMessage(nil, []byte(`{"id":"17/500"}`)), 1},
		{"ranges", `{"price":[{"numeric":[">=",%d,"<",%[1]d.5]}]}`, MessageBody, NewMessage(nil, []byte(`{"price":500.25}`)), 4},
		{"networks", `{"ip":[{"cidr":"2001:db8:%d::/48"}]}`, MessageBody, NewMessage(nil, []byte(`{"ip":"2001:db8:500::1"}`)), 1},
		{"with anything-but", `{"a":[{"anything-but":["x"]}],"id":["%d"]}`, MessageBody, NewMessage(nil, []byte(`{"a":"y","id":"500"}`)), 32},
		{"nested", `{"order":{"line":{"sku":["%d"]}}}`, MessageBody, NewMessage(nil, []byte(`{"order":{"line":[{"sku":"500"},{"sku":"x"}]}}`)), 1},
		{"$or", `{"type":["order"],"$or":[{"from":["%d"]},{"to":["%[1]d"]}]}`, MessageBody, NewMessage(nil, []byte(`{"type":"order","to":"500"}`)), 4},
	} {
		x := NewIndex(func(a, b int) int { return a - b })
		policies := make([]*Policy, n)
		for i := range n {
			policies[i] = compile(t, fmt.Sprintf(tt.policy, i), tt.scope)
			x.Add(i, policies[i])
		}
		found := slices.Collect(x.Match(tt.message, nil))
		if !slices.Contains(found, 500) || policies[500].Match(tt.message) != Match || len(found) > tt.most {
			t.Errorf("%s: found %d of %d: %v", tt.name, len(found), n, found)
		}
	}
}

// A value that a body repeats does not repeat the search.
func TestIndexLooksOnce(t *testing.T) {
	x := NewIndex(func(a, b int) int { return a - b })
	p := compile(t, `{"a":["x"]}`, MessageBody)
	for i := range 100 {
		x.Add(i, p)
	}
	m := NewMessage(nil, []byte(`{"a":[`+strings.TrimSuffix(strings.Repeat(`"x",`, 1000), ",")+`]}`))
	for range 2 {
		if merge := x.matchingLists(m, nil); len(merge.heads) != 1 {
			t.Fatalf("%d lists to merge", len(merge.heads))
		}
	}
}
