package alarms

import (
	"cmp"
	"context"
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
			if a.Kind() == alarm.Metric && a.Short() == short {
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
		return nil
	})
	return err
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
