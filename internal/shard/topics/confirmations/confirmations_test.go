package confirmations_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/shard/topics/confirmations"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/test/soak"
)

var at = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// counts are Counts with a store.
type counts struct {
	confirmations.Counts

	t     *testing.T
	store *memory.Store
}

func open(t *testing.T, s *memory.Store) *counts {
	t.Helper()
	c := &counts{t: t, store: s}
	for shard := range uint16(keyspace.Shards) {
		if err := c.Load(s, shard); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (c *counts) commit(out *mutation.Batch) {
	c.t.Helper()
	if err := c.store.Apply(store.Sync, out); err != nil {
		c.t.Fatal(err)
	}
}

func (c *counts) reserve(shard uint16, account, address string, now time.Time) time.Time {
	var out mutation.Batch
	due := c.Reserve(shard, &out, account, address, now)
	c.commit(&out)
	return due
}

func (c *counts) answered(shard uint16, address string, now time.Time) {
	var out mutation.Batch
	c.Answered(shard, &out, address, now)
	c.commit(&out)
}

// An address waits an hour for the next, until it has answered.
func TestAddresses(t *testing.T) {
	c := open(t, memory.New())
	for i, now := range []time.Duration{0, 0, time.Minute, 5 * time.Hour} {
		want := []time.Duration{0, time.Hour, 2 * time.Hour, 5 * time.Hour}[i]
		if due := c.reserve(uint16(i), "1", "A@example.com", at.Add(now)); !due.Equal(at.Add(want)) {
			t.Errorf("%d: due %s", i, due)
		}
	}
	if due := c.reserve(0, "1", "b@example.com", at); !due.Equal(at) {
		t.Errorf("another address: %s", due)
	}
	c.answered(7, "a@EXAMPLE.com", at.Add(5*time.Hour))
	if due := c.reserve(0, "1", "a@example.com", at.Add(5*time.Hour)); !due.Equal(at.Add(5 * time.Hour)) {
		t.Errorf("answered: %s", due)
	}
}

// Of an address as many wait as come within a day.
func TestWaiting(t *testing.T) {
	c := open(t, memory.New())
	n := 0
	for ; n < 100 && c.Admit("1", "a@example.com", at) == nil; n++ {
		c.reserve(uint16(n%keyspace.Shards), "1", "a@example.com", at)
	}
	if n != 24 || c.Admit("1", "b@example.com", at) != nil || c.Admit("1", "a@example.com", at.Add(time.Hour)) != nil {
		t.Errorf("%d wait", n)
	}
}

// An account causes so many in an hour.
func TestAccounts(t *testing.T) {
	c := open(t, memory.New())
	n := 0
	for ; n < 5000 && c.Admit("1", fmt.Sprint(n, "@example.com"), at) == nil; n++ {
		c.reserve(3, "1", fmt.Sprint(n, "@example.com"), at)
	}
	for what, counts := range map[string]*counts{"the same": c, "a restarted server": open(t, c.store)} {
		if err := counts.Admit("1", "x@example.com", at); n != 1000 || !errors.Is(err, topic.ErrConfirmations) {
			t.Errorf("%s: %d, then %v", what, n, err)
		}
		if counts.Admit("2", "x@example.com", at) != nil || counts.Admit("1", "x@example.com", at.Add(time.Hour)) != nil {
			t.Errorf("%s: another account, or another hour, is bounded too", what)
		}
	}
}

// Counts that are read back after each command answer as those that stay, and the records of
// what is over go.
func TestRestarts(t *testing.T) {
	for _, seed := range soak.Seeds(t, 5) {
		r := rand.New(rand.NewPCG(seed, 1))
		c, now := open(t, memory.New()), at
		for range 500 {
			again := open(t, c.store)
			account, address, shard := fmt.Sprint(r.IntN(3)), fmt.Sprint(r.IntN(10), "@example.com"), uint16(r.IntN(4))
			if one, other := c.Admit(account, address, now), again.Admit(account, address, now); !errors.Is(one, other) {
				t.Fatalf("seed %d: %v, and after a restart %v", seed, one, other)
			}
			switch n := r.IntN(10); {
			case n < 6:
				var out, ignored mutation.Batch
				one, other := c.Reserve(shard, &out, account, address, now), again.Reserve(shard, &ignored, account, address, now)
				if !one.Equal(other) {
					t.Fatalf("seed %d: due %s, and after a restart %s", seed, one, other)
				}
				c.commit(&out)
			case n < 8:
				c.answered(shard, address, now)
			default:
				now = now.Add(time.Duration(r.Int64N(int64(2 * time.Hour))))
			}
		}
		for shard := range uint16(4) {
			c.reserve(shard, "1", "last@example.com", now.Add(100*24*time.Hour))
		}
		left := 0
		if err := store.Each(c.store, keyspace.Span{}, func(_, value []byte) error {
			left++
			return confirmations.CheckRecord(value)
		}); err != nil || left != 4 {
			t.Errorf("seed %d: %d records are left, %v", seed, left, err)
		}
	}
}

// What is no record is not read.
func TestCheckRecord(t *testing.T) {
	for _, value := range [][]byte{nil, {1}, append([]byte{2, 0}, make([]byte, 24)...), append([]byte{1, 2}, make([]byte, 24)...)} {
		if confirmations.CheckRecord(value) == nil {
			t.Errorf("%v is one", value)
		}
	}
}
