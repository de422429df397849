package consume

import "container/list"

// Pool is a bulkhead: it shares a bounded number of attempts in flight among hosts. Three
// rules keep a host that hangs from delaying one that answers:
//
//   - No host has more than its limit of attempts, and less when more than a quarter
//     of the bound is in use: the fewer are free, the smaller its share.
//   - A host without attempts in flight comes before those that have some, and a quarter
//     of the bound is reserved for such hosts. Among the others, and among the backlogs
//     of a host, it is round-robin.
//   - Slow hosts, whose last attempt hung, leave a fifth of the bound to the others, and
//     their attempts begin at a limited rate: thousands that began together would also
//     time out together, and saturate the CPU for that moment.
//
// A ReservingPool has none of these rules: each backlog is its own host with the limit of its
// Plan, and is leased from, round robin, only if there is capacity.
//
// A pool belongs to one Consumer, whose lock guards it.
type Pool struct {
	limit    int // attempts at one host
	bound    int // attempts in all
	batch    int // messages of one backlog that are leased at once
	eager    bool
	reserves bool
	inflight int
	waiting  int // leased, and not begun
	hosts    map[string]*host

	slowTokens   int  // attempts at slow hosts that may begin now
	slowDeferred bool // a slow host waits for a token

	// The hosts that may begin an attempt, except for the bounds of all hosts, round robin:
	// without and with attempts in flight (busy), each with the slow ones apart.
	idle, idleSlow, busy, busySlow list.List
}

// remoteBatch bounds a lease for remote hosts, and aheadBatch the prefetch for a quick one, in
// messages.
const (
	remoteBatch = 10
	aheadBatch  = 5
)

// RemotePool is for attempts that leave this process: up to limit in flight at one host, and
// bound in all.
func RemotePool(limit, bound int) *Pool {
	p := newPool(limit, bound)
	p.batch = remoteBatch
	return p
}

// LocalPool is for attempts that stay in this process and are short, with bounds as of
// RemotePool. Concurrent ones share group commits, so that leases are as large as possible.
func LocalPool(limit, bound int) *Pool {
	p := newPool(limit, bound)
	p.batch, p.eager = limit, true
	return p
}

// ReservingPool is for large messages: capacity is reserved before they are leased, so that
// none waits in memory. Up to bound are in flight, and of one backlog up to Plan.Limit.
func ReservingPool(bound int) *Pool {
	p := newPool(0, bound)
	p.batch, p.reserves = remoteBatch, true
	return p
}

func newPool(limit, bound int) *Pool {
	return &Pool{limit: limit, bound: bound, hosts: map[string]*host{}, slowTokens: slowBurst}
}

// host is a destination whose attempts share a limit.
type host struct {
	pool     *Pool
	name     string
	backlogs int // that have it as their host
	limit    int // of attempts
	inflight int
	slow     bool            // the last attempt took slowAfter or longer
	quick    bool            // the last attempt succeeded within quickWithin
	queue    []*backlogState // those that may begin an attempt, round robin
	ring     *list.List      // nil: in none
	element  *list.Element
}

// maxHosts bounds the hosts without work that are remembered as slow.
const maxHosts = 100_000

// maxScanned bounds the busy hosts that one search examines. None starves: each is examined again
// when one of its attempts ends.
const maxScanned = 64

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
func (h *host) push(b *backlogState) {
	b.listed = true
	h.queue = append(h.queue, b)
	h.place()
}

// drop removes b from its host's queue.
func (h *host) drop(b *backlogState) {
	for i, other := range h.queue {
		if other == b {
			h.queue = append(h.queue[:i:i], h.queue[i+1:]...)
			break
		}
	}
	b.listed = false
	h.place()
}

// begin dequeues the first backlog and counts an attempt in flight. The host must come from
// Pool.next.
func (h *host) begin() *backlogState {
	b := h.queue[0]
	h.queue[0] = nil
	h.queue = h.queue[1:]
	b.listed = false
	h.inflight++
	h.pool.inflight++
	if h.slow {
		h.pool.slowTokens--
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

// reserve counts n attempts as in flight before their messages are leased; a negative n undoes
// that.
func (h *host) reserve(n int) {
	h.inflight += n
	h.pool.inflight += n
}

// leave undoes a join. A host without backlogs is dropped, unless it is slow, which is
// remembered.
func (h *host) leave() {
	h.backlogs--
	if h.backlogs == 0 && (!h.slow || len(h.pool.hosts) > maxHosts) {
		delete(h.pool.hosts, h.name)
	}
}

// place moves the host to the end of the ring of its current state.
func (h *host) place() {
	p := h.pool
	var ring *list.List
	switch {
	case len(h.queue) == 0 || h.inflight >= h.limit:
	case h.inflight > 0 && h.slow: // otherwise a search might see only slow ones
		ring = &p.busySlow
	case h.inflight > 0:
		ring = &p.busy
	case h.slow:
		ring = &p.idleSlow
	default:
		ring = &p.idle
	}
	if ring == h.ring && ring != &p.busy && ring != &p.busySlow {
		return // it keeps its place
	}
	if h.ring != nil {
		h.ring.Remove(h.element)
	}
	h.ring = ring
	if ring != nil {
		h.element = ring.PushBack(h)
	}
}

// next returns the host of the next attempt; nil: none may begin.
func (p *Pool) next() *host {
	free := p.bound - p.inflight
	reserve := p.bound / 5
	if free <= 0 {
		return nil
	}
	if e := p.idle.Front(); e != nil {
		return e.Value.(*host)
	}
	if e := p.idleSlow.Front(); e != nil && free > reserve && p.allowSlow() {
		return e.Value.(*host)
	}
	forBusy := free - p.bound/4
	if forBusy <= 0 {
		return nil
	}
	share := max(1, min(p.limit, 2*p.limit*forBusy/p.bound))
	if h := underShare(&p.busy, share); h != nil {
		return h
	}
	if free <= reserve {
		return nil
	}
	if h := underShare(&p.busySlow, share); h != nil && p.allowSlow() {
		return h
	}
	return nil
}

// underShare finds the next host of a ring with fewer attempts in flight than share, and moves
// those before it to the end.
func underShare(ring *list.List, share int) *host {
	for range min(ring.Len(), maxScanned) {
		e := ring.Front()
		if h := e.Value.(*host); h.inflight < share {
			return h
		}
		ring.MoveToBack(e)
	}
	return nil
}

// allowSlow reports whether there is a token for an attempt at a slow host.
func (p *Pool) allowSlow() bool {
	if p.slowTokens <= 0 {
		p.slowDeferred = true
	}
	return p.slowTokens > 0
}
