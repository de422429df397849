package monitor

import (
	"context"
	"slices"
	"strings"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/monitor/metrics"
	"godwit.dev/godwit/internal/shard"
)

// An idle queue is not checked each minute, and no metrics are stored of it: they would all be
// zero. Readers of metrics get these zeros while it is idle; when it is used again, they are
// written as one run.

// idleMetrics are the metrics of an idle queue, in order.
var idleMetrics = []string{
	"ApproximateNumberOfMessagesDelayed", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesVisible",
}

// QueueRecords reports the records of queues: *shard.Engine.
type QueueRecords interface {
	Gauger
	ListQueues(ctx context.Context, region, account, prefix, after string, limit int) (names []string, more bool, err error)
}

// Reader reads the metrics of a store and those of idle queues.
type Reader struct {
	*metrics.Store
	queues  *Queues
	records QueueRecords // nil: not yet
}

// NewReader makes a Reader, of the store alone until Records is called.
func NewReader(points *metrics.Store, queues *Queues) *Reader {
	return &Reader{Store: points, queues: queues}
}

// Records sets the source of queues' records. It must be called before the first read.
func (r *Reader) Records(records QueueRecords) { r.records = records }

// Each is metrics.Store's Each, with zeros for the minutes in which a queue was idle.
func (r *Reader) Each(m metrics.Metric, unit string, from, to, period int64, f func(start int64, set *metrics.Set)) error {
	z := metrics.Zeros{}
	if unit == count {
		var err error
		if z, err = r.zeros(&m); err != nil {
			return err
		}
	}
	return r.EachAndZeros(m, unit, metrics.Periods{From: from, To: to, Length: period}, z, f)
}

// Read returns the points of Each.
func (r *Reader) Read(m metrics.Metric, unit string, from, to, period int64) (points []metrics.Point, err error) {
	err = r.Each(m, unit, from, to, period, func(start int64, set *metrics.Set) {
		points = append(points, metrics.Point{Start: start, Set: *set})
	})
	return points, err
}

// Units is metrics.Store's Units, with the unit of the metrics of idle queues.
func (r *Reader) Units(m metrics.Metric) ([]string, error) {
	units, err := r.Store.Units(m)
	if err != nil || slices.Contains(units, count) {
		return units, err
	}
	if z, err := r.zeros(&m); err != nil || z.From >= z.To {
		return units, err
	}
	units = append(units, count)
	slices.Sort(units)
	return units, nil
}

// idleQueue is the queue of a metric that idle queues have.
func (r *Reader) idleQueue(m *metrics.Metric) (queue arn.ARN, ok bool) {
	if r.records == nil || r.queues.points == nil || m.Namespace != "AWS/SQS" || !slices.Contains(idleMetrics, m.Name) {
		return queue, false
	}
	d := metrics.SplitDimensions(m.Dimensions)
	if len(d) != 1 || d[0].Name != "QueueName" {
		return queue, false
	}
	return arn.Queue(m.Region, m.Account, d[0].Value), true
}

// zeros are the minutes in which a metric is zero because its queue is idle.
func (r *Reader) zeros(m *metrics.Metric) (z metrics.Zeros, err error) {
	queue, ok := r.idleQueue(m)
	if !ok {
		return z, nil
	}
	g, err := r.records.SampleQueue(queue)
	if fault.KindOf(err) == fault.QueueDoesNotExist || fault.KindOf(err) == fault.Unavailable {
		return z, nil
	}
	if err != nil || g.Created.Unix() <= 0 { // unknown for a salvaged queue
		return z, err
	}
	z.From, ok, err = r.queues.idleSince(queue, g.Created)
	if ok {
		z.To = metrics.Minute(r.Now())
	}
	return z, err
}

// idleSince is the minute from which on nothing was recorded of a queue; ok is false while it
// is active.
func (q *Queues) idleSince(queue arn.ARN, created time.Time) (from int64, ok bool, err error) {
	q.mu.Lock()
	c := q.totals[queue]
	q.mu.Unlock()
	if c == nil {
		from, err = q.neverReported(queue, created)
		return from, err == nil, err
	}
	c.last.mu.Lock()
	defer c.last.mu.Unlock()
	if c.last.sample != "" {
		return 0, false, nil
	}
	from, err = q.idleOf(c, created)
	return from, err == nil, err
}

// idleOf is idleSince for a queue that is not active now, under its lock.
func (q *Queues) idleOf(c *counters, created time.Time) (from int64, err error) {
	if c.last.idle > 0 {
		return max(c.last.idle, metrics.Minute(created)), nil
	}
	return q.neverReported(c.name, created)
}

// neverReported is idleSince for a queue without a sample since the start. If it had samples
// before, it has been idle at least since then.
func (q *Queues) neverReported(queue arn.ARN, created time.Time) (from int64, err error) {
	units, err := q.points.Units(metrics.Metric{
		Scope: metrics.Scope{Account: queue.Account, Region: queue.Region}, Namespace: "AWS/SQS", Name: "ApproximateNumberOfMessagesVisible",
		Dimensions: queueDimension(queue.Resource),
	})
	if err != nil || len(units) == 0 {
		return metrics.Minute(created), err
	}
	return max(metrics.Minute(created), q.started), nil
}

// endIdle writes that a queue, which becomes active, was idle up to a minute, under its lock.
func (q *Queues) endIdle(c *counters, last int64, created time.Time) {
	if created.Unix() <= 0 || last < metrics.Minute(created) {
		return
	}
	from, err := q.idleOf(c, created)
	if err != nil || last < from { // if it cannot be read now, it is left out
		return
	}
	var p metrics.Sample
	if c.name.FIFO() {
		p.Layout = fifoQueue
	}
	for _, level := range [...]int{visible, notVisible, delayed} {
		p.Set(level, 0)
	}
	run := c.steady()
	run.From, run.Sample = max(from, last-metrics.Retention), p.Encode()
	q.points.EndSteady(run, last)
	c.last.idle = last + 1
}

// listedAtOnce bounds the metrics that a call of List returns.
const listedAtOnce = 501

// List is metrics.Store's List, with the metrics of idle queues.
func (r *Reader) List(ctx context.Context, filter metrics.Filter, after []byte, f func(m metrics.Metric) (taken bool)) (next []byte, err error) {
	if r.records == nil || r.queues.points == nil || filter.Namespace != "" && filter.Namespace != "AWS/SQS" {
		return r.Store.List(filter, after, f)
	}
	var all []metrics.Metric
	next, err = r.Store.List(filter, after, func(m metrics.Metric) bool {
		if len(all) == listedAtOnce {
			return false
		}
		all = append(all, m)
		return true
	})
	if err != nil {
		return nil, err
	}
	idle, end, err := r.listIdle(ctx, &filter, after)
	if err != nil {
		return nil, err
	}
	if end != nil && (next == nil || slices.Compare(end, next) < 0) {
		next = end
	}
	all = append(all, idle...)
	byPlace := func(a, b metrics.Metric) int { return slices.Compare(a.Place(), b.Place()) }
	slices.SortFunc(all, byPlace)
	all = slices.CompactFunc(all, func(a, b metrics.Metric) bool { return a == b })
	place := after
	for i := range all {
		at := all[i].Place()
		if next != nil && slices.Compare(at, next) > 0 {
			break
		}
		if !f(all[i]) {
			return place, nil
		}
		place = at
	}
	return next, nil
}

// listIdle returns the metrics of queues, idle or not, after a place, in order, and the place
// to continue from; nil: there are no others.
func (r *Reader) listIdle(ctx context.Context, filter *metrics.Filter, after []byte) (all []metrics.Metric, next []byte, err error) {
	only := ""
	for _, d := range filter.Dimensions {
		if d.Name == "QueueName" {
			only = d.Value
		}
	}
	for _, name := range idleMetrics {
		if filter.Name != "" && filter.Name != name {
			continue
		}
		of := func(queue string) metrics.Metric {
			return metrics.Metric{
				Scope: filter.Scope, Namespace: "AWS/SQS", Name: name,
				Dimensions: queueDimension(queue),
			}
		}
		from, ahead := behindQueue(of(""), after)
		for ahead {
			names, more, err := r.records.ListQueues(ctx, filter.Region, filter.Account, only, from, listedAtOnce)
			if err != nil {
				return nil, nil, err
			}
			for _, queue := range names {
				m := of(queue)
				if slices.Compare(m.Place(), after) <= 0 || !filter.Takes(&m) {
					continue
				}
				if all = append(all, m); len(all) == listedAtOnce {
					return all, m.Place(), nil
				}
			}
			if ahead = more && only == ""; ahead {
				from = names[len(names)-1]
			}
		}
	}
	return all, nil, nil
}

// behindQueue is the name of the queue after which the list of a metric continues; empty: from
// the beginning. first is the metric without a queue, which precedes all queues. ahead is false
// if the place after is after all of them.
func behindQueue(first metrics.Metric, after []byte) (queue string, ahead bool) {
	start := strings.TrimRight(string(first.Place()), "\x00\x01") + "\x01"
	rest, within := strings.CutPrefix(string(after), start)
	if !within {
		return "", string(after) < start
	}
	return strings.TrimRight(rest, "\x00\x01"), true
}

var _ QueueRecords = (*shard.Engine)(nil)
