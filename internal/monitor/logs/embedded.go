package logs

import (
	"hash/maphash"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/monitor/logs/emf"
	"godwit.dev/godwit/internal/monitor/logs/recent"
	"godwit.dev/godwit/internal/monitor/metrics"
)

const (
	// maxEmbedded is how many different metrics the events of a group may embed in an hour, so that
	// what is written into logs does not make metrics without end.
	maxEmbedded = 10_000
	// maxEmbeddedValues bounds the values embedded in the events of a call: as many as all metric
	// filters that a group may have would make of as many events as a call may have.
	maxEmbeddedValues = MaxFilters * batchEvents
	// maxHeld is how many datapoints are held before they are recorded, some 500 bytes each: the events of
	// a call may be of so many seconds that it would hold hundreds of thousands. Each time waits for a sync.
	maxHeld = 10_000
)

// series is where embedded values belong.
type series struct {
	metrics.Metric
	unit   string
	second int64 // epoch seconds; of its minute unless fine
	fine   bool
}

// embedded records the values embedded in events. own says that they are the server's: functions' runtimes
// put fields before what functions write. ok is false when record fails.
func (l *Logs) embedded(group arn.ARN, id uint64, events []Event, own bool, record func([]metrics.Datapoint) bool) (ok bool) {
	read := emf.Read
	if own {
		read = emf.ReadLogged
	}
	now := l.kernel.Clock.Now()
	e := embedding{logs: l, group: group, id: recent.ID{Group: id}, hour: now.Unix() / 3600}
	oldest, newest := now.Add(-metrics.MaxAge).UnixMilli(), now.Add(metrics.MaxAhead).UnixMilli()
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
				return record(e.take())
			}
			if len(e.order) >= maxHeld && !record(e.take()) {
				return false
			}
		}
	}
	return record(e.take())
}

// embedding collects the values embedded in the events of a call.
type embedding struct {
	logs   *Logs
	group  arn.ARN
	id     recent.ID // no filter has an empty name
	hour   int64     // since the epoch
	of     map[series]*metrics.Set
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
	ok, first := e.logs.found.Admit(e.id, e.hour, maxEmbedded, maphash.Comparable(recent.Seed, at.Metric))
	if first {
		e.warn("there are too many different ones in an hour")
	}
	if !ok {
		return true
	}
	set := e.of[at]
	if set == nil {
		if e.of == nil { // most calls have none
			e.of = map[series]*metrics.Set{}
		}
		set = new(metrics.Set)
		e.of[at], e.order = set, append(e.order, at)
	}
	for _, value := range m.Values {
		set.Add(value, 1)
	}
	return true
}

func (e *embedding) warn(reason string) {
	e.logs.kernel.Logger.Warn("metrics embedded in log events are left out", "group", e.group.String(), "reason", reason)
}

// take takes the values. They are summed up, as those who record them hold a lock.
func (e *embedding) take() (data []metrics.Datapoint) {
	for _, at := range e.order {
		set := e.of[at]
		data = append(data, metrics.Datapoint{Metric: at.Metric, Unit: at.unit, Second: at.second, Fine: at.fine, Add: func(s *metrics.Set) { s.Merge(set) }})
	}
	e.order = nil
	clear(e.of)
	return data
}
