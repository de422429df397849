package monitoring

import (
	"net/http"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/ingest"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/invoke/process/network"
	"godwit.dev/godwit/internal/limit"
	"godwit.dev/godwit/internal/monitor"
	"godwit.dev/godwit/internal/monitor/logs"
	"godwit.dev/godwit/internal/monitor/prom"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/jobs"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/wire"
	"godwit.dev/godwit/internal/wire/guard"
)

// Prometheus tells prom.Metrics what happens. It is nil where nothing is to be
// counted: its methods then do nothing, or give nil.
type Prometheus struct{ *prom.Metrics }

var _ deliver.Events = (*Prometheus)(nil)

// PrometheusOptions are what it is made of.
type PrometheusOptions struct {
	Config config.Config
	Store  store.Store
	Low    func() bool // that disk space is low
	Limits func() []limit.Stats
	Spans  func() (exported, dropped, failed int64) // nil: nothing is traced
}

// NewPrometheus gives nil where the settings ask for none.
func NewPrometheus(with PrometheusOptions) *Prometheus {
	if !with.Config.Prometheus {
		return nil
	}
	o := prom.Options{
		Version: config.Version, Series: with.Config.PrometheusSeries, Low: with.Low,
		Limits:   with.Limits,
		Spans:    with.Spans,
		Refusals: refusals(),
		Posts:    posts(),
	}
	if s, ok := with.Store.(interface{ Stats() store.Stats }); ok {
		o.Store = s.Stats
	}
	return &Prometheus{prom.New(o)}
}

// Ask has it ask an engine about queues, functions and topics, a pool what runs, the log
// groups how much they hold, and source whether a source exists.
func (p *Prometheus) Ask(engine *shard.Engine, pool *invoke.Pool, sockets *network.Network, groups *logs.Logs, working *jobs.Module, source func(name string) bool) {
	if p == nil {
		return
	}
	p.Resume(engine.NonEmptyQueues())
	var late lateness
	p.Watch(prom.Gauges{
		Accounts: engine.Accounts,
		Logs:     func() (bytes, dropped int64) { return groups.DiskBytes(), groups.Dropped() },
		Jobs: func() map[string]int {
			n, _ := ask(&late, func() (map[string]int, error) { return working.Running(), nil })
			return n
		},
		Network: func() prom.FunctionNetwork { return prom.FunctionNetwork(sockets.Usage()) },
		Queue: func(q arn.ARN) (shard.QueueGauges, error) {
			return ask(&late, func() (shard.QueueGauges, error) { return engine.SampleQueue(q) })
		},
		Function: func(fn arn.ARN) (prom.FunctionGauges, error) {
			events, err := ask(&late, func() (shard.EventsInfo, error) { return engine.SampleEvents(fn) })
			return prom.FunctionGauges{Running: pool.Running(fn), Due: events.Due, Waiting: events.Waiting, InFlight: events.InFlight}, err
		},
		Topic: func(t arn.ARN) bool {
			there, err := ask(&late, func() (bool, error) { return engine.HasTopicOrApplication(t), nil })
			return there || err != nil
		},
		Source: source,
	})
}

// scrapeTimeout is how long a scrape waits for what it asks the engine, which while the
// disk hangs may have to wait for the disk: for its reading, or behind others for a
// lock.
const scrapeTimeout = time.Second

// lateness counts the answers that did not come in time. Until they have come nobody
// asks.
type lateness struct{ answers atomic.Int64 }

var errLate = fault.New(fault.Unavailable, "The disk hangs.")

// ask gives what f does, or Unavailable if that takes too long.
func ask[T any](late *lateness, f func() (T, error)) (answer T, err error) {
	return askWithin(scrapeTimeout, late, f)
}

func askWithin[T any](limit time.Duration, late *lateness, f func() (T, error)) (answer T, err error) {
	if late.answers.Load() > 0 {
		return answer, errLate
	}
	type answered struct {
		answer T
		err    error
	}
	answers := make(chan answered, 1)
	go func() {
		answer, err := f()
		answers <- answered{answer, err}
	}()
	over, stop := clock.After(clock.System, limit)
	defer stop()
	select {
	case a := <-answers:
		return a.answer, a.err
	case <-over:
	}
	late.answers.Add(1)
	go func() {
		<-answers
		late.answers.Add(-1)
	}()
	return answer, errLate
}

// Handler answers GET /metrics; nil: there is none.
func (p *Prometheus) Handler() http.Handler {
	if p == nil {
		return nil
	}
	return p.Metrics.Handler()
}

// Observe takes the requests, unless nothing is counted.
func (p *Prometheus) Observe() func(service, operation string) wire.Observer {
	if p == nil {
		return nil
	}
	return func(service, operation string) wire.Observer {
		requests := p.Requests(service, operation)
		return func(o wire.Observation) { requests.Add(o.Code, o.Duration) }
	}
}

// Refusals counts the requests that the guard refuses; nil: nobody does.
func (p *Prometheus) Refusals() func(reason string) {
	if p == nil {
		return nil
	}
	return p.Refused
}

// Syncs takes how long each sync of the store took; nil: nobody does.
func (p *Prometheus) Syncs() func(took time.Duration) {
	if p == nil {
		return nil
	}
	return p.Synced
}

// Series are those of queues; nil: there are none.
func (p *Prometheus) Series() monitor.QueueSeries {
	if p == nil {
		return nil
	}
	return p.Queue
}

var promOutcomes = map[string]prom.Outcome{
	deliver.Success.String(): prom.Success, deliver.ClientError.String(): prom.ClientError, deliver.ServerError.String(): prom.ServerError,
}

// FunctionEvent counts what happens to functions.
func (p *Prometheus) FunctionEvent(e invoke.Event) { p.Function(e.Function, e.Kind.String(), e.Value) }

// Delivery counts an attempt at a delivery, or its end.
func (p *Prometheus) Delivery(e *deliver.Event) {
	name := e.Topic()
	if e.Kind != message.Notification || e.Receipt != nil {
		return
	}
	if e.Text != nil && e.Text.Unknown > 0 {
		p.TextsUnanswered(e.Text.Unknown)
	}
	if e.Made {
		p.Attempt(name, e.Protocol, promOutcomes[e.Attempt.Outcome], e.Attempt.Latency)
	}
	switch e.State {
	case shard.DeliveryDelivered:
		p.Ended(name, e.Protocol, prom.Delivered)
	case shard.DeliveryDeadLetter:
		p.Ended(name, e.Protocol, prom.DeadLettered)
	case shard.DeliveryDropped:
		p.Ended(name, e.Protocol, prom.Dropped)
	default: // it continues
	}
}

// Published counts a publish.
func (p *Prometheus) Published(e *shard.Published) {
	messages, size, filtered := 1, e.Size, 0
	if e.Later {
		messages, size = 0, 0
	}
	for _, n := range e.FilteredOut {
		filtered += n
	}
	p.Metrics.Published(e.Topic, messages, size, filtered, e.Delivered)
}

// refusals are the reasons for which the guard refuses, as metrics name them.
func refusals() (reasons []string) {
	for _, reason := range guard.Reasons {
		reasons = append(reasons, string(reason))
	}
	return reasons
}

// posts are the reasons for which posts to sources are refused, as metrics name them.
func posts() (reasons []string) {
	for _, reason := range ingest.Reasons {
		reasons = append(reasons, string(reason))
	}
	return reasons
}

// Ingested counts posts to sources; nil: nobody does.
func (p *Prometheus) Ingested() func(source string, refused ingest.Reason) {
	if p == nil {
		return nil
	}
	return func(source string, refused ingest.Reason) { p.Posted(source, string(refused)) }
}

// TextReceipt counts a receipt of a text message.
func (p *Prometheus) TextReceipt(state string) {
	if p != nil {
		p.Metrics.TextReceipt(state)
	}
}

// JobStepped counts what a step of a job has done, and could not do.
func (p *Prometheus) JobStepped(kind string, done, skipped int64) {
	if p != nil {
		p.Metrics.JobStepped(kind, done, skipped)
	}
}

// JobEnded counts the end of a job.
func (p *Prometheus) JobEnded(kind, state string) {
	if p != nil {
		p.Metrics.JobEnded(kind, state)
	}
}

// Follow has it ask how backups to a bucket stand.
func (p *Prometheus) Follow(status func() prom.Backups) {
	if p != nil {
		p.Metrics.Follow(status)
	}
}
