package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
)

// Engine makes stores to test. Each function ends the test on an error; the
// suite closes what it opens.
type Engine struct {
	// Open makes an empty store, separate from any other.
	Open func(t testing.TB) store.Store
	// OpenCheckpoint opens what Store.Checkpoint wrote.
	OpenCheckpoint func(t testing.TB, dir string) store.Store
	// Reopen closes a store of Open and opens it again. Nil if the engine persists nothing.
	Reopen func(t testing.TB, s store.Store) store.Store
}

// Run runs the suite that every engine passes.
func Run(t *testing.T, e Engine) {
	for name, f := range map[string]func(*testing.T, Engine){
		"Empty":                 testEmpty,
		"Get":                   testGet,
		"Order":                 testOrder,
		"Bounds":                testBounds,
		"Writes":                testWrites,
		"WritesInOneBatch":      testWritesInOneBatch,
		"NothingIsKept":         testNothingIsKept,
		"IteratorIsFixed":       testIteratorIsFixed,
		"Seek":                  testSeek,
		"GetEach":               testGetEach,
		"Snapshot":              testSnapshot,
		"Checkpoint":            testCheckpoint,
		"LargeBatch":            testLargeBatch,
		"History":               testHistory,
		"ConcurrentUse":         testConcurrentUse,
		"UseAfterClose":         testUseAfterClose,
		"CloseDuringUse":        testCloseDuringUse,
		"EqualFindsDifferences": testEqual,
	} {
		t.Run(name, func(t *testing.T) { f(t, e) })
	}
}

func (e Engine) open(t testing.TB) store.Store {
	t.Helper()
	s := e.Open(t)
	t.Cleanup(func() { closed(t, s) })
	return s
}

func closed(t TB, s store.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func apply(t TB, s store.Store, batches ...*mutation.Batch) {
	t.Helper()
	if err := s.Apply(store.NoSync, batches...); err != nil {
		t.Fatalf("Apply: %v", err)
	}
}

func wantNone(t TB, r store.Reader, key string) {
	t.Helper()
	if v, ok, err := r.Get(nil, []byte(key)); err != nil || ok || len(v) != 0 {
		t.Errorf("Get(%q) = %q, %v, %v, want nothing", key, v, ok, err)
	}
}

func testEmpty(t *testing.T, e Engine) {
	s := e.open(t)
	model{}.check(t, s)
	wantNone(t, s, "a")
	apply(t, s)
	apply(t, s, new(mutation.Batch))
	if err := s.Apply(store.Sync); err != nil {
		t.Errorf("Apply of nothing, synced: %v", err)
	}
	if err := s.Sync(); err != nil {
		t.Errorf("Sync of nothing: %v", err)
	}
	model{}.check(t, s)
}

func testGet(t *testing.T, e Engine) {
	s := e.open(t)
	apply(t, s, Sets("a", "1", "empty", "", "b", "2"))
	Wants(t, s, "a", "1")
	Wants(t, s, "empty", "")
	wantNone(t, s, "aa")
	dst := append(make([]byte, 0, 64), "dst-"...)
	if v, ok, err := s.Get(dst, []byte("b")); err != nil || !ok || string(v) != "dst-2" {
		t.Errorf("Get appended %q, %v, %v", v, ok, err)
	}
	if v, ok, err := s.Get(dst, []byte("c")); err != nil || ok || string(v) != "dst-" {
		t.Errorf("Get of nothing appended %q, %v, %v", v, ok, err)
	}
}

func testOrder(t *testing.T, e Engine) {
	s := e.open(t)
	m := model{}
	for _, k := range []string{"b", "\xff", "a\xff", "a", "\x00", "aa", "\xff\xff", "a\x00", "\x80", "\x7f"} {
		b := Sets(k, "at "+k)
		m.apply(t, b)
		apply(t, s, b)
	}
	m.check(t, s)
}

func testBounds(t *testing.T, e Engine) {
	s := e.open(t)
	m := model{}
	b := Sets("a", "1", "b", "2", "b\x00", "3", "c", "4", "\xff", "5")
	m.apply(t, b)
	apply(t, s, b)
	bounds := []string{"", "a", "a\x00", "b", "b\x00", "b\x01", "c", "d", "\xff", "\xff\xff"}
	for _, lower := range bounds {
		m.checkRange(t, s, lower, "", false)
		for _, upper := range bounds {
			m.checkRange(t, s, lower, upper, true)
		}
	}
	it, err := s.Iter(nil, []byte("b"))
	if err != nil {
		t.Fatal(err)
	}
	for want := range 3 {
		if more := it.Next(); more != (want == 0) {
			t.Errorf("Next number %d past the only key says %v", want, more)
		}
	}
	if err := it.Close(); err != nil {
		t.Error(err)
	}
}

func testWrites(t *testing.T, e Engine) {
	s := e.open(t)
	one := func(f func(b *mutation.Batch)) {
		b := new(mutation.Batch)
		f(b)
		apply(t, s, b)
	}
	apply(t, s, Sets("a", "1", "b", "1", "c", "1", "d", "1", "e", "1"))
	apply(t, s, Sets("a", "2"))
	Wants(t, s, "a", "2")
	one(func(b *mutation.Batch) { b.Delete([]byte("a")) })
	wantNone(t, s, "a")
	one(func(b *mutation.Batch) { b.SingleDelete([]byte("b")) })
	wantNone(t, s, "b")
	one(func(b *mutation.Batch) { b.Delete([]byte("nothing")) })
	one(func(b *mutation.Batch) { b.DeleteRange([]byte("c"), []byte("e")) })
	wantNone(t, s, "c")
	wantNone(t, s, "d")
	Wants(t, s, "e", "1") // the end is exclusive
	one(func(b *mutation.Batch) { b.DeleteRange([]byte("e"), []byte("e")) })
	one(func(b *mutation.Batch) { b.DeleteRange([]byte("z"), []byte("a")) })
	Wants(t, s, "e", "1") // an empty range deletes nothing
	apply(t, s, Sets("c", "3", "b", "3"))
	model{"b": {value: "3"}, "c": {value: "3"}, "e": {value: "1"}}.check(t, s)
}

func testWritesInOneBatch(t *testing.T, e Engine) {
	s := e.open(t)
	first, second := Sets("a", "1", "a", "2", "gone", "1", "once", "1", "m1", "1", "m2", "1"), new(mutation.Batch)
	first.Delete([]byte("gone"))
	first.SingleDelete([]byte("once"))
	first.DeleteRange([]byte("m"), []byte("n"))
	second.Set([]byte("m2"), []byte("2"))
	second.Delete([]byte("a"))
	second.Set([]byte("a"), []byte("3"))
	apply(t, s, first, second)
	model{"a": {value: "3"}, "m2": {value: "2"}}.check(t, s)
}

func testNothingIsKept(t *testing.T, e Engine) {
	s := e.open(t)
	key, lower, upper := []byte("k1"), []byte("k1"), []byte("k9")
	b := Sets("k1", "value", "k5", "x")
	apply(t, s, b)
	b.Reset()
	b.Set([]byte("XX"), []byte("XXXXX"))
	v, _, err := s.Get(nil, key)
	if err != nil {
		t.Fatal(err)
	}
	copy(v, "XXXXX")
	it, err := s.Iter(lower, upper)
	if err != nil {
		t.Fatal(err)
	}
	copy(lower, "zz")
	copy(upper, "k2")
	count := 0
	for it.Next() {
		count++
	}
	if err := it.Close(); err != nil || count != 2 {
		t.Errorf("an iterator whose bounds were written over found %d keys, %v", count, err)
	}
	copy(key, "zz")
	Wants(t, s, "k1", "value")
}

func testIteratorIsFixed(t *testing.T, e Engine) {
	s := e.open(t)
	apply(t, s, Sets("a", "1", "c", "1"))
	it, err := s.Iter(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := Sets("a", "2", "b", "2")
	b.Delete([]byte("c"))
	apply(t, s, b)
	var got []byte
	for it.Next() {
		got = append(append(got, it.Key()...), it.Value()...)
	}
	if err := it.Close(); err != nil || string(got) != "a1c1" {
		t.Errorf("iterator from before a batch sees %q, %v", got, err)
	}
}

func testSnapshot(t *testing.T, e Engine) {
	s := e.open(t)
	before := model{}
	b := Sets("a", "1", "b", "1", "c", "1", "d", "1")
	before.apply(t, b)
	apply(t, s, b)
	view := s.Snapshot()
	after := maps.Clone(before)
	b = Sets("a", "2", "e", "2")
	b.SingleDelete([]byte("b"))
	b.DeleteRange([]byte("c"), []byte("d"))
	after.apply(t, b)
	apply(t, s, b)
	second := s.Snapshot()
	apply(t, s, Sets("f", "3"))
	before.check(t, view)
	before.checkRange(t, view, "b", "d", true)
	Wants(t, view, "a", "1")
	Wants(t, view, "b", "1")
	wantNone(t, view, "e")
	after.check(t, second)
	Wants(t, s, "f", "3")
	for _, v := range []store.Snapshot{view, second} {
		if err := v.Close(); err != nil {
			t.Errorf("Snapshot.Close: %v", err)
		}
	}
	if _, _, err := view.Get(nil, []byte("a")); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Get of a closed snapshot: %v", err)
	}
}

func testCheckpoint(t *testing.T, e Engine) {
	s := e.open(t)
	m := model{}
	for i := range 300 {
		b := Sets(fmt.Sprintf("key %03d", i), string(bytes.Repeat([]byte{byte(i)}, i*10)))
		m.apply(t, b)
		apply(t, s, b)
	}
	dir := filepath.Join(t.TempDir(), "new", "checkpoint")
	if err := s.Checkpoint(dir); err != nil {
		t.Fatal(err)
	}
	apply(t, s, Sets("key 000", "later"))
	if err := s.Checkpoint(dir); err == nil {
		t.Error("Checkpoint into a directory that exists succeeded")
	}
	c := e.OpenCheckpoint(t, dir)
	t.Cleanup(func() { closed(t, c) })
	m.check(t, c)
	apply(t, c, Sets("only", "here"))
	Wants(t, c, "only", "here")
	wantNone(t, s, "only")
}

func testLargeBatch(t *testing.T, e Engine) {
	s := e.open(t)
	value := make([]byte, 64<<10)
	b := new(mutation.Batch)
	for i := range mutation.MaxFramedBatch/len(value) - 1 {
		value[0] = byte(i)
		b.Set([]byte{byte(i)}, value)
	}
	apply(t, s, b, Sets("small", "1"))
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for k, v := range Range(t, s, nil, []byte("small")) {
		if len(v) != len(value) || k[0] != byte(n) || v[0] != byte(n) {
			t.Fatalf("key %d is %q with %d bytes", n, k, len(v))
		}
		n++
	}
	if n != b.Len() {
		t.Errorf("found %d keys of %d", n, b.Len())
	}
	Wants(t, s, "small", "1")
}

// Random histories, with snapshots and reopening, match the model.
func testHistory(t *testing.T, e Engine) {
	rapid.Check(t, func(rt *rapid.T) {
		s := e.Open(t)
		defer func() { closed(rt, s) }()
		m := model{}
		type fixed struct {
			view store.Snapshot
			want model
		}
		var views []fixed
		release := func() {
			for _, v := range views {
				v.want.check(rt, v.view)
				if err := v.view.Close(); err != nil {
					rt.Fatalf("Snapshot.Close: %v", err)
				}
			}
			views = nil
		}
		defer release()
		rt.Repeat(map[string]func(*rapid.T){
			"apply": func(rt *rapid.T) {
				var batches []*mutation.Batch
				for range rapid.IntRange(1, 3).Draw(rt, "batches") {
					b := drawBatch(rt, m)
					m.apply(rt, b)
					batches = append(batches, b)
				}
				write := s.Apply
				if rapid.Bool().Draw(rt, "commit") {
					write = func(sync store.SyncMode, batches ...*mutation.Batch) error { return commit(s, sync, batches...) }
				}
				if err := write(syncModes.Draw(rt, "sync"), batches...); err != nil {
					rt.Fatalf("Apply: %v", err)
				}
			},
			"range": func(rt *rapid.T) {
				m.checkRange(rt, s, keys.Draw(rt, "lower"), keys.Draw(rt, "upper"), true)
			},
			"get": func(rt *rapid.T) {
				k := keys.Draw(rt, "key")
				if want, ok := m[k]; ok {
					Wants(rt, s, k, want.value)
				} else {
					wantNone(rt, s, k)
				}
			},
			"snapshot": func(*rapid.T) {
				if len(views) < 3 {
					views = append(views, fixed{s.Snapshot(), maps.Clone(m)})
				}
			},
			"release": func(*rapid.T) { release() },
			"reopen": func(rt *rapid.T) {
				// Rarely, since it is slow.
				if e.Reopen != nil && rapid.IntRange(0, 3).Draw(rt, "rarely") == 0 {
					release()
					s = e.Reopen(t, s)
				}
			},
			"": func(rt *rapid.T) { m.check(rt, s) },
		})
	})
}

// Several concurrent writers and readers: a reader sees each batch whole or not at all, and a
// writer its own at once.
func testConcurrentUse(t *testing.T, e Engine) {
	s := e.open(t)
	const writers, rounds = 4, 50
	var writing, reading sync.WaitGroup
	var over atomic.Bool
	for w := range writers {
		writing.Go(func() {
			for i := range rounds {
				v := strconv.Itoa(i)
				left, right := fmt.Sprintf("left %d", w), fmt.Sprintf("right %d", w)
				if err := s.Apply(every(10, i), Sets(left, v), Sets(right, v)); err != nil {
					t.Errorf("Apply: %v", err)
					return
				}
				Wants(t, s, right, v)
			}
		})
	}
	for range 2 {
		reading.Go(func() {
			for !over.Load() {
				view := s.Snapshot()
				for w := range writers {
					l, _, err := view.Get(nil, fmt.Appendf(nil, "left %d", w))
					r, _, err2 := view.Get(nil, fmt.Appendf(nil, "right %d", w))
					if err := errors.Join(err, err2); err != nil || !bytes.Equal(l, r) {
						t.Errorf("half a batch: %q and %q, %v", l, r, err)
					}
				}
				if err := view.Close(); err != nil {
					t.Errorf("Snapshot.Close: %v", err)
				}
				seen := map[string]string{}
				for k, v := range Dump(t, s) {
					seen[string(k)] = string(v)
				}
				for w := range writers {
					if l, r := seen[fmt.Sprintf("left %d", w)], seen[fmt.Sprintf("right %d", w)]; l != r {
						t.Errorf("half a batch in a walk: %q and %q", l, r)
					}
				}
			}
		})
	}
	writing.Wait()
	over.Store(true)
	reading.Wait()
	for w := range writers {
		Wants(t, s, fmt.Sprintf("left %d", w), strconv.Itoa(rounds-1))
	}
}

func testUseAfterClose(t *testing.T, e Engine) {
	s := e.Open(t)
	apply(t, s, Sets("a", "1"))
	closed(t, s)
	_, _, getErr := s.Get(nil, []byte("a"))
	_, iterErr := s.Iter(nil, nil)
	view := s.Snapshot()
	_, _, viewErr := view.Get(nil, []byte("a"))
	_, viewIterErr := view.Iter(nil, nil)
	for call, err := range map[string]error{
		"Get":           getErr,
		"Iter":          iterErr,
		"Apply":         s.Apply(store.NoSync, Sets("a", "2")),
		"Apply(Sync)":   s.Apply(store.Sync, Sets("a", "2")),
		"Commit":        commit(s, store.Sync, Sets("a", "2")),
		"Sync":          s.Sync(),
		"Checkpoint":    s.Checkpoint(filepath.Join(t.TempDir(), "c")),
		"Snapshot.Get":  viewErr,
		"Snapshot.Iter": viewIterErr,
	} {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s after Close: %v", call, err)
		}
	}
	if err := view.Close(); err != nil {
		t.Errorf("Snapshot.Close after Close: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func testCloseDuringUse(t *testing.T, e Engine) {
	for range 20 {
		closeDuringUse(t, e.Open(t))
	}
}

func closeDuringUse(t *testing.T, s store.Store) {
	var users sync.WaitGroup
	started := make(chan struct{}, 4)
	until := func(call func() error) {
		users.Go(func() {
			for first := true; ; first = false {
				if err := call(); errors.Is(err, store.ErrClosed) {
					return
				} else if err != nil {
					t.Errorf("during Close: %v", err)
					return
				}
				if first {
					started <- struct{}{}
				}
			}
		})
	}
	until(func() error { return s.Apply(store.NoSync, Sets("a", "1")) })
	until(func() error { return commit(s, store.Sync, Sets("b", "1")) })
	until(s.Sync)
	until(func() error { _, _, err := s.Get(nil, []byte("a")); return err })
	for range cap(started) {
		<-started
	}
	closed(t, s)
	users.Wait()
}

// recorder counts the errors of Equal.
type recorder struct {
	testing.TB
	errors int
}

func (r *recorder) Errorf(string, ...any) { r.errors++ }

func testEqual(t *testing.T, e Engine) {
	a, b := e.open(t), e.open(t)
	shared := Sets("a", "1", "c", "1", "e", "1")
	apply(t, a, shared)
	apply(t, b, shared)
	if !Equal(t, a, b) {
		t.Error("equal stores differ")
	}
	for _, c := range []struct {
		name  string
		a, b  *mutation.Batch
		count int
	}{
		{"a key before", Sets("0", ""), Sets(), 1},
		{"a key between, in the second", Sets(), Sets("d", ""), 2},
		{"a value", Sets("c", "2"), Sets(), 3},
		{"a key behind", Sets(), Sets("f", ""), 4},
		{"two behind, in the first", Sets("g", "", "h", ""), Sets(), 6},
	} {
		apply(t, a, c.a)
		apply(t, b, c.b)
		r := &recorder{TB: t}
		if Equal(r, a, b) || r.errors != c.count {
			t.Errorf("%s: %d differences, want %d", c.name, r.errors, c.count)
		}
	}
}
