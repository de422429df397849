package texts_test

import (
	"testing"
	"testing/synctest"

	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
)

// slowStore syncs when it may.
type slowStore struct {
	store.Store
	may chan struct{} // closed: it may
}

func (s slowStore) Sync() error {
	<-s.may
	return s.Store.Sync()
}

// TestOptOutTwice: a provider that reports the same answer twice is not answered before
// what it reports is durable, neither time.
func TestOptOutTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := slowStore{memory.New(), make(chan struct{})}
		close(s.may)
		j := journal.Open(journal.Options{Store: &s})
		t.Cleanup(j.Close)
		m := open(t, j)
		if err := m.SetAttributes(t.Context(), here, nil); err != nil {
			t.Fatal(err)
		}
		s.may = make(chan struct{})
		answered := make(chan struct{}, 2)
		for range cap(answered) {
			go func() {
				m.OptOutEverywhere("+4930")
				answered <- struct{}{}
			}()
			synctest.Wait()
		}
		if len(answered) > 0 {
			t.Errorf("%d were answered before anything was durable", len(answered))
		}
		close(s.may)
		<-answered
		<-answered
		if !m.IsOptedOut(here, "+4930") {
			t.Error("it was not noted")
		}
	})
}
