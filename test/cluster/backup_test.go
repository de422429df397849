package cluster_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"godwit.dev/godwit/test/programs"
)

// pairs are senders, one a node, each of which sends a message to one queue and, once that is
// acknowledged, the same to another one.
type pairs struct {
	first, second string // URLs of queues
	mu            sync.Mutex
	acked         [nodes]int // pairs that are through
}

func (p *pairs) counts() [nodes]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.acked
}

func (p *pairs) send(ctx context.Context, t *testing.T, c *cluster, worker int) {
	client := c.client(worker)
	for i := 0; ctx.Err() == nil; i++ {
		body := fmt.Sprint(worker, " ", i)
		for _, queue := range []string{p.first, p.second} {
			if _, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &queue, MessageBody: &body}); err != nil {
				t.Errorf("%s: %v", body, err)
				return
			}
		}
		p.mu.Lock()
		p.acked[worker]++
		p.mu.Unlock()
		select { // all of it is read again, twice
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// of reads how many messages of each sender are in a queue, which must be the first ones.
func (p *pairs) of(t *testing.T, c *cluster, node int, queue string) (counts [nodes]int) {
	t.Helper()
	client := c.client(node)
	depth, err := client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &queue, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameApproximateNumberOfMessages}})
	if err != nil {
		t.Fatal(err)
	}
	left, err := strconv.Atoi(depth.Attributes["ApproximateNumberOfMessages"])
	if err != nil {
		t.Fatal(err)
	}
	var seen [nodes]bits
	for over := time.Now().Add(testTimeout); left > 0; {
		got, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &queue, MaxNumberOfMessages: 10, WaitTimeSeconds: 1, VisibilityTimeout: 1800})
		if err != nil || len(got.Messages) == 0 && time.Now().After(over) {
			t.Fatalf("%d messages do not come: %v", left, err)
		}
		if len(got.Messages) > 0 {
			over = time.Now().Add(testTimeout)
		}
		for _, m := range got.Messages {
			from, number := cut(*m.Body)
			worker, err := strconv.Atoi(from)
			if err != nil || worker >= nodes || number < 0 || !seen[worker].add(number) {
				t.Fatalf("%q came, or came again", *m.Body)
			}
			counts[worker]++
			left--
		}
	}
	for worker, n := range counts {
		for i := range n {
			if !seen[worker].has(i) {
				t.Fatalf("of %d messages of sender %d number %d is missing", n, worker, i)
			}
		}
	}
	return counts
}

// holds looks at a copy of the state that was taken after some pairs were acknowledged: it is
// of one moment.
func (p *pairs) holds(t *testing.T, c *cluster, node int, before [nodes]int) {
	t.Helper()
	first, second := p.of(t, c, node, p.first), p.of(t, c, node, p.second)
	for worker := range nodes {
		if second[worker] < before[worker] {
			t.Errorf("sender %d: %d pairs were acknowledged before, and %d are there", worker, before[worker], second[worker])
		}
		if a, b := first[worker], second[worker]; b > a || a > b+1 {
			t.Errorf("sender %d: %d messages are in the one queue and %d in the other, at no moment", worker, a, b)
		}
	}
	t.Logf("%v were acknowledged before, %v and %v are there", before, first, second)
}

// TestBackup: backups of a whole cluster that are made while clients send through all nodes,
// by the operator's API of a node that does not serve and by a node's own command, are each
// of one moment. What is restored serves as a single node, and as a cluster of which each node
// has all.
func TestBackup(t *testing.T) {
	programs.Allow(t)
	port, data := freePorts(t), t.TempDir()
	c := start(t, port, data)
	s := c.eventually("all nodes follow", status.whole)
	create := func(name string) string {
		out, err := c.client(0).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(name)})
		if err != nil {
			t.Fatal(err)
		}
		return *out.QueueUrl
	}
	p := &pairs{first: create("first"), second: create("second")}
	ctx, stop := context.WithCancel(t.Context())
	var sending sync.WaitGroup
	defer sending.Wait()
	defer stop()
	for worker := range nodes {
		sending.Go(func() { p.send(ctx, t, c, worker) })
	}
	progress := func() [nodes]int {
		t.Helper()
		begun := p.counts()
		c.eventually("clients send", func(status) bool {
			for worker, n := range p.counts() {
				if n < begun[worker]+20 {
					return false
				}
			}
			return true
		})
		return p.counts()
	}
	follower := s.Nodes[0]
	if follower.Name == s.serving().Name {
		follower = s.Nodes[1]
	}
	dir, copied := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "copied")
	beforeBackup := progress()
	if err := command(t, "backup", "--endpoint", follower.URL, dir); err != nil {
		t.Fatal(err)
	}
	beforeCopy := progress()
	if err := command(t, "cluster", "copy", "--local", filepath.Join(data, "2"), "--to", copied); err != nil {
		t.Fatal(err)
	}
	progress()
	stop()
	sending.Wait()
	c.stop()

	if err := command(t, "check", dir); err != nil {
		t.Fatal(err)
	}
	restored := filepath.Join(t.TempDir(), "restored")
	if err := command(t, "restore", dir, "--data", restored, "--root-key", filepath.Join(data, "dev-root.key")); err != nil {
		t.Fatal(err)
	}
	if err := command(t, "cluster", "convert", "--data", restored); err != nil {
		t.Fatal(err)
	}
	c = start(t, port, restored)
	c.own(2) // it has copied all
	p.holds(t, c, 0, beforeBackup)
	c.stop()

	c, end := single(t, port, copied)
	defer end()
	p.holds(t, c, 0, beforeCopy)
}
