package logs

import (
	"hash/maphash"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/monitor/logs/emf"
	"godwit.dev/godwit/internal/monitor/metrics"
)

const (
	// maxEmbedded is how many different metrics the events of a group may embed in an hour, so that
	// what is written into logs does not make metrics without end.
	maxEmbedded = 10_000
	// maxEmbeddedValues bounds the values embedded in the events of a call: as many as all metric
	// filters that a group may have would make of as many events as a call may have.
	maxEmbeddedValues = MaxFilters * batchEvents
)

// The bounds of the time of embedded values relative to now. Source: the API reference, "PutMetricData".
const (
	maxValueAge   = 14 * 24 * time.Hour
	maxValueAhead = 2 * time.Hour
)

// series is where embedded values belong.
type series struct {
	metrics.Metric
	unit   string
	second int64 // epoch seconds; of its minute unless fine
	fine   bool
}

// embedded are the values embedded in events. own says that they are the server's: functions' runtimes
// put fields before what functions write.
func (l *Logs) embedded(group arn.ARN, id uint64, events []Event, own bool) (data []metrics.Datapoint) {
	read := emf.Read
	if own {
		read = emf.ReadLogged
	}
	now := l.kernel.Clock.Now()
	e := embedding{logs: l, group: group, id: filterID{group: id}, hour: now.Unix() / 3600}
	oldest, newest := now.Add(-maxValueAge).UnixMilli(), now.Add(maxValueAhead).UnixMilli()
	for i := range events {
		d, ok := read(events[i].Message)
		if !ok {
			continue
		}
		if !d.Timed { // AWS takes the time of the ingestion
			d.Time = now.UnixMilli()
		}
		if d.Time < oldest || d.Time > newest {
			continue
		}
		for j := range d.Metrics {
			if !e.add(&d.Metrics[j], d.Time/1000) {
				return e.datapoints()
			}
		}
	}
	return e.datapoints()
}

// embedding collects the values embedded in the events of a call.
type embedding struct {
	logs   *Logs
	group  arn.ARN
	id     filterID // no filter has an empty name
	hour   int64    // since the epoch
	of     map[series][][]float64
	order  []series
	values int
}

// add adds the values of a metric; more is false when there may be no others.
func (e *embedding) add(m *emf.Metric, second int64) (more bool) {
	if e.values += len(m.Values); e.values > maxEmbeddedValues {
		e.warn("there are too many values in a call")
		return false
	}
	at := series{
		Metric: metrics.Metric{
			Scope: metrics.Scope{Account: e.group.Account, Region: e.group.Region}, Namespace: m.Namespace, Name: m.Name, Dimensions: m.Dimensions,
		},
		unit: m.Unit, second: second, fine: m.Fine,
	}
	if !at.fine {
		at.second -= at.second % 60
	}
	ok, first := e.logs.found.admit(e.id, e.hour, maxEmbedded, maphash.Comparable(foundSeed, at.Metric))
	if first {
		e.warn("there are too many different ones in an hour")
	}
	if !ok {
		return true
	}
	if e.of == nil { // most calls have none
		e.of = map[series][][]float64{}
	}
	if e.of[at] == nil {
		e.order = append(e.order, at)
	}
	e.of[at] = append(e.of[at], m.Values)
	return true
}

func (e *embedding) warn(reason string) {
	e.logs.kernel.Logger.Warn("metrics embedded in log events are left out", "group", e.group.String(), "reason", reason)
}

func (e *embedding) datapoints() (data []metrics.Datapoint) {
	for _, at := range e.order {
		these := e.of[at]
		data = append(data, metrics.Datapoint{Metric: at.Metric, Unit: at.unit, Second: at.second, Fine: at.fine, Add: func(s *metrics.Set) {
			for _, values := range these {
				for _, value := range values {
					s.Add(value, 1)
				}
			}
		}})
	}
	return data
}
