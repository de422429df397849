package clustered

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/node"
	"godwit.dev/godwit/internal/cluster/snapshot"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/pebble"
	"godwit.dev/godwit/internal/store/space"
)

// endsAfter runs a node until it has stopped, or exitTime after ctx has ended.
func endsAfter(ctx context.Context, log *slog.Logger, run func() error) error {
	var err error
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		err = run()
	}()
	select {
	case <-stopped:
		return err
	case <-ctx.Done():
	}
	if !endsWithin(exitTime, stopped) { // such as a write that waits for space on a full disk
		log.Warn("the node ends before it has stopped", "after", exitTime)
		return nil
	}
	return err
}

// endsWithin waits for something to be done, at most for a time.
func endsWithin[T any](d time.Duration, done <-chan T) bool {
	late, stop := clock.After(clock.System, d)
	defer stop()
	select {
	case <-done:
		return true
	case <-late:
		return false
	}
}

// stop ends the node's server: at once if another node serves now, or else after the requests
// in progress. It returns the server that it stopped, if it was this one; nil: none.
func (p *part) stop(ctx context.Context) (*inner, error) {
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	if p.inner.Load() != nil {
		if err := p.handOver(ctx, true); err != nil {
			p.log.Info("no other node takes over: all that is under way is ended first", "reason", err)
		}
	}
	for in := p.inner.Load(); in != nil; in = p.inner.Load() {
		if in.owner.Failed() == nil {
			p.front.closing.Store(true)
			in.server.Drain()
			p.front.await(ctx, finishTime)
			err := in.server.Stop(ctx)
			p.inner.CompareAndSwap(in, nil)
			return in, err
		}
		if !pause(ctx, quietLook) { // until disown is done
			return in, context.Cause(ctx)
		}
	}
	return nil, nil
}

// end ends the node's server, if it is this one, and then the replica, which cancel ends and over
// tells the end of. held says that the store cannot be closed: it is still read, or does not take
// a write.
func (p *part) end(ctx context.Context, cancel func(), over <-chan error) (held bool, err error) {
	in, err := p.stop(ctx)
	cancel() // a server that is starting gives up
	if !endsWithin(closeTime, over) {
		// Such as a write that waits for space on a full disk. The log has it.
		held = true
		p.log.Warn("the store is not closed: a write does not end")
	}
	if started := p.inner.Load(); started != nil && err == nil { // it had just started: nothing that it writes comes back
		in = started
		in.owner.StepDown(errEnds)
		err = p.disown(in.owner.Owner, errEnds)
	}
	return held || in != nil && !in.owner.closed.Load(), err
}

// fellOut is the error of a replica that stopped following for err. What damaged its store is
// noted for the next opening of it.
func (p *part) fellOut(replica *node.Node, err error) error {
	if errors.Is(err, store.ErrDamaged) {
		err = errors.Join(err, snapshot.MarkDamaged(p.cfg.Data, err))
	}
	if replica.Owner() != nil { // only the end of the process stops its server
		p.failed(err)
	}
	return err
}

// closeStore closes the store: for a time if the node ends with ctx, as a full disk may not take
// a last write, or until it is done if another store follows.
func (p *part) closeStore(ctx context.Context, st *pebble.Store, guard *space.Guard) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = st.Close() // the log has what it lacks, such as what a full disk does not take
		guard.Close()
	}()
	if ctx.Err() == nil {
		<-closed
	} else if !endsWithin(closeTime, closed) {
		p.log.Warn("the node ends before its store is closed", "after", closeTime)
	}
}
