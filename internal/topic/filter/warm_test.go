package filter

import (
	"fmt"
	"testing"
)

// A policy that rests, or was pushed out by others, matches as one that is kept.
func TestWarm(t *testing.T) {
	w := NewWarm(3)
	var all []*Policy
	for i := range 5 {
		p := compile(t, fmt.Sprintf(`{"n":[%d],"kind":[{"prefix":"a"}]}`, i), MessageAttributes)
		p.Rest()
		all = append(all, p)
	}
	kept := func() (n int) {
		for _, p := range all {
			if p.root != nil {
				n++
			}
		}
		return n
	}
	for round := range 3 {
		for value := range 5 {
			m := NewMessage([]Attribute{{"n", "Number", fmt.Sprint(value)}, {"kind", "String", "abc"}}, nil)
			for i, p := range all {
				want := AttributesMismatch
				if i == value {
					want = Match
				}
				if got := w.Match(p, m); got != want {
					t.Errorf("round %d: policy %d on %d: %v", round, i, value, got)
				}
				if p.root == nil || kept() > 3 {
					t.Fatalf("%d policies are kept, policy %d among them: %v", kept(), i, p.root != nil)
				}
			}
		}
	}
	if w.Match(nil, NewMessage(nil, nil)) != Match {
		t.Error("no policy does not match")
	}
	x := NewIndex(func(a, b int) int { return a - b })
	for i, p := range all { // in the index and out of it at rest
		p.Rest()
		x.Add(i, p)
		p.Rest()
	}
	for i, p := range all {
		x.Remove(i, p)
	}
	if len(x.lists) != 0 || len(x.keys[MessageAttributes].members) != 0 {
		t.Errorf("%d lists are left", len(x.lists))
	}
}
