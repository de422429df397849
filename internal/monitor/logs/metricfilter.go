package logs

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/decimal"
	"godwit.dev/godwit/internal/monitor/logs/pattern"
	"godwit.dev/godwit/internal/monitor/logs/recent"
	"godwit.dev/godwit/internal/monitor/metrics"
)

// How many metric filters a group may have, and how many whose patterns have regular expressions, which
// cost a hundred times what others do. Source: the API reference, "PutMetricFilter".
const (
	MaxFilters       = 100
	maxRegexpFilters = 5
)

// MetricFilter makes values of a metric of the events that match a pattern. Source: "Creating
// metrics from log events using filters" in the CloudWatch Logs user guide.
type MetricFilter struct {
	Name      string
	Pattern   string
	Created   int64 // epoch milliseconds
	Namespace string
	Metric    string
	Value     string            // a number, or a selector of one in the event
	Default   *float64          `json:",omitempty"` // of a minute with events of which none matches
	Unit      string            `json:",omitempty"` // empty: None
	By        map[string]string `json:",omitempty"` // dimensions, by name: selectors of their values
}

// compiled is a filter that was checked.
type compiled struct {
	*MetricFilter
	pattern *pattern.Pattern
	value   func(*pattern.Event) (float64, bool)
	by      []dimension
}

type dimension struct {
	name  string
	value pattern.Selector
}

// compile compiles a filter. The text of an error is for its author.
func (f *MetricFilter) compile() (c compiled, err error) {
	c.MetricFilter = f
	if c.pattern, err = pattern.Parse(f.Pattern); err != nil {
		return c, err
	}
	if number, ok := readNumber(f.Value); ok {
		c.value = func(*pattern.Event) (float64, bool) { return number, true }
	} else {
		selector, err := c.pattern.ParseSelector(f.Value)
		if err != nil {
			return c, err
		}
		c.value = func(e *pattern.Event) (float64, bool) {
			text, _ := c.pattern.Value(e, selector)
			return readNumber(text)
		}
	}
	for name, text := range f.By {
		selector, err := c.pattern.ParseSelector(text)
		if err != nil {
			return c, err
		}
		c.by = append(c.by, dimension{name, selector})
	}
	return c, nil
}

// Check refuses a filter whose pattern or selectors cannot be parsed. The text of an error is for its
// author.
func (f *MetricFilter) Check() error {
	_, err := f.compile()
	return err
}

// readNumber reads a decimal number that a metric may have as a value.
func readNumber(text string) (number float64, ok bool) {
	number, ok = decimal.Parse(text)
	return number, ok && metrics.ValidValue(number)
}

// dimensions are those of a value; ok is false of an event that lacks one, or has a text that cannot be
// the value of a dimension.
func (c *compiled) dimensions(e *pattern.Event) (of []metrics.Dimension, ok bool) {
	of = make([]metrics.Dimension, len(c.by))
	for i, d := range c.by {
		value, ok := c.pattern.Value(e, d.value)
		of[i] = metrics.Dimension{Name: d.name, Value: value}
		if !ok || !of[i].Valid() {
			return nil, false
		}
	}
	return of, true
}

// PutFilter adds a metric filter to a group, or replaces that of the name. It fails with
// ErrTooManyFilters.
func (l *Logs) PutFilter(group arn.ARN, f MetricFilter) error {
	return l.change(group, func(_ groupRecord, d *details) error {
		if f.hasRegexp() {
			others := 0
			for i := range d.Filters {
				if o := &d.Filters[i]; o.Name != f.Name && o.hasRegexp() {
					others++
				}
			}
			if others >= maxRegexpFilters {
				return ErrTooManyFilters
			}
		}
		f.Created = int64(l.now())
		i, found := slices.BinarySearchFunc(d.Filters, f.Name, byName)
		switch {
		case found:
			d.Filters[i] = f
		case len(d.Filters) >= MaxFilters:
			return ErrTooManyFilters
		default:
			d.Filters = slices.Insert(d.Filters, i, f)
		}
		return nil
	})
}

// hasRegexp reports whether the pattern of a filter that was checked has a regular expression.
func (f *MetricFilter) hasRegexp() bool {
	if !strings.Contains(f.Pattern, "%") { // most have none
		return false
	}
	p, err := pattern.Parse(f.Pattern)
	return err == nil && p.Regexp()
}

func byName(f MetricFilter, name string) int { return cmp.Compare(f.Name, name) }

// DeleteFilter removes a metric filter from a group. It fails with ErrNoFilter.
func (l *Logs) DeleteFilter(group arn.ARN, name string) error {
	return l.change(group, func(_ groupRecord, d *details) error {
		i, found := slices.BinarySearchFunc(d.Filters, name, byName)
		if !found {
			return ErrNoFilter
		}
		d.Filters = slices.Delete(d.Filters, i, i+1)
		return nil
	})
}

// Filters are the metric filters of a group, by name.
func (l *Logs) Filters(group arn.ARN) ([]MetricFilter, error) {
	defer l.shard.AwaitReads()
	g, err := l.find(group)
	if err != nil {
		return nil, err
	}
	return g.read().Filters, nil
}

// noDetails is the size of details without any.
const noDetails = len("{}")

// measure makes the values of a group's metric filters of events that were put into it, and those that
// are embedded in them. own says that the events are the server's. Like other metrics that are made of
// what happens, they follow it: a crash in between loses them.
func (l *Logs) measure(group arn.ARN, g groupRecord, events []Event, own bool) {
	if l.options.Record == nil {
		return
	}
	record := func(data []metrics.Datapoint) bool {
		if len(data) == 0 {
			return true
		}
		err := l.options.Record(data...)
		if err != nil {
			l.kernel.Logger.Error("metrics of log events are lost", "group", group.String(), "error", err)
		}
		return err == nil
	}
	if l.embedded(group, g.id, events, own, record) && len(events) > 0 && len(g.details) > noDetails {
		record(l.filter(group, g, events))
	}
}

// filter makes the values of a group's metric filters.
func (l *Logs) filter(group arn.ARN, g groupRecord, events []Event) (data []metrics.Datapoint) {
	var all []*values
	for _, f := range g.read().Filters {
		c, err := f.compile()
		if err != nil {
			l.kernel.Logger.Error("a metric filter is left out", "group", group.String(), "filter", f.Name, "reason", err.Error())
			continue
		}
		all = append(all, &values{compiled: c, group: group, id: recent.ID{Group: g.id, Name: f.Name}, of: map[place][]float64{}, matched: map[int64]bool{}})
	}
	hour := l.kernel.Clock.Now().Unix() / 3600
	for i := range events { // a filter after the other would take each event apart as often
		e, minute := pattern.NewEvent(events[i].Message), events[i].Time/60_000
		for _, v := range all {
			l.match(v, e, minute, hour)
		}
	}
	for _, v := range all {
		data = append(data, l.datapoints(v)...)
	}
	return data
}

// values are those that a filter makes of events.
type values struct {
	compiled
	group   arn.ARN
	id      recent.ID
	of      map[place][]float64
	order   []place
	matched map[int64]bool // the minutes that had events, and whether one made a value
}

// place is where values belong: a minute since the epoch, and encoded dimensions.
type place struct {
	minute int64
	by     string
}

// match adds the value that a filter makes of an event, if it does. hour is the current one, since the
// epoch.
func (l *Logs) match(v *values, e *pattern.Event, minute, hour int64) {
	if _, ok := v.matched[minute]; !ok {
		v.matched[minute] = false
	}
	if !v.pattern.Match(e) {
		return
	}
	value, ok := v.value(e)
	if !ok {
		return
	}
	of, ok := v.dimensions(e)
	if !ok {
		return
	}
	ok, first := l.found.Admit(v.id, hour, recent.MaxPairs, recent.Pairs(of)...)
	if first {
		l.kernel.Logger.Warn("a metric filter finds too many dimensions", "group", v.group.String(), "filter", v.Name)
	}
	if !ok {
		return
	}
	v.matched[minute] = true
	at := place{minute, metrics.Dimensions(of...)}
	if v.of[at] == nil {
		v.order = append(v.order, at)
	}
	v.of[at] = append(v.of[at], value)
}

// datapoints are the values of a filter, with its default value where there is none.
func (l *Logs) datapoints(v *values) (data []metrics.Datapoint) {
	if v.Default != nil { // then it has no dimensions
		for _, minute := range slices.Sorted(maps.Keys(v.matched)) {
			if first := l.defaults.First(v.id, minute); first && !v.matched[minute] {
				at := place{minute: minute}
				v.order, v.of[at] = append(v.order, at), []float64{*v.Default}
			}
		}
	}
	for _, at := range v.order {
		these := v.of[at]
		data = append(data, metrics.Datapoint{
			Metric: metrics.Metric{Scope: metrics.Scope{Account: v.group.Account, Region: v.group.Region}, Namespace: v.Namespace, Name: v.Metric, Dimensions: at.by},
			Unit:   cmp.Or(v.Unit, "None"), Second: at.minute * 60,
			Add: func(s *metrics.Set) {
				for _, value := range these {
					s.Add(value, 1)
				}
			},
		})
	}
	return data
}
