package alarms

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/alarm"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/storetest"
)

// tells makes an alarm that reports every state.
func tells(targets ...string) alarm.Config {
	c := config()
	c.Missing = alarm.TreatIgnore
	c.AlarmActions, c.OKActions, c.InsufficientActions = targets, targets, targets
	return c
}

func (w *world) put(e *Engine, id ID, c alarm.Config) {
	w.Helper()
	if err := e.Put(id, c, nil); err != nil {
		w.Fatal(err)
	}
}

func (w *world) set(e *Engine, id ID, states ...alarm.State) {
	w.Helper()
	for _, s := range states {
		if err := e.SetState(w.Context(), id, alarm.Status{State: s, Reason: "r"}); err != nil {
			w.Fatal(err)
		}
	}
}

func (w *world) tick(e *Engine) {
	w.Helper()
	if _, err := w.clock.Advance(w.Context(), time.Minute); err != nil {
		w.Fatal(err)
	}
	if _, err := e.EvaluateMinutes(w.clock.Now()); err != nil {
		w.Fatal(err)
	}
}

func onCall(name string) string { return "arn:aws:lambda:us-east-1:000000000000:function:" + name }

// Who cannot be told now holds up nobody else, be it of the same alarm or of
// another account's, and hears of all states in their order when it can, also
// behind a restart.
func TestActionsWaitForTheirOwnTarget(t *testing.T) {
	for _, kind := range []fault.Kind{fault.Unavailable, fault.Throttled, fault.InsufficientStorage} {
		w := newWorld(t)
		e := w.open(w.store)
		other := ID{"111111111111", "eu-west-1", "b"}
		w.put(e, id("a"), tells(topic, onCall("f")))
		w.put(e, other, tells(onCall("g")))
		w.executor.failing = map[string]error{topic: fault.New(kind, "later")}
		w.set(e, id("a"), alarm.Alarming, alarm.OK)
		w.set(e, other, alarm.Alarming)
		if got := w.executor.told(onCall("f")) + ", " + w.executor.told(onCall("g")); got != "ALARM OK, ALARM" {
			t.Errorf("behind one that is %v: %s", kind, got)
		}
		if got := w.executor.told(topic); got != "ALARM" {
			t.Errorf("before the next minute: %s", got)
		}
		w.tick(e)
		w.set(e, id("a"), alarm.Alarming)
		if got := w.executor.told(topic); got != "ALARM ALARM" {
			t.Errorf("it is tried once a minute: %s", got)
		}
		e = w.open(w.store)
		w.executor.failing, w.executor.actions = nil, nil
		if err := e.Start(); err != nil {
			t.Fatal(err)
		}
		if got := w.executor.told(topic); got != "ALARM OK ALARM" {
			t.Errorf("at last: %s", got)
		}
		if len(w.executor.actions) != 3 {
			t.Errorf("others are told again: %v", w.executor.actions)
		}
		w.tick(e)
		w.tick(w.open(w.store))
		if len(w.executor.actions) != 3 {
			t.Errorf("executed ones are executed again: %v", w.executor.actions)
		}
	}
}

// What waits is tried again each minute until it is done, without a restart.
func TestActionsAreTriedAgain(t *testing.T) {
	w := newWorld(t)
	e := w.open(w.store)
	w.put(e, id("a"), tells(topic))
	w.executor.fail = fault.New(fault.Unavailable, "later")
	w.set(e, id("a"), alarm.Alarming, alarm.OK)
	if err := e.Delete([]ID{id("a")}); err != nil {
		t.Fatal(err)
	}
	more, err := e.EvaluateMinutes(w.clock.Now())
	if !more || err != nil {
		t.Errorf("nobody asks for the next minute: %v", err)
	}
	w.executor.fail = nil
	w.tick(e)
	if got := w.executor.told(topic); got != "ALARM ALARM ALARM OK" {
		t.Error(got)
	}
	if more, err = e.EvaluateMinutes(w.clock.Now()); more || err != nil {
		t.Errorf("there is nothing to do any more: %v, %v", more, err)
	}
}

// As many actions of a scope wait as the bound says. Beyond it the oldest of the
// longest queue is given up, which the history tells.
func TestWaitingActionsAreBounded(t *testing.T) {
	w := newWorld(t)
	w.waiting = 4
	e := w.open(w.store)
	w.put(e, id("a"), tells(topic))
	w.put(e, id("b"), tells(topic))
	other := ID{"111111111111", "us-east-1", "c"}
	w.put(e, other, tells(topic))
	w.executor.fail = fault.New(fault.Unavailable, "later")
	w.set(e, other, alarm.Alarming)
	w.set(e, id("b"), alarm.Alarming)
	for range 10 {
		w.set(e, id("a"), alarm.Alarming, alarm.OK)
	}
	items, _, err := e.History(HistoryQuery{Scope: scope, Name: "a", Type: alarm.Action, Limit: 100})
	if err != nil || len(items) != 17 || !strings.HasPrefix(items[16].Summary, "Failed to execute action "+topic+". Received error: ") || !strings.Contains(items[16].Data, "too many") {
		t.Errorf("%d items, %+v, %v", len(items), items, err)
	}
	e = w.open(w.store)
	w.executor.fail, w.executor.actions = nil, nil
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	told := map[string]string{}
	for _, action := range w.executor.actions {
		state, rest, _ := strings.Cut(strings.TrimPrefix(action, topic+" "), ": ")
		told[rest[1:2]] += state + " "
	}
	if got := fmt.Sprint(told); got != "map[a:OK ALARM OK  b:ALARM  c:ALARM ]" {
		t.Error(got)
	}
}

// An action whose record is damaged while it waits is left out, and those behind
// it are executed.
func TestUnreadableActionIsLeftOut(t *testing.T) {
	w := newWorld(t)
	e := w.open(w.store)
	w.put(e, id("a"), tells(topic))
	w.put(e, id("b"), tells(onCall("f")))
	w.executor.failing = map[string]error{topic: fault.New(fault.Unavailable, "later"), onCall("f"): fault.New(fault.Unavailable, "later")}
	w.set(e, id("a"), alarm.Alarming, alarm.OK)
	w.set(e, id("b"), alarm.Alarming)
	var b mutation.Batch
	for key := range storetest.Range(t, w.store, []byte{prefix, tagPending}, []byte{prefix, tagPending + 1}) {
		b.Set(key, []byte("garbage"))
		break // the oldest
	}
	if err := w.store.Apply(store.Sync, &b); err != nil {
		t.Fatal(err)
	}
	w.executor.failing, w.executor.actions = nil, nil
	w.tick(e)
	if got := w.executor.told(topic) + ", " + w.executor.told(onCall("f")); got != "OK, ALARM" {
		t.Error(got)
	}
	w.tick(w.open(w.store)) // nothing of it is left
	if len(w.executor.actions) != 2 {
		t.Errorf("executed %v", w.executor.actions)
	}
}

// Records that are damaged when the process begins hold up no others: an alarm, an
// action that waits, an item of the history.
func TestUnreadableRecordsAreLeftOut(t *testing.T) {
	w := newWorld(t)
	e := w.open(w.store)
	w.put(e, id("a"), tells(topic))
	w.put(e, id("b"), tells(onCall("f")))
	later := fault.New(fault.Unavailable, "later")
	w.executor.failing = map[string]error{topic: later, onCall("f"): later}
	w.set(e, id("a"), alarm.Alarming)
	w.set(e, id("b"), alarm.Alarming)
	var b mutation.Batch
	for _, tag := range []byte{tagAlarm, tagPending, tagHistory} {
		for key := range storetest.Range(t, w.store, []byte{prefix, tag}, []byte{prefix, tag + 1}) {
			b.Set(key, []byte("garbage"))
			break // of a, and the oldest
		}
	}
	if err := w.store.Apply(store.Sync, &b); err != nil {
		t.Fatal(err)
	}
	e = w.open(w.store)
	w.executor.failing, w.executor.actions = nil, nil
	w.tick(e)
	if got := w.executor.told(topic) + ", " + w.executor.told(onCall("f")); got != ", ALARM" {
		t.Error("told", got)
	}
	if all := e.List(scope, func(*alarm.Alarm) bool { return true }); len(all) != 1 || all[0].Name != "b" {
		t.Error(all)
	}
	items, _, err := e.History(HistoryQuery{Scope: scope, Limit: 100})
	if err != nil || len(items) != 4 { // the second creation, two changes, and the action
		t.Error(len(items), err)
	}
	for range storetest.Range(t, w.store, []byte{prefix, tagPending}, []byte{prefix, tagPending + 1}) {
		t.Error("an action is left")
	}
	w.put(e, id("a"), tells(topic)) // again
}
