package server

import (
	"fmt"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/monitor"
	"godwit.dev/godwit/internal/monitor/alarms"
	"godwit.dev/godwit/internal/monitor/metrics"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/kernel"
)

// monitoring is what watches the service. It is there before the engine, whose
// events it takes; start follows once all is there that it watches.
type monitoring struct {
	minutes   *monitor.Ticker
	seconds   *monitor.Ticker // for alarms on periods below a minute
	points    *metrics.Store
	reader    *monitor.Reader // of points, and of what idle queues would tell
	queues    *monitor.Queues
	topics    *monitor.Topics
	functions *monitor.Functions
	streams   *monitor.Streams
	alarms    *alarms.Engine
	actions   *actions
}

var _ deliver.Events = (*monitoring)(nil)

func newMonitoring(deps Deps, k *kernel.Kernel, series monitor.QueueSeries) *monitoring {
	failed := func(err error) {
		deps.Log.Error("what is due each minute failed; ending the process", "error", err)
		deps.exit(err)
	}
	m := &monitoring{
		actions: &actions{}, minutes: monitor.NewTicker(k, time.Minute, failed), seconds: monitor.NewTicker(k, alarms.ShortEvery, failed),
	}
	m.points = metrics.New(k, metrics.Options{Wake: m.minutes.Wake, Layouts: monitor.Layouts})
	source := m.points
	if !deps.Config.Metrics {
		source = nil
	}
	m.queues = monitor.NewQueues(source, series, m.minutes.Wake)
	m.reader = monitor.NewReader(m.points, m.queues)
	m.topics = monitor.NewTopics(m.points, m.minutes.Wake)
	m.functions = monitor.NewFunctions(m.points, m.minutes.Wake)
	m.streams = monitor.NewStreams(m.points, m.minutes.Wake)
	m.alarms = alarms.New(k, alarms.Options{
		Metrics: m.reader, Executor: m.actions, Wake: m.minutes.Wake, WakeShort: m.seconds.Wake, MaxAlarms: deps.Config.MaxAlarms,
	})
	return m
}

// latest is the latest time that anything was written at.
func (m *monitoring) latest() time.Time {
	if at := m.alarms.Latest(); at.After(m.points.Latest()) {
		return at
	}
	return m.points.Latest()
}

// start begins with what is due each minute: first queues and topics tell how they
// stand at its end, then it is written, and then alarms are evaluated.
func (m *monitoring) start(deps Deps, engine *shard.Engine) error {
	m.actions.services = engine
	m.reader.Records(engine)
	now := deps.Clock.Now()
	if err := m.queues.Resume(engine.HoldingQueues(), now); err != nil {
		return fmt.Errorf("which queues were active cannot be read: %w", err)
	}
	if !deps.Config.Metrics {
		if err := m.points.EndAllSteady(); err != nil {
			return fmt.Errorf("the queues' metrics cannot be ended: %w", err)
		}
	}
	if deps.Config.Metrics {
		if err := m.topics.Resume(now); err != nil {
			return fmt.Errorf("which topics were active cannot be read: %w", err)
		}
	}
	m.minutes.Start(
		monitor.TickFunc(func(at time.Time) (bool, error) { return m.queues.Tick(engine, at) }),
		monitor.TickFunc(func(at time.Time) (bool, error) { return m.topics.Tick(engine, at), nil }),
		m.functions,
		m.streams,
		monitor.TickFunc(func(time.Time) (bool, error) { return m.points.Flush() }),
		monitor.TickFunc(m.alarms.EvaluateMinutes),
	)
	m.seconds.Start(monitor.TickFunc(m.alarms.EvaluateShort))
	return m.alarms.Start()
}

// functionEvents makes metrics of what happens to functions; nil if there are none.
func (m *monitoring) functionEvents(deps Deps) invoke.Events {
	if !deps.Config.Metrics {
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

// Delivery makes metrics of a step of a delivery.
func (m *monitoring) Delivery(e *deliver.Event) {
	topic, _, ok := e.Subscription.SplitSubscription()
	if ok {
		m.record(topic, e.At, e.Metrics())
	}
}

// Published makes metrics of a publish.
func (m *monitoring) Published(p *shard.Published) {
	m.record(p.Topic, p.At, deliver.PublishMetrics(p))
}

func (m *monitoring) record(topic arn.ARN, at time.Time, all []deliver.Metric) {
	if len(all) == 0 {
		return
	}
	var room [8]metrics.Datum
	data := room[:0]
	for _, one := range all {
		unit := "Count"
		if one.Name == "PublishSize" {
			unit = "Bytes"
		}
		data = append(data, metrics.Datum{Name: one.Name, Unit: unit, Value: one.Value})
	}
	m.topics.Record(topic, at, data...)
}
