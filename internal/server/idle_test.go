package server

import "testing"

// Memory is given back once after each busy time, if that is worth it.
func TestIdle(t *testing.T) {
	var i idle
	const much, little = idleWorth, idleWorth - 1
	allocated := uint64(0)
	for n, step := range []struct {
		more, spare uint64
		want        bool
	}{
		{10 << 20, much, false}, // busy
		{10 << 20, much, false},
		{idleBytes, little, false}, // at rest, and nothing to give
		{idleBytes, much, true},
		{0, much, false}, // once
		{idleBytes + 1, much, false},
		{0, much, true}, // after it was busy again
		{0, much, false},
	} {
		allocated += step.more
		if got := i.look(usage{allocated, step.spare}); got != step.want {
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
