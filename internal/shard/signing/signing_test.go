package signing_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/topic"
)

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
