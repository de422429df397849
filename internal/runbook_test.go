package internal

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRunbook: each alert that is shipped has its section of the runbook, which it names, and
// no section is of another.
func TestRunbook(t *testing.T) {
	rules, err := filepath.Glob("../deploy/prometheus/*.yml")
	if err != nil || len(rules) == 0 {
		t.Fatalf("no rules: %v", err)
	}
	var alerts []string
	for _, file := range rules {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for rule := range strings.SplitSeq(string(text), "- alert: ") {
			name := regexp.MustCompile(`^Godwit\w+`).FindString(rule)
			if name == "" {
				continue // what is before the first
			}
			alerts = append(alerts, name)
			if want := `runbook: "docs/runbook.md#` + strings.ToLower(name) + `"`; !strings.Contains(rule, want) {
				t.Errorf("%s: %s has no %s", file, name, want)
			}
		}
	}
	text, err := os.ReadFile("../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for section := range strings.SplitSeq(string(text), "\n### ") {
		name, rest, _ := strings.Cut(section, "\n")
		sections[name] = rest
	}
	for _, name := range alerts {
		section, ok := sections[name]
		if !ok {
			t.Errorf("the runbook has nothing of %s", name)
			continue
		}
		for _, part := range []string{"**Means**", "**Find out**", "**Do**", "**Over**"} {
			if !strings.Contains(section, part) {
				t.Errorf("%s: the runbook has no %s", name, part)
			}
		}
	}
	for name := range sections {
		if strings.HasPrefix(name, "Godwit") && !slices.Contains(alerts, name) {
			t.Errorf("the runbook has %s, which is no alert", name)
		}
	}
}
