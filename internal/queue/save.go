package queue

import (
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/fair"
	"godwit.dev/godwit/internal/queue/grouping"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/schedule"
)

// The most bytes that the counters of a queue, and the record of a tenant, take in a batch,
// keys included.
const (
	countersRoom = 160
	tenantRoom   = 64
)

// Saved is where a queue's counters were last written: in which commit, at which offset. The
// zero value: nowhere.
type Saved struct {
	commit uint64
	end    uint32
	size   uint8
}

// SaveBytes is what Save adds to a batch at most, in bytes.
func (q *Machine) SaveBytes() int {
	if q.groups == nil {
		return countersRoom
	}
	return countersRoom + tenantRoom*q.groups.waits.ChangedCount()
}

// Save writes the counters, and the changed records of tenants; it ends each command on a
// queue. If commit, by its number, has the queue's counters already, they are overwritten in
// place.
func (q *Machine) Save(b *mutation.Batch, commit uint64, last *Saved) {
	if q.groups != nil {
		q.groups.waits.Changed(func(tenant layout.Lane, w fair.Wait) { layout.PutWait(b, q.keys.Tenant(tenant), w) })
	}
	var buf [countersRoom]byte
	value := q.appendCounters(buf[:0])
	if last.commit == commit && int(last.size) == len(value) {
		b.Overwrite(int(last.end), value)
		return
	}
	b.Set(q.keys.Counters(), value)
	*last = Saved{commit: commit, end: uint32(b.Size()), size: uint8(len(value))}
}

func (q *Machine) appendCounters(buf []byte) []byte {
	c := q.counters
	c.Next, c.Head, c.Scheduled, c.Leased = q.next, q.head(), q.due.Count, uint64(q.leases.Len())
	c.Bytes++
	if q.groups != nil {
		c.Listed, c.Back = q.groups.Listed, q.groups.Returned
	}
	return c.Append(buf)
}

// Load sets an empty machine to its persisted counters, and reads what has to be in memory:
// leases, counts, tenants, and the first messages of blocked groups. corrected is as in Fill.
// The error is layout.ErrCorrupt or ErrRead with its cause.
func (q *Machine) Load(r Reader, counters []byte, now int64) (corrected bool, err error) {
	unsized, err := q.load(counters, now)
	if err != nil {
		return false, err
	}
	read := func(need Need) {
		if err == nil {
			var wrong bool
			wrong, err = q.Fill(r, need)
			corrected = corrected || wrong
		}
	}
	if unsized && q.waiting()+int64(q.counters.Leased) > 0 {
		read(Need{kind: needSizes})
	}
	if q.counters.Leased > 0 {
		read(Need{kind: needLeases})
	}
	if q.shared() && q.due.Count+q.counters.Grouped > 0 {
		read(Need{kind: needTenants})
	}
	if q.due.Count > 0 || q.kind.FIFO {
		read(Need{kind: needBuckets})
	}
	q.Hibernate() // the buckets of an empty FIFO queue were read, too
	if q.groups == nil || !q.kind.FIFO {
		return corrected, err
	}
	for _, lane := range q.groups.Lanes() {
		for x := q.groups.Get(lane); err == nil && x.Known != grouping.KnowsAll; {
			read(q.needMore(x))
		}
	}
	return corrected, err
}

// load sets the counters. unsized says that an older version wrote them, without the bytes.
func (q *Machine) load(counters []byte, now int64) (unsized bool, err error) {
	c, err := layout.DecodeCounters(counters)
	if err != nil {
		return false, err
	}
	if unsized = c.Bytes == 0; !unsized {
		c.Bytes--
	}
	q.content = newContent()
	q.counters, q.next, q.due = c, c.Next, schedule.New(c.Scheduled, windowSize)
	q.main.Fresh.Whole = c.Fresh == 0
	if c.Grouped+c.Returned+c.Listed+c.Back > 0 {
		q.grouped()
	}
	if q.kind.FIFO && !q.kind.Backlog && c.Returned > 0 && c.Turn == 0 {
		q.stale = &resort{}
	}
	if !q.kind.Backlog {
		q.sweepAt = max(now, 1)
	}
	if c.Leased == 0 {
		q.Hibernate()
	}
	return unsized, nil
}
