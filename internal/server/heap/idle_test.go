package heap

import "testing"

// Memory is given back once after each busy time, if that is worth it.
func TestIdle(t *testing.T) {
	var i idle
	const much, little = idleWorth, idleWorth - 1
	allocated := uint64(0)
	for n, step := range []struct {
		more, spare, live uint64
		want              bool
	}{
		{10 << 20, much, 0, false}, // busy
		{10 << 20, much, 0, false},
		{idleBytes, little, 0, false}, // at rest, and nothing to give
		{idleBytes, much, 0, true},
		{0, much, 0, false}, // once
		{idleBytes + 1, much, 0, false},
		{0, much, 0, true}, // after it was busy again
		{0, much, 0, false},
		{idleBytes + 1, much, 0, false},
		{0, much, idleShare*much + idleShare, false}, // too little of what would be looked through
		{0, much, idleShare * much, true},
	} {
		allocated += step.more
		if got := i.look(usage{allocated, step.spare, step.live}); got != step.want {
			t.Errorf("look %d: %v", n, got)
		}
	}
}

func TestReadUsage(t *testing.T) {
	before := readUsage()
	block := make([]byte, 8<<20)
	after := readUsage()
	if after.allocated-before.allocated < uint64(len(block)) || after.spare > 1<<40 {
		t.Errorf("%+v, then %+v", before, after)
	}
}
