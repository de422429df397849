package limit

import (
	"context"
	"sync/atomic"
	"time"
)

// Peer is the sender of a request, and the receiver of its answer.
type Peer interface {
	// Moved is how many bytes went over the connection so far.
	Moved() int64
	// CutRead aborts the reading of a request; it can still be answered. Cut closes the
	// connection. Both may be called on any goroutine.
	CutRead()
	Cut()
}

// Reservation is the memory of one request, counted in a budget. The zero Reservation has no
// budget, so that everything fits, until Of. It is not safe for concurrent use.
type Reservation struct {
	budget  *Budget
	held    int64
	counted int64 // guarded by the budget's mu while it waits

	// Guarded by the budget's mu.
	next, prev *Reservation
	listed     bool
	waits      *waiter
	peer       Peer // while it reads or writes
	reads      bool
	sampled    time.Time
	sample     int64

	cut atomic.Bool
}

// Of counts the reservation in b, from now on. It must be empty.
func (r *Reservation) Of(b *Budget) { r.budget = b }

// Held is how many bytes are reserved.
func (r *Reservation) Held() int64 {
	if r == nil {
		return 0
	}
	return r.held
}

// WasCut reports that the request was cut off to free its memory for others.
func (r *Reservation) WasCut() bool { return r != nil && r.cut.Load() }

// counts is how many of n held bytes are counted.
func (r *Reservation) counts(n int64) int64 {
	if n <= Free {
		return 0
	}
	// A single request that is larger than the budget must be able to proceed alone.
	if most := r.budget.limit / 2; most > 0 && n > most {
		return most
	}
	return n
}

// TryGrow reserves n more bytes if they are available now.
func (r *Reservation) TryGrow(n int64) bool {
	if r == nil || r.budget == nil {
		return true
	}
	more := r.counts(r.held+n) - r.counted
	if more > 0 {
		if r.budget.waiting.Load() > 0 && r.counted+more > small || !r.budget.take(more, r.counted+more) {
			return false
		}
		r.count(more)
	}
	r.held += n
	return true
}

// TryMore is TryGrow, but also refuses to exceed what one request may hold in addition: half of
// the budget.
func (r *Reservation) TryMore(n int64) bool {
	if r != nil && r.budget != nil && r.held > 0 && r.counts(r.held+n) < r.held+n && r.held+n > Free {
		return false
	}
	return r.TryGrow(n)
}

// Grow reserves n more bytes, and waits until they are available. Errors: ErrFull after the
// maximum wait, ctx's.
func (r *Reservation) Grow(ctx context.Context, n int64) error {
	if r.TryGrow(n) {
		return nil
	}
	if err := r.budget.wait(ctx, r, r.counts(r.held+n)-r.counted); err != nil {
		return err
	}
	r.held += n
	r.count(0)
	return nil
}

// Resize sets the reservation to n bytes, which the caller holds already. If that is more than
// before, and does not fit, it waits; if too many wait, it is refused, and the caller must
// release the bytes.
func (r *Reservation) Resize(ctx context.Context, n int64) error {
	if r == nil || r.budget == nil {
		return nil
	}
	more := n - r.held
	if more <= 0 {
		r.shrink(n)
		return nil
	}
	if r.TryGrow(more) {
		return nil
	}
	b := r.budget
	defer b.excess.Add(-more)
	if b.excess.Add(more) > b.limit/8 {
		b.refused.Add(1)
		return ErrFull
	}
	return r.Grow(ctx, more)
}

// Shrink releases n bytes.
func (r *Reservation) Shrink(n int64) {
	if r != nil && r.budget != nil {
		r.shrink(r.held - n)
	}
}

// Release releases everything. It may be called again.
func (r *Reservation) Release() { r.shrink(0) }

func (r *Reservation) shrink(to int64) {
	if r == nil || r.budget == nil {
		return
	}
	r.held = to
	less := r.counted
	if to > 0 {
		less -= r.counts(to)
	}
	if less <= 0 {
		return
	}
	b := r.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.counted == less {
		r.unlist()
	}
	r.counted -= less
	b.give(less) // under the lock: in between, all others would seem to wait for each other
}

// Reading says that the request is being read from peer, until Working; Writing, that it is
// being answered. While others wait for memory, a slow peer is cut off. This has an effect once
// bytes are counted.
func (r *Reservation) Reading(peer Peer) { r.moves(peer, true) }

// Writing is like Reading.
func (r *Reservation) Writing(peer Peer) { r.moves(peer, false) }

// Working says that the request is neither being read nor answered now.
func (r *Reservation) Working() { r.moves(nil, false) }

func (r *Reservation) moves(peer Peer, reads bool) {
	if r == nil || r.budget == nil || r.counted == 0 || r.peer == peer {
		return
	}
	b := r.budget
	b.mu.Lock()
	r.peer, r.reads, r.sampled = peer, reads, time.Time{}
	b.mu.Unlock()
}

// count adds to the counted bytes, and lists the reservation as a holder.
func (r *Reservation) count(more int64) {
	b := r.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	r.counted += more
	if r.listed || r.counted == 0 {
		return
	}
	r.listed, r.prev, r.next = true, nil, b.holders
	if b.holders != nil {
		b.holders.prev = r
	}
	b.holders = r
}

// unlist removes the reservation from the holders. The caller has the budget's mu.
func (r *Reservation) unlist() {
	if !r.listed {
		return
	}
	if r.prev == nil {
		r.budget.holders = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next != nil {
		r.next.prev = r.prev
	}
	r.next, r.prev, r.listed, r.peer = nil, nil, false, nil
}

type peerKey struct{}

// WithPeer gives a connection's requests their peer.
func WithPeer(ctx context.Context, p Peer) context.Context {
	return context.WithValue(ctx, peerKey{}, p)
}

// PeerOf finds a request's peer; nil if it has none.
func PeerOf(ctx context.Context) Peer {
	p, _ := ctx.Value(peerKey{}).(Peer)
	return p
}
