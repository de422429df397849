package filter

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzTakeApart: what is a document, and where its values stand, is as encoding/json
// has it.
func FuzzTakeApart(f *testing.F) {
	for _, s := range []string{
		``, ` `, `{}`, `[]`, ` {"a" : [1, -2.5e+10, 0.1E-1, true, false, null, {"b":{}}, []], "":""} `, `"x"`, `-0`, `null`,
		`{`, `[`, `}`, `]`, `[}`, `{]`, `[1`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{,}`, `[,]`, `[1,]`, `[1 2]`, `{"a" 1}`, `{"a":1 "b":2}`,
		`{a:1}`, `{1:1}`, `{"a":1}}`, `[] []`, `1 1`, `,`, `:`, `[1:2]`, `{"a","b"}`, `{{}}`, `{[]}`, `{"a":1:2}`,
		`01`, `-`, `-a`, `1.`, `.5`, `1e`, `1e+`, `+1`, `1.e1`, `1E5`, `0x1`, `1a`, `tru`, `truee`, `nul`, `fals`, `True`, `NaN`,
		`"`, `"\`, `"\"`, `"\x"`, `"\u12"`, `"\u12G4"`, `"\u\x100000"`, `"\uD800"`, `"\"\\\/\b\f\n\r\t\u00e9"`, "\"\x1f\"", "\"\x7f\xff\"", "\ufeff{}", "{}\x00", "[\v]",
		strings.Repeat("[", deepest) + strings.Repeat("]", deepest), strings.Repeat("[", deepest+1) + strings.Repeat("]", deepest+1),
		strings.Repeat(`{"a":`, deepest+1) + "1" + strings.Repeat("}", deepest+1),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		d, ok := takeApart(source)
		if ok != json.Valid([]byte(source)) {
			t.Fatalf("%q: %v", source, ok)
		}
		if !ok {
			return
		}
		// Every value and name, by itself, is one of the same kind.
		for i := range d.nodes {
			written := d.written(at(i))
			if !json.Valid([]byte(written)) || written != strings.TrimSpace(written) {
				t.Fatalf("%q: %q is taken for a value", source, written)
			}
			if kind := d.nodes[i].kind; kind == '0' && !strings.Contains("-0123456789", written[:1]) || kind != '0' && kind != written[0] {
				t.Fatalf("%q: %q is of kind %c", source, written, kind)
			}
		}
		var values int
		for decoder := json.NewDecoder(strings.NewReader(source)); ; {
			token, err := decoder.Token()
			if err != nil {
				break
			}
			if token != json.Delim('}') && token != json.Delim(']') {
				values++
			}
		}
		if values != len(d.nodes) {
			t.Fatalf("%q: %d values and names, not %d", source, len(d.nodes), values)
		}
	})
}
