package shard_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/test/soak"
)

// TestCrash has clients send, publish, receive, delete, purge and let messages come
// to the dead-letter queue, all at once, and meanwhile takes what a crash of
// the machine would leave on disk, again and again: all that was synced and a
// random part of the rest. An engine that is opened on it accounts for every
// answer that was given before the crash.
func TestCrash(t *testing.T) {
	for name, how := range map[string]transferMode{
		"immediate": {immediate: true}, "transfer": {}, "two steps": {twoStep: true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, seed := range soak.Seeds(t, soak.Rounds(t, soak.Size(1, 2), 50)) {
				w := newCrashWorld(t, seed, how)
				w.run()
				interrupted := 0
				for i, c := range w.crashes {
					interrupted += w.verify(i, c)
				}
				t.Logf("seed %d: %d answers, %d crashes, %d transfers found half-way", seed, w.ledger.answers, len(w.crashes), interrupted)
			}
		})
	}
}

const crashClients = 6

var (
	crashAnswers = soak.Size(300, 3000) // that a run lasts for
	crashes      = soak.Size(2, 10)

	emptyQueues  = []string{"e0", "e1.fifo"}                                     // are purged, or deleted and made again
	senderQueues = append([]string{"q0", "q1", "q2", "q3.fifo"}, emptyQueues...) // the messages of q1 and *.fifo have groups
	fanQueues    = []string{"f0", "f1", "f2", "f3"}
	orderQueues  = []string{"o0.fifo", "o1.fifo", "o2"} // of a FIFO topic
	crashQueues  = slices.Concat([]string{"dead", "dead.fifo"}, senderQueues, fanQueues, orderQueues)
)

// transferMode is how messages come from a topic to its queues.
type transferMode struct{ immediate, twoStep bool }

// crashed is a disk after a crash, and what had been promised before it.
type crashed struct {
	fs     *vfs.MemFS
	at     time.Time
	before promises
	after  promises
}

type crashWorld struct {
	t       *testing.T
	seed    uint64
	how     transferMode
	fs      *vfs.MemFS
	engine  *shard.Engine
	ledger  *ledger
	late    lateness
	emptied sync.RWMutex // held for writing while one of emptyQueues is
	carrier *carrier
	ids     atomic.Int64

	mu      sync.Mutex // held while a crash is taken
	rand    *rand.Rand
	next    int  // the number of answers at which the next one is
	armed   bool // the next one is taken at the next commit
	crashes []crashed
}

func newCrashWorld(t *testing.T, seed uint64, how transferMode) *crashWorld {
	w := &crashWorld{
		t: t, seed: seed, how: how, fs: vfs.NewCrashableMem(), ledger: newLedger(),
		rand: rand.New(rand.NewPCG(seed, 2)),
	}
	w.next = w.draw()
	return w
}

// draw is when the crash after this one comes.
func (w *crashWorld) draw() int { return w.next + 1 + w.rand.IntN(2*crashAnswers/crashes-1) }

func (w *crashWorld) nextID() message.ID { return shardtest.MessageID(int(w.ids.Add(1))) }

func (w *crashWorld) run() {
	s := shardtest.OpenStore(w.t, w.fs)
	o := shard.Options{Journal: shardtest.JournalOf(w.t, s, w.observe), Clock: clock.System, TwoStep: w.how.twoStep}
	if w.how.immediate {
		o.NewID, o.Render = w.nextID, (&shardtest.Pump{NewID: w.nextID}).Render
	}
	w.engine = shardtest.Open(w.t, o)
	w.setup()
	w.carrier = newCarrier(w.t, w.engine, w.nextID)
	w.engine.SetConsumer("sns", w.carrier)
	w.late.beat()
	var clients sync.WaitGroup
	for i := range crashClients {
		clients.Go(func() {
			r := rand.New(rand.NewPCG(w.seed, uint64(i)+10))
			for w.answered(func(*promises) {}) < crashAnswers {
				w.act(r)
			}
		})
	}
	clients.Wait()
	w.carrier.stop()
	w.late.stop()
	if err := w.engine.Close(); err != nil {
		w.t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *crashWorld) setup() {
	ctx := context.Background()
	must := func(err error) {
		if err != nil {
			w.t.Fatal(err)
		}
	}
	for _, name := range crashQueues {
		must(w.engine.CreateQueue(ctx, crashQueue(name)))
	}
	must(w.engine.CreateTopic(ctx, topic.CreateTopic{ARN: shardtest.TopicARN("fan")}))
	for i, name := range fanQueues {
		shardtest.Subscribe(w.t, w.engine, "fan", name, fmt.Sprintf("00000000-0000-4000-8000-%012d", i))
	}
	must(w.engine.CreateTopic(ctx, topic.CreateTopic{ARN: shardtest.TopicARN("order.fifo"), Attributes: map[string]string{"FifoTopic": "true"}}))
	for i, name := range orderQueues {
		shardtest.Subscribe(w.t, w.engine, "order.fifo", name, fmt.Sprintf("00000000-0000-4000-9000-%012d", i))
	}
}

// crashQueue is one of crashQueues. What is emptied has no dead letters, which would
// be in another queue.
func crashQueue(name string) queues.QueueSpec {
	spec := queues.QueueSpec{ARN: shardtest.QueueARN(name), Attributes: map[string]string{}}
	dead := "dead"
	if spec.ARN.FIFO() {
		dead = "dead.fifo"
		spec.Attributes["FifoQueue"] = "true"
	}
	if name != dead && !slices.Contains(emptyQueues, name) {
		spec.Attributes["RedrivePolicy"] = fmt.Sprintf(`{"deadLetterTargetArn":"%s","maxReceiveCount":2}`, shardtest.QueueARN(dead))
	}
	return spec
}

// answered notes an answer and takes a crash when it is time.
func (w *crashWorld) answered(f func(p *promises)) int {
	n := w.ledger.note(f)
	w.mu.Lock()
	defer w.mu.Unlock()
	if n >= w.next && !w.armed && len(w.crashes) < crashes {
		w.next = w.draw()
		if w.armed = w.rand.IntN(2) == 0; !w.armed {
			w.crash()
		}
	}
	return n
}

// observe takes a crash between two commits.
func (w *crashWorld) observe([]byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.armed {
		w.armed = false
		w.crash()
	}
}

// crash takes what a crash would leave.
func (w *crashWorld) crash() {
	c := crashed{at: clock.System.Now(), before: w.ledger.copy()}
	c.fs = w.fs.CrashClone(vfs.CrashCloneCfg{
		UnsyncedDataPercent: []int{0, 25, 50, 75, 100}[w.rand.IntN(5)],
		RNG:                 rand.New(rand.NewPCG(w.rand.Uint64(), 3)),
	})
	c.after = w.ledger.copy()
	w.crashes = append(w.crashes, c)
}

// act is one thing that a client does. Messages that end in "!" are never
// deleted but by a consumer of the dead-letter queue.
func (w *crashWorld) act(r *rand.Rand) {
	ctx := context.Background()
	if r.IntN(50) == 0 {
		w.empty(r)
		return
	}
	w.emptied.RLock()
	defer w.emptied.RUnlock()
	switch n := r.IntN(10); {
	case n < 3:
		name := senderQueues[r.IntN(len(senderQueues))]
		msgs := make([]queues.SendEntry, 1+r.IntN(3))
		var ids []string
		for i := range msgs {
			id := w.ids.Add(1)
			body := fmt.Sprintf("s%d", id) + strings.Repeat("!", r.IntN(3)/2)
			ids = append(ids, origin(name, body))
			msgs[i] = queues.SendEntry{Message: shardtest.NewMessage(int(id), body+" "+strings.Repeat("x", r.IntN(3000)))}
			if fifo := strings.HasSuffix(name, ".fifo"); fifo || name == "q1" {
				msgs[i].Message.Group = fmt.Sprint(r.IntN(4))
				if fifo {
					msgs[i].Message.Dedup = body
				}
			} else if r.IntN(4) == 0 {
				msgs[i].Delay = time.Duration(r.IntN(20)) * time.Millisecond
			}
		}
		w.ledger.note(func(p *promises) {
			for _, id := range ids {
				p.begun[id] = struct{}{}
			}
		})
		if _, err := w.engine.Send(ctx, shardtest.QueueARN(name), msgs); err != nil {
			w.t.Error(err)
		}
		w.answered(func(p *promises) {
			p.answers++
			for _, id := range ids {
				p.sent[id] = struct{}{}
			}
			if slices.Contains(emptyQueues, name) {
				p.filled[name] = append(slices.Clip(p.filled[name]), ids...)
			}
		})
	case n < 4 && r.IntN(2) == 0:
		w.publishInOrder(r)
	case n < 4:
		id := w.nextID()
		body := fmt.Sprintf("p%s", id) + strings.Repeat("!", r.IntN(3)/2)
		w.ledger.note(func(p *promises) { p.published[body] = false })
		if _, err := w.engine.Publish(ctx, shardtest.TopicARN("fan"), shard.Publication{ID: id, Body: []byte(body + " ")}); err != nil {
			w.t.Error(err)
		}
		w.answered(func(p *promises) { p.answers++; p.published[body] = true })
	default:
		w.consume(r, crashQueues[r.IntN(len(crashQueues))])
	}
}

// empty purges a queue, or deletes it and makes it again, while nobody else does
// anything.
func (w *crashWorld) empty(r *rand.Rand) {
	w.emptied.Lock()
	defer w.emptied.Unlock()
	ctx, name := context.Background(), emptyQueues[r.IntN(len(emptyQueues))]
	purge := r.IntN(2) == 0
	var n, answers int
	w.ledger.note(func(p *promises) {
		n, answers = len(p.emptied), p.answers
		p.emptied = append(p.emptied, emptying{ids: p.filled[name]})
		delete(p.filled, name)
	})
	if r.IntN(10) == 0 { // else few crashes would be near one
		w.mu.Lock()
		w.next = min(w.next, answers)
		w.mu.Unlock()
	}
	var err error
	if purge {
		err = w.engine.PurgeQueue(ctx, shardtest.QueueARN(name))
	} else {
		err = w.engine.DeleteQueue(ctx, shardtest.QueueARN(name))
	}
	if err != nil {
		w.t.Error(err)
	}
	w.answered(func(p *promises) { p.answers++; p.emptied[n].answered = true })
	if !purge {
		if err := w.engine.CreateQueue(ctx, crashQueue(name)); err != nil {
			w.t.Error(err)
		}
	}
}

// publishInOrder publishes to the FIFO topic, each message twice in one batch.
func (w *crashWorld) publishInOrder(r *rand.Rand) {
	var ps []shard.Publication
	var bodies []string
	for range 1 + r.IntN(3) {
		id := w.nextID()
		body := fmt.Sprintf("o%s", id) + strings.Repeat("!", r.IntN(3)/2)
		bodies = append(bodies, body)
		p := shard.Publication{ID: id, Body: []byte(body + " "), Group: fmt.Sprint(r.IntN(4)), Dedup: body}
		ps = append(ps, p, p)
	}
	w.ledger.note(func(p *promises) {
		for _, body := range bodies {
			p.ordered[body] = false
		}
	})
	got, err := w.engine.Publish(context.Background(), shardtest.TopicARN("order.fifo"), ps...)
	if err != nil {
		w.t.Error(err)
	}
	for i := 1; i < len(got); i += 2 {
		if !got[i].Duplicate || got[i].Sequence != got[i-1].Sequence || i > 1 && got[i].Sequence != got[i-2].Sequence+1 {
			w.t.Errorf("a batch of duplicates is answered %v", got)
		}
	}
	w.answered(func(p *promises) {
		p.answers++
		for _, body := range bodies {
			p.ordered[body] = true
		}
	})
}

// consume receives from a queue, deletes some messages while they are surely
// leased, and gives the others back.
func (w *crashWorld) consume(r *rand.Rand, name string) {
	ctx := context.Background()
	got, err := w.engine.Receive(ctx, queues.ReceiveRequest{Queue: shardtest.QueueARN(name), Max: 1 + r.IntN(10), Visibility: time.Hour})
	if err != nil {
		w.t.Error(err)
		return
	}
	var doomed, back []string
	var ids []string
	for _, m := range got {
		id, poison := identify(name, m.Message)
		if r.IntN(2) == 0 && (!poison || strings.HasPrefix(name, "dead")) {
			doomed, ids = append(doomed, m.ReceiptHandle), append(ids, id)
		} else {
			back = append(back, m.ReceiptHandle)
		}
	}
	for _, h := range back {
		change := []queues.VisibilityChange{{Handle: h, Timeout: time.Duration(r.IntN(2)) * time.Second / 100}}
		if errs, err := w.engine.ChangeVisibility(ctx, shardtest.QueueARN(name), change); err != nil || errs[0] != nil {
			w.t.Error(err, errs)
		}
	}
	if len(doomed) == 0 {
		return
	}
	w.ledger.note(func(p *promises) {
		for _, id := range ids {
			p.deleting[id] = struct{}{}
		}
	})
	errs, err := w.engine.DeleteMessages(ctx, shardtest.QueueARN(name), doomed)
	if err != nil || cmp.Or(errs...) != nil {
		w.t.Error(err, errs)
	}
	w.answered(func(p *promises) {
		p.answers++
		now := clock.System.Now()
		for _, id := range ids {
			p.deleted[id] = now
		}
	})
}

// identify names a message found in a queue by its origin.
func identify(name string, m *message.Message) (id string, poison bool) {
	if m.Source != "" {
		source, _ := arn.Parse(m.Source)
		name = source.Resource
	}
	body, _, _ := strings.Cut(string(m.Body), " ")
	return origin(name, body), strings.HasSuffix(body, "!")
}

// verify opens an engine on what a crash left and drains it. It returns the
// number of transfers that the crash found half-way.
func (w *crashWorld) verify(i int, c crashed) (interrupted int) {
	t := w.t
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Fatalf("seed %d: crash %d", w.seed, i)
		}
	}()
	s := shardtest.OpenStore(t, c.fs)
	defer s.Close()
	interrupted = shardtest.CountKeys(t, s, 'X', 0)
	now := clock.NewVirtual(c.at)
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: now, TwoStep: w.how.twoStep})
	defer e.Close()
	e.AwaitIdle()
	e.Journal.Flush()
	if n := shardtest.CountKeys(t, s, 'X', 0); n > 0 {
		t.Errorf("%d transfers are not reconciled after the start", n)
	}
	for _, name := range emptyQueues { // the crash may have come before it was made again
		if err := e.CreateQueue(context.Background(), crashQueue(name)); err != nil {
			t.Error(err)
		}
	}
	p := &shardtest.Pump{Engine: e, NewID: w.nextID}
	if have, records := holding(t, e), shardtest.CountKeys(t, s, 'D', 'm'); have != records {
		t.Errorf("the counters tell of %d messages, and there are %d records", have, records)
	}
	found := drain(t, e, p, now)
	c.before.check(t, c.after, c.at, w.late.before(c.at), found)
	for _, kind := range []byte("mltdengrh") {
		if n := shardtest.CountKeys(t, s, 'D', kind); n > 0 {
			t.Errorf("%d records of kind %q are left of nothing", n, kind)
		}
	}
	return interrupted
}

// holding sums up what all counters tell.
func holding(t *testing.T, e *shard.Engine) (n int) {
	t.Helper()
	for _, sh := range e.Topics.Shards {
		sh.View(func() {
			for _, qs := range sh.Loaded() {
				c := qs.Machine.Counts(sh.Now())
				n += int(c.Visible + c.InFlight + c.Delayed)
			}
			for _, qs := range sh.Backlogs {
				c := qs.Machine.Counts(sh.Now())
				n += int(c.Visible + c.InFlight + c.Delayed)
			}
		})
	}
	return n
}

// drain carries and receives all there is, and counts it by origin.
func drain(t *testing.T, e *shard.Engine, p *shardtest.Pump, now *clock.Virtual) map[string]int {
	t.Helper()
	ctx := context.Background()
	found, latest := map[string]int{}, map[string]uint64{}
	e.SetConsumer("sns", p)
	for range 100 {
		p.Run(t)
		for _, name := range crashQueues {
			for m := range shardtest.ReceiveAll(t, e, shardtest.QueueARN(name), time.Minute) {
				id, _ := identify(name, m.Message)
				found[id]++
				if m.FIFO { // each is deleted at once, so that a group's order is that of its messages
					if group := name + " " + m.Group; m.Sequence <= latest[group] {
						t.Errorf("%d of group %s comes after %d", m.Sequence, group, latest[group])
					} else {
						latest[group] = m.Sequence
					}
				}
				if errs, err := e.DeleteMessages(ctx, shardtest.QueueARN(name), []string{m.ReceiptHandle}); err != nil || errs[0] != nil {
					t.Fatal(err, errs)
				}
			}
			e.AwaitIdle()
		}
		if holding(t, e) == 0 {
			e.Journal.Flush()
			return found
		}
		// What was leased at the crash comes back.
		if _, err := now.Advance(ctx, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatalf("%d messages cannot be had", holding(t, e))
	return nil
}

// carrier takes the deliveries to SQS queues as package deliver does, with
// several workers.
type carrier struct {
	t      *testing.T
	engine *shard.Engine
	newID  func() message.ID

	mu      sync.Mutex
	more    *sync.Cond
	ready   []arn.ARN
	over    bool
	workers sync.WaitGroup
}

func newCarrier(t *testing.T, e *shard.Engine, newID func() message.ID) *carrier {
	c := &carrier{t: t, engine: e, newID: newID}
	c.more = sync.NewCond(&c.mu)
	for range 3 {
		c.workers.Go(func() {
			for sub, ok := c.take(); ok; sub, ok = c.take() {
				c.carry(sub)
			}
		})
	}
	return c
}

func (c *carrier) Ready(sub arn.ARN) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ready = append(c.ready, sub)
	c.more.Signal()
}

func (c *carrier) take() (sub arn.ARN, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.ready) == 0 && !c.over {
		c.more.Wait()
	}
	if c.over {
		return sub, false
	}
	sub = c.ready[0]
	c.ready = c.ready[1:]
	return sub, true
}

func (c *carrier) carry(sub arn.ARN) {
	for more := true; more; {
		var ds []*backlog.Delivery
		var err error
		if ds, more, err = c.engine.Take(sub, 3); err != nil {
			c.t.Error(err)
			return
		}
		for _, d := range ds {
			dest, _ := arn.Parse(d.Subscription.Endpoint)
			m := &message.Message{
				ID: c.newID(), Sender: d.Message.Sender, Group: d.Message.Group, Dedup: d.Message.Dedup, Body: bytes.Clone(d.Message.Body),
			}
			m.Seal()
			err := c.engine.Transfer(context.Background(), d, dest, m, backlog.Ending{Attempt: backlog.Attempt{Outcome: "success"}, State: backlog.DeliveryDelivered})
			if err != nil {
				c.t.Error(err)
			}
		}
	}
}

func (c *carrier) stop() {
	c.mu.Lock()
	c.over = true
	c.more.Broadcast()
	c.mu.Unlock()
	c.workers.Wait()
}
