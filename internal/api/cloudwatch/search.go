package cloudwatch

import (
	"context"
	"errors"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/metricmath"
	"godwit.dev/godwit/internal/metricmath/search"
	"godwit.dev/godwit/internal/monitor/metrics"
)

const (
	// maxFound is how many series a SEARCH has. Source: CloudWatch's user guide.
	maxFound = 100
	// maxLooks bounds how many texts of metrics the searches of a request compare: those of a search of
	// three terms among 500,000 metrics.
	maxLooks = 10_000_000
)

// errSearchInAlarm is AWS's text.
func errSearchInAlarm() error { return unfit("SEARCH is not supported on Metric Alarms") }

// tooManyFound is the message of an answer to a search that would find more than maxFound metrics.
var tooManyFound = MessageData{"MaxMetricsExceeded", "Maximum number of allowed metrics exceeded"}

// checkSearches validates the statistics and the periods of searches.
func checkSearches(queries []query, all []*metricmath.Search) error {
	for _, s := range all {
		id := queries[s.Query].id
		if _, ok := metrics.ParseStatistic(s.Statistic); !ok {
			return unfit("Error in expression '%s': The value %s is not a valid statistic.", id, shorten(s.Statistic))
		}
		if _, err := readPeriod("Period", int(s.Period)); err != nil {
			return unfit("Error in expression '%s': %s", id, err)
		}
	}
	return nil
}

// searching is the state of the searches of a request.
type searching struct {
	found    []query // those of all searches, in the order in which they were found
	looks    int
	exceeded bool
}

// errFound ends a list of metrics.
var errFound = errors.New("cloudwatch: enough metrics were found")

// search calls f with the series of the metrics that a search finds, in the order of ListMetrics. Those are
// metrics with data in the last two weeks.
func (a *asked) search(s *metricmath.Search, f func(metricmath.Series) error) error {
	found, err := a.find(s)
	if err != nil {
		return err
	}
	stat, _ := metrics.ParseStatistic(s.Statistic)
	for i, label := range labelFound(found) {
		q := query{id: a.queries[s.Query].id, label: label, metric: found[i], stat: stat, period: s.Period}
		a.searching.found = append(a.searching.found, q)
		points, err := a.points(&q)
		if err != nil {
			return err
		}
		if err := f(metricmath.Series{Label: label, Period: s.Period, Points: points, Of: len(a.queries) + len(a.searching.found)}); err != nil {
			return err
		}
	}
	return nil
}

// find returns the first metrics that a search finds. It holds no lock while it looks: like ListMetrics it
// reads a part of the list after the other.
func (a *asked) find(s *metricmath.Search) (found []metrics.Metric, err error) {
	state := &a.searching
	filter := metrics.Filter{Scope: a.scope, Namespace: s.Namespace(), Since: metrics.Minute(a.now) - listed}
	look := func(m metrics.Metric) error {
		named := search.Metric{Account: m.Account, Namespace: m.Namespace, Name: m.Name}
		for _, d := range metrics.SplitDimensions(m.Dimensions) {
			named.Dimensions = append(named.Dimensions, search.Dimension(d))
		}
		ok, looks := s.Match(&named)
		switch state.looks += looks; {
		case state.looks > maxLooks:
			return metricmath.ErrSearched.With(a.queries[s.Query].id)
		case ok && len(found) == maxFound:
			state.exceeded = true
			return errFound
		case ok:
			found = append(found, m)
		}
		return nil
	}
	var after []byte
	for {
		var ended error
		taken := 0
		after, err = a.service.metrics.List(a.ctx, filter, after, func(m metrics.Metric) bool {
			taken++
			ended = look(m)
			return ended == nil
		})
		switch {
		case err != nil:
			return nil, err
		case errors.Is(ended, errFound):
			return found, nil
		case ended != nil:
			return nil, ended
		case after == nil:
			return found, nil
		case a.ctx.Err() != nil:
			return nil, context.Cause(a.ctx)
		}
		if state.looks += max(metrics.MaxLooked-taken, 0); state.looks > maxLooks { // those without data of late were read, too
			return nil, metricmath.ErrSearched.With(a.queries[s.Query].id)
		}
	}
}

// labelFound are labels of metrics that a search has found: what differs among them, of their namespaces, the
// values of their dimensions and their names; if nothing does, their names.
func labelFound(found []metrics.Metric) []string {
	texts := make([][]string, len(found)) // of each: the namespace, the values, the name
	for i := range found {
		var values []string
		for _, d := range metrics.SplitDimensions(found[i].Dimensions) {
			values = append(values, d.Value)
		}
		texts[i] = []string{found[i].Namespace, strings.Join(values, " "), found[i].Name}
	}
	differs := func(part int) bool {
		return slices.ContainsFunc(texts, func(of []string) bool { return of[part] != texts[0][part] })
	}
	labels := make([]string, len(found))
	if len(found) == 0 {
		return labels
	}
	shown := []bool{differs(0), differs(1), differs(2)}
	for i := range labels {
		var parts []string
		for part, text := range texts[i] {
			if shown[part] && text != "" {
				parts = append(parts, text)
			}
		}
		if labels[i] = strings.Join(parts, " "); labels[i] == "" {
			labels[i] = found[i].Name
		}
	}
	return labels
}
