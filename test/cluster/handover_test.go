package cluster_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"godwit.dev/godwit/test/programs"
)

// TestHandOver: nodes hand over to each other while clients work, and no request fails of
// clients that try again as SDKs do by themselves. The processes stay, and follow.
func TestHandOver(t *testing.T) {
	programs.Allow(t)
	c := start(t, freePorts(t), t.TempDir())
	whole := c.eventually("all nodes follow", status.whole)
	l := newLoad(t, c, 1)
	for range 6 {
		owner := c.eventually("all nodes are back", status.whole).serving()
		before := l.sent()
		c.eventually("clients work", func(status) bool { return l.sent() > before+20 })
		ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
		out, err := exec.CommandContext(ctx, binary, "cluster", "step-down", "--url", owner.URL).CombinedOutput()
		cancel()
		if err != nil || !strings.Contains(string(out), "has handed over") {
			t.Fatalf("%v: %s", err, out)
		}
		t.Logf("%s", out)
		c.eventually("it follows", func(s status) bool {
			return slices.ContainsFunc(s.Nodes, func(n nodeStatus) bool { return n.PID == owner.PID && n.State == "following" })
		})
	}
	for i, n := range c.eventually("all nodes are back", status.whole).Nodes {
		if n.PID != whole.Nodes[i].PID {
			t.Errorf("the process of node %s has ended", n.Name)
		}
	}
	l.runOut()
	if l.uncertain > 0 {
		t.Errorf("%d sends failed: %v", l.uncertain, l.failures)
	}
	for line := range strings.SplitSeq(c.out.String(), "\n") {
		if strings.Contains(line, "handed over") || strings.Contains(line, "msg=serving") {
			t.Log(line)
		}
	}
}

// TestRollingRestart: every node is stopped in an orderly way and started again, one after
// the other, while clients work, and no request fails of clients that try again as SDKs do,
// up to ten times: those of a node that is down have no other address.
func TestRollingRestart(t *testing.T) {
	programs.Allow(t)
	c := start(t, freePorts(t), t.TempDir())
	c.attempts = 10
	whole := c.eventually("all nodes follow", status.whole)
	l := newLoad(t, c, 1)
	for i := range whole.Nodes {
		n := c.eventually("all nodes are back", status.whole).Nodes[i]
		before := l.sent()
		c.eventually("clients work", func(status) bool { return l.sent() > before+20 })
		_ = syscall.Kill(n.PID, syscall.SIGTERM)
		c.eventually("its process is another", func(s status) bool {
			return s.whole() && !slices.ContainsFunc(s.Nodes, func(m nodeStatus) bool { return m.PID == n.PID })
		})
	}
	l.runOut()
	if l.uncertain > 0 {
		t.Errorf("%d sends failed: %v", l.uncertain, l.failures)
	}
}

// TestOutbox: the messages that development keeps in place of sending them are there whichever node has
// kept them, and whichever is asked.
func TestOutbox(t *testing.T) {
	programs.Allow(t)
	c := start(t, freePorts(t), t.TempDir())
	owner := c.eventually("all nodes follow", status.whole).serving()
	ask := func(method, url string, body url.Values) string {
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		answer, err := bounded.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %s %v", url, answer.Status, text, err)
		}
		return string(text)
	}
	ask(http.MethodPost, owner.URL, url.Values{"Action": {"Publish"}, "Version": {"2010-03-31"}, "PhoneNumber": {"+15550100"}, "Message": {"of the first owner"}})
	kept := func() bool {
		for _, n := range c.status().Nodes {
			if !strings.Contains(ask(http.MethodGet, n.URL+"/_godwit/outbox/sms", nil), "of the first owner") {
				return false
			}
		}
		return true
	}
	c.eventually("the message is kept", func(status) bool { return kept() })
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	if out, err := exec.CommandContext(ctx, binary, "cluster", "step-down", "--url", owner.URL).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !kept() {
		t.Error("the next owner does not have what the first one has kept")
	}
}
