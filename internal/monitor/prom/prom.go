// Package prom has the metrics for Prometheus.
//
// An event costs a few additions, at most a lookup in a map, and no allocation; the names and
// values for Prometheus are made at collection. Queues, topics and functions have series of
// their own up to a bound, in the order of their first use, or as they hold messages at the start;
// the others are counted under the name "other".
package prom

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/limit"
	"godwit.dev/godwit/internal/limit/accounts"
	"godwit.dev/godwit/internal/monitor"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/topic"
)

// Options configure Metrics.
type Options struct {
	Version string
	// Series bounds the queues, the topics, and the functions, that have series of their own.
	Series int
	// Store reports the statistics of the store; nil: nothing is reported.
	Store func() store.Stats
	Gauges
	// Low reports that the disk is short of space; may be nil.
	Low func() bool
	// Limits reports the use of limits; nil: there are none.
	Limits func() []limit.Stats
	// Spans reports how many spans of traces were exported to a collector, dropped as too many
	// waited, and refused; nil: tracing is off.
	Spans func() (exported, dropped, failed int64)
	// Refusals are the possible reasons of Refused.
	Refusals []string
	// Posts are the possible reasons for refusing a post to a source.
	Posts []string
}

// Gauges are read at collection, for the series that exist. One that is nil reports nothing.
type Gauges struct {
	// Logs reports the approximate size of the log groups, in bytes, and how many of the
	// server's own events were dropped.
	Logs func() (bytes, dropped int64)
	// Queue reports the numbers of a queue. The error QueueDoesNotExist says that it was
	// deleted, others that they are not known now.
	Queue func(arn.ARN) (shard.QueueGauges, error)
	// Function is the same for a function, with ResourceNotFound.
	Function func(arn.ARN) (FunctionGauges, error)
	// Network reports the connections of functions.
	Network func() FunctionNetwork
	// Jobs reports how many operators' jobs are running, by kind; nil: unknown now.
	Jobs func() map[string]int
	// Topic reports whether a topic exists.
	Topic func(arn.ARN) bool
	// Source reports whether a source of posts exists.
	Source func(name string) bool
	// Accounts reports the storage of accounts, and their refused requests; nil: unknown.
	Accounts *accounts.Accounts
}

// Metrics counts events, and serves Prometheus.
type Metrics struct {
	options  Options
	registry *prometheus.Registry

	queues    capped[monitor.QueueCounts]
	topics    capped[topicCounts]
	functions capped[functionCounts]

	attempts [topic.Protocols]histogram
	syncs    histogram
	refusals refusals
	texts    textCounts
	jobs     jobCounts
	posts    postCounts

	backups  atomic.Pointer[func() Backups]
	health   atomic.Pointer[func() Health]
	mu       sync.Mutex // guards requests
	requests map[operation]*Requests
}

// Buckets of histograms, in seconds.
var (
	requestBuckets = newBuckets(.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30)
	attemptBuckets = newBuckets(.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15)
	syncBuckets    = newBuckets(.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5)
	// functionBuckets are the buckets for the duration of functions, and the age of their
	// events.
	functionBuckets = newBuckets(.001, .005, .01, .05, .1, .5, 1, 5, 15, 60, 300, 900, 3600, 21600)
)

// New makes Metrics.
func New(o Options) *Metrics {
	m := &Metrics{options: o, registry: newRegistry(o.Version), requests: map[operation]*Requests{}, refusals: newRefusals(o.Refusals)}
	m.queues.limit, m.topics.limit, m.functions.limit = o.Series, o.Series, o.Series
	m.queues.leave = func(c *monitor.QueueCounts, left bool) { c.Left.Store(left) }
	m.registry.MustRegister(m)
	return m
}

// Resume gives series to queues that hold messages at a start: what nobody uses any more is
// what an alert has to see. Half of the series are left for queues that are used.
func (m *Metrics) Resume(holding []arn.ARN) {
	for _, queue := range holding[:min(len(holding), (m.queues.limit+1)/2)] {
		m.queues.of(queue)
	}
}

// Watch sets the gauges: they exist later than the first events.
func (m *Metrics) Watch(g Gauges) { m.options.Gauges = g }

// Follow sets the source of the state of backups to a bucket.
func (m *Metrics) Follow(status func() Backups) { m.backups.Store(&status) }

// FollowHealth sets the source of the health checks.
func (m *Metrics) FollowHealth(health func() Health) { m.health.Store(&health) }

// Handler serves Prometheus.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// capped has the counts of queues, topics or functions, up to a limit.
type capped[V any] struct {
	limit int
	// leave sets or clears the Left flag of counts, whose users must find their counts again;
	// nil: there are no such users.
	leave func(v *V, left bool)

	mu    sync.RWMutex
	named map[arn.ARN]*V
	other V
	more  atomic.Bool // other is used
}

// of finds the counts of a name.
func (c *capped[V]) of(name arn.ARN) *V {
	c.mu.RLock()
	v, full := c.named[name], len(c.named) >= c.limit
	c.mu.RUnlock()
	if v != nil {
		return v
	}
	if full {
		c.more.Store(true)
		return &c.other
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if v = c.named[name]; v == nil {
		if c.named == nil {
			c.named = map[arn.ARN]*V{}
		}
		v = new(V)
		c.named[name.Own()] = v
		c.reportOther()
	}
	return v
}

// reportOther tells those that are counted as other whether to ask for counts of their own,
// under mu.
func (c *capped[V]) reportOther() {
	if c.leave != nil {
		c.leave(&c.other, len(c.named) < c.limit)
	}
}

// forget removes a series, so that another can be added.
func (c *capped[V]) forget(name arn.ARN) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v := c.named[name]; v != nil && c.leave != nil {
		c.leave(v, true)
	}
	delete(c.named, name)
	c.reportOther()
}

// other is the name of everything without a series of its own.
var other = arn.ARN{Resource: "other"}

// all are the names that have counts.
func (c *capped[V]) all() (names []arn.ARN) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	names = make([]arn.ARN, 0, len(c.named)+1)
	for name := range c.named {
		names = append(names, name)
	}
	if c.more.Load() {
		names = append(names, other)
	}
	return names
}

func (c *capped[V]) get(name arn.ARN) *V {
	if name == other {
		return &c.other
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.named[name]
}

// Queue finds the counts of a queue: a monitor.QueueSeries.
func (m *Metrics) Queue(name arn.ARN) *monitor.QueueCounts { return m.queues.of(name) }

// topicCounts are the counts of a topic, with its deliveries by protocol.
type topicCounts struct {
	published, publishedBytes, filteredOut atomic.Int64

	attempts [topic.Protocols][outcomes]atomic.Int64
	ends     [topic.Protocols][ends]atomic.Int64
}

// Outcome is the result of an attempt.
type Outcome uint8

// The outcomes of attempts.
const (
	Success Outcome = iota
	ClientError
	ServerError
	outcomes
)

var outcomeNames = [outcomes]string{"success", "client-error", "server-error"}

// End is how a delivery ended.
type End uint8

// The ends of deliveries.
const (
	Delivered End = iota
	DeadLettered
	Dropped
	ends
)

var endNames = [ends]string{"delivered", "dead-letter", "dropped"}

// Published counts a publish: the message, unless it was counted before, the subscriptions
// filtered out, and the immediate deliveries to queues.
func (m *Metrics) Published(t arn.ARN, messages, bytes, filteredOut, delivered int) {
	c := m.topics.of(t)
	c.published.Add(int64(messages))
	c.publishedBytes.Add(int64(bytes))
	c.filteredOut.Add(int64(filteredOut))
	if delivered > 0 {
		c.attempts[topic.SQS][Success].Add(int64(delivered))
		c.ends[topic.SQS][Delivered].Add(int64(delivered))
	}
}

// Attempt counts an attempt at a delivery.
func (m *Metrics) Attempt(t arn.ARN, p topic.Protocol, o Outcome, took time.Duration) {
	m.topics.of(t).attempts[p][o].Add(1)
	m.attempts[p].observe(attemptBuckets, took)
}

// Ended counts the end of a delivery.
func (m *Metrics) Ended(t arn.ARN, p topic.Protocol, e End) { m.topics.of(t).ends[p][e].Add(1) }

// Synced counts a sync of the disk.
func (m *Metrics) Synced(took time.Duration) { m.syncs.observe(syncBuckets, took) }
