package monitor

import (
	"strings"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/monitor/metrics"
)

// Functions makes metrics of the events of functions.
type Functions struct{ handles[about] }

// about is the subject of a function's metrics: the function in all versions; as named by a
// version or an alias; the version that an alias resolved to; or all functions of an account in
// a region.
type about struct {
	metrics.Scope
	name, resource, executed string
}

// NewFunctions makes a Functions whose metrics go to points; wake requests a call of Tick after
// the current minute.
func NewFunctions(points *metrics.Store, wake func()) *Functions {
	return &Functions{handles[about]{wake: wake, own: about.own, resource: func(a about) *metrics.Resource {
		var dimensions []metrics.Dimension
		for _, d := range [...]metrics.Dimension{{Name: "FunctionName", Value: a.name}, {Name: "Resource", Value: a.resource}, {Name: "ExecutedVersion", Value: a.executed}} {
			if d.Value != "" {
				dimensions = append(dimensions, d)
			}
		}
		return points.Resource(a.Scope, "AWS/Lambda", metrics.Dimensions(dimensions...))
	}}}
}

// own is a with memory of its own.
func (a about) own() about {
	function := arn.ARN{Account: a.Account, Region: a.Region, Resource: a.name}.Own()
	return about{metrics.Scope{Account: function.Account, Region: function.Region}, function.Resource, strings.Clone(a.resource), strings.Clone(a.executed)}
}

// Datum is a value of a metric of a function. If known, it has the qualifier of the invocation,
// and the version that ran.
type Datum struct {
	Function           arn.ARN
	Qualifier, Version string
	Metric             string
	At                 time.Time
	Value              float64

	// Account, Resource and Executed are Value for all functions, for the function as it was
	// invoked, and for the version that ran, if PerLevel says that they differ.
	PerLevel                    bool
	Account, Resource, Executed float64
}

// Record records a value. It does not block. An invocation also records zero Throttles, as it
// was not throttled.
func (f *Functions) Record(d *Datum) {
	scope, name := metrics.Scope{Account: d.Function.Account, Region: d.Function.Region}, d.Function.FunctionName()
	account, as, executed := d.Value, d.Value, d.Value
	if d.PerLevel {
		account, as, executed = d.Account, d.Resource, d.Executed
	}
	f.recordAbout(about{Scope: scope}, d.Metric, d.At, account)
	f.recordAbout(about{Scope: scope, name: name}, d.Metric, d.At, d.Value)
	resource := name
	if d.Qualifier != "" && d.Qualifier != "$LATEST" {
		resource += ":" + d.Qualifier
	}
	f.recordAbout(about{Scope: scope, name: name, resource: resource}, d.Metric, d.At, as)
	if d.Version != "" && d.Qualifier != "" && d.Qualifier != d.Version {
		f.recordAbout(about{Scope: scope, name: name, resource: resource, executed: d.Version}, d.Metric, d.At, executed)
	}
}

// functionUnits are the units of the metrics that are not counts.
var functionUnits = map[string]string{"Duration": "Milliseconds", "AsyncEventAge": "Milliseconds"}

func (f *Functions) recordAbout(a about, metric string, at time.Time, value float64) {
	unit, ok := functionUnits[metric]
	if !ok {
		unit = count
	}
	data := []metrics.Datum{{Name: metric, Unit: unit, Value: value}, {Name: "Throttles", Unit: count}}
	if metric != "Invocations" {
		data = data[:1]
	}
	f.record(a, at, data...)
}
