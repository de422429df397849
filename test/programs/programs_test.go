package programs

import (
	"os"
	"path/filepath"
	"testing"
)

func TestNeed(t *testing.T) {
	skipped := filepath.Join(t.TempDir(), "skipped")
	t.Setenv(skipVariable, skipped)
	for _, tc := range []struct {
		name, allowed, program string
		runs                   bool
	}{
		{"go alone", "", "go", false},
		{"installed", "1", "go", true},
		{"absent", "1", "no-such-program", false},
	} {
		t.Setenv(variable, tc.allowed)
		ran := false
		t.Run(tc.name, func(t *testing.T) {
			Need(t, tc.program)
			ran = true
		})
		if ran != tc.runs {
			t.Errorf("%s: ran: %v", tc.name, ran)
		}
	}
	if lines, err := os.ReadFile(skipped); string(lines) != "TestNeed/absent: no-such-program is not installed\n" {
		t.Errorf("%q, %v", lines, err)
	}
}
