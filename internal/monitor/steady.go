package monitor

import (
	"slices"
	"sync"
	"time"

	"godwit.dev/godwit/internal/monitor/metrics"
	"godwit.dev/godwit/internal/shard"
)

// ofBoth are the first levels of both layouts.
var ofBoth = metrics.Layout{
	sentNone:     {Name: "NumberOfMessagesSent", Unit: count},
	receivedNone: {Name: "NumberOfMessagesReceived", Unit: count},
	deletedNone:  {Name: "NumberOfMessagesDeleted", Unit: count},
	emptyNone:    {Name: "NumberOfEmptyReceives", Unit: count},
	visible:      {Name: "ApproximateNumberOfMessagesVisible", Unit: count},
	notVisible:   {Name: "ApproximateNumberOfMessagesNotVisible", Unit: count},
	delayed:      {Name: "ApproximateNumberOfMessagesDelayed", Unit: count},
	oldestAge:    {Name: "ApproximateAgeOfOldestMessage", Unit: seconds, Grows: true},
}

// Layouts are the layouts of queues' samples: see metrics.Layout.
var Layouts = []metrics.Layout{
	standardQueue: slices.Concat(ofBoth, metrics.Layout{
		noisyGroups - ownLevels:      {Name: "ApproximateNumberOfNoisyGroups", Unit: count},
		quietVisible - ownLevels:     {Name: "ApproximateNumberOfMessagesVisibleInQuietGroups", Unit: count},
		quietNotVisible - ownLevels:  {Name: "ApproximateNumberOfMessagesNotVisibleInQuietGroups", Unit: count},
		quietDelayed - ownLevels:     {Name: "ApproximateNumberOfMessagesDelayedInQuietGroups", Unit: count},
		quietOldestAge - ownLevels:   {Name: "ApproximateAgeOfOldestMessageInQuietGroups", Unit: seconds, Grows: true},
		quietWithoutAges - ownLevels: {Name: "ApproximateAgeOfOldestMessageInQuietGroups", Unit: seconds},
	}),
	fifoQueue: slices.Concat(ofBoth, metrics.Layout{
		deduplicatedNone - ownLevels: {Name: "NumberOfDeduplicatedSentMessages", Unit: count},
		groupsInFlight - ownLevels:   {Name: "ApproximateNumberOfGroupsWithInflightMessages", Unit: count},
	}),
}

const seconds = "Seconds"

// The layouts. The numbers are persisted.
const (
	standardQueue = 0
	fifoQueue     = 1
)

// The levels of both layouts, of the one, and of the other. The numbers are persisted.
const (
	sentNone     = 0
	receivedNone = 1
	deletedNone  = 2
	emptyNone    = 3
	visible      = 4
	notVisible   = 5
	delayed      = 6
	oldestAge    = 7

	ownLevels = 8 // the first level of a single layout

	noisyGroups      = 8
	quietVisible     = 9
	quietNotVisible  = 10
	quietDelayed     = 11
	quietOldestAge   = 12
	quietWithoutAges = 13

	deduplicatedNone = 8
	groupsInFlight   = 9
)

// sampleOf is the report of a queue for a minute in which it was not used.
func sampleOf(fifo bool, g *shard.QueueGauges, minute int64) (p metrics.Sample) {
	for _, of := range [...]int{sentNone, receivedNone, deletedNone, emptyNone} {
		p.Set(of, 0)
	}
	some := func(level int, n int64) {
		if n > 0 {
			p.Set(level, n)
		}
	}
	p.Set(visible, g.Visible)
	some(notVisible, g.InFlight)
	some(delayed, g.Delayed)
	if g.OldestAge > 0 {
		p.SetGrown(oldestAge, minute, int64(g.OldestAge/time.Second))
	}
	if fifo {
		p.Layout = fifoQueue
		p.Set(deduplicatedNone, 0)
		p.Set(groupsInFlight, int64(g.GroupsInFlight))
		return p
	}
	// These are recorded with a value of zero, too.
	p.Set(noisyGroups, int64(g.NoisyGroups))
	p.Set(quietVisible, g.Quiet.Visible)
	p.Set(quietNotVisible, g.Quiet.InFlight)
	p.Set(quietDelayed, g.Quiet.Delayed)
	if g.QuietOldestAge > 0 {
		p.SetGrown(quietOldestAge, minute, int64(g.QuietOldestAge/time.Second))
	} else {
		p.Set(quietWithoutAges, 0)
	}
	return p
}

// lastReport is a queue's last sample. A sample that stays the same is written once: see
// metrics.Steady.
type lastReport struct {
	mu     sync.Mutex // guards what follows
	sample string     // "": none yet
	since  int64      // the minute since which it is steady; 0: it is not
	listed int64      // the minute in which the metrics were last listed as steady; 0: never
	over   bool       // the queue is gone
	idle   int64      // the minute since which nothing was recorded, as the queue was idle; 0: unknown
}

const (
	// minSteady is the minimum length of a run that has a record, in minutes. The points of a
	// shorter one are written at its end.
	minSteady = 15
	// relist is how many minutes after the last listing the metrics are listed again when they
	// become steady again.
	relist = 15
)

// report reports a completed minute of a queue. wrote says that there are values to be written;
// steady, that the same report holds for the following minutes until the next.
func (q *Queues) report(c *counters, minute int64, p *metrics.Sample, created time.Time) (wrote, steady bool) {
	t := &c.last
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return false, false
	}
	if t.sample == "" {
		q.endIdle(c, minute-1, created)
	}
	same := t.sample != "" && q.points.Continues(p, t.sample)
	if same && t.since > 0 {
		return false, true
	}
	if t.since > 0 {
		q.endSteady(c, minute-1)
	}
	begin := same || t.sample == ""
	t.sample = p.Encode()
	if !begin { // the sample may still change
		q.fill(c, minute, p)
		return true, false
	}
	t.since = minute
	list := t.listed == 0 || minute >= t.listed+relist
	if list {
		t.listed = minute
	}
	q.points.BeginSteady(c.steady(), list)
	return true, true
}

// steady is the steady sample of a queue with its first minute, under its lock.
func (c *counters) steady() *metrics.Steady {
	return &metrics.Steady{
		Scope: metrics.Scope{Account: c.name.Account, Region: c.name.Region}, Namespace: "AWS/SQS",
		Dimensions: queueDimension(c.name.Resource),
		From:       c.last.since, Sample: c.last.sample,
	}
}

// endSteady ends a queue's steady sample with the minute last, under its lock.
func (q *Queues) endSteady(c *counters, last int64) {
	t := &c.last
	if t.since == 0 {
		return
	}
	if last-t.since+1 >= minSteady || t.over {
		q.points.EndSteady(c.steady(), last)
	} else {
		q.points.DropSteady(c.steady())
		if p, err := metrics.DecodeSample(t.sample); err == nil {
			for minute := t.since; minute <= last; minute++ {
				q.fill(c, minute, &p)
			}
		}
	}
	t.since = 0
}

// endReport ends the steady report of a queue whose metrics end with a minute; gone says that
// the queue is deleted.
func (q *Queues) endReport(c *counters, last int64, gone bool) {
	if q.points == nil {
		return
	}
	t := &c.last
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = t.over || gone
	q.endSteady(c, last)
	t.sample, t.idle = "", last+1
}

// fill records a queue's sample for a minute that has none yet.
func (q *Queues) fill(c *counters, minute int64, p *metrics.Sample) {
	var backing [metrics.MaxLevels]metrics.Datum
	data := backing[:0]
	q.points.Levels(p, minute, func(name, unit string, value float64) {
		data = append(data, metrics.Datum{Name: name, Unit: unit, Value: value})
	})
	for {
		if r := c.resource.Load(); r != nil && r.Fill(minute, data...) {
			return
		}
		c.resource.Store(q.resource(c.name))
	}
}
