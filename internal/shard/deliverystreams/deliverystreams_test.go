package deliverystreams_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliverystream"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/shard/deliverystreams"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/test/soak"
)

func sealing(t *testing.T) *seal.Keys {
	t.Helper()
	keys, _, err := seal.NewKeys(seal.NewRoot())
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func open(t *testing.T, j *journal.Journal, keys *seal.Keys, c clock.Clock, o deliverystreams.Options) *deliverystreams.Module {
	t.Helper()
	k := kernel.New(kernel.Options{Journal: j, Clock: c, Logger: slog.New(slog.DiscardHandler)})
	m := deliverystreams.New(k, keys, o)
	if err := k.Load(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	return m
}

func name(of string) arn.ARN { return deliverystream.Name(shardtest.Region, shardtest.Account, of) }

// made is a stream that is delivered after a minute or 1 MiB.
func made(of string) *deliverystream.Stream {
	return &deliverystream.Stream{Account: shardtest.Account, Region: shardtest.Region, Name: of, S3: &deliverystream.ExtendedS3{
		RoleARN: new("arn:aws:iam::000000000000:role/r"), BucketARN: new("arn:aws:s3:::b"),
		BufferingHints: &deliverystream.BufferingHints{SizeInMBs: new(1), IntervalInSeconds: new(60)},
	}}
}

func create(t *testing.T, m *deliverystreams.Module, of string) {
	t.Helper()
	if err := m.Create(made(of), ""); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, m *deliverystreams.Module, to string, data ...string) {
	t.Helper()
	var records []deliverystream.Record
	for _, d := range data {
		records = append(records, deliverystream.Record{Data: []byte(d)})
	}
	ids, err := m.Put(t.Context(), name(to), records)
	if err != nil || len(ids) != len(data) {
		t.Fatalf("%v, %v", ids, err)
	}
}

// read gives the records of a batch.
func read(t *testing.T, m *deliverystreams.Module, s *deliverystream.Stream, b *deliverystream.Batch) (all []string) {
	t.Helper()
	unreadable, err := m.Read(s, b, func(_ int64, records []deliverystream.Record) error {
		for _, r := range records {
			all = append(all, string(r.Data))
		}
		return nil
	})
	if err != nil || unreadable != 0 {
		t.Fatalf("%d chunks are unreadable, %v", unreadable, err)
	}
	return all
}

// next is the batch that is due; nil: there is none.
func next(t *testing.T, m *deliverystreams.Module, of string) (*deliverystream.Stream, *deliverystream.Batch) {
	t.Helper()
	s, b, err := m.Next(instance(t, m, of))
	if err != nil {
		t.Fatal(err)
	}
	return s, b
}

// instance is that of a stream as it is now.
func instance(t *testing.T, m *deliverystreams.Module, of string) deliverystream.Instance {
	t.Helper()
	s, err := m.Find(name(of))
	if err != nil {
		t.Fatal(err)
	}
	return deliverystream.Instance{Stream: name(of), Number: s.Number}
}

// everything tells all streams and what they hold.
func everything(t *testing.T) func(m *deliverystreams.Module) string {
	return func(m *deliverystreams.Module) string {
		var out strings.Builder
		names, _ := m.List(shardtest.Account, shardtest.Region, "", 100)
		for _, n := range names {
			s, err := m.Find(name(n))
			if err != nil {
				t.Fatal(err)
			}
			size, since := m.Buffered(name(n))
			key, err := m.AccessKey(s)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(&out, n, s.Number, s.Version, s.Tags, key, size, since, read(t, m, s, &deliverystream.Batch{To: 1 << 60}))
		}
		return out.String()
	}
}

// Whatever was acknowledged is there after a crash, and no command by half. A batch that
// was begun is the same then.
func TestCrash(t *testing.T) {
	keys := sealing(t)
	var mu sync.Mutex
	begun := map[uint64]string{} // the ids of batches by their first chunk
	deliver := func(done bool) func(m *deliverystreams.Module) {
		return func(m *deliverystreams.Module) {
			s, b := next(t, m, "a")
			if b == nil {
				t.Fatal("nothing is due")
			}
			mu.Lock()
			defer mu.Unlock()
			if id := begun[b.From]; id != "" && id != b.ID {
				t.Errorf("the batch from %d is another one", b.From)
			}
			begun[b.From] = b.ID
			later := *b
			later.Attempts++
			err := m.Save(s, &later)
			if done {
				err = m.Done(s, &later)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	puts := func(data ...string) func(m *deliverystreams.Module) {
		return func(m *deliverystreams.Module) { put(t, m, "a", data...) }
	}
	large := strings.Repeat("x", 400<<10)
	shardtest.CrashInSteps(t, soak.Seeds(t, 1)[0], soak.Size(1, 3), func(j *journal.Journal) *deliverystreams.Module {
		return open(t, j, keys, clock.NewVirtual(shardtest.Start), deliverystreams.Options{})
	}, everything(t),
		func(m *deliverystreams.Module) { create(t, m, "a") },
		puts("1", "2"), puts(""), puts("3"),
		func(m *deliverystreams.Module) {
			if err := m.Change(name("a"), new("key"), func(s *deliverystream.Stream, _ time.Time) error { return s.Tag(map[string]string{"t": "1"}) }); err != nil {
				t.Fatal(err)
			}
		},
		puts(large), puts(large), puts(large), puts(large),
		deliver(false), puts("4"), deliver(true),
		func(m *deliverystreams.Module) { create(t, m, "b") },
		func(m *deliverystreams.Module) {
			if err := m.Delete(name("a")); err != nil {
				t.Fatal(err)
			}
		},
		func(m *deliverystreams.Module) { create(t, m, "a") },
		puts("of another life"),
	)
}

// Batches are due by size and by time, and hold records in their order.
func TestBatches(t *testing.T) {
	c := clock.NewVirtual(shardtest.Start)
	m := open(t, shardtest.JournalOf(t, memory.New(), nil), sealing(t), c, deliverystreams.Options{})
	create(t, m, "a")
	put(t, m, "a", "1", "2")
	if _, b := next(t, m, "a"); b != nil {
		t.Errorf("%+v is due", b)
	}
	if _, err := c.Advance(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	s, b := next(t, m, "a")
	if b == nil || b.Records != 2 || b.Bytes != 2 || b.Oldest != shardtest.Start.UnixMilli() || fmt.Sprint(read(t, m, s, b)) != "[1 2]" {
		t.Fatalf("%+v", b)
	}
	put(t, m, "a", "3")
	if _, err := c.Advance(t.Context(), 30*time.Second); err != nil {
		t.Fatal(err)
	}
	later := *b
	later.Next = c.Now().Add(time.Second).UnixMilli()
	if err := m.Save(s, &later); err != nil {
		t.Fatal(err)
	}
	if _, b := next(t, m, "a"); b != nil {
		t.Errorf("%+v is due before its time", b)
	}
	if _, err := c.Advance(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	if s, b = next(t, m, "a"); b == nil || b.ID != later.ID || fmt.Sprint(read(t, m, s, b)) != "[1 2]" {
		t.Fatalf("%+v", b)
	}
	if err := m.Done(s, b); err != nil {
		t.Fatal(err)
	}
	if _, b := next(t, m, "a"); b != nil {
		t.Errorf("%+v is due before its time", b)
	}
	// 4 MiB at once are several chunks, and several batches of 1 MiB.
	var large []deliverystream.Record
	for i := range 500 {
		large = append(large, deliverystream.Record{Data: bytes.Repeat([]byte{byte(i)}, 8<<10)})
	}
	if _, err := m.Put(t.Context(), name("a"), large); err != nil {
		t.Fatal(err)
	}
	var got []string
	batches := 0
	for {
		s, b := next(t, m, "a")
		if b == nil {
			break
		}
		batches++
		got = append(got, read(t, m, s, b)...)
		if err := m.Done(s, b); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Advance(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	for s, b := next(t, m, "a"); b != nil; s, b = next(t, m, "a") {
		got = append(got, read(t, m, s, b)...)
		if err := m.Done(s, b); err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != 501 || got[0] != "3" || batches < 3 {
		t.Fatalf("%d records in %d batches", len(got), batches)
	}
	for i, data := range got[1:] {
		if data != string(large[i].Data) {
			t.Fatalf("record %d is another one", i)
		}
	}
	if size, since := m.Buffered(name("a")); size != 0 || since != 0 {
		t.Errorf("%d bytes are buffered since %d", size, since)
	}
}

// What is refused changes nothing.
func TestRefusals(t *testing.T) {
	m := open(t, shardtest.JournalOf(t, memory.New(), nil), sealing(t), clock.NewVirtual(shardtest.Start), deliverystreams.Options{MaxStreams: 1, MaxBytes: 1 << 20})
	create(t, m, "a")
	put(t, m, "a", strings.Repeat("x", 900<<10))
	before := everything(t)(m)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	big := []deliverystream.Record{{Data: make([]byte, 200<<10)}}
	for what, tt := range map[string]struct {
		err, want error
	}{
		"taken":        {m.Create(made("a"), ""), deliverystream.ErrTaken},
		"too many":     {m.Create(made("b"), ""), deliverystream.ErrMany},
		"no stream":    {m.Delete(name("none")), deliverystream.ErrNoStream},
		"full":         {errorOf(m.Put(t.Context(), name("a"), big)), deliverystream.ErrFull},
		"put to none":  {errorOf(m.Put(t.Context(), name("none"), big)), deliverystream.ErrNoStream},
		"who has gone": {errorOf(m.Put(gone, name("a"), big)), context.Canceled},
		"command": {m.Change(name("a"), nil, func(s *deliverystream.Stream, _ time.Time) error {
			s.Version = 7
			return deliverystream.ErrVersion
		}), deliverystream.ErrVersion},
	} {
		if !errors.Is(tt.err, tt.want) {
			t.Errorf("%s: %v", what, tt.err)
		}
	}
	if after := everything(t)(m); after != before {
		t.Errorf("%s became %s", before, after)
	}
}

func errorOf(_ []string, err error) error { return err }

// Many put at once while batches are delivered: each record once, those of a caller in
// their order.
func TestConcurrent(t *testing.T) {
	m := open(t, shardtest.JournalOf(t, memory.New(), nil), sealing(t), clock.System, deliverystreams.Options{})
	s := made("a")
	s.S3.BufferingHints.IntervalInSeconds = new(0)
	if err := m.Create(s, ""); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var got []string
	const callers, each = 8, 50
	all := make(chan struct{})
	m.Start(func(of deliverystream.Instance) {
		for {
			s, b, err := m.Next(of)
			if err != nil || s == nil {
				return
			}
			_, err = m.Read(s, b, func(_ int64, records []deliverystream.Record) error {
				mu.Lock()
				defer mu.Unlock()
				for _, r := range records {
					got = append(got, string(r.Data))
				}
				return nil
			})
			if err != nil || m.Done(s, b) != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			n := len(got)
			mu.Unlock()
			if n == callers*each {
				close(all)
			}
		}
	}, nil)
	var putting sync.WaitGroup
	for c := range callers {
		putting.Go(func() {
			for i := range each {
				if _, err := m.Put(t.Context(), name("a"), []deliverystream.Record{{Data: fmt.Appendf(nil, "%d %d", c, i)}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	putting.Wait()
	<-all
	mu.Lock()
	defer mu.Unlock()
	latest := map[int]int{}
	for _, data := range got {
		var c, i int
		if _, err := fmt.Sscan(data, &c, &i); err != nil || latest[c] != i {
			t.Fatalf("%q comes where %d is next, %v", data, latest[c], err)
		}
		latest[c]++
	}
}

// Small records wait for their time until there are as many bytes as a buffer takes, or until they use up
// the stream's bound, also behind a restart.
func TestSmallRecordsWait(t *testing.T) {
	for _, tt := range []struct {
		name        string
		bound       int64
		bytes, most int // of a record; until a batch is due
	}{
		{"bytes", 0, 300, (1<<20 + 299) / 300},
		{"the bound", 8 << 20, 1, 2 << 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, keys, disk := clock.NewVirtual(shardtest.Start), sealing(t), memory.New()
			o := deliverystreams.Options{MaxBytes: tt.bound}
			m := open(t, shardtest.JournalOf(t, disk, nil), keys, c, o)
			create(t, m, "a")
			for i := range tt.most + 1 { // one more than is due
				if i == tt.most {
					if _, b := next(t, m, "a"); b == nil || b.Records != int64(tt.most) {
						t.Errorf("of %d records %+v is due", i, b)
					}
				}
				put(t, m, "a", strings.Repeat("x", tt.bytes))
				if i == tt.most-2 {
					m = open(t, shardtest.JournalOf(t, disk, nil), keys, c, o)
					if _, b := next(t, m, "a"); b != nil {
						t.Fatalf("%d records are due after %d", b.Records, i+1)
					}
				}
			}
		})
	}
}

// What a stream holds is the same behind a restart, also of a batch that is under way.
func TestHeldAfterRestart(t *testing.T) {
	c, keys, disk := clock.NewVirtual(shardtest.Start), sealing(t), memory.New()
	j := shardtest.JournalOf(t, disk, nil)
	m := open(t, j, keys, c, deliverystreams.Options{})
	create(t, m, "a")
	put(t, m, "a", "1")
	put(t, m, "a", "")
	if _, err := c.Advance(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	_, first := next(t, m, "a")
	put(t, m, "a", "2")
	before, since := m.Buffered(name("a"))
	again := open(t, shardtest.JournalOf(t, disk, nil), keys, c, deliverystreams.Options{})
	if bytes, at := again.Buffered(name("a")); bytes != before || at != since {
		t.Errorf("%d bytes since %d, before %d since %d", bytes, at, before, since)
	}
	s, b := next(t, again, "a")
	if b == nil || b.ID != first.ID {
		t.Fatalf("%+v is due", b)
	}
	if err := again.Done(s, b); err != nil {
		t.Fatal(err)
	}
	if bytes, _ := again.Buffered(name("a")); bytes != before/3 {
		t.Errorf("%d bytes are left of %d, which were of three chunks", bytes, before)
	}
}

// An instance is of one stream: it is over when that is deleted, and takes nothing of another
// that has its name.
func TestInstances(t *testing.T) {
	c := clock.NewVirtual(shardtest.Start)
	m := open(t, shardtest.JournalOf(t, memory.New(), nil), sealing(t), c, deliverystreams.Options{})
	create(t, m, "a")
	put(t, m, "a", "1")
	if _, err := c.Advance(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	old := instance(t, m, "a")
	deleted, gone := next(t, m, "a")
	if err := m.Delete(name("a")); err != nil {
		t.Fatal(err)
	}
	create(t, m, "a")
	put(t, m, "a", "2")
	if _, err := c.Advance(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	s, b := next(t, m, "a")
	if b == nil || fmt.Sprint(read(t, m, s, b)) != "[2]" {
		t.Fatalf("%+v", b)
	}
	if err := errors.Join(m.Save(deleted, gone), m.Done(deleted, gone)); err != nil {
		t.Fatal(err)
	}
	if s, b, err := m.Next(old); s != nil || b != nil || err != nil {
		t.Errorf("the instance that was deleted goes on with %+v, %v", b, err)
	}
	if size, _ := m.Buffered(name("a")); size == 0 {
		t.Error("what the other one holds is gone")
	}
}

// failing is a store that cannot be read while it is told so.
type failing struct {
	*memory.Store

	broken atomic.Bool
}

func (f *failing) Iter(lower, upper []byte) (store.Iterator, error) {
	if f.broken.Load() {
		return nil, errBroken
	}
	return f.Store.Iter(lower, upper)
}

var errBroken = errors.New("broken")

// A stream whose records cannot be read is tried again.
func TestUnreadable(t *testing.T) {
	c, disk := clock.NewVirtual(shardtest.Start), &failing{Store: memory.New()}
	m := open(t, shardtest.JournalOf(t, disk, nil), sealing(t), c, deliverystreams.Options{})
	create(t, m, "a")
	put(t, m, "a", "1")
	if _, err := c.Advance(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	disk.broken.Store(true)
	if _, _, err := m.Next(instance(t, m, "a")); !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	disk.broken.Store(false)
	if _, b := next(t, m, "a"); b != nil {
		t.Errorf("%+v is tried at once", b)
	}
	if _, err := c.Advance(t.Context(), 5*time.Minute); err != nil {
		t.Fatal(err)
	}
	if s, b := next(t, m, "a"); b == nil || fmt.Sprint(read(t, m, s, b)) != "[1]" {
		t.Errorf("%+v is due", b)
	}
}

// A damaged chunk goes with its batch, and takes nothing else along.
func TestDamagedChunk(t *testing.T) {
	c, keys, disk := clock.NewVirtual(shardtest.Start), sealing(t), memory.New()
	m := open(t, shardtest.JournalOf(t, disk, nil), keys, c, deliverystreams.Options{})
	create(t, m, "a")
	for _, data := range []string{"1", "2", "3"} {
		put(t, m, "a", data)
	}
	var keysOfChunks [][]byte
	if err := store.Each(disk, keyspace.Prefix([]byte{keyspace.FirehoseSpace, keyspace.FirehoseChunks}), func(key, _ []byte) error {
		keysOfChunks = append(keysOfChunks, bytes.Clone(key))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var damage mutation.Batch
	damage.Set(keysOfChunks[1], []byte("damaged"))
	if err := disk.Apply(store.Sync, &damage); err != nil {
		t.Fatal(err)
	}
	m = open(t, shardtest.JournalOf(t, disk, nil), keys, c, deliverystreams.Options{})
	if _, err := c.Advance(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	s, b := next(t, m, "a")
	if b == nil || b.From != 1 || b.To != 3 || fmt.Sprint(read(t, m, s, b)) != "[1 2 3]" {
		t.Fatalf("%+v", b)
	}
	if err := m.Done(s, b); err != nil {
		t.Fatal(err)
	}
	if size, since := m.Buffered(name("a")); size != 0 || since != 0 {
		t.Errorf("%d bytes are buffered since %d", size, since)
	}
}

// A stream that is deleted and made again while others put and deliver gives nothing twice,
// and takes all that is put in the end.
func TestDeletedWhilePutting(t *testing.T) {
	m := open(t, shardtest.JournalOf(t, memory.New(), nil), sealing(t), clock.System, deliverystreams.Options{})
	another := func() {
		s := made("a")
		s.S3.BufferingHints.IntervalInSeconds = new(0)
		if err := m.Create(s, ""); err != nil {
			t.Error(err)
		}
	}
	another()
	var mu sync.Mutex
	got := map[string]int{}
	last := make(chan struct{})
	m.Start(func(of deliverystream.Instance) {
		for {
			s, b, err := m.Next(of)
			if err != nil || s == nil {
				return
			}
			_, err = m.Read(s, b, func(_ int64, records []deliverystream.Record) error {
				mu.Lock()
				defer mu.Unlock()
				for _, r := range records {
					if got[string(r.Data)]++; string(r.Data) == "last" {
						close(last)
					}
				}
				return nil
			})
			if err = errors.Join(err, m.Done(s, b)); err != nil {
				t.Error(err)
				return
			}
		}
	}, nil)
	const callers, each, times = 4, 100, 40
	var working sync.WaitGroup
	for c := range callers {
		working.Go(func() {
			for i := range each {
				if _, err := m.Put(t.Context(), name("a"), []deliverystream.Record{{Data: fmt.Appendf(nil, "%d %d", c, i)}}); err != nil && !errors.Is(err, deliverystream.ErrNoStream) {
					t.Error(err)
				}
			}
		})
	}
	working.Go(func() {
		for range times {
			if err := m.Delete(name("a")); err != nil {
				t.Error(err)
			}
			another()
		}
	})
	working.Wait()
	put(t, m, "a", "last")
	<-last
	mu.Lock()
	defer mu.Unlock()
	for data, n := range got {
		if n != 1 {
			t.Errorf("%s came %d times", data, n)
		}
	}
}
