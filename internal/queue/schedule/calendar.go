package schedule

import (
	"maps"
	"slices"
)

// calendar counts the messages that become due in each second of the epoch. The zero value is
// empty.
type calendar struct {
	counts map[int64]int64
	total  int64 // of all counts
	first  int64 // no second before it is counted
}

// writeCount writes the count of a second; 0 removes it.
type writeCount func(second, count int64)

// add adds n to the count of due, in epoch milliseconds. n may be negative; the count of a
// second that has passed is not reduced, as it is dropped.
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

// forget drops the seconds that have passed.
func (c *calendar) forget(now int64, write writeCount) {
	for _, second := range c.over(now) {
		c.set(second, 0)
		write(second, 0)
	}
	c.first = max(c.first, now/1000)
}

// shift makes the messages that are not yet due, due by seconds later.
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

// replace replaces all counts.
func (c *calendar) replace(counts map[int64]int64, write writeCount) {
	for _, second := range slices.Sorted(maps.Keys(c.counts)) {
		write(second, 0)
	}
	*c = calendar{}
	for _, second := range slices.Sorted(maps.Keys(counts)) {
		c.set(second, counts[second])
		write(second, counts[second])
	}
}

// after counts the messages due after now, to within a second.
func (c *calendar) after(now int64) (n int64) {
	n = c.total
	for _, second := range c.over(now) {
		n -= c.counts[second]
	}
	return n
}

// empty reports that nothing is counted.
func (c *calendar) empty() bool { return len(c.counts) == 0 }

// over lists the counted seconds that have passed, in ascending order. Its cost depends on the
// seconds that passed since the last forget, not on the future ones.
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
