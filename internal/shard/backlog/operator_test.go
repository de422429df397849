package backlog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/queues/encryption"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/storetest"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/test/soak"
)

// operatorWorld is a topic with one HTTP endpoint and a queue for dead letters.
type operatorWorld struct {
	*shard.Engine
	t     *testing.T
	clock *clock.Virtual
	store store.Store
	sub   arn.ARN
	pump  *shardtest.Pump
	ids   int

	attempts []string
	fail     bool

	encryption encryption.Keys // as of the next reopen
	observe    func(sealed []byte)
}

func newOperatorWorld(t *testing.T) *operatorWorld {
	ctx := context.Background()
	w := &operatorWorld{t: t, clock: clock.NewVirtual(shardtest.Start), store: shardtest.NewStore(t), fail: true}
	t.Cleanup(func() {
		w.Close()
		w.store.Close()
	})
	w.pump = &shardtest.Pump{Decide: func(d *backlog.Delivery) {
		w.attempts = append(w.attempts, fmt.Sprintf("%s %d", d.Message.Body, d.Attempt))
		if !w.fail {
			w.Delivered(d, backlog.Attempt{At: w.clock.Now(), Outcome: "success"})
			return
		}
		w.Retry(d, backlog.Attempt{At: w.clock.Now(), Outcome: "server-error"}, w.clock.Now().Add(time.Minute))
	}}
	w.open()
	w.check(w.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("dlq")}))
	w.check(w.CreateTopic(ctx, topic.CreateTopic{ARN: shardtest.TopicARN("t")}))
	sub, err := w.Subscribe(ctx, topic.Subscribe{
		Topic: shardtest.TopicARN("t"), Owner: shardtest.Account, Protocol: "http", Endpoint: "http://127.0.0.1:1/x", ID: shardtest.SubscriptionID(1), Token: "secret",
	})
	w.check(err)
	w.sub = sub.ARN
	w.fail = false
	w.pump.Run(t) // the confirmation
	w.fail, w.attempts = true, nil
	_, err = w.ConfirmSubscription(ctx, topic.Confirm{Topic: shardtest.TopicARN("t"), Token: "secret"})
	w.check(err)
	return w
}

func (w *operatorWorld) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *operatorWorld) open() {
	w.Engine = shardtest.Open(w.t, shard.Options{Journal: shardtest.JournalOf(w.t, w.store, w.observe), Clock: w.clock, Encryption: w.encryption})
	w.pump.Engine = w.Engine
	w.pump.Forget()
	w.SetConsumer("sns", w.pump)
}

func (w *operatorWorld) reopen() {
	w.Close()
	w.open()
}

func (w *operatorWorld) publish(n int) {
	for range n {
		w.ids++
		_, err := w.Publish(context.Background(), shardtest.TopicARN("t"), shard.Publication{ID: shardtest.MessageID(w.ids), Body: []byte(fmt.Sprintf("m%d", w.ids))})
		w.check(err)
	}
}

// made runs what is due and gives the attempts that were made.
func (w *operatorWorld) made() (out []string) {
	w.pump.Run(w.t)
	out, w.attempts = w.attempts, nil
	return out
}

func (w *operatorWorld) advance(d time.Duration) {
	_, err := w.clock.Advance(context.Background(), d)
	w.check(err)
}

func (w *operatorWorld) backlog() string {
	w.t.Helper()
	b, err := w.Backlog(context.Background(), w.sub)
	w.check(err)
	oldest := "none"
	if !b.Oldest.IsZero() {
		oldest = b.Now.Sub(b.Oldest).String()
	}
	return fmt.Sprintf("%d due, %d waiting, %d in flight, oldest %s, paused %v", b.Due, b.Waiting, b.InFlight, oldest, b.Subscription.PausedAt != 0)
}

func (w *operatorWorld) expect(what, got, want string) {
	w.t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		w.t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestBacklogCounts(t *testing.T) {
	w := newOperatorWorld(t)
	w.expect("at first", w.backlog(), "0 due, 0 waiting, 0 in flight, oldest none, paused false")
	w.publish(1)
	w.advance(10 * time.Second)
	w.publish(2)
	w.expect("fresh", w.backlog(), "3 due, 0 waiting, 0 in flight, oldest 10s, paused false")
	taken, _, err := w.Take(w.sub, 1)
	w.check(err)
	w.expect("one taken", w.backlog(), "2 due, 0 waiting, 1 in flight, oldest 10s, paused false")
	w.Retry(taken[0], backlog.Attempt{Outcome: "server-error"}, w.clock.Now().Add(time.Hour))
	w.expect("one failed", w.backlog(), "2 due, 1 waiting, 0 in flight, oldest 10s, paused false")
	w.reopen()
	w.expect("after a restart", w.backlog(), "2 due, 1 waiting, 0 in flight, oldest 10s, paused false")
	w.fail = false
	w.made()
	w.expect("only the first is left", w.backlog(), "0 due, 1 waiting, 0 in flight, oldest 10s, paused false")
	w.advance(time.Hour)
	w.made()
	w.expect("nothing is left", w.backlog(), "0 due, 0 waiting, 0 in flight, oldest none, paused false")
	if _, err := w.Backlog(context.Background(), shardtest.TopicARN("t").Subscription(shardtest.SubscriptionID(9))); fault.KindOf(err) != fault.NotFound {
		t.Errorf("of no subscription: %v", err)
	}
}

func TestPauseWaits(t *testing.T) {
	ctx := context.Background()
	w := newOperatorWorld(t)
	w.publish(1)
	w.expect("before", strings.Join(w.made(), ", "), "m1 1")
	w.check(w.Pause(ctx, w.sub))
	w.advance(time.Second)
	w.check(w.Pause(ctx, w.sub)) // again changes nothing
	w.publish(2)
	w.advance(2 * time.Minute)
	w.expect("paused", strings.Join(w.made(), ", "), "")
	w.reopen()
	w.publish(1)
	w.advance(time.Minute)
	w.expect("paused, after a restart", strings.Join(w.made(), ", "), "")
	w.expect("the backlog", w.backlog(), "4 due, 0 waiting, 0 in flight, oldest 3m1s, paused true")
	w.check(w.Resume(ctx, w.sub))
	w.expect("resumed", strings.Join(w.made(), ", "), "m2 1, m3 1, m1 2, m4 1")
	b, err := w.Backlog(ctx, w.sub)
	w.check(err)
	if want := shardtest.Start.Add(3*time.Minute + time.Second).UnixMilli(); b.Subscription.ResumedAt != want {
		t.Errorf("resumed at %d, want %d", b.Subscription.ResumedAt, want)
	}
	w.advance(time.Second)
	w.check(w.Resume(ctx, w.sub))
	if again, _ := w.Backlog(ctx, w.sub); again.Subscription.ResumedAt != b.Subscription.ResumedAt {
		t.Error("another Resume changed something")
	}
	for _, f := range []func(context.Context, arn.ARN) error{w.Pause, w.Resume} {
		if err := f(ctx, shardtest.TopicARN("t").Subscription(shardtest.SubscriptionID(9))); fault.KindOf(err) != fault.NotFound {
			t.Errorf("of no subscription: %v", err)
		}
	}
}

// TestPauseWithATakeUnderWay: what was given back while paused is offered again
// once it is over, before what was published later.
func TestPauseWithATakeUnderWay(t *testing.T) {
	ctx := context.Background()
	w := newOperatorWorld(t)
	w.publish(3)
	w.pump.Forget()
	taken, _, err := w.Take(w.sub, 2)
	w.check(err)
	w.check(w.Pause(ctx, w.sub))
	for _, d := range taken {
		w.Release(d)
	}
	w.expect("paused", strings.Join(w.made(), ", "), "")
	w.check(w.Resume(ctx, w.sub))
	w.expect("resumed", strings.Join(w.made(), ", "), "m1 1, m2 1, m3 1")
}

func TestRetryNow(t *testing.T) {
	ctx := context.Background()
	w := newOperatorWorld(t)
	w.publish(3)
	w.made()
	w.advance(time.Second)
	list := func() (ids []string) {
		infos, err := w.Deliveries(ctx, w.sub, 10)
		w.check(err)
		for _, info := range infos {
			if info.ID != "" {
				ids = append(ids, info.ID)
			}
		}
		return ids
	}
	ids := list()
	changed, err := w.RetryNow(ctx, w.sub, ids[1])
	if !changed || err != nil {
		t.Errorf("retry: %v, %v", changed, err)
	}
	if changed, err = w.RetryNow(ctx, w.sub, ids[1]); changed || err != nil {
		t.Errorf("again: %v, %v", changed, err)
	}
	w.reopen()
	w.expect("one", strings.Join(w.made(), ", "), "m2 2")
	w.advance(30 * time.Second)
	n, err := w.RetryAllNow(ctx, w.sub)
	if n != 3 || err != nil {
		t.Errorf("retry all: %d, %v", n, err)
	}
	if n, err = w.RetryAllNow(ctx, w.sub); n != 0 || err != nil {
		t.Errorf("again: %d, %v", n, err)
	}
	w.reopen()
	w.expect("all", strings.Join(w.made(), ", "), "m1 2, m2 3, m3 2")
	w.fail = false
	w.advance(time.Minute)
	w.made()
	for _, id := range append(ids, "", "0", "0-", "0-x", "0-1 ", "00-1", "0-18446744073709551616", "9-1") {
		if _, err := w.RetryNow(ctx, w.sub, id); fault.KindOf(err) != fault.NotFound {
			t.Errorf("of the delivery %q, which is over: %v", id, err)
		}
	}
	if _, err := w.RetryAllNow(ctx, shardtest.TopicARN("t").Subscription(shardtest.SubscriptionID(9))); fault.KindOf(err) != fault.NotFound {
		t.Errorf("of no subscription: %v", err)
	}
}

// A subscription to which nothing was published has no backlog, and nothing to be retried.
func TestRetryAllOfNothing(t *testing.T) {
	w := newOperatorWorld(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if n, err := w.RetryAllNow(ctx, w.sub); n != 0 || err != nil {
		t.Errorf("retried %d, %v", n, err)
	}
}

// TestRetryAllTakesSteps: more than fit into one commit, and more than memory
// holds, in order.
func TestRetryAllTakesSteps(t *testing.T) {
	w := newOperatorWorld(t)
	n := soak.Size(2, 5)*backlog.OperatorStep + 7
	w.publish(n)
	w.made()
	w.advance(time.Second)
	if got, err := w.RetryAllNow(context.Background(), w.sub); got != n || err != nil {
		t.Fatalf("retried %d of %d, %v", got, n, err)
	}
	got := w.made()
	if len(got) != n || got[0] != "m1 2" || got[n-1] != fmt.Sprintf("m%d 2", n) {
		t.Errorf("%d attempts, the first %s, the last %s", len(got), got[0], got[len(got)-1])
	}
	w.expect("the backlog", w.backlog(), fmt.Sprintf("0 due, %d waiting, 0 in flight, oldest 1s, paused false", n))
}

// TestRetryAllOfGroups: of a FIFO topic's subscription, with more groups than fit
// into one commit.
func TestRetryAllOfGroups(t *testing.T) {
	ctx := context.Background()
	w := newOperatorWorld(t)
	w.check(w.CreateTopic(ctx, topic.CreateTopic{ARN: shardtest.TopicARN("t.fifo"), Attributes: map[string]string{"FifoTopic": "true"}}))
	w.check(w.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("q.fifo"), Attributes: map[string]string{"FifoQueue": "true"}}))
	w.sub = shardtest.Subscribe(t, w.Engine, "t.fifo", "q.fifo", shardtest.SubscriptionID(2))
	w.pump.Every = true
	w.check(w.SetFault(shardtest.QueueARN("q.fifo"), "unavailable"))
	n := soak.Size(1, 4)*backlog.OperatorStep + 7
	for i := range n {
		for range 1 + i%2 { // some have one behind the first
			w.ids++
			_, err := w.Publish(ctx, shardtest.TopicARN("t.fifo"), shard.Publication{
				ID: shardtest.MessageID(w.ids), Body: []byte("x"), Group: fmt.Sprint(i), Dedup: fmt.Sprint(w.ids),
			})
			w.check(err)
		}
	}
	if got := len(w.made()); got != n {
		t.Fatalf("%d attempts, want one a group", got)
	}
	w.reopen()
	w.advance(time.Second)
	if got, err := w.RetryAllNow(ctx, w.sub); got != n || err != nil {
		t.Fatalf("retried %d of %d, %v", got, n, err)
	}
	w.expect("the backlog", w.backlog(), fmt.Sprintf("%d due, 0 waiting, 0 in flight, oldest 1s, paused false", w.ids))
	walk, listed := &backlog.Waiting{Subscription: w.sub}, 0
	for {
		ids, err := w.Next(ctx, walk)
		w.check(err)
		if len(ids) == 0 {
			break
		}
		listed += len(ids)
	}
	if listed != w.ids {
		t.Errorf("%d are listed of %d", listed, w.ids)
	}
	w.fail = false
	got := w.made()
	if first, behind := count(got, "x 2"), count(got, "x 1"); first != n || behind != w.ids-n {
		t.Errorf("%d second attempts and %d first ones, want %d and %d", first, behind, n, w.ids-n)
	}
	w.expect("the backlog", w.backlog(), "0 due, 0 waiting, 0 in flight, oldest none, paused false")
}

func count(all []string, what string) (n int) {
	for _, s := range all {
		if s == what {
			n++
		}
	}
	return n
}

func TestRemove(t *testing.T) {
	ctx := context.Background()
	w := newOperatorWorld(t)
	w.publish(3)
	w.made()
	w.check(w.Pause(ctx, w.sub))
	w.publish(2) // fresh, beside those that have failed once
	ids, err := w.Next(ctx, &backlog.Waiting{Subscription: w.sub})
	w.check(err)
	if len(ids) != 3 {
		t.Fatalf("first %v", ids)
	}
	walk := &backlog.Waiting{Subscription: w.sub}
	var all []string
	for {
		ids, err := w.Next(ctx, walk)
		w.check(err)
		if len(ids) == 0 {
			break
		}
		all = append(all, ids...)
		w.publish(1) // comes too late to be listed
	}
	if len(all) != 5 || slices.Contains(all[:4], all[4]) {
		t.Fatalf("all: %v", all)
	}
	look := func(id string) *backlog.Delivery {
		d, err := w.Peek(ctx, w.sub, id)
		w.check(err)
		return d
	}
	first, fresh, last := look(all[0]), look(all[4]), look(all[2])
	if first.Attempt != 1 || fresh.Attempt != 0 {
		t.Errorf("attempts: %d and %d", first.Attempt, fresh.Attempt)
	}
	w.check(w.SetFault(shardtest.QueueARN("dlq"), "unavailable"))
	if _, err := w.Remove(ctx, first, shardtest.QueueARN("dlq"), shardtest.NewMessage(100, "dead"), backlog.DeliveryDeadLetter, "x"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("out of reach: %v", err)
	}
	w.check(w.SetFault(shardtest.QueueARN("dlq"), "none"))
	if _, err := w.Remove(ctx, first, shardtest.QueueARN("gone"), shardtest.NewMessage(100, "dead"), backlog.DeliveryDeadLetter, "x"); fault.KindOf(err) != fault.QueueDoesNotExist {
		t.Errorf("no such queue: %v", err)
	}
	for i, d := range []*backlog.Delivery{first, fresh} {
		wait, err := w.Remove(ctx, d, shardtest.QueueARN("dlq"), shardtest.NewMessage(100+i, "dead"), backlog.DeliveryDeadLetter, "x")
		w.check(err)
		wait()
		if _, err := w.Remove(ctx, d, shardtest.QueueARN("dlq"), shardtest.NewMessage(100, "dead"), backlog.DeliveryDeadLetter, "x"); fault.KindOf(err) != fault.NotFound {
			t.Errorf("again: %v", err)
		}
	}
	wait, err := w.Remove(ctx, last, arn.ARN{}, nil, backlog.DeliveryDropped, "y")
	w.check(err)
	wait()
	w.reopen()
	info, err := w.QueueInfo(ctx, shardtest.QueueARN("dlq"))
	w.check(err)
	if info.Counts.Visible != 2 {
		t.Errorf("the dead-letter queue holds %+v", info.Counts)
	}
	w.check(w.Resume(ctx, w.sub))
	w.advance(time.Minute)
	taken, _, err := w.Take(w.sub, 1)
	w.check(err)
	under := backlog.DeliveryID{Lane: taken[0].Queued.Lane, Sequence: taken[0].Queued.Sequence}.String()
	if _, err := w.Peek(ctx, w.sub, under); !errors.Is(err, backlog.ErrUnderWay) {
		t.Errorf("under way: %v", err)
	}
	w.Release(taken[0])
	got := w.made()
	slices.Sort(got)
	w.expect("the others", strings.Join(got, ", "), "m2 2, m4 1, m6 1, m7 1")
}

// TestLostDelivery: a delivery whose record is lost to damage is told of, and the others are made.
func TestLostDelivery(t *testing.T) {
	w := newOperatorWorld(t)
	damaged := &shardtest.Damaged{Store: w.store}
	w.store = damaged
	w.reopen()
	w.publish(3)
	w.Journal.Flush()
	damaged.Lose(t, func(k, record []byte) bool {
		return k[2] == keyspace.Data && k[11] == keyspace.Messages && bytes.Contains(record, []byte("m2"))
	})
	taken, _, err := w.Take(w.sub, 10)
	if !errors.Is(err, store.ErrDamaged) || len(taken) != 2 {
		t.Errorf("took %d: %v", len(taken), err)
	}
}

// TestRemovedIsEncrypted: a dead letter that an operator makes is encrypted as what else its queue
// has.
func TestRemovedIsEncrypted(t *testing.T) {
	ctx := context.Background()
	w := newOperatorWorld(t)
	w.observe = func(sealed []byte) {
		if bytes.Contains(sealed, []byte("died")) {
			t.Errorf("a commit has the dead letter in clear: %q", sealed)
		}
	}
	w.encryption = shardtest.Encryption{}
	w.reopen()
	w.publish(1)
	w.made()
	ids, err := w.Next(ctx, &backlog.Waiting{Subscription: w.sub})
	w.check(err)
	d, err := w.Peek(ctx, w.sub, ids[0])
	w.check(err)
	dead := shardtest.NewMessage(100, "died")
	wait, err := w.Remove(ctx, d, shardtest.QueueARN("dlq"), dead, backlog.DeliveryDeadLetter, "x")
	w.check(err)
	wait()
	w.Journal.Flush()
	got, err := w.Receive(ctx, queues.ReceiveRequest{Queue: shardtest.QueueARN("dlq"), Max: 1})
	w.check(err)
	if len(got) != 1 || string(got[0].Body) != "died" {
		t.Errorf("received %+v", got)
	}
}

// beginning encrypts from the second question on.
type beginning struct {
	shardtest.Encryption
	asked int
}

func (b *beginning) Encrypts(queue.Config) (encrypted, managed bool) {
	b.asked++
	return b.asked > 1, true
}

// TestQueueBeginsToEncrypt: a message that was made while the queue did not encrypt yet is refused
// for now, and enters it encrypted the next time.
func TestQueueBeginsToEncrypt(t *testing.T) {
	ctx := context.Background()
	w := newOperatorWorld(t)
	keys := &beginning{}
	w.encryption = keys
	w.reopen()
	w.publish(1)
	w.made()
	ids, err := w.Next(ctx, &backlog.Waiting{Subscription: w.sub})
	w.check(err)
	d, err := w.Peek(ctx, w.sub, ids[0])
	w.check(err)
	keys.asked = 0
	dead := shardtest.NewMessage(100, "died")
	if _, err := w.Remove(ctx, d, shardtest.QueueARN("dlq"), dead, backlog.DeliveryDeadLetter, "x"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("in clear: %v", err)
	}
	wait, err := w.Remove(ctx, d, shardtest.QueueARN("dlq"), dead, backlog.DeliveryDeadLetter, "x")
	w.check(err)
	wait()
	if dead.Cipher == nil {
		t.Error("it went in clear")
	}
}

// TestRefusedEviction: what was read of a delivery for an eviction that was refused
// is not what a later command goes by.
func TestRefusedEviction(t *testing.T) {
	ctx := context.Background()
	w := newOperatorWorld(t)
	w.publish(1)
	w.made()
	ids, err := w.Next(ctx, &backlog.Waiting{Subscription: w.sub})
	w.check(err)
	d, err := w.Peek(ctx, w.sub, ids[0])
	w.check(err)
	if _, err := w.Remove(ctx, d, shardtest.QueueARN("gone"), shardtest.NewMessage(100, "dead"), backlog.DeliveryDeadLetter, "x"); fault.KindOf(err) != fault.QueueDoesNotExist {
		t.Fatalf("no such queue: %v", err)
	}
	w.advance(time.Minute)
	if got := w.made(); !slices.Equal(got, []string{"m1 2"}) {
		t.Fatalf("attempts %v", got)
	}
	changed, err := w.RetryNow(ctx, w.sub, ids[0])
	w.check(err)
	if got := w.made(); !changed || !slices.Equal(got, []string{"m1 3"}) {
		t.Errorf("retried now: %v, attempts %v", changed, got)
	}
	w.reopen()
	w.fail = false
	w.advance(time.Hour)
	if got := w.made(); !slices.Equal(got, []string{"m1 4"}) {
		t.Errorf("attempts in the end %v", got)
	}
	w.Journal.Flush()
	for _, kind := range []byte("mltdn") {
		if n := shardtest.CountKeys(t, w.store, 'D', kind); n > 0 {
			t.Errorf("%d records of kind %q are left of nothing", n, kind)
		}
	}
}

// TestUnreadableMessage: a message that cannot be read keeps nobody from the others.
func TestUnreadableMessage(t *testing.T) {
	w := newOperatorWorld(t)
	w.publish(3)
	w.Journal.Flush()
	n := 0
	for key := range storetest.Dump(t, w.store) {
		if key[2] != 'D' || key[11] != 'm' {
			continue
		}
		if n++; n == 2 {
			var b mutation.Batch
			b.Set(key, []byte("garbage"))
			w.check(w.store.Apply(store.Sync, &b))
		}
	}
	taken, _, err := w.Take(w.sub, 10)
	if !errors.Is(err, message.ErrCorrupt) || len(taken) != 2 || string(taken[0].Message.Body) != "m1" || string(taken[1].Message.Body) != "m3" {
		t.Errorf("took %d: %v", len(taken), err)
	}
}
