package confirmations_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"godwit.dev/godwit/internal/shard/topics/confirmations"
	"godwit.dev/godwit/internal/topic"
)

var at = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// An address waits an hour for the next, until it has answered.
func TestAddresses(t *testing.T) {
	var c confirmations.Counts
	for i, now := range []time.Duration{0, 0, time.Minute, 5 * time.Hour} {
		want := []time.Duration{0, time.Hour, 2 * time.Hour, 5 * time.Hour}[i]
		if due := c.Reserve("1", "A@example.com", at.Add(now)); !due.Equal(at.Add(want)) {
			t.Errorf("%d: due %s", i, due)
		}
	}
	if due := c.Reserve("1", "b@example.com", at); !due.Equal(at) {
		t.Errorf("another address: %s", due)
	}
	c.Answered("a@EXAMPLE.com")
	if due := c.Reserve("1", "a@example.com", at.Add(5*time.Hour)); !due.Equal(at.Add(5 * time.Hour)) {
		t.Errorf("answered: %s", due)
	}
}

// Of an address as many wait as come within a day.
func TestWaiting(t *testing.T) {
	var c confirmations.Counts
	n := 0
	for ; n < 100 && c.Admit("1", "a@example.com", at) == nil; n++ {
		c.Reserve("1", "a@example.com", at)
	}
	if n != 24 || c.Admit("1", "b@example.com", at) != nil || c.Admit("1", "a@example.com", at.Add(time.Hour)) != nil {
		t.Errorf("%d wait", n)
	}
}

// An account causes so many in an hour.
func TestAccounts(t *testing.T) {
	var c confirmations.Counts
	n := 0
	for ; n < 5000 && c.Admit("1", fmt.Sprint(n, "@example.com"), at) == nil; n++ {
		c.Reserve("1", fmt.Sprint(n, "@example.com"), at)
	}
	if err := c.Admit("1", "x@example.com", at); n != 1000 || !errors.Is(err, topic.ErrConfirmations) {
		t.Errorf("%d, then %v", n, err)
	}
	if c.Admit("2", "x@example.com", at) != nil || c.Admit("1", "x@example.com", at.Add(time.Hour)) != nil {
		t.Error("another account, or another hour, is bounded too")
	}
}
