package filter

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// adversarial are policies of about so many bytes that are hard to compile, taken or
// refused.
func adversarial(size int) map[string]string {
	fill := func(begin, each, end string) string {
		return begin + strings.TrimSuffix(strings.Repeat(each, max(1, (size-len(begin)-len(end))/len(each))), ",") + end
	}
	count := func(begin string, each func(i int) string, end string) string {
		var b strings.Builder
		b.WriteString(begin)
		for i := 0; b.Len() < size-len(end)-len(each(i))-1; i++ {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(each(i))
		}
		return b.String() + end
	}
	const levels = 140
	whole := size
	if size > 10*levels*len(`{"$or":[{"a":["x"]},]}`) {
		size -= 2 * levels * len(`{"$or":[{"a":["x"]},]}`) // room for levels above what fills
	}
	nested := func(levels int, key, rules string) string {
		return strings.Repeat(`{"`+key+`":`, levels) + rules + strings.Repeat(`}`, levels)
	}
	return map[string]string{
		"levels":                   nested(140, strings.Repeat("k", whole/140-6), `["x"]`),
		"levels above much":        nested(140, "k", fill(`[{"anything-but":[`, `1,`, `]}]`)),
		"levels above members":     nested(140, "k", count(`{`, func(i int) string { return fmt.Sprintf(`"%d":["x"]`, i) }, `}`)),
		"levels in $or":            strings.Repeat(`{"$or":[{"a":["x"]},`, 140) + fill(`{"b":[`, `1,`, `]}`) + strings.Repeat(`]}`, 140),
		"levels beyond the limit":  nested(min(size/12, 4900), "k", `["x"]`),
		"levels of $or":            strings.Repeat(`{"$or":[{"a":["x"]},`, min(size/23, 4900)) + `{"b":[1]}` + strings.Repeat(`]}`, min(size/23, 4900)),
		"arrays in arrays":         `{"a":` + strings.Repeat(`[`, 9000) + strings.Repeat(`]`, 9000) + `}`,
		"values":                   fill(`{"a":[`, `1,`, `]}`),
		"members":                  count(`{"n":{`, func(i int) string { return fmt.Sprintf(`"%d":["x"]`, i) }, `}}`),
		"the same member":          fill(`{"n":{`, `"a":["x"],`, `}}`),
		"members of an $or":        count(`{"$or":[{"a":["x"]},{`, func(i int) string { return fmt.Sprintf(`"%d":["x"]`, i) }, `}]}`),
		"absent members of an $or": count(`{"$or":[{"a":["x"]},{`, func(i int) string { return fmt.Sprintf(`"%d":[{"exists":false}]`, i) }, `}]}`),
		"anything-but strings":     count(`{"a":[{"anything-but":[`, func(i int) string { return fmt.Sprintf(`"%x"`, i*7919%65536) }, `]}]}`),
		"anything-but numbers":     count(`{"a":[{"anything-but":[`, func(i int) string { return fmt.Sprint(i * 7919 % 100000) }, `]}]}`),
		"a wildcard":               fill(`{"a":[{"wildcard":"`, `*a`, `"}]}`),
		"wildcards":                `{"a":[` + strings.TrimSuffix(strings.Repeat(fillTo(`{"wildcard":"`, `*a`, `"},`, size/140), 140), ",") + `]}`,
		"escapes":                  fill(`{"a":["`, `\u00e9`, `"]}`),
		"escaped keys":             count(`{"n":{`, func(i int) string { return fmt.Sprintf(`"\u00e9%d":["x"]`, i) }, `}}`),
		"a long number":            fill(`{"a":[1`, `0`, `]}`),
		"long prefixes":            `{"a":[` + strings.TrimSuffix(strings.Repeat(fillTo(`{"prefix":"`, `a`, `"},`, size/140), 140), ",") + `]}`,
		"folded":                   `{"a":[` + strings.TrimSuffix(strings.Repeat(fillTo(`{"equals-ignore-case":"`, `ſ`, `"},`, size/140), 140), ",") + `]}`,
		"blanks":                   fill(`{"a":[1`, " ", `]}`),
		"no JSON at the end":       fill(`{"a":[`, `"x",`, `]`),
		"operators":                fill(`{"a":[`, `{"numeric":[">",1,"<=",2]},`, `]}`),
		"keys of an operator":      count(`{"a":[{`, func(i int) string { return fmt.Sprintf(`"prefix%d":1`, i) }, `}]}`),
	}
}

func fillTo(begin, each, end string, size int) string {
	return begin + strings.Repeat(each, max(1, (size-len(begin)-len(end))/len(each))) + end
}

// workPerByte bounds what compiling a policy takes, by the byte: see document.
const workPerByte = 8

// However a policy is made, taken or refused, compiling it takes work that grows with
// its length, and so does the memory for it.
func TestCompilingIsLinear(t *testing.T) {
	for name, policy := range adversarial(MaxSize - 8) {
		d := Prepare(policy)
		t.Logf("%s: %d bytes, work %d, %v", name, len(policy), d.work, d.err)
		if len(policy) > MaxSize {
			t.Errorf("%s has %d bytes", name, len(policy))
		}
		if d.work > workPerByte*len(policy) {
			t.Errorf("%s of %d bytes takes %d steps", name, len(policy), d.work)
		}
	}
}

func TestCompilingRandomPoliciesIsLinear(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := drawObject(t, MessageBody, 0)
		for range rapid.IntRange(0, 5).Draw(t, "levels") {
			policy = rapid.SampledFrom([]string{`{"a":` + policy + `}`, `{"$or":[` + policy + `,{"a":["x"]}]}`, `{"a":[` + policy + `,` + policy + `]}`}).Draw(t, "above")
		}
		if d := Prepare(policy); d.work > workPerByte*len(policy) {
			t.Errorf("%s: %d steps", policy, d.work)
		}
	})
}

// A policy can be brought into another scope, and is refused there as if it had been
// compiled for it.
func TestScopeOfDrafts(t *testing.T) {
	for _, policy := range []string{`{}`, `{"a":["x"]}`, `{"a":{"b":["x"]}}`, `{"a":{"b":"x"}}`, `{`, `{"$or":[{"a":["x"]},{"b":{"c":[1]}}]}`} {
		d := Prepare(policy)
		if !d.Of(policy) || d.Of(policy+" ") || (*Draft)(nil).Of(policy) {
			t.Errorf("%s: of another", policy)
		}
		for _, scope := range []Scope{MessageBody, MessageAttributes} {
			want, refusal := Compile(policy, scope)
			got, err := d.Policy(scope)
			if fmt.Sprint(refusal) != fmt.Sprint(err) || err == nil && (got.Scope() != scope || got.String() != want.String()) {
				t.Errorf("%s in %v: %v, %v; want %v, %v", policy, scope, got, err, want, refusal)
			}
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	policies := adversarial(MaxSize - 8)
	policies["a small one"] = `{"order-status":["confirmed","canceled"],"price":[{"numeric":[">=",100,"<",200.5]}]}`
	for name, policy := range policies {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p, err := Compile(policy, MessageBody)
				if err == nil {
					x := NewIndex(strings.Compare)
					x.Add("it", p)
					x.Remove("it", p)
				}
			}
		})
	}
}

// BenchmarkMatch is one match of a message with a policy, both of the greatest size.
func BenchmarkMatch(b *testing.B) {
	array := func(each func(i int) string) []byte {
		var s strings.Builder
		s.WriteString(`{"a":[`)
		for i := 0; s.Len() < MaxSize-40; i++ {
			if i > 0 {
				s.WriteByte(',')
			}
			s.WriteString(each(i))
		}
		return []byte(s.String() + `]}`)
	}
	bodies := map[string][]byte{
		"digits":      array(func(i int) string { return fmt.Sprint(i % 10) }),
		"numbers":     array(func(i int) string { return fmt.Sprint(i * 7919 % 1000000) }),
		"strings":     array(func(i int) string { return fmt.Sprintf(`"%x"`, i%4096) }),
		"addresses":   array(func(i int) string { return fmt.Sprintf(`"10.%d.%d.%d"`, i/65536, i/256%256, i%256) }),
		"one string":  []byte(`{"a":"` + strings.Repeat("a", MaxSize-20) + `"}`),
		"objects":     array(func(i int) string { return `{"b":1}` }),
		"empty":       array(func(i int) string { return `{}` }),
		"deep arrays": []byte(`{"a":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`),
		"deep":        []byte(strings.Repeat(`{"k":`, 9000) + `1` + strings.Repeat("}", 9000)),
	}
	rules := func(each func(i int) string) string {
		var all []string
		for i := range 150 {
			all = append(all, each(i))
		}
		return `{"a":[` + strings.Join(all, ",") + `]}`
	}
	policies := map[string]string{
		"exact":     rules(func(i int) string { return fmt.Sprintf(`"no%d"`, i) }),
		"prefixes":  rules(func(i int) string { return fmt.Sprintf(`{"prefix":"no%d"}`, i) }),
		"long":      rules(func(i int) string { return `{"prefix":"` + strings.Repeat("a", 1500) + fmt.Sprint(i) + `"}` }),
		"wildcards": rules(func(i int) string { return fmt.Sprintf(`{"wildcard":"*no%d*"}`, i) }),
		"stars":     rules(func(i int) string { return fmt.Sprintf(`{"wildcard":"%sb%d*"}`, strings.Repeat("*a", 750), i) }),
		"aab":       rules(func(i int) string { return fmt.Sprintf(`{"wildcard":"*%sb%d*"}`, strings.Repeat("a", 750), i) }),
		"folded": rules(func(i int) string {
			return fmt.Sprintf(`{"equals-ignore-case":"%sno%d"}`, strings.Repeat("A", 1500), i)
		}),
		"ranges":   rules(func(i int) string { return fmt.Sprintf(`{"numeric":[">",-%d,"<",-1]}`, i+2) }),
		"networks": rules(func(i int) string { return fmt.Sprintf(`{"cidr":"11.0.%d.0/24"}`, i) }),
		"not":      rules(func(i int) string { return `{"anything-but":["1","2"]}` }),
		"levels":   strings.Repeat(`{"k":`, 149) + `["x"]` + strings.Repeat(`}`, 149),
		"under":    `{"a":{"b":["x"],"c":["y"]}}`,
		"absent":   `{"a":{"c":[{"exists":false}],"b":["x","y"]}}`,
	}
	for policy, document := range policies {
		p := compile(b, document, MessageBody)
		for body, text := range bodies {
			b.Run(policy+"/"+body, func(b *testing.B) {
				m := NewMessage(nil, text)
				m.content()
				for b.Loop() {
					p.Match(m)
				}
			})
		}
	}
}
