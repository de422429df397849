package pace

import (
	"context"
	"sync"
)

// Views tracks the open readers of a store: iterators, snapshots and point reads. As with RCU,
// Pass waits for the earlier readers to end. The zero value is ready.
type Views struct {
	mu  sync.Mutex // guards what follows
	now *View
}

// View has the readers that were opened between two calls of Pass.
type View struct {
	of   *Views
	open int
	over chan struct{} // closed when none is left; nil: Pass was not called since
}

// Enter counts a reader, until its Leave.
func (v *Views) Enter() *View {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.now == nil {
		v.now = &View{of: v}
	}
	v.now.open++
	return v.now
}

// Leave ends a reader of Enter.
func (w *View) Leave() {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	if w.open--; w.open == 0 && w.over != nil {
		close(w.over)
	}
}

// Pass waits until all currently open readers are closed, but not for later ones. Errors:
// ctx's.
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
