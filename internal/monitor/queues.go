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

// Queues counts the events of queues, and makes metrics of them. An unused or deleted queue
// costs nothing.
type Queues struct {
	points *metrics.Store // nil: there are no metrics
	series QueueSeries
	wake   func()

	mu     sync.Mutex // guards what follows; events rarely need it
	totals map[arn.ARN]*counters
	// active are the queues that have metrics each minute, which Tick checks. Without metrics
	// Tick checks a queue once, for events after its deletion.
	active map[*counters]struct{}

	nextPhase int64 // of the next queue to be added
	started   int64 // the minute of Resume, which is called first

	ticking sync.Mutex // held by Tick
	// looking is the buffer for the queues that Tick checks. It is reused, since allocating it
	// each minute would keep a server with many quiet queues busy.
	looking []*counters
}

// QueueSeries finds the counts of a queue for Prometheus. They are used until they are Left.
type QueueSeries func(queue arn.ARN) *QueueCounts

// NewQueues makes a Queues whose metrics go to points, and whose events are counted in series,
// unless they are nil; wake requests a call of Tick after the current minute.
func NewQueues(points *metrics.Store, series QueueSeries, wake func()) *Queues {
	return &Queues{points: points, series: series, wake: wake, totals: map[arn.ARN]*counters{}, active: map[*counters]struct{}{}}
}

// counters is the state of a queue here. The queue's slot refers to it, so that its next event
// finds it at once.
type counters struct {
	QueueCounts
	activity
	last lastReport

	name arn.ARN
	rest
	series   atomic.Pointer[QueueCounts]
	resource atomic.Pointer[metrics.Resource]
}

// Totals count the events of a queue's messages since the process began.
type Totals struct {
	Sent, SentBytes, Deduplicated  int64
	Received, EmptyReceives        int64
	Deleted, DeadLettered, Expired int64
}

// Add counts an event. It does not block.
func (q *Queues) Add(e shard.QueueEvent) {
	switch e.Kind {
	case shard.QueueDeleted:
		q.forget(e.Queue)
		return
	case shard.MessagesChanged: // this is no use of the queue
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

// known are the existing counters of an event's queue; nil if there are none.
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
	if c == nil { // the queue may be deleted
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

// measure records the metrics of an event.
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

// sent records each message separately, also those of a batch.
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

// activate adds a queue to the active ones.
func (q *Queues) activate(c *counters) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now := q.totals[c.name]; now == nil || now == c {
		q.revive(c)
	}
}

// revive is activate under mu. If the queue has no counters, these become its counters.
func (q *Queues) revive(c *counters) {
	c.active.Store(true)
	c.Left.Store(false)
	c.last.mu.Lock()
	c.last.over = false
	c.last.mu.Unlock()
	q.totals[c.name], q.active[c] = c, struct{}{}
	q.wake()
}

// deactivate ends the activity of a queue, unless it was used since the check.
func (q *Queues) deactivate(c *counters, gone bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, active := q.active[c]; active && c.deactivate(func() { q.remove(c, gone) }) {
		q.revive(c)
	}
}

// remove removes a queue from the active ones, and from all if it is gone, under mu.
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
	return q.points.Resource(metrics.Scope{Account: queue.Account, Region: queue.Region}, "AWS/SQS", queueDimension(queue.Resource))
}

// queueDimension is the dimension of a queue's metrics.
func queueDimension(name string) string {
	return metrics.Dimensions(metrics.Dimension{Name: "QueueName", Value: name})
}

// Gauger measures a queue: *shard.Engine.
type Gauger interface {
	SampleQueue(queue arn.ARN) (shard.QueueGauges, error)
}

// Tick measures the active queues at the end of a minute, and deactivates those that are
// deleted, or have been idle and empty for activeMinutes.
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
	defer func() { clear(q.looking) }() // the queues may be deleted before the next minute
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
		// A flush releases the memory of written samples, however many queues there are.
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

// check measures a queue at the end of a minute. stays says that it remains active; wrote, that
// there are values to be written.
func (q *Queues) check(c *counters, gauger Gauger, at time.Time, minute int64) (stays, wrote bool) {
	if r := c.resource.Load(); r != nil && r.Forgotten() {
		c.resource.CompareAndSwap(r, nil) // it would keep its samples in memory
	}
	c.beginCheck()
	c.still.Store(true) // before the check: the next check sees at the latest the events during this one
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
	// Checking many queues takes time.
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

// EachActive calls f with up to limit queues that were used recently, or that have messages, in
// no order. f must be quick.
func (q *Queues) EachActive(limit int, f func(queue arn.ARN, now Totals)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for c := range q.active {
		if limit--; limit < 0 {
			return
		}
		f(c.name, c.now())
	}
}

// now are the current totals.
func (c *counters) now() Totals {
	return Totals{
		Sent: c.Sent.Load(), SentBytes: c.SentBytes.Load(), Deduplicated: c.Deduplicated.Load(),
		Received: c.Received.Load(), EmptyReceives: c.EmptyReceives.Load(),
		Deleted: c.Deleted.Load(), DeadLettered: c.DeadLettered.Load(), Expired: c.Expired.Load(),
	}
}
