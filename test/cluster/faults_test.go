package cluster_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"godwit.dev/godwit/test/programs"
	"godwit.dev/godwit/test/soak"
)

// books are what clients were told, and what came out.
type books struct {
	mu        sync.Mutex
	tried     map[string]bool // bodies of sends, whatever became of them
	acked     map[string]bool // those that were acknowledged
	received  map[string]bool
	fifo      map[string][]int // by group, in the order in which each came first
	uncertain int
	failures  []error // the first of them
}

// failed notes a send of which nobody knows what became.
func (b *books) failed(err error) {
	b.uncertain++
	if len(b.failures) < 10 {
		b.failures = append(b.failures, err)
	}
}

func (b *books) note(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// load sends to and receives from a standard and a FIFO queue, through all nodes.
type load struct {
	*books
	c              *cluster
	standard, fifo string
	working        sync.WaitGroup
	stop           chan struct{} // closed: no further sends
	empty          chan struct{} // closed: receivers end
}

func newLoad(t *testing.T, c *cluster) *load {
	t.Helper()
	l := &load{
		books: &books{tried: map[string]bool{}, acked: map[string]bool{}, received: map[string]bool{}, fifo: map[string][]int{}},
		c:     c, stop: make(chan struct{}), empty: make(chan struct{}),
	}
	create := func(name string, attributes map[string]string) string {
		attributes["VisibilityTimeout"] = "5" // what a client of a dead node had comes again
		out, err := c.client(0).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(name), Attributes: attributes})
		if err != nil {
			t.Fatal(err)
		}
		return *out.QueueUrl
	}
	l.standard = create("standard", map[string]string{})
	l.fifo = create("ordered.fifo", map[string]string{"FifoQueue": "true"})
	for i := range 6 {
		l.working.Go(func() { l.send(t.Context(), i) })
	}
	for group := range 3 {
		l.working.Go(func() { l.sendInOrder(t.Context(), fmt.Sprint("group", group), group) })
	}
	return l
}

func (l *load) receivers(t *testing.T, all *sync.WaitGroup) {
	for i := range 3 {
		all.Go(func() { l.receive(t.Context(), i, l.standard, nil) })
		all.Go(func() { l.receive(t.Context(), i, l.fifo, l.ordered) })
	}
}

func stopped(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (l *load) send(ctx context.Context, worker int) {
	client := l.c.client(worker % nodes)
	for i := 0; !stopped(l.stop); i++ {
		body := fmt.Sprintf("%d-%d", worker, i)
		l.note(func() { l.tried[body] = true })
		_, err := client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &l.standard, MessageBody: &body})
		l.note(func() {
			if err == nil {
				l.acked[body] = true
			} else {
				l.failed(err)
			}
		})
	}
}

// sendInOrder sends a group's messages, each until it is acknowledged.
func (l *load) sendInOrder(ctx context.Context, group string, worker int) {
	for i := 0; !stopped(l.stop); i++ {
		body := fmt.Sprintf("%s %d", group, i)
		l.note(func() { l.tried[body] = true })
		for try := 0; ; try++ {
			_, err := l.c.client((worker+try)%nodes).SendMessage(ctx, &sqs.SendMessageInput{
				QueueUrl: &l.fifo, MessageBody: &body, MessageGroupId: &group, MessageDeduplicationId: aws.String(strings.ReplaceAll(body, " ", "-")),
			})
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				return
			}
			l.note(func() { l.failed(err) })
		}
		l.note(func() { l.acked[body] = true })
	}
}

// ordered notes the order of a group's messages.
func (l *load) ordered(body string) {
	group, number, _ := strings.Cut(body, " ")
	n, _ := strconv.Atoi(number)
	if !slices.Contains(l.books.fifo[group], n) {
		l.books.fifo[group] = append(l.books.fifo[group], n)
	}
}

func (l *load) receive(ctx context.Context, worker int, queue string, each func(body string)) {
	client := l.c.client(worker % nodes)
	for !stopped(l.empty) {
		out, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &queue, MaxNumberOfMessages: 10, WaitTimeSeconds: 1})
		if err != nil || len(out.Messages) == 0 {
			continue
		}
		var done []types.DeleteMessageBatchRequestEntry
		l.note(func() {
			for i, m := range out.Messages {
				l.received[*m.Body] = true
				if each != nil {
					each(*m.Body)
				}
				done = append(done, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
			}
		})
		_, _ = client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &queue, Entries: done}) // else it comes again
	}
}

// settle ends the sends, waits until all that was acknowledged has come out, and checks.
func (l *load) settle(t *testing.T, receiving *sync.WaitGroup) {
	t.Helper()
	close(l.stop)
	l.working.Wait()
	missing := func() (out []string) {
		l.note(func() {
			for body := range l.acked {
				if !l.received[body] {
					out = append(out, body)
				}
			}
		})
		return out
	}
	l.c.eventually("all that was acknowledged comes out", func(status) bool { return len(missing()) == 0 })
	close(l.empty)
	receiving.Wait()
	for body := range l.received {
		if !l.tried[body] {
			t.Errorf("%q was received, and nobody has sent it", body)
		}
	}
	for group, order := range l.books.fifo {
		if !slices.IsSorted(order) {
			t.Errorf("%s came out of order: %v", group, order)
		}
	}
	t.Logf("%d sends acknowledged, %d uncertain, %d received", len(l.acked), l.uncertain, len(l.received))
}

// TestFaults kills and stops nodes, the owner and others, while clients work.
func TestFaults(t *testing.T) {
	programs.Allow(t)
	r := soak.Rand(soak.Seed(t), 0)
	c := start(t, freePorts(t), t.TempDir())
	c.eventually("all nodes follow", status.whole)
	l := newLoad(t, c)
	var receiving sync.WaitGroup
	l.receivers(t, &receiving)
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
	l.settle(t, &receiving)
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
	for len(want) > 0 {
		got, err := c.client(2).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: out.QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 1})
		if err != nil || len(got.Messages) == 0 {
			t.Fatalf("%d messages are missing, %v", len(want), err)
		}
		for _, m := range got.Messages {
			delete(want, *m.Body)
		}
	}
}
