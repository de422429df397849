package topics_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/shard/topics"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/test/soak"
)

// besideTopic names another topic of the same shard.
func besideTopic(e *shard.Engine, t arn.ARN) arn.ARN {
	for i := 0; ; i++ {
		if other := shardtest.TopicARN(fmt.Sprint("other-", i)); e.Topics.ShardOf(other) == e.Topics.ShardOf(t) {
			return other
		}
	}
}

// checkNothingLeft fails the test on records in the store that belong to no
// subscription or topic that there is.
func checkNothingLeft(t testing.TB, e *shard.Engine, s store.Store) {
	t.Helper()
	e.Journal.Flush()
	live := map[layoutPlace]bool{}
	subscriptions := 0
	for _, sh := range e.Topics.Shards {
		sh.View(func() {
			for sub := range sh.Topics.AllDeliverable() {
				live[layoutPlace{sh.ID, sub.Incarnation}] = true
				subscriptions++
			}
			for inc := range sh.Backlogs {
				if !live[layoutPlace{sh.ID, uint64(inc)}] {
					t.Errorf("backlog %d is left in memory", inc)
				}
			}
			for _, qs := range sh.Loaded() {
				live[layoutPlace{sh.ID, uint64(qs.Incarnation)}] = true
			}
		})
	}
	records := map[string]int{}
	for key := range storetest.Dump(t, s) {
		switch key[2] {
		case 'C', 'D':
			if !live[layoutPlace{binary.BigEndian.Uint16(key), binary.BigEndian.Uint64(key[3:])}] {
				records["orphaned "+string(key[2])]++
			}
		case 'S':
			subscriptions--
		case 'E', 'G', 'P', 'R':
			records[string(key[2])]++
		}
	}
	if len(records) > 0 || subscriptions != 0 {
		t.Errorf("what is left in the store: %v, and %d records of subscriptions too few", records, subscriptions)
	}
}

type layoutPlace struct {
	shard       uint16
	incarnation uint64
}

// TestCrashWhileDeletingTopic deletes a topic whose backlogs take several steps, and
// creates it again at once, and crashes before each commit, keeping none, some or
// all of what was not synced. The topic is there as it was, or it is not; nothing
// of it comes back, nothing of others goes, and in the end nothing is left of it.
func TestCrashWhileDeletingTopic(t *testing.T) {
	const subscriptions = 2*topics.CollectStep + 100
	ctx := context.Background()
	seed := soak.Seeds(t, 1)[0]
	r := rand.New(rand.NewPCG(seed, 4))
	fs := vfs.NewCrashableMem()
	type crashed struct {
		fs                 *vfs.MemFS
		deleted, recreated bool // surely
	}
	var mu sync.Mutex
	var deleting, deleted, recreated bool
	var disks []crashed
	crash := func() {
		mu.Lock()
		defer mu.Unlock()
		if !deleting {
			return
		}
		for _, percent := range []int{r.IntN(101), 0, 100}[:soak.Size(1, 3)] {
			disks = append(disks, crashed{deleted: deleted, recreated: recreated, fs: fs.CrashClone(vfs.CrashCloneCfg{
				UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(r.Uint64(), 5)),
			})})
		}
	}
	now := func(what *bool) {
		mu.Lock()
		defer mu.Unlock()
		*what = true
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	s := shardtest.OpenStore(t, fs)
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, func([]byte) { crash() }), Clock: clock.System})
	large := shardtest.TopicARN("large")
	other := besideTopic(e, large)
	must(e.CreateTopic(ctx, topic.CreateTopic{ARN: large}))
	must(e.CreateTopic(ctx, topic.CreateTopic{ARN: other}))
	others := 0
	for i, run := 0, 0; i < subscriptions; i++ { // runs of incarnations of any length
		shardtest.Subscribe(t, e, large.Resource, fmt.Sprint("q", i), shardtest.SubscriptionID(i))
		if run--; run < 0 {
			shardtest.Subscribe(t, e, other.Resource, fmt.Sprint("q", i), shardtest.SubscriptionID(others))
			others++
			run = r.IntN(1 << r.IntN(9))
		}
	}
	for i, name := range []arn.ARN{large, other} {
		if _, err := e.Publish(ctx, name, shard.Publication{ID: shardtest.MessageID(i), Body: []byte(name.Resource)}); err != nil {
			t.Fatal(err)
		}
	}
	e.AwaitIdle()
	crash()
	now(&deleting)
	must(e.DeleteTopic(ctx, large))
	now(&deleted)
	must(e.CreateTopic(ctx, topic.CreateTopic{ARN: large}))
	shardtest.Subscribe(t, e, large.Resource, "q0", shardtest.SubscriptionID(0))
	if _, err := e.Publish(ctx, large, shard.Publication{ID: shardtest.MessageID(3), Body: []byte("again")}); err != nil {
		t.Fatal(err)
	}
	now(&recreated)
	e.AwaitIdle()
	crash()
	checkNothingLeft(t, e, s)
	must(e.Close())
	crash()
	must(s.Close())

	halfway, before := 0, 0
	for i, disk := range disks {
		s := shardtest.OpenStore(t, disk.fs)
		if n := shardtest.CountKeys(t, s, 'C', 0); n < subscriptions && shardtest.CountKeys(t, s, 'E', 0) == 1 {
			halfway++
		}
		e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.System})
		got := map[string]int{}
		take := func(name arn.ARN, n int) {
			for sub := range n {
				ds, more, err := e.Take(name.Subscription(shardtest.SubscriptionID(sub)), 10)
				if err != nil || more {
					t.Fatal(err, more)
				}
				for _, d := range ds {
					got[string(d.Message.Body)]++
				}
			}
		}
		take(large, subscriptions) // also while it is being reclaimed
		e.AwaitIdle()
		take(large, subscriptions)
		take(other, others)
		_, gone := e.TopicAttributes(ctx, large)
		_, err := e.SubscriptionAttributes(ctx, large.Subscription(shardtest.SubscriptionID(1)))
		listed, _, _ := e.ListSubscriptions(ctx, shardtest.Region, shardtest.Account, "", 10*subscriptions)
		whole := !disk.deleted && gone == nil && err == nil && got["large"] == subscriptions && got["again"] == 0 && len(listed) == subscriptions+others
		rest := fault.KindOf(err) == fault.NotFound && got["large"] == 0 && len(listed) <= others+1
		switch {
		case got[other.Resource] != others:
			t.Errorf("seed %d: crash %d: the other topic has %d messages of %d", seed, i, got[other.Resource], others)
		case whole:
			before++
		case !rest, disk.recreated && (gone != nil || got["again"] != 1 || len(listed) != others+1):
			t.Errorf("seed %d: crash %d, deleted: %v, recreated: %v: %v, %v, messages %v, %d subscriptions and %d others",
				seed, i, disk.deleted, disk.recreated, gone, err, got, len(listed), others)
		}
		checkNothingLeft(t, e, s)
		must(e.Close())
		must(s.Close())
	}
	if len(disks) < soak.Size(5, 15) || halfway < soak.Size(2, 6) || before == 0 {
		t.Errorf("%d crashes, %d of them half-way, %d before: the test tests nothing", len(disks), halfway, before)
	}
}

// TestDeletedTopicStandsStill: from the answer on nothing comes out of a topic's
// backlogs though they are still there, whatever was under way, and a topic of the
// same name with the same subscriptions has nothing of them.
func TestDeletedTopicStandsStill(t *testing.T) {
	for _, twoStep := range []bool{false, true} {
		ctx := context.Background()
		c, s := clock.NewVirtual(shardtest.Start), memory.New()
		e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: c, TwoStep: twoStep})
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(e.CreateTopic(ctx, topic.CreateTopic{ARN: shardtest.TopicARN("t")}))
		must(e.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("q")}))
		sub := shardtest.Subscribe(t, e, "t", "q", shardtest.SubscriptionID(1))
		publish := func(body string) {
			t.Helper()
			if _, err := e.Publish(ctx, shardtest.TopicARN("t"), shard.Publication{ID: shardtest.MessageID(1), Body: []byte(body)}); err != nil {
				t.Fatal(err)
			}
		}
		for range 6 {
			publish("old")
		}
		ds := shardtest.TakeAll(t, e, sub)[:5]
		e.Retry(ds[0], backlog.Attempt{Outcome: "server-error"}, shardtest.Start.Add(time.Second))

		sh := e.Topics.ShardOf(shardtest.TopicARN("t"))
		sh.View(func() {
			*sh.Reclaiming() = true // the steps wait for us
		})
		must(e.DeleteTopic(ctx, shardtest.TopicARN("t")))
		if _, err := e.TopicAttributes(ctx, shardtest.TopicARN("t")); fault.KindOf(err) != fault.NotFound {
			t.Errorf("the attributes of what was deleted: %v", err)
		}
		if _, err := e.Publish(ctx, shardtest.TopicARN("t"), shard.Publication{ID: shardtest.MessageID(1), Body: []byte("late")}); fault.KindOf(err) != fault.NotFound {
			t.Errorf("a publish to what was deleted: %v", err)
		}
		p := &shardtest.Pump{Engine: e, NewID: func() message.ID { return shardtest.MessageID(9) }}
		e.SetConsumer("sns", p)
		m := shardtest.NewMessage(7, "old")
		must(e.Transfer(ctx, ds[1], shardtest.QueueARN("q"), m, backlog.Ending{State: backlog.DeliveryDelivered}))
		if info, err := e.QueueInfo(ctx, shardtest.QueueARN("q")); err != nil || info.Counts.Visible != 0 {
			t.Errorf("a message of what was deleted is in a queue: %+v, %v", info.Counts, err)
		}
		e.Release(ds[2])
		e.Delivered(ds[3], backlog.Attempt{Outcome: "success"})
		if e.Current(ds[4]) {
			t.Error("a delivery of what was deleted is to be made")
		}
		if _, err := e.Remove(ctx, ds[4], shardtest.QueueARN("q"), m, backlog.DeliveryDeadLetter, ""); fault.KindOf(err) != fault.NotFound {
			t.Errorf("a delivery of what was deleted is evicted: %v", err)
		}
		if _, err := c.Advance(ctx, 30*24*time.Hour); err != nil { // retries, leases, retention
			t.Fatal(err)
		}
		if ds := shardtest.TakeAll(t, e, sub); len(ds) > 0 || p.Run(t) > 0 || len(sh.Timers) > 0 {
			t.Errorf("%d messages come out of what was deleted, %d timers run", len(ds), len(sh.Timers))
		}
		must(e.CreateTopic(ctx, topic.CreateTopic{ARN: shardtest.TopicARN("t")}))
		if subs, _, err := e.ListSubscriptionsByTopic(ctx, shardtest.TopicARN("t"), "", 10); err != nil || len(subs) > 0 {
			t.Errorf("the new topic has %d subscriptions, %v", len(subs), err)
		}
		shardtest.Subscribe(t, e, "t", "q", shardtest.SubscriptionID(1))
		publish("new")
		p.Run(t)
		left := shardtest.CountKeys(t, s, 'C', 0)
		sh.View(func() {
			*sh.Reclaiming() = false
			sh.Reclaim()
		})
		e.AwaitIdle()
		e.Journal.Flush()
		if n := shardtest.CountKeys(t, s, 'C', 0); n != left-1 {
			t.Errorf("of %d backlogs and queues %d are left", left, n)
		}
		checkNothingLeft(t, e, s)
		publish("newer")
		p.Run(t)
		got, err := e.Receive(ctx, queues.ReceiveRequest{Queue: shardtest.QueueARN("q"), Max: 10})
		if err != nil || len(got) != 2 || string(got[0].Body) != "new" || string(got[1].Body) != "newer" {
			t.Errorf("the queue has got %d messages, %v", len(got), err)
		}
		must(e.Close())
	}
}

// TestDeleteLargeTopic: a topic with more backlogs than a commit could name goes
// in small commits.
func TestDeleteLargeTopic(t *testing.T) {
	subscriptions := soak.Size(5_000, 120_000)
	ctx := context.Background()
	s := memory.New()
	largest := 0
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, shardtest.Decodable(t, &largest)), Clock: clock.System})
	defer e.Close()
	large := shardtest.TopicARN("large")
	other := besideTopic(e, large)
	for _, name := range []arn.ARN{large, other} {
		if err := e.CreateTopic(ctx, topic.CreateTopic{ARN: name}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range subscriptions {
		shardtest.Subscribe(t, e, large.Resource, fmt.Sprint("q", i), shardtest.SubscriptionID(i))
		if i%2 == 0 { // so that there are many runs of incarnations
			shardtest.Subscribe(t, e, other.Resource, fmt.Sprint("q", i), shardtest.SubscriptionID(i))
		}
	}
	if _, err := e.Publish(ctx, large, shard.Publication{ID: shardtest.MessageID(1), Body: []byte("to all")}); err != nil {
		t.Fatal(err)
	}
	e.AwaitIdle()
	e.Journal.Flush()
	largest = 0
	if err := e.DeleteTopic(ctx, large); err != nil {
		t.Fatal(err)
	}
	e.AwaitIdle()
	checkNothingLeft(t, e, s)
	if largest > 256<<10 {
		t.Errorf("the largest commit has %d bytes", largest)
	}
	if left, err := e.TopicAttributes(ctx, other); err != nil || left["SubscriptionsConfirmed"] != fmt.Sprint(subscriptions/2) {
		t.Errorf("the other topic has %s subscriptions, %v", left["SubscriptionsConfirmed"], err)
	}
}

// TestDeletedTopicLeavesMemory: a topic that was deleted leaves memory, also if
// subscriptions of it, which were deleted before, had backlogs.
func TestDeletedTopicLeavesMemory(t *testing.T) {
	ctx := context.Background()
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: clock.NewVirtual(shardtest.Start)})
	defer e.Close()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(e.CreateTopic(ctx, topic.CreateTopic{ARN: shardtest.TopicARN("t")}))
	before := shardtest.Subscribe(t, e, "t", "q1", shardtest.SubscriptionID(1))
	shardtest.Subscribe(t, e, "t", "q2", shardtest.SubscriptionID(2))
	if _, err := e.Publish(ctx, shardtest.TopicARN("t"), shard.Publication{ID: shardtest.MessageID(1), Body: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	for _, d := range shardtest.TakeAll(t, e, before) {
		e.Delivered(d, backlog.Attempt{Outcome: "success"})
	}
	find := func() (p weak.Pointer[topic.Topic]) {
		sh := e.Topics.ShardOf(shardtest.TopicARN("t"))
		sh.View(func() {
			found, _ := sh.Topics.Topic(shardtest.TopicARN("t"))
			p = weak.Make(found)
		})
		return p
	}
	deleted := find()
	must(e.Unsubscribe(ctx, topic.Unsubscribe{Subscription: before, Authenticated: true}))
	must(e.DeleteTopic(ctx, shardtest.TopicARN("t")))
	e.AwaitIdle()
	runtime.GC()
	if deleted.Value() != nil {
		t.Error("a topic that was deleted is still in memory")
	}
}

// TestTopicsComeAndGo: topics of one shard are deleted and created again while
// others publish, subscribe and deliver, across restarts. What was answered before
// a deletion comes out of no backlog after its answer, what is published after a
// creation comes, and nothing is left of what was deleted.
func TestTopicsComeAndGo(t *testing.T) {
	ctx := context.Background()
	seed := soak.Seeds(t, 1)[0]
	s := shardtest.NewStore(t)
	defer s.Close()
	o := shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.System}
	e := shardtest.Open(t, o)
	names := []arn.ARN{shardtest.TopicARN("t0")}
	names = append(names, besideTopic(e, names[0]))
	var ids, deletions atomic.Int64
	take := func(sub arn.ARN) (ds []*backlog.Delivery) {
		ds, _, err := e.Take(sub, 1000)
		if err != nil {
			t.Error(err)
		}
		return ds
	}
	for round := range soak.Size(1, 6) {
		var clients sync.WaitGroup
		for i, name := range names {
			clients.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(10*round+i)))
				for range 40 {
					if err := e.CreateTopic(ctx, topic.CreateTopic{ARN: name}); err != nil {
						t.Error(err)
					}
					var subs []arn.ARN
					for range 1 + r.IntN(40) {
						id := int(ids.Add(1))
						subs = append(subs, shardtest.Subscribe(t, e, name.Resource, fmt.Sprint("q", id), shardtest.SubscriptionID(id)))
					}
					messages := 1 + r.IntN(5)
					for range messages {
						if _, err := e.Publish(ctx, name, shard.Publication{ID: shardtest.MessageID(1), Body: []byte("x")}); err != nil {
							t.Error(err)
						}
					}
					for _, sub := range subs[:1+r.IntN(min(4, len(subs)))] {
						own := 0
						for _, d := range take(sub) {
							if string(d.Message.Body) == "x" {
								own++
							}
							e.Delivered(d, backlog.Attempt{Outcome: "success"})
						}
						if own != messages {
							t.Errorf("%s has %d messages of %d", sub, own, messages)
						}
						if _, err := e.Publish(ctx, name, shard.Publication{ID: shardtest.MessageID(1), Body: []byte("waits")}); err != nil {
							t.Error(err)
						}
					}
					if r.IntN(4) == 0 {
						if err := e.Unsubscribe(ctx, topic.Unsubscribe{Subscription: subs[0], Authenticated: true}); err != nil {
							t.Error(err)
						}
					}
					if err := e.DeleteTopic(ctx, name); err != nil {
						t.Error(err)
					}
					deletions.Add(1)
					for _, sub := range subs {
						if ds := take(sub); len(ds) > 0 {
							t.Errorf("%s has %d messages of a topic that was deleted", sub, len(ds))
						}
					}
				}
			})
			clients.Go(func() { // whose publishes and subscriptions come at any moment
				r := rand.New(rand.NewPCG(seed, uint64(10*round+i+5)))
				for before := deletions.Load(); deletions.Load() < before+30; {
					_, err := e.Publish(ctx, names[r.IntN(len(names))], shard.Publication{ID: shardtest.MessageID(2), Body: []byte("beside")})
					if err != nil && fault.KindOf(err) != fault.NotFound {
						t.Error(err)
					}
				}
			})
		}
		clients.Wait()
		if err := e.Close(); err != nil { // what is being reclaimed is left to the next
			t.Fatal(err)
		}
		e = shardtest.Open(t, o)
	}
	e.AwaitIdle()
	checkNothingLeft(t, e, s)
	for _, space := range []byte("CDST") {
		if n := shardtest.CountKeys(t, s, space, 0); n > 0 {
			t.Errorf("%d records of %q are left", n, space)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestUnownedCountersAreRefused: counters that no deletion left behind are a fault
// of this program, and are not dropped.
func TestUnownedCountersAreRefused(t *testing.T) {
	ctx := context.Background()
	s := memory.New()
	o := shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.NewVirtual(shardtest.Start)}
	e := shardtest.Open(t, o)
	if err := e.CreateTopic(ctx, topic.CreateTopic{ARN: shardtest.TopicARN("t")}); err != nil {
		t.Fatal(err)
	}
	shardtest.Subscribe(t, e, "t", "q", shardtest.SubscriptionID(1))
	if _, err := e.Publish(ctx, shardtest.TopicARN("t"), shard.Publication{ID: shardtest.MessageID(1), Body: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	sh := e.Topics.ShardOf(shardtest.TopicARN("t"))
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	o.Logger = slog.New(slog.DiscardHandler)
	for _, c := range []struct{ mark, want string }{
		{"", "nobody owns them"},
		{"short", "unreadable"},
		{string(make([]byte, 8)), "nobody owns them"}, // of before
		{string([]byte{7: 1}), ""},
	} {
		var b mutation.Batch
		for key := range storetest.Dump(t, s) {
			if key[2] == 'S' {
				b.Delete(key)
			}
		}
		if c.mark != "" {
			b.Set(topics.DeletedTopicsKey(sh.ID), []byte(c.mark))
		}
		if err := s.Apply(store.Sync, &b); err != nil {
			t.Fatal(err)
		}
		e, err := shard.Open(o)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("with the mark %q: %v", c.mark, err)
		}
		if err == nil {
			e.AwaitIdle()
			checkNothingLeft(t, e, s)
			e.Close()
		}
	}
}
