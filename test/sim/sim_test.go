package sim

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"godwit.dev/godwit/test/soak"
)

// One processor, so that what continues at the same moment continues in the same order.
func TestMain(m *testing.M) {
	collectLittle()
	runtime.GOMAXPROCS(1)
	goFirst()
	os.Exit(m.Run())
}

// TestReplay: a seed gives the same history each time. It is the first: no garbage of others is
// collected meanwhile. A pair that the machine has interrupted says nothing if it differs (see
// goFirst), and is made again; what is drawn at random in the code makes each pair differ.
func TestReplay(t *testing.T) {
	const tries = 4
	for seed := range uint64(soak.Rounds(t, 3, 200)) {
		for n := 1; ; n++ {
			before := interruptions()
			first, again := simulate(t, seed, nil), simulate(t, seed, nil)
			if first.hash == again.hash {
				break
			}
			if n < tries && interruptions() > before {
				t.Logf("seed %d: interrupted", seed)
				continue
			}
			for i, line := range first.lines {
				if i >= len(again.lines) || line != again.lines[i] {
					t.Errorf("seed %d, line %d: %s", seed, i, strings.Join(append(tail(first.lines[:i]), "- "+line, "+ "+again.lines[min(i, len(again.lines)-1)]), "\n"))
					break
				}
			}
			break
		}
	}
}

func TestSimulation(t *testing.T) {
	soak.Campaign(t, soak.Size(20, 40), func(t *testing.T, seed uint64) {
		h := simulate(t, seed, nil)
		if len(h.broken) > 0 {
			t.Errorf("seed %d:\n%s\n\n%s", seed, strings.Join(h.broken, "\n"), strings.Join(tail(h.lines), "\n"))
		}
	})
}

// TestPlantedBugs: each bug is found, in a history that keeps every promise without it.
func TestPlantedBugs(t *testing.T) {
	const within = 1000
	for i := range faults {
		f := &faults[i]
		t.Run(f.name, func(t *testing.T) {
			for n := range uint64(within) + 1 {
				seed := f.seed // where it was found last
				if n > 0 {
					seed = n - 1
				} else if soak.Enabled() {
					continue
				}
				h := simulate(t, seed, f)
				if len(h.broken) == 0 {
					continue
				}
				t.Logf("found with seed %d: %s", seed, h.broken[0])
				// The seeds of TestSimulation are others, so that nothing else runs this one.
				if well := simulate(t, seed, &fault{twoStep: f.twoStep}); len(well.broken) > 0 {
					t.Errorf("seed %d, without the bug: %s", seed, well.broken[0])
				}
				return
			}
			t.Errorf("not found with any of %d seeds", within)
		})
	}
}

// tail is what of a history is printed.
func tail(lines []string) []string {
	if os.Getenv("GODWIT_SEED") != "" {
		return lines
	}
	return lines[max(0, len(lines)-40):]
}
