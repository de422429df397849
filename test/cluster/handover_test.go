package cluster_test

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"godwit.dev/godwit/test/programs"
)

// TestHandOver: nodes hand over to each other while clients work, and no request fails of
// clients that try again as SDKs do, up to ten times.
func TestHandOver(t *testing.T) {
	programs.Allow(t)
	c := start(t, freePorts(t), t.TempDir())
	c.attempts = 10 // the node that has handed over starts again
	c.eventually("all nodes follow", status.whole)
	l := newLoad(t, c)
	var receiving sync.WaitGroup
	l.receivers(t, &receiving)
	for range 3 {
		owner := c.eventually("all nodes are back", status.whole).serving()
		before := l.count()
		c.eventually("clients work", func(status) bool { return l.count() > before+20 })
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		out, err := exec.CommandContext(ctx, binary, "cluster", "step-down", "--url", owner.URL).CombinedOutput()
		cancel()
		if err != nil || !strings.Contains(string(out), "has handed over") {
			t.Fatalf("%v: %s", err, out)
		}
		t.Logf("%s", out)
		c.eventually("its process has ended", func(s status) bool {
			return !slices.ContainsFunc(s.Nodes, func(n nodeStatus) bool { return n.PID == owner.PID })
		})
	}
	c.eventually("all nodes are back", status.whole)
	l.settle(t, &receiving)
	if l.uncertain > 0 {
		t.Errorf("%d sends failed: %v", l.uncertain, l.failures)
	}
	for line := range strings.SplitSeq(c.out.String(), "\n") {
		if strings.Contains(line, "handed over") || strings.Contains(line, "msg=serving") {
			t.Log(line)
		}
	}
}

// count is how many sends were acknowledged.
func (b *books) count() (n int) {
	b.note(func() { n = len(b.acked) })
	return n
}
