package topics_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/shard/topics"
	"godwit.dev/godwit/internal/shard/topics/coalesce"
	"godwit.dev/godwit/internal/shard/topics/publication"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/topic/filter"
	"godwit.dev/godwit/test/soak"
)

// TestCrashInLargeFanOut publishes to more subscriptions than one commit
// takes, and to many that do not keep up.
func TestCrashInLargeFanOut(t *testing.T) {
	t.Run("many", func(t *testing.T) { testCrashInFanOut(t, 0, soak.Size(1, 2)*topics.FanoutStep+200) })
	t.Run("slow", func(t *testing.T) { testCrashInFanOut(t, 2*topics.DeferredStep+topics.MaxSlow, 30) })
}

// testCrashInFanOut crashes before each commit from the publish on, keeping none,
// some or all of what was not synced. Every subscription gets the message
// once; before the publish was answered, none may.
func testCrashInFanOut(t *testing.T, slow, others int) {
	subscriptions := slow + others
	ctx := context.Background()
	seed := soak.Seeds(t, 1)[0]
	r := rand.New(rand.NewPCG(seed, 4))
	fs := vfs.NewCrashableMem()

	var mu sync.Mutex
	var publishing bool
	var disks []*vfs.MemFS
	crash := func() {
		mu.Lock()
		defer mu.Unlock()
		if !publishing {
			return
		}
		for _, percent := range []int{r.IntN(100), 0, 100}[:soak.Size(1, 3)] {
			disks = append(disks, fs.CrashClone(vfs.CrashCloneCfg{
				UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(r.Uint64(), 5)),
			}))
		}
	}
	s := shardtest.OpenStore(t, fs)
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, func([]byte) { crash() }), Clock: clock.System})
	if err := e.CreateTopic(ctx, topic.CreateTopic{ARN: shardtest.TopicARN("wide")}); err != nil {
		t.Fatal(err)
	}
	for i := range subscriptions {
		if i == slow {
			fall(t, e, shardtest.TopicARN("wide"))
		}
		listen(t, e, shardtest.TopicARN("wide"), shardtest.SubscriptionID(i))
	}
	mu.Lock()
	publishing = true
	mu.Unlock()
	if _, err := e.Publish(ctx, shardtest.TopicARN("wide"), shard.Publication{ID: shardtest.MessageID(1), Body: []byte("to all")}); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	unacknowledged := len(disks)
	mu.Unlock()
	crash()
	e.AwaitIdle()
	crash()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	crash()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	halfway := 0
	for _, i := range soak.Spread(len(disks), 3) {
		s := shardtest.OpenStore(t, disks[i])
		if shardtest.CountKeys(t, s, 'P', 0) > 0 {
			halfway++
		}
		e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.System})
		e.AwaitIdle()
		got := map[int]int{}
		for sub := range subscriptions {
			ds, more, err := e.Take(shardtest.TopicARN("wide").Subscription(shardtest.SubscriptionID(sub)), 10)
			if err != nil || more {
				t.Fatal(err, more)
			}
			n := 0
			for _, d := range ds {
				if d.Message.ID == shardtest.MessageID(1) {
					n++
				}
			}
			got[n]++
		}
		switch {
		case got[1] == subscriptions:
		case i < unacknowledged && got[0] == subscriptions:
		default:
			t.Errorf("seed %d: crash %d: as many subscriptions by how often they got the message: %v", seed, i, got)
		}
		if n := shardtest.CountKeys(t, s, 'P', 0) + shardtest.CountKeys(t, s, 'G', 0); n != 0 {
			t.Errorf("seed %d: crash %d: %d records of publications that are being fanned out are left", seed, i, n)
		}
		e.Close()
		s.Close()
	}
	if len(disks) < soak.Size(4, 12) || halfway == 0 {
		t.Errorf("%d crashes, %d of them half-way: the test tests nothing", len(disks), halfway)
	}
}

// fall makes the subscriptions that a topic has now slow.
func fall(t *testing.T, e *shard.Engine, to arn.ARN) {
	t.Helper()
	for i := range topics.SlowDepth {
		if _, err := e.Publish(context.Background(), to, shard.Publication{ID: shardtest.MessageID(900 + i), Body: []byte("waits")}); err != nil {
			t.Fatal(err)
		}
		e.AwaitIdle()
	}
}

// listen subscribes something that is no queue.
func listen(t *testing.T, e *shard.Engine, to arn.ARN, id string) {
	t.Helper()
	if _, err := e.Subscribe(context.Background(), topic.Subscribe{
		Topic: to, Owner: shardtest.Account, Protocol: "lambda", Endpoint: "arn:aws:lambda:us-east-1:000000000000:function:f-" + id, ID: id,
	}); err != nil {
		t.Fatal(err)
	}
}

// TestLateSubscriberGetsNothing: who subscribes while a publication is still
// being fanned out does not get it.
func TestLateSubscriberGetsNothing(t *testing.T) {
	ctx := context.Background()
	now := clock.NewVirtual(shardtest.Start)
	s := shardtest.NewStore(t)
	defer s.Close()
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: now})
	if err := e.CreateTopic(ctx, topic.CreateTopic{ARN: shardtest.TopicARN("wide")}); err != nil {
		t.Fatal(err)
	}
	for i := range topics.FanoutStep + 1 {
		shardtest.Subscribe(t, e, "wide", fmt.Sprintf("q%d", i), shardtest.SubscriptionID(i))
	}
	sh := e.Topics.ShardOf(shardtest.TopicARN("wide"))
	sh.View(func() {
		*sh.Fanning() = true // the steps after the first wait for us
	})
	if _, err := e.Publish(ctx, shardtest.TopicARN("wide"), shard.Publication{ID: shardtest.MessageID(1), Body: []byte("to all")}); err != nil {
		t.Fatal(err)
	}
	now.SetAtLeast(shardtest.Start.Add(1e6))
	late := shardtest.Subscribe(t, e, "wide", "late", shardtest.SubscriptionID(9_999_999))
	sh.View(func() {
		*sh.Fanning() = false
		sh.StartFanouts()
	})
	e.AwaitIdle()
	for sub, want := range map[arn.ARN]int{
		shardtest.TopicARN("wide").Subscription(shardtest.SubscriptionID(topics.FanoutStep)): 1,
		late: 0,
	} {
		if ds, _, err := e.Take(sub, 10); err != nil || len(ds) != want {
			t.Errorf("%s got %d messages, %v", sub, len(ds), err)
		}
	}
	e.Close()
}

// wideWorld is a topic of which some subscribers are slow, and whose steps in the
// background wait for continueSteps.
type wideWorld struct {
	*shard.Engine
	t     *testing.T
	topic arn.ARN
	sh    *topics.Shard
	seen  *witness
	// observe sees what is committed; nil: nobody does.
	observe func(sealed []byte)
}

func newWideWorld(t *testing.T, slow, others int) *wideWorld {
	s := shardtest.NewStore(t)
	w := &wideWorld{t: t, topic: shardtest.TopicARN("wide"), seen: &witness{}}
	w.Engine = shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, func(sealed []byte) {
		if w.observe != nil {
			w.observe(sealed)
		}
	}), Clock: clock.NewVirtual(shardtest.Start), Published: w.seen.see})
	t.Cleanup(func() {
		w.Close()
		s.Close()
	})
	if err := w.CreateTopic(context.Background(), topic.CreateTopic{ARN: w.topic}); err != nil {
		t.Fatal(err)
	}
	w.sh = w.Topics.ShardOf(w.topic)
	for i := range slow + others {
		if i == slow {
			for n := range topics.SlowDepth {
				w.publish(900 + n)
			}
			w.AwaitIdle()
			w.sh.View(func() {
				*w.sh.Fanning() = true // the steps in the background wait for us
			})
		}
		listen(t, w.Engine, w.topic, shardtest.SubscriptionID(i))
	}
	return w
}

func (w *wideWorld) publish(ids ...int) {
	w.t.Helper()
	var all []shard.Publication
	for _, id := range ids {
		all = append(all, shard.Publication{ID: shardtest.MessageID(id), Body: []byte("a")})
	}
	if _, err := w.Publish(context.Background(), w.topic, all...); err != nil {
		w.t.Fatal(err)
	}
}

// continueSteps makes the steps that wait.
func (w *wideWorld) continueSteps() {
	w.sh.View(func() {
		*w.sh.Fanning() = false
		w.sh.StartFanouts()
	})
	w.AwaitIdle()
}

// lengths counts the backlogs of some subscriptions by what is in them.
func (w *wideWorld) lengths(from, to int) map[int64]int {
	all := map[int64]int{}
	for i := from; i < to; i++ {
		all[w.length(i)]++
	}
	return all
}

// length is what is in a subscription's backlog; -1 if there is no subscription.
func (w *wideWorld) length(i int) (n int64) {
	w.sh.View(func() {
		sub, ok := w.sh.Topics.Subscription(w.topic.Subscription(shardtest.SubscriptionID(i)))
		if !ok {
			n = -1
		} else if qs := w.sh.BacklogOf(sub); qs != nil {
			n = qs.Machine.Len()
		}
	})
	return n
}

// left counts the records of publications that are being fanned out.
func (w *wideWorld) left() int {
	w.Journal.Flush()
	return shardtest.CountKeys(w.t, w.Store, 'P', 0) + shardtest.CountKeys(w.t, w.Store, 'G', 0)
}

// TestSlowSubscribersComeLater: many subscribers that do not keep up do not delay
// the others, but as soon as too much waits for them, they delay the publishers.
func TestSlowSubscribersComeLater(t *testing.T) {
	const others = 3
	t.Run("many", func(t *testing.T) {
		const slow = topics.MaxSlow + 1
		w := newWideWorld(t, slow, others)
		for i := range topics.MaxDeferred {
			w.publish(1 + i)
			if got, want := w.lengths(slow, slow+others), (map[int64]int{int64(min(1+i, topics.SlowDepth)): others}); i < topics.SlowDepth && !maps.Equal(got, want) {
				t.Fatalf("after %d publishes the others have %v", 1+i, got)
			}
		}
		if got := w.lengths(0, slow); !maps.Equal(got, map[int64]int{topics.SlowDepth: slow}) {
			t.Errorf("the slow ones have %v", got)
		}
		w.publish(500)
		if got := w.lengths(0, slow); !maps.Equal(got, map[int64]int{topics.SlowDepth + 1: slow}) {
			t.Errorf("with too much in the background the slow ones have %v", got)
		}
		w.continueSteps()
		if got := w.lengths(0, slow); !maps.Equal(got, map[int64]int{topics.SlowDepth + 1 + topics.MaxDeferred: slow}) {
			t.Errorf("in the end the slow ones have %v", got)
		}
		if got := w.lengths(slow, slow+others); !maps.Equal(got, map[int64]int{topics.MaxDeferred + 1: others}) {
			t.Errorf("in the end the others have %v", got)
		}
	})
	t.Run("more than fit into a commit", func(t *testing.T) { // the others still come first
		const slow, large = topics.FanoutStep + 88, topics.MaxDeferred + 6
		w := newWideWorld(t, slow, 1)
		shardtest.Subscribe(t, w.Engine, "wide", "q", shardtest.SubscriptionID(slow+1)) // a queue is never slow
		at := func(n int) {
			t.Helper()
			if got := w.length(slow + 1); got != int64(n) {
				t.Errorf("after %d publications the queue has %d", n, got)
			}
			if got := w.sh.FanningOut()[w.topic]; got > topics.MaxDeferred {
				t.Errorf("after %d publications %d go on in the background", n, got)
			}
		}
		for i := range large {
			w.publish(1 + i)
			at(1 + i)
		}
		reach := lastReach(w.sh.Publishers())
		w.publish(501, 502, 503)
		at(large + 3)
		if got := *reach; got != topics.FanoutStep {
			t.Errorf("a publisher who makes steps would take others along, as for %d deliveries each", got)
		}
		w.continueSteps()
		if got := w.lengths(0, slow+2); !maps.Equal(got, map[int64]int{topics.SlowDepth + large + 3: slow, large + 3: 2}) {
			t.Errorf("in the end %v", got)
		}
	})
	t.Run("few", func(t *testing.T) {
		w := newWideWorld(t, topics.MaxSlow, others)
		w.publish(1, 2)
		if got := w.lengths(0, topics.MaxSlow); !maps.Equal(got, map[int64]int{topics.SlowDepth + 2: topics.MaxSlow}) {
			t.Errorf("%v", got)
		}
	})
	t.Run("together", func(t *testing.T) { // three publications, in as many commits
		const slow, others = 2 * topics.MaxSlow, topics.FanoutStep/2 + 1
		w := newWideWorld(t, slow, others)
		w.publish(1, 2, 3)
		if got := w.lengths(slow, slow+others); !maps.Equal(got, map[int64]int{3: others}) {
			t.Errorf("at once the others have %v", got)
		}
		if got := w.lengths(0, slow); !maps.Equal(got, map[int64]int{topics.SlowDepth: slow}) {
			t.Errorf("at once the slow ones have %v", got)
		}
		w.continueSteps()
		if got := w.lengths(0, slow+others); !maps.Equal(got, map[int64]int{topics.SlowDepth + 3: slow, 3: others}) {
			t.Errorf("in the end %v", got)
		}
	})
}

// TestPostponedFitIntoCommits: publications that only slow subscribers get are in the
// commit that accepts them all the same, and take their room in it, also if each
// subscriber gets but a small part.
func TestPostponedFitIntoCommits(t *testing.T) {
	const size = 200 << 10
	bodies := map[string]string{}
	for i := range 100 {
		bodies[fmt.Sprint(i)] = strings.Repeat("x", size/100)
	}
	t.Run("body", func(t *testing.T) { testPostponedFitIntoCommits(t, shard.Publication{Body: make([]byte, size)}, size) })
	t.Run("bodies", func(t *testing.T) {
		testPostponedFitIntoCommits(t, shard.Publication{Body: []byte("x"), Bodies: bodies}, size)
	})
}

func testPostponedFitIntoCommits(t *testing.T, p shard.Publication, size int) {
	const slow = topics.MaxSlow + 1
	w := newWideWorld(t, slow, 0)
	fall(t, w.Engine, w.topic)
	w.sh.View(func() {
		*w.sh.Fanning() = true
	})
	most := 0
	w.observe = func(commit []byte) { most = max(most, len(commit)) }
	var all []shard.Publication
	for i := range topics.MaxDeferred / 2 {
		p.ID = shardtest.MessageID(i)
		all = append(all, p)
	}
	if _, err := w.Publish(t.Context(), w.topic, all...); err != nil {
		t.Fatal(err)
	}
	if most > mutation.MaxFramedBatch || most < size {
		t.Errorf("a commit of %d bytes", most)
	}
	if w.sh.Planned() == 0 {
		t.Error("a publisher would take any number of others along")
	}
	if soak.Size(0, 1) == 0 {
		return // what follows writes much
	}
	w.continueSteps()
	if got := w.lengths(0, slow); !maps.Equal(got, map[int64]int{topics.SlowDepth + topics.MaxDeferred/2: slow}) {
		t.Errorf("in the end %v", got)
	}
}

// TestPlanThatFailed: a publication that could not be published as it was planned has
// nothing of the plan.
func TestPlanThatFailed(t *testing.T) {
	w := newWideWorld(t, 0, 1)
	fs := []topics.Fanout{topics.NewFanout(publication.Record{Topic: w.topic, P: shard.Publication{ID: shardtest.MessageID(1)}}, true, 1)}
	done := false
	_, err := w.sh.Run(journal.Eager, func(tx *kernel.Tx) (err error) {
		_, done, err = w.sh.PublishInSteps(tx, fs)
		return err
	})
	if later, delivered := fs[0].State(); err != nil || !done || later || delivered != 0 {
		t.Errorf("done %v, %v: %+v", done, err, fs[0])
	}
}

// TestChangesBeforeLaterSubscribers: what changes between a publish and the steps
// behind it is heeded, and nobody else gets less or more for that.
func TestChangesBeforeLaterSubscribers(t *testing.T) {
	const slow, others, changed = topics.MaxSlow + 2, 3, 7
	ctx := context.Background()
	unsubscribe := func(w *wideWorld, sub arn.ARN) error {
		return w.Unsubscribe(ctx, topic.Unsubscribe{Subscription: sub, Authenticated: true})
	}
	cases := []struct {
		name   string
		change func(w *wideWorld, sub arn.ARN) error
		want   int64 // messages of the subscription in the end
	}{
		{"filtered", func(w *wideWorld, sub arn.ARN) error {
			return w.SetSubscriptionAttribute(ctx, sub, "FilterPolicy", `{"a":["x"]}`)
		}, topics.SlowDepth},
		{"paused", func(w *wideWorld, sub arn.ARN) error { return w.Pause(ctx, sub) }, topics.SlowDepth + 1},
		{"unsubscribed", unsubscribe, -1},
		{"subscribed anew", func(w *wideWorld, sub arn.ARN) error {
			err := unsubscribe(w, sub)
			listen(w.t, w.Engine, w.topic, shardtest.SubscriptionID(changed))
			return err
		}, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWideWorld(t, slow, others)
			w.publish(1)
			if err := c.change(w, w.topic.Subscription(shardtest.SubscriptionID(changed))); err != nil {
				t.Fatal(err)
			}
			w.continueSteps()
			if got := w.length(changed); got != c.want {
				t.Errorf("it has %d messages, want %d", got, c.want)
			}
			rest := w.lengths(0, changed)
			for n, subs := range w.lengths(changed+1, slow+others) {
				rest[n] += subs
			}
			if want := (map[int64]int{topics.SlowDepth + 1: slow - 1, 1: others}); !maps.Equal(rest, want) {
				t.Errorf("the others have %v, want %v", rest, want)
			}
			if n := w.left(); n != 0 {
				t.Errorf("%d records are left", n)
			}
		})
	}
	t.Run("topic deleted", func(t *testing.T) {
		w := newWideWorld(t, slow, others)
		w.publish(1, 2)
		if err := w.DeleteTopic(ctx, w.topic); err != nil {
			t.Fatal(err)
		}
		if err := w.CreateTopic(ctx, topic.CreateTopic{ARN: w.topic}); err != nil {
			t.Fatal(err)
		}
		listen(t, w.Engine, w.topic, shardtest.SubscriptionID(changed))
		w.continueSteps()
		if got := w.length(changed); got != 0 {
			t.Errorf("a subscription to the new topic has %d messages", got)
		}
		if n := w.left() + len(w.sh.FanningOut()) + w.sh.Reached(); n != 0 {
			t.Errorf("%d records are left", n)
		}
	})
}

// TestPublishedToSlowSubscribers: a publication that some get later is called for
// once when it is accepted, and once when all have been looked at.
func TestPublishedToSlowSubscribers(t *testing.T) {
	const slow, others = topics.MaxSlow + 2, 3
	w := newWideWorld(t, slow, others)
	for _, i := range []int{0, slow} {
		if err := w.SetSubscriptionAttribute(context.Background(), w.topic.Subscription(shardtest.SubscriptionID(i)), "FilterPolicy", `{"a":["x"]}`); err != nil {
			t.Fatal(err)
		}
	}
	w.seen.take()
	w.publish(1, 2)
	for i, p := range w.seen.take() {
		if p.ID != shardtest.MessageID(1+i) || p.Later || p.Size != 1 || p.FilteredOut != [filter.Verdicts]int{} {
			t.Errorf("first %+v", p)
		}
	}
	w.continueSteps()
	got := w.seen.take()
	for i, p := range got {
		if p.ID != shardtest.MessageID(1+i) || !p.Later || p.FilteredOut != [filter.Verdicts]int{filter.NoMessageAttributes: 2} {
			t.Errorf("then %+v", p)
		}
	}
	if len(got) != 2 {
		t.Errorf("told of %d publications", len(got))
	}
}

// lastReach is what the latest command of a coalescer told of the reach of its topic.
func lastReach[T any](l *coalesce.Coalescer[T]) *int {
	last, publish := new(int), l.Publish
	l.Publish = func(all []*coalesce.Call[T]) int {
		*last = publish(all)
		return *last
	}
	return last
}

// TestStepPassesOverFew: a step that finds nobody to give a message to ends all the
// same, and the next continues behind it.
func TestStepPassesOverFew(t *testing.T) {
	w := newWideWorld(t, 0, topics.MaxPassed+3)
	w.sh.View(func() {
		f := &topics.Fanout{Record: publication.Record{Topic: w.topic}} // published before anybody subscribed
		if !w.sh.Spread(f, topics.DeferredStep) || f.Cursor != shardtest.SubscriptionID(topics.MaxPassed-1) {
			t.Errorf("the first step ended at %s", f.Cursor)
		}
		if w.sh.Spread(f, topics.DeferredStep) || f.Cursor != shardtest.SubscriptionID(topics.MaxPassed+2) {
			t.Errorf("the second step ended at %s", f.Cursor)
		}
	})
}
