package alarm

// Query is one of an alarm's Metrics: a metric, or an expression on the others.
type Query struct {
	ID         string
	Account    string `json:",omitempty"` // AccountId, if it was given
	Expression string `json:",omitempty"` // empty: a metric
	Stat       *Stat  `json:",omitempty"` // nil: an expression
	Label      string `json:",omitempty"`
	Period     int    `json:",omitempty"` // seconds; 0: not given, beside that of Stat
	Watched    bool   `json:",omitempty"` // it returns data, as one of them does
}

// Stat is a statistic of a metric.
type Stat struct {
	Namespace, Name string
	Dimensions      []Dimension `json:",omitempty"`
	Statistic       string      // one of the five, or an extended one
	Unit            string      `json:",omitempty"` // empty: any
	Period          int         // seconds
}

// Stat is the metric of an alarm that has no Metrics.
func (c *Config) Stat() *Stat {
	return &Stat{Namespace: c.Namespace, Name: c.MetricName, Dimensions: c.Dimensions, Statistic: c.Statistic, Unit: c.Unit, Period: c.Period}
}

// Watched is the place of the query whose result is evaluated among the alarm's Metrics.
func (c *Config) Watched() int {
	for i := range c.Metrics {
		if c.Metrics[i].Watched {
			return i
		}
	}
	return 0 // cannot be: one of them is watched
}

type triggerMetric struct {
	Dimensions []dimension
	MetricName string
	Namespace  string
}

type triggerStat struct {
	Metric triggerMetric
	Period int
	Stat   string
	Unit   string `json:",omitempty"`
}

// triggerQuery is a query in a notification, with its members in the order of AWS's.
type triggerQuery struct {
	AccountID  string       `json:"AccountId,omitempty"`
	Expression string       `json:",omitempty"`
	ID         string       `json:"Id"`
	Label      string       `json:",omitempty"`
	MetricStat *triggerStat `json:",omitempty"`
	Period     int          `json:",omitempty"`
	ReturnData bool
}

// queryTrigger is the Trigger of a notification of an alarm on Metrics.
func (a *Alarm) queryTrigger() any {
	queries := make([]triggerQuery, len(a.Metrics))
	for i := range a.Metrics {
		q := &a.Metrics[i]
		queries[i] = triggerQuery{AccountID: q.Account, Expression: q.Expression, ID: q.ID, Label: q.Label, Period: q.Period, ReturnData: q.Watched}
		if s := q.Stat; s != nil {
			queries[i].MetricStat = &triggerStat{triggerMetric{dimensions(s.Dimensions), s.Name, s.Namespace}, s.Period, s.Statistic, s.Unit}
		}
	}
	return struct {
		evaluation
		Metrics []triggerQuery
	}{a.evaluation(), queries}
}

type eventMetric struct {
	Namespace  string            `json:"namespace"`
	Name       string            `json:"name"`
	Dimensions map[string]string `json:"dimensions"`
}

type eventStat struct {
	Metric eventMetric `json:"metric"`
	Period int         `json:"period"`
	Stat   string      `json:"stat"`
	Unit   string      `json:"unit,omitempty"`
}

// eventQuery is a query in the event for a function, and in the history.
type eventQuery struct {
	ID         string     `json:"id"`
	Expression string     `json:"expression,omitempty"`
	MetricStat *eventStat `json:"metricStat,omitempty"`
	Label      string     `json:"label,omitempty"`
	Period     int        `json:"period,omitempty"`
	AccountID  string     `json:"accountId,omitempty"`
	ReturnData bool       `json:"returnData"`
}

func (s *Stat) event() *eventStat {
	of := eventMetric{s.Namespace, s.Name, map[string]string{}}
	for _, d := range s.Dimensions {
		of.Dimensions[d.Name] = d.Value
	}
	return &eventStat{of, s.Period, s.Statistic, s.Unit}
}

// eventQueries are the alarm's Metrics; its metric is one with the Id m1.
func (a *Alarm) eventQueries() []eventQuery {
	if len(a.Metrics) == 0 {
		return []eventQuery{{ID: "m1", MetricStat: a.Stat().event(), ReturnData: true}}
	}
	queries := make([]eventQuery, len(a.Metrics))
	for i := range a.Metrics {
		q := &a.Metrics[i]
		queries[i] = eventQuery{ID: q.ID, Expression: q.Expression, Label: q.Label, Period: q.Period, AccountID: q.Account, ReturnData: q.Watched}
		if q.Stat != nil {
			queries[i].MetricStat = q.Stat.event()
		}
	}
	return queries
}
