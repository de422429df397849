package metrics

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/store/memory"
)

// Resources of which all is written cost nothing until they are released: neither time
// nor memory, which would have many of them collected each minute.
func TestWrittenResourcesAreNotLookedAt(t *testing.T) {
	const resources, none = 20_000, 64 << 10
	c := clock.NewVirtual(start)
	s := open(t, memory.New(), c)
	s.options.MaxPending = 2 * resources
	minute := Minute(c.Now())
	for i := range resources {
		s.Resource(scope, "n", Dimensions(Dimension{"D", fmt.Sprint(i)})).Record(minute, Datum{Name: "a", Unit: "Count", Value: 1})
	}
	flush := func() (allocated uint64, more bool) {
		advance(t, c, time.Minute)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		more, err := s.Flush()
		if err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc, more
	}
	flush()
	for range forget - 1 {
		if allocated, more := flush(); allocated > none || !more {
			t.Errorf("a flush without anything to write takes %d bytes; %v", allocated, more)
		}
	}
	for range 2 {
		if _, more := flush(); !more {
			break
		}
	}
	for i := range s.stripes {
		s.stripes[i].resources.Range(func(_, _ any) bool {
			t.Fatal("they stay in memory")
			return false
		})
	}
}

// Who comes back behind those that were released reads nothing of the minutes since.
func TestMinutesAfterReleasedOnesAreWhole(t *testing.T) {
	c := clock.NewVirtual(start)
	s := open(t, memory.New(), c)
	s.Resource(scope, "n", "old").Record(Minute(c.Now()), Datum{Name: "a", Unit: "Count", Value: 1})
	for range forget + 1 { // it is released in the last of these
		advance(t, c, time.Minute)
		if _, err := s.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	r := s.Resource(scope, "n", "other")
	r.Record(Minute(c.Now()), Datum{Name: "a", Unit: "Count", Value: 1})
	if r.metrics[0].slots[0].partial {
		t.Error("the store is asked for what it cannot have")
	}
}
