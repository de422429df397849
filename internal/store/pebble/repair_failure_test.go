package pebble_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/pebble"
	"godwit.dev/godwit/internal/store/pebble/check"
	"godwit.dev/godwit/internal/store/pebble/salvage"
	"godwit.dev/godwit/internal/store/storetest"
	"godwit.dev/godwit/test/output"
	"godwit.dev/godwit/test/soak"
)

// layered is how many records layers has. Pebble opens a damaged table again for each read.
var layered = soak.Size(100, 1500)

// l0Sublevels makes a store in data whose records are overwritten in one young table, which
// it gives.
func l0Sublevels(t *testing.T, fs vfs.FS) (o pebble.Options, path string) {
	t.Helper()
	old := open(t, "data", options(t, fs))
	for n := range layered {
		if err := old.Apply(store.NoSync, storetest.Sets(string(damagedKey(n)), fmt.Sprintf("old value of %d", n))); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, old)
	compactAll(t, fs)
	before := named(t, fs, "data", ".sst")
	o = options(t, fs)
	o.MemTableBytes = 4 << 20
	s := open(t, "data", o)
	for n := range layered {
		b := storetest.Sets(string(damagedKey(n)), fmt.Sprintf("value of %d", n))
		if n%10 == 9 {
			b = new(mutation.Batch)
			b.Delete(damagedKey(n))
		}
		if err := s.Apply(store.NoSync, b); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, s)
	closed(t, open(t, "data", o)) // which writes the log out
	for _, p := range named(t, fs, "data", ".sst") {
		if !slices.Contains(before, p) {
			path = p
		}
	}
	return o, path
}

// lookedAt is which of the records of layers are lost. None may have an old value, or
// be one that was deleted.
func lookedAt(t *testing.T, s *pebble.Store) (lost []string) {
	t.Helper()
	for n := range layered {
		key := string(damagedKey(n))
		v, ok, err := s.Get(nil, []byte(key))
		switch {
		case err != nil:
			t.Fatal(err)
		case n%10 == 9 && ok:
			t.Errorf("%q is back: %q", key, v)
		case n%10 == 9:
		case !ok:
			lost = append(lost, key)
			if err := s.DamageIn([]byte(key), []byte(key+"\x00")); !errors.Is(err, store.ErrDamaged) {
				t.Errorf("%q is not there, and the store says %v", key, err)
			}
		case string(v) != fmt.Sprintf("value of %d", n):
			t.Errorf("%q is %q", key, v)
		}
	}
	return lost
}

// A repair for which the disk has no room waits for it; meanwhile nothing old comes back.
func TestRepairWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		o, path := l0Sublevels(t, fs)
		flip(t, fs, path, sized(t, fs, path)/3, 3)
		var log output.Buffer
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		disk := new(faulty)
		var tries atomic.Int64
		disk.set(func(op errorfs.Op) error {
			if strings.Contains(op.Path, "godwit-damage") && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				tries.Add(1)
				return syscall.ENOSPC
			}
			return nil
		})
		o.FS = errorfs.Wrap(fs, disk)
		s := open(t, "data", o)
		lost := lookedAt(t, s)
		synctest.Wait()
		pass(time.Minute)
		if n := tries.Load(); n < 3 || n > 20 || len(lost) == 0 {
			t.Errorf("%d tries in a minute, %d records are lost", n, len(lost))
		}
		if strings.Contains(log.String(), "is out of the way") {
			t.Errorf("repaired without its note:\n%s", log.String())
		}
		if again := lookedAt(t, s); !slices.Equal(again, lost) {
			t.Errorf("%d records are lost, and then %d", len(lost), len(again))
		}
		disk.set(nil)
		pass(20 * time.Second)
		if !strings.Contains(log.String(), "is out of the way") {
			t.Errorf("not repaired when there was room:\n%s", log.String())
		}
		if again := lookedAt(t, s); !slices.Equal(again, lost) {
			t.Errorf("%d records are lost, and then %d", len(lost), len(again))
		}
		closed(t, s)
	})
}

// Damage is where its records are, and nowhere else, before it is repaired and afterwards: an empty
// answer beside it is one, and records between two damaged places are served.
func TestWhereDamageIs(t *testing.T) {
	for suffix, size := range map[string]int{".sst": 150, ".blob": 1500} {
		t.Run(suffix, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testWhereDamageIs(t, suffix, make([]byte, size)) })
		})
	}
}

func testWhereDamageIs(t *testing.T, suffix string, value []byte) {
	const records = 900
	fs := vfs.NewMem()
	o := options(t, fs)
	o.MemTableBytes = 4 << 20
	s := open(t, "data", o)
	incompressible(value)
	for n := range records {
		if err := s.Apply(store.NoSync, storetest.Sets(string(damagedKey(n)), string(value))); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, s)
	closed(t, open(t, "data", o)) // which writes the log out
	path := named(t, fs, "data", suffix)[0]
	flip(t, fs, path, sized(t, fs, path)/4, 3)
	flip(t, fs, path, sized(t, fs, path)*5/8, 3)
	disk := new(faulty)
	disk.set(func(op errorfs.Op) error { // no repair yet
		if strings.Contains(op.Path, "godwit-damage") && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return syscall.ENOSPC
		}
		return nil
	})
	o.FS = errorfs.Wrap(fs, disk)
	s = open(t, "data", o)
	defer closed(t, s)
	look := func(lower []byte) (lost int) {
		var there [records]bool
		it, err := s.Iter(lower, nil)
		if err != nil {
			t.Fatal(err)
		}
		for it.Next() {
			var n int
			if _, err := fmt.Sscanf(string(it.Key()), "key %d", &n); err != nil || there[n] {
				t.Errorf("%q comes twice: %v", it.Key(), err)
			}
			there[n] = len(it.Value()) > 0
		}
		if err := it.Close(); err != nil {
			t.Fatal(err)
		}
		for n := range records {
			key := damagedKey(n)
			if bytes.Compare(key, lower) < 0 {
				continue
			}
			if err := s.DamageIn(key, append(bytes.Clone(key), 0)); errors.Is(err, store.ErrDamaged) == there[n] {
				t.Errorf("%q is there: %v, and the store says %v", key, there[n], err)
			}
			if !there[n] {
				lost++
			}
		}
		return lost
	}
	above := look(damagedKey(records / 2)) // first the upper one
	all := look(nil)
	if above == 0 || all <= above || all > records/2 {
		t.Errorf("%d records are lost, %d of them above", all, above)
	}
	disk.set(nil)
	pass(time.Minute) // until it is repaired
	if again := look(nil); again != all {
		t.Errorf("%d records are lost, and after the repair %d", all, again)
	}
}

// A repair waits for the readers that were there before it, who would see older records instead of
// what it replaces.
func TestRepairWaitsForReaders(t *testing.T) {
	for _, what := range []string{"a snapshot", "a walk"} {
		fs := vfs.NewMem()
		o, path := l0Sublevels(t, fs)
		flip(t, fs, path, sized(t, fs, path)/3, 3)
		var log output.Buffer
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		s := open(t, "data", o)
		var reader interface{ Close() error } = s.Snapshot()
		if what == "a walk" {
			walk, err := s.Iter(nil, nil)
			if err := errors.Join(err, reader.Close()); err != nil {
				t.Fatal(err)
			}
			reader = walk
		}
		lost := lookedAt(t, s)
		for n := 0; !strings.Contains(log.String(), "is out of the way") && n < 20; n++ {
			flood(t, s, 1)
		}
		if len(lost) == 0 || strings.Contains(log.String(), "is out of the way") {
			t.Errorf("%d records are lost, and beside %s the log says\n%s", len(lost), what, log.String())
		}
		if err := reader.Close(); err != nil {
			t.Error(err)
		}
		closed(t, s)
	}
}

// Damage that cannot be repaired is said once, not tried again, and leaves everything else
// as it is, also after a start.
func TestIrreparable(t *testing.T) {
	fs := vfs.NewMem()
	o, path := l0Sublevels(t, fs)
	for _, at := range []int64{sized(t, fs, path) - 30, sized(t, fs, path) - 20} { // in what says where its blocks are
		flip(t, fs, path, at, 1)
		flip(t, fs, path, at+1, 2)
	}
	var log output.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	for range 2 {
		s, err := pebble.Open("data", o)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 200 {
			if err := s.Apply(store.Sync, storetest.Sets(string(damagedKey(layered+n)), "new")); err != nil {
				t.Fatal(err)
			}
		}
		for n := range 200 {
			if v, ok, err := s.Get(nil, damagedKey(layered+n)); err != nil || !ok || string(v) != "new" {
				t.Errorf("%q is %q, %v, %v", damagedKey(layered+n), v, ok, err)
			}
		}
		for n := range layered {
			if _, ok, err := s.Get(nil, damagedKey(n)); ok || err != nil {
				t.Fatalf("%q, over which the damage is: %v, %v", damagedKey(n), ok, err)
			}
		}
		if s.Damage() == nil {
			t.Error("the store says that nothing is damaged")
		}
		closed(t, s)
	}
	if n := strings.Count(log.String(), "damage stays in the way"); n != 2 {
		t.Errorf("said %d times in two processes:\n%s", n, log.String())
	}
}

type anyRecords struct{}

func (anyRecords) Check(_, _ []byte) error          { return nil }
func (anyRecords) LostEarlier(_, _ []byte) bool     { return false }
func (anyRecords) Add(_, _ []byte)                  {}
func (anyRecords) Describe([]byte) (string, string) { return "record", "a test" }
func (anyRecords) Required(_, _ []byte) bool        { return false }

// A salvage brings back what was kept aside as a damaged block covered it, unless it
// was written again; and a check says what is lost.
func TestSalvageOfWhatWasCovered(t *testing.T) {
	fs := vfs.NewMem()
	o, path := l0Sublevels(t, fs)
	flip(t, fs, path, sized(t, fs, path)/3, 3)
	var log output.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s := open(t, "data", o)
	lost := lookedAt(t, s)
	for n := 0; !strings.Contains(log.String(), "is out of the way") && n < 100; n++ {
		flood(t, s, 1)
	}
	if len(lost) < 10 {
		t.Fatalf("%d records are lost", len(lost))
	}
	anew := lost[:3]
	for _, key := range anew {
		if err := s.Apply(store.Sync, storetest.Sets(key, "anew")); err != nil {
			t.Fatal(err)
		}
	}
	b := new(mutation.Batch)
	b.Delete([]byte(lost[3]))
	if err := s.Apply(store.Sync, b); err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	if !strings.Contains(log.String(), "is out of the way") {
		t.Fatalf("not repaired:\n%s", log.String())
	}
	report, err := salvage.Run("data", "copy", "copy/store", salvage.Options{FS: fs, Records: anyRecords{}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(report.Files, func(f check.File) bool { return f.Name == fs.PathBase(path) }) {
		t.Errorf("the report does not name the file: %v", report.Files)
	}
	o = options(t, fs)
	s = open(t, "copy/store", o)
	defer closed(t, s)
	for i, key := range lost {
		var n int
		if _, err := fmt.Sscanf(key, "key %d", &n); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("old value of %d", n)
		if i < 3 {
			want = "anew"
		}
		v, ok, err := s.Get(nil, []byte(key))
		switch {
		case err != nil:
			t.Fatal(err)
		case i == 3 && ok:
			t.Errorf("%q, which was deleted since, is back", key)
		case i != 3 && string(v) != want:
			t.Errorf("%q is %q, not %q", key, v, want)
		}
	}
	if s.Damage() != nil {
		t.Errorf("the copy is damaged: %v", s.Damage())
	}
}
