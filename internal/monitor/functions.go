package monitor

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/monitor/metrics"
)

// Functions makes metrics of the events of functions.
type Functions struct {
	points  *metrics.Store
	wake    func()
	handles sync.Map // about → *atomic.Pointer[metrics.Resource] of points
}

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
	return &Functions{points: points, wake: wake}
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
	f.record(about{Scope: scope}, d.Metric, d.At, account)
	f.record(about{Scope: scope, name: name}, d.Metric, d.At, d.Value)
	resource := name
	if d.Qualifier != "" && d.Qualifier != "$LATEST" {
		resource += ":" + d.Qualifier
	}
	f.record(about{Scope: scope, name: name, resource: resource}, d.Metric, d.At, as)
	if d.Version != "" && d.Qualifier != "" && d.Qualifier != d.Version {
		f.record(about{Scope: scope, name: name, resource: resource, executed: d.Version}, d.Metric, d.At, executed)
	}
}

// functionUnits are the units of the metrics that are not counts.
var functionUnits = map[string]string{"Duration": "Milliseconds", "AsyncEventAge": "Milliseconds"}

func (f *Functions) record(a about, metric string, at time.Time, value float64) {
	found, ok := f.handles.Load(a)
	if !ok {
		function := arn.ARN{Account: a.Account, Region: a.Region, Resource: a.name}.Own()
		a = about{metrics.Scope{Account: function.Account, Region: function.Region}, function.Resource, strings.Clone(a.resource), strings.Clone(a.executed)}
		found, _ = f.handles.LoadOrStore(a, &atomic.Pointer[metrics.Resource]{})
		f.wake()
	}
	handle, minute := found.(*atomic.Pointer[metrics.Resource]), metrics.Minute(at)
	unit, ok := functionUnits[metric]
	if !ok {
		unit = count
	}
	data := []metrics.Datum{{Name: metric, Unit: unit, Value: value}, {Name: "Throttles", Unit: count}}
	if metric != "Invocations" {
		data = data[:1]
	}
	for {
		if r := handle.Load(); r != nil && r.Record(minute, data...) {
			return
		}
		var dimensions []metrics.Dimension
		for _, d := range [...]metrics.Dimension{{Name: "FunctionName", Value: a.name}, {Name: "Resource", Value: a.resource}, {Name: "ExecutedVersion", Value: a.executed}} {
			if d.Value != "" {
				dimensions = append(dimensions, d)
			}
		}
		handle.Store(f.points.Resource(a.Scope, "AWS/Lambda", metrics.Dimensions(dimensions...)))
	}
}

// Tick releases the resources that points has forgotten, after some minutes without values.
func (f *Functions) Tick(time.Time) (more bool, err error) {
	f.handles.Range(func(key, value any) bool {
		if r := value.(*atomic.Pointer[metrics.Resource]).Load(); r != nil && r.Forgotten() {
			f.handles.Delete(key)
		} else {
			more = true
		}
		return true
	})
	return more, nil
}
