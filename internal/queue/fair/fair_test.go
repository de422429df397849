package fair_test

import (
	"slices"
	"testing"

	"godwit.dev/godwit/internal/queue/fair"
)

func TestNoisyByWhatIsInFlight(t *testing.T) {
	var s fair.Shares[string]
	for range 29 {
		s.Leased("loud", 0)
	}
	if s.Noisy("loud", 29) {
		t.Error("29 in flight are few")
	}
	s.Leased("loud", 0)
	if !s.Noisy("loud", 30) || s.Noisy("loud", 300) || s.Noisy("other", 30) {
		t.Error("30 in flight are noisy where they are more than a tenth")
	}
	if holding, noisy := s.Count(30); holding != 1 || !slices.Equal(noisy, []string{"loud"}) || s.InFlight("loud") != 30 {
		t.Errorf("%d hold something, %v are noisy", holding, noisy)
	}
}

func TestNoisyByProcessingTime(t *testing.T) {
	var s fair.Shares[string]
	s.Leased("slow", 0)
	s.Released("slow", 0, 11_000)
	s.ReleasedAlone(0, 89_000)
	if !s.Noisy("slow", 0) {
		t.Error("11 of 100 seconds are more than a tenth")
	}
	s.ReleasedAlone(0, 20_000)
	if s.Noisy("slow", 0) {
		t.Error("11 of 120 seconds are less than a tenth")
	}
}

// What was is half as much with every minute, and then nothing: whoever has
// nothing in flight is forgotten.
func TestThePastFades(t *testing.T) {
	var s fair.Shares[string]
	const minute = 60_000
	s.Leased("a", 0)
	s.Released("a", 0, 1000)
	s.Leased("b", 0)
	s.Leased("c", 0)
	if got := s.InFlight("a", "b", "c"); got != 2 {
		t.Errorf("%d are in flight of them all", got)
	}
	s.Released("c", 0, 0)
	if s.None() {
		t.Fatal("two have shares")
	}
	s.ReleasedAlone(3*minute, 2000) // a has 125 ms left of 2,125
	if s.Noisy("a", 1) {
		t.Error("the past counts in full")
	}
	s.ReleasedAlone(60*minute, 0)
	if holding, _ := s.Count(1); holding != 1 || s.Noisy("a", 1) {
		t.Errorf("%d hold something", holding)
	}
	s.Released("b", 60*minute, 0)
	if !s.None() {
		t.Error("nobody holds anything, and there was nothing of late")
	}
}

// Minutes that have passed are counted once, and a clock that is set back brings none again.
func TestThePastFadesOnce(t *testing.T) {
	var s fair.Shares[string]
	const minute = 60_000
	s.ReleasedAlone(0, 1600)
	s.ReleasedAlone(3*minute, 0) // 200 ms are left
	s.Leased("slow", 3*minute+1)
	s.Released("slow", 3*minute+2, 40)
	s.ReleasedAlone(2*minute, 0)
	for range 10 {
		s.ReleasedAlone(3*minute+3, 0)
	}
	if !s.Noisy("slow", 0) {
		t.Error("40 of 240 ms are more than a tenth")
	}
	s.ReleasedAlone(3*minute+4, 161)
	if s.Noisy("slow", 0) {
		t.Error("40 of 401 ms are less than a tenth")
	}
}
