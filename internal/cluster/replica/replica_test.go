package replica_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/record"
	"godwit.dev/godwit/internal/cluster/replica"
	"godwit.dev/godwit/internal/cluster/replog/logtest"
	"godwit.dev/godwit/internal/cluster/replog/simulated"
	"godwit.dev/godwit/internal/journal/journaltest"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// until lets others go on until something is so that nobody tells of.
func until(t testing.TB, what string, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !so() {
		if ctx.Err() != nil {
			t.Fatalf("%s: not within a minute", what)
		}
		runtime.Gosched()
	}
}

// follow has a replica follow its log until the test ends.
func follow(t testing.TB, r *replica.Replica, log *simulated.Node) {
	t.Helper()
	reader, err := log.Read(t.Context(), r.Position()+1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var following sync.WaitGroup
	following.Go(func() {
		for {
			position, data, err := reader.Next(ctx)
			if err != nil {
				return
			}
			if _, _, err := r.Apply(position, data); err != nil {
				t.Error(err)
				return
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		reader.Close()
		following.Wait()
	})
}

func takeover(t testing.TB, log *simulated.Node, epoch uint64, owner string) {
	t.Helper()
	r := record.Record{Kind: record.Takeover, Epoch: epoch, Owner: owner}
	if _, err := logtest.Append(log, r.AppendTo(nil)); err != nil {
		t.Fatal(err)
	}
}

// node is a replica of a log of its own, and its owner.
type node struct {
	*replica.Owner
	replica *replica.Replica
	base    store.Store
	log     *simulated.Cluster
}

// own makes an owner of an empty cell; its replica follows the log by itself.
func own(t testing.TB, base store.Store, o replica.OwnerOptions) *node {
	t.Helper()
	n := &node{base: base, log: simulated.New()}
	way := n.log.Node()
	takeover(t, way, 1, "me")
	var err error
	if n.replica, err = replica.Open(0, base); err != nil {
		t.Fatal(err)
	}
	reader, err := way.Read(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	position, data, err := reader.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	reader.Close()
	if _, accepted, err := n.replica.Apply(position, data); err != nil || !accepted {
		t.Fatalf("the takeover: %v, %v", accepted, err)
	}
	o.Log = way
	if n.Owner, err = n.replica.Own(1, o); err != nil {
		t.Fatal(err)
	}
	follow(t, n.replica, way)
	return n
}

func isFence(key []byte) bool { return bytes.Equal(key, record.Key(0)) }

// The owner's store is a store, but for the record that the replica keeps in it.
func TestStore(t *testing.T) {
	storetest.Run(t, storetest.Engine{
		Open: func(t testing.TB) store.Store {
			return hidden{own(t, memory.New(), replica.OwnerOptions{RecordSize: 4 << 10})}
		},
		OpenCheckpoint: func(t testing.TB, dir string) store.Store {
			s, err := memory.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			b := new(mutation.Batch)
			b.Delete(record.Key(0))
			if err := s.Apply(store.NoSync, b); err != nil {
				t.Fatal(err)
			}
			return s
		},
	})
}

func TestJournal(t *testing.T) {
	for _, o := range []replica.OwnerOptions{{Window: 1}, {RecordSize: 1000}} {
		journaltest.Run(t, func(t testing.TB) store.Store { return own(t, memory.New(), o) }, isFence)
	}
}

func set(key, value string) *mutation.Batch {
	b := new(mutation.Batch)
	b.Set([]byte(key), []byte(value))
	return b
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

// What an owner has written that was replaced meanwhile reaches no store, and its caller
// is told; what it reads is confirmed by nobody.
func TestReplaced(t *testing.T) {
	failed := make(chan error, 1)
	n := own(t, memory.New(), replica.OwnerOptions{Failed: func(err error) { failed <- err }})
	if err := n.Apply(store.Sync, set("k", "1")); err != nil {
		t.Fatal(err)
	}
	if err := n.Confirm(t.Context()); err != nil {
		t.Errorf("the owner is not confirmed: %v", err)
	}
	n.log.Hold()
	if err := n.Apply(store.NoSync, set("k", "2")); err != nil {
		t.Fatal(err)
	}
	if got := get(t, n, "k"); got != "2" {
		t.Errorf("the owner sees %q", got)
	}
	takeoverHeld(t, n.log, 2, "other")
	n.log.Deliver(0, simulated.Taken)
	if err := <-failed; !errors.Is(err, replica.ErrReplaced) {
		t.Errorf("stepped down with %v", err)
	}
	for what, err := range map[string]error{
		"Sync": n.Sync(), "Apply": n.Apply(store.NoSync, set("k", "3")), "Confirm": n.Confirm(t.Context()), "Failed": n.Failed(), "Close": n.Close(),
	} {
		if !errors.Is(err, replica.ErrReplaced) {
			t.Errorf("%s says %v", what, err)
		}
	}
	if got := get(t, n.base, "k"); got != "1" {
		t.Errorf("the store has %q", got)
	}
	if f := n.replica.Fence(); f.Epoch != 2 || f.Owner != "other" {
		t.Errorf("%+v", f)
	}
	if _, err := n.replica.Own(1, replica.OwnerOptions{}); !errors.Is(err, replica.ErrReplaced) {
		t.Errorf("an old epoch is owned again: %v", err)
	}
}

// takeoverHeld brings a takeover into a log that holds what is on its way, before that.
func takeoverHeld(t *testing.T, c *simulated.Cluster, epoch uint64, owner string) {
	t.Helper()
	before := c.Pending()
	r := record.Record{Kind: record.Takeover, Epoch: epoch, Owner: owner}
	c.Node().Append(r.AppendTo(nil), func(uint64, error) {})
	c.Deliver(before, simulated.Taken)
}

// A refused record is given to the log again; of one whose fate nobody knows only what
// comes back counts, and for as long as nothing does nobody is answered.
func TestOutcomes(t *testing.T) {
	failed := make(chan error, 1)
	const patience = time.Hour
	virtual := clock.NewVirtual(time.Unix(0, 0))
	pass := func(d time.Duration) {
		t.Helper()
		if _, err := virtual.Advance(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	n := own(t, memory.New(), replica.OwnerOptions{Clock: virtual, Window: 1, RoundTrip: patience, Failed: func(err error) { failed <- err }})
	n.log.Hold()
	written := make(chan error, 1)
	write := func(value string) {
		go func() { written <- n.Apply(store.Sync, set("k", value)) }()
		until(t, "it is on its way", func() bool {
			select {
			case err := <-failed:
				t.Fatal(err)
			default:
			}
			return n.log.Pending() > 0
		})
	}
	write("1")
	n.log.Deliver(0, simulated.Refused)
	until(t, "it is tried again", func() bool {
		pass(time.Millisecond)
		return n.log.Pending() > 0
	})
	n.log.Deliver(0, simulated.Silent)
	if err := <-written; err != nil || get(t, n.base, "k") != "1" {
		t.Errorf("what came back does not count: %v", err)
	}
	write("2")
	n.log.Deliver(0, simulated.Lost)
	pass(patience)
	if err := <-written; err == nil {
		t.Error("what never came back counts")
	}
	if err := <-failed; err == nil || n.log.Pending() != 0 {
		t.Errorf("%v, and %d are on their way", err, n.log.Pending())
	}
	if got := get(t, n.base, "k"); got != "1" {
		t.Errorf("the store has %q", got)
	}
}

// advance calls what is due by then.
func (c *handClock) advance(d time.Duration) {
	c.now = c.now.Add(d)
	due := slices.DeleteFunc(slices.Clone(c.timers), func(t *handTimer) bool { return t.at.After(c.now) })
	c.timers = slices.DeleteFunc(c.timers, func(t *handTimer) bool { return !t.at.After(c.now) })
	for _, t := range due {
		t.f()
	}
}

// A record's time begins when it is given to the log, and not while others go before it: an
// owner that has written much goes on for as long as each comes back.
func TestPatience(t *testing.T) {
	const patience = 10 * time.Second
	log, clock := simulated.New(), &handClock{}
	way := log.Node()
	r, err := replica.Open(0, memory.New())
	if err != nil {
		t.Fatal(err)
	}
	takeover(t, way, 1, "a")
	reader, err := way.Read(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	apply := func() {
		t.Helper()
		position, data, err := reader.Next(t.Context())
		if err == nil {
			_, _, err = r.Apply(position, data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	apply()
	owner, err := r.Own(1, replica.OwnerOptions{Log: way, Clock: clock, Window: 1, RoundTrip: patience})
	if err != nil {
		t.Fatal(err)
	}
	log.Hold()
	const records = 4
	for range records {
		if err := owner.Apply(store.NoSync, set("k", "v")); err != nil {
			t.Fatal(err)
		}
	}
	for range records - 1 {
		clock.advance(patience * 6 / 10)
		log.Deliver(0, simulated.Taken)
		apply()
		if err := owner.Failed(); err != nil {
			t.Fatalf("each comes back, and the owner has stepped down: %v", err)
		}
	}
	clock.advance(patience * 6 / 10)
	if err := owner.Failed(); err != nil {
		t.Fatalf("before its time: %v", err)
	}
	clock.advance(patience)
	if owner.Failed() == nil {
		t.Error("the last does not come back, and the owner goes on")
	}
}

// A replica that is opened again goes on behind what it has, also in the middle of a
// commit of several records.
func TestReopen(t *testing.T) {
	c := simulated.New()
	way := c.Node()
	takeover(t, way, 1, "me")
	var b mutation.Batch
	for i := range 10 {
		b.Set(fmt.Append(nil, "key", i), bytes.Repeat([]byte("x"), 100))
	}
	records, err := record.Split(300, 0, 1, 2, &b)
	if err != nil || len(records) < 3 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	for _, data := range records {
		if _, err := logtest.Append(way, data); err != nil {
			t.Fatal(err)
		}
	}
	base := memory.New()
	for stop := 1; stop <= len(records)+1; stop++ {
		r, err := replica.Open(0, base)
		if err != nil {
			t.Fatal(err)
		}
		reader, err := way.Read(t.Context(), r.Position()+1)
		if err != nil {
			t.Fatal(err)
		}
		for p := r.Position() + 1; p <= uint64(stop); p++ {
			position, data, err := reader.Next(t.Context())
			if err != nil || position != p {
				t.Fatalf("position %d, %v; want %d", position, err, p)
			}
			if _, accepted, err := r.Apply(position, data); err != nil || !accepted {
				t.Fatalf("position %d: %v, %v", position, accepted, err)
			}
		}
		reader.Close()
		want := "nothing"
		if stop > len(records) {
			want = string(bytes.Repeat([]byte("x"), 100))
		}
		if got := get(t, base, "key0"); got != want {
			t.Errorf("at position %d: %q", stop, got)
		}
		position := map[bool]uint64{false: 1, true: uint64(len(records) + 1)}[stop > len(records)]
		if copied, err := r.Checkpoint(filepath.Join(t.TempDir(), "copy")); err != nil || copied != position {
			t.Errorf("at position %d, a copy has %d, %v; want %d", stop, copied, err, position)
		}
		if durable, err := r.Durable(); err != nil || durable != position {
			t.Errorf("at position %d, %d is durable, %v; want %d", stop, durable, err, position)
		}
	}
}

// hidden is an owner's store without the fence.
type hidden struct{ *node }

func (h hidden) Iter(lower, upper []byte) (store.Iterator, error) {
	it, err := h.node.Iter(lower, upper)
	if err != nil {
		return nil, err
	}
	return &skipping{it}, nil
}

func (h hidden) Snapshot() store.Snapshot { return hiddenView{h.node.Snapshot()} }

type hiddenView struct{ store.Snapshot }

func (v hiddenView) Iter(lower, upper []byte) (store.Iterator, error) {
	it, err := v.Snapshot.Iter(lower, upper)
	if err != nil {
		return nil, err
	}
	return &skipping{it}, nil
}

type skipping struct{ store.Iterator }

func (s *skipping) Next() bool { return s.Iterator.Next() && (!isFence(s.Key()) || s.Next()) }
func (s *skipping) Prev() bool { return s.Iterator.Prev() && (!isFence(s.Key()) || s.Prev()) }

func (s *skipping) Seek(key []byte) bool {
	return s.Iterator.Seek(key) && (!isFence(s.Key()) || s.Next())
}

// An owner that is detached where it is replaced goes on as a store of its own, which
// reaches nobody and which nobody reaches; that it does not count is known to who asks.
func TestDetached(t *testing.T) {
	failed := make(chan error, 1)
	n := own(t, memory.New(), replica.OwnerOptions{Detach: true, Failed: func(err error) { failed <- err }})
	if err := n.Apply(store.Sync, set("k", "1")); err != nil {
		t.Fatal(err)
	}
	n.log.Hold()
	if err := n.Apply(store.NoSync, set("k", "2")); err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error, 1)
	go func() { waiting <- n.Sync() }()
	takeoverHeld(t, n.log, 2, "other")
	n.log.Deliver(0, simulated.Taken)
	if err := <-failed; !errors.Is(err, replica.ErrReplaced) {
		t.Errorf("stepped down with %v", err)
	}
	other := record.Record{Kind: record.Commit, Epoch: 2, Number: n.replica.Fence().Number + 1, Batch: set("k", "of another")}
	other.Batch.Set([]byte("m"), []byte("of another"))
	n.log.Node().Append(other.AppendTo(nil), func(uint64, error) {})
	n.log.Deliver(n.log.Pending()-1, simulated.Taken)
	until(t, "the replica has what is of the other", func() bool { return n.replica.Fence().Number >= other.Number })
	if got := get(t, n.base, "k"); got != "of another" {
		t.Errorf("the replica has %q", got)
	}
	for what, err := range map[string]error{
		"the Sync that waited": <-waiting, "Apply": n.Apply(store.Sync, set("l", "3")), "Sync": n.Sync(),
	} {
		if err != nil {
			t.Errorf("%s says %v", what, err)
		}
	}
	if k, l, m := get(t, n, "k"), get(t, n, "l"), get(t, n, "m"); k != "2" || l != "3" || m != "nothing" {
		t.Errorf("the owner sees %q, %q and %q", k, l, m)
	}
	for what, err := range map[string]error{"Confirm": n.Confirm(t.Context()), "Failed": n.Failed(), "Checkpoint": n.Checkpoint(filepath.Join(t.TempDir(), "copy"))} {
		if !errors.Is(err, replica.ErrReplaced) {
			t.Errorf("%s says %v", what, err)
		}
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if got := get(t, n.base, "l"); got != "nothing" {
		t.Errorf("what was written behind the end has come to the store: %q", got)
	}
}

// A copy is made by who was the owner after it was asked for: it has what others have acknowledged.
func TestCheckpointOfOldOwner(t *testing.T) {
	n := own(t, memory.New(), replica.OwnerOptions{})
	n.log.Hold()
	copied, dir := make(chan error, 1), filepath.Join(t.TempDir(), "copy")
	go func() { copied <- n.Checkpoint(dir) }()
	until(t, "it asks whether it is the owner", func() bool { return n.log.Pending() > 0 || len(copied) > 0 })
	if len(copied) == 0 {
		takeoverHeld(t, n.log, 2, "other")
	}
	if err := <-copied; !errors.Is(err, replica.ErrReplaced) {
		t.Errorf("a copy of who was replaced: %v", err)
	}
}
