package alarms

import (
	"testing"
	"testing/synctest"

	"godwit.dev/godwit/internal/alarm"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store"
)

// gated is a store whose syncs wait while there is a gate.
type gated struct {
	store.Store
	gate chan struct{}
}

func (s *gated) Sync() error {
	if s.gate != nil {
		<-s.gate
	}
	return s.Store.Sync()
}

// What an answer reports is durable, and so is the state whose action is executed.
func TestAnswersAreDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		st := &gated{Store: w.store}
		e := w.open(st)
		durable := func(what string, answer func() error) {
			t.Helper()
			e.shard.Stream.Sync()
			gate := make(chan struct{})
			st.gate = gate
			answered := false
			go func() {
				if err := answer(); err != nil {
					t.Error(what, err)
				}
				answered = true
			}()
			synctest.Wait()
			if answered {
				t.Errorf("%s is answered before it is durable", what)
			}
			if n := len(w.executor.actions); n > 0 {
				t.Errorf("%s: %v is executed before the state is durable", what, w.executor.actions)
			}
			st.gate = nil
			close(gate)
			synctest.Wait()
			if !answered {
				t.Errorf("%s is never answered", what)
			}
			w.executor.actions = nil
		}
		durable("Put", func() error { return e.Put(id("a"), config(), nil) })
		durable("Tick", func() error { return w.pass(e, 20) })
		if a, _ := e.Get(id("a")); a.State != alarm.Alarming {
			t.Error(a.State)
		}
		durable("Tag", func() error {
			return e.Tag(id("a"), func(tags map[string]string) error {
				tags["k"] = "v"
				return nil
			})
		})
		durable("SetState", func() error {
			return e.SetState(t.Context(), id("a"), alarm.Status{State: alarm.Alarming, Reason: "r"})
		})
		durable("Enable", func() error { return e.Enable([]ID{id("a")}, false) })
		change := func() {
			_, _ = e.shard.Run(journal.Eager, func(*kernel.Tx) error {
				c := e.begin()
				c.put(e.alarms[id("a")])
				c.apply()
				return nil
			})
		}
		durable("Get", func() error { change(); e.Get(id("a")); return nil })
		durable("List", func() error { change(); e.List(scope, func(*alarm.Alarm) bool { return true }); return nil })
		durable("History", func() error {
			change()
			_, _, err := e.History(HistoryQuery{Scope: scope, Limit: 1})
			return err
		})
		durable("Delete", func() error { return e.Delete([]ID{id("a")}) })
	})
}
