package topics_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/test/soak"
)

// stateOf reports what there is of a web hook and what waits for it.
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
		for _, percent := range []int{r.IntN(100), 0, 100}[:soak.Size(1, 3)] {
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
	e, cmd := shardtest.WebHook(t, shard.Options{Journal: shardtest.JournalOf(t, s, func([]byte) { crash() }), Clock: clock.System})
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

// TestForgottenBySignedRequest: a signed request ends what an unsigned one has left, by which the
// web hook could come back.
func TestForgottenBySignedRequest(t *testing.T) {
	ctx := context.Background()
	s, c := memory.New(), clock.NewVirtual(shardtest.Start)
	e, cmd := shardtest.WebHook(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: c})
	defer e.Close()
	sh := e.Topics.ShardOf(shardtest.TopicARN("t"))
	before := shardtest.CountKeys(t, s, 'S', 0)
	for range 2 { // without a signature, and again
		if err := e.Unsubscribe(ctx, cmd); err != nil {
			t.Fatal(err)
		}
		if got := stateOf(t, e, cmd); got != hookRemoved {
			t.Fatalf("it is %s, want %s", got, hookRemoved)
		}
	}
	for range 2 {
		if err := e.Unsubscribe(ctx, topic.Unsubscribe{Subscription: cmd.Subscription, Authenticated: true, Token: "another"}); err != nil {
			t.Fatal(err)
		}
		if got := stateOf(t, e, cmd); got != "removed" {
			t.Fatalf("it is %s, want nothing to wait for it", got)
		}
	}
	if _, err := e.ConfirmSubscription(ctx, topic.Confirm{Topic: shardtest.TopicARN("t"), Token: cmd.Token}); err == nil {
		t.Error("it came back after the signed request")
	}
	sh.View(func() {
		sh.FlushAppended()
		if got := shardtest.CountKeys(t, s, 'S', 0); got != before-1 || len(sh.Backlogs) != 0 {
			t.Errorf("%d records of subscriptions are left of %d, and %d backlogs", got, before, len(sh.Backlogs))
		}
	})
}

// TestForgottenAfterTheTokensLife: what is left of a web hook that does not come
// back goes when its token ends.
func TestForgottenAfterTheTokensLife(t *testing.T) {
	ctx := context.Background()
	s, c := memory.New(), clock.NewVirtual(shardtest.Start)
	e, cmd := shardtest.WebHook(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: c})
	defer e.Close()
	sh := e.Topics.ShardOf(shardtest.TopicARN("t"))
	before := shardtest.CountKeys(t, s, 'S', 0)
	if err := e.Unsubscribe(ctx, cmd); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Advance(ctx, topic.TokenLife); err != nil {
		t.Fatal(err)
	}
	sh.View(func() {
		sh.FlushAppended()
		if got := shardtest.CountKeys(t, s, 'S', 0); got != before-1 || len(sh.Backlogs) != 0 {
			t.Errorf("%d records of subscriptions are left of %d, and %d backlogs", got, before, len(sh.Backlogs))
		}
	})
}

// TestUnsubscribedWhilePaused: the endpoint of a paused subscription is told that it was removed,
// as nobody can resume that any more. Restored, the subscription is paused as before.
func TestUnsubscribedWhilePaused(t *testing.T) {
	ctx := context.Background()
	s := memory.New()
	o := shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.System}
	e, cmd := shardtest.WebHook(t, o)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(e.Pause(ctx, cmd.Subscription))
	must(e.Unsubscribe(ctx, cmd))
	if got := stateOf(t, e, cmd); got != hookRemoved {
		t.Error(got)
	}
	must(e.Close())
	e = shardtest.Open(t, o)
	defer e.Close()
	if got := stateOf(t, e, cmd); got != hookRemoved {
		t.Errorf("after a restart: %s", got)
	}
	_, err := e.ConfirmSubscription(ctx, topic.Confirm{Topic: shardtest.TopicARN("t"), Token: cmd.Token})
	must(err)
	_, err = e.Publish(ctx, shardtest.TopicARN("t"), shard.Publication{ID: shardtest.MessageID(9), Body: []byte("later")})
	must(err)
	if got := stateOf(t, e, cmd); got != hookRestored {
		t.Errorf("what it gets while it is paused: %s", got)
	}
	must(e.Resume(ctx, cmd.Subscription))
	if got := stateOf(t, e, cmd); got != `there, "later"` {
		t.Error(got)
	}
}
