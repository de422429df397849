package shard_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/test/soak"
)

// hookEngine is an engine with a confirmed web hook that has a message waiting.
func hookEngine(t *testing.T, o shard.Options) (*shard.Engine, topic.Unsubscribe) {
	t.Helper()
	ctx := context.Background()
	e := shardtest.Open(t, o)
	if err := e.CreateTopic(ctx, topic.CreateTopic{ARN: shardtest.TopicARN("t")}); err != nil {
		t.Fatal(err)
	}
	sub, err := e.Subscribe(ctx, topic.Subscribe{
		Topic: shardtest.TopicARN("t"), Owner: shardtest.Account, Protocol: "http", Endpoint: "http://hook/", ID: shardtest.SubscriptionID(1), Token: "first",
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.ConfirmSubscription(ctx, topic.Confirm{Topic: shardtest.TopicARN("t"), Token: "first"}); err != nil {
		t.Fatal(err)
	}
	ds, _, err := e.Take(sub.ARN, 1)
	if err != nil || len(ds) != 1 {
		t.Fatalf("took %d confirmations: %v", len(ds), err)
	}
	e.Delivered(ds[0], backlog.Attempt{})
	if _, err := e.Publish(ctx, shardtest.TopicARN("t"), shard.Publication{ID: shardtest.MessageID(1), Body: []byte("waits")}); err != nil {
		t.Fatal(err)
	}
	return e, topic.Unsubscribe{Subscription: sub.ARN, Token: "regret"}
}

// stateOf tells what there is of a web hook and what waits for it.
func stateOf(t *testing.T, e *shard.Engine, cmd topic.Unsubscribe) (state string) {
	t.Helper()
	ctx := context.Background()
	state = "removed"
	if _, err := e.SubscriptionAttributes(ctx, cmd.Subscription); err == nil {
		state = "there"
	}
	ds, more, err := e.Take(cmd.Subscription, 10)
	if err != nil || more {
		t.Fatalf("take: %v, %v", more, err)
	}
	for _, d := range ds {
		state += fmt.Sprintf(", %q", d.Message.Body[:5])
		if kind := d.Message.Notice.Kind; kind != message.Notification {
			state += fmt.Sprintf(" of kind %d with %s", kind, d.Message.Notice.Token)
		}
		e.Release(d)
	}
	return state
}

const (
	hookThere    = `there, "waits"`
	hookRemoved  = `removed, "You h" of kind 3 with regret`
	hookRestored = `there`
)

// TestCrashWhileUnsubscribing: a web hook is removed, with what waits for it,
// in the same commit that says so to it, and is back, with an empty backlog, in
// one commit, too.
func TestCrashWhileUnsubscribing(t *testing.T) {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(soak.Seeds(t, 1)[0], 6))
	fs := vfs.NewCrashableMem()
	type crashed struct {
		fs   *vfs.MemFS
		want map[string]bool
	}
	var mu sync.Mutex
	var disks []crashed
	var possible []string
	crash := func(states ...string) {
		mu.Lock()
		defer mu.Unlock()
		if states == nil {
			states = possible
		}
		if states == nil {
			return
		}
		want := map[string]bool{}
		for _, s := range states {
			want[s] = true
		}
		for _, percent := range []int{r.IntN(100), 0, 100}[:soak.Unraced(3, 1)] {
			disks = append(disks, crashed{want: want, fs: fs.CrashClone(vfs.CrashCloneCfg{
				UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(r.Uint64(), 5)),
			})})
		}
	}
	during := func(states ...string) {
		mu.Lock()
		defer mu.Unlock()
		possible = states
	}
	s := shardtest.OpenStore(t, fs)
	e, cmd := hookEngine(t, shard.Options{Journal: shardtest.JournalOf(t, s, func([]byte) { crash() }), Clock: clock.System})
	during(hookThere, hookRemoved)
	if err := e.Unsubscribe(ctx, cmd); err != nil {
		t.Fatal(err)
	}
	during(hookRemoved)
	crash()
	during(hookRemoved, hookRestored)
	if _, err := e.ConfirmSubscription(ctx, topic.Confirm{Topic: shardtest.TopicARN("t"), Token: cmd.Token}); err != nil {
		t.Fatal(err)
	}
	during(hookRestored)
	crash()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	seen := map[string]bool{}
	for i, disk := range disks {
		s := shardtest.OpenStore(t, disk.fs)
		e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.System})
		got := stateOf(t, e, cmd)
		if seen[got] = true; !disk.want[got] {
			t.Errorf("crash %d: %s, want one of %v", i, got, disk.want)
		}
		if got == hookRemoved {
			if _, err := e.ConfirmSubscription(ctx, topic.Confirm{Topic: shardtest.TopicARN("t"), Token: cmd.Token}); err != nil {
				t.Errorf("crash %d: it cannot come back: %v", i, err)
			}
			if got := stateOf(t, e, cmd); got != hookRestored {
				t.Errorf("crash %d: came back as %s", i, got)
			}
		}
		e.Close()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != 3 {
		t.Errorf("of the states before, between and after, only %v were met", seen)
	}
}

// TestForgottenAfterTheTokensLife: what is left of a web hook that does not come
// back goes when its token ends.
func TestForgottenAfterTheTokensLife(t *testing.T) {
	ctx := context.Background()
	s, c := memory.New(), clock.NewVirtual(shardtest.Start)
	e, cmd := hookEngine(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: c})
	defer e.Close()
	sh := e.Topics.ShardOf(shardtest.TopicARN("t"))
	before := shardtest.CountKeys(t, s, 'S', 0)
	if err := e.Unsubscribe(ctx, cmd); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Advance(ctx, topic.TokenLife); err != nil {
		t.Fatal(err)
	}
	sh.Mu.Lock()
	defer sh.Mu.Unlock()
	sh.Readable()
	if got := shardtest.CountKeys(t, s, 'S', 0); got != before-1 || len(sh.Backlogs) != 0 {
		t.Errorf("%d records of subscriptions are left of %d, and %d backlogs", got, before, len(sh.Backlogs))
	}
}

// TestSignedWhenReceived: a message without its signature comes into a queue, is
// moved and dies as it is, and is signed each time that somebody receives it.
func TestSignedWhenReceived(t *testing.T) {
	ctx := context.Background()
	for _, twoStep := range []bool{false, true} {
		c := clock.NewVirtual(shardtest.Start)
		var ids int
		signing, publishing := 0, true
		var mu sync.Mutex
		o := shard.Options{
			Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: c, TwoStep: twoStep, NewID: func() message.ID { ids++; return shardtest.MessageID(1000 + ids) },
			Sign: func(body []byte, u *message.Unsigned) error {
				mu.Lock()
				defer mu.Unlock()
				if signing++; publishing {
					t.Error("signed on the way of a publish")
				}
				copy(body[u.Offset:], u.Digest)
				return nil
			},
		}
		o.Render = func(n *message.Message) (*message.Message, error) {
			return &message.Message{
				ID: o.NewID(), Body: append([]byte("?? "), n.Body...),
				Unsigned: &message.Unsigned{Key: [16]byte{1}, Version: 2, Digest: []byte("ok")},
			}, nil
		}
		e := shardtest.Open(t, o)
		if err := e.CreateTopic(ctx, topic.CreateTopic{ARN: shardtest.TopicARN("t")}); err != nil {
			t.Fatal(err)
		}
		for _, spec := range []queues.QueueSpec{
			{ARN: shardtest.QueueARN("dead")},
			{ARN: shardtest.QueueARN("q"), Attributes: map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + shardtest.QueueARN("dead").String() + `","maxReceiveCount":2}`}},
		} {
			if err := e.CreateQueue(ctx, spec); err != nil {
				t.Fatal(err)
			}
		}
		p := &pump{engine: e, newID: o.NewID}
		e.SetConsumer("sns", p)
		sub := shardtest.Subscribe(t, e, "t", "q", shardtest.SubscriptionID(1))
		for i := range 3 {
			if _, err := e.Publish(ctx, shardtest.TopicARN("t"), shard.Publication{ID: shardtest.MessageID(i), Body: []byte("text")}); err != nil {
				t.Fatal(err)
			}
		}
		if twoStep {
			for _, d := range takeAll(t, e, sub) {
				m, _ := o.Render(d.Message)
				if err := e.Transfer(ctx, d, backlog.Attempt{}, shardtest.QueueARN("q"), m, backlog.DeliveryDelivered, ""); err != nil {
					t.Fatal(err)
				}
			}
		}
		publishing = false
		for round, name := range []string{"q", "q", "q", "dead"} {
			got, err := e.Receive(ctx, queues.ReceiveRequest{Queue: shardtest.QueueARN(name), Max: 10})
			e.Background.Wait()
			if err != nil {
				t.Fatal(err)
			}
			if round == 2 { // they die
				continue
			}
			if len(got) != 3 {
				t.Fatalf("%d messages came from %s", len(got), name)
			}
			for _, m := range got {
				want := message.Message{Body: []byte("ok text")}
				want.Seal()
				if string(m.Body) != "ok text" || m.BodyMD5 != want.BodyMD5 || m.Unsigned != nil {
					t.Errorf("from %s came %q, digest %x, %v", name, m.Body, m.BodyMD5, m.Unsigned)
				}
			}
		}
		if signing != 9 {
			t.Errorf("signed %d times", signing)
		}
		e.Close()
	}
}

func takeAll(t *testing.T, e *shard.Engine, sub arn.ARN) []*backlog.Delivery {
	t.Helper()
	ds, more, err := e.Take(sub, 10)
	if err != nil || more {
		t.Fatalf("take: %v, %v", more, err)
	}
	return ds
}

// TestSigningKeysAreKept: a key is there after a crash right behind its answer.
func TestSigningKeysAreKept(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s := shardtest.OpenStore(t, fs)
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.System})
	if err := e.PutSigningKey([16]byte{7}, []byte("private")); err != nil {
		t.Fatal(err)
	}
	disk := fs.CrashClone(vfs.CrashCloneCfg{})
	e.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = shardtest.OpenStore(t, disk)
	e = shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.System})
	keys, err := e.SigningKeys()
	if err != nil || len(keys) != 1 || string(keys[[16]byte{7}]) != "private" {
		t.Errorf("keys %q: %v", keys, err)
	}
	e.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestSigningKeysBesideReplays: the shard that has the keys may also have topics of
// which something is being replayed.
func TestSigningKeysBesideReplays(t *testing.T) {
	ctx := context.Background()
	s := memory.New()
	full := false
	o := shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.NewVirtual(shardtest.Start), Full: func() bool { return full }}
	e := shardtest.Open(t, o)
	name := shardtest.TopicARN("0.fifo")
	for i := 1; e.Topics.ShardOf(name).ID != 0; i++ {
		name = shardtest.TopicARN(fmt.Sprint(i, ".fifo"))
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(e.PutSigningKey([16]byte{7}, []byte("private")))
	check(e.CreateTopic(ctx, topic.CreateTopic{ARN: name, Attributes: map[string]string{
		"FifoTopic": "true", "ArchivePolicy": `{"MessageRetentionPeriod":"1"}`,
	}}))
	sub := shardtest.Subscribe(t, e, name.Resource, "q", shardtest.SubscriptionID(1))
	full = true // so that the replay waits
	check(e.SetSubscriptionAttribute(ctx, sub, "ReplayPolicy", `{"PointType":"Timestamp","StartingPoint":"2025-12-31T23:59:00.000Z"}`))
	check(e.Close())
	full = false
	e = shardtest.Open(t, o)
	defer e.Close()
	keys, err := e.SigningKeys()
	if err != nil || len(keys) != 1 || string(keys[[16]byte{7}]) != "private" {
		t.Errorf("keys %q: %v", keys, err)
	}
}

// TestSignatureIsKeptWithTheAttempts: a restart hands it out again, and the
// record of an earlier version is read.
func TestSignatureIsKeptWithTheAttempts(t *testing.T) {
	s, c := memory.New(), clock.NewVirtual(shardtest.Start)
	e, cmd := hookEngine(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: c})
	take := func() *backlog.Delivery {
		t.Helper()
		ds, _, err := e.Take(cmd.Subscription, 1)
		if err != nil || len(ds) != 1 {
			t.Fatalf("took %d: %v", len(ds), err)
		}
		return ds[0]
	}
	for _, want := range []string{"", "signed", "signed"} {
		d := take()
		if string(d.Signature) != want || d.History.Total != d.Attempt-1 {
			t.Errorf("attempt %d has %q and %d attempts behind it", d.Attempt, d.Signature, d.History.Total)
		}
		d.Signature = []byte("signed")
		e.Retry(d, backlog.Attempt{At: shardtest.Start, Outcome: "server-error"}, shardtest.Start)
		e.Close()
		e = shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: c})
	}
	e.Close()

	h := backlog.History{Total: 1, First: []backlog.Attempt{{At: shardtest.Start, Outcome: "success"}}}
	record := h.Encode()
	first := append([]byte{1}, record[2:]...) // which had no signature, not even its length
	if got, err := backlog.DecodeHistory(first); err != nil || got.Total != 1 || len(got.First) != 1 || got.Signature != nil {
		t.Errorf("the first version is read as %+v", got)
	}
}
