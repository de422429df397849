package cloudwatch

import (
	"context"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/metricmath/label"
	"godwit.dev/godwit/internal/monitor/metrics"
)

// The limits of GetMetricData. Source: CloudWatch's API reference.
const (
	maxQueries    = 500
	maxDataPoints = 100_800
)

// An array may have more results than there are queries, and repeat the label of a metric in
// each. These bound the results of an answer, and the bytes of their labels: the page ends with
// the result that reaches one.
const (
	maxResults = 5000
	maxLabels  = 1 << 20
)

var (
	scanOrders = []string{"TimestampDescending", "TimestampAscending"}
	queryID    = regexp.MustCompile(`^[a-z][a-zA-Z0-9_]*$`)
)

// query is a validated MetricDataQuery: of a metric, or an expression.
type query struct {
	id, label  string
	dynamic    *label.Template // in place of the label; nil: it has no values
	expression string          // empty: a metric
	metric     metrics.Metric
	stat       metrics.Statistic
	period     int64 // seconds; 0: an expression without one
	unit       *string
	returned   bool
}

// getMetricData answers GetMetricData: a result for each query, also without data, by default
// newest values first; of an expression, one for each of its time series. Periods begin as in
// GetMetricStatistics. If there are more values than requested, the answer ends after that
// number, also within a result; its token continues there.
func (s *Service) getMetricData(ctx context.Context, call *api.Call, in *GetMetricDataInput) (*GetMetricDataOutput, error) {
	queries, err := readQueries(call, in)
	if err != nil {
		return nil, err
	}
	program, err := compile(queries)
	if err != nil {
		return nil, err
	}
	from, to := in.StartTime.Std(), in.EndTime.Std()
	switch {
	case from.Equal(to):
		return nil, unfit("The parameter StartTime must not equal parameter EndTime.")
	case to.Before(from):
		return nil, unfit("The parameter EndTime must be greater than StartTime.")
	}
	zone, err := readZone(in.LabelOptions)
	if err != nil {
		return nil, err
	}
	ascending := api.Deref(in.ScanBy) == scanOrders[1]
	if err := checkPositive("maxDatapoints", in.MaxDatapoints, maxDataPoints); err != nil {
		return nil, err
	}
	left := maxDataPoints
	if in.MaxDatapoints != nil {
		left = *in.MaxDatapoints
	}
	list := tokenList(in, queries)
	text, ok := readToken(list, in.NextToken)
	begin, ok2 := splitPlace(text)
	if !ok || !ok2 || begin.query >= max(len(queries), 1) {
		return nil, fault.New(fault.InvalidNextToken, "")
	}
	asked := &asked{ctx: ctx, service: s, scope: scope(call), queries: queries, program: program, now: call.Time, zone: zone, from: from, to: to, ascending: ascending}
	out := &GetMetricDataOutput{MetricDataResults: []MetricDataResult{}, Messages: []MessageData{}}
	labels := 0
	for at := begin.query; at < len(queries); at++ {
		if !queries[at].returned {
			continue
		}
		if left == 0 {
			out.NextToken = nextToken(list, place{query: at}.String())
			return out, nil
		}
		n, result, err := asked.results(at)
		if err != nil {
			return nil, err
		}
		if asked.searching.exceeded && len(out.Messages) == 0 {
			out.Messages = append(out.Messages, tooManyFound)
		}
		here := place{query: at}
		if at == begin.query {
			here = begin
		}
		for ; here.series < n; here = (place{query: at, series: here.series + 1}) {
			if left == 0 || len(out.MetricDataResults) == maxResults || labels >= maxLabels {
				out.NextToken = nextToken(list, here.String())
				return out, nil
			}
			result := result(here.series)
			labels += len(result.Label)
			result.skip(here, ascending)
			if len(result.Values) > left {
				result.Timestamps, result.Values, result.StatusCode = result.Timestamps[:left], result.Values[:left], "PartialData"
				here.within, here.last = true, result.Timestamps[left-1]
				out.NextToken = nextToken(list, here.String())
				out.MetricDataResults = append(out.MetricDataResults, result)
				return out, nil
			}
			left -= len(result.Values)
			out.MetricDataResults = append(out.MetricDataResults, result)
		}
	}
	return out, nil
}

// answer computes the values of a query, between two times in epoch seconds. If the query has
// no unit, the values are of the first unit that has any.
func (s *Service) answer(q *query, from, to int64, ascending bool) (r MetricDataResult, err error) {
	r = MetricDataResult{Id: q.id, Label: q.label, Timestamps: []api.Time{}, Values: []float64{}, StatusCode: "Complete"}
	units := []string{api.Deref(q.unit)}
	if q.unit == nil {
		if units, err = s.metrics.Units(q.metric); err != nil {
			return r, err
		}
	}
	var found []string
	for _, unit := range units {
		some := false
		err := s.metrics.Each(q.metric, unit, from, to, q.period, func(start int64, set *metrics.Set) {
			some = true
			if value, ok := q.stat.Of(set); ok && len(found) == 0 {
				r.Timestamps = append(r.Timestamps, api.TimeOf(time.Unix(start, 0)))
				r.Values = append(r.Values, value)
			}
		})
		if err != nil {
			return r, err
		}
		if some {
			found = append(found, unit)
		}
	}
	if len(found) > 1 {
		r.Messages = []MessageData{{"MultipleUnits", "Multiple units returned: '[" + strings.Join(found, ", ") + "]'"}}
	}
	if !ascending {
		slices.Reverse(r.Timestamps)
		slices.Reverse(r.Values)
	}
	return r, nil
}

// skip drops the values that earlier pages had.
func (r *MetricDataResult) skip(begin place, ascending bool) {
	if !begin.within {
		return
	}
	n := 0
	for n < len(r.Timestamps) && (ascending && r.Timestamps[n] <= begin.last || !ascending && r.Timestamps[n] >= begin.last) {
		n++
	}
	r.Timestamps, r.Values = r.Timestamps[n:], r.Values[n:]
}

// tokenList binds tokens to the request.
func tokenList(in *GetMetricDataInput, queries []query) string {
	h := fnv.New64a()
	fmt.Fprint(h, *in.StartTime, *in.EndTime, api.Deref(in.ScanBy))
	for _, q := range queries {
		fmt.Fprintf(h, "%q %q %q %s %d %q;", q.id, q.metric, q.stat.Text, api.Deref(q.unit), q.period, q.expression)
	}
	return fmt.Sprintf("GetMetricData %x", h.Sum64())
}

// place is where a page ends, and the next one begins.
type place struct {
	query  int
	series int      // of those of the query
	within bool     // values of the series were returned
	last   api.Time // of these the last one's
}

func (p place) String() string {
	return fmt.Sprintf("%d %d %t %d", p.query, p.series, p.within, p.last)
}

// splitPlace parses the place in a token.
func splitPlace(text string) (p place, ok bool) {
	if text == "" {
		return p, true
	}
	_, err := fmt.Sscanf(text, "%d %d %t %d", &p.query, &p.series, &p.within, &p.last)
	return p, err == nil && p.query >= 0 && p.series >= 0
}

func unfit(format string, args ...any) error {
	return fault.Newf(fault.ValidationFailed, format, args...)
}

func readQueries(call *api.Call, in *GetMetricDataInput) ([]query, error) {
	if len(in.MetricDataQueries) == 0 {
		return nil, unfit("The parameter MetricDataQueries must have at least one element.")
	}
	if len(in.MetricDataQueries) > maxQueries {
		return nil, unfit("The collection MetricDataQueries must not have a size greater than %d.", maxQueries)
	}
	if in.ScanBy != nil && !slices.Contains(scanOrders, *in.ScanBy) {
		return nil, notInEnum(*in.ScanBy, "scanBy", scanOrders)
	}
	queries := make([]query, len(in.MetricDataQueries))
	ids := make(map[string]bool, len(queries))
	returned := false
	for i := range queries {
		q, err := readQuery(call, i+1, &in.MetricDataQueries[i])
		if err != nil {
			return nil, err
		}
		if ids[q.id] {
			return nil, unfit("The values for parameter id in MetricDataQueries are not unique.")
		}
		ids[q.id] = true
		returned = returned || q.returned
		queries[i] = q
	}
	if !returned {
		return nil, unfit("At least one of the queries in MetricDataQueries must return data.")
	}
	for i := range queries {
		if q := &queries[i]; q.label != "" {
			if q.dynamic = label.Parse(q.label); q.dynamic != nil {
				q.label = "" // what the label is otherwise may be one of its values
			}
		}
	}
	nameMetrics(queries)
	return queries, nil
}

// nameMetrics gives labels to the metrics without one: names, and in what else they differ.
func nameMetrics(queries []query) {
	var first *query
	oneStat, onePeriod := true, true
	for i := range queries {
		q := &queries[i]
		if q.expression != "" {
			continue
		}
		if first == nil {
			first = q
		}
		oneStat = oneStat && q.stat.Text == first.stat.Text
		onePeriod = onePeriod && q.period == first.period
	}
	for i := range queries {
		q := &queries[i]
		if q.label != "" || q.expression != "" {
			continue
		}
		q.label = q.metric.Name
		if !oneStat {
			q.label += " " + q.stat.Text
		}
		if !onePeriod {
			q.label += " " + strconv.FormatInt(q.period, 10)
		}
	}
}

// readQuery validates a query; number is its place, counted from 1.
func readQuery(call *api.Call, number int, in *MetricDataQuery) (q query, err error) {
	at := fmt.Sprintf("MetricDataQueries.member.%d.", number)
	switch {
	case in.Id == nil:
		return q, unfit("The parameter %sId is required.", at)
	case !queryID.MatchString(*in.Id) || len(*in.Id) > maxName:
		return q, unfit("The value %s for parameter %sId is not matching the expected pattern ^[a-z][a-zA-Z0-9_]*$.", shorten(*in.Id), at)
	case in.Expression != nil && in.MetricStat != nil:
		return q, unfit("The parameters MetricDataQuery Expression and MetricStat are mutually exclusive and you have specified both.")
	case in.AccountId != nil && *in.AccountId != call.Account:
		return q, unfit("The value %s for parameter %sAccountId is not an account that is linked to this one.", shorten(*in.AccountId), at)
	case in.Expression != nil:
		return readExpression(number, in)
	case in.MetricStat == nil: // AWS's message ends so
		return q, unfit("The parameter %sMetricStat is required.\n", at)
	case in.MetricStat.Metric == nil:
		return q, unfit("The parameter %sMetricStat.Metric is required.", at)
	case in.MetricStat.Period == nil:
		return q, unfit("The parameter %sMetricStat.Period is required.", at)
	case in.MetricStat.Stat == nil:
		return q, unfit("The parameter %sMetricStat.Stat is required.", at)
	}
	stat := in.MetricStat
	at += "MetricStat."
	if err := checkNamespace(at+"Metric.Namespace", stat.Metric.Namespace); err != nil {
		return q, unfit("%s", err)
	}
	if err := checkText(at+"Metric.MetricName", stat.Metric.MetricName, maxName); err != nil {
		return q, unfit("%s", err)
	}
	dimensions, err := readDimensions(at+"Metric.Dimensions", stat.Metric.Dimensions)
	if err != nil {
		return q, unfit("%s", err)
	}
	if err := checkUnit(at+"Unit", stat.Unit); err != nil {
		return q, unfit("%s", err)
	}
	q = query{
		id: *in.Id, label: api.Deref(in.Label), unit: stat.Unit,
		metric:   metrics.Metric{Scope: scope(call), Namespace: *stat.Metric.Namespace, Name: *stat.Metric.MetricName, Dimensions: dimensions},
		returned: in.ReturnData == nil || *in.ReturnData,
	}
	if q.period, err = readPeriod(at+"Period", *stat.Period); err != nil {
		return q, unfit("%s", err)
	}
	var ok bool
	if q.stat, ok = metrics.ParseStatistic(*stat.Stat); !ok {
		return q, unfit("The value %s for parameter %sStat is not a valid statistic.", shorten(*stat.Stat), at)
	}
	return q, nil
}
