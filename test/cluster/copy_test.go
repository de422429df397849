package cluster_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"godwit.dev/godwit/test/programs"
)

// bodySize is that of the messages that make the log long, in bytes.
const bodySize = 100 << 10

// fill sends messages to a queue, to a node, and notes them.
func (c *cluster) fill(queue string, node, n int, what string, want map[string]bool) {
	c.t.Helper()
	var sending sync.WaitGroup
	var mu sync.Mutex
	for worker := range 4 {
		sending.Go(func() {
			for i := worker; i < n; i += 4 {
				name := fmt.Sprint(what, " ", i)
				body := name + " " + strings.Repeat("x", bodySize)
				_, err := c.client(node).SendMessage(c.t.Context(), &sqs.SendMessageInput{QueueUrl: &queue, MessageBody: &body})
				mu.Lock()
				if err != nil {
					c.t.Error(err)
				}
				want[name] = true
				mu.Unlock()
			}
		})
	}
	sending.Wait()
}

// drain receives all messages of a queue, from a node, crosses them off, and lets them be
// received again. None comes back meanwhile: where there are many, they would take the place
// of those that have not been received.
func (c *cluster) drain(queue string, node int, want map[string]bool) {
	c.t.Helper()
	client := c.client(node)
	var leased []types.ChangeMessageVisibilityBatchRequestEntry
	// A lease ends while the drain waits, so that what an answer that was lost had comes again.
	const lease, patience = testTimeout, 2 * testTimeout
	for late := time.Now().Add(patience); len(want) > 0; {
		before := len(want)
		got, err := client.ReceiveMessage(c.t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &queue, MaxNumberOfMessages: 10, WaitTimeSeconds: 10, VisibilityTimeout: int32(lease / time.Second)})
		if err != nil {
			c.t.Fatalf("%d messages are left: %v", len(want), err)
		}
		for _, m := range got.Messages {
			delete(want, strings.Join(strings.Fields(*m.Body)[:3], " "))
			leased = append(leased, types.ChangeMessageVisibilityBatchRequestEntry{Id: m.MessageId, ReceiptHandle: m.ReceiptHandle})
		}
		if len(want) < before {
			late = time.Now().Add(patience)
		} else if time.Now().After(late) {
			c.t.Fatalf("%d messages are missing, such as %q", len(want), slices.Sorted(maps.Keys(want))[0])
		}
	}
	for batch := range slices.Chunk(leased, 10) {
		if _, err := client.ChangeMessageVisibilityBatch(c.t.Context(), &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &queue, Entries: batch}); err != nil {
			c.t.Fatal(err)
		}
	}
}

// node is how the node of a number, from 0 on, stands.
func (s status) node(i int) nodeStatus {
	for _, n := range s.Nodes {
		if n.Name == fmt.Sprint(i+1) {
			return n
		}
	}
	return nodeStatus{}
}

// own has a node own the state, by killing those that do.
func (c *cluster) own(node int) {
	c.t.Helper()
	for range 20 {
		s := c.eventually("all nodes follow", status.whole)
		if s.serving().Name == fmt.Sprint(node+1) {
			return
		}
		victim := s.serving().PID
		_ = syscall.Kill(victim, syscall.SIGKILL)
		c.eventually("another process is there", func(s status) bool { return s.serving() != nil && s.serving().PID != victim })
	}
	c.t.Fatalf("node %d does not come to own the state: %+v", node+1, c.status())
}

// TestCopy: the log is not kept for a node that is away. It copies another's store when it
// is back, and has all of the state then. A store that is damaged is replaced in the same
// way.
func TestCopy(t *testing.T) {
	programs.Allow(t)
	const limit, away = 1 << 20, 0
	data := t.TempDir()
	c := start(t, freePorts(t), data, "--cluster-log-limit", fmt.Sprint(limit))
	out, err := c.client(1).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("kept"), Attributes: map[string]string{"VisibilityTimeout": "5"}})
	if err != nil {
		t.Fatal(err)
	}
	queue, want := *out.QueueUrl, map[string]bool{}
	c.fill(queue, 1, 10, "before 0", want)
	s := c.eventually("all nodes follow", status.whole)
	pid := s.node(away).PID
	for attempt, copied := 0, false; !copied; attempt++ {
		if attempt == 3 {
			t.Fatalf("what the log does not keep is there for a node that was away: %+v", c.status())
		}
		number := c.leaveBehind(pid, func(round int) { c.fill(queue, 2, limit/bodySize, fmt.Sprint("away ", attempt, ".", round), want) })
		c.eventually("the node has copied, or caught up", func(s status) bool {
			copied = c.copies() > 0
			n := s.node(away)
			return copied || n.State == "following" && n.Number >= number
		})
	}
	c.own(away)
	c.drain(queue, away, cloned(want))

	s = c.eventually("all nodes follow", status.whole)
	damaged, copies := s.node(1), c.copies()
	_ = syscall.Kill(damaged.PID, syscall.SIGSTOP)
	damage(t, filepath.Join(data, "2", "store"))
	_ = syscall.Kill(damaged.PID, syscall.SIGKILL)
	c.eventually("the damaged store is replaced", func(status) bool {
		return c.copies() > copies
	})
	c.own(1)
	c.drain(queue, 1, want)
}

// copies counts the stores that were replaced by a copy so far.
func (c *cluster) copies() int {
	return strings.Count(c.out.String(), "a copy of another node's store is in place")
}

// leaveBehind stops a process while the others fill the log, round by round, until it is trimmed. It
// returns what number the others have come to. What the log does not keep the engine may still have for
// the process: what it has written to it and is not read, until it gives the connection up after 10 s, and
// 8 MiB of its own log. On a busy machine that may be enough for the process to catch up.
func (c *cluster) leaveBehind(pid int, fill func(round int)) (number uint64) {
	c.t.Helper()
	name := ""
	for _, n := range c.status().Nodes {
		if n.PID == pid {
			name = n.Name
		}
	}
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
	s := c.eventually("another node serves", func(s status) bool { return s.serving() != nil && s.serving().Name != name })
	const kept = 24 // rounds of about a MiB
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	// So more than that is trimmed: a round has a dozen records.
	mark, givenUp := s.serving().Number+200, time.Now().Add(15*time.Second)
	trimmed := func() bool {
		s = c.status()
		return len(s.Cells) > 0 && s.Cells[0].LogFirst > mark
	}
	for round := 0; round < kept || time.Now().Before(givenUp) || !trimmed(); round++ {
		if round > 10*kept {
			c.t.Fatalf("the log is kept for a node that is away: %+v", c.status())
		}
		if round >= kept {
			<-tick.C // it is the time that is waited for
		}
		fill(round)
	}
	return s.Cells[0].Number
}

func cloned(m map[string]bool) map[string]bool {
	out := map[string]bool{}
	for k := range m {
		out[k] = true
	}
	return out
}

// damage makes the engine's manifest unreadable.
func damage(t *testing.T, store string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(store, "MANIFEST-*"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no manifest in %s: %v", store, err)
	}
	for _, name := range names {
		if err := os.WriteFile(name, []byte(strings.Repeat("damage ", 100)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
