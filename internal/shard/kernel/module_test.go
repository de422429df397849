package kernel

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
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
	if got := strings.Join(c.said, " "); got != "finish appended clean committed told" {
		t.Errorf("called for: %s", got)
	}
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
