package alarms

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/alarm"
	"godwit.dev/godwit/internal/metricmath"
)

// onQueries is the configuration of an alarm on an expression of n's metric m, m1.
func onQueries(expression string, periods, seconds int) alarm.Config {
	return alarm.Config{
		Metrics: []alarm.Query{
			{ID: "m1", Stat: &alarm.Stat{Namespace: "n", Name: "m", Statistic: "Maximum", Period: seconds}},
			{ID: "e1", Expression: expression, Watched: true},
		},
		Period: seconds, EvaluationPeriods: periods, Threshold: 10, Comparison: alarm.Greater, AlarmActions: []string{topic},
	}
}

// An alarm on an expression is there after a restart, and evaluated. What cannot be evaluated is
// without data, and does not block others.
func TestQueriesAreKept(t *testing.T) {
	w := newWorld(t)
	e := w.open(w.store)
	broken := onQueries("MEDIAN(m1)", 1, 60) // of another version
	broken.Missing = alarm.TreatBreaching
	for name, c := range map[string]alarm.Config{"a": broken, "double": onQueries("m1 * 2", 1, 60), "plain": config()} {
		if err := e.Put(id(name), c, nil); err != nil {
			t.Fatal(err)
		}
	}
	states := func(e *Engine) string {
		var all []string
		for _, a := range e.List(scope, func(*alarm.Alarm) bool { return true }) {
			all = append(all, a.Name+" "+string(a.State))
		}
		return strings.Join(all, ", ")
	}
	e = w.open(w.store)
	if err := w.pass(e, 6); err != nil {
		t.Fatal(err)
	}
	if got, want := states(e), "a ALARM, double ALARM, plain OK"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	a, _ := e.Get(id("double"))
	if want := fmt.Sprintf("Threshold Crossed: 1 datapoint [12.0 (%s)] was greater than the threshold (10.0).", start.Format("02/01/06 15:04:05")); a.Reason != want {
		t.Errorf("%s, want %s", a.Reason, want)
	}
	if err := w.pass(e, 3); err != nil {
		t.Fatal(err)
	}
	if got, want := states(w.open(w.store)), "a ALARM, double OK, plain OK"; got != want {
		t.Errorf("after a restart: %s, want %s", got, want)
	}
}

// Check bounds what the evaluation of an alarm takes, whatever its values are.
func TestCheck(t *testing.T) {
	long := "m1" + strings.Repeat("+m1", 600)
	for _, tc := range []struct {
		c    alarm.Config
		want error
	}{
		{onQueries(long, 10, 60), nil},
		{onQueries(long, 1440, 60), metricmath.ErrDatapoints},
		{onQueries("m1/(m1-m1)", 8640, 10), nil},
		{onQueries("SUM(["+strings.Repeat("m1,", 30)+"m1])", 8640, 10), metricmath.ErrDatapoints},
		{onQueries("FILL(m1, 0)", 8640, 10), nil},
		{onQueries("m2", 1, 60), metricmath.ErrUnknown},
	} {
		if err := Check(&tc.c); !errors.Is(err, tc.want) {
			t.Errorf("%.40s of %d periods: %v, want %v", tc.c.Metrics[1].Expression, tc.c.EvaluationPeriods, err, tc.want)
		}
	}
}
