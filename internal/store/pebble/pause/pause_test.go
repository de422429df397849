package pause

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"godwit.dev/godwit/internal/clock"
)

// waiting is a database that has a compaction to do whenever it is asked.
type waiting struct{ pebble.DBForCompaction }

func (*waiting) GetAllowedWithoutPermission() int { return 1 }

func (*waiting) GetWaitingCompaction() (bool, pebble.WaitingCompaction) {
	return true, pebble.WaitingCompaction{}
}

func (*waiting) Schedule(pebble.CompactionGrantHandle) bool {
	return false // it did not want one after all
}

// pass lets a bubble's time go by.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	if err := clock.Wait(t.Context(), clock.System, d); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// TestPauses: damage keeps compactions away for longer and longer, until one goes well or
// what was damaged is mended.
func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, db := New(), &waiting{}
		p.Register(1, db)
		allowed := func() int { return database{db, p}.GetAllowedWithoutPermission() }
		if allowed() != 1 || p.Failing() {
			t.Error("it begins with a pause")
		}
		for want := time.Second; want < 10*time.Minute; want *= 2 {
			if got := p.Failed(); got != min(want, 5*time.Minute) || p.Failed() != got {
				t.Fatalf("a pause of %v, want %v", got, want)
			}
			if p.Succeeded(); allowed() != 0 || !p.Failing() {
				t.Fatal("one that began before the pause has ended it")
			}
			pass(t, min(want, 5*time.Minute)-time.Millisecond)
			if allowed() != 0 {
				t.Fatal("the pause is over too early")
			}
			pass(t, time.Millisecond)
			if allowed() != 1 || !p.Failing() {
				t.Fatal("the pause does not end")
			}
		}
		if p.Succeeded(); p.Failing() || p.Failed() != time.Second {
			t.Error("success does not make the pauses short again")
		}
		p.Failed()
		p.Mended()
		synctest.Wait()
		if allowed() != 1 || p.Failing() {
			t.Error("what is mended is still waited for")
		}
		p.Unregister()
	})
}
