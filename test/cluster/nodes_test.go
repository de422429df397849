package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/test/programs"
)

// TestNodesChange: a node is replaced by another one, as long as it runs and when its machine
// is lost, one is added and one removed, while clients send: no request fails beyond the
// retries of an SDK, and all messages are there. What was removed does not come back.
func TestNodesChange(t *testing.T) {
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
	if m.owner() == "a" { // which is the one that is asked, and stays
		m.change("step-down")
	}
	gone := m.owner()
	stays := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == gone })
	t.Logf("%s owns the state, and goes", gone)

	out, err := m.client("a", m.key.SecretAccessKey).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("kept")})
	if err != nil {
		t.Fatal(err)
	}
	sending, enough := context.WithCancel(t.Context())
	defer enough()
	var senders sync.WaitGroup
	var sent atomic.Int64
	for _, node := range stays {
		for range 2 {
			client := m.client(node, m.key.SecretAccessKey)
			senders.Go(func() {
				for sending.Err() == nil {
					n := sent.Add(1)
					_, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: out.QueueUrl, MessageBody: aws.String(fmt.Sprint(n))})
					if err != nil {
						t.Errorf("message %d, through %s: %v", n, node, err)
					}
					select { // the machine is small, and the messages are to be read again
					case <-sending.Done():
					case <-time.After(20 * time.Millisecond):
					}
				}
			})
		}
	}

	m.refused("there is no node x", "remove", "x")
	m.refused("there is no node x", "replace", "x", m.address("d"))
	m.refused("there is a node b already", "add", m.address("b"))
	m.refused("already", "add", "x"+strings.TrimPrefix(m.address("a"), "a"))
	m.refused("a node is written", "add", "x")

	m.letIn("d")
	m.start("d")
	t.Log(m.change("replace", gone, m.address("d")))
	m.ended(gone)
	m.nodesAre(append(slices.Clone(stays), "d")...)
	if out, err := m.godwit("cluster", "status", "--dir", m.path("identity-"+gone), "--node", gone, "--from", m.address("a")); err == nil {
		t.Errorf("a removed node is answered: %s", out)
	}
	m.refused("was removed before", "add", m.address(gone))
	m.start(gone)
	m.ended(gone)
	if told := m.out.String(); !strings.Contains(told, "this node was removed from its cluster") {
		t.Error("a removed node is not told why it does not start")
	}

	_ = m.running["d"].Process.Kill()
	_ = m.running["d"].Wait()
	delete(m.running, "d")
	m.eventually("two nodes serve", func(s status) bool { return s.serving() != nil && !s.whole() })
	other := stays[1]
	m.refused("no majority", "remove", other)
	m.letIn("e")
	m.broken("The nodes let e in", "replace", "d", m.address("e")) // e does not run yet
	m.refused("node e is being added", "remove", other)
	m.refused("was removed before", "remove", "d")
	m.start("e")
	t.Log(m.change("replace", "d", m.address("e")))
	m.nodesAre(append(slices.Clone(stays), "e")...)

	t.Log(m.change("remove", "e"))
	m.ended("e")
	m.nodesAre(stays...)
	m.refused("add another one first", "remove", other)

	enough()
	senders.Wait()
	// All begins again with the list that the nodes keep, and not with that of their settings.
	for _, node := range stays {
		_ = m.running[node].Process.Kill()
		_ = m.running[node].Wait()
		m.start(node)
	}
	m.nodesAre(stays...)
	want := map[string]bool{}
	for n := range sent.Load() {
		want[fmt.Sprint(n+1)] = true
	}
	receiveAll(t, m.client(other, m.key.SecretAccessKey), out.QueueUrl, want)
	t.Logf("%d messages were sent meanwhile", sent.Load())
}

// owner is the node that serves.
func (m *machines) owner() string {
	m.t.Helper()
	return m.eventually("a node serves", func(s status) bool { return s.serving() != nil }).serving().Name
}

// asks are the arguments of a command about nodes, asked as a.
func (m *machines) asks(args []string) []string {
	return append(append([]string{"cluster"}, args...), "--dir", m.path("identity-a"), "--node", "a", "--from", m.address("a"))
}

// change changes the nodes, which takes as many steps as there are nodes, and returns what is
// reported of it.
func (m *machines) change(args ...string) string {
	m.t.Helper()
	out, err := m.within(4*testTimeout, m.asks(args)...)
	if err != nil {
		m.t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// refused asks for what is not done, and says why.
func (m *machines) refused(why string, args ...string) {
	m.t.Helper()
	if out, err := m.godwit(m.asks(args)...); err == nil || !strings.Contains(err.Error(), why) {
		m.t.Errorf("%v: want a refusal because of %q: %v %s", args, why, err, out)
	}
}

// nodesAre waits until these are all the nodes, and have all.
func (m *machines) nodesAre(want ...string) {
	m.t.Helper()
	m.eventually(fmt.Sprint("the nodes are ", want), func(s status) bool {
		var have []string
		for _, n := range s.Nodes {
			have = append(have, n.Name)
		}
		slices.Sort(have)
		slices.Sort(want)
		return slices.Equal(have, want) && s.whole()
	})
}

// ended waits until a node's process has ended by itself.
func (m *machines) ended(node string) {
	m.t.Helper()
	cmd, over := m.running[node], make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(testTimeout):
		m.t.Errorf("node %s did not end", node)
		_ = cmd.Process.Signal(syscall.SIGQUIT)
		select {
		case <-over: // its output says what it waits for
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
			<-over
		}
	}
	delete(m.running, node)
}
