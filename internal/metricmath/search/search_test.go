package search

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// read reads a metric: its namespace, its name and dimensions as in "App Errors Host=a Zone=b".
func read(line string) *Metric {
	fields := strings.Split(line, " ")
	m := &Metric{Account: "000000000000", Namespace: fields[0], Name: fields[1]}
	for _, field := range fields[2:] {
		name, value, _ := strings.Cut(field, "=")
		m.Dimensions = append(m.Dimensions, Dimension{name, strings.ReplaceAll(value, "_SPACE_", " ")})
	}
	return m
}

func TestSearch(t *testing.T) {
	var metrics []string
	datadriven.RunTest(t, "testdata/search.txt", func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd == "metrics" {
			metrics = strings.Split(d.Input, "\n")
			return ""
		}
		var b strings.Builder
		for text := range strings.SplitSeq(d.Input, "\n") {
			switch s, ok := Parse(text); {
			case d.Cmd == "split":
				for _, token := range split(text) {
					b.WriteString(token.text + " ")
				}
				b.WriteString("\n")
			case !ok:
				b.WriteString("refused\n")
			default:
				var found []string
				for _, line := range metrics {
					if ok, _ := s.Match(read(line)); ok {
						found = append(found, line)
					}
				}
				fmt.Fprintf(&b, "%s\n", strings.Join(found, ", "))
			}
		}
		return b.String()
	})
}

// A text of the greatest length is taken, and a longer one refused.
func TestLength(t *testing.T) {
	long := strings.Repeat("a", MaxText)
	if _, ok := Parse(long); !ok {
		t.Error("the longest text is refused")
	}
	if _, ok := Parse(long + "a"); ok {
		t.Error("a longer one is taken")
	}
	for _, deep := range []string{strings.Repeat("(", 500) + "a" + strings.Repeat(")", 500), strings.Repeat("NOT ", 255) + "a"} {
		if _, ok := Parse(deep); !ok {
			t.Errorf("%.20s… is refused", deep)
		}
	}
}

// What a text of many tokens takes counts: to take it apart, and to compare its tokens with those of a long term.
func TestLooks(t *testing.T) {
	m := &Metric{Namespace: "N", Name: "n", Dimensions: []Dimension{{"d", strings.Repeat("a-", 500)}}}
	for term, least := range map[string]int{"a-c": 500, strings.Repeat("a-", 250) + "b": 15_000} {
		s, ok := Parse(term)
		if !ok {
			t.Fatalf("%.20s is refused", term)
		}
		if found, looks := s.Match(m); found || looks < least {
			t.Errorf("%.20s: %t, %d looks, want at least %d", term, found, looks, least)
		}
	}
	s, _ := Parse("orders")
	if _, looks := s.Match(&Metric{Namespace: "Shop", Name: "OrderErrors", Dimensions: []Dimension{{"Function", "orders-1"}}}); looks > 8 {
		t.Errorf("an ordinary metric takes %d looks", looks)
	}
}

// What is parsed matches something or nothing, without a panic; a text in quotes finds what it names.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{AWS/EC2,InstanceId} MetricName="CPUUtilization" NOT i-12`, `(EC2 OR EBS) AND MetricName=ReadOps`, `{"a b", "c\"d"}, "\\\(" OR x`, `NOT Namespace=AWS`} {
		f.Add(seed, "CPUUtilization")
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		m := &Metric{Namespace: "N", Name: name, Dimensions: []Dimension{{"Host", text}}}
		if s, ok := Parse(text); ok {
			s.Match(m)
		}
		quoted := `MetricName="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `(`, `\(`, `)`, `\)`).Replace(name) + `"`
		s, ok := Parse(quoted)
		if !ok {
			if len(quoted) > MaxText {
				return
			}
			t.Fatalf("%q is refused", quoted)
		}
		if found, _ := s.Match(m); !found {
			t.Errorf("%q does not find %q", quoted, name)
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	s, _ := Parse(`{App,Host,Zone} MetricName=errors (a OR b OR host)`)
	m := read("App ErrorCount Host=host-1234567 Zone=z1")
	for b.Loop() {
		s.Match(m)
	}
}
