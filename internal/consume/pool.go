package consume

import "container/list"

// Pool shares a bounded number of attempts among hosts. Three rules keep a host
// that hangs from delaying one that answers:
//
//   - No host has more than its limit of attempts, and less when more than a quarter
//     of the bound is in use: the fewer are free, the smaller its share.
//   - A host without any attempt comes before those that have some, and a quarter
//     of the bound is for such hosts only. Among the rest, and among the
//     backlogs of a host, it is round-robin.
//   - Hosts whose last attempt hung leave a fifth of the bound to the others, and
//     begin attempts one after the other: thousands that begin at once also run
//     out of time at once, and use all of the processor for that while.
//
// A pool that reserves room has none of these rules: each backlog is its own host,
// has the limit that Plan says, and is leased from, in turn, only when there is room.
//
// A pool belongs to one Consumer, under whose lock it is.
type Pool struct {
	limit    int // attempts at one host
	bound    int // attempts in all
	batch    int // messages of one backlog that are leased at once
	eager    bool
	reserves bool
	inflight int
	waiting  int // leased, and not begun
	hosts    map[string]*host

	slowly int  // attempts at hosts that hung that may begin now
	passed bool // such a host was passed over for that since it was last set

	// The rings of the hosts that have something to do and room for it.
	idle, idleSlow, busy, busySlow list.List
}

// outsideBatch is how many messages of one backlog are leased at once for hosts
// outside, and aheadBatch how many before there is room for them.
const (
	outsideBatch = 10
	aheadBatch   = 5
)

// OutsidePool is for attempts that leave this process: up to limit at one host, and
// bound in all.
func OutsidePool(limit, bound int) *Pool {
	p := newPool(limit, bound)
	p.batch = outsideBatch
	return p
}

// LocalPool is for attempts that stay in this process and are short: they share
// commits when many are under way, so that as many are leased at once as there is
// room for.
func LocalPool(limit, bound int) *Pool {
	p := newPool(limit, bound)
	p.batch, p.eager = limit, true
	return p
}

// ReservingPool is for messages that are large: none is in memory that may not begin.
// Up to bound are, and of one backlog up to what Plan says.
func ReservingPool(bound int) *Pool {
	p := newPool(0, bound)
	p.batch, p.reserves = outsideBatch, true
	return p
}

func newPool(limit, bound int) *Pool {
	return &Pool{limit: limit, bound: bound, hosts: map[string]*host{}, slowly: slowBurst}
}

// host is a party that attempts are made at.
type host struct {
	pool     *Pool
	name     string
	backlogs int // that have it as their host
	limit    int // of attempts
	inflight int
	slow     bool       // the last attempt hung
	quick    bool       // it succeeded, and did not take long
	queue    []*backlog // those that could begin an attempt, in their turn
	ring     *list.List // nil: in none
	element  *list.Element
}

// maxHosts is how many hosts without work are remembered for being slow.
const maxHosts = 100_000

// scan is how many busy hosts one search looks at. None is forgotten: each also
// gets its chance when one of its attempts ends.
const scan = 64

// join finds a host and counts the caller as a backlog of it.
func (p *Pool) join(name string) *host {
	h, ok := p.hosts[name]
	if !ok {
		h = &host{pool: p, name: name, limit: p.limit}
		p.hosts[name] = h
	}
	h.backlogs++
	return h
}

// push enqueues b for an attempt at its host.
func (h *host) push(b *backlog) {
	b.listed = true
	h.queue = append(h.queue, b)
	h.place()
}

// drop takes b out of its host's queue.
func (h *host) drop(b *backlog) {
	for i, other := range h.queue {
		if other == b {
			h.queue = append(h.queue[:i:i], h.queue[i+1:]...)
			break
		}
	}
	b.listed = false
	h.place()
}

// begin dequeues the first backlog and counts an attempt. The host must come
// from next.
func (h *host) begin() *backlog {
	b := h.queue[0]
	h.queue[0] = nil
	h.queue = h.queue[1:]
	b.listed = false
	h.inflight++
	h.pool.inflight++
	if h.slow {
		h.pool.slowly--
	}
	h.place()
	return b
}

// end counts the end of an attempt.
func (h *host) end(slow bool) {
	h.inflight--
	h.pool.inflight--
	h.slow = slow
	h.place()
}

// reserve counts n attempts more, or fewer, before it is known what they are.
func (h *host) reserve(n int) {
	h.inflight += n
	h.pool.inflight += n
}

// leave undoes a join. A host without backlogs is forgotten, unless it is
// worth remembering that it is slow.
func (h *host) leave() {
	h.backlogs--
	if h.backlogs == 0 && (!h.slow || len(h.pool.hosts) > maxHosts) {
		delete(h.pool.hosts, h.name)
	}
}

// place puts the host at the end of the ring that it belongs to now.
func (h *host) place() {
	p := h.pool
	var ring *list.List
	switch {
	case len(h.queue) == 0 || h.inflight >= h.limit:
	case h.inflight > 0 && h.slow: // they must not hide the others
		ring = &p.busySlow
	case h.inflight > 0:
		ring = &p.busy
	case h.slow:
		ring = &p.idleSlow
	default:
		ring = &p.idle
	}
	if ring == h.ring && ring != &p.busy && ring != &p.busySlow {
		return // it keeps its turn
	}
	if h.ring != nil {
		h.ring.Remove(h.element)
	}
	h.ring = ring
	if ring != nil {
		h.element = ring.PushBack(h)
	}
}

// next finds the host whose turn it is, nil if none may begin an attempt.
func (p *Pool) next() *host {
	free := p.bound - p.inflight
	reserve := p.bound / 5
	if free <= 0 {
		return nil
	}
	if e := p.idle.Front(); e != nil {
		return e.Value.(*host)
	}
	if e := p.idleSlow.Front(); e != nil && free > reserve && p.slower() {
		return e.Value.(*host)
	}
	forBusy := free - p.bound/4
	if forBusy <= 0 {
		return nil
	}
	share := max(1, min(p.limit, 2*p.limit*forBusy/p.bound))
	if h := turn(&p.busy, share); h != nil {
		return h
	}
	if free <= reserve {
		return nil
	}
	if h := turn(&p.busySlow, share); h != nil && p.slower() {
		return h
	}
	return nil
}

// turn finds the next of a ring that has fewer attempts under way than its share;
// those before it wait for another turn.
func turn(ring *list.List, share int) *host {
	for range min(ring.Len(), scan) {
		e := ring.Front()
		if h := e.Value.(*host); h.inflight < share {
			return h
		}
		ring.MoveToBack(e)
	}
	return nil
}

// slower reports that an attempt at a slow host may begin now.
func (p *Pool) slower() bool {
	if p.slowly <= 0 {
		p.passed = true
	}
	return p.slowly > 0
}
