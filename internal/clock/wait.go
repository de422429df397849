package clock

import (
	"context"
	"time"
)

// After returns a channel that is closed after d on a clock, unless it is stopped before.
func After(c Clock, d time.Duration) (over <-chan struct{}, stop func() bool) {
	done := make(chan struct{})
	return done, c.AfterFunc(d, func() { close(done) }).Stop
}

// Wait returns after d on a clock, or with the cause of ctx's end.
func Wait(ctx context.Context, c Clock, d time.Duration) error {
	over, stop := After(c, d)
	defer stop()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
