package soak

import (
	"slices"
	"testing"
	"time"
)

// set gives the variables values for a test.
func set(t *testing.T, long, duration, seed string) {
	t.Helper()
	t.Setenv(variable, long)
	t.Setenv(timeVariable, duration)
	t.Setenv(seedVariable, seed)
}

func TestShort(t *testing.T) {
	set(t, "", "", "")
	seen := map[uint64]bool{}
	Campaign(t, 3, func(_ *testing.T, seed uint64) { seen[seed] = true })
	if len(seen) != 3 || Rounds(t, 2, 50) != 2 || Enabled() {
		t.Errorf("%d rounds of different seeds, want 3; %d rounds, want 2", len(seen), Rounds(t, 2, 50))
	}
}

// The short form draws the same each time, and each test something else.
func TestShortIsTheSameEachTime(t *testing.T) {
	set(t, "", "", "")
	drawn := func() (seeds []uint64) {
		Campaign(t, 2, func(_ *testing.T, seed uint64) { seeds = append(seeds, seed) })
		return append(seeds, Seed(t))
	}
	first := drawn()
	if again := drawn(); !slices.Equal(first, again) {
		t.Errorf("drew %v, and then %v", first, again)
	}
	t.Run("another", func(t *testing.T) {
		if seed := Seed(t); slices.Contains(first, seed) {
			t.Errorf("two tests drew %d", seed)
		}
	})
}

// The long form draws something else each time.
func TestLongDiffers(t *testing.T) {
	set(t, "1", "1ns", "")
	if a, b := Seed(t), Seed(t); a == b {
		t.Error("a seed came twice")
	}
}

func TestLong(t *testing.T) {
	set(t, "1", "20ms", "")
	began, rounds := time.Now(), 0
	Campaign(t, 3, func(*testing.T, uint64) { rounds++ })
	if took := time.Since(began); rounds <= 3 || took < 20*time.Millisecond {
		t.Errorf("%d rounds in %v", rounds, took)
	}
	if n := Rounds(t, 2, 50); n != 50 {
		t.Errorf("%d rounds", n)
	}
}

// A fixed seed is drawn once, however long the campaign is to be.
func TestReplay(t *testing.T) {
	set(t, "1", "1h", "42")
	var seeds []uint64
	Campaign(t, 3, func(_ *testing.T, seed uint64) { seeds = append(seeds, seed) })
	if len(seeds) != 1 || seeds[0] != 42 || Seed(t) != 42 {
		t.Errorf("drew %v and %d", seeds, Seed(t))
	}
	if a, b := Rand(42, 1).Uint64(), Rand(42, 2).Uint64(); a == b || a != Rand(42, 1).Uint64() {
		t.Errorf("two streams of a seed gave %d and %d", a, b)
	}
}

func TestSpread(t *testing.T) {
	for _, tt := range []struct {
		n, most int
		want    []int
	}{{0, 3, nil}, {1, 3, []int{0}}, {5, 1, []int{0}}, {3, 9, []int{0, 1, 2}}, {10, 4, []int{0, 3, 6, 9}}} {
		if got := spread(tt.n, tt.most); !slices.Equal(got, tt.want) {
			t.Errorf("%d of %d: %v, want %v", tt.most, tt.n, got, tt.want)
		}
	}
}

func TestCommand(t *testing.T) {
	want := "GODWIT_SOAK=1 GODWIT_SEED=7 go test -count=1 -run '^TestA$/^b\\.c$' ./test/soak"
	if raced {
		want = "GODWIT_SOAK=1 GODWIT_SEED=7 go test -count=1 -race -run '^TestA$/^b\\.c$' ./test/soak"
	}
	if got := command("TestA/b.c", 7, true); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// make full, and make soak, run at full size what make test has small; the race detector never.
func TestSize(t *testing.T) {
	for _, tt := range []struct {
		full, soak string
		large      bool
	}{{"", "", false}, {"0", "", false}, {"1", "", true}, {"", "1", true}} {
		set(t, tt.soak, "1ns", "")
		t.Setenv(fullVariable, tt.full)
		want := 2
		if tt.large && !raced {
			want = 50
		}
		if got := Size(2, 50); got != want || len(Spread(50, 2)) != want {
			t.Errorf("GODWIT_FULL=%s GODWIT_SOAK=%s: size %d, %d of 50 are spread, want %d", tt.full, tt.soak, got, len(Spread(50, 2)), want)
		}
	}
}
