package monitor

import (
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
	keeper *metrics.Store // nil: there are no metrics
	wake   func()
	totals sync.Map // arn.ARN → *counters
	// active are those that Tick looks at: they have metrics each minute. Without
	// metrics it looks once, for what came when the queue was gone.
	active sync.Map // arn.ARN → *counters
}

// NewQueues makes a Queues whose metrics go to keeper, if it is not nil; wake asks
// for a call of Tick after the present minute.
func NewQueues(keeper *metrics.Store, wake func()) *Queues {
	return &Queues{keeper: keeper, wake: wake}
}

type counters struct {
	QueueCounts
	life

	name     arn.ARN
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
	if e.Kind == shard.QueueDeleted {
		q.totals.Delete(e.Queue)
		q.active.Delete(e.Queue)
		return
	}
	c := q.of(e.Queue)
	c.Add(&e)
	if q.keeper != nil {
		q.measure(c, &e)
	}
}

// of finds or makes the counters of a queue.
func (q *Queues) of(queue arn.ARN) *counters {
	found, ok := q.totals.Load(queue)
	if ok {
		return found.(*counters)
	}
	queue = queue.Own()
	found, ok = q.totals.LoadOrStore(queue, &counters{name: queue})
	c := found.(*counters)
	if !ok { // it may be of a queue that is gone
		q.activate(c)
	}
	return c
}

const (
	count = "Count"
	bytes = "Bytes"
)

// measure makes metrics of an event.
func (q *Queues) measure(c *counters, e *shard.QueueEvent) {
	if e.Kind == shard.MessagesExpired || e.Kind == shard.MessagesDeadLettered {
		return // nobody did anything
	}
	minute := e.At / 60_000
	if c.touch(minute) {
		q.activate(c)
	}
	n := float64(e.Messages)
	switch e.Kind {
	case shard.MessagesSent:
		q.sent(c, minute, e)
	case shard.MessagesDeduplicated:
		q.record(c, minute, metrics.Datum{Name: "NumberOfDeduplicatedSentMessages", Unit: count, Value: n})
	case shard.MessagesReceived:
		name := "NumberOfMessagesReceived"
		if e.Messages == 0 {
			name, n = "NumberOfEmptyReceives", 1
		}
		q.record(c, minute, metrics.Datum{Name: name, Unit: count, Value: n})
	case shard.MessagesDeleted, shard.MessagesDeletedAgain: // AWS counts both
		q.record(c, minute, metrics.Datum{Name: "NumberOfMessagesDeleted", Unit: count, Value: n})
	case shard.MessagesMovedIn, shard.MessagesDeadLettered, shard.MessagesExpired, shard.QueueDeleted: // no metrics of their own
	}
}

// sent records each message by itself, also of those that were sent at once.
func (q *Queues) sent(c *counters, minute int64, e *shard.QueueEvent) {
	sizes := e.Sizes
	if sizes == nil {
		sizes = []int{e.Bytes}
	}
	var room [8]metrics.Datum
	data := append(room[:0], metrics.Datum{Name: "NumberOfMessagesSent", Unit: count, Value: 1, Again: len(sizes) - 1})
	for i, size := range sizes {
		if i > 0 && size == sizes[i-1] {
			data[len(data)-1].Again++
			continue
		}
		data = append(data, metrics.Datum{Name: "SentMessageSize", Unit: bytes, Value: float64(size)})
	}
	q.record(c, minute, data...)
}

func (q *Queues) activate(c *counters) {
	c.active.Store(true)
	q.totals.LoadOrStore(c.name, c) // Tick may just have taken it out
	q.active.Store(c.name, c)
	q.wake()
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
	return q.keeper.Resource(metrics.Owner{Account: queue.Account, Region: queue.Region}, "AWS/SQS",
		metrics.Dimensions(metrics.Dimension{Name: "QueueName", Value: queue.Resource}))
}

// Gauger measures a queue: *shard.Engine.
type Gauger interface {
	SampleQueue(queue arn.ARN) (shard.QueueGauges, error)
}

// Tick measures the active queues at the end of a minute. A queue that is gone, or
// has been idle and empty for long, is active no more.
func (q *Queues) Tick(gauger Gauger, at time.Time) (more bool, err error) {
	minute := metrics.Minute(at) - 1
	n := 0
	q.active.Range(func(_, value any) bool {
		c := value.(*counters)
		c.look()
		g, failed := gauger.SampleQueue(c.name)
		gone := fault.KindOf(failed) == fault.QueueDoesNotExist
		held := g.Visible + g.InFlight + g.Delayed
		if held > 0 {
			c.used.Store(max(c.used.Load(), minute))
		}
		switch {
		case gone, failed == nil && q.keeper != nil && held == 0 && c.idle(minute):
			if c.wither(func() { q.remove(c, gone) }) {
				q.activate(c)
			}
			return true
		case failed != nil: // its owner does not answer now
			more = true
			return true
		case q.keeper == nil:
			q.active.Delete(c.name)
			return true
		}
		more = true
		q.gauge(c, minute, &g)
		// What is written leaves memory, however many queues there are.
		if n++; n%1000 == 0 {
			_, err = q.keeper.Flush()
		}
		return err == nil
	})
	return more, err
}

// remove takes a queue out of the active ones, and out of all if it is gone.
func (q *Queues) remove(c *counters, gone bool) {
	q.active.Delete(c.name)
	if gone {
		q.totals.Delete(c.name)
	}
}

// gauge records what a queue holds, and that nothing happened where nothing did.
func (q *Queues) gauge(c *counters, minute int64, g *shard.QueueGauges) {
	var room [20]metrics.Datum
	data := room[:0]
	add := func(name string, value float64) {
		data = append(data, metrics.Datum{Name: name, Unit: count, Value: value})
	}
	for _, of := range [...]string{"NumberOfMessagesSent", "NumberOfMessagesReceived", "NumberOfMessagesDeleted", "NumberOfEmptyReceives"} {
		add(of, 0)
	}
	add("ApproximateNumberOfMessagesVisible", float64(g.Visible))
	if g.InFlight > 0 {
		add("ApproximateNumberOfMessagesNotVisible", float64(g.InFlight))
	}
	if g.Delayed > 0 {
		add("ApproximateNumberOfMessagesDelayed", float64(g.Delayed))
	}
	age := func(name string, age time.Duration) {
		data = append(data, metrics.Datum{Name: name, Unit: "Seconds", Value: age.Truncate(time.Second).Seconds()})
	}
	if g.OldestAge > 0 {
		age("ApproximateAgeOfOldestMessage", g.OldestAge)
	}
	if c.name.FIFO() {
		add("NumberOfDeduplicatedSentMessages", 0)
		add("ApproximateNumberOfGroupsWithInflightMessages", float64(g.GroupsInFlight))
	} else { // these are told with a value of zero, too
		add("ApproximateNumberOfNoisyGroups", float64(g.NoisyGroups))
		add("ApproximateNumberOfMessagesVisibleInQuietGroups", float64(g.Quiet.Visible))
		add("ApproximateNumberOfMessagesNotVisibleInQuietGroups", float64(g.Quiet.InFlight))
		add("ApproximateNumberOfMessagesDelayedInQuietGroups", float64(g.Quiet.Delayed))
		age("ApproximateAgeOfOldestMessageInQuietGroups", g.QuietOldestAge)
	}
	for {
		if r := c.resource.Load(); r != nil && r.Fill(minute, data...) {
			return
		}
		c.resource.Store(q.resource(c.name))
	}
}

// Of are the totals of a queue.
func (q *Queues) Of(queue arn.ARN) Totals {
	found, ok := q.totals.Load(queue)
	if !ok {
		return Totals{}
	}
	c := found.(*counters)
	return Totals{
		Sent: c.Sent.Load(), SentBytes: c.SentBytes.Load(), Deduplicated: c.Deduplicated.Load(),
		Received: c.Received.Load(), EmptyReceives: c.EmptyReceives.Load(),
		Deleted: c.Deleted.Load(), DeadLettered: c.DeadLettered.Load(), Expired: c.Expired.Load(),
	}
}
