package alarm

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const (
	// moment is the format of times in reasons and notifications.
	moment = "2006-01-02T15:04:05.000-0700"
	// shown bounds the datapoints in a reason, and recorded those in the data of a reason.
	shown    = 5
	recorded = 30
)

// double formats a number like Java's Double.toString.
func double(f float64) string {
	switch abs := math.Abs(f); {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return "0.0" // cannot be: metrics and thresholds are finite
	case abs != 0 && (abs < 1e-3 || abs >= 1e7):
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'E', -1, 64), "E")
		if !strings.Contains(mantissa, ".") {
			mantissa += ".0"
		}
		n, err := strconv.Atoi(exponent)
		if err != nil {
			n = 0 // FormatFloat writes another digit there
		}
		return mantissa + "E" + strconv.Itoa(n)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// number is a number that is marshalled in Java's form.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) { return []byte(double(float64(n))), nil }

func plural(n int, one string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, one)
	}
	return fmt.Sprintf("%d %ss", n, one)
}

func were(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// reason is the reason for a new state.
func (j *judgement) reason(s State) string {
	if s == InsufficientData {
		return fmt.Sprintf("Insufficient Data: %s %s unknown.", plural(j.filled, "datapoint"), were(j.filled))
	}
	var listed []string
	few := s == OK && j.breach == j.real && j.filled == 0 // all known points breach, but they are too few
	breaching := s == Alarming || few
	for _, p := range j.used {
		if p.Real && j.c.Comparison.breaching(p.Value, j.c.Threshold) == breaching {
			listed = append(listed, fmt.Sprintf("%s (%s)", double(p.Value), p.At.UTC().Format("02/01/06 15:04:05")))
		}
	}
	treated := ""
	switch unknown := j.c.EvaluationPeriods - j.real; {
	case few:
		treated = fmt.Sprintf("%s %s unknown", plural(unknown, "datapoint"), were(unknown))
	case j.filled == 0:
	case j.c.missing() == TreatBreaching && s == Alarming:
		treated = fmt.Sprintf("%s %s treated as [Breaching]", plural(j.filled, "missing datapoint"), were(j.filled))
	case j.c.missing() == TreatNotBreaching && s == OK:
		treated = fmt.Sprintf("%s %s treated as [NonBreaching]", plural(j.filled, "missing datapoint"), were(j.filled))
	}
	if len(listed) == 0 {
		return fmt.Sprintf("Threshold Crossed: no datapoints were received for %s and %s.", plural(j.filled, "period"), treated)
	}
	n, not := len(listed), ""
	if !breaching {
		not = "not "
	}
	count := plural(n, "datapoint")
	if j.c.DatapointsToAlarm > 0 {
		count = fmt.Sprintf("%d out of the last %s", n, plural(j.c.EvaluationPeriods, "datapoint"))
		if j.c.EvaluationPeriods == 1 {
			count = fmt.Sprintf("%d out of the last 1 datapoints", n)
		}
	}
	crossed := fmt.Sprintf("%s %sthe threshold (%s)", were(n)+" "+not+j.c.Comparison.text(), "", double(j.c.Threshold))
	text := fmt.Sprintf("Threshold Crossed: %s [%s] %s", count, strings.Join(listed, ", "), crossed)
	if n > shown {
		text = fmt.Sprintf("Threshold Crossed: %s %s. The most recent datapoints which crossed the threshold: [%s]", count, crossed, strings.Join(listed[:shown], ", "))
	}
	if treated != "" {
		text += " and " + treated
	}
	if j.c.DatapointsToAlarm > 0 {
		from, to, least := OK, Alarming, j.c.needed()
		if !breaching {
			from, to, least = Alarming, OK, j.c.EvaluationPeriods-j.c.needed()+1
		}
		text += fmt.Sprintf(" (minimum %s for %s -> %s transition)", plural(least, "datapoint"), from, to)
	}
	return text + "."
}

// evaluated is a datapoint in the data of a reason; a missing one has only its time, and one of
// an alarm on Metrics no sample count.
type evaluated struct {
	Timestamp   string  `json:"timestamp"`
	SampleCount *number `json:"sampleCount,omitempty"`
	Value       *number `json:"value,omitempty"`
}

// data is StateReasonData.
func (j *judgement) data() string {
	d := struct {
		Version   string      `json:"version"`
		Query     string      `json:"queryDate"`
		Start     string      `json:"startDate,omitempty"`
		Unit      string      `json:"unit,omitempty"`
		Statistic string      `json:"statistic,omitempty"`
		Period    int         `json:"period"`
		Recent    []number    `json:"recentDatapoints"`
		Threshold number      `json:"threshold"`
		Evaluated []evaluated `json:"evaluatedDatapoints"`
	}{
		Version: "1.0", Query: j.now.UTC().Format(moment), Unit: j.c.Unit, Statistic: j.c.Statistic, Period: j.c.Period,
		Recent: []number{}, Threshold: number(j.c.Threshold), Evaluated: []evaluated{},
	}
	used := j.used[:min(len(j.used), recorded)]
	for i, p := range used {
		e := evaluated{Timestamp: p.At.UTC().Format(moment)}
		if p.Real {
			samples, value := number(p.Samples), number(p.Value)
			if e.Value = &value; len(j.c.Metrics) == 0 {
				e.SampleCount = &samples
			}
			d.Start = e.Timestamp
		}
		d.Evaluated = append(d.Evaluated, e)
		if last := used[len(used)-1-i]; last.Real {
			d.Recent = append(d.Recent, number(last.Value))
		}
	}
	return marshal(d)
}

// marshal is the JSON of a value that can always be marshalled, without HTML escaping.
func marshal(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "{}" // texts and finite numbers can always be marshalled
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// written is a time in the documents of alarms.
func written(t time.Time) string { return t.UTC().Format(moment) }
