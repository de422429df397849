package alarms

import (
	"encoding/json"

	"godwit.dev/godwit/internal/alarm"
)

// record is the persisted form of an alarm. One on Metrics, and a composite one, is for versions
// that know none an alarm on a metric that there cannot be, whose missing data keep the state: they
// evaluate it without an effect, and go on.
type record struct {
	*alarm.Alarm
	Statistic string
	Period    int
	Missing   alarm.Missing `json:",omitempty"`
	Treatment alarm.Missing `json:",omitempty"` // Missing of an alarm on Metrics
}

// The statistic in the record of an alarm on Metrics and of a composite one, and the period of that.
const (
	absent       = "SampleCount"
	absentPeriod = 60
)

func encodeAlarm(a *alarm.Alarm) []byte {
	r := record{Alarm: a, Statistic: a.Statistic, Period: a.Period, Missing: a.Missing}
	switch {
	case a.Kind() == alarm.Composite:
		r.Statistic, r.Period, r.Missing = absent, absentPeriod, alarm.TreatIgnore
	case len(a.Metrics) > 0:
		r.Statistic, r.Missing, r.Treatment = absent, alarm.TreatIgnore, a.Missing
	}
	return encode(r)
}

func decodeAlarm(value []byte) (*alarm.Alarm, error) {
	r := record{Alarm: &alarm.Alarm{}}
	if err := json.Unmarshal(value, &r); err != nil {
		return nil, err
	}
	a := r.Alarm
	if a.Kind() == alarm.Composite {
		return a, nil
	}
	a.Period = r.Period
	if len(a.Metrics) == 0 {
		a.Statistic, a.Missing = r.Statistic, r.Missing
	} else {
		a.Missing = r.Treatment
	}
	return a, nil
}

// lost reports whether an alarm is on nothing: a version that knows neither Metrics nor rules has
// changed it. Put may make it one of either kind.
func lost(a *alarm.Alarm) bool {
	return a.Kind() == alarm.Metric && a.MetricName == "" && len(a.Metrics) == 0
}
