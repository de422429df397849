// Package calendar counts what is due in each second to come.
package calendar

import (
	"maps"
	"slices"
)

// Calendar counts by seconds of the epoch. The zero value counts nothing.
type Calendar struct {
	counts    map[int64]int64
	forgotten int64 // the second in which those that were over were last dropped
}

// Write is told what a count has become; 0 is that it is gone.
type Write func(second, count int64)

// Add counts n more at due, in epoch milliseconds; less, with a negative n,
// unless that second is over.
func (c *Calendar) Add(now, due, n int64, write Write) {
	c.Forget(now, write)
	second := due / 1000
	count := c.counts[second]
	if n < 0 && count == 0 {
		return
	}
	c.Set(second, count+n)
	write(second, count+n)
}

// Set restores the count of a second.
func (c *Calendar) Set(second, count int64) {
	if count == 0 {
		delete(c.counts, second)
		return
	}
	if c.counts == nil {
		c.counts = map[int64]int64{}
	}
	c.counts[second] = count
}

// Forget drops the seconds that are over, at most once a second.
func (c *Calendar) Forget(now int64, write Write) {
	if len(c.counts) == 0 || now/1000 == c.forgotten {
		return
	}
	c.forgotten = now / 1000
	for _, second := range c.seconds() {
		if over(second, now) {
			delete(c.counts, second)
			write(second, 0)
		}
	}
}

// Shift makes all that is not over due by seconds later.
func (c *Calendar) Shift(now, by int64, write Write) {
	old, seconds := c.counts, c.seconds()
	c.counts = nil
	for _, second := range seconds {
		write(second, 0)
	}
	for _, second := range seconds {
		if !over(second, now) && !over(second+by, now) {
			c.Set(second+by, old[second])
			write(second+by, old[second])
		}
	}
}

// After counts what is due after now, to within that second.
func (c *Calendar) After(now int64) (n int64) {
	for second, count := range c.counts {
		if !over(second, now) {
			n += count
		}
	}
	return n
}

// Empty reports that nothing is counted.
func (c *Calendar) Empty() bool { return len(c.counts) == 0 }

func (c *Calendar) seconds() []int64 { return slices.Sorted(maps.Keys(c.counts)) }

func over(second, now int64) bool { return (second+1)*1000 <= now }
