package alarms

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/alarm"
	"godwit.dev/godwit/internal/metricmath"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
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

// A version that knows no Metrics drops them from the record of an alarm. What it reads then is an
// alarm that it can evaluate, and whose state stays.
func TestQueriesOfAnotherVersion(t *testing.T) {
	w := newWorld(t)
	e := w.open(w.store)
	e.options.MaxAlarms = 0
	states := map[alarm.Missing]alarm.State{alarm.TreatMissing: alarm.OK, alarm.TreatBreaching: alarm.OK, alarm.TreatNotBreaching: alarm.Alarming, alarm.TreatIgnore: alarm.OK, "": alarm.OK}
	for missing, state := range states {
		c := onQueries("m1 * 2", 1, 60)
		c.Missing = missing
		if err := e.Put(id("a"+string(missing)), c, nil); err != nil {
			t.Fatal(err)
		}
		if err := e.SetState(t.Context(), id("a"+string(missing)), alarm.Status{State: state}); err != nil {
			t.Fatal(err)
		}
	}
	e = w.open(w.store)
	for missing := range states {
		if a, _ := e.Get(id("a" + string(missing))); a.Missing != missing || a.Statistic != "" || len(a.Metrics) != 2 {
			t.Errorf("%s was kept as %+v", missing, a.Config)
		}
		key := id("a" + string(missing)).key(tagAlarm)
		value, _, err := w.store.Get(nil, key)
		var members map[string]json.RawMessage
		if err = cmp.Or(err, json.Unmarshal(value, &members)); err != nil {
			t.Fatal(err)
		}
		delete(members, "Metrics")
		var b mutation.Batch
		b.Set(key, encode(members))
		if err := w.store.Apply(store.Sync, &b); err != nil {
			t.Fatal(err)
		}
	}
	e = w.open(w.store)
	if err := w.pass(e, 20); err != nil {
		t.Fatal(err)
	}
	for missing, state := range states {
		if a, _ := e.Get(id("a" + string(missing))); a.State != state {
			t.Errorf("the state of %q is %s, was %s", missing, a.State, state)
		}
	}
}

// An alarm on a statistic of another version is without data, and does not block others.
func TestUnknownStatistic(t *testing.T) {
	w := newWorld(t)
	e := w.open(w.store)
	other, within := config(), onQueries("m1 * 2", 1, 60)
	other.Statistic, within.Metrics[0].Stat.Statistic = "Mode", "Mode"
	for name, c := range map[string]alarm.Config{"a": other, "b": within, "plain": config()} {
		if err := e.Put(id(name), c, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.pass(e, 20); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]alarm.State{"a": alarm.InsufficientData, "b": alarm.InsufficientData, "plain": alarm.Alarming} {
		if a, _ := e.Get(id(name)); a.State != want {
			t.Errorf("%s is %s, want %s", name, a.State, want)
		}
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
		{onQueries("1/(m1>1000)"+strings.Repeat("+1/(m1>1000)", 110), 1440, 60), metricmath.ErrDatapoints},
		{onQueries("IF(m1>1000,m1)"+strings.Repeat("+IF(m1>1000,m1)", 110), 1440, 60), metricmath.ErrDatapoints},
		{onQueries("IF(MAX(m1)>1000,m1,FILL(m1/0,TIME_SERIES(0)))"+strings.Repeat("+IF(MAX(m1)>1000,m1)", 110), 1440, 60), metricmath.ErrDatapoints},
		{onQueries("SUM(SLICE(["+strings.Repeat("m1,", 20)+"m1],0,MAX(m1)-98))", 8640, 10), metricmath.ErrDatapoints},
		{onQueries("m2", 1, 60), metricmath.ErrUnknown},
	} {
		if err := Check(&tc.c); !errors.Is(err, tc.want) {
			t.Errorf("%.40s of %d periods: %v, want %v", tc.c.Metrics[1].Expression, tc.c.EvaluationPeriods, err, tc.want)
		}
	}
}
