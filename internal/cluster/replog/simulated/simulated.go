// Package simulated is a replicated log in memory that does to its users whatever a real
// one may: it refuses, delays, reorders and repeats appends, loses their answers, and cuts
// nodes off. What happens when is chosen by whoever drives it, so that a seed decides.
package simulated

import (
	"context"
	"slices"
	"sync"

	"godwit.dev/godwit/internal/cluster/replog"
)

// Cluster is a log and the nodes that use it.
type Cluster struct {
	mu      sync.Mutex
	first   uint64   // position of records[0]
	records [][]byte // from first on
	grown   chan struct{}
	queue   []*sending // what was sent and has not come to an end; in the order of sending
	held    bool       // appends wait for Deliver
}

// sending is an append on its way.
type sending struct {
	data     []byte
	done     func(uint64, error)
	answered bool
}

// New makes an empty log. Unless appends are held they are carried out at once.
func New() *Cluster { return &Cluster{first: 1, grown: make(chan struct{})} }

// Hold has appends wait until Deliver is called for each.
func (c *Cluster) Hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = true
}

// Fate is what becomes of an append.
type Fate int

// The fates.
const (
	Taken    Fate = iota // it is in the log, and its writer knows
	Silent               // it is in the log, and its writer gets ErrUnknown
	Lost                 // it is not in the log, and its writer gets ErrUnknown
	Refused              // it is not in the log, and its writer gets ErrRefused
	Repeated             // it is in the log, its writer knows, and it comes once more later
	Late                 // its writer gets ErrUnknown, and it comes later
	Fates
)

// Pending is how many appends are on their way.
func (c *Cluster) Pending() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue)
}

// Deliver brings one append to its fate: the one at index i of what is on its way.
func (c *Cluster) Deliver(i int, fate Fate) {
	c.mu.Lock()
	a := c.queue[i]
	again := (fate == Repeated || fate == Late) && !a.answered
	if !again {
		c.queue = slices.Delete(c.queue, i, i+1)
	}
	var position uint64
	err := error(nil)
	switch {
	case fate == Late && again:
		err = replog.ErrUnknown
	case fate == Taken || fate == Repeated || fate == Silent || fate == Late:
		position = c.add(a.data)
		if fate == Silent {
			err = replog.ErrUnknown
		}
	case fate == Refused:
		err = replog.ErrRefused
	default:
		err = replog.ErrUnknown
	}
	tell := !a.answered
	a.answered = true
	c.mu.Unlock()
	if tell && a.done != nil {
		a.done(position, err)
	}
}

// add appends; c.mu is held.
func (c *Cluster) add(data []byte) uint64 {
	c.records = append(c.records, data)
	close(c.grown)
	c.grown = make(chan struct{})
	return c.first + uint64(len(c.records)) - 1
}

// Node is a node's way to the log.
type Node struct {
	cluster *Cluster
	cut     bool // guarded by the cluster's mu
}

var _ replog.Log = (*Node)(nil)

// Node makes a way to the log.
func (c *Cluster) Node() *Node { return &Node{cluster: c} }

// Cut cuts the node off, or connects it again. What it has sent is on its way.
func (n *Node) Cut(off bool) {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	n.cut = off
	close(n.cluster.grown) // readers look anew
	n.cluster.grown = make(chan struct{})
}

// Append implements replog.Log.
func (n *Node) Append(data []byte, done func(position uint64, err error)) {
	c := n.cluster
	c.mu.Lock()
	a := &sending{data: data, done: done}
	if n.cut || c.held {
		if n.cut { // it never arrives, which the node cannot know
			c.mu.Unlock()
			done(0, replog.ErrUnknown)
			return
		}
		c.queue = append(c.queue, a)
		c.mu.Unlock()
		return
	}
	position := c.add(data)
	c.mu.Unlock()
	done(position, nil)
}

// Extent implements replog.Log.
func (n *Node) Extent(context.Context) (replog.Extent, error) {
	c := n.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.cut {
		return replog.Extent{}, replog.ErrUnavailable
	}
	e := replog.Extent{First: c.first, Last: c.first + uint64(len(c.records)) - 1}
	for _, r := range c.records {
		e.Bytes += uint64(len(r))
	}
	return e, nil
}

// Trim implements replog.Log.
func (n *Node) Trim(_ context.Context, below uint64) error {
	c := n.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.cut {
		return replog.ErrUnavailable
	}
	if below = min(below, c.first+uint64(len(c.records))); below > c.first {
		c.records = c.records[below-c.first:]
		c.first = below
	}
	return nil
}

// Read implements replog.Log.
func (n *Node) Read(_ context.Context, from uint64) (replog.Reader, error) {
	c := n.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := n.readable(from); err != nil {
		return nil, err
	}
	return &Reader{node: n, next: from, closed: make(chan struct{})}, nil
}

// readable reports why a position cannot be read from; the cluster's mu is held.
func (n *Node) readable(from uint64) error {
	c := n.cluster
	switch {
	case n.cut:
		return replog.ErrUnavailable
	case from < c.first:
		return replog.ErrTrimmed
	case from > c.first+uint64(len(c.records)):
		return replog.ErrLost
	}
	return nil
}

// Reader walks the log.
type Reader struct {
	node   *Node
	next   uint64
	once   sync.Once
	closed chan struct{}
}

// Try returns the next record if there is one.
func (r *Reader) Try() (position uint64, data []byte, ok bool, err error) {
	position, data, ok, _, err = r.try()
	return position, data, ok, err
}

func (r *Reader) try() (position uint64, data []byte, ok bool, grown chan struct{}, err error) {
	c := r.node.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := r.node.readable(r.next); err != nil {
		return 0, nil, false, nil, err
	}
	if i := r.next - c.first; i < uint64(len(c.records)) {
		r.next++
		return r.next - 1, c.records[i], true, nil, nil
	}
	return 0, nil, false, c.grown, nil
}

// Next implements replog.Reader.
func (r *Reader) Next(ctx context.Context) (position uint64, data []byte, err error) {
	for {
		if err := ctx.Err(); err != nil {
			return 0, nil, err
		}
		position, data, ok, grown, err := r.try()
		if ok || err != nil {
			return position, data, err
		}
		select {
		case <-grown:
		case <-r.closed:
			return 0, nil, replog.ErrUnavailable
		case <-ctx.Done():
		}
	}
}

// Close implements replog.Reader.
func (r *Reader) Close() { r.once.Do(func() { close(r.closed) }) }
