package cloudwatch

import (
	"encoding/json"

	"godwit.dev/godwit/internal/alarm"
	"godwit.dev/godwit/internal/api"
)

// The limits of an alarm's Metrics. Source: CloudWatch's API reference.
const (
	maxAlarmMetrics     = 10
	maxAlarmExpressions = 10
	maxAlarmQueries     = 120 << 10 // bytes of JSON; AWS's limit is that of the whole request
)

// errQueries is all that AWS says of a query with a fault.
func errQueries() error { return unfit("Invalid metrics list") }

// checkAlone refuses what Metrics take the place of.
func checkAlone(in *PutMetricAlarmInput) error {
	for _, member := range []struct {
		name  string
		given bool
	}{
		{"Namespace", in.Namespace != nil},
		{"MetricName", in.MetricName != nil},
		{"Dimensions", len(in.Dimensions) > 0},
		{"Period", in.Period != nil},
		{"Unit", in.Unit != nil},
		{"Statistic", in.Statistic != nil},
		{"ExtendedStatistic", in.ExtendedStatistic != nil},
	} {
		if member.given {
			return unfit("%s should not be set if list of Metrics is set.", member.name)
		}
	}
	if in.EvaluateLowSampleCountPercentile != nil {
		return unfit("The parameter EvaluateLowSampleCountPercentile is for percentiles only.")
	}
	return nil
}

// readAlarmQueries validates an alarm's Metrics, but for how much their evaluation takes, and
// sets them and their period.
func readAlarmQueries(call *api.Call, c *alarm.Config, in []MetricDataQuery) error {
	if len(in) > maxAlarmMetrics+maxAlarmExpressions {
		return errQueries()
	}
	queries := make([]query, len(in))
	ids := make(map[string]bool, len(in))
	metrics, watched := 0, 0
	for i := range in {
		if account := in[i].AccountId; account != nil && *account != call.Account {
			return unfit("The value %s for parameter Metrics.member.%d.AccountId is not an account that is linked to this one.", shorten(*account), i+1)
		}
		q, err := readQuery(call, i+1, &in[i])
		if err != nil || ids[q.id] {
			return errQueries()
		}
		queries[i], ids[q.id] = q, true
		if q.expression == "" {
			metrics++
		}
		if q.returned {
			watched++
		}
	}
	switch {
	case metrics > maxAlarmMetrics || len(in)-metrics > maxAlarmExpressions:
		return errQueries()
	case watched != 1:
		return unfit("Exactly one element of the metrics list should return data.")
	}
	program, err := compile(queries)
	if err != nil {
		return err
	}
	searches := program != nil && len(program.Searches()) > 0
	for i := range queries {
		if program != nil && program.Array(i) && !searches {
			return unfit("Metrics expression that return multi time series are only allowed for MetricsInsights expression with an ORDER BY clause")
		}
		c.Metrics = append(c.Metrics, keptQuery(&in[i], queries[i].returned))
	}
	if c.Period, err = onePeriod(c.Metrics); err != nil {
		return err
	}
	if searches { // AWS says so once there is a Period
		return errSearchInAlarm()
	}
	if text, err := json.Marshal(c.Metrics); err != nil || len(text) > maxAlarmQueries {
		return unfit("The Metrics of an alarm must not be larger than %d bytes.", maxAlarmQueries)
	}
	return nil
}

// onePeriod is the period of all queries, in seconds.
func onePeriod(queries []alarm.Query) (period int, err error) {
	for i := range queries {
		given := []int{queries[i].Period}
		if s := queries[i].Stat; s != nil {
			given = append(given, s.Period)
		}
		for _, p := range given {
			if p != 0 && period != 0 && p != period {
				return 0, unfit("The Metrics of an alarm must have one period, and have %d and %d.", period, p)
			}
			if p != 0 {
				period = p
			}
		}
	}
	if period == 0 {
		return 0, unfit("Period must not be null")
	}
	return period, nil
}

// keptQuery is a query that is valid in its persisted form.
func keptQuery(in *MetricDataQuery, watched bool) alarm.Query {
	q := alarm.Query{
		ID: *in.Id, Account: api.Deref(in.AccountId), Expression: api.Deref(in.Expression), Label: api.Deref(in.Label), Period: api.Deref(in.Period), Watched: watched,
	}
	if s := in.MetricStat; s != nil {
		q.Stat = &alarm.Stat{
			Namespace: *s.Metric.Namespace, Name: *s.Metric.MetricName, Dimensions: keptDimensions(s.Metric.Dimensions), Statistic: *s.Stat, Unit: api.Deref(s.Unit), Period: *s.Period,
		}
	}
	return q
}

// keptDimensions are dimensions that are valid in their persisted form.
func keptDimensions(all []Dimension) (kept []alarm.Dimension) {
	for _, d := range all {
		kept = append(kept, alarm.Dimension{Name: *d.Name, Value: *d.Value})
	}
	return kept
}

// showQuery is a query in an answer.
func showQuery(q *alarm.Query) MetricDataQuery {
	shown := MetricDataQuery{Id: &q.ID, AccountId: given(&q.Account), Expression: given(&q.Expression), Label: given(&q.Label), ReturnData: &q.Watched}
	if q.Period > 0 {
		shown.Period = &q.Period
	}
	if s := q.Stat; s != nil {
		shown.MetricStat = &MetricStat{
			Metric: &Metric{Namespace: &s.Namespace, MetricName: &s.Name, Dimensions: ownDimensions(s.Dimensions)}, Period: &s.Period, Stat: &s.Statistic, Unit: given(&s.Unit),
		}
	}
	return shown
}

// given is a text that may be missing, which is then empty.
func given(text *string) *string {
	if *text == "" {
		return nil
	}
	return text
}

func ownDimensions(all []alarm.Dimension) []Dimension {
	shown := make([]Dimension, len(all))
	for i := range all {
		shown[i] = Dimension{&all[i].Name, &all[i].Value}
	}
	return shown
}
