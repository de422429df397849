package pebble

import (
	"context"
	"sync"
)

// views counts the iterators, snapshots and readings that are open. The zero value is
// ready.
type views struct {
	mu  sync.Mutex // guards what follows
	now *view
}

// view is those of a time.
type view struct {
	of   *views
	open int
	over chan struct{} // closed when none is left; nil: it is still that time
}

func (v *views) enter() *view {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.now == nil {
		v.now = &view{of: v}
	}
	v.now.open++
	return v.now
}

func (w *view) leave() {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	if w.open--; w.open == 0 && w.over != nil {
		close(w.over)
	}
}

// pass waits until all that are open now are closed.
func (v *views) pass(ctx context.Context) error {
	v.mu.Lock()
	was := v.now
	v.now = nil
	if was == nil || was.open == 0 {
		v.mu.Unlock()
		return nil
	}
	was.over = make(chan struct{})
	v.mu.Unlock()
	select {
	case <-was.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
