package cluster_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"godwit.dev/godwit/test/programs"
	"godwit.dev/godwit/test/readme"
)

// TestClusterCommands gives the commands of docs/cluster.md: those for one machine, and those for
// three, which are directories here.
func TestClusterCommands(t *testing.T) {
	programs.Need(t, "bash")
	below := map[string][]string{} // commands, by the heading above
	for _, block := range readme.Of(t, "../..", "docs/cluster.md") {
		heading := block.Headings[len(block.Headings)-1]
		text := regexp.MustCompile(`\\\n *`).ReplaceAllString(block.Text, "")
		below[heading] = append(below[heading], strings.Split(strings.TrimSpace(text), "\n")...)
	}
	commands := func(heading string, n int) []string {
		t.Helper()
		if len(below[heading]) != n {
			t.Fatalf("below %q are %d commands, and the test knows %d: %q", heading, len(below[heading]), n, below[heading])
		}
		return below[heading]
	}
	convert := commands("From one node to three, and back", 4) // two that convert, two that copy
	t.Run("one machine", func(t *testing.T) {
		oneMachine(t, commands("Trying it out", 2), convert, commands("Backups", 3))
	})
	t.Run("three machines", func(t *testing.T) {
		m := &machines{t: t, dir: t.TempDir(), port: freePorts(t), running: map[string]*exec.Cmd{}}
		t.Cleanup(func() {
			m.stop()
			if t.Failed() {
				t.Logf("what the nodes told:\n%s", m.out.String())
			}
		})
		threeMachines(m, commands("On three machines", 5), commands("Rolling restart and upgrade", 1), commands("The cluster's authority", 3),
			commands("Adding, removing and replacing nodes", 4))
		m.types("a", strings.Replace(convert[3], "DIR", m.path("copied"), 1))
	})
}

// oneMachine has nodes of godwit dev.
func oneMachine(t *testing.T, try, convert, backups []string) {
	dir, port := t.TempDir(), freePorts(t)
	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	command := func(line string, replace ...string) *exec.Cmd {
		line = strings.NewReplacer(append(replace, "127.0.0.1:4566", fmt.Sprint("127.0.0.1:", port), "127.0.0.1:4567", fmt.Sprint("127.0.0.1:", port+1))...).Replace(line)
		ctx, cancel := context.WithTimeout(t.Context(), 5*testTimeout)
		t.Cleanup(cancel)
		cmd := exec.CommandContext(ctx, "bash", "-c", line)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), pathWithGodwit(), "GODWIT_ENDPOINT="+url)
		return cmd
	}
	types := func(line string, replace ...string) string {
		t.Helper()
		out, err := command(line, replace...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		return string(out)
	}
	c := startBy(t, port, command("exec "+try[0]))
	c.eventually("all nodes follow", status.whole)
	if out := types(try[1]); !strings.Contains(out, "serving") {
		t.Errorf("the cluster stands so: %s", out)
	}
	types(convert[2], "DIR", "copied")
	types(backups[0], "DIR", "backup")
	types(backups[1], "DIR", "backup", "NEW", "restored", "FILE", filepath.Join("godwit-cluster", "dev-root.key"))
	c.stop()
	types(backups[2], "NEW", "restored")

	_, stop := single(t, freePorts(t), filepath.Join(dir, "godwit-data"))
	stop()
	types(convert[0])
	types(convert[1], "/var/lib/godwit", "copied")
}

// threeMachines makes a cluster, changes all of its nodes but the first, and all that they know
// each other by.
func threeMachines(m *machines, three, restart, authority, change []string) {
	m.t.Helper()
	serve, letIn := three[2], three[3:]
	for _, line := range three[:3] {
		m.types("a", line)
	}
	m.eventually("the first node answers", func(s status) bool { return len(s.Nodes) == 3 })
	for _, node := range []string{"b", "c"} {
		m.joins(letIn, node)
		m.types(node, strings.Replace(serve, "--node a", "--node "+node, 1))
	}
	m.eventually("all nodes follow", status.whole)

	m.types("a", restart[0])
	m.eventually("all nodes follow again", status.whole)

	m.types("a", authority[0])
	m.ends("c")
	m.joins(authority[1:], "c")
	m.types("c", strings.Replace(serve, "--node a", "--node c", 1))
	m.eventually("all nodes follow the next authority", status.whole)

	m.joins(letIn, "d")
	m.types("d", change[0])
	m.types("a", change[1])
	m.types("a", change[2])
	m.ends("c")
	m.nodesAre("a", "b", "d")

	others := strings.NewReplacer("d=d:", "e=e:", "d:4570", "e:4570", "--node d", "--node e", "replace c", "replace b")
	m.joins(letIn, "e")
	m.types("e", others.Replace(change[0]))
	m.types("a", others.Replace(change[3]))
	m.ends("b")
	m.nodesAre("a", "d", "e")
}

// joins has a node let in: the token is made on a, and used by the node.
func (m *machines) joins(lines []string, node string) {
	m.t.Helper()
	other := regexp.MustCompile(`--node [bc]`)
	token := m.types("a", other.ReplaceAllString(lines[0], "--node "+node))
	m.types(node, strings.Replace(other.ReplaceAllString(lines[1], "--node "+node), "GODWIT_CLUSTER_TOKEN=…", "GODWIT_CLUSTER_TOKEN="+strings.TrimSpace(token), 1))
}

// types gives a command of the document on the machine of a node, and returns what it prints. What
// serves is started again whenever it ends.
func (m *machines) types(node, line string) string {
	m.t.Helper()
	line, _, _ = strings.Cut(line, " #")
	for _, r := range [][2]string{
		{"serve … ", "serve --config /etc/godwit/godwit.yaml --listen … --tls-cert … --tls-key … "},
		{"--listen … --tls-cert … --tls-key …", fmt.Sprintf("--listen 127.0.0.1:%d --data /var/lib/godwit --log-level info", m.clients(node))},
		{"--cluster-dir …", "--cluster-dir /etc/godwit/node"},
		{"/etc/godwit/node", m.path("identity-" + node)},
		{"/etc/godwit", m.dir},
		{"/var/lib/godwit", m.path("data-" + node)},
	} {
		line = strings.ReplaceAll(line, r[0], r[1])
	}
	line = regexp.MustCompile(`(?:[a-e]=)?([a-e]):4570`).ReplaceAllStringFunc(line, func(at string) string {
		return m.address(string(at[strings.Index(at, ":")-1]))
	})
	if strings.Contains(line, "…") {
		m.t.Fatalf("what does %s leave out?", line)
	}
	if !strings.HasPrefix(line, "godwit serve") {
		ctx, cancel := context.WithTimeout(m.t.Context(), 5*testTimeout)
		defer cancel()
		cmd := exec.CommandContext(ctx, "bash", "-c", line)
		cmd.Env = append(os.Environ(), pathWithGodwit())
		cmd.WaitDelay = 10 * time.Second // for what it has started
		var failure strings.Builder
		cmd.Stderr = &failure
		out, err := cmd.Output()
		if err != nil {
			m.t.Fatalf("%s: %v\n%s%s", line, err, out, failure.String())
		}
		return string(out)
	}
	cmd := exec.Command("bash", "-c", "trap 'kill $p; wait $p; exit' TERM\nwhile :; do "+line+" & p=$!; wait $p; sleep 0.1; done")
	cmd.Env = append(os.Environ(), pathWithGodwit())
	cmd.Stdout, cmd.Stderr = &m.out, &m.out
	cmd.WaitDelay = testTimeout
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.running[node] = cmd
	return ""
}

// ends ends the process of a node, and what starts it again.
func (m *machines) ends(node string) {
	m.t.Helper()
	_ = m.running[node].Process.Signal(syscall.SIGTERM)
	m.ended(node)
}

// pathWithGodwit is PATH with the server under test.
func pathWithGodwit() string {
	return "PATH=" + filepath.Dir(binary) + string(filepath.ListSeparator) + os.Getenv("PATH")
}
