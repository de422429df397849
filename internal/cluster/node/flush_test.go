package node_test

import (
	"bytes"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/cluster/node"
	"godwit.dev/godwit/internal/cluster/record"
	"godwit.dev/godwit/internal/cluster/replog/simulated"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
)

// unlogged is a store without a log, of which the disk has only the fence.
type unlogged struct {
	*memory.Store
	mu      sync.Mutex
	flushes int
	slow    bool // flushes do not end
	fence   []byte
}

var _ store.Flusher = (*unlogged)(nil)

func (u *unlogged) Flush() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.flushes++
	if u.slow {
		return nil
	}
	return u.toDisk()
}

func (u *unlogged) toDisk() (err error) {
	u.fence, _, err = u.Get(nil, record.Key(0))
	return err
}

func (u *unlogged) GetDurable(dst, _ []byte) (value []byte, ok bool, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append(dst, u.fence...), u.fence != nil, nil
}

// flushed is how often the node has had the store flushed since the last call.
func (u *unlogged) flushed() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := u.flushes
	u.flushes = 0
	return n
}

// The store is flushed when that is worth a table: for much that is not on disk, or for a commit that
// is not for long, but not for the heartbeats of an idle owner. What it flushes by itself counts.
func TestFlush(t *testing.T) {
	for _, limit := range []uint64{1 << 30, 1 << 20} {
		synctest.Test(t, func(t *testing.T) {
			st := &unlogged{Store: memory.New()}
			n := run(t, simulated.New(), 0, func(o *node.Options) { o.Store, o.LogLimit = st, limit })
			write := func(size int) {
				t.Helper()
				b := new(mutation.Batch)
				b.Set([]byte("k"), bytes.Repeat([]byte("v"), size))
				if err := n.Owner().Apply(store.Sync, b); err != nil {
					t.Fatal(err)
				}
			}
			pass(30 * time.Minute)
			if f, d := st.flushed(), n.state().Durable; f > 0 || d > 0 {
				t.Errorf("an idle owner has flushed %d times, and has %d on disk", f, d)
			}
			write(1)
			at := n.state().Number
			pass(4 * time.Minute)
			if f := st.flushed(); f > 0 {
				t.Errorf("a commit was flushed %d times in 4 minutes", f)
			}
			pass(time.Minute + 15*time.Second)
			if f, d := st.flushed(), n.state().Durable; f != 1 || d < at {
				t.Errorf("a commit was flushed %d times in 5 minutes, and %d of %d are on disk", f, d, at)
			}
			pass(30 * time.Minute)
			if f := st.flushed(); f > 0 {
				t.Errorf("after the commit, an idle owner has flushed %d times", f)
			}

			write(1)
			pass(6 * time.Minute)
			if f := st.flushed(); f != 1 {
				t.Errorf("another commit was flushed %d times", f)
			}
			quarter := int(min(limit/8, 16<<20)) / 4
			for range 2 {
				write(quarter)
			}
			pass(6 * time.Second)
			if f := st.flushed(); f > 0 {
				t.Errorf("limit %d: flushed %d times with little missing", limit, f)
			}
			for range 3 {
				write(quarter)
			}
			pass(11 * time.Second)
			if f, s := st.flushed(), n.state(); f != 1 || s.Durable+30 < s.Number {
				t.Errorf("limit %d: flushed %d times with much missing, and %d of %d are on disk", limit, f, s.Durable, s.Number)
			}

			for range 10 { // as with write buffers that are full, a little behind
				write(1)
				pass(3 * time.Minute)
				write(1)
				st.mu.Lock()
				if err := st.toDisk(); err != nil {
					t.Error(err)
				}
				st.mu.Unlock()
				write(1)
			}
			if f := st.flushed(); f > 0 {
				t.Errorf("a store that flushes itself was flushed %d times", f)
			}
			pass(6 * time.Minute)
			if f, s := st.flushed(), n.state(); f != 1 {
				t.Errorf("what it has not was flushed %d times: %d of %d are on disk", f, s.Durable, s.Number)
			}

			st.mu.Lock()
			st.slow = true
			st.mu.Unlock()
			for range 3 {
				write(quarter)
				write(quarter)
				pass(6 * time.Second)
			}
			if f := st.flushed(); f != 1 {
				t.Errorf("a disk that is slow was asked for %d flushes at once", f)
			}
			pass(6 * time.Minute)
			if f := st.flushed(); f != 1 {
				t.Errorf("a flush that does not end was begun again %d times in 6 minutes", f)
			}

			// On a full disk an earlier flush is tried again, and one that is asked for does not begin.
			write(1)
			earlier, _, err := st.Get(nil, record.Key(0))
			if err != nil {
				t.Fatal(err)
			}
			write(1)
			pass(6 * time.Minute)
			_ = st.flushed()
			st.mu.Lock()
			st.fence = earlier
			st.mu.Unlock()
			pass(6 * time.Second)
			for range 5 {
				write(quarter)
			}
			pass(6 * time.Second)
			if f := st.flushed(); f != 1 {
				t.Errorf("limit %d: when there is space again, what is missing is flushed %d times in 6 seconds", limit, f)
			}
		})
	}
}
