package local

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server/clustered"
	"godwit.dev/godwit/test/output"
)

// asNode is the first argument of a process of this test that takes the place of a node's.
const asNode = "as-node"

// failing is the LogLimit of a cluster whose second node fails for good.
const failing = 1

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asNode {
		os.Exit(actAsNode(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// actAsNode says how it was started, and lasts until its standard input ends. The first node ends at its
// first start, to be started again; so does the second of a failing cluster, which fails for good then.
func actAsNode(args []string) int {
	n, err := ReadNode(args[len(args)-1])
	if err != nil {
		return 1
	}
	fmt.Fprintf(os.Stderr, "node %s %s\n", n.Name, strings.Join(args, " "))
	starts, err := os.OpenFile(args[len(args)-1]+".starts", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 1
	}
	defer starts.Close()
	info, err := starts.Stat()
	if err != nil {
		return 1
	}
	if _, err := starts.WriteString("x"); err != nil {
		return 1
	}
	fails := n.Name == "2" && n.LogLimit == failing
	switch first := info.Size() == 0; {
	case first && (n.Name == "1" || fails):
		return clustered.ExitStatus
	case fails:
		return 1
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	fmt.Fprintf(os.Stderr, "node %s ends\n", n.Name)
	return 0
}

// started has nodes run until ctx ends.
func started(ctx context.Context, t *testing.T, logLimit uint64) (dir string, lines *output.Buffer, ended <-chan error) {
	t.Helper()
	dir, lines = t.TempDir(), new(output.Buffer)
	over := make(chan error, 1)
	go func() {
		over <- Run(ctx, Options{
			Nodes: Nodes, LogLimit: logLimit, Config: config.Config{Listen: "127.0.0.1:4700", Data: dir}, Args: []string{asNode, "--flag"},
			Stdout: io.Discard, Stderr: lines, Logger: slog.New(slog.DiscardHandler), Since: clock.System.Now(),
		})
	}()
	return dir, lines, over
}

// A node that ends is started again, with the flags of its cluster and its own after them; all of them end
// with the process that runs them.
func TestNodesAreStartedAgain(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	dir, lines, ended := started(ctx, t, 0)
	want := make([]string, 0, Nodes+1)
	for i, name := range []string{"1", "1", "2", "3"} {
		port := 4700 + max(i-1, 0)
		data := filepath.Join(dir, name)
		want = append(want, fmt.Sprintf("node %s --flag --listen 127.0.0.1:%d --data %s --node-file %s", name, port, data, filepath.Join(data, nodeFile)))
	}
	sorted := func() (all []string) {
		all = strings.Split(strings.TrimSpace(lines.String()), "\n")
		slices.Sort(all)
		return all
	}
	within, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	for !slices.Equal(sorted(), want) {
		if clock.Wait(within, clock.System, 10*time.Millisecond) != nil {
			t.Fatalf("it tells:\n%s\nwant:\n%s", lines.String(), strings.Join(want, "\n"))
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, name := range []string{"1", "2", "3"} {
		if !slices.Contains(sorted(), "node "+name+" ends") {
			t.Errorf("node %s does not end by itself: %s", name, lines.String())
		}
	}
}

// A node that cannot be started takes the others with it, and is named.
func TestNodeThatFailsForGood(t *testing.T) {
	_, lines, ended := started(t.Context(), t, failing)
	if err := <-ended; err == nil || err.Error() != "node 2: exit status 1" {
		t.Errorf("it ends by %v", err)
	}
	if !strings.Contains(lines.String(), "node 3 ends") {
		t.Errorf("another node does not end: %s", lines.String())
	}
}
