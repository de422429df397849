package shard_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/topic"
)

// world is what the cases of TestReplyWaitsForDurability start from: a queue
// with one message, a topic with one subscriber, and one receipt handle.
type world struct {
	*shard.Engine
	t      *testing.T
	store  *gatedStore
	handle string
	sub    topic.Subscription
}

func newWorld(t *testing.T) *world { return worldOf(t, false) }

// worldOf is newWorld over a journal whose commits are awaited as those of a cluster are.
func worldOf(t *testing.T, awaited bool) *world {
	ctx := context.Background()
	w := &world{t: t, store: newGatedStore()}
	j := journal.Open(journal.Options{Store: w.store, Replicated: awaited})
	t.Cleanup(j.Close)
	w.Engine = shardtest.Open(t, shard.Options{Journal: j, Clock: clock.System})
	w.must(w.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("old")}))
	w.must(w.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("empty")}))
	w.must(w.CreateTopic(ctx, topic.CreateTopic{ARN: shardtest.TopicARN("old")}))
	var err error
	w.sub, err = w.Subscribe(ctx, topic.Subscribe{
		Topic: shardtest.TopicARN("old"), Owner: shardtest.Account, Protocol: "sqs", Endpoint: shardtest.QueueARN("old").String(), ID: shardtest.SubscriptionID(1), Token: "t",
	})
	w.must(err)
	w.send("old", "first")
	w.send("old", "second")
	got, err := w.Receive(ctx, queues.ReceiveRequest{Queue: shardtest.QueueARN("old"), Max: 1, Visibility: time.Hour})
	w.must(err)
	w.handle = got[0].ReceiptHandle
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Error(err)
	}
}

func (w *world) send(name, body string) {
	w.t.Helper()
	_, err := w.Send(context.Background(), shardtest.QueueARN(name), []queues.SendEntry{{Message: shardtest.NewMessage(1, body)}})
	w.must(err)
}

func (w *world) receive(name string, wait time.Duration) string {
	got, err := w.Receive(context.Background(), queues.ReceiveRequest{Queue: shardtest.QueueARN(name), Max: 1, Visibility: time.Hour, Wait: wait})
	if err != nil {
		return shardtest.Said(err)
	}
	if len(got) == 0 {
		return "nothing"
	}
	return string(got[0].Body)
}

const missing = "fault true"

// TestReplyWaitsForDurability holds up the store's syncs, has one client cause
// a change, and another one ask for something that depends on it: it gets no
// answer before the sync.
func TestReplyWaitsForDurability(t *testing.T) {
	ctx := context.Background()
	create := func(w *world) { w.must(w.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("new")})) }
	remove := func(w *world) { w.must(w.DeleteQueue(ctx, shardtest.QueueARN("old"))) }
	createTopic := func(w *world) { w.must(w.CreateTopic(ctx, topic.CreateTopic{ARN: shardtest.TopicARN("new")})) }
	removeTopic := func(w *world) { w.must(w.DeleteTopic(ctx, shardtest.TopicARN("old"))) }
	send := func(w *world) { w.send("empty", "new") }
	publish := func(w *world) {
		_, err := w.Publish(ctx, shardtest.TopicARN("old"), shard.Publication{ID: shardtest.MessageID(1), Body: []byte("to all")})
		w.must(err)
	}
	list := func(w *world) string {
		names, _, err := w.ListQueues(ctx, shardtest.Region, shardtest.Account, "", "", 10)
		w.must(err)
		return fmt.Sprint(names)
	}
	cases := []struct {
		name  string
		cause func(w *world)
		ask   func(w *world) string
		want  string
	}{
		{"receive of a sent message", send, func(w *world) string { return w.receive("empty", 0) }, "new"},
		{"counts with a sent message", send, func(w *world) string {
			info, err := w.QueueInfo(ctx, shardtest.QueueARN("empty"))
			w.must(err)
			return fmt.Sprint(info.Counts.Visible)
		}, "1"},
		{"take of a published message", publish, func(w *world) string {
			ds, _, err := w.Take(w.sub.ARN, 1)
			w.must(err)
			return fmt.Sprint(len(ds))
		}, "1"},
		{"deliveries of a published message", publish, func(w *world) string {
			ds, err := w.Deliveries(ctx, w.sub.ARN, 10)
			w.must(err)
			return fmt.Sprint(len(ds))
		}, "1"},
		{"info of a created queue", create, func(w *world) string {
			_, err := w.QueueInfo(ctx, shardtest.QueueARN("new"))
			return shardtest.Said(err)
		}, "ok"},
		{"config of a created queue", create, func(w *world) string {
			_, err := w.QueueConfig(ctx, shardtest.QueueARN("new"))
			return shardtest.Said(err)
		}, "ok"},
		{"a second creation", create, func(w *world) string {
			return shardtest.Said(w.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("new")}))
		}, "ok"},
		{"empty receive of a created queue", create, func(w *world) string { return w.receive("new", 0) }, "nothing"},
		{"empty long poll of a created queue", create, func(w *world) string { return w.receive("new", time.Millisecond) }, "nothing"},
		{"delete in a created queue", create, func(w *world) string {
			errs, err := w.DeleteMessages(ctx, shardtest.QueueARN("new"), []string{"rubbish"})
			w.must(err)
			return fmt.Sprint(errs)
		}, "[" + queues.ErrHandle.With("rubbish").Error() + "]"},
		{"list with a created queue", create, list, "[empty new old]"},
		{"list without a deleted queue", remove, list, "[empty]"},
		{"send to a deleted queue", remove, func(w *world) string {
			_, err := w.Send(ctx, shardtest.QueueARN("old"), []queues.SendEntry{{Message: shardtest.NewMessage(9, "x")}})
			return shardtest.Said(err)
		}, missing},
		{"receive from a deleted queue", remove, func(w *world) string { return w.receive("old", 0) }, missing},
		{"delete in a deleted queue", remove, func(w *world) string {
			_, err := w.DeleteMessages(ctx, shardtest.QueueARN("old"), []string{w.handle})
			return shardtest.Said(err)
		}, missing},
		{"config of a deleted queue", remove, func(w *world) string {
			_, err := w.QueueConfig(ctx, shardtest.QueueARN("old"))
			return shardtest.Said(err)
		}, missing},
		{"info of a deleted queue", remove, func(w *world) string {
			_, err := w.QueueInfo(ctx, shardtest.QueueARN("old"))
			return shardtest.Said(err)
		}, missing},
		{"publish to a created topic", createTopic, func(w *world) string {
			_, err := w.Publish(ctx, shardtest.TopicARN("new"), shard.Publication{ID: shardtest.MessageID(2), Body: []byte("x")})
			return shardtest.Said(err)
		}, "ok"},
		{"list with a created topic", createTopic, func(w *world) string {
			topics, _, err := w.ListTopics(ctx, shardtest.Region, shardtest.Account, "", 10)
			w.must(err)
			return fmt.Sprint(len(topics))
		}, "2"},
		{"publish to a deleted topic", removeTopic, func(w *world) string {
			_, err := w.Publish(ctx, shardtest.TopicARN("old"), shard.Publication{ID: shardtest.MessageID(2), Body: []byte("x")})
			return shardtest.Said(err)
		}, missing},
		{"subscriptions of a deleted topic", removeTopic, func(w *world) string {
			_, _, err := w.ListSubscriptionsByTopic(ctx, shardtest.TopicARN("old"), "", 10)
			return shardtest.Said(err)
		}, missing},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				defer w.Close()
				w.store.Shut()
				caused, answered := false, false
				var got string
				go func() { c.cause(w); caused = true }()
				synctest.Wait()
				go func() { got = c.ask(w); answered = true }()
				synctest.Wait()
				<-shardtest.After(time.Second) // a long poll ends
				synctest.Wait()
				if caused || answered {
					t.Errorf("before the sync: caused %v, answered %v %q", caused, answered, got)
				}
				w.store.Open()
				synctest.Wait()
				if !caused || !answered || got != c.want {
					t.Errorf("after the sync: caused %v, answered %v %q, want %q", caused, answered, got, c.want)
				}
			})
		})
	}
}

// TestWaitingReceiveWaitsForDurability is the same for a receive that waited
// already when the change came.
func TestWaitingReceiveWaitsForDurability(t *testing.T) {
	cases := []struct {
		name  string
		cause func(w *world)
		want  string
	}{
		{"send", func(w *world) { w.send("empty", "new") }, "new"},
		{"deletion of the queue", func(w *world) { w.must(w.DeleteQueue(context.Background(), shardtest.QueueARN("empty"))) }, missing},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				defer w.Close()
				w.store.Shut()
				var got string
				go func() { got = w.receive("empty", 20*time.Second) }()
				synctest.Wait()
				go c.cause(w)
				synctest.Wait()
				if got != "" {
					t.Errorf("answered %q before the sync", got)
				}
				w.store.Open()
				synctest.Wait()
				if got != c.want {
					t.Errorf("answered %q, want %q", got, c.want)
				}
			})
		})
	}
}

// TestListShowsNothingThatMayBeLost: a queue that is created between the
// beginning of a list and its reading is shown once it is durable.
func TestListShowsNothingThatMayBeLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		w := newWorld(t)
		defer w.Close()
		var shown []string
		w.store.beforeIter = func() {
			w.store.Shut()
			visible := make(chan struct{})
			w.store.applied = func() { close(visible); w.store.applied = nil }
			go w.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("new")})
			<-visible
		}
		go func() { shown, _, _ = w.ListQueues(ctx, shardtest.Region, shardtest.Account, "", "", 10) }()
		synctest.Wait()
		if slices.Contains(shown, "new") {
			t.Errorf("listed %v before the sync", shown)
		}
		w.store.Open()
		synctest.Wait()
		if len(shown) < 2 {
			t.Errorf("listed %v", shown)
		}
	})
}

// TestLeasesAndDeletesDoNotWait: what a standard queue need not wait for is
// answered before its sync, and yet becomes durable within 10 ms.
func TestLeasesAndDeletesDoNotWait(t *testing.T) {
	ctx := context.Background()
	commands := map[string]func(w *world) error{
		"receive": func(w *world) error {
			got, err := w.Receive(ctx, queues.ReceiveRequest{Queue: shardtest.QueueARN("old"), Max: 1, Visibility: time.Hour})
			if err == nil && len(got) != 1 {
				err = fmt.Errorf("received %d messages", len(got))
			}
			return err
		},
		"delete": func(w *world) error {
			errs, err := w.DeleteMessages(ctx, shardtest.QueueARN("old"), []string{w.handle})
			return cmp.Or(append(errs, err)...)
		},
		"visibility": func(w *world) error {
			errs, err := w.ChangeVisibility(ctx, shardtest.QueueARN("old"), []queues.VisibilityChange{{Handle: w.handle, Timeout: time.Minute}})
			return cmp.Or(append(errs, err)...)
		},
	}
	for name, command := range commands {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				defer w.Close()
				<-shardtest.After(time.Second) // nothing is under way
				w.store.Shut()
				answered := false
				go func() { w.must(command(w)); answered = true }()
				synctest.Wait()
				if !answered {
					t.Error("no answer before the sync")
				}
				sh := w.Topics.ShardOf(shardtest.QueueARN("old"))
				var g *journal.Commit
				sh.View(func() { g = sh.Stream.Last() })
				if g.Durable() {
					t.Fatal("nothing was written")
				}
				<-shardtest.After(journal.LazyDelay)
				synctest.Wait()
				w.store.Open()
				synctest.Wait()
				if !g.Durable() {
					t.Errorf("not durable %v after the answer", journal.LazyDelay)
				}
				if journal.LazyDelay > lazyBound/2 {
					t.Errorf("a delay of %v leaves too little of %v for the sync", journal.LazyDelay, lazyBound)
				}
			})
		})
	}
}

// A receive in a cluster waits for its own lease: another node that goes on without it would hand
// the message out again at once.
func TestReceiveWaitsForItsLeaseInACluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := worldOf(t, true)
		defer w.Close()
		w.store.Shut()
		got := make(chan string, 1)
		go func() { got <- w.receive("old", 0) }()
		synctest.Wait()
		select {
		case answer := <-got:
			t.Errorf("it got %q before its lease was durable", answer)
			return
		default:
		}
		w.store.Open()
		if answer := <-got; answer != "second" {
			t.Errorf("it got %q", answer)
		}
	})
}

// A receive waits for the sync of the message that it gets, not for that of one which was
// sent behind it.
func TestReceiveWaitsForItsMessageAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.Close()
		w.store.Shut()
		go w.send("old", "third")
		synctest.Wait()
		got := make(chan string, 1)
		receive := func() (answer string) {
			go func() { got <- w.receive("old", 0) }()
			synctest.Wait()
			select {
			case answer = <-got:
			default:
			}
			return answer
		}
		if answer := receive(); answer != "second" {
			t.Errorf("of what is durable it gets %q", answer)
		}
		if answer := receive(); answer != "" {
			t.Errorf("of what is not durable it gets %q", answer)
		}
		w.store.Open()
		if answer := <-got; answer != "third" {
			t.Errorf("once it is durable it gets %q", answer)
		}
	})
}
