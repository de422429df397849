package queue

import (
	"testing"
	"time"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
)

// What a move task takes is on its way, but not to the dead-letter queue, and
// keeps its receive count; given back, it is a message like any other.
func TestTaskLeases(t *testing.T) {
	q := New(layout.NewKeys(1, 1), Config{Visibility: time.Minute, Retention: time.Hour}, Kind{})
	var b mutation.Batch
	now := int64(1_000_000)
	do := func(now int64, c Command) Result {
		t.Helper()
		r, err := q.Do(nil, &b, now, c)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	m := message.Message{Sent: now, Body: []byte("x")}
	seq := do(now, Accept{Arrival{Record: m.AppendRecord(nil), Sent: now}}).Sequence

	r := do(now, Receive{Max: 10, Task: true})
	if len(r.Leases) != 1 || len(r.Moves) != 0 || r.Leases[0].Receives != 0 {
		t.Fatalf("%+v", r)
	}
	inTask := func() bool { l, _ := q.Leased(seq); return l.Moving && l.Task }
	if !inTask() || q.Moving() != 1 {
		t.Errorf("on its way: %+v, moving %d", q.Leases(), q.Moving())
	}
	if c := q.Counts(now); c != (Counts{InFlight: 1}) {
		t.Errorf("counts %+v", c)
	}
	if do(now+int64(24*time.Hour/time.Millisecond), Expire{}); !inTask() {
		t.Error("it ran out")
	}

	do(now, Return{Lease: r.Leases[0], Due: now})
	if r := do(now, Receive{Max: 10, Visibility: 1000}); len(r.Leases) != 1 || r.Leases[0].Receives != 1 {
		t.Fatalf("%+v", r)
	}
	if inTask() || q.Moving() != 0 {
		t.Errorf("given back: %+v, moving %d", q.Leases(), q.Moving())
	}
}
