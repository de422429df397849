package metrics

import (
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/store/memory"
)

// A start finds the time of the last minute that could be read, also of runs that went
// on without a write: a clock that begins with it takes none of them back.
func TestSteadyMinutesOutliveTheProcess(t *testing.T) {
	layouts := []Layout{{{Name: "a", Unit: "Count"}}}
	for _, how := range []string{"crash", "stop"} {
		t.Run(how, func(t *testing.T) {
			st, c := memory.New(), clock.NewVirtual(start)
			var j *journal.Journal
			begin := func() *Store {
				if j != nil {
					j.Close() // what was appended is in the store a moment later, also where the process is killed then
				}
				j = journal.Open(journal.Options{Store: st})
				t.Cleanup(j.Close)
				s, err := load(j, c, Options{Layouts: layouts})
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			s := begin()
			var p Sample
			p.Set(0, 7)
			r := Steady{Scope: scope, Namespace: "n", From: Minute(start), Sample: p.Encode()}
			s.BeginSteady(&r, true)
			for range 10 {
				advance(t, c, time.Minute)
				if _, err := s.Flush(); err != nil {
					t.Fatal(err)
				}
			}
			if how == "stop" {
				advance(t, c, 70*time.Second) // the last minute has not been reported
				if err := s.kernel.Close(); err != nil {
					t.Fatal(err)
				}
			}
			at := c.Now()
			c = clock.NewVirtual(start)
			s = begin()
			if !s.Latest().Equal(at) {
				t.Fatalf("the last minute is %s before the end", at.Sub(s.Latest()))
			}
			// Whoever ends all runs ends them there, and not where they were begun.
			if err := s.EndAllSteady(); err != nil {
				t.Fatal(err)
			}
			c = clock.NewVirtual(at.Add(time.Hour))
			if err := s.kernel.Close(); err != nil {
				t.Fatal(err)
			}
			points, err := begin().Read(Metric{Scope: scope, Namespace: "n", Name: "a"}, "Count", start.Unix(), at.Unix()+3600, 60)
			if want := int(Minute(at) - Minute(start)); err != nil || len(points) != want {
				t.Errorf("%d minutes, want %d: %v", len(points), want, err)
			}
		})
	}
}

// A store without metrics stays without a record.
func TestNothingIsWrittenWithoutMetrics(t *testing.T) {
	st, c := memory.New(), clock.NewVirtual(start)
	s := open(t, st, c)
	for range 3 {
		advance(t, c, time.Minute)
		if _, err := s.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.kernel.Close(); err != nil {
		t.Fatal(err)
	}
	it, err := st.Iter([]byte{prefix}, []byte{prefix + 1})
	if err != nil {
		t.Fatal(err)
	}
	if it.Next() {
		t.Errorf("a record %x", it.Key())
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
}
