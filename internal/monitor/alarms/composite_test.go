package alarms

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/alarm"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
)

func on(rule string) alarm.Config {
	return alarm.Config{Rule: rule, AlarmActions: []string{topic}, OKActions: []string{topic}}
}

func (w *world) states(e *Engine, names ...string) string {
	w.Helper()
	var all []string
	for _, name := range names {
		a, ok := e.Get(id(name))
		if !ok {
			w.Fatalf("there is no alarm %s", name)
		}
		all = append(all, string(a.State))
	}
	return strings.Join(all, " ")
}

// family opens an engine with the alarms a, b and s, on a metric.
func (w *world) family() *Engine {
	w.most = 1000
	e := w.open(w.store)
	if err := e.Start(); err != nil {
		w.Fatal(err)
	}
	for _, name := range []string{"a", "b", "s"} {
		c := config()
		c.AlarmActions = nil
		w.put(e, id(name), c)
	}
	return e
}

func TestComposite(t *testing.T) {
	w := newWorld(t)
	e := w.family()
	w.put(e, id("p"), on(`ALARM(a) AND NOT ALARM("arn:aws:cloudwatch:us-east-1:000000000000:alarm:b")`))
	w.put(e, id("q"), on("OK(p) OR AT_LEAST(2, INSUFFICIENT_DATA, (b, s))"))
	p, _ := e.Get(id("p"))
	child := func(name string, s alarm.State) string {
		return fmt.Sprintf(`{"arn":"arn:aws:cloudwatch:us-east-1:000000000000:alarm:%s","state":{"value":"%s","timestamp":"2026-05-26T14:20:00.000+0000"}}`, name, s)
	}
	want := alarm.Status{
		State: alarm.OK, Reason: "arn:aws:cloudwatch:us-east-1:000000000000:alarm:p was created and its alarm rule evaluates to OK",
		Data: `{"triggeringAlarms":[` + child("a", alarm.InsufficientData) + "," + child("b", alarm.InsufficientData) + `]}`,
	}
	if p.Status != want {
		t.Errorf("%+v", p.Status)
	}
	w.set(e, id("a"), alarm.Alarming)
	p, _ = e.Get(id("p"))
	want = alarm.Status{
		State: alarm.Alarming, Reason: "arn:aws:cloudwatch:us-east-1:000000000000:alarm:a transitioned to ALARM at Tuesday 26 May, 2026 14:20:00 UTC",
		Data: `{"triggeringAlarms":[` + child("a", alarm.Alarming) + `]}`,
	}
	if p.Status != want {
		t.Errorf("%+v", p.Status)
	}
	if got := w.states(e, "p", "q"); got != "ALARM ALARM" {
		t.Error(got)
	}
	e = w.open(w.store)
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	w.set(e, id("s"), alarm.OK)
	if got := w.states(e, "p", "q"); got != "ALARM OK" {
		t.Error(got)
	}
	if got := w.executor.told(topic); got != "OK ALARM ALARM OK" {
		t.Error(got)
	}
	w.put(e, id("p"), on("OK(s)"))
	if got := w.states(e, "p", "q"); got != "ALARM OK" { // as it was, and so is not told again
		t.Error(got)
	}
	w.put(e, id("p"), on("NOT OK(s)"))
	if p, _ = e.Get(id("p")); p.Reason != "arn:aws:cloudwatch:us-east-1:000000000000:alarm:p was updated and its alarm rule evaluates to OK" {
		t.Error(p.Reason)
	}
	w.set(e, id("p"), alarm.Alarming) // it stays until a child changes
	w.set(e, id("a"), alarm.OK)
	if got := w.states(e, "p", "q"); got != "ALARM OK" {
		t.Error(got)
	}
	w.set(e, id("s"), alarm.Alarming)
	w.set(e, id("s"), alarm.OK)
	if got := w.states(e, "p", "q"); got != "OK ALARM" {
		t.Error(got)
	}
	items, _, err := e.History(HistoryQuery{Scope: scope, Of: alarm.Composite, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for i := range items {
		if name := items[i].Name; name != "p" && name != "q" || !json.Valid([]byte(items[i].Data)) {
			t.Errorf("%+v", items[i])
		}
	}
	metric, _, err := e.History(HistoryQuery{Scope: scope, Of: alarm.Metric, Limit: 100})
	all, _, err2 := e.History(HistoryQuery{Scope: scope, Limit: 100})
	if err != nil || err2 != nil || len(metric) == 0 || len(metric)+len(items) != len(all) {
		t.Error(len(metric), len(items), len(all), err, err2)
	}
}

// An alarm is evaluated once, after all that it depends on, and so is not in a state between.
func TestCompositeOnce(t *testing.T) {
	w := newWorld(t)
	e := w.family()
	w.put(e, id("x"), on("ALARM(a)"))
	w.put(e, id("y"), on("NOT ALARM(x)"))
	w.put(e, id("always"), on("ALARM(x) OR ALARM(y)"))
	w.put(e, id("0"), on("OK(always)")) // before those that it depends on, by name
	if got := w.states(e, "x", "y", "always", "0"); got != "OK ALARM ALARM OK" {
		t.Fatal(got)
	}
	w.set(e, id("a"), alarm.Alarming)
	if got := w.states(e, "x", "y", "always", "0"); got != "ALARM OK ALARM OK" {
		t.Error(got)
	}
	for _, name := range []string{"always", "0"} {
		items, _, err := e.History(HistoryQuery{Scope: scope, Name: name, Type: alarm.StateUpdate, Limit: 100})
		if err != nil || len(items) != 1 {
			t.Error(name, items, err)
		}
	}
}

// Alarms in a cycle are not evaluated, nor are those that depend on it; without it they are.
func TestCompositeCycle(t *testing.T) {
	w := newWorld(t)
	e := w.family()
	w.put(e, id("x"), on("ALARM(a)"))
	w.put(e, id("y"), on("ALARM(x)"))
	w.put(e, id("z"), on("ALARM(y)"))
	w.put(e, id("x"), on("ALARM(a) OR ALARM(y)"))
	w.set(e, id("a"), alarm.Alarming)
	if got := w.states(e, "x", "y", "z"); got != "OK OK OK" {
		t.Error(got)
	}
	if err := e.Delete([]ID{id("x")}); err == nil {
		t.Error("an alarm of a cycle was deleted")
	}
	w.put(e, id("y"), on("FALSE"))
	w.put(e, id("x"), on("ALARM(a)"))
	w.put(e, id("y"), on("ALARM(x)"))
	if got := w.states(e, "x", "y", "z"); got != "ALARM ALARM ALARM" {
		t.Error(got)
	}
	w.put(e, id("x"), on("ALARM(x) OR TRUE")) // of itself
	w.set(e, id("x"), alarm.OK)
	if got := w.states(e, "x", "y", "z"); got != "OK ALARM ALARM" {
		t.Error(got)
	}
}

// The end of a cycle evaluates what it kept from being evaluated, even if the alarm that ends it
// keeps its state.
func TestCompositeCycleEnds(t *testing.T) {
	w := newWorld(t)
	e := w.family()
	w.put(e, id("p"), on("FALSE"))
	w.put(e, id("q"), on("ALARM(p) OR ALARM(a)"))
	c := on("ALARM(q)")
	c.Suppressor = &alarm.Suppressor{Alarm: "q"}
	w.put(e, id("r"), c)
	w.put(e, id("p"), on("ALARM(q) AND FALSE"))
	w.set(e, id("a"), alarm.Alarming)
	if got := w.states(e, "p", "q", "r"); got != "OK OK OK" {
		t.Error(got)
	}
	w.put(e, id("p"), on("ALARM(r) AND FALSE")) // which is another cycle
	if got := w.states(e, "p", "q", "r"); got != "OK OK OK" {
		t.Error(got)
	}
	w.put(e, id("p"), on("FALSE"))
	if got := w.states(e, "p", "q", "r"); got != "OK ALARM ALARM" {
		t.Error(got)
	}
	if r, _ := e.Get(id("r")); r.Suppressed == nil || r.Suppressed.By != alarm.ByAlarm {
		t.Errorf("%+v", r.Suppressed)
	}
}

func TestCompositeRefused(t *testing.T) {
	w := newWorld(t)
	e := w.family()
	w.put(e, id("p"), on("ALARM(a)"))
	suppressed := on("ALARM(b)")
	suppressed.Suppressor = &alarm.Suppressor{Alarm: "s"}
	w.put(e, id("q"), suppressed)
	other := on("ALARM(a)")
	other.Suppressor = &alarm.Suppressor{Alarm: "arn:aws:cloudwatch:us-east-1:111111111111:alarm:s"}
	for want, err := range map[string]error{
		"alarms: there is one of the other kind: p CompositeAlarm":         e.Put(id("p"), config(), nil),
		"alarms: there is one of the other kind: a MetricAlarm":            e.Put(id("a"), on("TRUE"), nil),
		"alarms: a rule's alarms do not exist: x, y":                       e.Put(id("n"), on("ALARM(x) OR ALARM(a) OR OK(y) OR OK(x)"), nil),
		"alarms: a rule's alarms do not exist: a":                          e.Put(id("n"), on("ALARM(arn:aws:cloudwatch:eu-west-1:000000000000:alarm:a)"), nil),
		"alarms: a rule's alarms do not exist: n":                          e.Put(id("n"), on("ALARM(n)"), nil),
		"rule: unexpected end: ')'":                                        e.Put(id("n"), on("ALARM(a"), nil),
		"alarms: the suppressor does not exist: " + other.Suppressor.Alarm: e.Put(id("n"), other, nil),
		"alarms: composite alarms depend on it: a":                         e.Delete([]ID{id("a"), id("none")}),
		"alarms: composite alarms depend on it: s":                         e.Delete([]ID{id("s")}),
		"alarms: composite alarms depend on them: a,b":                     e.Delete([]ID{id("b"), id("a")}),
	} {
		if err == nil || err.Error() != want || fault.KindOf(err) != fault.ValidationFailed {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, ok := e.Get(id("n")); ok {
		t.Error("an alarm was made")
	}
	for n := range MaxParents - 1 {
		w.put(e, id(fmt.Sprint("p", n)), on("ALARM(a)"))
	}
	if err := e.Put(id("n"), on("ALARM(a)"), nil); err == nil || err.Error() != "alarms: too many composite alarms depend on: 150 a" {
		t.Error(err)
	}
	w.put(e, id("p"), on("OK(a)"))
	if err := e.Delete([]ID{id("q"), id("b"), id("s")}); err != nil {
		t.Error(err)
	}
	if len(e.parents) != 1 || len(e.composites) != MaxParents {
		t.Errorf("%d are depended on, %d depend", len(e.parents), len(e.composites))
	}
}

// Each line of a script is a moment, 10 s after the one before, in which alarms change: the composite
// alarm p is in ALARM while a is, and s is its suppressor. Behind it stands what suppresses actions
// after it, and what was told. Source: the six examples of "Suppressing composite alarm actions" in the
// CloudWatch user guide, with a wait of 20 s and an extension of 30 s, as there.
func TestSuppression(t *testing.T) {
	for name, script := range map[string]string{
		"not after the wait":             "|a+ WaitPeriod|WaitPeriod|- ALARM",
		"by the alarm before that":       "|a+ WaitPeriod|s+ Alarm|Alarm|Alarm",
		"a change while it is waited":    "|a+ WaitPeriod|a- WaitPeriod|WaitPeriod|- OK",
		"a change while it is in ALARM":  "s+ Alarm|a+ Alarm|Alarm|Alarm",
		"not after the extension":        "|a+ WaitPeriod|s+ Alarm|Alarm|s- ExtensionPeriod|ExtensionPeriod|ExtensionPeriod|- ALARM",
		"a change during the extension":  "|a+ WaitPeriod|s+ Alarm|s- ExtensionPeriod|a- WaitPeriod|WaitPeriod|- OK",
		"nothing is due":                 "s+ Alarm|Alarm|s- ExtensionPeriod|ExtensionPeriod|ExtensionPeriod|-|-",
		"again during the extension":     "|a+ WaitPeriod|s+ Alarm|s- ExtensionPeriod|s+ Alarm|s- ExtensionPeriod|ExtensionPeriod|ExtensionPeriod|- ALARM|-",
		"another suppressor":             "s+ Alarm|a+ Alarm|b - ALARM|-",
		"none any more":                  "s+ Alarm|a+ Alarm|0 - ALARM|-",
		"another while it is waited":     "|a+ WaitPeriod|b - ALARM|-",
		"the same one keeps the period":  "|a+ WaitPeriod|s WaitPeriod|- ALARM",
		"with a restart amid the period": "|a+ WaitPeriod|r WaitPeriod|- ALARM",
		"over while it was stopped":      "|a+ WaitPeriod|d - ALARM|-",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			e := w.family()
			for _, name := range []string{"a", "s", "b"} {
				w.set(e, id(name), alarm.OK)
			}
			by := func(suppressor string) alarm.Config {
				c := on("ALARM(a)")
				if suppressor != "0" {
					c.Suppressor = &alarm.Suppressor{Alarm: suppressor, Wait: 20, Extension: 30}
				}
				return c
			}
			w.put(e, id("p"), by("0"))
			w.put(e, id("p"), by("s"))
			w.executor.actions = nil
			for n, line := range strings.Split(script, "|") {
				if n > 0 {
					if _, err := w.clock.Advance(t.Context(), 10*time.Second); err != nil {
						t.Fatal(err)
					}
				}
				words := strings.Fields(line)
				if len(words) > 0 {
					switch word := words[0]; word {
					case "a+", "s+":
						w.set(e, id(word[:1]), alarm.Alarming)
					case "a-", "s-":
						w.set(e, id(word[:1]), alarm.OK)
					case "b", "s", "0":
						w.put(e, id("p"), by(word))
					case "r", "d":
						if err := e.kernel.Close(); err != nil {
							t.Fatal(err)
						}
						if word == "d" {
							if _, err := w.clock.Advance(t.Context(), time.Minute); err != nil {
								t.Fatal(err)
							}
						}
						e = w.open(w.store)
						if err := e.Start(); err != nil {
							t.Fatal(err)
						}
					default:
						words = append([]string{""}, words...)
					}
					words = words[1:]
				}
				e.shard.Tick() // a timer may run a moment later
				if err := e.Execute(t.Context()); err != nil {
					t.Fatal(err)
				}
				p, _ := e.Get(id("p"))
				got := []string{"-"}
				if p.Suppressed != nil {
					got[0] = string(p.Suppressed.By)
				}
				if told := w.executor.told(topic); told != "" {
					got = append(got, told)
				}
				w.executor.actions = nil
				if len(words) == 0 {
					words = []string{"-"}
				}
				if strings.Join(got, " ") != strings.Join(words, " ") {
					t.Errorf("line %d, %q: %v", n, line, got)
				}
			}
		})
	}
}

// Periods that end together let actions be executed in the order of the alarms, so that a virtual
// clock repeats a run.
func TestSuppressionsEndInOrder(t *testing.T) {
	w := newWorld(t)
	e := w.family()
	var want []string
	for n := range 12 {
		c := on("FALSE")
		c.Suppressor = &alarm.Suppressor{Alarm: "s", Wait: 10 - n%3}
		name := fmt.Sprintf("p%02d", n)
		w.put(e, id(name), c)
		want = append(want, name)
	}
	if err := e.kernel.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.clock.Advance(t.Context(), 10*time.Second); err != nil {
		t.Fatal(err)
	}
	e = w.open(w.store)
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	e.shard.RunLazy(func() { e.Tick(0) })
	if err := e.Execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, action := range w.executor.actions {
		_, name, _ := strings.Cut(action, `"`)
		name, _, _ = strings.Cut(name, `"`)
		got = append(got, name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("told of %q", got)
	}
}

// However far the process comes before it is killed, a composite alarm is in the state that its
// children's are cause for.
func TestCompositeSurvivesCrashes(t *testing.T) {
	for left := range 4 {
		w := newWorld(t)
		e := w.family()
		w.put(e, id("p"), on("ALARM(a)"))
		disk := &stopping{w.store, math.MaxInt}
		victim := w.open(disk)
		victim.shard.Stream.Sync()
		disk.left = left
		over := make(chan struct{})
		go func() {
			defer close(over)
			_ = victim.SetState(t.Context(), id("a"), alarm.Status{State: alarm.Alarming, Reason: "r"})
		}()
		select {
		case <-w.killed:
		case <-over:
		}
		w.engine = nil
		w.killed = make(chan struct{})
		told := strings.Count(w.executor.told(topic), "ALARM")
		e = w.open(w.store)
		if err := e.Start(); err != nil {
			t.Fatal(err)
		}
		states := w.states(e, "a", "p")
		if states != "ALARM ALARM" && (left > 0 || states != "INSUFFICIENT_DATA OK") {
			t.Errorf("killed at write %d: %s", left, states)
		}
		if after := strings.Count(w.executor.told(topic), "ALARM"); states == "ALARM ALARM" && after == 0 || after < told {
			t.Errorf("killed at write %d: told %d times", left, after)
		}
	}
}

// For a version without composite alarms the record is an alarm whose evaluation changes nothing.
func TestCompositeRecord(t *testing.T) {
	c := on("ALARM(a)")
	c.Suppressor = &alarm.Suppressor{Alarm: "s", Wait: 1, Extension: 2}
	a := alarm.New("000000000000", "us-east-1", "p", c, nil, start)
	a.Suppressed = &alarm.Suppression{By: alarm.ByWait, Until: start.Add(time.Second), Due: true}
	value := encodeAlarm(&a)
	var old struct {
		Statistic, Missing string
		Period             int
	}
	if err := json.Unmarshal(value, &old); err != nil || old.Statistic != "SampleCount" || old.Missing != "ignore" || old.Period != 60 {
		t.Errorf("%+v, %v", old, err)
	}
	got, err := decodeAlarm(value)
	if err != nil || string(encode(got)) != string(encode(&a)) {
		t.Errorf("%s, %v", encode(got), err)
	}
}

// What an older version writes of a composite alarm has no rule. It can be put again, though other
// alarms depend on it.
func TestCompositeWithoutRule(t *testing.T) {
	w := newWorld(t)
	e := w.family()
	w.put(e, id("p"), on("ALARM(a)"))
	w.put(e, id("q"), on("ALARM(p)"))
	a, _ := e.Get(id("p"))
	r := record{Alarm: &a, Statistic: absent, Period: absentPeriod, Missing: alarm.TreatIgnore}
	a.Rule = ""
	var b mutation.Batch
	b.Set(id("p").key(tagAlarm), encode(r))
	if err := w.store.Apply(store.Sync, &b); err != nil {
		t.Fatal(err)
	}
	e = w.open(w.store)
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	w.set(e, id("a"), alarm.Alarming)
	if got := w.states(e, "p", "q"); got != "OK OK" {
		t.Error(got)
	}
	w.put(e, id("p"), on("ALARM(a)"))
	if got := w.states(e, "p", "q"); got != "ALARM ALARM" {
		t.Error(got)
	}
	if err := e.Put(id("p"), config(), nil); err == nil {
		t.Error("a composite alarm became one on a metric")
	}
}
