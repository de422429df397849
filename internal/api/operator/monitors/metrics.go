package monitors

import (
	"cmp"
	"context"
	"strings"
	"time"

	"godwit.dev/godwit/internal/alarm"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/monitor/alarms"
	"godwit.dev/godwit/internal/monitor/metrics"
)

// GetMetrics asks for the metrics of a resource.
type GetMetrics struct {
	ARN   string `query:"arn" required:"true" max:"2048" doc:"Of a queue, a topic, a function, a delivery stream or an alarm, of which it is the metric or the expression that it looks at."`
	Hours int    `query:"hours" min:"1" max:"10920" default:"1" doc:"How far back."`
}

// About implements rest.About.
func (g *GetMetrics) About() string { return g.ARN }

// Metrics are time series over the same range.
type Metrics struct {
	Series        []Series  `json:"series"`
	From          time.Time `json:"from"`
	To            time.Time `json:"to"`
	PeriodSeconds int64     `json:"periodSeconds"`
}

// Series is the values of a metric.
type Series struct {
	Namespace string      `json:"namespace"`
	Name      string      `json:"name"`
	Unit      string      `json:"unit"`
	Statistic string      `json:"statistic" doc:"What the values are of each period; of an alarm's expression, that, and the namespace is empty."`
	Points    [][]float64 `json:"points" doc:"The start of a period in seconds since 1970, and the value; periods without data are left out. 500 at most."`
}

const (
	maxSeries = 40  // of an answer
	maxPoints = 500 // of a series
)

// metricsOf is the namespace and the dimension of a resource's metrics.
func metricsOf(a arn.ARN) (namespace string, d metrics.Dimension, ok bool) {
	_, _, subscription := a.SplitSubscription()
	switch {
	case a.Service == "sqs":
		return "AWS/SQS", metrics.Dimension{Name: "QueueName", Value: a.Resource}, true
	case a.Service == "sns" && !subscription && !strings.Contains(a.Resource, "/"):
		return "AWS/SNS", metrics.Dimension{Name: "TopicName", Value: a.Resource}, true
	case a.Service == "lambda":
		return "AWS/Lambda", metrics.Dimension{Name: "FunctionName", Value: a.FunctionName()}, true
	case a.Service == "firehose":
		return "AWS/Firehose", metrics.Dimension{Name: "DeliveryStreamName", Value: strings.TrimPrefix(a.Resource, "deliverystream/")}, true
	default:
		return "", d, false
	}
}

// statisticOf is the most useful statistic of a metric.
func statisticOf(name, unit string) string {
	switch {
	case strings.HasPrefix(name, "Approximate"), name == "ConcurrentExecutions", strings.HasSuffix(name, "Age"), strings.HasSuffix(name, "DataFreshness"):
		return "Maximum"
	case unit == "Count":
		return "Sum"
	default:
		return "Average"
	}
}

// period is the length of the periods for a range of hours. It is a multiple of the
// resolution that data of that age are stored with.
func period(hours int) int64 {
	least := (int64(hours)*3600 + maxPoints - 2) / (maxPoints - 1)
	step := int64(60)
	switch {
	case hours > 63*24:
		step = 3600
	case hours > 15*24:
		step = 300
	}
	return (least + step - 1) / step * step
}

// GetMetrics gives the metrics of a resource.
func (m *Monitors) GetMetrics(ctx context.Context, _ *rest.Call, in *GetMetrics) (*Metrics, error) {
	now := m.Metrics.Now()
	out := &Metrics{Series: []Series{}, PeriodSeconds: period(in.Hours), To: now.UTC().Truncate(time.Second)}
	from := (now.Unix() - int64(in.Hours)*3600) / out.PeriodSeconds * out.PeriodSeconds
	out.From = time.Unix(from, 0).UTC()
	if id, err := alarmID(in.ARN); err == nil {
		a, ok := m.Alarms.Get(id)
		if !ok {
			return nil, rest.NotFound("there is no such alarm")
		}
		return out, m.ofAlarm(out, &a)
	}
	a, err := arn.Parse(in.ARN)
	if err != nil {
		return nil, rest.BadRequest("arn: want an ARN")
	}
	namespace, d, ok := metricsOf(a)
	if !ok {
		return nil, rest.BadRequest("arn: want that of a queue, a topic, a function, a delivery stream or an alarm")
	}
	only := metrics.Dimensions(d)
	filter := metrics.Filter{
		Scope: metrics.Scope{Account: a.Account, Region: a.Region}, Namespace: namespace, Dimensions: []metrics.Dimension{d}, Since: metrics.Minute(out.From),
	}
	var all []metrics.Metric
	for after := []byte(nil); len(all) < maxSeries; {
		if after, err = m.Metrics.List(ctx, filter, after, func(one metrics.Metric) bool {
			if one.Dimensions == only && len(all) < maxSeries {
				all = append(all, one)
			}
			return len(all) < maxSeries
		}); err != nil {
			return nil, err
		}
		if after == nil {
			break
		}
	}
	for i := range all {
		units, err := m.Metrics.Units(all[i])
		if err != nil {
			return nil, err
		}
		for _, unit := range units {
			if err := m.add(out, all[i], unit, statisticOf(all[i].Name, unit)); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// ofAlarm adds the metric of an alarm, or what it makes of its Metrics; a composite alarm has none.
func (m *Monitors) ofAlarm(out *Metrics, a *alarm.Alarm) error {
	if a.Kind() == alarm.Composite {
		return nil
	}
	of := a.Stat()
	if len(a.Metrics) > 0 {
		q := &a.Metrics[a.Watched()]
		if q.Expression != "" {
			return m.addExpression(out, a, q)
		}
		of = q.Stat
	}
	one := alarms.MetricOf(a, of)
	units := []string{of.Unit}
	if of.Unit == "" {
		var err error
		if units, err = m.Metrics.Units(one); err != nil {
			return err
		}
	}
	for _, unit := range units {
		if err := m.add(out, one, unit, of.Statistic); err != nil {
			return err
		}
	}
	return nil
}

// addExpression adds the values of the expression that an alarm watches.
func (m *Monitors) addExpression(out *Metrics, a *alarm.Alarm, q *alarm.Query) error {
	s := Series{Name: cmp.Or(q.Label, q.ID), Statistic: q.Expression, Points: [][]float64{}}
	values, err := m.Alarms.Values(a, metrics.Periods{From: out.From.Unix(), To: out.To.Unix() + 1, Length: out.PeriodSeconds})
	if err != nil && fault.KindOf(err) != fault.ValidationFailed {
		return err
	}
	for _, v := range values[:min(len(values), maxPoints)] {
		s.Points = append(s.Points, []float64{float64(v.At), v.Value})
	}
	out.Series = append(out.Series, s)
	return nil
}

// add adds a metric's values.
func (m *Monitors) add(out *Metrics, one metrics.Metric, unit, statistic string) error {
	of, ok := metrics.ParseStatistic(statistic)
	if !ok || len(out.Series) == maxSeries {
		return nil
	}
	s := Series{Namespace: one.Namespace, Name: one.Name, Unit: unit, Statistic: statistic, Points: [][]float64{}}
	err := m.Metrics.Each(one, unit, out.From.Unix(), out.To.Unix()+1, out.PeriodSeconds, func(start int64, set *metrics.Set) {
		if value, ok := of.Of(set); ok && len(s.Points) < maxPoints {
			s.Points = append(s.Points, []float64{float64(start), value})
		}
	})
	out.Series = append(out.Series, s)
	return err
}
