package replica_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/record"
	"godwit.dev/godwit/internal/cluster/replica"
	"godwit.dev/godwit/internal/cluster/replog"
	"godwit.dev/godwit/internal/cluster/replog/simulated"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
)

// slowLog is a log that notes the numbers of records once it has taken them, and that others
// write meanwhile.
type slowLog struct {
	replog.Log
	meanwhile func()
	taken     []uint64
}

func (l *slowLog) Append(data []byte, _ func(uint64, error)) {
	if f := l.meanwhile; f != nil {
		l.meanwhile = nil
		f()
	}
	r, _ := record.Decode(data)
	l.taken = append(l.taken, r.Number)
}

// TestRecordsKeepTheirOrder: what is written while the log is being given a record is given to it
// behind that one, and nothing is once the owner has stepped down.
func TestRecordsKeepTheirOrder(t *testing.T) {
	r, err := replica.Open(0, memory.New())
	if err != nil {
		t.Fatal(err)
	}
	takeover := record.Record{Kind: record.Takeover, Epoch: 1, Owner: "me"}
	if _, accepted, err := r.Apply(1, takeover.AppendTo(nil)); err != nil || !accepted {
		t.Fatal(accepted, err)
	}
	log := &slowLog{}
	o, err := r.Own(1, replica.OwnerOptions{Log: log, Clock: clock.NewVirtual(time.Unix(0, 0))})
	if err != nil {
		t.Fatal(err)
	}
	write := func() {
		t.Helper()
		if err := o.Apply(store.NoSync, set("k", "v")); err != nil {
			t.Error(err)
		}
	}
	log.meanwhile = write
	write()
	log.meanwhile = func() {
		write()
		o.StepDown(errors.New("it is replaced"))
	}
	write()
	if want := []uint64{2, 3, 4}; !slices.Equal(log.taken, want) {
		t.Errorf("the log was given %d, want %d", log.taken, want)
	}
}

// TestRefusedBeforeOthers: an owner steps down if a record is refused that others are on their way
// behind: given to the log again it would be in another order than it was written.
func TestRefusedBeforeOthers(t *testing.T) {
	virtual := clock.NewVirtual(time.Unix(0, 0))
	n := own(t, memory.New(), replica.OwnerOptions{Clock: virtual})
	n.log.Hold()
	for _, value := range []string{"1", "2"} {
		if err := n.Apply(store.NoSync, set("k", value)); err != nil {
			t.Fatal(err)
		}
	}
	n.log.Deliver(0, simulated.Refused)
	if err := n.Failed(); !errors.Is(err, replog.ErrRefused) {
		t.Errorf("it goes on: %v", err)
	}
	if _, err := virtual.Advance(t.Context(), time.Second); err != nil || n.log.Pending() != 1 {
		t.Errorf("%d records are on their way, %v; want the second one alone", n.log.Pending(), err)
	}
}
