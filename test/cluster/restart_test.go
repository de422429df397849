package cluster_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/test/programs"
)

// supervisor starts nodes again when they end, as systemd does.
type supervisor struct {
	m       *machines
	mu      sync.Mutex
	stopped bool
	kept    sync.WaitGroup
}

// supervise looks after the nodes that run, until the test ends.
func (m *machines) supervise() *supervisor {
	k := &supervisor{m: m}
	for _, node := range names {
		cmd := m.running[node]
		k.kept.Go(func() {
			for {
				_ = cmd.Wait()
				if cmd = k.restart(node); cmd == nil {
					return
				}
			}
		})
	}
	m.t.Cleanup(k.stop)
	return k
}

// restart starts a node; nil: it is to be left.
func (k *supervisor) restart(node string) *exec.Cmd {
	time.Sleep(200 * time.Millisecond) // as systemd does, which is not in a hurry
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped {
		return nil
	}
	k.m.start(node)
	return k.m.running[node]
}

// signal tells a node's process something.
func (k *supervisor) signal(node string, s syscall.Signal) {
	k.mu.Lock()
	defer k.mu.Unlock()
	_ = k.m.running[node].Process.Signal(s)
}

func (k *supervisor) stop() {
	k.mu.Lock()
	k.stopped = true
	k.mu.Unlock()
	over := make(chan struct{})
	go func() {
		k.kept.Wait()
		close(over)
	}()
	for _, node := range names {
		k.signal(node, syscall.SIGCONT)
		k.signal(node, syscall.SIGTERM)
	}
	select {
	case <-over:
	case <-time.After(testTimeout):
		k.m.t.Error("nodes do not stop")
		for _, node := range names {
			k.signal(node, syscall.SIGKILL)
		}
		<-over
	}
	clear(k.m.running)
}

// TestRestartCommand: a command restarts one node after the other, the owner of the state last,
// while clients send through all of them: those that are connected to a node that ends go on
// once it is back, and the others notice nothing.
func TestRestartCommand(t *testing.T) {
	programs.Allow(t)
	m := &machines{t: t, dir: t.TempDir(), port: freePorts(t), running: map[string]*exec.Cmd{}}
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
	m.supervise()
	out, err := m.client("a", m.key.SecretAccessKey).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("kept")})
	if err != nil {
		t.Fatal(err)
	}
	before := m.eventually("all nodes follow", status.whole)
	owner := before.serving().Name
	s := &senders{m: m, queue: *out.QueueUrl, attempts: 12} // of which the SDK makes some in the second that a node is away
	stop := s.start(names...)
	told := m.change("restart")
	stop()
	t.Log(told)
	after := m.eventually("all nodes follow", status.whole)
	// An owner that the machine has held up for long may have been replaced before its turn.
	once := after.epoch() == before.epoch()+1
	for i, line := range strings.Split(told, "\n") {
		if ends := strings.HasSuffix(line, "ends, to be started again."); ends != (i%2 == 0) || once && i == 4 && !strings.HasPrefix(line, "Node "+owner) {
			t.Errorf("%q is told; %s owned the state", line, owner)
		}
	}
	t.Logf("the owner changed from epoch %d to %d", before.epoch(), after.epoch())
	for i, n := range before.Nodes {
		if n.PID == after.Nodes[i].PID {
			t.Errorf("node %s was not started again", n.Name)
		}
	}
	m.holds(s)
}

// holds looks whether all is there that was sent.
func (m *machines) holds(s *senders) {
	m.t.Helper()
	want := map[string]bool{}
	for n := range s.sent.Load() {
		want[fmt.Sprint(n+1)] = true
	}
	receiveAll(m.t, m.client("b", m.key.SecretAccessKey), &s.queue, want)
}
