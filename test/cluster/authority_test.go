package cluster_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/test/output"
	"godwit.dev/godwit/test/programs"
)

// TestAuthorityIsReplaced: the authority of a cluster is replaced, once by a command that is
// broken off after each step, once while a node is away, while clients send through all nodes:
// no request fails beyond the retries of an SDK. What the authority of before has signed opens
// nothing then; the node that was away is let in again.
func TestAuthorityIsReplaced(t *testing.T) {
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
	out, err := m.client("a", m.key.SecretAccessKey).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("kept")})
	if err != nil {
		t.Fatal(err)
	}
	s := &senders{m: m, queue: *out.QueueUrl}
	stop := s.start(names...)

	before, err := tls.LoadX509KeyPair(m.path("identity-b", "node.pem"), m.path("identity-b", "node.pem"))
	if err != nil {
		t.Fatal(err)
	}
	m.greets(before, true)
	for _, step := range []string{"Step 1 of 3", "Step 2 of 3"} {
		m.broken(step, "rotate-ca")
	}
	t.Log(m.change("rotate-ca"))
	m.greets(before, false)
	m.eventually("all nodes follow", status.whole)
	stop()

	// c is away, and misses it.
	away, err := tls.LoadX509KeyPair(m.path("identity-c", "node.pem"), m.path("identity-c", "node.pem"))
	if err != nil {
		t.Fatal(err)
	}
	if m.owner() == "c" {
		m.change("step-down")
	}
	m.kill("c")
	stop = s.start("a", "b")
	m.refused("node c does not answer", "rotate-ca")
	m.refused("is where the authority is", "rotate-ca", "--without", "a")
	m.greets(away, true)
	t.Log(m.change("rotate-ca", "--without", "c"))
	m.greets(away, false)
	m.start("c")
	m.eventually("c is not let in", func(s status) bool { return s.serving() != nil && s.state("c") == "unreachable" })
	if out, err := m.godwit("cluster", "status", "--dir", m.path("identity-c"), "--node", "c", "--from", m.address("a")); err == nil {
		t.Errorf("c is answered: %s", out)
	}
	m.kill("c")
	token := m.must("cluster", "token", "--dir", m.path("identity-a"), "--node", "c")
	join := []string{"cluster", "join", "--dir", m.path("identity-c"), "--node", "c", "--from", fmt.Sprintf("127.0.0.1:%d", m.peers("a")), "--token", token}
	if _, err := m.godwit(join...); err == nil {
		t.Error("what a node has is replaced without being asked to")
	}
	m.must(append(join, "--again")...)
	m.start("c")
	m.nodesAre(names...)
	stop()

	// All begins again with what the nodes have kept.
	for _, node := range names {
		m.kill(node)
	}
	for _, node := range names {
		m.start(node)
	}
	m.nodesAre(names...)
	m.greets(before, false)
	m.holds(s)
	if _, err := os.Stat(m.path("identity-a", "ca.next.key")); !os.IsNotExist(err) {
		t.Errorf("the next key is left: %v", err)
	}
}

// senders send through some nodes, a few messages at a time: the machine is small.
type senders struct {
	m     *machines
	queue string
	sent  atomic.Int64
	// attempts of the SDK at a request; 0: as many as it makes by itself
	attempts int
}

// start has them send until stop is called. A request that fails fails the test.
func (s *senders) start(nodes ...string) (stop func()) {
	ctx, cancel := context.WithCancel(s.m.t.Context())
	var all sync.WaitGroup
	for _, node := range nodes {
		client := s.m.client(node, s.m.key.SecretAccessKey)
		all.Go(func() {
			for ctx.Err() == nil {
				n := s.sent.Add(1)
				if _, err := client.SendMessage(s.m.t.Context(), &sqs.SendMessageInput{QueueUrl: &s.queue, MessageBody: aws.String(fmt.Sprint(n))}, s.patient); err != nil {
					s.m.t.Errorf("message %d, through %s: %v", n, node, err)
				}
				select {
				case <-ctx.Done():
				case <-time.After(20 * time.Millisecond):
				}
			}
		})
	}
	return func() {
		cancel()
		all.Wait()
	}
}

func (s *senders) patient(o *sqs.Options) {
	if s.attempts > 0 {
		o.Retryer = retry.AddWithMaxAttempts(o.Retryer, s.attempts)
	}
}

// greets asks each node as a peer, with a certificate.
func (m *machines) greets(certificate tls.Certificate, want bool) {
	m.t.Helper()
	for _, node := range names {
		if m.running[node] == nil {
			continue
		}
		address := fmt.Sprintf("127.0.0.1:%d", m.peers(node)+1)
		dialer := &net.Dialer{Timeout: testTimeout}
		c, err := tls.DialWithDialer(dialer, "tcp", address, &tls.Config{Certificates: []tls.Certificate{certificate}, InsecureSkipVerify: true})
		if err == nil {
			_ = c.SetDeadline(time.Now().Add(testTimeout))
			_, err = fmt.Fprintf(c, "GET /_godwit/v1/cluster?local=1 HTTP/1.1\r\nHost: x\r\n\r\n")
			text := make([]byte, 64)
			if err == nil {
				var n int
				n, err = c.Read(text)
				if err == nil && !strings.HasPrefix(string(text[:n]), "HTTP/1.1 200") {
					err = fmt.Errorf("%q", text[:n])
				}
			}
			c.Close()
		}
		if (err == nil) != want {
			m.t.Errorf("node %s, want an answer %v: %v", node, want, err)
		}
	}
}

// broken ends a command once it tells of a step.
func (m *machines) broken(at string, args ...string) {
	m.t.Helper()
	cmd := exec.Command(binary, m.asks(args)...)
	var told output.Buffer
	cmd.Stdout, cmd.Stderr = &told, &told
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill() // fails if it has ended
		if m.t.Failed() {
			m.t.Logf("%v told:\n%s", args, told.String())
		}
	}()
	m.eventually(at, func(status) bool { return strings.Contains(told.String(), at) })
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// kill ends a node's process as a power failure does.
func (m *machines) kill(node string) {
	_ = m.running[node].Process.Kill()
	_ = m.running[node].Wait()
	delete(m.running, node)
}

// state of a node.
func (s status) state(node string) string {
	for _, n := range s.Nodes {
		if n.Name == node {
			return n.State
		}
	}
	return ""
}
