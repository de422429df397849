package shard_test

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/shard/topics"
	"godwit.dev/godwit/internal/shard/transfer"
	"godwit.dev/godwit/internal/topic"
)

// lockChecker reports when metrics or the log are called by whoever holds the lock
// of a shard, be it one of the 64 or a module's own.
type lockChecker struct {
	kernel  *kernel.Kernel
	patient time.Duration
	report  func(what string)
	found   atomic.Bool // it has reported: further checks would take as long
	calls   sync.Map    // *atomic.Int64 by what was reported
}

func (c *lockChecker) check(what string) {
	n, _ := c.calls.LoadOrStore(what, new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
	if c.found.Load() {
		return
	}
	free := make(chan struct{})
	go func() {
		c.kernel.Latest() // takes the lock of each
		close(free)
	}()
	select {
	case <-free:
	case <-shardtest.After(c.patient):
		c.found.Store(true)
		c.report(what)
	}
}

func (c *lockChecker) told(what string) int64 {
	n, ok := c.calls.Load(what)
	if !ok {
		return 0
	}
	return n.(*atomic.Int64).Load()
}

// checkedLog is a log that checks at each line.
type checkedLog struct{ *lockChecker }

func (checkedLog) Enabled(context.Context, slog.Level) bool { return true }
func (l checkedLog) WithAttrs([]slog.Attr) slog.Handler     { return l }
func (l checkedLog) WithGroup(string) slog.Handler          { return l }

func (l checkedLog) Handle(context.Context, slog.Record) error {
	l.check("the log")
	return nil
}

// TestEmitsWithoutLocks runs a random history in which whatever metrics and the log are
// told of finds the locks of all shards free, those of modules' own shards included.
func TestEmitsWithoutLocks(t *testing.T) {
	ctx := t.Context()
	c := clock.NewVirtual(shardtest.Start)
	s := shardtest.NewStore(t)
	defer s.Close()
	checker := &lockChecker{patient: time.Minute, report: func(what string) { t.Errorf("%s is told of with the lock of a shard held:\n%s", what, debug.Stack()) }}
	k := kernel.New(kernel.Options{
		Journal: shardtest.JournalOf(t, s, nil), Clock: c, Logger: slog.New(checkedLog{checker}), Fatal: func(err error) { t.Error(err) },
	})
	checker.kernel = k
	own := k.OwnShard(keyspace.AlarmStream)
	script := shardtest.NewScript(t, 1, c)
	e := shardtest.Open(t, shard.Options{
		Kernel: k, Clock: c, Logger: k.Logger, NewID: script.NextID, Render: script.Pump.Render,
		Events:    func(queues.QueueEvent) { checker.check("a queue") },
		Published: func(*topics.Published) { checker.check("a publish") },
		Accepted:  func(arn.ARN, string, time.Time) { checker.check("a function's event") },
	})
	defer e.Close()
	script.Attach(e)
	script.Setup()
	for range 100 {
		script.Step()
	}
	f := shardtest.FunctionARN("f")
	if _, err := e.CreateFunction(ctx, shardtest.CreateFunction("f", []byte("zip")), []byte("zip")); err != nil {
		t.Fatal(err)
	}
	if err := e.InvokeAsync(ctx, f, function.Event{ID: message.ID{1}, Payload: []byte("1"), Qualifier: function.Latest}); err != nil {
		t.Fatal(err)
	}
	// What commands on a module's own shard log, alone and as part of another command's commit.
	before := checker.told("the log")
	says := func() { own.Logger.Info("said") }
	if err := own.RunDurable(func(*kernel.Tx) error { says(); return nil }); err != nil {
		t.Fatal(err)
	}
	if err := e.InvokeJoined(ctx, f, function.Event{ID: message.ID{2}, Payload: []byte("2"), Qualifier: function.Latest}, &kernel.Joined{Shard: own, Run: says}); err != nil {
		t.Fatal(err)
	}
	if err := e.CreateTopic(ctx, topic.CreateTopic{ARN: shardtest.TopicARN("alarms")}); err != nil {
		t.Fatal(err)
	}
	p := shard.Publication{ID: message.ID{3}, Body: []byte("3"), Joined: &kernel.Joined{Shard: own, Run: says}}
	if _, err := e.Publish(ctx, shardtest.TopicARN("alarms"), p); err != nil {
		t.Fatal(err)
	}
	if n := checker.told("the log") - before; n != 3 {
		t.Errorf("of 3 lines of a module's own shard %d are logged", n)
	}
	// What a command logs: a move task that is refused half-way.
	for _, spec := range []queues.QueueSpec{
		{ARN: shardtest.QueueARN("dead")},
		{ARN: shardtest.QueueARN("taking")},
		{ARN: shardtest.QueueARN("source"), Attributes: map[string]string{
			"RedrivePolicy": `{"deadLetterTargetArn":"` + shardtest.QueueARN("dead").String() + `","maxReceiveCount":1}`,
		}},
	} {
		if err := e.CreateQueue(ctx, spec); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		if _, err := e.Send(ctx, shardtest.QueueARN("dead"), []queues.SendEntry{{Message: shardtest.NewMessage(i, "stuck")}}); err != nil {
			t.Fatal(err)
		}
	}
	spec := transfer.MoveTaskSpec{ID: "refused", Source: shardtest.QueueARN("dead"), Destination: shardtest.QueueARN("taking"), Rate: 1}
	if err := e.StartMoveTask(ctx, spec); err != nil {
		t.Fatal(err)
	}
	e.AwaitIdle()
	logged := checker.told("the log")
	if err := e.SetFault(shardtest.QueueARN("taking"), "unavailable"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Advance(ctx, time.Minute); err != nil {
		t.Fatal(err)
	}
	e.AwaitIdle()
	if checker.told("the log") == logged {
		t.Error("a move task that is refused is not logged")
	}
	for _, what := range []string{"a queue", "a publish", "a function's event"} {
		if checker.told(what) == 0 {
			t.Errorf("nobody was told of %s", what)
		}
	}
}

// TestLockChecker: it reports who has a lock, and nobody else.
func TestLockChecker(t *testing.T) {
	s := shardtest.NewStore(t)
	defer s.Close()
	k := kernel.New(kernel.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.System, Fatal: func(err error) { t.Error(err) }})
	own := k.OwnShard(keyspace.AlarmStream)
	if err := k.Load(); err != nil {
		t.Fatal(err)
	}
	for _, sh := range []*kernel.Shard{k.All[3], own} {
		held := false
		sh.View(func() {
			c := &lockChecker{kernel: k, patient: time.Millisecond, report: func(string) { held = true }}
			c.check("it")
		})
		if !held {
			t.Errorf("the lock of shard %d, which is held, is not noticed", sh.ID)
		}
	}
	c := &lockChecker{kernel: k, patient: time.Minute, report: func(what string) { t.Errorf("%s is reported", what) }}
	c.check("it")
	if err := k.Close(); err != nil {
		t.Error(err)
	}
}
