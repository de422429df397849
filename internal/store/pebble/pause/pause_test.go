package pause

import (
	"errors"
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
		damage := errors.New("damaged")
		p, db := New(func(err error) bool { return errors.Is(err, damage) }), &waiting{}
		p.Register(1, db)
		allowed := func() int { return database{db, p}.GetAllowedWithoutPermission() }
		if allowed() != 1 || p.Failing() {
			t.Error("it begins with a pause")
		}
		for want := time.Second; want < 10*time.Minute; want *= 2 {
			for job := range 3 {
				p.Begin(job)
			}
			if got := p.End(0, damage); got != min(want, 5*time.Minute) || p.End(1, damage) != got {
				t.Fatalf("a pause of %v, want %v", got, want)
			}
			if p.End(2, nil); allowed() != 0 || !p.Failing() {
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
		if p.End(3, errors.New("cancelled")); !p.Failing() {
			t.Error("one that was not finished makes the pauses short again")
		}
		if p.End(4, nil); p.Failing() || p.End(5, damage) != time.Second {
			t.Error("success does not make the pauses short again")
		}
		p.Begin(6)
		p.Repaired()
		synctest.Wait()
		if allowed() != 1 || p.Failing() {
			t.Error("what is mended is still waited for")
		}
		if p.End(6, damage) != 0 || allowed() != 1 || p.Failing() {
			t.Error("one that began before the repair has begun a pause")
		}
		p.Begin(7)
		if p.End(7, damage) != time.Second || allowed() != 0 {
			t.Error("one that began behind the repair has begun no pause")
		}
		if len(p.began) != 0 {
			t.Errorf("%d jobs are remembered", len(p.began))
		}
		p.Unregister()
	})
}
