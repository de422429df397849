package shard_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/shard/shardtest"
)

// startDelete deletes the old message, and says when that has been answered.
func startDelete(w *world) *bool {
	answered := new(bool)
	go func() {
		_, err := w.DeleteMessages(context.Background(), shardtest.QueueARN("old"), []string{w.handle})
		w.must(err)
		*answered = true
	}()
	return answered
}

// TestHangingSync: while a sync hangs, no delete is answered before its own.
func TestHangingSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.Close()
		<-shardtest.After(time.Second) // its lease is durable
		w.store.Shut()
		go w.send("old", "third")
		<-shardtest.After(journal.SlowSync + time.Millisecond)
		answered := startDelete(w)
		<-shardtest.After(time.Minute)
		synctest.Wait()
		if *answered {
			t.Error("answered while the sync before its own hung")
		}
		w.store.Open()
		synctest.Wait()
		if !*answered {
			t.Error("never answered")
		}
	})
}

// TestSamplesWhileSyncHangs: samples for statistics are taken while a sync
// hangs, with what that sync is to make durable.
func TestSamplesWhileSyncHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.Close()
		_, err := w.CreateFunction(context.Background(), shardtest.CreateFunction("f", nil), nil)
		w.must(err)
		w.store.Shut()
		go w.send("old", "third")
		go func() {
			w.must(w.InvokeAsync(context.Background(), shardtest.FunctionARN("f"), function.Event{Payload: []byte("1")}))
		}()
		synctest.Wait()
		told := false
		go func() {
			queue, err := w.SampleQueue(shardtest.QueueARN("old"))
			w.must(err)
			events, err := w.SampleEvents(shardtest.FunctionARN("f"))
			w.must(err)
			if queue.Visible != 2 || events.Due != 1 || !w.HasTopic(shardtest.TopicARN("old")) {
				t.Errorf("told of %+v and %+v", queue, events)
			}
			told = true
		}()
		synctest.Wait()
		if !told {
			t.Error("nothing is told while a sync hangs")
		}
		w.store.Open()
		synctest.Wait()
	})
}

// TestSlowDisk: a delete is answered before its own sync, which follows within
// 10 ms. Once the disk has shown that mostly it may not, the answer waits for a while.
func TestSlowDisk(t *testing.T) {
	for _, c := range []struct {
		name   string
		before time.Duration // how long before it the others were, which were quick
		sync   time.Duration // how long a sync took
		ago    time.Duration
		early  bool // the delete is answered before its sync
	}{
		{"quick", journal.SlowMemory, journal.SlowSync, 0, true},
		{"slow", journal.SlowMemory, journal.SlowSync + time.Millisecond, 0, false},
		{"slow a moment ago", journal.SlowMemory, time.Second, journal.SlowMemory - time.Second, false},
		{"slow long ago", journal.SlowMemory, time.Second, journal.SlowMemory, true},
		{"one of many", time.Second, time.Second, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				defer w.Close()
				<-shardtest.After(c.before) // its lease is durable
				w.store.Shut()
				go w.send("old", "third")
				<-shardtest.After(c.sync)
				w.store.Open()
				synctest.Wait()
				<-shardtest.After(c.ago)

				w.store.Shut()
				answered := startDelete(w)
				<-shardtest.After(time.Second)
				synctest.Wait()
				if *answered != c.early {
					t.Errorf("answered before its sync: %v, want %v", *answered, c.early)
				}
				w.store.Open()
				synctest.Wait()
				if !*answered {
					t.Error("never answered")
				}
			})
		})
	}
}
