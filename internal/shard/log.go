package shard

import (
	"encoding/binary"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
)

// lazyDelay bounds how long a change that nobody waits for stays out of the
// store, so that with its sync it is durable within 10 ms.
const lazyDelay = 4 * time.Millisecond

// A sync that takes longer than slowSync leaves too little of the 10 ms. For
// slowMemory after one, what would be answered before its own sync waits for it.
const (
	slowSync   = 4 * time.Millisecond
	slowMemory = 10 * time.Second
)

// errLogClosed reports an append after the log was closed.
var errLogClosed = errors.New("shard: the log is closed")

// batchRoom bounds the memory that a shard keeps for the batch of its next command,
// in bytes: all of them 16 MiB. What is larger goes with the commit.
const batchRoom = 256 << 10

// part is what one command changes in one shard.
type part struct {
	shard   *shard
	batch   *mutation.Batch
	touched []*queueState // their counters go with the commit
}

// countersRoom bounds what the counters of a queue take in a batch, in bytes.
const countersRoom = 128

// tenantRoom bounds what the record of a tenant takes.
const tenantRoom = 64

func (p *part) size() int {
	n := p.batch.Size() + countersRoom*len(p.touched)
	for _, qs := range p.touched {
		n += tenantRoom * qs.machine.ChangedTenants()
	}
	return n
}

// group is what becomes durable together: the commands, of all shards, that
// came while the group before was being written.
type group struct {
	number  uint64
	parts   []groupPart
	index   [Shards]uint8 // 1 + the index in parts of a shard's part; 0: none
	sync    bool          // somebody waits for it
	applied atomic.Bool   // the store shows it
	durable atomic.Bool   // it survives a crash
	done    chan struct{} // closed once durable

	waiting atomic.Int32  // how many wait for it
	want    atomic.Int32  // how many are enough for gather
	enough  chan struct{} // capacity 1; they are
}

// groupPart is one shard's commit of a group.
type groupPart struct {
	shard *shard
	batch *mutation.Batch
	meta  meta
}

// count writes the counters of a queue: once a group, as they are after its last
// command. What its tenants have waiting is written as often as it changes.
func (gp *groupPart) count(g *group, qs *queueState) {
	if qs.ended() {
		return
	}
	qs.machine.PutTenants(gp.batch)
	var buf [countersRoom]byte
	value := qs.machine.AppendCounters(buf[:0])
	if qs.countedIn == g.number && int(qs.countedLen) == len(value) {
		gp.batch.Overwrite(int(qs.countedEnd), value)
		return
	}
	gp.batch.Set(qs.machine.Keys().Counters(), value)
	qs.countedIn, qs.countedEnd, qs.countedLen = g.number, uint32(gp.batch.Size()), uint8(len(value))
}

func newGroup(number uint64) *group {
	return &group{number: number, done: make(chan struct{}), enough: make(chan struct{}, 1)}
}

// wait returns once the group is durable. A nil group is.
func (g *group) wait() {
	if g == nil || g.durable.Load() {
		return
	}
	if g.waiting.Add(1) == g.want.Load() {
		select {
		case g.enough <- struct{}{}:
		default:
		}
	}
	<-g.done
}

// commitLog is the group commit of all shards of a store. What is appended at
// once is applied and becomes durable at once, and in the order of appending.
type commitLog struct {
	store   store.Store
	observe func(commit []byte) // sees each shard's sealed commit, in order; may be nil
	fatal   func(error)
	synced  func(took time.Duration) // told of each sync; may be nil

	mu     sync.Mutex // guards what follows
	open   *group
	unsync []*group // applied, not yet durable
	lazy   bool     // the timer for a group that nobody waits for is set
	closed bool

	syncing   atomic.Int64 // UnixNano; when the sync under way began, 0: none is
	slowUntil atomic.Int64 // UnixNano; until then the disk is taken to be slow

	applying sync.Mutex // held while groups are applied, in their order
	spare    sync.Pool  // of *mutation.Batch

	gathering // run's

	wake chan struct{}
	stop chan struct{}
	over chan struct{}
}

func newCommitLog(s store.Store, observe func([]byte), synced func(time.Duration), fatal func(error)) *commitLog {
	l := &commitLog{
		store: s, observe: observe, synced: synced, fatal: fatal, open: newGroup(1),
		wake: make(chan struct{}, 1), stop: make(chan struct{}), over: make(chan struct{}),
	}
	l.spare.New = func() any { return new(mutation.Batch) }
	go l.run()
	return l
}

// append adds the parts, as one atomic unit, to the open group. With sync the
// group is written at once, else within lazyDelay. The parts' batches are empty
// afterwards. The callers hold the locks of the parts' shards.
func (l *commitLog) append(sync bool, parts ...part) *group {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		for _, p := range parts {
			p.batch.Reset()
		}
		l.fatal(errLogClosed)
		return newGroup(0)
	}
	for _, p := range parts {
		if i := l.open.index[p.shard.id]; i > 0 && l.open.parts[i-1].batch.Size()+p.size() > mutation.MaxCommit-4096 {
			l.mu.Unlock()
			l.flush()
			l.mu.Lock()
			break
		}
	}
	g := l.open
	for _, p := range parts {
		i := g.index[p.shard.id]
		if i == 0 {
			spare := l.spare.Get().(*mutation.Batch)
			if spare.Room() <= batchRoom { // else the shard would keep it
				*spare, *p.batch = *p.batch, *spare
			}
			g.parts = append(g.parts, groupPart{shard: p.shard, batch: spare})
			i = uint8(len(g.parts))
			g.index[p.shard.id] = i
		}
		gp := &g.parts[i-1]
		gp.batch.Append(p.batch)
		if p.batch.Reset(); p.batch.Room() > batchRoom {
			*p.batch = mutation.Batch{}
		}
		for _, qs := range p.touched {
			gp.count(g, qs)
		}
		gp.meta = p.shard.meta
		p.shard.last = g
	}
	wake := sync && !g.sync
	g.sync = g.sync || sync
	lazy := !g.sync && !l.lazy
	if lazy {
		l.lazy = true
	}
	l.mu.Unlock()
	if wake {
		l.signal()
	} else if lazy {
		clock.System.AfterFunc(lazyDelay, l.signal)
	}
	return g
}

// acknowledgeable returns once a lazy group may be told of: at once while the
// disk is quick, or else once it is durable.
func (l *commitLog) acknowledgeable(g *group) {
	if g == nil {
		return
	}
	now, since := clock.System.Now().UnixNano(), l.syncing.Load()
	if hanging := since != 0 && now-since > int64(slowSync); !hanging && now >= l.slowUntil.Load() {
		return
	}
	// It is written soon, with what others wait for or at the end of lazyDelay: a
	// sync of its own would be one more on a disk that is slow.
	g.wait()
}

func (l *commitLog) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// flush makes everything appended so far visible in the store.
func (l *commitLog) flush() {
	l.applying.Lock()
	defer l.applying.Unlock()
	l.mu.Lock()
	g := l.open
	if len(g.parts) == 0 {
		l.mu.Unlock()
		return
	}
	l.open = newGroup(g.number + 1)
	l.mu.Unlock()

	batches := make([]*mutation.Batch, len(g.parts))
	for i := range g.parts {
		p := &g.parts[i]
		p.shard.sealed++
		p.meta.write(p.batch, p.shard.id, p.shard.sealed)
		batches[i] = p.batch
		if l.observe != nil {
			c := mutation.Commit{Shard: p.shard.id, Epoch: p.meta.epoch, Sequence: p.shard.sealed, Batch: *p.batch}
			l.observe(c.AppendTo(nil))
		}
	}
	if err := l.store.Apply(false, batches...); err != nil {
		l.fatal(err)
		return
	}
	g.applied.Store(true)
	for i := range g.parts {
		g.parts[i].batch.Reset()
		l.spare.Put(g.parts[i].batch)
		g.parts[i].batch = nil
	}
	l.mu.Lock()
	l.unsync = append(l.unsync, g)
	l.mu.Unlock()
}

// commit makes everything appended so far durable.
func (l *commitLog) commit() {
	l.mu.Lock()
	l.lazy = false
	l.mu.Unlock()
	l.flush()
	l.mu.Lock()
	groups := l.unsync
	l.unsync = nil
	l.mu.Unlock()
	if len(groups) == 0 {
		return
	}
	began := clock.System.Now()
	l.syncing.Store(began.UnixNano())
	err := l.store.Sync()
	l.syncing.Store(0)
	if err != nil {
		l.fatal(err)
		return
	}
	now := clock.System.Now()
	took := now.Sub(began)
	if took > slowSync {
		l.slowUntil.Store(now.Add(slowMemory).UnixNano())
	}
	if l.synced != nil {
		l.synced(took)
	}
	l.mu.Lock()
	l.company = l.open.waiting.Load()
	l.mu.Unlock()
	for _, g := range groups {
		l.company += g.waiting.Load()
		g.durable.Store(true)
		close(g.done)
	}
}

func (l *commitLog) run() {
	defer close(l.over)
	for {
		select {
		case <-l.wake:
			l.gather()
			runtime.Gosched()
			l.commit()
		case <-l.stop:
			l.commit()
			return
		}
	}
}

// close makes everything durable and ends the log.
func (l *commitLog) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	close(l.stop)
	<-l.over
}

// meta is what a shard remembers about itself, written with each commit.
type meta struct {
	epoch       uint32
	now         int64  // the latest time that a command saw, epoch milliseconds
	incarnation uint64 // the last one given out
}

const metaSize = 8 + 4 + 8 + 8

func metaKey(shard uint16) []byte {
	return append(binary.BigEndian.AppendUint16(nil, shard), 'M')
}

func (m *meta) write(b *mutation.Batch, shard uint16, sequence uint64) {
	var v [metaSize]byte
	binary.BigEndian.PutUint64(v[:], sequence)
	binary.BigEndian.PutUint32(v[8:], m.epoch)
	binary.BigEndian.PutUint64(v[12:], uint64(m.now))
	binary.BigEndian.PutUint64(v[20:], m.incarnation)
	b.Set(metaKey(shard), v[:])
}

func decodeMeta(v []byte) (m meta, sequence uint64, ok bool) {
	if len(v) != metaSize {
		return m, 0, false
	}
	return meta{
		epoch:       binary.BigEndian.Uint32(v[8:]),
		now:         int64(binary.BigEndian.Uint64(v[12:])),
		incarnation: binary.BigEndian.Uint64(v[20:]),
	}, binary.BigEndian.Uint64(v), true
}
