package pebble_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/pebble"
	"godwit.dev/godwit/internal/store/pebble/files"
	"godwit.dev/godwit/internal/store/pebble/mark"
	"godwit.dev/godwit/internal/store/storetest"
	"godwit.dev/godwit/test/output"
	"godwit.dev/godwit/test/soak"
)

// flip turns one bit of a file around.
func flip(t *testing.T, fs vfs.FS, path string, offset int64, bit uint) {
	t.Helper()
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	if _, err := f.ReadAt(b[:], offset); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1 << bit
	if _, err := f.WriteAt(b[:], offset); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func named(t *testing.T, fs vfs.FS, dir, suffix string) (paths []string) {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if strings.HasSuffix(n, suffix) {
			paths = append(paths, fs.PathJoin(dir, n))
		}
	}
	return paths
}

func sized(t *testing.T, fs vfs.FS, path string) int64 {
	t.Helper()
	info, err := fs.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// damagedKey makes keys that no two of which share a block's end.
func damagedKey(n int) []byte { return fmt.Appendf(nil, "key %06d", n) }

// TestDamagedTables: one flipped bit anywhere in a table or a blob file takes
// away what stands there, and nothing else; it is reported, and the process continues.
func TestDamagedTables(t *testing.T) {
	const records = 600
	r := soak.Rand(soak.Seed(t), 1)
	for round := range soak.Size(8, 24) {
		suffix, size := ".blob", 1500
		if round%2 == 1 {
			suffix, size = ".sst", 150
		}
		fs := vfs.NewMem()
		o := options(t, fs)
		o.MemTableBytes = 4 << 20
		s := open(t, "data", o)
		value := make([]byte, size)
		incompressible(value)
		for n := range records {
			b := new(mutation.Batch)
			copy(value, damagedKey(n))
			b.Set(damagedKey(n), value)
			if err := s.Apply(store.NoSync, b); err != nil {
				t.Fatal(err)
			}
		}
		closed(t, s)
		s = open(t, "data", o) // which writes the log out
		closed(t, s)
		paths := named(t, fs, "data", suffix)
		if len(paths) == 0 {
			t.Fatalf("no %s", suffix)
		}
		path := paths[r.IntN(len(paths))]
		offset := r.Int64N(sized(t, fs, path))
		flip(t, fs, path, offset, uint(r.IntN(8)))
		var log output.Buffer
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		s, err := pebble.Open("data", o)
		if err != nil {
			t.Fatalf("%s at %d: %v", path, offset, err)
		}
		seen := map[string]bool{}
		lost := 0
		it, err := s.Iter(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for it.Next() {
			key, v := string(it.Key()), it.Value()
			if len(v) == 0 {
				lost++
				continue
			}
			if len(v) != size || !bytes.HasPrefix(v, []byte(key)) {
				t.Fatalf("%s at %d: %q has the value of another", path, offset, key)
			}
			if seen[key] {
				t.Errorf("%s at %d: %q comes twice", path, offset, key)
			}
			seen[key] = true
		}
		if err := it.Close(); err != nil {
			t.Fatalf("%s at %d: %v", path, offset, err)
		}
		down, err := s.Iter(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for down.Prev() {
			if len(down.Value()) > 0 {
				n++
			}
		}
		if err := down.Close(); err != nil || n != len(seen) {
			t.Errorf("%s at %d: %d records upwards and %d downwards, %v", path, offset, len(seen), n, err)
		}
		for n := range records {
			v, ok, err := s.Get(nil, damagedKey(n))
			if err != nil {
				t.Fatalf("%s at %d: Get: %v", path, offset, err)
			}
			if has := ok && len(v) == size; has != seen[string(damagedKey(n))] {
				t.Errorf("%s at %d: %q is there: %v, in a walk %v", path, offset, damagedKey(n), has, !has)
			}
		}
		damage := s.Damage()
		if missing := records - len(seen); missing > 0 {
			if missing > 120 && missing < records { // a block
				t.Errorf("%s at %d: %d records are lost", path, offset, missing)
			}
			if !errors.Is(damage, store.ErrDamaged) || !strings.Contains(damage.Error(), fs.PathBase(path)) || !strings.Contains(damage.Error(), "godwit salvage") {
				t.Errorf("%s at %d: %d of %d records are missing, and it says %v", path, offset, missing, records, damage)
			}
			if !strings.Contains(log.String(), fs.PathBase(path)) {
				t.Errorf("%s at %d: not told:\n%s", path, offset, &log)
			}
		}
		t.Logf("%s at %d of %d: %d lost", path, offset, sized(t, fs, path), records-len(seen))
		closed(t, s)
	}
}

// A file of values that cannot even be opened is damage like any other: what was in it is left out
// and told, and what else there is can be read.
func TestTruncatedValues(t *testing.T) {
	fs := vfs.NewMem()
	o := options(t, fs)
	value := make([]byte, 1500)
	incompressible(value)
	for _, key := range []string{"here", "there"} { // each start writes a file
		s := open(t, "data", o)
		if err := s.Apply(store.Sync, storetest.Sets(key, string(value))); err != nil {
			t.Fatal(err)
		}
		closed(t, s)
	}
	closed(t, open(t, "data", o))
	path := slices.Min(named(t, fs, "data", ".blob")) // of here
	cut(t, fs, path, sized(t, fs, path)/2)
	var log output.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s := open(t, "data", o)
	if v, ok, err := s.Get(nil, []byte("here")); err != nil || !ok || len(v) > 0 {
		t.Errorf("what was in it: %q, %v, %v", v, ok, err)
	}
	if v, ok, err := s.Get(nil, []byte("there")); err != nil || !ok || !bytes.Equal(v, value) {
		t.Errorf("what was not in it: %v, %v", ok, err)
	}
	if err := s.DamageIn([]byte("here"), []byte("herf")); !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), fs.PathBase(path)) {
		t.Errorf("the store says %v", err)
	}
	if !strings.Contains(log.String(), fs.PathBase(path)) {
		t.Errorf("the log does not name %s:\n%s", path, &log)
	}
	closed(t, s)
}

// TestDamagedOptions: what docs/recovery.md says of the files without a checksum.
func TestDamagedOptions(t *testing.T) {
	for _, tt := range []struct {
		name, line string
		at         int // in the line
		refused    bool
	}{
		{"the order of keys", "comparer=", len("comparer="), true},
		{"the merger", "merger=", len("merger="), true},
		{"the logs' directory", "wal_dir=", len("wal_dir"), true}, // no = any more
		{"a number", "bytes_per_sync=", len("bytes_per_sync="), false},
		{"the name of a line", "bytes_per_sync=", 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fs := vfs.NewMem()
			o := options(t, fs)
			s := open(t, "data", o)
			if err := s.Apply(store.Sync, storetest.Sets("a", "b")); err != nil {
				t.Fatal(err)
			}
			closed(t, s)
			for _, path := range optionsFiles(t, fs) {
				text := contents(t, fs, path)
				line := bytes.Index(text, []byte("  "+tt.line))
				if line < 0 {
					t.Fatalf("no line %s:\n%s", tt.line, text)
				}
				flip(t, fs, path, int64(line+2+tt.at), 0)
			}
			if err := pebble.Verify(fs, "data"); errors.Is(err, pebble.ErrDamaged) != tt.refused {
				t.Errorf("a look without a start says %v", err)
			}
			s, err := pebble.Open("data", o)
			if (err != nil) != tt.refused || err != nil && !strings.Contains(err.Error(), "godwit salvage") {
				t.Errorf("the start says %v", err)
			}
			if err == nil {
				closed(t, s)
			}
		})
	}
	fs := vfs.NewMem()
	closed(t, open(t, "data", options(t, fs)))
	for _, path := range optionsFiles(t, fs) {
		if err := fs.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, open(t, "data", options(t, fs)))
	for _, path := range named(t, fs, "data", "") {
		if strings.Contains(path, "marker.") && sized(t, fs, path) != 0 {
			t.Errorf("%s is not empty", path)
		}
	}
}

// A refusal names the file that is damaged, not a log whose end was torn by a crash.
func TestDamageBesideATornTail(t *testing.T) {
	for _, suffix := range []string{".sst", "OPTIONS"} {
		t.Run(suffix, func(t *testing.T) {
			fs := vfs.NewCrashableMem()
			o := options(t, fs)
			s := open(t, "data", o)
			for n := range 200 {
				if err := s.Apply(store.Sync, storetest.Sets(string(damagedKey(n)), strings.Repeat("x", 450))); err != nil {
					t.Fatal(err)
				}
			}
			closed(t, s)
			s = open(t, "data", o)
			if err := s.Apply(store.Sync, storetest.Sets("last", "one")); err != nil {
				t.Fatal(err)
			}
			o.FS = fs.CrashClone(vfs.CrashCloneCfg{})
			closed(t, s)
			tear(t, o.FS, slices.Max(named(t, o.FS, "data", ".log")))
			for _, path := range named(t, o.FS, "data", "") {
				if strings.Contains(path, suffix) {
					cut(t, o.FS, path, max(1, int64(bytes.Index(contents(t, o.FS, path), []byte("wal_dir="))+len("wal"))))
				}
			}
			for _, accept := range []bool{false, true} {
				o.AcceptLoss = accept
				s, err := pebble.Open("data", o)
				if err == nil {
					closed(t, s)
				}
				if !errors.Is(err, pebble.ErrDamaged) || errors.Is(err, pebble.ErrLoss) || strings.Contains(err.Error(), ".log") {
					t.Errorf("accept: %v: %v", accept, err)
				}
			}
			if aside := named(t, o.FS, "data", ""); slices.ContainsFunc(aside, func(path string) bool { return strings.Contains(path, "damaged-logs") }) {
				t.Errorf("a log was cut: %q", aside)
			}
		})
	}
}

// tear writes what a crash may leave behind the last record of a log.
func tear(t *testing.T, fs vfs.FS, path string) {
	t.Helper()
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte(strings.Repeat("torn", 10)), sized(t, fs, path))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func optionsFiles(t *testing.T, fs vfs.FS) (paths []string) {
	t.Helper()
	for _, path := range named(t, fs, "data", "") {
		if strings.Contains(path, "OPTIONS-") {
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		t.Fatal("no OPTIONS")
	}
	return paths
}

func contents(t *testing.T, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A log that is damaged where it says itself that it was durable is reported by all that look
// at it, although no mark was written since.
func TestDamageBehindTheMark(t *testing.T) {
	for _, offset := range []int64{5_000, 33_500} {
		t.Run(fmt.Sprint(offset), func(t *testing.T) {
			fs := vfs.NewCrashableMem()
			o := options(t, fs)
			s := open(t, "data", o)
			for n := range 200 {
				if err := s.Apply(store.Sync, storetest.Sets(string(damagedKey(n)), strings.Repeat("x", 450))); err != nil {
					t.Fatal(err)
				}
			}
			o.FS = fs.CrashClone(vfs.CrashCloneCfg{})
			closed(t, s)
			if err := o.FS.Remove("data/" + mark.Name); err != nil {
				t.Fatal(err)
			}
			whole := slices.Max(named(t, o.FS, "data", ".log"))
			tear(t, o.FS, whole) // which is no damage
			if err := pebble.Verify(o.FS, "data"); err != nil {
				t.Errorf("of a torn tail: %v", err)
			}
			flip(t, o.FS, whole, offset, 1)
			if err := pebble.Verify(o.FS, "data"); !errors.Is(err, pebble.ErrLoss) {
				t.Errorf("Verify: %v", err)
			}
			src, err := files.OpenSource(o.FS, "data")
			if err != nil {
				t.Fatal(err)
			}
			told, read := "", 0
			if err := src.Read(func(files.Write) error { read++; return nil }, func(p files.Problem, _ *files.Gap) { told += p.File + ": " + p.Err.Error() }); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(told, " durable bytes can be read") || read >= 200 || read < 100 {
				t.Errorf("%d writes were read, and this was told: %q", read, told)
			}
			if _, err := pebble.Open("data", o); !errors.Is(err, pebble.ErrLoss) || !strings.Contains(err.Error(), "--accept-data-loss") {
				t.Errorf("Open: %v", err)
			}
			o.AcceptLoss = true
			s = open(t, "data", o)
			if _, ok, err := s.Get(nil, damagedKey(0)); err != nil || !ok {
				t.Errorf("what stands before the damage: %v, %v", ok, err)
			}
			closed(t, s)
		})
	}
}
