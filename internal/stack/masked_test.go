package stack

import (
	"fmt"
	"strings"
	"testing"
)

// The forms of hidden values are made once, and not for each text that may have one: a list of many items has
// thousands, and a stack thousands of texts.
func TestFormsOfHiddenValuesAreMadeOnce(t *testing.T) {
	tags := make([]any, 500)
	for i := range tags {
		tags[i] = fmt.Sprint("value ", i)
	}
	m := &Machine{Resources: map[string]*Resource{"A": {Version: Version{Properties: map[string]any{"Tags": tags}}}}}
	for i := range 100 {
		m.Input.Parameters = append(m.Input.Parameters, Parameter{Key: fmt.Sprint(i), Value: fmt.Sprint("secret-", i), NoEcho: true})
	}
	list := strings.Repeat("secret-item,", 100)
	const most = 5000
	if n := testing.AllocsPerRun(1, func() {
		m.Hidden = []string{list}
		m.unhide()
	}); n > most || len(m.Hidden) > 0 {
		t.Errorf("%.0f allocations to see whether %d texts have a hidden value, %d of which are kept", n, len(tags), len(m.Hidden))
	}
	if n := testing.AllocsPerRun(100, func() { m.maskedText("a reason") }); n > most/100 {
		t.Errorf("%.0f allocations to mask a reason once more", n)
	}
	m.Input.Parameters[99].Value = "another-secret"
	if told := m.maskedText("secret-98 and another-secret"); told != "**** and ****" {
		t.Errorf("a reason tells %s", told)
	}
}
