package document_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/stack/document"
)

func read(t *testing.T, body string) *document.Node {
	t.Helper()
	n, err := document.Read([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Scalars are read by the rules of YAML 1.1, with dates and leading zeros as texts.
func TestScalars(t *testing.T) {
	n := read(t, `
date: 2012-10-17
time: 2012-10-17T00:00:00Z
account: 012345678901
octal: 0o17
hex: 0x1F
int: 42
negative: -1.50
exponent: 1e3
point: .5
yes: yes
Off: Off
y: y
quoted: "yes"
single: '42'
block: |
  true
tagged: !!str 42
number: !!int 7
ref: !Ref 7
zones: !GetAZs
dotted: !GetAtt A.Outputs.B
pair: !GetAtt [A, B]
long: {Fn::GetAtt: A.B}
`)
	got, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"date":"2012-10-17","time":"2012-10-17T00:00:00Z","account":"012345678901","octal":"0o17","hex":"0x1F","int":42,` +
		`"negative":-1.50,"exponent":1e3,"point":".5","yes":true,"Off":false,"y":"y","quoted":"yes","single":"42","block":"true\n",` +
		`"tagged":"42","number":7,"ref":{"Ref":"7"},"zones":{"Fn::GetAZs":""},"dotted":{"Fn::GetAtt":["A","Outputs.B"]},"pair":{"Fn::GetAtt":["A","B"]},"long":{"Fn::GetAtt":["A","B"]}}`
	if string(got) != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// Each node knows its line and its path, in both languages.
func TestPlaces(t *testing.T) {
	for _, body := range []string{
		"A:\n  B:\n    - x\n    - C: y\n",
		"{\"A\":\n{\"B\":\n[\"x\",\n{\"C\": \"y\"}]}}",
	} {
		n := read(t, body).Get("A").Get("B").Items[1].Get("C")
		if n.Line != 4 || n.Path() != "/A/B/1/C" {
			t.Errorf("line %d, %s", n.Line, n.Path())
		}
	}
}

// A refusal of what is no YAML names the line that is wrong, or the one that a reader came to
// before it noticed.
func TestMalformed(t *testing.T) {
	for _, test := range []struct {
		body string
		line string
	}{
		{"A:\n  b: 1\n  c: 2\n d: 3\n  e: 4\n  f: 5\n", "4"},
		{"A:\n  b: 1\n  c: [1, 2\n  d: 3\n  e: 4\nf: 5\n", "3"},
		{"A:\n  b: 1\n  c: {x: 1\n  d: 3\n  e: 4\nf: 5\n", "3"},
		{"A:\n  b: 1\n\tc: 2\n  d: 3\n  e: 5\n", "3"},
		{"A:\n  b: \"x\n  c: 2\n  d: 3\n", "2"},
		{"A:\n  b: x: y\n  c: 2\n", "2"},
		{"A:\n  b: 1\n  c: @x\n  d: 3\n", "3"},
		{"A:\n  - b: 1\n    c: 2\n   d: 3\n  - e: 5\n", "4"},
		{"A:\n" + strings.Repeat("  # said\n", 20) + "  b: 1\n c: 2\n  d: 1\n", "23"},
	} {
		_, err := document.Read([]byte(test.body))
		if err == nil || refusal.Text(err) != "Template format error: YAML not well-formed. (line "+test.line+")" {
			t.Errorf("%q: %v, want line %s", test.body, err, test.line)
		}
	}
}

// A copy of a node is of no tree, and has places of its own once it is in one.
func TestClone(t *testing.T) {
	n := read(t, "A: {B: [x]}")
	c := document.NewMap(9, document.Member{Name: "Z", Value: n.Get("A").Clone()})
	if got := c.Get("Z").Get("B").Items[0].Path(); got != "/Z/B/0" {
		t.Error(got)
	}
	if got := n.Get("A").Get("B").Items[0].Path(); got != "/A/B/0" {
		t.Error(got)
	}
	if c.Count() != 4 {
		t.Error(c.Count())
	}
}

func TestManyMembers(t *testing.T) {
	n := read(t, "{"+strings.Repeat(`"a`+"\":1,\"", 1)+`b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":10,"k":11,"l":12,"m":13,"n":14}`)
	if n.Get("n").Text != "14" || n.Get("a").Text != "1" || n.Get("z") != nil {
		t.Error("members of a large map are not found")
	}
}

// What would take memory or time without end is refused.
func TestBounds(t *testing.T) {
	deep := strings.Repeat("[", 5000)
	for name, body := range map[string]string{
		"size":            "{\"a\":\"" + strings.Repeat("x", document.MaxBytes) + "\"}",
		"values":          "{\"a\":[" + strings.Repeat("1,", document.MaxNodes) + "1]}",
		"values, YAML":    "a: [" + strings.Repeat("1,", document.MaxNodes) + "1]",
		"depth":           "{\"a\":" + deep + strings.Repeat("]", 5000) + "}",
		"depth, YAML":     "a: " + deep + strings.Repeat("]", 5000),
		"depth, blocks":   "a:\n " + strings.Repeat("- ", 5000) + "x",
		"aliases":         "a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]",
		"alias as a name": "a: &a x\n*a : y",
	} {
		_, err := document.Read([]byte(body))
		if _, ok := errors.AsType[*document.Refusal](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"A: !Sub x\n", "{\"a\": [1, true, \"x\"]}", "a: &a [x]\nb: *a\n", "? [a]\n: b", "a: !!set {x}", "- a", "a:\n\t- b", "%YAML 1.1\n---\na: b", "a: !<tag:yaml.org,2002:str> b",
		"a: >-\n  x\n\n  y\n", "{\"a\":1}{", "!Ref a: b", "a: ! b", "<<: {a: b}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		n, err := document.Read(body)
		if err != nil {
			if _, ok := errors.AsType[*document.Refusal](err); !ok {
				t.Fatal(err)
			}
			return
		}
		text, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		again, err := document.Read(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if back, _ := json.Marshal(again); string(back) != string(text) {
			t.Fatalf("%s\n%s", text, back)
		}
	})
}
