package shard

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/topic"
)

// TestCrashInLargeFanOut publishes to more subscriptions than one commit
// takes, and crashes before each commit from the publish on, keeping none,
// some or all of what was not synced. Every subscription gets the message
// once; before the publish was answered, none may.
func TestCrashInLargeFanOut(t *testing.T) {
	const subscriptions = 2*fanoutStep + 100
	ctx := context.Background()
	seed := seeds(t, 1)[0]
	r := rand.New(rand.NewPCG(seed, 4))
	fs := vfs.NewCrashableMem()

	var mu sync.Mutex
	var publishing bool
	var disks []*vfs.MemFS
	crash := func() {
		mu.Lock()
		defer mu.Unlock()
		if !publishing {
			return
		}
		for _, percent := range []int{0, 100, r.IntN(100)}[:unraced(3, 2)] {
			disks = append(disks, fs.CrashClone(vfs.CrashCloneCfg{
				UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(r.Uint64(), 5)),
			}))
		}
	}
	s := openStore(t, fs)
	e := openEngine(t, Options{Store: s, Clock: clock.System, Observe: func([]byte) { crash() }})
	if err := e.CreateTopic(ctx, topic.CreateTopic{ARN: topicARN("wide")}); err != nil {
		t.Fatal(err)
	}
	for i := range subscriptions {
		subscribe(t, e, "wide", fmt.Sprintf("q%d", i), subscriptionID(i))
	}
	mu.Lock()
	publishing = true
	mu.Unlock()
	if _, err := e.Publish(ctx, topicARN("wide"), Publication{ID: messageID(1), Body: []byte("to all")}); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	unacknowledged := len(disks)
	mu.Unlock()
	crash()
	e.background.Wait()
	crash()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	crash()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	halfway := 0
	for i, disk := range disks {
		s := openStore(t, disk)
		if countKeys(t, s, 'P', 0) > 0 {
			halfway++
		}
		e := openEngine(t, Options{Store: s, Clock: clock.System})
		e.background.Wait()
		got := map[int]int{}
		for sub := range subscriptions {
			ds, more, err := e.Take(ctx, topicARN("wide").Subscription(subscriptionID(sub)), 10)
			if err != nil || more {
				t.Fatal(err, more)
			}
			got[len(ds)]++
		}
		switch {
		case got[1] == subscriptions:
		case i < unacknowledged && got[0] == subscriptions:
		default:
			t.Errorf("seed %d: crash %d: as many subscriptions by how often they got the message: %v", seed, i, got)
		}
		if n := countKeys(t, s, 'P', 0); n != 0 {
			t.Errorf("seed %d: crash %d: %d publications are still being spread", seed, i, n)
		}
		e.Close()
		s.Close()
	}
	if len(disks) < unraced(15, 10) || halfway == 0 {
		t.Errorf("%d crashes, %d of them half-way: the test tests nothing", len(disks), halfway)
	}
}

func subscriptionID(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", i) }

// TestLateSubscriberGetsNothing: who subscribes while a publication is still
// being spread does not get it.
func TestLateSubscriberGetsNothing(t *testing.T) {
	ctx := context.Background()
	now := clock.NewVirtual(start)
	s := openStore(t, vfs.NewMem())
	defer s.Close()
	e := openEngine(t, Options{Store: s, Clock: now})
	if err := e.CreateTopic(ctx, topic.CreateTopic{ARN: topicARN("wide")}); err != nil {
		t.Fatal(err)
	}
	for i := range fanoutStep + 1 {
		subscribe(t, e, "wide", fmt.Sprintf("q%d", i), subscriptionID(i))
	}
	sh := e.shardOf(topicARN("wide"))
	sh.mu.Lock()
	sh.fanning = true // the steps after the first wait for us
	sh.mu.Unlock()
	if _, err := e.Publish(ctx, topicARN("wide"), Publication{ID: messageID(1), Body: []byte("to all")}); err != nil {
		t.Fatal(err)
	}
	now.SetAtLeast(start.Add(1e6))
	late := subscribe(t, e, "wide", "late", subscriptionID(9_999_999))
	sh.mu.Lock()
	sh.fanning = false
	sh.startFanouts()
	sh.mu.Unlock()
	e.background.Wait()
	for sub, want := range map[arn.ARN]int{
		topicARN("wide").Subscription(subscriptionID(fanoutStep)): 1,
		late: 0,
	} {
		if ds, _, err := e.Take(ctx, sub, 10); err != nil || len(ds) != want {
			t.Errorf("%s got %d messages, %v", sub, len(ds), err)
		}
	}
	e.Close()
}
