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

	"github.com/anishathalye/porcupine"
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
	history   map[string][]porcupine.Operation
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

// served is a cluster that clients reach.
type served interface {
	client(node int) *sqs.Client
	eventually(what string, stands func(status) bool) status
}

// load sends to and receives from a standard and a FIFO queue, through all nodes.
type load struct {
	*books
	c              served
	standard, fifo string
	working        sync.WaitGroup
	stop           chan struct{} // closed: no further sends
	empty          chan struct{} // closed: receivers end
}

func newLoad(t *testing.T, c served) *load {
	t.Helper()
	l := &load{
		books: &books{tried: map[string]bool{}, acked: map[string]bool{}, received: map[string]bool{}, fifo: map[string][]int{}, history: map[string][]porcupine.Operation{}},
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
		called := time.Now()
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
		l.note(func() {
			l.acked[body] = true
			l.did(group, operation{number: i}, called)
		})
	}
}

// operation is the send of a group's message, or the first receive of it.
type operation struct {
	number   int
	received bool
}

// did notes an operation that began at some time and is through now.
func (b *books) did(group string, o operation, called time.Time) {
	b.history[group] = append(b.history[group], porcupine.Operation{Input: o, Call: called.UnixNano(), Return: time.Now().UnixNano()})
}

// groups is what a group of a FIFO queue does with a sender that sends one message after the
// other: they come in that order, each after it was sent. The state is how many were sent, and
// how many have come.
var groups = porcupine.Model{
	Init: func() any { return [2]int{} },
	Step: func(state, input, _ any) (bool, any) {
		at, o := state.([2]int), input.(operation)
		if o.received {
			return o.number == at[1] && o.number < at[0], [2]int{at[0], at[1] + 1}
		}
		return o.number == at[0], [2]int{at[0] + 1, at[1]}
	},
}

// ordered notes the order of a group's messages.
func (l *load) ordered(body string, called time.Time) {
	group, number, _ := strings.Cut(body, " ")
	n, _ := strconv.Atoi(number)
	if !slices.Contains(l.books.fifo[group], n) {
		l.books.fifo[group] = append(l.books.fifo[group], n)
		l.did(group, operation{n, true}, called)
	}
}

func (l *load) receive(ctx context.Context, worker int, queue string, each func(body string, called time.Time)) {
	client := l.c.client(worker % nodes)
	for !stopped(l.empty) {
		called := time.Now()
		out, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &queue, MaxNumberOfMessages: 10, WaitTimeSeconds: 1})
		if err != nil || len(out.Messages) == 0 {
			continue
		}
		var done []types.DeleteMessageBatchRequestEntry
		l.note(func() {
			for i, m := range out.Messages {
				l.received[*m.Body] = true
				if each != nil {
					each(*m.Body, called)
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
	for group, history := range l.history {
		if got := porcupine.CheckOperationsTimeout(groups, history, patience); got != porcupine.Ok {
			t.Errorf("%s: no order of its %d sends and receives is that of a FIFO queue: %s", group, len(history), got)
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
