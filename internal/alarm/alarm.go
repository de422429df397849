// Package alarm has the rules of CloudWatch alarms: their configuration, the state that
// results from a metric's datapoints, and the notifications. It is pure: time and datapoints
// are inputs of commands.
package alarm

import (
	"math"
	"time"
)

// State is the state of an alarm.
type State string

// The states.
const (
	OK               State = "OK"
	Alarming         State = "ALARM"
	InsufficientData State = "INSUFFICIENT_DATA"
)

// States are all states, in the order of AWS's model.
var States = []State{OK, Alarming, InsufficientData}

// Comparison is how a datapoint is compared with the threshold.
type Comparison string

// The comparisons.
const (
	GreaterOrEqual Comparison = "GreaterThanOrEqualToThreshold"
	Greater        Comparison = "GreaterThanThreshold"
	Less           Comparison = "LessThanThreshold"
	LessOrEqual    Comparison = "LessThanOrEqualToThreshold"
)

// Comparisons are all comparisons.
var Comparisons = []Comparison{GreaterOrEqual, Greater, Less, LessOrEqual}

// breaching compares a value with the threshold.
func (c Comparison) breaching(value, threshold float64) bool {
	switch c {
	case GreaterOrEqual:
		return value >= threshold
	case Greater:
		return value > threshold
	case Less:
		return value < threshold
	default:
		return value <= threshold
	}
}

func (c Comparison) text() string {
	switch c {
	case GreaterOrEqual:
		return "greater than or equal to"
	case Greater:
		return "greater than"
	case Less:
		return "less than"
	default:
		return "less than or equal to"
	}
}

// Missing is how periods without data are treated.
type Missing string

// The treatments. TreatIgnore keeps the state.
const (
	TreatMissing      Missing = "missing"
	TreatIgnore       Missing = "ignore"
	TreatBreaching    Missing = "breaching"
	TreatNotBreaching Missing = "notBreaching"
)

// Treatments are all treatments.
var Treatments = []Missing{TreatBreaching, TreatNotBreaching, TreatIgnore, TreatMissing}

// Ignore is the LowSamples value that keeps the state while a percentile has too few samples.
const Ignore = "ignore"

// Dimension is one of the dimensions of an alarm's metric.
type Dimension struct{ Name, Value string }

// Config is the configuration of an alarm.
type Config struct {
	Description         *string `json:",omitempty"`
	Disabled            bool    `json:",omitempty"` // no actions are executed
	OKActions           []string
	AlarmActions        []string
	InsufficientActions []string

	// Rule is what a composite alarm is on in place of metrics: the states of other alarms. Then
	// all that follows its Suppressor is empty.
	Rule       string      `json:",omitempty"`
	Suppressor *Suppressor `json:",omitempty"` // nil: none

	// Metrics are the queries that the alarm is on in place of one metric. Then what follows is
	// empty, but for Period, which all of them have.
	Metrics []Query `json:",omitempty"`

	Namespace, MetricName string
	Dimensions            []Dimension
	Statistic             string  // one of the five, or an extended one
	Extended              bool    `json:",omitempty"`
	Percentile            float64 `json:",omitempty"` // as a fraction; 0 if the statistic is not a percentile
	Unit                  string  `json:",omitempty"` // empty: any
	Period                int     // seconds

	EvaluationPeriods int
	DatapointsToAlarm int `json:",omitempty"` // 0: not set; all EvaluationPeriods
	Threshold         float64
	Comparison        Comparison
	Missing           Missing `json:",omitempty"` // empty: TreatMissing
	LowSamples        string  `json:",omitempty"` // empty: evaluated
}

// Kind is the type of an alarm, as AWS's API calls it.
type Kind string

// The kinds of alarms.
const (
	Metric    Kind = "MetricAlarm"
	Composite Kind = "CompositeAlarm"
)

// Kind is the alarm's.
func (c *Config) Kind() Kind {
	if c.Rule != "" {
		return Composite
	}
	return Metric
}

// Short reports whether it is an alarm on metrics with a period below a minute.
func (c *Config) Short() bool { return c.Kind() == Metric && c.Period < 60 }

// needed is the number of datapoints that must be breaching.
func (c *Config) needed() int {
	if c.DatapointsToAlarm > 0 {
		return c.DatapointsToAlarm
	}
	return c.EvaluationPeriods
}

func (c *Config) missing() Missing {
	if c.Missing == "" {
		return TreatMissing
	}
	return c.Missing
}

// Looked is the number of periods that an evaluation reads: more than it needs, so that late
// data still count.
func (c *Config) Looked() int { return c.EvaluationPeriods + 2 }

// significant reports whether there are enough samples for the percentile. Source:
// "Percentile-based CloudWatch alarms and low data samples".
func (c *Config) significant(samples float64) bool {
	switch p := c.Percentile; {
	case p == 0 || c.LowSamples != Ignore:
		return true
	case p >= 0.5:
		return samples*(1-p) >= 10-1e-9
	default:
		return samples*p >= 10-1e-9
	}
}

// Actions are the actions on entering a state.
func (c *Config) Actions(s State) []string {
	switch {
	case c.Disabled:
		return nil
	case s == OK:
		return c.OKActions
	case s == Alarming:
		return c.AlarmActions
	default:
		return c.InsufficientActions
	}
}

// Status is a state with its reason.
type Status struct {
	State  State
	Reason string
	Data   string `json:",omitempty"` // StateReasonData, a JSON document; empty: none
}

// Alarm is an alarm with its state. Times are in UTC, to the millisecond.
type Alarm struct {
	Account, Region, Name string
	Config
	Status
	Configured   time.Time
	Updated      time.Time         // of the state
	Transitioned time.Time         // when the state last changed
	Suppressed   *Suppression      `json:",omitempty"` // nil: actions are executed
	Tags         map[string]string `json:",omitempty"`
}

// ARN is the alarm's ARN.
func (a *Alarm) ARN() string {
	return "arn:aws:cloudwatch:" + a.Region + ":" + a.Account + ":alarm:" + a.Name
}

// New makes an alarm with insufficient data.
func New(account, region, name string, c Config, tags map[string]string, now time.Time) Alarm {
	return Alarm{
		Account: account, Region: region, Name: name, Config: c, Tags: tags,
		Status:     Status{State: InsufficientData, Reason: "Unchecked: Initial alarm creation"},
		Configured: now, Updated: now, Transitioned: now,
	}
}

// Reconfigure replaces an alarm's configuration. The state is kept.
func (a *Alarm) Reconfigure(c Config, now time.Time) { a.Config, a.Configured = c, now }

// Enter sets the state of an alarm. changed says that it is another one: then its actions are
// due.
func (a *Alarm) Enter(s Status, now time.Time) (changed bool) {
	changed = a.State != s.State
	a.Status, a.Updated = s, now
	if changed {
		a.Transitioned = now
	}
	return changed
}

// Point is a period of an alarm's metric, or of the result of its Metrics.
type Point struct {
	At      time.Time // its beginning
	Real    bool      // there are data
	Samples float64   // 0: the value is computed, and has none
	Value   float64
}

// Judge evaluates datapoints. points are the latest periods, at most Looked, newest first.
// change is false if the state stays unchanged. Source: "Configuring how CloudWatch alarms
// treat missing data".
func (a *Alarm) Judge(points []Point, now time.Time) (s Status, change bool) {
	j := judgement{c: &a.Config, now: now}
	j.choose(points)
	state, decided := j.decide()
	if !decided || state == a.State {
		return a.Status, false
	}
	return Status{State: state, Reason: j.reason(state), Data: j.data()}, true
}

// judgement is an evaluation in progress.
type judgement struct {
	c       *Config
	now     time.Time
	used    []Point // the evaluated points, newest first; those without data are filled in, or unknown
	real    int     // those of used with data
	breach  int     // those of real that breach
	filled  int     // missing ones that the treatment fills in
	oldest  int     // the age in periods of the oldest with data; 1 is the newest
	unsound bool    // a percentile has too few samples
}

// choose selects the points to evaluate: the newest ones with data if there are enough, else
// all with data, and missing ones according to the treatment.
func (j *judgement) choose(points []Point) {
	n := j.c.EvaluationPeriods
	real := 0
	for _, p := range points {
		if p.Real {
			real++
		}
	}
	gaps := max(n-real, 0)
	fills := j.c.missing() == TreatBreaching || j.c.missing() == TreatNotBreaching || real == 0
	for i, p := range points {
		switch {
		case p.Real && j.real < n:
			j.real++
			j.oldest = i + 1
			if j.c.Comparison.breaching(p.Value, j.c.Threshold) {
				j.breach++
			}
			j.unsound = j.unsound || !j.c.significant(p.Samples)
		case !p.Real && fills && gaps > 0:
			gaps--
			j.filled++
		default:
			continue
		}
		j.used = append(j.used, p)
	}
}

// decide returns the state; decided is false if it stays unchanged.
func (j *judgement) decide() (s State, decided bool) {
	n, m := j.c.EvaluationPeriods, j.c.needed()
	treatment := j.c.missing()
	if j.unsound {
		return "", false
	}
	if j.real >= n {
		return j.of(j.breach >= m), true
	}
	switch treatment {
	case TreatBreaching:
		return j.of(j.breach+n-j.real >= m), true
	case TreatNotBreaching:
		return j.of(j.breach >= m), true
	default:
	}
	switch {
	case j.real == 0:
		return InsufficientData, treatment == TreatMissing
	case j.breach >= m:
		return Alarming, true
	case j.breach == j.real && j.oldest >= m: // all known points breach, and have for long enough
		return Alarming, treatment == TreatMissing
	}
	return OK, true
}

func (j *judgement) of(alarming bool) State {
	if alarming {
		return Alarming
	}
	return OK
}

// Finite reports whether x is a valid threshold.
func Finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
