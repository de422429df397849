package process_test

import (
	"strconv"
	"testing"
	"time"

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
			f.Timeout, f.MemoryMB = 20*time.Second, 256
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
	f.Timeout = 20 * time.Second
	l.want(t, f, `{"memory":40}`, "", `{"memory":40}`)
	l.want(t, f, `{"memory":400,"sleep":"10s"}`, "Unhandled", failure("Runtime.ExitError", "Runtime exited with error: signal: killed"))
	l.want(t, f, `{}`, "", `{}`)
}
