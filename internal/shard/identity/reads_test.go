package identity_test

import (
	"sync"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store/memory"
)

// appending stops its command where its change is seen but not appended yet.
type appending struct {
	once       sync.Once
	seen, goOn chan struct{}
}

func (a *appending) FinishBytes() int {
	a.once.Do(func() {
		close(a.seen)
		<-a.goOn
	})
	return 0
}
func (*appending) Finish(uint64, *mutation.Batch) {}
func (*appending) Appended(*journal.Commit)       {}
func (*appending) Clean()                         {}
func (*appending) Committed()                     {}

// TestReadIsDurable: what Read shows, a crash behind its answer does not undo, though the change
// is seen a moment before the journal has it.
func TestReadIsDurable(t *testing.T) {
	w := open(t, memory.New(), sealer(t))
	a := &appending{seen: make(chan struct{}), goOn: make(chan struct{})}
	changed := make(chan struct{})
	go func() {
		defer close(changed)
		w.run(func(acc *iam.Account, now time.Time) error {
			w.shard.MarkDirty(a)
			return acc.Create(&iam.Entity{Kind: iam.User, Path: "/", Name: "ann", ID: "AIDA", Created: now})
		})
	}()
	<-a.seen
	shown, answered := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(answered)
		_ = w.Read(account, func(acc *iam.Account) error {
			if acc.Count(iam.User) == 0 {
				t.Error("the change is not seen")
			}
			close(shown)
			return nil
		})
	}()
	<-shown
	over, stop := clock.After(clock.System, 20*time.Millisecond)
	defer stop()
	select {
	case <-answered:
		t.Error("answered before the change was appended")
	case <-over:
	}
	close(a.goOn)
	<-answered
	<-changed
}
