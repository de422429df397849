package cluster_test

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/test/programs"
	"godwit.dev/godwit/test/soak"
)

// TestFaults kills and stops nodes, the owner and others, while clients work.
func TestFaults(t *testing.T) {
	programs.Allow(t)
	r := soak.Rand(soak.Seed(t), 0)
	c := start(t, freePorts(t), t.TempDir())
	c.eventually("all nodes follow", status.whole)
	l := newLoad(t, c, 1)
	began := time.Now()
	for round := range soak.Rounds(t, 6, 200) {
		s := c.eventually("all nodes are back", status.whole)
		victim := s.Nodes[r.IntN(len(s.Nodes))]
		if round%2 == 0 {
			victim = *s.serving()
		}
		if r.IntN(2) == 0 {
			t.Logf("%v: kill -9 of node %s, which is %s", time.Since(began).Round(time.Second), victim.Name, victim.State)
			_ = syscall.Kill(victim.PID, syscall.SIGKILL)
			c.eventually("another process is there", func(s status) bool {
				return s.serving() != nil && !slices.ContainsFunc(s.Nodes, func(n nodeStatus) bool { return n.PID == victim.PID })
			})
			continue
		}
		d := time.Duration(1+r.IntN(6)) * time.Second
		t.Logf("%v: node %s, which is %s, is stopped for %v", time.Since(began).Round(time.Second), victim.Name, victim.State, d)
		_ = syscall.Kill(victim.PID, syscall.SIGSTOP)
		time.Sleep(d)
		_ = syscall.Kill(victim.PID, syscall.SIGCONT)
	}
	c.eventually("all nodes are back", status.whole)
	l.runOut()
}

// TestRestart: what was acknowledged is there after all nodes were killed at once, and
// after an orderly stop.
func TestRestart(t *testing.T) {
	programs.Allow(t)
	port, data := freePorts(t), t.TempDir()
	c := start(t, port, data)
	out, err := c.client(1).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("kept")})
	if err != nil {
		t.Fatal(err)
	}
	const each = 20
	want := map[string]bool{}
	fill := func(name string) {
		for i := range each {
			body := fmt.Sprint(name, i)
			if _, err := c.client(i%nodes).SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: out.QueueUrl, MessageBody: &body}); err != nil {
				t.Fatal(err)
			}
			want[body] = true
		}
	}
	fill("before a crash ")
	for _, n := range c.eventually("all nodes follow", status.whole).Nodes {
		_ = syscall.Kill(n.PID, syscall.SIGKILL)
	}
	c.eventually("all nodes are back", status.whole)
	fill("before a stop ")
	c.stop()
	c = start(t, port, data)
	receiveAll(t, c.client(2), out.QueueUrl, want)
}
