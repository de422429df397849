package consume

import (
	"fmt"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestHangingHostsHideNobody: hosts that hang, which have attempts under way and may
// not begin others now, do not stand before one that may.
func TestHangingHostsHideNobody(t *testing.T) {
	p := newPool(50, 5000)
	busy := func(name string, hung bool) *host {
		h := p.join(name)
		for range 3 {
			h.push(&backlogState{})
		}
		h.begin()
		h.begin()
		h.end(hung)
		return h
	}
	for i := range 2 * maxScanned {
		busy(fmt.Sprint("hanging", i), true)
	}
	live := busy("live", false)
	p.slowTokens = 0
	if h := p.next(); h != live {
		t.Errorf("the host that answers has no turn: %+v", h)
	}
	p.slowTokens = 1
	live.begin()
	if h := p.next(); h == nil || !h.slow {
		t.Errorf("the hosts that hang have no turn: %+v", h)
	}
}
