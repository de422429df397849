package queue

import (
	"errors"
	"testing"
	"time"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/layout"
)

// A command is not moved to the heap on its way to Step.
func TestCommandsStayOnTheStack(t *testing.T) {
	q := New(layout.NewKeys(1, 1), Config{Retention: time.Hour}, Kind{})
	var b mutation.Batch
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := q.Do(nil, &b, 1000, RejectMove{Sequence: 7}); !errors.Is(err, ErrNotLeased) {
			t.Fatal(err)
		}
	})
	if allocs > 0 {
		t.Errorf("a command that refuses allocates %v times", allocs)
	}
}

// A counter that disagrees with the records, which a fault in this program has made
// so, is reported and set right.
func TestCorrected(t *testing.T) {
	b := newBench(Config{Visibility: time.Minute, Retention: time.Hour}, Kind{})
	for range 3 {
		if _, err := b.send(1, "", 0); err != nil {
			t.Fatal(err)
		}
	}
	counters, err := layout.DecodeCounters(b.m.appendCounters(nil))
	if err != nil {
		t.Fatal(err)
	}
	counters.Fresh = 5
	b.store.values[string(b.m.Keys().Counters())] = counters.Append(nil)
	if err := b.reopen(); err != nil || b.m.Len() != 5 {
		t.Fatalf("it has %d messages: %v", b.m.Len(), err)
	}
	r, err := b.m.Do(b, &b.batch, b.now, Receive{Max: 10, Visibility: 1000, Epoch: b.epoch})
	if err != nil || len(r.Leases) != 3 || !r.Corrected || b.m.Len() != 3 {
		t.Errorf("received %+v, and %d are there: %v", r, b.m.Len(), err)
	}
	if r, err = b.m.Do(b, &b.batch, b.now, Probe{}); err != nil || r.Corrected || r.Found {
		t.Errorf("then %+v: %v", r, err)
	}
}

// failing is a Reader of a store that cannot be read.
type failing struct{ *bench }

var errDisk = errors.New("the disk")

func (failing) Get([]byte) ([]byte, bool, error)                     { return nil, false, errDisk }
func (failing) Scan(layout.Span, func(key, value []byte) bool) error { return errDisk }

func TestUnreadable(t *testing.T) {
	for _, c := range []Command{
		Receive{Max: 1}, Probe{}, Prefetch{1}, Remove{Sequence: 1}, MakeDueNow{Sequence: 1}, Oldest{}, Sweep{}, Count{},
	} {
		b := newBench(Config{Visibility: time.Minute, Retention: time.Hour}, Kind{})
		for _, delay := range []int64{0, 1000} {
			if _, err := b.send(1, "", delay); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.reopen(); err != nil {
			t.Fatal(err)
		}
		if _, ok := c.(Probe); ok { // a fresh message answers it without a read
			if err := b.run(Remove{Sequence: 1}); err != nil {
				t.Fatal(err)
			}
		}
		b.now += 7_200_000
		if _, err := b.m.Do(failing{b}, &b.batch, b.now, c); !errors.Is(err, ErrRead) || !errors.Is(err, errDisk) {
			t.Errorf("%T: %v", c, err)
		}
		if _, err := New(layout.NewKeys(3, 7), b.cfg, b.kind).Load(failing{b}, b.m.appendCounters(nil), b.now); !errors.Is(err, ErrRead) {
			t.Errorf("loading: %v", err)
		}
	}
}
