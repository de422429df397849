// Package e2e_test drives the built binary from outside: it kills it, fills
// its disk, counts its syncs, and runs weeks of retries on its virtual clock.
// Without make, run it with -count=1: see test/built.
//
// What is random comes from a seed, and the command that draws the same again is
// printed. How the machine interleaves it is not repeated.
package e2e_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"godwit.dev/godwit/test/built"
)

// binary is the server under test.
var binary string

// testTimeout bounds every wait for something that should be quick, on a machine that
// may have much else to do.
const testTimeout = 2 * time.Minute

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "godwit-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if binary, err = built.Server(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// eventually probes until a probe says true, and fails the test after
// testTimeout with the last thing that the probe said.
func eventually(t *testing.T, what string, probe func() (bool, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		done, err := probe()
		if done {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: not within %s; last: %v", what, testTimeout, err)
		}
	}
}

// pass waits for a time that is a promise of the server, and so cannot be
// asked for: nobody reports when what was not synced has been.
func pass(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
