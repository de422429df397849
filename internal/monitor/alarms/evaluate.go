package alarms

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"godwit.dev/godwit/internal/alarm"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/monitor/metrics"
	"godwit.dev/godwit/internal/shard/kernel"
)

// EvaluateMinutes evaluates the alarms with periods of minutes at the end of a minute and
// executes the actions of those with a new state. more is true while there are alarms.
func (e *Engine) EvaluateMinutes(at time.Time) (more bool, err error) {
	e.shard.RunLazy(e.actionQueues.retry)
	err = e.evaluateAll(at, false)
	return e.busy(), err
}

// ShortEvery is how often alarms on periods below a minute are evaluated.
const ShortEvery = 10 * time.Second

// EvaluateShort is EvaluateMinutes for the alarms with periods below a minute, every
// ShortEvery. more is true while there are such alarms.
func (e *Engine) EvaluateShort(at time.Time) (more bool, err error) {
	err = e.evaluateAll(at, true)
	return e.hasShort(), err
}

func (e *Engine) evaluateAll(at time.Time, short bool) error {
	var all []*alarm.Alarm
	e.shard.View(func() {
		for _, a := range e.alarms {
			if a.Short() == short {
				all = append(all, a)
			}
		}
	})
	slices.SortFunc(all, func(a, b *alarm.Alarm) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Region, b.Region), cmp.Compare(a.Name, b.Name))
	})
	for _, a := range all {
		if err := e.evaluate(a, at); err != nil {
			return err
		}
	}
	return e.Execute(context.Background())
}

// evaluate evaluates an alarm. If the alarm was changed concurrently, it waits for the next
// evaluation.
func (e *Engine) evaluate(a *alarm.Alarm, at time.Time) error {
	points, err := e.points(a, at.Unix())
	if err != nil {
		return err
	}
	status, change := a.Judge(points, e.now())
	if !change {
		return nil
	}
	_, err = e.shard.Run(journal.Eager, func(*kernel.Tx) error {
		if e.alarms[idOf(a)] != a {
			return nil
		}
		c, next := e.begin(), *a
		c.enter(&next, status)
		c.apply()
		e.alarms[idOf(a)] = &next
		return nil
	})
	return err
}

// points are the latest periods of an alarm's metric before a time, in epoch
// seconds, the newest first.
func (e *Engine) points(a *alarm.Alarm, end int64) ([]alarm.Point, error) {
	stat, ok := metrics.ParseStatistic(a.Statistic)
	if !ok {
		return nil, fmt.Errorf("alarm %s has the unknown statistic %q", a.ARN(), a.Statistic)
	}
	dimensions := make([]metrics.Dimension, len(a.Dimensions))
	for i, d := range a.Dimensions {
		dimensions[i] = metrics.Dimension(d)
	}
	m := metrics.Metric{
		Scope: metrics.Scope{Account: a.Account, Region: a.Region}, Namespace: a.Namespace, Name: a.MetricName,
		Dimensions: metrics.Dimensions(dimensions...),
	}
	units := []string{a.Unit}
	if a.Unit == "" {
		var err error
		if units, err = e.options.Metrics.Units(m); err != nil {
			return nil, err
		}
	}
	n, period := a.Looked(), int64(a.Period)
	from := end - int64(n)*period
	points := make([]alarm.Point, n)
	for i := range points {
		points[i].At = time.Unix(end-int64(i+1)*period, 0).UTC()
	}
	for _, unit := range units {
		read, err := e.options.Metrics.Read(m, unit, from, end, period)
		if err != nil {
			return nil, err
		}
		for i := range read {
			if value, ok := stat.Of(&read[i].Set); ok {
				p := &points[n-1-int((read[i].Start-from)/period)]
				p.Real, p.Samples, p.Value = true, read[i].Set.Count, value
			}
		}
		if len(read) > 0 {
			break // if it has several units, one is used
		}
	}
	return points, nil
}

// The history is kept for 30 days.
const keepHistory = 30 * 24 * time.Hour

// pruned bounds how many items are removed from the history when one is added.
const pruned = 16

const stampSize = 8 + 4

// prune removes expired items from the history of a scope, more than are added.
func (c *commit) prune(scope metrics.Scope) {
	low := scopeKey(tagHistory, scope)
	high := appendMillis(scopeKey(tagHistory, scope), c.now.Add(-keepHistory))
	it, err := c.e.reader.Iter(low, high)
	if err != nil {
		return // the next write fails as well
	}
	for n := 0; n < pruned && it.Next(); n++ {
		var item alarm.Item
		if decode(it.Value(), &item) == nil {
			id := ID{scope.Account, scope.Region, item.Name}
			c.batch.Delete(append(id.key(tagIndex), it.Key()[len(it.Key())-stampSize:]...))
		}
		c.batch.Delete(it.Key())
	}
	_ = it.Close() // the next write fails as well
}
