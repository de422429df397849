package clustered

import (
	"context"
	"log/slog"
	"time"

	"godwit.dev/godwit/internal/clock"
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
