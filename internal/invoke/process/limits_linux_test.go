package process_test

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/invoke"
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

// Root in a container may have lost all that makes it root.
func TestRootWithoutCapabilities(t *testing.T) {
	if os.Getenv(bare) != "" {
		l, mark := newLab(t, true), os.Getenv(bare)
		l.want(t, l.bootstrap(), `{"leak":"`+mark+`"}`, "", `{"leak":"`+mark+`"}`)
		l = newLab(t, false)
		_, err := l.pool.Invoke(t.Context(), invoke.Invocation{Target: l.bootstrap(), RequestID: requestID})
		if fault.KindOf(err) != fault.InvalidRuntime || !strings.Contains(err.Error(), process.NoIsolation) {
			t.Errorf("without capabilities: %v", err)
		}
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

// /tmp holds what EphemeralStorage says, beside the memory that the function may have.
func TestEphemeralStorage(t *testing.T) {
	const full = `{"errorMessage":"write /tmp/fill: no space left on device","errorType":"PathError"}`
	check := func(t *testing.T) {
		t.Helper()
		l := newLab(t, false)
		f := l.bootstrap()
		f.EphemeralMB = 200
		l.want(t, f, `{"fill":250}`, "Unhandled", full)
		l.want(t, f, `{"fill":190}`, "", `{"fill":190}`)
		l.want(t, f, `{"memory":60}`, "", `{"memory":60}`)
		// What /tmp may hold is not memory to compute with.
		killed := failure("Runtime.ExitError", "Runtime exited with error: signal: killed")
		f = l.bootstrap()
		f.EphemeralMB = 1000
		l.want(t, f, `{"memory":300,"sleep":"1h"}`, "Unhandled", killed)
	}
	t.Run("limits of this machine", check)
	t.Run("without control groups", func(t *testing.T) {
		process.WithoutGroups(t)
		check(t)
	})
}

// All functions together have no more in /tmp than is set.
func TestStorageOfAll(t *testing.T) {
	l := newLabWith(t, process.Options{Storage: 60 << 20})
	f := l.bootstrap()
	ended := make(chan struct{})
	go func() { // in an environment of its own, with less
		defer close(ended)
		l.want(t, f, `{"fill":5,"sleep":"2s","raw":"1"}`, "", `1`)
	}()
	l.want(t, f, `{"fill":90,"sleep":"1h"}`, "Unhandled", failure("Runtime.ExitError", "Runtime exited with error: signal: killed"))
	<-ended
	l.want(t, f, `{"fill":50}`, "", `{"fill":50}`)
	if s := l.runner.Storage(); s.Name != "function_storage_bytes" || s.Limit != 60<<20 || s.Used < 50<<20 || s.Cut < 1 {
		t.Errorf("metrics show %+v", s)
	}
}
