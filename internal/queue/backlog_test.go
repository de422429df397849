package queue

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"godwit.dev/godwit/internal/queue/layout"
)

// waitingMessage is a message of the backlog of a FIFO topic's subscription.
type waitingMessage struct {
	seq    uint64
	group  string
	due    int64 // 0: it was never attempted
	leased bool
}

// TestFIFOBacklogModel runs random histories on such a backlog with tiny windows:
// of each group the first message is attempted, and not before its time.
func TestFIFOBacklogModel(t *testing.T) {
	defer func(w, o, g int) { windowSize, orderSize, groupSize = w, o, g }(windowSize, orderSize, groupSize)
	windowSize, orderSize, groupSize = 6, 4, 3

	t.Cleanup(func() { restingUntouched(t) })
	rapid.Check(t, func(t *rapid.T) {
		b := &player{T: t, bench: newBench(Config{}, Kind{FIFO: true, Backlog: true})}
		var messages []*waitingMessage
		var id byte
		first := func(x *waitingMessage) bool {
			i := slices.IndexFunc(messages, func(y *waitingMessage) bool { return y.group == x.group })
			return messages[i] == x
		}
		due := func() *waitingMessage {
			i := slices.IndexFunc(messages, func(x *waitingMessage) bool { return first(x) && !x.leased && x.due <= b.now })
			if i < 0 {
				return nil
			}
			return messages[i]
		}
		some := func() *waitingMessage { return messages[rapid.IntRange(0, len(messages)-1).Draw(t, "message")] }
		b.play(map[string]func(*rapid.T){
			"publish": func(t *rapid.T) {
				for range rapid.IntRange(1, 12).Draw(t, "n") {
					group := fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "group"))
					id++
					seq, err := b.send(id, group, 0)
					b.must(err)
					messages = append(messages, &waitingMessage{seq: seq, group: group})
				}
			},
			"take": func(t *rapid.T) {
				got, err := b.receive(rapid.IntRange(1, 10).Draw(t, "max"), 0)
				b.must(err)
				for _, l := range got.Leases {
					i := slices.IndexFunc(messages, func(x *waitingMessage) bool { return x.seq == l.Sequence })
					if x := messages[i]; !first(x) || x.leased || x.due > b.now {
						t.Fatalf("took %+v at %d", x, b.now)
					}
					messages[i].leased = true
				}
				if len(got.Leases) > 0 {
					return
				}
				if x := due(); x != nil && b.m.groups.Order.Whole {
					t.Fatalf("took nothing, but %+v is due", x)
				}
			},
			"fail": func(t *rapid.T) {
				for _, x := range messages {
					if x.leased && rapid.Bool().Draw(t, "fails") {
						x.leased, x.due = false, b.now+rapid.SampledFrom([]int64{0, 700, 40_000}).Draw(t, "due")
						l, _ := b.m.Leased(x.seq)
						b.must(b.run(Return{Lease: l, Due: x.due, History: true}))
					}
				}
			},
			"make due now": func(t *rapid.T) {
				if len(messages) == 0 {
					return
				}
				x := some()
				r, err := b.do(MakeDueNow{Lane: layout.GroupLane(x.group), Sequence: x.seq})
				b.must(err)
				if want := !x.leased && x.due > b.now; r.Changed != want {
					t.Fatalf("made %+v due at %d: %v", x, b.now, r.Changed)
				}
				if r.Changed {
					x.due = b.now
				}
			},
			"remove": func(t *rapid.T) {
				if len(messages) == 0 {
					return
				}
				x := some()
				b.must(b.run(Remove{layout.GroupLane(x.group), x.seq}))
				messages = slices.DeleteFunc(messages, func(y *waitingMessage) bool { return y == x })
				err := b.run(MakeDueNow{Lane: layout.GroupLane(x.group), Sequence: x.seq})
				if !errors.Is(err, ErrGone) {
					t.Fatalf("made due what is gone: %v", err)
				}
			},
		}, func() error {
			var inFlight, later, soon, returned int
			for _, x := range messages {
				switch {
				case x.leased:
					inFlight++
					continue
				case x.due > b.now:
					later++
				case x.due/1000 == b.now/1000: // counted by the second
					soon++
				}
				if x.due != 0 {
					returned++
				}
			}
			r, err := b.do(Probe{})
			b.must(err)
			if x := due(); r.Found && x == nil || !r.Found && x != nil && b.m.groups.Order.Whole {
				return fmt.Errorf("something is available: %v, due is %+v", r.Found, x)
			}
			c := b.m.Counts(b.now)
			if n := int(c.Delayed); int(c.InFlight) != inFlight || n < later || n > later+soon || int(c.Visible) != len(messages)-inFlight-n {
				return fmt.Errorf("counts %+v, want %d in flight and %d later of %d", c, inFlight, later, len(messages))
			}
			if n := b.store.count(b.m.Keys(), layout.TagHeld); n != returned {
				return fmt.Errorf("%d are held, want %d", n, returned)
			}
			return nil
		})
	})
}
