package schedule

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestCalendar holds a calendar against a list of due times, and what it wrote
// against what it counts.
func TestCalendar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c calendar
		now := int64(100_000)
		var due []int64
		disk := map[int64]int64{}
		write := func(second, count int64) {
			if disk[second] = count; count == 0 {
				delete(disk, second)
			}
		}
		over := func(at int64) bool { return (at/1000+1)*1000 <= now }
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				at := now + rapid.Int64Range(1, 5000).Draw(t, "ms")
				due = append(due, at)
				c.add(now, at, 1, write)
			},
			"take back": func(t *rapid.T) {
				if len(due) == 0 {
					return
				}
				c.add(now, due[0], -1, write)
				due = due[1:]
			},
			"shift": func(t *rapid.T) {
				by := rapid.Int64Range(-3, 3).Draw(t, "s")
				c.shift(now, by, write)
				due = slices.DeleteFunc(due, over)
				for i := range due {
					due[i] += by * 1000
				}
				due = slices.DeleteFunc(due, over)
			},
			"time passes": func(t *rapid.T) { now += rapid.Int64Range(1, 3000).Draw(t, "ms") },
			"forget":      func(*rapid.T) { c.forget(now, write) },
			"reopen": func(*rapid.T) {
				c = calendar{}
				for second, n := range maps.All(disk) {
					c.set(second, n)
				}
			},
			"": func(t *rapid.T) {
				var want int64
				for _, at := range due {
					if !over(at) {
						want++
					}
				}
				if got := c.after(now); got != want {
					t.Fatalf("%d are due after %d, want %d of %v", got, now, want, due)
				}
				if c.empty() != (len(disk) == 0) {
					t.Fatalf("empty: %v, on disk: %v", c.empty(), disk)
				}
			},
		})
	})
}
