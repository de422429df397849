package consume

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Date(2024, 2, 28, 0, 0, 0, 0, time.UTC)

func TestExpired(t *testing.T) {
	end := start.Add(time.Hour)
	if Expired(time.Time{}, end) || Expired(end, end.Add(999*time.Microsecond)) || !Expired(end, end.Add(time.Millisecond)) {
		t.Error("a deadline holds to the millisecond, and is the last moment itself")
	}
}

func TestPace(t *testing.T) {
	for _, rate := range []int{1, 2, 3, 7, 60, 99, 100, 101, 150, 199, 1000, 12345} {
		p := rateLimit{}
		p.set(rate)
		now, end := start, start.Add(5*time.Second)
		var begun []time.Time
		// A caller that comes a little late every time, and often too early.
		for i := 0; now.Before(end); i++ {
			for p.allowed(now) > 0 {
				p.begin(now)
				begun = append(begun, now)
				if i%3 == 0 {
					now = now.Add(time.Microsecond)
				}
			}
			now = p.next.Add(time.Duration(i%2) * time.Microsecond)
		}
		for i := rate; i < len(begun); i++ {
			if d := begun[i].Sub(begun[i-rate]); d < time.Second {
				t.Fatalf("rate %d: %d attempts within %s", rate, rate+1, d)
			}
		}
		if least := rate * 5 * 97 / 100; len(begun) < least {
			t.Errorf("rate %d: %d attempts in 5 s, want at least %d", rate, len(begun), least)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.IntRange(1, 1000).Draw(t, "rate")
		p := rateLimit{}
		p.set(rate)
		now := start
		var begun []time.Time
		for range 500 {
			now = now.Add(time.Duration(rapid.IntRange(0, 12_000).Draw(t, "µs")) * time.Microsecond)
			if p.allowed(now) == 0 {
				continue
			}
			p.begin(now)
			if begun = append(begun, now); len(begun) > rate && now.Sub(begun[len(begun)-1-rate]) < time.Second {
				t.Fatalf("%d attempts within a second", rate+1)
			}
		}
	})
	if (&rateLimit{}).allowed(start) != -1 {
		t.Error("no limit is a limit")
	}
}
