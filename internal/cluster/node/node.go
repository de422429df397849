// Package node runs a node's replica of a cell: it follows the log, and takes the cell over when
// its owner is silent. Clocks only decide which node tries; the log alone decides which node
// owns the cell.
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/record"
	"godwit.dev/godwit/internal/cluster/replica"
	"godwit.dev/godwit/internal/cluster/replog"
	"godwit.dev/godwit/internal/store"
)

// Default times.
const (
	defaultLease = 1500 * time.Millisecond
	noLimit      = math.MaxUint64 / 2     // of the log; Trimmable doubles it
	stagger      = 300 * time.Millisecond // between nodes that try to take over
	retryTime    = 100 * time.Millisecond
	reluctance   = 2 * time.Second       // added for a reluctant node: more than the staggers of seven
	refusedTime  = 20 * time.Millisecond // until a refused handover is written again
	trimTime     = 10 * time.Second      // between two trims of the log
	lostTime     = 30 * time.Second      // how long the log must seem to lack records before they count as lost
)

// Options configure a Node.
type Options struct {
	Name     string // of the node
	Instance string // of the process: no two have the same
	Rank     int    // among the nodes: a higher one waits longer before it tries
	Cell     uint16
	Log      replog.Log
	Store    store.Store // the replica's; nobody else writes to it
	Logger   *slog.Logger
	// Lease is how long an owner may be silent before others try to take over; 0: 1.5 s.
	Lease time.Duration
	// Own is called once the process owns the cell and has applied the whole log. It
	// starts the server, and gives up when ctx ends.
	Own func(ctx context.Context, o *replica.Owner) error
	// Disown is called after Own, once the owner has stepped down, and returns when
	// everything that Own has started has stopped. Then the node follows again. Until then
	// the server reads and writes a detached store (replica.OwnerOptions.Detach). Nil: Run
	// ends when the owner steps down.
	Disown func(o *replica.Owner, reason error) error
	// MayBootstrap reports that the cell may begin empty, as no other node has data of it.
	// It is called before the first takeover. Nil: it may.
	MayBootstrap func(ctx context.Context) bool
	// Members reports the durable positions of all nodes. Only the owner calls it, before
	// it trims the log. Nil: the log is not trimmed.
	Members func(ctx context.Context) []Member
	// Reluctant reports that the node's disk is full: it lets all others try first. May be
	// nil.
	Reluctant func() bool
	// LogLimit is the size of the log, in bytes, from which on it is not kept for nodes
	// that do not answer; at twice that it is kept for a majority only. 0: no limit.
	LogLimit uint64
}

// Node follows a cell's log.
type Node struct {
	options Options
	replica *replica.Replica

	mu         sync.Mutex
	ownerHeard time.Time // when a record was accepted last, or who tries to take over began to wait again
	accepted   time.Time // when a record was accepted last
	behind     bool      // it has not yet applied the log up to its end at the start
	target     uint64    // that end
	owner      *replica.Owner
	serving    bool
	serves     atomic.Pointer[replica.Owner] // owner, as long as serving
	flushing   flushing
	log        replog.Extent
	changed    chan struct{} // closed when who owns the cell changes, or serves
	fail       context.CancelCauseFunc

	running sync.WaitGroup // what Run waits for: the caller closes the store next
	holding chan struct{}  // has a token from before Own is called until Disown has returned
}

// Open opens a node's replica.
func Open(o Options) (*Node, error) {
	if o.Lease == 0 {
		o.Lease = defaultLease
	}
	if o.LogLimit == 0 {
		o.LogLimit = noLimit
	}
	r, err := replica.Open(o.Cell, o.Store)
	if err != nil {
		return nil, err
	}
	now := clock.System.Now()
	return &Node{options: o, replica: r, ownerHeard: now, accepted: now, behind: true, changed: make(chan struct{}), holding: make(chan struct{}, 1)}, nil
}

// State is the state of a node.
type State struct {
	Owner   string // the node's name; empty: nobody owns the cell
	Epoch   uint64
	Number  uint64        // of the latest record that the replica has
	Durable uint64        // up to which position the local disk has them
	Process string        // the name of this process in the log, for HandOver
	Own     bool          // this process is the owner
	Leaving bool          // it was the owner, and its server is being stopped
	Serving bool          // and serves
	Behind  bool          // the replica has not yet applied the log up to its end at the start
	Heard   time.Time     // when it applied a record of an owner last, or was opened; an owner writes several a second
	Log     replog.Extent // as of some seconds ago
}

// State is the current state. changed is closed when the owner of the cell changes, or whether
// it is served.
func (n *Node) State() (s State, changed <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f := n.replica.Latest()
	name, _, _ := strings.Cut(f.Owner, "/")
	own := n.owner != nil && n.owner.Epoch() == f.Epoch
	return State{
		Owner: name, Epoch: f.Epoch, Number: f.Number, Durable: n.flushing.durable,
		Own: own, Leaving: n.owner != nil && !own, Serving: n.serving && n.owner.Failed() == nil, Behind: n.behind,
		Heard: n.accepted, Log: n.log, Process: n.identity(),
	}, n.changed
}

// identity is the name of the process in the log.
func (n *Node) identity() string { return n.options.Name + "/" + n.options.Instance }

// Run follows the log until ctx ends, or until it cannot go on: the process is no owner any
// more (replica.ErrReplaced and others), the replica lacks what the log has no more
// (replog.ErrTrimmed) or what others began with (replica.ErrIncomplete), the log lacks what the replica has (replog.ErrLost), the store is
// damaged (store.ErrDamaged) or fails.
func (n *Node) Run(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	n.mu.Lock()
	n.fail = fail
	n.mu.Unlock()
	defer n.running.Wait()
	n.running.Go(func() { n.every(ctx, n.options.Lease/8, n.campaign()) })
	n.running.Go(func() { n.every(ctx, n.options.Lease/3, n.heartbeat) })
	n.running.Go(func() { n.every(ctx, flushLook, n.flush) })
	n.running.Go(func() { n.every(ctx, trimTime, n.trim) })
	var lost time.Time // since when the log ends too early
	for ctx.Err() == nil {
		err := n.follow(ctx)
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, replog.ErrUnavailable):
			lost = time.Time{}
			n.options.Logger.Debug("the replicated log is read anew", "cell", n.options.Cell, "reason", err)
		case errors.Is(err, replog.ErrLost) && (lost.IsZero() || clock.System.Now().Sub(lost) < lostTime):
			if lost.IsZero() {
				lost = clock.System.Now() // whoever answered may be behind
			}
		default:
			fail(err)
		}
		n.pause(ctx, retryTime)
	}
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// failed ends Run.
func (n *Node) failed(err error) {
	n.mu.Lock()
	fail := n.fail
	n.mu.Unlock()
	fail(err)
}

// follow applies what the log has, and what comes, until an error.
func (n *Node) follow(ctx context.Context) error {
	log, err := n.options.Log.Extent(ctx)
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.target = max(n.target, log.Last)
	n.catchUp(n.replica.Position())
	n.mu.Unlock()
	reader, err := n.options.Log.Read(ctx, n.replica.Position()+1)
	if err != nil {
		return err
	}
	defer reader.Close()
	for {
		position, data, err := reader.Next(ctx)
		if err != nil {
			return err
		}
		rec, accepted, err := n.replica.Apply(position, data)
		if err != nil {
			return err
		}
		n.noteApplied(position, len(data), accepted, accepted && rec.Kind == record.Commit)
		if accepted && rec.Kind == record.Takeover {
			n.takenOver(ctx, &rec)
		}
	}
}

// catchUp notes whether the replica has applied the log up to its end at the start; n.mu is held.
func (n *Node) catchUp(position uint64) {
	if n.behind && position >= n.target {
		n.behind = false
		n.ownerHeard = clock.System.Now()
	}
}

func (n *Node) hearOwner() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ownerHeard = clock.System.Now()
}

// takenOver notes a new owner, and serves if it is this process.
func (n *Node) takenOver(ctx context.Context, rec *record.Record) {
	n.options.Logger.Info("a cell has an owner", "cell", rec.Cell, "owner", rec.Owner, "epoch", rec.Epoch)
	if rec.Owner != n.identity() {
		n.change(func() {})
		return
	}
	detach := n.options.Disown != nil
	steppedDown := make(chan error, 1)
	owner, err := n.replica.Own(rec.Epoch, replica.OwnerOptions{Log: n.options.Log, Detach: detach, Failed: func(err error) {
		if !detach || errors.Is(err, store.ErrDamaged) {
			n.failed(err)
		}
		steppedDown <- err
	}})
	if err != nil {
		n.failed(err)
		return
	}
	n.change(func() { n.serve(owner, false) })
	n.running.Go(func() { n.own(ctx, owner, steppedDown) })
}

// own has the cell served until the owner steps down, and then the server stopped.
func (n *Node) own(ctx context.Context, owner *replica.Owner, steppedDown <-chan error) {
	n.holding <- struct{}{} // the server of an earlier epoch is stopped first
	defer func() { <-n.holding }()
	starting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	started := make(chan error, 1)
	go func() { started <- n.options.Own(starting, owner) }()
	var reason, err error
	select {
	case err = <-started:
	case reason = <-steppedDown:
		cancel(reason)
		err = <-started
	}
	if err != nil && reason == nil && owner.Failed() == nil {
		n.failed(fmt.Errorf("the cell cannot be served: %w", err))
		return
	}
	if err == nil && reason == nil {
		n.change(func() { n.serve(n.owner, n.owner == owner) })
	}
	if reason == nil {
		select {
		case reason = <-steppedDown:
		case <-ctx.Done():
			return
		}
	}
	if n.options.Disown == nil {
		return // Run has ended
	}
	if err == nil {
		if err := n.options.Disown(owner, reason); err != nil {
			n.failed(errors.Join(reason, err))
			return
		}
	}
	n.change(func() {
		if n.owner == owner {
			n.serve(nil, false)
			n.ownerHeard = clock.System.Now() // others may try first
		}
	})
}

// serve notes whether this process is the owner, and serves; mu is held.
func (n *Node) serve(owner *replica.Owner, serving bool) {
	n.owner, n.serving = owner, serving
	if !serving {
		owner = nil
	}
	n.serves.Store(owner)
}

// Serves is Serving of State. Every request calls it, so it does not wait for a record that is
// being applied.
func (n *Node) Serves() bool {
	owner := n.serves.Load()
	return owner != nil && owner.Failed() == nil
}

// change makes a change that forwarders of requests wait for.
func (n *Node) change(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
	close(n.changed)
	n.changed = make(chan struct{})
}

// Checkpoint writes a copy of the replica's store into a directory, which must not exist yet. The
// copy has the log up to position at least.
func (n *Node) Checkpoint(dir string) (position uint64, err error) { return n.replica.Checkpoint(dir) }

// Owner is the owner of the cell if it is this process; else nil.
func (n *Node) Owner() *replica.Owner {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.owner
}

// ErrNotOwner reports that there is nothing to hand over.
var ErrNotOwner = errors.New("the process does not own the cell")

// HandOver makes another process the owner of the cell, and returns once that is in the log:
// earlier writes of this process are accepted, later ones are not. If the log refuses it, or its
// fate is not known, this process continues as the owner until it learns that it was replaced.
// Errors: ErrNotOwner, the context's.
func (n *Node) HandOver(ctx context.Context, to string) error {
	owner := n.Owner()
	if owner == nil || owner.Failed() != nil {
		return ErrNotOwner
	}
	epoch := owner.Epoch() + 1
	takeover := record.Record{Kind: record.Takeover, Cell: n.options.Cell, Epoch: epoch, Number: n.replica.Latest().Number, Owner: to} // a full disk may hold what is being applied
	refused := make(chan struct{}, 1)
	appended := func(_ uint64, err error) {
		if err != nil {
			n.options.Logger.Debug("a handover is uncertain", "cell", n.options.Cell, "reason", err)
		}
		if errors.Is(err, replog.ErrRefused) {
			refused <- struct{}{}
		}
	}
	n.options.Log.Append(takeover.AppendTo(nil), appended)
	for {
		s, changed := n.State()
		if s.Epoch >= epoch {
			return nil
		}
		select {
		case <-changed:
		case <-refused: // it is surely not in the log
			if !n.pause(ctx, refusedTime) {
				return context.Cause(ctx)
			}
			n.options.Log.Append(takeover.AppendTo(nil), appended)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// campaign tries to take the cell over when its owner is silent.
func (n *Node) campaign() func(context.Context) {
	last := clock.System.Now()
	return func(ctx context.Context) {
		now := clock.System.Now()
		paused := now.Sub(last) > n.options.Lease/2
		last = now
		wait := n.options.Lease + time.Duration(n.options.Rank)*stagger
		if n.options.Reluctant != nil && n.options.Reluctant() {
			wait += reluctance
		}
		n.mu.Lock()
		if paused { // the process or the machine was paused: records of that time are not read yet
			n.ownerHeard = now
		}
		silent := now.Sub(n.ownerHeard)
		tries := n.owner == nil && !n.behind && silent > wait
		n.mu.Unlock()
		if !tries {
			return
		}
		log, err := n.options.Log.Extent(ctx)
		if err != nil || log.Last > n.replica.Position() {
			return // the log does not answer, or has records that are not read yet
		}
		n.hearOwner() // the next try is a lease away
		f := n.replica.Fence()
		if f.Epoch == 0 && n.options.MayBootstrap != nil && !n.options.MayBootstrap(ctx) {
			return
		}
		takeover := record.Record{Kind: record.Takeover, Cell: n.options.Cell, Epoch: f.Epoch + 1, Number: f.Number, Owner: n.identity()}
		n.options.Logger.Info("a cell's owner is silent: trying to take over", "cell", n.options.Cell, "epoch", takeover.Epoch)
		n.options.Log.Append(takeover.AppendTo(nil), func(_ uint64, err error) {
			if err != nil {
				n.options.Logger.Debug("a takeover is uncertain", "cell", n.options.Cell, "reason", err)
			}
		})
	}
}

// heartbeat writes a record if the owner has written nothing else, so that others hear of it.
func (n *Node) heartbeat(ctx context.Context) {
	if o := n.Owner(); o != nil && o.Failed() == nil {
		n.mu.Lock()
		silent := clock.System.Now().Sub(n.ownerHeard)
		n.mu.Unlock()
		if silent >= n.options.Lease/4 {
			_ = o.Confirm(ctx) // on failure the owner steps down
		}
	}
}

// measure notes what the log has.
func (n *Node) measure(ctx context.Context) {
	if log, err := n.options.Log.Extent(ctx); err == nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.log = log
	}
}

func (n *Node) trim(ctx context.Context) {
	if n.options.Members == nil || n.Owner() == nil {
		return
	}
	log, err := n.options.Log.Extent(ctx)
	if err != nil {
		return
	}
	if below := Trimmable(n.options.Members(ctx), log.Bytes, n.options.LogLimit); below > 1 {
		if err := n.options.Log.Trim(ctx, below); err != nil {
			n.options.Logger.Debug("the replicated log is not trimmed", "reason", err)
		}
	}
}

// every calls f again and again until ctx ends.
func (n *Node) every(ctx context.Context, d time.Duration, f func(context.Context)) {
	for n.pause(ctx, d) {
		f(ctx)
	}
}

// pause waits for a while; false: ctx has ended.
func (n *Node) pause(ctx context.Context, d time.Duration) bool {
	return clock.Wait(ctx, clock.System, d) == nil
}
