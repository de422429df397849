package consume

import "time"

// rateLimit bounds the attempts of one backlog per second. It allows them in batches at equal
// intervals (of one attempt each, up to 100 a second), so that no window of a second, wherever
// it begins, has more than the limit. Unlike in a token bucket, unused capacity is lost:
// there are no bursts. The zero value has no limit.
type rateLimit struct {
	rate int       // attempts a second; 0: no limit
	next time.Time // when the next batch begins
	left int       // attempts left in the batch that has begun
}

// batchesPerSecond bounds the batches of a second: timers finer than 10 ms are not worth their
// cost.
const batchesPerSecond = 100

// set changes the limit, in attempts a second; 0: none.
func (p *rateLimit) set(rate int) {
	if rate != p.rate {
		p.rate, p.left = rate, 0
	}
}

// batch is the size of a batch and the interval between two of them. A second has a whole
// number of batches, so that no window of a second has one too many; that costs up to 2 % of
// rates above 100.
func (p *rateLimit) batch() (size int, distance time.Duration) {
	size = (p.rate + batchesPerSecond - 1) / batchesPerSecond
	perSecond := time.Duration(p.rate / size)
	return size, (time.Second + perSecond - 1) / perSecond
}

// allowed is how many attempts may begin now; -1 means no limit.
func (p *rateLimit) allowed(now time.Time) int {
	switch {
	case p.rate == 0:
		return -1
	case now.Before(p.next):
		return p.left
	}
	size, _ := p.batch()
	return size
}

// begin counts an attempt that begins now and was allowed.
func (p *rateLimit) begin(now time.Time) {
	if p.rate == 0 {
		return
	}
	size, distance := p.batch()
	if !now.Before(p.next) {
		p.left = size
	}
	p.left--
	// Counted from the last attempt of the batch, not from its first: otherwise a batch
	// that is used up late would be followed by the next one within the interval.
	p.next = now.Add(distance)
}
