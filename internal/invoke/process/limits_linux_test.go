package process_test

import (
	"os"
	"os/exec"
	"strconv"
	"testing"

	"godwit.dev/godwit/internal/invoke/process"
)

// What the kernel limits, in whichever version of control groups this machine has.
func TestLimits(t *testing.T) {
	t.Run("memory by looking", func(t *testing.T) {
		process.WithoutGroups(t)
		wantMemoryLimited(t)
	})
	for version, v2 := range map[string]bool{"version 1": false, "version 2": true} {
		t.Run("memory by control groups of "+version, func(t *testing.T) {
			if !process.CanLimit(v2, false) {
				t.Skip("this machine has none that this user may make")
			}
			wantMemoryLimited(t)
		})
		t.Run("processors by control groups of "+version, func(t *testing.T) {
			if !process.CanLimit(v2, true) {
				t.Skip("this machine has none that this user may make")
			}
			l := newLabWith(t, process.Options{LimitProcessors: true})
			f := l.bootstrap()
			f.MemoryMB = 256
			// 256 MB are worth a seventh of a processor.
			out := l.invoke(t, f, `{"spin":"1s"}`)
			if had, err := strconv.Atoi(string(out.Payload)); err != nil || had > 250 {
				t.Errorf("in a second it had %s ms of a processor", out.Payload)
			}
		})
	}
}

// wantMemoryLimited lets a function use more than it may.
func wantMemoryLimited(t *testing.T) {
	t.Helper()
	l := newLab(t, false)
	f := l.bootstrap()
	l.want(t, f, `{"memory":40}`, "", `{"memory":40}`)
	l.want(t, f, `{"memory":400,"sleep":"1h"}`, "Unhandled", failure("Runtime.ExitError", "Runtime exited with error: signal: killed"))
	l.want(t, f, `{}`, "", `{}`)
}

// bare is set for a test without capabilities, to what finds its processes.
const bare = "GODWIT_TEST_BARE"

// Root in a container may have lost all that makes it root.
func TestRootWithoutCapabilities(t *testing.T) {
	if os.Getenv(bare) != "" {
		each(t, func(t *testing.T, l *lab) {
			mark := os.Getenv(bare)
			l.want(t, l.bootstrap(), `{"leak":"`+mark+`"}`, "", `{"leak":"`+mark+`"}`)
		})
		return
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil || os.Geteuid() != 0 {
		t.Skip("needs root, and setpriv to take its capabilities away")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), setpriv, "--bounding-set=-all", self, "-test.run=^"+t.Name()+"$")
	mark := markOf(t)
	cmd.Env = append(os.Environ(), bare+"="+mark)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if n := processes(t, mark); n > 0 {
		t.Errorf("%d processes are left", n)
	}
}
