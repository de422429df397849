package replica_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/cluster/record"
	"godwit.dev/godwit/internal/cluster/replica"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/pebble"
	"godwit.dev/godwit/internal/store/storetest"
	"godwit.dev/godwit/test/soak"
)

// A replica on a disk, whose store has no log, goes on after each crash with what the replicated log
// has from what was durable on, which is all that it needs of it, and ends like one that had none.
func TestCrashWithoutLog(t *testing.T) {
	soak.Campaign(t, soak.Size(3, 30), func(t *testing.T, seed uint64) { crashes(t, soak.Rand(seed, 0)) })
}

func crashes(t *testing.T, r *rand.Rand) {
	log := history(t, r)
	fs := vfs.NewCrashableMem()
	open := func() (*pebble.Store, *replica.Replica) {
		t.Helper()
		st, err := pebble.Open("store", pebble.Options{
			FS: fs, Logger: slog.New(slog.DiscardHandler), CacheBytes: 1 << 20, MemTableBytes: 64 << 10, NoLog: r.IntN(8) > 0,
			Fatal: func(err error) { t.Errorf("fatal: %v", err) },
		})
		if err != nil {
			t.Fatal(err)
		}
		rep, err := replica.Open(0, st)
		if err != nil {
			t.Fatal(err)
		}
		return st, rep
	}
	st, rep := open()
	trimmed, lives := uint64(0), 0 // what the log has no more
	for rep.Position() < uint64(len(log)) {
		switch d := r.IntN(200); {
		case d < 2:
			before, at := st, stored(t, st)
			if d == 0 {
				fs = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: rand.New(rand.NewPCG(r.Uint64(), 0))})
			}
			if err := before.Close(); err != nil {
				t.Fatal(err)
			}
			st, rep = open()
			lives++
			if got := rep.Position(); got < trimmed || got > at || d > 0 && got != at {
				t.Fatalf("it begins at %d, had applied %d, and the log begins behind %d", got, at, trimmed)
			}
		case d < 4:
			if err := rep.Flush(); err != nil {
				t.Fatal(err)
			}
		case d < 8:
			durable, err := rep.Durable()
			if err != nil || durable < trimmed || durable > rep.Fence().Position {
				t.Fatalf("%d is durable, after %d, %v", durable, trimmed, err)
			}
			trimmed = durable
		default:
			position := rep.Position() + 1
			if _, accepted, err := rep.Apply(position, log[position-1]); err != nil || !accepted {
				t.Fatalf("position %d: %t, %v", position, accepted, err)
			}
		}
	}
	base := memory.New()
	whole, err := replica.Open(0, base)
	if err != nil {
		t.Fatal(err)
	}
	for i, data := range log {
		if _, _, err := whole.Apply(uint64(i)+1, data); err != nil {
			t.Fatal(err)
		}
	}
	storetest.Equal(t, base, st)
	if err := st.Close(); err != nil {
		t.Error(err)
	}
	if lives < 3 || trimmed == 0 {
		t.Errorf("too little happens: %d lives, %d are durable", lives, trimmed)
	}
}

// From its first record on a store is known as a replica's, whatever a crash takes: a single server
// would write to it otherwise.
func TestFirstFenceIsDurable(t *testing.T) {
	fs := vfs.NewCrashableMem()
	o := pebble.Options{FS: fs, Logger: slog.New(slog.DiscardHandler), NoLog: true, Fatal: func(err error) { t.Errorf("fatal: %v", err) }}
	st, err := pebble.Open("store", o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	rep, err := replica.Open(0, st)
	if err != nil {
		t.Fatal(err)
	}
	first := record.Record{Kind: record.Takeover, Epoch: 1, Owner: "n/1"}
	if _, _, err := rep.Apply(1, first.AppendTo(nil)); err != nil {
		t.Fatal(err)
	}
	o.FS, o.NoLog = fs.CrashClone(vfs.CrashCloneCfg{}), false
	left, err := pebble.Open("store", o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = left.Close() }()
	if got := stored(t, left); got != 1 {
		t.Errorf("it has come to %d", got)
	}
}

// stored is the position that a store says it has come to: that of a whole commit.
func stored(t *testing.T, st *pebble.Store) uint64 {
	t.Helper()
	value, ok, err := st.Get(nil, record.Key(0))
	if err != nil || !ok {
		return 0
	}
	f, err := record.DecodeFence(value)
	if err != nil {
		t.Fatal(err)
	}
	return f.Position
}

// history is a log of a few thousand records: commits, of one record and of several, confirmations
// and takeovers.
func history(t *testing.T, r *rand.Rand) (log [][]byte) {
	t.Helper()
	epoch, number := uint64(0), uint64(0)
	add := func(rec record.Record) {
		number++
		log = append(log, rec.AppendTo(nil))
	}
	for len(log) < 2500 {
		switch d := r.IntN(100); {
		case d < 2 || epoch == 0:
			epoch++
			add(record.Record{Kind: record.Takeover, Epoch: epoch, Number: number, Owner: fmt.Sprint("n/", epoch)})
		case d < 10:
			add(record.Record{Kind: record.Confirm, Epoch: epoch, Number: number + 1})
		default:
			var b mutation.Batch
			for range 1 + r.IntN(8) {
				key := fmt.Appendf(nil, "key %d", r.IntN(50))
				if r.IntN(5) == 0 {
					b.Delete(key)
				} else {
					b.Set(key, bytes.Repeat([]byte{byte(len(log))}, r.IntN(300)))
				}
			}
			records, err := record.Split(400, 0, epoch, number+1, &b)
			if err != nil {
				t.Fatal(err)
			}
			log = append(log, records...)
			number += uint64(len(records))
		}
	}
	return log
}
