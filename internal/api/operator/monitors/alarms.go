package monitors

import (
	"context"
	"slices"
	"time"

	"godwit.dev/godwit/internal/alarm"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/monitor/alarms"
	"godwit.dev/godwit/internal/monitor/metrics"
)

// Alarm is an alarm in a list.
type Alarm struct {
	ARN            string      `json:"arn"`
	Name           string      `json:"name"`
	Description    string      `json:"description"`
	State          string      `json:"state" enum:"OK,ALARM,INSUFFICIENT_DATA"`
	Reason         string      `json:"reason"`
	Since          time.Time   `json:"since" doc:"When the state became what it is."`
	Namespace      string      `json:"namespace"`
	Metric         string      `json:"metric"`
	Dimensions     []Dimension `json:"dimensions"`
	Statistic      string      `json:"statistic"`
	Expression     string      `json:"expression" doc:"What the alarm is on in place of a metric, which is empty then: metric math on queries."`
	Queries        []Query     `json:"queries" doc:"What an alarm on Metrics is on, and none of another."`
	Rule           string      `json:"rule" doc:"What a composite alarm is on: the states of other alarms. Empty of one on metrics."`
	Suppressed     string      `json:"suppressed" enum:",Alarm,WaitPeriod,ExtensionPeriod" doc:"What keeps a composite alarm from executing actions; empty: nothing."`
	PeriodSeconds  int         `json:"periodSeconds"`
	Periods        int         `json:"periods" doc:"How many are looked at."`
	Datapoints     int         `json:"datapoints" doc:"How many of them have to be beyond the threshold."`
	Comparison     string      `json:"comparison"`
	Threshold      float64     `json:"threshold"`
	Missing        string      `json:"missing" doc:"How periods without data count."`
	ActionsEnabled bool        `json:"actionsEnabled"`
}

// Query is one of an alarm's Metrics: a metric, or an expression on others.
type Query struct {
	ID         string      `json:"id"`
	Label      string      `json:"label"`
	Expression string      `json:"expression" doc:"Empty of a metric."`
	Namespace  string      `json:"namespace"`
	Metric     string      `json:"metric"`
	Dimensions []Dimension `json:"dimensions"`
	Statistic  string      `json:"statistic"`
	Watched    bool        `json:"watched" doc:"Its values are held against the threshold."`
}

// Dimension is a name and a value that distinguish metrics of one name.
type Dimension struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// AlarmDetail describes an alarm in full.
type AlarmDetail struct {
	Alarm
	ConfiguredAt        time.Time         `json:"configuredAt"`
	AlarmActions        []string          `json:"alarmActions" doc:"What is notified when it becomes ALARM, by ARN."`
	OKActions           []string          `json:"okActions"`
	InsufficientActions []string          `json:"insufficientDataActions"`
	Tags                map[string]string `json:"tags"`
	History             []AlarmEvent      `json:"history" doc:"The latest 50, the newest first."`
}

// AlarmEvent is an item of an alarm's history.
type AlarmEvent struct {
	At      time.Time `json:"at"`
	Kind    string    `json:"kind" enum:"ConfigurationUpdate,StateUpdate,Action"`
	Summary string    `json:"summary"`
}

// ListAlarms asks for alarms.
type ListAlarms struct {
	State   string `query:"state" enum:"OK,ALARM,INSUFFICIENT_DATA"`
	Search  string `query:"search" max:"255" doc:"Part of the name, whatever its case."`
	Region  string `query:"region" max:"64" doc:"By default the server's."`
	Account string `query:"account" min:"12" max:"12" doc:"By default the server's."`
	Limit   int    `query:"limit" min:"1" max:"1000" default:"100"`
	Cursor  string `query:"cursor" max:"4096" doc:"next of the page before."`
}

// Alarms is a page of alarms, by name.
type Alarms struct {
	Alarms []Alarm `json:"alarms"`
	Next   *string `json:"next"`
}

// OneAlarm names an alarm.
type OneAlarm struct {
	ARN string `query:"arn" required:"true" max:"2048" doc:"The alarm's."`
}

// About implements rest.About.
func (a *OneAlarm) About() string { return a.ARN }

// ListAlarms lists alarms by name.
func (m *Monitors) ListAlarms(_ context.Context, _ *rest.Call, in *ListAlarms) (*Alarms, error) {
	from, err := rest.After(in.Cursor)
	if err != nil {
		return nil, err
	}
	scope := m.scope(in.Region, in.Account)
	var names []string // the matching names after the cursor
	m.Alarms.List(scope, func(a *alarm.Alarm) bool {
		if a.Name > from && (in.State == "" || string(a.State) == in.State) && rest.Matches(a.Name, in.Search) {
			names = append(names, a.Name)
		}
		return false
	})
	slices.Sort(names)
	out := &Alarms{Alarms: []Alarm{}}
	for i, name := range names[:min(in.Limit, len(names))] {
		if a, ok := m.Alarms.Get(alarms.ID{Account: scope.Account, Region: scope.Region, Name: name}); ok {
			out.Alarms = append(out.Alarms, shownAlarm(&a))
		}
		out.Next = rest.Next(name, i+1 < len(names))
	}
	return out, nil
}

func shownAlarm(a *alarm.Alarm) Alarm {
	shown := Alarm{
		ARN: a.ARN(), Name: a.Name, State: string(a.State), Reason: a.Reason, Since: a.Transitioned.UTC(),
		Namespace: a.Namespace, Metric: a.MetricName, Dimensions: shownDimensions(a.Dimensions), Statistic: a.Statistic, Queries: make([]Query, len(a.Metrics)),
		PeriodSeconds: a.Period, Periods: a.EvaluationPeriods, Datapoints: a.DatapointsToAlarm,
		Rule: a.Rule, Comparison: string(a.Comparison), Threshold: a.Threshold, Missing: string(a.Missing), ActionsEnabled: !a.Disabled,
	}
	if shown.Datapoints == 0 {
		shown.Datapoints = a.EvaluationPeriods
	}
	if a.Suppressed != nil {
		shown.Suppressed = string(a.Suppressed.By)
	}
	if shown.Missing == "" && a.Kind() == alarm.Metric {
		shown.Missing = string(alarm.TreatMissing)
	}
	if a.Description != nil {
		shown.Description = *a.Description
	}
	for i := range a.Metrics {
		q := shownQuery(&a.Metrics[i])
		if q.Watched { // an alarm on one metric is shown as such
			shown.Namespace, shown.Metric, shown.Dimensions, shown.Statistic, shown.Expression = q.Namespace, q.Metric, q.Dimensions, q.Statistic, q.Expression
		}
		shown.Queries[i] = q
	}
	return shown
}

func shownDimensions(all []alarm.Dimension) []Dimension {
	shown := make([]Dimension, len(all))
	for i, d := range all {
		shown[i] = Dimension{d.Name, d.Value}
	}
	return shown
}

func shownQuery(q *alarm.Query) Query {
	shown := Query{ID: q.ID, Label: q.Label, Expression: q.Expression, Dimensions: []Dimension{}, Watched: q.Watched}
	if s := q.Stat; s != nil {
		shown.Namespace, shown.Metric, shown.Dimensions, shown.Statistic = s.Namespace, s.Name, shownDimensions(s.Dimensions), s.Statistic
	}
	return shown
}

// alarmID reads the ARN of an alarm.
func alarmID(name string) (id alarms.ID, err error) {
	a, err := arn.Parse(name)
	short, ok := a.AlarmName()
	if err != nil || !ok || short == "" {
		return id, rest.BadRequest("arn: want the ARN of an alarm")
	}
	return alarms.ID{Account: a.Account, Region: a.Region, Name: short}, nil
}

// historyShown bounds the history items of an alarm in an answer.
const historyShown = 50

// GetAlarm describes one alarm.
func (m *Monitors) GetAlarm(_ context.Context, _ *rest.Call, in *OneAlarm) (*AlarmDetail, error) {
	id, err := alarmID(in.ARN)
	if err != nil {
		return nil, err
	}
	a, ok := m.Alarms.Get(id)
	if !ok {
		return nil, rest.NotFound("there is no such alarm")
	}
	out := &AlarmDetail{
		Alarm: shownAlarm(&a), ConfiguredAt: a.Configured.UTC(), AlarmActions: orNone(a.AlarmActions), OKActions: orNone(a.OKActions),
		InsufficientActions: orNone(a.InsufficientActions), Tags: a.Tags, History: []AlarmEvent{},
	}
	if out.Tags == nil {
		out.Tags = map[string]string{}
	}
	items, _, err := m.Alarms.History(alarms.HistoryQuery{
		Scope: metrics.Scope{Account: id.Account, Region: id.Region}, Name: id.Name, Descending: true, Limit: historyShown,
	})
	if err != nil {
		return nil, err
	}
	for i := range items {
		out.History = append(out.History, AlarmEvent{At: items[i].At.UTC(), Kind: string(items[i].Type), Summary: items[i].Summary})
	}
	return out, nil
}

func orNone(all []string) []string {
	if all == nil {
		return []string{}
	}
	return all
}
