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
	"godwit.dev/godwit/internal/monitor/metrics"
)

// The limits of GetMetricData. Source: CloudWatch's API reference.
const (
	maxQueries    = 500
	maxDataPoints = 100_800
)

var (
	scanOrders = []string{"TimestampDescending", "TimestampAscending"}
	queryID    = regexp.MustCompile(`^[a-z][a-zA-Z0-9_]*$`)
)

// query is a validated MetricDataQuery.
type query struct {
	id, label string
	metric    metrics.Metric
	stat      metrics.Statistic
	period    int64 // seconds
	unit      *string
	returned  bool
}

// getMetricData answers GetMetricData: a result for each query, also without data, by default
// newest values first. Periods begin as in GetMetricStatistics. If there are more values than
// requested, the answer ends after that number, also within a query; its token continues
// there.
func (s *Service) getMetricData(_ context.Context, call *api.Call, in *GetMetricDataInput) (*GetMetricDataOutput, error) {
	queries, err := readQueries(call, in)
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
	ascending := api.Deref(in.ScanBy) == scanOrders[1]
	if err := checkPositive("maxDatapoints", in.MaxDatapoints, maxDataPoints); err != nil {
		return nil, err
	}
	left := maxDataPoints
	if in.MaxDatapoints != nil {
		left = *in.MaxDatapoints
	}
	list := tokenList(in, queries)
	place, ok := readToken(list, in.NextToken)
	at, beyond, ok2 := splitPlace(place)
	if !ok || !ok2 || at >= max(len(queries), 1) {
		return nil, fault.New(fault.InvalidNextToken, "")
	}
	out := &GetMetricDataOutput{MetricDataResults: []MetricDataResult{}, Messages: []MessageData{}}
	for ; at < len(queries); at++ {
		q := &queries[at]
		if !q.returned {
			continue
		}
		if left == 0 {
			out.NextToken = nextToken(list, fmt.Sprintf("%d %d", at, beyond))
			break
		}
		start, end := span(call.Time, from, to, q.period)
		result, err := s.answer(q, start, end, ascending)
		if err != nil {
			return nil, err
		}
		result.skip(beyond, ascending)
		beyond = 0
		if n := len(result.Values); n > left {
			result.Timestamps, result.Values, result.StatusCode = result.Timestamps[:left], result.Values[:left], "PartialData"
			out.NextToken = nextToken(list, fmt.Sprintf("%d %d", at, result.Timestamps[left-1]))
			out.MetricDataResults = append(out.MetricDataResults, result)
			break
		}
		left -= len(result.Values)
		out.MetricDataResults = append(out.MetricDataResults, result)
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

// skip drops the values up to last, which earlier pages had; 0: none.
func (r *MetricDataResult) skip(last api.Time, ascending bool) {
	if last == 0 {
		return
	}
	n := 0
	for n < len(r.Timestamps) && (ascending && r.Timestamps[n] <= last || !ascending && r.Timestamps[n] >= last) {
		n++
	}
	r.Timestamps, r.Values = r.Timestamps[n:], r.Values[n:]
}

// tokenList binds tokens to the request.
func tokenList(in *GetMetricDataInput, queries []query) string {
	h := fnv.New64a()
	fmt.Fprint(h, *in.StartTime, *in.EndTime, api.Deref(in.ScanBy))
	for _, q := range queries {
		fmt.Fprintf(h, "%q %q %q %s %d;", q.id, q.metric, q.stat.Text, api.Deref(q.unit), q.period)
	}
	return fmt.Sprintf("GetMetricData %x", h.Sum64())
}

// splitPlace parses the position in a token: the query, and the time of its last returned
// value.
func splitPlace(place string) (at int, last api.Time, ok bool) {
	if place == "" {
		return 0, 0, true
	}
	first, second, _ := strings.Cut(place, " ")
	at, err := strconv.Atoi(first)
	n, err2 := strconv.ParseInt(second, 10, 64)
	return at, api.Time(n), err == nil && err2 == nil && at >= 0
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
	returned, oneStat, onePeriod := false, true, true
	for i := range queries {
		at := fmt.Sprintf("MetricDataQueries.member.%d.", i+1)
		q, err := readQuery(call, at, &in.MetricDataQueries[i])
		if err != nil {
			return nil, err
		}
		if ids[q.id] {
			return nil, unfit("The values for parameter id in MetricDataQueries are not unique.")
		}
		ids[q.id] = true
		returned = returned || q.returned
		queries[i] = q
		oneStat = oneStat && q.stat.Text == queries[0].stat.Text
		onePeriod = onePeriod && q.period == queries[0].period
	}
	if !returned {
		return nil, unfit("At least one of the queries in MetricDataQueries must return data.")
	}
	for i := range queries {
		q := &queries[i]
		if q.label != "" {
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
	return queries, nil
}

func readQuery(call *api.Call, at string, in *MetricDataQuery) (q query, err error) {
	switch {
	case in.Id == nil:
		return q, unfit("The parameter %sId is required.", at)
	case !queryID.MatchString(*in.Id) || len(*in.Id) > maxName:
		return q, unfit("The value %s for parameter %sId is not matching the expected pattern ^[a-z][a-zA-Z0-9_]*$.", shorten(*in.Id), at)
	case in.Expression != nil && in.MetricStat != nil:
		return q, unfit("The parameters MetricDataQuery Expression and MetricStat are mutually exclusive and you have specified both.")
	case in.Expression != nil:
		return q, unfit("The parameter %sExpression is not supported: metric math is not built yet.", at)
	case in.MetricStat == nil: // AWS's message ends so
		return q, unfit("The parameter %sMetricStat is required.\n", at)
	case in.MetricStat.Metric == nil:
		return q, unfit("The parameter %sMetricStat.Metric is required.", at)
	case in.MetricStat.Period == nil:
		return q, unfit("The parameter %sMetricStat.Period is required.", at)
	case in.MetricStat.Stat == nil:
		return q, unfit("The parameter %sMetricStat.Stat is required.", at)
	case in.AccountId != nil && *in.AccountId != call.Account:
		return q, unfit("The value %s for parameter %sAccountId is not an account that is linked to this one.", shorten(*in.AccountId), at)
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
