package consume

import "time"

// pace holds the attempts of one backlog to a rate a second. It
// lets them through in groups of equal distance, of one attempt up to 100 a
// second, so that no second, wherever it begins, sees more than the limit. What
// was not used is lost: there are no bursts. The zero value lets all through.
type pace struct {
	rate int       // attempts a second; 0: no limit
	next time.Time // when the next group begins
	left int       // attempts left in the group that has begun
}

// groups is how many groups a second has at most: timers finer than 10 ms are
// not worth their cost.
const groups = 100

func (p *pace) limit(rate int) {
	if rate != p.rate {
		p.rate, p.left = rate, 0
	}
}

// group is the size of a group of attempts and the distance between two groups.
// A second holds a whole number of groups, so that no window of a second holds
// one too many; that costs up to 2 % of rates above 100.
func (p *pace) group() (size int, distance time.Duration) {
	size = (p.rate + groups - 1) / groups
	perSecond := time.Duration(p.rate / size)
	return size, (time.Second + perSecond - 1) / perSecond
}

// allowed is how many attempts may begin now; -1 means no limit.
func (p *pace) allowed(now time.Time) int {
	switch {
	case p.rate == 0:
		return -1
	case now.Before(p.next):
		return p.left
	}
	size, _ := p.group()
	return size
}

// begin counts an attempt that begins now and was allowed.
func (p *pace) begin(now time.Time) {
	if p.rate == 0 {
		return
	}
	size, distance := p.group()
	if !now.Before(p.next) {
		p.left = size
	}
	p.left--
	// From the last of the group, not from its first: a group that is used up
	// late must not meet the next one within a second's share.
	p.next = now.Add(distance)
}
