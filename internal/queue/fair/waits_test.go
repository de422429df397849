package fair_test

import (
	"fmt"
	"maps"
	"testing"

	"godwit.dev/godwit/internal/queue/fair"
)

// written is what a store would hold of the waits.
func written(s *fair.Waits[string], store map[string]fair.Wait) {
	s.Changed(func(tenant string, w fair.Wait) {
		if store[tenant] = w; w.Messages == 0 {
			delete(store, tenant)
		}
	})
}

func TestWaits(t *testing.T) {
	s, store := fair.NewWaits[string](4), map[string]fair.Wait{}
	s.Add("a", 3, 0)
	s.Add("a", -1, 0)
	s.Add("a", 1, 1)
	s.Add("b", 1, 1)
	s.Add("b", -1, -1)
	s.Add("c", -1, 0) // it was forgotten
	if n := s.ChangedCount(); n != 2 {
		t.Errorf("%d changed", n)
	}
	written(&s, store)
	want := map[string]fair.Wait{"a": {Messages: 3, Scheduled: 1}}
	if !maps.Equal(store, want) || s.Of("a") != want["a"] || s.Of("b") != (fair.Wait{}) {
		t.Errorf("%v, want %v", store, want)
	}
	s.Add("d", 2, 1)
	if got := s.Of("a", "b", "d"); got != (fair.Wait{Messages: 5, Scheduled: 2}) {
		t.Errorf("all together have %v", got)
	}
	s.Add("d", -2, -1)
	written(&s, store)
	if s.ChangedCount() != 0 || !maps.Equal(store, want) {
		t.Error("what did not change is written")
	}
}

// Beyond the limit those go who have least, on disk too.
func TestWaitsForgetTheLeast(t *testing.T) {
	s, store := fair.NewWaits[string](4), map[string]fair.Wait{}
	s.Add("loud", 1000, 0)
	for i := range 100 {
		s.Add(fmt.Sprintf("t%02d", i), 1, 0)
		if i%3 == 0 {
			written(&s, store)
		}
	}
	written(&s, store)
	if s.Of("loud").Messages != 1000 || store["loud"].Messages != 1000 || len(store) > 4 || s.Of("t99").Messages != 1 {
		t.Errorf("%v", store)
	}
	for tenant, w := range store {
		if s.Of(tenant) != w {
			t.Errorf("of %s %v are written, %v in memory", tenant, w, s.Of(tenant))
		}
	}
}
