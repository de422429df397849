package network

import "testing"

// What connections may hold is bounded for one environment and for all, and comes back.
func TestSlotsHoldBytes(t *testing.T) {
	const each = 2 * window
	n := &Network{Options: Options{Connections: 1000, Bytes: 16 * each}}
	var held []*slot
	hold := func(a *Attachment) (taken int) {
		for {
			s := a.reserve()
			if s == nil {
				t.Fatal("connections ran out before bytes did")
			}
			if !s.hold(each) {
				s.release()
				return taken
			}
			held = append(held, s)
			taken++
		}
	}
	for range share {
		if taken := hold(&Attachment{network: n}); taken != 16/share {
			t.Errorf("an environment has %d connections, want %d", taken, 16/share)
		}
	}
	if taken := hold(&Attachment{network: n}); taken != 0 {
		t.Errorf("%d connections beyond what all may hold", taken)
	}
	for _, s := range held {
		s.release()
		s.release()
	}
	if n.held.Load() != 0 || n.used.Load() != 0 {
		t.Errorf("%d bytes and %d connections stay held", n.held.Load(), n.used.Load())
	}
}
