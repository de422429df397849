// Package monitoring puts together what watches the service: metrics of queues, topics and
// functions, alarms and what they set off, and Prometheus.
package monitoring

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/monitor"
	"godwit.dev/godwit/internal/monitor/alarms"
	"godwit.dev/godwit/internal/monitor/metrics"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/kernel"
	snstopic "godwit.dev/godwit/internal/topic"
)

// Options are what it works with.
type Options struct {
	Config config.Config
	Kernel *kernel.Kernel
	Clock  clock.Clock
	Logger *slog.Logger
	// Fatal ends the process: what is due each minute failed.
	Fatal func(error)
	// Series are those of queues that Prometheus counts; nil: there are none.
	Series monitor.QueueSeries
	NewID  func() message.ID
	// Held reports that alarms tell nobody yet.
	Held func() bool
}

// Monitoring counts what happens and tells it to CloudWatch's metrics and alarms. It is
// there before the engine, whose events it takes; Start follows once all is there that it
// watches.
type Monitoring struct {
	Queues *monitor.Queues
	Reader *monitor.Reader // of points, and of what idle queues would tell
	Alarms *alarms.Engine

	metrics   bool // that the server counts itself
	clock     clock.Clock
	minutes   *monitor.Ticker
	seconds   *monitor.Ticker // for alarms on periods below a minute
	points    *metrics.Store
	topics    *monitor.Topics
	functions *monitor.Functions
	texts     *monitor.Texts
	streams   *monitor.Streams
	actions   *actions
}

var _ deliver.Events = (*Monitoring)(nil)

// New makes it, with its modules in the kernel.
func New(o Options) *Monitoring {
	k := o.Kernel
	failed := func(err error) {
		o.Logger.Error("what is due each minute failed; ending the process", "error", err)
		o.Fatal(err)
	}
	m := &Monitoring{
		metrics: o.Config.Metrics, clock: o.Clock, actions: &actions{newID: o.NewID, held: o.Held},
		minutes: monitor.NewTicker(k, time.Minute, failed), seconds: monitor.NewTicker(k, alarms.ShortEvery, failed),
	}
	m.points = metrics.New(k, metrics.Options{Wake: m.minutes.Wake, Layouts: monitor.Layouts})
	source := m.points
	if !o.Config.Metrics {
		source = nil
	}
	m.Queues = monitor.NewQueues(source, o.Series, m.minutes.Wake)
	m.Reader = monitor.NewReader(m.points, m.Queues)
	m.topics = monitor.NewTopics(m.points, m.minutes.Wake)
	m.functions = monitor.NewFunctions(m.points, m.minutes.Wake)
	m.texts = monitor.NewTexts(m.points, m.minutes.Wake)
	m.streams = monitor.NewStreams(m.points, m.minutes.Wake)
	m.Alarms = alarms.New(k, alarms.Options{
		Metrics: m.Reader, Executor: m.actions, Wake: m.minutes.Wake, WakeShort: m.seconds.Wake, MaxAlarms: o.Config.MaxAlarms,
	})
	return m
}

// Latest is the latest time that anything was written at.
func (m *Monitoring) Latest() time.Time {
	if at := m.Alarms.Latest(); at.After(m.points.Latest()) {
		return at
	}
	return m.points.Latest()
}

// Start begins with what is due each minute: first queues and topics tell how they
// stand at its end, then it is written, and then alarms are evaluated. mayTell asks a
// topic's policy for CloudWatch, which publishes for alarms; nil where nobody asks.
func (m *Monitoring) Start(engine *shard.Engine, mayTell func(ctx context.Context, alarm, topic arn.ARN) error) error {
	m.actions.services, m.actions.mayTell = engine, mayTell
	m.Reader.Records(engine)
	now := m.clock.Now()
	if err := m.Queues.Resume(engine.NonEmptyQueues(), now); err != nil {
		return fmt.Errorf("which queues were active cannot be read: %w", err)
	}
	if !m.metrics {
		if err := m.points.EndAllSteady(); err != nil {
			return fmt.Errorf("the queues' metrics cannot be ended: %w", err)
		}
	}
	if m.metrics {
		if err := m.topics.Resume(now); err != nil {
			return fmt.Errorf("which topics were active cannot be read: %w", err)
		}
	}
	m.minutes.Start(
		monitor.TickFunc(func(at time.Time) (bool, error) { return m.Queues.Tick(engine, at) }),
		monitor.TickFunc(func(at time.Time) (bool, error) { return m.topics.Tick(engine, at), nil }),
		m.functions,
		m.texts,
		m.streams,
		monitor.TickFunc(func(time.Time) (bool, error) { return m.points.Flush() }),
		monitor.TickFunc(m.Alarms.EvaluateMinutes),
	)
	m.seconds.Start(monitor.TickFunc(m.Alarms.EvaluateShort))
	return m.Alarms.Start()
}

// Save makes the values that memory holds durable.
func (m *Monitoring) Save() error { return m.points.Save() }

// Streams takes what happens to delivery streams; nil if nobody counts.
func (m *Monitoring) Streams() *monitor.Streams {
	if !m.metrics {
		return nil
	}
	return m.streams
}

// FunctionEvents makes metrics of what happens to functions; nil if there are none.
func (m *Monitoring) FunctionEvents() invoke.Events {
	if !m.metrics {
		return nil
	}
	return func(e invoke.Event) {
		d := monitor.Datum{Function: e.Function, Qualifier: e.Qualifier, Version: e.Version, Metric: e.Kind.String(), At: e.At, Value: e.Value}
		if e.Kind == invoke.ConcurrentExecutions {
			d.PerLevel, d.Account, d.Resource, d.Executed = true, float64(e.Concurrency.Account), float64(e.Concurrency.Resource), float64(e.Concurrency.Version)
		}
		m.functions.Record(&d)
	}
}

// Delivery makes metrics of an attempt at a delivery, or of its end.
func (m *Monitoring) Delivery(e *deliver.Event) {
	_, _, ok := e.Subscription.SplitSubscription()
	if _, _, application := e.Subscription.SplitApplication(); ok || application {
		m.record(e.Topic(), e.At, e.Metrics())
	}
	if e.Protocol == snstopic.SMS {
		m.texts.Record(e.Subscription.Account, e.Subscription.Region, false, e.At, textData(e.TextMetrics())...)
		if !ok {
			m.texts.Record(e.Subscription.Account, e.Subscription.Region, true, e.At, textData(e.Metrics())...)
		}
	}
}

// Published makes metrics of a publish.
func (m *Monitoring) Published(p *shard.Published) {
	var backing [4]deliver.Metric
	m.record(p.Topic, p.At, deliver.AppendPublishMetrics(backing[:0], p))
}

func (m *Monitoring) record(topic arn.ARN, at time.Time, all []deliver.Metric) {
	if len(all) == 0 {
		return
	}
	var backing [8]metrics.Datum
	data := backing[:0]
	for _, one := range all {
		unit := "Count"
		if one.Name == "PublishSize" {
			unit = "Bytes"
		}
		data = append(data, metrics.Datum{Name: one.Name, Unit: unit, Value: one.Value})
	}
	m.topics.Record(topic, at, data...)
}

// textData are metrics of text messages as they are recorded.
func textData(all []deliver.Metric) (data []metrics.Datum) {
	for _, one := range all {
		unit := "Count"
		if one.Name == deliver.SMSMonthToDateSpent {
			unit = "None"
		}
		data = append(data, metrics.Datum{Name: one.Name, Unit: unit, Value: one.Value})
	}
	return data
}
