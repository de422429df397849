package shard_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/keys"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/storetest"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/test/soak"
)

// first is the root key of all stores here.
var first = seal.NewRoot()

// clearWorld is an engine as development and production have it.
type clearWorld struct {
	*shard.Engine
	journal *journal.Journal
	sealing *seal.Keys
}

func openClear(t *testing.T, s store.Store, root *seal.Root, production bool, sealFirst func(w *clearWorld)) *clearWorld {
	t.Helper()
	c := clock.NewVirtual(shardtest.Start)
	w := &clearWorld{journal: shardtest.JournalOf(t, s, nil)}
	var err error
	if w.sealing, err = keys.OpenSealing(w.journal, c.Now(), nil, func(string) (*seal.Root, error) { return cmp.Or(root, first), nil }); err != nil {
		t.Fatal(err)
	}
	if sealFirst != nil {
		sealFirst(w)
	}
	k := kernel.New(kernel.Options{Journal: w.journal, Clock: c, Fatal: func(err error) { t.Error(err) }})
	sealing := w.sealing
	if root == nil { // as versions were before there was any
		sealing = nil
	}
	w.Engine = shardtest.Open(t, shard.Options{Kernel: k, Journal: w.journal, Clock: c, Sealing: sealing, Encryption: keys.NewMessages(keys.New(k, w.sealing), c, production)})
	return w
}

// fill puts something into everything that development stores in clear.
func (w *clearWorld) fill(t *testing.T) {
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	large := string(bytes.Repeat([]byte("canary"), 300))
	check(w.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("q")}))
	check(w.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("dead")}))
	for i, body := range []string{"canary", large} {
		m := shardtest.NewMessage(i+1, body)
		m.Attributes = []message.Attribute{{Name: "a", Type: "String", Value: []byte("canary")}}
		m.Seal()
		_, err := w.Send(ctx, shardtest.QueueARN("q"), []queues.SendEntry{{Message: m, Delay: -1}})
		check(err)
	}
	check(w.CreateTopic(ctx, topic.CreateTopic{ARN: shardtest.TopicARN("t")}))
	for i := range 2 {
		_, err := w.Subscribe(ctx, topic.Subscribe{
			Topic: shardtest.TopicARN("t"), Owner: shardtest.Account, Protocol: "https", Endpoint: fmt.Sprintf("https://user:canary@127.0.0.%d/", i+1),
			ID: shardtest.SubscriptionID(i), Token: fmt.Sprint("token", i),
		})
		check(err)
		_, err = w.ConfirmSubscription(ctx, topic.Confirm{Topic: shardtest.TopicARN("t"), Token: fmt.Sprint("token", i)})
		check(err)
	}
	_, err := w.Publish(ctx, shardtest.TopicARN("t"), shard.Publication{
		ID: shardtest.MessageID(10), Body: []byte("canary"), Subject: "canary", Bodies: map[string]string{"https": "canary of its own"},
	})
	check(err)
	check(w.CreateTopic(ctx, topic.CreateTopic{ARN: shardtest.TopicARN("t.fifo"), Attributes: map[string]string{
		"FifoTopic": "true", "ArchivePolicy": `{"MessageRetentionPeriod":"1"}`,
	}}))
	_, err = w.Publish(ctx, shardtest.TopicARN("t.fifo"), shard.Publication{ID: shardtest.MessageID(11), Body: []byte("canary"), Group: "g", Dedup: "d"})
	check(err)
	f := shardtest.CreateFunction("f", []byte("zip"))
	f.Config.Environment = map[string]string{"password": "canary"}
	_, err = w.CreateFunction(ctx, f, []byte("zip"))
	check(err)
	check(w.InvokeAsync(ctx, shardtest.FunctionARN("f"), function.Event{ID: shardtest.MessageID(12), Payload: []byte(`"canary"`)}))
}

// contents is all that can be taken out again.
func (w *clearWorld) contents(t *testing.T) (all []string) {
	for m := range shardtest.ReceiveAll(t, w.Engine, shardtest.QueueARN("q"), 1e12) {
		all = append(all, fmt.Sprintf("%s %s %v %x", m.ID, m.Body, m.Attributes, m.BodyMD5))
	}
	for i := range 2 {
		ds, _, err := w.Take(shardtest.TopicARN("t").Subscription(shardtest.SubscriptionID(i)), 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range ds {
			all = append(all, fmt.Sprintf("%s %s %+v %s", d.Message.ID, d.Message.Body, *d.Message.Notice, d.Subscription.Endpoint))
		}
	}
	events, _, err := w.TakeEvents(shardtest.FunctionARN("f"), 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		all = append(all, string(e.Payload))
	}
	info, err := w.FunctionInfo(t.Context(), shardtest.FunctionARN("f"), "")
	if err != nil {
		t.Fatal(err)
	}
	all = append(all, fmt.Sprint(info.Config.Environment))
	sub := shardtest.Subscribe(t, w.Engine, "t.fifo", "dead", shardtest.SubscriptionID(9))
	policy := `{"PointType":"Timestamp","StartingPoint":"` + shardtest.Start.Format("2006-01-02T15:04:05.000Z") + `"}`
	if err := w.SetSubscriptionAttribute(t.Context(), sub, "ReplayPolicy", policy); err != nil {
		t.Fatal(err)
	}
	w.AwaitIdle()
	ds, _, err := w.Take(sub, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range ds {
		all = append(all, "replayed "+string(d.Message.Body))
	}
	return all
}

// TestSealStored: what development has stored is sealed in steps, each of which may be the
// last one before a crash, and comes out as it was.
func TestSealStored(t *testing.T) {
	filled := vfs.NewCrashableMem()
	s := shardtest.OpenStore(t, filled)
	w := openClear(t, s, nil, false, nil)
	w.fill(t)
	w.Close()
	w.journal.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	plain := shardtest.OpenStore(t, filled.CrashClone(vfs.CrashCloneCfg{}))
	reference := openClear(t, plain, first, false, nil)
	want := reference.contents(t)
	if len(want) < 7 {
		t.Fatalf("it has only %q", want)
	}
	reference.Close()
	reference.journal.Close()
	if err := plain.Close(); err != nil {
		t.Fatal(err)
	}

	stopped := errors.New("stopped")
	for steps := 1; ; steps += soak.Size(4, 1) {
		fs, through := filled.CrashClone(vfs.CrashCloneCfg{}), false
		for try := range 2 { // a crash behind so many steps, and what comes after it
			s := shardtest.OpenStore(t, fs)
			w := openClear(t, s, first, true, func(w *clearWorld) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				made := 0
				found, err := shard.SealStored(ctx, shard.SealStoredOptions{Journal: w.journal, Sealing: w.sealing, Step: 200, Report: func(map[string]int64) {
					if made++; made == steps && try == 0 {
						cancel(stopped)
					}
				}})
				if through = err == nil; through && fmt.Sprint(found) != "map[archived publication:1 function:1 message:7 subscription:2]" {
					t.Errorf("found %v", found)
				}
			})
			if try == 0 && !through {
				fs = fs.CrashClone(vfs.CrashCloneCfg{})
				w.Close()
				w.journal.Close()
				s.Close()
				continue
			}
			for key, value := range storetest.Dump(t, s) {
				if bytes.Contains(value, []byte("canary")) {
					t.Errorf("behind a stop after %d steps, %q has %q", steps, key, value)
				}
			}
			if got := w.contents(t); !slices.Equal(got, want) {
				t.Fatalf("behind a stop after %d steps it has %q, want %q", steps, got, want)
			}
			w.Close()
			w.journal.Close()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if try == 0 {
				return
			}
		}
	}
}
