package queue

import (
	"fmt"
	"testing"

	"godwit.dev/godwit/internal/queue/dedup"
)

func TestAttempts(t *testing.T) {
	var a attempts
	one, two := &attempt{at: 1000}, &attempt{at: 2000}
	a.remember("a", one)
	a.remember("b", two)
	if got := a.recall(1000+dedup.Life-1, "a"); got != one {
		t.Errorf("within five minutes: %v", got)
	}
	if a.recall(1000+dedup.Life, "a") != nil {
		t.Error("remembered after five minutes")
	}
	if a.recall(2000, "c") != nil {
		t.Error("remembered what never was")
	}
	// Very many are not remembered, but what is too old makes room.
	for i := range 10_000 {
		a.remember(fmt.Sprint(i), &attempt{at: 3000})
	}
	if a.recall(3000, "9999") != nil {
		t.Error("remembered without a bound")
	}
	late := &attempt{at: 3000 + dedup.Life}
	a.remember("late", late)
	if got := a.recall(3000+dedup.Life, "late"); got != late {
		t.Errorf("after the others were over: %v", got)
	}
}
