package sim

import (
	"os"
	"strings"
	"testing"

	"godwit.dev/godwit/test/soak"
)

func TestSimulation(t *testing.T) {
	soak.Campaign(t, 100, func(t *testing.T, seed uint64) {
		h := simulate(t, seed, nil)
		if len(h.broken) > 0 {
			t.Errorf("seed %d:\n%s\n\n%s", seed, strings.Join(h.broken, "\n"), strings.Join(tail(h.lines), "\n"))
		}
	})
}

// tail is what of a history is printed.
func tail(lines []string) []string {
	if os.Getenv("GODWIT_SEED") != "" {
		return lines
	}
	return lines[max(0, len(lines)-40):]
}
