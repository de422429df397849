package kernel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
)

// start is when virtual clocks begin.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func openKernel(t *testing.T, s store.Store, c clock.Clock, modules func(k *Kernel)) *Kernel {
	t.Helper()
	j := journal.Open(journal.Options{Store: s})
	t.Cleanup(j.Close)
	k := New(Options{Journal: j, Clock: c, Fatal: func(err error) { t.Error(err) }})
	modules(k)
	if err := k.Load(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

// recorder is a lifecycle that notes what it is called for.
type recorder struct {
	name string
	sh   *Shard
	said *[]string
	due  int64
}

func (r *recorder) say(what string) { *r.said = append(*r.said, what+" "+r.name) }

func (r *recorder) Load() error    { r.say("load"); return nil }
func (r *recorder) Recover() error { r.say("recover"); return nil }
func (r *recorder) Resume()        { r.say("resume") }
func (r *recorder) NextDue() int64 { return r.due }
func (r *recorder) Close()         { r.say("close") }

func (r *recorder) Tick(now int64) {
	if r.due != 0 && r.due <= now {
		r.say(fmt.Sprintf("due at %d", now-start.UnixMilli()))
		r.due = 0
	}
}

// TestPartsInOrder: each part is called in its turn; what a crash interrupted is
// brought to an end in all shards before anything continues in one.
func TestPartsInOrder(t *testing.T) {
	var said []string
	var last *recorder
	now := clock.NewVirtual(start)
	k := openKernel(t, memory.New(), now, func(k *Kernel) {
		for _, id := range []int{3, 9} {
			for _, name := range []string{"a", "b"} {
				last = &recorder{name: fmt.Sprint(name, id), sh: k.All[id], said: &said}
				k.All[id].Add(last)
			}
		}
	})
	want := "load a3, load b3, load a9, load b9, recover a3, recover b3, recover a9, recover b9, resume a3, resume b3, resume a9, resume b9"
	if got := strings.Join(said, ", "); got != want {
		t.Errorf("called for %s", got)
	}
	said = nil
	for _, due := range []int64{5000, 2000} { // the earlier one replaces the later
		_, _ = k.All[9].Run(journal.Eager, func(*Tx) error {
			last.due = start.UnixMilli() + due
			k.All[9].Batch.Set(key(9, "x"), nil) // what a command changes may be due
			return nil
		})
	}
	if _, err := now.Advance(context.Background(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(said, []string{"due at 2000 b9"}) {
		t.Errorf("called for %v", said)
	}
}

func key(shard uint16, name string) []byte {
	return append(keyspace.Shard(shard, keyspace.Data), name...)
}

// part is of a module with nothing to do.
type part struct {
	*Shard
	NopLifecycle
}

// counted is made dirty by a command.
type counted struct{ said []string }

func (c *counted) FinishBytes() int         { return 64 }
func (c *counted) Appended(*journal.Commit) { c.said = append(c.said, "appended") }
func (c *counted) Clean()                   { c.said = append(c.said, "clean") }
func (c *counted) Committed()               { c.said = append(c.said, "committed") }
func (c *counted) Finish(_ uint64, b *mutation.Batch) {
	c.said = append(c.said, "finish")
	b.Set(key(3, "finished"), nil)
}

type told struct{ said *[]string }

func (e told) Emit() { *e.said = append(*e.said, "told") }

// TestCommand: what a command has touched is finished with its commit; its events are
// emitted after that, when others may have the lock.
func TestCommand(t *testing.T) {
	s := memory.New()
	k := openKernel(t, s, clock.System, func(*Kernel) {})
	c := &counted{}
	sh := k.All[3]
	commit, err := sh.Run(journal.Eager, func(*Tx) error {
		sh.Batch.Set(key(3, "changed"), nil)
		sh.MarkDirty(c)
		sh.Emit(told{&c.said})
		return nil
	})
	if err != nil || commit == nil {
		t.Fatal(commit, err)
	}
	commit.Wait()
	const want = "finish appended clean committed"
	if got := strings.Join(c.said, " "); got != want+" told" {
		t.Errorf("called for: %s", got)
	}
	c.said = nil
	sh.View(func() {
		sh.MarkDirty(c)
		if sh.Append(journal.Lazy); strings.Join(c.said, " ") != want || !sh.Unchanged() {
			t.Errorf("appended on the way, called for: %v", c.said)
		}
	})
	for _, name := range []string{"changed", "finished"} {
		if _, ok, err := s.Get(nil, key(3, name)); !ok || err != nil {
			t.Errorf("%s is not in the store: %v", name, err)
		}
	}
}

// TestCatalog: a change of what there is is durable when it is answered, and so is what
// an answer that changes nothing depends on.
func TestCatalog(t *testing.T) {
	k := openKernel(t, memory.New(), clock.System, func(*Kernel) {})
	var parts Parts[*part]
	for id, sh := range k.All {
		parts.Shards[id] = &part{Shard: sh}
	}
	a := arn.Queue("us-east-1", "000000000000", "q")
	sh := parts.ShardOf(a)
	before := sh.Generation.Load()
	for _, change := range []bool{true, false} {
		err := parts.WithCatalog(context.Background(), a, func(sh *part) error {
			if change {
				sh.Batch.Set(key(sh.ID, "q"), nil)
			}
			return nil
		})
		if err != nil || !sh.LastCatalogCommit.Durable() || sh.Generation.Load() != before+1 {
			t.Errorf("change %v: generation %d, %v", change, sh.Generation.Load()-before, err)
		}
	}
	err := parts.ReadCatalog(context.Background(), a, func(sh *part) error {
		sh.Batch.Set(key(sh.ID, "count"), nil)
		return nil
	})
	if err != nil || !sh.Stream.Last().Durable() || sh.Generation.Load() != before+1 {
		t.Errorf("read: generation %d, %v", sh.Generation.Load()-before, err)
	}
}

// TestCatalogAnswersAreDurable: whoever reads the catalog, or is refused for it, gets no answer
// before what it has read is durable.
func TestCatalogAnswersAreDurable(t *testing.T) {
	ctx := context.Background()
	a := arn.Queue("us-east-1", "000000000000", "q")
	prefix := func(shard uint16) []byte { return key(shard, "") }
	refusal := errors.New("no")
	for name, read := range map[string]func(k *Kernel, parts *Parts[*part]) error{
		"a read":    func(_ *Kernel, p *Parts[*part]) error { return p.ReadCatalog(ctx, a, func(*part) error { return nil }) },
		"no change": func(_ *Kernel, p *Parts[*part]) error { return p.WithCatalog(ctx, a, func(*part) error { return nil }) },
		"a refusal": func(_ *Kernel, p *Parts[*part]) error {
			if err := p.WithCatalog(ctx, a, func(*part) error { return refusal }); !errors.Is(err, refusal) {
				return errors.New("not refused")
			}
			return nil
		},
		"a list": func(k *Kernel, _ *Parts[*part]) error {
			return k.MergeNames(prefix, "", "", func(string, []byte) bool { return false })
		},
		"pages": func(_ *Kernel, p *Parts[*part]) error {
			_, _, err := MergePages(ctx, &p.Shards, 10, strings.Compare, func(*part) ([]string, bool) { return nil, false })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &storetest.Gated{Store: memory.New()}
				k := openKernel(t, s, clock.System, func(*Kernel) {})
				parts := &Parts[*part]{}
				for id, sh := range k.All {
					parts.Shards[id] = &part{Shard: sh}
				}
				s.Shut()
				go func() {
					_ = parts.WithCatalog(ctx, a, func(sh *part) error { sh.Batch.Set(key(sh.ID, "q"), nil); return nil })
				}()
				synctest.Wait()
				answered := false
				go func() {
					if err := read(k, parts); err != nil {
						t.Error(err)
					}
					answered = true
				}()
				if synctest.Wait(); answered {
					t.Error("answered before the change is durable")
				}
				s.Open()
				if synctest.Wait(); !answered {
					t.Error("not answered")
				}
			})
		})
	}
}

// TestMergedNames: names of all shards come in one order, from where they are asked for.
func TestMergedNames(t *testing.T) {
	k := openKernel(t, memory.New(), clock.System, func(*Kernel) {})
	for i, name := range []string{"b1", "a", "b3", "c", "b2", "b4", "b"} {
		sh := k.All[i%3]
		_ = sh.RunDurable(func(*Tx) error { sh.Batch.Set(key(sh.ID, name), []byte(name)); return nil })
	}
	k.Journal.Flush()
	for _, c := range []struct {
		begins, after, until, want string
	}{
		{"", "", "", "[a b b1 b2 b3 b4 c]"},
		{"b", "", "", "[b b1 b2 b3 b4]"},
		{"b", "a", "", "[b b1 b2 b3 b4]"},
		{"", "b2", "", "[b3 b4 c]"},
		{"b", "b2", "", "[b3 b4]"},
		{"b", "c", "", "[]"},
		{"", "a", "b1", "[b b1]"},
	} {
		got := []string{}
		err := k.MergeNames(func(shard uint16) []byte { return key(shard, "") }, c.begins, c.after, func(name string, value []byte) bool {
			if string(value) != name {
				t.Errorf("%s is %q", name, value)
			}
			got = append(got, name)
			return name != c.until
		})
		if err != nil || fmt.Sprint(got) != c.want {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
}

// breaking is a store that fails to read a shard's names, or at the end of them.
type breaking struct {
	store.Store
	iter, end error
}

func (b breaking) Get(_, _ []byte) ([]byte, bool, error) { return nil, false, b.iter }

func (b breaking) Iter(lower, upper []byte) (store.Iterator, error) {
	if b.iter != nil {
		return nil, b.iter
	}
	it, err := b.Store.Iter(lower, upper)
	return breakingIter{it, b.end}, err
}

type breakingIter struct {
	store.Iterator
	end error
}

func (b breakingIter) Close() error { return errors.Join(b.Iterator.Close(), b.end) }

// TestReadsFail: what cannot be read is no answer, and neither is what was read before it.
func TestReadsFail(t *testing.T) {
	broken := errors.New("broken")
	s := memory.New()
	k := openKernel(t, s, clock.System, func(*Kernel) {})
	names := func() error {
		return k.MergeNames(func(shard uint16) []byte { return key(shard, "") }, "", "", func(string, []byte) bool { return true })
	}
	k.Store = breaking{s, nil, broken}
	if err := names(); !errors.Is(err, broken) {
		t.Errorf("no names: %v", err)
	}
	for _, sh := range k.All {
		sh.RunLazy(func() { sh.Batch.Set(key(sh.ID, "a"), nil) })
	}
	k.Journal.Flush()
	for _, k.Store = range []store.Reader{breaking{s, nil, broken}, breaking{s, broken, nil}} {
		if err := names(); !errors.Is(err, broken) {
			t.Errorf("names: %v", err)
		}
	}
	if _, _, err := k.ReadRecord(key(3, "a")); !errors.Is(err, broken) {
		t.Errorf("a record: %v", err)
	}
	if _, err := k.ReadRecords([][]byte{key(3, "a"), key(3, "b")}); !errors.Is(err, broken) {
		t.Errorf("records: %v", err)
	}
	k.Store = s
}

// TestPages: a page says that others follow where they do, in any of the shards.
func TestPages(t *testing.T) {
	k := openKernel(t, memory.New(), clock.System, func(*Kernel) {})
	for _, c := range []struct {
		rest  uint16 // the shard that has more
		limit int
		want  string
		more  bool
	}{{Shards, 3, "[a b c]", false}, {Shards, 2, "[a b]", true}, {0, 3, "[a b c]", true}, {2, 4, "[a b c]", true}} {
		got, more, err := MergePages(context.Background(), &k.All, c.limit, strings.Compare, func(sh *Shard) ([]string, bool) {
			if sh.ID > 2 {
				return nil, false
			}
			return []string{[]string{"b", "c", "a"}[sh.ID]}, sh.ID == c.rest
		})
		if err != nil || fmt.Sprint(got) != c.want || more != c.more {
			t.Errorf("%+v: %v, more %v, %v", c, got, more, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := MergePages(ctx, &k.All, 1, strings.Compare, func(*Shard) ([]string, bool) { return nil, false }); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	var parts Parts[*Shard]
	parts.Shards = k.All
	for name, f := range map[string]func(context.Context, arn.ARN, func(*Shard) error) error{"change": parts.WithCatalog, "read": parts.ReadCatalog} {
		called := false
		err := f(ctx, arn.Queue("us-east-1", "000000000000", "q"), func(*Shard) error { called = true; return nil })
		if called || !errors.Is(err, context.Canceled) {
			t.Errorf("a canceled %s: called %v, %v", name, called, err)
		}
	}
}
