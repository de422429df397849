package pebble_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/pebble"
)

// young makes a store in data with one table in the youngest level, which has damage at
// a place of it, over older records of every key.
func young(t *testing.T, fs vfs.FS, records int, at float64) (o pebble.Options, path string) {
	t.Helper()
	o = options(t, fs)
	o.MemTableBytes = 4 << 20
	s := open(t, "data", o)
	for n := range records {
		if err := s.Apply(false, put(string(damagedKey(n)), fmt.Sprintf("value of %d", n))); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, s)
	s = open(t, "data", o) // which writes the log out
	closed(t, s)
	paths := named(t, fs, "data", ".sst")
	if len(paths) != 1 {
		t.Fatalf("%d tables", len(paths))
	}
	path = paths[0]
	flip(t, fs, path, int64(float64(sized(t, fs, path))*at), 3)
	o.MemTableBytes = 64 << 10
	return o, path
}

// flood makes many tables.
func flood(t *testing.T, s *pebble.Store, tables int) {
	t.Helper()
	value := make([]byte, 400)
	for n := range tables * 130 {
		incompressible(value)
		if err := s.Apply(false, put(fmt.Sprintf("flood %07d", n*7919%10_000_000), string(value))); err != nil {
			t.Fatal(err)
		}
	}
}

// look reads records and says which are missing.
func missing(t *testing.T, s *pebble.Store, records int) (gone map[string]bool) {
	t.Helper()
	gone = map[string]bool{}
	for n := range records {
		key := damagedKey(n)
		v, ok, err := s.Get(nil, key)
		switch {
		case err != nil:
			t.Fatal(err)
		case !ok:
			if err := s.DamageIn(key, append(bytes.Clone(key), 0)); !errors.Is(err, store.ErrDamaged) {
				t.Errorf("%q is not there, and the store says %v", key, err)
			}
			gone[string(key)] = true
		case string(v) != fmt.Sprintf("value of %d", n):
			t.Errorf("%q is %q", key, v)
		}
	}
	it, err := s.Iter([]byte("key "), []byte("key!"))
	if err != nil {
		t.Fatal(err)
	}
	walked := 0
	for it.Next() {
		walked++
		if gone[string(it.Key())] {
			t.Errorf("a walk comes by %q", it.Key())
		}
	}
	if err := it.Close(); err != nil || walked != records-len(gone) {
		t.Errorf("a walk comes by %d of %d records: %v", walked, records-len(gone), err)
	}
	return gone
}

func TestDamagedYoungTable(t *testing.T) {
	const records = 3000
	fs := vfs.NewMem()
	o, path := young(t, fs, records, 0.3)
	var log bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(io.MultiWriter(&log, t.Output()), nil))
	s := open(t, "data", o)
	flood(t, s, 200)
	gone := missing(t, s, records)
	if len(gone) == 0 || len(gone) > 1000 {
		t.Errorf("%d records are lost", len(gone))
	}
	if layers := s.Stats().L0Sublevels; layers > 30 {
		t.Errorf("%d layers of young tables", layers)
	}
	closed(t, s)
	if !strings.Contains(log.String(), "out of the way") {
		t.Errorf("not told:\n%s", &log)
	}
	if _, err := fs.Stat(path); err == nil {
		t.Error("the damaged table is still in use")
	}
	if _, err := fs.Stat(fs.PathJoin("data", "damaged-files", fs.PathBase(path))); err != nil {
		t.Errorf("the damaged table is not kept: %v", err)
	}
	s = open(t, "data", o)
	if again := missing(t, s, records); len(again) != len(gone) {
		t.Errorf("%d records are lost, and after a start %d", len(gone), len(again))
	}
	b := new(mutation.Batch)
	for key := range gone {
		b.Set([]byte(key), []byte("new"))
	}
	if err := s.Apply(true, b); err != nil {
		t.Fatal(err)
	}
	for key := range gone {
		if v, ok, err := s.Get(nil, []byte(key)); err != nil || !ok || string(v) != "new" {
			t.Errorf("%q, written anew, is %q, %v, %v", key, v, ok, err)
		}
	}
	closed(t, s)
}
