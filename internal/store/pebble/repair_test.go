package pebble_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	engine "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/pebble"
	"godwit.dev/godwit/internal/store/storetest"
	"godwit.dev/godwit/test/output"
	"godwit.dev/godwit/test/soak"
)

// young makes a store in data with one table in the youngest level, which has damage at
// a place of it, over older records of every key.
func young(t *testing.T, fs vfs.FS, records int, at float64) (o pebble.Options, path string) {
	t.Helper()
	o = options(t, fs)
	o.MemTableBytes = 4 << 20
	s := open(t, "data", o)
	for n := range records {
		if err := s.Apply(store.NoSync, storetest.Sets(string(damagedKey(n)), fmt.Sprintf("value of %d", n))); err != nil {
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
		if err := s.Apply(store.NoSync, storetest.Sets(fmt.Sprintf("flood %07d", n*7919%10_000_000), string(value))); err != nil {
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
	for _, noLog := range []bool{false, true} {
		t.Run(fmt.Sprint("NoLog=", noLog), func(t *testing.T) { testDamagedYoungTable(t, noLog) })
	}
}

func testDamagedYoungTable(t *testing.T, noLog bool) {
	const records = 3000
	fs := vfs.NewMem()
	o, path := young(t, fs, records, 0.3)
	o.NoLog = noLog
	var log output.Buffer
	o.Logger = slog.New(slog.NewTextHandler(io.MultiWriter(&log, t.Output()), nil))
	s := open(t, "data", o)
	for n := 700; n < 1500; n += 7 { // younger ones
		if err := s.Apply(store.NoSync, storetest.Sets(string(damagedKey(n)), fmt.Sprintf("value of %d", n))); err != nil {
			t.Fatal(err)
		}
	}
	flood(t, s, 200)
	gone := missing(t, s, records)
	for n := 700; n < 1500; n += 7 {
		if gone[string(damagedKey(n))] {
			t.Errorf("%q is lost, which was written after the damage", damagedKey(n))
		}
	}
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
	if err := s.Apply(store.Sync, b); err != nil {
		t.Fatal(err)
	}
	for key := range gone {
		if v, ok, err := s.Get(nil, []byte(key)); err != nil || !ok || string(v) != "new" {
			t.Errorf("%q, written anew, is %q, %v, %v", key, v, ok, err)
		}
	}
	closed(t, s)
}

// TestRepairs: whatever block of a table or of values is damaged, whenever, writes continue,
// what is not in the block can be read, nothing that was deleted or overwritten comes
// back, and what cannot be read is said to be damaged; after a start, too.
func TestRepairs(t *testing.T) {
	soak.Campaign(t, soak.Size(1, 12), func(t *testing.T, seed uint64) { testRepairs(t, soak.Rand(seed, 0)) })
}

func testRepairs(t *testing.T, r *rand.Rand) {
	fs := vfs.NewCrashableMem()
	o := options(t, fs)
	o.NoLog = r.IntN(2) == 0
	var log output.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	m := &model{t: t, r: r, s: open(t, "data", o), log: &log, values: map[string]int{}}
	m.write(soak.Size(1500, 3000))
	if r.IntN(2) == 0 { // into deep levels
		closed(t, m.s)
		compactAll(t, fs)
		m.s = open(t, "data", o)
		m.write(soak.Size(1000, 2000))
	}
	for range 1 + r.IntN(3) {
		suffix := []string{".sst", ".blob"}[r.IntN(2)]
		if r.IntN(2) == 0 {
			damage(t, fs, suffix, r)
		} else {
			closed(t, m.s)
			damage(t, fs, suffix, r)
			m.s = open(t, "data", o)
		}
		m.write(soak.Size(800, 2000) + r.IntN(soak.Size(400, 2000)))
		m.check()
	}
	flood(t, m.s, 30)
	m.check()
	if err := m.s.Sync(); err != nil {
		t.Fatal(err)
	}
	disk := fs.CrashClone(vfs.CrashCloneCfg{})
	closed(t, m.s)
	m.s = open(t, "data", o)
	m.check()
	closed(t, m.s)
	o.FS = disk
	m.s = open(t, "data", o)
	m.check()
	closed(t, m.s)
	if t.Failed() {
		t.Logf("%s", log.String())
	}
}

// damage turns a bit of a file around.
func damage(t *testing.T, fs vfs.FS, suffix string, r *rand.Rand) {
	t.Helper()
	paths := named(t, fs, "data", suffix)
	if len(paths) == 0 {
		return
	}
	path := paths[r.IntN(len(paths))]
	was, err := fs.Open(path) // which stays, also if it is merged meanwhile
	if err != nil {
		return
	}
	info, err := was.Stat()
	if err := errors.Join(err, was.Close()); err != nil {
		t.Fatal(err)
	}
	if info.Size() == 0 {
		return // not yet written
	}
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if now, err := f.Stat(); err != nil || now.Size() == 0 { // it has been, and this is a new one
		if err := errors.Join(err, f.Close(), fs.Remove(path)); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	flip(t, fs, path, r.Int64N(info.Size()), uint(r.IntN(8)))
}

// compactAll merges all tables of a store that is closed.
func compactAll(t *testing.T, fs vfs.FS) {
	t.Helper()
	db, err := engine.Open("data", &engine.Options{FS: fs, FormatMajorVersion: engine.FormatValueSeparation, Logger: quiet{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Compact(t.Context(), []byte{0}, []byte{0xff, 0xff}, false), db.Close()); err != nil {
		t.Fatal(err)
	}
}

type quiet struct{}

func (quiet) Infof(string, ...any)      {}
func (quiet) Errorf(string, ...any)     {}
func (quiet) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }

// modelled is how many keys a model has.
var modelled = soak.Size(600, 2000)

// model knows what a store should have.
type model struct {
	t      *testing.T
	r      *rand.Rand
	s      *pebble.Store
	n      int
	log    *output.Buffer
	values map[string]int // by key, what its value was made from
}

func (m *model) write(writes int) {
	m.t.Helper()
	for range writes {
		b := new(mutation.Batch)
		key := damagedKey(m.r.IntN(modelled))
		switch m.n++; m.r.IntN(40) {
		default:
			b.Set(key, valueOf(key, m.n))
			m.values[string(key)] = m.n
		case 0, 1, 2, 3, 4, 5:
			b.Delete(key)
			delete(m.values, string(key))
		case 6:
			from := m.r.IntN(modelled)
			b.DeleteRange(damagedKey(from), damagedKey(from+10))
			for n := range 10 {
				delete(m.values, string(damagedKey(from+n)))
			}
		}
		sync := store.NoSync
		if m.r.IntN(100) == 0 {
			sync = store.Sync
		}
		if err := m.s.Apply(sync, b); err != nil {
			m.t.Fatal(err)
		}
	}
	if err := m.s.Sync(); err != nil {
		m.t.Fatal(err)
	}
}

func (m *model) check() {
	m.t.Helper()
	lost := 0
	for n := range modelled {
		key := damagedKey(n)
		v, ok, err := m.s.Get(nil, key)
		made, should := m.values[string(key)]
		switch {
		case err != nil:
			m.t.Fatal(err)
		case !should && ok && len(v) > 0:
			m.t.Errorf("%q is there, which was deleted", key)
		case !should:
		case !ok || len(v) == 0:
			lost++
			if err := m.s.DamageIn(key, append(bytes.Clone(key), 0)); !errors.Is(err, store.ErrDamaged) {
				m.t.Errorf("%q is not there, and the store says %v", key, err)
			}
		case !bytes.Equal(v, valueOf(key, made)):
			m.t.Errorf("%q has another value", key)
		}
	}
	if lost > modelled*3/4 {
		m.t.Errorf("%d records are lost", lost)
	}
	m.t.Logf("%d lost, %d layers", lost, m.s.Stats().L0Sublevels)
	for line := range strings.Lines(m.log.String()) {
		if strings.Contains(line, "stays in the way") || strings.Contains(line, "not yet out") {
			m.t.Error(line)
		}
	}
}

// A crash at any operation of a repair loses nothing more, and lets nothing come back.
func TestCrashWhileRepairing(t *testing.T) {
	records := soak.Size(800, 3000)
	younger := records / 4
	fs := vfs.NewCrashableMem()
	old := open(t, "data", options(t, fs))
	for n := range records {
		if err := old.Apply(store.NoSync, storetest.Sets(string(damagedKey(n)), "an old value")); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, old)
	compactAll(t, fs)
	o := options(t, fs)
	o.MemTableBytes = 4 << 20
	s := open(t, "data", o)
	before := named(t, fs, "data", ".sst")
	for n := range records {
		if err := s.Apply(store.NoSync, storetest.Sets(string(damagedKey(n)), fmt.Sprintf("value of %d", n))); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, s)
	closed(t, open(t, "data", o))
	for _, path := range named(t, fs, "data", ".sst") {
		if !slices.Contains(before, path) {
			flip(t, fs, path, sized(t, fs, path)/3, 3)
		}
	}
	var crashes []*vfs.MemFS
	var mu sync.Mutex
	seen := false
	hook := errorfs.InjectorFunc(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(op.Path, "godwit-damage") {
			seen = true
		}
		if seen && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && len(crashes) < 24 {
			crashes = append(crashes, fs.CrashClone(vfs.CrashCloneCfg{}))
		}
		return nil
	})
	o.FS = errorfs.Wrap(fs, hook)
	var log output.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s = open(t, "data", o)
	for n := younger; n < 2*younger; n += 7 {
		if err := s.Apply(store.Sync, storetest.Sets(string(damagedKey(n)), fmt.Sprintf("value of %d", n))); err != nil {
			t.Fatal(err)
		}
	}
	gone := missing(t, s, records)
	flood(t, s, 20)
	if again := missing(t, s, records); len(gone) == 0 || len(again) > len(gone) || len(gone) > 1000 {
		t.Errorf("%d records are lost, and then %d", len(gone), len(again))
	}
	closed(t, s)
	if len(crashes) < 12 || !strings.Contains(log.String(), "out of the way") {
		t.Fatalf("%d crashes:\n%s", len(crashes), log.String())
	}
	for _, i := range soak.Spread(len(crashes), 2) {
		o := options(t, crashes[i])
		o.Logger = slog.New(slog.DiscardHandler)
		s := open(t, "data", o)
		if again := missing(t, s, records); len(again) > len(gone)+younger/7+1 { // a crash may be before the younger ones
			t.Errorf("crash %d: %d records are lost, not %d", i, len(again), len(gone))
		}
		closed(t, s)
	}
}
