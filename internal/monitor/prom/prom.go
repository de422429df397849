// Package prom counts what Prometheus is shown.
//
// An event costs a look into a map and a few additions, and no allocation; the
// names and values that Prometheus reads are made when it asks. Queues, topics and
// functions have series of their own up to a bound, in the order in which they were first
// used; what is beyond it is counted under the name "other".
package prom

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/monitor"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/topic"
)

// Options are what Metrics are made of.
type Options struct {
	Version string
	// Series bounds the queues, the topics, and the functions, that have series of
	// their own.
	Series int
	// Store tells how the store is; nil: it has nothing to tell.
	Store func() store.Stats
	Gauges
	// Low reports that the disk is short of space; may be nil.
	Low func() bool
	// Logs tells how much the log groups hold, about, in bytes, and how many of
	// the server's own events were dropped.
	Logs func() (bytes, dropped int64)
}

// Gauges are asked when Prometheus asks, about what has series. One that is nil
// has nothing to tell.
type Gauges struct {
	// Queue tells what a queue holds. The error QueueDoesNotExist says that it is
	// gone, others that nobody can tell now.
	Queue func(arn.ARN) (shard.QueueGauges, error)
	// Function tells the same of a function, with ResourceNotFound.
	Function func(arn.ARN) (FunctionGauges, error)
	// Topic says whether there is a topic.
	Topic func(arn.ARN) bool
}

// Metrics take events, and answer Prometheus.
type Metrics struct {
	options  Options
	registry *prometheus.Registry

	queues    capped[monitor.QueueCounts]
	topics    capped[topicCounts]
	functions capped[functionCounts]

	requests  requests
	durations *prometheus.HistogramVec
	attempts  [topic.Protocols]prometheus.Observer
	syncs     prometheus.Histogram
}

// Buckets of histograms, in seconds.
var (
	requestBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30}
	attemptBuckets = []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15}
	syncBuckets    = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5}
)

// New makes Metrics.
func New(o Options) *Metrics {
	m := &Metrics{options: o, registry: prometheus.NewRegistry()}
	m.queues.limit, m.topics.limit, m.functions.limit = o.Series, o.Series, o.Series
	m.durations = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "godwit_request_duration_seconds", Help: "Time until a request was answered, long polls included.", Buckets: requestBuckets,
	}, []string{"service", "operation"})
	attempts := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "godwit_delivery_attempt_duration_seconds", Help: "Time until an attempt at an endpoint had its outcome.", Buckets: attemptBuckets,
	}, []string{"protocol"})
	for p := range m.attempts {
		m.attempts[p] = attempts.WithLabelValues(topic.Protocol(p).String())
	}
	m.syncs = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "godwit_commit_sync_duration_seconds", Help: "Time that the disk took to make a group of commits durable.", Buckets: syncBuckets,
	})
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "godwit_build_info", Help: "1, with the version as label.", ConstLabels: prometheus.Labels{"version": o.Version},
	})
	build.Set(1)
	m.requests.observers = m.durations
	m.registry.MustRegister(m.durations, attempts, m.syncs, build, m,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Watch sets what is asked when Prometheus asks: it is there later than the first
// events.
func (m *Metrics) Watch(g Gauges) { m.options.Gauges = g }

// Handler answers Prometheus.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// capped are the counts of queues, topics or functions, up to a limit.
type capped[V any] struct {
	limit int

	mu    sync.RWMutex
	named map[arn.ARN]*V
	other V
	more  atomic.Bool // other is used
}

// of finds the counts of one of them.
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
	}
	return v
}

// forget makes room for another.
func (c *capped[V]) forget(name arn.ARN) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.named, name)
}

// other is the name of what has no series of its own.
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

// Queue takes an event of a queue.
func (m *Metrics) Queue(e shard.QueueEvent) {
	m.queues.of(e.Queue).Add(&e)
}

// topicCounts are those of a topic, with its deliveries by protocol.
type topicCounts struct {
	published, publishedBytes, filteredOut atomic.Int64

	attempts [topic.Protocols][outcomes]atomic.Int64
	ends     [topic.Protocols][ends]atomic.Int64
}

// Outcome is what came of an attempt.
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

// Published takes a publish: the message, unless it was told of before, the
// subscriptions whose filters kept it out, and the queues that it was delivered
// to at once.
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

// Attempt takes an attempt at a delivery.
func (m *Metrics) Attempt(t arn.ARN, p topic.Protocol, o Outcome, took time.Duration) {
	m.topics.of(t).attempts[p][o].Add(1)
	m.attempts[p].Observe(took.Seconds())
}

// Ended takes the end of a delivery.
func (m *Metrics) Ended(t arn.ARN, p topic.Protocol, e End) { m.topics.of(t).ends[p][e].Add(1) }

// Synced takes a sync of the disk.
func (m *Metrics) Synced(took time.Duration) { m.syncs.Observe(took.Seconds()) }

// request names a kind of request and its result.
type request struct{ service, operation, code string }

// requests counts requests by kind and result: as many as there are operations and
// errors.
type requests struct {
	observers *prometheus.HistogramVec

	mu     sync.RWMutex
	counts map[request]*atomic.Int64
	timers map[[2]string]prometheus.Observer
}

// Request takes a request; code is empty if it succeeded, and all three are of
// fixed sets.
func (m *Metrics) Request(service, operation, code string, took time.Duration) {
	r := &m.requests
	key, kind := request{service, operation, code}, [2]string{service, operation}
	r.mu.RLock()
	count, timer := r.counts[key], r.timers[kind]
	r.mu.RUnlock()
	if count == nil || timer == nil {
		count, timer = r.add(key, kind)
	}
	count.Add(1)
	timer.Observe(took.Seconds())
}

func (r *requests) add(key request, kind [2]string) (*atomic.Int64, prometheus.Observer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts, r.timers = map[request]*atomic.Int64{}, map[[2]string]prometheus.Observer{}
	}
	if r.counts[key] == nil {
		r.counts[key] = new(atomic.Int64)
	}
	if r.timers[kind] == nil {
		r.timers[kind] = r.observers.WithLabelValues(kind[0], kind[1])
	}
	return r.counts[key], r.timers[kind]
}
