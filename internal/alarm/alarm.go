// Package alarm holds the rules of CloudWatch's alarms: how one is configured,
// what state its metric's datapoints put it into, and which notifications follow. It
// is pure: time and datapoints travel inside the commands.
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

// Comparison is how a datapoint is held against the threshold.
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

// breaching holds a value against the threshold.
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

// The treatments. Periods that are ignored keep the state.
const (
	TreatMissing      Missing = "missing"
	TreatIgnore       Missing = "ignore"
	TreatBreaching    Missing = "breaching"
	TreatNotBreaching Missing = "notBreaching"
)

// Treatments are all treatments.
var Treatments = []Missing{TreatBreaching, TreatNotBreaching, TreatIgnore, TreatMissing}

// Ignore is the LowSamples that keeps the state while a percentile depends on few
// samples.
const Ignore = "ignore"

// Dimension is one of the dimensions of an alarm's metric.
type Dimension struct{ Name, Value string }

// Config is what an alarm's owner sets.
type Config struct {
	Description         *string `json:",omitempty"`
	Disabled            bool    `json:",omitempty"` // its actions are
	OKActions           []string
	AlarmActions        []string
	InsufficientActions []string

	Namespace, MetricName string
	Dimensions            []Dimension
	Statistic             string  // one of the five, or an extended one
	Extended              bool    `json:",omitempty"`
	Percentile            float64 `json:",omitempty"` // of 1; 0 if the statistic is none
	Unit                  string  `json:",omitempty"` // empty: any
	Period                int     // seconds

	EvaluationPeriods int
	DatapointsToAlarm int `json:",omitempty"` // 0: as many as EvaluationPeriods, and not given
	Threshold         float64
	Comparison        Comparison
	Missing           Missing `json:",omitempty"` // empty: TreatMissing
	LowSamples        string  `json:",omitempty"` // empty: evaluated
}

// Short reports that the period is below a minute.
func (c *Config) Short() bool { return c.Period < 60 }

// needed is how many datapoints must be breaching.
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

// Looked is how many periods an evaluation looks at: more than decide, so that
// data that are late still count.
func (c *Config) Looked() int { return c.EvaluationPeriods + 2 }

// significant reports whether a percentile of so many samples means anything.
// Source: "Percentile-based CloudWatch alarms and low data samples".
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

// Actions are what is to be done on reaching a state.
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

// Status is a state with why it is so.
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
	Transitioned time.Time         // the last time the state became another
	Tags         map[string]string `json:",omitempty"`
}

// ARN names the alarm.
func (a *Alarm) ARN() string {
	return "arn:aws:cloudwatch:" + a.Region + ":" + a.Account + ":alarm:" + a.Name
}

// New makes an alarm, whose state is not known yet.
func New(account, region, name string, c Config, tags map[string]string, now time.Time) Alarm {
	return Alarm{
		Account: account, Region: region, Name: name, Config: c, Tags: tags,
		Status:     Status{State: InsufficientData, Reason: "Unchecked: Initial alarm creation"},
		Configured: now, Updated: now, Transitioned: now,
	}
}

// Reconfigure gives an alarm another configuration. It keeps its state.
func (a *Alarm) Reconfigure(c Config, now time.Time) { a.Config, a.Configured = c, now }

// Enter puts an alarm into a state. changed says that it was in another one: then
// its actions are due.
func (a *Alarm) Enter(s Status, now time.Time) (changed bool) {
	changed = a.State != s.State
	a.Status, a.Updated = s, now
	if changed {
		a.Transitioned = now
	}
	return changed
}

// Point is a period of an alarm's metric.
type Point struct {
	At      time.Time // its beginning
	Real    bool      // there are data
	Samples float64
	Value   float64
}

// Judge finds the state that datapoints put an alarm into. points are the latest
// periods, Looked of them or fewer, the newest first. change is false if the
// state stays as it is. Source: "Configuring how CloudWatch alarms treat missing
// data".
func (a *Alarm) Judge(points []Point, now time.Time) (s Status, change bool) {
	j := judgement{c: &a.Config, now: now}
	j.choose(points)
	state, decided := j.decide()
	if !decided || state == a.State {
		return a.Status, false
	}
	return Status{State: state, Reason: j.reason(state), Data: j.data()}, true
}

// judgement is an evaluation under way.
type judgement struct {
	c       *Config
	now     time.Time
	used    []Point // what decides, the newest first; those that are not real are filled in, or unknown
	real    int     // of them
	breach  int     // breaching real ones
	filled  int     // those that count as the treatment says
	oldest  int     // how many periods ago the oldest real one is; 1 is the newest
	unsound bool    // a percentile depends on too few samples
}

// choose finds the points that decide: the newest real ones where there are
// enough, else all real ones, and missing ones as the treatment has it.
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

// decide finds the state; decided is false where it stays.
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
	case j.breach == j.real && j.oldest >= m: // all that is known is breaching, and has been for long
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

// Finite reports whether x can be a threshold.
func Finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
