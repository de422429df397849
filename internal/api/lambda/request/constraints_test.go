package request

import (
	"strings"
	"testing"
)

// TestBounds of what a refusal says: the violations, and each value.
func TestBounds(t *testing.T) {
	var c Constraints
	value := strings.Repeat("x", 1<<20)
	for range 1000 {
		c.Enum("member", &value, "a", "b")
		c.Lacks("other")
	}
	text := c.Err().Error()
	if !strings.HasPrefix(text, "32 validation errors detected: Value 'xx") || len(text) > 32*(maxShown+150) {
		t.Errorf("%d bytes: %.200s", len(text), text)
	}
}

// TestCount names the items of a list of the wrong length, as many as an error message has room
// for.
func TestCount(t *testing.T) {
	for _, test := range []struct {
		items []string
		want  string
	}{
		{nil, ""},
		{[]string{"a"}, ""},
		{[]string{}, "Value '[]' at 'list' failed to satisfy constraint: Member must have length greater than or equal to 1"},
		{[]string{"a", "b"}, "Value '[a, b]' at 'list' failed to satisfy constraint: Member must have length less than or equal to 1"},
		{strings.Split(strings.Repeat("abcd,", 1000), ","), "Value '[" + strings.Repeat("abcd, ", 85) + "a...' at 'list' failed to satisfy constraint: Member must have length less than or equal to 1"},
	} {
		var c Constraints
		ok, got := c.Count("list", test.items, 1, 1), ""
		if err := c.Err(); err != nil {
			got = strings.TrimPrefix(err.Error(), "1 validation error detected: ")
		}
		if got != test.want || ok != (test.want == "") {
			t.Errorf("%d items: %v, %s", len(test.items), ok, got)
		}
	}
}
