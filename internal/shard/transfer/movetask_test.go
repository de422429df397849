package transfer_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/shard/transfer"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
	"godwit.dev/godwit/test/soak"
)

// died makes the queue "q" and its dead-letter queue "dead", and n messages in
// the latter that came from the former.
func died(t *testing.T, e *shard.Engine, n int) {
	t.Helper()
	ctx := context.Background()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(e.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("dead")}))
	must(e.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("q"), Attributes: map[string]string{
		"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":"%s","maxReceiveCount":1}`, shardtest.QueueARN("dead")),
	}}))
	for i := range n {
		_, err := e.Send(ctx, shardtest.QueueARN("q"), []queues.SendEntry{{Message: shardtest.NewMessage(i, fmt.Sprint("m", i))}})
		must(err)
	}
	for range 2 * (n/10 + 1) {
		_, err := e.Receive(ctx, queues.ReceiveRequest{Queue: shardtest.QueueARN("q"), Max: 10})
		must(err)
		e.AwaitIdle()
	}
	if got := visible(t, e, "dead"); got != int64(n) {
		t.Fatalf("%d dead letters", got)
	}
}

func visible(t *testing.T, e *shard.Engine, name string) int64 {
	t.Helper()
	info, err := e.QueueInfo(context.Background(), shardtest.QueueARN(name))
	if err != nil {
		t.Fatal(err)
	}
	return info.Counts.Visible
}

func lastTask(t *testing.T, e *shard.Engine) (task transfer.MoveTask) {
	t.Helper()
	tasks, err := e.MoveTasks(context.Background(), shardtest.QueueARN("dead"), 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(tasks) > 0 {
		task = tasks[0]
	}
	return task
}

// take receives everything that a queue has.
func take(t *testing.T, e *shard.Engine, name string) (bodies []string) {
	t.Helper()
	for {
		got, err := e.Receive(context.Background(), queues.ReceiveRequest{Queue: shardtest.QueueARN(name), Max: 10, Visibility: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 {
			slices.Sort(bodies)
			return bodies
		}
		for _, m := range got {
			bodies = append(bodies, string(m.Body))
		}
	}
}

// TestCrashInMoveTask crashes between the commits of a move task, keeping
// none, some or all of what was not synced. The next start continues with it:
// each message is then in exactly one of the two queues, and with the task
// there, all are in the destination.
func TestCrashInMoveTask(t *testing.T) {
	const messages = 60
	for _, twoStep := range []bool{false, true} {
		t.Run(fmt.Sprintf("TwoStep=%v", twoStep), func(t *testing.T) {
			ctx := context.Background()
			seed := soak.Seeds(t, 1)[0]
			r := rand.New(rand.NewPCG(seed, 6))
			fs := vfs.NewCrashableMem()
			var mu sync.Mutex
			moving := false
			var disks []*vfs.MemFS
			crash := func([]byte) {
				mu.Lock()
				defer mu.Unlock()
				if moving && (!twoStep || r.IntN(8) == 0) {
					disks = append(disks, fs.CrashClone(vfs.CrashCloneCfg{
						UnsyncedDataPercent: []int{0, r.IntN(100), 100}[r.IntN(3)], RNG: rand.New(rand.NewPCG(r.Uint64(), 7)),
					}))
				}
			}
			s := shardtest.OpenStore(t, fs)
			e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, crash), Clock: clock.System, TwoStep: twoStep})
			died(t, e, messages)
			mu.Lock()
			moving = true
			mu.Unlock()
			if err := e.StartMoveTask(ctx, transfer.MoveTaskSpec{ID: "x", Source: shardtest.QueueARN("dead")}); err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			unacknowledged := len(disks)
			mu.Unlock()
			e.AwaitIdle()
			e.Close()
			s.Close()

			halfway := 0
			for _, i := range soak.Spread(len(disks), 4) {
				s := shardtest.OpenStore(t, disks[i])
				e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.System, TwoStep: twoStep})
				e.AwaitIdle()
				task := lastTask(t, e)
				dead, back := take(t, e, "dead"), take(t, e, "q")
				switch {
				case task.Status == transfer.MoveCompleted && len(back) == messages && len(dead) == 0:
				case task.Status == "" && i < unacknowledged && len(back) == 0 && len(dead) == messages:
				default:
					t.Errorf("seed %d: crash %d: task %+v, %d dead letters, %d moved", seed, i, task, len(dead), len(back))
				}
				all := append(dead, back...)
				slices.Sort(all)
				if n := len(slices.Compact(all)); n != messages {
					t.Errorf("seed %d: crash %d: %d messages", seed, i, n)
				}
				if task.Status == transfer.MoveCompleted && task.Moved != messages {
					t.Errorf("seed %d: crash %d: %d counted", seed, i, task.Moved)
				}
				if n := shardtest.CountKeys(t, s, 'X', 0); n > 0 {
					t.Errorf("seed %d: crash %d: %d marks are left", seed, i, n)
				}
				if i > 0 && len(back) == messages {
					halfway++
				}
				e.Close()
				s.Close()
			}
			if len(disks) < 4 || halfway == 0 {
				t.Errorf("%d crashes, %d of them half-way: the test tests nothing", len(disks), halfway)
			}
		})
	}
}

// TestMoveTaskInTransit: while a message is on its way it counts in the source
// and nobody can receive it; a purge or a deletion meanwhile leaves it in
// exactly one place.
func TestMoveTaskInTransit(t *testing.T) {
	ctx := context.Background()
	for _, meanwhile := range []string{"nothing", "purge", "delete", "cancel"} {
		for _, twoStep := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s,TwoStep=%v", meanwhile, twoStep), func(t *testing.T) {
				s := memory.New()
				o := shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.System, TwoStep: twoStep}
				e := shardtest.Open(t, o)
				died(t, e, 3)
				sh := e.Topics.ShardOf(shardtest.QueueARN("dead"))
				tk := &transfer.RunningTask{From: shardtest.QueueARN("dead"), Number: 1, MoveRecord: transfer.MoveRecord{ID: "x", Status: transfer.MoveRunning, ToMove: 3}, Working: true}
				sh.View(func() {
					sh.AddTask(tk)
					sh.WriteTask(tk)
					sh.Append(journal.Eager)
				})
				qs, leases := sh.NextStep(tk)
				if len(leases) != 3 {
					t.Fatalf("%d messages are taken", len(leases))
				}
				if got := take(t, e, "dead"); got != nil {
					t.Errorf("received on the way: %v", got)
				}
				if info, err := e.QueueInfo(ctx, shardtest.QueueARN("dead")); err != nil || info.Counts.InFlight != 3 || info.Counts.Visible != 0 {
					t.Errorf("counts on the way: %+v %v", info.Counts, err)
				}
				if _, err := e.MoveOne(sh.OfTransfers(), tk, qs, leases[0]); err != nil {
					t.Fatal(err)
				}
				want, left := "[m0 m1 m2]", "[]"
				switch meanwhile {
				case "purge":
					want = "[m0]"
					if err := e.PurgeQueue(ctx, shardtest.QueueARN("dead")); err != nil {
						t.Fatal(err)
					}
				case "delete":
					want = "[m0]"
					if err := e.DeleteQueue(ctx, shardtest.QueueARN("dead")); err != nil {
						t.Fatal(err)
					}
				case "cancel":
					want, left = "[m0]", "[m1 m2]"
					if moved, err := e.CancelMoveTask(ctx, shardtest.QueueARN("dead"), "x"); err != nil || moved != 1 {
						t.Fatal(moved, err)
					}
					// As a crash leaves it: the next start ends the task.
					if err := e.Close(); err != nil {
						t.Fatal(err)
					}
					e = shardtest.Open(t, o)
					e.AwaitIdle()
					if task := lastTask(t, e); task.Status != transfer.MoveCancelled || task.Moved != 1 {
						t.Errorf("%+v", task)
					}
				}
				if meanwhile != "cancel" {
					for _, l := range leases[1:] {
						if _, err := e.MoveOne(sh.OfTransfers(), tk, qs, l); (err == nil) != (meanwhile == "nothing") {
							t.Error(err)
						}
					}
				}
				if got := fmt.Sprint(take(t, e, "q")); got != want {
					t.Errorf("at the destination: %s, want %s", got, want)
				}
				if meanwhile != "delete" {
					if got := fmt.Sprint(take(t, e, "dead")); got != left {
						t.Errorf("at the source: %s, want %s", got, left)
					}
				} else if n := shardtest.CountKeys(t, s, 'V', 0); n != 0 {
					t.Errorf("%d records of tasks of a queue that is gone", n)
				}
				e.Journal.Flush()
				if n := shardtest.CountKeys(t, s, 'X', 0); n > 0 {
					t.Errorf("%d marks are left", n)
				}
				e.Close()
			})
		}
	}
}

// TestMoveTaskGoesOnAtItsRate: a restart in the middle keeps rate and count,
// and time without the process is not made good.
func TestMoveTaskGoesOnAtItsRate(t *testing.T) {
	ctx := context.Background()
	now := clock.NewVirtual(shardtest.Start)
	o := shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: now}
	e := shardtest.Open(t, o)
	died(t, e, 50)
	advance := func(d time.Duration) {
		t.Helper()
		if _, err := now.Advance(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(what string, moved int64) {
		t.Helper()
		if task := lastTask(t, e); task.Moved != moved || visible(t, e, "q") != moved || visible(t, e, "dead") != 50-moved {
			t.Errorf("%s: %+v, moved %d, left %d; want %d", what, task, visible(t, e, "q"), visible(t, e, "dead"), moved)
		}
	}
	if err := e.StartMoveTask(ctx, transfer.MoveTaskSpec{ID: "x", Source: shardtest.QueueARN("dead"), Rate: 3}); err != nil {
		t.Fatal(err)
	}
	expect("at once", 0)
	advance(333 * time.Millisecond)
	expect("after 333 ms", 0)
	advance(7 * time.Millisecond)
	expect("after 340 ms", 1)
	advance(1660 * time.Millisecond)
	expect("after 2 s", 6)
	e.Close()
	e = shardtest.Open(t, o)
	e.AwaitIdle()
	expect("after a restart", 6)
	advance(time.Second)
	expect("a second later", 9)
	e.Close()
	advance(time.Hour)
	e = shardtest.Open(t, o)
	e.AwaitIdle()
	expect("an hour without the process later", 9)
	advance(time.Second)
	expect("and a second later", 12)
	advance(time.Minute)
	expect("at the end", 50)
	if task := lastTask(t, e); task.Status != transfer.MoveCompleted || task.Started != shardtest.Start {
		t.Errorf("%+v", task)
	}
	e.Close()
}

// TestMoveTaskHeld: in a server that was restored, and is looked at, tasks from before it move
// nothing until they may, and can be cancelled.
func TestMoveTaskHeld(t *testing.T) {
	ctx := context.Background()
	for _, cancelled := range []bool{false, true} {
		now := clock.NewVirtual(shardtest.Start)
		o := shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: now}
		e := shardtest.Open(t, o)
		died(t, e, 50)
		if err := e.StartMoveTask(ctx, transfer.MoveTaskSpec{ID: "x", Source: shardtest.QueueARN("dead"), Rate: 10}); err != nil {
			t.Fatal(err)
		}
		e.Close()
		var begin []func()
		o.Begin = func(start func()) { begin = append(begin, start) }
		e = shardtest.Open(t, o)
		advance := func(d time.Duration) {
			t.Helper()
			if _, err := now.Advance(ctx, d); err != nil {
				t.Fatal(err)
			}
			e.AwaitIdle()
		}
		advance(time.Hour)
		if task := lastTask(t, e); task.Status != transfer.MoveRunning || task.Moved != 0 || visible(t, e, "dead") != 50 || len(begin) != 1 {
			t.Errorf("held, it is %+v; %d messages are left", task, visible(t, e, "dead"))
		}
		if cancelled {
			if _, err := e.CancelMoveTask(ctx, shardtest.QueueARN("dead"), "x"); err != nil {
				t.Fatal(err)
			}
			e.AwaitIdle()
			if task := lastTask(t, e); task.Status != transfer.MoveCancelled {
				t.Errorf("cancelled, it is %+v", task)
			}
		}
		for _, start := range begin {
			start()
		}
		e.AwaitIdle()
		advance(time.Second)
		if task := lastTask(t, e); !cancelled && (task.Moved == 0 || task.Moved > 11) || cancelled && task.Moved != 0 {
			t.Errorf("a second after it may go on: %+v", task)
		}
		e.Close()
	}
	// Where nothing is held, it goes on at once.
	now := clock.NewVirtual(shardtest.Start)
	o := shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: now, Begin: func(start func()) { start() }}
	e := shardtest.Open(t, o)
	died(t, e, 5)
	if err := e.StartMoveTask(ctx, transfer.MoveTaskSpec{ID: "x", Source: shardtest.QueueARN("dead"), Rate: 1}); err != nil {
		t.Fatal(err)
	}
	e.Close()
	e = shardtest.Open(t, o)
	defer e.Close()
	if _, err := now.Advance(ctx, time.Minute); err != nil {
		t.Fatal(err)
	}
	if task := lastTask(t, e); task.Status != transfer.MoveCompleted || task.Moved != 5 {
		t.Errorf("it is %+v", task)
	}
}

// TestMoveTaskRefused: what a refusal for good leaves.
func TestMoveTaskRefused(t *testing.T) {
	ctx := context.Background()
	o := shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: clock.System, Logger: slog.New(slog.DiscardHandler)}
	e := shardtest.Open(t, o)
	died(t, e, 10)
	if err := e.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("other")}); err != nil {
		t.Fatal(err)
	}
	e.Options.Full = func() bool { return true }
	if err := e.StartMoveTask(ctx, transfer.MoveTaskSpec{ID: "x", Source: shardtest.QueueARN("dead")}); err == nil {
		t.Error("a task began on a full disk")
	}
	e.Options.Full = nil
	for _, source := range []string{"q", "none"} {
		if err := e.StartMoveTask(ctx, transfer.MoveTaskSpec{ID: "x", Source: shardtest.QueueARN(source)}); err == nil {
			t.Errorf("a task began on %s", source)
		}
	}
	if task := lastTask(t, e); task.Status != "" {
		t.Errorf("a task that was refused: %+v", task)
	}
	// The destination goes between the check and the first move.
	sh := e.Topics.ShardOf(shardtest.QueueARN("dead"))
	tk := &transfer.RunningTask{From: shardtest.QueueARN("dead"), To: shardtest.QueueARN("none"), Number: 1, MoveRecord: transfer.MoveRecord{ID: "x", Status: transfer.MoveRunning, ToMove: 10}}
	sh.View(func() {
		sh.AddTask(tk)
		sh.WorkOn(tk)
	})
	e.AwaitIdle()
	if task := lastTask(t, e); task.Status != transfer.MoveFailed || task.Reason != transfer.ReasonNoQueue || visible(t, e, "dead") != 10 {
		t.Errorf("%+v, %d messages", task, visible(t, e, "dead"))
	}
	e.Close()
}

// TestMoveTaskPassesDamage: a message that cannot be read holds up no other. It is
// quarantined, as where somebody receives it, and the task is over behind it.
func TestMoveTaskPassesDamage(t *testing.T) {
	ctx := context.Background()
	s := memory.New()
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.NewVirtual(shardtest.Start), Logger: slog.New(slog.DiscardHandler)})
	defer e.Close()
	died(t, e, 5)
	e.Journal.Flush()
	var b mutation.Batch
	for k, record := range storetest.Dump(t, s) {
		if k[2] == keyspace.Data && k[11] == keyspace.Messages && bytes.Contains(record, []byte("m1")) {
			b.Set(bytes.Clone(k), nil) // as a damaged store shows it
		}
	}
	if err := s.Apply(store.Sync, &b); err != nil || b.Len() != 1 {
		t.Fatal(b.Len(), err)
	}
	if err := e.StartMoveTask(ctx, transfer.MoveTaskSpec{ID: "x", Source: shardtest.QueueARN("dead")}); err != nil {
		t.Fatal(err)
	}
	e.AwaitIdle()
	if task := lastTask(t, e); task.Status != transfer.MoveCompleted || task.Moved != 4 || visible(t, e, "dead") != 0 {
		t.Errorf("%+v, %d messages left", task, visible(t, e, "dead"))
	}
}

// TestMoveTaskPassesLostRecord: a message whose record is lost to damage holds up no other, and is told
// of.
func TestMoveTaskPassesLostRecord(t *testing.T) {
	ctx := context.Background()
	s := &shardtest.Damaged{Store: memory.New()}
	var log bytes.Buffer
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.NewVirtual(shardtest.Start), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	defer e.Close()
	died(t, e, 5)
	e.Journal.Flush()
	s.Lose(t, func(k, record []byte) bool {
		return k[2] == keyspace.Data && k[11] == keyspace.Messages && bytes.Contains(record, []byte("m1"))
	})
	if err := e.StartMoveTask(ctx, transfer.MoveTaskSpec{ID: "x", Source: shardtest.QueueARN("dead")}); err != nil {
		t.Fatal(err)
	}
	e.AwaitIdle()
	if task := lastTask(t, e); task.Status != transfer.MoveCompleted || task.Moved != 4 {
		t.Errorf("%+v", task)
	}
	if !strings.Contains(log.String(), "a message cannot be read") {
		t.Errorf("the log says %q", &log)
	}
}

// TestDeadLetterSourcesOfAShard checks the reverse map of dead-letter queues
// against what the queues' records say, through random changes and a restart.
func TestDeadLetterSourcesOfAShard(t *testing.T) {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(soak.Seeds(t, 1)[0], 8))
	o := shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: clock.System}
	e := shardtest.Open(t, o)
	want := map[string]string{} // source → dead-letter queue
	for _, name := range []string{"d0", "d1"} {
		if err := e.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN(name)}); err != nil {
			t.Fatal(err)
		}
	}
	policy := func(dlq string) string {
		return fmt.Sprintf(`{"deadLetterTargetArn":"%s","maxReceiveCount":1}`, shardtest.QueueARN(dlq))
	}
	for i := range 600 {
		name, dlq := fmt.Sprint("s", r.IntN(150)), fmt.Sprint("d", r.IntN(2))
		old, there := want[name]
		var err error
		switch {
		case !there:
			err = e.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN(name), Attributes: map[string]string{"RedrivePolicy": policy(dlq)}})
			want[name] = dlq
		case r.IntN(3) == 0:
			err = e.DeleteQueue(ctx, shardtest.QueueARN(name))
			delete(want, name)
		case r.IntN(3) == 0:
			err = e.PurgeQueue(ctx, shardtest.QueueARN(name))
		case old != "" && r.IntN(2) == 0:
			err = e.SetQueueAttributes(ctx, shardtest.QueueARN(name), map[string]string{"RedrivePolicy": ""})
			want[name] = ""
		default:
			err = e.SetQueueAttributes(ctx, shardtest.QueueARN(name), map[string]string{"RedrivePolicy": policy(dlq)})
			want[name] = dlq
		}
		if err != nil {
			t.Fatal(err)
		}
		if i == 400 {
			e.Close()
			e = shardtest.Open(t, o)
		}
	}
	for _, dlq := range []string{"d0", "d1"} {
		var all []string
		for name, of := range want {
			if of == dlq {
				all = append(all, name)
			}
		}
		slices.Sort(all)
		var got []string
		for after, more := "", true; more; {
			var page []string
			var err error
			page, more, err = e.DeadLetterSources(ctx, shardtest.QueueARN(dlq), after, 7)
			if err != nil || len(page) == 0 || len(page) > 7 {
				t.Fatal(page, err)
			}
			got, after = append(got, page...), page[len(page)-1]
		}
		if strings.Join(got, " ") != strings.Join(all, " ") {
			t.Errorf("sources of %s: %v\nwant %v", dlq, got, all)
		}
	}
	e.Close()
}

// TestMoveTaskTimerWhileWorking: a timer that fires while the task is worked on
// is over, so that the task does not take itself for waiting.
func TestMoveTaskTimerWhileWorking(t *testing.T) {
	now := clock.NewVirtual(shardtest.Start)
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: now})
	defer e.Close()
	died(t, e, 1)
	sh := e.Topics.ShardOf(shardtest.QueueARN("dead"))
	tk := &transfer.RunningTask{From: shardtest.QueueARN("dead"), Working: true, Tries: 1, MoveRecord: transfer.MoveRecord{Status: transfer.MoveRunning, ToMove: 1}}
	sh.View(func() {
		sh.AddTask(tk)
		sh.RetryTask(tk, sh.Now())
	})
	if _, err := now.Advance(context.Background(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, leases := sh.NextStep(tk); len(leases) != 1 {
		t.Errorf("%d messages to move", len(leases))
	}
}
