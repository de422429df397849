package jobs_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/api/operator/jobs"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/inspect"
	kept "godwit.dev/godwit/internal/shard/jobs"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/test/soak"
)

// node is an engine with its jobs.
type node struct {
	*shard.Engine
	jobs *kept.Module
}

func open(t *testing.T, s store.Store, observe func([]byte)) *node {
	t.Helper()
	j := shardtest.JournalOf(t, s, observe)
	k := kernel.New(kernel.Options{Journal: j, Clock: clock.System, Logger: slog.New(slog.DiscardHandler), Fatal: func(err error) { t.Error(err) }})
	sealer, err := seal.WithKey(bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	m := kept.New(k, sealer)
	e := shardtest.Open(t, shard.Options{Kernel: k, Clock: clock.System})
	m.Start(jobs.New(jobs.Options{Module: m, Engine: e, Inspect: inspect.New(e.Queues, e.Functions), Clock: clock.System}))
	return &node{e, m}
}

// held counts the messages of a queue.
func (n *node) held(t *testing.T, queue string) int64 {
	t.Helper()
	info, err := n.QueueInfo(context.Background(), shardtest.QueueARN(queue))
	if err != nil {
		t.Fatal(err)
	}
	return info.Counts.Visible
}

// TestCrash crashes between the commits of a job, keeping none, some or all of what was not
// synced. The next start continues with it: what it was asked for is done to each message
// once, and counted once.
func TestCrash(t *testing.T) {
	const messages = 700 // three steps
	for _, kind := range []string{"delete", "redrive"} {
		t.Run(kind, func(t *testing.T) {
			seed := soak.Seeds(t, 1)[0]
			r := rand.New(rand.NewPCG(seed, 6))
			fs := vfs.NewCrashableMem()
			var mu sync.Mutex
			working := false
			var disks []*vfs.MemFS
			s := shardtest.OpenStore(t, fs)
			n := open(t, s, func([]byte) {
				mu.Lock()
				defer mu.Unlock()
				if working && r.IntN(3) == 0 {
					disks = append(disks, fs.CrashClone(vfs.CrashCloneCfg{
						UnsyncedDataPercent: []int{0, r.IntN(100), 100}[r.IntN(3)], RNG: rand.New(rand.NewPCG(r.Uint64(), 7)),
					}))
				}
			})
			for _, queue := range []string{"dead", "back"} {
				if err := n.CreateQueue(context.Background(), queues.QueueSpec{ARN: shardtest.QueueARN(queue)}); err != nil {
					t.Fatal(err)
				}
			}
			var batch []queues.SendEntry
			for i := range messages {
				if batch = append(batch, queues.SendEntry{Message: shardtest.NewMessage(i, fmt.Sprint("order ", i%2))}); len(batch) < 10 {
					continue
				}
				_, err := n.Send(context.Background(), shardtest.QueueARN("dead"), batch)
				if batch = nil; err != nil {
					t.Fatal(err)
				}
			}
			spec := kept.Spec{ID: "x", Kind: kind, Resource: shardtest.QueueARN("dead").String(), Before: 1 << 62, Total: messages, Where: kept.Where{Search: "ORDER 1"}}
			if kind == "redrive" {
				spec.To = shardtest.QueueARN("back").String()
			}
			mu.Lock()
			working = true
			mu.Unlock()
			if _, err := n.jobs.Create(spec); err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			unacknowledged := len(disks)
			mu.Unlock()
			n.AwaitIdle()
			n.Close()
			s.Close()
			halfway := 0
			for _, i := range soak.Spread(len(disks), 8) {
				s := shardtest.OpenStore(t, disks[i])
				n := open(t, s, nil)
				before, _ := n.jobs.Get("x")
				n.AwaitIdle()
				job, err := n.jobs.Get("x")
				if err != nil {
					if i >= unacknowledged || n.held(t, "dead") != messages {
						t.Errorf("seed %d: crash %d: %v", seed, i, err)
					}
				} else if job.State != kept.Completed || job.Done != messages/2 || job.Matched != messages/2 || job.Skipped != 0 || n.held(t, "dead") != messages/2 ||
					kind == "redrive" && n.held(t, "back") != messages/2 {
					t.Errorf("seed %d: crash %d: %+v; %d are left, %d arrived", seed, i, job, n.held(t, "dead"), n.held(t, "back"))
				}
				if before.Done > 0 && before.State == kept.Running {
					halfway++
				}
				n.Close()
				s.Close()
			}
			if len(disks) < 4 {
				t.Errorf("%d crashes: the test tests nothing", len(disks))
			}
		})
	}
}
