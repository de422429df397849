// Package programs keeps tests that need programs which do not come with Go (node,
// awscli, strace …) out of make test. They run with GODWIT_PROGRAMS=1 (make
// test-all), which names what was skipped because something is not installed.
package programs

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

const (
	variable     = "GODWIT_PROGRAMS"
	skipVariable = "GODWIT_SKIPPED" // a file that gets a line for each skipped test
)

// Need skips the test unless these programs may be used and are all installed.
func Need(t testing.TB, names ...string) {
	t.Helper()
	Allow(t)
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			Skip(t, name+" is not installed")
		}
	}
}

// Allow skips the test unless installed programs may be used.
func Allow(t testing.TB) {
	t.Helper()
	if !Allowed() {
		t.Skipf("needs installed programs: make test-all, or %s=1", variable)
	}
}

// Allowed reports that tests may use installed programs, and the time of make test-all.
func Allowed() bool { return os.Getenv(variable) != "" }

// Skip skips the test for lack of something, and has make test-all name it.
func Skip(t testing.TB, why string) {
	t.Helper()
	if name := os.Getenv(skipVariable); name != "" {
		f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(f, "%s: %s\n", t.Name(), why)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Skip(why)
}
