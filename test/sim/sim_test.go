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

// TestReplay: a seed gives the same history each time.
func TestReplay(t *testing.T) {
	for seed := range uint64(soak.Rounds(t, 10, 200)) {
		first, again := simulate(t, seed, nil), simulate(t, seed, nil)
		if first.hash == again.hash {
			continue
		}
		for i, line := range first.lines {
			if i >= len(again.lines) || line != again.lines[i] {
				t.Errorf("seed %d, line %d: %s", seed, i, strings.Join(append(tail(first.lines[:i]), "- "+line, "+ "+again.lines[min(i, len(again.lines)-1)]), "\n"))
				break
			}
		}
	}
}

// tail is what of a history is printed.
func tail(lines []string) []string {
	if os.Getenv("GODWIT_SEED") != "" {
		return lines
	}
	return lines[max(0, len(lines)-40):]
}
