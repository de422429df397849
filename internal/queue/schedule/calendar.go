package schedule

import (
	"maps"
	"slices"
)

// calendar counts what is due in each second of the epoch. The zero value counts nothing.
type calendar struct {
	counts map[int64]int64
	total  int64 // of all counts
	first  int64 // no second before it is counted
}

// writeCount writes what a count has become; 0 is that it is gone.
type writeCount func(second, count int64)

// add counts n more at due, in epoch milliseconds; less, with a negative n,
// unless that second is over.
func (c *calendar) add(now, due, n int64, write writeCount) {
	c.forget(now, write)
	second := due / 1000
	count := c.counts[second]
	if n < 0 && count == 0 {
		return
	}
	c.set(second, count+n)
	write(second, count+n)
}

// set restores the count of a second.
func (c *calendar) set(second, count int64) {
	c.total += count - c.counts[second]
	if count == 0 {
		delete(c.counts, second)
		return
	}
	if len(c.counts) == 0 {
		c.first = second
	}
	if c.counts == nil {
		c.counts = map[int64]int64{}
	}
	c.first = min(c.first, second)
	c.counts[second] = count
}

// forget drops the seconds that are over.
func (c *calendar) forget(now int64, write writeCount) {
	for _, second := range c.over(now) {
		c.set(second, 0)
		write(second, 0)
	}
	c.first = max(c.first, now/1000)
}

// shift makes all that is not over due by seconds later.
func (c *calendar) shift(now, by int64, write writeCount) {
	old := c.counts
	seconds := slices.Sorted(maps.Keys(old))
	*c = calendar{}
	for _, second := range seconds {
		write(second, 0)
	}
	for _, second := range seconds {
		if !over(second, now) && !over(second+by, now) {
			c.set(second+by, old[second])
			write(second+by, old[second])
		}
	}
}

// after counts what is due after now, to within that second.
func (c *calendar) after(now int64) (n int64) {
	n = c.total
	for _, second := range c.over(now) {
		n -= c.counts[second]
	}
	return n
}

// empty reports that nothing is counted.
func (c *calendar) empty() bool { return len(c.counts) == 0 }

// over lists the seconds that are counted and over, in their order. It looks at
// each that has passed since they were last dropped, and not at those to come.
func (c *calendar) over(now int64) (seconds []int64) {
	if len(c.counts) == 0 {
		return nil
	}
	if passed := now/1000 - c.first; passed > int64(len(c.counts)) { // a long time
		for second := range c.counts {
			if over(second, now) {
				seconds = append(seconds, second)
			}
		}
		slices.Sort(seconds)
		return seconds
	}
	for second := c.first; over(second, now); second++ {
		if c.counts[second] != 0 {
			seconds = append(seconds, second)
		}
	}
	return seconds
}

func over(second, now int64) bool { return (second+1)*1000 <= now }
