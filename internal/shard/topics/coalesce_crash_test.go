package topics_test

import (
	"bytes"
	"context"
	"maps"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/shard/topics"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/test/soak"
)

// rounds is a world whose machine crashes at each write that publishers who go
// together cause.
type rounds struct {
	t       *testing.T
	fs      *vfs.MemFS
	engine  *shard.Engine
	topics  [2]arn.ARN
	queues  []string
	subs    int // of each topic
	ids     atomic.Int64
	mu      sync.Mutex
	rand    *rand.Rand
	taking  bool
	writes  int             // in the round
	answers map[string]bool // by publication: whether it was accepted
	crashes []roundCrash
}

// roundCrash is a disk after a crash, what had been accepted before it, and what had
// been called.
type roundCrash struct {
	fs            *vfs.MemFS
	before, after map[string]bool
}

func (w *rounds) nextID() message.ID { return shardtest.MessageID(int(w.ids.Add(1))) }

// crash takes what a crash before an operation on the store's log would leave; of
// the many that write large commits, of some.
func (w *rounds) crash(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || !strings.HasSuffix(op.Path, ".log") {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.taking {
		return nil
	}
	if w.writes++; w.writes < 5 || w.rand.IntN(10) == 0 {
		c := roundCrash{before: maps.Clone(w.answers)}
		c.fs = w.fs.CrashClone(vfs.CrashCloneCfg{
			UnsyncedDataPercent: []int{0, 50, 100}[w.rand.IntN(3)], RNG: rand.New(rand.NewPCG(w.rand.Uint64(), 3)),
		})
		w.crashes = append(w.crashes, c)
	}
	return nil
}

// setup makes two topics with the same queues, one of which is too small for some
// messages, and with a web hook each.
func (w *rounds) setup(st shard.Options) {
	ctx, t := context.Background(), w.t
	w.engine = shardtest.Open(t, st)
	w.topics = [2]arn.ARN{shardtest.TopicARN("one"), shardtest.TopicARN("two")}
	w.queues = []string{"a", "b", "c", "d", "e", "small"}
	for _, name := range w.queues {
		spec := queues.QueueSpec{ARN: shardtest.QueueARN(name), Attributes: map[string]string{}}
		if name == "small" {
			spec.Attributes["MaximumMessageSize"] = "1024"
		}
		if err := w.engine.CreateQueue(ctx, spec); err != nil {
			t.Fatal(err)
		}
	}
	for n, a := range w.topics {
		if err := w.engine.CreateTopic(ctx, topic.CreateTopic{ARN: a}); err != nil {
			t.Fatal(err)
		}
		for i, name := range w.queues {
			shardtest.Subscribe(t, w.engine, a.Resource, name, shardtest.SubscriptionID(100*n+i))
		}
		hook := topic.Subscribe{
			Topic: a, Owner: shardtest.Account, Protocol: "https", Endpoint: "https://example.com/" + a.Resource, ID: shardtest.SubscriptionID(100*n + 50), Token: "t" + a.Resource,
		}
		if _, err := w.engine.Subscribe(ctx, hook); err != nil {
			t.Fatal(err)
		}
		if _, err := w.engine.ConfirmSubscription(ctx, topic.Confirm{Topic: a, Token: "t" + a.Resource}); err != nil {
			t.Fatal(err)
		}
	}
	w.subs = len(w.queues) + 1
}

// round has publishers of each topic go together.
func (w *rounds) round() {
	var all sync.WaitGroup
	var leave []func(reach int)
	for _, a := range w.topics {
		publishers := w.engine.Topics.ShardOf(a).Publishers()
		leave = append(leave, hold(publishers, a))
		for n := range 2 + w.rand.IntN(6) {
			ps, size := make([]shard.Publication, 1), []int{10, 900, 3000, 200_000}[w.rand.IntN(4)]
			if size < 3000 && w.rand.IntN(3) == 0 {
				ps = make([]shard.Publication, 10)
			}
			bodies := make([]string, len(ps))
			w.mu.Lock()
			for i := range ps {
				id := w.nextID()
				bodies[i] = a.Resource + "/" + string(id[:])
				w.answers[bodies[i]] = false
				ps[i] = shard.Publication{ID: id, Body: []byte(bodies[i] + " " + strings.Repeat("x", w.rand.IntN(size)))}
			}
			w.mu.Unlock()
			all.Go(func() {
				_, err := w.engine.Publish(context.Background(), a, ps...)
				w.mu.Lock()
				defer w.mu.Unlock()
				if err != nil {
					w.t.Error(err)
				}
				for _, body := range bodies {
					w.answers[body] = true
				}
			})
			for publishers.Waiting() <= n {
				runtime.Gosched()
			}
		}
	}
	w.mu.Lock()
	w.taking, w.writes = true, 0
	w.mu.Unlock()
	for _, leave := range leave {
		all.Go(func() { leave(0) }) // so little that all come along
	}
	all.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.taking = false
	for i := range w.crashes {
		if c := &w.crashes[i]; c.after == nil {
			c.after = maps.Clone(w.answers)
		}
	}
}

// verify opens an engine on what a crash left, and counts what it has by
// subscription and publication: in its queue, or on the way there.
func (w *rounds) verify(c roundCrash) (lost int) {
	t := w.t
	t.Helper()
	s := shardtest.OpenStore(t, c.fs)
	defer s.Close()
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.NewVirtual(clock.System.Now().Add(time.Hour))})
	defer e.Close()
	e.AwaitIdle()
	found := map[string]map[string]int{}
	note := func(to string, body []byte) {
		name, _, _ := bytes.Cut(body, []byte(" "))
		if found[string(name)] == nil {
			found[string(name)] = map[string]int{}
		}
		found[string(name)][to]++
	}
	p := &shardtest.Pump{Engine: e, NewID: w.nextID, Every: true}
	p.Decide = func(d *backlog.Delivery) {
		to := "hook"
		if d.Subscription.Protocol == topic.SQS {
			to = topics.QueueOf(&d.Subscription).Resource
		}
		if d.Message.Notice.Kind == message.Notification {
			note(to, d.Message.Body)
		}
		e.Drop(d, backlog.Attempt{}, "")
	}
	e.SetConsumer("sns", p)
	p.Run(t)
	for _, name := range w.queues {
		for m := range shardtest.ReceiveAll(t, e, shardtest.QueueARN(name), time.Hour) {
			note(name, m.Body)
		}
	}
	for body, where := range found {
		if _, ok := c.after[body]; !ok {
			t.Errorf("%s was never published", body)
		}
		for to, n := range where {
			if n != 1 {
				t.Errorf("%s came to %s %d times", body, to, n)
			}
		}
		if len(where) != w.subs {
			t.Errorf("half a publication: %s came to %v", body, where)
		}
	}
	for body := range c.after {
		if found[body] == nil {
			lost++
			if c.before[body] {
				t.Errorf("%s was accepted and is lost", body)
			}
		}
	}
	return lost
}

// TestCrashInRounds: at whichever write of a round the machine crashes, of what each
// publisher in it published all or nothing is there, and once; what was accepted is.
func TestCrashInRounds(t *testing.T) {
	for _, seed := range soak.Seeds(t, soak.Rounds(t, soak.Size(1, 2), 50)) {
		// By itself each seed gives its stores back, of which there are some for each crash.
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { crashInRounds(t, seed) })
	}
}

func crashInRounds(t *testing.T, seed uint64) {
	w := &rounds{t: t, fs: vfs.NewCrashableMem(), rand: rand.New(rand.NewPCG(seed, 7)), answers: map[string]bool{}}
	s := shardtest.OpenStore(t, errorfs.Wrap(w.fs, errorfs.InjectorFunc(w.crash)))
	w.setup(shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.System, NewID: w.nextID, Render: (&shardtest.Pump{NewID: w.nextID}).Render})
	for range soak.Size(2, 12) {
		w.round()
	}
	if err := w.engine.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	half := 0
	for _, i := range soak.Spread(len(w.crashes), 4) {
		if w.verify(w.crashes[i]) > 0 {
			half++
		}
		if t.Failed() {
			t.Fatalf("seed %d: crash %d", seed, i)
		}
	}
	t.Logf("seed %d: %d publications, %d crashes, %d of them before all was there", seed, len(w.answers), len(w.crashes), half)
}
