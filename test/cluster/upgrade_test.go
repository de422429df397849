package cluster_test

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/test/programs"
)

// since is the commit whose nodes a cluster of today's is upgraded from: the first that
// restarts its nodes by a command.
const since = "5a4d239fde2175a310a3a7ab2ab672083de51533"

// earlier builds the program of a commit.
func earlier(t *testing.T, commit string) string {
	t.Helper()
	programs.Need(t, "git", "tar")
	if err := exec.Command("git", "cat-file", "-e", commit+"^{commit}").Run(); err != nil {
		programs.Skip(t, "the history of this checkout does not go back to "+commit[:8])
	}
	dir := t.TempDir()
	archive := exec.Command("git", "archive", commit)
	archive.Dir = filepath.Join("..", "..") // else it has what is below the directory it runs in
	tar := exec.Command("tar", "-x", "-C", dir)
	read, write := io.Pipe()
	archive.Stdout, archive.Stderr, tar.Stdin, tar.Stderr = write, os.Stderr, read, os.Stderr
	if err := tar.Start(); err != nil {
		t.Fatal(err)
	}
	_ = write.CloseWithError(archive.Run())
	if err := tar.Wait(); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "godwit-earlier")
	build := exec.Command("go", "build", "-trimpath", "-pgo=off", "-ldflags=-w", "-buildvcs=false", "-o", program, "./cmd/godwit")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the program of %s: %v\n%s", commit[:8], err, out)
	}
	return program
}

// replace has a node run another program from its next start on.
func (k *supervisor) replace(node, program string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.m.version[node] = program
}

// pid of a node; 0: it does not answer.
func (s status) pid(node string) int {
	for _, n := range s.Nodes {
		if n.Name == node && (n.State == "serving" || n.State == "following") {
			return n.PID
		}
	}
	return 0
}

// TestUpgrade: a cluster of an earlier version is upgraded a node at a time while clients send
// through all of them. Nodes of both versions follow each other, also when one that serves is
// killed while the versions are mixed.
func TestUpgrade(t *testing.T) {
	programs.Allow(t)
	old := earlier(t, since)
	m := &machines{
		t: t, dir: t.TempDir(), port: freePorts(t), running: map[string]*exec.Cmd{},
		version: map[string]string{"a": old, "b": old, "c": old},
	}
	if err := json.Unmarshal([]byte(m.must("init", "--dir", m.dir, "--data", m.path("data"), "-o", "json")), &m.key); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.stop()
		if t.Failed() {
			t.Logf("what the nodes told:\n%s", m.out.String())
		}
	})
	m.join()
	k := m.supervise()
	out, err := m.client("a", m.key.SecretAccessKey).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("kept")})
	if err != nil {
		t.Fatal(err)
	}
	before := m.eventually("all nodes follow", status.whole)
	s := &senders{m: m, queue: *out.QueueUrl, attempts: 12} // of which the SDK makes some in the seconds that a node is away
	stop := s.start(names...)

	// One that follows is of the new version, and the owner, of the old one, is killed: the
	// next may be of either.
	owner, first := before.serving().Name, names[0]
	if first == owner {
		first = names[1]
	}
	k.replace(first, binary)
	k.signal(first, syscall.SIGTERM)
	m.eventually(first+" is back", func(s status) bool { return s.whole() && s.pid(first) != before.pid(first) })
	k.signal(owner, syscall.SIGKILL)
	mixed := m.eventually(owner+" is back", func(s status) bool { return s.whole() && s.pid(owner) != before.pid(owner) })
	t.Logf("%s, which is upgraded, and the others, which are not: %s serves", first, mixed.serving().Name)

	for _, node := range names {
		k.replace(node, binary)
	}
	told := m.change("restart")
	stop()
	t.Log(told)
	after := m.eventually("all nodes follow", status.whole)
	for _, node := range names {
		if after.pid(node) == mixed.pid(node) {
			t.Errorf("node %s was not started again", node)
		}
	}
	m.holds(s)
}
