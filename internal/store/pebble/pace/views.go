package pace

import (
	"context"
	"sync"
)

// Views counts the iterators, snapshots and readings that are open. The zero value is
// ready.
type Views struct {
	mu  sync.Mutex // guards what follows
	now *View
}

// View is those of a time.
type View struct {
	of   *Views
	open int
	over chan struct{} // closed when none is left; nil: it is still that time
}

// Enter counts one, until it leaves.
func (v *Views) Enter() *View {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.now == nil {
		v.now = &View{of: v}
	}
	v.now.open++
	return v.now
}

// Leave ends what Enter began.
func (w *View) Leave() {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	if w.open--; w.open == 0 && w.over != nil {
		close(w.over)
	}
}

// Pass waits until all that are open now are closed.
func (v *Views) Pass(ctx context.Context) error {
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
