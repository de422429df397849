package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, j *Journal, id uint16) *Stream {
	t.Helper()
	s, _, err := j.Stream(id, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.BeginEpoch()
	return s
}

func get(t testing.TB, r store.Reader, key string) string {
	t.Helper()
	v, ok, err := r.Get(nil, []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return "nothing"
	}
	return string(v)
}

// What is appended is seen by the stream at once and by others when it is applied; it
// is durable when Wait returns, and nobody is notified before.
func TestAppend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &storetest.Gated{Store: memory.New()}
		j := Open(Options{Store: s})
		defer j.Close()
		a := open(t, j, 1)
		s.Shut()
		before := j.Commits()
		c := a.Append(Lazy, 0, storetest.Sets("k", "1"))
		if got := get(t, j.Reader(), "k"); got != "nothing" || c.Applied() || c.Durable() {
			t.Errorf("before it is applied the store shows %q", got)
		}
		if got := get(t, a.Reader(), "k"); got != "1" || !c.Applied() || c.Durable() {
			t.Errorf("its own stream reads %q", got)
		}
		answered := false
		go func() { c.Wait(); answered = true }()
		synctest.Wait()
		if answered {
			t.Error("answered before the sync")
		}
		<-after(LazyDelay)
		s.Open()
		synctest.Wait()
		if !answered || !c.Durable() {
			t.Errorf("not durable after %v", LazyDelay)
		}
		if n := j.Commits() - before; n != 1 {
			t.Errorf("%d commits are counted", n)
		}
		if c = (*Commit)(nil); !c.Durable() || !c.Applied() {
			t.Error("no commit is not durable")
		}
		c.Wait()
	})
}

// A commit that nobody waits for costs no sync where others wait for what comes with it,
// and is durable LazyDelay after it was begun where nobody does.
func TestLazyCommitsShareSyncs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var syncs atomic.Int32
		j := Open(Options{Store: memory.New(), Synced: func(time.Duration) { syncs.Add(1) }})
		defer j.Close()
		a := open(t, j, 1)
		const step = LazyDelay / 4
		expect := func(what string, want int32) {
			t.Helper()
			synctest.Wait()
			if n := syncs.Load(); n != want {
				t.Errorf("%s: %d syncs, want %d", what, n, want)
			}
		}
		a.Append(Lazy, 0, storetest.Sets("a", "1"))
		<-after(step)
		a.Append(Eager, 0, storetest.Sets("a", "2")).Wait()
		expect("a caller waits", 1)
		<-after(2 * step)
		late := a.Append(Lazy, 0, storetest.Sets("a", "3"))
		<-after(step)
		expect("when the first would have been due", 1)
		if late.Durable() {
			t.Error("durable before it was due")
		}
		if get(t, a.Reader(), "a") != "3" { // which applies it
			t.Error("not seen")
		}
		later := a.Append(Lazy, 0, storetest.Sets("a", "4"))
		<-after(3 * step)
		expect("when the second was due", 2)
		if !late.Durable() || !later.Durable() {
			t.Error("not durable")
		}
		<-after(time.Minute)
		expect("with nothing to do", 2)
	})
}

// On a slow disk the caller of a lazy commit waits for its sync, which callers share: of few
// it begins at once, of many within awaitedDelay.
func TestLazyCommitsOfASlowDisk(t *testing.T) {
	for name, c := range map[string]struct {
		expected int32
		wait     time.Duration // until the sync begins
		syncs    int32
	}{
		"few":  {delayManyWaiters / 4, 0, 2},
		"many": {delayManyWaiters + 1, awaitedDelay + delayTime, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var syncs atomic.Int32
				s := &storetest.Gated{Store: memory.New()}
				j := Open(Options{Store: s, Synced: func(time.Duration) { syncs.Add(1) }})
				defer j.Close()
				a := open(t, j, 1)
				s.Shut()
				a.Append(Eager, 0, storetest.Sets("a", "1"))
				<-after(2 * SlowSync)
				s.Open()
				synctest.Wait()
				j.delay.expectedWaiters.Store(c.expected)
				syncs.Store(0)
				s.Shut()
				var answered atomic.Int32
				for range 3 {
					c := a.Append(Lazy, 0, storetest.Sets("a", "2"))
					go func() { j.AwaitIfSlow(c); answered.Add(1) }()
					synctest.Wait()
				}
				<-after(c.wait)
				synctest.Wait()
				if answered.Load() != 0 {
					t.Error("answered before the sync")
				}
				s.Open()
				synctest.Wait()
				if answered.Load() != 3 || syncs.Load() != c.syncs {
					t.Errorf("%d answered after %d syncs", answered.Load(), syncs.Load())
				}
			})
		})
	}
}

// While a sync hangs, callers that come wait though the disk has been fast.
func TestLazyCommitsWhileASyncHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &storetest.Gated{Store: memory.New()}
		j := Open(Options{Store: s})
		defer j.Close()
		a := open(t, j, 1)
		s.Shut()
		a.Append(Eager, 0, storetest.Sets("a", "1"))
		<-after(2 * SlowSync)
		answered := false
		go func() { j.AwaitIfSlow(a.Append(Lazy, 0, storetest.Sets("a", "2"))); answered = true }()
		if synctest.Wait(); answered {
			t.Error("answered while a sync hangs")
		}
		s.Open()
		if synctest.Wait(); !answered {
			t.Error("not answered")
		}
	})
}

// Of several commits that were applied, the earliest says when the next sync begins.
func TestEarliestLazyCommitIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := Open(Options{Store: memory.New()})
		defer j.Close()
		a := open(t, j, 1)
		var commits []*Commit
		for range 3 {
			commits = append(commits, a.Append(Lazy, 0, storetest.Sets("a", "1")))
			j.Flush()
			<-after(LazyDelay / 4)
		}
		<-after(LazyDelay / 4)
		synctest.Wait()
		for i, c := range commits {
			if !c.Durable() {
				t.Errorf("commit %d is not durable %v after the first", i, LazyDelay)
			}
		}
	})
}

// Changes of several streams are one atomic unit, also where one of them has no room
// left in the commit.
func TestChangesAreOneUnit(t *testing.T) {
	var largest int
	var sealed []*mutation.FramedBatch
	j := Open(Options{Store: memory.New(), Observe: func(p []byte) {
		largest = max(largest, len(p))
		c, err := mutation.DecodeFramedBatch(bytes.Clone(p))
		if err != nil {
			t.Error(err)
		}
		sealed = append(sealed, c)
	}})
	defer j.Close()
	a, b := open(t, j, 0), open(t, j, keyspace.LogStream)
	big := strings.Repeat("x", mutation.MaxFramedBatch/2)
	var commits []*Commit
	for i := range 4 {
		commits = append(commits, j.Append(Lazy,
			Change{Stream: a, Batch: storetest.Sets(fmt.Sprint("a", i), big)}, Change{Stream: b, Batch: storetest.Sets(fmt.Sprint("b", i), "1")}))
	}
	j.Sync()
	if len(sealed) != 8 || largest > mutation.MaxFramedBatch {
		t.Fatalf("%d sealed batches, the largest of %d bytes", len(sealed), largest)
	}
	for i, c := range commits {
		if !c.Durable() || get(t, j.Reader(), fmt.Sprint("b", i)) != "1" {
			t.Errorf("append %d is not there", i)
		}
	}
	for i, c := range sealed {
		want := []uint16{0, keyspace.LogStream}[i%2]
		if c.Stream != want || c.Sequence != uint64(i/2+1) || c.Epoch != 1 {
			t.Errorf("batch %d is %d of stream %d in epoch %d", i, c.Sequence, c.Stream, c.Epoch)
		}
	}
}

// Many callers share a sync.
func TestCallersShareACommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &storetest.Gated{Store: memory.New()}
		j := Open(Options{Store: s})
		defer j.Close()
		streams := make([]*Stream, keyspace.Streams)
		for id := range streams {
			streams[id] = open(t, j, uint16(id))
		}
		s.Shut()
		for i := range 1000 {
			go streams[i%len(streams)].Append(Eager, 0, storetest.Sets(fmt.Sprint(i), "")).Wait()
		}
		synctest.Wait()
		s.Open()
		synctest.Wait()
		if n := j.open.number; n > 3 {
			t.Errorf("%d commits", n)
		}
	})
}

// A random history of all streams, replayed, gives the same store; and each stream's
// numbers have no gap over restarts.
func TestReplay(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	original, replayed := memory.New(), memory.New()
	next := map[uint16]uint64{}
	observe := func(p []byte) {
		c, err := mutation.DecodeFramedBatch(bytes.Clone(p))
		if err == nil {
			err = replayed.Apply(store.Sync, &c.Batch)
		}
		if err != nil {
			t.Error(err)
			return
		}
		if next[c.Stream]++; c.Sequence != next[c.Stream] {
			t.Errorf("stream %d: batch %d is called %d", c.Stream, next[c.Stream], c.Sequence)
		}
	}
	for life := range 3 {
		j := Open(Options{Store: original, Observe: observe})
		var all sync.WaitGroup
		for id := range keyspace.Streams {
			s := open(t, j, id)
			if _, state, err := j.Stream(id, nil); err != nil || life > 0 && (state.Epoch != uint32(life) || state.Now != int64(life)) {
				t.Errorf("life %d of stream %d begins with %+v, %v", life, id, state, err)
			}
			n := 1 + r.IntN(20)
			all.Go(func() { appendSome(s, id, life, n) })
		}
		all.Wait()
		j.Close()
	}
	storetest.Equal(t, original, replayed)
}

func appendSome(s *Stream, id uint16, life, n int) {
	for i := range n {
		key := binary.BigEndian.AppendUint64(keyspace.Shard(id, 'x'), uint64(i%7))
		s.Append(EagerIf(i%3 == 0), int64(life+1), storetest.Sets(string(key), fmt.Sprint(life, i)))
	}
}

// A failure of the store ends the process, and nobody is answered.
func TestFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		s := &storetest.Gated{Store: memory.New(), Failing: broken}
		var failed error
		j := Open(Options{Store: s, Fatal: func(err error) { failed = errors.Join(failed, err) }})
		c := open(t, j, 0).Append(Eager, 0, storetest.Sets("k", "v"))
		synctest.Wait()
		if !errors.Is(failed, broken) || c.Durable() {
			t.Errorf("failed with %v; durable: %v", failed, c.Durable())
		}
		j.Close()
		failed = nil
		if open(t, j, 0).Append(Eager, 0, storetest.Sets("k", "v")); !errors.Is(failed, errClosed) {
			t.Errorf("after Close: %v", failed)
		}
		j.Close()
	})
}

// A commit that cannot be applied ends the process as well, whoever applies it, and nobody takes
// it for applied or durable.
func TestFailureToApply(t *testing.T) {
	broken := errors.New("broken")
	for name, apply := range map[string]func(j *Journal){"a reader": (*Journal).Flush, "a sync": (*Journal).Sync} {
		var failed error
		j := Open(Options{Store: &committing{Store: memory.New(), failing: broken}, Fatal: func(err error) { failed = err }})
		c := open(t, j, 0).Append(Awaited, 0, storetest.Sets("k", "v"))
		if apply(j); !errors.Is(failed, broken) || c.Applied() || c.Durable() {
			t.Errorf("%s failed with %v; applied %v, durable %v", name, failed, c.Applied(), c.Durable())
		}
		j.Close()
	}
}

// What is appended during a Close waits for its end, and is judged by what the state is then.
func TestAppendWaitsForTheEndOfClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stream *Stream
		abandoned := false
		j := Open(Options{
			Store: memory.New(), Abandoned: func() bool { return abandoned }, Fatal: func(err error) { t.Error(err) },
			Closed: func() {
				go stream.Append(Eager, 0, storetest.Sets("k", "v"))
				synctest.Wait()
				abandoned = true
			},
		})
		stream = open(t, j, 0)
		j.Close()
	})
}

// What is appended after Close to a state that another process owns has no effect, and nothing
// waits for it; one that this process still owns ends the process (TestFailure).
func TestAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, abandoned, failed, closed := memory.New(), false, 0, 0
		var last *Commit
		j := Open(Options{
			Store: s, Abandoned: func() bool { return abandoned }, Fatal: func(error) { failed++ },
			Closed: func() {
				if closed++; !last.Durable() {
					t.Error("it is closed before all is durable")
				}
			},
		})
		stream := open(t, j, 0)
		last = stream.Append(Lazy, 0, storetest.Sets("last", "v"))
		j.Close()
		j.Close()
		if closed != 1 {
			t.Errorf("it was told %d times that it is closed, want once", closed)
		}
		stream.Append(Eager, 0, storetest.Sets("k", "v"))
		if failed != 1 {
			t.Errorf("failed %d times while the state is owned, want once", failed)
		}
		abandoned = true
		batch := storetest.Sets("k", "v")
		c := stream.Append(Eager, 0, batch)
		c.Wait()
		if !c.Durable() || !c.Applied() || batch.Len() != 0 || failed != 1 {
			t.Errorf("durable %v, applied %v, %d changes left, failed %d times", c.Durable(), c.Applied(), batch.Len(), failed)
		}
		then := false
		if c.Then(func() { then = true }); !then {
			t.Error("what follows the commit does not")
		}
		j.Flush()
		j.Sync()
		if _, there, err := s.Get(nil, []byte("k")); there || err != nil {
			t.Errorf("in the store: %v (%v)", there, err)
		}
	})
}

// A damaged record of a stream is found when the stream is opened.
func TestDamagedStream(t *testing.T) {
	s := memory.New()
	if err := s.Apply(store.Sync, storetest.Sets(string(stateKey(5)), "?")); err != nil {
		t.Fatal(err)
	}
	j := Open(Options{Store: s})
	defer j.Close()
	if _, _, err := j.Stream(5, nil); err == nil {
		t.Error("it is taken")
	}
}

// after is a channel that is closed after a while.
func after(d time.Duration) <-chan struct{} {
	over, _ := clock.After(clock.System, d)
	return over
}

// TestOnlyTheJournalWrites: nobody else calls Apply or Commit of a store, or so much as names a store that
// it could write to (Store, Committer), except the packages that open it, and a cluster: the
// journal may write to one of its stores, and its replicas write what a journal has written
// elsewhere.
func TestOnlyTheJournalWrites(t *testing.T) {
	const root = "../.."
	n := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
		if name == "internal/server/backup/restore.go" {
			return nil // it changes a copy, before a server has it
		}
		for _, own := range []string{"internal/journal/", "internal/store/", "internal/cluster/", "internal/consume/consumetest/", "internal/shard/shardtest/", "test/"} {
			if strings.HasPrefix(name, own) {
				return nil
			}
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		n++
		imported := false // the package of our store, and no other of its name
		for _, spec := range file.Imports {
			imported = imported || spec.Path.Value == `"godwit.dev/godwit/internal/store"`
		}
		ast.Inspect(file, func(node ast.Node) bool {
			sel, ok := node.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			at := files.Position(sel.Pos())
			// The server holds the store as it is; others are given a Reader.
			ofServer := strings.HasPrefix(name, "internal/server/")
			if sel.Sel.Name == "Apply" || sel.Sel.Name == "Commit" && ofServer {
				t.Errorf("%s calls %s", at, sel.Sel.Name)
			}
			if pkg, ok := sel.X.(*ast.Ident); ok && imported && pkg.Name == "store" && (sel.Sel.Name == "Committer" || sel.Sel.Name == "Store" && !ofServer) {
				t.Errorf("%s has a store to write to", at)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 200 {
		t.Errorf("only %d files were looked at", n)
	}
}

// committing is a store that notes what each of its syncs covers.
type committing struct {
	*memory.Store
	applied, synced int
	nothing         bool // Commit returns no sync to wait for
	failing         error
}

func (c *committing) Apply(sync store.SyncMode, batches ...*mutation.Batch) error {
	if c.failing != nil {
		return c.failing
	}
	c.applied++
	return c.Store.Apply(sync, batches...)
}

func (c *committing) Commit(batches ...*mutation.Batch) (durable func() error, err error) {
	err = c.Apply(store.NoSync, batches...)
	if c.nothing {
		return nil, err
	}
	covered := c.applied
	return func() error { c.synced = max(c.synced, covered); return nil }, err
}

func (c *committing) Sync() error {
	c.synced = c.applied
	return nil
}

// A sync makes durable what was applied when it began, and not what a reader has applied
// since.
func TestSyncCoversWhatItBeganWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &committing{Store: memory.New()}
		j := Open(Options{Store: s})
		defer j.Close()
		a := open(t, j, 1)
		before := a.Append(Lazy, 0, storetest.Sets("k", "0"))
		j.Flush()
		own := a.Append(Lazy, 0, storetest.Sets("k", "1"))
		durable, commits := j.flushSyncing()
		later := a.Append(Lazy, 0, storetest.Sets("k", "2"))
		j.Flush()
		if err := durable(); err != nil {
			t.Fatal(err)
		}
		if len(commits) != 2 || commits[0] != before || commits[1] != own || s.synced != 2 {
			t.Errorf("%d commits are durable after %d of %d were synced", len(commits), s.synced, s.applied)
		}
		if durable, commits = j.flushSyncing(); len(commits) != 1 || commits[0] != later {
			t.Fatalf("%d commits are left", len(commits))
		}
		if err := durable(); err != nil || s.synced != 3 {
			t.Errorf("%d of %d were synced, %v", s.synced, s.applied, err)
		}
		s.nothing = true
		own = a.Append(Lazy, 0, storetest.Sets("k", "3"))
		if j.Sync(); !own.Durable() || s.synced != 4 {
			t.Errorf("durable: %v, after %d of %d were synced", own.Durable(), s.synced, s.applied)
		}
	})
}
