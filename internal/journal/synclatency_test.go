package journal

import (
	"testing"
	"time"
)

// TestPace: the disk is slow as long as most of its latest syncs were.
func TestPace(t *testing.T) {
	const quick, slow = SlowSync, SlowSync + time.Millisecond
	repeat := func(d time.Duration, n int) (all []time.Duration) {
		for range n {
			all = append(all, d)
		}
		return all
	}
	cases := map[string]struct {
		syncs []time.Duration
		rest  time.Duration // after the last of them
		want  bool          // the disk is quick
	}{
		"no sync":                      {nil, 0, true},
		"quick":                        {repeat(quick, 20), 0, true},
		"the only one was slow":        {repeat(slow, 1), 0, false},
		"one of many was slow":         {append(repeat(quick, 20), slow), 0, true},
		"a hang among quick ones":      {append(repeat(quick, 20), time.Second), 0, true},
		"most are slow now":            {append(repeat(quick, 20), repeat(slow, latencySamples/2+1)...), 0, false},
		"not yet most":                 {append(repeat(quick, 20), repeat(slow, latencySamples/2)...), 0, true},
		"most are quick again":         {append(repeat(slow, 20), repeat(quick, latencySamples/2+1)...), 0, true},
		"slow, a moment ago":           {repeat(slow, 3), SlowMemory - time.Second, false},
		"slow, long ago":               {repeat(slow, 3), SlowMemory, true},
		"hangs for longer than memory": {append(repeat(quick, 20), 2*SlowMemory), 0, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var p syncLatency
			now := time.Unix(1_000_000, 0)
			for _, took := range c.syncs {
				p.started(now)
				if p.fast(now.Add(slow)) {
					t.Error("a sync that hangs is no reason to wait")
				}
				now = now.Add(took)
				p.finished(now, took)
			}
			if now = now.Add(c.rest); p.fast(now) != c.want {
				t.Errorf("quick is %v", !c.want)
			}
		})
	}
}
