package replica_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	nodes "godwit.dev/godwit/internal/cluster/node"
	"godwit.dev/godwit/internal/cluster/record"
	"godwit.dev/godwit/internal/cluster/replica"
	"godwit.dev/godwit/internal/cluster/replog"
	"godwit.dev/godwit/internal/cluster/replog/simulated"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
	"godwit.dev/godwit/test/soak"
)

// TestSimulated runs three nodes over a log that does to them whatever one may: it
// refuses, delays, reorders and repeats appends, loses answers and cuts nodes off, while
// nodes crash, are stopped, take over from each other, and copy each other's stores where
// the log was trimmed beyond them. One goroutine does all of it,
// in an order that the seed draws. What was acknowledged is never lost, nothing is
// invented or counted twice, and replicas are alike, byte for byte, at every number.
func TestSimulated(t *testing.T) {
	if soak.Enabled() {
		n := 0
		soak.Campaign(t, 20, func(t *testing.T, seed uint64) {
			for _, s := range append([]uint64{seed}, more(seed, 499)...) {
				simulate(t, s)
				n++
			}
		})
		t.Logf("%d seeds", n)
		return
	}
	var all outcome
	seeds := soak.Size(30, 250) // one goroutine does everything
	for _, seed := range soak.Seeds(t, seeds) {
		all.add(simulate(t, seed))
	}
	t.Logf("%d seeds: %+v", seeds, all)
	if all.acked < 20*seeds || all.unknown < seeds || all.owners < 3*seeds || all.skipped < seeds || all.copies < seeds/4 {
		t.Errorf("too little happens in %d seeds: %+v", seeds, all)
	}
}

// outcome is what happened in a simulation.
type outcome struct{ acked, unknown, owners, skipped, lives, copies int }

func (o *outcome) add(p outcome) {
	o.acked += p.acked
	o.unknown += p.unknown
	o.owners += p.owners
	o.skipped += p.skipped
	o.lives += p.lives
	o.copies += p.copies
}

func more(seed uint64, n int) (out []uint64) {
	r := soak.Rand(seed, 7)
	for range n {
		out = append(out, r.Uint64())
	}
	return out
}

const (
	simNodes = 3
	simKeys  = 5
	simSteps = 2000
)

type world struct {
	t     *testing.T
	seed  uint64
	r     *rand.Rand
	log   *simulated.Cluster
	clock *handClock
	nodes []*simNode
	ops   []*op
	seen  map[uint64]uint64 // the hash of a replica's store, by number
	lives int

	outcome outcome
}

type op struct {
	id, key int
	epoch   uint64
	number  uint64
	acked   bool
}

type simNode struct {
	name     string
	instance string // of the process
	way      *simulated.Node
	disk     *simDisk
	durable  uint64   // up to which position it was said to be on disk
	incoming *simDisk // a copy of another's; nil: none
	replica  *replica.Replica
	reader   *simulated.Reader
	owner    *replica.Owner
	stopped  bool
	waiting  []*op
}

// simDisk is a store without a log: a crash takes what was applied since it was flushed last.
type simDisk struct {
	*memory.Store
	t       *testing.T
	flushed *memory.Store
}

func newDisk(t *testing.T) *simDisk { return &simDisk{memory.New(), t, memory.New()} }

// Flush implements store.Flusher.
func (d *simDisk) Flush() error {
	d.flushed = copied(d.t, d.Store)
	return nil
}

// GetDurable implements store.Flusher.
func (d *simDisk) GetDurable(dst, key []byte) (value []byte, ok bool, err error) {
	return d.flushed.Get(dst, key)
}

// crashed is what a crash leaves.
func (d *simDisk) crashed() *simDisk { return &simDisk{copied(d.t, d.flushed), d.t, d.flushed} }

// checkpoint is a copy on a disk of its own.
func (d *simDisk) checkpoint() *simDisk {
	return &simDisk{copied(d.t, d.Store), d.t, copied(d.t, d.Store)}
}

func simulate(t *testing.T, seed uint64) outcome {
	t.Helper()
	w := &world{t: t, seed: seed, r: soak.Rand(seed, 0), log: simulated.New(), clock: &handClock{}, seen: map[uint64]uint64{}}
	w.log.Hold()
	for i := range simNodes {
		n := &simNode{name: fmt.Sprint("n", i), way: w.log.Node(), disk: newDisk(t)}
		w.nodes = append(w.nodes, n)
		w.start(n)
	}
	for range simSteps {
		w.step()
		if t.Failed() {
			t.Fatalf("repeat with GODWIT_SEED=%d", seed)
		}
	}
	w.heal()
	if t.Failed() {
		t.Fatalf("repeat with GODWIT_SEED=%d", seed)
	}
	for _, o := range w.ops {
		if o.acked {
			w.outcome.acked++
		} else {
			w.outcome.unknown++
		}
	}
	w.outcome.lives = w.lives
	return w.outcome
}

// start starts a node's process on what its disk has.
func (w *world) start(n *simNode) {
	w.lives++
	n.instance = fmt.Sprint(n.name, "/", w.lives)
	var err error
	if n.replica, err = replica.Open(0, n.disk); err != nil {
		w.t.Fatal(err)
	}
	n.reader, n.owner, n.waiting, n.stopped = nil, nil, nil, false
	if n.durable, err = n.replica.Durable(); err != nil {
		w.t.Fatal(err)
	}
}

func copied(t *testing.T, s *memory.Store) *memory.Store {
	t.Helper()
	out, b := memory.New(), new(mutation.Batch)
	for k, v := range storetest.Dump(t, s) {
		b.Set(k, v)
	}
	if err := out.Apply(store.NoSync, b); err != nil {
		t.Fatal(err)
	}
	return out
}

func (w *world) step() {
	n := w.nodes[w.r.IntN(len(w.nodes))]
	switch d := w.r.IntN(1000); {
	case d < 420:
		w.read(n)
	case d < 640:
		w.command(n)
	case d < 940:
		w.deliver()
	case d < 946:
		w.stand(n)
	case d < 956:
		n.way.Cut(w.r.IntN(3) == 0)
	case d < 959:
		w.crash(n)
		for _, m := range w.nodes { // all machines, sometimes
			if m != n && w.r.IntN(3) == 0 {
				w.crash(m)
			}
		}
	case d < 974:
		w.flush(n)
	case d < 980:
		n.stopped = !n.stopped && w.r.IntN(2) == 0
	case d < 993:
		w.clock.fire(w.r)
	default:
		w.trim()
	}
}

// flush has a node's disk flushed, as the node wants it or as its write buffers are full, and the
// node look what is on it, or only one of them.
func (w *world) flush(n *simNode) {
	if w.r.IntN(4) > 0 {
		if err := n.replica.Flush(); err != nil {
			w.t.Error(err)
		}
	}
	if w.r.IntN(4) > 0 {
		durable, err := n.replica.Durable()
		if err != nil || durable < n.durable || durable > n.replica.Fence().Position {
			w.t.Errorf("%s has %d on disk, before %d, and applied %d: %v", n.name, durable, n.durable, n.replica.Fence().Position, err)
		}
		n.durable = durable
	}
}

// read has a node apply the next records of the log.
func (w *world) read(n *simNode) {
	if n.stopped {
		return
	}
	for range 1 + w.r.IntN(4) {
		if !w.readOne(n) {
			return
		}
	}
}

func (w *world) readOne(n *simNode) bool {
	if n.reader == nil {
		reader, err := n.way.Read(w.t.Context(), n.replica.Position()+1)
		if err != nil {
			return errors.Is(err, replog.ErrTrimmed) && w.copy(n) // else it is cut off
		}
		n.reader = reader.(*simulated.Reader)
	}
	position, data, ok, err := n.reader.Try()
	if err != nil {
		// The connection is lost, not what was read of a commit: the same place goes on.
		return errors.Is(err, replog.ErrTrimmed) && w.copy(n)
	}
	if !ok {
		return false
	}
	rec, accepted, err := n.replica.Apply(position, data)
	if err != nil {
		w.t.Error(err)
		return false
	}
	if accepted {
		w.compare(n, rec.Kind)
	}
	if !accepted {
		w.outcome.skipped++
	}
	if accepted && rec.Kind == record.Takeover && rec.Owner == n.instance {
		w.outcome.owners++
		n.owner, err = n.replica.Own(rec.Epoch, replica.OwnerOptions{
			Log: n.way, Clock: w.clock, Window: 1 + int(rec.Epoch%4), RecordSize: 40 << (rec.Epoch % 3),
		})
		if err != nil {
			w.t.Error(err)
		}
	}
	w.acknowledge(n)
	return true
}

// copy has a node that the log was trimmed beyond copy another's store, which the log may
// be trimmed beyond as well until the copy is there.
func (w *world) copy(n *simNode) bool {
	if n.incoming != nil {
		n.disk, n.incoming = n.incoming, nil
		w.start(n)
		w.compare(n, record.Commit)
		w.outcome.copies++
		return true
	}
	log, err := n.way.Extent(w.t.Context())
	if err != nil {
		w.t.Error(err)
		return false
	}
	for _, i := range w.r.Perm(len(w.nodes)) {
		if m := w.nodes[i]; m != n && !m.stopped && m.replica.Fence().Position+1 >= log.First {
			n.incoming = m.disk.checkpoint()
			return true
		}
	}
	return false
}

// acknowledge tells the callers whose commits have come back.
func (w *world) acknowledge(n *simNode) {
	if n.owner == nil {
		return
	}
	_, accepted := n.owner.Numbers()
	n.waiting = slices.DeleteFunc(n.waiting, func(o *op) bool {
		o.acked = o.number <= accepted
		return o.acked
	})
	if n.owner.Failed() != nil { // the process ends; its callers never know
		w.stop(n)
	}
}

// command appends an operation to a key's list, as a command that reads and writes.
func (w *world) command(n *simNode) {
	if n.owner == nil || n.stopped || n.owner.Failed() != nil {
		return
	}
	o := &op{id: len(w.ops), key: w.r.IntN(simKeys), epoch: n.owner.Epoch()}
	key := fmt.Appendf(nil, "list %d", o.key)
	list, _, err := n.owner.Get(nil, key)
	if err != nil {
		w.t.Error(err)
		return
	}
	b := new(mutation.Batch)
	b.Set(key, fmt.Appendf(list, "%d ", o.id))
	// Beside it something that is written and dropped again, as ranges and one by one.
	side := fmt.Appendf(nil, "side %d ", o.id%7)
	switch w.r.IntN(4) {
	case 0:
		b.DeleteRange(side, append(bytes.Clone(side), 0xff))
	case 1:
		b.Delete(fmt.Appendf(side, "%d", w.r.IntN(3)))
	default:
		b.Set(fmt.Appendf(side, "%d", w.r.IntN(3)), bytes.Repeat([]byte("s"), w.r.IntN(60)))
	}
	b.Set(fmt.Appendf(nil, "mark %d", o.id), nil)
	if err := n.owner.Apply(store.NoSync, b); err != nil {
		w.t.Error(err)
		return
	}
	o.number, _ = n.owner.Numbers()
	w.ops = append(w.ops, o)
	n.waiting = append(n.waiting, o)
}

// deliver brings an append to an end, or not.
func (w *world) deliver() {
	if pending := w.log.Pending(); pending > 0 {
		i := 0
		if w.r.IntN(8) == 0 {
			i = w.r.IntN(pending)
		}
		fate := simulated.Taken
		if w.r.IntN(12) == 0 {
			fate = simulated.Fate(w.r.IntN(int(simulated.Fates)))
		}
		w.log.Deliver(i, fate)
	}
}

// stand has a node try to take over.
func (w *world) stand(n *simNode) {
	if n.stopped || n.owner != nil {
		return
	}
	f := n.replica.Fence()
	r := record.Record{Kind: record.Takeover, Epoch: f.Epoch + 1, Number: f.Number, Owner: n.instance}
	n.way.Append(r.AppendTo(nil), func(uint64, error) {})
}

func (w *world) crash(n *simNode) {
	if w.r.IntN(4) == 0 {
		n.incoming = nil
	}
	w.stop(n)
}

// stop ends a node's process, in order or not, and starts the next.
func (w *world) stop(n *simNode) {
	if w.r.IntN(2) == 0 {
		n.disk = n.disk.crashed()
	} else if err := n.disk.Flush(); err != nil {
		w.t.Error(err)
	}
	w.start(n)
}

// trim cuts off the log as its owner does, which may find it large or small, and some
// nodes silent.
func (w *world) trim() {
	const limit = 1000
	var members []nodes.Member
	for _, n := range w.nodes {
		members = append(members, nodes.Member{Known: !n.stopped && w.r.IntN(8) > 0, Durable: n.durable})
	}
	if below := nodes.Trimmable(members, w.r.Uint64N(3*limit), limit); below > 1 {
		_ = w.nodes[0].way.Trim(w.t.Context(), below) // it may be cut off
	}
}

// compare holds a replica against those that were at the same number.
func (w *world) compare(n *simNode, kind record.Kind) {
	if kind == record.Part {
		return
	}
	h := fnv.New64a()
	for k, v := range storetest.Dump(w.t, n.disk.Store) {
		_ = binary.Write(h, binary.BigEndian, [2]uint32{uint32(len(k)), uint32(len(v))})
		_, _ = h.Write(k)
		_, _ = h.Write(v)
	}
	number := n.replica.Fence().Number
	if want, ok := w.seen[number]; ok && want != h.Sum64() {
		w.t.Errorf("%s differs from another replica at number %d", n.name, number)
	}
	w.seen[number] = h.Sum64()
}

// heal mends everything, lets all that is under way come to its end, and looks at it.
func (w *world) heal() {
	for _, n := range w.nodes {
		n.way.Cut(false)
		n.stopped = false
	}
	for quiet := false; !quiet; {
		quiet = true
		for w.log.Pending() > 0 {
			w.log.Deliver(0, simulated.Taken)
			quiet = false
		}
		for _, n := range w.nodes {
			for w.readOne(n) {
				quiet = false
			}
		}
	}
	for i, n := range w.nodes {
		if i > 0 && !storetest.Equal(w.t, w.nodes[0].disk.Store, n.disk.Store) {
			w.t.Errorf("%s differs from %s", n.name, w.nodes[0].name)
		}
	}
	count := map[int]int{}
	for key := range simKeys {
		v, _, err := w.nodes[0].disk.Get(nil, fmt.Appendf(nil, "list %d", key))
		if err != nil {
			w.t.Error(err)
		}
		for text := range strings.FieldsSeq(string(v)) {
			var id int
			if _, err := fmt.Sscan(text, &id); err != nil || id >= len(w.ops) || w.ops[id].key != key {
				w.t.Errorf("nobody has written %q to key %d", text, key)
				continue
			}
			count[id]++
		}
	}
	for _, o := range w.ops {
		_, marked, err := w.nodes[0].disk.Get(nil, fmt.Appendf(nil, "mark %d", o.id))
		if err != nil || marked != (count[o.id] > 0) {
			w.t.Errorf("operation %d is half there: marked %v, %v", o.id, marked, err)
		}
		switch n := count[o.id]; {
		case n > 1:
			w.t.Errorf("operation %d counts %d times", o.id, n)
		case n == 0 && o.acked:
			w.t.Errorf("operation %d of epoch %d, number %d, was acknowledged, and is lost", o.id, o.epoch, o.number)
		}
	}
}

// handClock is a clock whose timers are called when somebody says so.
type handClock struct {
	now    time.Time
	timers []*handTimer
}

type handTimer struct {
	at time.Time
	f  func()
}

func (c *handClock) Now() time.Time { return c.now }
func (c *handClock) Hold() func()   { return func() {} }

func (c *handClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	t := &handTimer{c.now.Add(d), f}
	c.timers = append(c.timers, t)
	return t
}

// Stop implements clock.Timer.
func (t *handTimer) Stop() bool { return false }

// fire calls the timer that is due first, sometimes.
func (c *handClock) fire(r *rand.Rand) {
	if len(c.timers) == 0 || r.IntN(3) == 0 {
		return
	}
	t := slices.MinFunc(c.timers, func(a, b *handTimer) int { return a.at.Compare(b.at) })
	c.timers = slices.DeleteFunc(c.timers, func(o *handTimer) bool { return o == t })
	if t.at.After(c.now) {
		c.now = t.at
	}
	t.f()
}
