package prom

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
)

// FunctionGauges are the current numbers of a function.
type FunctionGauges struct {
	Running                int   // invocations
	Due, Waiting, InFlight int64 // events
}

// functionCounts are the counts of a function.
type functionCounts struct {
	invocations, errors, throttles, received, dropped, deadLetterErrors, destinationFailures atomic.Int64

	duration, eventAge histogram
}

func ofFunction(name, help string, more ...string) *prometheus.Desc {
	return describe("lambda_"+name, help, append([]string{"account", "region", "function"}, more...)...)
}

var functionCounters = []struct {
	desc   *prometheus.Desc
	metric string // AWS's
	of     func(*functionCounts) *atomic.Int64
}{
	{ofFunction("invocations_total", "Invocations that ran."), "Invocations", func(c *functionCounts) *atomic.Int64 { return &c.invocations }},
	{ofFunction("errors_total", "Invocations that failed."), "Errors", func(c *functionCounts) *atomic.Int64 { return &c.errors }},
	{ofFunction("throttles_total", "Invocations refused for want of concurrency."), "Throttles", func(c *functionCounts) *atomic.Int64 { return &c.throttles }},
	{ofFunction("async_events_received_total", "Events accepted for asynchronous invocations."), "AsyncEventsReceived", func(c *functionCounts) *atomic.Int64 { return &c.received }},
	{ofFunction("async_events_dropped_total", "Events that ended without the function's success."), "AsyncEventsDropped", func(c *functionCounts) *atomic.Int64 { return &c.dropped }},
	{ofFunction("dead_letter_errors_total", "Events that the dead-letter target did not take."), "DeadLetterErrors", func(c *functionCounts) *atomic.Int64 { return &c.deadLetterErrors }},
	{ofFunction("destination_failures_total", "Records that a destination did not take."), "DestinationDeliveryFailures", func(c *functionCounts) *atomic.Int64 { return &c.destinationFailures }},
}

var (
	functionRunning  = ofFunction("running", "Invocations that run now.")
	functionEvents   = ofFunction("async_events", "Events that wait for the function or run.", "state")
	functionDuration = ofFunction("duration_seconds", "Time that invocations took.")
	functionEventAge = ofFunction("async_event_age_seconds", "Time from the acceptance of an event until the function ran with it.")
)

// Function counts a value of a function's metric, by AWS's name and in its unit.
func (m *Metrics) Function(fn arn.ARN, metric string, value float64) {
	c := m.functions.of(fn)
	took := time.Duration(value * float64(time.Millisecond)) // of a value in milliseconds
	switch metric {
	case "Duration":
		c.duration.observe(functionBuckets, took)
	case "AsyncEventAge":
		c.eventAge.observe(functionBuckets, took)
	default: // a gauge, ConcurrentExecutions, is read at collection instead
		for i := range functionCounters {
			if functionCounters[i].metric == metric {
				functionCounters[i].of(c).Add(int64(value))
				return
			}
		}
	}
}

func (m *Metrics) collectFunctions(out chan<- prometheus.Metric, gauge func(*prometheus.Desc, float64, ...string), count func(*prometheus.Desc, *atomic.Int64, ...string)) {
	for _, name := range m.functions.all() {
		of := []string{name.Account, name.Region, name.FunctionName()}
		if name == other {
			of[2] = other.Resource
		} else if m.options.Function != nil {
			g, err := m.options.Function(name)
			if fault.KindOf(err) == fault.ResourceNotFound {
				m.functions.forget(name)
				continue
			}
			if err == nil {
				gauge(functionRunning, float64(g.Running), of...)
				for state, n := range map[string]int64{"due": g.Due, "waiting": g.Waiting, "in-flight": g.InFlight} {
					gauge(functionEvents, float64(n), append(of, state)...)
				}
			}
		}
		c := m.functions.get(name)
		if c == nil {
			continue
		}
		for _, v := range functionCounters {
			count(v.desc, v.of(c), of...)
		}
		if took, n := functionBuckets.collect(functionDuration, of, &c.duration); n > 0 {
			out <- took
		}
		if age, n := functionBuckets.collect(functionEventAge, of, &c.eventAge); n > 0 {
			out <- age
		}
	}
}
