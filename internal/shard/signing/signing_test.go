package signing_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
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

// former is the key of a record as earlier versions stored it, beside the replays of shard 0.
func former(id byte) string {
	return string(append(keyspace.Shard(0, keyspace.Replays), append([]byte{id}, make([]byte, 15)...)...))
}

// holdMoved fails the test if a store has a signing key under the tag of replays, or not as many
// under their own as there are.
func holdMoved(t *testing.T, s store.Store, keys, replays int) {
	t.Helper()
	for key := range storetest.Range(t, s, keyspace.Shard(0, keyspace.Replays), keyspace.Shard(0, keyspace.Replays+1)) {
		if replays--; len(key) != 11 {
			t.Errorf("%q is under the tag of replays", key)
		}
	}
	for key := range storetest.Range(t, s, keyspace.Shard(0, keyspace.SigningKeys), keyspace.Shard(0, keyspace.SigningKeys+1)) {
		if k, err := keyspace.ParseAs(keyspace.KindSigningKey, key); err != nil {
			t.Errorf("%q is under the tag of %s: %v", key, k.Kind().Name, err)
		}
		keys--
	}
	if keys != 0 || replays != 0 {
		t.Errorf("%d keys and %d replays are missing", keys, replays)
	}
}

// TestFormerKeysAreMoved: keys that an earlier version stored, in clear or sealed, are the same
// behind a start, under their own tag, and those of a crash at any commit are. What else is
// under the former tag stays.
func TestFormerKeysAreMoved(t *testing.T) {
	sealing, _, err := seal.NewKeys(seal.NewRoot())
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := sealing.Sealer("signing keys").Seal([]byte("sealed"), []byte(former(2)))
	if err != nil {
		t.Fatal(err)
	}
	replay := string(keyspace.Shard(0, keyspace.Replays)) + "12345678"
	for name, c := range map[string]struct {
		sealing *seal.Keys
		stored  []string // values, from the id 1 on
		want    []string
	}{
		"in clear":       {nil, []string{"\x01one", "\x01two"}, []string{"\x01one", "\x01two"}},
		"sealed and not": {sealing, []string{"\x01one", string(sealed)}, []string{"\x01one", "sealed"}},
		"none":           {sealing, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewCrashableMem()
			s := shardtest.OpenStore(t, fs)
			records := []string{replay, "0123456789abcdef"}
			for i, value := range c.stored {
				records = append(records, former(byte(i+1)), value)
			}
			if err := s.Apply(store.Sync, storetest.Sets(records...)); err != nil {
				t.Fatal(err)
			}
			var disks []*vfs.MemFS // as a crash at each commit leaves them
			crash := func() {
				for _, percent := range []int{0, 50, 100} {
					disks = append(disks, fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(1, 2))}))
				}
			}
			again := func(s store.Store, crash func()) {
				t.Helper()
				var loaded atomic.Bool
				e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, func([]byte) {
					if loaded.Load() {
						crash()
					}
				}), Clock: clock.NewVirtual(shardtest.Start), Sealing: c.sealing})
				loaded.Store(true)
				for range 2 {
					keys, err := e.SigningKeys()
					if err != nil || len(keys) != len(c.want) {
						t.Fatalf("keys %q: %v", keys, err)
					}
					for i, want := range c.want {
						if got := keys[[16]byte{byte(i + 1)}]; string(got) != want {
							t.Errorf("key %d is %q", i+1, got)
						}
					}
					holdMoved(t, s, len(c.want), 1)
				}
				loaded.Store(false)
				crash()
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			again(s, crash)
			for _, disk := range disks {
				again(shardtest.OpenStore(t, disk), func() {})
			}
			if least := 3 * min(2, 1+len(c.stored)); len(disks) < least {
				t.Errorf("%d crashes, not %d", len(disks), least)
			}
		})
	}
}

// TestFormerKeyThatCannotBeOpened: it stays where it is, and the start fails.
func TestFormerKeyThatCannotBeOpened(t *testing.T) {
	sealing, _, err := seal.NewKeys(seal.NewRoot())
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := sealing.Sealer("signing keys").Seal([]byte("sealed"), []byte(former(2))) // another key's
	if err != nil {
		t.Fatal(err)
	}
	for name, with := range map[string]*seal.Keys{"no sealer": nil, "another place": sealing} {
		s := memory.New()
		if err := s.Apply(store.Sync, storetest.Sets(former(1), string(sealed))); err != nil {
			t.Fatal(err)
		}
		e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.System, Sealing: with})
		if keys, err := e.SigningKeys(); err == nil || with == nil && !errors.Is(err, seal.ErrSealed) {
			t.Errorf("%s: %q, %v", name, keys, err)
		}
		storetest.Wants(t, s, former(1), string(sealed))
	}
}
