// Package poison ends the process when a panic interrupts an operation that must complete:
// memory may then be ahead of the disk, or inconsistent, and only a restart repairs that. A
// held lock means that an operation is incomplete; so locks are guarded. A panic that passes no
// guarded lock only aborts its request.
package poison

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// ErrPoisoned is the error of operations on state that a panic has left incomplete.
var ErrPoisoned = errors.New("a command has panicked half-way, and memory may be ahead of the disk")

// End logs a panic that has interrupted an operation, with the stack of the calling goroutine,
// and ends the process by fatal; nil does not end it.
func End(logger *slog.Logger, fatal func(error), cause any) {
	if logger != nil {
		logger.Error("a command has panicked half-way", "panic", cause, "stack", string(debug.Stack()))
	}
	if fatal != nil {
		fatal(fmt.Errorf("%w: %v", ErrPoisoned, cause))
	}
}

// Until has a panic not end the process by fatal once nothing depends on what is in memory, as
// over reports: what is left then are requests whose answers reach nobody.
func Until(over func() bool, fatal func(error)) func(error) {
	return func(err error) {
		if !errors.Is(err, ErrPoisoned) || !over() {
			fatal(err)
		}
	}
}

// Guard guards the locks of one owner. After a panic none of them can be taken. A nil guard
// ignores panics.
type Guard struct {
	logger   *slog.Logger
	fatal    func(error)
	poisoned atomic.Bool
}

// New makes a guard. fatal ends the process; it should not return to a caller that
// could answer a request. Both may be nil.
func New(logger *slog.Logger, fatal func(error)) *Guard { return &Guard{logger: logger, fatal: fatal} }

// Lock locks mu. It panics with ErrPoisoned once a panic has passed one of the guard's
// locks.
func (g *Guard) Lock(mu *sync.Mutex) {
	mu.Lock()
	if g != nil && g.poisoned.Load() {
		mu.Unlock()
		panic(ErrPoisoned)
	}
}

// Unlock unlocks mu, and ends the process if a panic passes. It must be deferred directly: only
// so it sees the panic.
func (g *Guard) Unlock(mu *sync.Mutex) {
	cause := recover()
	if cause != nil {
		g.end(cause)
	}
	mu.Unlock()
	if cause != nil {
		panic(cause)
	}
}

// Whole ends the process if a panic passes: for operations that must complete, but do not hold
// a lock throughout. It must be deferred.
func (g *Guard) Whole() {
	if cause := recover(); cause != nil {
		g.end(cause)
		panic(cause)
	}
}

func (g *Guard) end(cause any) {
	if g != nil && !g.poisoned.Swap(true) {
		End(g.logger, g.fatal, cause)
	}
}
