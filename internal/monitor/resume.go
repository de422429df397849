package monitor

import (
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/monitor/metrics"
)

// recent calls f with the names of the queues, or topics, with a metric in the last
// activeMinutes. The list of metrics is rewritten each quarter of an hour, while there are
// values.
func recent(points *metrics.Store, namespace, metric string, at time.Time, f func(scope metrics.Scope, name string)) error {
	since := metrics.Minute(at) - activeMinutes
	if metrics.Minute(points.Latest()) < since {
		return nil
	}
	scopes, err := points.Scopes()
	if err != nil {
		return err
	}
	for _, scope := range scopes {
		var next []byte
		for more := true; more; more = next != nil {
			next, err = points.List(metrics.Filter{Scope: scope, Namespace: namespace, Name: metric, Since: since, Points: true}, next, func(m metrics.Metric) bool {
				if d := metrics.SplitDimensions(m.Dimensions); len(d) == 1 {
					f(scope, d[0].Value)
				}
				return true
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Resume activates the queues that were active when the process ended, for as long as after a
// use, and the queues that hold messages since then.
func (q *Queues) Resume(holding []arn.ARN, at time.Time) error {
	if q.points == nil {
		return nil
	}
	minute := metrics.Minute(at)
	q.started = minute
	for _, queue := range holding {
		c := q.of(queue)
		c.last.mu.Lock()
		c.last.idle = minute
		c.last.mu.Unlock()
	}
	err := q.points.EachSteady(func(r *metrics.Steady) {
		d := metrics.SplitDimensions(r.Dimensions)
		if r.Namespace != "AWS/SQS" || len(d) != 1 {
			return
		}
		c := q.of(arn.Queue(r.Region, r.Account, d[0].Value))
		c.used.Store(minute)
		c.last.mu.Lock()
		defer c.last.mu.Unlock()
		c.last.since, c.last.sample = max(r.From, 1), r.Sample
		c.last.listed = minute
	})
	if err != nil {
		return err
	}
	return recent(q.points, "AWS/SQS", "ApproximateNumberOfMessagesVisible", at, func(scope metrics.Scope, name string) {
		q.of(arn.Queue(scope.Region, scope.Account, name)).used.Store(metrics.Minute(at))
	})
}

// Resume activates the topics that were active when the process ended, for as long as after a
// use.
func (t *Topics) Resume(at time.Time) error {
	return recent(t.points, "AWS/SNS", "NumberOfMessagesPublished", at, func(scope metrics.Scope, name string) {
		t.of(arn.Topic(scope.Region, scope.Account, name)).used.Store(metrics.Minute(at))
	})
}
