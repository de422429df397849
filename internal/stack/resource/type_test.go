package resource

import (
	"encoding/json"
	"testing"
)

// A number is kept in JSON's form however a template writes it, since a record of a stack is JSON:
// one that cannot be written ends the server.
func TestNumbersAreJSON(t *testing.T) {
	integer, number := Property{Kind: Integer}, Property{Kind: Number}
	for _, c := range []struct {
		p          Property
		text, want string // empty: it is refused
	}{
		{integer, "30", "30"},
		{integer, "010", "10"},
		{integer, "+5", "5"},
		{integer, "-00", "0"},
		{integer, "1.5", ""},
		{integer, "0x10", ""},
		{integer, "1_000", ""},
		{integer, "", ""},
		{number, "0.5", "0.5"},
		{number, "1e3", "1e3"},
		{number, "00.50", "0.5"},
		{number, "+.5", "0.5"},
		{number, "5.", "5"},
		{number, "NaN", ""},
		{number, "Inf", ""},
		{number, "-infinity", ""},
		{number, "0x1p-2", ""},
		{number, "1e999", ""},
	} {
		value, err := c.p.normal("P", c.text)
		if c.want == "" {
			if err == nil {
				t.Errorf("%q is taken as %v", c.text, value)
			}
			continue
		}
		if text, broken := json.Marshal(value); err != nil || broken != nil || string(text) != c.want {
			t.Errorf("%q is %s, %v, %v, and should be %s", c.text, text, err, broken, c.want)
		}
	}
}
