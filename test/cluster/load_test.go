package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const (
	atOnce    = 10     // messages of a batch
	groupSize = 500    // messages of a group of a FIFO queue, of which a sender begins one after the other
	mostAhead = 20_000 // messages that were acknowledged and not received, from which on senders wait
)

// bits is a set of small numbers.
type bits []uint64

func (b bits) has(i int) bool { return i/64 < len(b) && b[i/64]&(1<<(i%64)) != 0 }

// add reports whether i is new.
func (b *bits) add(i int) bool {
	for i/64 >= len(*b) {
		*b = append(*b, 0)
	}
	if b.has(i) {
		return false
	}
	(*b)[i/64] |= 1 << (i % 64)
	return true
}

// ledgerOf is what one sender of a queue was told of its messages, numbered from 0 on, and
// which of them came out.
type ledgerOf struct {
	tried           int // so many were sent, whatever became of them
	acked, received bits
}

// books are what clients were told, and what came out.
type books struct {
	mu        sync.Mutex
	changed   sync.Cond // on mu: something was received, or senders are to end
	standard  []ledgerOf
	fifo      map[string]*ledgerOf // by group
	history   map[string][]porcupine.Operation
	acked     int
	received  int // each once
	again     int // and so often once more
	uncertain int
	groups    int      // of FIFO queues that are through, and were checked
	wrong     []string // the first of what must not be
	failures  []error  // the first sends of which nobody knows what became
}

// failed notes a send of which nobody knows what became; mu is held.
func (b *books) failed(messages int, err error) {
	b.uncertain += messages
	if len(b.failures) < 10 {
		b.failures = append(b.failures, err)
	}
}

// complain notes what must not be; mu is held.
func (b *books) complain(format string, args ...any) {
	if len(b.wrong) < 20 {
		b.wrong = append(b.wrong, fmt.Sprintf(format, args...))
	}
}

func (b *books) note(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
	b.changed.Broadcast()
}

// took notes that a message was acknowledged; mu is held.
func (b *books) took(l *ledgerOf, i int) {
	if l.acked.add(i) {
		b.acked++
	}
}

// came notes that a message was received; mu is held. first: it was not before.
func (b *books) came(l *ledgerOf, what string, i int) (first bool) {
	if l == nil || i < 0 || i >= l.tried {
		b.complain("%s %d was received, and nobody has sent it", what, i)
		return false
	}
	if !l.received.add(i) {
		b.again++
		return false
	}
	b.received++
	return true
}

// missing are those that were acknowledged and have not come: how many, and a few of them.
func (b *books) missing() (n int, some []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	look := func(what string, l *ledgerOf) {
		for i := range l.tried {
			if !l.acked.has(i) || l.received.has(i) {
				continue
			}
			if n++; len(some) < 10 {
				some = append(some, fmt.Sprint(what, " ", i))
			}
		}
	}
	for worker := range b.standard {
		look(strconv.Itoa(worker), &b.standard[worker])
	}
	for group, l := range b.fifo {
		look(group, l)
	}
	return n, some
}

// served is a cluster that clients reach.
type served interface {
	client(node int) *sqs.Client
	eventually(what string, stands func(status) bool) status
}

// load sends to and receives from a standard and a FIFO queue, through all nodes. At size 1
// half of the senders send one message at a time, and all others ten.
type load struct {
	*books
	t         *testing.T
	c         served
	queue     string // standard
	ordered   string // FIFO
	working   sync.WaitGroup
	receiving sync.WaitGroup
	checking  sync.WaitGroup
	stop      chan struct{} // closed: no further sends
	empty     chan struct{} // closed: receivers end
	end       func()        // closes empty, once
	enough    func()        // closes stop, once
}

// Clients of a load of size 1; there are as many receivers as senders.
const (
	standardSenders = 6
	fifoSenders     = 3
)

func newLoad(t *testing.T, c served, size int) *load {
	t.Helper()
	b := &books{standard: make([]ledgerOf, size*standardSenders), fifo: map[string]*ledgerOf{}, history: map[string][]porcupine.Operation{}}
	b.changed.L = &b.mu
	l := &load{books: b, t: t, c: c, stop: make(chan struct{}), empty: make(chan struct{})}
	l.enough = sync.OnceFunc(func() { close(l.stop); l.note(func() {}) })
	l.end = sync.OnceFunc(func() { close(l.empty) })
	t.Cleanup(func() { // of a test that was broken off
		if t.Failed() {
			n, missing := l.missing()
			l.note(func() { t.Logf("%s; acknowledged and not received are %d, such as %q", l, n, missing) })
		}
		l.enough()
		l.end()
	})
	create := func(name string, attributes map[string]string) string {
		attributes["VisibilityTimeout"] = "5" // what a client of a dead node had comes again
		out, err := c.client(0).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(name), Attributes: attributes})
		if err != nil {
			t.Fatal(err)
		}
		return *out.QueueUrl
	}
	l.queue = create("standard", map[string]string{})
	l.ordered = create("ordered.fifo", map[string]string{"FifoQueue": "true"})
	for i := range size * standardSenders {
		l.working.Go(func() { l.send(t.Context(), i) })
	}
	for i := range size * fifoSenders {
		l.working.Go(func() { l.sendInOrder(t.Context(), i) })
	}
	for i := range size * standardSenders {
		l.receiving.Go(func() { l.receive(t.Context(), i, l.queue, l.cameUnordered) })
	}
	for i := range size * fifoSenders {
		l.receiving.Go(func() { l.receive(t.Context(), i, l.ordered, l.cameInOrder) })
	}
	return l
}

func stopped(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// batchOf is how many messages a sender sends at once.
func batchOf(worker int) int {
	if worker < standardSenders && worker%2 == 0 {
		return 1
	}
	return atOnce
}

// put sends messages, and says which were acknowledged: all that err and the others say
// nothing of.
func (l *load) put(ctx context.Context, client *sqs.Client, queue, group string, bodies []string) (acked []bool, err error) {
	acked = make([]bool, len(bodies))
	var in, deduplication *string
	if group != "" {
		in = &group
	}
	id := func(body string) *string {
		if in == nil {
			return nil
		}
		return aws.String(strings.ReplaceAll(body, " ", "-"))
	}
	if len(bodies) == 1 {
		deduplication = id(bodies[0])
		_, err = client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &queue, MessageBody: &bodies[0], MessageGroupId: in, MessageDeduplicationId: deduplication})
		acked[0] = err == nil
		return acked, err
	}
	var entries []types.SendMessageBatchRequestEntry
	for i, body := range bodies {
		entries = append(entries, types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: &body, MessageGroupId: in, MessageDeduplicationId: id(body)})
	}
	out, err := client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &queue, Entries: entries})
	if err != nil {
		return acked, err
	}
	for _, done := range out.Successful {
		i, err := strconv.Atoi(*done.Id)
		if err != nil || i < 0 || i >= len(acked) {
			return acked, fmt.Errorf("an entry %q was not asked for", *done.Id)
		}
		acked[i] = true
	}
	for _, refused := range out.Failed {
		err = errors.Join(err, fmt.Errorf("entry %s: %s", *refused.Id, *refused.Code))
	}
	return acked, err
}

// awaitReceivers waits while receivers are far behind; mu is held, and is open in between.
func (l *load) awaitReceivers() {
	for l.acked-l.received > mostAhead && !stopped(l.stop) {
		l.changed.Wait()
	}
}

// send sends to the standard queue, each message once.
func (l *load) send(ctx context.Context, worker int) {
	client, ledger := l.c.client(worker%nodes), &l.standard[worker]
	for at := 0; !stopped(l.stop); {
		var bodies []string
		l.note(func() {
			l.awaitReceivers()
			for range batchOf(worker) {
				bodies = append(bodies, fmt.Sprint(worker, " ", ledger.tried))
				ledger.tried++
			}
		})
		acked, err := l.put(ctx, client, l.queue, "", bodies)
		l.note(func() {
			for i, ok := range acked {
				if ok {
					l.took(ledger, at+i)
				}
			}
			if err != nil {
				l.failed(len(bodies), err)
			}
		})
		at += len(bodies)
	}
}

// sendInOrder sends the messages of one group after the other, each until it is acknowledged.
func (l *load) sendInOrder(ctx context.Context, worker int) {
	clients := make([]*sqs.Client, nodes) // each keeps its connections
	for i := range clients {
		clients[i] = l.c.client(i)
	}
	for number := 0; !stopped(l.stop); number++ {
		group, ledger := fmt.Sprintf("group%d-%d", worker, number), &ledgerOf{}
		l.note(func() { l.fifo[group] = ledger })
		for at := 0; at < groupSize && !stopped(l.stop); {
			var bodies []string
			l.note(func() {
				l.awaitReceivers()
				for range batchOf(worker) {
					bodies = append(bodies, fmt.Sprint(group, " ", ledger.tried))
					ledger.tried++
				}
			})
			called := time.Now()
			for try := 0; ; try++ {
				_, err := l.put(ctx, clients[(worker+try)%nodes], l.ordered, group, bodies)
				if err == nil {
					break
				}
				if ctx.Err() != nil {
					return
				}
				l.note(func() { l.failed(len(bodies), err) })
			}
			l.note(func() {
				for range bodies {
					l.took(ledger, at)
					l.did(group, operation{number: at}, called)
					at++
				}
			})
		}
	}
}

// operation is the send of a group's message, or the first receive of it.
type operation struct {
	number   int
	received bool
}

// did notes an operation that began at some time and is through now, and has a group checked
// once that is through; mu is held.
func (l *load) did(group string, o operation, called time.Time) {
	history := append(l.history[group], porcupine.Operation{Input: o, Call: called.UnixNano(), Return: time.Now().UnixNano()})
	l.history[group] = history
	if len(history) == 2*groupSize {
		delete(l.history, group)
		delete(l.fifo, group) // came reports what comes again, else
		l.fifo[group] = &ledgerOf{tried: groupSize, acked: all, received: all}
		l.checking.Go(func() { l.check(group, history) })
	}
}

// all are the messages of a group.
var all = func() (b bits) {
	for i := range groupSize {
		b.add(i)
	}
	return b
}()

// check holds a group against the model.
func (l *load) check(group string, history []porcupine.Operation) {
	got := porcupine.CheckOperationsTimeout(groups, history, testTimeout)
	l.note(func() {
		l.groups++
		if got != porcupine.Ok {
			l.complain("%s: no order of its %d sends and receives is that of a FIFO queue: %s", group, len(history), got)
		}
	})
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

// cut takes a body apart.
func cut(body string) (from string, number int) {
	from, digits, _ := strings.Cut(body, " ")
	number, err := strconv.Atoi(digits)
	if err != nil {
		return from, -1
	}
	return from, number
}

// cameUnordered notes a message of the standard queue; mu is held.
func (l *load) cameUnordered(body string, _ time.Time) {
	from, number := cut(body)
	worker, err := strconv.Atoi(from)
	if err != nil || worker < 0 || worker >= len(l.standard) {
		l.complain("%q was received, and nobody has sent it", body)
		return
	}
	l.came(&l.standard[worker], from, number)
}

// cameInOrder notes a message of the FIFO queue; mu is held.
func (l *load) cameInOrder(body string, called time.Time) {
	group, number := cut(body)
	if l.came(l.fifo[group], group, number) {
		l.did(group, operation{number, true}, called)
	}
}

func (l *load) receive(ctx context.Context, worker int, queue string, each func(body string, called time.Time)) {
	client := l.c.client(worker % nodes)
	for !stopped(l.empty) {
		called := time.Now()
		out, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &queue, MaxNumberOfMessages: atOnce, WaitTimeSeconds: 1})
		if err != nil || len(out.Messages) == 0 {
			continue
		}
		var done []types.DeleteMessageBatchRequestEntry
		l.note(func() {
			for i, m := range out.Messages {
				each(*m.Body, called)
				done = append(done, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
			}
		})
		_, _ = client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &queue, Entries: done}) // else it comes again
	}
}

// sent is how many messages were acknowledged.
func (l *load) sent() (n int) {
	l.note(func() { n = l.acked })
	return n
}

// runOut ends the sends, waits until all that was acknowledged has come out, and checks.
func (l *load) runOut() {
	l.t.Helper()
	l.enough()
	l.ends("senders", &l.working)
	for n, _ := l.missing(); n > 0; { // as fast as this machine does it
		before := n
		l.c.eventually(fmt.Sprintf("of %d messages that were acknowledged half come out", before), func(status) bool {
			n, _ = l.missing()
			return n <= before/2
		})
	}
	l.end()
	l.ends("receivers", &l.receiving)
	l.ends("checks of groups", &l.checking)
	for group, history := range l.history {
		l.check(group, history)
	}
	for _, what := range l.wrong {
		l.t.Error(what)
	}
	l.t.Log(l.String())
}

// ends waits for those that are to end.
func (l *load) ends(what string, all *sync.WaitGroup) {
	l.t.Helper()
	over := make(chan struct{})
	go func() {
		all.Wait()
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(3 * testTimeout): // a request may be tried again, and be bounded each time
		l.t.Fatalf("%s do not end within %v", what, 3*testTimeout)
	}
}

// String is the ledger.
func (l *load) String() string {
	return fmt.Sprintf("%d messages acknowledged, of %d nobody knows; %d received, and %d times one again; %d groups of FIFO queues checked",
		l.acked, l.uncertain, l.received, l.again, l.groups)
}
