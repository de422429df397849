package monitor

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/monitor/metrics"
	"godwit.dev/godwit/internal/shard"
)

// Queues adds up the events of queues, and makes metrics of them. A queue that
// nothing happened to, or that is deleted, costs nothing.
type Queues struct {
	points *metrics.Store // nil: there are no metrics
	series QueueSeries
	wake   func()

	mu     sync.Mutex // guards what follows; an event rarely needs it
	totals map[arn.ARN]*counters
	// active are those that Tick looks at: they have metrics each minute. Without
	// metrics it looks once, for what came when the queue was gone.
	active map[*counters]struct{}

	nextPhase int64 // of the queue that is added next
	started   int64 // the minute of Resume, which goes before all

	ticking sync.Mutex // held by Tick
	// looking is the buffer for those that Tick looks at. Made again each minute it would keep
	// a server with many quiet queues busy.
	looking []*counters
}

// QueueSeries finds the counts of a queue that Prometheus shows. They are added to
// until they are Left.
type QueueSeries func(queue arn.ARN) *QueueCounts

// NewQueues makes a Queues whose metrics go to points, and whose events are counted
// in series, unless they are nil; wake asks for a call of Tick after the present minute.
func NewQueues(points *metrics.Store, series QueueSeries, wake func()) *Queues {
	return &Queues{points: points, series: series, wake: wake, totals: map[arn.ARN]*counters{}, active: map[*counters]struct{}{}}
}

// counters are what is kept about a queue. The queue's slot has them, so that its
// next event finds them at once.
type counters struct {
	QueueCounts
	activity
	last lastReport

	name arn.ARN
	rest
	series   atomic.Pointer[QueueCounts]
	resource atomic.Pointer[metrics.Resource]
}

// Totals are what happened to the messages of a queue since the process began.
type Totals struct {
	Sent, SentBytes, Deduplicated  int64
	Received, EmptyReceives        int64
	Deleted, DeadLettered, Expired int64
}

// Add takes an event. It does not block.
func (q *Queues) Add(e shard.QueueEvent) {
	switch e.Kind {
	case shard.QueueDeleted:
		q.forget(e.Queue)
		return
	case shard.MessagesChanged: // which is no use of the queue
		if c := q.known(&e); c != nil {
			c.stir()
		}
		return
	default:
	}
	c := q.at(&e)
	c.stir()
	c.Add(&e)
	if q.series != nil {
		s := c.series.Load()
		if s == nil || s.Left.Load() {
			s = q.series(c.name)
			c.series.Store(s)
		}
		s.Add(&e)
	}
	if q.points != nil {
		q.measure(c, &e)
	}
}

// known are the counters of an event's queue; nil if there are none.
func (q *Queues) known(e *shard.QueueEvent) *counters {
	if e.Slot != nil {
		if c, _ := e.Slot.Load().(*counters); c != nil && !c.Left.Load() {
			return c
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.totals[e.Queue]
}

// at finds or makes the counters of an event's queue.
func (q *Queues) at(e *shard.QueueEvent) *counters {
	if e.Slot == nil {
		return q.of(e.Queue)
	}
	c, _ := e.Slot.Load().(*counters)
	if c == nil || c.Left.Load() {
		c = q.of(e.Queue)
		e.Slot.Store(c)
	}
	return c
}

// of finds or makes the counters of a queue.
func (q *Queues) of(queue arn.ARN) *counters {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.totals[queue]
	if c == nil { // it may be of a queue that is gone
		c = &counters{name: queue.Own(), rest: rest{phase: q.nextPhase % checkEvery}}
		q.nextPhase++
		q.revive(c)
	}
	return c
}

func (q *Queues) forget(queue arn.ARN) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c := q.totals[queue]; c != nil {
		q.remove(c, true)
		if q.points != nil {
			q.endReport(c, metrics.Minute(q.points.Now())-1, true)
		}
	}
}

const (
	count = "Count"
	bytes = "Bytes"
)

// measure makes metrics of an event.
func (q *Queues) measure(c *counters, e *shard.QueueEvent) {
	if e.Kind == shard.MessagesExpired || e.Kind == shard.MessagesDeadLettered {
		return // nothing was done
	}
	minute := e.At / 60_000
	if c.touch(minute) {
		q.activate(c)
	}
	each := metrics.Datum{Unit: count, Value: 1, Again: e.Messages - 1}
	switch e.Kind {
	case shard.MessagesSent:
		q.sent(c, minute, e)
	case shard.MessagesDeduplicated:
		each.Name = "NumberOfDeduplicatedSentMessages"
		q.record(c, minute, each)
	case shard.MessagesReceived:
		if e.Messages == 0 {
			q.record(c, minute, metrics.Datum{Name: "NumberOfEmptyReceives", Unit: count, Value: 1})
		} else {
			q.record(c, minute, metrics.Datum{Name: "NumberOfMessagesReceived", Unit: count, Value: float64(e.Messages)})
		}
	case shard.MessagesDeleted, shard.MessagesDeletedAgain: // AWS counts both
		each.Name = "NumberOfMessagesDeleted"
		q.record(c, minute, each)
	case shard.MessagesMovedIn, shard.MessagesDeadLettered, shard.MessagesExpired, shard.MessagesChanged,
		shard.QueueDeleted: // no metrics of their own
	}
}

// sent records each message by itself, also of those that were sent at once.
func (q *Queues) sent(c *counters, minute int64, e *shard.QueueEvent) {
	sent := metrics.Datum{Name: "NumberOfMessagesSent", Unit: count, Value: 1, Again: e.Messages - 1}
	sized := metrics.Datum{Name: "SentMessageSize", Unit: bytes, Value: float64(e.Bytes)}
	if e.Sizes == nil {
		q.record(c, minute, sent, sized)
		return
	}
	var backing [maxBatch + 1]metrics.Datum
	data := append(backing[:0], sent)
	for i, size := range e.Sizes {
		if i > 0 && size == e.Sizes[i-1] {
			data[len(data)-1].Again++
			continue
		}
		sized.Value = float64(size)
		data = append(data, sized)
	}
	q.record(c, minute, data...)
}

// maxBatch is how many messages a client can send at once.
const maxBatch = 10

// activate has Tick look at a queue again.
func (q *Queues) activate(c *counters) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now := q.totals[c.name]; now == nil || now == c {
		q.revive(c)
	}
}

// revive is activate for counters that are the queue's or, as it has none, become
// so, under mu.
func (q *Queues) revive(c *counters) {
	c.active.Store(true)
	c.Left.Store(false)
	c.last.mu.Lock()
	c.last.over = false
	c.last.mu.Unlock()
	q.totals[c.name], q.active[c] = c, struct{}{}
	q.wake()
}

// deactivate ends the activity of a queue, unless anything was done since the check.
func (q *Queues) deactivate(c *counters, gone bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, active := q.active[c]; active && c.deactivate(func() { q.remove(c, gone) }) {
		q.revive(c)
	}
}

// remove takes a queue out of the active ones, and out of all if it is gone, under mu.
func (q *Queues) remove(c *counters, gone bool) {
	delete(q.active, c)
	if gone {
		c.Left.Store(true)
		delete(q.totals, c.name)
	}
}

func (q *Queues) record(c *counters, minute int64, data ...metrics.Datum) {
	for {
		if r := c.resource.Load(); r != nil && r.Record(minute, data...) {
			return
		}
		c.resource.Store(q.resource(c.name))
	}
}

func (q *Queues) resource(queue arn.ARN) *metrics.Resource {
	return q.points.Resource(metrics.Owner{Account: queue.Account, Region: queue.Region}, "AWS/SQS", queueDimension(queue.Resource))
}

// queueDimension is what the metrics of a queue are listed by.
func queueDimension(name string) string {
	return metrics.Dimensions(metrics.Dimension{Name: "QueueName", Value: name})
}

// Gauger measures a queue: *shard.Engine.
type Gauger interface {
	SampleQueue(queue arn.ARN) (shard.QueueGauges, error)
}

// Tick measures the active queues at the end of a minute. A queue that is gone, or
// has been idle and empty for long, is active no more.
func (q *Queues) Tick(gauger Gauger, at time.Time) (more bool, err error) {
	minute := metrics.Minute(at) - 1
	q.ticking.Lock()
	defer q.ticking.Unlock()
	q.mu.Lock()
	if cap(q.looking) > 4*len(q.active)+1000 {
		q.looking = nil
	}
	q.looking = slices.AppendSeq(q.looking[:0], maps.Keys(q.active))
	q.mu.Unlock()
	defer func() { clear(q.looking) }() // they may be gone before the next minute
	n := 0
	for _, c := range q.looking {
		if c.rests(minute) && (c.holds || !c.idle(minute)) {
			if c.holds {
				c.used.Store(max(c.used.Load(), minute))
			}
			more = true
			continue
		}
		stays, wrote := q.check(c, gauger, at, minute)
		more = more || stays
		// What is written leaves memory, however many queues there are.
		if wrote {
			n++
		}
		if wrote && n%1000 == 0 {
			if _, err := q.points.Flush(); err != nil {
				return more, err
			}
		}
	}
	return more, nil
}

// check measures a queue at the end of a minute. It stays unless that was the last time;
// wrote says that there is something to be written.
func (q *Queues) check(c *counters, gauger Gauger, at time.Time, minute int64) (stays, wrote bool) {
	if r := c.resource.Load(); r != nil && r.Forgotten() {
		c.resource.CompareAndSwap(r, nil) // it keeps its samples in memory
	}
	c.beginCheck()
	c.still.Store(true) // before the check: what comes during it is seen by the next one at the latest
	steady := false
	g, failed := gauger.SampleQueue(c.name)
	defer func() { c.observe(&g, steady) }()
	gone := fault.KindOf(failed) == fault.QueueDoesNotExist
	held := g.Visible + g.InFlight + g.Delayed
	if held > 0 {
		c.used.Store(max(c.used.Load(), minute))
	}
	switch {
	case gone, failed == nil && q.points != nil && held == 0 && c.idle(minute):
		q.endReport(c, minute-1, gone)
		q.deactivate(c, gone)
		return false, false
	case failed != nil: // its owner does not answer now
		return true, false
	case q.points == nil:
		q.deactivate(c, false)
		return false, false
	}
	// Checking many takes its time.
	since := q.points.Now().Sub(at)
	g.OldestAge, g.QuietOldestAge = g.OldestAge-since, g.QuietOldestAge-since
	p := sampleOf(c.name.FIFO(), &g, minute)
	wrote, steady = q.report(c, minute, &p, g.Created)
	return true, wrote
}

// Of are the totals of a queue.
func (q *Queues) Of(queue arn.ARN) Totals {
	q.mu.Lock()
	c := q.totals[queue]
	q.mu.Unlock()
	if c == nil {
		return Totals{}
	}
	return c.now()
}

// EachActive calls f with up to most queues that something happened to of late, or that
// have messages, in no order. It must be quick.
func (q *Queues) EachActive(most int, f func(queue arn.ARN, now Totals)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for c := range q.active {
		if most--; most < 0 {
			return
		}
		f(c.name, c.now())
	}
}

// now are the totals as they are.
func (c *counters) now() Totals {
	return Totals{
		Sent: c.Sent.Load(), SentBytes: c.SentBytes.Load(), Deduplicated: c.Deduplicated.Load(),
		Received: c.Received.Load(), EmptyReceives: c.EmptyReceives.Load(),
		Deleted: c.Deleted.Load(), DeadLettered: c.DeadLettered.Load(), Expired: c.Expired.Load(),
	}
}
